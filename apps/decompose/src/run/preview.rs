//! A tensor that is read once, for the checks and forecasts of many runs.

use std::time::{Duration, Instant};

use decompose_common::progress::{Screen, Verbosity};
use decompose_formats::{Coo, PatternCounts};

use crate::failure::Failure;
use crate::input::InputArgs;
use crate::labels;
use crate::run::settings::RunSettings;

/// The tensor that the last run asked for.
pub(crate) struct Preview {
    begun: Instant,
    /// How long runs are planned; those after it are only checked.
    most_time: Duration,
    held: Option<(InputArgs, Result<Previewed, Failure>)>,
}

/// A sorted tensor.
#[derive(Clone)]
pub(crate) struct Previewed {
    pub(crate) tensor: Coo<f64>,
    pub(crate) counts: PatternCounts,
    /// Seconds to read, sort and count it.
    pub(crate) seconds: f64,
}

impl Preview {
    /// Returns one that holds nothing yet.
    pub(crate) fn new(most_time: Duration) -> Preview {
        Preview { begun: Instant::now(), most_time, held: None }
    }

    /// Tells whether there is time for what takes some.
    pub(crate) fn has_time(&self) -> bool {
        self.begun.elapsed() <= self.most_time
    }

    /// Returns the tensor of a run, whose labels are checked.
    ///
    /// # Errors
    ///
    /// A tensor that cannot be read, or labels that do not fit it.
    pub(crate) fn of(&mut self, settings: &RunSettings) -> Result<&Previewed, Failure> {
        let input = &settings.input;
        if self.held.as_ref().is_none_or(|(held, _)| held != input) {
            // One at a time: forecasts count what the process holds.
            self.held = None;
            self.held = Some((input.clone(), Previewed::read(input)));
        }
        let Some((_, held)) = &self.held else {
            return Err(Failure::internal("the tensor of a forecast is gone"));
        };
        let held = held.as_ref().map_err(Failure::clone)?;
        labels::find(&input.file, &input.name(), &settings.labels, held.tensor.extents())?;
        Ok(held)
    }
}

impl Previewed {
    fn read(input: &InputArgs) -> Result<Previewed, Failure> {
        let begun = Instant::now();
        let mut screen = Screen::new(Verbosity::Quiet);
        let mut read = input.read::<f64>(&mut screen)?;
        read.tidy(input.duplicates(), &mut screen)?;
        let counts = PatternCounts::of(&read.tensor);
        Ok(Previewed { tensor: read.tensor, counts, seconds: begun.elapsed().as_secs_f64() })
    }
}
