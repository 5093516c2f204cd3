//! From a program to results: compiling, loading, calling, and running in parallel.
//!
//! ```text
//! program -> C -> shared object (cached) -> Kernel        no compiler: the interpreter
//! Kernel + tree -> tasks of equal non-zeros -> Executor::run
//! ```

mod compiler;
mod executor;
mod kernel;
mod partition;

pub use compiler::{Compiler, Toolchain};
pub use executor::Executor;
pub use kernel::{Kernel, Origin};
pub use partition::{Cut, Task, partition};
