//! Searches by bounds compared with searches of everything.

use decompose_formats::PatternCounts;
use decompose_formats::mix::mix;

use super::*;
use crate::cost::Family;
use crate::sweep::trees::{Merging, mttkrps};
use crate::sweep::{blockings, estimate_blocks};

/// A tensor of order 1 to 5 spread evenly, whose tables fit the first cache or no cache at all.
pub(super) fn random_counts(seed: u64) -> PatternCounts {
    let draw = |salt: u64, below: u64| mix(seed * 1000 + salt) % below;
    let order = 1 + draw(0, 5);
    // Two to about half a million slices, as likely of every size.
    let extent = |mode: u64| (2.0 * f64::exp2(draw(mode, 180) as f64 / 10.0)) as u64;
    let extents: Vec<u64> = (1..=order).map(extent).collect();
    let cells: f64 = extents.iter().map(|&extent| extent as f64).product();
    let nnz = f64::exp2(8.0 + draw(9, 190) as f64 / 10.0).min(cells / 2.0).ceil();
    PatternCounts::uniform(&extents, nnz as u64)
}

/// Runs `test` with tables of MTTKRPs on random tensors, ranks, threads and machines.
fn on_random_tables(cases: u64, trees: &Trees, mut test: impl FnMut(Table<'_>, String)) {
    for seed in 0..cases {
        let counts = random_counts(seed);
        let order = counts.extents().len();
        let modes: Vec<Index> = (0..order).map(kernels::mode_index).collect();
        let draw = |salt: u64, below: u64| mix(seed * 77 + salt) % below;
        let family = [Family::Zen, Family::Xeon][draw(1, 2) as usize];
        let machine = Machine { threads: 1 + draw(2, 4) as usize, ..family.machine() };
        // Not even one row of the longest fits a buffer.
        let rank = [1_usize, 2, 5, 8, 16, 50, 100, 70_000][draw(3, 8) as usize];
        let panels = [None, Some(rank.div_ceil(4).max(32))][draw(4, 2) as usize];
        let value_bytes = [8, 4][draw(10, 2) as usize];
        let entry = 4 * order + value_bytes;
        let trees_of = |trees: usize| (counts.nnz() as usize * entry * trees / 2) as u64;
        let memory = [None, Some(trees_of(3)), Some(trees_of(5))][draw(11, 3) as usize];
        let mut pattern = Pattern::of(&counts, &modes);
        let blocks = blockings(&counts, (value_bytes * rank) as u64, &machine);
        estimate_blocks(&mut pattern, counts.extents(), blocks);
        let options = PlanOptions {
            rank,
            value_bytes,
            panels,
            threads: machine.threads,
            memory,
            sweeps: 50,
            trees: trees.clone(),
            merging: Merging::Never,
            updates: (0..order).collect(),
        };
        let runs: Vec<usize> = (0..order).map(|mode| draw(5 + mode as u64, 3) as usize).collect();
        let source = (counts.extents(), &pattern);
        let table = mttkrps(source, &runs, &options, &machine).expect("a table");
        let what = format!("{:?}, {rank} columns, {machine:?}", counts.extents());
        test(table, what);
    }
}

pub(super) fn search_all(table: &mut Table<'_>) {
    let kernels = table.kernels.problems.len();
    let all = 0..table.trees.len();
    let all = all.flat_map(|tree| (0..kernels).map(move |kernel| (tree, kernel)));
    table.search(all).expect("schedules");
}

/// Checks that no search finds less than `bounds`; returns their shares of what is found.
pub(super) fn tightness(table: &Table<'_>, bounds: &[Vec<f64>], what: &str) -> Vec<f64> {
    let mut shares = Vec::new();
    for ((tree, entries), bounds) in table.trees.iter().zip(&table.entries).zip(bounds) {
        for (entry, bound) in entries.iter().zip(bounds) {
            let Entry::Searched(step) = entry else { continue };
            let found = step.seconds;
            let schedule = step.candidate.schedule.text(&step.problem.expr);
            assert!(*bound <= found, "{tree}: {bound} {found}\n{schedule}\n{what}");
            shares.push(bound / found);
        }
    }
    shares
}

pub(super) fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Checks that what is chosen by bounds costs what the best of all costs; returns the share of all kernels on trees that
/// were searched for it, `None` if nothing keeps the memory limit.
pub(super) fn share_searched(mut table: Table<'_>, what: &str) -> Option<f64> {
    let lazy = table.settle_best();
    let few = table.searched() as f64;
    search_all(&mut table);
    let (lazy, best) = match (lazy, table.settle_best()) {
        (Ok(lazy), Ok(best)) => (lazy, best),
        (Err(CoreError::Memory { .. }), Err(CoreError::Memory { .. })) => return None,
        (lazy, best) => panic!("{what}: {lazy:?} {best:?}"),
    };
    assert!(table.is_settled(&lazy));
    assert_eq!(lazy.price.seconds, best.price.seconds, "{what}");
    Some(few / table.searched() as f64)
}

#[test]
fn no_search_finds_less_than_the_bound() {
    let mut tight = Vec::new();
    on_random_tables(60, &Trees::Choose, |mut table, what| {
        let bounds = table.bounds().expect("bounds");
        search_all(&mut table);
        tight.extend(tightness(&table, &bounds, &what));
    });
    // They are worth little unless they are near.
    let median = median(tight);
    assert!(median > 0.9, "{median}");
}

#[test]
fn what_is_chosen_by_bounds_is_the_best_of_all() {
    let (mut searched, mut limited) = (Vec::new(), 0);
    on_random_tables(60, &Trees::Choose, |table, what| {
        let limit = table.options.memory.is_some();
        let share = share_searched(table, &what);
        limited += usize::from(limit && share.is_some());
        searched.extend(share);
    });
    assert!(limited > 10, "{limited}");
    let mean = searched.iter().sum::<f64>() / searched.len() as f64;
    assert!(mean < 0.5, "{mean}");
}
