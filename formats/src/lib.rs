//! Sparse tensors as data, and the files they live in.
//!
//! This crate knows no algebra: it reads, checks, sorts, compresses, counts and writes.  A tensor
//! of *order* N has N *modes*; mode `m` (counted from 0 here, from 1 wherever a person reads it)
//! has an *extent*.  [`Coo`] lists non-zeros, [`Csf`] compresses them into a tree.

pub mod array;
pub mod blocking;
pub mod catalog;
pub mod coo;
pub mod csf;
pub mod dense;
pub mod dims;
pub mod error;
pub mod ints;
pub mod io;
pub mod mix;
mod pages;
pub mod panels;
mod sort;
pub mod stats;
pub mod synth;
mod unit;
pub mod value;
pub mod wide;
mod words;

pub use array::Array;
pub use blocking::Blocking;
pub use coo::Coo;
pub use coo::Duplicates;
pub use csf::Csf;
pub use csf::Level;
pub use csf::Merged;
pub use dense::{DenseTensor, Matrix};
pub use dims::{ModeOrder, ModeSet};
pub use error::FormatError;
pub use ints::{Ints, Width};
pub use panels::Panels;
pub use stats::{PatternCounts, TensorStats};
pub use unit::Unit;
pub use value::Value;
pub use words::counted;
