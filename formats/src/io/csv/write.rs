//! Writing a table: a row for each entry, with labels where there are any.

use std::io;
use std::path::Path;

use crate::coo::Coo;
use crate::error::FormatError;
use crate::io::csv::ModeNames;
use crate::io::csv::TableFile;
use crate::io::options::Base;
use crate::io::write::Overwrite;
use crate::io::write::compressed_file;
use crate::value::Value;

/// Writes `coo` to `path`, a `.csv` or `.tsv` file: a column for each mode and one, `value`, of values.
///
/// An index is written as its label where its mode has labels, else as a number that counts from `base`.
///
/// # Errors
///
/// [`FormatError::Exists`], [`FormatError::UnknownFormat`] for another name, and [`FormatError::Io`].
///
/// # Panics
///
/// If `modes` are not as many as the modes of `coo`.
pub fn write_table<V: Value>(
    coo: &Coo<V>,
    modes: &[ModeNames],
    path: &Path,
    base: Base,
    overwrite: Overwrite,
) -> Result<(), FormatError> {
    assert_eq!(modes.len(), coo.order(), "names of modes");
    let unknown = || FormatError::UnknownFormat(path.to_owned());
    let TableFile { delimiter, compression } = TableFile::of_path(path).ok_or_else(unknown)?;
    if overwrite == Overwrite::Refuse && path.exists() {
        return Err(FormatError::Exists(path.to_owned()));
    }
    compressed_file(path, compression, overwrite, |out| {
        let mut table = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
        let names = modes.iter().map(|mode| mode.name.as_str()).chain(["value"]);
        table.write_record(names).map_err(io::Error::other)?;
        let mut row = csv::StringRecord::new();
        for (entry, value) in coo.values().iter().enumerate() {
            row.clear();
            for (mode, names) in modes.iter().enumerate() {
                let index = coo.coords(mode).get(entry);
                match names.labels.get(index as usize) {
                    Some(label) => row.push_field(label),
                    None => row.push_field(&(index + base.first()).to_string()),
                }
            }
            row.push_field(&value.to_string());
            table.write_record(&row).map_err(io::Error::other)?;
        }
        table.flush()
    })
}
