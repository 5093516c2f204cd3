//! Running a kernel on one block of its tree after the other.
//!
//! In a block the level below it numbers the rows of the output, in their order: tasks that share out its
//! non-zeros own rows, as those of slices do, and need no copies.  The next block begins when all tasks of this one
//! have ended, so that every row is summed in the order of the blocks, whoever does it; and all threads gather the
//! same rows.

use std::ops::Range;

use decompose_formats::{Csf, Matrix, Value};
use rayon::prelude::*;

use crate::error::CoreError;
use crate::lower::Operands;
use crate::runtime::executor::{Executor, add};
use crate::runtime::partition::{first_leaf, nodes_below, path_to};

/// The least non-zeros of a task: they take tens of microseconds, handing them over less than one.
const LEAST_NONZEROS: u64 = 1 << 14;

/// The most tasks a thread of a block: at its end threads wait for half a task.
const TASKS_PER_THREAD: u64 = 64;

/// The tasks of a block.
pub(super) struct Turn(Vec<Part>);

/// A task of a block.
struct Part {
    /// The end of a row that began in an earlier task: its nodes of every level, and its number.
    begun: Option<(Vec<Range<u64>>, u64)>,
    /// The nodes of the other rows, if there are any.
    own: Option<Vec<Range<u64>>>,
    /// The rows that belong to this task: from its first own one to that of the next task.  Together the
    /// tasks' rows are all rows.
    rows: Range<u64>,
}

/// Cuts each block of `tree` into tasks for the threads of the current pool, where the level below has `rows`
/// coordinates.
///
/// Time `O(blocks * tasks * order * log nnz)`.
pub(super) fn turns<V: Value>(tree: &Csf<V>, rows: u64) -> Vec<Turn> {
    let most = match rayon::current_num_threads() as u64 {
        1 => 1,
        threads => threads * TASKS_PER_THREAD,
    };
    let blocks = tree.levels()[0].coords.len() as u64;
    (0..blocks).map(|block| turn(tree, (block, rows), most)).collect()
}

fn turn<V: Value>(tree: &Csf<V>, (block, rows): (u64, u64), most: u64) -> Turn {
    let leaves = nodes_below(tree, block..block + 1).pop().unwrap_or(0..0);
    let count = leaves.end - leaves.start;
    let parts = (count / LEAST_NONZEROS).clamp(1, most);
    let cut = |part: u64| {
        leaves.start + (u128::from(count) * u128::from(part) / u128::from(parts)) as u64
    };
    let mut tasks: Vec<Part> = (0..parts).map(|at| part(tree, cut(at)..cut(at + 1))).collect();
    let mut next = rows;
    for task in tasks.iter_mut().rev() {
        task.rows = task.rows.start.min(next)..next;
        next = task.rows.start;
    }
    if let Some(first) = tasks.first_mut() {
        first.rows.start = 0;
    }
    Turn(tasks)
}

/// Makes a task of the non-zeros `leaves`; where its rows end is filled in afterwards.
fn part<V: Value>(tree: &Csf<V>, leaves: Range<u64>) -> Part {
    let row = path_to(tree, leaves.start)[1];
    let begins = first_leaf(tree, 1, row) < leaves.start;
    let until = if begins { first_leaf(tree, 1, row + 1).min(leaves.end) } else { leaves.start };
    let coord = |node: u64| tree.levels()[1].coords.get(node as usize);
    let begun = begins.then(|| (nodes(tree, leaves.start..until), coord(row)));
    let own = (until < leaves.end).then(|| nodes(tree, until..leaves.end));
    // A task within one row that it does not own has no rows.
    let start = own.as_ref().map_or(u64::MAX, |nodes| coord(nodes[1].start));
    Part { begun, own, rows: start..u64::MAX }
}

/// Returns the nodes of each level above the non-zeros `leaves`, of which there are some.
fn nodes<V: Value>(tree: &Csf<V>, leaves: Range<u64>) -> Vec<Range<u64>> {
    let (first, last) = (path_to(tree, leaves.start), path_to(tree, leaves.end - 1));
    first.iter().zip(&last).map(|(&first, &last)| first..last + 1).collect()
}

/// Returns the most tasks of a turn.
pub(super) fn most_parts(turns: &[Turn]) -> usize {
    turns.iter().map(|turn| turn.0.len()).max().unwrap_or(0)
}

impl<V: Value> Executor<V> {
    /// Runs all turns; `side` has a row for each task of a turn but the first.
    pub(super) fn run_turns(
        &self,
        side: &mut [Matrix<V>],
        (values, dense): (&[V], &[&[V]]),
        rows: &mut [V],
    ) -> Result<(), CoreError> {
        let stride = self.kernel().slice_len() as usize;
        if self.turns.is_empty() {
            rows.fill(V::default());
        }
        for (number, Turn(tasks)) in self.turns.iter().enumerate() {
            let mut rest = &mut *rows;
            let mut sides = side.iter_mut();
            let mut work = Vec::with_capacity(tasks.len());
            for (at, task) in tasks.iter().enumerate() {
                let count = (task.rows.end - task.rows.start) as usize;
                let (own, after) = rest.split_at_mut(count * stride);
                rest = after;
                let side = if at == 0 { None } else { sides.next() };
                work.push((task, own, side.map(Matrix::as_mut_slice)));
            }
            work.into_par_iter().with_max_len(1).try_for_each(|(task, output, side)| {
                if number == 0 {
                    output.fill(V::default());
                }
                if let (Some((nodes, row)), Some(side)) = (&task.begun, side) {
                    side.fill(V::default());
                    self.run_rows((values, dense), nodes, (*row..*row + 1, side))?;
                }
                match &task.own {
                    Some(nodes) => {
                        self.run_rows((values, dense), nodes, (task.rows.clone(), output))
                    }
                    None => Ok(()),
                }
            })?;
            for (task, side) in tasks.iter().skip(1).zip(&*side) {
                if let Some((_, row)) = task.begun {
                    let row = row as usize;
                    add(&mut rows[row * stride..][..stride], side.as_slice());
                }
            }
        }
        Ok(())
    }

    /// Adds what `nodes` give to the rows in `window`, which `output` has.
    fn run_rows(
        &self,
        (values, dense): (&[V], &[&[V]]),
        nodes: &[Range<u64>],
        (window, output): (Range<u64>, &mut [V]),
    ) -> Result<(), CoreError> {
        let whole = Operands::whole((self.tree(), values), dense, output, nodes);
        let operands = Operands { first_row: window.start, window: Some(window), ..whole };
        self.scratch.lend(|scratch| self.kernel().run(operands, scratch))
    }
}
