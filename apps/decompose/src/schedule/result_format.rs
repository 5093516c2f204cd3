//! The format of a result: an array, or a list.

use decompose_core::contract::ResultForm;
use decompose_core::einsum::{Access, Index, IndexSet};
use decompose_core::schedule::{Format, LevelKind};

use crate::failure::Failure;

/// Returns a format as the option has it.
pub(crate) fn typed(name: &str, format: &Format) -> String {
    format!("{name}={}", format.to_string().replace(' ', ","))
}

/// Returns the formats that are not of a result.
pub(crate) fn operand_formats(
    given: &[(String, Format)],
    is_result: impl Fn(&str) -> bool,
) -> Vec<(String, Format)> {
    given.iter().filter(|(name, _)| !is_result(name)).cloned().collect()
}

/// Refuses an array for a result with the pattern of an operand.
pub(crate) fn refuse_array(output: &str) -> Failure {
    Failure::input(format!("--format: {output} has the pattern of an operand, and is a list"))
        .help("leave its levels compressed")
}

/// Returns the form of `output` by the format that the user gave it, if there is one.
///
/// # Errors
///
/// A second format, indices that are not those of the output in its order, and levels of which some are dense.
pub(crate) fn result_form(
    output: &Access,
    given: &[(String, Format)],
) -> Result<Option<ResultForm>, Failure> {
    let name = &output.tensor;
    let mut own = given.iter().filter(|(given, _)| given == name).map(|(_, format)| format);
    let Some(format) = own.next() else { return Ok(None) };
    let refuse = |why: String| Failure::input(format!("--format {}: {why}", typed(name, format)));
    if own.next().is_some() {
        return Err(refuse(format!("{name} has a format already")).help("give one of them"));
    }
    if output.indices.is_empty() {
        return Err(refuse(format!("{output} is a single number")).help("leave this format out"));
    }
    if format.levels() != output.indices {
        let set = |indices: &[Index]| indices.iter().copied().collect::<IndexSet>();
        if set(format.levels()) != output.set() || format.levels().len() != output.indices.len() {
            return Err(refuse(format!("list each index of {output} once")));
        }
        let why = format!("a result is stored in the order of its indices, {output}");
        return Err(refuse(why).help("write the result with its indices in another order"));
    }
    let dense = format.kinds().iter().filter(|kind| **kind == LevelKind::Dense).count();
    let located = [LevelKind::Bitmap, LevelKind::Hashed];
    match dense {
        0 if !format.kinds().iter().any(|kind| located.contains(kind)) => {
            Ok(Some(ResultForm::Sparse))
        }
        all if all > 0 && all == format.levels().len() => Ok(Some(ResultForm::Dense)),
        _ => {
            let example = |kind: &str| {
                let levels = output.indices.iter().map(|index| format!("{index}{kind}"));
                levels.collect::<Vec<String>>().join(",")
            };
            let (array, list) = (example(":dense"), example(""));
            Err(refuse("a result is an array or a list".into())
                .help(format!("write {name}={array} for an array, {name}={list} for a list")))
        }
    }
}
