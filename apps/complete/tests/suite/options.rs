//! Options and data that are refused, and stops.

use std::ops::ControlFlow;

use decompose_complete::{
    Algorithm, Biases, CompleteConfig, Loss, ModelKind, Range, Reg, StopReason,
};

use crate::common::{fit, fit_seen, planted, sample, with_values};

#[test]
fn options_that_make_no_sense_are_refused() {
    let kind = ModelKind::Cp { rank: 2 };
    let tensor = planted(&sample(&[5, 4, 3], 0.8, 1), &kind, 1, (0.1, 1.0));
    let change = |change: &dyn Fn(&mut CompleteConfig), message: &str| {
        let mut config = CompleteConfig::new(kind.clone());
        change(&mut config);
        let error = fit(&tensor, None, &config).err().expect("refused").to_string();
        assert!(error.contains(message), "{error}");
    };
    change(&|c| c.model = ModelKind::Cp { rank: 0 }, "rank is 0");
    change(&|c| c.model = ModelKind::Tucker { ranks: vec![2, 2] }, "2 ranks");
    change(&|c| c.model = ModelKind::Tucker { ranks: vec![2, 2, 4] }, "exceeds its extent 3");
    change(&|c| c.reg = Reg::Given(vec![-1.0]), "reg is -1");
    change(&|c| c.reg = Reg::Given(vec![0.1, 0.1]), "2 numbers");
    change(&|c| c.max_epochs = 0, "epochs is 0");
    change(&|c| c.patience.epochs = 0, "patience is 0");
    change(&|c| c.loss = Loss::Poisson, "als minimises the gaussian loss");
    change(&|c| (c.algorithm, c.sign) = (Algorithm::AlsCg, Range::NonNegative), "als-cg cannot");
    change(&|c| (c.biases, c.sign) = (Biases::Modes, Range::NonNegative), "biases have a sign");
    change(
        &|c| {
            c.model = ModelKind::Train { ranks: vec![2, 2] };
            c.algorithm = Algorithm::Sgd;
        },
        "sgd fits CP models",
    );
    change(&|c| (c.loss, c.algorithm) = (Loss::Huber(0.0), Algorithm::Adam), "huber-delta is 0");
}

#[test]
fn entries_outside_the_domain_are_named() {
    let pattern = sample(&[5, 4, 3], 0.8, 1);
    let mut values = vec![1.0; pattern.nnz()];
    values[3] = -2.0;
    let at: Vec<String> =
        (0..3).map(|mode| (pattern.coords(mode).get(3) + 1).to_string()).collect();
    let tensor = with_values(&pattern, values);
    for loss in [Loss::Poisson, Loss::Bernoulli, Loss::Gamma] {
        let mut config = CompleteConfig::new(ModelKind::Cp { rank: 1 });
        (config.loss, config.algorithm) = (loss, Algorithm::Lbfgs);
        let error = fit(&tensor, None, &config).err().expect("refused").to_string();
        let want = format!("training entry at {} is -2", at.join(" "));
        assert!(error.contains(&want), "{error}");
    }
}

#[test]
fn an_observer_stops_the_fit_and_zeros_are_entries() {
    let pattern = sample(&[6, 5, 4], 0.7, 2);
    // All zero: a model that took zeros for missing would have nothing to fit.
    let mut config = CompleteConfig::new(ModelKind::Cp { rank: 1 });
    config.max_epochs = 30;
    let outcome = fit(&pattern, Some(&pattern), &config).unwrap();
    assert!(outcome.best.test.unwrap().rmse < 1e-8);
    let tensor = planted(&pattern, &config.model, 2, (-1.0, 1.0));
    let outcome = fit_seen(&tensor, None, &config, &mut |record| match record.epoch {
        0..2 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.stop, outcome.history.len()), (StopReason::Interrupted, 3));
}
