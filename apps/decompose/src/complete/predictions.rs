//! What the model says of the entries that judge it.

use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_complete::{Parts, Quality, values_at};
use decompose_formats::Coo;

use crate::complete::settings::Settings;
use crate::complete::solve::Solved;
use crate::failure::Failure;
use crate::labels::ModeLabels;

/// Entries with their predictions.
pub(crate) struct Predictions {
    /// Which part they are: `test`, or `validation` where there is no test.
    pub(crate) part: &'static str,
    entries: Coo<f64>,
    predicted: Vec<f64>,
}

impl Predictions {
    /// Predicts the test entries, or without them the validation entries; `None` without either.
    ///
    /// # Errors
    ///
    /// If a kernel fails.
    pub(crate) fn of(
        settings: &Settings,
        solved: &Solved,
        parts: &Parts,
    ) -> Result<Option<Predictions>, Failure> {
        let test = parts.test.as_ref().map(|part| ("test", part));
        let Some((part, tensor)) = test.or(parts.val.as_ref().map(|part| ("validation", part)))
        else {
            return Ok(None);
        };
        let outcome = &solved.outcome;
        let (entries, values) =
            values_at(tensor, &outcome.network, &outcome.blocks, &settings.toolchain())?;
        let loss = settings.loss();
        let predicted = values.iter().map(|value| loss.mean(value + outcome.offset)).collect();
        Ok(Some(Predictions { part, entries, predicted }))
    }

    /// Compares them with what was observed.
    pub(crate) fn quality(&self) -> Quality {
        Quality::of(self.entries.values(), &self.predicted)
    }

    /// Returns observed and predicted values.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (f64, f64)> {
        self.entries.values().iter().copied().zip(self.predicted.iter().copied())
    }

    /// Writes `predictions.csv`: indices from 1, observed, predicted, and of modes with labels those.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn write(&self, folder: &Path, labels: &[ModeLabels]) -> Result<PathBuf, Failure> {
        let path = folder.join("predictions.csv");
        let order = self.entries.order();
        files::replace(&path, |out| {
            let named = labels.iter().enumerate().filter(|(_, mode)| !mode.indices.is_empty());
            let named: Vec<(usize, &ModeLabels)> = named.collect();
            let mut table = csv::Writer::from_writer(out);
            let modes = (1..=order).map(|mode| format!("mode_{mode}"));
            let ends = named.iter().map(|(mode, _)| format!("label_{}", mode + 1));
            let values = ["observed", "predicted"].map(str::to_owned);
            table.write_record(modes.chain(values).chain(ends)).map_err(files::table_error)?;
            for (entry, (observed, predicted)) in self.pairs().enumerate() {
                let index = |mode: usize| self.entries.coords(mode).get(entry);
                let indices = (0..order).map(|mode| (index(mode) + 1).to_string());
                let values = [observed, predicted].map(|value| value.to_string());
                // Held-out entries may have indices that the tensor and its labels do not.
                let label = |&(mode, labels): &(usize, &ModeLabels)| {
                    labels.at(index(mode) as usize).unwrap_or_default().to_owned()
                };
                let line = indices.chain(values).chain(named.iter().map(label));
                table.write_record(line).map_err(files::table_error)?;
            }
            table.flush()
        })?;
        Ok(path)
    }
}
