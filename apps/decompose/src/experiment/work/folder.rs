//! The folder of a study.
//!
//! ```text
//! study.toml    the file, as it was read last      study.json   its runs, in order
//! runs/NAME-KEY a finished run, or how it failed   tensors/     those that were generated
//! .work/        what is being run, emptied when the study goes on
//! report/       what `decompose experiment report` writes
//! ```
//!
//! A run writes to `.work` and is moved to `runs` when all of its files are there.  A kill at any moment therefore
//! leaves whole runs, and none that looks finished and is not.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_formats::io::is_temporary;
use serde::Serialize;

use crate::experiment::plan::{Plan, key_of};
use crate::failure::Failure;

/// A folder that this process alone works in.
pub(crate) struct StudyFolder {
    path: PathBuf,
    /// The lock; `None` where the file system has none.
    _lock: Option<File>,
}

/// What becomes of a study that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// It is refused.
    Anew,
    /// It goes on.
    Resume,
}

impl StudyFolder {
    /// Takes the folder of a study.
    ///
    /// # Errors
    ///
    /// A folder with other content, one of a study that is not to go on, or one that is in use.
    pub(crate) fn claim(path: &Path, begin: Begin) -> Result<StudyFolder, Failure> {
        let fail = |what: &str, error: std::io::Error| {
            Failure::input(format!("cannot {what} {}: {error}", path.display()))
        };
        let is_study = path.join("study.json").is_file();
        if path.exists() && !is_study && !is_ours(path).map_err(|e| fail("read", e))? {
            let why = format!("{} exists and holds no study", path.display());
            return Err(Failure::input(why).help("choose another folder with --out"));
        }
        if is_study && begin == Begin::Anew {
            let why = format!("{} holds a study", path.display());
            return Err(Failure::input(why)
                .help("go on with it with --resume, or choose another folder with --out"));
        }
        fs::create_dir_all(path).map_err(|e| fail("make", e))?;
        let folder = File::open(path).map_err(|e| fail("open", e))?;
        let lock = match folder.try_lock() {
            Ok(()) => Some(folder),
            Err(TryLockError::WouldBlock) => {
                let why = format!("another process works on the study in {}", path.display());
                return Err(Failure::input(why).help("wait until it has ended"));
            }
            // Not every file system has locks.
            Err(TryLockError::Error(_)) => None,
        };
        let claimed = StudyFolder { path: path.to_owned(), _lock: lock };
        claimed.clear()?;
        for part in [claimed.runs(), claimed.work(), claimed.tensors()] {
            fs::create_dir_all(&part).map_err(|error| {
                Failure::input(format!("cannot make {}: {error}", part.display()))
            })?;
        }
        Ok(claimed)
    }

    /// Removes what runs that did not end have left.
    ///
    /// # Errors
    ///
    /// If it cannot be removed.
    pub(crate) fn clear(&self) -> Result<(), Failure> {
        match fs::remove_dir_all(self.work()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::input(format!("cannot remove {}: {error}", self.work().display())))
            }
            _ => Ok(()),
        }
    }

    /// Returns where finished runs are.
    pub(crate) fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }

    /// Returns where runs write until they end.
    pub(crate) fn work(&self) -> PathBuf {
        self.path.join(".work")
    }

    /// Returns where generated tensors are.
    pub(crate) fn tensors(&self) -> PathBuf {
        self.path.join("tensors")
    }

    /// Returns its path, as typed.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the file of the study and its runs.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub(crate) fn record(&self, text: &str, plan: &Plan) -> Result<(), Failure> {
        let written =
            files::replace(&self.path.join("study.toml"), |out| out.write_all(text.as_bytes()));
        written.map_err(Failure::from)?;
        write_json(&self.path.join("study.json"), plan)
    }
}

/// Returns the names of the folders of runs, by their keys.
pub(crate) fn by_key(runs: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(runs).into_iter().flatten().filter_map(Result::ok);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter_map(|name| Some((key_of(&name)?.to_owned(), name))).collect()
}

/// Writes a value as JSON, whole or not at all.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    files::replace(path, |out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
    .map_err(|error| Failure::from(error).while_writing())
}

/// Tells whether a folder holds nothing but what a study that was killed at its beginning may have left.
fn is_ours(path: &Path) -> std::io::Result<bool> {
    const OURS: [&str; 4] = [".work", "runs", "tensors", "study.toml"];
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !OURS.contains(&name.as_str()) && !is_temporary(&name) {
            return Ok(false);
        }
    }
    Ok(true)
}
