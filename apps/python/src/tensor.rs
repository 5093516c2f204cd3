//! Sparse tensors of either precision.

use std::path::PathBuf;

use decompose_formats::io::{self, Progress, ReadOptions, Source};
use decompose_formats::{Coo, Duplicates, Ints, Value};
use numpy::{Element, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::fault::Fault;
use crate::options::check_process;

/// The numbers of both worlds.
pub(crate) trait Number: Value + Element {}

impl Number for f32 {}
impl Number for f64 {}

/// A tensor as its non-zero elements, sorted and without duplicates.
#[pyclass(frozen, module = "decompose._decompose")]
pub(crate) struct Tensor {
    pub(crate) list: List,
}

/// A list of either precision.
#[derive(Clone)]
pub(crate) enum List {
    /// Double precision.
    F64(Coo<f64>),
    /// Single precision.
    F32(Coo<f32>),
}

impl List {
    /// Returns the list in double precision; a copy.
    pub(crate) fn wide(&self) -> Result<Coo<f64>, Fault> {
        match self {
            List::F64(list) => Ok(list.clone()),
            List::F32(list) => {
                let (extents, coords, values) = list.clone().into_parts();
                let values: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
                let mut wide = Coo::new(extents, coords, values)?;
                wide.sum_duplicates()?;
                Ok(wide)
            }
        }
    }

    fn extents(&self) -> &[u64] {
        match self {
            List::F64(list) => list.extents(),
            List::F32(list) => list.extents(),
        }
    }
}

#[pymethods]
impl Tensor {
    /// Reads a file: text (plain or compressed), Matrix Market, `.npy` or `.dtb`.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf, dtype: &str, duplicates: &str) -> PyResult<Tensor> {
        check_process()?;
        let policy = policy(duplicates)?;
        let list = py.detach(|| match single(dtype)? {
            true => Ok::<_, Fault>(List::F32(read(&path, policy)?)),
            false => Ok(List::F64(read(&path, policy)?)),
        })?;
        Ok(Tensor { list })
    }

    /// Makes a tensor of one array of `uint32` or `uint64` coordinates a mode and `float64` or `float32` values.
    #[staticmethod]
    fn of_coords(
        py: Python<'_>,
        coords: Vec<Bound<'_, PyAny>>,
        values: &Bound<'_, PyAny>,
        shape: Vec<u64>,
        duplicates: &str,
    ) -> PyResult<Tensor> {
        check_process()?;
        let policy = policy(duplicates)?;
        let coords = coords.iter().map(ints).collect::<PyResult<Vec<Ints>>>()?;
        let list = if let Ok(values) = values.extract::<PyReadonlyArray1<'_, f32>>() {
            let values = values.as_slice()?.to_vec();
            py.detach(|| Ok::<_, Fault>(List::F32(list(shape, coords, values, policy)?)))?
        } else {
            let values = values.extract::<PyReadonlyArray1<'_, f64>>()?.as_slice()?.to_vec();
            py.detach(|| Ok::<_, Fault>(List::F64(list(shape, coords, values, policy)?)))?
        };
        Ok(Tensor { list })
    }

    /// The extents of the modes.
    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.list.extents().to_vec()
    }

    /// The number of elements that are listed.
    #[getter]
    fn nnz(&self) -> usize {
        match &self.list {
            List::F64(list) => list.nnz(),
            List::F32(list) => list.nnz(),
        }
    }

    /// The precision of the values: `float64` or `float32`.
    #[getter]
    fn dtype(&self) -> &'static str {
        match self.list {
            List::F64(_) => "float64",
            List::F32(_) => "float32",
        }
    }

    /// One array of coordinates a mode; a copy.
    fn coords<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        match &self.list {
            List::F64(list) => arrays(py, list),
            List::F32(list) => arrays(py, list),
        }
    }

    /// The values; a copy.
    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match &self.list {
            List::F64(list) => PyArray1::from_slice(py, list.values()).into_any(),
            List::F32(list) => PyArray1::from_slice(py, list.values()).into_any(),
        }
    }
}

fn read<V: Value>(path: &std::path::Path, policy: Duplicates) -> Result<Coo<V>, Fault> {
    let (mut list, _) = io::read(&Source::new(path), &ReadOptions::default(), &Progress::new())?;
    list.merge_duplicates(policy)?;
    Ok(list)
}

fn list<V: Value>(
    shape: Vec<u64>,
    coords: Vec<Ints>,
    values: Vec<V>,
    policy: Duplicates,
) -> Result<Coo<V>, Fault> {
    let mut list = Coo::new(shape, coords, values)?;
    list.merge_duplicates(policy)?;
    Ok(list)
}

/// Reads the name of a precision; tells whether it is the single one.
fn single(dtype: &str) -> Result<bool, Fault> {
    match dtype {
        "float32" => Ok(true),
        "float64" => Ok(false),
        other => Err(Fault::Input(format!("dtype is `{other}`; use float64 or float32"))),
    }
}

/// Reads what becomes of elements that share their coordinates.
fn policy(name: &str) -> Result<Duplicates, Fault> {
    Duplicates::ALL.into_iter().find(|policy| policy.to_string() == name).ok_or_else(|| {
        let names: Vec<String> = Duplicates::ALL.iter().map(ToString::to_string).collect();
        Fault::Input(format!("duplicates is `{name}`; use one of {}", names.join(", ")))
    })
}

/// Copies an array of coordinates.
pub(crate) fn ints(array: &Bound<'_, PyAny>) -> PyResult<Ints> {
    if let Ok(narrow) = array.extract::<PyReadonlyArray1<'_, u32>>() {
        return Ok(narrow.as_slice()?.to_vec().into());
    }
    Ok(array.extract::<PyReadonlyArray1<'_, u64>>()?.as_slice()?.to_vec().into())
}

/// Returns the coordinates of each mode, as `uint64` where 32 bits do not hold them.
pub(crate) fn arrays<'py, V: Value>(py: Python<'py>, list: &Coo<V>) -> Vec<Bound<'py, PyAny>> {
    let array = |mode: usize| {
        let ints = list.coords(mode);
        match list.extents()[mode] <= u64::from(u32::MAX) {
            true => PyArray1::from_iter(py, ints.iter().map(|at| at as u32)).into_any(),
            false => PyArray1::from_iter(py, ints.iter()).into_any(),
        }
    };
    (0..list.order()).map(array).collect()
}
