//! NumPy `.npy` files: a dense array, read as a sparse tensor or as it is.

mod dense;
mod header;

use std::num::NonZero;

use rayon::prelude::*;

use crate::coo::Coo;
use crate::error::FormatError;
use crate::io::claimed_sizes;
use crate::io::options::Missing;
use crate::io::options::ReadOptions;
use crate::io::report::ExtentsFrom;
use crate::io::report::ReadReport;
use crate::io::source::Compression;
use crate::io::source::Format;
use crate::modes::ModeOrder;
use crate::narrow_ints::Ints;
use crate::narrow_ints::Width;
use crate::value::Value;

pub use crate::io::npy::dense::read_dense;
pub use crate::io::npy::header::AxisOrder;
pub use crate::io::npy::header::Element;
pub use crate::io::npy::header::NpyHeader;

/// Elements that one task looks at.
const PART: usize = 1 << 16;

/// Reads a `.npy` file of reals, integers or truth values; entries come sorted, first mode
/// outermost.
///
/// Zeros are dropped, unless NaN stands for what is unknown: then every cell but these is an entry.
/// Time `O(cells * order)`.
///
/// # Errors
///
/// [`FormatError::Corrupt`] for a damaged file, [`FormatError::Unsupported`] for other element
/// types and arrays without axes, [`FormatError::NotFinite`], [`FormatError::TooLarge`], and
/// [`FormatError::NoEntries`] if all is zero.
pub(super) fn read<V: Value>(
    bytes: &[u8],
    file: &str,
    options: &ReadOptions,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    let mut rest = bytes;
    let header = NpyHeader::read(&mut rest, file)?;
    header.check(rest.len() as u64, file)?;
    let order = header.shape.len();
    if order == 0 {
        let what = "it holds a single number, not an array".to_owned();
        let remedy = "save an array of at least one axis";
        return Err(FormatError::Unsupported { file: file.to_owned(), what, remedy });
    }
    options.check_order(order, file)?;
    let cells = Cells { bytes: rest, header: &header, file, missing: options.missing };
    let (coo, missing) = cells.list(options.max_bytes)?;
    let report = ReadReport {
        file: file.to_owned(),
        format: Format::Npy,
        compression: Compression::None,
        bytes: bytes.len() as u64,
        entries: coo.nnz() as u64,
        missing,
        extents: coo.extents().to_vec(),
        extents_from: ExtentsFrom::Header,
        text: None,
        sorted_by: coo.sorted_by().cloned(),
        blake3: None,
    };
    Ok((coo, report))
}

/// The elements of an array as they lie in memory.
struct Cells<'a> {
    bytes: &'a [u8],
    header: &'a NpyHeader,
    file: &'a str,
    missing: Missing,
}

/// What becomes of an element.
enum Cell<V> {
    Entry(V),
    /// A zero that is not listed.
    Empty,
    Missing,
    NotFinite(f64),
}

/// The elements of a part, by what becomes of them.
#[derive(Clone, Copy, Default)]
struct Tally {
    entries: usize,
    missing: u64,
    /// The first element that is refused.
    refused: Option<usize>,
}

impl Cells<'_> {
    /// Lists the entries in row-major order; returns how many cells are missing, too.
    fn list<V: Value>(&self, max_bytes: Option<u64>) -> Result<(Coo<V>, u64), FormatError> {
        let order = self.header.shape.len();
        let extents: Vec<u64> = self.header.shape.iter().map(|&extent| extent as u64).collect();
        let tally = self.tally::<V>();
        if let Some(at) = tally.refused {
            return Err(self.not_finite::<V>(at));
        }
        if tally.entries == 0 {
            return Err(FormatError::NoEntries(self.file.to_owned()));
        }
        let widths: usize = extents.iter().map(|&extent| Width::listed(extent).bytes()).sum();
        let needs = tally.entries as u64 * (size_of::<(usize, V)>() + widths + V::BYTES) as u64;
        claimed_sizes::check(needs, max_bytes.unwrap_or(u64::MAX), self.file)?;
        let size = self.header.element.bytes();
        let parts = self.bytes.par_chunks(PART * size).enumerate();
        let found: Vec<(usize, V)> = parts
            .flat_map_iter(|(part, bytes)| {
                let elements = bytes.chunks_exact(size).enumerate();
                elements.filter_map(move |(at, bytes)| match self.cell::<V>(bytes) {
                    Cell::Entry(value) => Some((part * PART + at, value)),
                    _ => None,
                })
            })
            .collect();
        let values: Vec<V> = found.par_iter().map(|&(_, value)| value).collect();
        let strides = self.strides();
        let coords = extents.par_iter().zip(&strides).map(|(&extent, stride)| {
            let index = |&(at, _): &(usize, V)| (at / *stride) as u64 % extent;
            Ints::collect(found.iter().map(index), Width::listed(extent))
        });
        let (extents, coords, values) =
            Coo::new(extents.clone(), coords.collect(), values)?.into_parts();
        let tensor = match self.header.order {
            AxisOrder::LastFastest => {
                Coo::sorted(extents, coords, values, ModeOrder::natural(order))
            }
            AxisOrder::FirstFastest => {
                let mut tensor = Coo::fitting(extents, coords, values);
                tensor.sort(&ModeOrder::natural(order))?;
                tensor
            }
        };
        Ok((tensor, tally.missing))
    }

    /// Counts the elements.
    fn tally<V: Value>(&self) -> Tally {
        let size = self.header.element.bytes();
        let part = |(part, bytes): (usize, &[u8])| {
            let mut tally = Tally::default();
            for (at, element) in bytes.chunks_exact(size).enumerate() {
                match self.cell::<V>(element) {
                    Cell::Entry(_) => tally.entries += 1,
                    Cell::Empty => {}
                    Cell::Missing => tally.missing += 1,
                    Cell::NotFinite(_) => {
                        tally.refused = tally.refused.or(Some(part * PART + at));
                    }
                }
            }
            tally
        };
        let add = |a: Tally, b: Tally| Tally {
            entries: a.entries + b.entries,
            missing: a.missing + b.missing,
            refused: [a.refused, b.refused].into_iter().flatten().min(),
        };
        self.bytes.par_chunks(PART * size).enumerate().map(part).reduce(Tally::default, add)
    }

    fn cell<V: Value>(&self, bytes: &[u8]) -> Cell<V> {
        let number = self.header.element.number(bytes);
        let value = V::from_f64(number);
        match self.missing {
            Missing::Nan if number.is_nan() => Cell::Missing,
            _ if !value.to_f64().is_finite() => Cell::NotFinite(value.to_f64()),
            Missing::None if value == V::default() => Cell::Empty,
            _ => Cell::Entry(value),
        }
    }

    /// Returns how many elements lie between neighbours along each axis.
    fn strides(&self) -> Vec<NonZero<usize>> {
        let shape = &self.header.shape;
        let product = |extents: &[usize]| {
            NonZero::new(extents.iter().product()).unwrap_or(NonZero::<usize>::MIN)
        };
        (0..shape.len())
            .map(|axis| match self.header.order {
                AxisOrder::LastFastest => product(&shape[axis + 1..]),
                AxisOrder::FirstFastest => product(&shape[..axis]),
            })
            .collect()
    }

    fn not_finite<V: Value>(&self, at: usize) -> FormatError {
        let size = self.header.element.bytes();
        let value = match self.cell::<V>(&self.bytes[at * size..][..size]) {
            Cell::NotFinite(value) => value,
            _ => f64::NAN,
        };
        let axes = self.strides().into_iter().zip(&self.header.shape);
        let numbers = axes.map(|(stride, extent)| (at / stride % extent + 1).to_string());
        let position = format!("({})", numbers.collect::<Vec<String>>().join(", "));
        FormatError::NotFinite { file: self.file.to_owned(), position, value }
    }
}
