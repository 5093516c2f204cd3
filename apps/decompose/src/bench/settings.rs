//! What the user typed, completed and checked.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use decompose_common::interrupt;
use decompose_common::machine::hardware_threads;
use decompose_common::overwrite::Existing;
use decompose_common::run_folder::{Contents, RunFolder};
use decompose_core::cost::Machine;
use decompose_core::optimisation::Optimisation;
use decompose_core::runtime::Toolchain;
use decompose_formats::FormatError;
use decompose_plot::PlotFormat;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::bench::args::BenchArgs;
use crate::bench::peers::{self, Peer};
use crate::bench::roofline::CoreShare;
use crate::bench::tensors::TensorSource;
use crate::failure::Failure;
use crate::generate;
use crate::run::args::Precision;

/// All decisions about a run.
pub(crate) struct Settings {
    pub(crate) sources: Vec<TensorSource>,
    pub(crate) what: Vec<What>,
    pub(crate) kernels: Vec<String>,
    pub(crate) ranks: Vec<usize>,
    /// The threads of each number of threads.
    pub(crate) pools: Vec<(usize, ThreadPool)>,
    /// What each number of threads can do; none without a C compiler.
    shares: Vec<(usize, CoreShare)>,
    pub(crate) rounds: usize,
    /// How long a run waits for others to leave the machine.
    pub(crate) patience: Duration,
    pub(crate) precision: Precision,
    pub(crate) without: Without,
    pub(crate) peers: Vec<Peer>,
    pub(crate) peer_file: Option<PathBuf>,
    pub(crate) folder: RunFolder,
    /// The formats of figures.
    pub(crate) plots: Vec<PlotFormat>,
    pub(crate) toolchain: Toolchain,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum What {
    /// From a file to a tree.
    Ingest,
    /// One kernel at a time, on its best tree.
    Kernels,
    /// CP-ALS iterations.
    Sweep,
}

/// Which optimisations sweeps do without, beside those with all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Without {
    /// Each of these in turn.
    Each(Vec<Optimisation>),
    /// Each of all in turn, and all together.
    EachAndAll,
}

impl Without {
    /// Returns those that are left out by themselves.
    pub(crate) fn each(&self) -> &[Optimisation] {
        match self {
            Without::Each(listed) => listed,
            Without::EachAndAll => &Optimisation::ALL,
        }
    }
}

impl Settings {
    /// Completes and checks what the user typed.
    ///
    /// # Errors
    ///
    /// An output that exists, a list of peers that cannot be read, an unknown name, threads that
    /// cannot be started.
    pub(crate) fn new(args: BenchArgs) -> Result<Settings, Failure> {
        if args.files.is_empty() && args.like.is_empty() {
            let why = "nothing to measure; give files of tensors, or --like NAME";
            return Err(Failure::input(why).help("try `decompose bench --like uber`"));
        }
        let existing = if args.overwrite { Existing::Replace } else { Existing::Refuse };
        interrupt::announce();
        let folder = RunFolder::claim_for(&args.out, existing, Contents::Measures)?;
        let peers = args.peer.as_deref().map(peers::read).transpose()?.unwrap_or_default();
        let files = args.files.iter().cloned().map(|file| Ok(TensorSource::File(file)));
        let generated = args.like.iter().map(|name| {
            let config = generate::like(name, args.scale)?;
            let name =
                if args.scale == 1.0 { name.clone() } else { format!("{name}*{}", args.scale) };
            Ok(TensorSource::Like { name, config })
        });
        let without = match args.ablation {
            true => Without::EachAndAll,
            false => Without::Each(distinct(args.without)),
        };
        // Before kernels are compiled; what is in the files is seen when their turn comes.
        if let [file] = args.files.as_slice()
            && file.as_os_str() != "-"
        {
            std::fs::metadata(file).map_err(|_| FormatError::Missing(file.clone()))?;
        }
        let (toolchain, pools) = (Toolchain::detect(), pools(distinct(args.threads))?);
        let share = |(threads, pool): &(usize, ThreadPool)| {
            let share = pool.install(|| CoreShare::new(Machine::here(), &toolchain)).ok()?;
            Some((*threads, share))
        };
        Ok(Settings {
            sources: files.chain(generated).collect::<Result<_, Failure>>()?,
            what: what(args.what, &without)?,
            kernels: args.kernels,
            ranks: distinct(args.rank),
            shares: pools.iter().filter_map(share).collect(),
            pools,
            rounds: args.rounds,
            patience: args.patience,
            precision: args.precision,
            without,
            peers,
            peer_file: args.peer,
            folder,
            plots: args.figures.formats(),
            toolchain,
        })
    }

    /// Returns the part of their speed that `threads` threads have now; 1 where it is not known.
    pub(crate) fn share(&self, threads: usize) -> f64 {
        let share = self.shares.iter().find(|(of, _)| *of == threads);
        let pool = self.pools.iter().find(|(of, _)| *of == threads);
        let now = share.zip(pool).and_then(|((_, s), (_, pool))| pool.install(|| s.now()).ok());
        now.unwrap_or(1.0)
    }

    /// Tells whether `what` is to be measured.
    pub(crate) fn asks(&self, what: What) -> bool {
        self.what.contains(&what)
    }
}

/// What is measured if the user asks for `asked`.
fn what(asked: Vec<What>, without: &Without) -> Result<Vec<What>, Failure> {
    let ablation = *without == Without::EachAndAll;
    match asked.is_empty() {
        true if ablation => Ok(vec![What::Sweep]),
        true => Ok(vec![What::Ingest, What::Kernels, What::Sweep]),
        false if ablation && !asked.contains(&What::Sweep) => {
            Err(Failure::input("--ablation compares sweeps, but --what leaves them out")
                .help("add sweep to --what"))
        }
        false => Ok(asked),
    }
}

/// Starts threads for each number of `threads`; by default for one and for all.
fn pools(mut threads: Vec<usize>) -> Result<Vec<(usize, ThreadPool)>, Failure> {
    if threads.is_empty() {
        let hardware = hardware_threads();
        threads = distinct(vec![1, hardware]);
    }
    let pool = |threads: usize| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|e| Failure::input(format!("cannot start the threads: {e}")))?;
        Ok((threads, pool))
    };
    threads.into_iter().map(pool).collect()
}

/// Leaves out what came before.
fn distinct<T: PartialEq>(items: Vec<T>) -> Vec<T> {
    let mut kept = Vec::new();
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}
