//! From a program to results: compiling, loading, calling, and running in parallel.
//!
//! ```text
//! program -> C -> shared object (cached) -> Kernel        no compiler: the interpreter
//! Kernel + tree -> tasks of equal non-zeros -> Executor::run
//! ```
//!
//! [`Probes`] are loops that measure what the machine can do, [`Slices`] those of normal equations and
//! [`Steps`] those of stochastic descent, compiled in the same way.

mod cache;
mod compiler;
mod compiler_cache;
mod executor;
mod kernel;
mod partition;
mod probe;
mod process;
mod slices;
mod spin_wait;
mod steps;
mod windows;
mod worth;

pub use cache::{KernelCache, Usage};
pub use compiler::{Compiler, Toolchain};
pub use executor::Executor;
pub(crate) use kernel::Compiled;
pub use kernel::{Kernel, Origin};
pub use partition::{Cut, Task, partition};
pub use probe::{Probe, Probes, RowList};
pub use process::end_compilers;
pub(crate) use process::run as run_program;
pub use slices::{SliceEntries, SliceList, Slices};
pub use spin_wait::with_spin_wait;
pub use steps::{Columns, StepBlock, StepList, StepNumbers, StepShape, Steps, Values};
pub use windows::share_slices;
pub use worth::Workload;
