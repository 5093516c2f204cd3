//! Epochs until the error on held-out entries settles, round by round; the best model is kept.

use std::ops::ControlFlow;
use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::memory;
use decompose_common::restarts::seed_of;
use decompose_common::stopping::StopReason;
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Matrix};

use crate::baseline::baselines;
use crate::checkpoint;
use crate::config::{CompleteConfig, ModelKind, Reg, Start};
use crate::data::{Data, check, unseen};
use crate::entries::Entries;
use crate::memory::{fit_bytes, kept_bytes};
use crate::method::{Method, Progress, method};
use crate::metrics::Scores;
use crate::network::Network;
use crate::objective::Objective;
use crate::outcome::{CompleteOutcome, EpochRecord, StartReport};
use crate::problem::objective;
use crate::refit::choose_and_refit;
use crate::rounds::{Round, Rounds};
use crate::start;
use crate::stop::{Verdict, Watch};
use crate::unit::{Unit, root_mean_square};

/// Sees every epoch as it ends and may stop the fit.
pub type Observer<'a> = dyn FnMut(&EpochRecord) -> ControlFlow<()> + 'a;

/// The training error, relative to the entries, that is rounding.
const ROUNDING: f64 = 1e-14;

/// Fits a model to the training entries of `data` until its error on the validation entries
/// settles, from every start, and keeps the one with the least.
///
/// With [`Reg::Chosen`] every start is fitted at one ridge after the other, from strong to weak, and
/// the validation error decides on the ridge too.  Where there are no validation entries, a tenth of
/// the training entries, drawn by the seed, takes their place; the best of these models is then
/// fitted to all training entries with the ridge that was chosen.  Test entries decide nothing.
///
/// `observer` sees each round - a start, at one ridge - as epoch 0 and every epoch.  The result
/// depends on the entries, the options and the number of threads only; a run that is resumed from its
/// checkpoint ends with the same bits.
///
/// # Errors
///
/// [`SolverError`]: options that make no sense, entries outside the domain of the loss, no memory,
/// overflow at the start, a checkpoint of another run.
pub fn solve(
    data: Data<'_>,
    start: Start,
    config: &CompleteConfig,
    toolchain: &Toolchain,
    observer: &mut Observer<'_>,
) -> Result<CompleteOutcome, SolverError> {
    match (&config.reg, data.val) {
        (Reg::Chosen, None) => choose_and_refit(data, start, config, toolchain, observer),
        _ => fit(data, start, config, toolchain, observer),
    }
}

/// Runs all rounds on entries as they are given.
///
/// # Errors
///
/// As [`solve`].
pub(crate) fn fit(
    data: Data<'_>,
    start: Start,
    config: &CompleteConfig,
    toolchain: &Toolchain,
    observer: &mut Observer<'_>,
) -> Result<CompleteOutcome, SolverError> {
    let begin = Instant::now();
    let mut run = Run::begin(data, start, config, toolchain)?;
    let build_seconds = begin.elapsed().as_secs_f64();
    run.clock = Instant::now();
    loop {
        let stop = run.iterate(data, config, observer)?;
        let report = run.report(stop, config)?;
        let next = run.rounds.after(run.finished.iter().chain([&report]));
        if stop.is_cut_short() || next.start >= config.restarts {
            if let Some(rule) = &config.checkpoint {
                rule.attempt(|folder| checkpoint::save(&run, data, config, folder));
            }
            run.finish(report)?;
            return run.conclude(data, config, build_seconds);
        }
        run.finish(report)?;
        run.begin_round(next, data.train, (config, toolchain))?;
    }
}

/// Foresees the memory of a fit.
fn foresee(data: Data<'_>, config: &CompleteConfig) -> Result<(), SolverError> {
    let threads = rayon::current_num_threads();
    let bytes = fit_bytes(data.train.extents(), counts(data), config, threads);
    memory::search(data.train.order())?;
    memory::foresee(bytes, || "the fit".into(), REMEDY)
}

/// Training, validation and test entries.
fn counts(data: Data<'_>) -> [usize; 3] {
    let count = |part: Option<&Coo<f64>>| part.map_or(0, Coo::nnz);
    [data.train.nnz(), count(data.val), count(data.test)]
}

/// What to do about a fit that does not fit memory.
const REMEDY: &str = "lower --rank, or use --alg lbfgs";

/// A fit in progress.
pub(crate) struct Run {
    objective: Objective,
    pub(crate) method: Box<dyn Method>,
    /// Validation and test entries.
    judges: [Option<Entries>; 2],
    pub(crate) blocks: Vec<Matrix<f64>>,
    /// The best of this round.
    pub(crate) best: Vec<Matrix<f64>>,
    /// The best of the finished rounds; none before there is one.
    pub(crate) kept: Vec<Matrix<f64>>,
    pub(crate) history: Vec<EpochRecord>,
    pub(crate) finished: Vec<StartReport>,
    pub(crate) watch: Watch,
    rounds: Rounds,
    round: Round,
    /// What the objective and the judges measure the entries in.
    unit: Unit,
    /// The root mean square of the training entries, as they are.
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
    ) -> Result<Run, SolverError> {
        config.check(data.train.extents())?;
        check(data, config.loss)?;
        foresee(data, config)?;
        let mut archive = match &start {
            Start::Checkpoint(folder) => Some(checkpoint::open(data, config, folder)?),
            Start::Random | Start::Given(_) => None,
        };
        let course = archive.as_mut().map(|archive| checkpoint::read_course(archive, config.seed));
        let (history, finished) = course.transpose()?.unwrap_or_default();
        let unit = Unit::of(config.loss, data.train.values(), config.biases);
        let measured = CompleteConfig { loss: unit.loss(config.loss), ..config.clone() };
        let train = unit.measured(data.train);
        let mut objective = objective(&train, &measured, toolchain)?;
        let rounds = Rounds::new(config, &mut objective);
        let round = rounds.after(finished.iter());
        objective.set_reg(rounds.ridge(round));
        let seed = seed_of(config.seed, round.start);
        let judge = |part: Option<&Coo<f64>>| {
            let make = |part| Entries::new(&unit.measured(part), objective.network(), toolchain);
            part.map(make).transpose()
        };
        let judges = [judge(data.val)?, judge(data.test)?];
        // What the search for kernels left is held now.
        let kept = kept_bytes(data.train.extents(), counts(data), config);
        memory::foresee(kept, || "the lists of the entries".into(), REMEDY)?;
        let method = method(&seeded(config, seed), &train, &objective, toolchain)?;
        drop(train);
        let blocks = match start {
            Start::Given(blocks) => {
                let mut blocks = fitting(blocks, objective.network())?;
                unit.measure(&mut blocks);
                blocks
            }
            Start::Random | Start::Checkpoint(_) => {
                start::random(&mut objective, seed, config.range())?
            }
        };
        let best = copies(&blocks)?;
        let size = root_mean_square(data.train.values());
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
            rounds,
            round,
            unit,
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

    /// Returns the last epoch of this round, if it was judged.
    fn last(&self) -> Option<&EpochRecord> {
        self.history.last().filter(|record| record.restart == self.finished.len() + 1)
    }

    fn iterate(
        &mut self,
        data: Data<'_>,
        config: &CompleteConfig,
        observer: &mut Observer<'_>,
    ) -> Result<StopReason, SolverError> {
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
                rule.attempt(|folder| checkpoint::save(self, data, config, folder));
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
            return Some(StopReason::IterationLimit);
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
    ) -> Result<&EpochRecord, SolverError> {
        let before = Instant::now();
        let (loss, offset, unit) = (self.objective.loss(), self.objective.offset(), self.unit);
        let objective = self.objective.value(&self.blocks)?;
        if epoch == 0 && !objective.is_finite() {
            return Err(SolverError::NotFinite {
                what: format!("epoch {epoch}: the model"),
                remedy: "use another start",
            });
        }
        let blocks: Vec<&Matrix<f64>> = self.blocks.iter().collect();
        let scores = |entries: &mut Entries| -> Result<Scores, SolverError> {
            entries.evaluate(&blocks)?;
            let scores = Scores::of(loss, entries.observed(), entries.model(), offset);
            Ok(unit.scores(loss, scores))
        };
        let entries = self.objective.entries();
        let train = Scores::of(loss, entries.observed(), entries.model(), offset);
        let train = unit.scores(loss, train);
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

    /// Reports on this round as it ends.
    fn report(
        &self,
        stop: StopReason,
        config: &CompleteConfig,
    ) -> Result<StartReport, SolverError> {
        let number = self.finished.len() + 1;
        let best = self.watch.best_epoch();
        let mut course = self.history.iter().filter(|record| record.restart == number);
        let none = || SolverError::Data("no epoch was recorded".into());
        Ok(StartReport {
            start: self.round.start,
            seed: seed_of(config.seed, self.round.start),
            reg: self.objective.reg().to_vec(),
            best: course.clone().find(|record| record.epoch == best).ok_or_else(none)?.clone(),
            epochs: course.next_back().map_or(0, |record| record.epoch),
            stop,
        })
    }

    /// Takes the report of this round, and its best blocks if they are the best of all.
    fn finish(&mut self, report: StartReport) -> Result<(), SolverError> {
        self.finished.push(report);
        if best_of(&self.finished) + 1 == self.finished.len() {
            self.kept = copies(&self.best)?;
        }
        Ok(())
    }

    /// Begins the next round: a new start, or where the one before ended.
    fn begin_round(
        &mut self,
        round: Round,
        train: &Coo<f64>,
        (config, toolchain): (&CompleteConfig, &Toolchain),
    ) -> Result<(), SolverError> {
        let seed = seed_of(config.seed, round.start);
        self.objective.set_reg(self.rounds.ridge(round));
        if round.step == 0 {
            let train = self.unit.measured(train);
            self.method = method(&seeded(config, seed), &train, &self.objective, toolchain)?;
            self.blocks = start::random(&mut self.objective, seed, config.range())?;
        } else {
            self.method.forget();
            let elements = || self.blocks.iter().flat_map(Matrix::as_slice);
            if !elements().all(|element| element.is_finite()) {
                self.blocks = copies(&self.best)?;
            }
            start::revive(&mut self.objective, &mut self.blocks, (seed, config))?;
        }
        self.best = copies(&self.blocks)?;
        (self.round, self.watch) = (round, Watch::new());
        Ok(())
    }

    /// Returns the best of all rounds.
    fn conclude(
        self,
        data: Data<'_>,
        config: &CompleteConfig,
        build_seconds: f64,
    ) -> Result<CompleteOutcome, SolverError> {
        let seconds = self.seconds();
        let best_start = best_of(&self.finished);
        let StartReport { best, stop, .. } = self.finished[best_start].clone();
        let (mut objective, mut blocks) = (self.objective, self.kept);
        let imbalance = objective.imbalance(&blocks)?;
        self.unit.restore(&mut blocks);
        let rank = match config.model {
            ModelKind::Cp { rank } => rank,
            ModelKind::Tucker { .. } | ModelKind::Train { .. } => 0,
        };
        Ok(CompleteOutcome {
            network: objective.network().clone(),
            blocks,
            offset: self.unit.size() * objective.offset(),
            rank,
            best,
            history: self.history,
            stop,
            imbalance,
            size: self.size,
            starts: self.finished,
            best_start,
            held_out: None,
            baselines: baselines(config.loss, data.train, data.val, data.test),
            unseen: (0..data.train.order()).map(|mode| unseen(data.train, mode)).collect(),
            interpreted: objective.entries().interpreted().map(str::to_owned),
            build_seconds,
            seconds,
        })
    }
}

/// Returns the round with the least deciding error; of equal ones, the earliest.
fn best_of(starts: &[StartReport]) -> usize {
    let error = |at: usize| starts[at].best.deciding().error();
    (0..starts.len()).min_by(|&a, &b| error(a).total_cmp(&error(b))).unwrap_or(0)
}

/// Returns the options of the start with `seed`.
fn seeded(config: &CompleteConfig, seed: u64) -> CompleteConfig {
    CompleteConfig { seed, ..config.clone() }
}

fn copies(blocks: &[Matrix<f64>]) -> Result<Vec<Matrix<f64>>, SolverError> {
    Ok(blocks.iter().map(Matrix::try_clone).collect::<Result<_, _>>()?)
}

fn fitting(blocks: Vec<Matrix<f64>>, network: &Network) -> Result<Vec<Matrix<f64>>, SolverError> {
    let have: Vec<(usize, usize)> = blocks.iter().map(|b| (b.rows(), b.cols())).collect();
    let want: Vec<(usize, usize)> = network.blocks().iter().map(|b| b.matrix()).collect();
    if have == want {
        return Ok(blocks);
    }
    let why = format!("its blocks are {have:?}, wanted are {want:?}");
    Err(SolverError::Start { what: "the given model".into(), why })
}
