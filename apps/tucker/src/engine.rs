//! A plan put to work: the TTMc results of a tensor, whole or window by window.

use std::ops::Range;
use std::time::Instant;

use decompose_core::contract::{Contraction, Part, build_all};
use decompose_core::einsum::Index;
use decompose_core::error::CoreError;
use decompose_core::kernels::mode_rank_index;
use decompose_core::runtime::{Kernel, Toolchain};
use decompose_core::sweep::BuildReport;
use decompose_formats::dense::padded;
use decompose_formats::{Coo, DenseTensor, Matrix, Value};

use crate::error::TuckerError;
use crate::plan::{Forming, TuckerPlan};
use crate::rows::{RowShape, Rows};

/// The trees and kernels of a run, ready to run.
pub struct Engine<V: Value> {
    extents: Vec<u64>,
    norm_squared: f64,
    forming: Vec<Forming>,
    kernels: Vec<Contraction<V>>,
    /// The TTMc result, or a window of it.
    buffer: Matrix<V>,
    /// The mode whose result stands whole in the buffer.
    formed: Option<usize>,
}

impl<V: Value> Engine<V> {
    /// Builds the trees of `plan` from `coo`, which must be sorted without duplicates, and the
    /// kernels; the list is freed on the way.
    ///
    /// # Errors
    ///
    /// If the plan was made for another tensor, or memory runs out.
    pub fn build(
        coo: Coo<V>,
        plan: &TuckerPlan,
        toolchain: &Toolchain,
    ) -> Result<(Engine<V>, BuildReport), TuckerError> {
        let extents = coo.extents().to_vec();
        let norm_squared = coo.norm_squared();
        let (kernels, report) = build_all(coo, &plan.kernels, toolchain)?;
        let forming = plan.forming.clone();
        let mut engine = Engine {
            extents,
            norm_squared,
            forming,
            kernels,
            buffer: Matrix::zeros(1, 1)?,
            formed: None,
        };
        let lens = (0..engine.forming.len()).map(|mode| engine.buffer_len(mode));
        engine.buffer = Matrix::zeros(1, lens.max().unwrap_or(1))?;
        Ok((engine, report))
    }

    /// Returns the extents of the tensor, by mode.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Returns the tensor's squared Frobenius norm, summed in `f64`.
    pub fn norm_squared(&self) -> f64 {
        self.norm_squared
    }

    /// Returns the kernels, in the order of the plan's steps.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.kernels.iter().map(Contraction::kernel)
    }

    /// Forgets the result in the buffer: a factor has changed.
    pub(crate) fn invalidate(&mut self) {
        self.formed = None;
    }

    /// Tells how much of the TTMc of `mode` is formed at a time.
    pub(crate) fn forming(&self, mode: usize) -> Forming {
        self.forming[mode]
    }

    /// Shows `visit` the rows of the TTMc of `mode`, in order, and returns the seconds of the
    /// kernel; a result that is whole in the buffer is not computed again.
    ///
    /// # Errors
    ///
    /// If the factors do not fit the tensor and the ranks.
    pub(crate) fn visit(
        &mut self,
        mode: usize,
        factors: &[Matrix<V>],
        visit: &mut dyn FnMut(Range<usize>, &Rows<'_, V>),
    ) -> Result<f64, TuckerError> {
        let shape = self.row_shape(mode);
        let extent = self.extents[mode] as usize;
        let step = match self.forming[mode] {
            Forming::Whole => extent,
            Forming::Windows(rows) => rows as usize,
        };
        let others: Vec<&Matrix<V>> = without(factors, mode).collect();
        let mut seconds = 0.0;
        for start in (0..extent).step_by(step.max(1)) {
            let range = start..extent.min(start + step);
            let window = &mut self.buffer.as_mut_slice()[..range.len() * shape.len];
            if self.formed != Some(mode) {
                let begun = Instant::now();
                let part = match self.forming[mode] {
                    Forming::Whole => Part::All,
                    Forming::Windows(_) => Part::Rows(range.start as u64..range.end as u64),
                };
                self.kernels[mode].run_into(&others, part, window)?;
                seconds += begun.elapsed().as_secs_f64();
            }
            visit(range, &Rows { values: window, shape });
        }
        self.formed = (self.forming(mode) == Forming::Whole).then_some(mode);
        Ok(seconds)
    }

    /// Returns how the rows of the TTMc of `mode` are stored.
    pub(crate) fn row_shape(&self, mode: usize) -> RowShape {
        let stored = self.kernels[mode].stored();
        let cols = stored.last().map_or(1, |&(_, extent)| extent) as usize;
        RowShape { len: self.row_len(mode), stride: padded(cols, V::BYTES), cols }
    }

    /// Returns, for each column index of the TTMc of `mode` as stored, the mode whose rank it is.
    pub(crate) fn columns(&self, mode: usize) -> Vec<usize> {
        let order = self.extents.len();
        let stored = self.kernels[mode].stored();
        let mode_of =
            |&(index, _): &(Index, u64)| (0..order).find(|&m| mode_rank_index(order, m) == index);
        stored.iter().filter_map(mode_of).collect()
    }

    /// Computes the TTMc of `mode` times `core`, `I_n x R_n`, into `out` (nonnegative models).
    ///
    /// # Errors
    ///
    /// If an operand does not fit.
    pub(crate) fn with_core(
        &mut self,
        mode: usize,
        factors: &[Matrix<V>],
        core: &DenseTensor<V>,
        out: &mut Matrix<V>,
    ) -> Result<(), TuckerError> {
        let packed = self.kernels[mode].pack(factors.len() - 1, core)?;
        let dense: Vec<&Matrix<V>> = without(factors, mode).chain([&packed]).collect();
        Ok(self.kernels[mode].run(&dense, out)?)
    }

    /// Computes the TTMc of all modes, `R_1 x ... x R_N` (nonnegative models).
    ///
    /// # Errors
    ///
    /// If an operand does not fit.
    pub(crate) fn all_modes(
        &mut self,
        factors: &[Matrix<V>],
    ) -> Result<DenseTensor<V>, TuckerError> {
        let kernel = &mut self.kernels[factors.len()];
        let dense: Vec<&Matrix<V>> = factors.iter().collect();
        let mut output = kernel.output()?;
        kernel.run(&dense, &mut output)?;
        let not_dense = || CoreError::Internal("the core is not dense".into());
        Ok(kernel.dense(&output).ok_or_else(not_dense)?)
    }

    fn row_len(&self, mode: usize) -> usize {
        (self.kernels[mode].output_len() / self.extents[mode].max(1)) as usize
    }

    fn buffer_len(&self, mode: usize) -> usize {
        let rows = match self.forming[mode] {
            Forming::Whole => self.extents[mode],
            Forming::Windows(rows) => rows,
        };
        rows as usize * self.row_len(mode)
    }
}

fn without<V>(factors: &[Matrix<V>], mode: usize) -> impl Iterator<Item = &Matrix<V>> {
    factors.iter().enumerate().filter(move |&(m, _)| m != mode).map(|(_, factor)| factor)
}
