//! Trees of blocks: which are worth considering.
//!
//! In a block of a tensor ([`Blocking`]) the rows of all factors that a kernel gathers should stay in
//! the second-level cache.  A blocking splits the modes, always the one of which a block has the most
//! rows, until they do.  Whether that pays, the cost model says: every block fetches its rows anew, and
//! results are added into private copies, since no task owns rows.

use decompose_formats::{Blocking, Coo, ModeOrder, ModeSet, PatternCounts, Value};

use crate::cost::Machine;
use crate::einsum::IndexSet;
use crate::error::CoreError;
use crate::kernels::mode_index;
use crate::schedule::Pattern;
use crate::sweep::layout::TreeLayout;
use crate::sweep::trees::{all_modes, extents_of};

/// What the rows of a block may take of the second-level cache that a table may count on: more than
/// all of it where the rows that are asked for most fit.
const SHARES: [f64; 2] = [0.5, 1.25];

/// The least non-zeros of a block on average: below, its rows are hardly used again.
const LEAST_ENTRIES: f64 = 256.0;

/// The most rows in a block for each of its non-zeros, the rows of all modes together.
const MOST_ROWS: f64 = 2.0;

/// Returns the blockings worth considering for kernels that gather rows of `row_bytes` from every
/// mode of a tensor with these `counts`; none where all rows stay near anyway.
pub fn blockings(counts: &PatternCounts, row_bytes: u64, machine: &Machine) -> Vec<Blocking> {
    let near = near_rows(row_bytes, machine);
    let sized = SHARES.iter().filter_map(|share| sized(counts, near * share));
    let mut found: Vec<Blocking> = sized.collect();
    found.dedup();
    found
}

/// Rows of `row_bytes` that fill the second-level cache.
fn near_rows(row_bytes: u64, machine: &Machine) -> f64 {
    machine.l2_bytes as f64 * machine.l2_share / row_bytes as f64
}

/// Returns how many rows of a mode of which `used` are used a block with `entries` non-zeros has, where
/// `bits` of the mode number the blocks.
fn rows_in_block(used: f64, bits: u8, entries: f64) -> f64 {
    (used * f64::exp2(-f64::from(bits))).min(entries)
}

/// Returns the blocking with the fewest bits of which a block has at most `rows` rows in all modes
/// together.
fn sized(counts: &PatternCounts, rows: f64) -> Option<Blocking> {
    let extents = counts.extents();
    let used = |mode: usize| counts.count(ModeSet::of(&[mode])).value as f64;
    let mut bits = vec![0_u8; extents.len()];
    let mut entries = counts.nnz() as f64;
    loop {
        let in_block = |mode: usize| rows_in_block(used(mode), bits[mode], entries);
        let all: f64 = (0..extents.len()).map(in_block).sum();
        if all <= rows {
            let used_again = all <= MOST_ROWS * entries;
            return Blocking::new(bits).filter(|found| used_again && found.fits(extents));
        }
        let largest = (0..extents.len()).max_by(|&a, &b| in_block(a).total_cmp(&in_block(b)))?;
        bits[largest] += 1;
        entries /= 2.0;
        if entries < LEAST_ENTRIES {
            return None;
        }
    }
}

/// Records in `pattern`, over [`mode_index`], what planning asks of the blocks of `coo`, whose counts
/// are `counts`.
///
/// Time `O(nnz 2^order)` a blocking, parallel; memory 4 bytes an entry meanwhile.
///
/// # Errors
///
/// If a blocking has other modes, or more bits, than the tensor.
pub fn count_blocks<V: Value>(
    pattern: &mut Pattern,
    counts: &PatternCounts,
    coo: &Coo<V>,
    blockings: impl IntoIterator<Item = Blocking>,
) -> Result<(), CoreError> {
    let named = |set: ModeSet| set.modes().map(mode_index).collect::<IndexSet>();
    for blocking in blockings {
        let inside = counts.in_blocks(coo, &blocking)?;
        pattern.record_blocks(blocking, inside.into_iter().map(|(set, n)| (named(set), n)));
    }
    Ok(())
}

/// Returns the trees of the blocks of which `pattern` knows and whose rows of `row_bytes` stay near:
/// inside a block sorted by each mode first, with the last two levels fused or all of them, which makes
/// one copy that serves every mode.
pub(super) fn blocked_trees(
    extents: &[u64],
    pattern: &Pattern,
    row_bytes: u64,
    machine: &Machine,
) -> Vec<TreeLayout> {
    let order = extents.len();
    let count = |set| pattern.count(set, &extents_of(extents, 1)) as f64;
    let near = |blocking: &&Blocking| {
        let blocks: f64 = blocking.bits().iter().map(|&bits| f64::exp2(f64::from(bits))).product();
        let entries = count(all_modes(order)) / blocks;
        let used = (0..order).map(|mode| count(IndexSet::EMPTY.with(mode_index(mode))));
        let rows =
            used.zip(blocking.bits()).map(|(used, &bits)| rows_in_block(used, bits, entries));
        rows.sum::<f64>() <= SHARES[1] * near_rows(row_bytes, machine)
    };
    let fits = pattern.blockings().filter(|blocking| blocking.fits(extents)).filter(near);
    let tails = || [2.min(order), order].into_iter();
    let tree = |blocking: &Blocking, root: usize, tail: usize| TreeLayout {
        blocks: Some(blocking.clone()),
        order: ModeOrder::rooted(root, extents),
        tail,
    };
    let trees = fits.flat_map(|blocking| {
        (0..order).flat_map(move |root| tails().map(move |tail| tree(blocking, root, tail)))
    });
    let mut trees: Vec<TreeLayout> = trees.collect();
    trees.dedup();
    trees
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_large_as_the_cache_allows() {
        let counts = PatternCounts::uniform(&[12_000, 9_000, 28_000], 8_000_000);
        let machine = Machine { l2_bytes: 1 << 20, l2_share: 1.0, ..Machine::here().clone() };
        let found = blockings(&counts, 400, &machine);
        // Blocks for half of the cache would have fewer than 256 non-zeros.
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["4.3.5"]);
        let dense = PatternCounts::uniform(&[12_000, 9_000, 28_000], 80_000_000);
        let found = blockings(&dense, 400, &machine);
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["5.5.6", "4.3.5"]);
        let small = PatternCounts::uniform(&[100, 200, 300], 8_000_000);
        assert_eq!(blockings(&small, 400, &machine), []);
        let hollow = PatternCounts::uniform(&[1 << 22, 1 << 22, 1 << 22], 1_000_000);
        assert_eq!(blockings(&hollow, 400, &machine), []);
    }
}
