//! Writing files so that a reader sees the old content or the new one, never half of either.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use decompose_formats::io::temporary;

use crate::error::CommonError;

/// Bytes gathered before they go to the system.
const BUFFER: usize = 1 << 20;

/// Writes `path` by `write`: into a file beside it, flushed to disk, then renamed.
///
/// No link called `path` is followed: it is replaced.  What killed processes have left of such files in the folder is
/// removed: see [`temporary`].
///
/// # Errors
///
/// [`CommonError::Io`] if the file cannot be made or `write` fails; `path` is then as before.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), CommonError> {
    let done = || -> io::Result<()> {
        // Of the error only what the system said: its name is the temporary one.
        let made = temporary(path.parent().unwrap_or(Path::new("")), "");
        let file = made.map_err(|error| io::Error::from(error.kind()))?;
        let mut out = BufWriter::with_capacity(BUFFER, file.as_file().try_clone()?);
        write(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    done().map_err(|source| CommonError::io("write", path, source))
}

/// Returns the kind of what the operating system said, however deep `error` has wrapped it.
pub fn kind(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        next = match error.downcast_ref::<io::Error>() {
            // What the system said, or a kind of it alone.
            Some(io) if io.get_ref().is_none() => return Some(io.kind()),
            Some(io) => io.get_ref().map(|inner| inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

/// Returns what the operating system said to a table that could not be written.
pub fn table_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        replace(&path, |out| out.write_all(b"old")).unwrap();
        let failed = replace(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert!(failed.unwrap_err().to_string().contains("disk full"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_written_by_two_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        replace(&path, |out| {
            out.write_all(b"first")?;
            out.flush()?;
            replace(&path, |out| out.write_all(b"second")).map_err(io::Error::other)?;
            assert_eq!(fs::read(&path)?, b"second");
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn planted_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a.txt"), dir.path().join("mine"));
        fs::write(&other, "mine").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        replace(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"mine");
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    }

    #[test]
    fn the_systems_word_is_found_in_wrapped_errors() {
        let full = io::Error::from_raw_os_error(28);
        let kind_of_full = full.kind();
        let wrapped =
            io::Error::other(io::Error::other(CommonError::io("write", Path::new("a"), full)));
        assert_eq!(kind(&wrapped), Some(kind_of_full));
        assert_eq!(kind(&io::Error::other("no")), None);
    }
}
