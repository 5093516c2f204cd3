//! The few trees that are worth a price for each kernel, by coarse estimates.

use crate::cost::{Coarse, Machine, VisitedTree};
use crate::error::CoreError;
use crate::sweep::budget::trees_worth;
use crate::sweep::layout::TreeLayout;
use crate::sweep::problems::Kernels;
use crate::sweep::select_trees::{KernelSet, Price};

/// Trees, each with the kernels that are worth a price on it.
pub(super) struct Pruned {
    pub(super) trees: Vec<(TreeLayout, KernelSet)>,
    /// The seconds of a sweep by coarse estimates, each kernel on a tree of its own.
    pub(super) seconds: f64,
}

/// Returns those of `trees` on which a kernel, or all of them together, may take least, the smallest ones, and those of
/// blocks.  A run makes so many `sweeps`, and `kept` says what it costs to keep a tree.
///
/// Time: a coarse estimate for each kernel on each tree.
///
/// # Errors
///
/// If nothing is known of the blocks of a tree.
pub(super) fn prune(
    trees: Vec<TreeLayout>,
    kernels: &Kernels,
    sweeps: usize,
    machine: &Machine,
    kept: impl Fn(&TreeLayout) -> Price,
) -> Result<Pruned, CoreError> {
    let problems = &kernels.problems;
    let all: KernelSet = (1 << problems.len()) - 1;
    let (blocked, unblocked): (Vec<_>, Vec<_>) =
        trees.into_iter().partition(|tree| tree.blocks.is_some());
    let coarse: Vec<Coarse<'_>> = problems.iter().map(|p| Coarse::new(p, machine)).collect();
    let mut seconds: Vec<Vec<f64>> = vec![Vec::with_capacity(unblocked.len()); problems.len()];
    for tree in &unblocked {
        let visited = VisitedTree::of(&tree.problem(&problems[0])?, machine);
        let estimates = coarse.iter().map(|coarse| coarse.seconds(&visited));
        seconds.iter_mut().zip(estimates).for_each(|(all, one)| all.push(one));
    }
    let prices: Vec<Price> = unblocked.iter().map(kept).collect();
    let sum = |at: usize| {
        let each = seconds.iter().zip(&kernels.runs).map(|(all, &runs)| runs as f64 * all[at]);
        prices[at].seconds + each.sum::<f64>()
    };
    let together: Vec<f64> = (0..unblocked.len()).map(sum).collect();
    let bytes: Vec<f64> = prices.iter().map(|price| price.bytes as f64).collect();
    let alone = seconds.iter().zip(&kernels.runs);
    let alone =
        alone.map(|(all, &runs)| runs as f64 * all.iter().copied().fold(f64::INFINITY, f64::min));
    let sweep: f64 = alone.sum();
    let few = trees_worth(kernels.tensor()?.levels().len(), problems.len(), sweep * sweeps as f64);
    let mut worth: Vec<KernelSet> = vec![0; unblocked.len()];
    for (kernel, all) in seconds.iter().enumerate() {
        least(all, few).for_each(|tree| worth[tree] |= 1 << kernel);
    }
    least(&together, few).chain(least(&bytes, few)).for_each(|tree| worth[tree] = all);
    let unblocked = unblocked.into_iter().zip(worth).filter(|&(_, worth)| worth != 0);
    let blocked = blocked.into_iter().map(|tree| (tree, all));
    Ok(Pruned { trees: unblocked.chain(blocked).collect(), seconds: sweep })
}

/// Returns the places of the `few` least of `all`.
fn least(all: &[f64], few: usize) -> impl Iterator<Item = usize> + use<> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&a, &b| all[a].total_cmp(&all[b]));
    order.into_iter().take(few)
}
