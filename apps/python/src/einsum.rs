//! Expressions of tensors.

use std::fmt::Write;

use decompose_core::autoschedule::default_scheduler;
use decompose_core::compute::{
    Evaluator, Known, Tensor as Operand, Wanted, assign, plan_product, run_product,
};
use decompose_core::contract::StoredTrees;
use decompose_core::einsum::Assignment;
use decompose_core::runtime::Toolchain;
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
    let operands = named.into_iter().map(|(name, value)| Ok((name, operand(&value)?)));
    let operands = operands.collect::<PyResult<Vec<_>>>()?;
    let (result, notes) = watched(py, None, threads, move |_| {
        let mut kernels =
            Kernels { operands, toolchain: Toolchain::detect(), notes: String::new() };
        let result =
            assign(&assignment, Wanted::default(), &mut StoredTrees::default(), &mut kernels)?;
        Ok((result, kernels.notes))
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

/// Runs kernels of the default scheduler, and keeps a line on each.
struct Kernels {
    operands: Vec<(String, Operand<f64>)>,
    toolchain: Toolchain,
    notes: String,
}

impl Evaluator<f64> for Kernels {
    type Error = Fault;

    fn operand(&mut self, name: &str) -> Result<Operand<f64>, Fault> {
        let found = self.operands.iter().find(|(own, _)| own == name);
        let why = || Fault::Input(format!("operand `{name}` of the expression is not given"));
        found.map(|(_, tensor)| tensor.clone()).ok_or_else(why)
    }

    fn is_list(&self, name: &str) -> bool {
        self.operands.iter().any(|(own, tensor)| own == name && tensor.is_sparse())
    }

    fn product(
        &mut self,
        known: &Known,
        tensors: Vec<Operand<f64>>,
        stored: &mut StoredTrees<f64>,
    ) -> Result<Operand<f64>, Fault> {
        let planned = plan_product(known, default_scheduler())?;
        // Writing to a string cannot fail.
        let _ = match &planned {
            None => writeln!(self.notes, "{}: products of dense matrices", known.expr),
            Some(planned) => writeln!(
                self.notes,
                "{}: nest {}, trees {}, {:.2e} s predicted",
                known.expr,
                planned.schedule.nest,
                planned.trees_typed(),
                planned.seconds
            ),
        };
        Ok(run_product(known, planned.as_ref(), tensors, stored, &self.toolchain)?)
    }
}
