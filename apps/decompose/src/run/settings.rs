//! The shared options, completed by defaults and checked.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use decompose_common::checkpoint::CheckpointRule;
use decompose_common::machine::hardware_threads;
use decompose_common::overwrite::Existing;
use decompose_common::progress::Verbosity;
use decompose_common::run_folder::{RunFolder, resumable};
use decompose_common::stopping::StopRule;
use decompose_core::runtime::Toolchain;
use decompose_formats::Duplicates;
use decompose_plot::PlotFormat;

use crate::failure::Failure;
use crate::input::InputArgs;
use crate::labels::LabelPlace;
use crate::run::args::{ComputeArgs, CourseArgs, OutputArgs, Precision, Seed, Switches};

/// The shared decisions about a run.
#[derive(Clone, Debug)]
pub(crate) struct RunSettings {
    pub(crate) input: InputArgs,
    pub(crate) stop: StopRule,
    pub(crate) seed: u64,
    pub(crate) restarts: usize,
    pub(crate) threads: usize,
    pub(crate) precision: Precision,
    pub(crate) max_memory: Option<u64>,
    pub(crate) checkpoint_every: Option<usize>,
    /// The folder of the run to continue, as typed.
    pub(crate) resume: Option<PathBuf>,
    /// The folder with its latest checkpoint.
    pub(crate) saved: Option<PathBuf>,
    pub(crate) codegen: Codegen,
    pub(crate) task: Task,
    pub(crate) folder: PathBuf,
    /// Where files are written until the run ends; `folder` before it is claimed.
    pub(crate) work: PathBuf,
    pub(crate) existing: Existing,
    pub(crate) labels: Vec<LabelPlace>,
    /// The formats of figures; none for no figures.
    pub(crate) plots: Vec<PlotFormat>,
    pub(crate) print_every: usize,
    pub(crate) verbosity: Verbosity,
    pub(crate) results: Results,
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

/// The shared options as typed.
pub(crate) struct RunArgs<'a> {
    pub(crate) input: InputArgs,
    pub(crate) course: &'a CourseArgs,
    pub(crate) compute: &'a ComputeArgs,
    pub(crate) output: &'a OutputArgs,
    pub(crate) switches: Switches,
}

/// What holds where the user says nothing; differs between commands.
#[derive(Clone, Debug)]
pub(crate) struct RunDefaults {
    pub(crate) max_iters: usize,
    pub(crate) tol: f64,
    pub(crate) seed: u64,
    /// What follows `decompose-NAME-` in the name of the output folder: `cp-r10`.
    pub(crate) suffix: String,
}

impl RunSettings {
    /// Completes and checks what the user typed.
    ///
    /// # Errors
    ///
    /// Options that exclude each other.
    pub(crate) fn new(args: RunArgs<'_>, defaults: RunDefaults) -> Result<RunSettings, Failure> {
        let RunArgs { input, course, compute, output, switches } = args;
        let task = match switches {
            s if s.explain => Task::Explain,
            s if s.nowrite => Task::Compute,
            _ => Task::Write,
        };
        if task != Task::Write && compute.checkpoint_every.is_some() {
            let why = "--checkpoint-every writes files; leave out --nowrite and --explain";
            return Err(Failure::input(why));
        }
        let given = output.out.clone().or_else(|| compute.resume.clone());
        let folder = given
            .unwrap_or_else(|| format!("decompose-{}-{}", input.name(), defaults.suffix).into());
        let hardware = hardware_threads();
        Ok(RunSettings {
            stop: StopRule {
                tol: course.tol.unwrap_or(defaults.tol),
                max_iters: course.max_iters.unwrap_or(defaults.max_iters),
                max_time: course.max_time.map(Duration::from_secs_f64),
            },
            seed: match course.seed {
                None => defaults.seed,
                Some(Seed::Number(seed)) => seed,
                // The standard library draws its hash keys from the system.
                Some(Seed::Random) => RandomState::new().hash_one(0) >> 32,
            },
            restarts: course.restarts,
            threads: compute.threads.unwrap_or(hardware),
            precision: compute.precision,
            max_memory: compute.max_memory,
            checkpoint_every: compute.checkpoint_every,
            existing: existing(switches, compute.resume.as_deref(), &folder),
            resume: compute.resume.clone(),
            saved: compute.resume.as_deref().map(resumable),
            codegen: if switches.no_codegen { Codegen::Off } else { Codegen::Native },
            task,
            work: folder.clone(),
            folder,
            labels: output.labels.clone(),
            plots: output.figures.formats(),
            print_every: output.print_every,
            verbosity: if switches.quiet { Verbosity::Quiet } else { Verbosity::Normal },
            results: match switches {
                s if s.json => Results::Json,
                s if s.quiet => Results::None,
                _ => Results::Summary,
            },
            input,
        })
    }

    /// Asks the compiler which it is, in a thread of its own: its answer takes longer than to read a small
    /// tensor, and [`RunSettings::toolchain`] waits for it.
    pub(crate) fn ask_compiler(&self) {
        if self.codegen == Codegen::Native {
            // Without a thread it is asked when it is needed.
            let _ = std::thread::Builder::new().spawn(Toolchain::detect);
        }
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

    /// Returns where and how often the state is saved, once the folder is claimed.
    pub(crate) fn checkpoint(&self) -> Option<CheckpointRule> {
        let every = self.checkpoint_every?;
        Some(CheckpointRule::new(&self.work, every))
    }

    /// Claims the output folder; `None` if nothing is written.
    ///
    /// # Errors
    ///
    /// A folder that is in use or cannot be written.
    pub(crate) fn claim(&mut self) -> Result<Option<RunFolder>, Failure> {
        match self.task {
            Task::Write => {
                let claimed = RunFolder::claim(&self.folder, self.existing)?;
                self.work = claimed.work().to_owned();
                Ok(Some(claimed))
            }
            Task::Compute | Task::Explain => Ok(None),
        }
    }
}

/// A resumed run goes on in its folder, whose files it continues.
fn existing(switches: Switches, resume: Option<&Path>, folder: &Path) -> Existing {
    let place = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match (resume, switches.overwrite) {
        (Some(resume), _) if place(resume) == place(folder) => Existing::Resume,
        (_, true) => Existing::Replace,
        (_, false) => Existing::Refuse,
    }
}
