//! Every loss: its optimum against an independent computation, and fits that it alone must judge.

use decompose_common::rng::MatrixRng;
use decompose_complete::{
    Algorithm, CompleteConfig, CompleteOutcome, Data, Loss, ModelKind, Patience, Range, Reg, Start,
    solve, values_at,
};
use decompose_core::runtime::Toolchain;
use decompose_formats::Coo;

use crate::common::{fit, planted, sample, with_values};

fn fit_val(train: &Coo<f64>, val: &Coo<f64>, config: &CompleteConfig) -> CompleteOutcome {
    let data = Data { train, val: Some(val), test: None };
    let mut quiet = |_: &_| std::ops::ControlFlow::Continue(());
    solve(data, Start::Random, config, &Toolchain::detect(), &mut quiet).expect("a fit")
}

/// A rank-one objective by its definition: entries with three indices, losses typed anew, a ridge.
struct Definition<'a> {
    loss: Loss,
    entries: Vec<([usize; 3], f64)>,
    extents: &'a [u64],
    reg: f64,
}

impl Definition<'_> {
    fn loss(&self, x: f64, m: f64) -> f64 {
        match self.loss {
            Loss::Gaussian => (x - m).powi(2),
            Loss::Poisson => m - x * m.ln(),
            Loss::Bernoulli => (1.0 + m.exp()).ln() - x * m,
            Loss::Gamma => x / m + m.ln(),
            Loss::Huber(bend) if (x - m).abs() > bend => bend * (2.0 * (x - m).abs() - bend),
            Loss::Huber(_) => (x - m).powi(2),
        }
    }

    fn value(&self, factors: &[Vec<f64>; 3]) -> f64 {
        let model = |at: &[usize; 3]| (0..3).map(|n| factors[n][at[n]]).product::<f64>();
        let losses = self.entries.iter().map(|(at, x)| self.loss(*x, model(at))).sum::<f64>();
        losses + self.reg * factors.iter().flatten().map(|a| a * a).sum::<f64>()
    }

    /// Minimises over one parameter after the other by golden section: each problem has one minimum.
    fn minimum(&self, least: f64, seed: u64) -> f64 {
        let rng = MatrixRng::new(seed, 7);
        let start = |n: usize| {
            let rows = 0..self.extents[n];
            rows.map(|i| (0.3 + rng.uniform(i, n as u64)).max(least)).collect::<Vec<f64>>()
        };
        let mut factors = [start(0), start(1), start(2)];
        let mut before = f64::INFINITY;
        for _ in 0..400 {
            for mode in 0..3 {
                for row in 0..factors[mode].len() {
                    factors[mode][row] = self.line(&factors, (mode, row), least);
                }
            }
            let now = self.value(&factors);
            if before - now < 1e-11 * now.abs() {
                break;
            }
            before = now;
        }
        self.value(&factors)
    }

    fn line(&self, factors: &[Vec<f64>; 3], (mode, row): (usize, usize), least: f64) -> f64 {
        let entries = self.entries.iter().filter(|(at, _)| at[mode] == row);
        let others = |at: &[usize; 3]| {
            (0..3).filter(|&n| n != mode).map(|n| factors[n][at[n]]).product::<f64>()
        };
        let pairs: Vec<(f64, f64)> = entries.map(|(at, x)| (*x, others(at))).collect();
        let of = |a: f64| {
            pairs.iter().map(|(x, w)| self.loss(*x, a * w)).sum::<f64>() + self.reg * a * a
        };
        let (mut low, mut high) = (least, 12.0);
        let share = (5.0_f64.sqrt() - 1.0) / 2.0;
        while high - low > 1e-9 {
            let (left, right) = (high - share * (high - low), low + share * (high - low));
            if of(left) < of(right) { high = right } else { low = left }
        }
        0.5 * (low + high)
    }
}

#[test]
fn the_optimum_of_every_loss_is_that_of_its_definition() {
    let extents = [5_u64, 4, 3];
    let kind = ModelKind::Cp { rank: 1 };
    let means = planted(&sample(&extents, 0.8, 3), &kind, 3, (0.5, 1.5));
    let rng = MatrixRng::new(4, 4);
    let made = |of: &dyn Fn(f64, f64) -> f64| {
        let values = means.values().iter().enumerate();
        let values = values.map(|(entry, &mean)| of(mean, rng.uniform(entry as u64, 0)));
        with_values(&means, values.collect())
    };
    let cases = [
        (Loss::Gaussian, made(&|mean, draw| mean + draw - 0.5)),
        (Loss::Poisson, made(&|mean, draw| (3.0 * mean * (0.5 + draw)).round())),
        (Loss::Bernoulli, made(&|mean, draw| f64::from(u8::from(draw < mean / (1.0 + mean))))),
        (Loss::Huber(0.2), made(&|mean, draw| if draw > 0.9 { 5.0 } else { mean + 0.3 * draw })),
        (Loss::Gamma, made(&|mean, draw| mean * (0.2 + 2.0 * draw))),
    ];
    for (loss, tensor) in cases {
        let reg = 0.05;
        let mut config = CompleteConfig::new(kind.clone());
        (config.loss, config.algorithm, config.reg) =
            (loss, Algorithm::Lbfgs, Reg::Given(vec![reg]));
        (config.max_epochs, config.restarts) = (3000, 4);
        // Log-odds may have either sign; the search along lines looks at one of them.
        config.sign = Range::NonNegative;
        config.patience = Patience { tol: 0.0, epochs: 400 };
        let outcome = fit(&tensor, None, &config).expect("a fit");
        let reached = outcome.history.iter().map(|record| record.objective);
        let reached = reached.fold(f64::INFINITY, f64::min);
        let squares: f64 = tensor.values().iter().map(|x| x * x).sum();
        let unit = match loss {
            Loss::Bernoulli => 1.0,
            _ => (squares / tensor.nnz() as f64).sqrt(),
        };
        let entry = |entry: usize| {
            let at = [0, 1, 2].map(|mode| tensor.coords(mode).get(entry) as usize);
            (at, tensor.values()[entry] / unit)
        };
        let definition = Definition {
            loss: if let Loss::Huber(bend) = loss { Loss::Huber(bend / unit) } else { loss },
            entries: (0..tensor.nnz()).map(entry).collect(),
            extents: &extents,
            reg,
        };
        let least = if loss.range() == Range::NonNegative { 1e-6 } else { 0.0 };
        let minima = (0..4).map(|seed| definition.minimum(least, seed));
        let minimum = minima.fold(f64::INFINITY, f64::min);
        let off = (reached - minimum) / minimum.abs();
        assert!(off.abs() < 1e-6, "{loss}: {reached} for {minimum}");
        assert!(!outcome.is_unfinished(), "{loss}: {:?}", outcome.imbalance);
    }
}

/// Counts about `means`: of many events, so that a normal deviate makes them.
fn counts(means: &Coo<f64>, seed: u64) -> Coo<f64> {
    let rng = MatrixRng::new(seed, 11);
    let count = |(entry, mean): (usize, &f64)| {
        // Twelve uniform numbers have the variance one.
        let deviate = (0..12).map(|k| rng.uniform(entry as u64, k)).sum::<f64>() - 6.0;
        (mean + mean.sqrt() * deviate).round().max(0.0)
    };
    with_values(means, means.values().iter().enumerate().map(count).collect())
}

#[test]
fn counts_of_rates_that_differ_by_orders_of_magnitude_are_fitted() {
    // Rates of three components whose elements are fourth powers: from 1e-6 to 1e5 events.
    let kind = ModelKind::Cp { rank: 3 };
    let pattern = sample(&[30, 25, 20], 0.5, 6);
    let network = decompose_complete::Network::new(&kind, pattern.extents());
    let (_, mut blocks) = crate::common::blocks(&kind, pattern.extents(), 6, (0.0, 1.0));
    for block in &mut blocks {
        block.as_mut_slice().iter_mut().for_each(|x| *x = 20.0 * x.powi(4));
    }
    let toolchain = Toolchain::detect();
    let (list, rates) = values_at(&pattern, &network, &blocks, &toolchain).expect("values");
    let all = counts(&with_values(&list, rates), 6);
    let (train, val) = (all.filtered(|e| e % 5 != 0), all.filtered(|e| e % 5 == 0));
    for seed in 0..3 {
        let mut config = CompleteConfig::new(kind.clone());
        (config.loss, config.algorithm, config.seed) = (Loss::Poisson, Algorithm::Lbfgs, seed);
        let outcome = fit_val(&train, &val, &config);
        // Counts of Poisson's law have a mean deviance of one, somewhat less for small rates.
        let (on_train, on_val) =
            (outcome.best.train.deviance.unwrap(), outcome.best.val.unwrap().deviance.unwrap());
        assert!(on_train < 1.3 && on_val < 1.6, "seed {seed}: {on_train} {on_val}");
        assert!(!outcome.is_unfinished(), "seed {seed}: {:?}", outcome.imbalance);
    }
    // A fit that is cut short says so.
    let mut config = CompleteConfig::new(kind);
    (config.loss, config.algorithm, config.max_epochs) = (Loss::Poisson, Algorithm::Lbfgs, 3);
    let outcome = fit_val(&train, &val, &config);
    assert!(outcome.is_unfinished(), "{:?}", outcome.imbalance);
}

#[test]
fn outliers_choose_neither_epoch_nor_start() {
    let kind = ModelKind::Cp { rank: 2 };
    let truth = planted(&sample(&[20, 18, 15], 0.4, 8), &kind, 8, (-1.0, 1.0));
    let rng = MatrixRng::new(8, 8);
    let size = (truth.norm_squared() / truth.nnz() as f64).sqrt();
    let observed = truth.values().iter().enumerate().map(|(entry, &x)| {
        let draw = |k| rng.uniform(entry as u64, k);
        let outlier = if draw(0) < 0.1 { 40.0 * size * (draw(1) - 0.3) } else { 0.0 };
        x + 0.2 * size * (draw(2) - 0.5) + outlier
    });
    let all = with_values(&truth, observed.collect());
    let (train, val) = (all.filtered(|e| e % 4 != 0), all.filtered(|e| e % 4 == 0));
    let off = |outcome: &CompleteOutcome| {
        let toolchain = Toolchain::detect();
        let (list, model) =
            values_at(&truth, &outcome.network, &outcome.blocks, &toolchain).expect("values");
        let errors = list.values().iter().zip(&model).map(|(x, m)| (x - m).powi(2));
        (errors.sum::<f64>() / truth.nnz() as f64).sqrt() / size
    };
    for seed in 0..3 {
        let mut config = CompleteConfig::new(kind.clone());
        (config.loss, config.algorithm) = (Loss::huber_of(train.values()), Algorithm::Lbfgs);
        (config.seed, config.restarts) = (10 * seed, 4);
        let found = fit_val(&train, &val, &config);
        // The optimum: the same starts, to the end, none of them judged by held-out entries.
        config.patience = Patience { tol: 0.0, epochs: 1000 };
        (config.max_epochs, config.restarts) = (1000, 4);
        let optimum = fit(&train, None, &config).expect("a fit");
        let (found, optimum) = (off(&found), off(&optimum));
        assert!(found < 1.1 * optimum && found < 0.1, "seed {seed}: {found} for {optimum}");
    }
}
