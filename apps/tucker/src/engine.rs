//! A plan put to work: the TTMc results of a tensor, whole or window by window.

use std::ops::Range;
use std::time::Instant;

use decompose_common::SolverError;
use decompose_core::contract::{Contraction, build_merged};
use decompose_core::einsum::Index;
use decompose_core::error::CoreError;
use decompose_core::kernels::mode_rank_index;
use decompose_core::runtime::{Kernel, Toolchain, share_slices};
use decompose_core::sweep::{BuildReport, entries_of};
use decompose_formats::dense::padded;
use decompose_formats::{Coo, DenseTensor, Matrix, Value};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::plan::{Forming, TuckerPlan};
use crate::rows::{Places, RowShape, TtmcRows, block_rows};
use crate::steps::Role;

/// The trees and kernels of a run, ready to run.
pub struct Engine<V: Value> {
    extents: Vec<u64>,
    norm_squared: f64,
    forming: Vec<Forming>,
    /// In the order of the plan's steps.
    kernels: Vec<Contraction<V>>,
    /// Seconds of every run of each.
    seconds: Vec<Vec<f64>>,
    /// The kernel of each mode; last that of the core of a nonnegative model.
    of_mode: Vec<usize>,
    partials: Vec<Partial<V>>,
    /// The largest TTMc result that is formed whole.
    buffer: Matrix<V>,
    /// The mode whose result stands whole in the buffer.
    formed: Option<usize>,
    /// The tensor as a list, once a residual had to be measured at its cells.
    entries: Option<Coo<V>>,
}

/// A partial product that merged modes share.
struct Partial<V> {
    modes: Vec<usize>,
    kernel: usize,
    matrix: Matrix<V>,
    /// Whether it is made of the factors as they are.
    held: bool,
}

/// The part of a TTMc result that one thread works on.
pub(crate) struct ThreadShare {
    /// The rows of the result, or the slices of the tree, that it visits.
    pub(crate) work: Range<u64>,
    /// The rows of the factor that belong to them; those of all shares are all rows.
    pub(crate) rows: Range<usize>,
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
    ) -> Result<(Engine<V>, BuildReport), SolverError> {
        let extents = coo.extents().to_vec();
        let norm_squared = coo.norm_squared();
        let (kernels, mut report) = build_merged(coo, &plan.kernels, &plan.merges, toolchain)?;
        let mut of_mode = vec![0; plan.forming.len().max(plan.kernels.steps.len())];
        let mut partials = Vec::new();
        for (at, (role, ..)) in plan.steps().enumerate() {
            match role {
                Role::Mode(mode) => of_mode[mode] = at,
                Role::Core => of_mode[extents.len()] = at,
                Role::Partial(modes) => {
                    let matrix = kernels[at].output()?;
                    report.side_bytes += (matrix.as_slice().len() * V::BYTES) as u64;
                    partials.push(Partial { modes, kernel: at, matrix, held: false });
                }
            }
        }
        let (forming, seconds) = (plan.forming.clone(), vec![Vec::new(); kernels.len()]);
        let (buffer, formed) = (Matrix::zeros(1, 1)?, None);
        let mut engine = Engine {
            extents,
            norm_squared,
            forming,
            kernels,
            seconds,
            of_mode,
            partials,
            buffer,
            formed,
            entries: None,
        };
        let lens = (0..engine.forming.len()).map(|mode| engine.buffer_len(mode));
        engine.buffer = Matrix::zeros(1, lens.max().unwrap_or(1).max(1))?;
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

    /// Returns the seconds of every run of each kernel so far, in the same order.
    pub fn seconds(&self) -> impl Iterator<Item = &[f64]> {
        self.seconds.iter().map(Vec::as_slice)
    }

    /// Returns the tensor as a list again, sorted by its natural order.  Time and memory of the list, and of a sort,
    /// the first time.
    ///
    /// # Errors
    ///
    /// If there is no memory.
    pub(crate) fn entries(&mut self) -> Result<&Coo<V>, SolverError> {
        let list = match self.entries.take() {
            Some(list) => list,
            None => self.list()?,
        };
        Ok(self.entries.insert(list))
    }

    fn list(&self) -> Result<Coo<V>, SolverError> {
        let modes = 0..self.extents.len();
        let Some(merge) = self.partials.first().filter(|partial| partial.kernel == 0) else {
            // Kernels on the tensor itself come first.
            let blocks: Vec<Vec<usize>> = modes.map(|mode| vec![mode]).collect();
            return Ok(entries_of(self.kernels[0].tree(), &self.extents, &blocks, &[])?);
        };
        let others = modes.filter(|mode| !merge.modes.contains(mode)).map(|mode| vec![mode]);
        let blocks: Vec<Vec<usize>> = [merge.modes.clone()].into_iter().chain(others).collect();
        // The updates of the merged modes follow the partial product.
        let tuples = (merge.modes.as_slice(), self.kernels[1].tree());
        Ok(entries_of(self.kernels[0].tree(), &self.extents, &blocks, &[tuples])?)
    }

    /// Forgets results that contain the factor of `mode`, which changes.
    pub(crate) fn invalidate(&mut self, mode: usize) {
        self.formed = None;
        let outside = self.partials.iter_mut().filter(|partial| !partial.modes.contains(&mode));
        outside.for_each(|partial| partial.held = false);
    }

    /// Forgets all results: other factors come.
    pub(crate) fn forget(&mut self) {
        (0..self.extents.len()).for_each(|mode| self.invalidate(mode));
        self.partials.iter_mut().for_each(|partial| partial.held = false);
    }

    /// Tells how much of the TTMc of `mode` is formed at a time.
    pub(crate) fn forming(&self, mode: usize) -> Forming {
        self.forming[mode]
    }

    /// Forms the TTMc of `mode` whole, unless it stands in the buffer; returns the seconds of the
    /// kernel.
    ///
    /// # Errors
    ///
    /// If the factors do not fit the tensor and the ranks.
    pub(crate) fn form(&mut self, mode: usize, factors: &[Matrix<V>]) -> Result<f64, SolverError> {
        if self.formed == Some(mode) {
            return Ok(0.0);
        }
        let begun = Instant::now();
        self.formed = None;
        let partial = self.partials.iter().position(|partial| partial.modes.contains(&mode));
        if let Some(at) = partial {
            self.make_partial(at, factors)?;
        }
        let shared = partial.map(|at| &self.partials[at]);
        let others = without(factors, mode).enumerate();
        let at = |position: usize| position + usize::from(position >= mode);
        let needed = others.filter(|&(position, _)| {
            shared.is_none_or(|partial| partial.modes.contains(&at(position)))
        });
        let factors = needed.map(|(_, factor)| factor);
        let operands: Vec<&Matrix<V>> = factors.chain(shared.map(|p| &p.matrix)).collect();
        let len = self.extents[mode] as usize * self.row_len(mode);
        let (kernel, run) = (self.of_mode[mode], Instant::now());
        self.kernels[kernel].run_into(&operands, &mut self.buffer.as_mut_slice()[..len])?;
        self.seconds[kernel].push(run.elapsed().as_secs_f64());
        self.formed = Some(mode);
        Ok(begun.elapsed().as_secs_f64())
    }

    /// Makes a partial product of the factors outside its modes, unless it is held.
    fn make_partial(&mut self, at: usize, factors: &[Matrix<V>]) -> Result<(), SolverError> {
        let Partial { modes, kernel, matrix, held } = &mut self.partials[at];
        if *held {
            return Ok(());
        }
        let outside = factors.iter().enumerate().filter(|(mode, _)| !modes.contains(mode));
        let outside: Vec<&Matrix<V>> = outside.map(|(_, factor)| factor).collect();
        let run = Instant::now();
        self.kernels[*kernel].run(&outside, matrix)?;
        self.seconds[*kernel].push(run.elapsed().as_secs_f64());
        *held = true;
        Ok(())
    }

    /// Returns the TTMc that [`Engine::form`] formed last for `mode`.
    pub(crate) fn formed(&self, mode: usize) -> &[V] {
        let len = self.extents[mode] as usize * self.row_len(mode);
        &self.buffer.as_slice()[..len]
    }

    /// Shares the rows of the TTMc of `mode` among the threads, where what is done with a row takes
    /// `row_work` times what a non-zero takes in the kernel.
    pub(crate) fn shares(&self, mode: usize, row_work: f64) -> Vec<ThreadShare> {
        let (extent, threads) = (self.extents[mode] as usize, rayon::current_num_threads());
        if self.forming[mode] == Forming::Whole {
            let share = extent.div_ceil(threads).max(1);
            let rows =
                (0..threads).map(|at| (at * share).min(extent)..((at + 1) * share).min(extent));
            return rows
                .map(|rows| ThreadShare { work: rows.start as u64..rows.end as u64, rows })
                .collect();
        }
        let tree = self.kernel_of(mode).tree();
        let coords = &tree.levels()[0].coords;
        let ranges = share_slices(tree, threads, row_work);
        let begin = |slice: u64| match slice {
            0 => 0,
            _ if slice == coords.len() as u64 => extent,
            _ => coords.get(slice as usize) as usize,
        };
        ranges
            .into_iter()
            .map(|work| ThreadShare { rows: begin(work.start)..begin(work.end), work })
            .collect()
    }

    /// Shows `visit` the rows of the TTMc of `mode`, some at a time, each share with its own state;
    /// returns the seconds of the kernel.  A whole result in the buffer is not computed again; of one in
    /// windows only rows that are not empty are shown.
    ///
    /// # Errors
    ///
    /// If the factors do not fit the tensor and the ranks.
    pub(crate) fn visit<S: Send>(
        &mut self,
        mode: usize,
        factors: &[Matrix<V>],
        shares: Vec<(ThreadShare, S)>,
        visit: impl Fn(&mut S, &TtmcRows<'_, V>) + Sync,
    ) -> Result<f64, SolverError> {
        let shape = self.row_shape(mode);
        if let Forming::Windows(most) = self.forming[mode] {
            let tree = self.kernel_of(mode).shared_tree();
            let coords = &tree.levels()[0].coords;
            let others: Vec<&Matrix<V>> = without(factors, mode).collect();
            let shares = shares.into_iter().map(|(share, state)| (share.work, state)).collect();
            let show = |state: &mut S, slices: Range<u64>, values: &[V]| {
                visit(state, &TtmcRows { values, shape, places: Places::Listed(coords, slices) });
            };
            let kernel = self.of_mode[mode];
            let seconds = self.kernels[kernel].run_windows(&others, most, shares, &show)?;
            self.seconds[kernel].push(seconds);
            return Ok(seconds);
        }
        let seconds = self.form(mode, factors)?;
        let values = self.formed(mode);
        shares.into_par_iter().for_each(|(share, mut state)| {
            for first in share.rows.clone().step_by(block_rows(shape.width())) {
                let end = share.rows.end.min(first + block_rows(shape.width()));
                let values = &values[first * shape.len..end * shape.len];
                visit(&mut state, &TtmcRows { values, shape, places: Places::From(first) });
            }
        });
        Ok(seconds)
    }

    /// Returns how the rows of the TTMc of `mode` are stored.
    pub(crate) fn row_shape(&self, mode: usize) -> RowShape {
        let stored = self.kernel_of(mode).stored();
        let cols = stored.last().map_or(1, |&(_, extent)| extent) as usize;
        RowShape { len: self.row_len(mode), stride: padded(cols, V::BYTES), cols }
    }

    /// Returns, for each column index of the TTMc of `mode` as stored, the mode whose rank it is.
    pub(crate) fn columns(&self, mode: usize) -> Vec<usize> {
        let order = self.extents.len();
        let stored = self.kernel_of(mode).stored();
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
    ) -> Result<(), SolverError> {
        let kernel = self.of_mode[mode];
        let packed = self.kernels[kernel].pack(factors.len() - 1, core)?;
        let dense: Vec<&Matrix<V>> = without(factors, mode).chain([&packed]).collect();
        let run = Instant::now();
        self.kernels[kernel].run(&dense, out)?;
        self.seconds[kernel].push(run.elapsed().as_secs_f64());
        Ok(())
    }

    /// Computes the TTMc of all modes, `R_1 x ... x R_N` (nonnegative models).
    ///
    /// # Errors
    ///
    /// If an operand does not fit.
    pub(crate) fn all_modes(
        &mut self,
        factors: &[Matrix<V>],
    ) -> Result<DenseTensor<V>, SolverError> {
        let at = self.of_mode[factors.len()];
        let kernel = &mut self.kernels[at];
        let dense: Vec<&Matrix<V>> = factors.iter().collect();
        let mut output = kernel.output()?;
        let run = Instant::now();
        kernel.run(&dense, &mut output)?;
        self.seconds[at].push(run.elapsed().as_secs_f64());
        let not_dense = || CoreError::Internal("the core is not dense".into());
        Ok(kernel.dense(&output).ok_or_else(not_dense)?)
    }

    fn kernel_of(&self, mode: usize) -> &Contraction<V> {
        &self.kernels[self.of_mode[mode]]
    }

    fn row_len(&self, mode: usize) -> usize {
        (self.kernel_of(mode).output_len() / self.extents[mode].max(1)) as usize
    }

    fn buffer_len(&self, mode: usize) -> usize {
        let rows = match self.forming[mode] {
            Forming::Whole => self.extents[mode],
            // Each thread has memory of its own for its windows.
            Forming::Windows(_) => 0,
        };
        rows as usize * self.row_len(mode)
    }
}

fn without<V>(factors: &[Matrix<V>], mode: usize) -> impl Iterator<Item = &Matrix<V>> {
    factors.iter().enumerate().filter(move |&(m, _)| m != mode).map(|(_, factor)| factor)
}
