//! Archives of arrays that `numpy.load` reads.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};

use decompose_formats::{Matrix, Value};
use ndarray::{Array, Array2, ArrayView, Dimension, OwnedRepr, ShapeBuilder, StrideShape};
use ndarray_npy::{NpzReader, NpzWriter, ReadNpyError, ReadNpzError};
use ndarray_npy::{ReadableElement, WritableElement};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use crate::error::CommonError;
use crate::files;

/// Members from this size on, in bytes, need the 64-bit fields of the archive's format.
const LARGE_FROM: usize = u32::MAX as usize - (1 << 16);

/// An archive being written; see [`write()`].
pub struct NpzOut<'a> {
    archive: NpzWriter<&'a mut BufWriter<File>>,
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
        let mut out = NpzOut { archive: NpzWriter::new(file) };
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

/// An archive being read.
pub struct NpzIn {
    path: PathBuf,
    archive: NpzReader<BufReader<File>>,
    names: Vec<String>,
}

impl NpzIn {
    /// Opens the archive `path`.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`] if it cannot be opened, [`CommonError::Content`] if it is no archive.
    pub fn open(path: &Path) -> Result<NpzIn, CommonError> {
        let file = File::open(path).map_err(|source| CommonError::io("open", path, source))?;
        let fail = |e: ReadNpzError| CommonError::content(path, format!("not an npz file: {e}"));
        let mut archive = NpzReader::new(BufReader::new(file)).map_err(fail)?;
        let names = archive.names().map_err(fail)?;
        Ok(NpzIn { path: path.to_owned(), archive, names })
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
    /// [`CommonError::Content`] if it is missing or of another type or number of dimensions.
    pub fn array<A: ReadableElement, D: Dimension>(
        &mut self,
        name: &str,
    ) -> Result<Array<A, D>, CommonError> {
        self.require(name)?;
        self.archive.by_name(name).map_err(|error| self.fault(name, &error))
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

    /// Reads the factor `name`, stored in single or double precision, and converts it.
    ///
    /// # Errors
    ///
    /// As [`NpzIn::array`]; [`CommonError::Format`] if there is no memory.
    pub fn matrix<V: Value>(&mut self, name: &str) -> Result<Matrix<V>, CommonError> {
        let array: Array2<V> = self.values(name)?;
        let mut matrix = Matrix::zeros(array.nrows(), array.ncols())?;
        matrix.view_mut().iter_mut().zip(&array).for_each(|(to, from)| *to = *from);
        Ok(matrix)
    }

    /// Reads the array `name`, stored in single or double precision, and converts it.
    ///
    /// # Errors
    ///
    /// As [`NpzIn::array`].
    pub fn values<V: Value, D: Dimension>(
        &mut self,
        name: &str,
    ) -> Result<Array<V, D>, CommonError> {
        self.require(name)?;
        match self.archive.by_name::<OwnedRepr<f64>, D>(name) {
            Ok(array) => Ok(array.mapv(V::from_f64)),
            Err(ReadNpzError::Npy(ReadNpyError::WrongDescriptor(_))) => {
                Ok(self.array::<f32, D>(name)?.mapv(|value| V::from_f64(value.into())))
            }
            Err(error) => Err(self.fault(name, &error)),
        }
    }

    fn require(&self, name: &str) -> Result<(), CommonError> {
        if self.has(name) {
            return Ok(());
        }
        let why = format!("no array `{name}`; there are: {}", self.names.join(", "));
        Err(CommonError::content(&self.path, why))
    }

    fn fault(&self, name: &str, error: &ReadNpzError) -> CommonError {
        CommonError::content(&self.path, format!("array `{name}`: {error}"))
    }
}
