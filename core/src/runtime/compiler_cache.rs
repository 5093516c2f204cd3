//! The C compiler that was found, cached in a file from one run to the next.
//!
//! To find the compiler and to ask for its version takes several processes.  The answer holds while the same
//! settings lead to the same file, whose place, size and time of change are kept with it.  Of a script that calls another
//! compiler only the script is looked at: a new version behind it goes unnoticed.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file in the folder of compiled kernels: a line each for path, arguments, version, and what they depend on.
const NAME: &str = "compiler.txt";

/// How the names of variables begin by which the `cc` crate chooses.
const CHOOSING: [&str; 4] = ["CC_", "HOST_CC", "TARGET_CC", "CROSS_COMPILE"];

/// A compiler as it was found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FoundCompiler {
    pub(super) path: PathBuf,
    /// What stands before a kernel's own flags, as in `CC="ccache gcc"`; without white space.
    pub(super) arguments: Vec<String>,
    /// The first line of what it says of its version.
    pub(super) version: String,
}

/// Returns the compiler that was found before with `asked` as the user's choice, if nothing changed since.
pub(super) fn load(folder: &Path, asked: Option<&str>) -> Option<FoundCompiler> {
    let text = fs::read_to_string(folder.join(NAME)).ok()?;
    let [path, arguments, version, identity] = text.lines().collect::<Vec<_>>().try_into().ok()?;
    let arguments = arguments.split_whitespace().map(str::to_owned).collect();
    let found = FoundCompiler { path: path.into(), arguments, version: version.to_owned() };
    (identity_of(asked, &found.path)? == identity).then_some(found)
}

/// Stores what was found; if that fails it is looked for again.
pub(super) fn store(folder: &Path, asked: Option<&str>, found: &FoundCompiler) {
    let FoundCompiler { path, arguments, version } = found;
    let arguments = arguments.join(" ");
    let text = |identity| Some(format!("{}\n{arguments}\n{version}\n{identity}\n", path.to_str()?));
    let Some(text) = identity_of(asked, path).and_then(text) else { return };
    let Ok(mut file) = tempfile::NamedTempFile::new_in(folder) else { return };
    if file.write_all(text.as_bytes()).is_ok() {
        let _ = file.persist(folder.join(NAME));
    }
}

/// Describes in a line what leads to the compiler at `path`, and which file it is.
fn identity_of(asked: Option<&str>, path: &Path) -> Option<String> {
    let file = which(path)?;
    let data = fs::metadata(&file).ok()?;
    let chooses =
        |name: &OsStr| CHOOSING.iter().any(|start| name.to_string_lossy().starts_with(start));
    let mut chosen: Vec<_> = std::env::vars_os().filter(|(name, _)| chooses(name)).collect();
    chosen.sort();
    let changed = data.modified().ok()?;
    Some(format!("{asked:?} {chosen:?} {file:?} {} {changed:?}", data.len()))
}

/// Returns the file that a program name stands for.
fn which(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return Some(name.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::{FoundCompiler, load, store};

    #[test]
    fn a_compiler_is_cached_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cc");
        std::fs::write(&path, "a program").unwrap();
        let arguments = vec!["-O2".to_owned(), "-g".to_owned()];
        let version = "cc 1.0 (of a test)".into();
        let found = FoundCompiler { path: path.clone(), arguments, version };
        assert_eq!(load(folder.path(), None), None);
        store(folder.path(), None, &found);
        assert_eq!(load(folder.path(), None), Some(found.clone()));
        assert_eq!(load(folder.path(), Some("cc -O2")), None, "another choice");
        std::fs::write(&path, "another program").unwrap();
        assert_eq!(load(folder.path(), None), None);
        store(folder.path(), Some("cc -O2"), &found);
        assert_eq!(load(folder.path(), Some("cc -O2")), Some(found));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(load(folder.path(), Some("cc -O2")), None);
    }
}
