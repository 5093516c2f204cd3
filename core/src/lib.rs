//! From a tensor expression to a running kernel.
//!
//! ```text
//! einsum -> path -> nest -> schedule -> lower -> codegen -> runtime
//!           \___ autoschedule chooses, cost judges ___/
//! sweep plans all kernels of a solver together, contract runs any one expression
//! ```

pub mod autoschedule;
pub mod codegen;
pub mod contract;
pub mod cost;
pub mod einsum;
pub mod error;
pub mod kernels;
pub mod lower;
pub mod nest;
pub mod path;
pub mod runtime;
pub mod schedule;
mod small_map;
pub mod sweep;
pub mod technique;
