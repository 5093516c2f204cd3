//! From a tensor expression to a running kernel.
//!
//! ```text
//! einsum -> path -> nest -> schedule -> lower -> codegen -> runtime
//!           \___ autoschedule chooses, cost judges ___/
//! sweep plans all kernels of a solver together, contract runs any one product, compute any sum of products
//! ```
//!
//! A module uses only the modules above it in this table.
//!
//! | module | holds |
//! |---|---|
//! | [`optimisation`] | the optimisations of kernels that can be left out, to see what each is worth |
//! | [`einsum`] | tensor expressions, and their dense value for tests |
//! | [`kernels`] | the expressions of tensor decomposition, by name and order |
//! | [`path`] | the order in which operands are contracted, and the space of such orders |
//! | [`nest`] | the loops around the terms of a path, and what must be stored between them |
//! | [`schedule`] | the problem, every decision about how it is computed, and the rules of what is legal |
//! | [`lower`] | the loop program of a schedule, its verifier and its interpreter |
//! | [`codegen`] | the C of a program |
//! | [`cost`] | the predicted seconds of a schedule, and lower bounds of them |
//! | [`runtime`] | compiling, storing, loading and calling kernels on all threads |
//! | [`autoschedule`] | the searches for good schedules |
//! | [`sweep`] | the trees and kernels of one update of every factor, planned together |
//! | [`contract`] | one product of tensors from request to result |
//! | [`compute`] | assignments: sums of products, in steps, with functions |
//!
//! [`error`] belongs to all of them.

pub mod autoschedule;
pub mod codegen;
pub mod compute;
pub mod contract;
pub mod cost;
pub mod einsum;
pub mod error;
pub mod kernels;
pub mod lower;
pub mod nest;
pub mod optimisation;
pub mod path;
pub mod runtime;
pub mod schedule;
mod small_map;
pub mod sweep;
