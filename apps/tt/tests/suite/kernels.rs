//! Environments against a dense oracle, compiled and interpreted, with padded bonds.

use decompose_common::rng::MatrixRng;
use decompose_core::runtime::Toolchain;
use decompose_core::sweep::TreeLayout;
use decompose_formats::{Coo, Ints, PatternCounts};
use decompose_tt::kernels::of_sweep;
use decompose_tt::{BondSizes, Kernels, LeftOut, Method, Ranks, Train, TtConfig};

use crate::common;

fn kernels(coo: &Coo<f64>, trees: &[&str], toolchain: Toolchain) -> Kernels<f64> {
    let trees: Vec<TreeLayout> = trees.iter().map(|tree| tree.parse().unwrap()).collect();
    Kernels::build(coo.clone(), &trees, PatternCounts::of(coo), toolchain).unwrap()
}

/// The coordinates of entry `entry`.
fn at(coo: &Coo<f64>, entry: usize) -> Vec<usize> {
    (0..coo.order()).map(|m| coo.coords(m).get(entry) as usize).collect()
}

/// The environment by one loop over the non-zeros.
fn oracle(coo: &Coo<f64>, train: &Train, left_out: std::ops::Range<usize>) -> Vec<f64> {
    let cores = &train.cores()[left_out.clone()];
    let (left, right) = (cores[0].dim().0, cores[cores.len() - 1].dim().2);
    let modes: Vec<usize> = cores.iter().map(|core| core.dim().1).collect();
    let size: usize = modes.iter().product();
    let mut sums = vec![0.0; left * size * right];
    for (entry, x) in coo.values().iter().enumerate() {
        let at = at(coo, entry);
        let row = |range: std::ops::Range<usize>, from: usize, to: usize| {
            let mut row = vec![0.0; train.cores()[range.start].dim().0];
            row[from] = 1.0;
            for k in range {
                let core = &train.cores()[k];
                let (rows, _, cols) = core.dim();
                let next = |b: usize| (0..rows).map(|a| row[a] * core[(a, at[k], b)]).sum();
                row = (0..cols).map(next).collect();
            }
            row[to]
        };
        let place = left_out.clone().zip(&modes).fold(0, |p, (k, extent)| p * extent + at[k]);
        for a in 0..left {
            let before = if left_out.start == 0 { 1.0 } else { row(0..left_out.start, 0, a) };
            for b in 0..right {
                let last = left_out.end == train.order();
                let behind = if last { 1.0 } else { row(left_out.end..train.order(), b, 0) };
                sums[(a * size + place) * right + b] += x * before * behind;
            }
        }
    }
    sums
}

#[test]
fn environments_are_those_of_the_oracle() {
    let cases: [(&[u64], &[usize], &[&str]); 4] = [
        (&[6, 7], &[3], &["1-2", "2-1"]),
        (&[6, 5, 7], &[3, 5], &["2-1-3"]),
        (&[6, 5, 7], &[1, 9], &["1-2+3", "3-2-1"]),
        (&[4, 3, 5, 6], &[2, 3, 5], &["2-1-3-4", "4-3-1-2"]),
    ];
    for (extents, ranks, trees) in cases {
        let coo = common::sparse(extents, 0.4, 9);
        let train = Train::random(extents, ranks, 2);
        for toolchain in [Toolchain::detect(), Toolchain::Interpreter("a test".into())] {
            for sizes in [BondSizes::Exact, BondSizes::Coarse] {
                let mut kernels = kernels(&coo, trees, toolchain.clone());
                kernels.set_sizes(sizes);
                let neighbours = if extents.len() > 2 { 1..=2 } else { 1..=1 };
                for count in neighbours {
                    for k in 0..=extents.len() - count {
                        let (found, _) = kernels
                            .environment(LeftOut { from: k, to: k + count }, &train)
                            .unwrap();
                        let want = oracle(&coo, &train, k..k + count);
                        assert_eq!(found.len(), want.len());
                        // Sums of at most a hundred products of numbers below one.
                        let close = found.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-13);
                        assert!(close, "{extents:?} {k}..{} {sizes:?}", k + count);
                    }
                }
            }
        }
    }
}

#[test]
fn trains_of_other_extents_are_refused() {
    let coo = common::sparse(&[6, 5, 7], 0.4, 9);
    let mut kernels = kernels(&coo, &["2-1-3"], Toolchain::detect());
    let other = Train::random(&[6, 5, 8], &[3, 5], 2);
    let error = kernels.environment(LeftOut::core(1), &other).unwrap_err().to_string();
    assert!(error.contains("[6, 5, 8]"), "{error}");
}

/// A tensor of `order` modes of extent 5 with this many entries at random coordinates.
fn scattered(order: usize, entries: usize) -> Coo<f64> {
    let rng = MatrixRng::new(7, 3);
    let at = |entry: usize, m: usize| (rng.uniform(entry as u64, m as u64) * 5.0) as u32;
    let column = |m: usize| Ints::from((0..entries).map(|e| at(e, m)).collect::<Vec<u32>>());
    let values: Vec<f64> = (0..entries).map(|entry| 1.0 + entry as f64).collect();
    let mut coo = Coo::new(vec![5; order], (0..order).map(column).collect(), values).unwrap();
    coo.sum_duplicates().unwrap();
    coo
}

#[test]
fn cores_of_many_modes_are_multiplied_one_bond_at_a_time() {
    let (order, rank) = (16, 2);
    let coo = scattered(order, 400);
    let config = TtConfig::new(Method::Als, Ranks::Uniform(rank));
    let (plan, mut kernels) = common::planned(&coo, &config, Toolchain::detect()).unwrap();
    // At each of `order` levels at most every entry multiplies two rows by a core of rank^2 numbers and adds them.
    let most = (order * coo.nnz() * 4 * rank * rank) as f64;
    for step in &plan.steps {
        assert!(step.candidate.cost.flops <= most, "{}: {}", step.mode, step.candidate.cost);
    }
    let parts = of_sweep(config.method, order);
    kernels.prepare(&parts, &vec![rank; order - 1]).unwrap();
    // The compiler would take longer than it saves.
    assert!(kernels.notes().iter().all(|note| note.origin == "interpreted"));
}
