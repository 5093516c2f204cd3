//! Writing tensors: to a temporary file beside the target, renamed when it is complete.
//!
//! A reader, or a crash, never meets half a file, and nothing is replaced unless asked.

mod aside;
mod text;

use std::ffi::OsStr;
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
use crate::value::Value;

pub use crate::io::write::aside::{Aside, place_all};

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

impl WriteOptions {
    /// Returns the header of a text file of `format`.
    fn dialect_of(&self, format: Format) -> Dialect {
        match format {
            Format::Mtx => Dialect::MatrixMarket,
            _ => self.dialect,
        }
    }
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
/// As [`write_aside`] and [`Aside::place`].
pub fn write<V: Value>(
    coo: &Coo<V>,
    path: &Path,
    options: &WriteOptions,
) -> Result<(), FormatError> {
    write_aside(coo, path, options)?.place()
}

/// As [`write()`], but for the last step: the file is whole, and not yet under its name.
///
/// # Errors
///
/// As [`check_list`], [`FormatError::Exists`] if the file exists and is not to be replaced, [`FormatError::NoEntries`]
/// for a `.dtb` file of none, and [`FormatError::Io`].
pub fn write_aside<V: Value>(
    coo: &Coo<V>,
    path: &Path,
    options: &WriteOptions,
) -> Result<Aside, FormatError> {
    check_list(coo.order(), path, options)?;
    let (format, compression) = Format::of_path(path)?;
    if coo.nnz() == 0 && !format.is_text() {
        return Err(FormatError::NoEntries(path.display().to_string()));
    }
    if options.overwrite == Overwrite::Refuse && path.exists() {
        return Err(FormatError::Exists(path.to_owned()));
    }
    Aside::new(path, options.overwrite, |file| {
        compressed(BufWriter::with_capacity(BUFFER, file), compression, |out| match format {
            Format::Dtb => dtb::write(coo, out),
            _ => text::write(coo, options.dialect_of(format), options.base, out),
        })
    })
}

/// Refuses a list of `order` modes that `path` cannot hold by its name or `options`, whatever its entries are.
///
/// # Errors
///
/// [`FormatError::UnknownFormat`], and [`FormatError::Unsupported`] for `.npy` and for `.mtx` with an order other than 2
/// or a header that cannot tell the base.
pub fn check_list(order: usize, path: &Path, options: &WriteOptions) -> Result<(), FormatError> {
    let (format, _) = Format::of_path(path)?;
    let refuse = |what: String, remedy| {
        Err(FormatError::Unsupported { file: path.display().to_string(), what, remedy })
    };
    if format == Format::Npy {
        let what = "sparse tensors are not written as dense .npy".to_owned();
        return refuse(what, "use .tns or .dtb");
    }
    if is_matrix_market(path) && order != 2 {
        let what = "a Matrix Market file holds a matrix".to_owned();
        return refuse(what, "use .ttx (TensorMarket) or .tns");
    }
    let dialect = options.dialect_of(format);
    if format.is_text() && options.base == Base::Zero && !dialect.tells_base() {
        let what = format!("indices count from 1 behind a {dialect}");
        return refuse(what, "write it plain or with the Tensor Toolbox header, or count from 1");
    }
    Ok(())
}

/// Tells whether a file is a Matrix Market file by its name, which holds matrices only.
pub fn is_matrix_market(path: &Path) -> bool {
    let is_mtx = |name: &OsStr| name.to_string_lossy().to_ascii_lowercase().contains(".mtx");
    matches!(Format::of_path(path), Ok((Format::Mtx, _))) && path.file_name().is_some_and(is_mtx)
}

/// Writes a file by `content`, compressed, beside `path` and renames it.
pub(super) fn compressed_file(
    path: &Path,
    compression: Compression,
    overwrite: Overwrite,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), FormatError> {
    let aside = Aside::new(path, overwrite, |file| {
        compressed(BufWriter::with_capacity(BUFFER, file), compression, content)
    });
    aside?.place()
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
