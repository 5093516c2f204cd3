//! The files of a run: models and scores.

use decompose_common::model::{self, ModelFormat};
use decompose_formats::Value;

use crate::cp::settings::Settings;
use crate::cp::solve::Solved;
use crate::failure::Failure;
use crate::labels::ModeLabels;
use crate::run::{Desk, Written, record};

/// Writes models and scores, the model for this program first.
///
/// # Errors
///
/// If the model cannot be written.
pub(crate) fn results<V: Value>(
    settings: &Settings,
    (solved, labels): (&Solved<V>, &[ModeLabels]),
    desk: &Desk<'_>,
) -> Result<Written, Failure> {
    let outcome = &solved.outcome;
    let mut written = desk.model(model::write(&outcome.model, desk.folder, ModelFormat::Npz))?;
    let others = settings.formats.iter().filter(|&&format| format != ModelFormat::Npz);
    let labels: Vec<&[String]> = labels.iter().map(|mode| mode.indices.as_slice()).collect();
    others.for_each(|&format| {
        written.add(match format {
            ModelFormat::Csv => model::write_csv(&outcome.model, desk.folder, &labels),
            _ => model::write(&outcome.model, desk.folder, format),
        });
    });
    if outcome.restarts.len() > 1 {
        let scores = Some(&outcome.match_scores);
        written.add(record::restarts(&outcome.restarts, scores, desk.folder).map(Some));
    }
    Ok(written)
}
