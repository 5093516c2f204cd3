//! What the tests share.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use assert_cmd::Command;
use serde_json::Value as Json;
use tempfile::TempDir;

/// Returns the program, run in `folder`, with a kernel cache shared by the tests of this process.
pub(crate) fn decompose(folder: &Path) -> Command {
    static CACHE: OnceLock<TempDir> = OnceLock::new();
    let cache = CACHE.get_or_init(|| tempfile::tempdir().unwrap());
    let mut command = Command::cargo_bin("decompose").unwrap();
    command.current_dir(folder).env("DECOMPOSE_CACHE", cache.path());
    command
}

/// Returns a tensor shipped with the project.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data")).join(name)
}

/// Runs `decompose cp` on a shipped tensor in `folder`; it must succeed.
pub(crate) fn cp(folder: &Path, file: &str, options: &str) -> (String, String) {
    solve("cp", folder, file, options)
}

/// Runs a solver on a shipped tensor in `folder`; it must succeed.
pub(crate) fn solve(solver: &str, folder: &Path, file: &str, options: &str) -> (String, String) {
    let mut command = decompose(folder);
    command.arg(solver).arg(data(file)).args(options.split_whitespace());
    let output = command.assert().success().get_output().clone();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Reads a JSON file.
pub(crate) fn json(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns the fit in the `run.json` of a folder.
pub(crate) fn fit(folder: &Path) -> f64 {
    json(&folder.join("run.json"))["result"]["fit"].as_f64().unwrap()
}

/// Returns the names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns what was said on standard error without the warning about processors that were never measured, which
/// every command gives that plans for the family `Neutral`.
pub(crate) fn without_family(said: &str) -> String {
    said.lines()
        .filter(|line| !line.starts_with("warning: speeds were never measured"))
        .map(|line| format!("{line}\n"))
        .collect()
}
