//! From a file to kernels that are ready to run.

use decompose_common::model::Model;
use decompose_core::sweep::BuildReport;
use decompose_formats::io::Format;
use decompose_formats::{Coo, Matrix, PatternCounts, Unit, Value, counted};
use decompose_tucker::{
    Engine, Hosvd, Start, Target, Truncation, TuckerModel, TuckerPlan, Unfolding, check_start,
    hosvd,
};
use serde_json::json;

use crate::failure::Failure;
use crate::pattern;
use crate::run::console::Console;
use crate::run::memory::Forecast;
use crate::run::plan::{check_trees, refuse_blocks};
use crate::run::tensor::{self, TensorFacts};
use crate::tucker::args::AboveHosvd;
use crate::tucker::memory::{self, remedy};
use crate::tucker::settings::{Floor, RanksFrom, Settings, StartFrom, times};

/// A run about to begin.
pub(crate) struct Prepared<V: Value> {
    pub(crate) engine: Engine<V>,
    pub(crate) from: Beginning<V>,
    pub(crate) facts: Facts,
}

/// Where a run begins.
pub(crate) struct Beginning<V: Value> {
    pub(crate) start: Start<V>,
    /// The factors of a HOSVD to end above.
    pub(crate) floor: Option<Vec<Matrix<V>>>,
}

/// What was found and decided on the way.
pub(crate) struct Facts {
    pub(crate) tensor: TensorFacts,
    /// By which the solver's values are divided.
    pub(crate) unit: Unit,
    pub(crate) ranks: Vec<usize>,
    /// The bound on the relative error of a HOSVD.
    pub(crate) bound: Option<f64>,
    /// The singular values of the unfoldings, if a HOSVD was computed.
    pub(crate) unfoldings: Option<Vec<Unfolding>>,
    pub(crate) plan: TuckerPlan,
    pub(crate) build: BuildReport,
    pub(crate) forecast: Forecast,
}

/// Reads, sorts, counts, makes the start, plans and builds the engine.
///
/// # Errors
///
/// Everything that can be wrong with the input; nothing is written.
pub(crate) fn prepare<V: Value>(
    settings: &Settings,
    console: &mut Console,
) -> Result<Prepared<V>, Failure> {
    let (given, remedy) = (given(settings)?, remedy(settings));
    let loaded = tensor::load(settings, console, |tensor: &Coo<V>, format| {
        let admitted = admit(settings, tensor, format)?;
        admitted.2.without_start().check(remedy)?;
        admitted.2.sort(remedy)?;
        Ok(admitted)
    });
    let (tensor, facts, (target, floor, before)) = loaded?;
    let (mut tensor, unit) = tensor::in_unit(tensor, &facts.report.file, console)?;
    let given = given.map(|model| model.in_unit(unit.inverse()));
    let made = make_start(settings, given, &target, &mut tensor, console)?;
    let Made { start, ranks, bound, mut unfoldings } = made;
    let mut factors = None;
    if floor == Floor::Hosvd {
        let found = make_floor(settings, &ranks, &mut tensor, console)?;
        factors = Some(found.factors);
        unfoldings = Some(found.unfoldings);
    }
    let values = unfoldings.iter_mut().flatten().flat_map(|unfolding| &mut unfolding.values);
    values.for_each(|value| *value = unit.multiply(*value));
    // The starts are made: what they took is known.
    let before = before.without_start();
    memory::check_core(&tensor, &ranks, before, settings, floor)?;
    let planned = console.phase("plan", || {
        let counts = pattern::of(&PatternCounts::of(&tensor));
        memory::plan(&tensor, &counts, &ranks, before, settings, floor)
    });
    let (plan, forecast) = planned?;
    tell_plan(&plan, &ranks, console)?;
    forecast.tell(console)?;
    // Before kernels are compiled.
    check_start(&start, &settings.config(ranks.clone()), tensor.extents())?;
    forecast.build(remedy)?;
    let toolchain = settings.toolchain();
    let built = console.phase("build", || Engine::build(tensor, &plan, &toolchain));
    let (engine, build) = built?;
    console.build(&build)?;
    forecast.solve(build.side_bytes, remedy)?;
    let facts = Facts { tensor: facts, unit, ranks, bound, unfoldings, plan, build, forecast };
    Ok(Prepared { engine, from: Beginning { start, floor: factors }, facts })
}

/// Checks the options that depend on the tensor; returns the ranks, whether a HOSVD is compared, and what is foreseen
/// before the plan.
///
/// # Errors
///
/// The option that does not suit it.
pub(super) fn admit<V: Value>(
    settings: &Settings,
    tensor: &Coo<V>,
    format: Format,
) -> Result<(Target, Floor, Forecast), Failure> {
    let target = settings.target(tensor.extents())?;
    check_trees(&settings.trees, tensor.extents())?;
    refuse_blocks(&settings.trees)?;
    let forecast = |floor| {
        let needs = memory::needs(tensor, &target, settings, floor);
        Forecast::before_plan(tensor, format, settings, needs)
    };
    let mut floor = settings.floor(tensor.nnz());
    let mut before = forecast(floor);
    if !before.fits() && settings.above_hosvd == AboveHosvd::Auto {
        floor = Floor::None;
        before = forecast(floor);
    }
    Ok((target, floor, before))
}

/// Reads the model that `--init` names.
fn given<V: Value>(settings: &Settings) -> Result<Option<TuckerModel<V>>, Failure> {
    let StartFrom::File(path) = &settings.start else { return Ok(None) };
    match Model::read(path)? {
        Model::Tucker(model) => Ok(Some(model)),
        other => {
            let kind = other.kind().name();
            let why = format!("{}: a {kind} model, not Tucker", path.display());
            Err(Failure::input(why).help("give a model that `decompose tucker` wrote"))
        }
    }
}

/// A start, the ranks, and for a HOSVD the bound on its error and its singular values.
struct Made<V> {
    start: Start<V>,
    ranks: Vec<usize>,
    bound: Option<f64>,
    unfoldings: Option<Vec<Unfolding>>,
}

/// Makes the start.
fn make_start<V: Value>(
    settings: &Settings,
    given: Option<TuckerModel<V>>,
    target: &Target,
    tensor: &mut Coo<V>,
    console: &mut Console,
) -> Result<Made<V>, Failure> {
    let Some(truncation) = settings.start.truncation() else {
        let start = match (&settings.start, given) {
            (StartFrom::Checkpoint(folder), _) => Start::Checkpoint(folder.clone()),
            (_, Some(model)) => Start::Given(model),
            _ => Start::Random,
        };
        return match target {
            Target::Ranks(ranks) => {
                Ok(Made { start, ranks: ranks.clone(), bound: None, unfoldings: None })
            }
            Target::Error(_) => Err(Failure::internal("only a HOSVD finds ranks by an error")),
        };
    };
    let seed = settings.seed;
    console.screen.line(format!(
        "start    singular values of {}, mode by mode",
        counted(tensor.order(), "mode", "modes")
    ));
    let (found, seconds) =
        console.screen.phase("start", || hosvd(tensor, target, truncation, seed));
    let found = found?;
    console.phases.add("start", seconds);
    let ranks: Vec<usize> = found.factors.iter().map(|factor| factor.cols()).collect();
    let (shown, bound) = (times(&ranks), found.bound);
    console.screen.line(format!("start    HOSVD of ranks {shown}: error at most {bound:.3e}"));
    if let RanksFrom::Error(eps) = settings.ranks
        && bound > eps
    {
        let why = "singular values are known to 1e-7 of the largest";
        console
            .screen
            .warn(format!("the bound of --eps {eps:e} cannot be told from rounding: {why}"));
    }
    console.event("hosvd", json!({ "ranks": ranks, "bound": bound, "seconds": seconds }))?;
    let (start, unfoldings) = (Start::Factors(found.factors), Some(found.unfoldings));
    Ok(Made { start, ranks, bound: Some(bound), unfoldings })
}

/// Makes a HOSVD beside the start.
fn make_floor<V: Value>(
    settings: &Settings,
    ranks: &[usize],
    tensor: &mut Coo<V>,
    console: &mut Console,
) -> Result<Hosvd<V>, Failure> {
    let target = Target::Ranks(ranks.to_vec());
    let make = || hosvd(tensor, &target, Truncation::AtOnce, settings.seed);
    Ok(console.phase("compare", make)?)
}

fn tell_plan(plan: &TuckerPlan, ranks: &[usize], console: &Console) -> Result<(), Failure> {
    let trees: Vec<String> = plan.kernels.trees.iter().map(ToString::to_string).collect();
    let (seconds, merged) = (plan.seconds(), plan.merged());
    let shared = match merged.is_empty() {
        true => String::new(),
        false => format!("modes {} merged, ", merged.join(" and ")),
    };
    console.screen.line(format!(
        "plan     ranks {}, {shared}trees of modes {}; {seconds:.2e} s of kernels an iteration expected",
        times(ranks),
        if trees.is_empty() { "none".to_owned() } else { trees.join(", ") }
    ));
    let windows = plan.forming.iter().zip(1..).filter_map(|(forming, mode)| match forming {
        decompose_tucker::Forming::Windows(rows) => {
            Some(format!("mode {mode}: {}", counted(*rows, "row", "rows")))
        }
        decompose_tucker::Forming::Whole => None,
    });
    let windows: Vec<String> = windows.collect();
    if !windows.is_empty() {
        console.screen.line(format!("windows  {} at a time", windows.join(", ")));
    }
    let facts = json!({
        "ranks": ranks, "merged": merged, "trees": trees, "kernel_seconds": seconds,
        "forming": plan.forming,
    });
    console.event("plan", facts)
}
