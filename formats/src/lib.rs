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
pub mod error;
mod huge_pages;
pub mod io;
pub mod mix;
pub mod modes;
pub mod narrow_ints;
pub mod panels;
mod plural;
mod scaling;
pub mod simd;
mod sort;
pub mod stats;
pub mod synth;
pub mod value;

pub use array::Array;
pub use blocking::Blocking;
pub use coo::Coo;
pub use coo::Duplicates;
pub use csf::Csf;
pub use csf::Level;
pub use csf::Merged;
pub use dense::{DenseTensor, Matrix};
pub use error::FormatError;
pub use modes::{ModeOrder, ModeSet};
pub use narrow_ints::{Ints, Width};
pub use panels::Panels;
pub use plural::counted;
pub use scaling::Unit;
pub use stats::{PatternCounts, TensorStats};
pub use value::Value;
