//! Files that are being written: beside their final place, hidden, and renamed when they are whole.
//!
//! ```text
//! .decompose-XXXXXX.part    locked by the process that writes it, for as long as it is open
//! ```
//!
//! A killed process leaves such a file, whose lock the system gives up.  The next process that writes into the folder
//! removes it; files of live processes, and all others, stay.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::{Builder, NamedTempFile};

const PREFIX: &str = ".decompose-";
const SUFFIX: &str = ".part";

/// The folders that this process has swept.
static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Makes an empty file in `folder`, whose name ends with `ending`; it vanishes unless it is persisted.
///
/// What killed processes have left in the folder is removed first, once a process.
///
/// # Errors
///
/// If the system does not let this process write there.
pub fn temporary(folder: &Path, ending: &str) -> io::Result<NamedTempFile> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let first = SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
    if first {
        sweep(folder);
    }
    let suffix = format!("{SUFFIX}{ending}");
    let mut builder = Builder::new();
    builder.prefix(PREFIX).suffix(&suffix);
    // Temporary files are private by default and would stay so under their final name.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    loop {
        let file = builder.tempfile_in(folder)?;
        match file.as_file().try_lock() {
            // Another process has taken it for a dead one's before it was locked.
            Err(TryLockError::WouldBlock) => {}
            // Not every file system has locks.
            _ if file.path().exists() => return Ok(file),
            _ => {}
        }
    }
}

/// Tells whether a file of this name is one that is being written, or was when its process was killed.
pub fn is_temporary(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|rest| rest.contains(SUFFIX))
}

/// Removes what killed processes have left in `folder`.
fn sweep(folder: &Path) {
    // What cannot be listed or removed is no reason not to write.
    let Ok(entries) = fs::read_dir(folder) else { return };
    let ours = entries.flatten().filter(|entry| is_temporary(&entry.file_name().to_string_lossy()));
    for path in ours.map(|entry| entry.path()) {
        // A link is never followed, and of a file without a lock nobody knows whose it is.
        let is_file = fs::symlink_metadata(&path).is_ok_and(|data| data.is_file());
        if is_file
            && let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{is_temporary, sweep, temporary};

    #[test]
    fn leftovers_of_the_dead_go_and_files_of_the_living_stay() {
        let dir = tempfile::tempdir().unwrap();
        let names = || {
            let names = fs::read_dir(dir.path()).unwrap();
            let mut names: Vec<String> =
                names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        for name in [".decompose-killed.part", ".decompose-killed.part.tns", "mine.part", ".mine"] {
            fs::write(dir.path().join(name), "half").unwrap();
        }
        let alive = temporary(dir.path(), ".tns").unwrap();
        let name = alive.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(is_temporary(&name) && name.ends_with(".part.tns"), "{name}");
        assert_eq!(names(), [name.as_str(), ".mine", "mine.part"]);
        sweep(dir.path());
        assert_eq!(names(), [name.as_str(), ".mine", "mine.part"]);
        alive.persist(dir.path().join("whole")).unwrap();
        assert_eq!(names(), [".mine", "mine.part", "whole"]);
        drop(temporary(dir.path(), "").unwrap());
        assert_eq!(names(), [".mine", "mine.part", "whole"]);
    }
}
