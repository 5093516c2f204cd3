//! Running a kernel on all threads.
//!
//! | conflict  | output |
//! |-----------|--------|
//! | owner     | each task holds its own rows: those of its root slices, or of its blocks' ranges |
//! | boundary  | the same; the part of a slice begun earlier is added at last |
//! | privatise | each task but the first has a copy of the rows from the least to the greatest that |
//! |           | its non-zeros name; copies are added to the output in order |
//! | positions | each task holds the values at its own non-zeros |
//! | assemble  | each task has a list of its own; the lists follow each other |
//!
//! Rows that are used at once are computed a few at a time: `root_slices`.
//!
//! How many tasks there are, the schedule says: by a size or a number, or
//! [`Schedule::tasks_per_thread`](crate::schedule::Schedule).
//! Which task does what depends on that and the number of threads only, and sums are taken in task order:
//! the same number of threads gives the same bits.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use decompose_formats::{Csf, Ints, Matrix, Value};
use rayon::prelude::*;

use crate::error::CoreError;
use crate::lower::{
    Addressing, Array, Assembled, Assembly, JoinedTree, Operands, Program, Room, Zeroing,
};
use crate::runtime::kernel::Kernel;
use crate::runtime::partition::{Cut, Task, partition};
use crate::schedule::{Conflict, Space};

/// A kernel bound to its trees, the first of them cut into tasks for the current number of threads.
pub struct Executor<V: Value> {
    kernel: Kernel,
    tree: Arc<Csf<V>>,
    /// The trees of the other sparse operands.
    beside: Vec<JoinedTree<V>>,
    tasks: Vec<Task>,
    /// Private copies, or rows of shared slices: one a task but the first.
    side: Vec<Matrix<V>>,
    /// The rows that each private copy has; none if copies have all.
    windows: Vec<Range<u64>>,
    pub(super) scratch: Pool<V>,
    /// The positions of the root slices, once windows have been asked for.
    pub(super) numbers: Option<Ints>,
}

/// Makes rows of a task's own for `elements` of the output of `program`.
fn side_rows<V: Value>(program: &Program, elements: usize) -> Result<Matrix<V>, CoreError> {
    let row = (program.output.row() as usize).clamp(1, elements.max(1));
    Ok(Matrix::zeros(elements.div_ceil(row), row)?)
}

/// Scratch memory of tasks that run at the same time; a task that finds none makes its own.
pub(super) struct Pool<V: Value> {
    len: usize,
    free: Mutex<Vec<Matrix<V>>>,
}

impl<V: Value> Pool<V> {
    /// Lends memory of `len` elements to `work`.
    pub(super) fn lend<T>(
        &self,
        work: impl FnOnce(&mut [V]) -> Result<T, CoreError>,
    ) -> Result<T, CoreError> {
        if self.len == 0 {
            return work(&mut []);
        }
        let free = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free().pop();
        let mut memory = found.map_or_else(|| Matrix::zeros(1, self.len), Ok)?;
        let result = work(memory.as_mut_slice());
        free().push(memory);
        result
    }
}

/// The least non-zeros of a task, where each thread has one and rows are short: they take some microseconds, handing them
/// over less than one.
const LEAST_NONZEROS: usize = 512;

/// Values of the rows of a dense operand that so many non-zeros read; of longer rows fewer non-zeros suffice.
const SHORT_ROW: usize = 64;

/// Into how many parts the work is cut of which [`SAMPLED`] tell how many elements all have.
const SAMPLED_OF: usize = 1 << 12;

/// The parts that are computed for that.
const SAMPLED: usize = 1 << 6;

/// The most tasks: what handing them over takes is little beside the work of each.
const MOST_TASKS: u64 = 1 << 20;

/// Into how many tasks the threads of the current pool cut the work of `kernel`, of `units` non-zeros or coordinates.
fn parts(kernel: &Kernel, units: u64) -> usize {
    let tasks = kernel.program().tasks;
    if let Some(cut) = tasks.cut {
        return units.div_ceil(cut.size(units)).clamp(1, MOST_TASKS) as usize;
    }
    match rayon::current_num_threads() {
        1 => 1,
        threads => {
            let matrices = kernel.program().dense.iter().filter(|array| array.indices.len() > 1);
            let longest = matrices.map(Array::row).max().unwrap_or(1) as usize;
            let least = (LEAST_NONZEROS * SHORT_ROW / longest.max(SHORT_ROW)).max(1);
            let worthwhile = (units as usize / least).max(threads);
            worthwhile.min(threads * tasks.per_thread)
        }
    }
}

impl<V: Value> Executor<V> {
    /// Binds `kernel` to `tree` for the threads of the current pool.
    ///
    /// # Errors
    ///
    /// If no memory is left for private copies.
    pub fn new(kernel: Kernel, tree: Arc<Csf<V>>) -> Result<Executor<V>, CoreError> {
        Executor::joining(kernel, tree, Vec::new())
    }

    /// Binds `kernel` to `tree`, whose nodes are cut into tasks, and the trees of its other sparse operands.
    ///
    /// # Errors
    ///
    /// If no memory is left for private copies.
    pub fn joining(
        kernel: Kernel,
        tree: Arc<Csf<V>>,
        beside: Vec<Arc<Csf<V>>>,
    ) -> Result<Executor<V>, CoreError> {
        let nonzeros = tree.values().len() as u64;
        let extent = kernel.program().levels().first().map_or(0, |root| root.extent);
        let by_coordinates = kernel.program().tasks.space == Space::Coordinate;
        let parts = parts(&kernel, if by_coordinates { extent } else { nonzeros });
        let mut tasks = match kernel.program().conflict {
            _ if by_coordinates => partition(&tree, parts, Cut::Coordinates { extent }),
            Conflict::Owner => partition(&tree, parts, Cut::Roots),
            // Then no two tasks append elements of one slice, and their lists need not be sorted.
            Conflict::Assemble if kernel.program().appends_by_root() => {
                partition(&tree, parts, Cut::Roots)
            }
            Conflict::Privatise | Conflict::Boundary | Conflict::Positions | Conflict::Assemble => {
                partition(&tree, parts, Cut::Anywhere)
            }
        };
        own_ranges(&kernel, &tree, &mut tasks)?;
        let others = kernel.program().trees.iter().skip(1);
        let joined = beside.into_iter().zip(others);
        let beside = joined.map(|(tree, param)| JoinedTree::new(tree, &param.levels)).collect();
        let scratch = Pool { len: kernel.program().scratch().1 as usize, free: Mutex::default() };
        let (side, numbers) = (Vec::new(), None);
        let windows = windows(&kernel, &tree, &tasks);
        let mut executor =
            Executor { kernel, tree, beside, tasks, side, windows, scratch, numbers };
        executor.side = executor.side_matrices()?;
        Ok(executor)
    }

    fn side_matrices(&self) -> Result<Vec<Matrix<V>>, CoreError> {
        let program = self.kernel.program();
        let others = 0..self.tasks.len().saturating_sub(1);
        let copy = |at: usize| {
            let elements =
                self.window(at).map_or(program.output.len as usize, |window| window.len());
            side_rows(program, elements)
        };
        match program.conflict {
            Conflict::Privatise => others.map(copy).collect(),
            Conflict::Boundary => {
                let row = self.kernel.slice_len() as usize;
                others.map(|_| side_rows(program, row)).collect()
            }
            Conflict::Owner | Conflict::Positions | Conflict::Assemble => Ok(Vec::new()),
        }
    }

    /// Returns the elements of the output that private copy `at` has, if it has not all.
    fn window(&self, at: usize) -> Option<Range<usize>> {
        let (_, stride) = self.kernel.program().numbered_rows()?;
        let Range { start, end } = self.windows.get(at)?;
        Some((start * stride) as usize..(end * stride) as usize)
    }

    /// Returns the kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Returns the bytes of private copies and shared rows.
    pub fn side_bytes(&self) -> u64 {
        self.side.iter().map(|rows| (rows.as_slice().len() * V::BYTES) as u64).sum()
    }

    /// Returns the elements of the output, padding included.
    pub fn output_len(&self) -> u64 {
        let program = self.kernel.program();
        match program.addressing {
            Addressing::Coordinates => program.output.len,
            Addressing::Assembled(_) => 0,
            Addressing::Positions => program.output.len * self.tree.values().len() as u64,
        }
    }

    /// Returns the first tree.
    pub fn tree(&self) -> &Arc<Csf<V>> {
        &self.tree
    }

    /// Replaces `output` by the result of the kernel on `dense` operands, all laid out as the
    /// program's arrays; an output with the operand's pattern has a block for each of the tree's
    /// values, in their order.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if an operand does not fit.
    pub fn run(&mut self, dense: &[&[V]], output: &mut [V]) -> Result<(), CoreError> {
        let tree = Arc::clone(&self.tree);
        self.run_on(tree.values(), dense, output)
    }

    /// Does what [`Executor::run`] does with `values` in the place of the tree's, in their order.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if an operand does not fit.
    pub fn run_on(
        &mut self,
        values: &[V],
        dense: &[&[V]],
        output: &mut [V],
    ) -> Result<(), CoreError> {
        let program = self.kernel.program();
        let (have, want) = (output.len(), self.output_len());
        if have as u64 != want {
            let operand = program.output.name.clone();
            let why = format!("{have} elements for an output of {want}");
            return Err(CoreError::Operand { operand, why });
        }
        match program.conflict {
            Conflict::Privatise => self.run_private(values, dense, output),
            _ => self.run_owned(values, dense, output),
        }
    }

    /// Computes an assembled output that has `room` from `dense` operands: those that each task met, in the
    /// order of tasks.
    ///
    /// # Errors
    ///
    /// [`CoreError::ResultMemory`] if there is too little; [`CoreError::Operand`] if an operand does not fit;
    /// [`CoreError::Internal`] if the output is not assembled.
    pub fn assemble(&mut self, dense: &[&[V]], room: Room) -> Result<Vec<Assembled<V>>, CoreError> {
        self.assembled(&self.tasks.iter().collect::<Vec<_>>(), dense, room)
    }

    /// Returns about how many elements an assembled output has.  One part of the work in 64 is computed for it.
    ///
    /// # Errors
    ///
    /// As [`Executor::assemble`].
    pub fn estimate_elements(&self, dense: &[&[V]]) -> Result<u64, CoreError> {
        let parts = partition(&self.tree, SAMPLED_OF, Cut::Roots);
        let step = parts.len().div_ceil(SAMPLED).max(1);
        let sample: Vec<&Task> = parts.iter().skip(step / 2).step_by(step).collect();
        let work = |task: &Task| task.leaves().end - task.leaves().start;
        let (all, own): (u64, u64) =
            (parts.iter().map(work).sum(), sample.iter().map(|task| work(task)).sum());
        let met = self
            .assembled(&sample, dense, Room::unlimited())?
            .iter()
            .map(Assembled::len)
            .sum::<usize>();
        Ok((met as f64 * all as f64 / own.max(1) as f64).ceil() as u64)
    }

    /// Runs `tasks` of a kernel whose output is assembled, which has `room`.
    fn assembled(
        &self,
        tasks: &[&Task],
        dense: &[&[V]],
        room: Room,
    ) -> Result<Vec<Assembled<V>>, CoreError> {
        let program = self.kernel.program();
        let Addressing::Assembled(workspace) = program.addressing else {
            return Err(CoreError::Internal(format!("{} is not assembled", program.title)));
        };
        let (kernel, tree, beside) = (&self.kernel, &*self.tree, &self.beside[..]);
        let (elements, room) = (room.elements(), Arc::new(room));
        let free: Mutex<Vec<Assembly<V>>> = Mutex::default();
        let pool = || free.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Assembly::new(workspace, program, Arc::clone(&room));
        let run = |task: &&Task| {
            let found = pool().pop();
            let mut assembly = found.map_or_else(new, Ok)?;
            let whole = Operands::whole(tree, tree.values(), dense, &mut [], &task.nodes);
            let roots_beside = &self.roots_beside(task)[..];
            let operands =
                Operands { beside, roots_beside, assembly: Some(&mut assembly), ..whole };
            self.scratch.lend(|scratch| kernel.run(operands, scratch))?;
            if assembly.is_full() {
                let output = program.title.clone();
                return Err(CoreError::ResultMemory { output, elements });
            }
            let assembled = assembly.take();
            pool().push(assembly);
            Ok(assembled)
        };
        tasks.par_iter().map(run).collect()
    }

    /// Returns the roots of the other trees that `task` visits: of those that are united with the first one, the roots
    /// with coordinates of the task.
    fn roots_beside(&self, task: &Task) -> Vec<Range<u64>> {
        let program = self.kernel.program();
        let united: Vec<usize> = program.united().collect();
        let roots = |(beside, tree): (usize, &JoinedTree<V>)| {
            let param = program.trees[beside + 1].levels.first();
            match param.filter(|_| united.contains(&(beside + 1))) {
                Some(param) => tree.roots(&task.rows, param),
                None => 0..tree.nodes(0),
            }
        };
        self.beside.iter().enumerate().map(roots).collect()
    }

    fn conflict(&self) -> Conflict {
        self.kernel.program().conflict
    }

    fn run_private(
        &mut self,
        values: &[V],
        dense: &[&[V]],
        output: &mut [V],
    ) -> Result<(), CoreError> {
        let (kernel, tree, scratch) = (&self.kernel, &*self.tree, &self.scratch);
        let beside = &self.beside[..];
        let windows = self.windows.iter().cloned().map(Some).chain(std::iter::repeat(None));
        let copies = self.side.iter_mut().map(Matrix::as_mut_slice).zip(windows);
        let targets = std::iter::once((&mut *output, None)).chain(copies);
        let work: Vec<_> = self.tasks.iter().zip(targets).collect();
        work.into_par_iter().try_for_each(|(task, (output, window))| {
            output.fill(V::default());
            let first_row = window.as_ref().map_or(0, |rows: &Range<u64>| rows.start);
            let whole = Operands::whole(tree, values, dense, output, &task.nodes);
            let operands = Operands { beside, first_row, window, ..whole };
            scratch.lend(|scratch| kernel.run(operands, scratch))
        })?;
        for (at, copy) in self.side.iter().enumerate() {
            let window = self.window(at).unwrap_or(0..output.len());
            add(&mut output[window], copy.as_slice());
        }
        Ok(())
    }

    fn run_owned(
        &mut self,
        values: &[V],
        dense: &[&[V]],
        output: &mut [V],
    ) -> Result<(), CoreError> {
        let mut side = std::mem::take(&mut self.side);
        let done = self.run_tasks(&self.tasks, &mut side, values, dense, output);
        self.side = side;
        done?;
        if self.conflict() == Conflict::Boundary {
            self.add_boundaries(output, self.kernel.slice_len() as usize);
        }
        Ok(())
    }

    /// Runs `tasks`, each on its own part of `output`, which their rows or positions fill; `side`
    /// has a row for each task but the first, or none.
    fn run_tasks(
        &self,
        tasks: &[Task],
        side: &mut [Matrix<V>],
        values: &[V],
        dense: &[&[V]],
        output: &mut [V],
    ) -> Result<(), CoreError> {
        let (kernel, tree, scratch) = (&self.kernel, &*self.tree, &self.scratch);
        let beside = &self.beside[..];
        let program = kernel.program();
        let positions = program.addressing == Addressing::Positions;
        let stride = kernel.slice_len() as usize;
        let mut rest = output;
        let mut sides = side.iter_mut();
        let mut work = Vec::with_capacity(tasks.len());
        for (at, task) in tasks.iter().enumerate() {
            let owned = if positions { task.leaves() } else { &task.rows };
            let rows = (owned.end - owned.start) as usize;
            let (own, after) = rest.split_at_mut(rows * stride);
            rest = after;
            let side = if at == 0 { None } else { sides.next() };
            work.push((task, own, owned.start, side.map(Matrix::as_mut_slice)));
        }
        work.into_par_iter().try_for_each(|(task, output, first_row, side)| {
            if program.zeroing == Zeroing::All {
                output.fill(V::default());
            } else if !positions {
                clear_gaps(tree, task, output, stride);
            }
            let mut boundary = side.filter(|_| task.continues);
            if let Some(row) = &mut boundary {
                row.fill(V::default());
            }
            let whole = Operands::whole(tree, values, dense, output, &task.nodes);
            let window = (!positions).then(|| task.rows.clone());
            let operands = Operands { beside, first_row, boundary, window, ..whole };
            scratch.lend(|scratch| kernel.run(operands, scratch))
        })
    }

    /// Adds the parts of slices begun earlier to their rows, `stride` elements each, of `output`.
    fn add_boundaries(&self, output: &mut [V], stride: usize) {
        let coords = &self.tree.levels()[0].coords;
        for (task, side) in self.tasks.iter().skip(1).zip(&self.side) {
            if task.continues {
                let row = coords.get(task.nodes[0].start as usize) as usize;
                let target = &mut output[row * stride..][..stride];
                add(target, side.as_slice());
            }
        }
    }
}

/// Returns the rows that each task but the first writes, if each has a private copy and rows of the
/// output are numbered by a level.
///
/// Time `O(nodes of the level)`, parallel.
fn windows<V: Value>(kernel: &Kernel, tree: &Csf<V>, tasks: &[Task]) -> Vec<Range<u64>> {
    let private = kernel.program().conflict == Conflict::Privatise;
    let rows = kernel.program().numbered_rows().filter(|_| private);
    let Some((level, _)) = rows else { return Vec::new() };
    tasks.iter().skip(1).map(|task| window(tree, task, level)).collect()
}

/// Returns the coordinates of a level from the least to the greatest that `task` meets.
fn window<V: Value>(tree: &Csf<V>, task: &Task, level: usize) -> Range<u64> {
    let nodes = task.nodes[level].start as usize..task.nodes[level].end as usize;
    tree.levels()[level].coords.bounds(nodes).map_or(0..0, |(least, most)| least..most + 1)
}

/// Gives each of `tasks` the rows of its blocks, if these are ranges of the rows of the output: all rows from the
/// first that it meets to that of the next task.
///
/// Time `O(nodes of the level)`.
fn own_ranges<V: Value>(
    kernel: &Kernel,
    tree: &Csf<V>,
    tasks: &mut [Task],
) -> Result<(), CoreError> {
    let program = kernel.program();
    if program.conflict != Conflict::Owner || program.root_row().is_some() {
        return Ok(());
    }
    let bad = |why: &str| Err(CoreError::Internal(format!("{}: {why}", program.title)));
    let Some((level, _)) = program.numbered_rows() else { return bad("its rows have no number") };
    let met: Vec<Range<u64>> = tasks.iter().map(|task| window(tree, task, level)).collect();
    if met.windows(2).any(|pair| pair[0].end > pair[1].start) {
        return bad("the blocks of its tree are no ranges of its rows");
    }
    let mut end = program.trees[0].stored().nth(level).map_or(0, |level| level.extent);
    for (task, met) in tasks.iter_mut().zip(met).rev() {
        task.rows = met.start..end;
        end = met.start;
    }
    if let Some(first) = tasks.first_mut() {
        first.rows.start = 0;
    }
    Ok(())
}

/// Elements summed a task when copies are added.
const SUM_BLOCK: usize = 1 << 14;

/// Adds `part` to `sums`, in parallel where they are long.
pub(super) fn add<V: Value>(sums: &mut [V], part: &[V]) {
    let add = |(sum, part): (&mut [V], &[V])| sum.iter_mut().zip(part).for_each(|(s, &p)| *s += p);
    if part.len() <= SUM_BLOCK {
        return add((sums, part));
    }
    sums.par_chunks_mut(SUM_BLOCK).zip(part.par_chunks(SUM_BLOCK)).for_each(add);
}

/// Root slices that are looked at together when gaps between them are sought.
const GAP_BLOCK: usize = 64;

/// Clears the rows of `task` without a root slice, `stride` elements each.
fn clear_gaps<V: Value>(tree: &Csf<V>, task: &Task, output: &mut [V], stride: usize) {
    if stride == 0 {
        return;
    }
    let coords = &tree.levels()[0].coords;
    let row = |node: u64| (coords.get(node as usize) - task.rows.start) as usize;
    let own = task.nodes[0].start + u64::from(task.continues)..task.nodes[0].end;
    let mut next = 0;
    let mut clear_to = |first: usize, after: usize| {
        if next < first {
            output[next * stride..first * stride].fill(V::default());
        }
        next = after;
    };
    for start in own.clone().step_by(GAP_BLOCK) {
        let end = own.end.min(start + GAP_BLOCK as u64);
        let (first, last) = (row(start), row(end - 1));
        // Rows ascend, so that as many as there are slices have no gap.
        if last - first == (end - 1 - start) as usize {
            clear_to(first, last + 1);
        } else {
            (start..end).map(row).for_each(|row| clear_to(row, row + 1));
        }
    }
    clear_to((task.rows.end - task.rows.start) as usize, 0);
}

#[cfg(test)]
mod tests {
    use decompose_formats::{Coo, Csf, ModeOrder};

    use super::clear_gaps;
    use crate::runtime::partition::{Cut, partition};

    #[test]
    fn rows_without_a_slice_are_cleared_and_no_others() {
        // Blocks of 64 slices without a gap, with one at either end, and with one within.
        let rows: Vec<u32> = (0..64).chain(70..134).chain(135..150).chain(160..300).collect();
        let (extent, columns) = (310_u64, vec![0_u32; rows.len()]);
        let values = vec![1.0; rows.len()];
        let list = Coo::new(vec![extent, 1], vec![rows.clone().into(), columns.into()], values);
        let tree = Csf::build(list.unwrap(), &ModeOrder::natural(2)).unwrap();
        for parts in [1, 3] {
            for task in partition(&tree, parts, Cut::Roots) {
                let mut output = vec![7.0; 2 * (task.rows.end - task.rows.start) as usize];
                clear_gaps(&tree, &task, &mut output, 2);
                for (row, pair) in task.rows.clone().zip(output.chunks(2)) {
                    let kept = rows.contains(&(row as u32));
                    assert_eq!(
                        pair,
                        [if kept { 7.0 } else { 0.0 }; 2],
                        "row {row} of {parts} parts"
                    );
                }
            }
        }
    }
}
