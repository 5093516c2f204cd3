//! Epochs until the error on held-out entries settles, from one start or several; the best model
//! is kept.

use std::ops::ControlFlow;
use std::time::Instant;

use decompose_common::restarts::seed_of;
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Matrix};

use crate::baseline::baselines;
use crate::biases::Fixed;
use crate::checkpoint;
use crate::config::{Algorithm, Biases, CompleteConfig, ModelKind, Start};
use crate::data::{Data, check, unseen};
use crate::entries::Entries;
use crate::error::CompleteError;
use crate::method::{Method, Progress, method};
use crate::metrics::Scores;
use crate::network::Network;
use crate::objective::{Needs, Objective};
use crate::outcome::{CompleteOutcome, EpochRecord, StartReport};
use crate::start;
use crate::stop::{StopReason, Verdict, Watch};

/// Sees every epoch as it ends and may stop the fit.
pub type Observer<'a> = dyn FnMut(&EpochRecord) -> ControlFlow<()> + 'a;

/// The training error, relative to the entries, that is rounding.
const ROUNDING: f64 = 1e-14;

/// Fits a model to the training entries of `data` until its error on the validation entries
/// settles, from every start, and keeps the one with the least.
///
/// `observer` sees each start as epoch 0 and every epoch.  The result depends on the entries, the
/// options and the number of threads only; a run that is resumed from its checkpoint ends with the
/// same bits.
///
/// # Errors
///
/// [`CompleteError`]: options that make no sense, entries outside the domain of the loss, no memory,
/// overflow at the start, a checkpoint of another run or one that cannot be written.
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
    run.clock = Instant::now();
    loop {
        let stop = run.iterate(data, config, observer)?;
        let cut_short = matches!(stop, StopReason::TimeLimit | StopReason::Interrupted);
        if cut_short || run.finished.len() + 1 >= config.restarts {
            if let Some(rule) = &config.checkpoint {
                checkpoint::save(&run, data, config, &rule.folder)?;
            }
            return run.conclude(data, config, (stop, build_seconds));
        }
        run.finish(stop, config)?;
        run.restart(data.train, config, toolchain)?;
    }
}

/// A fit in progress.
pub(crate) struct Run {
    objective: Objective,
    pub(crate) method: Box<dyn Method>,
    /// Validation and test entries.
    judges: [Option<Entries>; 2],
    pub(crate) blocks: Vec<Matrix<f64>>,
    /// The best of this start.
    pub(crate) best: Vec<Matrix<f64>>,
    /// The best of the finished starts; none before there is one.
    pub(crate) kept: Vec<Matrix<f64>>,
    pub(crate) history: Vec<EpochRecord>,
    pub(crate) finished: Vec<StartReport>,
    pub(crate) watch: Watch,
    /// The root mean square of the training entries.
    size: f64,
    /// When this process began.
    clock: Instant,
    /// Seconds before a resumption.
    pub(crate) earlier_seconds: f64,
}

impl Run {
    fn begin(
        data: Data<'_>,
        start: Start,
        config: &CompleteConfig,
        toolchain: &Toolchain,
    ) -> Result<Run, CompleteError> {
        config.check(data.train.extents())?;
        check(data, config.loss)?;
        let mut archive = match &start {
            Start::Checkpoint(folder) => Some(checkpoint::open(data, config, folder)?),
            Start::Random | Start::Given(_) => None,
        };
        let course = archive.as_mut().map(|archive| checkpoint::read_course(archive, config.seed));
        let (history, finished) = course.transpose()?.unwrap_or_default();
        let seed = seed_of(config.seed, finished.len());
        let mut objective = objective(data.train, config, toolchain)?;
        let judge = |part: Option<&Coo<f64>>| {
            part.map(|part| Entries::new(part, objective.network(), toolchain)).transpose()
        };
        let judges = [judge(data.val)?, judge(data.test)?];
        let method = method(&seeded(config, seed), data.train, &objective, toolchain)?;
        let blocks = match start {
            Start::Given(blocks) => fitting(blocks, objective.network())?,
            Start::Random | Start::Checkpoint(_) => {
                start::random(&mut objective, seed, config.range())?
            }
        };
        let best = blocks.iter().map(Matrix::try_clone).collect::<Result<_, _>>()?;
        let size = (data.train.norm_squared() / data.train.nnz() as f64).sqrt();
        let (kept, watch, clock) = (Vec::new(), Watch::new(), Instant::now());
        let mut run = Run {
            objective,
            method,
            judges,
            blocks,
            best,
            kept,
            history,
            finished,
            watch,
            size,
            clock,
            earlier_seconds: 0.0,
        };
        if let Some(archive) = &mut archive {
            checkpoint::load(&mut run, archive)?;
        }
        Ok(run)
    }

    /// Returns the seconds of all epochs, those before a resumption included.
    pub(crate) fn seconds(&self) -> f64 {
        self.earlier_seconds + self.clock.elapsed().as_secs_f64()
    }

    /// Returns the last epoch of this start, if it was judged.
    fn last(&self) -> Option<&EpochRecord> {
        self.history.last().filter(|record| record.restart == self.finished.len() + 1)
    }

    fn iterate(
        &mut self,
        data: Data<'_>,
        config: &CompleteConfig,
        observer: &mut Observer<'_>,
    ) -> Result<StopReason, CompleteError> {
        let mut epoch = self.last().map_or(0, |record| record.epoch);
        let mut flow = ControlFlow::Continue(());
        if self.last().is_none() {
            flow = observer(self.judge(0, 0.0, config)?);
        }
        loop {
            let Some(record) = self.last() else { return Ok(StopReason::Interrupted) };
            if let Some(stop) = self.stop(record, config) {
                return Ok(stop);
            }
            if flow.is_break() {
                return Ok(StopReason::Interrupted);
            }
            let (before, value) = (Instant::now(), record.objective);
            let progress = self.method.epoch(&mut self.objective, &mut self.blocks, value)?;
            if progress == Progress::Stationary {
                return Ok(StopReason::Stationary);
            }
            epoch += 1;
            self.judge(epoch, before.elapsed().as_secs_f64(), config)?;
            if let Some(rule) = config.checkpoint.as_ref().filter(|r| epoch.is_multiple_of(r.every))
            {
                checkpoint::save(self, data, config, &rule.folder)?;
            }
            flow = self.last().map_or(flow, &mut *observer);
        }
    }

    /// Decides whether to stop after the epoch `record`.
    fn stop(&self, record: &EpochRecord, config: &CompleteConfig) -> Option<StopReason> {
        if record.train.rmse <= ROUNDING * self.size {
            return Some(StopReason::PerfectFit);
        }
        if self.watch.settled(record.epoch, &config.patience) {
            return Some(StopReason::Settled);
        }
        if record.epoch >= config.max_epochs {
            return Some(StopReason::EpochLimit);
        }
        let over = |limit| self.clock.elapsed() >= limit;
        config.max_time.is_some_and(over).then_some(StopReason::TimeLimit)
    }

    /// Judges the blocks, records the epoch, and keeps them if they are the best.
    fn judge(
        &mut self,
        epoch: usize,
        seconds: f64,
        config: &CompleteConfig,
    ) -> Result<&EpochRecord, CompleteError> {
        let before = Instant::now();
        let (loss, offset) = (config.loss, self.objective.offset());
        let objective = self.objective.value(&self.blocks)?;
        if epoch == 0 && !objective.is_finite() {
            return Err(CompleteError::NotFinite { epoch, remedy: "scale the entries" });
        }
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
            restart: self.finished.len() + 1,
            epoch,
            objective,
            train,
            val,
            test,
            seconds,
            judge_seconds: before.elapsed().as_secs_f64(),
            total_seconds: self.seconds(),
        };
        let error = record.deciding().error();
        if self.watch.see(epoch, error, &config.patience) == Verdict::Best {
            for (best, block) in self.best.iter_mut().zip(&self.blocks) {
                best.as_mut_slice().copy_from_slice(block.as_slice());
            }
        }
        self.history.push(record);
        Ok(&self.history[self.history.len() - 1])
    }

    /// Takes this start into the reports, and its best blocks if they are the best of all.
    fn finish(&mut self, stop: StopReason, config: &CompleteConfig) -> Result<(), CompleteError> {
        let number = self.finished.len();
        let best = self.watch.best_epoch();
        let mut course = self.history.iter().filter(|record| record.restart == number + 1);
        let none = || CompleteError::Data("no epoch was recorded".into());
        self.finished.push(StartReport {
            seed: seed_of(config.seed, number),
            best: course.clone().find(|record| record.epoch == best).ok_or_else(none)?.clone(),
            epochs: course.next_back().map_or(0, |record| record.epoch),
            stop,
        });
        if best_of(&self.finished) == number {
            self.kept = std::mem::take(&mut self.best);
        }
        Ok(())
    }

    /// Begins the next start.
    fn restart(
        &mut self,
        train: &Coo<f64>,
        config: &CompleteConfig,
        toolchain: &Toolchain,
    ) -> Result<(), CompleteError> {
        let seed = seed_of(config.seed, self.finished.len());
        self.method = method(&seeded(config, seed), train, &self.objective, toolchain)?;
        self.blocks = start::random(&mut self.objective, seed, config.range())?;
        self.best = self.blocks.iter().map(Matrix::try_clone).collect::<Result<_, _>>()?;
        self.watch = Watch::new();
        Ok(())
    }

    /// Ends the last start and returns the best.
    fn conclude(
        mut self,
        data: Data<'_>,
        config: &CompleteConfig,
        (stop, build_seconds): (StopReason, f64),
    ) -> Result<CompleteOutcome, CompleteError> {
        let seconds = self.seconds();
        self.finish(stop, config)?;
        let best_start = best_of(&self.finished);
        let StartReport { best, stop, .. } = self.finished[best_start].clone();
        let rank = match config.model {
            ModelKind::Cp { rank } => rank,
            ModelKind::Tucker { .. } | ModelKind::Train { .. } => 0,
        };
        Ok(CompleteOutcome {
            network: self.objective.network().clone(),
            blocks: self.kept,
            offset: self.objective.offset(),
            rank,
            best,
            history: self.history,
            stop,
            starts: self.finished,
            best_start,
            baselines: baselines(config.loss, data.train, data.val, data.test),
            unseen: (0..data.train.order()).map(|mode| unseen(data.train, mode)).collect(),
            interpreted: self.objective.entries().interpreted().map(str::to_owned),
            build_seconds,
            seconds,
        })
    }
}

/// Returns the start with the least deciding error; of equal ones, the earliest.
fn best_of(starts: &[StartReport]) -> usize {
    let error = |at: usize| starts[at].best.deciding().error();
    (0..starts.len()).min_by(|&a, &b| error(a).total_cmp(&error(b))).unwrap_or(0)
}

/// Returns the options of the start with `seed`.
fn seeded(config: &CompleteConfig, seed: u64) -> CompleteConfig {
    CompleteConfig { seed, ..config.clone() }
}

/// Schedules the kernels that the algorithm needs on the training entries.
fn objective(
    train: &Coo<f64>,
    config: &CompleteConfig,
    toolchain: &Toolchain,
) -> Result<Objective, CompleteError> {
    let (kind, fixed, offset) = augmented(config, train);
    let network = Network::new(&kind, train.extents());
    let reg = match config.reg.as_slice() {
        [one] => vec![*one; network.blocks().len()],
        each => each.to_vec(),
    };
    let needs = match config.algorithm {
        Algorithm::Adam | Algorithm::Lbfgs | Algorithm::AlsCg => Needs::Gradients,
        Algorithm::Als if !matches!(kind, ModelKind::Cp { .. }) => Needs::Gradients,
        _ => Needs::Values,
    };
    let objective = Objective::new(train, network, config.loss, (reg, needs), toolchain)?;
    Ok(objective.with_biases(offset, fixed))
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
