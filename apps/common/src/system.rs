//! Calls of the operating system for which the standard library has no name.

use std::io;
use std::path::Path;

/// Lets a write beyond the limit on the size of files (`ulimit -f`) fail with an error.
///
/// Otherwise the system ends the process, and what it has computed is lost.
pub fn let_large_writes_fail() {
    #[cfg(unix)]
    {
        // SAFETY: to ignore a signal installs no handler, and nothing else here sets this one.
        #[expect(unsafe_code, reason = "signals have no safe binding")]
        // A refusal leaves the signal as it was.
        let _ = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    }
}

/// Exchanges two folders of one file system in one step: no reader and no crash meets a state between.
///
/// # Errors
///
/// If one does not exist, is in use as a mount point or not writable, or the system cannot do it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    let name = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (one, other) = (name(one)?, name(other)?);
    // SAFETY: both names end with a zero and live until the call returns.
    #[expect(unsafe_code, reason = "the standard library only renames")]
    let done = unsafe {
        libc::renameat2(
            libc::AT_FDCWD,
            one.as_ptr(),
            libc::AT_FDCWD,
            other.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Refuses: this system has no such call.
///
/// # Errors
///
/// Always.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::fs;

    use super::exchange;

    #[test]
    fn folders_change_places() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        fs::write(a.join("x"), "a").unwrap();
        exchange(&a, &b).unwrap();
        assert!(b.join("x").exists() && fs::read_dir(&a).unwrap().next().is_none());
        assert!(exchange(&a, &dir.path().join("absent")).is_err());
    }
}
