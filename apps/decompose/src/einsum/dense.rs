//! Dense operands from files.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use decompose_common::npz::NpzIn;
use decompose_formats::{Coo, DenseTensor, Value};
use ndarray::{ArrayD, IxDyn};
use ndarray_npy::{ReadNpyError, ReadNpyExt, ReadableElement};

use crate::failure::Failure;

/// What a file holds, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One array.
    Npy,
    /// An archive, of which one member is meant.
    Npz(PathBuf, String),
    /// A list of non-zeros.
    List,
}

impl Kind {
    /// Tells the kind of `file`; an archive and its member are written `FILE.npz:MEMBER`.
    pub(crate) fn of(file: &Path) -> Result<Kind, Failure> {
        let text = file.to_string_lossy();
        if let Some((archive, member)) = text.rsplit_once(':').filter(|(a, _)| a.ends_with(".npz"))
        {
            return Ok(Kind::Npz(archive.into(), member.to_owned()));
        }
        if text.ends_with(".npz") {
            let why = format!("{text} is an archive of arrays");
            return Err(Failure::input(why).help(format!("name the array, as {text}:factor_1")));
        }
        Ok(if text.ends_with(".npy") { Kind::Npy } else { Kind::List })
    }
}

/// Reads a dense array of any order; its elements may be of any real type.
pub(crate) fn read<V: Value>(file: &Path, kind: &Kind) -> Result<DenseTensor<V>, Failure> {
    let array = match kind {
        Kind::Npz(archive, member) => member_of::<V>(archive, member)?,
        Kind::Npy | Kind::List => {
            let reading = of_type::<f64, V>(file, |x| x)
                .or_else(|| of_type::<f32, V>(file, f64::from))
                .or_else(|| of_type::<i64, V>(file, |x| x as f64))
                .or_else(|| of_type::<i32, V>(file, f64::from))
                .or_else(|| of_type::<u8, V>(file, f64::from));
            reading.unwrap_or_else(|| {
                let why = format!("{}: its elements are not real numbers", file.display());
                Err(Failure::input(why).help("save it with `.astype(float)`"))
            })?
        }
    };
    match array.iter().position(|element| !element.to_f64().is_finite()) {
        None => Ok(array),
        Some(at) => {
            let (file, element) = (file.display(), array.iter().nth(at));
            let element = element.map_or(f64::NAN, |element| element.to_f64());
            let why = format!("{file}: element {} is {element}, which is not finite", at + 1);
            Err(Failure::input(why).help("replace it before"))
        }
    }
}

/// Reads an array of elements `T`; `None` if they are of another type.
fn of_type<T: ReadableElement + Copy, V: Value>(
    file: &Path,
    widen: impl Fn(T) -> f64,
) -> Option<Result<DenseTensor<V>, Failure>> {
    let bad = |why: String| Some(Err(Failure::input(format!("{}: {why}", file.display()))));
    let reader = match File::open(file) {
        Ok(opened) => BufReader::new(opened),
        Err(error) => return bad(format!("cannot open it: {error}")),
    };
    match ArrayD::<T>::read_npy(reader) {
        Ok(array) => Some(Ok(array.mapv(|x| V::from_f64(widen(x))))),
        Err(ReadNpyError::WrongDescriptor(_)) => None,
        Err(error) => bad(format!("not a .npy file: {error}")),
    }
}

/// Reads a member of an archive, stored in double or single precision.
fn member_of<V: Value>(archive: &Path, member: &str) -> Result<DenseTensor<V>, Failure> {
    let mut archive = NpzIn::open(archive)?;
    match archive.array::<f64, IxDyn>(member) {
        Ok(array) => Ok(array.mapv(V::from_f64)),
        Err(error) => match archive.array::<f32, IxDyn>(member) {
            Ok(array) => Ok(array.mapv(|x| V::from_f64(f64::from(x)))),
            Err(_) => Err(error.into()),
        },
    }
}

/// Makes a list of non-zeros dense.
pub(crate) fn densify<V: Value>(list: &Coo<V>) -> DenseTensor<V> {
    let shape: Vec<usize> = list.extents().iter().map(|&extent| extent as usize).collect();
    let mut dense = ArrayD::from_elem(IxDyn(&shape), V::default());
    let mut place = vec![0; list.order()];
    for (entry, &value) in list.values().iter().enumerate() {
        for (mode, place) in place.iter_mut().enumerate() {
            *place = list.coords(mode).get(entry) as usize;
        }
        dense[IxDyn(&place)] += value;
    }
    dense
}
