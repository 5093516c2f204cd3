//! The result of a run for people, with its last lines: seconds, memory, files.

use std::fmt;

use decompose_common::machine::{peak_bytes, size};

use crate::run::Phases;
use crate::run::finish::{Ended, RunFacts};

/// A finished run, shown by its `Display`.
pub(crate) struct Summary<'a, E> {
    pub(crate) ended: &'a E,
    pub(crate) phases: &'a Phases,
    pub(crate) files: &'a [String],
}

impl<E: Ended> fmt::Display for Summary<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ended.summary(f)?;
        let RunFacts { settings, forecast, .. } = self.ended.facts();
        let phases = self.phases.0.iter().filter(|(_, seconds)| *seconds >= 0.0005);
        let phases: Vec<String> =
            phases.map(|(name, seconds)| format!("{name} {seconds:.3}")).collect();
        writeln!(f, "seconds     {}", phases.join(", "))?;
        if let Some(actual) = peak_bytes() {
            let predicted = size(forecast.last());
            writeln!(f, "memory      {} at the peak, {predicted} expected", size(actual))?;
        }
        if self.files.is_empty() {
            return write!(f, "files       none (--nowrite)");
        }
        write!(f, "files       {}/: {}", settings.folder.display(), self.files.join(" "))
    }
}
