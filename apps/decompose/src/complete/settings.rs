//! What the user typed, completed by defaults and checked: all that decides a run.

use std::ops::Deref;
use std::path::PathBuf;

use decompose_complete::{
    Algorithm, Biases, CompleteConfig, Loss, ModelKind, Patience, Range, Reg, Share, SplitRule,
};
use decompose_formats::{Coo, Duplicates};

use crate::complete::args::{
    Alg, CompleteArgs, DataArgs, FitArgs, LossName, ModelArgs, ModelName, Ridge, SplitBy,
};
use crate::failure::Failure;
use crate::run::args::Precision;
use crate::run::settings::{RunArgs, RunDefaults, RunSettings};

/// The most epochs.
const EPOCHS: usize = 500;
/// The least relative improvement.
const TOLERANCE: f64 = 1e-4;

/// All decisions about a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) run: RunSettings,
    /// With the ranks as typed: see [`Settings::config`].
    model: ModelArgs,
    pub(crate) held_out: HeldOut,
    /// The file of observed cells.
    pub(crate) mask: Option<PathBuf>,
    pub(crate) reg: Reg,
    /// As asked for; the huber loss without a distance is that of [`Settings::see`].
    loss: Loss,
}

/// Which entries are held out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HeldOut {
    /// Some of the tensor's.
    Split(Share, SplitRule),
    /// Those of these files.
    Files {
        /// Validation entries.
        val: Option<PathBuf>,
        /// Test entries.
        test: Option<PathBuf>,
    },
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
    pub(crate) fn new(args: &CompleteArgs) -> Result<Settings, Failure> {
        let model = args.model.clone();
        let suffix = format!("complete-{}", name(&model)?);
        // Two measurements of a cell do not add up.
        let input = args.input.clone().with_missing(args.missing);
        let input = input.with_default_duplicates(Duplicates::Mean);
        let defaults = RunDefaults { max_iters: EPOCHS, tol: TOLERANCE, seed: 0, suffix };
        let typed = RunArgs {
            input,
            course: &model.fit.course,
            compute: &args.compute,
            output: &args.output,
            switches: args.switches,
        };
        let run = RunSettings::new(typed, defaults)?;
        if run.precision == Precision::F32 {
            return Err(Failure::input(
                "completion works in double precision; use --precision f64",
            ));
        }
        let held_out = held_out(&args.data, run.seed)?;
        let reg = reg(&model.fit.reg)?;
        let loss = loss(&model.fit);
        let mask = args.data.mask.clone();
        Ok(Settings { run, model, held_out, mask, reg, loss })
    }

    /// Completes what depends on the training entries: from where a huber loss is linear.
    pub(crate) fn see(&mut self, train: &Coo<f64>) {
        let fit = &self.model.fit;
        if fit.loss == LossName::Huber && fit.huber_delta.is_none() {
            self.loss = Loss::huber_of(train.values());
        }
    }

    /// Returns the options of the fit of a tensor of `order` modes, start number `restart`.
    pub(crate) fn config(&self, order: usize, restart: usize) -> CompleteConfig {
        let fit = &self.model.fit;
        let loss = self.loss();
        let default = if loss.is_quadratic() { Algorithm::Als } else { Algorithm::Lbfgs };
        let algorithm = fit.alg.map_or(default, |alg| match alg {
            Alg::Als => Algorithm::Als,
            Alg::AlsCg => Algorithm::AlsCg,
            Alg::Ccd => Algorithm::Ccd,
            Alg::Sgd => Algorithm::Sgd,
            Alg::Adam => Algorithm::Adam,
            Alg::Lbfgs => Algorithm::Lbfgs,
        });
        CompleteConfig {
            algorithm,
            loss,
            reg: self.reg.clone(),
            sign: if fit.nonneg { Range::NonNegative } else { Range::All },
            biases: if fit.biases { Biases::Modes } else { Biases::None },
            seed: decompose_common::restarts::seed_of(self.run.seed, restart),
            patience: Patience { tol: self.stop.tol, epochs: fit.patience },
            max_epochs: self.stop.max_iters,
            max_time: self.stop.max_time,
            step: fit.step,
            inner: fit.ccd_inner,
            block: fit.ccd_block,
            ..CompleteConfig::new(self.kind(order))
        }
    }

    /// Returns the loss.
    pub(crate) fn loss(&self) -> Loss {
        self.loss
    }

    /// Returns the model for a tensor of `order` modes: one rank stands for all.
    pub(crate) fn kind(&self, order: usize) -> ModelKind {
        let ranks = |count: usize| match (self.model.ranks.as_slice(), self.model.rank) {
            ([], Some(one)) => vec![one; count],
            ([one], _) => vec![*one; count],
            (ranks, _) => ranks.to_vec(),
        };
        match self.model.model {
            ModelName::Cp => ModelKind::Cp { rank: self.model.rank.unwrap_or(1) },
            ModelName::Tucker => ModelKind::Tucker { ranks: ranks(order) },
            ModelName::Tt => ModelKind::Train { ranks: ranks(order.saturating_sub(1)) },
        }
    }

    /// Returns the model in a few words: `CP, rank 10`.
    pub(crate) fn model_name(&self) -> String {
        let ranks: Vec<String> = self.model.ranks.iter().map(ToString::to_string).collect();
        let rank = self.model.rank.map_or_else(|| ranks.join("x"), |rank| rank.to_string());
        let kind = match self.model.model {
            ModelName::Cp => "CP",
            ModelName::Tucker => "Tucker",
            ModelName::Tt => "tensor train",
        };
        format!("{kind}, rank {rank}")
    }

    /// Returns the same settings with a CP model of another rank.
    pub(crate) fn with_rank(&self, rank: usize) -> Settings {
        let model = ModelArgs { rank: Some(rank), ..self.model.clone() };
        Settings { model, ..self.clone() }
    }
}

/// The model in the name of the output folder: `cp-r10`.
fn name(model: &ModelArgs) -> Result<String, Failure> {
    let ranks: Vec<String> = model.ranks.iter().map(ToString::to_string).collect();
    let (kind, rank) = match (model.model, model.rank, ranks.as_slice()) {
        (ModelName::Cp, None, _) => {
            return Err(Failure::input("no rank given; the number of components has no default")
                .help("try `--rank 10`, and compare the held-out error at other ranks"));
        }
        (ModelName::Tucker | ModelName::Tt, None, []) => {
            return Err(Failure::input("no ranks given").help("try `--ranks 4`, the same for all"));
        }
        (ModelName::Cp, Some(rank), _) => ("cp", rank.to_string()),
        (ModelName::Tucker, Some(rank), _) => ("tucker", rank.to_string()),
        (ModelName::Tt, Some(rank), _) => ("tt", rank.to_string()),
        (ModelName::Tucker, None, ranks) => ("tucker", ranks.join("x")),
        (ModelName::Tt, None, ranks) => ("tt", ranks.join("x")),
    };
    Ok(format!("{kind}-r{rank}"))
}

fn loss(fit: &FitArgs) -> Loss {
    match fit.loss {
        LossName::Gaussian => Loss::Gaussian,
        LossName::Poisson => Loss::Poisson,
        LossName::Bernoulli => Loss::Bernoulli,
        LossName::Huber => Loss::Huber(fit.huber_delta.unwrap_or(1.0)),
        LossName::Gamma => Loss::Gamma,
    }
}

fn reg(words: &[Ridge]) -> Result<Reg, Failure> {
    let number = |word: &Ridge| match *word {
        Ridge::Number(number) => Some(number),
        Ridge::Auto => None,
    };
    match (words.iter().map(number).collect(), words) {
        (Some(numbers), _) => Ok(Reg::Given(numbers)),
        (None, [_]) => Ok(Reg::Chosen),
        (None, _) => Err(Failure::input("--reg auto chooses one ridge for all modes")
            .help("leave out the numbers, or give a number for each mode")),
    }
}

fn held_out(data: &DataArgs, seed: u64) -> Result<HeldOut, Failure> {
    if data.val.is_some() || data.test.is_some() {
        return Ok(HeldOut::Files { val: data.val.clone(), test: data.test.clone() });
    }
    let share = match data.split.as_slice() {
        [] => Share::new(&[0.8, 0.1, 0.1])?,
        shares => Share::new(shares)?,
    };
    let rule = match (data.split_by, data.time_mode) {
        (SplitBy::Random, None) => SplitRule::Random { seed },
        (SplitBy::Random, Some(_)) => {
            return Err(Failure::input("--time-mode needs --split-by time"));
        }
        (SplitBy::Time, Some(mode)) => SplitRule::Time { mode: mode - 1 },
        (SplitBy::Time, None) => {
            return Err(Failure::input("--split-by time needs --time-mode")
                .help("name the mode whose indices are times, as `--time-mode 1`"));
        }
    };
    Ok(HeldOut::Split(share, rule))
}
