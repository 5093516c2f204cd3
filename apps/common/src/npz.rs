//! Archives of arrays that `numpy.load` reads.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use decompose_formats::io::{NpyHeader, read_dense};
use decompose_formats::{Matrix, Value};
use ndarray::{Array, Array2, ArrayView, Dimension, ShapeBuilder, StrideShape};
use ndarray_npy::{NpzWriter, ReadNpyError, ReadNpyExt, ReadableElement, WritableElement};
use zip::read::ZipFile;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive};

use crate::error::CommonError;
use crate::files;
use crate::memory;

/// Members from this size on, in bytes, need the 64-bit fields of the archive's format.
const LARGE_FROM: usize = u32::MAX as usize - (1 << 16);

/// An archive being written; see [`write()`].
pub struct NpzOut<'a> {
    archive: NpzWriter<UntilRefused<'a>>,
}

/// A file that takes nothing more once a write was refused: an archive that is given up writes its end all the same, and
/// tells on standard error if it cannot.
struct UntilRefused<'a> {
    file: &'a mut BufWriter<File>,
    refused: bool,
    /// Where the archive stands, also once nothing is written.
    at: u64,
    end: u64,
}

impl UntilRefused<'_> {
    fn moved(&mut self, at: u64) -> u64 {
        self.at = at;
        self.end = self.end.max(at);
        at
    }
}

impl Write for UntilRefused<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if self.refused { Ok(bytes.len()) } else { self.file.write(bytes) };
        self.refused |= written.is_err();
        let written = written?;
        self.moved(self.at + written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = if self.refused { Ok(()) } else { self.file.flush() };
        self.refused |= flushed.is_err();
        flushed
    }
}

impl Seek for UntilRefused<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            _ if !self.refused => self.file.seek(to),
            SeekFrom::Start(at) => Ok(at),
            SeekFrom::Current(by) => Ok(self.at.saturating_add_signed(by)),
            SeekFrom::End(by) => Ok(self.end.saturating_add_signed(by)),
        };
        self.refused |= at.is_err();
        Ok(self.moved(at?))
    }
}

/// Writes the archive `path` by `add`, as [`files::replace`].  The bytes depend on the arrays only.
///
/// # Errors
///
/// [`CommonError::Io`] if the file cannot be written.
pub fn write(
    path: &Path,
    add: impl FnOnce(&mut NpzOut<'_>) -> io::Result<()>,
) -> Result<(), CommonError> {
    files::replace(path, |file| {
        let mut out = NpzOut {
            archive: NpzWriter::new(UntilRefused { file, refused: false, at: 0, end: 0 }),
        };
        add(&mut out)?;
        out.archive.finish().map(|_| ()).map_err(io::Error::other)
    })
}

impl NpzOut<'_> {
    /// Adds an array under `name`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn array<A: WritableElement, D: Dimension>(
        &mut self,
        name: &str,
        array: ArrayView<'_, A, D>,
    ) -> io::Result<()> {
        let large = array.len() * size_of::<A>() >= LARGE_FROM;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(large);
        self.archive.add_array_with_options(name, &array, options).map_err(io::Error::other)
    }

    /// Adds a slice of numbers as a one-dimensional array.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn numbers<A: WritableElement>(&mut self, name: &str, numbers: &[A]) -> io::Result<()> {
        self.array(name, ArrayView::from(numbers))
    }

    /// Adds a factor, without its padding, in its own precision.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn matrix<V: Value>(&mut self, name: &str, matrix: &Matrix<V>) -> io::Result<()> {
        let shape = (matrix.rows(), matrix.cols()).strides((matrix.stride(), 1));
        self.strided(name, matrix.as_slice(), shape)
    }

    /// Adds an array in row-major order, in its own precision.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, or the array is not in row-major order.
    pub fn values<V: Value, D: Dimension>(
        &mut self,
        name: &str,
        array: &Array<V, D>,
    ) -> io::Result<()> {
        let not_row_major =
            || io::Error::other(format!("array `{name}` is not in row-major order"));
        let values = array.as_slice().ok_or_else(not_row_major)?;
        self.strided(name, values, array.raw_dim().into())
    }

    fn strided<V: Value, D: Dimension>(
        &mut self,
        name: &str,
        values: &[V],
        shape: StrideShape<D>,
    ) -> io::Result<()> {
        fn view<A, D: Dimension>(
            values: &[A],
            shape: StrideShape<D>,
        ) -> io::Result<ArrayView<'_, A, D>> {
            ArrayView::from_shape(shape, values).map_err(io::Error::other)
        }
        if V::BYTES == size_of::<f32>() {
            self.array(name, view::<f32, D>(bytemuck::cast_slice(values), shape)?)
        } else {
            self.array(name, view::<f64, D>(bytemuck::cast_slice(values), shape)?)
        }
    }
}

/// Says why a file is no archive.
fn not_npz(error: &ZipError) -> String {
    match error {
        // The list of what is in an archive stands at its end.
        ZipError::InvalidArchive(_) => {
            "not an npz file, or one that was cut off: the list at its end is missing or damaged; write it anew".into()
        }
        other => format!("not an npz file: {other}"),
    }
}

/// An archive being read.
///
/// What a member claims to hold is checked against its size and the memory there is before any is
/// taken for it.
pub struct NpzIn {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
    names: Vec<String>,
    /// The most bytes that an array may take.
    limit: u64,
}

impl NpzIn {
    /// Opens the archive `path`.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`] if it cannot be opened, [`CommonError::Content`] if it is no archive.
    pub fn open(path: &Path) -> Result<NpzIn, CommonError> {
        let limit = memory::left().unwrap_or(u64::MAX);
        NpzIn::open_within(path, limit)
    }

    /// Opens the archive `path`, of which no array may take more than `limit` bytes.
    ///
    /// # Errors
    ///
    /// As [`NpzIn::open`].
    pub fn open_within(path: &Path, limit: u64) -> Result<NpzIn, CommonError> {
        let file = File::open(path).map_err(|source| CommonError::io("open", path, source))?;
        let archive = ZipArchive::new(BufReader::new(file))
            .map_err(|error| CommonError::content(path, not_npz(&error)))?;
        let name = |name: &str| name.strip_suffix(".npy").unwrap_or(name).to_owned();
        let names = archive.file_names().map(name).collect();
        Ok(NpzIn { path: path.to_owned(), archive, names, limit })
    }

    /// Returns the path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whether there is an array called `name`.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|have| have == name)
    }

    /// Reads the array `name`.
    ///
    /// # Errors
    ///
    /// [`CommonError::Content`] if it is missing or of another type or number of dimensions,
    /// [`CommonError::Format`] if it is damaged or too large.
    pub fn array<A: ReadableElement, D: Dimension>(
        &mut self,
        name: &str,
    ) -> Result<Array<A, D>, CommonError> {
        let (label, limit) = (self.label(name), self.limit);
        let mut member = self.member(name)?;
        let bytes = member.size();
        let header = NpyHeader::read(&mut member, &label)?;
        header.check(bytes.saturating_sub(header.bytes as u64), &label)?;
        header.admit(header.element.bytes(), limit, &label)?;
        drop(member);
        let member = self.member(name)?;
        Array::read_npy(member).map_err(|error| self.fault(name, &error))
    }

    /// Reads the one-dimensional array `name`.
    ///
    /// # Errors
    ///
    /// As [`NpzIn::array`].
    pub fn numbers<A: ReadableElement + Clone>(
        &mut self,
        name: &str,
    ) -> Result<Vec<A>, CommonError> {
        Ok(self.array::<A, ndarray::Ix1>(name)?.to_vec())
    }

    /// Reads the factor `name`, of real elements of any type, and converts it.
    ///
    /// # Errors
    ///
    /// As [`NpzIn::array`]; [`CommonError::Format`] if there is no memory.
    pub fn matrix<V: Value>(&mut self, name: &str) -> Result<Matrix<V>, CommonError> {
        let array: Array2<V> = self.values(name)?;
        if array.is_empty() {
            let why = format!(
                "array `{name}` is of {} x {}: a factor has rows and columns",
                array.nrows(),
                array.ncols()
            );
            return Err(CommonError::content(&self.path, why));
        }
        let mut matrix = Matrix::zeros(array.nrows(), array.ncols())?;
        matrix.view_mut().iter_mut().zip(&array).for_each(|(to, from)| *to = *from);
        Ok(matrix)
    }

    /// Reads the array `name`, of real elements of any type, and converts it.
    ///
    /// # Errors
    ///
    /// As [`NpzIn::array`].
    pub fn values<V: Value, D: Dimension>(
        &mut self,
        name: &str,
    ) -> Result<Array<V, D>, CommonError> {
        let (label, limit) = (self.label(name), self.limit);
        let array = read_dense::<V>(&mut self.member(name)?, &label, limit)?;
        let axes = array.ndim();
        array.into_dimensionality().map_err(|_| {
            let wanted = D::NDIM.map_or("another number".to_owned(), |axes| axes.to_string());
            let why = format!("array `{name}`: it has {axes} axes, not {wanted}");
            CommonError::content(&self.path, why)
        })
    }

    /// Opens the member that holds the array `name`.
    fn member(&mut self, name: &str) -> Result<ZipFile<'_, BufReader<File>>, CommonError> {
        if !self.has(name) {
            let why = format!("no array `{name}`; there are: {}", self.names.join(", "));
            return Err(CommonError::content(&self.path, why));
        }
        let full = format!("{name}.npy");
        let at = self.archive.index_for_name(&full).or_else(|| self.archive.index_for_name(name));
        let path = self.path.clone();
        self.archive
            .by_index(at.unwrap_or(usize::MAX))
            .map_err(|error| CommonError::content(&path, format!("array `{name}`: {error}")))
    }

    /// Names an array in messages.
    fn label(&self, name: &str) -> String {
        format!("{}, array `{name}`", self.path.display())
    }

    fn fault(&self, name: &str, error: &ReadNpyError) -> CommonError {
        CommonError::content(&self.path, format!("array `{name}`: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use decompose_formats::FormatError;
    use ndarray::{Ix1, Ix2};

    use super::*;

    #[test]
    fn claims_are_checked_before_memory_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        write(&path, |out| out.numbers("a", &[0.0_f64; 1000])).unwrap();
        let mut small = NpzIn::open_within(&path, 7999).unwrap();
        for error in
            [small.values::<f64, Ix1>("a").unwrap_err(), small.array::<f64, Ix1>("a").unwrap_err()]
        {
            let large = matches!(
                error,
                CommonError::Format(FormatError::TooLarge { needs: 8000, limit: 7999, .. })
            );
            assert!(large, "{error}");
        }
        // A header that promises 2^34 rows, in the place of one that promises a thousand.
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(7).position(|part| part == b"(1000,)").unwrap();
        bytes[at..at + 14].copy_from_slice(b"(17179869184,)");
        std::fs::write(&path, &bytes).unwrap();
        let mut lying = NpzIn::open(&path).unwrap();
        let error = lying.array::<f64, Ix1>("a").unwrap_err().to_string();
        assert!(error.contains("array `a`") && error.contains("17179869184 elements"), "{error}");
        assert!(lying.values::<f64, Ix1>("a").is_err());
    }

    #[test]
    fn types_convert_and_axes_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.npz");
        write(&path, |out| out.numbers("a", &[3_i16, -4])).unwrap();
        let mut archive = NpzIn::open(&path).unwrap();
        assert_eq!(archive.values::<f64, Ix1>("a").unwrap().to_vec(), [3.0, -4.0]);
        let error = archive.values::<f64, Ix2>("a").unwrap_err().to_string();
        assert!(error.contains("it has 1 axes, not 2"), "{error}");
        let error = archive.array::<f64, Ix1>("b").unwrap_err().to_string();
        assert!(error.contains("no array `b`; there are: a"), "{error}");
    }
}
