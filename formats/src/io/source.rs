//! Where a tensor comes from, and how its format is told.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::path::PathBuf;

use crate::error::FormatError;

/// Where a tensor is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, or anything else that can be opened by name.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

impl Source {
    /// Takes a command-line word: `-` is standard input, anything else a path.
    pub fn new(word: impl Into<PathBuf>) -> Source {
        let path = word.into();
        if path.as_os_str() == "-" { Source::Stdin } else { Source::Path(path) }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Path(path) => path.display().fmt(f),
            Source::Stdin => f.write_str("standard input"),
        }
    }
}

/// A file format, compression apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// FROSTT text, in any of its header dialects.
    Tns,
    /// Matrix Market and TensorMarket coordinate text.
    Mtx,
    /// A dense NumPy array; its zeros are dropped.
    Npy,
    /// This crate's binary form.
    Dtb,
}

impl Format {
    /// Returns the format and the compression that `path`'s extensions tell.
    ///
    /// # Errors
    ///
    /// [`FormatError::UnknownFormat`] if they tell none; [`FormatError::Unsupported`] for a binary
    /// format with a compression.
    pub fn of_path(path: &Path) -> Result<(Format, Compression), FormatError> {
        let unknown = || FormatError::UnknownFormat(path.to_owned());
        let last = lower(path.extension()).ok_or_else(unknown)?;
        let compression = Compression::of_extension(&last);
        let inner = match compression {
            Compression::None => last,
            _ => lower(path.file_stem().and_then(|stem| Path::new(stem).extension()))
                .ok_or_else(unknown)?,
        };
        let format = match inner.as_str() {
            "tns" => Format::Tns,
            "mtx" | "ttx" => Format::Mtx,
            "npy" => Format::Npy,
            "dtb" => Format::Dtb,
            _ => return Err(unknown()),
        };
        if !format.is_text() && compression != Compression::None {
            return Err(compressed_binary(path.display().to_string()));
        }
        Ok((format, compression))
    }

    /// Tells whether files of this format are text.
    pub fn is_text(self) -> bool {
        matches!(self, Format::Tns | Format::Mtx)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Tns => "FROSTT text",
            Format::Mtx => "Matrix Market text",
            Format::Npy => "NumPy array",
            Format::Dtb => ".dtb binary",
        })
    }
}

/// How a text file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, also of several members.
    Gzip,
    /// Zstandard.
    Zstd,
    /// bzip2, also of several streams.
    Bzip2,
}

impl Compression {
    /// Returns the compression that a file's first bytes tell.
    pub fn of_magic(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Compression::Bzip2,
            _ => Compression::None,
        }
    }

    /// Returns its name, as in error messages.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "no compression",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
        }
    }

    fn of_extension(extension: &str) -> Compression {
        match extension {
            "gz" => Compression::Gzip,
            "zst" => Compression::Zstd,
            "bz2" => Compression::Bzip2,
            _ => Compression::None,
        }
    }
}

/// The error for a compressed file of a binary format.
pub(super) fn compressed_binary(file: String) -> FormatError {
    let what = "a compressed binary file is not read or written directly".to_owned();
    FormatError::Unsupported { file, what, remedy: "use the plain file (or compressed text)" }
}

fn lower(extension: Option<&OsStr>) -> Option<String> {
    Some(extension?.to_str()?.to_ascii_lowercase())
}
