//! Matrices stored as panels of columns.
//!
//! A kernel that gathers rows of long matrices at random finds more of them in a cache if rows are
//! short.  Columns of a decomposition do not meet in the kernels of CP, so a sweep may take some columns
//! after the others.  For that they must be stored apart: parts of longer rows bring their neighbours
//! into the cache along with them.

use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSlice, ParallelSliceMut};

use crate::dense::{Matrix, padded};
use crate::error::FormatError;
use crate::value::Value;

/// A matrix of `rows x cols` whose columns are stored some after the others, in panels: each a
/// [`Matrix`] of all rows.  One panel is the matrix itself.
pub struct Panels<V> {
    rows: usize,
    parts: Vec<Matrix<V>>,
}

/// Returns the columns of each panel of a matrix of `cols` columns of `value_bytes` bytes, of which a
/// panel has about `most` and at least one: as few panels as that takes, of whole 64-byte lines that
/// differ by one line at most, the widest first; the last may end within a line.
///
/// ```
/// use decompose_formats::panels::widths;
/// assert_eq!(widths(50, 8, 32), [32, 18]);
/// assert_eq!(widths(100, 8, 32), [32, 24, 24, 20]);
/// assert_eq!(widths(32, 8, 32), [32]);
/// ```
pub fn widths(cols: usize, value_bytes: usize, most: usize) -> Vec<usize> {
    let lane = 64 / value_bytes;
    let lines = cols.div_ceil(lane);
    let panels = cols.div_ceil(most.max(1)).clamp(1, lines.max(1));
    let mut rest = cols;
    let width = |panel: usize| {
        let own = lines / panels + usize::from(panel < lines % panels);
        let width = rest.min(own * lane);
        rest -= width;
        width
    };
    (0..panels).map(width).collect()
}

impl<V: Value> Panels<V> {
    /// Makes a zero matrix of `rows` rows with panels of `widths` columns.
    ///
    /// # Errors
    ///
    /// As [`Matrix::zeros`].
    pub fn zeros(rows: usize, widths: &[usize]) -> Result<Panels<V>, FormatError> {
        let parts = widths.iter().map(|&width| Matrix::zeros(rows, width));
        Ok(Panels { rows, parts: parts.collect::<Result<_, _>>()? })
    }

    /// Stores `matrix` in panels of `widths` columns, the sum of which it has.  Memory is given back
    /// while it is copied, so that never much more than one matrix is held.
    ///
    /// # Errors
    ///
    /// As [`Matrix::zeros`].
    pub fn split(mut matrix: Matrix<V>, widths: &[usize]) -> Result<Panels<V>, FormatError> {
        debug_assert_eq!(widths.iter().sum::<usize>(), matrix.cols(), "columns of panels");
        if let [_] = widths {
            return Ok(Panels::from(matrix));
        }
        let mut panels = Panels::zeros(matrix.rows(), widths)?;
        let mut done = 0;
        while done < panels.rows {
            let end = panels.rows.min(done + rows_at_once(matrix.stride() * V::BYTES));
            let mut first = 0;
            for part in &mut panels.parts {
                let (cols, stride) = (part.cols(), part.stride());
                let to = &mut part.as_mut_slice()[done * stride..end * stride];
                let from = &matrix.as_slice()[done * matrix.stride()..end * matrix.stride()];
                let from = Columns { rows: from, stride: matrix.stride(), first };
                copy(&from, Columns { rows: to, stride, first: 0 }, cols);
                first += cols;
            }
            matrix.release_rows(done..end);
            done = end;
        }
        Ok(panels)
    }

    /// Stores the matrix as one, to be read in order.  Memory is given back while it is copied.
    ///
    /// # Errors
    ///
    /// As [`Matrix::zeros`].
    pub fn join(mut self) -> Result<Matrix<V>, FormatError> {
        if self.parts.len() == 1
            && let Some(matrix) = self.parts.pop()
        {
            return Ok(matrix);
        }
        let mut matrix = Matrix::in_order(self.rows, self.cols())?;
        let mut done = 0;
        while done < self.rows {
            let end = self.rows.min(done + rows_at_once(matrix.stride() * V::BYTES));
            self.copy_rows(done..end, &mut matrix);
            self.parts.iter_mut().for_each(|part| part.release_rows(done..end));
            done = end;
        }
        Ok(matrix)
    }

    /// Returns a copy stored as one.
    ///
    /// # Errors
    ///
    /// As [`Matrix::zeros`].
    pub fn to_matrix(&self) -> Result<Matrix<V>, FormatError> {
        let mut matrix = Matrix::in_order(self.rows, self.cols())?;
        self.copy_rows(0..self.rows, &mut matrix);
        Ok(matrix)
    }

    fn copy_rows(&self, rows: std::ops::Range<usize>, matrix: &mut Matrix<V>) {
        let whole = matrix.stride();
        let to = &mut matrix.as_mut_slice()[rows.start * whole..rows.end * whole];
        let mut first = 0;
        for part in &self.parts {
            let (cols, stride) = (part.cols(), part.stride());
            let from = &part.as_slice()[rows.start * stride..rows.end * stride];
            let to = Columns { rows: &mut *to, stride: whole, first };
            copy(&Columns { rows: from, stride, first: 0 }, to, cols);
            first += cols;
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.widths().sum()
    }

    /// Returns the number of columns of each panel.
    pub fn widths(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().map(Matrix::cols)
    }

    /// Returns the panels.
    pub fn parts(&self) -> &[Matrix<V>] {
        &self.parts
    }

    /// Returns the panels for writing.
    pub fn parts_mut(&mut self) -> &mut [Matrix<V>] {
        &mut self.parts
    }
}

impl<V: Value> From<Matrix<V>> for Panels<V> {
    fn from(matrix: Matrix<V>) -> Panels<V> {
        Panels { rows: matrix.rows(), parts: vec![matrix] }
    }
}

/// Rows of `row_bytes` copied before their memory is given back: some huge pages.
fn rows_at_once(row_bytes: usize) -> usize {
    (16 << 20) / row_bytes.max(1) + 1
}

/// Columns of rows that are `stride` elements apart.
struct Columns<S> {
    rows: S,
    stride: usize,
    /// The first of the columns.
    first: usize,
}

/// Copies `cols` columns of rows.
fn copy<V: Value>(from: &Columns<&[V]>, to: Columns<&mut [V]>, cols: usize) {
    const ROWS: usize = 1024;
    if cols == 0 {
        return;
    }
    let blocks = to.rows.par_chunks_mut(ROWS * to.stride);
    blocks.zip(from.rows.par_chunks(ROWS * from.stride)).for_each(|(rows, sources)| {
        let rows = rows.chunks_exact_mut(to.stride);
        for (row, source) in rows.zip(sources.chunks_exact(from.stride)) {
            row[to.first..][..cols].copy_from_slice(&source[from.first..][..cols]);
        }
    });
}

/// Returns the bytes of a row of panels of `widths` columns, padding included.
pub fn row_bytes(widths: &[usize], value_bytes: usize) -> usize {
    widths.iter().map(|&width| padded(width, value_bytes) * value_bytes).sum()
}

/// Writes the columns of panels, as `32 + 18`.
pub fn listed(widths: &[usize]) -> String {
    widths.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{Panels, row_bytes, widths};
    use crate::dense::{Matrix, padded};

    fn numbered(rows: usize, cols: usize) -> Matrix<f64> {
        let mut matrix = Matrix::zeros(rows, cols).unwrap();
        for i in 0..rows {
            let row = matrix.row_mut(i).iter_mut().enumerate();
            row.for_each(|(j, x)| *x = (i * cols + j + 1) as f64);
        }
        matrix
    }

    proptest! {
        #[test]
        fn widths_are_even_and_take_no_more_lines(cols in 1_usize..300, most in 1_usize..80) {
            for bytes in [4, 8] {
                let widths = widths(cols, bytes, most);
                let lane = 64 / bytes;
                prop_assert_eq!(widths.iter().sum::<usize>(), cols);
                prop_assert!(widths.iter().all(|&w| w > 0 && w < most.next_multiple_of(lane) + lane));
                prop_assert!(widths.is_sorted_by(|a, b| a >= b) && widths[0] - widths[widths.len() - 1] < 2 * lane);
                if cols > lane {
                    let lines = |bytes: usize| bytes.div_ceil(64);
                    prop_assert!(lines(row_bytes(&widths, bytes)) <= padded(cols, bytes) * bytes / 64);
                }
            }
        }

        #[test]
        fn panels_hold_what_the_matrix_held(rows in 0_usize..60, cols in 1_usize..70, most in 1_usize..70) {
            let widths = widths(cols, 8, most);
            let panels = Panels::split(numbered(rows, cols), &widths).unwrap();
            prop_assert_eq!((panels.rows(), panels.cols()), (rows, cols));
            prop_assert_eq!(panels.widths().collect::<Vec<_>>(), widths);
            let first = panels.parts()[0].cols();
            if let [_, second, ..] = panels.parts() {
                prop_assert!((0..rows).all(|i| second.row(i)[0] == (i * cols + first + 1) as f64));
            }
            let want = numbered(rows, cols);
            for matrix in [panels.to_matrix().unwrap(), panels.join().unwrap()] {
                prop_assert_eq!(matrix.as_slice(), want.as_slice());
            }
        }
    }

    #[test]
    fn long_matrices_are_moved_in_pieces() {
        let (rows, cols) = (100_000, 50);
        let panels = Panels::split(numbered(rows, cols), &[32, 18]).unwrap();
        assert_eq!(panels.join().unwrap().as_slice(), numbered(rows, cols).as_slice());
    }
}
