//! How long what is left of a study takes.

use std::collections::BTreeMap;

use crate::experiment::plan::PlannedRun;
use crate::experiment::work::foresee::Forecast;

/// What finished runs took, beside what was foreseen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    forecasts: BTreeMap<String, Forecast>,
    /// By group and tensor.
    taken: BTreeMap<(String, String), Taken>,
    all: Taken,
}

/// The sums over some finished runs.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    runs: f64,
    seconds: f64,
    /// Of the runs that were foreseen: what they took, and what was foreseen.
    known: (f64, f64),
}

impl Taken {
    fn add(&mut self, seconds: f64, forecast: Option<Forecast>) {
        self.runs += 1.0;
        self.seconds += seconds;
        if let Some(foreseen) = forecast.and_then(|forecast| forecast.seconds) {
            self.known.0 += seconds;
            self.known.1 += foreseen;
        }
    }

    /// Expects of a run that is foreseen what these took beside their forecasts, and of another their mean.
    fn expect(&self, forecast: Option<Forecast>) -> Option<f64> {
        match forecast.and_then(|forecast| forecast.seconds) {
            Some(foreseen) => (self.known.1 > 0.0).then(|| foreseen * self.known.0 / self.known.1),
            None => (self.runs > 0.0).then(|| self.seconds / self.runs),
        }
    }
}

impl Clock {
    /// Returns a clock that knows forecasts.
    pub(crate) fn new(forecasts: BTreeMap<String, Forecast>) -> Clock {
        Clock { forecasts, ..Clock::default() }
    }

    /// Returns the forecast of a run.
    pub(crate) fn forecast(&self, run: &PlannedRun) -> Option<Forecast> {
        self.forecasts.get(&run.key).copied()
    }

    /// Learns what a run took.
    pub(crate) fn learn(&mut self, run: &PlannedRun, seconds: f64) {
        let forecast = self.forecast(run);
        let place = (run.group.clone(), run.tensor.clone());
        self.taken.entry(place).or_default().add(seconds, forecast);
        self.all.add(seconds, forecast);
    }

    /// Returns the seconds that a run is expected to take; `None` without a forecast before the first of its group and
    /// tensor has ended.
    pub(crate) fn expect(&self, run: &PlannedRun) -> Option<f64> {
        let forecast = self.forecast(run);
        let place = (run.group.clone(), run.tensor.clone());
        let alike = self.taken.get(&place).and_then(|taken| taken.expect(forecast));
        alike.or_else(|| {
            let foreseen = forecast.and_then(|forecast| forecast.seconds)?;
            self.all.expect(forecast).or(Some(foreseen))
        })
    }

    /// Returns the seconds that runs are expected to take, `jobs` of those that are not timed at once; `None` if
    /// nothing is known of some.
    pub(crate) fn left<'r>(
        &self,
        runs: impl Iterator<Item = &'r PlannedRun>,
        jobs: usize,
    ) -> Option<f64> {
        runs.map(|run| Some(self.expect(run)? / share(run, jobs))).sum()
    }

    /// Returns the same while a study is run, where a run of which nothing is known counts as the mean of all.
    pub(crate) fn guess_left<'r>(
        &self,
        runs: impl Iterator<Item = &'r PlannedRun>,
        jobs: usize,
    ) -> Option<f64> {
        let guess = |run: &PlannedRun| self.expect(run).or_else(|| self.all.expect(None));
        runs.map(|run| Some(guess(run)? / share(run, jobs))).sum()
    }
}

/// Returns how many runs go on beside this one and itself.
fn share(run: &PlannedRun, jobs: usize) -> f64 {
    if run.timed { 1.0 } else { jobs.max(1) as f64 }
}

/// Writes seconds for people: `0.35 s`, `12 s`, `3 min`, `1 h 20 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match seconds {
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 89.5 => format!("{s:.0} s"),
        _ if minutes < 60 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, duration};
    use crate::experiment::plan::PlannedRun;
    use crate::experiment::work::foresee::Forecast;

    fn run(key: &str, group: &str) -> PlannedRun {
        PlannedRun {
            name: String::new(),
            key: key.into(),
            group: group.into(),
            command: "cp".into(),
            tensor: "x".into(),
            settings: Vec::new(),
            seed: None,
            repeat: 1,
            threads: 1,
            timed: group == "g",
            words: Vec::new(),
            expression: None,
        }
    }

    #[test]
    fn forecasts_are_corrected_by_what_runs_took() {
        let forecast = |seconds| Forecast { peak: 1, seconds: Some(seconds) };
        let known = [("a", 1.0), ("b", 2.0), ("c", 3.0)];
        let known = known.map(|(key, seconds)| (key.to_owned(), forecast(seconds)));
        let mut clock = Clock::new(known.into_iter().collect());
        let [a, b, c] = ["a", "b", "c"].map(|key| run(key, "g"));
        let [d, e] = ["d", "e"].map(|key| run(key, "h"));
        assert_eq!(clock.left([&a, &b, &c].into_iter(), 1), Some(6.0));
        assert_eq!(clock.left([&a, &d].into_iter(), 1), None);
        clock.learn(&a, 3.0);
        // Three times as long as foreseen; what was not foreseen, as long as the mean.
        assert_eq!(clock.left([&b, &c].into_iter(), 1), Some(15.0));
        assert_eq!(clock.guess_left([&b, &d, &e].into_iter(), 2), Some(6.0 + 3.0));
        // A plan tells of no run what is known of other groups alone.
        assert_eq!(clock.left([&b, &d].into_iter(), 2), None);
        clock.learn(&d, 1.0);
        assert_eq!(clock.expect(&e), Some(1.0));
        assert_eq!(clock.expect(&c), Some(9.0));
    }

    #[test]
    fn durations_are_short() {
        let shown = [0.04, 9.94, 30.2, 100.0, 4800.0].map(duration);
        assert_eq!(shown, ["0.0 s", "9.9 s", "30 s", "2 min", "1 h 20 min"]);
    }
}
