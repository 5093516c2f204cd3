//! What a decomposition returns.

use decompose_common::SolverError;
use decompose_common::history::IterationRecord;
use decompose_common::restarts::{RestartReport, best};
use decompose_formats::{ModeOrder, Unit, Value};

use crate::kernels::Kernels;
use crate::train::Train;
use crate::verify::{Verified, verify};

/// A train and how it came about.
#[derive(Clone, Debug)]
pub struct TtOutcome {
    /// The train, rounded to the precision of the run.
    pub train: Train,
    /// Its error, measured.
    pub verified: Verified,
    /// The bound that was asked for.
    pub bound: Option<f64>,
    /// The singular values of the train's unfolding at each bond, falling; of `svd`, those that
    /// were cut too.
    pub spectra: Vec<Vec<f64>>,
    /// Every start, in order: its iterations are sweeps, or bonds of `svd`; its error is the
    /// solver's own.
    pub restarts: Vec<RestartReport>,
    /// The number of the start that gave the train, from 0.
    pub best: usize,
    /// Every sweep of every start, or bond.
    pub history: Vec<IterationRecord>,
    /// Seconds of the solver, with the part before a resumption, without the verification.
    pub seconds: f64,
}

impl TtOutcome {
    /// Returns the outcome for data of which the solver saw the values divided by `unit`.
    ///
    /// # Errors
    ///
    /// [`SolverError::NotFinite`] for a core beyond the range of the precision `V`.
    pub fn in_unit<V: Value>(mut self, unit: Unit) -> Result<TtOutcome, SolverError> {
        self.train.scale_to(unit);
        let beyond = |&x: &f64| !V::from_f64(x).to_f64().is_finite();
        if let Some(at) = self.train.cores().iter().position(|core| core.iter().any(beyond)) {
            return Err(SolverError::overflow(format!("core {}", at + 1)));
        }
        let spectra = self.spectra.iter_mut().flatten();
        let norms = [&mut self.verified.norm, &mut self.verified.train_norm];
        spectra.chain(norms).for_each(|x| *x = unit.multiply(*x));
        self.verified.inner = unit.multiply(unit.multiply(self.verified.inner));
        Ok(self)
    }

    /// Returns the report of the start that gave the train.
    pub fn best(&self) -> &RestartReport {
        &self.restarts[self.best]
    }

    /// Tells whether the error keeps the bound, if there is one and rounding lets it be told.
    pub fn keeps_bound(&self) -> Option<bool> {
        self.verified.keeps(self.bound?)
    }

    /// Returns how many times fewer numbers the train has than the tensor has cells.
    pub fn compression(&self) -> f64 {
        let cells: f64 = self.train.extents().iter().map(|&extent| extent as f64).product();
        cells / self.train.parameters() as f64
    }

    /// Verifies `found` and puts the parts together; `spectra` are computed where not given.
    pub(crate) fn conclude<V: Value>(
        kernels: &mut Kernels<V>,
        found: FoundTrain,
        bound: Option<f64>,
    ) -> Result<TtOutcome, SolverError> {
        let natural = ModeOrder::natural(found.train.order());
        let train = Train::of_model(&found.train.to_model::<V>(natural)?);
        let spectra = match found.spectra {
            Some(spectra) => spectra,
            None => train.spectra()?,
        };
        let verified = verify(kernels, &train)?;
        let FoundTrain { restarts, history, seconds, .. } = found;
        let best = best(&restarts);
        Ok(TtOutcome { train, verified, bound, spectra, restarts, best, history, seconds })
    }
}

/// What a method leaves.
pub(crate) struct FoundTrain {
    pub(crate) train: Train,
    pub(crate) spectra: Option<Vec<Vec<f64>>>,
    pub(crate) restarts: Vec<RestartReport>,
    pub(crate) history: Vec<IterationRecord>,
    pub(crate) seconds: f64,
}
