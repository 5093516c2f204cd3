//! Synthetic tensors: determinism, counts, distributions.

use decompose_formats::synth::{LowRank, Pattern, SynthConfig, Values, generate, low_rank};
use decompose_formats::{Coo, ModeOrder, TensorStats};

fn config(extents: &[u64], nnz: u64, pattern: Pattern) -> SynthConfig {
    let values = Values::Uniform { low: -1.0, high: 1.0 };
    SynthConfig { extents: extents.to_vec(), nnz, pattern, values, seed: 11 }
}

fn check_distinct(coo: &Coo<f64>, nnz: u64) {
    assert_eq!(coo.nnz() as u64, nnz);
    assert_eq!(coo.sorted_by(), Some(&ModeOrder::natural(coo.order())));
    let mut copy = coo.clone();
    assert_eq!(copy.sum_duplicates().expect("sorted"), 0);
}

#[test]
fn counts_are_exact_from_sparse_to_full() {
    for (extents, nnz) in [
        (vec![1000, 900, 800], 50_000),
        (vec![20, 30, 10], 3000),
        (vec![20, 30, 10], 5990),
        (vec![20, 30, 10], 6000),
        (vec![1, 1], 1),
        (vec![7], 0),
        (vec![1 << 40, 1 << 40, 1 << 40], 1000),
    ] {
        let coo = generate::<f64>(&config(&extents, nnz, Pattern::Uniform)).expect("fits");
        check_distinct(&coo, nnz);
    }
}

#[test]
fn strong_skew_still_gives_the_count() {
    let pattern = Pattern::PowerLaw(vec![3.0, 3.0, 2.5]);
    let coo = generate::<f64>(&config(&[200, 200, 200], 200_000, pattern)).expect("fits");
    check_distinct(&coo, 200_000);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let skewed = config(&[3000, 200, 50], 400_000, Pattern::PowerLaw(vec![1.0, 0.8, 0.0]));
    let model = LowRank { rank: 3, noise: 0.1 };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            let planted = low_rank::<f32>(&skewed, &model).expect("fits");
            (generate::<f64>(&skewed).expect("fits"), planted)
        })
    };
    let one = run(1);
    check_distinct(&one.0, 400_000);
    assert!(run(3) == one);
}

#[test]
fn seeds_give_different_tensors() {
    let mut config = config(&[100, 100], 500, Pattern::Uniform);
    let first = generate::<f64>(&config).expect("fits");
    assert_eq!(generate::<f64>(&config).expect("fits"), first);
    config.seed += 1;
    assert_ne!(generate::<f64>(&config).expect("fits"), first);
}

#[test]
fn exponents_skew_their_modes_only() {
    let pattern = Pattern::PowerLaw(vec![1.0, 0.0]);
    let coo = generate::<f64>(&config(&[500, 5000], 50_000, pattern)).expect("fits");
    let slices = TensorStats::of(&coo, 0).slices;
    assert!(slices[0].largest > 1500 && slices[1].largest < 40, "{slices:?}");
}

#[test]
fn values_follow_their_distribution() {
    let mut config = config(&[1000, 1000], 100_000, Pattern::Uniform);
    let mut facts = |values: Values| {
        config.values = values;
        let coo = generate::<f64>(&config).expect("fits");
        (coo.value_range().expect("some"), coo.sum() / coo.nnz() as f64)
    };
    assert_eq!(facts(Values::Ones), ((1.0, 1.0), 1.0));
    let ((low, high), mean) = facts(Values::Uniform { low: -2.0, high: 4.0 });
    assert!(
        (-2.0..-1.99).contains(&low) && (3.99..4.0).contains(&high) && (mean - 1.0).abs() < 0.02
    );
    let ((low, high), mean) = facts(Values::Counts { mean: 2.5 });
    assert!(low == 1.0 && high > 10.0 && (mean - 2.5).abs() < 0.03, "{low} {high} {mean}");
}

#[test]
fn planted_models_are_what_the_factors_say() {
    let config = config(&[40, 30, 20], 2000, Pattern::Uniform);
    let planted = low_rank::<f64>(&config, &LowRank { rank: 4, noise: 0.0 }).expect("fits");
    let (coo, factors) = (&planted.tensor, &planted.factors);
    let model = |coords: [usize; 3]| -> f64 {
        let part = |r: usize| -> f64 { (0..3).map(|m| factors[m][[coords[m], r]]).product() };
        (0..4).map(part).sum()
    };
    let mut listed = 0.0;
    for i in 0..coo.nnz() {
        let at: Vec<usize> = (0..3).map(|m| coo.coords(m).get(i) as usize).collect();
        let value = model([at[0], at[1], at[2]]);
        assert!((coo.values()[i] - value).abs() < 1e-12);
        listed += value * value;
    }
    let cells = (0..40 * 30 * 20).map(|c| model([c / 600, c / 20 % 30, c % 20]).powi(2));
    assert!((cells.sum::<f64>() - listed).abs() < 1e-9 * listed, "zero where nothing is listed");
    assert!((1500..=2300).contains(&coo.nnz()), "{}", coo.nnz());
}

#[test]
fn noise_has_the_norm_asked_for() {
    let config = config(&[200, 300, 200], 50_000, Pattern::Uniform);
    let run = |noise: f64| {
        let model = LowRank { rank: 2, noise };
        low_rank::<f64>(&config, &model).expect("fits").tensor
    };
    let (exact, noisy) = (run(0.0), run(0.5));
    let pairs = exact.values().iter().zip(noisy.values());
    let distance = pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    assert!((distance / exact.norm_squared().sqrt() - 0.5).abs() < 0.01);
}

#[test]
fn impossible_requests_are_refused() {
    let fails = |config: &SynthConfig, word: &str| {
        let error = generate::<f64>(config).expect_err(word).to_string();
        assert!(error.contains(word), "{error}");
    };
    fails(&config(&[3, 3], 10, Pattern::Uniform), "ask for fewer");
    fails(&config(&[3, 3], 2, Pattern::PowerLaw(vec![1.0])), "one a mode");
    fails(&config(&[3, 3], 2, Pattern::PowerLaw(vec![1.0, -1.0])), "exponent -1");
    fails(&config(&[3, 1 << 40], 2, Pattern::PowerLaw(vec![0.0, 1.0])), "exponent to 0");
    let mut bad = config(&[3, 3], 2, Pattern::Uniform);
    bad.values = Values::Counts { mean: 1.0 };
    fails(&bad, "mean above 1");
    bad.values = Values::Uniform { low: 1.0, high: 1.0 };
    fails(&bad, "lower one first");
    let model = LowRank { rank: 0, noise: 0.0 };
    assert!(low_rank::<f64>(&bad, &model).is_err());
}
