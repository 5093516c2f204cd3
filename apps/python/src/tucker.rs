//! Tucker by higher-order orthogonal iteration, by singular values alone, or without negative numbers.

use decompose_common::memory::left;
use decompose_common::model::Model as AnyModel;
use decompose_core::cost::Machine;
use decompose_core::kernels::mode_index;
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{Merging, Trees};
use decompose_formats::{Coo, Matrix, ModeOrder, PatternCounts, Value};
use decompose_tucker::{
    Engine, Method, PlanRequest, Start, Target, Truncation, TuckerConfig, TuckerOutcome,
    check_ranks, check_start, hosvd, is_compared, plan, solve, solve_above,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::fault::Fault;
use crate::history::Ended;
use crate::model;
use crate::options::{Course, check_room};
use crate::tensor::{List, Number, Tensor};
use crate::watch::{Watch, watched};

/// A TTMc result formed whole takes one part in this many of the memory that is left, at most.
const WHOLE_PARTS: u64 = 4;

/// The options of `decompose.tucker`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    ranks: Vec<usize>,
    /// In the place of ranks.
    eps: Option<f64>,
    /// `hooi`, `hosvd` or `st-hosvd`.
    method: String,
    nonneg: bool,
    /// `random` or `hosvd`.
    init: String,
}

/// Decomposes `tensor`; returns the arrays of the model, `fit`, `history`, `restarts` and more by name.
#[pyfunction]
pub(crate) fn tucker<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let course: Course = options.extract()?;
    let options: Options = options.extract()?;
    let work = Work::new(options)?;
    match &tensor.list {
        List::F64(list) => run(py, list, &work, &course),
        List::F32(list) => run(py, list, &work, &course),
    }
}

/// What is asked for.
struct Work {
    target: Target,
    method: Method,
    /// The HOSVD to begin from.
    begin: Option<Truncation>,
}

impl Work {
    fn new(options: Options) -> Result<Work, Fault> {
        let Options { ranks, eps, method, nonneg, init } = options;
        let target = eps.map_or(Target::Ranks(ranks), Target::Error);
        let begin = match (method.as_str(), init.as_str()) {
            ("hosvd", _) => Some(Truncation::AtOnce),
            ("st-hosvd", _) => Some(Truncation::Sequential),
            ("hooi", "hosvd") => Some(Truncation::AtOnce),
            ("hooi", "random") => None,
            ("hooi", other) => {
                return Err(Fault::Input(format!("init is `{other}`; use random or hosvd")));
            }
            (other, _) => {
                let why = format!("method is `{other}`; use hooi, hosvd or st-hosvd");
                return Err(Fault::Input(why));
            }
        };
        // Only singular values tell which ranks an error needs.
        let begin = if eps.is_some() { begin.or(Some(Truncation::AtOnce)) } else { begin };
        let method = match (method.as_str(), nonneg) {
            ("hooi", true) => Method::Nonnegative,
            ("hooi", false) => Method::Hooi,
            (_, true) => {
                let why = "nonneg is for method hooi: a HOSVD has factors of both signs";
                return Err(Fault::Input(why.into()));
            }
            (_, false) => Method::Core,
        };
        Ok(Work { target, method, begin })
    }
}

fn run<'py, V: Number>(
    py: Python<'py>,
    list: &Coo<V>,
    work: &Work,
    course: &Course,
) -> PyResult<Bound<'py, PyDict>> {
    let outcome = watched(py, course.callback.as_ref(), course.threads, |watch| {
        decompose(list, work, course, watch)
    })?;
    let fit = outcome.restarts[outcome.best].fit;
    let TuckerOutcome { model, best, restarts, history, seconds, .. } = outcome;
    let dict = model::arrays(py, &AnyModel::Tucker(model))?;
    dict.set_item("fit", fit)?;
    Ended { history: &history, restarts: &restarts, best, seconds }.add_to(&dict)?;
    Ok(dict)
}

fn decompose<V: Value>(
    list: &Coo<V>,
    work: &Work,
    course: &Course,
    watch: &Watch<'_>,
) -> Result<TuckerOutcome<V>, Fault> {
    let target = match &work.target {
        Target::Ranks(ranks) => {
            let ranks = if let [one] = ranks[..] { vec![one; list.order()] } else { ranks.clone() };
            check_ranks(list.extents(), &ranks)?;
            Target::Ranks(ranks)
        }
        Target::Error(eps) => Target::Error(*eps),
    };
    let ranks = if let Target::Ranks(ranks) = &target { &ranks[..] } else { &[] };
    check_room(list.extents(), ranks, V::BYTES)?;
    let unit = list.unit();
    let mut list = list.clone().divided_by(unit);
    let found = match work.begin {
        Some(truncation) => Some(hosvd(&mut list, &target, truncation, course.seed)?.factors),
        None => None,
    };
    let ranks = match (&target, &found) {
        (Target::Ranks(ranks), _) => ranks.clone(),
        (Target::Error(_), found) => found.iter().flatten().map(Matrix::cols).collect(),
    };
    let floor = match is_compared(work.method, work.begin, list.nnz()) {
        true => {
            let target = Target::Ranks(ranks.clone());
            Some(hosvd(&mut list, &target, Truncation::AtOnce, course.seed)?.factors)
        }
        false => None,
    };
    let start = found.map_or(Start::Random, Start::Factors);
    let config = TuckerConfig {
        method: work.method,
        seed: course.seed,
        stop: course.stop()?,
        restarts: course.restarts,
        ..TuckerConfig::new(ranks)
    };
    check_start(&start, &config, list.extents())?;
    let mut engine = engine(list, &config)?;
    let observer = &mut |record: &_| watch.record(record);
    let outcome = match floor {
        Some(floor) => solve_above(&mut engine, start, floor, &config, observer)?,
        None => solve(&mut engine, start, &config, observer)?,
    };
    Ok(outcome.in_unit(unit)?)
}

fn engine<V: Value>(mut list: Coo<V>, config: &TuckerConfig) -> Result<Engine<V>, Fault> {
    list.sort(&ModeOrder::natural(list.order()))?;
    let counts = PatternCounts::of(&list);
    let modes: Vec<_> = (0..list.order()).map(mode_index).collect();
    let pattern = Pattern::of(&counts, &modes);
    let request = PlanRequest {
        extents: list.extents(),
        pattern: &pattern,
        ranks: &config.ranks,
        method: config.method,
        value_bytes: V::BYTES,
        threads: rayon::current_num_threads(),
        trees: Trees::Choose,
        merging: Merging::Choose,
        memory: left(),
        most_whole: left().map(|bytes| bytes / WHOLE_PARTS),
    };
    let plan = plan(&request, Machine::here())?;
    Ok(Engine::build(list, &plan, &Toolchain::detect())?.0)
}
