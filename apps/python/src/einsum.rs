//! Expressions of tensors.

use decompose_core::compute::{Known, Tensor as Operand, compute_seen};
use decompose_core::contract::Planned;
use decompose_core::einsum::Assignment;
use numpy::{PyArray1, PyReadonlyArrayDyn, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::fault::Fault;
use crate::tensor::{Tensor, arrays};
use crate::watch::watched;

/// Computes `text` of `operands`, which are given by name or, with an empty name, in the order of the expression.
///
/// Returns an array, or a dictionary with `coords`, `values` and `shape`; and a line for each kernel that was run.
#[pyfunction]
pub(crate) fn einsum<'py>(
    py: Python<'py>,
    text: &str,
    operands: Vec<(String, Bound<'py, PyAny>)>,
    threads: Option<usize>,
) -> PyResult<(Bound<'py, PyAny>, String)> {
    let assignment: Assignment = text.parse().map_err(Fault::from)?;
    let named = names(&assignment, operands)?;
    let operands = named.iter().map(|(name, value)| Ok((name.as_str(), operand(value)?)));
    let operands = operands.collect::<PyResult<Vec<_>>>()?;
    let (result, notes) = watched(py, None, threads, move |_| {
        let mut notes = String::new();
        let result = compute_seen(text, &operands, |known, planned| {
            notes.push_str(&note(known, planned));
        })?;
        Ok((result, notes))
    })?;
    let result = match result {
        Operand::Dense(array) => array.to_pyarray(py).into_any(),
        Operand::Sparse(list) => {
            let dict = PyDict::new(py);
            dict.set_item("coords", arrays(py, &list))?;
            dict.set_item("values", PyArray1::from_slice(py, list.values()))?;
            dict.set_item("shape", list.extents())?;
            dict.into_any()
        }
    };
    Ok((result, notes))
}

/// Gives operands without a name those of the expression, in its order.
fn names<'py>(
    assignment: &Assignment,
    operands: Vec<(String, Bound<'py, PyAny>)>,
) -> Result<Vec<(String, Bound<'py, PyAny>)>, Fault> {
    let mut wanted: Vec<&str> = Vec::new();
    for access in assignment.summands.iter().flat_map(|summand| &summand.inputs) {
        if !wanted.contains(&access.tensor.as_str()) {
            wanted.push(&access.tensor);
        }
    }
    let (given, expected) = (operands.len(), wanted.len());
    if given != expected {
        let why = format!(
            "the expression has {expected} operands ({}), but {given} are given",
            wanted.join(", ")
        );
        return Err(Fault::Input(why));
    }
    let name = |(at, (name, value)): (usize, (String, Bound<'py, PyAny>))| {
        (if name.is_empty() { wanted[at].to_owned() } else { name }, value)
    };
    Ok(operands.into_iter().enumerate().map(name).collect())
}

fn operand(value: &Bound<'_, PyAny>) -> PyResult<Operand<f64>> {
    if let Ok(tensor) = value.extract::<PyRef<'_, Tensor>>() {
        return Ok(Operand::Sparse(tensor.list.wide()?));
    }
    let array = value.extract::<PyReadonlyArrayDyn<'_, f64>>()?;
    Ok(Operand::Dense(array.as_array().as_standard_layout().into_owned()))
}

/// A line on a kernel.
fn note(known: &Known, planned: Option<&Planned>) -> String {
    match planned {
        None => format!("{}: products of dense matrices\n", known.expr),
        Some(planned) => format!(
            "{}: nest {}, trees {}, {:.2e} s predicted\n",
            known.expr,
            planned.schedule.nest,
            planned.trees_typed(),
            planned.seconds
        ),
    }
}
