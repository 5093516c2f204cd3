//! From a file to kernels that are ready to run.

use decompose_common::model::Model;
use decompose_formats::{Coo, ModeOrder, PatternCounts, Unit, Value, counted};
use decompose_tt::bonds::Ordering;
use decompose_tt::{
    Kernels, Method, PlanRequest, Planner, Start, Train, TrainOrder, TtPlan, check_start,
};
use serde_json::json;

use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::memory::{Forecast, Needs};
use crate::run::tensor::{self, TensorFacts};
use crate::tt::args::Init;
use crate::tt::memory::{self, REMEDY};
use crate::tt::settings::{Settings, joined};

/// A run about to begin.
pub(crate) struct Prepared<V: Value> {
    pub(crate) work: Work<V>,
    pub(crate) facts: Facts,
}

/// What the method works on, its modes in train order.
pub(crate) enum Work<V: Value> {
    /// Kernels of an iteration and its start.
    Sweeps(Box<Kernels<V>>, Start),
    /// The list, from which `svd` builds its tree.
    Direct(Coo<V>, PatternCounts),
}

/// What was found and decided on the way.
pub(crate) struct Facts {
    pub(crate) tensor: TensorFacts,
    /// By which the solver's values are divided.
    pub(crate) unit: Unit,
    pub(crate) ordering: Ordering,
    pub(crate) plan: TtPlan,
    pub(crate) forecast: Forecast,
}

/// Reads, sorts, counts, orders the modes, plans and builds.
///
/// # Errors
///
/// Everything that can be wrong with the input; nothing is written.
pub(crate) fn prepare<V: Value>(
    settings: &Settings,
    console: &mut Console,
) -> Result<Prepared<V>, Failure> {
    let given = given(&settings.init)?;
    let loaded = tensor::load(settings, console, |tensor: &Coo<V>, format| {
        let request = request::<V>(settings, given.as_ref(), tensor.order());
        request.check(tensor.extents())?;
        let before = Forecast::before_plan(tensor, format, settings, Needs::default());
        before.check(REMEDY)?;
        before.sort(REMEDY)?;
        Ok((request, before))
    });
    let (tensor, facts, (request, before)) = loaded?;
    let (tensor, unit) = tensor::in_unit(tensor, &facts.report.file, console)?;
    let planned = console.phase("plan", || {
        let planner = Planner::new(&PatternCounts::of(&tensor), &request)?;
        let tensor = tensor.permute_modes(&planner.ordering().order)?;
        let planned = memory::plan(&tensor, &planner, request.options, before, settings)?;
        Ok::<_, Failure>((tensor, planner, planned))
    });
    let (tensor, planner, (plan, forecast)) = planned?;
    let ordering = planner.ordering().clone();
    tell_plan(&ordering, &plan, settings, console)?;
    forecast.tell(console)?;
    forecast.build(REMEDY)?;
    let given = given.map(|(mut train, order)| {
        train.scale_to(unit.inverse());
        (train, order)
    });
    let start = start(settings, given, &ordering.order)?;
    // Before kernels are compiled.
    check_start::<V>(&start, &settings.config, tensor.extents())?;
    let build = || match settings.config.method {
        Method::Svd => Ok(Work::Direct(tensor, planner.into_counts())),
        Method::Als | Method::Dmrg => {
            let kernels = planner.kernels(tensor, &plan, settings.toolchain())?;
            Ok::<_, Failure>(Work::Sweeps(Box::new(kernels), start))
        }
    };
    let (work, seconds) = console.screen.phase("build", build);
    console.phases.add("build", seconds);
    let work = work?;
    tell_build(&work, seconds, console)?;
    memory::solve(&forecast, settings)?;
    Ok(Prepared { work, facts: Facts { tensor: facts, unit, ordering, plan, forecast } })
}

/// What is asked for of a tensor of `order` modes: the order of the modes as typed, else that of the train to start
/// from if it has as many.
pub(super) fn request<'a, V: Value>(
    settings: &'a Settings,
    given: Option<&(Train, ModeOrder)>,
    order: usize,
) -> PlanRequest<'a> {
    let given = given.map(|(_, modes)| modes).filter(|modes| modes.modes().len() == order);
    let mut request = PlanRequest::new::<V>(&settings.config);
    request.options.threads = settings.threads;
    request.order = match (&settings.order, given) {
        (Some(order), _) => order.clone(),
        (None, Some(modes)) => TrainOrder::Given(modes.clone()),
        (None, None) => TrainOrder::Natural,
    };
    request
}

/// Reads the train that `--init` names.
pub(super) fn given(init: &Init) -> Result<Option<(Train, ModeOrder)>, Failure> {
    let Init::File(path) = init else { return Ok(None) };
    match Model::<f64>::read(path)? {
        Model::Tt(model) => Ok(Some((Train::of_model(&model), model.order().clone()))),
        other => Err(Failure::input(format!(
            "{} holds a {} model; --init needs a train",
            path.display(),
            other.kind().name()
        ))),
    }
}

fn start(
    settings: &Settings,
    given: Option<(Train, ModeOrder)>,
    order: &ModeOrder,
) -> Result<Start, Failure> {
    match (&settings.saved, given) {
        (Some(folder), _) => Ok(Start::Checkpoint(folder.clone())),
        (None, None) => Ok(Start::Random),
        (None, Some((train, modes))) if modes == *order => Ok(Start::Given(train)),
        (None, Some((_, modes))) => Err(Failure::input(format!(
            "the train of --init has the mode order {modes}, this run {order}"
        ))
        .help(format!("use --order {modes}"))),
    }
}

fn tell_plan(
    ordering: &Ordering,
    plan: &TtPlan,
    settings: &Settings,
    console: &Console,
) -> Result<(), Failure> {
    let bounded = if settings.config.ranks.bound().is_some() { "at most " } else { "" };
    let ranks = joined(&ordering.ranks, "-");
    let trees = joined(&plan.trees, ", ");
    let seconds = plan.seconds.map_or(String::new(), |seconds| {
        format!("; {seconds:.2e} s to run each kernel once expected")
    });
    console.screen.line(format!(
        "order    modes {}, ranks {bounded}{ranks}, {bounded}{:.3e} numbers",
        ordering.order, ordering.parameters
    ));
    console.screen.line(format!("plan     trees of modes {trees} in train order{seconds}"));
    let facts = json!({
        "mode_order": ordering.order.to_string(),
        "ranks": ordering.ranks,
        "trees": plan.trees.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "kernel_seconds": plan.seconds,
    });
    console.event("plan", facts)
}

fn tell_build<V: Value>(work: &Work<V>, seconds: f64, console: &Console) -> Result<(), Failure> {
    let Work::Sweeps(kernels, _) = work else { return Ok(()) };
    let notes = kernels.notes();
    let count = |origin: &str| notes.iter().filter(|note| note.origin == origin).count();
    let (compiled, cached) = (count("compiled"), count("cached"));
    let unneeded = count("interpreted");
    let how = match unneeded {
        0 => format!("{} compiled, {cached} cached", counted(compiled, "kernel", "kernels")),
        _ => format!("{} interpreted", counted(unneeded, "kernel", "kernels")),
    };
    console.screen.line(format!("build    trees and kernels {seconds:.2} s; {how}"));
    if let Some(why) = kernels.interpreted() {
        console.screen.warn(format!("kernels run in the interpreter, many times slower: {why}"));
    }
    console.event("build", json!({ "compiled": compiled, "cached": cached, "seconds": seconds }))
}
