//! What can go wrong with files and tensors.
//!
//! Every message names the file, quotes what is wrong and says what to do.  Errors of a text file
//! carry the line: see [`LineError`].

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use crate::plural::counted;
use crate::stats::bytes;

/// An error of this crate; the message quotes the input and says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// Coordinates, values or extents that do not make a tensor.
    #[error("not a tensor: {0}")]
    NotATensor(String),
    /// Two entries with the same coordinates where that is not allowed; the indices from 1.
    #[error("duplicate entry at {0}")]
    Duplicate(String),
    /// No published tensor has this name.
    #[error("no FROSTT tensor is called `{name}`; did you mean one of: {near}?")]
    UnknownPreset {
        /// The name asked for.
        name: String,
        /// The names most like it.
        near: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried, as a verb: `open`, `read`, `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// No file has this name.
    #[error("no such file: {0}; check the spelling and the folder")]
    Missing(PathBuf),
    /// A folder was given where a file is needed.
    #[error("{0} is a folder; give the tensor file inside it")]
    IsAFolder(PathBuf),
    /// The name does not tell the format.
    #[error(
        "{0}: the name does not tell the format; use .tns, .mtx, .ttx, .npy or .dtb (text also \
         with .gz, .zst or .bz2), or name the format; `decompose convert` reads tables (.csv, .tsv)"
    )]
    UnknownFormat(PathBuf),
    /// The file is of a kind that is not read or written.
    #[error("{file}: {what}; {remedy}")]
    Unsupported {
        /// The file.
        file: String,
        /// What is not supported.
        what: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// The file has no bytes.
    #[error("{0} is empty (0 bytes); was it written or downloaded completely?")]
    EmptyFile(String),
    /// The file lists no non-zero.
    #[error("{0} lists no non-zeros; a tensor needs at least one line `i1 i2 ... value`")]
    NoEntries(String),
    /// A line of a text file is wrong.
    #[error(transparent)]
    Line(Box<LineError>),
    /// The header announces another number of entries than the file lists.
    #[error(
        "{file}: the header announces {} but {found} follow; the file is cut off or its header is \
         wrong", counted(*declared, "entry", "entries")
    )]
    EntryCount {
        /// The file.
        file: String,
        /// Entries according to the header.
        declared: u64,
        /// Entries in the file.
        found: u64,
    },
    /// The extents given by the caller do not fit the order of the file.
    #[error("{file} is of order {order} but {given} extents were given; give one extent a mode")]
    ExtentCount {
        /// The file.
        file: String,
        /// Modes in the file.
        order: usize,
        /// Extents given.
        given: usize,
    },
    /// Compressed or binary data that end too early or contradict themselves.
    #[error("{file}: damaged {kind}: {why}; fetch or write the file again")]
    Corrupt {
        /// The file.
        file: String,
        /// What the data claim to be: `gzip`, `zstd`, `bzip2`, `.dtb`, `.npy`.
        kind: &'static str,
        /// What contradicts.
        why: String,
    },
    /// A binary file written by a newer program.
    #[error("{file}: .dtb version {found}, but this program knows up to {known}; update it")]
    NewerVersion {
        /// The file.
        file: String,
        /// The file's version.
        found: u32,
        /// The newest version this program reads.
        known: u32,
    },
    /// A value that is NaN or infinite outside a text file.
    #[error("{file}: the value at {position} is {value}; remove it or replace it by a number")]
    NotFinite {
        /// The file.
        file: String,
        /// The coordinates, counted from 1.
        position: String,
        /// The value.
        value: f64,
    },
    /// A file whose content does not fit the memory that may be used.
    #[error(
        "{file} would take {} of memory but {} may be used; free some or read a part of the file",
        bytes(*needs), bytes(*limit)
    )]
    TooLarge {
        /// The file.
        file: String,
        /// Bytes that its content needs, as far as it was looked at.
        needs: u64,
        /// Bytes that may be used.
        limit: u64,
    },
    /// The system gave no memory.
    #[error("{file}: the system has no {} of memory for it; free some or read a part of the file", bytes(*needs))]
    NoMemory {
        /// The file.
        file: String,
        /// Bytes that were asked for.
        needs: u64,
    },
    /// A tensor with more modes than can be worked with.
    #[error("{file} is of order {order}; tensors of up to {most} modes are supported")]
    Order {
        /// The file.
        file: String,
        /// Its modes.
        order: usize,
        /// The most modes.
        most: usize,
    },
    /// A column of a table is asked for more than once.
    #[error("{file}: the column `{column}` is asked for twice, among those of modes and values")]
    ColumnTwice {
        /// The file.
        file: String,
        /// The name of the column.
        column: String,
    },
    /// A table has no column but that of the values.
    #[error("{0}: no column is left for a mode beside that of the values")]
    NoModes(String),
    /// The output exists and was not to be replaced.
    #[error("{0} exists already; choose another name or ask to replace it")]
    Exists(PathBuf),
}

/// A line of a text file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The file as the user named it.
    pub file: String,
    /// The line's number, counted from 1.
    pub line: u64,
    /// The line itself, shortened.
    pub text: String,
    /// What is wrong with it.
    pub fault: LineFault,
}

impl std::error::Error for LineError {}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}; the line is `{}`", self.file, self.line, self.fault, self.text)
    }
}

/// What is wrong with a line of a text file.  Modes count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LineFault {
    /// Too few or too many columns.
    #[error("expected {expected} columns but found {found} (a line is `{form}`)")]
    Columns {
        /// Columns that the header or the first line calls for.
        expected: usize,
        /// Columns in this line.
        found: usize,
        /// The form of a line.
        form: &'static str,
    },
    /// A value that is no number.
    #[error("the value `{0}` is not a number")]
    NotANumber(String),
    /// A value that is NaN or infinite.
    #[error("the value `{0}` is not finite; remove the line or give a number")]
    NotFinite(String),
    /// A value beyond the range of the number type.
    #[error("the value `{text}` is beyond the range of {kind}{remedy}")]
    ValueRange {
        /// The value as written.
        text: String,
        /// The number type.
        kind: &'static str,
        /// What to do, beginning with `; `, where something helps.
        remedy: &'static str,
    },
    /// An index that is no number.
    #[error("the index `{text}` of mode {mode} is not an integer")]
    NotAnIndex {
        /// The mode.
        mode: usize,
        /// The index as written.
        text: String,
    },
    /// An index below zero.
    #[error("the index `{text}` of mode {mode} is negative; indices count from 1 (or 0)")]
    NegativeIndex {
        /// The mode.
        mode: usize,
        /// The index as written.
        text: String,
    },
    /// An index between two integers.
    #[error("the index `{text}` of mode {mode} is fractional; are columns out of order?")]
    FractionalIndex {
        /// The mode.
        mode: usize,
        /// The index as written.
        text: String,
    },
    /// An index too large for any tensor.
    #[error("the index `{text}` of mode {mode} is beyond 2^63 - 1")]
    HugeIndex {
        /// The mode.
        mode: usize,
        /// The index as written.
        text: String,
    },
    /// Index 0 in a file whose indices count from 1.
    #[error("index 0 in mode {mode}, but indices count from 1: {why}")]
    ZeroIndex {
        /// The mode.
        mode: usize,
        /// Who says that they count from 1, and the remedy.
        why: &'static str,
    },
    /// An index beyond the extent of its mode.
    #[error("index {index} in mode {mode} is beyond its extent {extent}{why}")]
    BeyondExtent {
        /// The mode.
        mode: usize,
        /// The index as written.
        index: u64,
        /// The extent given by the header or the caller.
        extent: u64,
        /// Where the extent comes from, and from where indices count.
        why: String,
    },
    /// Columns that are separated by something else than white space.
    #[error(
        "its columns are separated by `{0}`, where this format has spaces; `decompose convert` reads \
         such a table under the name .csv, or replace them (`tr '{0}' ' '`)"
    )]
    Separator(char),
    /// A first line that may be a header without a mark.
    #[error(
        "this line reads as a header, the extents {extents} and {}, since so many follow and none \
         has a larger index; write it as a comment, `# extents {comment}`, or, if it is an entry, \
         move it behind another line", counted(*entries, "entry", "entries")
    )]
    UnmarkedHeader {
        /// The extents, as `17 x 13 x 3`.
        extents: String,
        /// The extents separated by spaces.
        comment: String,
        /// The number of entries.
        entries: u64,
    },
    /// A header that contradicts itself or the format.
    #[error("bad header: {0}")]
    Header(String),
}
