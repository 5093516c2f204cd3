//! NumPy `.npy` files: a dense array read as a sparse tensor without its zeros.

use ndarray::ArrayViewD;
use ndarray::Dimension;
use ndarray_npy::ViewElement;
use ndarray_npy::ViewNpyError;
use ndarray_npy::ViewNpyExt;
use rayon::prelude::*;

use crate::coo::Coo;
use crate::dims::ModeOrder;
use crate::error::FormatError;
use crate::ints::Ints;
use crate::ints::Width;
use crate::io::report::ExtentsFrom;
use crate::io::report::ReadReport;
use crate::io::source::Compression;
use crate::io::source::Format;
use crate::value::Value;

/// Reads a `.npy` file of 4- or 8-byte reals or of integers; entries come sorted, first mode
/// outermost.
///
/// Time `O(cells * order)`.
///
/// # Errors
///
/// [`FormatError::Corrupt`] for a damaged file, [`FormatError::Unsupported`] for other element
/// types and arrays without axes, [`FormatError::NotFinite`], and [`FormatError::NoEntries`] if
/// all is zero.
pub(super) fn read<V: Value>(
    bytes: &[u8],
    file: &str,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    // Elements are viewed in place, which needs them aligned: maps are, other memory is copied.
    let copy: Vec<u64>;
    let aligned = if bytes.as_ptr().addr().is_multiple_of(size_of::<u64>()) {
        bytes
    } else {
        copy = bytes.chunks(8).map(word).collect();
        &bytemuck::cast_slice(&copy)[..bytes.len()]
    };
    let coo = read_any(aligned, file)?;
    let report = ReadReport {
        file: file.to_owned(),
        format: Format::Npy,
        compression: Compression::None,
        bytes: bytes.len() as u64,
        entries: coo.nnz() as u64,
        extents: coo.extents().to_vec(),
        extents_from: ExtentsFrom::Header,
        text: None,
        sorted_by: coo.sorted_by().cloned(),
        blake3: None,
    };
    Ok((coo, report))
}

/// Packs up to eight bytes as they lie in memory.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

/// Tries the element types in turn; each refuses a file of another type before looking at data.
fn read_any<V: Value>(bytes: &[u8], file: &str) -> Result<Coo<V>, FormatError> {
    read_as::<f64, V>(bytes, file, |x| x)
        .or_else(|| read_as::<f32, V>(bytes, file, f64::from))
        .or_else(|| read_as::<i64, V>(bytes, file, |x| x as f64))
        .or_else(|| read_as::<i32, V>(bytes, file, f64::from))
        .or_else(|| read_as::<i16, V>(bytes, file, f64::from))
        .or_else(|| read_as::<i8, V>(bytes, file, f64::from))
        .or_else(|| read_as::<u64, V>(bytes, file, |x| x as f64))
        .or_else(|| read_as::<u32, V>(bytes, file, f64::from))
        .or_else(|| read_as::<u16, V>(bytes, file, f64::from))
        .or_else(|| read_as::<u8, V>(bytes, file, f64::from))
        .or_else(|| read_as::<bool, V>(bytes, file, |x| f64::from(u8::from(x))))
        .unwrap_or_else(|| {
            let what = "its elements are not real numbers of this machine's byte order".to_owned();
            let remedy = "save it with `.astype(float)`";
            Err(FormatError::Unsupported { file: file.to_owned(), what, remedy })
        })
}

/// Reads a file with elements of type `T`; `None` if they are of another type.
fn read_as<T, V>(
    bytes: &[u8],
    file: &str,
    widen: impl Fn(T) -> f64 + Sync,
) -> Option<Result<Coo<V>, FormatError>>
where
    T: ViewElement + Copy + Sync,
    V: Value,
{
    match ArrayViewD::<T>::view_npy(bytes) {
        Ok(array) => Some(sparse(&array, file, widen)),
        Err(ViewNpyError::WrongDescriptor(_) | ViewNpyError::NonNativeEndian) => None,
        Err(error) => {
            let (file, why) = (file.to_owned(), error.to_string());
            Some(Err(FormatError::Corrupt { file, kind: ".npy", why }))
        }
    }
}

/// Collects the non-zeros in row-major order, whatever the order in memory.
fn sparse<T, V>(
    array: &ArrayViewD<'_, T>,
    file: &str,
    widen: impl Fn(T) -> f64 + Sync,
) -> Result<Coo<V>, FormatError>
where
    T: Copy + Sync,
    V: Value,
{
    let order = array.ndim();
    if order == 0 {
        let what = "it holds a single number, not an array".to_owned();
        let remedy = "save an array of at least one axis";
        return Err(FormatError::Unsupported { file: file.to_owned(), what, remedy });
    }
    let extents: Vec<u64> = array.shape().iter().map(|&extent| extent as u64).collect();
    let mut coords = vec![Vec::new(); order];
    let mut values = Vec::new();
    for (position, &element) in array.indexed_iter() {
        let value = V::from_f64(widen(element));
        if !value.to_f64().is_finite() {
            return Err(not_finite(file, position.as_array_view().as_slice(), value.to_f64()));
        }
        if value != V::default() {
            for (column, mode) in coords.iter_mut().zip(0..order) {
                column.push(position[mode] as u64);
            }
            values.push(value);
        }
    }
    if values.is_empty() {
        return Err(FormatError::NoEntries(file.to_owned()));
    }
    let coords = coords.into_par_iter().zip(&extents).map(narrow).collect();
    let (extents, coords, values) = Coo::new(extents, coords, values)?.into_parts();
    Ok(Coo::sorted(extents, coords, values, ModeOrder::natural(order)))
}

fn not_finite(file: &str, position: Option<&[usize]>, value: f64) -> FormatError {
    let numbers = position.unwrap_or_default().iter().map(|index| (index + 1).to_string());
    let position = format!("({})", numbers.collect::<Vec<String>>().join(", "));
    FormatError::NotFinite { file: file.to_owned(), position, value }
}

fn narrow((column, &extent): (Vec<u64>, &u64)) -> Ints {
    Ints::collect(column, Width::listed(extent))
}
