//! The header of a `.npy` file: what its elements are, their order, and the shape.
//!
//! `\x93NUMPY`, the version (two bytes), the length of the text that follows (two bytes in version
//! 1, else four), and a dictionary of Python: `{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }`
//! (NumPy Enhancement Proposal 1).

use std::io;
use std::io::Read;
use std::path::PathBuf;

use crate::error::FormatError;
use crate::io::claimed_sizes;

/// The first bytes of every `.npy` file.
pub(in crate::io) const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest text that is read; NumPy itself refuses more than ten thousand characters.
const LONGEST: usize = 1 << 16;

/// What the header of a `.npy` file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    /// The extent of every axis.
    pub shape: Vec<usize>,
    /// Whether the first axis is the fastest in memory.
    pub order: AxisOrder,
    /// What the elements are.
    pub element: Element,
    /// Bytes of the header.
    pub bytes: usize,
}

/// Which axis is the fastest in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisOrder {
    /// The last: row-major, as C.
    LastFastest,
    /// The first: column-major, as Fortran.
    FirstFastest,
}

/// The type of an element: its kind, its bytes and their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    kind: Kind,
    bytes: usize,
    is_big_endian: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Signed,
    Unsigned,
    Float,
}

impl NpyHeader {
    /// Reads the header from the start of a file, which `file` names in messages.
    ///
    /// # Errors
    ///
    /// [`FormatError::Corrupt`] for what is no header, [`FormatError::Unsupported`] for elements that
    /// are no real numbers, and [`FormatError::Io`].
    pub fn read(reader: &mut impl Read, file: &str) -> Result<NpyHeader, FormatError> {
        let mut fixed = [0; 10];
        let start = fill(reader, &mut fixed[..MAGIC.len()], file);
        if !fixed.starts_with(MAGIC) && !matches!(start, Err(FormatError::Io { .. })) {
            return Err(damaged(file, "it does not begin as a .npy file does"));
        }
        start?;
        fill(reader, &mut fixed[MAGIC.len()..], file)?;
        let mut length = vec![fixed[8], fixed[9]];
        if fixed[6] != 1 {
            length.resize(4, 0);
            fill(reader, &mut length[2..], file)?;
        }
        let text_bytes = length.iter().rev().fold(0, |all, &byte| all << 8 | usize::from(byte));
        if text_bytes > LONGEST {
            return Err(damaged(file, "its header is longer than 64 KiB"));
        }
        let mut text = vec![0; text_bytes];
        fill(reader, &mut text, file)?;
        let text = String::from_utf8_lossy(&text);
        let bytes = MAGIC.len() + 2 + length.len() + text_bytes;
        let found = parse(&text).ok_or_else(|| damaged(file, "its header makes no sense"))?;
        let Found { descr, order, shape } = found;
        let Some(element) = Element::parse(descr) else {
            let what = format!("its elements, `{descr}`, are not real numbers");
            let remedy = "save it with `.astype(float)`";
            return Err(FormatError::Unsupported { file: file.to_owned(), what, remedy });
        };
        Ok(NpyHeader { shape, order, element, bytes })
    }

    /// Returns how many elements the array has; `None` if no memory could hold them.
    pub fn count(&self) -> Option<usize> {
        // An axis of no elements makes the product 0 whatever the others are.
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape.iter().try_fold(1_usize, |all, &extent| all.checked_mul(extent))
    }

    /// Checks that the elements fill exactly `bytes` bytes, and returns their number.
    ///
    /// # Errors
    ///
    /// [`FormatError::Corrupt`] if they do not.
    pub fn check(&self, bytes: u64, file: &str) -> Result<usize, FormatError> {
        let shape: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let shape = shape.join(" x ");
        let needs = self.count().and_then(|count| count.checked_mul(self.element.bytes));
        match (self.count(), needs) {
            (Some(count), Some(needs)) if needs as u64 == bytes => Ok(count),
            (_, Some(needs)) => {
                let why = format!("{shape} elements are {needs} bytes, but {bytes} follow");
                Err(damaged(file, &why))
            }
            (_, None) => Err(damaged(file, &format!("{shape} elements fit no memory"))),
        }
    }

    /// Checks that `each` bytes an element are within `limit`, and returns the number of elements.
    ///
    /// # Errors
    ///
    /// [`FormatError::TooLarge`] if they are not.
    pub fn admit(&self, each: usize, limit: u64, file: &str) -> Result<usize, FormatError> {
        let needs = self.count().and_then(|count| count.checked_mul(each));
        claimed_sizes::check(needs.map_or(u64::MAX, |needs| needs as u64), limit, file)?;
        Ok(self.count().unwrap_or(0))
    }
}

impl Element {
    /// Returns the bytes of an element.
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// Reads a type as NumPy writes it: `<f8`, `|b1`, `>i4`.
    fn parse(descr: &str) -> Option<Element> {
        let (order, rest) = descr.split_at_checked(1)?;
        let (kind, bytes) = rest.split_at_checked(1)?;
        let bytes = bytes.parse().ok()?;
        let is_big_endian = match order {
            "<" | "|" => false,
            "=" => cfg!(target_endian = "big"),
            ">" => true,
            _ => return None,
        };
        let kind = match (kind, bytes) {
            ("b" | "?", 1) => Kind::Bool,
            ("i", 1 | 2 | 4 | 8) => Kind::Signed,
            ("u", 1 | 2 | 4 | 8) => Kind::Unsigned,
            ("f", 2 | 4 | 8) => Kind::Float,
            _ => return None,
        };
        Some(Element { kind, bytes, is_big_endian })
    }

    /// Reads an element from its bytes, as many as [`Element::bytes`] says.
    pub(super) fn number(self, bytes: &[u8]) -> f64 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        if self.is_big_endian {
            word[..bytes.len()].reverse();
        }
        let raw = u64::from_le_bytes(word);
        // Moves the sign bit to the top and back.
        let unused = 64 - 8 * bytes.len() as u32;
        match (self.kind, self.bytes) {
            (Kind::Bool, _) => f64::from(u8::from(raw != 0)),
            (Kind::Unsigned, _) => raw as f64,
            (Kind::Signed, _) => ((raw << unused) as i64 >> unused) as f64,
            (Kind::Float, 2) => half(raw as u16),
            (Kind::Float, 4) => f64::from(f32::from_bits(raw as u32)),
            (Kind::Float, _) => f64::from_bits(raw),
        }
    }
}

/// Widens a number of half precision (IEEE 754 binary16), exactly.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let size = match bits >> 10 & 0x1f {
        0 => fraction * 2_f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1024.0 + fraction) * 2_f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// The three entries of the dictionary.
struct Found<'a> {
    descr: &'a str,
    order: AxisOrder,
    shape: Vec<usize>,
}

fn parse(text: &str) -> Option<Found<'_>> {
    let descr = after(text, "descr")?;
    let quote = descr.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
    // A structured type is a list; no number is written so.
    let descr = match quote {
        Some(quote) => descr[1..].split(quote).next()?,
        None => descr.split(['}', '\n']).next()?,
    };
    let order = match after(text, "fortran_order")? {
        order if order.starts_with("True") => AxisOrder::FirstFastest,
        order if order.starts_with("False") => AxisOrder::LastFastest,
        _ => return None,
    };
    let (shape, _) = after(text, "shape")?.strip_prefix('(')?.split_once(')')?;
    let shape = shape.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    // Python 2 marked long integers.
    let shape = shape.map(|extent| extent.trim_end_matches('L').parse().ok());
    Some(Found { descr, order, shape: shape.collect::<Option<_>>()? })
}

/// Returns the text behind `'key':`.
fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let found = quoted.iter().find_map(|quoted| text.split_once(quoted.as_str()));
    Some(found?.1.trim_start().strip_prefix(':')?.trim_start())
}

/// Reads exactly as many bytes as `buffer` holds.
fn fill(reader: &mut impl Read, buffer: &mut [u8], file: &str) -> Result<(), FormatError> {
    reader.read_exact(buffer).map_err(|error| unreadable(error, file))
}

/// The error of a file that cannot be read to its end.
pub(super) fn unreadable(source: io::Error, file: &str) -> FormatError {
    match source.kind() {
        io::ErrorKind::UnexpectedEof => damaged(file, "it ends too early"),
        _ => FormatError::Io { action: "read", path: PathBuf::from(file), source },
    }
}

/// The error for contradicting bytes.
pub(super) fn damaged(file: &str, why: &str) -> FormatError {
    FormatError::Corrupt { file: file.to_owned(), kind: ".npy", why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_those_of_the_standard() {
        let cases = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_477_539_063e-8),
            (0x0400, 6.103_515_625e-5),
            (0x3555, 0.333_251_953_125),
            (0x7c00, f64::INFINITY),
        ];
        for (bits, want) in cases {
            assert_eq!(half(bits), want, "{bits:x}");
        }
        assert!(half(0x7e00).is_nan());
    }

    #[test]
    fn elements_of_all_kinds() {
        let number = |descr: &str, bytes: &[u8]| Element::parse(descr).unwrap().number(bytes);
        assert_eq!(number("<i2", &[0xfe, 0xff]), -2.0);
        assert_eq!(number(">i2", &[0xff, 0xfe]), -2.0);
        assert_eq!(number("|u1", &[200]), 200.0);
        assert_eq!(number("|b1", &[1]), 1.0);
        assert_eq!(number(">f8", &1.5_f64.to_be_bytes()), 1.5);
        assert_eq!(number("<u8", &[0, 0, 0, 0, 0, 0, 0, 0x80]), 2_f64.powi(63));
        for descr in ["<c16", "|S4", "<U2", "|O", "<f16", "<M8[ns]", "é"] {
            assert_eq!(Element::parse(descr), None, "{descr}");
        }
    }
}
