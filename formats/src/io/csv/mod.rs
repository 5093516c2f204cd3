//! Tables of named categories: `.csv` and `.tsv` files with a header row.
//!
//! Each chosen column becomes a mode and each of its different labels an index; a column of numbers
//! becomes the values, or rows are counted.  Labels are numbered in their order: by size where all of a
//! column are numbers, else by their bytes.  So the result does not depend on the order of rows.

mod read;
mod write;

use std::path::Path;

use crate::coo::Coo;
use crate::io::options::Missing;
use crate::io::source::Compression;
use crate::value::Value;

pub use crate::io::csv::read::read_table;
pub use crate::io::csv::read::read_table_stream;
pub use crate::io::csv::write::write_table;

/// What a table is to be read as.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// The columns that become modes, by name or by number from 1; empty for all but the values.
    pub modes: Vec<String>,
    /// The column of values; without one every row counts as 1.
    pub value: Option<String>,
    /// What stands for an unknown value: with NaN, a row whose value is empty or a NaN is left out.
    pub missing: Missing,
    /// The most modes.
    pub max_order: usize,
    /// The most bytes that the tensor and its labels may take.
    pub max_bytes: Option<u64>,
}

/// A tensor and the names of its modes and indices.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<V: Value> {
    /// An entry a row; rows of equal labels are duplicates.
    pub tensor: Coo<V>,
    /// One a mode.
    pub modes: Vec<ModeNames>,
    /// Rows left out because their values are unknown.
    pub missing: u64,
}

/// The name of a mode and those of its indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModeNames {
    /// The name of the mode.
    pub name: String,
    /// One an index; none where the indices themselves are to be written.
    pub labels: Vec<String>,
}

/// How a table's file is written: told by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// What stands between columns.
    pub delimiter: u8,
    /// How the file is compressed.
    pub compression: Compression,
}

impl TableFile {
    /// Returns how `path` is written if its name is that of a table: `.csv` or `.tsv`, also with
    /// `.gz`, `.zst` or `.bz2`.
    pub fn of_path(path: &Path) -> Option<TableFile> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let endings = [
            ("", Compression::None),
            (".gz", Compression::Gzip),
            (".zst", Compression::Zstd),
            (".bz2", Compression::Bzip2),
        ];
        endings.into_iter().find_map(|(ending, compression)| {
            let stem = name.strip_suffix(ending)?;
            let delimiter = match Path::new(stem).extension()?.to_str()? {
                "csv" => b',',
                "tsv" => b'\t',
                _ => return None,
            };
            Some(TableFile { delimiter, compression })
        })
    }
}
