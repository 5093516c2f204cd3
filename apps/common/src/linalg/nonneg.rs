//! Non-negative least squares for the rows of a factor.
//!
//! Each row solves `min_{b >= 0} b^T Q b - 2 c^T b`, with `Q` (`R x R`) the same for all rows, by
//! cyclic coordinate descent from an earlier row: hierarchical alternating least squares.
//!
//! ```text
//! b_r <- max(0, b_r + (c_r - (Q b)_r) / Q_rr)      for r = 1..R, a few times
//! ```
//!
//! Every step minimises exactly over one coordinate, so the objective never rises.  The gradient
//! `c - Q b` is kept up to date, one contiguous axpy for each coordinate that moves.  Sources:
//! Cichocki, Phan, IEICE Trans. E92-A, 2009; the inner stopping rule after Gillis, Glineur, Neural
//! Computation 24, 2012.

use decompose_formats::Value;
use ndarray::{Array2, ArrayView2, ArrayViewMut2};

use crate::linalg::backend;

/// The most passes over the coordinates of a row.
const MOST_PASSES: usize = 10;
/// A row is done when a pass moves it by less than this, relative, in the norm of `Q`, squared.
const SETTLED: f64 = 1e-12;

/// The non-negative rule of a pass over rows.
#[derive(Clone, Debug)]
pub struct NonNegative<'a, V> {
    /// `Q`, `R x R`, row-major and contiguous, symmetric positive semi-definite.
    pub gram: ArrayView2<'a, f64>,
    /// The factors that make `c` from the MTTKRP's row, by column.
    pub rhs_scale: &'a [f64],
    /// The rows to start from, in panels and padded as the matrix that is updated.
    pub start: Vec<&'a [V]>,
    /// The factors that make the starting `b` from a row of `start`, by column.
    pub start_scale: &'a [f64],
}

impl<V: Value> NonNegative<'_, V> {
    /// Solves a block: rows `m` of the MTTKRP to rows `b`; `place` is the number of the first row
    /// and the columns and the stride of each panel.
    pub(super) fn solve(
        &self,
        m: ArrayView2<'_, f64>,
        place: (usize, impl Iterator<Item = (usize, usize)>),
        mut b: ArrayViewMut2<'_, f64>,
    ) {
        let (first_row, panels) = place;
        let mut first = 0;
        for ((cols, stride), start) in panels.zip(&self.start) {
            let rows = start[first_row * stride..].chunks_exact(stride);
            let scales = &self.start_scale[first..][..cols];
            for (mut b, start) in b.rows_mut().into_iter().zip(rows) {
                for ((b, start), scale) in b.iter_mut().skip(first).zip(start).zip(scales) {
                    *b = (start.to_f64() * scale).max(0.0);
                }
            }
            first += cols;
        }
        let mut gradient = Array2::zeros(m.dim());
        backend::multiply(b.view(), self.gram, gradient.view_mut());
        let rows = gradient.rows_mut().into_iter().zip(m.rows()).zip(b.rows_mut());
        for ((mut gradient, m), mut b) in rows {
            for ((g, m), scale) in gradient.iter_mut().zip(m).zip(self.rhs_scale) {
                *g = m * scale - *g;
            }
            let gradient = gradient.as_slice_mut().expect("contiguous");
            let gram = self.gram.to_slice().expect("contiguous");
            let b = b.as_slice_mut().expect("contiguous");
            descend(gram, gradient, b, MOST_PASSES, SETTLED);
        }
    }
}

/// Runs at most `passes` over the coordinates of the row `b`, until one moves it by less than
/// `settled`, relative, in the norm of `gram` (`Q`), squared.
pub(super) fn descend(
    gram: &[f64],
    gradient: &mut [f64],
    b: &mut [f64],
    passes: usize,
    settled: f64,
) {
    for _ in 0..passes {
        let (mut moved, mut size) = (0.0, 0.0);
        for (r, q) in gram.chunks_exact(b.len()).enumerate() {
            let curvature = q[r];
            if curvature <= 0.0 {
                continue; // a dead component: nothing to gain
            }
            let new = (b[r] + gradient[r] / curvature).max(0.0);
            let step = new - b[r];
            if step != 0.0 {
                b[r] = new;
                for (g, q) in gradient.iter_mut().zip(q) {
                    *g -= step * q;
                }
            }
            moved += step * step * curvature;
            size += new * new * curvature;
        }
        if moved <= settled * size {
            return;
        }
    }
}
