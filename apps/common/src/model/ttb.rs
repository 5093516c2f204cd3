//! The Tensor Toolbox's text of a `ktensor`:
//!
//! ```text
//! ktensor
//! N
//! I_1 ... I_N
//! R
//! weight_1 ... weight_R
//! matrix            (N times; GenTen writes `facmatrix`)
//! 2
//! I_n R
//! row 1
//! ...
//! ```

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use decompose_formats::{Matrix, Value};

use crate::error::CommonError;
use crate::files;
use crate::model::CpModel;
use crate::model::splatt::c_exponent;

/// Writes `model.ktensor`.
pub(super) fn write<V: Value>(
    model: &CpModel<V>,
    folder: &Path,
) -> Result<Vec<PathBuf>, CommonError> {
    let path = folder.join("model.ktensor");
    files::replace(&path, |out| {
        writeln!(out, "ktensor\n{}", model.factors().len())?;
        write_line(out, model.extents())?;
        writeln!(out, "{}", model.rank())?;
        write_line(out, model.weights().iter().copied().map(c_exponent))?;
        for factor in model.factors() {
            writeln!(out, "matrix\n2\n{} {}", factor.rows(), factor.cols())?;
            for i in 0..factor.rows() {
                write_line(out, factor.row(i).iter().map(|x| c_exponent(x.to_f64())))?;
            }
        }
        Ok(())
    })?;
    Ok(vec![path])
}

fn write_line(
    out: &mut impl Write,
    words: impl IntoIterator<Item = impl std::fmt::Display>,
) -> io::Result<()> {
    for (count, word) in words.into_iter().enumerate() {
        let sep = if count == 0 { "" } else { " " };
        write!(out, "{sep}{word}")?;
    }
    writeln!(out)
}

/// Reads a `ktensor`; line breaks count as any other white space.
pub(super) fn read<V: Value>(path: &Path) -> Result<CpModel<V>, CommonError> {
    let bytes = fs::read(path).map_err(|source| CommonError::io("read", path, source))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| CommonError::content(path, "neither an npz file nor a ktensor text"))?;
    let mut words = Words { path, words: words(&text) };
    words.keyword(&["ktensor"])?;
    let order: usize = words.number()?;
    let extents = (0..order).map(|_| words.number()).collect::<Result<Vec<usize>, _>>()?;
    let rank: usize = words.number()?;
    let weights = (0..rank).map(|_| words.number()).collect::<Result<Vec<f64>, _>>()?;
    let mut factors = Vec::new();
    for (&extent, mode) in extents.iter().zip(1..) {
        factors.push(read_factor(&mut words, mode, extent, rank)?);
    }
    if let Some((line, word)) = words.words.next() {
        return Err(words.fault(line, format!("expected the end of the file, found `{word}`")));
    }
    CpModel::new(weights, factors).map_err(|error| CommonError::content(path, error.to_string()))
}

/// Reads factor `mode`, of `rows` rows and `cols` columns.
fn read_factor<'a, V: Value>(
    words: &mut Words<'a, impl Iterator<Item = (usize, &'a str)>>,
    mode: usize,
    rows: usize,
    cols: usize,
) -> Result<Matrix<V>, CommonError> {
    words.keyword(&["matrix", "facmatrix"])?;
    words.keyword(&["2"])?;
    for (what, expected) in [("rows", rows), ("columns", cols)] {
        let (line, word) = words.next()?;
        if word.parse() != Ok(expected) {
            let why = format!("factor {mode} has {word} {what}, the header promises {expected}");
            return Err(words.fault(line, why));
        }
    }
    let mut factor = Matrix::zeros(rows, cols)?;
    for i in 0..rows {
        for value in factor.row_mut(i) {
            *value = V::from_f64(words.number()?);
        }
    }
    Ok(factor)
}

/// The words of a text with the lines they stand on.
struct Words<'p, W> {
    path: &'p Path,
    words: W,
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().zip(1..).flat_map(|(text, line)| text.split_whitespace().map(move |w| (line, w)))
}

impl<'a, W: Iterator<Item = (usize, &'a str)>> Words<'_, W> {
    fn next(&mut self) -> Result<(usize, &'a str), CommonError> {
        let end = "the file ends before the model is complete; was it cut off?";
        self.words.next().ok_or_else(|| CommonError::content(self.path, end))
    }

    fn keyword(&mut self, accepted: &[&str]) -> Result<(), CommonError> {
        let (line, word) = self.next()?;
        if accepted.contains(&word) {
            return Ok(());
        }
        Err(self.fault(line, format!("expected `{}`, found `{word}`", accepted[0])))
    }

    fn number<T: FromStr>(&mut self) -> Result<T, CommonError> {
        let (line, word) = self.next()?;
        word.parse()
            .map_err(|_| self.fault(line, format!("`{word}` is not a number of this place")))
    }

    fn fault(&self, line: usize, why: String) -> CommonError {
        CommonError::Line { path: self.path.to_owned(), line, why }
    }
}
