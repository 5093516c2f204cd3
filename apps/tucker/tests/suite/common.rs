//! What the tests share: made tensors, runs with planned kernels, naive dense oracles.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use decompose_common::rng::MatrixRng;
use decompose_core::cost::Machine;
use decompose_core::kernels::mode_index;
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{Merging, Trees};
use decompose_formats::io::{self, Progress, ReadOptions, Source};
use decompose_formats::{Coo, Ints, Matrix, ModeOrder, ModeSet, PatternCounts, Value};
use decompose_tucker::{
    Engine, PlanRequest, Start, TuckerConfig, TuckerModel, TuckerOutcome, plan, solve,
};
use ndarray::{Array2, ArrayD, Dimension, IxDyn};

/// Makes the tensor whose value at each cell is `value(cell)`; zeros are not stored.
pub(crate) fn dense<V: Value>(extents: &[u64], value: impl Fn(&[usize]) -> f64) -> Coo<V> {
    let shape: Vec<usize> = extents.iter().map(|&extent| extent as usize).collect();
    let cells =
        ArrayD::from_shape_fn(IxDyn(&shape), |at| value(at.as_array_view().to_slice().unwrap()));
    let kept: Vec<(Vec<u32>, f64)> = cells
        .indexed_iter()
        .filter(|(_, value)| **value != 0.0)
        .map(|(at, &value)| (at.as_array_view().iter().map(|&i| i as u32).collect(), value))
        .collect();
    let column = |m: usize| -> Ints { kept.iter().map(|(at, _)| at[m]).collect::<Vec<_>>().into() };
    let coords = (0..extents.len()).map(column).collect();
    let values = kept.iter().map(|(_, value)| V::from_f64(*value)).collect::<Vec<V>>();
    let mut coo = Coo::new(extents.to_vec(), coords, values).unwrap();
    coo.sort(&ModeOrder::natural(extents.len())).unwrap();
    coo
}

/// Makes a sparse tensor: about `share` of the cells, values in `[-0.5, 0.5)`.
pub(crate) fn sparse<V: Value>(extents: &[u64], share: f64, seed: u64) -> Coo<V> {
    let rng = MatrixRng::new(seed, 77);
    dense(extents, |at| {
        let cell = at.iter().zip(extents).fold(0, |c, (&i, &e)| c * e + i as u64);
        if rng.uniform(cell, 0) < share { rng.uniform(cell, 1) - 0.5 } else { 0.0 }
    })
}

/// Makes a dense tensor of exact multilinear ranks `ranks`, of random factors less `shift`.
pub(crate) fn planted(extents: &[u64], ranks: &[usize], shift: f64, seed: u64) -> Coo<f64> {
    let model = random_model(extents, ranks, shift, seed);
    dense(extents, |at| value_of(&model, at))
}

/// Makes a model of random numbers in `[-shift, 1 - shift)`.
pub(crate) fn random_model(
    extents: &[u64],
    ranks: &[usize],
    shift: f64,
    seed: u64,
) -> TuckerModel<f64> {
    let factors = extents.iter().zip(ranks).enumerate().map(|(mode, (&extent, &rank))| {
        let rng = MatrixRng::new(seed, mode as u64);
        let mut factor = Matrix::zeros(extent as usize, rank).unwrap();
        for ((i, r), value) in factor.view_mut().indexed_iter_mut() {
            *value = rng.uniform(i as u64, r as u64) - shift;
        }
        factor
    });
    let rng = MatrixRng::new(seed, 99);
    let mut at = 0;
    let core = ArrayD::from_shape_simple_fn(IxDyn(ranks), || {
        at += 1;
        rng.uniform(at, 0) - shift
    });
    TuckerModel::new(core, factors.collect()).unwrap()
}

/// Returns an entry of the tensor that a model stands for.
pub(crate) fn value_of<V: Value>(model: &TuckerModel<V>, at: &[usize]) -> f64 {
    let terms = model.core().indexed_iter().map(|(ranks, core)| {
        let ranks = ranks.as_array_view();
        let entries = model.factors().iter().zip(at).zip(ranks);
        entries.fold(*core, |p, ((factor, &i), &r)| p * factor.row(i)[r].to_f64())
    });
    terms.sum()
}

/// Returns the tensor as a dense array.
pub(crate) fn densify<V: Value>(coo: &Coo<V>) -> ArrayD<f64> {
    let shape: Vec<usize> = coo.extents().iter().map(|&extent| extent as usize).collect();
    let mut cells = ArrayD::zeros(IxDyn(&shape));
    for (entry, value) in coo.values().iter().enumerate() {
        let at: Vec<usize> = (0..coo.order()).map(|m| coo.coords(m).get(entry) as usize).collect();
        cells[IxDyn(&at)] = value.to_f64();
    }
    cells
}

/// Returns `||X - M|| / ||X||`, by every cell.
pub(crate) fn true_error<V: Value>(coo: &Coo<V>, model: &TuckerModel<V>) -> f64 {
    let cells = densify(coo);
    let squares = cells.indexed_iter().map(|(at, &x)| {
        let model = value_of(model, at.as_array_view().to_slice().unwrap());
        (x - model).powi(2)
    });
    (squares.sum::<f64>() / cells.iter().map(|x| x * x).sum::<f64>()).sqrt()
}

/// Plans and builds the engine; TTMc results above `most_whole` bytes come in windows.
pub(crate) fn engine<V: Value>(
    coo: Coo<V>,
    config: &TuckerConfig,
    most_whole: Option<u64>,
) -> Engine<V> {
    merged_engine(coo, config, (most_whole, Merging::Choose))
}

/// The same, with the modes that `merging` says taken as one.
pub(crate) fn merged_engine<V: Value>(
    coo: Coo<V>,
    config: &TuckerConfig,
    options: (Option<u64>, Merging),
) -> Engine<V> {
    engine_by(coo, config, options, &Toolchain::detect())
}

/// The same, with kernels made by `toolchain`.
pub(crate) fn engine_by<V: Value>(
    coo: Coo<V>,
    config: &TuckerConfig,
    (most_whole, merging): (Option<u64>, Merging),
    toolchain: &Toolchain,
) -> Engine<V> {
    let counts = PatternCounts::of(&coo);
    let indices = |set: ModeSet| set.modes().map(mode_index).collect();
    let pattern: Pattern = counts.iter().map(|(set, n)| (indices(set), n.value)).collect();
    let extents = coo.extents().to_vec();
    let request = PlanRequest {
        extents: &extents,
        pattern: &pattern,
        ranks: &config.ranks,
        method: config.method,
        value_bytes: V::BYTES,
        threads: rayon::current_num_threads(),
        trees: Trees::Choose,
        merging,
        memory: None,
        most_whole,
    };
    let plan = plan(&request, Machine::here()).unwrap();
    Engine::build(coo, &plan, toolchain).unwrap().0
}

/// Decomposes `coo`.
pub(crate) fn run<V: Value>(
    coo: &Coo<V>,
    start: Start<V>,
    config: &TuckerConfig,
) -> TuckerOutcome<V> {
    let mut engine = engine(clone(coo), config, None);
    solve(&mut engine, start, config, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Decomposes `coo` with interpreted kernels: quicker for one small run at many ranks.
pub(crate) fn interpret<V: Value>(
    coo: &Coo<V>,
    start: Start<V>,
    config: &TuckerConfig,
) -> TuckerOutcome<V> {
    let toolchain = Toolchain::Interpreter("a test".into());
    let mut engine = engine_by(clone(coo), config, (None, Merging::Choose), &toolchain);
    solve(&mut engine, start, config, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Returns the same tensor in another precision.
pub(crate) fn rounded<V: Value>(coo: &Coo<f64>) -> Coo<V> {
    let (extents, coords, values) = clone(coo).into_parts();
    let values: Vec<V> = values.iter().map(|&x| V::from_f64(x)).collect();
    clone(&Coo::new(extents, coords, values).unwrap())
}

/// Copies a sorted list.
pub(crate) fn clone<V: Value>(coo: &Coo<V>) -> Coo<V> {
    let mut copy = coo.clone();
    copy.sort(&ModeOrder::natural(coo.order())).unwrap();
    copy
}

/// Returns the largest entry of `|U^T U - I|`.
pub(crate) fn departure<V: Value>(factor: &Matrix<V>) -> f64 {
    let u: Array2<f64> = factor.view().mapv(V::to_f64);
    let gram = u.t().dot(&u) - Array2::<f64>::eye(u.ncols());
    gram.iter().fold(0.0, |a: f64, x| a.max(x.abs()))
}

/// Reads a tensor of the data beside the project; `None`, with a line that says so, where it is
/// absent.
pub(crate) fn shared(name: &str) -> Option<Coo<f64>> {
    let folder = root().join("../shared/data/real").join(name);
    let file = folder.join(format!("{name}.tns.gz"));
    if !file.is_file() {
        eprintln!("skipped: no {}", file.display());
        return None;
    }
    let dims = std::fs::read_to_string(folder.join(format!("{name}.dims")));
    let extents = dims.ok().map(|d| d.split_whitespace().map(|w| w.parse().unwrap()).collect());
    let options = ReadOptions { extents, ..ReadOptions::default() };
    let (mut coo, _) = io::read::<f64>(&Source::new(&file), &options, &Progress::new()).unwrap();
    coo.sort(&ModeOrder::natural(coo.order())).unwrap();
    coo.sum_duplicates().unwrap();
    Some(coo)
}

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_owned()
}
