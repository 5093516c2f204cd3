//! Models between arrays and files.

use std::path::PathBuf;

use decompose_common::evaluate::values_at;
use decompose_common::model::{
    CpModel, Link, Meaning, Model as AnyModel, Stored, TtModel, TuckerModel,
};
use decompose_common::strongest::{Strong, strongest};
use decompose_core::runtime::Toolchain;
use decompose_formats::{Matrix, ModeOrder};
use ndarray::{Array2, Ix3};
use numpy::{
    PyArray1, PyArray2, PyArray3, PyArrayDyn, PyReadonlyArray1, PyReadonlyArray2,
    PyReadonlyArrayDyn, ToPyArray,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::fault::Fault;
use crate::options::check_process;
use crate::tensor::{Number, columns};

/// A model with what its values say.
#[pyclass(frozen, module = "decompose._decompose")]
pub(crate) struct Model {
    pub(crate) stored: Stored<f64>,
}

#[pymethods]
impl Model {
    /// Makes a CP model of weights and one matrix a mode.
    #[staticmethod]
    fn cp(
        weights: PyReadonlyArray1<'_, f64>,
        factors: Vec<PyReadonlyArray2<'_, f64>>,
    ) -> PyResult<Model> {
        let factors = factors.iter().map(matrix).collect::<PyResult<Vec<_>>>()?;
        let weights = weights.as_array().to_vec();
        let model = CpModel::new(weights, factors).map_err(Fault::from)?;
        Ok(Model::plain(AnyModel::Cp(model)))
    }

    /// Makes a Tucker model of a core and one matrix a mode.
    #[staticmethod]
    fn tucker(
        core: PyReadonlyArrayDyn<'_, f64>,
        factors: Vec<PyReadonlyArray2<'_, f64>>,
    ) -> PyResult<Model> {
        let factors = factors.iter().map(matrix).collect::<PyResult<Vec<_>>>()?;
        let core = core.as_array().as_standard_layout().into_owned();
        let model = TuckerModel::new(core, factors).map_err(Fault::from)?;
        Ok(Model::plain(AnyModel::Tucker(model)))
    }

    /// Makes a tensor train of cores of three indices; `order` names the mode of each core, from 0.
    #[staticmethod]
    fn train(cores: Vec<PyReadonlyArrayDyn<'_, f64>>, order: Vec<usize>) -> PyResult<Model> {
        let core = |core: &PyReadonlyArrayDyn<'_, f64>| {
            let core = core.as_array().as_standard_layout().into_owned();
            let why = |_| Fault::Input("a core of a train has three indices".into());
            core.into_dimensionality::<Ix3>().map_err(why)
        };
        let cores = cores.iter().map(core).collect::<Result<Vec<_>, Fault>>()?;
        let why = || Fault::Input("order does not list each mode once".into());
        let order = ModeOrder::new(order).ok_or_else(why)?;
        let model = TtModel::new(cores, order).map_err(Fault::from)?;
        Ok(Model::plain(AnyModel::Tt(model)))
    }

    /// Reads `model.npz`, the folder of a run, or a ktensor of the Tensor Toolbox.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Model> {
        let stored = py.detach(|| Stored::read(&path)).map_err(Fault::from)?;
        Ok(Model { stored })
    }

    /// Returns the same model with what its values say: the loss it was fitted by, whether they are log-odds, and how
    /// many of the last components of a CP model are offsets.
    fn meaning(&self, loss: Option<String>, link: &str, biases: usize) -> PyResult<Model> {
        let link = match link {
            "identity" => Link::Identity,
            "logit" => Link::Logit,
            other => {
                return Err(
                    Fault::Input(format!("link is `{other}`; use identity or logit")).into()
                );
            }
        };
        let meaning = Meaning { loss, link, biases };
        Ok(Model { stored: Stored { model: self.copy()?, meaning } })
    }

    /// Writes `model.npz` into a folder and returns its path.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<PathBuf> {
        Ok(py.detach(|| self.stored.write(&folder)).map_err(Fault::from)?)
    }

    /// The kind: `cp`, `tucker` or `tt`.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.stored.model {
            AnyModel::Cp(_) => "cp",
            AnyModel::Tucker(_) => "tucker",
            AnyModel::Tt(_) => "tt",
        }
    }

    /// The Frobenius norm of the model over all cells.
    fn norm(&self) -> f64 {
        self.stored.model.norm()
    }

    /// The arrays of the model and what its values say, by name.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = arrays(py, &self.stored.model)?;
        let meaning = &self.stored.meaning;
        dict.set_item("loss", meaning.loss.as_deref())?;
        dict.set_item("link", meaning.link.name())?;
        dict.set_item("biases", meaning.biases)?;
        Ok(dict)
    }

    /// The strongest entries of each column of each factor, `count` at most: pairs of index and value; none of a train.
    fn strongest(&self, py: Python<'_>, count: usize) -> Vec<Vec<Vec<(usize, f64)>>> {
        let factors = match &self.stored.model {
            AnyModel::Cp(model) => model.factors(),
            AnyModel::Tucker(model) => model.factors(),
            AnyModel::Tt(_) => &[],
        };
        let pairs = |column: Vec<Strong>| column.iter().map(|of| (of.index, of.value)).collect();
        let of = |factor| strongest(factor, count).into_iter().map(pairs).collect();
        py.detach(|| factors.iter().map(of).collect())
    }

    /// The values at coordinates, one array a mode, on the scale of the data.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        coords: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        check_process()?;
        let extents = self.stored.model.extents().into_iter().map(Some).collect::<Vec<_>>();
        let (coords, _) = columns(&coords, &extents)?;
        let Stored { model, meaning } = &self.stored;
        let values = py.detach(|| {
            let mut values = values_at(model, coords, &Toolchain::detect())?;
            values.iter_mut().for_each(|value| *value = meaning.link.mean(*value));
            Ok::<_, Fault>(values)
        })?;
        Ok(PyArray1::from_vec(py, values))
    }
}

impl Model {
    fn plain(model: AnyModel<f64>) -> Model {
        Model { stored: Stored { model, meaning: Meaning::default() } }
    }

    fn copy(&self) -> PyResult<AnyModel<f64>> {
        let matrices = |factors: &[Matrix<f64>]| {
            factors.iter().map(Matrix::try_clone).collect::<Result<Vec<_>, _>>()
        };
        let copied = match &self.stored.model {
            AnyModel::Cp(model) => {
                let factors = matrices(model.factors()).map_err(Fault::from)?;
                AnyModel::Cp(CpModel::new(model.weights().to_vec(), factors).map_err(Fault::from)?)
            }
            AnyModel::Tucker(model) => {
                let factors = matrices(model.factors()).map_err(Fault::from)?;
                let copy = TuckerModel::new(model.core().clone(), factors);
                AnyModel::Tucker(copy.map_err(Fault::from)?)
            }
            AnyModel::Tt(model) => {
                let copy = TtModel::new(model.cores().to_vec(), model.order().clone());
                AnyModel::Tt(copy.map_err(Fault::from)?)
            }
        };
        Ok(copied)
    }
}

/// Copies a matrix from an array.
fn matrix(array: &PyReadonlyArray2<'_, f64>) -> PyResult<Matrix<f64>> {
    let array = array.as_array();
    let mut matrix = Matrix::zeros(array.nrows(), array.ncols()).map_err(Fault::from)?;
    for (row, from) in array.outer_iter().enumerate() {
        matrix.row_mut(row).iter_mut().zip(from).for_each(|(to, &value)| *to = value);
    }
    Ok(matrix)
}

/// Returns the arrays of a model by name, in its precision: `weights` and `factors`, `core` and `factors`, or `cores`
/// and `order`.
pub(crate) fn arrays<'py, V: Number>(
    py: Python<'py>,
    model: &AnyModel<V>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    match model {
        AnyModel::Cp(model) => {
            let weights = model.weights().iter().map(|&weight| V::from_f64(weight));
            dict.set_item("weights", PyArray1::from_iter(py, weights))?;
            dict.set_item("factors", factors(py, model.factors()))?;
        }
        AnyModel::Tucker(model) => {
            let core: Bound<'py, PyArrayDyn<V>> = model.core().mapv(V::from_f64).to_pyarray(py);
            dict.set_item("core", core)?;
            dict.set_item("factors", factors(py, model.factors()))?;
        }
        AnyModel::Tt(model) => {
            let cores: Vec<Bound<'py, PyArray3<V>>> =
                model.cores().iter().map(|core| core.to_pyarray(py)).collect();
            dict.set_item("cores", cores)?;
            dict.set_item("order", model.order().modes().to_vec())?;
        }
    }
    Ok(dict)
}

fn factors<'py, V: Number>(py: Python<'py>, factors: &[Matrix<V>]) -> Vec<Bound<'py, PyArray2<V>>> {
    let array = |factor: &Matrix<V>| {
        let row = |row: usize| factor.row(row).iter().copied();
        let shape = (factor.rows(), factor.cols());
        let values: Vec<V> = (0..factor.rows()).flat_map(row).collect();
        Array2::from_shape_vec(shape, values).expect("a value a cell").to_pyarray(py)
    };
    factors.iter().map(array).collect()
}
