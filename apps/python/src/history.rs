//! The course of a run as arrays.

use decompose_common::history::IterationRecord;
use decompose_common::restarts::RestartReport;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The end of the iterations of any method.
pub(crate) struct Ended<'a> {
    pub(crate) history: &'a [IterationRecord],
    pub(crate) restarts: &'a [RestartReport],
    /// The start that gave the model, from 0.
    pub(crate) best: usize,
    pub(crate) seconds: f64,
}

impl Ended<'_> {
    /// Adds `history`, `restarts`, `best` and `seconds`.
    pub(crate) fn add_to(&self, dict: &Bound<'_, PyDict>) -> PyResult<()> {
        let py = dict.py();
        dict.set_item("history", columns(py, self.history)?)?;
        dict.set_item("restarts", reports(py, self.restarts)?)?;
        dict.set_item("best", self.best)?;
        dict.set_item("seconds", self.seconds)
    }
}

/// Returns how each start ended.
fn reports<'py>(py: Python<'py>, restarts: &[RestartReport]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let report = |restart: &RestartReport| {
        let dict = PyDict::new(py);
        dict.set_item("seed", restart.seed)?;
        dict.set_item("fit", restart.fit)?;
        dict.set_item("relative_error", restart.relative_error)?;
        dict.set_item("iterations", restart.iterations)?;
        dict.set_item("stop", restart.stop.key())?;
        Ok(dict)
    };
    restarts.iter().map(report).collect()
}

/// Returns an array for each column of `history.csv`, in its order.
fn columns<'py>(py: Python<'py>, history: &[IterationRecord]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let restarts = history.iter().map(|record| record.restart as i64);
    dict.set_item("restart", PyArray1::from_iter(py, restarts))?;
    let iterations = history.iter().map(|record| record.iteration as i64);
    dict.set_item("iteration", PyArray1::from_iter(py, iterations))?;
    let numbers: [(&str, Vec<f64>); 5] = [
        ("fit", history.iter().map(|record| record.fit).collect()),
        ("change", history.iter().map(|record| record.change).collect()),
        ("relative_error", history.iter().map(|record| record.relative_error).collect()),
        ("seconds", history.iter().map(|record| record.seconds).collect()),
        ("total_seconds", history.iter().map(|record| record.total_seconds).collect()),
    ];
    for (name, values) in numbers {
        dict.set_item(name, PyArray1::from_vec(py, values))?;
    }
    let Some(first) = history.first() else { return Ok(dict) };
    for (at, detail) in first.details.iter().enumerate() {
        for (column, name) in detail.columns().into_iter().enumerate() {
            let number = |record: &IterationRecord| {
                let numbers = record.details.get(at).map(|detail| detail.numbers());
                numbers.and_then(|numbers| numbers.get(column)).copied().unwrap_or(f64::NAN)
            };
            dict.set_item(name, PyArray1::from_iter(py, history.iter().map(number)))?;
        }
    }
    Ok(dict)
}
