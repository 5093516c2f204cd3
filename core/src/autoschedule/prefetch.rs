//! Which gathered rows are prefetched before their use, and how early.
//!
//! A prefetch must be made a latency before the use.  What happens meanwhile grows with the row: a
//! distance is therefore given as bytes ahead, and short rows are prefetched more positions ahead.

use crate::cost::{GatheredTable, LINE_BYTES, Machine, l2_and_late};
use crate::einsum::{Index, IndexSet};
use crate::path::Path;
use crate::schedule::{Prefetch, PrefetchOf, Problem};

/// Positions between the prefetch of a row from the last-level cache and its use.  Two rows of 50 columns a
/// position, those prefetched fill a third of a first-level cache of 32 KB: 6 to 12 positions are as good on 8 million
/// non-zeros of short fibres, 16 take 1.03 times as long, 24 1.15 and 32 1.25 times.
const DISTANCE: u64 = 10;

/// The least positions between the prefetch of a row that comes late and its use: 12 instead took up to 1.04 times
/// as long.
const LATE_LEAST: f64 = 16.0;

/// The most positions; between the two, [`Machine::prefetched_bytes`] say how many.  With 128 instead of 16
/// positions at rank 16 a TTTP whose last operand has 31 MB took 11 instead of 24 ms, at rank 32 with 64
/// positions 14 instead of 24 ms, and more gained nothing.
const LATE_DISTANCE: f64 = 128.0;

/// Rows of a line count as coming late if this share of them does; longer ones, with which
/// there is more to do meanwhile, if a share as many times as large does.
const LATE_SHARE: f64 = 0.025;

/// Rows are left alone if at least this share of them comes from the second-level cache: prefetches cost
/// more than they save.
const NEAR_SHARE: f64 = 0.9;

/// The distance for the operand of the root, whose rows follow each other, but so much later that the
/// processor sees no stream.
const ROOT_DISTANCE: u64 = 4;

/// Rows of up to this many bytes are not prefetched from the last-level cache where a non-zero takes a few
/// multiply-adds a row: the processor looks far enough ahead by itself, and prefetches were slower at
/// rank 16 on the same tensor.
const SHORT_ROW_BYTES: u64 = 128;

/// The same where the processor does not look so far: where a non-zero takes an outer product, which
/// fills its window (TTMc of rank 16 x 16 on 4 million non-zeros was faster with prefetches), and of rows
/// that are added to.  Prefetches took MTTKRPs that scatter from 27 to 14 ms (3 million non-zeros of
/// order 4, rank 50), from 170 to 62 ms (5 million, rank 50) and from 29 to 25 ms (4 million of order 3,
/// rank 16).
const SHORT_ROW_BYTES_OF_WORK: u64 = 64;

/// Rows of more than this many bytes are not prefetched: the processor sees a stream in them, and so
/// many prefetches would stall.
const LONG_ROW_BYTES: u64 = 2048;

/// Returns the prefetches of the dense operands that are gathered by one mode and leave the second-level
/// cache.
pub(super) fn prefetches(problem: &Problem, path: &Path, machine: &Machine) -> Vec<Prefetch> {
    let Some(x) = problem.leader() else { return Vec::new() };
    let dense = |indices: IndexSet| (indices - problem.sparse_indices()).len();
    let products = path.terms.iter().any(|term| dense(term.indices) > 1);
    let gathers = Gathers { problem, machine, products };
    let short = if products { SHORT_ROW_BYTES_OF_WORK } else { SHORT_ROW_BYTES };
    let root = x.levels.first().copied();
    let inputs = problem.expr.inputs.iter().enumerate();
    let gathered = inputs.filter(|(input, _)| problem.sparse_place(*input).is_none());
    let inputs = gathered.filter_map(|(input, access)| {
        let at_root = root.is_some_and(|root| access.set().contains(root));
        let distance = gathers.distance(access.set(), short)?;
        let distance = if at_root { ROOT_DISTANCE } else { distance };
        Some(Prefetch { of: PrefetchOf::Input(input), distance })
    });
    let output = Some(problem.expr.output.set()).filter(|_| problem.scatters());
    let output = output.and_then(|set| gathers.distance(set, SHORT_ROW_BYTES_OF_WORK));
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
    /// Returns how early the rows of an operand over `indices` are prefetched, if they are: rows of up
    /// to `short` bytes only if they come late.
    fn distance(&self, indices: IndexSet, short: u64) -> Option<u64> {
        let Gathers { problem, machine, products } = *self;
        let x = problem.leader()?;
        let sparse = indices & problem.sparse_indices();
        let mode = sparse.iter().next().filter(|_| sparse.len() == 1)?;
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
        if near >= NEAR_SHARE || row_bytes <= short && !late || row_bytes > LONG_ROW_BYTES {
            return None;
        }
        if !late || products {
            return Some(DISTANCE);
        }
        let ahead = machine.prefetched_bytes / (row_bytes as f64 * self.below(mode));
        Some(ahead.clamp(LATE_LEAST, LATE_DISTANCE) as u64)
    }

    /// Returns the non-zeros below a node of the level of `mode`, on average.
    fn below(&self, mode: Index) -> f64 {
        let Some(x) = self.problem.leader() else { return 1.0 };
        let depth = x.levels.iter().position(|&level| level == mode).map_or(0, |at| at + 1);
        let count = |levels: &[Index]| {
            let levels = levels.iter().copied().collect();
            x.pattern.count(levels, &self.problem.extents).max(1) as f64
        };
        count(&x.levels) / count(&x.levels[..depth])
    }
}
