//! Tests of Tucker decompositions, by what they are about.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
mod course;
mod fit;
mod hosvd;
mod nonnegative;
mod options;
mod reference;
mod resume;
mod subspace;
