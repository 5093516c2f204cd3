//! `decompose schedule`: which loops compute an expression, what they cost, and why these.

pub(crate) mod args;
pub(crate) mod choose;
pub(crate) mod decide;
mod describe;
pub(crate) mod expr;
pub(crate) mod extents;
mod figures;
mod frontier;
pub(crate) mod input;
mod json;
pub(crate) mod measure;
mod outline;
mod partition;
mod result_format;
mod system;
pub(crate) mod table;
mod template_figures;

use decompose_common::interrupt;
use decompose_common::machine::hardware_threads;
use decompose_common::progress::{Screen, Verbosity};
use decompose_core::autoschedule::SearchLimits;
use decompose_core::codegen::emit_c;
use decompose_core::contract::preview;
use decompose_core::einsum::{Access, Expr, IndexNames};
use decompose_core::schedule::Storing;
use decompose_formats::Value;
use decompose_formats::stats::grouped;
use rayon::ThreadPoolBuilder;
use serde_json::json;

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::args::Precision;
use crate::schedule::args::{Emit, check_given_once};
use crate::schedule::choose::{Chooser, Pick, Selection};
use crate::schedule::decide::{Effort, When};
use crate::schedule::frontier::Compared;
use crate::schedule::input::ScheduleInput;
use crate::schedule::partition::Templates;
use crate::stdout;

pub(crate) use crate::schedule::args::{ScheduleArgs, SearchArgs};
pub(crate) use crate::schedule::describe::{how, met_together, workspace};
pub(crate) use crate::schedule::result_format::{
    operand_formats, refuse_array, result_form, typed,
};

/// Candidates that are listed unless asked otherwise.
const LISTED: usize = 20;

/// Runs the command.
///
/// # Errors
///
/// Bad options, an expression or operands that do not fit each other, an illegal schedule.
pub(crate) fn run(args: &ScheduleArgs) -> Result<Done, Failure> {
    // Compilers and solvers end with the process.
    interrupt::announce();
    let threads = start_threads(&args.search)?;
    match args.search.precision {
        Precision::F64 => run_in::<f64>(args, threads),
        Precision::F32 => run_in::<f32>(args, threads),
    }
}

/// Checks the options as a run does before it reads an operand.
///
/// # Errors
///
/// Bad options, or an expression that is none.
pub(crate) fn check(args: &ScheduleArgs) -> Result<(), Failure> {
    pose(args).map(drop)
}

/// Checks the operands as a run does when it has read them.
///
/// # Errors
///
/// Those of [`check`], and operands that do not fit the expression or each other.
pub(crate) fn admit(args: &ScheduleArgs) -> Result<(), Failure> {
    let mut screen = Screen::new(Verbosity::Quiet);
    ScheduleInput::<f64>::new(pose(args)?, (&args.input, &args.search.format), &mut screen)
        .map(drop)
}

/// Returns the expression, the names of its indices and nothing else: no file is read.
fn pose(args: &ScheduleArgs) -> Result<(Expr, IndexNames), Failure> {
    frontier::check(&args.frontier, &args.search)?;
    partition::check(&args.partition, &args.search)?;
    let (expr, names) = expr::parse(&args.expr)?;
    check_given_once(&args.input.tensor)?;
    for binding in &args.input.tensor {
        expr::inputs_called(&expr, &binding.name)?;
    }
    if args.measure && args.input.tensor.is_empty() {
        let name = &expr.inputs[0].tensor;
        return Err(Failure::input("--measure runs candidates on a tensor, and there is none")
            .help(format!("give it with --tensor {name}=FILE")));
    }
    Ok((expr, names))
}

fn run_in<V: Value>(args: &ScheduleArgs, threads: usize) -> Result<Done, Failure> {
    figures::check(args)?;
    let mut screen = Screen::new(Verbosity::Normal);
    let mut input =
        ScheduleInput::<V>::new(pose(args)?, (&args.input, &args.search.format), &mut screen)?;
    input.request.storing = args.once.then(Storing::default);
    let output = &input.request.expr.output.tensor;
    let formats = operand_formats(&args.search.format, |name| name == output);
    let chooser = Chooser::new(&input.request, (&args.search, &formats), threads)?;
    let limits = if args.all { SearchLimits::all() } else { SearchLimits::default() };
    let effort = Effort {
        limits: SearchLimits { solver_seconds: args.budget, ..limits },
        measure: if args.measure { When::Now } else { When::Asked },
        top: args.top.unwrap_or(decide::MEASURED),
        budget_seconds: args.budget,
    };
    let tensors = &input.tensors;
    if partition::is_asked(&args.search) {
        return by_templates(args, (&input, &chooser), threads, &mut screen);
    }
    let mut plan = decide::searched(&chooser, tensors, &effort, &mut screen)?;
    let stages = match frontier::is_asked(&args.search) {
        true => match Compared::new(args, &chooser, plan.choice(), &input.names) {
            Ok(stages) => Some(stages),
            Err(failure) if frontier::asks(&args.frontier) => return Err(failure),
            Err(failure) => {
                screen.warn(format!("without the stages: {}", failure.message()));
                None
            }
        },
        false => None,
    };
    for warning in stages.iter().flat_map(Compared::warnings) {
        screen.warn(warning);
    }
    if effort.measures(&plan, &chooser, tensors) {
        match stages.as_ref().and_then(Compared::entrant) {
            Some(pick) => plan.enter(pick, effort.top),
            None => plan.keep_first(effort.top),
        }
        interrupt::install_saying(
            "stopping: what is measured so far is printed; once more ends at once",
        );
        let (top, budget) = (plan.picks.len(), effort.budget_seconds);
        plan = measure::measure(plan, tensors, (top, budget), &chooser, &mut screen)?;
    }
    let pick = shown(args, &plan, stages.as_ref())?;
    let drawn = figures::draw(args, (&plan, pick), stages.as_ref(), &screen);
    tell(args, &input, (&plan, stages.as_ref()), threads)?;
    Ok(if interrupt::requested() { Done::Interrupted } else { drawn })
}

/// Searches partition templates.
fn by_templates<V: Value>(
    args: &ScheduleArgs,
    (input, chooser): (&ScheduleInput<V>, &Chooser<'_>),
    threads: usize,
    screen: &mut Screen,
) -> Result<Done, Failure> {
    let (mut templates, mut plan) = Templates::new(args, chooser, screen)?;
    if args.measure {
        interrupt::install_saying(
            "stopping: what is measured so far is printed; once more ends at once",
        );
        plan = templates.measure(args, &input.tensors, chooser, screen)?;
    }
    let mut drawn = figures::draw(args, (&plan, plan.choice()), None, screen);
    if let Some(file) = &args.partition.plot_templates
        && templates.draw(&input.request.expr.to_string(), file, screen) == Done::Partly
    {
        drawn = Done::Partly;
    }
    match args.partition.templates {
        true => stdout::line(templates.table().trim_end())?,
        false if args.output.json => {
            let mut object = json::plan(input, &plan, threads)?;
            object["templates"] = templates.json();
            stdout::json(&object)?;
        }
        false => tell(args, input, (&plan, None), threads)?,
    }
    Ok(if interrupt::requested() { Done::Interrupted } else { drawn })
}

/// Returns the schedule that is printed and drawn: the row of the frontier that was asked for, or the choice.
fn shown<'a>(
    args: &ScheduleArgs,
    plan: &'a Selection,
    stages: Option<&'a Compared>,
) -> Result<&'a Pick, Failure> {
    match (args.frontier.row, stages) {
        (Some(row), Some(stages)) => stages.row(row),
        _ => Ok(plan.choice()),
    }
}

/// Prints what was asked for.
fn tell<V: Value>(
    args: &ScheduleArgs,
    input: &ScheduleInput<V>,
    (plan, stages): (&Selection, Option<&Compared>),
    threads: usize,
) -> Result<(), Failure> {
    let pick = shown(args, plan, stages)?;
    let text = match args.output.emit {
        Some(Emit::Nest) => pick.schedule.text(&pick.problem.expr),
        Some(Emit::Ir) => preview(&pick.problem, &pick.schedule)?.to_string(),
        Some(Emit::C) => emit_c(&preview(&pick.problem, &pick.schedule)?),
        Some(Emit::System) => system::explained(pick)?.system.to_string(),
        Some(Emit::Smt) => system::smt(pick)?,
        None if args.output.json => {
            let mut object = json::plan(input, plan, threads)?;
            object["stages"] = json!(stages.map(|stages| stages.json(plan)));
            return stdout::json(&object);
        }
        None => {
            let stages = stages.map(|stages| stages.report(&args.frontier, plan));
            report(args, input, plan, threads)? + &stages.unwrap_or_default()
        }
    };
    stdout::line(text.trim_end())
}

/// Everything, for people.
fn report<V: Value>(
    args: &ScheduleArgs,
    input: &ScheduleInput<V>,
    plan: &Selection,
    threads: usize,
) -> Result<String, Failure> {
    let pick = plan.choice();
    let request = &input.request;
    let mut text = format!("{:<22}{}\n", "expression", request.expr);
    let names: Vec<String> =
        input.names.iter().map(|(index, name)| format!("{index} = {name}")).collect();
    if !names.is_empty() {
        text += &format!("{:<22}{}\n", "indices", names.join(", "));
    }
    let operands = request.expr.operand_names();
    for (x, (nnz, source)) in request.sparse.iter().zip(&input.sources) {
        let access = Access {
            tensor: operands[x.input].clone(),
            indices: request.expr.inputs[x.input].indices.clone(),
        };
        let extents = access.indices.iter().map(|&index| request.extents.of(index).to_string());
        let extents = extents.collect::<Vec<_>>().join(" x ");
        let entries = if *nnz == 1 { "non-zero" } else { "non-zeros" };
        let nnz = grouped(*nnz);
        text +=
            &format!("{:<22}{access}: {extents}, {nnz} {entries}; {source}\n", "sparse operand");
    }
    text += &describe::result_line(request);
    text += &describe::pieces(&pick.problem);
    text += &describe::path_table(pick);
    let tree = if pick.trees.len() == 1 { "tree" } else { "trees" };
    text += &format!("\nnest on {tree} {}\n{}", pick.trees_typed(), describe::nest(pick)?);
    if plan.report.as_ref().is_some_and(|report| report.solved.is_some()) {
        text += &system::section(pick);
    }
    text += &format!("\n{}{}\n", describe::CostLines(pick, threads), describe::how(plan));
    if args.all || args.measure {
        let top = args.top.unwrap_or(LISTED);
        text += &format!("\n{}", table::ranked(plan, top));
    }
    Ok(text)
}

/// Starts the threads of the whole process, and returns their number.
pub(crate) fn start_threads(args: &SearchArgs) -> Result<usize, Failure> {
    let hardware = hardware_threads();
    let threads = args.threads.unwrap_or(hardware);
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(|error| Failure::input(format!("cannot start the threads: {error}")))?;
    Ok(threads)
}
