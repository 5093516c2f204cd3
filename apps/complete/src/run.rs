//! A fit in progress: its rounds, judged epoch by epoch.

use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::restarts::seed_of;
use decompose_common::standing::Clock;
use decompose_common::stopping::StopReason;
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Matrix};

use crate::algorithm::method;
use crate::baseline::baselines;
use crate::config::{CompleteConfig, ModelKind};
use crate::data::{Data, unseen};
use crate::entries::Entries;
use crate::method::Method;
use crate::metrics::Scores;
use crate::objective::Objective;
use crate::outcome::{CompleteOutcome, EpochRecord, StartReport};
use crate::rounds::{Round, Rounds};
use crate::scaling::EntryUnit;
use crate::start;
use crate::stop::{Verdict, Watch};

/// The training error, relative to the entries, that is rounding.
const ROUNDING: f64 = 1e-14;

/// A fit in progress.
pub(crate) struct Run {
    pub(crate) objective: Objective,
    pub(crate) method: Box<dyn Method>,
    /// Validation and test entries.
    pub(crate) judges: [Option<Entries>; 2],
    pub(crate) blocks: Vec<Matrix<f64>>,
    /// The best of this round.
    pub(crate) best: Vec<Matrix<f64>>,
    /// The best of the finished rounds; none before there is one.
    pub(crate) kept: Vec<Matrix<f64>>,
    pub(crate) history: Vec<EpochRecord>,
    pub(crate) finished: Vec<StartReport>,
    pub(crate) watch: Watch,
    pub(crate) rounds: Rounds,
    pub(crate) round: Round,
    /// What the objective and the judges measure the entries in.
    pub(crate) unit: EntryUnit,
    /// The root mean square of the training entries, as they are.
    pub(crate) size: f64,
    pub(crate) clock: Clock,
}

impl Run {
    /// Returns the last epoch of this round, if it was judged.
    pub(crate) fn last(&self) -> Option<&EpochRecord> {
        self.history.last().filter(|record| record.restart == self.finished.len() + 1)
    }

    /// Decides whether to stop after the epoch `record`.
    pub(crate) fn stop(&self, record: &EpochRecord, config: &CompleteConfig) -> Option<StopReason> {
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
    pub(crate) fn judge(
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
            total_seconds: self.clock.seconds(),
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
    pub(crate) fn report(
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
    pub(crate) fn finish(&mut self, report: StartReport) -> Result<(), SolverError> {
        self.finished.push(report);
        if best_of(&self.finished) + 1 == self.finished.len() {
            self.kept = copies(&self.best)?;
        }
        Ok(())
    }

    /// Begins the next round: a new start, or where the one before ended.
    pub(crate) fn begin_round(
        &mut self,
        round: Round,
        train: &Coo<f64>,
        config: &CompleteConfig,
        toolchain: &Toolchain,
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
            start::revive(&mut self.objective, &mut self.blocks, seed, config)?;
        }
        self.best = copies(&self.blocks)?;
        (self.round, self.watch) = (round, Watch::new());
        Ok(())
    }

    /// Returns the best of all rounds.
    pub(crate) fn conclude(
        self,
        data: Data<'_>,
        config: &CompleteConfig,
        build_seconds: f64,
    ) -> Result<CompleteOutcome, SolverError> {
        let seconds = self.clock.seconds();
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
pub(crate) fn seeded(config: &CompleteConfig, seed: u64) -> CompleteConfig {
    CompleteConfig { seed, ..config.clone() }
}

/// Copies blocks, if there is memory.
pub(crate) fn copies(blocks: &[Matrix<f64>]) -> Result<Vec<Matrix<f64>>, SolverError> {
    Ok(blocks.iter().map(Matrix::try_clone).collect::<Result<_, _>>()?)
}
