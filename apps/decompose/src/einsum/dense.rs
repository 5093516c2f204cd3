//! Dense operands from files.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use decompose_common::memory::left;
use decompose_common::npz::NpzIn;
use decompose_formats::io::read_dense;
use decompose_formats::{DenseTensor, Value};
use ndarray::IxDyn;

use crate::failure::Failure;

/// What a file holds, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// One array.
    Npy,
    /// An archive, of which one member is meant.
    Npz(PathBuf, String),
    /// A list of non-zeros.
    List,
}

impl FileKind {
    /// Tells the kind of `file`; an archive and its member are written `FILE.npz:MEMBER`.
    pub(crate) fn of(file: &Path) -> Result<FileKind, Failure> {
        let text = file.to_string_lossy();
        if let Some((archive, member)) = text.rsplit_once(':').filter(|(a, _)| a.ends_with(".npz"))
        {
            return Ok(FileKind::Npz(archive.into(), member.to_owned()));
        }
        if text.ends_with(".npz") {
            let why = format!("{text} is an archive of arrays");
            return Err(Failure::input(why).help(format!("name the array, as {text}:factor_1")));
        }
        Ok(if text.ends_with(".npy") { FileKind::Npy } else { FileKind::List })
    }
}

/// Reads a dense array of any order; its elements may be of any real type.
pub(crate) fn read<V: Value>(file: &Path, kind: &FileKind) -> Result<DenseTensor<V>, Failure> {
    let array = match kind {
        FileKind::Npz(archive, member) => NpzIn::open(archive)?.values::<V, IxDyn>(member)?,
        FileKind::Npy | FileKind::List => {
            let name = file.display().to_string();
            let opened = File::open(file)
                .map_err(|error| Failure::input(format!("cannot open {name}: {error}")))?;
            let limit = left().unwrap_or(u64::MAX);
            read_dense::<V>(&mut BufReader::new(opened), &name, limit)?
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
