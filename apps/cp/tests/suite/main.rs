//! Tests of the CP solver on plain kernels, so that a failure is the solver's own.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod acceptance;
mod common;
mod course;
mod fit;
mod options;
mod reference;
mod resume;
mod robust;
