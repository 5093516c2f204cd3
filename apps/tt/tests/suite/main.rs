//! Tests of the whole solver.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
mod course;
mod fit;
mod kernels;
mod options;
mod reference;
mod resume;
mod sparse_svd;
