//! Writing files so that a reader sees the old content or the new one, never half of either.

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::CommonError;

/// Bytes gathered before they go to the system.
const BUFFER: usize = 1 << 20;

/// The ending of files that are being written.
const TEMPORARY: &str = ".tmp";

/// How often a file was to be written that another process or thread is writing.
static WRITTEN_AT_ONCE: AtomicUsize = AtomicUsize::new(0);

/// Writes `path` by `write`: into `path.tmp` beside it, flushed to disk, then renamed.
///
/// No link is followed: one called `path` is replaced, one called `path.tmp` removed.  What a killed process has
/// left under that name is removed too; what a live one is writing stays.
///
/// # Errors
///
/// [`CommonError::Io`] if the file cannot be made or `write` fails; `path` is then as before.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), CommonError> {
    let fail = |source: io::Error| CommonError::io("write", path, source);
    let (temporary, file) = create(path).map_err(fail)?;
    let done = (|| {
        let mut out = BufWriter::with_capacity(BUFFER, file);
        write(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        fs::rename(&temporary, path)
    })();
    done.map_err(|source| {
        // The first failure is the one to report.
        let _ = fs::remove_file(&temporary);
        fail(source)
    })
}

/// Returns the name of the file that is being written as `name`, if that is what the name says.
pub fn of_temporary(name: &str) -> Option<&str> {
    let rest = name.strip_suffix(TEMPORARY)?;
    // Behind the file's name there may be the number of a process.
    let numbered = rest.rsplit_once('.').filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()));
    Some(numbered.map_or(rest, |(name, _)| name))
}

/// Returns the kind of what the operating system said, however deep `error` has wrapped it.
pub fn kind(error: &(dyn Error + 'static)) -> Option<ErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        next = match error.downcast_ref::<io::Error>() {
            Some(io) if io.raw_os_error().is_some() => return Some(io.kind()),
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

/// Makes a new file beside `path` and locks it for as long as it is open.
fn create(path: &Path) -> io::Result<(PathBuf, File)> {
    let named = |ending: String| {
        let mut name = OsString::from(path);
        name.push(ending + TEMPORARY);
        PathBuf::from(name)
    };
    let mut temporary = named(String::new());
    loop {
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            // Not every file system has locks; another process may have taken it for a dead one's.
            Ok(file) => match file.try_lock() {
                Err(TryLockError::WouldBlock) => {}
                _ if temporary.exists() => return Ok((temporary, file)),
                _ => {}
            },
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if is_written(&temporary) {
                    let number = WRITTEN_AT_ONCE.fetch_add(1, Ordering::Relaxed);
                    temporary = named(format!(".{}{number}", std::process::id()));
                } else {
                    fs::remove_file(&temporary)?;
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Tells whether a live process writes the file: it holds its lock.
fn is_written(temporary: &Path) -> bool {
    let is_file = fs::symlink_metadata(temporary).is_ok_and(|data| data.is_file());
    let file = if is_file { File::open(temporary).ok() } else { None };
    file.is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
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
    fn leftovers_of_the_dead_go_and_files_of_the_living_stay() {
        let dir = tempfile::tempdir().unwrap();
        let (path, temporary) = (dir.path().join("a.txt"), dir.path().join("a.txt.tmp"));
        fs::write(&temporary, "half").unwrap();
        replace(&path, |out| out.write_all(b"whole")).unwrap();
        assert!(!temporary.exists());
        // One file is written by two at once.
        replace(&path, |out| {
            out.write_all(b"first")?;
            out.flush()?;
            replace(&path, |out| out.write_all(b"second")).map_err(io::Error::other)?;
            assert_eq!(fs::read(&temporary)?, b"first");
            assert_eq!(fs::read(&path)?, b"second");
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(of_temporary("a.txt.12.tmp"), Some("a.txt"));
        assert_eq!((of_temporary("a.txt.tmp"), of_temporary("a.txt")), (Some("a.txt"), None));
    }

    #[cfg(unix)]
    #[test]
    fn planted_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a.txt"), dir.path().join("mine"));
        fs::write(&other, "mine").unwrap();
        for link in [dir.path().join("a.txt.tmp"), path.clone()] {
            std::os::unix::fs::symlink(&other, &link).unwrap();
            replace(&path, |out| out.write_all(b"new")).unwrap();
            assert_eq!(fs::read(&other).unwrap(), b"mine");
            assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
            fs::remove_file(&path).unwrap();
        }
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
