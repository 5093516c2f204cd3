//! How a run of a study ended: `outcome.json`, beside the files of the run.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The name of the file.
pub(crate) const FILE: &str = "outcome.json";
/// The name of what a run said.
pub(crate) const LOG: &str = "log.txt";

/// How a run ended.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Outcome {
    pub(crate) state: State,
    /// The exit code; `None` after a signal.
    pub(crate) exit_code: Option<i32>,
    /// From its start to its end, as the study saw it.
    pub(crate) seconds: f64,
    /// Why it failed.
    pub(crate) message: Option<String>,
    /// The command line, without the name of the program.
    pub(crate) command: Vec<String>,
}

/// Whether a run has a result.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It has.
    Finished,
    /// It has not.
    Failed,
}

impl Outcome {
    /// Reads that of a run; `None` if the folder holds none that can be read.
    pub(crate) fn read(folder: &Path) -> Option<Outcome> {
        serde_json::from_slice(&fs::read(folder.join(FILE)).ok()?).ok()
    }
}

/// Returns what the last lines of a log say of a failure.
pub(crate) fn reason(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().collect();
    let first = lines.iter().rposition(|line| line.starts_with("error: "))?;
    let told = lines[first].strip_prefix("error: ")?;
    let help = lines[first..].iter().find_map(|line| line.strip_prefix("help: "));
    Some(help.map_or_else(|| told.to_owned(), |help| format!("{told}; {help}")))
}
