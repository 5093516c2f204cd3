//! The last lines of a run, for people: seconds, memory, files.

use std::fmt;

use decompose_common::machine::{peak_bytes, size};

use crate::run::Phases;
use crate::run::memory::Forecast;
use crate::run::settings::RunSettings;

/// The lines that end every summary, shown by its `Display`.
pub(crate) struct Footer<'a> {
    pub(crate) settings: &'a RunSettings,
    pub(crate) phases: &'a Phases,
    pub(crate) forecast: &'a Forecast,
    pub(crate) files: &'a [String],
}

impl fmt::Display for Footer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phases = self.phases.0.iter().filter(|(_, seconds)| *seconds >= 0.0005);
        let phases: Vec<String> =
            phases.map(|(name, seconds)| format!("{name} {seconds:.3}")).collect();
        writeln!(f, "seconds     {}", phases.join(", "))?;
        if let Some(actual) = peak_bytes() {
            let predicted = size(self.forecast.last());
            writeln!(f, "memory      {} at the peak, {predicted} expected", size(actual))?;
        }
        if self.files.is_empty() {
            return write!(f, "files       none (--nowrite)");
        }
        write!(f, "files       {}/: {}", self.settings.folder.display(), self.files.join(" "))
    }
}
