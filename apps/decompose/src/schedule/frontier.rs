//! What the five stages of SparseAuto leave, for people and programs.

use std::fmt::Write;

use decompose_core::autoschedule::finish;
use decompose_core::autoschedule::smt::require;
use decompose_core::autoschedule::sparseauto::{
    Asked, AskedNest, FrontierPoint, Origin, StageReport, Staged, Stages, Standing, staged,
};
use decompose_core::cost::symbolic::Range;
use decompose_core::einsum::{Index, IndexNames};
use decompose_core::error::CoreError;
use decompose_core::schedule::{Branched, Problem, Schedule};
use decompose_plot::{Frontier, FrontierMark, FrontierTime};
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::schedule::args::{FrontierArgs, ScheduleArgs, Search, SearchArgs, Solver};
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
    if asks(args) && !is_asked(search) {
        let why = "--frontier, --plot-frontier, --stage, --row, --range, --assume and --smt are \
                   about sparseauto";
        return Err(Failure::input(why).help("add --scheduler sparseauto"));
    }
    Ok(())
}

/// Tells whether anything is asked of the stages or the frontier.
pub(crate) fn asks(args: &FrontierArgs) -> bool {
    args.frontier
        || args.stage.is_some()
        || args.plot_frontier.is_some()
        || !args.range.is_empty()
        || args.smt.is_some()
        || args.row.is_some()
        || !args.assume.is_empty()
}

/// Tells whether the scheduler is `sparseauto`.
pub(crate) fn is_asked(search: &SearchArgs) -> bool {
    search.scheduler == Some(Search::Named("sparseauto"))
}

/// The choice of the stages beside that of the machine model.
pub(crate) struct Compared {
    /// What the stages did, on all trees.
    staged: Staged,
    /// The schedule of each row of the frontier with its costs, or why it cannot run.
    picks: Vec<Result<Pick, CoreError>>,
    /// The problem of each row.
    problems: Vec<Problem>,
    /// What the sizes of the problem break.
    warnings: Vec<String>,
}

impl Compared {
    /// Takes the nests on the trees of `chooser` through the stages, with that of `model` beside the frontier.
    pub(crate) fn new(
        args: &ScheduleArgs,
        chooser: &Chooser<'_>,
        model: &Pick,
        names: &IndexNames,
    ) -> Result<Compared, Failure> {
        let FrontierArgs { range, assume, smt, .. } = &args.frontier;
        let mut trees = chooser.problems();
        let levels = |problem: &Problem| -> Vec<(usize, Vec<Index>)> {
            problem.sparse.iter().map(|x| (x.input, x.levels().to_vec())).collect()
        };
        let tree = trees.iter().position(|tree| levels(tree) == levels(&model.problem));
        let tree = tree.unwrap_or_else(|| {
            trees.push(model.problem.clone());
            trees.len() - 1
        });
        let (path, nest) = (model.schedule.path.clone(), model.schedule.nest.clone());
        let lettered = |range: &Range| range.clone().lettered(names);
        let mut asked = Stages {
            ranges: range.iter().map(lettered).collect(),
            assumptions: assume.iter().map(|one| one.clone().lettered(names)).collect(),
            smt: smt.map(|Solver::Z3| require()).transpose()?,
            nest: Some(AskedNest { tree, path, nest }),
            ..Stages::default()
        };
        if let Some(dims) = args.search.max_buffer_dims {
            asked.memory_depth = dims.saturating_add(1);
        }
        let staged = staged(&trees, &chooser.machine, &asked)?;
        let of = |point: &FrontierPoint| {
            if point.origin == Origin::Asked {
                return Ok(model.clone());
            }
            let (path, nest) = point.example.clone();
            chooser.judged(finish(&trees[point.tree], path, nest, &chooser.machine))
        };
        let picks = staged.frontier.iter().map(of).collect();
        let problems = staged.frontier.iter().map(|point| trees[point.tree].clone()).collect();
        let warnings = broken(&staged, &trees[0], &asked);
        Ok(Compared { staged, picks, problems, warnings })
    }

    /// Returns the choice of the stages if it can run.
    pub(crate) fn entrant(&self) -> Option<&Pick> {
        self.picks.get(self.staged.chosen)?.as_ref().ok()
    }

    /// Returns what the sizes of the problem break.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the schedule of row `row`, counted from 1.
    pub(crate) fn row(&self, row: usize) -> Result<&Pick, Failure> {
        let rows = self.picks.len();
        match row.checked_sub(1).and_then(|at| self.picks.get(at)) {
            Some(Ok(pick)) => Ok(pick),
            Some(Err(error)) => Err(Failure::input(format!("row {row} cannot run: {error}"))
                .help("--frontier lists the rows; choose another one")),
            None => Err(Failure::input(format!("there is no row {row}; the frontier has {rows}"))
                .help("--frontier lists the rows")),
        }
    }

    /// Returns the frontier as a figure; of nests that were measured, their memory against their seconds.
    pub(crate) fn figure(&self, plan: &Selection) -> Frontier {
        let title = plan.choice().problem.expr.to_string();
        if let How::Measured(_) = &plan.how {
            let mark = |(at, pick): (usize, &Pick)| FrontierMark {
                label: notation_of(&pick.problem, &pick.schedule),
                elements: pick.cost.buffer_elements as f64,
                time: plan.measured(at).unwrap_or(f64::NAN),
            };
            let marks = plan.picks.iter().enumerate().map(mark).collect();
            let (time, chosen) = (FrontierTime::Seconds, Some(plan.chosen));
            return Frontier { title, time, marks, chosen };
        }
        let mark = |(at, point): (usize, &FrontierPoint)| FrontierMark {
            label: self.notation(at),
            elements: point.elements,
            time: point.iterations,
        };
        let marks = self.staged.frontier.iter().enumerate().map(mark).collect();
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
        if let Some(stage) = args.stage.filter(|stage| *stage < FRONTIER) {
            text += &depths(staged, stage);
        }
        if args.frontier {
            text += &self.table(0);
        } else if let Some(stage) = args.stage.filter(|stage| *stage >= FRONTIER) {
            text += &self.table(stage);
        }
        if last == LAST {
            text += &self.choices(plan);
        }
        text
    }

    /// The choice of the stages beside that of the machine model.
    fn choices(&self, plan: &Selection) -> String {
        let chosen = self.staged.chosen;
        let mut text = format!("\n{:<22}{}\n", "stages choose", self.notation(chosen));
        let Duel { stages, model, .. } = self.duel(plan);
        let measured = |seconds: Option<f64>| {
            seconds.map_or(String::new(), |seconds| format!(", {seconds:.3e} s measured"))
        };
        let own = match &self.picks[chosen] {
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
        let point = |(at, point): (usize, &FrontierPoint)| {
            let pick = self.picks[at].as_ref().ok();
            json!({
                "row": at + 1,
                "tree": pick.map(Pick::trees_typed),
                "schedule": pick.map(|pick| pick.schedule.text(&pick.problem.expr)),
                "predicted_seconds": pick.map(|pick| pick.seconds),
                "beaten": point.standing == Standing::Beaten,
                "model": point.origin == Origin::Asked,
                "loop_depth": point.loop_depth,
                "memory_depth": point.memory_depth,
                "time": staged.time(point),
                "memory": staged.memory(point),
                "iterations": point.iterations,
                "elements": point.elements,
                "nests": u64::try_from(point.nests).unwrap_or(u64::MAX),
                "nest": self.notation(at),
                "passed": point.passed,
            })
        };
        let Duel { at, stages, model } = self.duel(plan);
        let best = &plan.picks[0];
        json!({
            "stages": staged.stages.iter().map(stage).collect::<Vec<_>>(),
            "depths": staged.depths.iter().map(|one| json!({
                "loop_depth": one.loops,
                "memory_depth": one.dims,
                "nests": u64::try_from(one.nests).unwrap_or(u64::MAX),
                "passed": one.passed,
            })).collect::<Vec<_>>(),
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
            "frontier": staged.frontier.iter().enumerate().map(point).collect::<Vec<_>>(),
            "stages_choice": {
                "point": staged.chosen,
                "candidate": at,
                "schedule": self.entrant().map(|pick| pick.schedule.text(&pick.problem.expr)),
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

    /// The costs that stage `stage` leaves, as a table; of stage 0 all rows.
    fn table(&self, stage: usize) -> String {
        let staged = &self.staged;
        let names = [
            "", "row", "loops", "dims", "nests", "iterations", "elements", "tree", "", "time",
            "memory", "nest",
        ];
        let mut rows = vec![names.map(str::to_owned)];
        for (at, point) in staged.frontier.iter().enumerate() {
            if point.passed < stage {
                continue;
            }
            let mark = match (at == staged.chosen, point.origin) {
                (true, Origin::Asked) => "*m",
                (true, Origin::Searched) => "*",
                (false, Origin::Asked) => "m",
                (false, Origin::Searched) => "",
            };
            let tree = self.picks[at].as_ref().map_or("-".to_owned(), Pick::trees_typed);
            let beaten = if point.standing == Standing::Beaten { "beaten" } else { "" };
            rows.push([
                mark.to_owned(),
                (at + 1).to_string(),
                point.loop_depth.to_string(),
                point.memory_depth.to_string(),
                point.nests.to_string(),
                format!("{:.3e}", point.iterations),
                format!("{}", point.elements),
                tree,
                beaten.to_owned(),
                staged.time(point),
                staged.memory(point),
                self.notation(at),
            ]);
        }
        aligned(&rows)
            + "marks: * the stages choose it, m the model does; beaten: another row takes no more iterations \
               and elements for all sizes\n"
    }

    /// The notation of a row's nest.
    fn notation(&self, at: usize) -> String {
        let (path, nest) = &self.staged.frontier[at].example;
        let problem = &self.problems[at];
        let branched = Branched::of(&problem.expr, path, nest);
        branched.map_or_else(|| nest.to_string(), |branched| branched.notation(problem))
    }
}

/// Where the choice of the stages stands, and the measured seconds of both choices.
struct Duel {
    at: Option<usize>,
    stages: Option<f64>,
    model: Option<f64>,
}

/// The depths that a stage leaves.
fn depths(staged: &Staged, stage: usize) -> String {
    let mut rows = vec![["", "loops", "dims", "nests"].map(str::to_owned)];
    for one in staged.depths.iter().filter(|one| one.passed >= stage) {
        rows.push([
            String::new(),
            one.loops.to_string(),
            one.dims.to_string(),
            one.nests.to_string(),
        ]);
    }
    aligned(&rows)
}

/// The columns that hold numbers.
const NUMBERS: std::ops::RangeInclusive<usize> = 1..=6;

fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::from("\n");
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| {
            if NUMBERS.contains(&at) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
    }
    text
}

/// Names the ranges and assumptions that the sizes of the problem do not keep.
fn broken(staged: &Staged, problem: &Problem, asked: &Stages) -> Vec<String> {
    let Some(symbols) = staged.symbols.first() else { return Vec::new() };
    let outside = asked.ranges.iter().filter_map(|range| {
        let size = symbols.outside(range, problem).ok().flatten()?;
        Some(format!("--range {range} leaves out this problem, where it is {size}"))
    });
    let broken = asked.assumptions.iter().filter_map(|assumed| {
        let (left, right) = symbols.broken(assumed, problem).ok().flatten()?;
        let why = "does not hold for this problem, where the sides are";
        Some(format!("--assume \"{assumed}\" {why} {left} and {right}"))
    });
    outside.chain(broken).collect()
}

/// The notation of a schedule; its nest if it is none of branches.
fn notation_of(problem: &Problem, schedule: &Schedule) -> String {
    let branched = Branched::of(&problem.expr, &schedule.path, &schedule.nest);
    branched.map_or_else(|| schedule.nest.to_string(), |branched| branched.notation(problem))
}
