//! Epochs until the error on held-out entries settles; the best model is kept.

use std::ops::ControlFlow;
use std::time::Instant;

use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Matrix};

use crate::baseline::baselines;
use crate::biases::Fixed;
use crate::config::{Algorithm, Biases, CompleteConfig, ModelKind, Start};
use crate::entries::Entries;
use crate::error::CompleteError;
use crate::loss::Loss;
use crate::method::{Method, Progress, method};
use crate::metrics::Scores;
use crate::network::Network;
use crate::objective::{Needs, Objective};
use crate::outcome::{CompleteOutcome, EpochRecord};
use crate::start;
use crate::stop::{StopReason, Verdict, Watch};

/// Sees every epoch as it ends and may stop the fit.
pub type Observer<'a> = dyn FnMut(&EpochRecord) -> ControlFlow<()> + 'a;

/// The training error, relative to the entries, that is rounding.
const ROUNDING: f64 = 1e-14;

/// The entries of a completion, without duplicates.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Those that the model is fitted to.
    pub train: &'a Coo<f64>,
    /// Those that end the fit and choose the model.
    pub val: Option<&'a Coo<f64>>,
    /// Those that judge it.
    pub test: Option<&'a Coo<f64>>,
}

/// Fits a model to the training entries of `data` until its error on the validation entries
/// settles, and keeps the one with the least.
///
/// `observer` sees the start as epoch 0 and every epoch.  The result depends on the entries, the
/// options and the number of threads only.
///
/// # Errors
///
/// [`CompleteError`]: options that make no sense, entries outside the domain of the loss, no memory,
/// overflow at the start.
pub fn solve(
    data: Data<'_>,
    start: Start,
    config: &CompleteConfig,
    toolchain: &Toolchain,
    observer: &mut Observer<'_>,
) -> Result<CompleteOutcome, CompleteError> {
    let begin = Instant::now();
    let mut run = Run::begin(data, start, config, toolchain)?;
    let build_seconds = begin.elapsed().as_secs_f64();
    let clock = Instant::now();
    let stop = run.iterate(config, clock, observer)?;
    let Run { mut objective, judges, best, history, watch, .. } = run;
    let record = history.get(watch.best_epoch()).cloned();
    let none = || CompleteError::Data("no epoch was recorded".into());
    let rank = match (&config.model, config.biases) {
        (ModelKind::Cp { rank }, _) => *rank,
        _ => 0,
    };
    drop(judges);
    Ok(CompleteOutcome {
        network: objective.network().clone(),
        blocks: best,
        offset: objective.offset(),
        rank,
        best: record.ok_or_else(none)?,
        history,
        stop,
        baselines: baselines(config.loss, data.train, data.val, data.test),
        unseen: (0..data.train.order()).map(|mode| unseen(data.train, mode)).collect(),
        interpreted: objective.entries().interpreted().map(str::to_owned),
        build_seconds,
        seconds: clock.elapsed().as_secs_f64(),
    })
}

/// A fit in progress.
struct Run {
    objective: Objective,
    method: Box<dyn Method>,
    /// Validation and test entries.
    judges: [Option<Entries>; 2],
    blocks: Vec<Matrix<f64>>,
    best: Vec<Matrix<f64>>,
    history: Vec<EpochRecord>,
    watch: Watch,
    /// The root mean square of the training entries.
    size: f64,
}

impl Run {
    fn begin(
        data: Data<'_>,
        start: Start,
        config: &CompleteConfig,
        toolchain: &Toolchain,
    ) -> Result<Run, CompleteError> {
        let extents = data.train.extents();
        config.check(extents)?;
        check(data, config.loss)?;
        let (kind, fixed, offset) = augmented(config, data.train);
        let network = Network::new(&kind, extents);
        let reg = match config.reg.as_slice() {
            [one] => vec![*one; network.blocks().len()],
            each => each.to_vec(),
        };
        let needs = match config.algorithm {
            Algorithm::Adam | Algorithm::Lbfgs | Algorithm::AlsCg => Needs::Gradients,
            Algorithm::Als if !matches!(kind, ModelKind::Cp { .. }) => Needs::Gradients,
            _ => Needs::Values,
        };
        let objective = Objective::new(data.train, network, config.loss, (reg, needs), toolchain)?;
        let mut objective = objective.with_biases(offset, fixed);
        let judge = |part: Option<&Coo<f64>>| {
            part.map(|part| Entries::new(part, objective.network(), toolchain)).transpose()
        };
        let judges = [judge(data.val)?, judge(data.test)?];
        let method = method(config, data.train, &objective, toolchain)?;
        let blocks = match start {
            Start::Random => start::random(&mut objective, config.seed, config.range())?,
            Start::Given(blocks) => fitting(blocks, objective.network())?,
        };
        let best = blocks.iter().map(Matrix::try_clone).collect::<Result<_, _>>()?;
        let size = (data.train.norm_squared() / data.train.nnz() as f64).sqrt();
        let (history, watch) = (Vec::new(), Watch::new());
        Ok(Run { objective, method, judges, blocks, best, history, watch, size })
    }

    fn iterate(
        &mut self,
        config: &CompleteConfig,
        clock: Instant,
        observer: &mut Observer<'_>,
    ) -> Result<StopReason, CompleteError> {
        let mut value = self.judge(0, 0.0, (config, clock))?;
        if !value.is_finite() {
            let remedy = "scale the entries";
            return Err(CompleteError::NotFinite { epoch: 0, remedy });
        }
        for epoch in 0.. {
            if epoch > 0 {
                let before = Instant::now();
                let progress = self.method.epoch(&mut self.objective, &mut self.blocks, value)?;
                if progress == Progress::Stationary {
                    return Ok(StopReason::Stationary);
                }
                value = self.judge(epoch, before.elapsed().as_secs_f64(), (config, clock))?;
            }
            let Some(record) = self.history.last() else { continue };
            let flow = observer(record);
            if record.train.rmse <= ROUNDING * self.size {
                return Ok(StopReason::PerfectFit);
            }
            if flow.is_break() {
                return Ok(StopReason::Interrupted);
            }
            if self.watch.settled(epoch, &config.patience) {
                return Ok(StopReason::Settled);
            }
            if epoch >= config.max_epochs {
                return Ok(StopReason::EpochLimit);
            }
            if config.max_time.is_some_and(|limit| clock.elapsed() >= limit) {
                return Ok(StopReason::TimeLimit);
            }
        }
        Ok(StopReason::EpochLimit)
    }

    /// Judges the blocks, records the epoch, and keeps them if they are the best; returns the
    /// objective.
    fn judge(
        &mut self,
        epoch: usize,
        seconds: f64,
        (config, clock): (&CompleteConfig, Instant),
    ) -> Result<f64, CompleteError> {
        let before = Instant::now();
        let (loss, offset) = (config.loss, self.objective.offset());
        let objective = self.objective.value(&self.blocks)?;
        let blocks: Vec<&Matrix<f64>> = self.blocks.iter().collect();
        let scores = |entries: &mut Entries| -> Result<Scores, CompleteError> {
            entries.evaluate(&blocks)?;
            Ok(Scores::of(loss, entries.observed(), entries.model(), offset))
        };
        let entries = self.objective.entries();
        let train = Scores::of(loss, entries.observed(), entries.model(), offset);
        let [val, test] = &mut self.judges;
        let val = val.as_mut().map(scores).transpose()?;
        let test = test.as_mut().map(scores).transpose()?;
        let record = EpochRecord {
            epoch,
            objective,
            train,
            val,
            test,
            seconds,
            judge_seconds: before.elapsed().as_secs_f64(),
            total_seconds: clock.elapsed().as_secs_f64(),
        };
        let error = record.deciding().error();
        if self.watch.see(epoch, error, &config.patience) == Verdict::Best {
            for (best, block) in self.best.iter_mut().zip(&self.blocks) {
                best.as_mut_slice().copy_from_slice(block.as_slice());
            }
        }
        self.history.push(record);
        Ok(objective)
    }
}

/// Checks the parts against each other and the loss.
fn check(data: Data<'_>, loss: Loss) -> Result<(), CompleteError> {
    let extents = data.train.extents();
    let parts = [("training", Some(data.train)), ("validation", data.val), ("test", data.test)];
    for (name, part) in parts {
        let Some(part) = part else { continue };
        if part.nnz() == 0 {
            return Err(CompleteError::Data(format!("there are no {name} entries")));
        }
        if part.extents() != extents {
            let (have, want) = (part.extents(), extents);
            let why = format!("the {name} entries have extents {have:?}, the training {want:?}");
            return Err(CompleteError::Data(why));
        }
        if let Some(entry) = part.values().iter().position(|&x| !loss.allows(x)) {
            let at: Vec<String> = (0..part.order())
                .map(|mode| (part.coords(mode).get(entry) + 1).to_string())
                .collect();
            return Err(CompleteError::Data(format!(
                "the {name} entry at {} is {}; the {loss} loss is for {}",
                at.join(" "),
                part.values()[entry],
                loss.domain()
            )));
        }
    }
    Ok(())
}

/// Returns the model with its biases as components, which of its columns stay, and the offset.
fn augmented(config: &CompleteConfig, train: &Coo<f64>) -> (ModelKind, Fixed, f64) {
    match (&config.model, config.biases) {
        (ModelKind::Cp { rank }, Biases::Modes) => {
            let order = train.order();
            let mean = train.sum() / train.nnz().max(1) as f64;
            let kind = ModelKind::Cp { rank: rank + order };
            (kind, Fixed::ones(*rank, order), config.loss.link(mean))
        }
        (kind, _) => (kind.clone(), Fixed::none(), 0.0),
    }
}

fn fitting(blocks: Vec<Matrix<f64>>, network: &Network) -> Result<Vec<Matrix<f64>>, CompleteError> {
    let have: Vec<(usize, usize)> = blocks.iter().map(|b| (b.rows(), b.cols())).collect();
    let want: Vec<(usize, usize)> = network.blocks().iter().map(|b| b.matrix()).collect();
    if have == want {
        return Ok(blocks);
    }
    let why = format!("its blocks are {have:?}, wanted are {want:?}");
    Err(CompleteError::Start { what: "the given model".into(), why })
}

/// Counts the slices of a mode without an entry.
fn unseen(tensor: &Coo<f64>, mode: usize) -> u64 {
    let mut seen = vec![false; tensor.extents()[mode] as usize];
    tensor.coords(mode).iter().for_each(|row| seen[row as usize] = true);
    seen.iter().filter(|seen| !**seen).count() as u64
}
