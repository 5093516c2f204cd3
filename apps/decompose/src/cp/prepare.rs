//! From a file to kernels that are ready to run.

use decompose_common::machine::size;
use decompose_core::sweep::{BuildReport, Engine, SweepPlan, Trees};
use decompose_cp::{CpError, Start};
use decompose_formats::io::ReadReport;
use decompose_formats::{Coo, PatternCounts, Value};
use serde_json::json;

use crate::cp::console::Console;
use crate::cp::memory::{self, Forecast};
use crate::cp::settings::Settings;
use crate::cp::start;
use crate::failure::Failure;
use crate::input::Input;
use crate::labels;
use crate::labels::ModeLabels;
use crate::pattern;

/// A run about to begin.
pub(crate) struct Prepared<V: Value> {
    pub(crate) engine: Engine<V>,
    pub(crate) start: Start<V>,
    pub(crate) facts: Facts,
}

/// What was found and decided on the way.
pub(crate) struct Facts {
    pub(crate) report: ReadReport,
    pub(crate) blake3: Option<String>,
    /// Non-zeros after merging.
    pub(crate) nnz: u64,
    /// Names of modes and indices.
    pub(crate) labels: Vec<ModeLabels>,
    /// Entries merged into others.
    pub(crate) merged: u64,
    pub(crate) plan: SweepPlan,
    pub(crate) build: BuildReport,
    pub(crate) forecast: Forecast,
    pub(crate) phases: Phases,
}

/// Wall times of the phases, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases(pub(crate) Vec<(&'static str, f64)>);

impl Phases {
    /// Appends a phase.
    pub(crate) fn add(&mut self, name: &'static str, seconds: f64) {
        self.0.push((name, seconds));
    }
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
    let mut phases = Phases::default();
    let mut input = settings.input.read::<V>(&mut console.screen)?;
    console.event("read", json!(input.report))?;
    phases.add("hash", input.hash_seconds);
    phases.add("read", input.read_seconds);
    check(settings, &input.tensor)?;
    let labels = labels(settings, &input.tensor, console)?;
    let before = Forecast::before_plan(&input.tensor, input.report.format, settings);
    before.check()?;
    let (merged, seconds) = input.tidy(settings.duplicates(), &mut console.screen)?;
    phases.add("sort", seconds);
    console.event("sort", json!({ "entries": input.tensor.nnz(), "merged": merged }))?;
    let Input { tensor, report, blake3, .. } = input;
    if tensor.norm_squared() <= 0.0 {
        return Err(CpError::ZeroTensor.into());
    }
    let (planned, seconds) = console.screen.phase("plan", || {
        let counts = pattern::of(&PatternCounts::of(&tensor));
        memory::plan(&tensor, &counts, before, settings)
    });
    let (plan, forecast) = planned?;
    phases.add("plan", seconds);
    tell_plan(&plan, &forecast, console)?;
    let (made, seconds) = console.screen.phase("start", || start::make(settings, given, &tensor));
    let start = made?;
    if forecast.start > 0 {
        phases.add("start", seconds);
    }
    let nnz = tensor.nnz() as u64;
    let toolchain = settings.toolchain();
    let (built, seconds) =
        console.screen.phase("build", || Engine::build(tensor, &plan, &toolchain));
    let (engine, build) = built?;
    phases.add("build", seconds);
    tell_build(&build, console)?;
    let facts = Facts { report, blake3, nnz, labels, merged, plan, build, forecast, phases };
    Ok(Prepared { engine, start, facts })
}

/// Checks the options that depend on the tensor's order.
fn check<V: Value>(settings: &Settings, tensor: &Coo<V>) -> Result<(), Failure> {
    let order = tensor.order();
    settings.config.check(order)?;
    if let Trees::Given(orders) = &settings.trees
        && let Some(wrong) = orders.iter().find(|tree| tree.order.modes().len() != order)
    {
        let why = format!("--trees {wrong} does not list each of the {order} modes once");
        return Err(Failure::input(why));
    }
    Ok(())
}

fn labels<V: Value>(
    settings: &Settings,
    tensor: &Coo<V>,
    console: &Console,
) -> Result<Vec<ModeLabels>, Failure> {
    let (file, name) = (&settings.input.file, settings.input.name());
    let (labels, warnings) =
        labels::find(file, &name, settings.labels.as_deref(), tensor.extents())?;
    for warning in &warnings {
        console.screen.warn(warning);
    }
    Ok(labels)
}

fn tell_plan(plan: &SweepPlan, forecast: &Forecast, console: &Console) -> Result<(), Failure> {
    let trees: Vec<String> = plan.trees.iter().map(ToString::to_string).collect();
    let seconds = plan.seconds();
    console.screen.line(format!(
        "plan     trees of modes {}; {seconds:.2e} s of kernels an iteration expected",
        trees.join(", ")
    ));
    let limit = forecast.limit.map(|limit| format!(" of {}", size(limit))).unwrap_or_default();
    console
        .screen
        .line(format!("memory   {}{limit} expected at the peak ({forecast})", size(forecast.peak)));
    console.event("plan", json!({ "trees": trees, "kernel_seconds": seconds }))?;
    console.event("memory", json!(forecast))
}

fn tell_build(build: &BuildReport, console: &Console) -> Result<(), Failure> {
    let BuildReport { build_seconds, compile_seconds, compiled, cached, interpreted, .. } = build;
    let kernels = match interpreted {
        Some(_) => "kernels are interpreted".to_owned(),
        None => format!("{compiled} kernels compiled, {cached} cached; {compile_seconds:.2} s"),
    };
    console.screen.line(format!("build    trees {build_seconds:.2} s; {kernels}"));
    if let Some(why) = interpreted {
        console.screen.warn(format!("kernels run in the interpreter, many times slower: {why}"));
    }
    console.event(
        "build",
        json!({
            "trees_seconds": build_seconds,
            "kernels_seconds": compile_seconds,
            "compiled": compiled,
            "cached": cached,
            "interpreted": interpreted,
            "tree_bytes": build.tree_bytes,
            "private_bytes": build.side_bytes,
        }),
    )
}
