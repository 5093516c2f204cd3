//! The times of the cost model, fitted to what was measured.
//!
//! What is minimised is the mean square of the logarithm of predicted over measured seconds, each at most that of a factor
//! of ten, plus a little for each constant that moves: one that no run tells stays.  One constant after the other is multiplied and
//! divided, by less and less.

use decompose_core::cost::{Machine, estimate};

use crate::tune::measure::{Measured, MeasuredCase};

/// A constant of the machine by its name.
type Constant = (&'static str, fn(&mut Machine) -> &mut f64);

/// The constants that are fitted.
const CONSTANTS: [Constant; 16] = [
    ("find_row", |machine| &mut machine.find_row),
    ("l1_line", |machine| &mut machine.l1_line),
    ("buffer_line", |machine| &mut machine.buffer_line),
    ("l2_line", |machine| &mut machine.l2_line),
    ("l3_line", |machine| &mut machine.l3_line),
    ("memory_line", |machine| &mut machine.memory_line),
    ("beyond_line", |machine| &mut machine.beyond_line),
    ("l3_wait", |machine| &mut machine.l3_wait),
    ("memory_wait", |machine| &mut machine.memory_wait),
    ("stream_line", |machine| &mut machine.stream_line),
    ("flop_pair", |machine| &mut machine.flop_pair),
    ("scalar_pair", |machine| &mut machine.scalar_pair),
    ("lane_sum", |machine| &mut machine.lane_sum),
    ("scatter_line", |machine| &mut machine.scatter_line),
    ("loop_overhead", |machine| &mut machine.loop_overhead),
    ("loop_end", |machine| &mut machine.loop_end),
];

/// The factors of a constant, the coarsest first.
const FACTORS: [f64; 4] = [2.0, 1.4, 1.15, 1.05];

/// The most that one run counts: the logarithm of ten, squared.
const MOST: f64 = 5.3;

/// What it costs to move a constant by the factor e.
const STAY: f64 = 1e-3;

/// Fitted times.
pub(super) struct Times {
    /// The machine with them.
    pub(super) machine: Machine,
    before: Quality,
    after: Quality,
    moved: Vec<&'static str>,
}

/// How well a machine predicts.
#[derive(Clone, Copy, Debug)]
struct Quality {
    /// By what factor predictions are off: the root of the mean square of the logarithm.
    factor: f64,
    /// The measured time of what is predicted to be the fastest over the fastest, as a geometric mean over the cases.
    choice: f64,
}

impl Times {
    /// Says how good predictions were and are.
    pub(super) fn describe(&self) -> String {
        let Times { before, after, .. } = self;
        let moved = if self.moved.is_empty() { "none".to_owned() } else { self.moved.join(", ") };
        format!(
            "predictions are off by a factor of {:.2} (before: {:.2}), the predicted best takes {:.3} times as long as \
             the best (before: {:.3}); moved: {moved}",
            after.factor, before.factor, after.choice, before.choice
        )
    }
}

/// Fits the times of `before`.
pub(super) fn fit(measured: &Measured, before: &Machine) -> Times {
    let mut machine = before.clone();
    let mut least = objective(measured, &machine, before);
    for factor in FACTORS {
        let mut better = true;
        while better {
            better = false;
            for (_, constant) in CONSTANTS {
                for by in [factor, factor.recip()] {
                    let mut tried = machine.clone();
                    *constant(&mut tried) *= by;
                    let value = objective(measured, &tried, before);
                    // A step that gains next to nothing is not worth leaving what was set with care.
                    if value < least - 1e-5 {
                        (least, machine, better) = (value, tried, true);
                    }
                }
            }
        }
    }
    let changed =
        |(_, constant): &Constant| constant(&mut machine.clone()) != constant(&mut before.clone());
    let moved = CONSTANTS.iter().filter(|one| changed(one)).map(|(name, _)| *name).collect();
    let (before, after) = (quality(measured, before), quality(measured, &machine));
    Times { machine, before, after, moved }
}

fn objective(measured: &Measured, machine: &Machine, before: &Machine) -> f64 {
    let moves = CONSTANTS.iter().map(|(_, constant)| {
        let (now, then) = (*constant(&mut machine.clone()), *constant(&mut before.clone()));
        if now > 0.0 && then > 0.0 { (now / then).ln().powi(2) } else { 0.0 }
    });
    mean_square(measured, machine) + STAY * moves.sum::<f64>()
}

/// Returns the mean square of the logarithm of predicted over measured seconds; each case counts alike.
fn mean_square(measured: &Measured, machine: &Machine) -> f64 {
    let of_case = |case: &MeasuredCase| {
        let squares = case.runs().map(|variant| {
            let predicted = estimate(&variant.problem, &variant.schedule, machine).seconds;
            (predicted / variant.seconds).ln().powi(2).min(MOST)
        });
        squares.sum::<f64>() / case.runs().count().max(1) as f64
    };
    measured.cases.iter().map(of_case).sum::<f64>() / measured.cases.len() as f64
}

fn quality(measured: &Measured, machine: &Machine) -> Quality {
    let of_case = |case: &MeasuredCase| {
        let predicted = case.runs().map(|variant| {
            (estimate(&variant.problem, &variant.schedule, machine).seconds, variant.seconds)
        });
        let first = predicted.min_by(|a, b| a.0.total_cmp(&b.0));
        first.map_or(0.0, |(_, seconds)| (seconds / case.best()).ln())
    };
    let choice = measured.cases.iter().map(of_case).sum::<f64>() / measured.cases.len() as f64;
    Quality { factor: mean_square(measured, machine).sqrt().exp(), choice: choice.exp() }
}
