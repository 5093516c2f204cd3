//! Options that several functions have.

use std::time::Duration;

use decompose_common::stopping::StopRule;
use pyo3::prelude::*;

use crate::fault::Fault;

/// When iterations end, and what they run on.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Course {
    pub(crate) seed: u64,
    pub(crate) restarts: usize,
    tol: f64,
    max_iters: usize,
    max_time: Option<f64>,
    pub(crate) threads: Option<usize>,
    pub(crate) callback: Option<Py<PyAny>>,
}

impl Course {
    /// Returns the limits.
    ///
    /// # Errors
    ///
    /// A time that is none.
    pub(crate) fn stop(&self) -> Result<StopRule, Fault> {
        let max_time = self.max_time.map(seconds).transpose()?;
        Ok(StopRule { tol: self.tol, max_iters: self.max_iters, max_time })
    }
}

/// Reads a time.
fn seconds(number: f64) -> Result<Duration, Fault> {
    Duration::try_from_secs_f64(number)
        .map_err(|_| Fault::Input(format!("max_time is {number}; use seconds from 0 on")))
}
