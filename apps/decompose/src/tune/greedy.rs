//! The costs of the greedy scheduler, fitted by what its choices take (Scorch, section III-C).

use decompose_core::autoschedule::{SCHEDULERS, Scheduler, SearchLimits};
use decompose_core::cost::{GreedyCosts, Machine};

use crate::failure::Failure;
use crate::tune::bayes::minimise;
use crate::tune::measure::Measured;

/// The greatest factor by which a cost is multiplied or divided.
const MOST: f64 = 16.0;

/// The name of the greedy scheduler.
const GREEDY: &str = "scorch";

/// Fitted costs.
pub(super) struct Tuned {
    pub(super) costs: GreedyCosts,
    before: f64,
    after: f64,
    evaluations: usize,
}

impl Tuned {
    /// Says how good choices were and are.
    pub(super) fn describe(&self) -> String {
        format!(
            "choices of the greedy scheduler take {:.3} times as long as the best (before: {:.3}); {} settings were tried",
            self.after, self.before, self.evaluations
        )
    }
}

/// Finds costs with which the choices of the greedy scheduler take little longer than the best of all measured orders, as a
/// geometric mean over the cases; those of `machine` where no others are better.
pub(super) fn fit(
    measured: &mut Measured,
    machine: &Machine,
    evaluations: usize,
    seed: u64,
) -> Result<Tuned, Failure> {
    let greedy = SCHEDULERS.iter().find(|scheduler| scheduler.name() == GREEDY);
    let greedy = *greedy.ok_or_else(|| Failure::internal("no greedy scheduler"))?;
    let mut first = None;
    let least = minimise([0.5; 4], evaluations, seed, |point| {
        let machine = Machine { greedy: at(&machine.greedy, point), ..machine.clone() };
        let value = loss(measured, greedy, &machine)?;
        first.get_or_insert(value);
        Ok::<f64, Failure>(value)
    })?;
    let (before, after) = (first.unwrap_or(least.value).exp(), least.value.exp());
    Ok(Tuned { costs: at(&machine.greedy, &least.point), before, after, evaluations })
}

/// Returns the costs at a point of the unit cube, in whose middle are those of `costs`.
fn at(costs: &GreedyCosts, point: &[f64; 4]) -> GreedyCosts {
    let scaled = |cost: f64, place: f64| cost * MOST.powf(2.0 * place - 1.0);
    GreedyCosts {
        insert: scaled(costs.insert, point[0]),
        sort: scaled(costs.sort, point[1]),
        transpose: scaled(costs.transpose, point[2]),
        lane: scaled(costs.lane, point[3]),
    }
}

/// Returns the mean of the logarithm of the time of what is chosen over the best.
fn loss(
    measured: &mut Measured,
    greedy: &dyn Scheduler,
    machine: &Machine,
) -> Result<f64, Failure> {
    let mut sum = 0.0;
    for case in 0..measured.cases.len() {
        let known = &measured.cases[case];
        let limits = SearchLimits::default();
        let found = greedy.search_storages(&known.base, &known.storages, machine, &limits)?;
        let best = &found.candidates[0];
        let problem = best.problem(&known.base);
        let seconds = measured.seconds(case, problem, &best.candidate.schedule)?;
        sum += (seconds / measured.cases[case].best()).ln();
    }
    Ok(sum / measured.cases.len() as f64)
}
