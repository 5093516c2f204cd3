//! From a tensor expression to a running kernel.

pub mod error;
pub mod plot;
pub mod sweep;
