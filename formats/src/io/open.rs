//! Opening: from a source to mapped bytes or a stream, with the compression told.

use std::fs::File;
use std::io;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;

use crate::error::FormatError;
use crate::io::options::Progress;
use crate::io::source::Compression;

/// Bytes that tell compression and binary formats.
pub(super) const MAGIC: usize = 16;

/// Bytes handed to a decompressor at a time.
const BUFFER: usize = 256 << 10;

/// What a path names.
pub(super) enum Opened {
    /// A regular file that can be mapped, and its size.
    File(File, u64),
    /// A pipe or device that passes once.
    Pipe(File),
}

/// Opens `path` for reading.
pub(super) fn open(path: &Path) -> Result<Opened, FormatError> {
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => FormatError::Missing(path.to_owned()),
        _ => FormatError::Io { action: "open", path: path.to_owned(), source },
    };
    let data = std::fs::metadata(path).map_err(refused)?;
    if data.is_dir() {
        return Err(FormatError::IsAFolder(path.to_owned()));
    }
    let file = File::open(path).map_err(refused)?;
    Ok(if data.is_file() { Opened::File(file, data.len()) } else { Opened::Pipe(file) })
}

/// Reads up to [`MAGIC`] bytes; fewer at the end of the stream.
pub(super) fn magic(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(MAGIC);
    reader.take(MAGIC as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Returns the decompressed bytes of `reader`.
pub(super) fn decompress<'a>(
    reader: impl Read + Send + 'a,
    compression: Compression,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let reader = BufReader::with_capacity(BUFFER, reader);
    Ok(match compression {
        Compression::None => Box::new(reader),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(reader)),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(reader)?),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(reader)),
    })
}

/// A reader that reports what passes through it.
pub(super) struct Counted<'a, R> {
    pub(super) inner: R,
    pub(super) progress: &'a Progress,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.progress.advance(bytes as u64);
        Ok(bytes)
    }
}
