//! From a file to kernels that are ready to run.

use decompose_core::optimisation::Optimisation;
use decompose_core::sweep::{BuildReport, Engine, SweepPlan};
use decompose_cp::Start;
use decompose_formats::{Coo, PatternCounts, Unit, Value};
use serde_json::json;

use crate::cp::memory::{self, REMEDY};
use crate::cp::settings::Settings;
use crate::cp::start;
use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::memory::Forecast;
use crate::run::plan::check_trees;
use crate::run::tensor::{self, TensorFacts};

/// A run about to begin.
pub(crate) struct Prepared<V: Value> {
    pub(crate) engine: Engine<V>,
    pub(crate) start: Start<V>,
    pub(crate) facts: Facts,
}

/// What was found and decided on the way.
pub(crate) struct Facts {
    pub(crate) tensor: TensorFacts,
    /// By which the solver's values are divided.
    pub(crate) unit: Unit,
    pub(crate) plan: SweepPlan,
    pub(crate) build: BuildReport,
    pub(crate) forecast: Forecast,
}

/// Reads, sorts, counts, plans, makes the start and builds the engine.
///
/// # Errors
///
/// Everything that can be wrong with the input; nothing is written.
pub(crate) fn prepare<V: Value>(
    settings: &Settings,
    console: &mut Console,
) -> Result<Prepared<V>, Failure> {
    let given = start::given(settings)?;
    let loaded = tensor::load(settings, console, |tensor: &Coo<V>, format| {
        check(settings, tensor)?;
        let needs = memory::needs(tensor, settings);
        let before = Forecast::before_plan(tensor, format, settings, needs);
        before.check(REMEDY)?;
        before.sort(REMEDY)?;
        Ok(before)
    });
    let (tensor, facts, before) = loaded?;
    let (tensor, unit) = tensor::in_unit(tensor, &facts.report.file, console)?;
    let planned = console.phase("plan", || {
        let counts = PatternCounts::of(&tensor);
        memory::plan(&tensor, &counts, before, settings)
    });
    let (plan, forecast) = planned?;
    tell_without(settings, console);
    tell_plan(&plan, &forecast, console)?;
    memory::start(&forecast)?;
    let (made, seconds) = console.screen.phase("start", || start::make(settings, given, &tensor));
    let start = made?;
    if forecast.start > 0 {
        console.phases.add("start", seconds);
    }
    // Before kernels are compiled.
    decompose_cp::check_start(&start, &settings.config, tensor.extents())?;
    forecast.build(REMEDY)?;
    let toolchain = settings.toolchain();
    let built = console.phase("build", || Engine::build(tensor, &plan, &toolchain));
    let (engine, build) = built?;
    console.build(&build)?;
    forecast.solve(build.side_bytes, REMEDY)?;
    let facts = Facts { tensor: facts, unit, plan, build, forecast };
    Ok(Prepared { engine, start, facts })
}

/// Checks the options that depend on the tensor's order.
///
/// # Errors
///
/// The option that does not suit it.
pub(super) fn check<V: Value>(settings: &Settings, tensor: &Coo<V>) -> Result<(), Failure> {
    settings.config.check(tensor.order())?;
    check_trees(&settings.trees, tensor.extents())
}

/// Says which optimisations are left out.
fn tell_without(settings: &Settings, console: &Console) {
    let names: Vec<&str> = settings.optimisations.left_out().map(Optimisation::name).collect();
    if !names.is_empty() {
        console.screen.line(format!("without  {}", names.join(", ")));
    }
}

fn tell_plan(plan: &SweepPlan, forecast: &Forecast, console: &Console) -> Result<(), Failure> {
    let trees: Vec<String> = plan.kernels.trees.iter().map(ToString::to_string).collect();
    let (seconds, merged) = (plan.seconds(), plan.merged());
    let of = match plan.merges.is_empty() {
        true => String::new(),
        false => format!("modes {} merged; ", merged.join(" and ")),
    };
    let panels = plan.panels_typed().map(|widths| format!("panels of {widths} columns; "));
    let panels = panels.unwrap_or_default();
    console.screen.line(format!(
        "plan     {of}{panels}trees of modes {}; {seconds:.2e} s of kernels an iteration expected",
        trees.join(", ")
    ));
    let facts = json!({
        "merged": merged, "panels": plan.panels, "trees": trees, "kernel_seconds": seconds,
    });
    console.event("plan", facts)?;
    forecast.tell(console)
}
