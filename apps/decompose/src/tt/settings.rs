//! What the user typed, completed by defaults and checked: all that decides a run.

use std::ops::Deref;

use decompose_tt::{Method, Ranks, TrainOrder, TtConfig};

use crate::failure::Failure;
use crate::run::settings::{RunArgs, RunDefaults, RunSettings};
use crate::tt::args::{Init, ModelArgs, TtArgs};

/// All decisions about a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) run: RunSettings,
    pub(crate) config: TtConfig,
    pub(crate) order: Option<TrainOrder>,
    pub(crate) init: Init,
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
    pub(crate) fn new(args: &TtArgs) -> Result<Settings, Failure> {
        let model = &args.model;
        let ranks = ranks(model)?;
        let suffix = format!("tt-{}", short(&ranks));
        let defaults = RunDefaults { max_iters: 50, tol: 1e-5, seed: 0, suffix };
        let typed = RunArgs {
            input: args.input.clone(),
            course: &model.course,
            compute: &args.compute,
            output: &args.output,
            switches: args.switches,
        };
        let run = RunSettings::new(typed, defaults)?;
        let usual = if ranks.bound().is_some() { Method::Svd } else { Method::Als };
        let config = TtConfig {
            seed: run.seed,
            restarts: run.restarts,
            stop: run.stop,
            checkpoint: run.checkpoint(),
            ..TtConfig::new(model.method.unwrap_or(usual), ranks)
        };
        if config.method == Method::Svd && (run.resume.is_some() || model.init != Init::Random) {
            let why = "svd does not iterate: there is nothing to start from or to resume";
            return Err(Failure::input(why).help("use --method als or dmrg"));
        }
        Ok(Settings { run, config, order: model.order.clone(), init: model.init.clone() })
    }
}

/// Returns the ranks that are asked for.
///
/// # Errors
///
/// If none are.
pub(crate) fn ranks(model: &ModelArgs) -> Result<Ranks, Failure> {
    if model.ranks.is_some() && model.max_rank.is_some() {
        let why = "--max-rank bounds the ranks that --eps chooses; --ranks gives them";
        return Err(Failure::input(why).help("leave out one of the two"));
    }
    match (&model.ranks, model.eps) {
        (Some(ranks), _) if ranks.len() == 1 => Ok(Ranks::Uniform(ranks[0])),
        (Some(ranks), _) => Ok(Ranks::Each(ranks.clone())),
        (None, Some(eps)) => Ok(Ranks::Error { eps, max_rank: model.max_rank }),
        (None, None) => Err(Failure::input("no ranks given; they have no default")
            .help("try `--ranks 8`, or `--eps 0.1` to choose them by the error")),
    }
}

/// Returns what names ranks in the name of a folder: `r8x8`, `eps0.1`.
fn short(ranks: &Ranks) -> String {
    match ranks {
        Ranks::Uniform(rank) => format!("r{rank}"),
        Ranks::Each(ranks) => {
            let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
            format!("r{}", ranks.join("x"))
        }
        Ranks::Error { eps, .. } => format!("eps{eps}"),
    }
}

/// Returns ranks or extents for people: `8-8`.
pub(crate) fn joined<T: ToString>(numbers: &[T], between: &str) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(between)
}

/// Writes a ratio with three digits.
pub(crate) fn times(ratio: f64) -> String {
    if ratio >= 1e5 { format!("{ratio:.2e}") } else { format!("{ratio:.1}") }
}

/// Returns what was asked of the ranks.
pub(crate) fn asked(ranks: &Ranks) -> String {
    match ranks {
        Ranks::Uniform(rank) => format!("rank {rank}"),
        Ranks::Each(ranks) => format!("ranks {}", joined(ranks, "-")),
        Ranks::Error { eps, max_rank: None } => format!("error under {eps:e}"),
        Ranks::Error { eps, max_rank: Some(rank) } => {
            format!("error under {eps:e} with ranks up to {rank}")
        }
    }
}
