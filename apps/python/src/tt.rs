//! Tensor trains.

use decompose_common::memory::left;
use decompose_common::model::Model as AnyModel;
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, PatternCounts, Value};
use decompose_tt::{
    Method, PlanRequest, Planner, Ranks, Start, TtConfig, TtOutcome, solve, solve_svd,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::fault::Fault;
use crate::history::Ended;
use crate::model;
use crate::options::{Course, check_room};
use crate::tensor::{List, Number, Tensor};
use crate::watch::{Watch, watched};

/// The options of `decompose.tt`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    /// One rank, or one a bond; empty where `eps` is given.
    ranks: Vec<usize>,
    eps: Option<f64>,
    max_rank: Option<usize>,
    /// `als`, `dmrg` or `svd`; `None`: `als` with ranks, `svd` with an error.
    method: Option<String>,
}

/// Decomposes `tensor`; returns the arrays of the model, `fit`, `history`, `restarts` and more by name.
#[pyfunction]
pub(crate) fn tt<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let course: Course = options.extract()?;
    let config = config(options.extract()?, &course)?;
    match &tensor.list {
        List::F64(list) => run(py, list, &config, &course),
        List::F32(list) => run(py, list, &config, &course),
    }
}

fn config(options: Options, course: &Course) -> Result<TtConfig, Fault> {
    let Options { ranks, eps, max_rank, method } = options;
    let ranks = match (eps, ranks.as_slice()) {
        (Some(eps), _) => Ranks::Error { eps, max_rank },
        (None, [rank]) => Ranks::Uniform(*rank),
        (None, _) => Ranks::Each(ranks),
    };
    let usual = if eps.is_some() { Method::Svd } else { Method::Als };
    let method = method.map_or(Ok(usual), |name| name.parse().map_err(Fault::Input))?;
    Ok(TtConfig {
        seed: course.seed,
        restarts: course.restarts,
        stop: course.stop()?,
        ..TtConfig::new(method, ranks)
    })
}

fn run<'py, V: Number>(
    py: Python<'py>,
    list: &Coo<V>,
    config: &TtConfig,
    course: &Course,
) -> PyResult<Bound<'py, PyDict>> {
    let outcome = watched(py, course.callback.as_ref(), course.threads, |watch| {
        decompose(list, config, watch)
    })?;
    let order = decompose_formats::ModeOrder::natural(outcome.train.order());
    let model = outcome.train.to_model::<V>(order).map_err(Fault::from)?;
    let keeps_bound = outcome.keeps_bound();
    let TtOutcome { verified, restarts, best, history, seconds, spectra, .. } = outcome;
    let dict = model::arrays(py, &AnyModel::Tt(model))?;
    dict.set_item("fit", 1.0 - verified.relative_error)?;
    dict.set_item("keeps_bound", keeps_bound)?;
    let spectra = spectra.into_iter().map(|values| numpy::PyArray1::from_vec(py, values));
    dict.set_item("spectra", spectra.collect::<Vec<_>>())?;
    Ended { history: &history, restarts: &restarts, best, seconds }.add_to(&dict)?;
    Ok(dict)
}

fn decompose<V: Value>(
    list: &Coo<V>,
    config: &TtConfig,
    watch: &Watch<'_>,
) -> Result<TtOutcome, Fault> {
    let mut request = PlanRequest::new::<V>(config);
    request.check(list.extents())?;
    let ranks = match &config.ranks {
        Ranks::Error { .. } => Vec::new(),
        given => given.largest(list.extents())?,
    };
    check_room(list.extents(), &ranks, f64::BYTES)?;
    request.options.memory = left();
    // The matrices of an unfolding, whose ranks show as the run goes on.
    let config = &TtConfig { memory: left(), ..config.clone() };
    let unit = list.unit();
    let list = list.clone().divided_by(unit);
    let planner = Planner::new(&PatternCounts::of(&list), &request)?;
    let list = list.permute_modes(&planner.ordering().order)?;
    let observer = &mut |record: &_| watch.record(record);
    let outcome = match config.method {
        Method::Svd => {
            let counts = planner.into_counts();
            solve_svd(list, counts, config, Toolchain::detect(), observer)?.0
        }
        Method::Als | Method::Dmrg => {
            let plan = planner.plan(&request.options)?;
            let mut kernels = planner.kernels(list, &plan, Toolchain::detect())?;
            solve(&mut kernels, Start::Random, config, observer)?
        }
    };
    Ok(outcome.in_unit::<V>(unit)?)
}
