//! Stochastic passes against gradients and by hand.

use decompose_core::runtime::{Columns, StepShape, Steps, Toolchain, Values};
use decompose_formats::mix::mix;
use decompose_formats::{Coo, Ints, Matrix};

use crate::stochastic::step::{PassRule, Slope};
use crate::stochastic::strata::Strata;

fn draw(key: u64) -> f64 {
    (mix(key) >> 11) as f64 / (1_u64 << 53) as f64
}

fn squares(x: f64, m: f64) -> f64 {
    2.0 * (m - x)
}

/// The compiled loop; none without a compiler.
fn compiled(order: usize, rank: usize, columns: Columns, values: Values) -> Option<Steps> {
    let shape = StepShape { order, row: Strata::row_len(rank), columns, values };
    match Toolchain::detect() {
        Toolchain::Interpreter(why) => {
            eprintln!("compiled steps are left out: {why}");
            None
        }
        native => Some(Steps::new(shape, &native).expect("compiled steps")),
    }
}

/// A tensor of `nnz` distinct entries.
fn tensor(extents: &[u64], nnz: u64, seed: u64) -> Coo<f64> {
    let column = |(mode, &extent): (usize, &u64)| -> Ints {
        let draws = (0..nnz).map(|k| (draw(seed + 100 * k + mode as u64) * extent as f64) as u32);
        draws.collect::<Vec<u32>>().into()
    };
    let columns = extents.iter().enumerate().map(column).collect();
    let values: Vec<f64> = (0..nnz).map(|k| draw(seed + 100 * k + 99) - 0.3).collect();
    let mut tensor = Coo::new(extents.to_vec(), columns, values).expect("a tensor");
    tensor.sum_duplicates().expect("sorted");
    tensor
}

fn factors(extents: &[u64], rank: usize) -> Vec<Matrix<f64>> {
    let factor = |(mode, &extent): (usize, &u64)| {
        let mut factor = Matrix::zeros(extent as usize, rank).expect("memory");
        for row in 0..extent as usize {
            for r in 0..rank {
                factor.row_mut(row)[r] = draw((mode * 1000 + row * 50 + r) as u64) - 0.2;
            }
        }
        factor
    };
    extents.iter().enumerate().map(factor).collect()
}

/// The gradient of `sum (x - m - offset)^2 + sum ridge_n |A_n|^2` over rows with entries, naively.
fn gradient(
    tensor: &Coo<f64>,
    factors: &[Matrix<f64>],
    ridge: &[f64],
    offset: f64,
) -> Vec<Vec<f64>> {
    let rank = factors[0].cols();
    let mut slopes: Vec<Vec<f64>> = factors.iter().map(|f| vec![0.0; f.rows() * rank]).collect();
    let mut seen: Vec<Vec<bool>> = factors.iter().map(|f| vec![false; f.rows()]).collect();
    for entry in 0..tensor.nnz() {
        let at: Vec<usize> =
            (0..factors.len()).map(|mode| tensor.coords(mode).get(entry) as usize).collect();
        let product = |r: usize, without: Option<usize>| -> f64 {
            let modes = (0..at.len()).filter(|&mode| Some(mode) != without);
            modes.map(|mode| factors[mode].row(at[mode])[r]).product()
        };
        let model: f64 = (0..rank).map(|r| product(r, None)).sum();
        let slope = 2.0 * (model + offset - tensor.values()[entry]);
        for mode in 0..at.len() {
            seen[mode][at[mode]] = true;
            for r in 0..rank {
                slopes[mode][at[mode] * rank + r] += slope * product(r, Some(mode));
            }
        }
    }
    for (mode, factor) in factors.iter().enumerate() {
        for row in (0..factor.rows()).filter(|&row| seen[mode][row]) {
            for r in 0..rank {
                slopes[mode][row * rank + r] += 2.0 * ridge[mode] * factor.row(row)[r];
            }
        }
    }
    slopes
}

#[test]
fn a_pass_of_short_steps_follows_the_gradient() {
    let cases: [(&[u64], usize); 5] = [
        (&[9, 7], 3),
        (&[9, 7, 5], 8),
        (&[6, 7, 2, 5], 9),
        (&[3, 4, 3, 2, 5], 2),
        (&[3, 2, 3, 2, 3, 2], 17),
    ];
    // Steps of this length change the factors by a millionth, and the slopes by as much.
    let (step, tolerance) = (1e-8, 1e-4);
    for (extents, rank) in cases {
        let x = tensor(extents, 60, 7);
        let ridge: Vec<f64> = (0..extents.len()).map(|mode| 0.1 * mode as f64).collect();
        let steps = compiled(extents.len(), rank, Columns::All, Values::All);
        let slopes = steps.iter().map(Slope::Squares).chain([Slope::Of(&squares)]);
        for (slope, threads) in slopes.flat_map(|slope| [1, 2, 3, 5].map(|n| (slope, n))) {
            let before = factors(extents, rank);
            let want = gradient(&x, &before, &ridge, 0.25);
            let mut after = factors(extents, rank);
            let mut strata = Strata::new(&x, rank, threads, 3).expect("strata");
            let free = vec![vec![1.0; rank]; extents.len()];
            let least = vec![f64::NEG_INFINITY; extents.len()];
            let rule = PassRule { step, offset: 0.25, ridge: &ridge, free: &free, least: &least };
            strata.pass(&mut after, &rule, 1, slope).expect("a pass");
            for (mode, want) in want.iter().enumerate() {
                let scale = want.iter().fold(1.0, |a: f64, b| a.max(b.abs()));
                for (at, want) in want.iter().enumerate() {
                    let (row, r) = (at / rank, at % rank);
                    let got = (before[mode].row(row)[r] - after[mode].row(row)[r]) / step;
                    let close = (got - want).abs() < tolerance * scale;
                    assert!(close, "{extents:?} {threads} threads, mode {mode}: {got} {want}");
                }
            }
        }
    }
}

#[test]
fn fixed_columns_stay_and_bounds_hold() {
    let extents = [8, 6, 7];
    let x = tensor(&extents, 80, 5);
    let before = factors(&extents, 4);
    let pass = |slope: Slope<'_>| {
        let mut all = factors(&extents, 4);
        let mut strata = Strata::new(&x, 4, 2, 0).expect("strata");
        assert_eq!(strata.parts, 2);
        let free = vec![vec![1.0, 1.0, 0.0, 1.0]; 3];
        let ridge = [0.1; 3];
        let rule =
            PassRule { step: 0.1, offset: 0.0, ridge: &ridge, free: &free, least: &[0.0; 3] };
        for epoch in 0..3 {
            strata.pass(&mut all, &rule, epoch, slope).expect("a pass");
        }
        all
    };
    let plain = pass(Slope::Of(&squares));
    let mut changed = false;
    for (after, before) in plain.iter().zip(&before) {
        for row in 0..after.rows() {
            for r in 0..4 {
                let (new, old) = (after.row(row)[r], before.row(row)[r]);
                // A fixed negative element is raised to the bound, others stay.
                assert!(r != 2 || new == old.max(0.0) || new == old, "{row} {r}");
                changed |= r != 2 && new != old;
            }
        }
    }
    assert!(changed);
    let Some(steps) = compiled(3, 4, Columns::Marked, Values::Bounded) else { return };
    for (compiled, plain) in pass(Slope::Squares(&steps)).iter().zip(&plain) {
        for (a, b) in compiled.as_slice().iter().zip(plain.as_slice()) {
            // 240 steps in doubles, whose sums are rounded differently.
            assert!((a - b).abs() < 1e-12 && *a >= 0.0, "{a} {b}");
        }
    }
}

#[test]
fn a_loop_for_other_shapes_is_refused() {
    let extents = [8, 6, 7];
    let x = tensor(&extents, 80, 5);
    let Some(steps) = compiled(3, 9, Columns::All, Values::All) else { return };
    let mut all = factors(&extents, 4);
    let mut strata = Strata::new(&x, 4, 2, 0).expect("strata");
    let free = vec![vec![1.0; 4]; 3];
    let rule = PassRule { step: 0.1, offset: 0.0, ridge: &[0.0; 3], free: &free, least: &[0.0; 3] };
    let error = strata.pass(&mut all, &rule, 0, Slope::Squares(&steps)).expect_err("refused");
    assert!(error.to_string().contains("other rows"), "{error}");
}

#[test]
fn the_same_seed_and_threads_give_the_same_bits() {
    let extents = [30, 20, 25];
    let x = tensor(&extents, 2000, 1);
    let run = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            let mut all = factors(&extents, 5);
            let mut strata = Strata::new(&x, 5, 3, seed).expect("strata");
            let free = vec![vec![1.0; 5]; 3];
            let least = [f64::NEG_INFINITY; 3];
            let rule =
                PassRule { step: 0.01, offset: 0.0, ridge: &[0.1; 3], free: &free, least: &least };
            for epoch in 0..4 {
                strata.pass(&mut all, &rule, epoch, Slope::Of(&squares)).expect("a pass");
            }
            let bits =
                |f: &Matrix<f64>| f.as_slice().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            all.iter().map(bits).collect::<Vec<_>>()
        })
    };
    // Three parts on any number of threads.
    assert_eq!(run(1, 4), run(3, 4));
    assert_ne!(run(1, 4), run(1, 5));
}
