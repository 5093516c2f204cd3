//! A model of any kind, as found in a file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use decompose_formats::{Unit, Value};

use crate::error::CommonError;
use crate::model::{CpModel, Link, Meaning, TtModel, TuckerModel, npz, train, ttb, tucker};
use crate::npz::NpzIn;

/// A model of any kind.
pub enum Model<V> {
    /// A sum of rank-one terms.
    Cp(CpModel<V>),
    /// A core and factors.
    Tucker(TuckerModel<V>),
    /// A tensor train.
    Tt(TtModel<V>),
}

/// The kinds of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// `weights` and `factor_1`, ...
    Cp,
    /// `core` and `factor_1`, ...
    Tucker,
    /// `core_1`, ...
    Tt,
}

impl ModelKind {
    /// Tells the kind by the arrays in `archive`.
    pub(super) fn of(archive: &NpzIn) -> ModelKind {
        if archive.has("core_1") {
            ModelKind::Tt
        } else if archive.has("core") {
            ModelKind::Tucker
        } else {
            ModelKind::Cp
        }
    }

    /// Returns its name for people.
    pub fn name(self) -> &'static str {
        match self {
            ModelKind::Cp => "CP",
            ModelKind::Tucker => "Tucker",
            ModelKind::Tt => "tensor-train",
        }
    }
}

impl<V: Value> Model<V> {
    /// Reads a model of any kind from a `.npz` file, a `ktensor` text file or the folder of a run,
    /// in which it is `model.npz`.  Models stored in the other precision are converted.
    ///
    /// # Errors
    ///
    /// As [`Stored::read`]; also for a model that is not on the scale of the data.
    pub fn read(path: &Path) -> Result<Model<V>, CommonError> {
        let Stored { model, meaning } = Stored::read(path)?;
        match meaning.link {
            Link::Identity => Ok(model),
            Link::Logit => {
                let why = "a model of log-odds, which only `decompose predict` and `eval` take";
                Err(CommonError::content(&in_folder(path), why))
            }
        }
    }

    /// Returns its kind.
    pub fn kind(&self) -> ModelKind {
        match self {
            Model::Cp(_) => ModelKind::Cp,
            Model::Tucker(_) => ModelKind::Tucker,
            Model::Tt(_) => ModelKind::Tt,
        }
    }

    /// Returns the model of data of which this models the values divided by `unit`.
    pub fn in_unit(self, unit: Unit) -> Model<V> {
        match self {
            Model::Cp(model) => Model::Cp(model.in_unit(unit)),
            Model::Tucker(model) => Model::Tucker(model.in_unit(unit)),
            Model::Tt(model) => Model::Tt(model.in_unit(unit)),
        }
    }

    /// Returns the extents of the tensor it models, by mode.
    pub fn extents(&self) -> Vec<u64> {
        match self {
            Model::Cp(model) => model.extents(),
            Model::Tucker(model) => model.extents(),
            Model::Tt(model) => model.extents(),
        }
    }
}

/// A model with what its file says of it.
pub struct Stored<V> {
    /// The model.
    pub model: Model<V>,
    /// What its values say.
    pub meaning: Meaning,
}

impl<V: Value> Stored<V> {
    /// Reads a model as [`Model::read`] does, on whatever scale it is.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`], [`CommonError::Content`] or [`CommonError::Line`] for a file that is
    /// not there, not a model, or has a number that is not finite.
    pub fn read(path: &Path) -> Result<Stored<V>, CommonError> {
        let path = in_folder(path);
        let (model, meaning) = if is_archive(&path)? {
            let mut archive = NpzIn::open(&path)?;
            let model = match ModelKind::of(&archive) {
                ModelKind::Cp => Model::Cp(npz::read(&mut archive)?),
                ModelKind::Tucker => Model::Tucker(tucker::read(&mut archive)?),
                ModelKind::Tt => Model::Tt(train::read(&mut archive)?),
            };
            (model, Meaning::read(&mut archive)?)
        } else {
            (Model::Cp(ttb::read(&path)?), Meaning::default())
        };
        match model.first_not_finite() {
            None => Ok(Stored { model, meaning }),
            Some(place) => {
                let why = format!(
                    "{place}: no finite number, so the model has no values; fit it again, with a ridge"
                );
                Err(CommonError::content(&path, why))
            }
        }
    }

    /// Writes `model.npz` into `folder` and returns its path.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`] if it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, CommonError> {
        let path = folder.join("model.npz");
        crate::npz::write(&path, |out| {
            match &self.model {
                Model::Cp(model) => npz::add(model, out)?,
                Model::Tucker(model) => model.add(out)?,
                Model::Tt(model) => model.add(out)?,
            }
            self.meaning.add(out)
        })?;
        Ok(path)
    }
}

/// Returns the model's file where `path` is the folder of a run.
fn in_folder(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("model.npz") } else { path.to_owned() }
}

/// Tells whether a file is an archive, by its first bytes.
pub(super) fn is_archive(path: &Path) -> Result<bool, CommonError> {
    let mut start = Vec::new();
    let file = File::open(path).map_err(|source| CommonError::io("open", path, source))?;
    file.take(2).read_to_end(&mut start).map_err(|source| CommonError::io("read", path, source))?;
    Ok(start == b"PK")
}

#[cfg(test)]
mod tests {
    use decompose_formats::ModeOrder;
    use ndarray::{Array3, ArrayD, IxDyn};

    use super::*;
    use crate::init;

    #[test]
    fn every_kind_reads_back_exactly() {
        let dir = tempfile::tempdir().unwrap();
        let mut factors = init::random::<f32>(&[3, 4], 2, 9).unwrap();
        factors[1] = init::random::<f32>(&[4], 3, 1).unwrap().remove(0);
        let core = ArrayD::from_shape_fn(IxDyn(&[2, 3]), |at| at[0] as f64 + 0.1 * at[1] as f64);
        let tucker = TuckerModel::new(core, factors).unwrap();
        tucker.write(dir.path()).unwrap();
        let Model::Tucker(read) = Model::<f64>::read(dir.path()).unwrap() else { panic!() };
        assert_eq!((read.core(), read.extents()), (tucker.core(), vec![3, 4]));
        assert_eq!(read.factors()[1].row(3)[2], f64::from(tucker.factors()[1].row(3)[2]));

        let core = |shape: (usize, usize, usize)| {
            Array3::from_shape_fn(shape, |(a, i, b)| (a + 10 * i + 100 * b) as f64 / 7.0)
        };
        let order = ModeOrder::new(vec![1, 0]).unwrap();
        let train = TtModel::new(vec![core((1, 3, 2)), core((2, 5, 1))], order).unwrap();
        train.write(dir.path()).unwrap();
        let Model::Tt(read) = Model::<f64>::read(dir.path()).unwrap() else { panic!() };
        assert_eq!((read.cores(), read.order()), (train.cores(), train.order()));
        assert_eq!((read.extents(), read.ranks()), (vec![5, 3], vec![2]));
        let error = crate::model::read::<f64>(&dir.path().join("model.npz")).err().unwrap();
        assert!(error.to_string().contains("tensor-train"), "{error}");
    }

    #[test]
    fn what_a_model_says_reads_back_and_log_odds_are_for_those_who_know() {
        let dir = tempfile::tempdir().unwrap();
        let cp = || CpModel::new(vec![1.0, 0.5], init::random(&[3, 4], 2, 9).unwrap()).unwrap();
        let meaning = Meaning { loss: Some("bernoulli".into()), link: Link::Logit, biases: 1 };
        let stored = Stored::<f64> { model: Model::Cp(cp()), meaning: meaning.clone() };
        stored.write(dir.path()).unwrap();
        assert_eq!(Stored::<f64>::read(dir.path()).unwrap().meaning, meaning);
        let error = Model::<f64>::read(dir.path()).err().unwrap().to_string();
        assert!(error.contains("log-odds") && error.contains("model.npz"), "{error}");
        // A file without these arrays is on the scale of the data.
        crate::model::write(&cp(), dir.path(), crate::model::ModelFormat::Npz).unwrap();
        let plain = std::fs::read(dir.path().join("model.npz")).unwrap();
        assert_eq!(Stored::<f64>::read(dir.path()).unwrap().meaning, Meaning::default());
        let none = Stored::<f64> { model: Model::Cp(cp()), meaning: Meaning::default() };
        none.write(dir.path()).unwrap();
        assert_eq!(std::fs::read(dir.path().join("model.npz")).unwrap(), plain);
    }

    #[test]
    fn models_without_values_are_refused_with_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let mut factors = init::random::<f64>(&[3, 4], 2, 9).unwrap();
        factors[1].row_mut(2)[1] = f64::NAN;
        let cp = CpModel::new(vec![1.0, 0.5], factors).unwrap();
        crate::model::write(&cp, dir.path(), crate::model::ModelFormat::Npz).unwrap();
        let error = Model::<f64>::read(dir.path()).err().unwrap().to_string();
        assert!(error.contains("array `factor_2`, row 3, column 2, is NaN"), "{error}");
        let core = Array3::from_elem((1, 3, 1), f64::INFINITY);
        TtModel::new(vec![core], ModeOrder::natural(1)).unwrap().write(dir.path()).unwrap();
        let error = Model::<f64>::read(dir.path()).err().unwrap().to_string();
        assert!(error.contains("array `core_1`, index 1 1 1, is inf"), "{error}");
    }

    #[test]
    fn parts_must_fit() {
        let factors = init::random::<f64>(&[3], 2, 0).unwrap();
        assert!(TuckerModel::new(ArrayD::zeros(IxDyn(&[3])), factors).is_err());
        let natural = ModeOrder::natural;
        assert!(TtModel::new(vec![Array3::<f64>::zeros((1, 3, 2))], natural(1)).is_err());
        assert!(TtModel::new(vec![Array3::<f64>::zeros((1, 3, 1))], natural(2)).is_err());
    }
}
