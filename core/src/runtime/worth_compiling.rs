//! Whether kernels are worth compiling.
//!
//! A kernel of many modes takes the compiler a tenth of a second, and the interpreter runs it over a thousand non-zeros
//! in a few milliseconds.  Few kernels are compiled whatever they save: the next run finds them in the cache.  Many are
//! only if the interpreter is predicted to lose more time over some sweeps than the compiler takes.
//!
//! The answer follows from the plan and the number of threads alone, so that the same run gives the same bits whether its
//! kernels are in the cache or not.

use crate::runtime::compiler::Toolchain;

/// Seconds that a user waits for kernels without asking what they are worth.
const PATIENCE: f64 = 0.5;

/// Seconds to compile a kernel, whatever its modes.  With [`COMPILE_LEVEL`] it is near what gcc 12 takes on a core of a
/// Xeon for MTTKRPs: 0.07 s of 7 modes and rank 10, 0.13 s of 12 and 0.32 s of 25 modes and rank 64.
const COMPILE_KERNEL: f64 = 0.01;

/// Seconds more to compile a kernel for each mode of the tensor.
const COMPILE_LEVEL: f64 = 0.01;

/// How many times its predicted seconds a kernel takes in the interpreter: 105 to 197 on tensors of 3 to 25 modes.
const INTERPRETER: f64 = 150.0;

/// Sweeps over which compiling must pay.
const SWEEPS: f64 = 20.0;

/// Kernels of a plan, as far as it matters what they are worth.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// How many they are.
    pub kernels: usize,
    /// The modes of the tensor.
    pub order: usize,
    /// Seconds that one sweep of them is predicted to take, compiled, on all threads.
    pub seconds: f64,
}

impl Toolchain {
    /// Returns this toolchain, or [`Toolchain::Unneeded`] where it would take longer than it saves.
    pub fn for_kernels(&self, work: Workload) -> Toolchain {
        let one = COMPILE_KERNEL + COMPILE_LEVEL * work.order as f64;
        let compiling = work.kernels as f64 * one / rayon::current_num_threads() as f64;
        let interpreting = INTERPRETER * SWEEPS * work.seconds;
        match self {
            Toolchain::Native(_) if compiling > PATIENCE && interpreting < compiling => {
                Toolchain::Unneeded
            }
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(kernels: usize, order: usize, seconds: f64) -> bool {
        let toolchain = Toolchain::detect();
        let chosen = toolchain.for_kernels(Workload { kernels, order, seconds });
        !matches!(chosen, Toolchain::Unneeded)
    }

    #[test]
    fn many_small_kernels_are_not_compiled() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
        let here = Toolchain::detect();
        pool.install(|| {
            assert!(needed(3, 3, 1e-9), "few kernels wait for nobody");
            assert!(needed(12, 12, 1e-2), "long ones pay");
            if matches!(here, Toolchain::Native(_)) {
                assert!(!needed(28, 25, 5e-4), "25 modes, 1,000 non-zeros");
            }
            let none = Toolchain::Interpreter("a test".into());
            let chosen = none.for_kernels(Workload { kernels: 28, order: 25, seconds: 1e-9 });
            assert!(matches!(chosen, Toolchain::Interpreter(_)));
        });
    }
}
