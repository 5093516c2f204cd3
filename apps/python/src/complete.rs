//! Completion: models of observed elements, where one that is not listed is unknown.

use decompose_common::model::{Meaning, Model as AnyModel};
use decompose_complete::{
    Algorithm, Biases, CompleteConfig, CompleteOutcome, Data, EpochRecord, Loss, ModelKind, Parts,
    Patience, Range, Reg, Scores, Share, SplitRule, Start, solve, split,
};
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, Value};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::fault::{Fault, from_zero};
use crate::model;
use crate::options::{Course, check_process, check_room};
use crate::tensor::Tensor;
use crate::watch::{Watch, watched};

/// The options of `decompose.complete`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    /// `cp`, `tucker` or `tt`.
    model: String,
    ranks: Vec<usize>,
    algorithm: Option<String>,
    loss: String,
    huber_delta: Option<f64>,
    /// Empty: chosen by the validation error.
    reg: Vec<f64>,
    /// `all` or `nonnegative`.
    sign: String,
    /// `none` or `modes`.
    biases: String,
    patience: usize,
    step: Option<f64>,
    /// The shares of training, validation and test elements; empty where they are given.
    split: Vec<f64>,
    /// Split by the index of this mode.
    time_mode: Option<usize>,
}

/// Fits a model to the elements of `tensor`; returns its arrays, scores, `history` and more by name.
#[pyfunction]
pub(crate) fn complete<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    held_out: (Option<PyRef<'py, Tensor>>, Option<PyRef<'py, Tensor>>),
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let course: Course = options.extract()?;
    let options: Options = options.extract()?;
    check_process()?;
    let (val, test) = (wide(&held_out.0)?, wide(&held_out.1)?);
    let (parts, config) = py.detach(|| {
        let parts = Parts { train: tensor.list.wide()?, val, test };
        let parts = divide(parts, &options, course.seed)?;
        let config = config(&options, &parts.train, &course)?;
        Ok::<_, Fault>((parts, config))
    })?;
    let kind = config.model.clone();
    let outcome =
        watched(py, course.callback.as_ref(), course.threads, |watch| fit(&parts, &config, watch))?;
    let model = outcome.model(&kind).map_err(Fault::from)?;
    let dict = model::arrays(py, &model)?;
    let meaning = Meaning {
        loss: Some(config.loss.to_string()),
        link: config.loss.scale(),
        biases: biases(&model, &outcome),
    };
    dict.set_item("loss", meaning.loss)?;
    dict.set_item("link", meaning.link.name())?;
    dict.set_item("biases", meaning.biases)?;
    dict.set_item("reg", &outcome.starts[outcome.best_start].reg)?;
    dict.set_item("stop", outcome.stop.key())?;
    dict.set_item("seconds", outcome.seconds)?;
    let EpochRecord { train, val, test, epoch, .. } = &outcome.best;
    dict.set_item("epoch", epoch)?;
    let parts = [("train", Some(train)), ("val", val.as_ref()), ("test", test.as_ref())];
    for (name, of) in parts {
        dict.set_item(name, of.map(|scores| entry(py, scores)).transpose()?)?;
    }
    let baselines = outcome.baselines.iter().map(|baseline| {
        let judged = baseline.test.as_ref().or(baseline.val.as_ref()).unwrap_or(&baseline.train);
        Ok((from_zero(&baseline.name), entry(py, judged)?))
    });
    dict.set_item("baselines", baselines.collect::<PyResult<Vec<_>>>()?)?;
    dict.set_item("history", columns(py, &outcome.history)?)?;
    Ok(dict)
}

/// Returns a part in double precision, if it is given.
pub(crate) fn wide(part: &Option<PyRef<'_, Tensor>>) -> Result<Option<Coo<f64>>, Fault> {
    part.as_ref().map(|tensor| tensor.list.wide()).transpose()
}

/// Divides the elements as the options say, unless parts are given.
pub(crate) fn divide(parts: Parts, options: &Options, seed: u64) -> Result<Parts, Fault> {
    if options.split.is_empty() || parts.val.is_some() || parts.test.is_some() {
        return Ok(parts);
    }
    let rule = match options.time_mode {
        Some(mode) => SplitRule::Time { mode },
        None => SplitRule::Random { seed },
    };
    Ok(split(&parts.train, Share::new(&options.split)?, rule)?)
}

/// Makes the configuration of a fit to `train`.
pub(crate) fn config(
    options: &Options,
    train: &Coo<f64>,
    course: &Course,
) -> Result<CompleteConfig, Fault> {
    let loss = loss(options, train)?;
    let default = if loss.is_quadratic() { Algorithm::Als } else { Algorithm::Lbfgs };
    let algorithm = match &options.algorithm {
        None => default,
        Some(name) => {
            let names = Algorithm::ALL.map(Algorithm::name).join(", ");
            let why = || Fault::Input(format!("algorithm is `{name}`; use one of {names}"));
            Algorithm::ALL.into_iter().find(|known| known.name() == name).ok_or_else(why)?
        }
    };
    let stop = course.stop()?;
    Ok(CompleteConfig {
        algorithm,
        loss,
        reg: if options.reg.is_empty() { Reg::Chosen } else { Reg::Given(options.reg.clone()) },
        sign: if options.sign == "all" { Range::All } else { Range::NonNegative },
        biases: if options.biases == "none" { Biases::None } else { Biases::Modes },
        seed: course.seed,
        patience: Patience { tol: stop.tol, epochs: options.patience },
        max_epochs: stop.max_iters,
        max_time: stop.max_time,
        step: options.step,
        restarts: course.restarts,
        ..CompleteConfig::new(kind(options, train.order())?)
    })
}

fn loss(options: &Options, train: &Coo<f64>) -> Result<Loss, Fault> {
    Ok(match (options.loss.as_str(), options.huber_delta) {
        ("gaussian", _) => Loss::Gaussian,
        ("poisson", _) => Loss::Poisson,
        ("bernoulli", _) => Loss::Bernoulli,
        ("gamma", _) => Loss::Gamma,
        ("huber", Some(delta)) => Loss::Huber(delta),
        ("huber", None) => Loss::huber_of(train.values()),
        (other, _) => {
            let names = "gaussian, poisson, bernoulli, huber or gamma";
            return Err(Fault::Input(format!("loss is `{other}`; use {names}")));
        }
    })
}

/// The model for a tensor of `order` modes; one rank stands for all.
fn kind(options: &Options, order: usize) -> Result<ModelKind, Fault> {
    let ranks = |count: usize| match options.ranks[..] {
        [one] => vec![one; count],
        _ => options.ranks.clone(),
    };
    match (options.model.as_str(), &options.ranks[..]) {
        ("cp", [rank]) => Ok(ModelKind::Cp { rank: *rank }),
        ("cp", _) => Err(Fault::Input("a CP model has one rank".into())),
        ("tucker", _) => Ok(ModelKind::Tucker { ranks: ranks(order) }),
        ("tt", _) => Ok(ModelKind::Train { ranks: ranks(order.saturating_sub(1)) }),
        (other, _) => Err(Fault::Input(format!("model is `{other}`; use cp, tucker or tt"))),
    }
}

fn fit(
    parts: &Parts,
    config: &CompleteConfig,
    watch: &Watch<'_>,
) -> Result<CompleteOutcome, Fault> {
    config.check(parts.train.extents())?;
    let ranks = match &config.model {
        ModelKind::Cp { rank } => vec![*rank],
        ModelKind::Tucker { ranks } | ModelKind::Train { ranks } => ranks.clone(),
    };
    check_room(parts.train.extents(), &ranks, f64::BYTES)?;
    let Parts { train, val, test } = parts;
    let data = Data { train, val: val.as_ref(), test: test.as_ref() };
    let mut observer =
        |record: &EpochRecord| watch.see(record.restart, record.epoch, record.deciding().rmse);
    Ok(solve(data, Start::Random, config, &Toolchain::detect(), &mut observer)?)
}

/// How many of the last components are offsets.
fn biases(model: &AnyModel<f64>, outcome: &CompleteOutcome) -> usize {
    match model {
        AnyModel::Cp(model) => model.rank() - outcome.rank,
        AnyModel::Tucker(_) | AnyModel::Tt(_) => 0,
    }
}

/// The scores of a part by name.
fn entry<'py>(py: Python<'py>, scores: &Scores) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("entries", scores.entries)?;
    dict.set_item("rmse", scores.rmse)?;
    dict.set_item("mae", scores.mae)?;
    let optional = [
        ("log_loss", scores.log_loss),
        ("auc", scores.auc),
        ("deviance", scores.deviance),
        ("huber", scores.huber),
    ];
    for (name, value) in optional.into_iter().filter(|(_, value)| value.is_some()) {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

/// The course of the fit as arrays; `NaN` where there are no elements to judge by.
fn columns<'py>(py: Python<'py>, history: &[EpochRecord]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let restarts = history.iter().map(|record| record.restart as i64);
    dict.set_item("restart", PyArray1::from_iter(py, restarts))?;
    let epochs = history.iter().map(|record| record.epoch as i64);
    dict.set_item("epoch", PyArray1::from_iter(py, epochs))?;
    let rmse = |part: Option<&Scores>| part.map_or(f64::NAN, |scores| scores.rmse);
    let columns: [(&str, Vec<f64>); 6] = [
        ("objective", history.iter().map(|r| r.objective).collect()),
        ("train_rmse", history.iter().map(|r| r.train.rmse).collect()),
        ("val_rmse", history.iter().map(|r| rmse(r.val.as_ref())).collect()),
        ("test_rmse", history.iter().map(|r| rmse(r.test.as_ref())).collect()),
        ("seconds", history.iter().map(|r| r.seconds).collect()),
        ("total_seconds", history.iter().map(|r| r.total_seconds).collect()),
    ];
    for (name, values) in columns {
        dict.set_item(name, PyArray1::from_vec(py, values))?;
    }
    Ok(dict)
}
