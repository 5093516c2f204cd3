//! A ridge chosen where no validation entries are given.
//!
//! A tenth of the training entries, drawn by the seed, is held out and chooses round and ridge.  The
//! model that it chose is then fitted to all training entries: it goes on from its blocks, so that it
//! stays in the minimum that was chosen, for as many epochs as the chosen round took to its best (at
//! least the patience), or until the training error settles.

use std::time::Instant;

use decompose_common::SolverError;
use decompose_common::stopping::StopReason;
use decompose_core::runtime::Toolchain;

use crate::config::{CompleteConfig, Reg, Start};
use crate::data::Data;
use crate::fit::fit;
use crate::outcome::{CompleteOutcome, EpochRecord, Observer};
use crate::split::{Share, SplitRule, split};

/// How the training entries are divided.
const SHARE: Share = Share { train: 0.9, val: 0.1, test: 0.0 };

/// Chooses round and ridge on held-out training entries and fits the choice to all of them.
///
/// # Errors
///
/// As [`crate::solve`]; also if there are too few training entries to hold some out.
pub(crate) fn choose_and_refit(
    data: Data<'_>,
    start: Start,
    config: &CompleteConfig,
    toolchain: &Toolchain,
    observer: &mut Observer<'_>,
) -> Result<CompleteOutcome, SolverError> {
    let begin = Instant::now();
    config.check(data.train.extents())?;
    // Another stream than that of a split of the whole, which this part may be of.
    let parts = split(data.train, SHARE, SplitRule::Random { seed: !config.seed })?;
    let part = Data { train: &parts.train, val: parts.val.as_ref(), test: data.test };
    let mut chosen = fit(part, start, config, toolchain, observer)?;
    chosen.held_out = parts.val.as_ref().map(decompose_formats::Coo::nnz);
    if chosen.starts.last().is_none_or(|last| last.stop.is_cut_short()) {
        return Ok(chosen);
    }
    let report = &chosen.starts[chosen.best_start];
    let config = CompleteConfig {
        reg: Reg::Given(report.reg.clone()),
        restarts: 1,
        max_epochs: report.best.epoch.max(config.patience.epochs),
        max_time: config.max_time.map(|limit| limit.saturating_sub(begin.elapsed())),
        checkpoint: None,
        ..config.clone()
    };
    let (start, seed, search) = (report.start, report.seed, report.stop);
    // The epochs of the refit are those of the search, whose end is what the caller asks for.
    let ended = |refit| if refit == StopReason::IterationLimit { search } else { refit };
    let blocks = std::mem::take(&mut chosen.blocks);
    let (rounds, before) = (chosen.starts.len(), chosen.seconds);
    let later = |record: &EpochRecord| EpochRecord {
        restart: record.restart + rounds,
        total_seconds: record.total_seconds + before,
        ..record.clone()
    };
    let mut see = |record: &EpochRecord| observer(&later(record));
    let mut refit = fit(data, Start::Given(blocks), &config, toolchain, &mut see)?;
    refit.best = later(&refit.best);
    for report in &mut refit.starts {
        (report.start, report.seed, report.best) = (start, seed, later(&report.best));
        report.stop = ended(report.stop);
    }
    refit.stop = ended(refit.stop);
    chosen.history.extend(refit.history.iter().map(later));
    chosen.starts.append(&mut refit.starts);
    Ok(CompleteOutcome {
        best_start: rounds,
        history: chosen.history,
        starts: chosen.starts,
        held_out: chosen.held_out,
        build_seconds: chosen.build_seconds + refit.build_seconds,
        seconds: chosen.seconds + refit.seconds,
        ..refit
    })
}
