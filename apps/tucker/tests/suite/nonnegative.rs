//! Nonnegative models.

use decompose_tucker::{Method, Start, TuckerConfig};

use crate::common::{self, true_error};

fn config(ranks: &[usize], iterations: usize) -> TuckerConfig {
    let mut config = TuckerConfig::new(ranks.to_vec());
    config.method = Method::Nonnegative;
    config.stop.tol = 0.0;
    config.stop.max_iters = iterations;
    config
}

#[test]
fn nothing_is_negative_and_the_error_never_rises() {
    for (extents, ranks) in [(&[12_u64, 10, 8][..], &[3, 2, 3][..]), (&[7, 6, 5, 4], &[2, 2, 3, 2])]
    {
        let coo = common::sparse::<f64>(extents, 0.5, 3);
        let outcome = common::run(&coo, Start::Random, &config(ranks, 15));
        let model = &outcome.model;
        assert!(model.core().iter().all(|&x| x >= 0.0));
        assert!(model.factors().iter().all(|f| f.as_slice().iter().all(|&x| x >= 0.0)));
        for pair in outcome.history.windows(2) {
            assert!(pair[1].fit >= pair[0].fit - 1e-9, "{} {}", pair[0].fit, pair[1].fit);
        }
        let error = true_error(&coo, model);
        assert!((error - outcome.best().relative_error).abs() < 1e-10);
        for factor in model.factors() {
            let norms = factor.view().columns().into_iter().map(|c| c.dot(&c)).collect::<Vec<_>>();
            assert!(norms.iter().all(|&n| n == 0.0 || (n - 1.0).abs() < 1e-12), "{norms:?}");
        }
    }
}

#[test]
fn nonnegative_models_are_approached() {
    let coo = common::planted(&[15, 12, 10], &[2, 3, 2], 0.0, 1);
    let mut config = config(&[2, 3, 2], 1500);
    config.restarts = 5;
    let outcome = common::run(&coo, Start::Random, &config);
    // First-order descent on a problem that is not convex: of five starts one stays at a local
    // optimum of 0.985, and the best comes to 3e-8 in 1500 iterations, 1e-5 in 400.
    assert!(outcome.best().fit > 1.0 - 1e-6, "{}", outcome.best().fit);
}

#[test]
fn a_model_can_be_continued() {
    let coo = common::planted(&[9, 8, 7], &[2, 2, 2], 0.0, 5);
    let first = common::run(&coo, Start::Random, &config(&[2, 2, 2], 5));
    let fit = first.best().fit;
    let more = common::run(&coo, Start::Given(first.model), &config(&[2, 2, 2], 1));
    assert!(more.best().fit >= fit - 1e-12);
}
