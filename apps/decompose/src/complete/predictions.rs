//! What the model says of the entries that judge it.

use std::io::Write;
use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_complete::{Parts, Quality, values_at};
use decompose_formats::Coo;

use crate::complete::settings::Settings;
use crate::complete::solve::Solved;
use crate::failure::Failure;

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

    /// Writes `predictions.csv`: indices from 1, observed, predicted.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> Result<PathBuf, Failure> {
        let path = folder.join("predictions.csv");
        let order = self.entries.order();
        files::replace(&path, |out| {
            (1..=order).try_for_each(|mode| write!(out, "mode_{mode},"))?;
            writeln!(out, "observed,predicted")?;
            for (entry, (observed, predicted)) in self.pairs().enumerate() {
                for mode in 0..order {
                    write!(out, "{},", self.entries.coords(mode).get(entry) + 1)?;
                }
                writeln!(out, "{observed},{predicted}")?;
            }
            Ok(())
        })?;
        Ok(path)
    }
}
