//! Tests of the searches on made-up times, where the best schedule is known.
//!
//! A time is a product of factors of its split schedule, its template, the values of its parameters and itself.  The
//! template with the best schedule is planted.

use decompose_formats::mix::mix;

use crate::autoschedule::partition::bandit::{
    Arm, Arms, BanditConfig, BanditReport, BanditStop, Point, exhaustive, thompson,
};
use crate::autoschedule::partition::templates::{SplitTemplates, WithSettings, templates};
use crate::autoschedule::partition::{IterationSpace, Parameters, PartitionConfig, Target};

/// Made-up times of schedules.
struct Landscape {
    arms: Arms,
    /// By split schedule, template and setting.
    seconds: Vec<Vec<Vec<f64>>>,
}

/// A number in `0.0..1.0` for these keys.
fn unit(keys: &[u64]) -> f64 {
    let mixed = keys.iter().fold(0x5eed, |state, &key| mix(state ^ mix(key.wrapping_add(1))));
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

/// The schedules of SpMM on processors without the tenth split schedule, or with it.
fn spmm(splits: usize) -> Arms {
    let all = templates(
        &IterationSpace::spmm(),
        &PartitionConfig::default(),
        Target::Cpu,
        &Parameters::cpu(),
    );
    let arm = |factors: &Vec<u64>| Arm { values: factors.clone(), predicted: None };
    let of = |own: &SplitTemplates| {
        let arms = |(_, settings): &WithSettings| {
            settings.iter().map(|setting| arm(&setting.factors)).collect()
        };
        own.templates.iter().map(arms).collect()
    };
    Arms { splits: all.iter().take(splits).map(of).collect() }
}

/// The first split schedule that is a black hole.
const BLACK_HOLE: usize = 9;

impl Landscape {
    /// Makes up the times of `arms`.
    ///
    /// Times of the nine first split schedules do not depend on whether there are more, which are slow throughout.
    fn new(arms: Arms, seed: u64) -> Landscape {
        let planted = (unit(&[seed, 1]) * arms.splits.len().min(BLACK_HOLE) as f64) as usize;
        let templates = arms.splits[planted].len();
        let planted = (planted, (unit(&[seed, 2]) * templates as f64) as usize);
        let log_seconds = |point: Point| {
            let [split, template] = [point.split as u64, point.template as u64];
            // Templates cluster around a few times (section 3.4).
            let cluster = (unit(&[seed, 3, split, template]) * 4.0).floor();
            let hole = if point.split >= BLACK_HOLE { 1.5 } else { 0.0 };
            let mut time = 1.0 + hole + 0.8 * unit(&[seed, 4, split]) + 0.35 * cluster;
            time += 0.1 * unit(&[seed, 5, split, template]);
            if (point.split, point.template) == planted {
                time = 0.8;
            }
            for (place, &value) in arms.arm(point).values.iter().enumerate() {
                time += 0.3 * unit(&[seed, 6, split, place as u64, value]);
            }
            time + 0.05 * unit(&[seed, 7, split, template, point.setting as u64])
        };
        let mut seconds: Vec<Vec<Vec<f64>>> = arms
            .splits
            .iter()
            .map(|templates| templates.iter().map(|settings| vec![0.0; settings.len()]).collect())
            .collect();
        for point in arms.points() {
            seconds[point.split][point.template][point.setting] = 1e-3 * log_seconds(point).exp();
        }
        Landscape { arms, seconds }
    }

    /// Predicts the times, each off by a factor of up to e^`off`.
    fn predicted(mut self, off: f64, seed: u64) -> Landscape {
        for point in self.arms.points().collect::<Vec<Point>>() {
            let keys = [point.split, point.template, point.setting].map(|key| key as u64);
            let error = off * (2.0 * unit(&[seed, keys[0], keys[1], keys[2]]) - 1.0);
            let predicted = Some(self.seconds(point) * error.exp());
            self.arms.splits[point.split][point.template][point.setting].predicted = predicted;
        }
        self
    }

    fn seconds(&self, point: Point) -> f64 {
        self.seconds[point.split][point.template][point.setting]
    }

    fn best(&self) -> f64 {
        self.arms.points().map(|point| self.seconds(point)).fold(f64::INFINITY, f64::min)
    }

    fn search(&self, config: &BanditConfig) -> BanditReport {
        let mut clock =
            |point: Point, runs: usize| Ok::<f64, ()>(self.seconds(point) * runs as f64);
        thompson(&self.arms, config, &mut clock).unwrap()
    }

    /// Measurements and seconds until a schedule takes at most 1.1 times the best of all.
    fn until_near_best(&self, seed: u64) -> (f64, f64) {
        let config = BanditConfig {
            seed,
            max_measurements: usize::MAX,
            budget_seconds: f64::INFINITY,
            ..BanditConfig::default()
        };
        let near = 1.1 * self.best();
        let (mut measured, mut spent) = (0.0, 0.0);
        let mut clock = |point: Point, _: usize| {
            let seconds = self.seconds(point);
            measured += 1.0;
            spent += seconds;
            if seconds > near { Ok(seconds) } else { Err(()) }
        };
        assert_eq!(thompson(&self.arms, &config, &mut clock), Err(()));
        (measured, spent)
    }
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

const SEEDS: u64 = 300;

/// The landscape of a seed, with predictions that are off by a factor of up to e^`off`.
fn landscape(arms: &Arms, off: Option<f64>, seed: u64) -> Landscape {
    let landscape = Landscape::new(arms.clone(), seed);
    match off {
        Some(off) => landscape.predicted(off, seed),
        None => landscape,
    }
}

#[test]
fn a_tenth_of_the_measurements_comes_near_the_best() {
    let arms = spmm(BLACK_HOLE);
    let schedules = arms.points().count();
    assert_eq!(schedules, 777);
    let needed = |off: Option<f64>| {
        let one = |seed| landscape(&arms, off, seed).until_near_best(seed).0;
        median((0..SEEDS).map(one).collect())
    };
    let (without, rough, good) = (needed(None), needed(Some(1.0)), needed(Some(0.2)));
    assert!(without <= schedules as f64 / 10.0, "{without} {rough} {good}");
    // Even a prediction that is off by a factor of e helps, and a good one makes a search short.
    assert!(rough <= without / 2.0 && good <= rough, "{without} {rough} {good}");
}

#[test]
fn a_black_hole_costs_little() {
    let arms = [BLACK_HOLE, BLACK_HOLE + 1].map(spmm);
    assert_eq!(arms.each_ref().map(|arms| arms.points().count()), [777, 2046]);
    let needed = |off: Option<f64>| {
        arms.each_ref().map(|arms| {
            let one = |seed| landscape(arms, off, seed).until_near_best(seed);
            let (measured, seconds): (Vec<f64>, Vec<f64>) = (0..SEEDS).map(one).unzip();
            (median(measured), median(seconds))
        })
    };
    let [near, far] = needed(Some(1.0));
    assert!(far.0 <= 1.3 * near.0 && far.1 <= 1.3 * near.1, "{near:?} {far:?}");
    // Without a prediction the slow schedules are found out by measuring some.
    let [near, far] = needed(None);
    assert!(far.0 <= 1.3 * near.0, "{near:?} {far:?}");
    let spent = arms.each_ref().map(|arms| {
        let config = |seed| BanditConfig { seed, max_measurements: 78, ..BanditConfig::default() };
        let one = |seed| landscape(arms, None, seed).search(&config(seed)).seconds;
        median((0..SEEDS).map(one).collect())
    });
    assert!(spent[1] <= 1.3 * spent[0], "{spent:?}");
}

#[test]
fn a_search_is_the_same_for_the_same_seed() {
    let landscape = Landscape::new(spmm(BLACK_HOLE), 3);
    let config = BanditConfig { seed: 5, ..BanditConfig::default() };
    let report = landscape.search(&config);
    assert_eq!(report, landscape.search(&config));
    assert_eq!((report.measured.len(), report.stop), (128, BanditStop::Measurements));
    let other = landscape.search(&BanditConfig { seed: 6, ..config });
    assert_ne!(report.measured, other.measured);
    let mut points: Vec<Point> = report.measured.iter().map(|one| one.point).collect();
    points.sort_unstable();
    points.dedup();
    assert_eq!(points.len(), 128);
    assert_eq!(report.finalists.len(), 8);
    let fastest = report.measured.iter().map(|one| one.seconds).fold(f64::INFINITY, f64::min);
    assert!((report.best.unwrap().seconds - fastest).abs() < 1e-12);
}

#[test]
fn budgets_end_a_search() {
    let landscape = Landscape::new(spmm(BLACK_HOLE), 1);
    let short = BanditConfig { budget_seconds: 0.05, ..BanditConfig::default() };
    let report = landscape.search(&short);
    assert_eq!(report.stop, BanditStop::Seconds);
    let last = report.measured.last().unwrap().seconds;
    assert!(report.seconds >= 0.05 && report.seconds - last < 0.05);
    let none = BanditConfig { max_measurements: 0, ..short };
    assert_eq!(landscape.search(&none).best, None);
}

#[test]
fn the_exhaustive_search_finds_the_best() {
    let landscape = Landscape::new(spmm(BLACK_HOLE), 2);
    let mut clock =
        |point: Point, runs: usize| Ok::<f64, ()>(landscape.seconds(point) * runs as f64);
    let report = exhaustive(&landscape.arms, &BanditConfig::default(), &mut clock).unwrap();
    assert_eq!((report.measured.len(), report.stop), (777, BanditStop::Complete));
    assert!((report.best.unwrap().seconds - landscape.best()).abs() < 1e-12);
    assert!(report.to_string().starts_with("777 schedules measured in "), "{report}");
}

#[test]
fn what_does_not_run_is_left_out_and_errors_end_a_search() {
    let landscape = Landscape::new(spmm(2), 4);
    let mut clock = |point: Point, runs: usize| {
        let runs_at_all = point.template.is_multiple_of(2);
        Ok::<f64, ()>(if runs_at_all { landscape.seconds(point) * runs as f64 } else { f64::NAN })
    };
    let report = thompson(&landscape.arms, &BanditConfig::default(), &mut clock).unwrap();
    assert_eq!(report.stop, BanditStop::Complete);
    assert_eq!(report.measured.len(), landscape.arms.points().count());
    assert_eq!(report.best.unwrap().point.template % 2, 0);
    let mut broken = |_: Point, _: usize| Err::<f64, &str>("the clock stopped");
    let failed = thompson(&landscape.arms, &BanditConfig::default(), &mut broken);
    assert_eq!(failed, Err("the clock stopped"));
}
