//! Writing files so that a reader sees the old content or the new one, never half of either.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::CommonError;

/// Bytes gathered before they go to the system.
const BUFFER: usize = 1 << 20;

/// Writes `path` by `write`: into `path.partial` beside it, flushed to disk, then renamed.
///
/// # Errors
///
/// [`CommonError::Io`] if the file cannot be made or `write` fails; `path` is then as before.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), CommonError> {
    let partial = partial(path);
    let done = (|| {
        let mut out = BufWriter::with_capacity(BUFFER, File::create(&partial)?);
        write(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        fs::rename(&partial, path)
    })();
    done.map_err(|source| {
        // The first failure is the one to report.
        let _ = fs::remove_file(&partial);
        CommonError::io("write", path, source)
    })
}

fn partial(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".partial");
    PathBuf::from(name)
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
}
