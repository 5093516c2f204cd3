//! Running a kernel on a few root slices at a time, for results that are used at once.
//!
//! A result with a row for each of millions of root slices would be written to memory only to be read
//! again.  Here each thread computes a *window* - the rows of some slices in turn - into memory that stays
//! in its near cache, shows it, and computes the next into the same memory.  Rows are stored one after the
//! other whatever their coordinates, so nothing is kept, cleared or shown for slices that are empty.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use decompose_formats::{Csf, Ints, Matrix, Value};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::error::CoreError;
use crate::lower::{Operands, Zeroing};
use crate::runtime::executor::Executor;
use crate::runtime::partition::nodes_below;
use crate::schedule::Conflict;

/// Seconds of all threads together.
#[derive(Clone, Copy, Default)]
struct Seconds {
    kernel: f64,
    all: f64,
}

impl<V: Value> Executor<V> {
    /// Returns the elements of the output for each row, the block of a root coordinate; `None` if
    /// the kernel's tasks do not own rows.
    pub fn row_len(&self) -> Option<u64> {
        let program = self.kernel().program();
        let owned = matches!(program.conflict, Conflict::Owner | Conflict::Boundary);
        (owned && program.root_row().is_some()).then(|| self.kernel().slice_len())
    }

    /// Computes the rows of the root slices of each of `shares`, at most `most` at a time, and shows
    /// `visit` each window with its slices - positions in the root level - and what belongs to its share.
    ///
    /// Each share is one thread's, its windows in order.  Returns the seconds that the kernel took: of the
    /// time that passed, the part that the threads spent in it.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if an operand does not fit, the kernel does not own rows, or a dense
    /// operand has the root's index, so that it would be read at positions instead of coordinates.
    pub fn run_windows<S: Send>(
        &mut self,
        dense: &[&[V]],
        most: u64,
        shares: Vec<(Range<u64>, S)>,
        visit: &(impl Fn(&mut S, Range<u64>, &[V]) + Sync),
    ) -> Result<f64, CoreError> {
        let row = self.row_len_alone()?;
        let begun = Instant::now();
        let numbers = self.numbers.take().unwrap_or_else(|| numbers(self.tree()));
        let (this, roots) = (&*self, &numbers);
        let share = |(range, mut state): (Range<u64>, S)| -> Result<Seconds, CoreError> {
            let start = Instant::now();
            let most = most.clamp(1, (range.end - range.start).max(1));
            let mut memory = Matrix::zeros(1, (most * row) as usize)?;
            let mut kernel = 0.0;
            for first in range.clone().step_by(most as usize) {
                let window = first..range.end.min(first + most);
                let output = &mut memory.as_mut_slice()[..((window.end - first) * row) as usize];
                let before = Instant::now();
                this.run_window(dense, window.clone(), roots, output)?;
                kernel += before.elapsed().as_secs_f64();
                visit(&mut state, window, output);
            }
            Ok(Seconds { kernel, all: start.elapsed().as_secs_f64() })
        };
        let done: Result<Vec<Seconds>, CoreError> = shares.into_par_iter().map(share).collect();
        self.numbers = Some(numbers);
        let (kernel, all) = done?.iter().fold((0.0, 0.0), |(k, a), s| (k + s.kernel, a + s.all));
        Ok(if all > 0.0 { begun.elapsed().as_secs_f64() * kernel / all } else { 0.0 })
    }

    /// Computes the rows of the root slices `slices`.
    fn run_window(
        &self,
        dense: &[&[V]],
        slices: Range<u64>,
        roots: &Ints,
        output: &mut [V],
    ) -> Result<(), CoreError> {
        if self.kernel().program().zeroing == Zeroing::All {
            output.fill(V::default());
        }
        let tree = self.tree();
        let nodes = &nodes_below(tree, slices.clone());
        let whole = Operands::whole(tree, tree.values(), dense, output, nodes);
        let operands = Operands { first_row: slices.start, roots: Some(roots), ..whole };
        self.scratch.lend(|scratch| self.kernel().run(operands, scratch))
    }

    /// The elements of a row, if rows may be computed alone.
    fn row_len_alone(&self) -> Result<u64, CoreError> {
        let program = self.kernel().program();
        let root = program.levels().first().map(|level| level.index);
        let bad = |operand: &str, why: &str| {
            Err(CoreError::Operand { operand: operand.into(), why: why.into() })
        };
        let reads_root =
            |array: &&crate::lower::Array| array.indices.iter().any(|&index| Some(index) == root);
        if let Some(array) = program.dense.iter().find(reads_root) {
            return bad(&array.name, "it has an index of the rows that are computed in windows");
        }
        match self.row_len() {
            Some(len) => Ok(len),
            None => bad(&program.output.name, "the kernel's tasks do not own its rows"),
        }
    }
}

/// Cuts the root slices of `tree` into `parts` ranges of nearly equal work, where a slice takes
/// `slice_work` times what one of its non-zeros takes.
///
/// Time `O(parts * order * log slices)`.
pub fn share_slices<V: Value>(tree: &Csf<V>, parts: usize, slice_work: f64) -> Vec<Range<u64>> {
    let slices = tree.levels()[0].coords.len() as u64;
    let work = |slice: u64| {
        let last = nodes_below(tree, slice..slice).pop().map_or(0, |leaves| leaves.start);
        last as f64 + slice as f64 * slice_work
    };
    let all = work(slices);
    let cut = |part: usize| {
        let wanted = all * part as f64 / parts.max(1) as f64;
        let (mut low, mut high) = (0, slices);
        while low < high {
            let middle = low + (high - low) / 2;
            if work(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        low
    };
    (0..parts.max(1)).map(|part| cut(part)..cut(part + 1)).collect()
}

/// The positions of the root slices, as wide as their coordinates.
fn numbers<V: Value>(tree: &Arc<Csf<V>>) -> Ints {
    let coords = &tree.levels()[0].coords;
    Ints::collect(0..coords.len() as u64, coords.width())
}
