//! From a request to schedules, best first: searched, read from a file, or kept from a measurement.

use std::fs;
use std::path::{Path, PathBuf};

use decompose_core::autoschedule::partition::{Generated, Listed, Listing};
use decompose_core::autoschedule::sparseauto::buffer_bytes;
use decompose_core::autoschedule::{
    OrderedCandidate, SearchLimits, SearchReport, Storage, default_scheduler, scheduler, storages,
};
use decompose_core::contract::{Choice, Choices, Fingerprint, RaceReport, Request, trees};
use decompose_core::cost::{Machine, estimate, on_threads, storing_seconds};
use decompose_core::einsum::Index;
use decompose_core::error::CoreError;
use decompose_core::schedule::{Format, OutputForm, Problem, Schedule};
use decompose_core::sweep::TreeLayout;

use crate::failure::Failure;
use crate::schedule::args::{Search, SearchArgs, Tree};
use crate::schedule::result_format::typed;

/// A schedule on its trees, with its costs.
pub(crate) use decompose_core::contract::Planned as Pick;

/// Where a choice comes from.
#[derive(Clone, Debug)]
pub(crate) enum How {
    /// It is predicted to be the fastest.
    Predicted,
    /// It was the fastest just now.
    Measured(Box<RaceReport>),
    /// It was the fastest of an earlier measurement, with the seconds of then.
    Kept(PathBuf, f64),
    /// The user gave it.
    Given(PathBuf),
}

/// Schedules of which one is chosen.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// Best first, as predicted; never empty.
    pub(crate) picks: Vec<Pick>,
    /// The chosen one, by position.
    pub(crate) chosen: usize,
    pub(crate) how: How,
    /// What the search saw, if there was one.
    pub(crate) report: Option<SearchReport>,
    /// Trees that were searched.
    pub(crate) trees: usize,
}

impl Selection {
    /// Returns the chosen schedule.
    pub(crate) fn choice(&self) -> &Pick {
        &self.picks[self.chosen]
    }

    /// Returns the place of a schedule on its trees.
    pub(crate) fn place(&self, pick: &Pick) -> Option<usize> {
        self.picks.iter().position(|one| one.schedule == pick.schedule && one.trees == pick.trees)
    }

    /// Tells whether a schedule is the one predicted to be the fastest.
    pub(crate) fn is_first(&self, pick: Option<&Pick>) -> bool {
        pick.is_some_and(|pick| self.place(pick) == Some(0))
    }

    /// Keeps the first `top` schedules, and puts `pick` behind them unless it is one of them.
    pub(crate) fn enter(&mut self, pick: &Pick, top: usize) {
        self.picks.truncate(top);
        if self.place(pick).is_none() {
            self.picks.push(pick.clone());
        }
    }

    /// Keeps the first `top` schedules.
    pub(crate) fn keep_first(&mut self, top: usize) {
        self.picks.truncate(top);
    }

    /// Returns the measured seconds of the schedule at a place.
    pub(crate) fn measured(&self, at: usize) -> Option<f64> {
        match &self.how {
            How::Measured(race) => race.times.get(at).copied().flatten().map(|t| t.median_seconds),
            _ => None,
        }
    }
}

/// The search that the options ask for, on a request.
pub(crate) struct Chooser<'a> {
    pub(crate) request: &'a Request,
    pub(crate) args: &'a SearchArgs,
    pub(crate) machine: Machine,
    /// The problem on the natural orders.
    base: Problem,
    storages: Vec<Storage>,
    /// The formats that the user gave, by input.
    formats: Vec<(usize, Format)>,
}

impl<'a> Chooser<'a> {
    /// Prepares the search on `threads` threads, with operands in the `formats` that the user gave.
    pub(crate) fn new(
        request: &'a Request,
        (args, given_formats): (&'a SearchArgs, &[(String, Format)]),
        threads: usize,
    ) -> Result<Chooser<'a>, Failure> {
        let mut base = request.problem_on(&[]);
        if args.scheduler == Some(Search::Measured) {
            // Kernels alone are measured.
            base.storing = None;
        }
        base.max_buffer_dims = args.max_buffer_dims.unwrap_or(base.max_buffer_dims);
        let machine = Machine { threads, ..Machine::here().clone() };
        let room = match args.scheduler {
            Some(Search::Named("sparseauto")) => buffer_bytes(&machine).max(base.max_buffer_bytes),
            _ => base.max_buffer_bytes,
        };
        base.max_buffer_bytes = args.max_buffer_bytes.unwrap_or(room);
        let formats = formats(&base, given_formats)?;
        let storages = match &args.tree {
            None | Some(Tree::Auto) if formats.is_empty() => storages(&base),
            None | Some(Tree::Auto) => storages_with(&base, &formats),
            Some(Tree::Given(tree)) => vec![given(request, tree)?],
        };
        Ok(Chooser { request, args, machine, base, storages, formats })
    }

    /// Returns the problem on each tree that is searched, with no fused levels unless the user gave the tree.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let given = matches!(self.args.tree, Some(Tree::Given(_)));
        let plain = |storage: &&Storage| {
            given || storage.operands.iter().all(|(_, order)| order.fused() == 1)
        };
        self.storages.iter().filter(plain).map(|storage| storage.problem(&self.base)).collect()
    }

    /// Searches within `limits`.
    pub(crate) fn search(&self, limits: &SearchLimits) -> Result<Selection, Failure> {
        let named = match self.args.scheduler {
            Some(Search::Named(name)) => scheduler(name),
            None | Some(Search::Measured) => None,
        };
        let scheduler = named.unwrap_or(default_scheduler());
        let found = match self.args.tree {
            None | Some(Tree::Auto) if self.formats.is_empty() => {
                scheduler.search_any_storage(&self.base, &self.machine, limits)
            }
            _ => scheduler.search_storages(&self.base, &self.storages, &self.machine, limits),
        };
        let found = found.map_err(|error| match error {
            CoreError::NoSchedule { .. } if !self.formats.is_empty() => Failure::input(format!(
                "--format: {error}"
            ))
            .help("no order of loops may follow the levels of all operands; give one less format"),
            error => error.into(),
        })?;
        let picks = found.candidates.into_iter().map(|candidate| self.pick(candidate)).collect();
        let picks = self.in_formats(picks)?;
        let (report, trees) = (Some(found.report), self.storages.len());
        Ok(Selection { picks, chosen: 0, how: How::Predicted, report, trees })
    }

    /// Lists the schedules of partition templates on the best storage.
    pub(crate) fn listing(&self, limits: &SearchLimits) -> Result<Listing, Failure> {
        Ok(Listing::on_best_storage(&self.base, &self.storages, &self.machine, limits)?)
    }

    /// Returns schedules of a listing, given with their places, as a selection.
    pub(crate) fn of_listing(&self, listed: Vec<&Listed>) -> Selection {
        let pick = |one: &Listed| {
            let Generated { problem, schedule } = one.generated.clone();
            let threads = self.machine.threads;
            let threaded = on_threads(&problem, &schedule, &one.cost, &self.machine, threads);
            Pick {
                trees: trees(&problem),
                storing: storing_seconds(&problem, &self.machine),
                cost: one.cost,
                seconds: threaded.seconds,
                side_bytes: threaded.side_bytes,
                problem,
                schedule,
            }
        };
        let picks = listed.into_iter().map(pick).collect();
        Selection { picks, chosen: 0, how: How::Predicted, report: None, trees: 1 }
    }

    /// Reads and judges the schedule in `file`.
    pub(crate) fn given(&self, file: &Path) -> Result<Selection, Failure> {
        let text = fs::read_to_string(file)
            .map_err(|e| Failure::input(format!("cannot read {}: {e}", file.display())))?;
        let judged =
            Schedule::parse(&text, &self.request.expr).and_then(|schedule| self.judged(schedule));
        let pick = judged.map_err(|error| {
            Failure::input(format!("{}: {error}", file.display()))
                .help("`decompose schedule ... --emit nest` prints one that is legal")
        })?;
        Ok(Selection::of(pick, How::Given(file.to_owned())))
    }

    /// Returns the choice of an earlier measurement of this request, if there is one.
    pub(crate) fn kept(&self, choices: &Choices) -> Option<Selection> {
        let key = self.fingerprint();
        let choice = choices.get(&key, &self.request.expr)?;
        let pick = self.judge(choice.schedule, Bounds::Kept).ok()?;
        Some(Selection::of(pick, How::Kept(choices.path(&key), choice.seconds)))
    }

    /// Keeps the choice of a measurement for later runs.
    pub(crate) fn keep(
        &self,
        choices: &Choices,
        pick: &Pick,
        seconds: f64,
    ) -> std::io::Result<PathBuf> {
        let choice = Choice { schedule: pick.schedule.clone(), seconds };
        choices.put(&self.fingerprint(), &choice, &self.request.expr)
    }

    fn fingerprint(&self) -> Fingerprint {
        let mut storages = self.storages.clone();
        for (input, format) in storages.iter_mut().flat_map(|storage| &mut storage.operands) {
            if let Some(given) = self.given_format(*input) {
                *format = given.clone();
            }
        }
        Fingerprint::of(&self.base, &storages, &self.machine)
    }

    /// Returns the format that the user gave an input.
    fn given_format(&self, input: usize) -> Option<&Format> {
        self.formats.iter().find(|(given, _)| *given == input).map(|(_, format)| format)
    }

    /// Returns those of `picks` whose operands can be stored in the formats that the user gave, best first.
    ///
    /// # Errors
    ///
    /// With the first reason, if there are none.
    fn in_formats(&self, picks: Vec<Pick>) -> Result<Vec<Pick>, Failure> {
        if self.formats.is_empty() {
            return Ok(picks);
        }
        let (mut fitting, mut refused) = (Vec::new(), None);
        for pick in picks {
            let mut schedule = pick.schedule;
            let mut is_cut = false;
            for (x, layout) in pick.problem.sparse.iter().zip(&mut schedule.layouts) {
                if let Some(given) = self.given_format(x.input) {
                    is_cut |= layout.format.levels() != given.levels();
                    layout.format = given.clone();
                }
            }
            if is_cut {
                continue;
            }
            match self.judge(schedule, Bounds::Kept) {
                Ok(pick) => fitting.push(pick),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        fitting.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        if !fitting.is_empty() {
            return Ok(fitting);
        }
        let why = refused.map_or_else(
            || "every schedule that was found cuts an index of an operand with a format".into(),
            |error| error.to_string(),
        );
        Err(Failure::input(format!("--format: {why}"))
            .help("another --scheduler may let another operand lead, or cut nothing"))
    }

    fn pick(&self, found: OrderedCandidate) -> Pick {
        Pick::of(&self.base, found)
    }

    /// Judges a schedule on the trees of its layouts, whatever its buffers take.
    ///
    /// # Errors
    ///
    /// If it breaks a rule.
    pub(crate) fn judged(&self, schedule: Schedule) -> Result<Pick, CoreError> {
        self.judge(schedule, Bounds::Lifted)
    }

    /// Judges a schedule on the trees of its layouts.
    fn judge(&self, schedule: Schedule, bounds: Bounds) -> Result<Pick, CoreError> {
        let splits = &schedule.splits;
        let coordinates = splits.iter().copied().filter(|split| !split.cuts_positions());
        let posed = self.base.split(&coordinates.collect::<Vec<_>>())?;
        let numbers = |index: &Index| {
            splits.iter().any(|split| split.cuts_positions() && split.outer == *index)
        };
        let stored = schedule.layouts.iter().zip(&posed.sparse).map(|(layout, only)| {
            let input = layout.input.unwrap_or(only.input);
            let own = posed.sparse.iter().find(|x| x.input == input)?;
            let levels = layout.format.levels();
            let whole: Vec<Index> = levels.iter().copied().filter(|i| !numbers(i)).collect();
            let same = whole.len() == own.levels().len()
                && whole.iter().all(|level| own.levels().contains(level));
            same.then(|| (input, layout.format.tree()))
        });
        let operands: Vec<(usize, Format)> = stored.flatten().collect();
        // Layouts that are no trees are refused by the rules, on whatever trees.
        let mut problem = match operands.len() == posed.sparse.len() {
            true => Storage { operands }.problem_with(&self.base, splits)?,
            false => posed,
        };
        // The schedule says whether a result without a pattern is assembled.
        if !problem.has_pattern_output() {
            let assembled = schedule.workspace.is_some();
            problem.output = if assembled { OutputForm::Assembled } else { OutputForm::Dense };
        }
        if bounds == Bounds::Lifted {
            (problem.max_buffer_dims, problem.max_buffer_bytes) = NO_BOUNDS;
        }
        let trees = trees(&problem);
        schedule.verify(&problem)?;
        let cost = estimate(&problem, &schedule, &self.machine);
        let threads = self.machine.threads;
        let threaded = on_threads(&problem, &schedule, &cost, &self.machine, threads);
        let (seconds, side_bytes) = (threaded.seconds, threaded.side_bytes);
        let storing = storing_seconds(&problem, &self.machine);
        Ok(Pick { trees, problem, schedule, cost, seconds, storing, side_bytes })
    }
}

/// Returns the formats that a user gave operands, by input of `problem`.
///
/// # Errors
///
/// If one names no sparse operand, or not each of its indices once.
fn formats(problem: &Problem, given: &[(String, Format)]) -> Result<Vec<(usize, Format)>, Failure> {
    let names = problem.expr.operand_names();
    let mut formats: Vec<(usize, Format)> = Vec::new();
    for (name, format) in given {
        let refuse =
            |why: String| Failure::input(format!("--format {}: {why}", typed(name, format)));
        let x = problem.sparse.iter().find(|x| names[x.input] == *name);
        let x = x.ok_or_else(|| {
            let sparse = problem.sparse.iter().map(|x| names[x.input].as_str());
            let sparse = sparse.collect::<Vec<_>>().join(", ");
            let result = &problem.expr.output.tensor;
            refuse(format!("{name} is no sparse operand of {}; there are {sparse}", problem.expr))
                .help(format!("name one of them, or the result {result}"))
        })?;
        let (mut have, mut want) = (format.levels().to_vec(), x.levels().to_vec());
        have.sort();
        want.sort();
        if have != want {
            let access = &problem.expr.inputs[x.input];
            return Err(refuse(format!("list each index of {access} once")));
        }
        if !format.is_tree() {
            let why = "singletons are the last levels, below a root that stands alone";
            return Err(refuse(why.into()));
        }
        if format.fused() > 1 && problem.sparse.len() > 1 {
            return Err(refuse("several operands are sparse; then no level is a singleton".into()));
        }
        if formats.iter().any(|(input, _)| *input == x.input) {
            return Err(refuse(format!("{name} has a format already")));
        }
        formats.push((x.input, format.clone()));
    }
    Ok(formats)
}

/// Returns the storages of `problem` in which operands have the levels of `formats`.
fn storages_with(problem: &Problem, formats: &[(usize, Format)]) -> Vec<Storage> {
    let mut found: Vec<Storage> = Vec::new();
    for mut storage in storages(problem) {
        for (input, format) in &mut storage.operands {
            if let Some((_, given)) = formats.iter().find(|(given, _)| given == input) {
                *format = given.tree();
            }
        }
        if !found.contains(&storage) {
            found.push(storage);
        }
    }
    found
}

/// The only sparse operand of `request` stored as a user says.
fn given(request: &Request, tree: &TreeLayout) -> Result<Storage, Failure> {
    let [sparse] = request.sparse.as_slice() else {
        let why = format!("--tree {tree} stores one operand, and several are sparse");
        return Err(Failure::input(why).help("write --format NAME=LEVELS, once for each operand"));
    };
    let indices = request.modes(sparse);
    if tree.blocks.is_some() {
        let why = format!("--tree {tree} has blocks, which are chosen for sweeps only");
        return Err(Failure::input(why)
            .help("list the modes only, as 1-2+3, or see `decompose cp --trees`"));
    }
    if tree.order.modes().len() != indices.len() {
        let order = indices.len();
        return Err(Failure::input(format!(
            "--tree {tree} does not list each of the {order} modes once"
        )));
    }
    Ok(Storage::of(sparse.input, tree.format(indices)))
}

impl Selection {
    fn of(pick: Pick, how: How) -> Selection {
        Selection { picks: vec![pick], chosen: 0, how, report: None, trees: 1 }
    }
}

/// Whether buffers are bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bounds {
    Kept,
    Lifted,
}

/// Any number of indices, any number of bytes.
const NO_BOUNDS: (usize, u64) = (usize::MAX, u64::MAX);
