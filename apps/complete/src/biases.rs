//! Offsets of the model and of each index, as columns of a CP model.
//!
//! ```text
//! m_ijk = mu + b1(i) + b2(j) + b3(k) + sum_r A1(i,r) A2(j,r) A3(k,r)
//! ```
//!
//! `b1(i)` is one more component whose columns in the other modes are ones, so a model with biases
//! is a CP model of `R + N` components of which some columns are fixed; `mu` is the mean of the
//! training entries (on the scale of the model) and becomes a component of ones when the fit is
//! done.
//!
//! The entries of a fit have a spread of one about the offset ([`unit`](crate::scaling)), and so have
//! biases and products of factors: a ridge means the same to both.

use decompose_formats::Matrix;

/// The columns of blocks that stay as they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fixed {
    /// The components of the interaction; the next columns are the biases.
    rank: usize,
    /// The modes; 0 without biases.
    order: usize,
}

impl Fixed {
    /// Fixes nothing.
    pub(crate) fn none() -> Fixed {
        Fixed::default()
    }

    /// Fixes the ones that multiply the bias of each of `order` modes, beside `rank` components.
    pub(crate) fn ones(rank: usize, order: usize) -> Fixed {
        Fixed { rank, order }
    }

    /// Tells whether any column is fixed.
    pub(crate) fn any(&self) -> bool {
        self.order > 0
    }

    /// Tells whether `column` of the block of `mode` is fixed.
    pub(crate) fn has(&self, mode: usize, column: usize) -> bool {
        self.order > 0 && column >= self.rank && column - self.rank != mode
    }

    /// Sets the bias columns of `blocks` to a start: ones where fixed, zeros elsewhere.
    pub(crate) fn start(&self, blocks: &mut [Matrix<f64>]) {
        if !self.any() {
            return;
        }
        for (mode, block) in blocks.iter_mut().enumerate() {
            for row in 0..block.rows() {
                let columns = block.row_mut(row).iter_mut().enumerate().skip(self.rank);
                for (column, value) in columns {
                    *value = if self.has(mode, column) { 1.0 } else { 0.0 };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Fixed;

    #[test]
    fn each_mode_frees_its_own_bias() {
        let fixed = Fixed::ones(2, 3);
        let free = |mode| (0..5).filter(|&column| !fixed.has(mode, column)).collect::<Vec<_>>();
        assert_eq!(free(0), [0, 1, 2]);
        assert_eq!(free(2), [0, 1, 4]);
        assert!(!(0..5).any(|column| Fixed::none().has(1, column)));
    }
}
