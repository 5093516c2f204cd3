//! Which gathered rows are prefetched before their use, and how early.
//!
//! A prefetch must be made a latency before the use.  What happens meanwhile grows with the row: a
//! distance is therefore given as bytes ahead, and short rows are prefetched more positions ahead.

use crate::cost::{GatheredTable, LINE_BYTES, Machine, l2_and_late};
use crate::einsum::{Index, IndexSet};
use crate::path::Path;
use crate::schedule::{Format, LevelKind, Prefetch, PrefetchOf, Problem};

/// The least positions between the prefetch of a row and its use, and those of a row from the last-level cache.  Two
/// rows of 50 columns a position, those prefetched fill a third of a first-level cache of 32 KB: 6 to 12 positions are as
/// good on 8 million non-zeros of short fibres, 24 take 1.15 times as long.
const DISTANCE: f64 = 10.0;

/// The most positions; between the two, [`Machine::prefetched_bytes`] say how many.  With 128 instead of 16
/// positions at rank 16 a TTTP whose last operand has 31 MB took 11 instead of 24 ms, and more gained nothing.
const LATE_DISTANCE: f64 = 128.0;

/// Rows of a line count as coming late if this share of them does; longer ones, with which
/// there is more to do meanwhile, if a share as many times as large does.
const LATE_SHARE: f64 = 0.025;

/// Rows are left alone if at least this share of them comes from the second-level cache: prefetches cost
/// more than they save.
const NEAR_SHARE: f64 = 0.9;

/// Rows of up to this many bytes are prefetched only if they come late: the processor looks far enough ahead by
/// itself.
const SHORT_ROW_BYTES: u64 = 64;

/// Returns the prefetches of the dense operands that are gathered by one mode and leave the second-level
/// cache.
///
/// Rows of the leader's root and of its dense levels follow each other: the processor sees a stream.
pub(super) fn prefetches(
    problem: &Problem,
    format: &Format,
    path: &Path,
    machine: &Machine,
) -> Vec<Prefetch> {
    if problem.sparse.is_empty() {
        return Vec::new();
    }
    let dense = |indices: IndexSet| (indices - problem.sparse_indices()).len();
    let products = path.terms.iter().any(|term| dense(term.indices) > 1);
    let gathers = Gathers { problem, machine, products };
    let followed = format.pairs().enumerate();
    let followed = followed.filter(|(at, (_, kind))| *at == 0 || *kind == LevelKind::Dense);
    let followed: IndexSet = followed.map(|(_, (index, _))| index).collect();
    let inputs = problem.expr.inputs.iter().enumerate();
    let gathered = inputs.filter(|(input, _)| problem.sparse_place(*input).is_none());
    let inputs = gathered.filter_map(|(input, access)| {
        let streams = !(access.set() & followed).is_empty();
        let distance = gathers.distance(access.set()).filter(|_| !streams)?;
        Some(Prefetch { of: PrefetchOf::Input(input), distance })
    });
    let output = Some(problem.expr.output.set()).filter(|_| problem.scatters());
    let output = output.filter(|set| (*set & followed).is_empty());
    let output = output.and_then(|set| gathers.distance(set));
    inputs.chain(output.map(|distance| Prefetch { of: PrefetchOf::Output, distance })).collect()
}

/// The rows that a kernel gathers while it loops over the tree.
struct Gathers<'a> {
    problem: &'a Problem,
    machine: &'a Machine,
    /// Whether a non-zero takes an outer product.
    products: bool,
}

impl Gathers<'_> {
    /// Returns how early the rows of an operand over `indices` are prefetched, if they are.
    fn distance(&self, indices: IndexSet) -> Option<u64> {
        let Gathers { problem, machine, products } = *self;
        let x = problem.leader()?;
        let sparse = indices & problem.sparse_indices();
        let mode = sparse.iter().next().filter(|_| sparse.len() == 1)?;
        // Of a row over levels of another operand a few elements are met.
        if !((indices - sparse) & problem.joined_indices()).is_empty() {
            return None;
        }
        let row = (indices - sparse).iter().map(|index| problem.extents.of(index)).product::<u64>();
        let row_bytes = row * problem.value_bytes as u64;
        let slices = x.pattern.count(sparse, &problem.extents) as f64;
        let bytes = slices * row_bytes as f64;
        let table = GatheredTable {
            bytes,
            coverage: x.pattern.coverage(mode),
            slices,
            l2: machine.l2_share,
            parts: 1.0,
        };
        let (near, late) = l2_and_late(machine, &table);
        let late = late >= LATE_SHARE * row_bytes as f64 / LINE_BYTES;
        if near >= NEAR_SHARE || row_bytes <= SHORT_ROW_BYTES && !late {
            return None;
        }
        if !late || products {
            return Some(DISTANCE as u64);
        }
        let ahead = machine.prefetched_bytes / (row_bytes as f64 * self.below(mode));
        Some(ahead.clamp(DISTANCE, LATE_DISTANCE) as u64)
    }

    /// Returns the non-zeros below a node of the level of `mode`, on average.
    fn below(&self, mode: Index) -> f64 {
        let Some(x) = self.problem.leader() else { return 1.0 };
        let depth = x.levels().iter().position(|&level| level == mode).map_or(0, |at| at + 1);
        let count = |levels: &[Index]| {
            let levels = levels.iter().copied().collect();
            x.pattern.count(levels, &self.problem.extents).max(1) as f64
        };
        count(x.levels()) / count(&x.levels()[..depth])
    }
}
