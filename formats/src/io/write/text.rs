//! Text files: lines made by all threads, written in order.

use std::io;
use std::io::Write;

use rayon::prelude::*;

use crate::coo::Coo;
use crate::io::options::Base;
use crate::io::report::Dialect;
use crate::value::Value;

/// Lines made by one task.
const ROWS: usize = 1 << 15;

/// Writes the header of `dialect` and a line for each entry.
///
/// Time `O(nnz * order)`; memory a few megabytes a thread.
pub(super) fn write<V: Value>(
    coo: &Coo<V>,
    dialect: Dialect,
    base: Base,
    out: &mut dyn Write,
) -> io::Result<()> {
    out.write_all(header(coo, dialect, base).as_bytes())?;
    let first = base.first();
    let tasks: Vec<usize> = (0..coo.nnz()).step_by(ROWS).collect();
    for batch in tasks.chunks(rayon::current_num_threads().max(1)) {
        let texts: Vec<Vec<u8>> =
            batch.par_iter().with_max_len(1).map(|&start| lines(coo, start, first)).collect();
        texts.iter().try_for_each(|text| out.write_all(text))?;
    }
    Ok(())
}

fn header<V: Value>(coo: &Coo<V>, dialect: Dialect, base: Base) -> String {
    let (order, nnz) = (coo.order(), coo.nnz());
    let extents: Vec<String> = coo.extents().iter().map(u64::to_string).collect();
    let extents = extents.join(" ");
    // A file of base 1 is read so without a word, and by programs that do not know the word.
    let start = if base == Base::Zero { " indices-start-at-zero" } else { "" };
    match dialect {
        Dialect::Plain => format!("# extents {extents}, indices from {}\n", base.first()),
        Dialect::Toolbox => format!("sptensor{start}\n{order}\n{extents}\n{nnz}\n"),
        Dialect::Parti => format!("{order}\n{extents}\n"),
        Dialect::ExtendedFrostt => {
            format!("# extended FROSTT format\n{order} {nnz}\n{extents}\n")
        }
        Dialect::MatrixMarket => {
            let object = if order == 2 { "matrix" } else { "tensor" };
            format!("%%MatrixMarket {object} coordinate real general\n{extents} {nnz}\n")
        }
    }
}

/// Makes the lines of the entries from `start` on.
fn lines<V: Value>(coo: &Coo<V>, start: usize, first: u64) -> Vec<u8> {
    let end = coo.nnz().min(start + ROWS);
    let mut text = Vec::with_capacity((end - start) * (8 * coo.order() + 12));
    for entry in start..end {
        for mode in 0..coo.order() {
            push_integer(&mut text, coo.coords(mode).get(entry) + first);
            text.push(b' ');
        }
        push_value(&mut text, coo.values()[entry]);
        text.push(b'\n');
    }
    text
}

fn push_integer(text: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[first..]);
}

/// Writes the shortest digits that read back as `value`; with an exponent where the plain form
/// would be long.
fn push_value<V: Value>(text: &mut Vec<u8>, value: V) {
    let size = value.to_f64().abs();
    let plain = size == 0.0 || (1e-5..1e16).contains(&size);
    // Writing to memory cannot fail.
    let _ = match (V::BYTES, plain) {
        (4, true) => write!(text, "{}", value.to_f64() as f32),
        (4, false) => write!(text, "{:e}", value.to_f64() as f32),
        (_, true) => write!(text, "{}", value.to_f64()),
        (_, false) => write!(text, "{:e}", value.to_f64()),
    };
}
