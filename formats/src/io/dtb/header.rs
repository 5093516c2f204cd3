//! The header of a `.dtb` file, and where the arrays lie.

use crate::error::FormatError;
use crate::modes::ModeOrder;
use crate::narrow_ints::Width;

/// The first bytes of every `.dtb` file.
pub(in crate::io) const MAGIC: [u8; 8] = *b"\x89DTB\r\n\x1a\n";

/// The version that is written, and the newest that is read.
pub(super) const VERSION: u32 = 1;

/// Arrays start at multiples of this many bytes: a cache line, and a vector register.
pub(super) const ALIGN: u64 = 64;

/// Bytes of the hash at the end.
pub(super) const HASH: u64 = 32;

/// Bytes of the header before the modes, and for each mode.
const FIXED: usize = 40;
const PER_MODE: usize = 16;

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) value_bytes: u32,
    pub(super) sorted_by: Option<ModeOrder>,
    pub(super) entries: u64,
    /// Extent and coordinate width of each mode.
    pub(super) modes: Vec<(u64, Width)>,
}

/// Where the parts of a file lie, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) coords: Vec<u64>,
    pub(super) values: u64,
    /// Where the hash starts.
    pub(super) hash: u64,
}

impl Header {
    /// Computes where the arrays lie; `None` if the file would be larger than 2^63 bytes.
    pub(super) fn places(&self) -> Option<Places> {
        let mut end = (FIXED + PER_MODE * self.modes.len()) as u64;
        let mut place = |width: u64| {
            let start = end.checked_next_multiple_of(ALIGN)?;
            end = start.checked_add(self.entries.checked_mul(width)?)?;
            Some(start)
        };
        let coords = self
            .modes
            .iter()
            .map(|(_, width)| place(width.bytes() as u64))
            .collect::<Option<_>>()?;
        let values = place(u64::from(self.value_bytes))?;
        let hash = end.checked_next_multiple_of(ALIGN).filter(|&end| end < 1 << 63)?;
        Some(Places { coords, values, hash })
    }

    /// Writes the header as bytes.
    pub(super) fn encode(&self, places: &Places) -> Vec<u8> {
        let order = self.modes.len();
        let mut bytes = Vec::with_capacity(FIXED + PER_MODE * order);
        bytes.extend(MAGIC);
        for number in [VERSION, order as u32, self.value_bytes, u32::from(self.sorted_by.is_some())]
        {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.entries.to_le_bytes());
        bytes.extend((places.hash + HASH).to_le_bytes());
        for (level, (extent, width)) in self.modes.iter().enumerate() {
            let mode = self.sorted_by.as_ref().map_or(level, |order| order.modes()[level]);
            bytes.extend(extent.to_le_bytes());
            bytes.extend((width.bytes() as u32).to_le_bytes());
            bytes.extend((mode as u32).to_le_bytes());
        }
        bytes
    }

    /// Reads and checks the header of a file of these bytes.
    pub(super) fn decode(bytes: &[u8], file: &str) -> Result<(Header, Places), FormatError> {
        let damaged = |why: &str| corrupt(file, why.to_owned());
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err(damaged("it does not begin as a .dtb file does"));
        }
        let cut = || damaged("it ends within the header");
        let mut fields = Fields(&bytes[known..]);
        let found = fields.u32().ok_or_else(cut)?;
        if found > VERSION {
            let file = file.to_owned();
            return Err(FormatError::NewerVersion { file, found, known: VERSION });
        }
        let [order, value_bytes, sorted] =
            [fields.u32(), fields.u32(), fields.u32()].map(|field| field.ok_or_else(cut));
        let (order, value_bytes, sorted) = (order? as usize, value_bytes?, sorted?);
        let (entries, size) = (fields.u64().ok_or_else(cut)?, fields.u64().ok_or_else(cut)?);
        if size != bytes.len() as u64 {
            let have = bytes.len();
            return Err(corrupt(file, format!("it should have {size} bytes but has {have}")));
        }
        if found == 0 || order == 0 || !matches!(value_bytes, 4 | 8) || sorted > 1 {
            return Err(damaged("its header makes no sense"));
        }
        if fields.0.len() / PER_MODE < order {
            return Err(cut());
        }
        let (mut modes, mut levels) = (Vec::with_capacity(order), Vec::with_capacity(order));
        for _ in 0..order {
            let (extent, width, mode) = fields.mode().ok_or_else(cut)?;
            let width = width.ok_or_else(|| damaged("a coordinate width is neither 4 nor 8"))?;
            modes.push((extent, width));
            levels.push(mode as usize);
        }
        let levels = ModeOrder::new(levels).ok_or_else(|| damaged("its mode order is none"))?;
        let sorted_by = (sorted == 1).then_some(levels);
        let header = Header { value_bytes, sorted_by, entries, modes };
        let places = header.places().filter(|places| places.hash.checked_add(HASH) == Some(size));
        let places = places.ok_or_else(|| damaged("its arrays do not fit its size"))?;
        Ok((header, places))
    }
}

/// The error for contradicting bytes.
pub(super) fn corrupt(file: &str, why: String) -> FormatError {
    FormatError::Corrupt { file: file.to_owned(), kind: ".dtb", why }
}

/// Little-endian fields still to be read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*field))
    }

    fn u64(&mut self) -> Option<u64> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*field))
    }

    /// Reads extent, width (`None` if there is no such) and sorting level of a mode.
    fn mode(&mut self) -> Option<(u64, Option<Width>, u32)> {
        let (extent, width, mode) = (self.u64()?, self.u32()?, self.u32()?);
        let width = match width {
            4 => Some(Width::W32),
            8 => Some(Width::W64),
            _ => None,
        };
        Some((extent, width, mode))
    }
}
