//! The course of a run as arrays.

use decompose_common::history::IterationRecord;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Returns an array for each column of `history.csv`, in its order.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    history: &[IterationRecord],
) -> PyResult<Bound<'py, PyDict>> {
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
