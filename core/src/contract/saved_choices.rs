//! Choices by measurement, kept for the next run.
//!
//! A choice is a file beside the compiled kernels: the text of the schedule, behind comments that
//! tell what was measured.  Its name is a hash of all that the measurement depends on, so a changed
//! tensor, machine or bound never meets an old choice.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::autoschedule::Storage;
use crate::cost::Machine;
use crate::einsum::Expr;
use crate::schedule::{Problem, Schedule};

/// Marks the line of the measured seconds.
const SECONDS: &str = "# seconds ";

/// What a choice depends on: expression, extents, counts of the pattern, bounds, precision, the
/// orders in which the operand may be stored, the machine and its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Takes the fingerprint of a choice among the schedules of `problem` on `storages`.
    pub fn of(problem: &Problem, storages: &[Storage], machine: &Machine) -> Fingerprint {
        let mut hash = blake3::Hasher::new();
        hash.update(format!("{problem:?} {storages:?} {machine:?}").as_bytes());
        Fingerprint(hash.finalize().to_hex()[..32].to_owned())
    }
}

/// A schedule that was the fastest when it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The schedule.
    pub schedule: Schedule,
    /// Seconds of a run.
    pub seconds: f64,
}

/// The folder of choices.
#[derive(Clone, Debug)]
pub struct Choices {
    folder: PathBuf,
}

impl Choices {
    /// Returns the choices kept in the cache folder `cache`.
    pub fn within(cache: &Path) -> Choices {
        Choices { folder: cache.join("choices") }
    }

    /// Returns the file of a choice.
    pub fn path(&self, key: &Fingerprint) -> PathBuf {
        self.folder.join(format!("{}.schedule", key.0))
    }

    /// Returns the choice for `expr` that was kept under `key`; `None` if there is none, or none
    /// that can be read.
    pub fn get(&self, key: &Fingerprint, expr: &Expr) -> Option<Choice> {
        let text = std::fs::read_to_string(self.path(key)).ok()?;
        let seconds = text.lines().find_map(|line| line.strip_prefix(SECONDS)?.parse().ok())?;
        let schedule = Schedule::parse(&text, expr).ok()?;
        Some(Choice { schedule, seconds })
    }

    /// Keeps a choice for `expr` under `key`; an older one is replaced as a whole.
    ///
    /// # Errors
    ///
    /// If the folder or the file cannot be written.
    pub fn put(&self, key: &Fingerprint, choice: &Choice, expr: &Expr) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(&self.folder)?;
        let mut text = format!("# the fastest measured schedule of {expr}\n");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{SECONDS}{:e}", choice.seconds);
        text += &choice.schedule.text(expr);
        let file = tempfile::NamedTempFile::new_in(&self.folder)?;
        std::fs::write(file.path(), text)?;
        let path = self.path(key);
        file.persist(&path).map_err(|error| error.error)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, Choices, Fingerprint};
    use crate::autoschedule::default_scheduler;
    use crate::contract::Request;
    use crate::cost::Machine;
    use crate::kernels;
    use decompose_formats::PatternCounts;

    #[test]
    fn a_choice_comes_back_under_its_own_fingerprint_only() {
        let counts = PatternCounts::uniform(&[30, 20, 10], 900);
        let shapes = [vec![], vec![20, 16], vec![10, 16]];
        let request = Request::new(kernels::mttkrp(3, 0), 0, &counts, &shapes).unwrap();
        let problem = request.problem(&"1-2-3".parse().unwrap());
        let machine = Machine::here();
        let found = default_scheduler().search(&problem, machine).unwrap();
        let schedule = found.candidates[0].schedule.clone();
        let choice = Choice { schedule, seconds: 1.25e-3 };
        let dir = tempfile::tempdir().unwrap();
        let choices = Choices::within(dir.path());
        let key = Fingerprint::of(&problem, &[], machine);
        assert_eq!(choices.get(&key, &problem.expr), None);
        choices.put(&key, &choice, &problem.expr).unwrap();
        assert_eq!(choices.get(&key, &problem.expr), Some(choice));
        let more = Machine { threads: machine.threads + 1, ..machine.clone() };
        let other = Fingerprint::of(&problem, &[], &more);
        assert_eq!(choices.get(&other, &problem.expr), None);
    }
}
