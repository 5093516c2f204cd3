//! The course of a run, iteration by iteration.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ndarray::{Array2, ArrayView1};
use serde::Serializer;
use serde::ser::SerializeMap;

use crate::error::CommonError;

/// Called after each iteration; `Break` ends the run in good order.
pub type Observer<'a> = dyn FnMut(&IterationRecord) -> ControlFlow<()> + 'a;

/// One iteration of an alternating solver.
///
/// As JSON the details stand beside the other fields, under the names of [`Detail::key`].
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
    /// What this solver records beyond that, in the order of its columns: the same names and
    /// shapes in every iteration.
    #[serde(flatten, serialize_with = "serialize_details")]
    pub details: Vec<Detail>,
}

/// A named measure of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// Its name, in snake case: `mttkrp`, `validation_rmse`.
    pub name: &'static str,
    /// The measure.
    pub value: Measure,
}

/// The kinds of measures.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// Any number; also shown to people as the run goes on.
    Number(f64),
    /// Seconds of a step of the iteration.
    Seconds(f64),
    /// Seconds of a step that is done for each mode, by mode.
    SecondsByMode(Vec<f64>),
}

impl Detail {
    /// Names a number.
    pub fn number(name: &'static str, number: f64) -> Detail {
        Detail { name, value: Measure::Number(number) }
    }

    /// Names the seconds of a step.
    pub fn seconds(name: &'static str, seconds: f64) -> Detail {
        Detail { name, value: Measure::Seconds(seconds) }
    }

    /// Names the seconds of a step done for each mode.
    pub fn seconds_by_mode(name: &'static str, seconds: Vec<f64>) -> Detail {
        Detail { name, value: Measure::SecondsByMode(seconds) }
    }

    /// Returns its name in JSON: `dense_seconds` for seconds, the bare name for a number.
    pub fn key(&self) -> String {
        match self.value {
            Measure::Number(_) => self.name.to_owned(),
            Measure::Seconds(_) | Measure::SecondsByMode(_) => format!("{}_seconds", self.name),
        }
    }

    /// Returns the names of its columns in `history.csv`: `mttkrp_1_seconds`, ... by mode.
    pub fn columns(&self) -> Vec<String> {
        match &self.value {
            Measure::SecondsByMode(modes) => {
                (1..=modes.len()).map(|mode| format!("{}_{mode}_seconds", self.name)).collect()
            }
            Measure::Number(_) | Measure::Seconds(_) => vec![self.key()],
        }
    }

    /// Returns its numbers, one a column.
    pub fn numbers(&self) -> &[f64] {
        match &self.value {
            Measure::Number(number) | Measure::Seconds(number) => std::slice::from_ref(number),
            Measure::SecondsByMode(modes) => modes,
        }
    }

    /// Returns a detail of the same name and shape with the next of `numbers`.
    fn refilled(&self, numbers: &mut impl Iterator<Item = f64>) -> Detail {
        let mut next = || numbers.next().unwrap_or(f64::NAN);
        let value = match &self.value {
            Measure::Number(_) => Measure::Number(next()),
            Measure::Seconds(_) => Measure::Seconds(next()),
            Measure::SecondsByMode(modes) => {
                Measure::SecondsByMode(modes.iter().map(|_| next()).collect())
            }
        };
        Detail { name: self.name, value }
    }

    fn texts(&self) -> Vec<String> {
        match &self.value {
            Measure::Number(number) => vec![format!("{number:e}")],
            _ => self.numbers().iter().copied().map(seconds).collect(),
        }
    }
}

impl IterationRecord {
    /// Returns the numbers of the detail `name`: one, or one a mode; none if there is no such
    /// detail.
    pub fn detail(&self, name: &str) -> &[f64] {
        let found = self.details.iter().find(|detail| detail.name == name);
        found.map_or(&[], Detail::numbers)
    }
}

/// Returns a history as numbers, one line a record, for a checkpoint.
pub fn to_table(history: &[IterationRecord]) -> Array2<f64> {
    let width = history.first().map_or(FIELDS, |record| FIELDS + numbers_of(&record.details));
    let mut table = Array2::zeros((history.len(), width));
    for (mut line, record) in table.rows_mut().into_iter().zip(history) {
        let fields = [
            record.restart as f64,
            record.iteration as f64,
            record.fit,
            record.change,
            record.relative_error,
            record.seconds,
            record.total_seconds,
        ];
        let details = record.details.iter().flat_map(|detail| detail.numbers());
        line.iter_mut().zip(fields.iter().chain(details)).for_each(|(to, from)| *to = *from);
    }
    table
}

/// Reads what [`to_table`] made; `layout` has the names and shapes of the details.
///
/// Returns `None` if the table has another number of columns.
pub fn from_table(table: &Array2<f64>, layout: &[Detail]) -> Option<Vec<IterationRecord>> {
    if table.nrows() > 0 && table.ncols() != FIELDS + numbers_of(layout) {
        return None;
    }
    let record = |line: ArrayView1<'_, f64>| {
        let mut rest = line.iter().copied().skip(FIELDS);
        IterationRecord {
            restart: line[0] as usize,
            iteration: line[1] as usize,
            fit: line[2],
            change: line[3],
            relative_error: line[4],
            seconds: line[5],
            total_seconds: line[6],
            details: layout.iter().map(|detail| detail.refilled(&mut rest)).collect(),
        }
    };
    Some(table.rows().into_iter().map(record).collect())
}

/// Numbers of a record besides its details.
const FIELDS: usize = 7;

fn numbers_of(details: &[Detail]) -> usize {
    details.iter().map(|detail| detail.numbers().len()).sum()
}

/// Writes seconds to the microsecond.
fn seconds(s: f64) -> String {
    format!("{s:.6}")
}

fn serialize_details<S: Serializer>(details: &[Detail], out: S) -> Result<S::Ok, S::Error> {
    let mut map = out.serialize_map(Some(details.len()))?;
    for detail in details {
        match &detail.value {
            Measure::Number(number) | Measure::Seconds(number) => {
                map.serialize_entry(&detail.key(), number)?;
            }
            Measure::SecondsByMode(modes) => map.serialize_entry(&detail.key(), modes)?,
        }
    }
    map.end()
}

/// Writes `history.csv` while the run goes on.
///
/// What cannot be written is kept, and follows as soon as it can.
pub struct HistoryWriter {
    path: PathBuf,
    /// Open from the first line written on.
    file: Option<File>,
    /// Bytes of whole lines in the file.
    length: u64,
    /// Lines that are to follow them.
    pending: Vec<u8>,
}

impl HistoryWriter {
    /// Prepares the file `path`, which replaces an earlier one when something is written, for records
    /// whose details have the names and shapes of `layout`.
    pub fn new(path: &Path, layout: &[Detail]) -> HistoryWriter {
        let path = path.to_owned();
        let mut writer = HistoryWriter { path, file: None, length: 0, pending: Vec::new() };
        let mut header: Vec<String> =
            ["restart", "iteration", "fit", "change", "relative_error", "seconds", "total_seconds"]
                .map(String::from)
                .into();
        header.extend(layout.iter().flat_map(Detail::columns));
        writer.line(&header);
        writer
    }

    /// Adds one iteration, which [`HistoryWriter::flush`] writes.
    pub fn push(&mut self, record: &IterationRecord) {
        // Shortest digits that read back exactly; times to the microsecond.
        let mut line = vec![
            record.restart.to_string(),
            record.iteration.to_string(),
            record.fit.to_string(),
            format!("{:e}", record.change),
            format!("{:e}", record.relative_error),
            seconds(record.seconds),
            seconds(record.total_seconds),
        ];
        line.extend(record.details.iter().flat_map(Detail::texts));
        self.line(&line);
    }

    /// Writes what has not been written yet; every record is then on disk.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`] if it cannot be written; the file then ends with a whole line.
    pub fn flush(&mut self) -> Result<(), CommonError> {
        self.write().map_err(|source| CommonError::io("write", &self.path, source))
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                match fs::remove_file(&self.path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
                // A link put in its place meanwhile is not followed.
                none.insert(OpenOptions::new().write(true).create_new(true).open(&self.path)?)
            }
        };
        if let Err(error) = file.write_all(&self.pending) {
            // If this fails too, part of a line stays until the next call.
            let _ = file.set_len(self.length);
            let _ = file.seek(SeekFrom::Start(self.length));
            return Err(error);
        }
        self.length += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    fn line(&mut self, fields: &[String]) {
        // Numbers and names of columns need no quotes.
        self.pending.extend_from_slice(fields.join(",").as_bytes());
        self.pending.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> IterationRecord {
        IterationRecord {
            restart: 1,
            iteration: 3,
            fit: 0.1 + 0.2,
            change: 1.5e-7,
            relative_error: 0.7,
            seconds: 0.25,
            total_seconds: 1.0,
            details: vec![
                Detail::seconds_by_mode("mttkrp", vec![0.1, 0.05]),
                Detail::seconds("dense", 0.1),
                Detail::number("rmse", 0.5),
            ],
        }
    }

    #[test]
    fn every_record_is_on_disk_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.csv");
        let mut writer = HistoryWriter::new(&path, &record().details);
        writer.push(&record());
        assert!(!path.exists());
        writer.flush().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "restart,iteration,fit,change,relative_error,seconds,total_seconds,\
             mttkrp_1_seconds,mttkrp_2_seconds,dense_seconds,rmse\n\
             1,3,0.30000000000000004,1.5e-7,7e-1,0.250000,1.000000,0.100000,0.050000,0.100000,5e-1\n"
        );
    }

    #[test]
    fn details_stand_beside_the_other_fields() {
        let json = serde_json::to_value(record()).unwrap();
        assert_eq!(json["mttkrp_seconds"], serde_json::json!([0.1, 0.05]));
        assert_eq!((&json["dense_seconds"], &json["rmse"]), (&0.1.into(), &0.5.into()));
        assert!(json.get("details").is_none());
    }

    #[test]
    fn tables_read_back() {
        let history = vec![record(), IterationRecord { iteration: 4, ..record() }];
        let table = to_table(&history);
        assert_eq!(from_table(&table, &record().details), Some(history));
        assert_eq!(from_table(&table, &[]), None);
        assert_eq!(from_table(&to_table(&[]), &record().details), Some(vec![]));
    }
}
