//! What all solver commands share: options, reading, progress, history, forecast, record, figures.
//!
//! ```text
//! args      what is typed          settings  completed by defaults
//! tensor    file -> sorted list    memory    the forecast of the peak
//! console   lines and events       journal   history on disk, Ctrl-C
//! record    run.json               figures   convergence, timing
//! kernels   their C, their runs    components  of any model, as a figure
//! plan      trees and merges       finish    all files and the result
//! reading   the size of a list     summary   the last lines
//! strongest components.csv             preview   a tensor for many forecasts
//! ```
//!
//! A command adds its own options, its plan, its solver and its model files.

pub(crate) mod args;
pub(crate) mod components;
pub(crate) mod console;
pub(crate) mod figures;
mod finish;
pub(crate) mod journal;
pub(crate) mod kernels;
pub(crate) mod memory;
pub(crate) mod merges;
pub(crate) mod plan;
pub(crate) mod preview;
pub(crate) mod reading;
pub(crate) mod record;
pub(crate) mod settings;
pub(crate) mod strongest;
mod summary;
pub(crate) mod tensor;

use decompose_common::interrupt;
use rayon::ThreadPoolBuilder;

use crate::failure::Failure;

pub(crate) use crate::run::finish::{Desk, Ended, RunFacts, Written, finish, while_freeing};

/// Wall times of the phases, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phases(pub(crate) Vec<(&'static str, f64)>);

impl Phases {
    /// Appends a phase.
    pub(crate) fn add(&mut self, name: &'static str, seconds: f64) {
        self.0.push((name, seconds));
    }
}

/// Begins a run: from now on an interrupt says that nothing is written, and `threads` threads are there.
///
/// # Errors
///
/// If the system refuses the threads.
pub(crate) fn begin(threads: usize) -> Result<(), Failure> {
    interrupt::announce();
    start_threads(threads)
}

/// Starts the threads of this process.
///
/// # Errors
///
/// If the system refuses.
pub(crate) fn start_threads(count: usize) -> Result<(), Failure> {
    ThreadPoolBuilder::new()
        .num_threads(count)
        .build_global()
        .map_err(|error| Failure::input(format!("cannot start the threads: {error}")))
}
