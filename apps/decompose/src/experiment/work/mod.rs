//! How a study is run.
//!
//! ```text
//! folder    study.json, runs/, tensors/, and the lock       tensors  made and hashed
//! foresee   seconds and memory of runs, before they begin   child    a run as a process
//! outcome   how a run ended, beside its files               clock    what is left
//! execute   all runs, so that those that are timed are alone
//! ```

pub(crate) mod child;
pub(crate) mod clock;
pub(crate) mod execute;
pub(crate) mod folder;
pub(crate) mod foresee;
pub(crate) mod outcome;
pub(crate) mod tensors;
