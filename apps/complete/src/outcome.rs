//! What a completion returns.

use std::ops::ControlFlow;

use decompose_common::SolverError;
use decompose_common::model::{CpModel, Model, TtModel, TuckerModel};
use decompose_common::stopping::StopReason;
use decompose_formats::{Matrix, ModeOrder};
use ndarray::{Array3, ArrayD, IxDyn, ShapeError};

use crate::baseline::Baseline;
use crate::config::ModelKind;
use crate::metrics::Scores;
use crate::network::Network;

/// Sees every epoch as it ends and may stop the fit.
pub type Observer<'a> = dyn FnMut(&EpochRecord) -> ControlFlow<()> + 'a;

/// One epoch.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct EpochRecord {
    /// The round, counted from 1: a start or, where the ridge is chosen, a start at one ridge.
    pub restart: usize,
    /// The epoch, counted from 1; 0 is the start.
    pub epoch: usize,
    /// The objective, ridge included, of entries measured in the unit in which their root mean square
    /// is one.
    pub objective: f64,
    /// On the training entries.
    pub train: Scores,
    /// On the validation entries.
    pub val: Option<Scores>,
    /// On the test entries.
    pub test: Option<Scores>,
    /// Seconds of the method in this epoch.
    pub seconds: f64,
    /// Seconds to judge it.
    pub judge_seconds: f64,
    /// Seconds from the first start (and before a resumption), judging included.
    pub total_seconds: f64,
}

impl EpochRecord {
    /// Returns the error that decides: on the validation entries, or without them on the training
    /// entries.
    pub fn deciding(&self) -> &Scores {
        self.val.as_ref().unwrap_or(&self.train)
    }
}

/// The end of one round.
#[derive(Clone, Debug, PartialEq)]
pub struct StartReport {
    /// Its start, from 0.
    pub start: usize,
    /// The seed of the start.
    pub seed: u64,
    /// The ridge, by block.
    pub reg: Vec<f64>,
    /// Its best epoch.
    pub best: EpochRecord,
    /// Epochs done.
    pub epochs: usize,
    /// Why it stopped.
    pub stop: StopReason,
}

/// The best model of a run and how it came about.
pub struct CompleteOutcome {
    /// What the blocks mean.
    pub network: Network,
    /// The parameters with the least deciding error.
    pub blocks: Vec<Matrix<f64>>,
    /// Added to the model's values.
    pub offset: f64,
    /// The components that are no biases; all of them without biases.
    pub rank: usize,
    /// The record of the best epoch of the best round.
    pub best: EpochRecord,
    /// Every epoch of every round.
    pub history: Vec<EpochRecord>,
    /// Why the best round stopped.
    pub stop: StopReason,
    /// How far the model is from a stationary point of its objective, for algorithms of gradients: 0
    /// at one, about 1 where all entries ask for the same change.
    pub imbalance: Option<f64>,
    /// The root mean square of the training entries.
    pub size: f64,
    /// Every round.
    pub starts: Vec<StartReport>,
    /// The best of them, from 0; of equal errors the earliest.
    pub best_start: usize,
    /// How many training entries were held out to choose the ridge by; the model was fitted to all of
    /// them in the last round, unless the run was cut short.
    pub held_out: Option<usize>,
    /// Predictions without a model.
    pub baselines: Vec<Baseline>,
    /// Slices without a training entry, by mode: the model knows nothing of them.
    pub unseen: Vec<u64>,
    /// Why kernels are interpreted, if they are.
    pub interpreted: Option<String>,
    /// Seconds to schedule and build.
    pub build_seconds: f64,
    /// Seconds of all epochs.
    pub seconds: f64,
}

/// The imbalance above which a model is far from a stationary point.
const FAR: f64 = 0.1;
/// The share of the entries' size below which an error is small, so that little is left to fall.
const SMALL: f64 = 1e-2;
/// The fall of the objective in the last epoch, as a share, above which more epochs would help.
const FALLING: f64 = 1e-2;

impl CompleteOutcome {
    /// Tells whether the fit ended far from a stationary point of its objective.
    ///
    /// That is told by the imbalance or, for algorithms without gradients, by an objective that still
    /// fell when the epochs were used up.
    pub fn is_unfinished(&self) -> bool {
        let falls = || {
            let values: Vec<f64> = self.course().map(|record| record.objective).collect();
            let last_two = values.last_chunk::<2>();
            self.stop == StopReason::IterationLimit
                && last_two.is_some_and(|[before, last]| before - last > FALLING * last.abs())
        };
        self.best.train.rmse > SMALL * self.size
            && self.imbalance.map_or_else(falls, |imbalance| imbalance > FAR)
    }

    /// Returns the epochs of the best round.
    pub fn course(&self) -> impl Iterator<Item = &EpochRecord> {
        self.history.iter().filter(|record| record.restart == self.best_start + 1)
    }

    /// Returns the model.
    ///
    /// A CP model has unit columns with their weights, the largest first, then a component for the
    /// bias of each mode, then one for the global offset.
    ///
    /// # Errors
    ///
    /// If there is no memory.
    pub fn model(&self, kind: &ModelKind) -> Result<Model<f64>, SolverError> {
        Ok(match kind {
            ModelKind::Cp { .. } => Model::Cp(self.cp_model()?),
            ModelKind::Tucker { ranks } => {
                let (core, factors) = self.blocks.split_last().ok_or_else(no_block)?;
                let shape = IxDyn(ranks);
                let core = ArrayD::from_shape_vec(shape, elements(core)).map_err(shapeless)?;
                let factors = factors.iter().map(Matrix::try_clone).collect::<Result<_, _>>()?;
                Model::Tucker(TuckerModel::new(core, factors)?)
            }
            ModelKind::Train { ranks } => {
                let rank = |bond: Option<usize>| bond.and_then(|b| ranks.get(b)).map_or(1, |r| *r);
                let core = |(mode, block): (usize, &Matrix<f64>)| {
                    let (left, right) = (rank(mode.checked_sub(1)), rank(Some(mode)));
                    let extent = self.network.extents()[mode] as usize;
                    // Stored with the mode first, it stands between the bonds in the model.
                    let core = Array3::from_shape_vec((extent, left, right), elements(block));
                    Ok(core
                        .map_err(shapeless)?
                        .permuted_axes([1, 0, 2])
                        .as_standard_layout()
                        .into_owned())
                };
                let cores = self.blocks.iter().enumerate().map(core);
                let cores = cores.collect::<Result<Vec<_>, SolverError>>()?;
                let order = ModeOrder::natural(cores.len());
                Model::Tt(TtModel::new(cores, order)?)
            }
        })
    }

    fn cp_model(&self) -> Result<CpModel<f64>, SolverError> {
        let columns = self.blocks.first().map_or(0, Matrix::cols);
        let norms: Vec<Vec<f64>> = self.blocks.iter().map(column_norms).collect();
        let weight = |r: usize| norms.iter().map(|norms| norms[r]).product::<f64>();
        let mut order: Vec<usize> = (0..self.rank).collect();
        order.sort_by(|&a, &b| weight(b).total_cmp(&weight(a)).then(a.cmp(&b)));
        order.extend(self.rank..columns);
        let constant = usize::from(self.offset != 0.0);
        let mut weights: Vec<f64> =
            order.iter().map(|&r| if r < self.rank { weight(r) } else { 1.0 }).collect();
        weights.extend((0..constant).map(|_| self.offset));
        // What stands for ones in a fit.
        let level = |mode: usize, column: usize| -> f64 {
            let others = self.blocks.iter().enumerate().filter(|(other, _)| *other != mode);
            others.map(|(_, block)| block.row(0)[column]).product()
        };
        let bias = |mode: usize, column: usize, value: f64| {
            if column == self.rank + mode { value * level(mode, column) } else { 1.0 }
        };
        let factor = |(mode, block): (usize, &Matrix<f64>)| {
            let mut factor = Matrix::zeros(block.rows(), columns + constant)?;
            for row in 0..block.rows() {
                let (to, from) = (factor.row_mut(row), block.row(row));
                for (to, &r) in to.iter_mut().zip(&order) {
                    let norm = norms[mode][r];
                    *to = match r < self.rank {
                        true if norm > 0.0 => from[r] / norm,
                        true => from[r],
                        false => bias(mode, r, from[r]),
                    };
                }
                to[columns..].fill(1.0);
            }
            Ok(factor)
        };
        let factors = self.blocks.iter().enumerate().map(factor);
        let factors = factors.collect::<Result<Vec<_>, SolverError>>()?;
        Ok(CpModel::new(weights, factors)?)
    }
}

/// The elements of a block, without padding.
fn elements(block: &Matrix<f64>) -> Vec<f64> {
    (0..block.rows()).flat_map(|row| block.row(row).iter().copied()).collect()
}

fn no_block() -> SolverError {
    SolverError::Data("a model without blocks".into())
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` asks for")]
fn shapeless(error: ShapeError) -> SolverError {
    SolverError::Data(error.to_string())
}

/// Returns the norms of the columns of a block.
pub(crate) fn column_norms(block: &Matrix<f64>) -> Vec<f64> {
    let mut sums = vec![0.0; block.cols()];
    for row in 0..block.rows() {
        sums.iter_mut().zip(block.row(row)).for_each(|(sum, value)| *sum += value * value);
    }
    sums.into_iter().map(f64::sqrt).collect()
}
