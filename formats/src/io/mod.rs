//! Files of tensors.
//!
//! [`read`] takes a path or standard input and returns a tensor and a [`ReadReport`] of what was
//! decided; [`write()`](write::write) writes one.  Formats: FROSTT text in four header dialects
//! and Matrix Market, plain or compressed; NumPy arrays (dense to sparse); and `.dtb`, a binary
//! form that opens by mapping.  Duplicate coordinates are kept as they stand.  [`read_table`] and
//! [`write_table`] are for tables of named categories.
//!
//! # Example
//!
//! ```
//! use decompose_formats::io;
//!
//! let text = b"# three entries\n1 1 1 0.5\n2 1 3 -1\n2 2 3 4e2\n";
//! let (tensor, report) = io::read_bytes::<f64>(text, &io::ReadOptions::default())?;
//! assert_eq!(tensor.extents(), [2, 2, 3]);
//! assert_eq!(tensor.values(), [0.5, -1.0, 400.0]);
//! assert_eq!(report.text.map(|text| text.comments), Some(1));
//! # Ok::<(), decompose_formats::FormatError>(())
//! ```

mod claimed_sizes;
mod csv;
mod dtb;
mod hash;
mod map;
mod npy;
mod open;
mod options;
mod report;
mod source;
mod temporary;
mod text;
mod write;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use crate::coo::Coo;
use crate::error::FormatError;
use crate::io::map::Bytes;
use crate::io::open::Counted;
use crate::io::open::Opened;
use crate::value::Value;

pub use crate::io::csv::ModeNames;
pub use crate::io::csv::Table;
pub use crate::io::csv::TableFile;
pub use crate::io::csv::TableOptions;
pub use crate::io::csv::read_table;
pub use crate::io::csv::read_table_stream;
pub use crate::io::csv::write_table;
pub use crate::io::hash::file_hash;
pub use crate::io::npy::AxisOrder;
pub use crate::io::npy::Element;
pub use crate::io::npy::NpyHeader;
pub use crate::io::npy::read_dense;
pub use crate::io::options::Base;
pub use crate::io::options::Missing;
pub use crate::io::options::Progress;
pub use crate::io::options::ReadOptions;
pub use crate::io::report::BaseFrom;
pub use crate::io::report::Dialect;
pub use crate::io::report::ExtentsFrom;
pub use crate::io::report::ReadReport;
pub use crate::io::report::TextReport;
pub use crate::io::source::Compression;
pub use crate::io::source::Format;
pub use crate::io::source::Source;
pub use crate::io::temporary::is_temporary;
pub use crate::io::temporary::temporary;
pub use crate::io::write::Aside;
pub use crate::io::write::Overwrite;
pub use crate::io::write::WriteOptions;
pub use crate::io::write::check_list;
pub use crate::io::write::is_matrix_market;
pub use crate::io::write::place_all;
pub use crate::io::write::write;
pub use crate::io::write::write_aside;
pub use claimed_sizes::meets_refusal;

/// The name of in-memory input in reports and errors.
const MEMORY: &str = "memory";

/// Reads a tensor.
///
/// The format comes from the options, else from the name, else (pipes) from the first bytes; the
/// compression of text from the first bytes.  Text is parsed by all threads of the current rayon
/// pool; `progress` counts bytes of the file.  Time `O(bytes)`; memory about
/// `nnz * (4 * order + V::BYTES)` bytes and a few windows.
///
/// # Errors
///
/// Any of [`FormatError`] but those of writing; of a text file the first bad line.
pub fn read<V: Value>(
    source: &Source,
    options: &ReadOptions,
    progress: &Progress,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    let path = match source {
        Source::Stdin => {
            let name = source.to_string();
            return read_stream(std::io::stdin(), &name, options, progress);
        }
        Source::Path(path) => path,
    };
    match open::open(path)? {
        Opened::File(file, len) => read_file(&file, len, path, options, progress),
        Opened::Pipe(pipe) => {
            let format = options.format.or(Format::of_path(path).ok().map(|(format, _)| format));
            let options = ReadOptions { format, ..options.clone() };
            read_stream(pipe, &path.display().to_string(), &options, progress)
        }
    }
}

/// Reads a tensor from memory, as [`read`] reads a file of these bytes.
///
/// # Errors
///
/// As [`read`].
pub fn read_bytes<V: Value>(
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    let compression = Compression::of_magic(bytes);
    let format = options.format.unwrap_or_else(|| sniff(bytes));
    match format {
        Format::Dtb => dtb::from_bytes(bytes, MEMORY, options),
        Format::Npy => npy::read(bytes, MEMORY, options),
        Format::Tns | Format::Mtx if compression == Compression::None => {
            text::read_windows(Bytes::Memory(bytes), MEMORY, options, &Progress::new())
        }
        Format::Tns | Format::Mtx => read_stream(bytes, MEMORY, options, &Progress::new()),
    }
}

/// Reads a tensor from a stream that passes once; `name` stands for the file in messages.
///
/// # Errors
///
/// As [`read`].
pub fn read_stream<V: Value>(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
    progress: &Progress,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    let mut reader = Counted { inner: reader, progress };
    let refused = |source| FormatError::Io { action: "read", path: PathBuf::from(name), source };
    let head = open::magic(&mut reader).map_err(refused)?;
    let compression = Compression::of_magic(&head);
    let format = options.format.unwrap_or_else(|| sniff(&head));
    let mut whole = head.as_slice().chain(reader);
    if format.is_text() {
        let text = open::decompress(whole, compression).map_err(refused)?;
        return text::read_blocks(text, compression, name, options);
    }
    let bytes = claimed_sizes::read_all(&mut whole, options.max_bytes, name)?;
    match format {
        Format::Npy => npy::read(&bytes, name, options),
        _ => dtb::from_bytes(&bytes, name, options),
    }
}

/// Reads a regular file of `len` bytes, which is at `path`.
fn read_file<V: Value>(
    file: &File,
    len: u64,
    path: &Path,
    options: &ReadOptions,
    progress: &Progress,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    let name = path.display().to_string();
    let refused = |source| FormatError::Io { action: "read", path: path.to_owned(), source };
    let bytes = Bytes::File { file, len };
    if len == 0 {
        return Err(FormatError::EmptyFile(name));
    }
    let head = bytes.window(0..len.min(open::MAGIC as u64)).map_err(refused)?;
    let actual = Compression::of_magic(&head);
    let (format, named) = match options.format {
        Some(format) => (format, actual),
        None => Format::of_path(path)?,
    };
    progress.restart(len);
    if !format.is_text() {
        let tensor = match format {
            Format::Npy => npy::read(&map::whole(file).map_err(refused)?, &name, options),
            _ => dtb::open(file, &name, options),
        };
        progress.advance(len);
        return tensor;
    }
    let options = ReadOptions { format: Some(format), ..options.clone() };
    if actual != Compression::None {
        let text = open::decompress(Counted { inner: file, progress }, actual);
        return text::read_blocks(text.map_err(refused)?, actual, &name, &options);
    }
    if named != Compression::None {
        let why = "its first bytes are not those of this compression".to_owned();
        return Err(FormatError::Corrupt { file: name, kind: named.name(), why });
    }
    text::read_windows(bytes, &name, &options, progress)
}

/// Tells the format from the first bytes: text unless a binary format signs itself.
fn sniff(head: &[u8]) -> Format {
    match head {
        _ if head.starts_with(b"\x93NUMPY") => Format::Npy,
        _ if head.starts_with(&dtb::MAGIC) => Format::Dtb,
        _ => Format::Tns,
    }
}
