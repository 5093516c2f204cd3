//! Objectives that fall, and results that repeat.

use std::ops::ControlFlow;

use decompose_complete::{
    Algorithm, Biases, CompleteConfig, Loss, ModelKind, Needs, Objective, Range, Reg,
};
use decompose_core::runtime::Toolchain;
use decompose_formats::Coo;
use proptest::prelude::{ProptestConfig, Strategy, any, proptest};

use crate::common::{fit, fit_seen, sample, with_values};

/// A tensor without structure: nothing to converge to, everything to go wrong.
fn noise(extents: &[u64], share: f64, seed: u64) -> Coo<f64> {
    let pattern = sample(extents, share, seed);
    let values = (0..pattern.nnz()).map(|at| ((at as f64 + seed as f64) * 1.7).sin()).collect();
    with_values(&pattern, values)
}

fn falls(config: &CompleteConfig, tensor: &Coo<f64>) {
    let mut last = f64::INFINITY;
    let outcome = fit_seen(tensor, None, config, &mut |record| {
        // Sums of a few hundred losses in doubles: rounding is below 1e-12 of them.
        let bound = last * (1.0 + 1e-11) + 1e-12;
        assert!(record.objective <= bound, "{config:?}: {} after {last}", record.objective);
        last = record.objective;
        ControlFlow::Continue(())
    });
    assert!(outcome.expect("a fit").history.len() > 1, "{config:?}");
}

fn cases() -> impl Strategy<Value = (Vec<u64>, usize, f64, u64)> {
    let extents = proptest::collection::vec(2_u64..7, 2..5);
    (extents, 1_usize..5, 0.2..0.9, any::<u8>()).prop_map(|(e, r, s, seed)| (e, r, s, seed.into()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn alternation_never_raises_the_objective((extents, rank, share, seed) in cases()) {
        let tensor = noise(&extents, share, seed);
        if tensor.nnz() > 0 {
            for algorithm in [Algorithm::Als, Algorithm::Ccd, Algorithm::AlsCg] {
                let mut config = CompleteConfig::new(ModelKind::Cp { rank });
                (config.algorithm, config.max_epochs, config.seed) = (algorithm, 6, seed);
                config.reg = Reg::Given(vec![0.1]);
                falls(&config, &tensor);
                config.biases = Biases::Modes;
                falls(&config, &tensor);
                config.biases = Biases::None;
                if algorithm != Algorithm::AlsCg {
                    config.sign = Range::NonNegative;
                    falls(&config, &tensor);
                }
            }
        }
    }
}

#[test]
fn long_modes_and_long_slices_are_solved() {
    // 40,000 rows in many groups, some without entries; slices of the others are cut into pieces.
    let tensor = noise(&[5, 3, 40_000], 0.2, 2);
    // The objective below is that of the fit if the entries have the unit that it measures them in.
    let squares: f64 = tensor.values().iter().map(|x| x * x).sum();
    let size = (squares / tensor.nnz() as f64).sqrt();
    let tensor = tensor.map_values(|x| x / size);
    let mut config = CompleteConfig::new(ModelKind::Cp { rank: 20 });
    (config.max_epochs, config.reg) = (2, Reg::Given(vec![0.1]));
    falls(&config, &tensor);
    let outcome = fit(&tensor, None, &config).unwrap();
    assert_eq!(outcome.best.epoch, 2);
    // The long mode was solved last: the objective is flat in it.
    let (network, reg) = (outcome.network.clone(), vec![0.1; 3]);
    let toolchain = Toolchain::detect();
    let needs = Needs::Gradients;
    let objective = Objective::new(&tensor, network, Loss::Gaussian, reg, needs, &toolchain);
    let mut gradient: Vec<_> =
        outcome.blocks.iter().map(|block| block.try_clone().unwrap()).collect();
    objective.unwrap().gradient(&outcome.blocks, &mut gradient).unwrap();
    let steepest = gradient[2].as_slice().iter().fold(0.0, |most: f64, g| most.max(g.abs()));
    // Rounding of systems whose condition the ridge keeps below 1e4.
    assert!(steepest < 1e-9, "{steepest}");
}

#[test]
fn other_models_fall_too() {
    let tensor = noise(&[5, 4, 6], 0.5, 3);
    let kinds =
        [ModelKind::Tucker { ranks: vec![2, 2, 3] }, ModelKind::Train { ranks: vec![2, 3] }];
    for kind in kinds {
        for algorithm in [Algorithm::Als, Algorithm::Lbfgs] {
            let mut config = CompleteConfig::new(kind.clone());
            (config.algorithm, config.max_epochs) = (algorithm, 10);
            falls(&config, &tensor);
        }
    }
}

#[test]
fn the_same_seed_and_threads_give_the_same_bits() {
    let tensor = noise(&[30, 20, 25], 0.2, 8);
    for algorithm in Algorithm::ALL {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut config = CompleteConfig::new(ModelKind::Cp { rank: 5 });
            (config.algorithm, config.max_epochs, config.seed) = (algorithm, 4, 7);
            let outcome = pool.install(|| fit(&tensor, None, &config)).unwrap();
            let bits = |block: &decompose_formats::Matrix<f64>| {
                block.as_slice().iter().map(|value| value.to_bits()).collect::<Vec<u64>>()
            };
            outcome.blocks.iter().map(bits).collect::<Vec<_>>()
        };
        assert_eq!(run(2), run(2), "{algorithm}");
        assert_eq!(run(3), run(3), "{algorithm}");
    }
}
