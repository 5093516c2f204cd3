//! What the user typed, completed by defaults and checked: all that decides a run.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::time::Duration;

use decompose_common::model::ModelFormat;
use decompose_common::output::Existing;
use decompose_common::progress::Verbosity;
use decompose_common::stopping::StopRule;
use decompose_core::runtime::Toolchain;
use decompose_core::sweep::{TreeLayout, Trees};
use decompose_cp::{Arrangement, CheckpointRule, CpConfig, NonNegModes};
use decompose_formats::Duplicates;

use crate::cp::args::{CpArgs, Init, Precision, Tree};
use crate::cp::compat::{Compat, Defaults, StartRange};
use crate::failure::Failure;
use crate::input::InputArgs;

/// All decisions about a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) input: InputArgs,
    pub(crate) config: CpConfig,
    pub(crate) start: StartFrom,
    pub(crate) range: StartRange,
    pub(crate) compat: Option<Compat>,
    pub(crate) threads: usize,
    pub(crate) precision: Precision,
    pub(crate) max_memory: Option<u64>,
    pub(crate) trees: Trees,
    pub(crate) codegen: Codegen,
    pub(crate) task: Task,
    pub(crate) folder: PathBuf,
    pub(crate) existing: Existing,
    pub(crate) formats: Vec<ModelFormat>,
    pub(crate) labels: Option<PathBuf>,
    pub(crate) print_every: usize,
    pub(crate) verbosity: Verbosity,
    pub(crate) results: Results,
}

/// Where a run starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartFrom {
    /// As `--init` says.
    Init(Init),
    /// From the checkpoint in this folder.
    Checkpoint(PathBuf),
}

/// Whether kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Codegen {
    /// They are, if there is a compiler.
    Native,
    /// They are interpreted.
    Off,
}

/// What is done with the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// It is run, and the results are written.
    Write,
    /// It is run, and nothing is written.
    Compute,
    /// It is printed.
    Explain,
}

/// How standard output is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Results {
    /// A summary for people.
    Summary,
    /// Nothing.
    None,
    /// Events and the result, a JSON object a line.
    Json,
}

impl Settings {
    /// Completes and checks what the user typed.
    ///
    /// # Errors
    ///
    /// Options that are missing or exclude each other.
    pub(crate) fn new(args: CpArgs) -> Result<Settings, Failure> {
        let defaults = Defaults::of(args.model.compat);
        let rank = args.model.rank.or(defaults.rank).ok_or_else(|| {
            Failure::input("no rank given; the number of components has no default")
                .help("try `--rank 10`, and compare the fit at other ranks")
        })?;
        let task = match args.switches {
            s if s.explain => Task::Explain,
            s if s.nowrite => Task::Compute,
            _ => Task::Write,
        };
        if task != Task::Write && args.run.checkpoint_every.is_some() {
            let why = "--checkpoint-every writes files; leave out --nowrite and --explain";
            return Err(Failure::input(why));
        }
        let folder = folder(&args, rank);
        let config = config(&args, &defaults, rank, &folder);
        let (existing, start) = start(&args, &defaults, &folder);
        let mut formats = vec![ModelFormat::Npz];
        let asked = args.output.out_format.iter().copied();
        let wanted = if args.output.out_format.is_empty() { Some(defaults.format) } else { None };
        formats.extend(asked.chain(wanted).filter(|&format| format != ModelFormat::Npz));
        let hardware = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Settings {
            start,
            range: defaults.range,
            compat: args.model.compat,
            threads: args.run.threads.unwrap_or(hardware),
            precision: args.run.precision,
            max_memory: args.run.max_memory,
            trees: trees(args.run.trees)?,
            codegen: if args.switches.no_codegen { Codegen::Off } else { Codegen::Native },
            task,
            folder,
            existing,
            formats,
            labels: args.output.labels,
            print_every: args.output.print_every,
            verbosity: if args.switches.quiet { Verbosity::Quiet } else { Verbosity::Normal },
            results: match args.switches {
                s if s.json => Results::Json,
                s if s.quiet => Results::None,
                _ => Results::Summary,
            },
            config,
            input: args.input,
        })
    }

    /// Returns the compiler, or the interpreter if the user wants it.
    pub(crate) fn toolchain(&self) -> Toolchain {
        match self.codegen {
            Codegen::Native => Toolchain::detect(),
            Codegen::Off => Toolchain::Interpreter("--no-codegen was given".into()),
        }
    }

    /// Returns what becomes of duplicates.
    pub(crate) fn duplicates(&self) -> Duplicates {
        self.input.duplicates()
    }
}

fn folder(args: &CpArgs, rank: usize) -> PathBuf {
    let given = args.output.out.clone().or_else(|| args.run.resume.clone());
    given.unwrap_or_else(|| format!("decompose-{}-cp-r{rank}", args.input.name()).into())
}

fn config(args: &CpArgs, defaults: &Defaults, rank: usize, folder: &std::path::Path) -> CpConfig {
    let checkpoint = args.run.checkpoint_every;
    CpConfig {
        seed: match args.model.seed {
            None => defaults.seed,
            Some(crate::cp::args::Seed::Number(seed)) => seed,
            // The standard library draws its hash keys from the system.
            Some(crate::cp::args::Seed::Random) => RandomState::new().hash_one(0) >> 32,
        },
        stop: StopRule {
            tol: args.model.tol.unwrap_or(defaults.tol),
            max_iters: args.model.max_iters.unwrap_or(defaults.max_iters),
            max_time: args.model.max_time.map(Duration::from_secs_f64),
        },
        reg: args.model.reg,
        nonneg: args.model.nonneg.clone().or(args.model.con.clone()).unwrap_or(NonNegModes::None),
        restarts: args.model.restarts,
        update_order: args.model.dimorder.clone(),
        arrangement: match args.switches.no_arrange {
            true => Arrangement::AsComputed,
            false => defaults.arrangement,
        },
        checkpoint: checkpoint.map(|every| CheckpointRule { folder: folder.to_owned(), every }),
        ..CpConfig::new(rank)
    }
}

/// A resumed run goes on in its folder, whose files it continues.
fn start(args: &CpArgs, defaults: &Defaults, folder: &std::path::Path) -> (Existing, StartFrom) {
    let asked = if args.switches.overwrite { Existing::Replace } else { Existing::Refuse };
    match &args.run.resume {
        Some(saved) if saved == folder => (Existing::Replace, StartFrom::Checkpoint(saved.clone())),
        Some(saved) => (asked, StartFrom::Checkpoint(saved.clone())),
        None => {
            let init = args.model.init.clone().unwrap_or_else(|| defaults.init.clone());
            (asked, StartFrom::Init(init))
        }
    }
}

fn trees(words: Vec<Tree>) -> Result<Trees, Failure> {
    let mut layouts: Vec<TreeLayout> = Vec::new();
    let count = words.len();
    for word in words {
        match word {
            Tree::Choose if count == 1 => return Ok(Trees::Choose),
            Tree::Choose => {
                return Err(Failure::input("--trees is `choose` or trees, not both"));
            }
            Tree::Layout(layout) if layouts.contains(&layout) => {}
            Tree::Layout(layout) => layouts.push(layout),
        }
    }
    Ok(if layouts.is_empty() { Trees::Choose } else { Trees::Given(layouts) })
}
