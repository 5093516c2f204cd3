//! Rounds in which configurations run one after the other, so that all meet the same machine.

use std::time::{Duration, Instant};

use decompose_common::interrupt;
use decompose_common::progress::Screen;

use crate::bench::record::{BenchRecord, Disturbances, Sample, WorkKey};
use crate::bench::settings::Settings;
use crate::cli::Done;
use crate::failure::Failure;

/// The part of their speed that threads must have before and after a run that is not made again.
pub(crate) const UNDISTURBED: f64 = 0.95;
/// Time between two looks at the machine.
const PAUSE: Duration = Duration::from_millis(20);

/// Something that can be run again and again.
pub(crate) trait Runner {
    /// The threads that it runs on.
    fn threads(&self) -> usize;

    /// Runs once; returns what was measured, in seconds.
    ///
    /// # Errors
    ///
    /// Whatever can go wrong.
    fn run(&mut self) -> Result<Vec<(WorkKey, f64)>, Failure>;
}

/// One run.
struct TimedRun {
    measured: Vec<(WorkKey, f64)>,
    share: f64,
}

impl Disturbances {
    /// Counts the runs of a measurement, by the shares that they met; returns the greatest, which counts.
    fn add(&mut self, shares: &[f64]) -> f64 {
        let best = shares.iter().copied().fold(0.0, f64::max);
        self.runs += shares.len();
        self.repeated += shares.len().saturating_sub(1);
        self.counted += usize::from(best < UNDISTURBED);
        best
    }
}

/// Warms every runner up, then runs them in turn for the rounds that are asked for, again where
/// others disturb; stops in good order when the user asks for it.
///
/// # Errors
///
/// That of the first runner which fails.
pub(crate) fn take<R: Runner + ?Sized>(
    runners: &mut [Box<R>],
    settings: &Settings,
    record: &mut BenchRecord,
    screen: &mut Screen,
) -> Result<Done, Failure> {
    let share = |threads| settings.share(threads);
    screen.start_iterations(settings.rounds);
    for round in 0..=settings.rounds {
        let (mut samples, mut disturbances) = (Vec::new(), record.disturbances);
        for runner in runners.iter_mut() {
            // The first round warms up.
            let patience = if round > 0 { settings.patience } else { Duration::ZERO };
            let Some(runs) = runs(&mut **runner, &share, patience)? else {
                screen.stop();
                return Ok(Done::Interrupted);
            };
            samples.extend(counted(runs, round, &mut disturbances));
        }
        if round > 0 {
            record.samples.extend(samples);
            record.disturbances = disturbances;
            screen.iteration(round, String::new());
        }
    }
    screen.stop();
    Ok(Done::Complete)
}

/// Measures `what` under the same guard as a run on `threads` threads; returns the least disturbed result, `None` if
/// the user has asked to stop.
///
/// # Errors
///
/// That of `what`.
pub(crate) fn undisturbed<T, E>(
    settings: &Settings,
    threads: usize,
    disturbances: &mut Disturbances,
    mut what: impl FnMut() -> Result<T, E>,
) -> Result<Option<T>, E> {
    let share = || settings.share(threads);
    let Some(found) = attempts(&share, settings.patience, &mut what)? else { return Ok(None) };
    disturbances.add(&found.iter().map(|(_, share)| *share).collect::<Vec<_>>());
    let best = found.into_iter().reduce(|a, b| if b.1 > a.1 { b } else { a });
    Ok(best.map(|(result, _)| result))
}

/// Runs until the threads have what they can have before and after, or patience ends; `None` if the user has
/// asked to stop.
fn runs<R: Runner + ?Sized>(
    runner: &mut R,
    share: &dyn Fn(usize) -> f64,
    patience: Duration,
) -> Result<Option<Vec<TimedRun>>, Failure> {
    let threads = runner.threads();
    let found = attempts(&|| share(threads), patience, &mut || runner.run())?;
    let run = |(measured, share)| TimedRun { measured, share };
    Ok(found.map(|found| found.into_iter().map(run).collect()))
}

/// Calls `run` until the share of their speed that the threads have is whole before and after, or patience ends;
/// returns each result with the lesser share, `None` if the user has asked to stop.
fn attempts<T, E>(
    share: &dyn Fn() -> f64,
    patience: Duration,
    run: &mut dyn FnMut() -> Result<T, E>,
) -> Result<Option<Vec<(T, f64)>>, E> {
    let begun = Instant::now();
    let mut results = Vec::new();
    loop {
        let mut before = share();
        while before < UNDISTURBED && begun.elapsed() < patience && !interrupt::requested() {
            std::thread::sleep(PAUSE);
            before = share();
        }
        if interrupt::requested() {
            return Ok(None);
        }
        let result = run()?;
        let share = share().min(before);
        results.push((result, share));
        if share >= UNDISTURBED || begun.elapsed() >= patience {
            return Ok(Some(results));
        }
    }
}

/// Makes samples of the runs of a round; the one that met the greatest share counts.
fn counted(runs: Vec<TimedRun>, round: usize, disturbances: &mut Disturbances) -> Vec<Sample> {
    let best = disturbances.add(&runs.iter().map(|run| run.share).collect::<Vec<_>>());
    let chosen = runs.iter().position(|run| run.share == best);
    let samples = runs.into_iter().enumerate().flat_map(|(at, TimedRun { measured, share })| {
        let counts = Some(at) == chosen;
        let sample = move |(key, seconds)| Sample { round, key, seconds, share, counts };
        measured.into_iter().map(sample)
    });
    samples.collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::{Runner, TimedRun, counted, runs};
    use crate::bench::record::{Disturbances, WorkKey};
    use crate::failure::Failure;

    fn measured(seconds: f64) -> Vec<(WorkKey, f64)> {
        let (program, tensor, quantity) = ("p".to_owned(), "t".to_owned(), "q".to_owned());
        vec![(WorkKey { program, tensor, rank: None, threads: 2, quantity }, seconds)]
    }

    /// Takes one second more each time.
    struct Slower(f64);

    impl Runner for Slower {
        fn threads(&self) -> usize {
            2
        }

        fn run(&mut self) -> Result<Vec<(WorkKey, f64)>, Failure> {
            self.0 += 1.0;
            Ok(measured(self.0))
        }
    }

    /// The shares that runs met, if the threads have these at each look.
    fn met(looks: &[f64], patience: Duration) -> Vec<f64> {
        let next = Cell::new(0);
        let share = |_| looks[next.replace(next.get() + 1)];
        let runs = runs(&mut Slower(0.0), &share, patience).unwrap().unwrap();
        runs.iter().map(|run| run.share).collect()
    }

    #[test]
    fn runs_are_made_again_until_nobody_disturbs() {
        let patience = Duration::from_secs(600);
        assert_eq!(met(&[1.0, 0.99], patience), [0.99]);
        // The second run waits until the third look at the machine.
        assert_eq!(met(&[1.0, 0.6, 0.5, 0.7, 1.0, 0.94, 0.98, 0.97], patience), [0.6, 0.94, 0.97]);
    }

    #[test]
    fn patience_ends() {
        assert_eq!(met(&[0.5, 0.7], Duration::ZERO), [0.5]);
    }

    #[test]
    fn the_least_disturbed_run_counts() {
        let of = |shares: &[f64]| -> (Vec<f64>, Disturbances) {
            let run = |(at, &share)| TimedRun { measured: measured(at as f64), share };
            let mut disturbances = Disturbances::default();
            let samples =
                counted(shares.iter().enumerate().map(run).collect(), 1, &mut disturbances);
            assert_eq!(samples.len(), shares.len());
            let counting = samples.iter().filter(|sample| sample.counts);
            (counting.map(|sample| sample.seconds).collect(), disturbances)
        };
        let (counting, disturbances) = of(&[0.6, 0.94, 0.97]);
        assert_eq!(counting, [2.0]);
        assert_eq!(disturbances, Disturbances { runs: 3, repeated: 2, counted: 0 });
        let (counting, disturbances) = of(&[0.5, 0.7, 0.6]);
        assert_eq!(counting, [1.0]);
        assert_eq!(disturbances, Disturbances { runs: 3, repeated: 2, counted: 1 });
    }
}
