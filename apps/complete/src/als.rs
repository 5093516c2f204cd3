//! Alternating least squares, exact: the rows of a CP factor one by one ([`rows`](crate::rows)).
//!
//! Columns that are fixed go to the right-hand side.  Time an epoch: `O(N nnz R^2 + sum I_n R^3)`.
//! Source: Zhou, Wilkinson, Schreiber, Pan, "Large-scale parallel collaborative filtering for the
//! Netflix prize", AAIM 2008, for matrices.

use decompose_common::SolverError;
use decompose_core::runtime::{Slices, Toolchain};
use decompose_formats::{Coo, Matrix};

use crate::loss::Range;
use crate::method::{Method, Progress};
use crate::objective::{Objective, others};
use crate::rows::{RowRule, SliceRows};

/// The state of the method.
pub(crate) struct Als {
    kernel: Slices,
    modes: Vec<SliceRows>,
    /// The entries less the offset, by mode, where there is one.
    centred: Option<Vec<Vec<f64>>>,
    sign: Range,
}

impl Als {
    /// Compiles the kernel and lists the entries by the slices of each mode.
    ///
    /// # Errors
    ///
    /// If there are too many entries or rows.
    pub(crate) fn new(
        tensor: &Coo<f64>,
        objective: &Objective,
        sign: Range,
        toolchain: &Toolchain,
    ) -> Result<Als, SolverError> {
        let rank = objective.network().blocks()[0].matrix().1;
        let modes = (0..tensor.order()).map(|mode| SliceRows::new(tensor, mode));
        let modes = modes.collect::<Result<Vec<_>, _>>()?;
        let offset = objective.offset();
        let centre = |rows: &SliceRows| rows.list().values().iter().map(|x| x - offset).collect();
        let centred = (offset != 0.0).then(|| modes.iter().map(centre).collect());
        Ok(Als { kernel: Slices::new(rank, tensor.extents(), toolchain), modes, centred, sign })
    }
}

impl Method for Als {
    fn epoch(
        &mut self,
        objective: &mut Objective,
        blocks: &mut Vec<Matrix<f64>>,
        _: f64,
    ) -> Result<Progress, SolverError> {
        for (mode, rows) in self.modes.iter().enumerate() {
            let cols = blocks[mode].cols();
            let reg = objective.reg()[mode];
            let stays = |column: &usize| objective.fixed().has(mode, *column);
            let rule = RowRule::new(cols, stays, reg, self.sign);
            let values = self.centred.as_ref().map_or(rows.list().values(), |all| &all[mode]);
            // The block that is solved for stands aside.
            let mut target = std::mem::replace(&mut blocks[mode], Matrix::zeros(0, cols)?);
            let solved =
                rows.solve(&self.kernel, values, &others(blocks, mode), &rule, &mut target);
            blocks[mode] = target;
            solved?;
        }
        Ok(Progress::Moved)
    }
}
