//! CP by alternating least squares.

use decompose_common::memory::left;
use decompose_common::model::Model as AnyModel;
use decompose_core::runtime::Toolchain;
use decompose_core::sweep::Engine;
use decompose_cp::{
    CpConfig, CpModel, CpOutcome, NonNegModes, PlanRequest, Planner, Start, nvecs_start, solve,
};
use decompose_formats::{Coo, Matrix, PatternCounts, Value};
use numpy::{PyReadonlyArray2, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::fault::Fault;
use crate::history::Ended;
use crate::model;
use crate::options::{Course, check_room};
use crate::tensor::{List, Number, Tensor};
use crate::watch::{Watch, watched};

/// The options of `decompose.cp`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options<'py> {
    rank: usize,
    reg: f64,
    /// The modes that are not negative, from 0.
    nonneg: Vec<usize>,
    /// `random` or `nvecs`; not looked at where factors are given.
    init: String,
    factors: Option<Vec<PyReadonlyArray2<'py, f64>>>,
}

/// Where the iterations begin.
pub(crate) enum Init {
    Random,
    Nvecs,
    /// Factors, a row after the other.
    Factors(Vec<ndarray::Array2<f64>>),
}

/// Decomposes `tensor`; returns the arrays of the model, `fit`, `history`, `restarts` and more by name.
#[pyfunction]
pub(crate) fn cp<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let course: Course = options.extract()?;
    let Options { rank, reg, nonneg, init, factors } = options.extract()?;
    let nonneg = if nonneg.is_empty() { NonNegModes::None } else { NonNegModes::Listed(nonneg) };
    let init = match (init.as_str(), factors) {
        (_, Some(factors)) => {
            Init::Factors(factors.iter().map(|factor| factor.as_array().to_owned()).collect())
        }
        ("random", None) => Init::Random,
        ("nvecs", None) => Init::Nvecs,
        (other, None) => {
            let why = format!("init is `{other}`; use random, nvecs or a list of factors");
            return Err(Fault::Input(why).into());
        }
    };
    let config = CpConfig {
        seed: course.seed,
        stop: course.stop()?,
        reg,
        nonneg,
        restarts: course.restarts,
        ..CpConfig::new(rank)
    };
    match &tensor.list {
        List::F64(list) => run(py, list, (&config, init), &course),
        List::F32(list) => run(py, list, (&config, init), &course),
    }
}

fn run<'py, V: Number>(
    py: Python<'py>,
    list: &Coo<V>,
    (config, init): (&CpConfig, Init),
    course: &Course,
) -> PyResult<Bound<'py, PyDict>> {
    let outcome = watched(py, course.callback.as_ref(), course.threads, |watch| {
        decompose(list, config, init, watch)
    })?;
    let fit = outcome.best().fit;
    let CpOutcome { model, best, restarts, match_scores, history, gram, seconds } = outcome;
    let dict = model::arrays(py, &AnyModel::Cp(model))?;
    dict.set_item("fit", fit)?;
    Ended { history: &history, restarts: &restarts, best, seconds }.add_to(&dict)?;
    dict.set_item("match_scores", match_scores.to_pyarray(py))?;
    dict.set_item("warning", gram.warning())?;
    Ok(dict)
}

/// Runs CP-ALS on the elements of `list`.
///
/// # Errors
///
/// Options that make no sense, too little memory, and the solver's errors.
pub(crate) fn decompose<V: Value>(
    list: &Coo<V>,
    config: &CpConfig,
    init: Init,
    watch: &Watch<'_>,
) -> Result<CpOutcome<V>, Fault> {
    check_room(list.extents(), &[config.rank], V::BYTES)?;
    config.check(list.order())?;
    let unit = list.unit();
    let list = list.clone().divided_by(unit);
    let start = match init {
        Init::Random => Start::Random,
        Init::Nvecs => nvecs_start(&list, config)?,
        Init::Factors(factors) => {
            let factors = factors.iter().map(matrix).collect::<Result<Vec<_>, Fault>>()?;
            let rank = factors.first().map_or(0, Matrix::cols);
            Start::Given(CpModel::new(vec![1.0; rank], factors)?)
        }
    };
    decompose_cp::check_start(&start, config, list.extents())?;
    let mut request = PlanRequest::new::<V>(config, list.order());
    request.options.memory = left();
    let counts = PatternCounts::of(&list);
    let plan = Planner::new(&list, &counts, &request).plan(&request.options)?;
    let (mut engine, _) = Engine::build(list, &plan, &Toolchain::detect())?;
    let outcome = solve(&mut engine, start, config, &mut |record| watch.record(record))?;
    Ok(outcome.in_unit(unit)?)
}

fn matrix<V: Value>(array: &ndarray::Array2<f64>) -> Result<Matrix<V>, Fault> {
    let mut matrix = Matrix::zeros(array.nrows(), array.ncols())?;
    for (row, from) in array.outer_iter().enumerate() {
        matrix.row_mut(row).iter_mut().zip(from).for_each(|(to, &x)| *to = V::from_f64(x));
    }
    Ok(matrix)
}
