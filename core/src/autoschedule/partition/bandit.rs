//! Search by measuring: Thompson sampling over split schedules, templates and settings (section 2.6).
//!
//! 1. A split schedule is drawn by what is believed of the times below it, then one of its templates, then a setting.
//! 2. Each draw takes the least of random times, one from each belief.
//! 3. The schedule is measured, and the beliefs above it learn its time.
//! 4. When the budget is spent, successive halving chooses among the fastest.
//!
//! Split schedules share nothing but their number, so one with thousands of poor schedules gets as few tries as one with a
//! few.  Templates begin with the belief of their split schedule.  Factors of a split schedule have beliefs of their own,
//! which all its templates share: what a value adds to the time of a template.
//!
//! A prediction makes beliefs relative: they hold how much longer a schedule takes than predicted.  Without one, the first
//! tries of each split schedule are blind, and those of a poor one take long.
//!
//! Given the times, the choice is deterministic.  The source names Thompson sampling and searches by hand; the three
//! levels, the priors and the end are decided here.
//!
//! Source: Thompson, "On the likelihood that one unknown probability exceeds another", Biometrika 25, 1933.

use std::collections::BTreeMap;
use std::fmt;

use decompose_formats::counted;

use crate::autoschedule::partition::beliefs::{Belief, Normal, Random};
use crate::autoschedule::{HalvingConfig, HalvingReport, successive_halving};

/// A schedule, by the places of its split schedule, template and setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// The split schedule.
    pub split: usize,
    /// The template of the split schedule.
    pub template: usize,
    /// The setting of the template.
    pub setting: usize,
}

/// What a search may measure.
pub trait Measure {
    /// Why measuring cannot go on.
    type Error;

    /// Runs a schedule `repetitions` times and returns the seconds of all runs together.
    ///
    /// A time that is not finite means that the schedule does not run.
    ///
    /// # Errors
    ///
    /// Whatever ends the search.
    fn seconds(&mut self, point: Point, repetitions: usize) -> Result<f64, Self::Error>;
}

impl<E, F: FnMut(Point, usize) -> Result<f64, E>> Measure for F {
    type Error = E;

    fn seconds(&mut self, point: Point, repetitions: usize) -> Result<f64, E> {
        self(point, repetitions)
    }
}

/// A setting that can be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The values of its parameters.
    pub values: Vec<u64>,
    /// Its predicted seconds; `None` for all or for none.
    pub predicted: Option<f64>,
}

/// All schedules of a search: split schedules, their templates, the settings of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arms {
    /// The settings, by split schedule and template.
    pub splits: Vec<Vec<Vec<Arm>>>,
}

impl Arms {
    /// Iterates over all schedules.
    pub fn points(&self) -> impl Iterator<Item = Point> {
        self.splits.iter().enumerate().flat_map(|(split, templates)| {
            templates.iter().enumerate().flat_map(move |(template, settings)| {
                (0..settings.len()).map(move |setting| Point { split, template, setting })
            })
        })
    }

    /// Returns the setting of a schedule.
    pub fn arm(&self, point: Point) -> &Arm {
        &self.splits[point.split][point.template][point.setting]
    }

    /// Returns the logarithm of the predicted seconds; 0 without a prediction.
    fn expected(&self, point: Point) -> f64 {
        self.arm(point).predicted.filter(|&seconds| seconds > 0.0).map_or(0.0, f64::ln)
    }
}

/// How long a search measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BanditConfig {
    /// Decides the random draws.  Default: 0.
    pub seed: u64,
    /// The most schedules that are measured.  Default: 128.
    pub max_measurements: usize,
    /// Seconds of their runs together; nothing is interrupted.  Default: 10.
    pub budget_seconds: f64,
    /// How many of the fastest are measured again.  Default: 8.
    pub finalists: usize,
    /// How long those are measured.
    pub last: HalvingConfig,
}

impl Default for BanditConfig {
    fn default() -> BanditConfig {
        BanditConfig {
            seed: 0,
            max_measurements: 128,
            budget_seconds: 10.0,
            finalists: 8,
            last: HalvingConfig::default(),
        }
    }
}

/// A schedule and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The schedule.
    pub point: Point,
    /// Seconds of its first run.
    pub seconds: f64,
}

/// Why a search stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BanditStop {
    /// All schedules were measured.
    Complete,
    /// So many were measured as may be.
    Measurements,
    /// The time is spent.
    Seconds,
}

/// What a search measured.
#[derive(Clone, Debug, PartialEq)]
pub struct BanditReport {
    /// The schedules in the order in which they were measured, also those that do not run.
    pub measured: Vec<Measured>,
    /// The fastest one; `None` if none runs.
    pub best: Option<Measured>,
    /// What measuring the fastest again found; its candidates are places in [`BanditReport::finalists`].
    pub last: Option<HalvingReport>,
    /// The schedules that were measured again.
    pub finalists: Vec<Point>,
    /// Seconds of the first runs of all.
    pub seconds: f64,
    /// Why it stopped.
    pub stop: BanditStop,
}

impl fmt::Display for BanditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stop = match self.stop {
            BanditStop::Complete => "all measured",
            BanditStop::Measurements => "enough measured",
            BanditStop::Seconds => "time spent",
        };
        let measured = counted(self.measured.len(), "schedule", "schedules");
        write!(f, "{measured} measured in {:.3} s, {stop}", self.seconds)?;
        self.last.as_ref().map_or(Ok(()), |last| write!(f, "; {last}"))
    }
}

/// Measures all schedules once, and the fastest again; [`BanditConfig::max_measurements`] and the time do not count.
///
/// # Errors
///
/// The first error of `measure`.
pub fn exhaustive<M: Measure>(
    arms: &Arms,
    config: &BanditConfig,
    measure: &mut M,
) -> Result<BanditReport, M::Error> {
    let mut log = Log::default();
    for point in arms.points() {
        log.measure(point, measure)?;
    }
    log.end(BanditStop::Complete, config, measure)
}

/// Measures those schedules of which something is to be hoped for.
///
/// # Errors
///
/// The first error of `measure`.
///
/// # Example
///
/// ```
/// use decompose_core::autoschedule::partition::{Arm, Arms, BanditConfig, Point, thompson};
///
/// let arm = |value| Arm { values: vec![value], predicted: None };
/// let arms = Arms { splits: vec![vec![vec![arm(8), arm(16)]], vec![vec![arm(8)]]] };
/// let mut clock = |point: Point, runs: usize| {
///     Ok::<f64, ()>([[3e-3, 2e-3], [5e-3, 0.0]][point.split][point.setting] * runs as f64)
/// };
/// let report = thompson(&arms, &BanditConfig::default(), &mut clock)?;
/// let best = report.best.expect("they run");
/// assert_eq!((best.point.split, best.point.setting), (0, 1));
/// # Ok::<(), ()>(())
/// ```
pub fn thompson<M: Measure>(
    arms: &Arms,
    config: &BanditConfig,
    measure: &mut M,
) -> Result<BanditReport, M::Error> {
    let mut sampler = Sampler::new(arms, config.seed);
    let mut log = Log::default();
    let stop = loop {
        if log.measured.len() >= config.max_measurements {
            break BanditStop::Measurements;
        }
        if log.seconds >= config.budget_seconds {
            break BanditStop::Seconds;
        }
        let Some(point) = sampler.choose() else { break BanditStop::Complete };
        let seconds = log.measure(point, measure)?;
        sampler.learn(point, seconds);
    };
    log.end(stop, config, measure)
}

/// What was measured so far.
#[derive(Default)]
struct Log {
    measured: Vec<Measured>,
    seconds: f64,
}

impl Log {
    fn measure<M: Measure>(&mut self, point: Point, measure: &mut M) -> Result<f64, M::Error> {
        let seconds = measure.seconds(point, 1)?;
        self.seconds += if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
        self.measured.push(Measured { point, seconds });
        Ok(seconds)
    }

    /// Measures the fastest again.
    fn end<M: Measure>(
        self,
        stop: BanditStop,
        config: &BanditConfig,
        measure: &mut M,
    ) -> Result<BanditReport, M::Error> {
        let mut fastest: Vec<Measured> =
            self.measured.iter().copied().filter(|one| one.seconds.is_finite()).collect();
        fastest.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        fastest.truncate(config.finalists.max(1));
        let finalists: Vec<Point> = fastest.iter().map(|one| one.point).collect();
        let last = successive_halving(finalists.len(), &config.last, |candidate, repetitions| {
            measure.seconds(finalists[candidate], repetitions)
        })?;
        let chosen = last.as_ref().and_then(|last| last.ranking.first());
        let best = chosen.and_then(|timing| {
            let first = fastest.get(timing.candidate)?;
            let seconds = timing.seconds.unwrap_or(first.seconds);
            Some(Measured { point: first.point, seconds })
        });
        let (measured, seconds) = (self.measured, self.seconds);
        Ok(BanditReport { measured, best, last, finalists, seconds, stop })
    }
}

/// The spread of times before any is known, without predictions: schedules differ by a factor of e.
const FIRST_VARIANCE: f64 = 1.0;

/// The spread of times beside predictions: these are off by a third.
const PREDICTED_VARIANCE: f64 = 0.1;

/// The spread of what a value of a factor adds to a time, before any is known.
const FACTOR_VARIANCE: f64 = 0.1;

/// Beliefs on all choices.
struct Sampler<'a> {
    arms: &'a Arms,
    random: Random,
    /// How far a time may be from what is expected of it.
    first_variance: f64,
    /// On all times.
    all: Belief,
    splits: Vec<SplitBeliefs>,
}

/// Beliefs on a split schedule.
struct SplitBeliefs {
    all: Belief,
    templates: Vec<Belief>,
    /// What a value of a parameter adds, by the parameter's place and its value.
    values: BTreeMap<(usize, u64), Belief>,
    /// The settings that were not measured, by template.
    left: Vec<Vec<usize>>,
}

impl Sampler<'_> {
    fn new(arms: &Arms, seed: u64) -> Sampler<'_> {
        let split = |templates: &Vec<Vec<Arm>>| SplitBeliefs {
            all: Belief::default(),
            templates: vec![Belief::default(); templates.len()],
            values: BTreeMap::new(),
            left: templates.iter().map(|settings| (0..settings.len()).collect()).collect(),
        };
        let splits = arms.splits.iter().map(split).collect();
        let predicted = arms.points().any(|point| arms.arm(point).predicted.is_some());
        let first_variance = if predicted { PREDICTED_VARIANCE } else { FIRST_VARIANCE };
        let all = Belief::default();
        Sampler { arms, random: Random::new(seed), first_variance, all, splits }
    }

    /// Draws a schedule that was not measured; `None` if all were.
    fn choose(&mut self) -> Option<Point> {
        let first = Normal { mean: 0.0, variance: self.first_variance };
        // A split schedule without measurements is like the others.
        let prior = self.all.after(first);
        let (arms, random) = (self.arms, &mut self.random);
        let expected = |split: usize, template: usize, settings: &[usize]| {
            let one =
                settings.iter().map(|&s| arms.expected(Point { split, template, setting: s }));
            one.fold(f64::INFINITY, f64::min)
        };
        let drawn = self.splits.iter().enumerate().filter_map(|(split, beliefs)| {
            let left = beliefs.left.iter().enumerate().filter(|(_, left)| !left.is_empty());
            let least = left.map(|(template, left)| expected(split, template, left));
            let least = least.reduce(f64::min)?;
            Some((split, least + beliefs.all.draw(prior, random)))
        });
        let split = least(drawn)?;
        let beliefs = &self.splits[split];
        let prior = beliefs.all.after(prior);
        let left = beliefs.left.iter().enumerate().filter(|(_, left)| !left.is_empty());
        let drawn = left.map(|(template, left)| {
            let belief = &beliefs.templates[template];
            (template, expected(split, template, left) + belief.draw(prior, random))
        });
        let template = least(drawn)?;
        let prior = Normal { mean: 0.0, variance: FACTOR_VARIANCE };
        // Templates of one factor share draws of its values.
        let draws: BTreeMap<(usize, u64), f64> =
            beliefs.values.iter().map(|(&key, belief)| (key, belief.draw(prior, random))).collect();
        let drawn = beliefs.left[template].iter().map(|&setting| {
            let point = Point { split, template, setting };
            let values = arms.arm(point).values.iter().copied().enumerate();
            let added = |key| {
                let known = draws.get(&key).copied();
                known.unwrap_or_else(|| Belief::default().draw(prior, random))
            };
            (setting, arms.expected(point) + values.map(added).sum::<f64>())
        });
        let setting = least(drawn)?;
        Some(Point { split, template, setting })
    }

    /// Learns the time of a schedule.
    fn learn(&mut self, point: Point, seconds: f64) {
        let beliefs = &mut self.splits[point.split];
        beliefs.left[point.template].retain(|&setting| setting != point.setting);
        if !(seconds.is_finite() && seconds > 0.0) {
            return;
        }
        let time = seconds.ln() - self.arms.expected(point);
        self.all.observe(time);
        beliefs.all.observe(time);
        let template = &mut beliefs.templates[point.template];
        // What a value adds is known beside other values of the same template.
        let before = template.after(beliefs.all.after(Normal { mean: time, variance: 0.0 }));
        let added = time - before.mean;
        template.observe(time);
        for (place, &value) in self.arms.arm(point).values.iter().enumerate() {
            beliefs.values.entry((place, value)).or_default().observe(added);
        }
    }
}

/// Returns what has the least time.
fn least(drawn: impl Iterator<Item = (usize, f64)>) -> Option<usize> {
    drawn.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(one, _)| one)
}
