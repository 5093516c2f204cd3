//! Epochs in the words of the shared history.

use decompose_common::history::{Detail, IterationRecord};
use decompose_complete::{EpochRecord, Loss, Parts, Reg, Scores};

/// Returns the details of an epoch of a fit of `parts`, all zero.
pub(crate) fn layout(loss: Loss, parts: &Parts, reg: &Reg) -> Vec<Detail> {
    let none = Scores::of_means(loss, &[], &[]);
    let part = |part: &Option<_>| part.as_ref().map(|_| none);
    let val = part(&parts.val).or(unjudged(reg));
    details(loss, &[Some(none), val, part(&parts.test)], [0.0; 3])
}

/// Returns what stands for the scores of the validation entries where there are none: scores that are
/// no numbers if training entries choose the ridge, since in most rounds there are some then.
pub(crate) fn unjudged(reg: &Reg) -> Option<Scores> {
    let (entries, none) = (0, f64::NAN);
    let scores = Scores { entries, rmse: none, ..Scores::of_means(Loss::Gaussian, &[], &[]) };
    (*reg == Reg::Chosen).then_some(scores)
}

/// Returns an epoch as an iteration; `last` is the one before it, `size` the root mean square of the
/// training entries, and `unjudged` stands for scores of validation entries where it has none.
pub(crate) fn iteration(
    loss: Loss,
    record: &EpochRecord,
    last: Option<&EpochRecord>,
    size: f64,
    unjudged: Option<Scores>,
) -> IterationRecord {
    let relative = |record: &EpochRecord| record.train.rmse / size.max(f64::MIN_POSITIVE);
    let relative_error = relative(record);
    let parts = [Some(record.train), record.val.or(unjudged), record.test];
    let numbers = [record.objective, record.seconds, record.judge_seconds];
    IterationRecord {
        restart: record.restart,
        iteration: record.epoch,
        fit: 1.0 - relative_error,
        change: (relative_error - last.map_or(1.0, relative)).abs(),
        relative_error,
        seconds: record.seconds + record.judge_seconds,
        total_seconds: record.total_seconds,
        details: details(loss, &parts, numbers),
    }
}

/// The names of the scores of the training, validation and test entries.
const NAMES: [[&str; 6]; 3] = [
    ["train_rmse", "train_mae", "train_log_loss", "train_auc", "train_deviance", "train_huber"],
    ["val_rmse", "val_mae", "val_log_loss", "val_auc", "val_deviance", "val_huber"],
    ["test_rmse", "test_mae", "test_log_loss", "test_auc", "test_deviance", "test_huber"],
];

fn details(loss: Loss, parts: &[Option<Scores>; 3], numbers: [f64; 3]) -> Vec<Detail> {
    let mut details = vec![Detail::number("objective", numbers[0])];
    for (part, names) in parts.iter().zip(NAMES) {
        let Some(scores) = part else { continue };
        details.push(Detail::number(names[0], scores.rmse));
        details.push(Detail::number(names[1], scores.mae));
        if loss == Loss::Bernoulli {
            details.push(Detail::number(names[2], scores.log_loss.unwrap_or(f64::NAN)));
            details.push(Detail::number(names[3], scores.auc.unwrap_or(f64::NAN)));
        }
        if matches!(loss, Loss::Poisson | Loss::Gamma) {
            details.push(Detail::number(names[4], scores.deviance.unwrap_or(f64::NAN)));
        }
        if matches!(loss, Loss::Huber(_)) {
            details.push(Detail::number(names[5], scores.huber.unwrap_or(f64::NAN)));
        }
    }
    details.push(Detail::seconds("epoch", numbers[1]));
    details.push(Detail::seconds("judge", numbers[2]));
    details
}
