//! Trees of blocks: which are worth considering.
//!
//! In a block of a tensor ([`Blocking`]) the rows of all factors that a kernel gathers should stay in
//! the second-level cache.  A blocking splits the modes, always the one of which a block has the most
//! rows, until they do; or only the modes that a kernel gathers, and fewer times, so that the rows of its
//! result are visited a few times only.  Whether that pays, the cost model says: every block fetches its
//! rows anew, and results are added into private copies, since no task owns rows.
//!
//! Blocks that are ranges of the mode of a result, one a thread, are for the opposite: the rows that are added to,
//! which threads then own.

use decompose_formats::{Blocking, Coo, ModeOrder, ModeSet, PatternCounts, Value};

use crate::cost::Machine;
use crate::einsum::IndexSet;
use crate::error::CoreError;
use crate::kernels::mode_index;
use crate::schedule::{Pattern, spread_pairs};
use crate::sweep::layout::TreeLayout;
use crate::sweep::problems::{all_modes, extents_of};

/// What the rows of a block may take of the second-level cache that a table may count on, where all modes are
/// split: more than all of it, as the rows that are asked for most fit.
const ALL_SHARE: f64 = 1.25;

/// The same where the mode of the result is whole, for the rows of the other modes: those of the outer levels pass by
/// in their order, and need not stay.
const OTHERS_SHARE: f64 = 4.0;

/// Shorter rows come from the last level nearly as quickly as from the second, and blocks of others have been seen to
/// gain nothing.
const OTHERS_ROW_BYTES: u64 = 256;

/// The least non-zeros of a block on average: below, its rows are hardly used again.
const LEAST_ENTRIES: f64 = 256.0;

/// The most rows in a block for each of its non-zeros, the rows of all modes together.
const MOST_ROWS: f64 = 2.0;

/// Returns the blockings worth considering for kernels that gather rows of `row_bytes` of a tensor with these
/// `counts`: one that splits all modes, and for each mode, as that of a result, one that splits the
/// others; none where rows stay near anyway.
pub fn blockings(counts: &PatternCounts, row_bytes: u64, machine: &Machine) -> Vec<Blocking> {
    let near = near_rows(row_bytes, machine);
    let modes = || 0..counts.extents().len();
    let others = |own: usize| modes().filter(|&mode| mode != own).collect::<Vec<_>>();
    let owns = modes().filter(|_| row_bytes >= OTHERS_ROW_BYTES);
    let of_others = owns.filter_map(|own| sized(counts, &others(own), near * OTHERS_SHARE));
    let of_all = sized(counts, &modes().collect::<Vec<_>>(), near * ALL_SHARE);
    let mut found: Vec<Blocking> = of_all.into_iter().chain(of_others).collect();
    found.sort();
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

/// Returns the blocking with the fewest bits that splits only `modes` and of which a block has at most `rows`
/// rows in these together.
fn sized(counts: &PatternCounts, modes: &[usize], rows: f64) -> Option<Blocking> {
    let extents = counts.extents();
    let used = |mode: usize| counts.count(ModeSet::of(&[mode])).value as f64;
    let mut bits = vec![0_u8; extents.len()];
    let mut entries = counts.nnz() as f64;
    loop {
        let in_block = |mode: usize| rows_in_block(used(mode), bits[mode], entries);
        let all: f64 = modes.iter().map(|&mode| in_block(mode)).sum();
        if all <= rows {
            let most = MOST_ROWS * modes.len() as f64 / extents.len() as f64;
            let used_again = all <= most * entries;
            return Blocking::new(bits).filter(|found| used_again && found.fits(extents));
        }
        let largest = modes.iter().max_by(|&&a, &&b| in_block(a).total_cmp(&in_block(b)))?;
        bits[*largest] += 1;
        entries /= 2.0;
        if entries < LEAST_ENTRIES {
            return None;
        }
    }
}

/// Records in `pattern`, over [`mode_index`], what planning asks of the blocks of `coo`, whose counts
/// are `counts`.
///
/// Time `O(nnz 2^order)` a blocking, parallel; memory as [`PatternCounts::in_blocks`].
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
    let blockings: Vec<Blocking> = blockings.into_iter().collect();
    let inside = counts.in_blocks(coo, &blockings)?;
    for (blocking, inside) in blockings.into_iter().zip(inside) {
        pattern.record_blocks(blocking, inside.into_iter().map(|(set, n)| (named(set), n)));
    }
    Ok(())
}

/// Records estimates of what [`count_blocks`] counts, from what `pattern` knows of a tensor of `extents`.
///
/// Of `N` tuples in some modes each lies in one of `b` parts by the bits of the other modes.  If its `n / N`
/// non-zeros fell into them at random, `N b (1 - (1 - 1/b)^(n/N))` pairs would occur, and at least `N` do.  The
/// estimate is the geometric mean of both: where non-zeros lie together, as on real tensors, the truth is between.
pub fn estimate_blocks(
    pattern: &mut Pattern,
    extents: &[u64],
    blockings: impl IntoIterator<Item = Blocking>,
) {
    let order = extents.len();
    let entries = pattern.count(all_modes(order), &extents_of(extents, 1)) as f64;
    for blocking in blockings.into_iter().filter(|blocking| blocking.fits(extents)) {
        let parts = |mode: usize| extents[mode].div_ceil(blocking.span(mode, extents[mode])) as f64;
        let pairs = |(set, tuples): (IndexSet, u64)| {
            let (outside, tuples) =
                (|&mode: &usize| !set.contains(mode_index(mode)), tuples as f64);
            let others: f64 = (0..order).filter(outside).map(parts).product();
            let spread = spread_pairs(tuples, entries, others);
            let pairs = if set.is_empty() { spread } else { (tuples * spread).sqrt() };
            (set, pairs.max(tuples).min(entries).round() as u64)
        };
        let known = pattern.counts().chain([(IndexSet::EMPTY, 1)]);
        let estimates: Vec<(IndexSet, u64)> = known.map(pairs).collect();
        pattern.record_estimates(blocking, estimates);
    }
}

/// Returns the trees of the blocks of which `pattern` knows and whose rows of `row_bytes` stay near.
///
/// Inside a block of all modes the tree is sorted by each mode first, with the last two levels fused or all of
/// them, which makes one copy that serves every mode.  Where modes are whole it is sorted by each of them first,
/// the others from short to long or from long to short, with the last two levels fused or all but the first.
pub(super) fn blocked_trees(
    extents: &[u64],
    pattern: &Pattern,
    row_bytes: u64,
    machine: &Machine,
) -> Vec<TreeLayout> {
    let order = extents.len();
    let count = |set| pattern.count(set, &extents_of(extents, 1)) as f64;
    let near = |blocking: &Blocking| {
        let blocks: f64 = blocking.bits().iter().map(|&bits| f64::exp2(f64::from(bits))).product();
        let entries = count(all_modes(order)) / blocks;
        let used = (0..order).map(|mode| count(IndexSet::EMPTY.with(mode_index(mode))));
        let rows =
            used.zip(blocking.bits()).map(|(used, &bits)| rows_in_block(used, bits, entries));
        rows.sum::<f64>() <= ALL_SHARE * near_rows(row_bytes, machine)
    };
    let rising = |root: usize| ModeOrder::rooted(root, extents);
    let mut trees = Vec::new();
    for blocking in pattern.blockings().filter(|blocking| blocking.fits(extents)) {
        let whole: Vec<usize> = (0..order).filter(|&mode| blocking.bits()[mode] == 0).collect();
        let (orders, widest): (Vec<ModeOrder>, usize) = match whole.is_empty() {
            true if near(blocking) => ((0..order).map(rising).collect(), order),
            true => continue,
            false => {
                let orders =
                    whole.iter().flat_map(|&r| [rising(r), rising(r).reversed_below_root()]);
                (orders.collect(), order - 1)
            }
        };
        for (order, fused) in orders.iter().flat_map(|up| [(up, 2.min(order)), (up, widest)]) {
            trees.push(TreeLayout { blocks: Some(blocking.clone()), order: order.clone(), fused });
        }
    }
    trees.sort();
    trees.dedup();
    trees
}

/// How often the rows of a mode must be added to on average for ranges to be considered: with fewer, nothing has been
/// seen to gain over a tree that is sorted by them (on enron's merged modes, 1.1 to 1.4 times the seconds).
const LEAST_AGAIN: u64 = 64;

/// Returns the trees in ranges worth considering for kernels that add rows of `row_bytes` into those of one mode
/// on `threads`, one range for each of them.
///
/// They are worth it where a private copy of the rows does not stay in the second-level cache, and all of them
/// fit the last level: rows that are added to in another order than the tree's come from there.  The tree is sorted by
/// each other mode first, the others from short to long, or the one that is added to last.
pub(super) fn ranged_trees(
    extents: &[u64],
    pattern: &Pattern,
    row_bytes: u64,
    threads: usize,
    machine: &Machine,
) -> Vec<TreeLayout> {
    let count = |set| pattern.count(set, &extents_of(extents, 1));
    let worth = |&mode: &usize| {
        let rows = count(IndexSet::EMPTY.with(mode_index(mode)));
        let bytes = rows.saturating_mul(row_bytes);
        let again = count(all_modes(extents.len())) / rows.max(1);
        machine.l2_bytes < bytes && bytes <= machine.l3_bytes && again >= LEAST_AGAIN
    };
    let ranges = |mode: usize| Blocking::of_ranges(mode, u32::try_from(threads).ok()?);
    let mut trees = Vec::new();
    for mode in (0..extents.len()).filter(worth) {
        let Some(blocks) = ranges(mode) else { continue };
        for root in (0..extents.len()).filter(|&root| root != mode) {
            let rising = ModeOrder::rooted(root, extents);
            for order in [rising.ending_with(mode), rising] {
                // Only the levels below that of the first mode are fused.
                for fused in 1..=2.min(extents.len() - 1) {
                    let (blocks, order) = (Some(blocks.clone()), order.clone());
                    trees.push(TreeLayout { blocks, order, fused });
                }
            }
        }
    }
    trees.sort();
    trees.dedup();
    trees
}

#[cfg(test)]
mod tests {
    use decompose_formats::mix::mix;

    use super::*;
    use crate::cost::{Family, estimate};
    use crate::optimisation::Optimisations;
    use crate::sweep::limited::plan_counted;
    use crate::sweep::options::{Merging, PlanOptions, Trees};
    use crate::sweep::tree_plan::{Step, TreePlan};

    #[test]
    fn blocks_are_as_large_as_the_cache_allows() {
        let counts = PatternCounts::uniform(&[12_000, 9_000, 28_000], 8_000_000);
        let machine = Machine { l2_bytes: 1 << 20, l2_share: 1.0, ..Machine::here().clone() };
        let typed =
            |found: Vec<Blocking>| found.iter().map(ToString::to_string).collect::<Vec<_>>();
        // Of all modes, and of all but one: at most 1.25 and 4 times 2621 rows.
        let found = blockings(&counts, 400, &machine);
        assert_eq!(typed(found), ["0.1.3", "1.0.3", "2.1.0", "4.3.5"]);
        // Of short rows, all modes only.
        assert_eq!(typed(blockings(&counts, 128, &machine)), ["2.2.3"]);
        let small = PatternCounts::uniform(&[100, 200, 300], 8_000_000);
        assert_eq!(blockings(&small, 400, &machine), []);
        let hollow = PatternCounts::uniform(&[1 << 22, 1 << 22, 1 << 22], 1_000_000);
        assert_eq!(blockings(&hollow, 400, &machine), []);
    }

    #[test]
    fn threads_that_scatter_into_many_rows_have_a_range_each() {
        let counts = PatternCounts::uniform(&[165_000, 22_700], 4_000_000);
        let pattern = Pattern::of(&counts, &[0, 1].map(mode_index));
        let machine = Family::Zen.machine();
        let typed = |threads| -> Vec<String> {
            let found = ranged_trees(counts.extents(), &pattern, 448, threads, &machine);
            found.iter().map(ToString::to_string).collect()
        };
        assert_eq!(typed(3), ["2:3/1-2"]);
        assert_eq!(typed(1), [""; 0]);
        let planned = |threads| matrix_plan(&counts, threads, Trees::Choose);
        let plan = planned(2);
        let tree = &plan.trees[plan.steps[1].tree];
        assert_eq!((tree.to_string().as_str(), plan.side_bytes), ("2:2/1-2", 0));
        assert!(planned(1).trees.iter().all(|tree| tree.blocks.is_none()));
    }

    #[test]
    fn ranges_have_rows_of_the_root_brought_once() {
        let counts = PatternCounts::uniform(&[165_000, 22_700], 4_000_000);
        let machine = Family::Zen.machine();
        // The seconds that a slower memory adds to the kernel of the second mode.
        let more = |tree: &str| {
            let trees = Trees::Given(vec![tree.parse().expect("a tree")]);
            let Step { problem, candidate, .. } = matrix_plan(&counts, 2, trees).steps.remove(1);
            let seconds = |stream_line| {
                let machine = Machine { stream_line, ..machine.clone() };
                estimate(&problem, &candidate.schedule, &machine).seconds
            };
            seconds(2.0 * machine.stream_line) - seconds(machine.stream_line)
        };
        let (plain, ranges) = (more("1-2"), more("2:2/1-2"));
        assert!(plain > 0.0 && (ranges / plain - 1.0).abs() < 0.1, "{plain} {ranges}");
    }

    /// A plan for the two kernels of a matrix at rank 50, with factors stored whole.
    fn matrix_plan(counts: &PatternCounts, threads: usize, trees: Trees) -> TreePlan {
        let pattern = Pattern::of(counts, &[0, 1].map(mode_index));
        let options = PlanOptions {
            rank: 50,
            value_bytes: 8,
            panels: Some(50),
            threads,
            memory: None,
            sweeps: 50,
            trees,
            merging: Merging::Never,
            updates: vec![0, 1],
        };
        let machine = Family::Zen.machine();
        crate::sweep::plan(counts.extents(), &pattern, &options, &machine).expect("a plan").kernels
    }

    #[test]
    fn of_ranges_it_is_known_where_their_mode_is() {
        let counts = PatternCounts::uniform(&[100, 200, 300], 60_000);
        let pattern = Pattern::of(&counts, &[0, 1, 2].map(mode_index));
        let ranges = Blocking::of_ranges(1, 4).expect("ranges");
        assert!(pattern.is_counted(&ranges));
        let inside = pattern.in_blocks(&ranges).expect("an estimate");
        let by_index = extents_of(counts.extents(), 1);
        let count = |modes: &[usize]| {
            let set: IndexSet = modes.iter().map(|&mode| mode_index(mode)).collect();
            let block = IndexSet::EMPTY.with(crate::einsum::Index::BLOCK);
            (pattern.count(set, &by_index), inside.count(set | block, &by_index))
        };
        assert_eq!(inside.ranged(), Some(mode_index(1)));
        assert_eq!(count(&[]), (1, 4));
        for modes in [vec![1], vec![0, 1], vec![0, 1, 2]] {
            let (tuples, pairs) = count(&modes);
            assert_eq!(tuples, pairs, "{modes:?}");
        }
        // Each of 100 slices has 600 non-zeros in four ranges; of two other modes hardly a tuple comes twice.
        assert_eq!(count(&[0]), (100, 400));
        let (tuples, pairs) = count(&[0, 2]);
        assert!(tuples < pairs && pairs <= 60_000, "{tuples} tuples, {pairs} pairs");
    }

    #[test]
    fn estimates_are_between_the_tuples_and_the_pairs() {
        let coo = tensor();
        let counts = PatternCounts::of(&coo);
        let blocking: Blocking = "0.2.1".parse().expect("a blocking");
        let known = Pattern::of(&counts, &[0, 1, 2].map(mode_index));
        let (mut counted, mut estimated) = (known.clone(), known);
        count_blocks(&mut counted, &counts, &coo, [blocking.clone()]).expect("counts");
        estimate_blocks(&mut estimated, coo.extents(), [blocking.clone()]);
        assert!(counted.is_counted(&blocking) && !estimated.is_counted(&blocking));
        let by_index = extents_of(coo.extents(), 1);
        let inside = |pattern: &Pattern, set: IndexSet| {
            let pattern = pattern.in_blocks(&blocking).expect("recorded");
            pattern.count(set.with(crate::einsum::Index::BLOCK), &by_index) as f64
        };
        for bits in 0..8_u64 {
            let set: IndexSet =
                (0..3).filter(|mode| bits >> mode & 1 == 1).map(mode_index).collect();
            let (guess, pairs) = (inside(&estimated, set), inside(&counted, set));
            let tuples = estimated.count(set, &by_index) as f64;
            // Entries are spread evenly, so that the pairs are the upper of the two bounds.
            let mean = if set.is_empty() { pairs } else { (tuples * pairs).sqrt() };
            assert!((guess / mean - 1.0).abs() < 0.05, "{set:?}: {guess} where {mean} is the mean");
        }
    }

    #[test]
    fn plans_rest_on_blocks_that_were_counted() {
        let coo = tensor();
        let counts = PatternCounts::of(&coo);
        let mut pattern = Pattern::of(&counts, &[0, 1, 2].map(mode_index));
        let trees =
            ["0.2.1/1-2+3", "1.1.1/2-1+3"].map(|tree| tree.parse::<TreeLayout>().expect("a tree"));
        let blockings: Vec<Blocking> =
            trees.iter().filter_map(|tree| tree.blocks.clone()).collect();
        estimate_blocks(&mut pattern, coo.extents(), blockings.clone());
        let options = PlanOptions {
            rank: 8,
            value_bytes: 8,
            panels: None,
            threads: 2,
            memory: None,
            sweeps: 10,
            trees: Trees::Given(trees.to_vec()),
            merging: Merging::Never,
            updates: vec![0, 1, 2],
        };
        let all = Optimisations::default();
        let plan = plan_counted(&coo, &counts, &mut pattern, &options, all, Machine::here());
        assert_eq!(plan.expect("a plan").kernels.trees, trees);
        assert!(blockings.iter().all(|blocking| pattern.is_counted(blocking)));
    }

    /// Two thousand entries spread over 40 x 50 x 60.
    fn tensor() -> Coo<f64> {
        let at = |entry: u64, extent: u64| (mix(entry) % extent) as u32;
        let column = |salt: u64, extent: u64| -> Vec<u32> {
            (0..2000).map(|entry| at(salt * 10_000 + entry, extent)).collect()
        };
        let coords = vec![column(1, 40).into(), column(2, 50).into(), column(3, 60).into()];
        let mut coo = Coo::new(vec![40, 50, 60], coords, vec![1.0; 2000]).expect("a tensor");
        coo.sort(&ModeOrder::natural(3)).expect("sorts");
        coo.sum_duplicates().expect("sums");
        coo
    }
}
