//! A group of runs: one command, its options, and what changes from run to run.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::einsum;
use crate::experiment::study::from_folder;
use crate::experiment::study::grid::{self, Axis, product};
use crate::experiment::study::options::{Catalogue, Known, Settings, check, check_kind, words};
use crate::experiment::study::source::{Entry, Section, Setting, nearest};
use crate::experiment::study::tensors::{NAME_HELP, Origin, TensorSpec, is_name};
use crate::failure::Failure;
use crate::schedule;

/// The most runs of a study.
const MOST_RUNS: usize = 100_000;

/// The commands that a study runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Cp,
    Tucker,
    Tt,
    Complete,
    Einsum,
    Schedule,
    Bench,
}

impl Task {
    const ALL: [Task; 7] = [
        Task::Cp,
        Task::Tucker,
        Task::Tt,
        Task::Complete,
        Task::Einsum,
        Task::Schedule,
        Task::Bench,
    ];

    /// Its name on the command line.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Task::Cp => "cp",
            Task::Tucker => "tucker",
            Task::Tt => "tt",
            Task::Complete => "complete",
            Task::Einsum => "einsum",
            Task::Schedule => "schedule",
            Task::Bench => "bench",
        }
    }

    /// Returns the command of a name.
    pub(crate) fn of_command(name: &str) -> Option<Task> {
        Task::ALL.into_iter().find(|task| task.command() == name)
    }

    /// Tells whether it fits a model, and writes the folder of a run.
    pub(crate) fn is_solver(self) -> bool {
        matches!(self, Task::Cp | Task::Tucker | Task::Tt | Task::Complete)
    }

    /// Tells whether it computes an expression.
    pub(crate) fn has_expression(self) -> bool {
        matches!(self, Task::Einsum | Task::Schedule)
    }
}

/// What may stand above the groups, for all of them.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    seeds: Option<Vec<u64>>,
    repeats: usize,
    timed: bool,
}

impl Default for Common {
    fn default() -> Common {
        Common { seeds: None, repeats: 1, timed: true }
    }
}

impl Common {
    /// Takes these keys out of a section; `above` holds what stands where they are missing.
    pub(super) fn read(section: &mut Section<'_>, above: &Common) -> Result<Common, Failure> {
        let seeds = section.take("seeds").map(|entry| grid::seeds(&entry)).transpose()?;
        let repeats = match section.take("repeats") {
            None => above.repeats,
            Some(entry) => match entry.count()? {
                0 => return Err(entry.fault("a run is made once or more").help("write 1 or more")),
                count => count.min(MOST_RUNS as u64) as usize,
            },
        };
        let timed = section.take("timed").map(|entry| entry.switch()).transpose()?;
        Ok(Common {
            seeds: seeds.or_else(|| above.seeds.clone()),
            repeats,
            timed: timed.unwrap_or(above.timed),
        })
    }
}

/// `[[runs]]`.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) task: Task,
    /// Names of tensors.
    pub(crate) tensors: Vec<String>,
    pub(crate) expression: Option<Expression>,
    /// The options that all its runs have.
    pub(crate) fixed: Settings,
    /// The options that change, with the values of each run.
    pub(crate) points: Vec<Settings>,
    /// One run each; `None` for the seed that a command has by itself.
    pub(crate) seeds: Vec<Option<u64>>,
    pub(crate) repeats: usize,
    /// Whether its seconds count: then no other run shares the machine.
    pub(crate) timed: bool,
}

/// What is computed, and where its operands are.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Expression {
    pub(crate) text: String,
    /// `NAME=FILE`, or a name alone for the tensor.
    pub(crate) operands: Vec<String>,
}

impl Expression {
    /// Returns how the command line of a run on the tensor in `file` begins.
    pub(crate) fn words(&self, task: Task, file: &str) -> Vec<String> {
        let operand = |operand: &String| match operand.contains('=') {
            true => format!("--tensor={operand}"),
            false => format!("--tensor={operand}={file}"),
        };
        let begin = [task.command().to_owned(), self.text.clone()];
        begin.into_iter().chain(self.operands.iter().map(operand)).collect()
    }

    /// Returns how the result is asked for; a single number is printed, and needs no file.
    pub(crate) fn result(&self, task: Task, file: &Path) -> Option<String> {
        let parsed = einsum::parse(&self.text);
        let is_number = parsed.is_ok_and(|parsed| parsed.output.indices.is_empty());
        let is_written = task == Task::Einsum && !is_number;
        is_written.then(|| format!("--out={}", file.display()))
    }

    /// Returns how the result is asked for where a command line is only checked.
    pub(crate) fn any_result(&self, task: Task) -> impl Iterator<Item = String> + use<> {
        let result = self.result(task, Path::new("result.dtb"));
        result.into_iter().flat_map(|out| [out, "--overwrite".to_owned()])
    }
}

const KEYS: &[&str] = &[
    "name", "command", "tensors", "options", "grid", "zip", "seeds", "repeats", "timed",
    "expression", "operand", "operands",
];

/// The options of a group while it is read.
struct Reading<'a> {
    catalogue: Catalogue,
    /// By the first name of the option.
    entries: Vec<(String, Entry<'a>)>,
    command: Entry<'a>,
}

impl Group {
    /// Reads a group; `beside` holds the folder of the file, and the groups before it.
    ///
    /// # Errors
    ///
    /// Anything that is not understood, or that the command refuses.
    pub(super) fn read(
        mut section: Section<'_>,
        above: &Common,
        known: &[TensorSpec],
        (folder, before): (&Path, &[Group]),
    ) -> Result<Group, Failure> {
        let (task, command) = task(&mut section)?;
        let name = name(&mut section, task, before)?;
        let common = Common::read(&mut section, above)?;
        let tensors = tensors(&mut section, known)?;
        let expression = expression(&mut section, task, folder)?;
        let catalogue = Catalogue::of(task.command())
            .ok_or_else(|| Failure::internal(format!("there is no `{}`", task.command())))?;
        let mut reading = Reading { catalogue, entries: Vec::new(), command };
        let fixed = reading.fixed(section.take("options"))?;
        let axes = reading.axes(&mut section)?;
        let seeds = reading.seeds(common.seeds.as_deref())?;
        section.finish(KEYS)?;
        let begin = begin(task, (&tensors, known), expression.as_ref());
        reading.check(&begin, &fixed, &axes)?;
        let points = product(&axes);
        if points.len().saturating_mul(seeds.len()).saturating_mul(common.repeats) > MOST_RUNS {
            let why = format!("the group has more than {MOST_RUNS} runs");
            return Err(reading.command.fault(why).help("shorten its ranges"));
        }
        let (repeats, timed) = (common.repeats, common.timed || task == Task::Bench);
        Ok(Group { name, task, tensors, expression, fixed, points, seeds, repeats, timed })
    }
}

impl<'a> Reading<'a> {
    /// Tells whether the group sets an option.
    fn names(&self, long: &str) -> bool {
        self.entries.iter().any(|(option, _)| option == long)
    }

    /// Returns a seed for each run of a configuration; `None` for the one that the command has by itself.
    fn seeds(&self, seeds: Option<&[u64]>) -> Result<Vec<Option<u64>>, Failure> {
        let Some(seeds) = seeds.filter(|_| self.catalogue.has("seed")) else {
            return Ok(vec![None]);
        };
        if let Some((_, entry)) = self.entries.iter().find(|(option, _)| option == "seed") {
            let why = "the runs have a seed already, by the key `seeds`";
            let help =
                "leave it out, and write the seeds of these runs as seeds = [1, 2] in [[runs]]";
            return Err(entry.fault(why).help(help));
        }
        Ok(seeds.iter().map(|&seed| Some(seed)).collect())
    }

    /// Notes that an entry sets an option.
    fn add(&mut self, entry: &Entry<'a>) -> Result<Known, Failure> {
        let known = self.catalogue.find(&entry.key, entry)?;
        if self.names(&known.long) {
            let why = format!("--{} is set twice", known.long);
            return Err(entry.fault(why).help("set it in [runs.options], in the grid or in a zip"));
        }
        self.entries.push((known.long.clone(), entry.clone()));
        Ok(known)
    }

    /// Reads `[runs.options]`.
    fn fixed(&mut self, entry: Option<Entry<'a>>) -> Result<Settings, Failure> {
        let Some(entry) = entry else { return Ok(Vec::new()) };
        let mut fixed = Vec::new();
        for entry in entry.section("[runs.options]".into())?.rest() {
            let known = self.add(&entry)?;
            let setting = entry.setting()?;
            check_kind(&known, &setting, &entry)?;
            fixed.push((known.long, setting));
        }
        Ok(fixed)
    }

    /// Reads `[runs.grid]` and `[[runs.zip]]`.
    fn axes(&mut self, section: &mut Section<'a>) -> Result<Vec<Axis>, Failure> {
        let table = section.take("grid");
        let entries = |entry: &Entry<'a>, name: &str| entry.section(name.to_owned());
        let mut axes = Vec::new();
        if let Some(entry) = table {
            let named = entries(&entry, "[runs.grid]")?.rest();
            axes = grid::grid(Some(entries(&entry, "[runs.grid]")?))?;
            for (axis, entry) in axes.iter_mut().zip(&named) {
                self.name(axis, std::slice::from_ref(entry))?;
            }
        }
        if let Some(entry) = section.take("zip") {
            let named = entry.sections("[[runs.zip]]")?;
            for (zip, mut named) in entry.sections("[[runs.zip]]")?.into_iter().zip(named) {
                let mut axis = grid::zip(zip)?;
                self.name(&mut axis, &named.rest())?;
                axes.push(axis);
            }
        }
        Ok(axes)
    }

    /// Gives the options of an axis their first names, and checks the kind of their values.
    fn name(&mut self, axis: &mut Axis, entries: &[Entry<'a>]) -> Result<(), Failure> {
        for (at, entry) in entries.iter().enumerate() {
            let known = self.add(entry)?;
            axis.places.iter().try_for_each(|place| check_kind(&known, &place[at], entry))?;
            axis.keys[at] = known.long;
        }
        Ok(())
    }

    /// Checks what is typed with each value of each axis, beside the first values of the others.
    fn check(&self, begin: &[String], fixed: &Settings, axes: &[Axis]) -> Result<(), Failure> {
        let first = |axis: &Axis| named(axis, 0);
        let mut lines: Vec<Settings> = vec![axes.iter().flat_map(first).collect()];
        for (at, axis) in axes.iter().enumerate() {
            lines.extend((1..axis.places.len()).map(|place| {
                let value = |(other, axis): (usize, &Axis)| {
                    named(axis, if other == at { place } else { 0 })
                };
                axes.iter().enumerate().flat_map(value).collect()
            }));
        }
        for line in lines {
            let typed = words(fixed).into_iter().chain(words(&line));
            let line: Vec<String> = begin.iter().cloned().chain(typed).collect();
            check(&line, &self.entries, &self.command)?;
        }
        Ok(())
    }
}

/// Returns how the command lines of a group begin, on its first tensor.
fn begin(
    task: Task,
    (names, known): (&[String], &[TensorSpec]),
    expression: Option<&Expression>,
) -> Vec<String> {
    let first = known.iter().find(|tensor| names.first() == Some(&tensor.name));
    let file = match first.map(|tensor| &tensor.origin) {
        Some(Origin::File(path)) => path.to_string_lossy().into_owned(),
        _ => "x.dtb".to_owned(),
    };
    let Some(expression) = expression else { return vec![task.command().to_owned(), file] };
    expression.words(task, &file).into_iter().chain(expression.any_result(task)).collect()
}

/// Returns the options of an axis with their values at one place.
fn named(axis: &Axis, place: usize) -> Settings {
    axis.keys.iter().cloned().zip(axis.places[place].iter().cloned()).collect()
}

/// Takes the command out of a group.
fn task<'a>(section: &mut Section<'a>) -> Result<(Task, Entry<'a>), Failure> {
    let commands = Task::ALL.map(Task::command).join(", ");
    let entry = section.need("command", &format!("one of {commands}"))?;
    let word = entry.text()?;
    let wrong = || {
        let near = nearest(&word, Task::ALL.into_iter().map(Task::command));
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        entry
            .fault(format!("a study does not run `{word}`"))
            .help(format!("{near}the commands are {commands}"))
    };
    Ok((Task::of_command(&word).ok_or_else(wrong)?, entry))
}

/// Takes the name of a group out of it: that of its command where none is given.
fn name(section: &mut Section<'_>, task: Task, before: &[Group]) -> Result<String, Failure> {
    let entry = section.take("name");
    let name = entry.as_ref().map(|entry| entry.text()).transpose()?;
    let name = name.unwrap_or_else(|| task.command().to_owned());
    let fault = |why: String| match &entry {
        Some(entry) => entry.fault(why),
        None => section.fault(why),
    };
    if !is_name(&name) {
        return Err(fault(format!("`{name}` is no name of a group")).help(NAME_HELP));
    }
    if before.iter().any(|group| group.name == name) {
        let why = format!("two groups of runs are called `{name}`");
        return Err(fault(why).help("give each a name of its own: name = \"...\""));
    }
    Ok(name)
}

/// Takes the names of the tensors out of a group: all where none are given.
fn tensors(section: &mut Section<'_>, known: &[TensorSpec]) -> Result<Vec<String>, Failure> {
    let all = || known.iter().map(|tensor| tensor.name.clone());
    let Some(entry) = section.take("tensors") else { return Ok(all().collect()) };
    let names = entry.words()?;
    for name in &names {
        if !all().any(|known| known == *name) {
            let near = all().collect::<Vec<_>>().join(", ");
            let why = format!("there is no [tensors.{name}]");
            return Err(entry.fault(why).help(format!("the tensors are {near}")));
        }
    }
    Ok(names)
}

/// Takes the expression of a group out of it, which `einsum` and `schedule` need and others have not.
fn expression(
    section: &mut Section<'_>,
    task: Task,
    folder: &Path,
) -> Result<Option<Expression>, Failure> {
    if !task.has_expression() {
        return Ok(None);
    }
    let entry = section.need("expression", "what is computed, as \"mttkrp:3:1\"")?;
    let text = entry.text()?;
    let parsed = match task {
        Task::Schedule => schedule::expr::parse(&text).map(drop),
        _ => einsum::parse(&text).map(drop),
    };
    if let Err(failure) = parsed {
        let help = "write it as \"mttkrp:3:1\" or \"Y(i,j) = X(i,k) * B(k,j)\"";
        return Err(entry.fault(failure.message()).help(help));
    }
    let tensor = match section.take("operand") {
        None => vec!["X".to_owned()],
        Some(entry) if entry.is_list() => entry.words()?,
        Some(entry) => vec![entry.text()?],
    };
    let others = section.take("operands");
    let others = others.map(|entry| entry.section("[runs.operands]".into())).transpose()?;
    let others = others.map(|mut section| section.rest()).unwrap_or_default();
    let other = |entry: Entry<'_>| {
        let typed = entry.text()?;
        // The array of an archive is named behind it.
        let archive = typed.rsplit_once(':').filter(|(archive, _)| archive.ends_with(".npz"));
        let (file, member) = archive.map_or((typed.as_str(), None), |(a, m)| (a, Some(m)));
        let path = from_folder(folder, file);
        if !path.is_file() {
            let why = format!("there is no file {}", path.display());
            return Err(entry.fault(why).help("paths begin in the folder of the study file"));
        }
        let member = member.map(|member| format!(":{member}")).unwrap_or_default();
        Ok(format!("{}={}{member}", entry.key, path.display()))
    };
    let others = others.into_iter().map(other).collect::<Result<Vec<_>, Failure>>()?;
    Ok(Some(Expression { text, operands: tensor.into_iter().chain(others).collect() }))
}

/// Returns the value of an option as tables show it.
pub(crate) fn shown(setting: &Setting) -> String {
    match setting {
        Setting::Word(word) => word.clone(),
        Setting::Switch(on) => (if *on { "yes" } else { "no" }).to_owned(),
    }
}
