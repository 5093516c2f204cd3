//! Selection by measurement: successive halving.
//!
//! A pilot runs the candidates once each, in the order in which they were predicted.  Then all run
//! again, the faster half once more with more repetitions, and so on until one is left or the time is
//! spent.  So most of the time goes to those that are hard to tell apart, and none falls out by a single
//! disturbed run.
//!
//! ```text
//! rounds      = ceil(log2 k), 2 for k = 1                             after the pilot
//! repetitions = (budget - pilot) / rounds / sum of the seconds of those left,   at least 1
//! ```
//!
//! Given the answers of the timer, the choice is deterministic; of equal candidates the one that was
//! predicted to be faster wins.  Source: Karnin, Koren, Somekh, "Almost Optimal Exploration in
//! Multi-Armed Bandits", ICML 2013, algorithm 1; unlike there, a round costs time instead of pulls,
//! and a candidate keeps its least time of all rounds, since disturbances only ever add.

use std::fmt;

use decompose_formats::counted;

/// How long candidates are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HalvingConfig {
    /// Seconds for all measurements together.  The first candidate is timed whatever it takes, and
    /// nothing is interrupted.  Default: 1.
    pub budget_seconds: f64,
    /// The most runs in one timing.  Default: 1,000.
    pub max_repetitions: usize,
}

impl Default for HalvingConfig {
    fn default() -> HalvingConfig {
        HalvingConfig { budget_seconds: 1.0, max_repetitions: 1_000 }
    }
}

/// What measuring found.
#[derive(Clone, Debug, PartialEq)]
pub struct HalvingReport {
    /// Every candidate: first by the last round that it reached, then by its time; those that were
    /// never timed come last, as predicted.
    pub ranking: Vec<Timing>,
    /// Rounds that were begun, the pilot included.
    pub rounds: usize,
    /// Seconds of all timings.
    pub seconds: f64,
    /// Why it stopped.
    pub stop: HalvingStop,
}

/// The times of one candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The candidate, by its place in the prediction.
    pub candidate: usize,
    /// Seconds of a run, the least of all rounds; `None` if it never ran, or ran without an end.
    pub seconds: Option<f64>,
    /// Runs of all rounds.
    pub repetitions: usize,
    /// Rounds in which it was timed, the pilot included.
    pub rounds: usize,
}

impl Timing {
    fn record(&mut self, seconds: f64, repetitions: usize) {
        let one = seconds / repetitions as f64;
        let least = self.seconds.map_or(one, |before| before.min(one));
        self.seconds = Some(least).filter(|_| seconds.is_finite());
        self.repetitions += repetitions;
        self.rounds += 1;
    }
}

/// Why measuring stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalvingStop {
    /// One candidate is left.
    OneLeft,
    /// The time is spent.
    Budget,
    /// The caller asked to stop.
    Asked,
}

impl fmt::Display for HalvingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timed = self.ranking.iter().filter(|timing| timing.rounds > 0).count();
        let stop = match self.stop {
            HalvingStop::OneLeft => "one left",
            HalvingStop::Budget => "time spent",
            HalvingStop::Asked => "stopped",
        };
        let all = counted(self.ranking.len(), "candidate", "candidates");
        let (rounds, ms) = (counted(self.rounds, "round", "rounds"), self.seconds * 1e3);
        write!(f, "{timed} of {all} timed in {rounds}, {ms:.1} ms, {stop}")
    }
}

/// Finds the fastest of `candidates` candidates, numbered from 0 in the order of their prediction.
///
/// `time(candidate, repetitions)` runs a candidate that many times and returns the seconds of all
/// runs together; a time that is not finite drops it.  `None` if there is no candidate.
///
/// # Errors
///
/// The first error of `time`.
///
/// # Example
///
/// ```
/// use decompose_core::autoschedule::{HalvingConfig, successive_halving};
///
/// let seconds = [3e-3, 1e-3, 2e-3];
/// let timer = |candidate: usize, runs: usize| Ok::<f64, ()>(seconds[candidate] * runs as f64);
/// let report = successive_halving(3, &HalvingConfig::default(), timer)?.expect("candidates");
/// assert_eq!(report.ranking[0].candidate, 1);
/// # Ok::<(), ()>(())
/// ```
pub fn successive_halving<E>(
    candidates: usize,
    config: &HalvingConfig,
    time: impl FnMut(usize, usize) -> Result<f64, E>,
) -> Result<Option<HalvingReport>, E> {
    successive_halving_until(candidates, config, &|| false, time)
}

/// Does what [`successive_halving`] does, but times no other candidate once `stopped` says so.
///
/// # Errors
///
/// The first error of `time`.
pub fn successive_halving_until<E>(
    candidates: usize,
    config: &HalvingConfig,
    stopped: &dyn Fn() -> bool,
    mut time: impl FnMut(usize, usize) -> Result<f64, E>,
) -> Result<Option<HalvingReport>, E> {
    if candidates == 0 {
        return Ok(None);
    }
    let untimed = |candidate| Timing { candidate, seconds: None, repetitions: 0, rounds: 0 };
    let mut ranking: Vec<Timing> = (0..candidates).map(untimed).collect();
    // A single candidate takes half of the time.
    let all_rounds = match candidates {
        1 => 2,
        _ => candidates.next_power_of_two().trailing_zeros(),
    };
    let mut round_seconds = config.budget_seconds;
    let (mut left, mut rounds, mut spent) = (candidates, 0, 0.0);
    let stop = 'rounds: loop {
        let repetitions = repetitions(&ranking[..left], round_seconds, config.max_repetitions);
        rounds += 1;
        for timing in &mut ranking[..left] {
            if stopped() {
                break 'rounds HalvingStop::Asked;
            }
            // What it will take; in the first round nothing is known.
            let ahead = timing.seconds.unwrap_or(0.0) * repetitions as f64;
            if spent > 0.0 && spent + ahead >= config.budget_seconds {
                break 'rounds HalvingStop::Budget;
            }
            let seconds = time(timing.candidate, repetitions)?;
            spent += if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
            timing.record(seconds, repetitions);
        }
        sort(&mut ranking[..left]);
        let finite = ranking[..left].iter().filter(|timing| timing.seconds.is_some()).count();
        left = match rounds {
            1 => finite,
            _ => left.div_ceil(2).min(finite),
        };
        if rounds == 1 {
            round_seconds = (config.budget_seconds - spent).max(0.0) / f64::from(all_rounds);
        }
        // Of a single candidate one run says little.
        if left == 0 || left == 1 && (rounds > 1 || candidates > 1) {
            break HalvingStop::OneLeft;
        }
    };
    sort(&mut ranking[..left.max(1)]);
    Ok(Some(HalvingReport { ranking, rounds, seconds: spent, stop }))
}

/// Runs of each candidate in a round of `seconds`.
fn repetitions(timings: &[Timing], seconds: f64, most: usize) -> usize {
    let known: Option<f64> = timings.iter().map(|timing| timing.seconds).sum();
    match known {
        // A cast saturates.
        Some(sum) => ((seconds / sum) as usize).clamp(1, most.max(1)),
        None => 1,
    }
}

/// Sorts by seconds; candidates without come last, and equal ones stay as predicted.
fn sort(timings: &mut [Timing]) {
    let seconds = |timing: &Timing| timing.seconds.unwrap_or(f64::INFINITY);
    timings.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)).then(a.candidate.cmp(&b.candidate)));
}

#[cfg(test)]
mod tests {
    use super::{
        HalvingConfig, HalvingReport, HalvingStop, successive_halving, successive_halving_until,
    };

    /// Measures candidates of constant `times`, and logs (candidate, repetitions).
    fn measure(times: &[f64], budget_seconds: f64) -> (HalvingReport, Vec<(usize, usize)>) {
        let mut log = Vec::new();
        let config = HalvingConfig { budget_seconds, ..HalvingConfig::default() };
        let report = successive_halving(times.len(), &config, |candidate, repetitions| {
            log.push((candidate, repetitions));
            Ok::<f64, ()>(times[candidate] * repetitions as f64)
        });
        (report.unwrap().unwrap(), log)
    }

    fn order(report: &HalvingReport) -> Vec<usize> {
        report.ranking.iter().map(|timing| timing.candidate).collect()
    }

    #[test]
    fn what_was_timed_before_a_stop_is_kept() {
        let timed = std::cell::Cell::new(0);
        let timer = |candidate: usize, runs: usize| {
            timed.set(timed.get() + 1);
            Ok::<f64, ()>((3 - candidate) as f64 * 1e-3 * runs as f64)
        };
        let stopped = || timed.get() == 2;
        let config = HalvingConfig::default();
        let report = successive_halving_until(3, &config, &stopped, timer).unwrap().unwrap();
        assert_eq!(report.stop, HalvingStop::Asked);
        let timings: Vec<_> = report.ranking.iter().map(|t| (t.candidate, t.rounds)).collect();
        assert_eq!(timings, [(1, 1), (0, 1), (2, 0)]);
    }

    #[test]
    fn the_fastest_is_found_and_the_slow_run_once() {
        let times = [5e-3, 4e-3, 1e-3, 8e-3, 2e-3, 7e-3, 3e-3, 6e-3];
        let (report, log) = measure(&times, 1.0);
        assert_eq!(report.stop, HalvingStop::OneLeft);
        assert_eq!((report.rounds, order(&report)[0]), (4, 2));
        assert_eq!(order(&report), [2, 4, 6, 1, 0, 7, 5, 3]);
        assert!(log[..8].iter().all(|&(_, repetitions)| repetitions == 1));
        // A third of what the pilot left over 36 ms, over 10 ms, then over 3 ms.
        assert!(log[8..16].iter().all(|&(_, repetitions)| repetitions == 8));
        assert_eq!(log[16..20], [(2, 32), (4, 32), (6, 32), (1, 32)]);
        assert_eq!(log[20..], [(2, 107), (4, 107)]);
        assert!(report.seconds <= 1.0);
    }

    #[test]
    fn one_candidate_is_timed_and_none_is_nothing() {
        let (report, log) = measure(&[2.0], 1.0);
        assert_eq!((order(&report), log), (vec![0], vec![(0, 1)]));
        assert_eq!(report.ranking[0].seconds, Some(2.0));
        let (report, log) = measure(&[0.125], 1.0);
        assert_eq!((report.stop, log), (HalvingStop::OneLeft, vec![(0, 1), (0, 3)]));
        let none = successive_halving(0, &HalvingConfig::default(), |_, _| Ok::<f64, ()>(1.0));
        assert_eq!(none, Ok(None));
    }

    #[test]
    fn without_time_the_prediction_stands() {
        let (report, log) = measure(&[2.0, 1.0, 0.5], 1.0);
        // The first takes all the time there is.
        assert_eq!((report.stop, log), (HalvingStop::Budget, vec![(0, 1)]));
        assert_eq!(order(&report), [0, 1, 2]);
        assert_eq!(report.ranking[1].seconds, None);
        assert!(report.to_string().contains("1 of 3 candidates"), "{report}");
    }

    #[test]
    fn a_round_cut_short_ranks_by_what_is_known() {
        // Round one takes 0.6 s; in round two 0.1 s are left after the first, too few for another.
        let (report, log) = measure(&[0.2, 0.1, 0.3], 0.75);
        assert_eq!(report.stop, HalvingStop::Budget);
        assert_eq!(log, [(0, 1), (1, 1), (2, 1), (1, 1)]);
        assert_eq!(order(&report), [1, 0, 2]);
    }

    #[test]
    fn equal_candidates_stay_as_predicted() {
        let (report, _) = measure(&[1e-3; 5], 1.0);
        assert_eq!(order(&report), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_disturbed_run_is_made_up_for() {
        let mut calls = 0;
        let timer = |candidate: usize, repetitions: usize| {
            calls += 1;
            // The better one is disturbed in its first run.
            let disturbance = if calls == 2 { 0.5e-3 } else { 0.0 };
            Ok::<f64, ()>([1.2e-3, 1e-3, 9e-3, 9e-3][candidate] * repetitions as f64 + disturbance)
        };
        let report = successive_halving(4, &HalvingConfig::default(), timer).unwrap().unwrap();
        assert_eq!(report.ranking[0].candidate, 1);
    }

    #[test]
    fn endless_candidates_are_dropped_and_errors_returned() {
        let (report, _) = measure(&[f64::INFINITY, f64::NAN, 2e-3], 1.0);
        assert_eq!(order(&report)[0], 2);
        assert_eq!(report.ranking[1].seconds, None);
        let (report, _) = measure(&[f64::INFINITY, f64::INFINITY], 1.0);
        assert_eq!(report.ranking[0].seconds, None);
        let failed = successive_halving(2, &HalvingConfig::default(), |_, _| Err("no compiler"));
        assert_eq!(failed, Err("no compiler"));
    }
}
