//! Rows of short plain numbers with AVX-512: a line is split by a few masks, and all its fields are
//! converted at once.
//!
//! 1. *Classify* the next 64 bytes: digits, white space, newline, point, minus.  Runs of digits
//!    begin and end where the mask of digits changes.
//! 2. *Check* that the line has the form of a row: the other characters are white space, but for a
//!    point between the last two runs and a minus before the value.
//! 3. *Convert*: one shuffle moves each run, right-aligned, to a lane of eight bytes; pairs of
//!    digits, then pairs of pairs are joined by multiplication, in all lanes together.
//!
//! Straight-line code: the one branch on content is the check.  The results are those of
//! [`row`](crate::io::text::row), which takes every line that is refused here: fields of more than
//! eight digits, exponents, comments, lines longer than 64 bytes, the end of the text.
#![expect(unsafe_code, reason = "code for processor features may only run where they are")]

use std::arch::x86_64::{
    __m512i, _mm_cmpgt_epi8_mask, _mm_cvtsi128_si64, _mm_set1_epi8, _mm512_add_epi8,
    _mm512_add_epi64, _mm512_castsi512_si128, _mm512_cmpeq_epi8_mask, _mm512_cmpge_epi8_mask,
    _mm512_cmpgt_epu64_mask, _mm512_cmplt_epu8_mask, _mm512_madd_epi16, _mm512_maddubs_epi16,
    _mm512_maskz_compress_epi8, _mm512_maskz_permutexvar_epi8, _mm512_mul_epu32,
    _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_set1_epi16, _mm512_set1_epi32,
    _mm512_set1_epi64, _mm512_shuffle_epi8, _mm512_srli_epi64, _mm512_sub_epi8, _pdep_u64,
};
use std::ops::Range;

use crate::io::text::number;
use crate::io::text::row::Coordinate;
use crate::io::text::row::Rows;
use crate::value::Value;

/// Bytes looked at together.
const BLOCK: usize = 64;
/// Lines of a batch.
const LINES: usize = 32;
/// The most digits of a field.
const DIGITS: i8 = 8;

/// Tells whether the processor has what [`rows`] needs.
pub(in crate::io::text) fn available() -> bool {
    is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Parses lines of `text` from `at` on into the rows from `row` on, up to the first line that is
/// not plain; returns where that is, and how many rows it parsed.
///
/// None where the processor lacks what it needs, or for more than six indices.
pub(in crate::io::text) fn rows<I: Coordinate, V: Value>(
    text: &[u8],
    at: usize,
    row: usize,
    out: &mut Rows<'_, I, V>,
) -> (usize, usize) {
    if !available() {
        return (at, 0);
    }
    // SAFETY: the processor has all features that the function enables, as was just tested.
    unsafe {
        match out.columns.len() {
            1 => rows_of::<I, V, 1>(text, at, row, out),
            2 => rows_of::<I, V, 2>(text, at, row, out),
            3 => rows_of::<I, V, 3>(text, at, row, out),
            4 => rows_of::<I, V, 4>(text, at, row, out),
            5 => rows_of::<I, V, 5>(text, at, row, out),
            6 => rows_of::<I, V, 6>(text, at, row, out),
            _ => (at, 0),
        }
    }
}

/// Plain lines, split, before their numbers are put into the columns: those loops are vector code
/// over many lines.
struct Batch {
    /// Of each line the indices, the digits before the point, and those behind it (0 if none).
    numbers: [[u64; 8]; LINES],
    /// Ten to the number of digits behind the point.
    powers: [u64; LINES],
    /// The sign bit of the value.
    signs: [u64; LINES],
}

/// Parses rows of `N` indices and a value.
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn rows_of<I: Coordinate, V: Value, const N: usize>(
    text: &[u8],
    mut at: usize,
    first: usize,
    out: &mut Rows<'_, I, V>,
) -> (usize, usize) {
    let mut batch = Batch { numbers: [[0; 8]; LINES], powers: [1; LINES], signs: [0; LINES] };
    let room = out.columns.iter().map(|column| column.len()).fold(out.values.len(), usize::min);
    let mut row = first;
    loop {
        let (mut lines, most) = (0, LINES.min(room - row));
        while lines < most
            && let Some(block) = block(text, at)
        {
            let Some(len) = split::<I, V, N>(block, lines, &mut batch) else { break };
            lines += 1;
            // Where the next line ends is seen here already: the line behind it need not wait.
            let ends = newlines(block);
            let next = (ends & ends.wrapping_sub(1)).trailing_zeros() as usize + 1;
            let both = lines < most && next <= BLOCK;
            let Some(block) = self::block(text, at + len).filter(|_| both) else {
                at += len;
                continue;
            };
            if split::<I, V, N>(block, lines, &mut batch).is_none() {
                at += len;
                break;
            }
            lines += 1;
            at += next;
        }
        put::<I, V, N>(&batch, row..row + lines, out);
        row += lines;
        if lines < LINES {
            return (at, row - first);
        }
    }
}

/// Loads the bytes from `at` on; `None` near the end of the text.
#[inline]
#[target_feature(enable = "avx512f")]
fn block(text: &[u8], at: usize) -> Option<__m512i> {
    Some(bytemuck::cast(*text.get(at..)?.first_chunk::<BLOCK>()?))
}

/// Returns which bytes are newlines.
#[inline]
#[target_feature(enable = "avx512bw")]
fn newlines(text: __m512i) -> u64 {
    _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(b'\n' as i8))
}

/// Puts the lines of a batch into `rows`.
#[inline]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn put<I: Coordinate, V: Value, const N: usize>(
    batch: &Batch,
    rows: Range<usize>,
    out: &mut Rows<'_, I, V>,
) {
    for (mode, column) in out.columns[..N].iter_mut().enumerate() {
        for (slot, numbers) in column[rows.clone()].iter_mut().zip(&batch.numbers) {
            *slot = I::short(numbers[mode] as u32);
        }
    }
    let lines = batch.numbers.iter().zip(&batch.powers).zip(&batch.signs);
    for (slot, ((numbers, &power), &sign)) in out.values[rows].iter_mut().zip(lines) {
        let size = (numbers[N] * power + numbers[N + 1]) as f64 / power as f64;
        *slot = V::from_f64(f64::from_bits(size.to_bits() | sign));
    }
}

/// Splits and converts the line at the start of `text`; `None` if it is not a plain row of `N`
/// indices and a value.
#[inline]
#[target_feature(enable = "avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn split<I: Coordinate, V: Value, const N: usize>(
    text: __m512i,
    line: usize,
    batch: &mut Batch,
) -> Option<usize> {
    let is = |byte: u8| _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(byte as i8));
    let newline = newlines(text);
    // The bits up to the newline; all of them if there is none.
    let inside = newline ^ newline.wrapping_sub(1);
    let values = _mm512_sub_epi8(text, _mm512_set1_epi8(b'0' as i8));
    let digit = _mm512_cmplt_epu8_mask(values, _mm512_set1_epi8(10)) & inside;
    // The only white space of a low nibble; 0 is of nibble 0 itself and matches no other byte.
    let spaces = bytemuck::cast([*b" \0\0\0\0\0\0\0\0\t\n\0\0\r\0\0"; 4]);
    let space = _mm512_cmpeq_epi8_mask(_mm512_shuffle_epi8(spaces, text), text);
    let starts = digit & !(digit << 1);
    let ends = inside & !digit & (digit << 1);

    let point = is(b'.') & inside & _pdep_u64(1 << N, ends);
    let minus = is(b'-') & (_pdep_u64(1 << N, starts) >> 1);
    let runs = starts.count_ones() as usize;
    let odd = (inside & !digit & !space) ^ (point | minus);
    let apart = (point << 1 & !starts) | (minus >> 1 & !space);
    let positions = bytemuck::cast(POSITIONS);
    let ends_at = _mm512_maskz_compress_epi8(ends, positions);
    let starts_at = _mm512_maskz_compress_epi8(starts, positions);
    let lengths = _mm512_castsi512_si128(_mm512_sub_epi8(ends_at, starts_at));
    let long = _mm_cmpgt_epi8_mask(lengths, _mm_set1_epi8(DIGITS));
    let value = _mm_cvtsi128_si64(lengths) as u64 >> (8 * N);
    let (whole, places) = (value as usize & 15, value as usize >> 8 & 15);
    // So many digits are exact in the type of the value, whatever they are.
    let inexact = whole + places > if V::BYTES == 4 { 7 } else { 15 };
    let wrong_runs = runs ^ (N + 1 + usize::from(point != 0));
    if (odd | apart | u64::from(long) | wrong_runs as u64 | u64::from(inexact)) != 0 || newline == 0
    {
        return None;
    }
    let numbers = numbers(values, starts_at, ends_at);
    // Eight digits fit in 32 bits.
    if I::MOST < u64::from(u32::MAX) {
        let most = _mm512_set1_epi64(I::MOST as i64);
        if _mm512_cmpgt_epu64_mask(numbers, most) & ((1 << N) - 1) != 0 {
            return None;
        }
    }
    (batch.numbers[line], batch.powers[line]) = (bytemuck::cast(numbers), number::POWERS[places]);
    batch.signs[line] = u64::from(minus != 0) << 63;
    Some(newline.trailing_zeros() as usize + 1)
}

/// Converts the runs of digits from `starts` to `ends`, the byte positions of each run, into a lane
/// of eight bytes each.
#[inline]
#[target_feature(enable = "avx512bw,avx512vbmi")]
fn numbers(values: __m512i, starts: __m512i, ends: __m512i) -> __m512i {
    let lane = bytemuck::cast(LANES);
    // Digit `b` of a lane is the one `8 - b` before the end of its run, if the run began by then.
    let from = _mm512_add_epi8(_mm512_permutexvar_epi8(lane, ends), bytemuck::cast(BACK));
    let begun = _mm512_cmpge_epi8_mask(from, _mm512_permutexvar_epi8(lane, starts));
    let digits = _mm512_maskz_permutexvar_epi8(begun, from, values);
    let pairs = _mm512_maddubs_epi16(digits, _mm512_set1_epi16(0x010a));
    let fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x0001_0064));
    let high = _mm512_mul_epu32(fours, _mm512_set1_epi64(10_000));
    _mm512_add_epi64(high, _mm512_srli_epi64::<32>(fours))
}

/// The positions of the bytes of a block.
const POSITIONS: [i8; BLOCK] = table(1, BLOCK as i8, 0);
/// The lane of each byte.
const LANES: [i8; BLOCK] = table(8, BLOCK as i8, 0);
/// The distance of each byte from the end of its lane, negative.
const BACK: [i8; BLOCK] = table(1, 8, -8);

/// Tabulates `position / divisor % modulus + shift`.
const fn table(divisor: i8, modulus: i8, shift: i8) -> [i8; BLOCK] {
    let mut table = [0; BLOCK];
    let mut position = 0;
    while position < BLOCK {
        table[position] = position as i8 / divisor % modulus + shift;
        position += 1;
    }
    table
}
