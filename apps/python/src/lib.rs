//! The extension module of the Python package `decompose`.
//!
//! Every function takes a `Tensor` and a dictionary of options with all keys; the Python code beside it
//! fills in defaults and turns results into arrays with names.  Work runs on a thread of its own without the
//! interpreter's lock, so that signals and other Python threads are served meanwhile.

mod complete;
mod cp;
mod einsum;
mod fault;
mod history;
mod model;
mod options;
mod rank;
mod tensor;
mod tt;
mod tucker;
mod watch;

use pyo3::prelude::*;

/// The functions behind the package.
#[pymodule]
fn _decompose(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<tensor::Tensor>()?;
    module.add_class::<model::Model>()?;
    module.add_function(wrap_pyfunction!(cp::cp, module)?)?;
    module.add_function(wrap_pyfunction!(tucker::tucker, module)?)?;
    module.add_function(wrap_pyfunction!(tt::tt, module)?)?;
    module.add_function(wrap_pyfunction!(complete::complete, module)?)?;
    module.add_function(wrap_pyfunction!(rank::rank, module)?)?;
    module.add_function(wrap_pyfunction!(einsum::einsum, module)?)?;
    module.add_function(wrap_pyfunction!(watch::interpreted, module)?)
}
