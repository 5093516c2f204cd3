//! The completion: a ridge that is given or chosen, then the fit.

use decompose_common::SolverError;
use decompose_core::runtime::Toolchain;

use crate::choose_ridge::choose_and_refit;
use crate::config::{CompleteConfig, Reg, Start};
use crate::data::Data;
use crate::fit::fit;
use crate::outcome::{CompleteOutcome, Observer};

/// Fits a model to the training entries of `data` until its error on the validation entries
/// settles, from every start, and keeps the one with the least.
///
/// With [`Reg::Chosen`] every start is fitted at one ridge after the other, from strong to weak, and
/// the validation error decides on the ridge too.  Where there are no validation entries, a tenth of
/// the training entries, drawn by the seed, takes their place; the best of these models is then
/// fitted to all training entries with the ridge that was chosen.  Test entries decide nothing.
///
/// `observer` sees each round - a start, at one ridge - as epoch 0 and every epoch.  The result
/// depends on the entries, the options and the number of threads only; a run that is resumed from its
/// checkpoint ends with the same bits.
///
/// # Errors
///
/// [`SolverError`]: options that make no sense, entries outside the domain of the loss, no memory,
/// overflow at the start, a checkpoint of another run.
pub fn solve(
    data: Data<'_>,
    start: Start,
    config: &CompleteConfig,
    toolchain: &Toolchain,
    observer: &mut Observer<'_>,
) -> Result<CompleteOutcome, SolverError> {
    match (&config.reg, data.val) {
        (Reg::Chosen, None) => choose_and_refit(data, start, config, toolchain, observer),
        _ => fit(data, start, config, toolchain, observer),
    }
}
