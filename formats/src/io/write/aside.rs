//! Files that are written beside their place, and several that take their places together.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use crate::error::FormatError;
use crate::io::temporary::temporary;
use crate::io::write::Overwrite;

/// A file that is whole, and not yet under its name; it vanishes unless it is placed.
#[derive(Debug)]
pub struct Aside {
    file: NamedTempFile,
    path: PathBuf,
    overwrite: Overwrite,
}

impl Aside {
    /// Writes by `content` what is to become the file `path`.
    ///
    /// # Errors
    ///
    /// [`FormatError::Io`] if the system does not let this process write beside `path`, or `content` fails.
    pub fn new(
        path: &Path,
        overwrite: Overwrite,
        content: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<Aside, FormatError> {
        let mut file = temporary(folder_of(path), "").map_err(|error| refused(path, error))?;
        content(file.as_file_mut()).map_err(|error| refused(path, error))?;
        Ok(Aside { file, path: path.to_owned(), overwrite })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    ///
    /// [`FormatError::Exists`] if a file has the name that is not to be replaced, and [`FormatError::Io`].
    pub fn place(self) -> Result<(), FormatError> {
        let Aside { file, path, overwrite } = self;
        let persisted = match overwrite {
            Overwrite::Refuse => file.persist_noclobber(&path),
            Overwrite::Replace => file.persist(&path),
        };
        match persisted {
            Ok(_) => Ok(()),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                Err(FormatError::Exists(path))
            }
            Err(error) => Err(refused(&path, error.error)),
        }
    }
}

/// Gives all files their names, or none of them.
///
/// # Errors
///
/// As [`Aside::place`]; files that had the names are then there again.
pub fn place_all(files: Vec<Aside>) -> Result<(), FormatError> {
    let (mut placed, last) = (Vec::new(), files.len().saturating_sub(1));
    for (at, file) in files.into_iter().enumerate() {
        // After the last one nothing can fail.
        let before = if at < last { second_name(&file.path) } else { None };
        let path = file.path.clone();
        if let Err(error) = file.place() {
            placed.into_iter().rev().for_each(Placed::undo);
            return Err(error);
        }
        placed.push(Placed { path, before });
    }
    Ok(())
}

/// A file under its name.
struct Placed {
    path: PathBuf,
    /// The file that had the name before.
    before: Option<TempPath>,
}

impl Placed {
    /// Leaves the name to the file that had it.
    fn undo(self) {
        // What the system refuses now cannot be mended: the first refusal is told.
        let _ = match self.before {
            Some(before) => fs::rename(&before, &self.path),
            None => fs::remove_file(&self.path),
        };
    }
}

/// Gives the file at `path`, if there is one, a second name, under which it outlives its first.
fn second_name(path: &Path) -> Option<TempPath> {
    let name = temporary(folder_of(path), "").ok()?.into_temp_path();
    fs::remove_file(&name).ok()?;
    fs::hard_link(path, &name).ok()?;
    Some(name)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn refused(path: &Path, source: io::Error) -> FormatError {
    FormatError::Io { action: "write", path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    use super::{Aside, Overwrite, place_all};

    fn aside(path: &Path, overwrite: Overwrite) -> Aside {
        Aside::new(path, overwrite, |file| file.write_all(b"new")).unwrap()
    }

    #[test]
    fn files_take_their_places_together_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let read = |name: &str| fs::read_to_string(path(name)).ok();
        fs::write(path("old"), "old").unwrap();
        let files = || {
            vec![
                aside(&path("old"), Overwrite::Replace),
                aside(&path("first"), Overwrite::Refuse),
                aside(&path("last"), Overwrite::Refuse),
            ]
        };
        let written = files();
        fs::write(path("last"), "of another").unwrap();
        assert!(place_all(written).is_err());
        let found = [read("old"), read("first"), read("last")];
        assert_eq!(found, [Some("old".to_owned()), None, Some("of another".to_owned())]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing else is left");
        fs::remove_file(path("last")).unwrap();
        place_all(files()).unwrap();
        for name in ["old", "first", "last"] {
            assert_eq!(read(name).as_deref(), Some("new"), "{name}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }
}
