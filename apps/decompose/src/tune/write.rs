//! The files of a tuning.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_core::cost::Machine;

use crate::failure::Failure;
use crate::tune::measure::{Measured, MeasuredCase};

/// Writes machine.toml, with `comments` at its head, and timings.csv into `folder`.
pub(super) fn all(
    folder: &Path,
    measured: &Measured,
    machine: &Machine,
    comments: &[String],
) -> Result<Vec<PathBuf>, Failure> {
    let (cases, runs) = measured.counts();
    let mut text = format!(
        "# Costs on {}, fitted by `decompose tune` to {runs} loop orders of {cases} kernels in timings.csv.\n",
        machine.name
    );
    comments.iter().for_each(|comment| text += &format!("# {comment}.\n"));
    text += &format!("\n{}", machine.constants());
    let files = [("machine.toml", text), ("timings.csv", timings(measured))];
    let mut written = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        files::replace(&path, |out| out.write_all(text.as_bytes()))?;
        written.push(path);
    }
    Ok(written)
}

/// Lists the runs, and which schedulers chose them.
fn timings(measured: &Measured) -> String {
    let mut text =
        "kernel,operand,nonzeros,loops,levels,seconds,known,schedulers,search_us\n".to_owned();
    measured.cases.iter().for_each(|case| add_case(&mut text, case));
    text
}

fn add_case(text: &mut String, case: &MeasuredCase) {
    for (at, variant) in case.variants.iter().enumerate() {
        let chosen: Vec<_> = case.choices.iter().filter(|choice| choice.variant == at).collect();
        let names: Vec<&str> = chosen.iter().map(|choice| choice.scheduler).collect();
        let micros = chosen.iter().map(|choice| format!("{:.0}", choice.search_seconds * 1e6));
        let levels = variant
            .problem
            .sparse
            .iter()
            .map(|x| x.levels().iter().map(ToString::to_string).collect::<Vec<_>>().join(""));
        let terms = variant.schedule.path.terms.len();
        let loops = variant.schedule.nest.orders(terms).unwrap_or_default();
        let loops = loops
            .iter()
            .map(|order| order.iter().map(ToString::to_string).collect::<Vec<_>>().join(""));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{},{},{},{},{},{:.3e},{},{},{}",
            case.kernel,
            case.operand,
            case.list.nnz(),
            loops.collect::<Vec<_>>().join(" "),
            levels.collect::<Vec<_>>().join(" "),
            variant.seconds,
            if variant.ran { "measured" } else { "predicted" },
            names.join("+"),
            micros.collect::<Vec<_>>().join("+")
        );
    }
}
