//! Sparse tensors of either precision.

use std::path::PathBuf;

use decompose_formats::io::{self, Progress, ReadOptions, Source};
use decompose_formats::{Coo, Duplicates, Ints, Value, Width};
use ndarray::{ArrayView1, Zip};
use numpy::{Element, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use rayon::prelude::*;

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

    /// Makes a tensor of one array of integers a mode and `float64` or `float32` values; where a mode has no extent, its
    /// largest coordinate decides.
    #[staticmethod]
    fn of_coords(
        py: Python<'_>,
        coords: Vec<Bound<'_, PyAny>>,
        values: &Bound<'_, PyAny>,
        shape: Vec<Option<u64>>,
        duplicates: &str,
    ) -> PyResult<Tensor> {
        check_process()?;
        let policy = policy(duplicates)?;
        let (coords, shape) = columns(&coords, &shape)?;
        let list = if let Ok(values) = values.extract::<PyReadonlyArray1<'_, f32>>() {
            let values = copied(&values);
            py.detach(|| Ok::<_, Fault>(List::F32(list(shape, coords, values, policy)?)))?
        } else {
            let values = copied(&values.extract::<PyReadonlyArray1<'_, f64>>()?);
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

/// Copies the coordinates of each mode, checks them, and returns them with the extents.
///
/// # Errors
///
/// A coordinate that is negative, or not below the extent of its mode in `shape`.
pub(crate) fn columns(
    arrays: &[Bound<'_, PyAny>],
    shape: &[Option<u64>],
) -> PyResult<(Vec<Ints>, Vec<u64>)> {
    let both = arrays.iter().zip(shape).enumerate();
    let both = both.map(|(mode, (array, &extent))| column(mode, array, extent));
    let both = both.collect::<PyResult<Vec<_>>>()?;
    Ok(both.into_iter().unzip())
}

/// Copies the coordinates of one mode from an array of any integers.
fn column(mode: usize, array: &Bound<'_, PyAny>, extent: Option<u64>) -> PyResult<(Ints, u64)> {
    macro_rules! of_any {
        ($($integer:ty),*) => {
            $(if let Ok(array) = array.extract::<PyReadonlyArray1<'_, $integer>>() {
                return Ok(narrowed(mode, array.as_array(), extent)?);
            })*
        };
    }
    of_any!(i64, i32, u32, u64, i16, u16, i8, u8);
    Err(Fault::Input(format!("the coordinates of mode {mode} are no array of integers")).into())
}

/// Copies coordinates in 32 bits where the extent allows, with all threads.
fn narrowed<T: Copy + Ord + Send + Sync + Into<i128>>(
    mode: usize,
    numbers: ArrayView1<'_, T>,
    extent: Option<u64>,
) -> Result<(Ints, u64), Fault> {
    let bounds = numbers.first().map(|&first| {
        let both = |(least, most): (T, T), &number: &T| (least.min(number), most.max(number));
        let merge = |(a, b): (T, T), (c, d): (T, T)| (a.min(c), b.max(d));
        Zip::from(&numbers).par_fold(|| (first, first), both, merge)
    });
    let (least, most) = bounds.map_or((0, -1), |(least, most)| (least.into(), most.into()));
    if least < 0 {
        let why = format!("a coordinate of mode {mode} is {least}; they count from 0");
        return Err(Fault::Input(why));
    }
    let above = |most: i128| format!("coordinate {most} of mode {mode} is not below");
    let extent = match extent {
        Some(extent) if most < i128::from(extent) => extent,
        Some(extent) => {
            return Err(Fault::Input(format!("{} its extent {extent}", above(most))));
        }
        None => u64::try_from(most + 1)
            .map_err(|_| Fault::Input(format!("{} 2^64 - 1, the largest extent", above(most))))?,
    };
    let ints = match Width::listed(extent) {
        Width::W64 => taken(numbers, |&number| number.into() as u64).into(),
        Width::W16 | Width::W32 => taken(numbers, |&number| number.into() as u32).into(),
    };
    Ok((ints, extent))
}

/// Copies values with all threads.
fn copied<V: Number>(values: &PyReadonlyArray1<'_, V>) -> Vec<V> {
    taken(values.as_array(), |value| *value)
}

/// Copies an array, with all threads unless it has strides.
fn taken<T: Sync, U: Send>(
    array: ArrayView1<'_, T>,
    cut: impl Fn(&T) -> U + Send + Sync,
) -> Vec<U> {
    match array.as_slice() {
        Some(numbers) => numbers.par_iter().map(cut).collect(),
        None => array.iter().map(cut).collect(),
    }
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
