//! What any kernel takes at least on a tree, whatever its schedule.
//!
//! It walks the whole tree once, and multiplies and adds no less often than the path that does so least.  A path is left
//! out if one of its terms sums away a level of the tree and hands on others below, which whoever reads them cannot walk,
//! so that all of these are stored, and more than a buffer may hold.  Where the tree's root is not an index of the result,
//! every thread but one has a copy of it.
//!
//! That says little of kernels that wait for memory, and is enough to leave most trees out that suit a kernel badly:
//! there it multiplies many times as often as on the best.

use crate::cost::Machine;
use crate::cost::estimate::SHORT_SUM_SHARE;
use crate::cost::least::tasks;
use crate::cost::threads::{copying_seconds, output_bytes};
use crate::cost::walks::first_walk_seconds;
use crate::einsum::{Expr, IndexSet};
use crate::path::{Arity, PathSpace};
use crate::schedule::Problem;

/// Sums in another order differ by no more than this part of them.
const ROUNDING: f64 = 1e-12;

/// Bounds for one kernel on the trees of its sparse operand.
pub(crate) struct LeastWork(Option<PathSpace>);

impl LeastWork {
    /// Prepares bounds for `expr`.
    pub(crate) fn new(expr: &Expr) -> LeastWork {
        LeastWork(PathSpace::new(expr, Arity::Any))
    }

    /// Returns the least seconds of `problem`, which poses the kernel, on all threads of `machine`.
    ///
    /// Time: about 5 us for five operands.
    pub(crate) fn seconds(&self, problem: &Problem, machine: &Machine) -> f64 {
        let Some((space, x)) = self.0.as_ref().zip(problem.sparse.first()) else { return 0.0 };
        let pair = machine.flop_pair.min(SHORT_SUM_SHARE * machine.scalar_pair);
        let work = space.least_sum(|loops, result| {
            let levels = x.levels.iter().copied();
            let summed = |result: IndexSet| {
                let kept = |level: &_| !loops.contains(*level) || result.contains(*level);
                levels.clone().skip_while(kept).collect::<IndexSet>() & result
            };
            match result.map(summed) {
                Some(stored) if !problem.allows_buffer(stored) => f64::INFINITY,
                _ => problem.iterations(loops) as f64 * pair,
            }
        });
        let walk = (0..x.levels.len()).map(|at| first_walk_seconds(problem, machine, at));
        let alone = (walk.sum::<f64>() + work) / tasks(problem, machine);
        let owned = x.levels.first().is_some_and(|&root| problem.expr.output.set().contains(root));
        let copying = match owned || x.in_blocks() || problem.has_pattern_output() {
            true => 0.0,
            false => copying_seconds(output_bytes(problem), machine, machine.threads as f64),
        };
        (alone + copying) * (1.0 - ROUNDING)
    }
}
