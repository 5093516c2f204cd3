//! Numbers of text files: eight digits at a time where they are short, every notation otherwise.

use crate::error::LineFault;
use crate::value::Value;

/// Indices stay below 2^63, so that extents and positions fit any 64-bit integer.
const INDEX_END: u64 = 1 << 63;

/// Exact powers of ten, indexed by the digits of a short fraction; a four-bit index needs no check.
pub(super) const POWERS: [u64; 16] = powers();

const fn powers() -> [u64; 16] {
    let mut powers = [1; 16];
    let mut places = 1;
    while places < 16 {
        powers[places] = 10 * powers[places - 1];
        places += 1;
    }
    powers
}

/// Returns the eight bytes at `at`, the first one lowest; `None` near the end of the text.
#[inline(always)]
pub(super) fn load(text: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*text.get(at..)?.first_chunk()?))
}

/// Reads the digits at the start of `word`: their value and how many there are, 0 to 8.
///
/// All eight characters are classified and converted at once: pairs of digits, then pairs of
/// pairs, by multiplication (D. Lemire, "Quickly parsing eight digits", 2018).
#[inline(always)]
pub(super) fn digits(word: u64) -> (u64, usize) {
    let ascii = word ^ 0x3030_3030_3030_3030;
    // The top bit of each byte above 9 is set; carries reach only bytes after the first of them.
    let other = (ascii.wrapping_add(0x7676_7676_7676_7676) | ascii) & 0x8080_8080_8080_8080;
    let bits = other.trailing_zeros() & !7;
    let word = ascii.checked_shl(64 - bits).unwrap_or(0);
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (low.wrapping_add(high) >> 32, bits as usize / 8)
}

/// Reads a value at `at` and returns it with the position behind it; `None` leaves the line to
/// [`value_field`].
#[inline(always)]
pub(super) fn value_at<V: Value>(text: &[u8], at: usize) -> Option<(V, usize)> {
    match short_decimal(text, at) {
        Some((value, end)) if ends_field(text, end) => Some((value, end)),
        _ => any_value(text, at),
    }
}

/// Reads `[-]digits[.digits]` of at most eight digits on either side.
///
/// Exact: the digits as an integer and the power of ten have no error, so their one division
/// rounds correctly.  For `f32` the division is done in double and rounded again, which changes
/// nothing while the integer fits 24 bits (Figueroa, "When is double rounding innocuous?", 1995).
#[inline(always)]
fn short_decimal<V: Value>(text: &[u8], at: usize) -> Option<(V, usize)> {
    let negative = *text.get(at)? == b'-';
    let start = at + usize::from(negative);
    let (whole, count) = digits(load(text, start)?);
    let mut end = start + count;
    let (mut mantissa, mut power) = (whole, 1);
    if *text.get(end)? == b'.' {
        let (fraction, places) = digits(load(text, end + 1)?);
        if count + places == 0 {
            return None;
        }
        end += 1 + places;
        power = POWERS[places];
        mantissa = whole * power + fraction;
    } else if count == 0 {
        return None;
    }
    let exact = if V::BYTES == 4 { 1 << 24 } else { 1 << 53 };
    if mantissa > exact {
        return None;
    }
    let size = mantissa as f64 / power as f64;
    Some((V::from_f64(if negative { -size } else { size }), end))
}

/// Reads a finite value in any notation.
fn any_value<V: Value>(text: &[u8], at: usize) -> Option<(V, usize)> {
    let rest = text.get(at..)?;
    let (value, len) = if V::BYTES == 4 {
        let (value, len) = fast_float2::parse_partial::<f32, _>(rest).ok()?;
        (f64::from(value), len)
    } else {
        fast_float2::parse_partial::<f64, _>(rest).ok()?
    };
    value.is_finite().then(|| (V::from_f64(value), at + len))
}

fn ends_field(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|byte| byte.is_ascii_whitespace())
}

/// Reads a whole field as a value.
pub(in crate::io) fn value_field<V: Value>(field: &[u8]) -> Result<V, LineFault> {
    let quoted = || String::from_utf8_lossy(field).into_owned();
    let number = match field {
        [b'+', b'+' | b'-', ..] => return Err(LineFault::NotANumber(quoted())),
        [b'+', rest @ ..] => rest,
        _ => field,
    };
    let wide = fast_float2::parse::<f64, _>(number).map_err(|_| LineFault::NotANumber(quoted()))?;
    let value = match V::BYTES {
        4 => fast_float2::parse::<f32, _>(number).map_or(wide, f64::from),
        _ => wide,
    };
    if value.is_finite() {
        return Ok(V::from_f64(value));
    }
    if !number.iter().any(u8::is_ascii_digit) {
        return Err(LineFault::NotFinite(quoted()));
    }
    let remedy = if wide.is_finite() { "; read the file as f64" } else { "" };
    Err(LineFault::ValueRange { text: quoted(), kind: V::NAME, remedy })
}

/// Reads a whole field as an index of mode `mode` (counted from 1): an integer, or a real that is
/// one, as NumPy's `savetxt` writes them.
pub(super) fn index_field(field: &[u8], mode: usize) -> Result<u64, LineFault> {
    let text = String::from_utf8_lossy(field).into_owned();
    let unsigned = field.strip_prefix(b"+").unwrap_or(field);
    if !unsigned.is_empty() && unsigned.iter().all(u8::is_ascii_digit) {
        let text_digits = text.trim_start_matches('+');
        let index = text_digits.parse().ok().filter(|&index: &u64| index < INDEX_END);
        return index.ok_or(LineFault::HugeIndex { mode, text });
    }
    let Ok(real) = fast_float2::parse::<f64, _>(unsigned) else {
        return Err(LineFault::NotAnIndex { mode, text });
    };
    if real.is_nan() {
        return Err(LineFault::NotAnIndex { mode, text });
    }
    if real.is_sign_negative() {
        return Err(LineFault::NegativeIndex { mode, text });
    }
    // Above 2^53 a real no longer names one integer.
    if real > (1u64 << 53) as f64 {
        return Err(LineFault::HugeIndex { mode, text });
    }
    if real.fract() != 0.0 {
        return Err(LineFault::FractionalIndex { mode, text });
    }
    Ok(real as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digits_reads_up_to_eight() {
        let check = |text: &str, want: (u64, usize)| {
            let padded = format!("{text}\u{ff}       ");
            assert_eq!(digits(load(padded.as_bytes(), 0).unwrap()), want, "{text}");
        };
        check("", (0, 0));
        check("7", (7, 1));
        check("0042", (42, 4));
        check("12345678", (12_345_678, 8));
        check("123456789", (12_345_678, 8));
        check("12:45678", (12, 2));
        check("99/9", (99, 2));
    }

    proptest! {
        #[test]
        fn short_decimals_round_as_the_standard_library(
            whole in 0u64..100_000_000,
            places in 0usize..=8,
            fraction in 0u64..100_000_000,
            negative: bool,
        ) {
            let mut text = if negative { "-".to_owned() } else { String::new() };
            text += &whole.to_string();
            if places > 0 {
                text += &format!(".{:0places$}", fraction % POWERS[places]);
            }
            let line = format!("{text}\n        ");
            let (double, end) = value_at::<f64>(line.as_bytes(), 0).unwrap();
            prop_assert_eq!((double, end), (text.parse().unwrap(), text.len()));
            let (single, _) = value_at::<f32>(line.as_bytes(), 0).unwrap();
            prop_assert_eq!(single, text.parse::<f32>().unwrap());
        }

        #[test]
        fn every_double_round_trips(value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL) {
            let text = format!("{value:e}");
            prop_assert_eq!(value_field::<f64>(text.as_bytes()).unwrap(), value);
        }
    }
}
