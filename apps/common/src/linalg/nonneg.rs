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
use ndarray::ArrayView2;

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
    /// Writes the rows to start from, `first_row` the first, over rows of `width` values; `panels` has the columns and
    /// the stride of each panel.
    pub(super) fn start(
        &self,
        first_row: usize,
        panels: impl Iterator<Item = (usize, usize)>,
        b: &mut [f64],
        width: usize,
    ) {
        let mut first = 0;
        for ((cols, stride), start) in panels.zip(&self.start) {
            let rows = start[first_row * stride..].chunks_exact(stride);
            let scales = &self.start_scale[first..][..cols];
            for (b, start) in b.chunks_exact_mut(width).zip(rows) {
                for ((b, start), scale) in b[first..].iter_mut().zip(start).zip(scales) {
                    *b = (start.to_f64() * scale).max(0.0);
                }
            }
            first += cols;
        }
    }

    /// Improves rows `b`, to which belong the rows `m` of the MTTKRP and of `products`, which are `Q b` and are
    /// overwritten; all are `width` values apart.
    pub(super) fn improve(&self, m: &[f64], products: &mut [f64], b: &mut [f64], width: usize) {
        let rank = self.rhs_scale.len();
        let gram = self.gram.to_slice().expect("contiguous");
        let rows = m.chunks_exact(width).zip(products.chunks_exact_mut(width));
        for ((m, gradient), b) in rows.zip(b.chunks_exact_mut(width)) {
            let (gradient, b) = (&mut gradient[..rank], &mut b[..rank]);
            for ((g, m), scale) in gradient.iter_mut().zip(m).zip(self.rhs_scale) {
                *g = m * scale - *g;
            }
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
