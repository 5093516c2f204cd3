//! The course of a run, iteration by iteration.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::error::CommonError;

/// One iteration of an alternating solver.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct IterationRecord {
    /// The restart, counted from 1.
    pub restart: usize,
    /// The iteration, counted from 1 in each restart.
    pub iteration: usize,
    /// `1 - ||X - M|| / ||X||`.
    pub fit: f64,
    /// The absolute change of the fit; the first iteration changes it from 0.
    pub change: f64,
    /// `||X - M|| / ||X||`.
    pub relative_error: f64,
    /// Seconds of this iteration.
    pub seconds: f64,
    /// Seconds from the start of the run, all restarts (and the part before a resumption).
    pub total_seconds: f64,
    /// Seconds of each mode's MTTKRP, by mode.
    pub mttkrp_seconds: Vec<f64>,
    /// Seconds of all the dense algebra: normal equations, row updates, Grams, fit.
    pub dense_seconds: f64,
}

/// Writes `history.csv` while the run goes on: every record is on disk when it is appended.
pub struct HistoryWriter {
    path: PathBuf,
    out: csv::Writer<File>,
}

impl HistoryWriter {
    /// Starts the file `path`, replacing an earlier one, for a tensor of order `order`.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`] if it cannot be written.
    pub fn create(path: &Path, order: usize) -> Result<HistoryWriter, CommonError> {
        let file = File::create(path).map_err(|source| CommonError::io("create", path, source))?;
        let mut writer =
            HistoryWriter { path: path.to_owned(), out: csv::Writer::from_writer(file) };
        let mut header: Vec<String> =
            ["restart", "iteration", "fit", "change", "relative_error", "seconds", "total_seconds"]
                .map(String::from)
                .into();
        header.extend((1..=order).map(|mode| format!("mttkrp_{mode}_seconds")));
        header.push("dense_seconds".into());
        writer.line(&header)?;
        Ok(writer)
    }

    /// Appends one iteration.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`] if it cannot be written.
    pub fn append(&mut self, record: &IterationRecord) -> Result<(), CommonError> {
        // Shortest digits that read back exactly; times to the microsecond.
        let seconds = |s: f64| format!("{s:.6}");
        let mut line = vec![
            record.restart.to_string(),
            record.iteration.to_string(),
            record.fit.to_string(),
            format!("{:e}", record.change),
            format!("{:e}", record.relative_error),
            seconds(record.seconds),
            seconds(record.total_seconds),
        ];
        line.extend(record.mttkrp_seconds.iter().copied().map(seconds));
        line.push(seconds(record.dense_seconds));
        self.line(&line)
    }

    fn line(&mut self, fields: &[String]) -> Result<(), CommonError> {
        let written = self.out.write_record(fields).map_err(std::io::Error::other);
        written
            .and_then(|()| self.out.flush())
            .map_err(|source| CommonError::io("write", &self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_on_disk_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.csv");
        let mut writer = HistoryWriter::create(&path, 2).unwrap();
        let record = IterationRecord {
            restart: 1,
            iteration: 3,
            fit: 0.1 + 0.2,
            change: 1.5e-7,
            relative_error: 0.7,
            seconds: 0.25,
            total_seconds: 1.0,
            mttkrp_seconds: vec![0.1, 0.05],
            dense_seconds: 0.1,
        };
        writer.append(&record).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "restart,iteration,fit,change,relative_error,seconds,total_seconds,\
             mttkrp_1_seconds,mttkrp_2_seconds,dense_seconds\n\
             1,3,0.30000000000000004,1.5e-7,7e-1,0.250000,1.000000,0.100000,0.050000,0.100000\n"
        );
    }
}
