//! SPLATT's text: `lambda.mat`, one weight a line, and `modeN.mat`, one row of N's factor a line.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use decompose_formats::Value;

use crate::error::CommonError;
use crate::files;
use crate::model::CpModel;

/// Writes `lambda.mat`, `mode1.mat`, ...
pub(super) fn write<V: Value>(
    model: &CpModel<V>,
    folder: &Path,
) -> Result<Vec<PathBuf>, CommonError> {
    let lambda = folder.join("lambda.mat");
    files::replace(&lambda, |out| {
        model.weights().iter().try_for_each(|&weight| writeln!(out, "{}", c_exponent(weight)))
    })?;
    let mut written = vec![lambda];
    for (factor, mode) in model.factors().iter().zip(1..) {
        let path = folder.join(format!("mode{mode}.mat"));
        files::replace(&path, |out| {
            (0..factor.rows()).try_for_each(|i| write_row(out, factor.row(i)))
        })?;
        written.push(path);
    }
    Ok(written)
}

/// Writes a row of numbers, each with 17 digits and its sign, separated by spaces.
fn write_row<V: Value>(out: &mut impl Write, row: &[V]) -> io::Result<()> {
    for (column, value) in row.iter().enumerate() {
        let sign = if value.to_f64().is_sign_negative() { "" } else { "+" };
        let sep = if column == 0 { "" } else { " " };
        write!(out, "{sep}{sign}{}", c_exponent(value.to_f64()))?;
    }
    writeln!(out)
}

/// Prints 17 digits as C's `%.16e` does: an exponent with a sign and at least two digits.
pub(super) fn c_exponent(value: f64) -> String {
    let text = format!("{value:.16e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}
