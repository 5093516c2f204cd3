//! From a file to a sorted list without duplicates.

use decompose_common::SolverError;
use decompose_common::memory;
use decompose_formats::io::{Format, ReadReport};
use decompose_formats::{Coo, Unit, Value};
use serde_json::json;

use crate::failure::Failure;
use crate::input::Input;
use crate::labels::{self, ModeLabels};
use crate::run::console::Console;
use crate::run::settings::RunSettings;

/// What was found in the file.
pub(crate) struct TensorFacts {
    pub(crate) report: ReadReport,
    pub(crate) blake3: Option<String>,
    /// Non-zeros after merging.
    pub(crate) nnz: u64,
    /// Entries merged into others.
    pub(crate) merged: u64,
    /// Names of modes and indices.
    pub(crate) labels: Vec<ModeLabels>,
}

/// Reads the tensor, sorts it by its natural order and merges duplicates.
///
/// `admit` sees it before it is sorted: it checks the options that depend on order and extents
/// and refuses a run that would not fit; what it returns - a forecast - is handed on.
///
/// # Errors
///
/// Everything that can be wrong with the input; nothing is written.
pub(crate) fn load<V: Value, T>(
    settings: &RunSettings,
    console: &mut Console,
    admit: impl FnOnce(&Coo<V>, Format) -> Result<T, Failure>,
) -> Result<(Coo<V>, TensorFacts, T), Failure> {
    memory::set_limit(memory::limit(settings.max_memory));
    settings.ask_compiler();
    let mut input = settings.input.read::<V>(&mut console.screen)?;
    console.event("read", json!(input.report))?;
    console.phases.add("read", input.read_seconds);
    if let Some(seconds) = input.hash_seconds {
        console.phases.add("hash", seconds);
    }
    let labels = labels(settings, &input.tensor, console)?;
    let admitted = admit(&input.tensor, input.report.format)?;
    let (merged, seconds) = input.tidy(settings.duplicates(), &mut console.screen)?;
    if let Some(warning) = settings.input.warning_of(merged) {
        console.screen.warn(warning);
    }
    console.phases.add("sort", seconds);
    console.event("sort", json!({ "entries": input.tensor.nnz(), "merged": merged }))?;
    let Input { tensor, report, blake3, .. } = input;
    let facts = TensorFacts { report, blake3, nnz: tensor.nnz() as u64, merged, labels };
    Ok((tensor, facts, admitted))
}

/// Divides the values of a tensor by their unit, so that sums of their squares stay in range, and says so where they
/// are far from one; returns both.
///
/// # Errors
///
/// If all values are zero, in the precision of the run.
pub(crate) fn in_unit<V: Value>(
    tensor: Coo<V>,
    file: &str,
    console: &Console,
) -> Result<(Coo<V>, Unit), Failure> {
    let unit = tensor.unit();
    if tensor.all_values(|value| value == 0.0) {
        let zero = Failure::input(format!("{file}: {}", SolverError::ZeroTensor));
        let single = "values below 1e-45 are zero in single precision; if the file has such, use --precision f64";
        return Err(if V::BYTES == 4 { zero.help(single) } else { zero });
    }
    if unit != Unit::ONE {
        console
            .screen
            .line(format!("scale    values are divided by {unit}, and models multiplied"));
    }
    Ok((tensor.divided_by(unit), unit))
}

fn labels<V: Value>(
    settings: &RunSettings,
    tensor: &Coo<V>,
    console: &Console,
) -> Result<Vec<ModeLabels>, Failure> {
    let (file, name) = (&settings.input.file, settings.input.name());
    let (labels, warnings) = labels::find(file, &name, &settings.labels, tensor.extents())?;
    for warning in &warnings {
        console.screen.warn(warning);
    }
    labels::told(&labels).into_iter().for_each(|line| console.screen.line(line));
    Ok(labels)
}
