//! Sorting and tree building of 8 million non-zeros with nell-2's extents, skewed as it is.

use decompose_formats::{Coo, Csf, ModeOrder};
use divan::Bencher;

const EXTENTS: [u64; 3] = [12_092, 9_184, 28_818];
const NNZ: u64 = 8_000_000;

fn main() {
    divan::main();
}

/// Entries in random order; a low index is more likely than a high one.
fn shuffled() -> Coo<f64> {
    let column = |mode: u64| {
        let extent = EXTENTS[mode as usize] as f64;
        let draw = |i: u64| {
            let mut mixed = (i * 3 + mode).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            let uniform = (mixed >> 11) as f64 / (1u64 << 53) as f64;
            (extent.powf(uniform) - 1.0) as u32
        };
        (0..NNZ).map(draw).collect::<Vec<_>>().into()
    };
    let values: Vec<f64> = (0..NNZ).map(|i| i as f64).collect();
    Coo::new(EXTENTS.to_vec(), (0..3).map(column).collect(), values).expect("in range")
}

fn sorted() -> Coo<f64> {
    let mut coo = shuffled();
    coo.sum_duplicates().expect("sorts");
    coo
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
