//! The singular values at each bond, as a table and as a figure.

use std::io::Write;
use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_plot::{Spectra, Spectrum};

use crate::failure::Failure;

/// Writes `spectra.csv`: the singular values at each bond, and whether they were kept.
///
/// # Errors
///
/// If it cannot be written.
pub(crate) fn write(
    spectra: &[Vec<f64>],
    ranks: &[usize],
    folder: &Path,
) -> Result<PathBuf, Failure> {
    let path = folder.join("spectra.csv");
    files::replace(&path, |out| {
        writeln!(out, "bond,number,singular_value,kept")?;
        for ((values, &rank), bond) in spectra.iter().zip(ranks).zip(1..) {
            for (value, number) in values.iter().zip(1..) {
                writeln!(out, "{bond},{number},{value:e},{}", number <= rank)?;
            }
        }
        Ok(())
    })?;
    Ok(path)
}

/// Returns the figure of singular values by bond, of which `ranks` were kept.
pub(crate) fn figure(title: String, spectra: &[Vec<f64>], ranks: &[usize]) -> Spectra {
    let line = |((values, &kept), bond): ((&Vec<f64>, &usize), usize)| Spectrum {
        name: format!("bond {bond}"),
        values: values.clone(),
        kept,
        all: values.len(),
        left_out: None,
    };
    let spectra = spectra.iter().zip(ranks).zip(1..).map(line).collect();
    Spectra { title, value_name: "singular value".into(), spectra }
}
