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
    let counts: [(&str, fn(&IterationRecord) -> usize); 2] =
        [("restart", |record| record.restart), ("iteration", |record| record.iteration)];
    for (name, of) in counts {
        dict.set_item(name, PyArray1::from_iter(py, history.iter().map(|r| of(r) as i64)))?;
    }
    let numbers: [(&str, fn(&IterationRecord) -> f64); 5] = [
        ("fit", |record| record.fit),
        ("change", |record| record.change),
        ("relative_error", |record| record.relative_error),
        ("seconds", |record| record.seconds),
        ("total_seconds", |record| record.total_seconds),
    ];
    for (name, of) in numbers {
        dict.set_item(name, PyArray1::from_iter(py, history.iter().map(of)))?;
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
