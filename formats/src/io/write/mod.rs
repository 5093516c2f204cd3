//! Writing tensors: to a temporary file beside the target, renamed when it is complete.
//!
//! A reader, or a crash, never meets half a file, and nothing is replaced unless asked.

mod text;

use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Write;
use std::path::Path;

use crate::coo::Coo;
use crate::error::FormatError;
use crate::io::dtb;
use crate::io::options::Base;
use crate::io::report::Dialect;
use crate::io::source::Compression;
use crate::io::source::Format;
use crate::io::temporary::temporary;
use crate::value::Value;

/// What happens to a file that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// It stays, and writing is an error.
    #[default]
    Refuse,
    /// It is replaced.
    Replace,
}

/// Options of [`write()`].
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// What happens to a file that is there already.
    pub overwrite: Overwrite,
    /// The header of a `.tns` file.  A plain one has its extents in a comment, which other programs skip.
    pub dialect: Dialect,
    /// From where indices of text count.
    pub base: Base,
}

impl Default for WriteOptions {
    /// Plain text whose indices count from 1; nothing is replaced.
    fn default() -> WriteOptions {
        let (overwrite, dialect) = (Overwrite::Refuse, Dialect::Plain);
        WriteOptions { overwrite, dialect, base: Base::One }
    }
}

/// Bytes gathered before they go to the system.
const BUFFER: usize = 1 << 20;

/// Writes `coo` to `path` in the format of its extension: `.tns` and `.mtx` or `.ttx`, also with
/// `.gz`, `.zst` or `.bz2`, and `.dtb`.
///
/// Text writes each value with the fewest digits that read back as the
/// same number.  Matrices get a Matrix Market header, other orders a TensorMarket one.
///
/// # Errors
///
/// [`FormatError::Exists`] if the file exists and is not to be replaced,
/// [`FormatError::UnknownFormat`], [`FormatError::Unsupported`] for `.npy` and for `.mtx` with
/// an order other than 2 or a header that cannot tell the base, [`FormatError::NoEntries`] for a
/// `.dtb` file of none, and [`FormatError::Io`].
pub fn write<V: Value>(
    coo: &Coo<V>,
    path: &Path,
    options: &WriteOptions,
) -> Result<(), FormatError> {
    let (format, compression) = Format::of_path(path)?;
    let name = path.display().to_string();
    check(coo, path, format)?;
    if coo.nnz() == 0 && !format.is_text() {
        return Err(FormatError::NoEntries(name));
    }
    if options.overwrite == Overwrite::Refuse && path.exists() {
        return Err(FormatError::Exists(path.to_owned()));
    }
    let dialect = match format {
        Format::Mtx => Dialect::MatrixMarket,
        _ => options.dialect,
    };
    if format.is_text() && options.base == Base::Zero && !dialect.tells_base() {
        let what = format!("indices count from 1 behind a {dialect}");
        let remedy = "write it plain or with the Tensor Toolbox header, or count from 1";
        return Err(FormatError::Unsupported { file: name, what, remedy });
    }
    compressed_file(path, compression, options.overwrite, |out| match format {
        Format::Dtb => dtb::write(coo, out),
        _ => text::write(coo, dialect, options.base, out),
    })
}

/// Writes a file by `content`, compressed, beside `path` and renames it.
pub(super) fn compressed_file(
    path: &Path,
    compression: Compression,
    overwrite: Overwrite,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FormatError> {
    replace(path, overwrite, |file| {
        compressed(BufWriter::with_capacity(BUFFER, file), compression, content)
    })
}

/// Refuses what a format cannot hold.
fn check<V: Value>(coo: &Coo<V>, path: &Path, format: Format) -> Result<(), FormatError> {
    let refuse = |what: &str, remedy| {
        let (file, what) = (path.display().to_string(), what.to_owned());
        Err(FormatError::Unsupported { file, what, remedy })
    };
    let is_matrix_name = path.to_string_lossy().to_ascii_lowercase().contains(".mtx");
    match format {
        Format::Npy => refuse("sparse tensors are not written as dense .npy", "use .tns or .dtb"),
        Format::Mtx if is_matrix_name && coo.order() != 2 => {
            refuse("a Matrix Market file holds a matrix", "use .ttx (TensorMarket) or .tns")
        }
        _ => Ok(()),
    }
}

/// Writes a file beside `path` and renames it.
fn replace(
    path: &Path,
    overwrite: Overwrite,
    content: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), FormatError> {
    let refused = |source| FormatError::Io { action: "write", path: path.to_owned(), source };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = temporary(folder.unwrap_or(Path::new(".")), "").map_err(refused)?;
    content(file.as_file_mut()).map_err(refused)?;
    let persisted = match overwrite {
        Overwrite::Refuse => file.persist_noclobber(path),
        Overwrite::Replace => file.persist(path),
    };
    match persisted {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            Err(FormatError::Exists(path.to_owned()))
        }
        Err(error) => Err(refused(error.error)),
    }
}

/// Runs `content` on a compressor of `out`.
fn compressed(
    out: BufWriter<&mut File>,
    compression: Compression,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    match compression {
        Compression::None => finish(out, content),
        Compression::Gzip => {
            let mut gzip = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            content(&mut gzip)?;
            gzip.finish()?.flush()
        }
        Compression::Zstd => {
            let mut zstd = zstd::stream::write::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            zstd.include_checksum(true)?;
            content(&mut zstd)?;
            zstd.finish()?.flush()
        }
        Compression::Bzip2 => {
            let mut bzip2 = bzip2::write::BzEncoder::new(out, bzip2::Compression::default());
            content(&mut bzip2)?;
            bzip2.finish()?.flush()
        }
    }
}

fn finish(
    mut out: BufWriter<&mut File>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    content(&mut out)?;
    out.flush()
}
