//! The memory of a run beside what all solvers need, and the plan that fits.

use decompose_common::memory::foresee;
use decompose_core::sweep::PlanOptions;
use decompose_formats::{Coo, Value};
use decompose_tt::{Method, Planner, TrainBytes, TtPlan};

use crate::failure::Failure;
use crate::run::memory::{Forecast, figure_bytes};
use crate::run::plan::{Tried, fitting};
use crate::tt::settings::Settings;

/// What to do about a run that does not fit.
pub(crate) const REMEDY: &str =
    "lower --ranks or --max-rank, use --method als, use --precision f32";

/// Adds what a train needs beside list and trees.
///
/// Ranks that a bound on the error decides are guessed; each step is foreseen when those before it are known.
fn with_train<V: Value>(before: Forecast, planner: &Planner, settings: &Settings) -> Forecast {
    let TrainBytes { cores: factors, work, guessed } = planner.train_bytes(V::BYTES);
    let figures = figure_bytes(planner.counts().extents().len(), settings);
    let matrices = factors.saturating_add(figures.max(work));
    let peak = before.peak.max(before.base.saturating_add(matrices));
    Forecast { factors, work, figures, peak, guessed, ..before }
}

/// Foresees what the solver holds throughout, the trees being built: the train, and private copies.
///
/// # Errors
///
/// The numbers, if it does not fit.
pub(crate) fn solve(forecast: &Forecast, settings: &Settings) -> Result<(), Failure> {
    // Trains whose ranks are not known grow step by step.
    let held = match settings.config.method {
        Method::Als => forecast.factors.saturating_add(forecast.copies),
        Method::Dmrg | Method::Svd => 0,
    };
    Ok(foresee(held, || "the train and private copies of results".into(), REMEDY)?)
}

/// Plans the trees of the tensor, its modes in train order, by [`fitting`].
///
/// # Errors
///
/// If nothing fits, with the numbers of the best plan.
pub(crate) fn plan<V: Value>(
    tensor: &Coo<V>,
    planner: &Planner,
    options: PlanOptions,
    before: Forecast,
    settings: &Settings,
) -> Result<(TtPlan, Forecast), Failure> {
    let before = with_train::<V>(before, planner, settings);
    let try_plan = |options: &PlanOptions| {
        let plan = planner.plan(options)?;
        let forecast = before.with_trees(tensor, planner.pattern(), &plan.trees, plan.side_bytes);
        Ok(Tried { bytes: plan.tree_bytes + plan.side_bytes, forecast, plan })
    };
    let found = match settings.config.method {
        Method::Als | Method::Dmrg => fitting(tensor.order(), options, REMEDY, try_plan)?,
        // It walks one tree, whatever that takes.
        Method::Svd => try_plan(&options)?,
    };
    found.forecast.check(REMEDY)?;
    Ok((found.plan, found.forecast))
}
