//! What the five stages of SparseAuto leave, for people.

use std::fmt::Write;

use decompose_core::autoschedule::finish;
use decompose_core::autoschedule::sparseauto::{FrontierPoint, Staged, Stages, staged};
use decompose_core::cost::{Machine, estimate, on_threads};
use decompose_core::schedule::{Branched, Problem, Schedule};
use decompose_plot::{Frontier, FrontierMark};

use crate::failure::Failure;
use crate::schedule::args::{FrontierArgs, Search, SearchArgs};
use crate::schedule::choose::Pick;

/// The stage that leaves the frontier.
const FRONTIER: usize = 3;

/// The last stage.
const LAST: usize = 5;

/// Refuses options that only `sparseauto` has, of another scheduler.
pub(crate) fn check(args: &FrontierArgs, search: &SearchArgs) -> Result<(), Failure> {
    let asked = args.frontier
        || args.stage.is_some()
        || args.plot_frontier.is_some()
        || !args.range.is_empty()
        || !args.assume.is_empty();
    if asked && !is_asked(search) {
        let why = "--frontier, --plot-frontier, --stage, --range and --assume are about sparseauto";
        return Err(Failure::input(why).help("add --scheduler sparseauto"));
    }
    Ok(())
}

/// Tells whether the scheduler is `sparseauto`.
pub(crate) fn is_asked(search: &SearchArgs) -> bool {
    search.scheduler == Some(Search::Named("sparseauto"))
}

/// Takes the nests on the trees of `pick` through the stages.
pub(crate) fn stages(
    args: &FrontierArgs,
    pick: &Pick,
    machine: &Machine,
) -> Result<Staged, Failure> {
    let asked = Stages {
        ranges: args.range.clone(),
        assumptions: args.assume.clone(),
        ..Stages::default()
    };
    Ok(staged(&pick.problem, machine, &asked)?)
}

/// Returns the counts of the stages, the choice, and the frontier if that was asked for.
pub(crate) fn report(
    args: &FrontierArgs,
    staged: &Staged,
    pick: &Pick,
    machine: &Machine,
) -> String {
    let last = args.stage.unwrap_or(LAST);
    let mut text = String::from("\nstage            nests     costs    seconds\n");
    let names = ["all", "1 memory", "2 depths", "3 frontier", "4 iterations", "5 accesses"];
    // Writing to a string cannot fail.
    for stage in staged.stages.iter().filter(|stage| stage.stage <= last) {
        let costs = stage.costs.map_or("-".to_owned(), |costs| costs.to_string());
        let name = names.get(stage.stage).copied().unwrap_or_default();
        let _ = writeln!(text, "{name:<12} {:>9} {costs:>9}  {:>9.2e}", stage.nests, stage.seconds);
    }
    if staged.cut {
        text += "the work ended before all nests were priced; a better one may be missing\n";
    }
    if staged.undecided > 0 {
        let pairs = staged.undecided;
        let _ = writeln!(text, "{pairs} comparisons of polynomials were left open; both were kept");
    }
    if args.frontier || args.stage.is_some() {
        text += &table(staged, &pick.problem, args.stage.unwrap_or(FRONTIER));
    }
    if last == LAST {
        text += &choices(staged, pick, machine);
    }
    text
}

/// The costs that a stage leaves, as a table; the frontier is what the third leaves.
fn table(staged: &Staged, problem: &Problem, stage: usize) -> String {
    let least = stage.max(FRONTIER);
    let mut rows = vec![
        ["", "loops", "dims", "nests", "iterations", "elements", "time", "memory", "nest"]
            .map(str::to_owned),
    ];
    for (at, point) in staged.frontier.iter().enumerate() {
        if point.passed < least {
            continue;
        }
        rows.push([
            if at == staged.chosen { "*" } else { "" }.to_owned(),
            point.loop_depth.to_string(),
            point.memory_depth.to_string(),
            point.nests.to_string(),
            format!("{:.3e}", point.iterations),
            format!("{}", point.elements),
            staged.symbols.text(&point.time),
            staged.symbols.text(&point.memory),
            notation(point, problem),
        ]);
    }
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::from("\n");
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            1..=5 => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
    }
    text
}

/// The choice of the stages beside that of the machine model.
fn choices(staged: &Staged, pick: &Pick, machine: &Machine) -> String {
    let point = &staged.frontier[staged.chosen];
    let (path, nest) = point.example.clone();
    let schedule = finish(&pick.problem, path, nest, machine);
    let mut text = format!("\n{:<22}{}\n", "stages choose", notation(point, &pick.problem));
    let predicted = seconds(&pick.problem, &schedule, machine);
    let legal = match schedule.verify(&pick.problem) {
        Ok(()) => String::new(),
        Err(error) => format!("; {error}"),
    };
    let own = notation_of(&pick.problem, &pick.schedule);
    let _ = writeln!(text, "{:<22}{predicted:.3e} s predicted{legal}", "");
    let _ = writeln!(text, "{:<22}{own}", "model chooses");
    let same = if pick.schedule == schedule { ", as the stages do" } else { "" };
    let _ = writeln!(text, "{:<22}{:.3e} s predicted{same}", "", pick.seconds);
    text
}

fn seconds(problem: &Problem, schedule: &Schedule, machine: &Machine) -> f64 {
    let cost = estimate(problem, schedule, machine);
    on_threads(problem, schedule, &cost, machine, machine.threads).seconds
}

fn notation(point: &FrontierPoint, problem: &Problem) -> String {
    let (path, nest) = &point.example;
    let branched = Branched::of(&problem.expr, path, nest);
    branched.map_or_else(|| nest.to_string(), |branched| branched.notation(problem))
}

/// The notation of a schedule; its nest if it is none of branches.
fn notation_of(problem: &Problem, schedule: &Schedule) -> String {
    let branched = Branched::of(&problem.expr, &schedule.path, &schedule.nest);
    branched.map_or_else(|| schedule.nest.to_string(), |branched| branched.notation(problem))
}

/// The frontier as a figure.
pub(crate) fn figure(staged: &Staged, problem: &Problem) -> Frontier {
    let mark = |point: &FrontierPoint| FrontierMark {
        label: notation(point, problem),
        elements: point.elements,
        iterations: point.iterations,
    };
    Frontier {
        title: problem.expr.to_string(),
        marks: staged.frontier.iter().map(mark).collect(),
        chosen: Some(staged.chosen),
    }
}
