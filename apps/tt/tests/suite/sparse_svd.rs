//! TT-SVD on sparse tensors: the same as on dense ones, and refused where it does not fit.

use decompose_tt::{Cut, Method, Ranks, SolverError, Start, TtConfig};
use ndarray::Array2;

use crate::common;

/// TT-SVD of the dense tensor, by the book: the ranks and the singular values of each step.
fn by_the_book(coo: &decompose_formats::Coo<f64>, cuts: &[Cut]) -> Vec<(usize, Vec<f64>)> {
    let extents: Vec<usize> = coo.extents().iter().map(|&n| n as usize).collect();
    let mut cells = vec![0.0; extents.iter().product()];
    for (entry, x) in coo.values().iter().enumerate() {
        let place = |at: usize, m: usize| at * extents[m] + coo.coords(m).get(entry) as usize;
        cells[(0..extents.len()).fold(0, place)] = *x;
    }
    let mut width = 1;
    let mut found = Vec::new();
    for (k, cut) in cuts.iter().enumerate() {
        let rows = width * extents[k];
        let matrix = Array2::from_shape_vec((rows, cells.len() / rows), cells).unwrap();
        let (_, values, vt) = decompose_common::linalg::svd(matrix.view()).unwrap();
        width = cut.rank(values.as_slice().unwrap(), f64::EPSILON);
        let kept = ndarray::Array1::from(values.to_vec()).slice(ndarray::s![..width]).to_owned();
        let rest = &vt.slice(ndarray::s![..width, ..]) * &kept.insert_axis(ndarray::Axis(1));
        found.push((width, values.to_vec()));
        cells = rest.iter().copied().collect();
    }
    found
}

#[test]
fn every_step_finds_the_singular_values_of_the_dense_algorithm() {
    for (extents, part) in [
        (vec![8, 3, 5, 4], 0.15),
        (vec![2, 9, 30], 0.3),
        (vec![30, 9, 2], 0.3),
        (vec![40, 6], 0.2),
        (vec![3, 2, 4, 2, 3], 1.0),
    ] {
        let coo = common::sparse(&extents, part, 8);
        for eps in [0.4, 1e-9] {
            let config = TtConfig::new(Method::Svd, Ranks::Error { eps, max_rank: None });
            let outcome = common::run(&coo, Start::Random, &config).unwrap();
            let norm = coo.norm_squared().sqrt();
            let cut = Cut::within(eps, norm, extents.len(), usize::MAX);
            let book = by_the_book(&coo, &vec![cut; extents.len() - 1]);
            let ranks: Vec<usize> = book.iter().map(|(rank, _)| *rank).collect();
            assert_eq!(outcome.train.ranks(), ranks, "{extents:?} {eps}");
            for (found, (_, want)) in outcome.spectra.iter().zip(&book) {
                let pairs = found.iter().zip(want);
                let close = pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-13 * norm);
                assert!(close, "{extents:?} {eps}: {found:?} {want:?}");
            }
        }
    }
}

#[test]
fn long_modes_cost_what_is_used_of_them_only() {
    // A million rows of which thirty are used: a dense matrix of them could not be squared.
    let small = common::sparse(&[6, 5, 6], 0.4, 8);
    let (_, coords, values) = small.into_parts();
    let far = |coords: decompose_formats::Ints| {
        coords.iter().map(|i| (i * 199_999) as u32).collect::<Vec<u32>>().into()
    };
    let coords = coords.into_iter().map(far).collect();
    let coo = decompose_formats::Coo::new(vec![1_000_000; 3], coords, values.to_vec()).unwrap();
    let mut config = TtConfig::new(Method::Svd, Ranks::Error { eps: 0.3, max_rank: None });
    config.memory = Some(1 << 20);
    let outcome = common::run(&coo, Start::Random, &config).unwrap();
    assert_eq!(outcome.keeps_bound(), Some(true));
    assert!(outcome.train.ranks().iter().all(|&rank| rank <= 6));
}

#[test]
fn a_step_beyond_the_memory_limit_is_refused_with_its_size() {
    let coo = common::sparse(&[20, 20, 20], 0.5, 8);
    for method in [Method::Svd, Method::Dmrg] {
        let mut config = TtConfig::new(method, Ranks::Error { eps: 1e-3, max_rank: None });
        config.memory = Some(10_000);
        let error = common::run(&coo, Start::Random, &config).unwrap_err();
        assert!(matches!(error, SolverError::Memory { .. }), "{error}");
        assert!(error.to_string().contains("the method als"), "{error}");
    }
}
