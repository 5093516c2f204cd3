//! Rounds in which configurations run one after the other, so that all meet the same machine.

use decompose_common::interrupt;
use decompose_common::progress::Screen;

use crate::bench::record::{Key, Record, Sample};
use crate::cli::Done;
use crate::failure::Failure;

/// Something that can be run again and again.
pub(crate) trait Runner {
    /// Runs once; returns what was measured, in seconds.
    ///
    /// # Errors
    ///
    /// Whatever can go wrong.
    fn run(&mut self) -> Result<Vec<(Key, f64)>, Failure>;
}

/// Warms every runner up, then runs them in turn for `rounds` rounds; stops in good order when the
/// user asks for it.
///
/// # Errors
///
/// That of the first runner which fails.
pub(crate) fn take<R: Runner + ?Sized>(
    runners: &mut [Box<R>],
    rounds: usize,
    record: &mut Record,
    screen: &mut Screen,
) -> Result<Done, Failure> {
    screen.start_iterations(rounds);
    for round in 0..=rounds {
        let mut samples = Vec::new();
        for runner in runners.iter_mut() {
            if interrupt::requested() {
                screen.stop();
                return Ok(Done::Interrupted);
            }
            let measured = runner.run()?;
            samples.extend(measured.into_iter().map(|(key, seconds)| Sample {
                round,
                key,
                seconds,
            }));
        }
        // The first round warms up.
        if round > 0 {
            record.samples.extend(samples);
            screen.iteration(round, String::new());
        }
    }
    screen.stop();
    Ok(Done::Complete)
}
