//! Opening a `.dtb` file.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::array::Array;
use crate::coo::Coo;
use crate::error::FormatError;
use crate::io::dtb::header;
use crate::io::dtb::header::Header;
use crate::io::dtb::header::Places;
use crate::io::map;
use crate::io::options::ReadOptions;
use crate::io::report::ExtentsFrom;
use crate::io::report::ReadReport;
use crate::io::source::Compression;
use crate::io::source::Format;
use crate::narrow_ints::Ints;
use crate::narrow_ints::Width;
use crate::value::Value;

/// Opens a non-empty file: the arrays stay in the file, unless its value type is another.
pub(in crate::io) fn open<V: Value>(
    file: &File,
    name: &str,
    options: &ReadOptions,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    let refused = |source| FormatError::Io { action: "map", path: PathBuf::from(name), source };
    let map = Arc::new(map::whole(file).map_err(refused)?);
    build(&Content { bytes: &map, map: Some(&map), name }, options)
}

/// Reads a file from memory, copying it.
pub(in crate::io) fn from_bytes<V: Value>(
    bytes: &[u8],
    name: &str,
    options: &ReadOptions,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    if bytes.is_empty() {
        return Err(FormatError::EmptyFile(name.to_owned()));
    }
    build(&Content { bytes, map: None, name }, options)
}

/// The bytes of a file, and the map they lie in.
struct Content<'a> {
    bytes: &'a [u8],
    map: Option<&'a Arc<Mmap>>,
    name: &'a str,
}

impl Content<'_> {
    fn array<T: Pod>(&self, offset: u64, len: u64) -> Result<Array<T>, FormatError> {
        let (offset, len) = (offset as usize, len as usize);
        match self.map {
            Some(map) => Array::mapped(map, offset, len)
                .ok_or_else(|| header::corrupt(self.name, "an array is not aligned".to_owned())),
            None => {
                let bytes = &self.bytes[offset..offset + len * size_of::<T>()];
                let numbers = bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned);
                Ok(numbers.collect::<Vec<T>>().into())
            }
        }
    }
}

fn build<V: Value>(
    content: &Content<'_>,
    options: &ReadOptions,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    let (header, places) = Header::decode(content.bytes, content.name)?;
    options.check_order(header.modes.len(), content.name)?;
    check_hash(content, &places)?;
    if header.entries == 0 {
        return Err(FormatError::NoEntries(content.name.to_owned()));
    }
    let mut coords = Vec::with_capacity(header.modes.len());
    for (&(_, width), &offset) in header.modes.iter().zip(&places.coords) {
        coords.push(match width {
            Width::W16 => Ints::U16(content.array(offset, header.entries)?),
            Width::W32 => Ints::U32(content.array(offset, header.entries)?),
            Width::W64 => Ints::U64(content.array(offset, header.entries)?),
        });
    }
    let values = match header.value_bytes as usize {
        bytes if bytes == V::BYTES => content.array(places.values, header.entries)?,
        4 => convert::<f32, V>(&content.array(places.values, header.entries)?),
        _ => convert::<f64, V>(&content.array(places.values, header.entries)?),
    };
    let extents: Vec<u64> = header.modes.iter().map(|&(extent, _)| extent).collect();
    let coo = checked(extents, coords, values, content.name)?;
    let coo = sorted(coo, &header, content.name)?;
    let report = ReadReport {
        file: content.name.to_owned(),
        format: Format::Dtb,
        compression: Compression::None,
        bytes: content.bytes.len() as u64,
        entries: header.entries,
        missing: 0,
        extents: coo.extents().to_vec(),
        extents_from: ExtentsFrom::Header,
        text: None,
        sorted_by: header.sorted_by,
        blake3: None,
    };
    Ok((coo, report))
}

fn check_hash(content: &Content<'_>, places: &Places) -> Result<(), FormatError> {
    let (data, stored) = content.bytes.split_at(places.hash as usize);
    let mut hasher = blake3::Hasher::new();
    hasher.update_rayon(data);
    if hasher.finalize().as_bytes() == stored {
        return Ok(());
    }
    Err(header::corrupt(content.name, "its checksum is wrong".to_owned()))
}

fn convert<T: Value, V: Value>(values: &[T]) -> Array<V> {
    values.iter().map(|value| V::from_f64(value.to_f64())).collect::<Vec<V>>().into()
}

/// Checks what a right checksum does not show: that the writer was right.
fn checked<V: Value>(
    extents: Vec<u64>,
    coords: Vec<Ints>,
    values: Array<V>,
    name: &str,
) -> Result<Coo<V>, FormatError> {
    if let Some(entry) = values.iter().position(|value| !value.to_f64().is_finite()) {
        let numbers = coords.iter().map(|column| column.get(entry).saturating_add(1).to_string());
        let position = format!("({})", numbers.collect::<Vec<String>>().join(", "));
        let (file, value) = (name.to_owned(), values[entry].to_f64());
        return Err(FormatError::NotFinite { file, position, value });
    }
    if extents.iter().any(|&extent| extent >= 1 << 63) {
        return Err(header::corrupt(name, "an extent is beyond 2^63 - 1".to_owned()));
    }
    Coo::new(extents, coords, values).map_err(|error| header::corrupt(name, error.to_string()))
}

/// Marks the tensor as sorted if the header says so and it is true.
fn sorted<V: Value>(coo: Coo<V>, header: &Header, name: &str) -> Result<Coo<V>, FormatError> {
    match &header.sorted_by {
        None => Ok(coo),
        Some(order) if coo.is_sorted_by(order) => {
            let (extents, coords, values) = coo.into_parts();
            Ok(Coo::sorted(extents, coords, values, order.clone()))
        }
        Some(order) => {
            Err(header::corrupt(name, format!("its entries are not sorted by modes {order}")))
        }
    }
}
