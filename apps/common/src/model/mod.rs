//! Models and the files they live in.

mod any;
mod arrange;
mod csv;
mod finite;
mod mean;
mod meaning;
mod norm;
mod npz;
mod splatt;
mod train;
mod ttb;
mod tucker;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use decompose_formats::{Matrix, Unit, Value};

use crate::error::CommonError;

pub use any::{Model, ModelKind, Stored};
pub use arrange::Arrangement;
pub use meaning::{Link, Meaning};
pub use norm::{train_norm_squared, tucker_norm_squared};
pub use train::TtModel;
pub use tucker::TuckerModel;

/// A sum of R rank-one tensors: `sum_r weights[r] * factor_1[:, r] o ... o factor_N[:, r]`.
///
/// Memory: `sum I_n * R` values, rows padded.
pub struct CpModel<V> {
    weights: Vec<f64>,
    factors: Vec<Matrix<V>>,
}

impl<V: Value> CpModel<V> {
    /// Makes a model of R weights and one factor of `I_n x R` a mode.
    ///
    /// # Errors
    ///
    /// [`CommonError::NotAModel`] if there is no factor, no component, or a factor of another
    /// width.
    pub fn new(weights: Vec<f64>, factors: Vec<Matrix<V>>) -> Result<CpModel<V>, CommonError> {
        let rank = weights.len();
        if rank == 0 || factors.is_empty() {
            let why = format!("{rank} weights and {} factors", factors.len());
            return Err(CommonError::NotAModel(why));
        }
        if let Some(mode) = factors.iter().position(|factor| factor.cols() != rank) {
            let cols = factors[mode].cols();
            let why = format!("factor {} has {cols} columns for {rank} weights", mode + 1);
            return Err(CommonError::NotAModel(why));
        }
        check_rows(&factors)?;
        Ok(CpModel { weights, factors })
    }

    /// Returns the number of components.
    pub fn rank(&self) -> usize {
        self.weights.len()
    }

    /// Returns the extents of the tensor it models, by mode.
    pub fn extents(&self) -> Vec<u64> {
        self.factors.iter().map(|factor| factor.rows() as u64).collect()
    }

    /// Returns the weight of every component.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Returns one factor a mode.
    pub fn factors(&self) -> &[Matrix<V>] {
        &self.factors
    }

    /// Takes the model apart: weights, factors by mode.
    pub fn into_parts(self) -> (Vec<f64>, Vec<Matrix<V>>) {
        (self.weights, self.factors)
    }

    /// Returns the numbers, from 0, of the components that are zero everywhere: those of weight zero.
    pub fn zero_components(&self) -> Vec<usize> {
        (0..self.rank()).filter(|&r| self.weights[r] == 0.0).collect()
    }

    /// Returns the model of data of which this models the values divided by `unit`.
    pub fn in_unit(mut self, unit: Unit) -> CpModel<V> {
        self.weights.iter_mut().for_each(|weight| *weight = unit.multiply(*weight));
        self
    }
}

/// Refuses factors without rows, which model no tensor.
pub(super) fn check_rows<V: Value>(factors: &[Matrix<V>]) -> Result<(), CommonError> {
    match factors.iter().position(|factor| factor.rows() == 0) {
        None => Ok(()),
        Some(mode) => Err(CommonError::NotAModel(format!("factor {} has no rows", mode + 1))),
    }
}

/// The kinds of model files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelFormat {
    /// `model.npz` for `numpy.load`: `weights`, `factor_1`, ..., in the precision of the model.
    Npz,
    /// `lambda.mat`, `mode1.mat`, ...: text as SPLATT writes, with 17 digits instead of 9.
    Splatt,
    /// `model.ktensor`: text of the Tensor Toolbox.
    Ttb,
    /// `weights.csv`, `factor_1.csv`, ...: with headers, indices counted from 1.
    Csv,
}

impl FromStr for ModelFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<ModelFormat, String> {
        match name {
            "npz" => Ok(ModelFormat::Npz),
            "splatt" => Ok(ModelFormat::Splatt),
            "ttb" => Ok(ModelFormat::Ttb),
            "csv" => Ok(ModelFormat::Csv),
            other => Err(format!("no model format `{other}`; use npz, splatt, ttb or csv")),
        }
    }
}

/// Writes a CP `model` into `folder` and returns the files written.
///
/// # Errors
///
/// [`CommonError::Io`] if a file cannot be written.
pub fn write<V: Value>(
    model: &CpModel<V>,
    folder: &Path,
    format: ModelFormat,
) -> Result<Vec<PathBuf>, CommonError> {
    match format {
        ModelFormat::Npz => npz::write(model, folder),
        ModelFormat::Splatt => splatt::write(model, folder),
        ModelFormat::Ttb => ttb::write(model, folder),
        ModelFormat::Csv => csv::write(model, folder, &[]),
    }
}

/// Writes a CP `model` into `folder` as [`ModelFormat::Csv`], with a last column `label` for the modes whose indices
/// have labels; returns the files written.
///
/// # Errors
///
/// [`CommonError::Io`] if a file cannot be written.
pub fn write_csv<V: Value>(
    model: &CpModel<V>,
    folder: &Path,
    labels: &[&[String]],
) -> Result<Vec<PathBuf>, CommonError> {
    csv::write(model, folder, labels)
}

/// Reads a CP model from an `.npz` file or a `ktensor` text file, told apart by their first bytes;
/// [`Model::read`] takes any kind.
///
/// # Errors
///
/// As [`Model::read`]; also for a model of another kind.
pub fn read<V: Value>(path: &Path) -> Result<CpModel<V>, CommonError> {
    match Model::read(path)? {
        Model::Cp(model) => Ok(model),
        other => {
            let kind = other.kind().name();
            Err(CommonError::content(path, format!("a {kind} model, not CP")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init;

    fn example() -> CpModel<f64> {
        CpModel::new(vec![2.5, 0.1], init::random(&[3, 1, 4], 2, 9).unwrap()).unwrap()
    }

    fn equal(a: &CpModel<f64>, b: &CpModel<f64>) -> bool {
        a.weights() == b.weights()
            && a.factors().iter().zip(b.factors()).all(|(a, b)| a.view() == b.view())
    }

    #[test]
    fn npz_and_ktensor_read_back_exactly() {
        let dir = tempfile::tempdir().unwrap();
        for format in [ModelFormat::Npz, ModelFormat::Ttb] {
            let files = write(&example(), dir.path(), format).unwrap();
            assert!(equal(&read(&files[0]).unwrap(), &example()), "{format:?}");
        }
        let first = std::fs::read(dir.path().join("model.npz")).unwrap();
        write(&example(), dir.path(), ModelFormat::Npz).unwrap();
        assert_eq!(first, std::fs::read(dir.path().join("model.npz")).unwrap());
    }

    #[test]
    fn single_precision_is_stored_as_such() {
        let dir = tempfile::tempdir().unwrap();
        let factors = init::random::<f32>(&[300, 2], 3, 9).unwrap();
        let model = CpModel::new(vec![1.0; 3], factors).unwrap();
        let files = write(&model, dir.path(), ModelFormat::Npz).unwrap();
        let size = std::fs::metadata(&files[0]).unwrap().len();
        assert!(size < 300 * 3 * 4 + 2000, "{size} bytes");
        let wide: CpModel<f64> = read(&files[0]).unwrap();
        assert_eq!(wide.factors()[0].row(7)[1], f64::from(model.factors()[0].row(7)[1]));
    }

    #[test]
    fn text_formats_hold_every_digit() {
        let dir = tempfile::tempdir().unwrap();
        let files = write(&example(), dir.path(), ModelFormat::Splatt).unwrap();
        assert_eq!(files.len(), 4);
        assert_eq!(
            std::fs::read_to_string(dir.path().join("lambda.mat")).unwrap(),
            "2.5000000000000000e+00\n1.0000000000000001e-01\n"
        );
        let text = std::fs::read_to_string(dir.path().join("mode3.mat")).unwrap();
        let first: f64 = text.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(first, example().factors()[2].row(0)[0]);
        assert_eq!(text.lines().count(), 4);
        write(&example(), dir.path(), ModelFormat::Csv).unwrap();
        let text = std::fs::read_to_string(dir.path().join("factor_1.csv")).unwrap();
        assert!(text.starts_with("index,component_1,component_2\n1,"), "{text}");
        let names = ["a, b", "c", "d"].map(str::to_owned);
        write_csv(&example(), dir.path(), &[&names, &[], &[]]).unwrap();
        let text = std::fs::read_to_string(dir.path().join("factor_1.csv")).unwrap();
        assert!(text.starts_with("index,component_1,component_2,label\n1,"), "{text}");
        let ends: Vec<&str> =
            text.lines().map(|line| line.splitn(4, ',').last().unwrap()).collect();
        assert_eq!(ends, ["label", "\"a, b\"", "c", "d"]);
        let text = std::fs::read_to_string(dir.path().join("factor_3.csv")).unwrap();
        assert!(text.starts_with("index,component_1,component_2\n"), "{text}");
    }

    #[test]
    fn faulty_files_are_named_with_line_and_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bad.ktensor");
        for (text, expected) in [
            ("sptensor\n", "bad.ktensor:1: expected `ktensor`, found `sptensor`"),
            (
                "ktensor\n1\n2\n1\n3\nmatrix\n2\n2 1\n0.5\nx\n",
                "bad.ktensor:10: `x` is not a number of this place",
            ),
            ("ktensor\n1\n2\n1\n3\nmatrix\n2\n2 1\n0.5\n", "ends before"),
            ("ktensor\n1\n2\n1\n3\nmatrix\n2\n3 1\n", "bad.ktensor:8: factor 1 has 3 rows"),
            ("ktensor\n1\n2\n1\n3\nmatrix\n2\n2 1\n1\n2\n3", "bad.ktensor:11: expected the end"),
            ("", "ends before"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = read::<f64>(&path).err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
        std::fs::write(&path, "PKjunk").unwrap();
        assert!(read::<f64>(&path).err().unwrap().to_string().contains("not an npz file"));
        assert!(read::<f64>(&dir.path().join("none")).err().unwrap().to_string().contains("open"));
    }

    #[test]
    fn weights_and_factors_must_fit() {
        let wide = init::random::<f64>(&[3], 2, 0).unwrap();
        assert!(matches!(CpModel::new(vec![1.0], wide), Err(CommonError::NotAModel(_))));
        assert!(matches!(CpModel::<f64>::new(vec![], vec![]), Err(CommonError::NotAModel(_))));
    }
}
