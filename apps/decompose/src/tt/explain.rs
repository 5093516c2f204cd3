//! The plan in full, for `--explain`.

use decompose_formats::Value;
use decompose_tt::KernelNote;

use crate::failure::Failure;
use crate::stdout;
use crate::tt::prepare::{Prepared, Work};
use crate::tt::settings::joined;

/// Prints the order of the modes, the trees, and the schedule of each kernel with its C code.
///
/// # Errors
///
/// If standard output cannot be written.
pub(crate) fn print<V: Value>(prepared: &Prepared<V>) -> Result<(), Failure> {
    let facts = &prepared.facts;
    stdout::line(format!(
        "order: modes {} with ranks of at most {} ({:.3e} numbers)",
        facts.ordering.order,
        joined(&facts.ordering.ranks, "-"),
        facts.ordering.parameters
    ))?;
    stdout::line(format!("trees: {} in train order", joined(&facts.plan.trees, ", ")))?;
    match &prepared.work {
        Work::Sweeps(kernels, _) if kernels.notes().is_empty() => stdout::line(
            "kernels: scheduled when the ranks are known, each pair of neighbours by a contraction \
             with all other cores",
        ),
        Work::Sweeps(kernels, _) => kernels.notes().iter().try_for_each(print_kernel),
        Work::Direct(..) => stdout::line(
            "svd: singular vectors of the unfolding at each bond, from its columns that are not \
             empty; one TTTc to verify the error",
        ),
    }
}

fn print_kernel(note: &KernelNote) -> Result<(), Failure> {
    let (core, ranks) = (note.left_out.from + 1, joined(&note.ranks, "-"));
    stdout::line(format!(
        "core {core} on tree {}: {} (ranks {ranks})",
        note.tree, note.expression
    ))?;
    note.schedule.lines().try_for_each(|line| stdout::line(format!("    {line}")))?;
    stdout::line(format!("    cost     {}", note.cost))?;
    stdout::line(format!("    predicted {:.2e} s", note.predicted_seconds))?;
    stdout::line(format!("    search   {}", note.search))?;
    match &note.source {
        Some(source) => {
            stdout::line(format!("    C        {} ({})", source.display(), note.origin))
        }
        None => stdout::line("    interpreted"),
    }
}
