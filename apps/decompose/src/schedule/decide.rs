//! The way to one schedule: the file that is given, the choice that was kept, or a search, with a
//! measurement behind it where that is asked for.

use decompose_common::progress::Screen;
use decompose_core::autoschedule::SearchLimits;
use decompose_core::contract::Choices;
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Value};

use crate::failure::Failure;
use crate::schedule::args::Search;
use crate::schedule::choose::{Chooser, How, Selection};
use crate::schedule::measure::measure;

/// Candidates that are measured unless asked otherwise.
pub(crate) const MEASURED: usize = 8;

/// Seconds of a measurement unless asked otherwise.
pub(crate) const BUDGET_SECONDS: f64 = 10.0;

/// How much is done to find a schedule.
#[derive(Clone, Debug)]
pub(crate) struct Effort {
    pub(crate) limits: SearchLimits,
    pub(crate) measure: When,
    /// Candidates that are measured.
    pub(crate) top: usize,
    pub(crate) budget_seconds: f64,
}

impl Effort {
    /// Tells whether the candidates of `plan` are to be measured.
    pub(crate) fn measures<V: Value>(
        &self,
        plan: &Selection,
        chooser: &Chooser<'_>,
        tensors: &[(usize, Coo<V>)],
    ) -> bool {
        let asked = chooser.args.scheduler == Some(Search::Measured);
        let kept = matches!(plan.how, How::Kept(..));
        !tensors.is_empty() && !kept && (asked || self.measure == When::Now)
    }
}

/// When candidates are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// If the scheduler is `measured` and no earlier choice was kept.
    Asked,
    /// In any case.
    Now,
}

/// Finds schedules of the chooser's request, whose sparse operands are `tensors` if there are files.
///
/// # Errors
///
/// An illegal schedule file, nothing found, or nothing to measure on.
pub(crate) fn plan<V: Value>(
    chooser: &Chooser<'_>,
    tensors: &[(usize, Coo<V>)],
    effort: &Effort,
    screen: &mut Screen,
) -> Result<Selection, Failure> {
    let plan = searched(chooser, tensors, effort, screen)?;
    match effort.measures(&plan, chooser, tensors) {
        true => measure(plan, tensors, (effort.top, effort.budget_seconds), chooser, screen),
        false => Ok(plan),
    }
}

/// Finds schedules, without a measurement.
///
/// # Errors
///
/// As [`plan`].
pub(crate) fn searched<V: Value>(
    chooser: &Chooser<'_>,
    tensors: &[(usize, Coo<V>)],
    effort: &Effort,
    screen: &mut Screen,
) -> Result<Selection, Failure> {
    let measured = chooser.args.scheduler == Some(Search::Measured);
    if measured && effort.measure == When::Asked {
        if let Some(plan) = kept(chooser) {
            return Ok(plan);
        }
        if tensors.is_empty() {
            let name = &chooser.request.expr.inputs[0].tensor;
            return Err(Failure::input("nothing was measured yet for this expression and tensor")
                .help(format!("give --tensor {name}=FILE, which is measured then")));
        }
    }
    match &chooser.args.schedule {
        Some(file) => chooser.given(file),
        None => screen.phase("search", || chooser.search(&effort.limits)).0,
    }
}

/// The choice of an earlier measurement.
fn kept(chooser: &Chooser<'_>) -> Option<Selection> {
    let toolchain = Toolchain::detect();
    chooser.kept(&Choices::within(toolchain.compiler().ok()?.cache().folder()))
}
