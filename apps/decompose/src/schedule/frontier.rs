//! What the five stages of SparseAuto leave, for people and programs.

use std::fmt::Write;

use decompose_core::autoschedule::finish;
use decompose_core::autoschedule::smt::require;
use decompose_core::autoschedule::sparseauto::{
    Asked, FrontierPoint, StageReport, Staged, Stages, staged,
};
use decompose_core::error::CoreError;
use decompose_core::schedule::{Branched, Problem, Schedule};
use decompose_plot::{Frontier, FrontierMark, FrontierTime};
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::schedule::args::{FrontierArgs, Search, SearchArgs, Solver};
use crate::schedule::choose::{Chooser, How, Pick, Selection};

/// The last stage.
const LAST: usize = 5;

/// The stage that leaves the frontier.
const FRONTIER: usize = 3;

/// The names of the stages, all nests first.
const NAMES: [&str; 6] =
    ["all", "1 memory", "2 depths", "3 frontier", "4 iterations", "5 accesses"];

/// Refuses options that only `sparseauto` has, of another scheduler.
pub(crate) fn check(args: &FrontierArgs, search: &SearchArgs) -> Result<(), Failure> {
    let asked = args.frontier
        || args.stage.is_some()
        || args.plot_frontier.is_some()
        || !args.range.is_empty()
        || args.smt.is_some()
        || !args.assume.is_empty();
    if asked && !is_asked(search) {
        let why = "--frontier, --plot-frontier, --stage, --range, --assume and --smt are about \
                   sparseauto";
        return Err(Failure::input(why).help("add --scheduler sparseauto"));
    }
    Ok(())
}

/// Tells whether the scheduler is `sparseauto`.
pub(crate) fn is_asked(search: &SearchArgs) -> bool {
    search.scheduler == Some(Search::Named("sparseauto"))
}

/// The choice of the stages beside that of the machine model.
pub(crate) struct Compared {
    /// What the stages did, on the trees of the model's choice.
    staged: Staged,
    /// Their problem.
    problem: Problem,
    /// Their choice with its costs, or why it cannot run.
    pick: Result<Pick, CoreError>,
}

impl Compared {
    /// Takes the nests on the trees of `model` through the stages.
    pub(crate) fn new(
        args: &FrontierArgs,
        chooser: &Chooser<'_>,
        model: &Pick,
    ) -> Result<Compared, Failure> {
        let asked = Stages {
            ranges: args.range.clone(),
            assumptions: args.assume.clone(),
            smt: args.smt.map(|Solver::Z3| require()).transpose()?,
            ..Stages::default()
        };
        let problem = model.problem.clone();
        let staged = staged(&problem, &chooser.machine, &asked)?;
        let (path, nest) = staged.frontier[staged.chosen].example.clone();
        let pick = chooser.judged(finish(&problem, path, nest, &chooser.machine));
        Ok(Compared { staged, problem, pick })
    }

    /// Returns the choice of the stages if it can run.
    pub(crate) fn entrant(&self) -> Option<&Pick> {
        self.pick.as_ref().ok()
    }

    /// Returns the frontier as a figure; of nests that were measured, their memory against their seconds.
    pub(crate) fn figure(&self, plan: &Selection) -> Frontier {
        let title = self.problem.expr.to_string();
        if let How::Measured(_) = &plan.how {
            let mark = |(at, pick): (usize, &Pick)| FrontierMark {
                label: notation_of(&pick.problem, &pick.schedule),
                elements: pick.cost.buffer_elements as f64,
                time: plan.measured(at).unwrap_or(f64::NAN),
            };
            let marks = plan.picks.iter().enumerate().map(mark).collect();
            return Frontier { title, time: FrontierTime::Seconds, marks, chosen: Some(0) };
        }
        let mark = |point: &FrontierPoint| FrontierMark {
            label: notation(point, &self.problem),
            elements: point.elements,
            time: point.iterations,
        };
        let marks = self.staged.frontier.iter().map(mark).collect();
        let chosen = Some(self.staged.chosen);
        Frontier { title, time: FrontierTime::Iterations, marks, chosen }
    }

    /// Returns the counts of the stages, the choices, and the frontier if that was asked for.
    pub(crate) fn report(&self, args: &FrontierArgs, plan: &Selection) -> String {
        let staged = &self.staged;
        let last = args.stage.unwrap_or(LAST);
        let mut text = String::from("\nstage            nests     costs    seconds\n");
        // Writing to a string cannot fail.
        for stage in staged.stages.iter().filter(|stage| stage.stage <= last) {
            let costs = stage.costs.map_or("-".to_owned(), |costs| costs.to_string());
            let name = NAMES.get(stage.stage).copied().unwrap_or_default();
            let (nests, seconds) = (stage.nests, stage.seconds);
            let _ = writeln!(text, "{name:<12} {nests:>9} {costs:>9}  {seconds:>9.2e}");
        }
        if staged.cut {
            text += "the work ended before all nests were priced; a better one may be missing\n";
        }
        if staged.undecided > 0 {
            let pairs = staged.undecided;
            let _ =
                writeln!(text, "{pairs} comparisons of polynomials were left open; both were kept");
        }
        if let Some(asked) = &staged.asked {
            let Asked { solver, pairs, agreed, open, own_seconds, solver_seconds } = asked;
            let _ = writeln!(
                text,
                "{solver}: {agreed} of {pairs} comparisons agree, {open} are left open; \
                 {own_seconds:.2e} s here, {solver_seconds:.2e} s there"
            );
        }
        if args.frontier || args.stage.is_some() {
            text += &table(staged, &self.problem, args.stage.unwrap_or(FRONTIER));
        }
        if last == LAST {
            text += &self.choices(plan);
        }
        text
    }

    /// The choice of the stages beside that of the machine model.
    fn choices(&self, plan: &Selection) -> String {
        let point = &self.staged.frontier[self.staged.chosen];
        let mut text = format!("\n{:<22}{}\n", "stages choose", notation(point, &self.problem));
        let Duel { stages, model, .. } = self.duel(plan);
        let measured = |seconds: Option<f64>| {
            seconds.map_or(String::new(), |seconds| format!(", {seconds:.3e} s measured"))
        };
        let own = match &self.pick {
            Ok(pick) => format!("{:.3e} s predicted{}", pick.seconds, measured(stages)),
            Err(error) => error.to_string(),
        };
        let best = &plan.picks[0];
        let _ = writeln!(text, "{:<22}{own}", "");
        let _ =
            writeln!(text, "{:<22}{}", "model chooses", notation_of(&best.problem, &best.schedule));
        let same = if plan.is_first(self.entrant()) { ", as the stages do" } else { "" };
        let predicted = best.seconds;
        let _ = writeln!(text, "{:<22}{predicted:.3e} s predicted{}{same}", "", measured(model));
        if let (Some(stages), Some(model), "") = (stages, model, same) {
            let (right, ratio) = match model <= stages {
                true => ("the model is", model / stages),
                false => ("the stages are", stages / model),
            };
            let _ = writeln!(text, "{:<22}{right} right: {ratio:.2} of the other's time", "");
        }
        text
    }

    fn duel(&self, plan: &Selection) -> Duel {
        let at = self.entrant().and_then(|pick| plan.place(pick));
        Duel { at, stages: at.and_then(|at| plan.measured(at)), model: plan.measured(0) }
    }

    /// Returns everything as one object.
    pub(crate) fn json(&self, plan: &Selection) -> Json {
        let staged = &self.staged;
        let stage = |stage: &StageReport| {
            json!({
                "stage": stage.stage,
                // Beyond 2^64 the count is only known to be that large.
                "nests": u64::try_from(stage.nests).unwrap_or(u64::MAX),
                "costs": stage.costs,
                "seconds": stage.seconds,
            })
        };
        let point = |point: &FrontierPoint| {
            json!({
                "loop_depth": point.loop_depth,
                "memory_depth": point.memory_depth,
                "time": staged.symbols.text(&point.time),
                "memory": staged.symbols.text(&point.memory),
                "iterations": point.iterations,
                "elements": point.elements,
                "nests": u64::try_from(point.nests).unwrap_or(u64::MAX),
                "nest": notation(point, &self.problem),
                "passed": point.passed,
            })
        };
        let Duel { at, stages, model } = self.duel(plan);
        let best = &plan.picks[0];
        json!({
            "stages": staged.stages.iter().map(stage).collect::<Vec<_>>(),
            "cut": staged.cut,
            "undecided": staged.undecided,
            "solver": staged.asked.as_ref().map(|asked| json!({
                "version": asked.solver,
                "pairs": asked.pairs,
                "agreed": asked.agreed,
                "open": asked.open,
                "own_seconds": asked.own_seconds,
                "solver_seconds": asked.solver_seconds,
            })),
            "frontier": staged.frontier.iter().map(point).collect::<Vec<_>>(),
            "stages_choice": {
                "point": staged.chosen,
                "candidate": at,
                "schedule": self.entrant().map(|pick| pick.schedule.text(&self.problem.expr)),
                "predicted_seconds": self.entrant().map(|pick| pick.seconds),
                "measured_seconds": stages,
            },
            "model_choice": {
                "candidate": 0,
                "nest": notation_of(&best.problem, &best.schedule),
                "predicted_seconds": best.seconds,
                "measured_seconds": model,
            },
            "agree": plan.is_first(self.entrant()),
        })
    }
}

/// Where the choice of the stages stands, and the measured seconds of both choices.
struct Duel {
    at: Option<usize>,
    stages: Option<f64>,
    model: Option<f64>,
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
