//! Options that several functions have.

use std::sync::OnceLock;
use std::time::Duration;

use decompose_common::memory::{foresee, limit, set_limit};
use decompose_common::stopping::StopRule;
use decompose_core::kernels::MAX_ORDER;
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

/// Copies of a model that a solver holds: the start, the best so far, and what it works in.
const COPIES: u64 = 4;

/// Refuses a tensor of too many modes, and a model that memory does not hold: `ranks` are one for all modes, or those
/// of the modes or bonds.
///
/// # Errors
///
/// [`Fault::Input`] or [`SolverError::Memory`], before anything is taken.
pub(crate) fn check_room(
    extents: &[u64],
    ranks: &[usize],
    value_bytes: usize,
) -> Result<(), Fault> {
    if extents.len() > MAX_ORDER {
        let order = extents.len();
        return Err(Fault::Input(format!("{order} modes; up to {MAX_ORDER} are supported")));
    }
    // What the machine has left now is the limit of all steps that follow.
    set_limit(limit(None));
    let most = ranks.iter().copied().max().unwrap_or(1) as u64;
    let rows = extents.iter().fold(0_u64, |sum, &extent| sum.saturating_add(extent));
    let numbers = rows.saturating_mul(most).saturating_mul(COPIES);
    let bytes = numbers.saturating_mul(value_bytes as u64);
    let what = || format!("a model of {rows} rows of {most}");
    Ok(foresee(bytes, what, "lower the rank, or number the indices of a mode without gaps")?)
}

/// Refuses to work in a process that was forked after the threads had started: they do not live on in it.
///
/// # Errors
///
/// [`Fault::Internal`] with the remedy.
pub(crate) fn check_process() -> Result<(), Fault> {
    static FIRST: OnceLock<u32> = OnceLock::new();
    let own = std::process::id();
    match *FIRST.get_or_init(|| own) == own {
        true => Ok(()),
        false => Err(Fault::Internal(
            "this process was forked after decompose had started its threads, which do not live on in it; use \
             multiprocessing.get_context(\"spawn\")"
                .into(),
        )),
    }
}

/// Reads a time.
fn seconds(number: f64) -> Result<Duration, Fault> {
    Duration::try_from_secs_f64(number)
        .map_err(|_| Fault::Input(format!("max_time is {number}; use seconds from 0 on")))
}
