//! From a file to kernels that are ready to run.

use decompose_common::model::Model;
use decompose_core::sweep::TreeLayout;
use decompose_formats::{Coo, ModeOrder, PatternCounts, Unit, Value, counted};
use decompose_tt::bonds::{self, Ordering};
use decompose_tt::{Kernels, Method, Ranks, Start, Train, check_start, kernels};
use serde_json::json;

use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::memory::{Forecast, Needs};
use crate::run::tensor::{self, TensorFacts};
use crate::tt::args::{Init, OrderChoice};
use crate::tt::memory::{self, Planned, REMEDY};
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
    pub(crate) trees: Vec<TreeLayout>,
    pub(crate) predicted_seconds: Option<f64>,
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
        check(settings, tensor.extents())?;
        let before = Forecast::before_plan(tensor, format, settings, Needs::default());
        before.check(REMEDY)?;
        before.sort(REMEDY)?;
        Ok(before)
    });
    let (tensor, facts, before) = loaded?;
    let (tensor, unit) = tensor::in_unit(tensor, &facts.report.file, console)?;
    let given = given.map(|(mut train, order)| {
        train.scale_to(unit.inverse());
        (train, order)
    });
    let planned = console.phase("plan", || {
        let counts = PatternCounts::of(&tensor);
        let ordering = ordering(settings, &counts, given.as_ref().map(|given| &given.1));
        plan(settings, (tensor, counts), before, ordering)
    });
    let (tensor, counts, ordering, planned) = planned?;
    tell_plan(&ordering, &planned, settings, console)?;
    planned.forecast.build(REMEDY)?;
    let start = start(settings, given, &ordering.order)?;
    // Before kernels are compiled.
    let along: Vec<u64> =
        ordering.order.modes().iter().map(|&mode| tensor.extents()[mode]).collect();
    check_start::<V>(&start, &settings.config, &along)?;
    let (work, seconds) = console
        .screen
        .phase("build", || build(settings, (tensor, counts), &planned, (&ordering, start)));
    console.phases.add("build", seconds);
    let work = work?;
    tell_build(&work, seconds, console)?;
    memory::solve(&planned, settings)?;
    let Planned { trees, forecast, seconds: predicted_seconds } = planned;
    let facts = Facts { tensor: facts, unit, ordering, trees, predicted_seconds, forecast };
    Ok(Prepared { work, facts })
}

/// Checks the options that depend on order and extents.
fn check(settings: &Settings, extents: &[u64]) -> Result<(), Failure> {
    let modes = match &settings.order {
        Some(OrderChoice::Given(order)) if order.modes().len() != extents.len() => {
            let why =
                format!("--order {order} does not list each of the {} modes once", extents.len());
            return Err(Failure::input(why));
        }
        Some(OrderChoice::Given(order)) => order.clone(),
        // Whether a list of ranks fits the chosen order shows when it is chosen.
        _ => ModeOrder::natural(extents.len()),
    };
    let extents: Vec<u64> = modes.modes().iter().map(|&mode| extents[mode]).collect();
    match (settings.order.as_ref(), &settings.config.ranks) {
        (Some(OrderChoice::Auto), Ranks::Each(ranks)) if ranks.len() + 1 == extents.len() => Ok(()),
        _ => Ok(settings.config.check(&extents)?),
    }
}

/// Reads the train that `--init` names.
fn given(init: &Init) -> Result<Option<(Train, ModeOrder)>, Failure> {
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

/// Orders the modes: as asked, as in the train to start from, or naturally.
fn ordering(settings: &Settings, counts: &PatternCounts, given: Option<&ModeOrder>) -> Ordering {
    let cap = match &settings.config.ranks {
        Ranks::Uniform(rank) => Some(*rank),
        Ranks::Each(ranks) => ranks.iter().copied().max(),
        Ranks::Error { max_rank, .. } => *max_rank,
    };
    let order = counts.extents().len();
    match &settings.order {
        Some(OrderChoice::Auto) => bonds::choose(counts, cap),
        Some(OrderChoice::Given(order)) => bonds::predict(counts, order, cap),
        None => {
            let fits = given.filter(|given| given.modes().len() == order);
            let natural = ModeOrder::natural(order);
            bonds::predict(counts, fits.unwrap_or(&natural), cap)
        }
    }
}

type PlannedTensor<V> = (Coo<V>, PatternCounts, Ordering, Planned);

/// Renumbers the modes in train order and plans.
fn plan<V: Value>(
    settings: &Settings,
    (tensor, counts): (Coo<V>, PatternCounts),
    before: Forecast,
    mut ordering: Ordering,
) -> Result<PlannedTensor<V>, Failure> {
    let before = memory::with_needs(before, &tensor, &counts, (&ordering, settings));
    let tensor = tensor.permute_modes(&ordering.order)?;
    let counts = counts.permute_modes(&ordering.order);
    settings.config.check(tensor.extents())?;
    if settings.config.ranks.bound().is_none() {
        let ranks = settings.config.ranks.largest(tensor.extents())?;
        ordering.ranks = ranks.into_iter().map(|rank| rank as u64).collect();
    }
    let planned = memory::plan(&tensor, &counts, before, (&ordering, settings))?;
    Ok((tensor, counts, ordering, planned))
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

fn build<V: Value>(
    settings: &Settings,
    (tensor, counts): (Coo<V>, PatternCounts),
    planned: &Planned,
    (ordering, start): (&Ordering, Start),
) -> Result<Work<V>, Failure> {
    let method = settings.config.method;
    if method == Method::Svd {
        return Ok(Work::Direct(tensor, counts));
    }
    let order = tensor.order();
    let mut made = Kernels::build(tensor, &planned.trees, counts, settings.toolchain())?;
    // The ranks of dmrg show as it goes on.
    if method == Method::Als {
        let ranks = memory::guessed(ordering, settings);
        made.prepare(&kernels::of_sweep(method, order), &ranks)?;
    }
    Ok(Work::Sweeps(Box::new(made), start))
}

fn tell_plan(
    ordering: &Ordering,
    planned: &Planned,
    settings: &Settings,
    console: &Console,
) -> Result<(), Failure> {
    let bounded = if settings.config.ranks.bound().is_some() { "at most " } else { "" };
    let ranks = joined(&ordering.ranks, "-");
    let trees = joined(&planned.trees, ", ");
    let seconds = planned.seconds.map_or(String::new(), |seconds| {
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
        "trees": planned.trees.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "kernel_seconds": planned.seconds,
    });
    console.event("plan", facts)?;
    planned.forecast.tell(console)
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
