//! What the user typed, completed by defaults and checked: all that decides a run.

use std::ops::Deref;
use std::path::PathBuf;

use decompose_core::sweep::{Merging, Trees};
use decompose_tucker::{
    Method, Target, Truncation, TuckerConfig, check_order, check_ranks, is_compared,
    may_end_below_hosvd, saved_ranks,
};

use crate::failure::Failure;
use crate::run::settings::{RunArgs, RunDefaults, RunSettings};
use crate::tucker::args::{AboveHosvd, Init, MethodName, TuckerArgs};

/// All decisions about a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) run: RunSettings,
    pub(crate) ranks: RanksFrom,
    pub(crate) method: MethodName,
    pub(crate) nonneg: bool,
    pub(crate) start: StartFrom,
    pub(crate) above_hosvd: AboveHosvd,
    pub(crate) trees: Trees,
    pub(crate) merging: Merging,
}

/// What decides the ranks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RanksFrom {
    /// One for all modes.
    All(usize),
    /// One a mode.
    Each(Vec<usize>),
    /// A relative error.
    Error(f64),
}

/// Where a run starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartFrom {
    /// From the seed.
    Random,
    /// From singular vectors of the unfoldings.
    Hosvd(Truncation),
    /// From a model file.
    File(PathBuf),
    /// From the checkpoint in this folder.
    Checkpoint(PathBuf),
}

impl StartFrom {
    /// Returns how the HOSVD is truncated that a run starts from.
    pub(crate) fn truncation(&self) -> Option<Truncation> {
        match self {
            StartFrom::Hosvd(truncation) => Some(*truncation),
            StartFrom::Random | StartFrom::File(_) | StartFrom::Checkpoint(_) => None,
        }
    }
}

/// Below what a run does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floor {
    /// The fit of a HOSVD, computed beside the start.
    Hosvd,
    /// Nothing.
    None,
}

impl Deref for Settings {
    type Target = RunSettings;

    fn deref(&self) -> &RunSettings {
        &self.run
    }
}

impl Settings {
    /// Completes and checks what the user typed.
    ///
    /// # Errors
    ///
    /// Options that are missing or exclude each other.
    pub(crate) fn new(args: TuckerArgs) -> Result<Settings, Failure> {
        let ranks = ranks(&args)?;
        if args.model.nonneg && args.model.method != MethodName::Hooi {
            let why = "--nonneg iterates from a start; leave out --method, or use --init hosvd";
            return Err(Failure::input(why));
        }
        if args.model.method != MethodName::Hooi && args.model.init.is_some() {
            let why = "--init is where hooi starts; hosvd and st-hosvd have no start";
            return Err(Failure::input(why));
        }
        let iterates = args.model.method == MethodName::Hooi && !args.model.nonneg;
        if args.model.above_hosvd == AboveHosvd::Yes && !iterates {
            let why = "--above-hosvd is for hooi without --nonneg";
            return Err(Failure::input(why).help("leave it out"));
        }
        let suffix = format!("tucker-{}", ranks.suffix());
        let defaults = RunDefaults { max_iters: 50, tol: 1e-5, seed: 0, suffix };
        let typed = RunArgs {
            input: args.input.clone(),
            course: &args.model.course,
            compute: &args.compute,
            output: &args.output,
            switches: args.switches,
        };
        let run = RunSettings::new(typed, defaults)?;
        let start = start(&args, &run, &ranks)?;
        let (method, nonneg) = (args.model.method, args.model.nonneg);
        let (trees, merging) = (args.plan.trees()?, args.plan.merging()?);
        if matches!(merging, Merging::Given(_)) && (nonneg || method != MethodName::Hooi) {
            let why =
                "--plan merges modes that hooi updates in turn; other methods have no such kernels";
            return Err(Failure::input(why).help("leave out --plan, --method and --nonneg"));
        }
        let above_hosvd = args.model.above_hosvd;
        Ok(Settings { run, ranks, method, nonneg, start, above_hosvd, trees, merging })
    }

    /// Returns the options of the solver at these ranks.
    pub(crate) fn config(&self, ranks: Vec<usize>) -> TuckerConfig {
        TuckerConfig {
            method: self.solver(),
            seed: self.seed,
            stop: self.stop,
            restarts: self.restarts,
            checkpoint: self.checkpoint(),
            ..TuckerConfig::new(ranks)
        }
    }

    /// Returns the solver's method.
    pub(crate) fn solver(&self) -> Method {
        match self.method {
            MethodName::Hooi if self.nonneg => Method::Nonnegative,
            MethodName::Hooi => Method::Hooi,
            MethodName::Hosvd | MethodName::StHosvd => Method::Core,
        }
    }

    /// Returns the ranks for a tensor of `extents`, checked, or the error by which they are to be found.
    ///
    /// # Errors
    ///
    /// Ranks that do not fit the tensor.
    pub(crate) fn target(&self, extents: &[u64]) -> Result<Target, Failure> {
        check_order(extents.len())?;
        let ranks = match (&self.ranks, &self.start) {
            (RanksFrom::All(rank), _) => vec![*rank; extents.len()],
            (RanksFrom::Each(ranks), _) => ranks.clone(),
            (RanksFrom::Error(_), StartFrom::Checkpoint(folder)) => saved_ranks(folder)?,
            (RanksFrom::Error(eps), _) => return Ok(Target::Error(*eps)),
        };
        check_ranks(extents, &ranks)?;
        Ok(Target::Ranks(ranks))
    }

    /// Tells whether a HOSVD is wanted beside the start of a run on `nnz` non-zeros.
    pub(crate) fn floor(&self, nnz: usize) -> Floor {
        let (method, begin) = (self.solver(), self.start.truncation());
        let compared = match self.above_hosvd {
            AboveHosvd::Auto => is_compared(method, begin, nnz),
            AboveHosvd::Yes => may_end_below_hosvd(method, begin),
            AboveHosvd::No => false,
        };
        if compared { Floor::Hosvd } else { Floor::None }
    }

    /// Returns the name of the method for people.
    pub(crate) fn method_name(&self) -> &'static str {
        match self.method {
            MethodName::Hooi if self.nonneg => "nonnegative Tucker",
            MethodName::Hooi => "HOOI",
            MethodName::Hosvd => "HOSVD",
            MethodName::StHosvd => "ST-HOSVD",
        }
    }
}

impl RanksFrom {
    /// Returns the ranks as the name of a folder has them: `r16`, `r16x16x8`, `eps0.05`.
    fn suffix(&self) -> String {
        match self {
            RanksFrom::All(rank) => format!("r{rank}"),
            RanksFrom::Each(ranks) => format!("r{}", times(ranks)),
            RanksFrom::Error(eps) => format!("eps{eps}"),
        }
    }
}

/// Writes ranks as `16x16x8`.
pub(crate) fn times(ranks: &[usize]) -> String {
    ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

fn ranks(args: &TuckerArgs) -> Result<RanksFrom, Failure> {
    match (args.model.ranks.as_slice(), args.model.eps) {
        ([], None) => Err(Failure::input("no ranks given; they have no default")
            .help("try `--ranks 10`, one a mode as `--ranks 10,5,8`, or an error as `--eps 0.1`")),
        ([], Some(eps)) => Ok(RanksFrom::Error(eps)),
        ([rank], _) => Ok(RanksFrom::All(*rank)),
        (ranks, _) => Ok(RanksFrom::Each(ranks.to_vec())),
    }
}

fn start(args: &TuckerArgs, run: &RunSettings, ranks: &RanksFrom) -> Result<StartFrom, Failure> {
    if let Some(folder) = &run.saved {
        return Ok(StartFrom::Checkpoint(folder.clone()));
    }
    let found = matches!(ranks, RanksFrom::Error(_));
    match (args.model.method, &args.model.init) {
        (MethodName::StHosvd, _) => Ok(StartFrom::Hosvd(Truncation::Sequential)),
        (MethodName::Hosvd, _) | (_, Some(Init::Hosvd)) => Ok(StartFrom::Hosvd(Truncation::AtOnce)),
        (_, None) if found => Ok(StartFrom::Hosvd(Truncation::AtOnce)),
        (_, Some(_)) if found => Err(Failure::input(
            "--eps finds the ranks by a HOSVD, which is also the start; leave out --init",
        )),
        (_, None | Some(Init::Random)) => Ok(StartFrom::Random),
        (_, Some(Init::File(path))) => Ok(StartFrom::File(path.clone())),
    }
}
