//! What any kernel takes at least on a tree, whatever its schedule.
//!
//! It walks the whole tree once, and its terms multiply and add no less often than those of the path that does so least.
//! Of a path it is known besides:
//!
//! - A term that sums away a level of the tree and hands on others below it stores all of these, since whoever reads them
//!   cannot walk them.  They must fit a buffer; and where no row of another index fits beside them, loops over all of these
//!   stand around the walk and no index is left for lanes.
//! - If the last term walks down to the level of the result's rows, it fetches what each node there adds to, and no line of
//!   that comes sooner than from the second-level cache.
//!
//! Where the tree's root is not an index of the result, every thread but one has a copy of it.
//!
//! That says little of kernels that wait for memory, and is enough to leave most trees out that suit a kernel badly:
//! there it multiplies or adds many times as often as on the best.

use crate::cost::Machine;
use crate::cost::batches::MOST_NODES;
use crate::cost::estimate::SHORT_SUM_SHARE;
use crate::cost::least::ROUNDING;
use crate::cost::memory::LINE_BYTES;
use crate::cost::threads::{copying_seconds, output_bytes, tasks};
use crate::cost::walks::first_walk_seconds;
use crate::einsum::{Expr, IndexSet};
use crate::path::{Arity, PathSpace};
use crate::schedule::{Problem, SparseOperand};

/// Of kernels with more operands the terms are not looked at.
const MOST_OPERANDS: usize = 6;

/// Bounds for one kernel on the trees of its sparse operand.
pub(crate) struct LeastWork(Option<PathSpace>);

impl LeastWork {
    /// Prepares bounds for `expr`.
    pub(crate) fn new(expr: &Expr) -> LeastWork {
        let few = expr.inputs.len() <= MOST_OPERANDS;
        LeastWork(if few { PathSpace::new(expr, Arity::Any) } else { None })
    }

    /// Returns the least seconds of `problem`, which poses the kernel, on all threads of `machine`.
    ///
    /// Time: a count of iterations for each term that paths may have; of more than six operands only the walk,
    /// the term that reads the tensor and the copies of the result count, since there are too many terms.
    pub(crate) fn seconds(&self, problem: &Problem, machine: &Machine) -> f64 {
        let Some(x) = problem.sparse.first() else { return 0.0 };
        let terms = Terms { problem, machine, x, sums: Sums::of(problem, machine, x) };
        let work = match &self.0 {
            Some(space) => space.least_sum(|loops, result| match result {
                Some(result) => terms.inner(loops, result),
                None => terms.last(loops),
            }),
            // Of too many operands it is known that some term reads the tensor.
            None => problem.iterations(problem.sparse_indices()) as f64 * terms.pair(),
        };
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

/// What terms take at least, by their loops.
struct Terms<'a> {
    problem: &'a Problem,
    machine: &'a Machine,
    x: &'a SparseOperand,
    sums: Option<Sums>,
}

impl Terms<'_> {
    /// Seconds of a product without lanes.
    fn scalar(&self) -> f64 {
        SHORT_SUM_SHARE * self.machine.scalar_pair
    }

    /// Seconds of a product.
    fn pair(&self) -> f64 {
        self.machine.flop_pair.min(self.scalar())
    }

    /// Seconds of a term inside `loops` that hands on `result`.
    fn inner(&self, loops: IndexSet, result: IndexSet) -> f64 {
        let problem = self.problem;
        let kept = |level: &_| !loops.contains(*level) || result.contains(*level);
        let below = self.x.levels.iter().copied().skip_while(kept);
        let stored = below.collect::<IndexSet>() & result;
        if !problem.allows_buffer(stored) {
            return f64::INFINITY;
        }
        let sparse = loops & problem.sparse_indices();
        let lane = |index| !result.contains(index) || problem.allows_buffer(stored.with(index));
        let lanes = stored.is_empty()
            || sparse != problem.walked(loops)
            || (loops - sparse).iter().any(lane);
        problem.iterations(loops) as f64 * if lanes { self.pair() } else { self.scalar() }
    }

    /// Seconds of the last term, inside `loops`.
    fn last(&self, loops: IndexSet) -> f64 {
        let walked = self.problem.walked(loops).len();
        let sums = self.sums.map_or(0.0, |sums| match walked.checked_sub(sums.depth + 1) {
            None => 0.0,
            Some(0) => sums.alone,
            Some(_) => sums.together,
        });
        self.problem.iterations(loops) as f64 * self.pair() + sums
    }
}

/// What is added to the rows of a result with one index of the tree.
#[derive(Clone, Copy)]
struct Sums {
    /// The levels above that of the index.
    depth: usize,
    /// Seconds to fetch what each of its nodes adds to, by itself.
    alone: f64,
    /// The same where several nodes below it may add together.
    together: f64,
}

impl Sums {
    /// `None` where nothing is known.
    fn of(problem: &Problem, machine: &Machine, x: &SparseOperand) -> Option<Sums> {
        let output = problem.expr.output.set();
        let depth = x.levels.iter().position(|&level| output.contains(level))?;
        let level = x.levels[depth];
        let rows = output & problem.sparse_indices();
        if rows.len() > 1 || x.in_blocks() || problem.has_pattern_output() {
            return None;
        }
        let nodes = x.pattern.count(x.levels[..=depth].iter().copied().collect(), &problem.extents);
        let line = machine.l2_line.min(machine.write_back_line).min(machine.stream_line);
        let lines = nodes as f64 * problem.slice_bytes(level) as f64 / LINE_BYTES;
        let alone = 2.0 * lines * line;
        Some(Sums { depth, alone, together: alone / MOST_NODES as f64 })
    }
}
