//! Sorting and tree building of 8 million non-zeros with nell-2's extents, skewed as it is.

use decompose_formats::synth::{Pattern, SynthConfig, Values, generate};
use decompose_formats::{Coo, Csf, Ints, ModeOrder, PatternCounts};
use divan::Bencher;

const EXTENTS: [u64; 3] = [12_092, 9_184, 28_818];
const NNZ: u64 = 8_000_000;

fn main() {
    divan::main();
}

/// Distinct entries, sorted by the natural order.
fn sorted() -> Coo<f64> {
    let config = SynthConfig {
        extents: EXTENTS.to_vec(),
        nnz: NNZ,
        pattern: Pattern::PowerLaw(vec![1.0, 1.1, 0.9]),
        values: Values::Uniform { low: 0.05, high: 3.05 },
        seed: 101,
    };
    generate(&config).expect("fits")
}

/// The same entries in random order.
fn shuffled() -> Coo<f64> {
    let (extents, coords, values) = sorted().into_parts();
    let scatter = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut positions: Vec<usize> = (0..values.len()).collect();
    positions.sort_by_key(|&i| scatter(i));
    let take = |ints: &Ints| -> Ints {
        positions.iter().map(|&i| ints.get(i) as u32).collect::<Vec<_>>().into()
    };
    let values: Vec<f64> = positions.iter().map(|&i| values[i]).collect();
    Coo::new(extents, coords.iter().map(take).collect(), values).expect("in range")
}

/// The list without the knowledge that it is sorted.
fn forget(coo: &Coo<f64>) -> Coo<f64> {
    let (extents, coords, values) = coo.clone().into_parts();
    Coo::new(extents, coords, values).expect("in range")
}

#[divan::bench(sample_count = 7)]
fn sort_shuffled(bencher: Bencher) {
    let coo = shuffled();
    let inputs = bencher.with_inputs(|| coo.clone());
    inputs.bench_values(|mut coo| coo.sort(&ModeOrder::natural(3)).map(|()| coo));
}

#[divan::bench(sample_count = 7)]
fn sort_sorted(bencher: Bencher) {
    let coo = sorted();
    let inputs = bencher.with_inputs(|| forget(&coo));
    inputs.bench_values(|mut coo| coo.sort(&ModeOrder::natural(3)).map(|()| coo));
}

#[divan::bench(sample_count = 7, args = [[1, 0, 2], [2, 1, 0]])]
fn sort_from_natural(bencher: Bencher, modes: [usize; 3]) {
    let coo = sorted();
    let order = ModeOrder::new(modes.to_vec()).expect("a permutation");
    let inputs = bencher.with_inputs(|| coo.clone());
    inputs.bench_values(|mut coo| coo.sort(&order).map(|()| coo));
}

#[divan::bench(sample_count = 7)]
fn tree_of_sorted(bencher: Bencher) {
    let coo = sorted();
    let inputs = bencher.with_inputs(|| coo.clone());
    inputs.bench_values(|coo| Csf::build(coo, &ModeOrder::natural(3)));
}

#[divan::bench(sample_count = 7)]
fn merge_nothing(bencher: Bencher) {
    let coo = sorted();
    let inputs = bencher.with_inputs(|| coo.clone());
    inputs.bench_values(|mut coo| coo.sum_duplicates().map(|_| coo));
}

#[divan::bench(sample_count = 7)]
fn norm_squared(bencher: Bencher) {
    let coo = sorted();
    bencher.bench(|| coo.norm_squared());
}

#[divan::bench(sample_count = 7)]
fn pattern_counts(bencher: Bencher) {
    let coo = forget(&sorted());
    bencher.bench(|| PatternCounts::of(&coo));
}

#[divan::bench(sample_count = 3)]
fn generate_skewed() -> Coo<f64> {
    sorted()
}
