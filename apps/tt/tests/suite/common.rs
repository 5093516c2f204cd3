//! What the tests share: made tensors, files of data, runs with compiled kernels, a dense oracle.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use decompose_core::runtime::Toolchain;
use decompose_formats::io::{self, Progress, ReadOptions, Source};
use decompose_formats::{Coo, Ints, PatternCounts, Value};
use decompose_tt::{
    Kernels, Method, PlanRequest, Planner, SolverError, Start, Train, TtConfig, TtOutcome, TtPlan,
    solve, solve_svd,
};

/// Decomposes `coo` by the method of `config` with compiled kernels.
pub(crate) fn run<V: Value>(
    coo: &Coo<V>,
    start: Start,
    config: &TtConfig,
) -> Result<TtOutcome, SolverError> {
    run_by(coo, start, config, Toolchain::detect())
}

/// Decomposes `coo` with kernels made by `toolchain`.
pub(crate) fn run_by<V: Value>(
    coo: &Coo<V>,
    start: Start,
    config: &TtConfig,
    toolchain: Toolchain,
) -> Result<TtOutcome, SolverError> {
    let counts = PatternCounts::of(coo);
    let mut go_on = |_: &_| ControlFlow::Continue(());
    if config.method == Method::Svd {
        return Ok(solve_svd(coo.clone(), counts, config, toolchain, &mut go_on)?.0);
    }
    solve(&mut kernels_by(coo, config, toolchain)?, start, config, &mut go_on)
}

/// Plans and builds the kernels for `config`.
pub(crate) fn compiled<V: Value>(
    coo: &Coo<V>,
    config: &TtConfig,
) -> Result<Kernels<V>, SolverError> {
    kernels_by(coo, config, Toolchain::detect())
}

fn kernels_by<V: Value>(
    coo: &Coo<V>,
    config: &TtConfig,
    toolchain: Toolchain,
) -> Result<Kernels<V>, SolverError> {
    Ok(planned(coo, config, toolchain)?.1)
}

/// Plans the kernels for `config` and builds its trees.
pub(crate) fn planned<V: Value>(
    coo: &Coo<V>,
    config: &TtConfig,
    toolchain: Toolchain,
) -> Result<(TtPlan, Kernels<V>), SolverError> {
    let request = PlanRequest::new::<V>(config);
    let planner = Planner::new(&PatternCounts::of(coo), &request)?;
    let plan = planner.plan(&request.options)?;
    let kernels = planner.kernels(coo.clone(), &plan, toolchain)?;
    Ok((plan, kernels))
}

/// Makes the tensor of all cells of `extents` whose value is not zero.
pub(crate) fn dense(extents: &[u64], value: impl Fn(&[usize]) -> f64) -> Coo<f64> {
    let mut coords = vec![Vec::<u32>::new(); extents.len()];
    let mut values = Vec::new();
    for mut cell in 0..extents.iter().product::<u64>() {
        let mut at = vec![0; extents.len()];
        for (index, extent) in at.iter_mut().zip(extents).rev() {
            *index = (cell % extent) as usize;
            cell /= extent;
        }
        let value = value(&at);
        if value != 0.0 {
            coords.iter_mut().zip(&at).for_each(|(column, &i)| column.push(i as u32));
            values.push(value);
        }
    }
    let coords = coords.into_iter().map(Ints::from).collect();
    let mut coo = Coo::new(extents.to_vec(), coords, values).unwrap();
    coo.sum_duplicates().unwrap();
    coo
}

/// Makes the tensor of a train.
pub(crate) fn of_train(train: &Train) -> Coo<f64> {
    dense(&train.extents(), |at| value(train, at))
}

/// Returns the value of a train at a cell, by multiplying matrices.
pub(crate) fn value(train: &Train, at: &[usize]) -> f64 {
    let mut row = vec![1.0];
    for (core, &i) in train.cores().iter().zip(at) {
        let (left, _, right) = core.dim();
        let next = |b: usize| (0..left).map(|a| row[a] * core[(a, i, b)]).sum();
        row = (0..right).map(next).collect();
    }
    row[0]
}

/// Returns `||X - T|| / ||X||`, cell by cell.
pub(crate) fn dense_error<V: Value>(coo: &Coo<V>, train: &Train) -> f64 {
    let mut cells = train.head(train.order()).into_raw_vec_and_offset().0;
    let mut square = 0.0;
    for (entry, x) in coo.values().iter().enumerate() {
        let place = |at: usize, m: usize| {
            at * coo.extents()[m] as usize + coo.coords(m).get(entry) as usize
        };
        cells[(0..coo.order()).fold(0, place)] -= x.to_f64();
        square += x.to_f64().powi(2);
    }
    (cells.iter().map(|x| x * x).sum::<f64>() / square).sqrt()
}

/// Makes a sparse tensor with pseudo-random values in `[-0.3, 0.7)` in about this part of its cells.
pub(crate) fn sparse(extents: &[u64], part: f64, seed: u64) -> Coo<f64> {
    let rng = decompose_common::rng::MatrixRng::new(seed, 77);
    dense(extents, |at| {
        let cell = at.iter().fold(0_u64, |cell, &i| cell * 1009 + i as u64);
        if rng.uniform(cell, 0) < part { rng.uniform(cell, 1) - 0.3 } else { 0.0 }
    })
}

/// Reads `NAME.tns.gz` with `NAME.dims` of the data beside the project; `None`, with a line that
/// says so, where it is absent.
pub(crate) fn shared(set: &str, name: &str) -> Option<Coo<f64>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder: PathBuf = match set {
        "data" => root.join("data"),
        _ => root.join("../shared/data").join(set).join(name),
    };
    let path = folder.join(format!("{name}.tns.gz"));
    if !path.is_file() {
        eprintln!("skipped: no {}", path.display());
        return None;
    }
    let dims = std::fs::read_to_string(folder.join(format!("{name}.dims"))).ok();
    let extents = dims.map(|dims| dims.split_whitespace().map(|w| w.parse().unwrap()).collect());
    let options = ReadOptions { extents, ..ReadOptions::default() };
    let (mut coo, _) = io::read(&Source::new(&path), &options, &Progress::new()).unwrap();
    coo.sum_duplicates().unwrap();
    let values = coo.values();
    Some(coo.filtered(|entry| values[entry] != 0.0))
}
