//! The dynamic program against exhaustive enumeration, on random problems.
//!
//! A problem has one sparse tensor of order 2 to 4 and up to four dense ones, over at most seven
//! indices, with random extents, order of levels, prefix counts and buffer bounds.  The least
//! `price` over `all_forests` of a path must be what `cheapest_forest` finds, for every cost.

use std::fmt::Debug;

use decompose_core::autoschedule::{all_forests, cheapest_forest, price};
use decompose_core::cost::tree::{
    CacheMisses, DenseLoops, Flops, MaxBufferDims, MaxBufferSize, TreeCost,
};
use decompose_core::einsum::{Access, Expr, Extents, Index, IndexSet, indices};
use decompose_core::nest::{Forest, buffers};
use decompose_core::path::{Arity, Path, enumerate};
use decompose_core::schedule::{Format, Pattern, Problem, SparseOperand};

/// Cases drawn.
const CASES: u64 = 500;

/// Paths checked a case, and the most forests of one that is.
const PATHS: usize = 4;
const MAX_FORESTS: usize = 6_000;

/// A small repeatable source of numbers (SplitMix64).
struct Draw(u64);

impl Draw {
    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    /// Returns a number between `first` and `last`.
    fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }

    /// Returns `count` of `items`, in a random order.
    fn some(&mut self, items: &[Index], count: usize) -> Vec<Index> {
        let mut items = items.to_vec();
        self.shuffle(&mut items);
        items.truncate(count);
        items
    }
}

fn expression(draw: &mut Draw) -> Expr {
    let order = draw.between(2, 4);
    let modes = indices(&"ijkl"[..order]);
    let all = [modes.clone(), indices(&"rstu"[..draw.between(1, 7 - order).min(4)])].concat();
    let mut inputs = vec![Access { tensor: "X".into(), indices: modes }];
    for dense in 0..draw.between(1, 4) {
        let count = draw.between(usize::from(dense > 0), 3.min(all.len()));
        inputs.push(Access { tensor: format!("A{dense}"), indices: draw.some(&all, count) });
    }
    let used = inputs.iter().fold(IndexSet::EMPTY, |set, access| set | access.set());
    let used: Vec<Index> = used.iter().collect();
    let count = draw.between(0, used.len().min(4));
    Expr { output: Access { tensor: "Y".into(), indices: draw.some(&used, count) }, inputs }
}

fn problem(draw: &mut Draw) -> Problem {
    let expr = expression(draw);
    let extents: Extents =
        expr.all().iter().map(|index| (index, draw.between(1, 12) as u64)).collect();
    let mut levels = expr.inputs[0].indices.clone();
    draw.shuffle(&mut levels);
    // Nodes of a level: at least those above, at most as many as coordinates allow.
    let mut nodes = 1;
    let counts = (1..=levels.len()).map(|n| {
        let most = nodes * extents.of(levels[n - 1]);
        nodes = draw.between(nodes as usize, most as usize) as u64;
        (levels[..n].iter().copied().collect::<IndexSet>(), nodes)
    });
    let pattern: Pattern = counts.collect();
    let fused = draw.between(1, levels.len() - 1);
    let sparse = SparseOperand { input: 0, format: Format::with_fused(levels, fused), pattern };
    let mut problem = Problem::new(expr, extents, sparse);
    problem.max_buffer_dims = draw.between(0, 3);
    problem.max_buffer_bytes = 8 * draw.between(1, 400) as u64;
    problem
}

/// How many loop orders a term over `indices` has: permutations that keep the tree's order.
fn orders(problem: &Problem, indices: IndexSet) -> usize {
    let levels = (indices & problem.sparse_indices()).len();
    (levels + 1..=indices.len()).product::<usize>().max(1)
}

fn forest_count(problem: &Problem, path: &Path) -> usize {
    path.terms.iter().map(|term| orders(problem, term.indices)).fold(1, usize::saturating_mul)
}

/// Checks one cost.
fn check<C: TreeCost>(problem: &Problem, path: &Path, forests: &[Forest], costs: &C)
where
    C::Cost: Debug,
{
    let least = forests.iter().filter_map(|forest| price(problem, path, forest, costs)).min();
    let (found, _) = cheapest_forest(problem, path, costs);
    let text = || format!("{}\n{problem:?}", path.display(&problem.expr));
    assert_eq!(found.as_ref().map(|(_, cost)| cost), least.as_ref(), "{}", text());
    if let Some((forest, cost)) = found {
        assert_eq!(price(problem, path, &forest, costs), Some(cost), "{forest} for {}", text());
        assert!(forests.contains(&forest), "{forest} for {}", text());
    }
}

/// Checks that buffers cost what the nest's own definition of a buffer says.
fn check_buffers(problem: &Problem, path: &Path, forests: &[Forest]) {
    for forest in forests.iter().step_by(17) {
        let stored = buffers(path, forest).expect("terms in order");
        let dims = stored.iter().map(|buffer| buffer.stored.len()).max().unwrap_or(0);
        assert_eq!(price(problem, path, forest, &MaxBufferDims), Some(dims), "{forest}");
        let elements = |set: IndexSet| set.iter().map(|i| problem.extents.of(i)).product::<u64>();
        let size = stored.iter().map(|buffer| elements(buffer.stored)).max().unwrap_or(0);
        assert_eq!(price(problem, path, forest, &MaxBufferSize), Some(size), "{forest}");
    }
}

#[test]
fn the_dynamic_program_is_optimal() {
    let mut draw = Draw(20_240_617);
    let (mut checked, mut largest) = (0, 0);
    for _ in 0..CASES {
        let problem = problem(&mut draw);
        let (mut paths, _) = enumerate(&problem.expr, Arity::Any);
        draw.shuffle(&mut paths);
        paths.retain(|path| forest_count(&problem, path) <= MAX_FORESTS);
        for path in paths.iter().take(PATHS) {
            let forests = all_forests(&problem, path);
            check(&problem, path, &forests, &MaxBufferDims);
            check(&problem, path, &forests, &MaxBufferSize);
            check(&problem, path, &forests, &Flops);
            check(&problem, path, &forests, &CacheMisses { cached_dims: draw.below(3) });
            let max_buffer_dims = [1, 2, usize::MAX][checked % 3];
            check(&problem, path, &forests, &DenseLoops { max_buffer_dims });
            check_buffers(&problem, path, &forests);
            checked += 1;
            let whole = problem.expr.inputs.len() == 5 && problem.expr.all().len() == 7;
            largest += usize::from(whole && path.terms.len() > 1);
        }
    }
    // Lest the bound on forests leave nothing to check.
    assert!(checked >= 1_000 && largest >= 20, "{checked} paths, {largest} of the largest kind");
    eprintln!("{checked} paths, {largest} of the largest kind");
}
