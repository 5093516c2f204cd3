//! The folder a run writes to.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::CommonError;

/// What happens if a folder with something in it bears the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Existing {
    /// It stays as it is, and this is an error.
    #[default]
    Refuse,
    /// The files of an earlier run in it are replaced; others stay.
    Replace,
    /// The run whose checkpoint it holds goes on and replaces its files; others stay.
    Resume,
}

/// A folder that can be written, not necessarily there yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFolder {
    path: PathBuf,
}

impl OutputFolder {
    /// Checks that `path` may be used and can be written; leaves no trace.
    ///
    /// # Errors
    ///
    /// [`CommonError::Content`] if it is a file, or a folder that is not empty and is to stay;
    /// [`CommonError::Io`] if the system does not let this process write there.
    pub fn check(path: &Path, existing: Existing) -> Result<OutputFolder, CommonError> {
        if path.exists() && !path.is_dir() {
            let why = "is a file; choose another folder for the output with --out";
            return Err(CommonError::content(path, why));
        }
        if path.is_dir() && existing == Existing::Refuse && !is_empty(path)? {
            let why = "exists already and is not empty; choose another folder with --out, or \
                       replace its files with --overwrite";
            return Err(CommonError::content(path, why));
        }
        // What does not exist yet will be made in the nearest folder that does.
        let ancestors =
            path.ancestors().map(|a| if a == Path::new("") { Path::new(".") } else { a });
        let nearest = ancestors.into_iter().find(|folder| folder.exists());
        probe(nearest.unwrap_or(Path::new(".")))
            .map_err(|e| CommonError::io("write to", path, e))?;
        Ok(OutputFolder { path: path.to_owned() })
    }

    /// Makes the folder.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`].
    pub fn create(&self) -> Result<(), CommonError> {
        fs::create_dir_all(&self.path)
            .map_err(|source| CommonError::io("create", &self.path, source))
    }

    /// Removes the files called `names`, left by an earlier run, where they are.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`].
    pub fn clear<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Result<(), CommonError> {
        for path in names.into_iter().map(|name| self.path.join(name)) {
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(CommonError::io("replace", &path, source));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn is_empty(folder: &Path) -> Result<bool, CommonError> {
    let mut entries =
        fs::read_dir(folder).map_err(|source| CommonError::io("read", folder, source))?;
    Ok(entries.next().is_none())
}

/// Creates and removes a file: permissions alone do not tell whether a folder can be written.
fn probe(folder: &Path) -> io::Result<()> {
    let file = folder.join(format!(".decompose-probe-{}", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&file)?;
    fs::remove_file(&file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_unless_asked() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("a/b");
        let folder = OutputFolder::check(&run, Existing::Refuse).unwrap();
        assert!(!run.exists() && fs::read_dir(dir.path()).unwrap().next().is_none());
        folder.create().unwrap();
        OutputFolder::check(&run, Existing::Refuse).unwrap();
        fs::write(run.join("run.json"), "{}").unwrap();
        fs::write(run.join("mine.txt"), "").unwrap();
        let error = OutputFolder::check(&run, Existing::Refuse).unwrap_err().to_string();
        assert!(error.contains("--overwrite"), "{error}");
        let folder = OutputFolder::check(&run, Existing::Replace).unwrap();
        folder.clear(["run.json", "other.csv"]).unwrap();
        assert!(!run.join("run.json").exists() && run.join("mine.txt").exists());
    }

    #[test]
    fn files_and_unwritable_places_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = OutputFolder::check(&file, Existing::Replace).unwrap_err().to_string();
        assert!(error.contains("is a file"), "{error}");
        let below = OutputFolder::check(&file.join("run"), Existing::Refuse).unwrap_err();
        assert!(below.to_string().contains("cannot write to"), "{below}");
        assert!(OutputFolder::check(Path::new("/proc/run"), Existing::Refuse).is_err());
    }
}
