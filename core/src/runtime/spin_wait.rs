//! Idle workers wait in a spin loop while short parallel steps follow each other.
//!
//! A sweep over a small tensor is dozens of parallel steps, some of them shorter than 0.1 ms.  A worker that
//! finds no work falls asleep between them, and waking it takes as long as such a step does, on a busy
//! virtual machine milliseconds.  In [`with_spin_wait`] workers spin for a while before they sleep, as
//! OpenMP's do.  Where there are more workers than cores none does: it would take a core from one that works.

use std::cell::Cell;
use std::hint;
use std::sync::OnceLock;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use rayon::Yield;

/// How long a worker spins without work before it may sleep: longer than most serial parts of a sweep,
/// short enough to leave the core to others where there are none but serial parts.
const SPIN_TIME: Duration = Duration::from_millis(1);
/// Pauses between two looks: these read what the busy threads write.
const PAUSES: u32 = 16;

thread_local! {
    /// Whether this worker already spins, maybe in a job that it found.
    static SPINNING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, a sweep or a step of one, on a worker of the current pool; the others spin until there has been nothing
/// to do for 1 ms.
///
/// A thread that is no worker would hand over every parallel step to one and wait for it.
pub fn with_spin_wait<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| {
        let home = rayon::current_thread_index();
        if (2..=cores()).contains(&rayon::current_num_threads()) {
            // The job that is meant for this thread comes up in its next wait.
            rayon::spawn_broadcast(move |worker| {
                if Some(worker.index()) != home && !SPINNING.replace(true) {
                    spin_for_work();
                    SPINNING.set(false);
                }
            });
        }
        work()
    })
}

/// The cores that this process may use, as they were when it was first asked.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))
}

/// Works for others until there has been nothing to do for a while.
fn spin_for_work() {
    let mut last = Instant::now();
    while last.elapsed() < SPIN_TIME {
        match rayon::yield_now() {
            Some(Yield::Executed) => last = Instant::now(),
            _ => (0..PAUSES).for_each(|_| hint::spin_loop()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use rayon::prelude::{IntoParallelIterator, ParallelIterator};
    use rayon::{ThreadPool, ThreadPoolBuilder};

    use super::*;

    fn pool(threads: usize) -> ThreadPool {
        ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    fn sweep() -> u64 {
        let step = |n: u64| (0..64_u64).into_par_iter().map(|i| i * n).sum::<u64>();
        with_spin_wait(|| (0..50).map(step).sum())
    }

    const SUM: u64 = 49 * 50 / 2 * 63 * 32;

    #[test]
    fn work_gives_the_same_on_workers_that_spin() {
        for threads in [1, 2, 3, 8] {
            // Many sweeps in a row: no worker spins within a spin.
            let sums = pool(threads).install(|| (0..200).map(|_| sweep()).max());
            assert_eq!(sums, Some(SUM), "{threads} threads");
        }
        assert_eq!(sweep(), SUM, "outside of a pool");
    }

    #[test]
    fn more_workers_than_cores_do_not_spin() {
        let spinning =
            pool(cores() + 1).install(|| with_spin_wait(|| rayon::broadcast(|_| SPINNING.get())));
        assert!(!spinning.contains(&true), "{spinning:?}");
    }

    #[test]
    fn sweeps_may_run_side_by_side() {
        let many = || (0..20).map(|_| sweep()).max();
        assert_eq!(pool(2).install(|| rayon::join(many, many)), (Some(SUM), Some(SUM)));
    }

    #[test]
    fn workers_rest_when_there_is_nothing_to_do() {
        let pool = pool(3);
        let spinning = pool.install(|| {
            with_spin_wait(|| sleep(20 * SPIN_TIME));
            rayon::broadcast(|_| SPINNING.get())
        });
        assert_eq!(spinning, [false; 3]);
    }
}
