//! What a plan must do on a tree.

use decompose_core::cost::{Machine, estimate};
use decompose_core::einsum::IndexSet;
use decompose_core::schedule::{Problem, Schedule};
use decompose_formats::{Csf, Level, Value};
use rayon::prelude::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::bench::roofline::reuse::{Misses, least_misses};
use crate::bench::roofline::shared::least_bytes;
use crate::bench::roofline::touches::{Touch, touches};

/// Caches that threads work with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caches {
    /// Threads, each with a second-level cache of its own.
    pub(crate) threads: usize,
    /// Bytes of first-level cache a thread.
    pub(crate) l1_bytes: u64,
    /// Bytes of second-level cache a thread.
    pub(crate) l2_bytes: u64,
    /// Bytes of last-level cache.
    pub(crate) l3_bytes: u64,
}

impl Caches {
    /// Returns the caches of `machine` for `threads` threads.
    pub(crate) fn of(machine: &Machine, threads: usize) -> Caches {
        let &Machine { l1_bytes, l2_bytes, l3_bytes, .. } = machine;
        Caches { threads, l1_bytes, l2_bytes, l3_bytes }
    }

    /// A thread's own: where a level takes what the ones before throw out, they add up.
    fn own(&self) -> u64 {
        self.l1_bytes + self.l2_bytes
    }

    fn all(&self) -> u64 {
        self.own() * self.threads as u64 + self.l3_bytes
    }
}

/// What a kernel must do; see the [module](crate::bench::roofline) for what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct Work {
    /// Multiplications and additions.
    pub(crate) flops: f64,
    /// Bytes loaded, from whatever cache.
    pub(crate) near_bytes: f64,
    /// Bytes that come from beyond the first-level caches.
    pub(crate) middle_bytes: f64,
    /// Bytes that come from beyond the second-level caches.
    pub(crate) far_bytes: f64,
    /// Bytes from memory that can be foreseen.
    pub(crate) streamed_bytes: f64,
    /// Bytes of rows from memory in random order.
    pub(crate) scattered_bytes: f64,
}

impl Work {
    /// Counts the work of `schedule` for `problem` on `tree`, which it was made for.
    ///
    /// Time: some twelve passes over the nodes of every level that reaches rows too many for a cache, in
    /// parallel.
    pub(crate) fn of<V: Value>(
        problem: &Problem,
        schedule: &Schedule,
        tree: &Csf<V>,
        caches: &Caches,
    ) -> Work {
        let exact = counted(problem, tree);
        let mut work = Work::dense(caches, tree.bytes() as f64);
        work.flops = estimate(&exact, schedule, Machine::here()).flops;
        if problem.has_pattern_output() {
            let others = problem.expr.output.set() - problem.sparse_indices();
            let block = problem.buffer_bytes(others);
            work = work.and(Work::dense(caches, (tree.values().len() as u64 * block) as f64));
        }
        let touches = touches(problem, schedule);
        let rows: Vec<Work> =
            touches.par_iter().map(|touch| rows_work(tree, touch, caches)).collect();
        let rows = rows.into_iter().fold(Work::default(), Work::and);
        work.and(rows.at_least(shared_work(tree, &touches, caches)))
    }

    /// Returns the work of going once through `bytes` of arrays from end to end.
    pub(crate) fn dense(caches: &Caches, bytes: f64) -> Work {
        let threads = caches.threads as u64;
        let beyond = |fits: u64| (bytes - fits as f64).max(0.0);
        Work {
            flops: 0.0,
            near_bytes: bytes,
            middle_bytes: beyond(caches.l1_bytes * threads),
            far_bytes: beyond(caches.own() * threads),
            streamed_bytes: beyond(caches.all()),
            scattered_bytes: 0.0,
        }
    }

    /// Adds other work.
    pub(crate) fn and(self, other: Work) -> Work {
        Work {
            flops: self.flops + other.flops,
            near_bytes: self.near_bytes + other.near_bytes,
            middle_bytes: self.middle_bytes + other.middle_bytes,
            far_bytes: self.far_bytes + other.far_bytes,
            streamed_bytes: self.streamed_bytes + other.streamed_bytes,
            scattered_bytes: self.scattered_bytes + other.scattered_bytes,
        }
    }

    /// Takes the larger number of each.
    fn at_least(self, other: Work) -> Work {
        Work {
            flops: self.flops.max(other.flops),
            near_bytes: self.near_bytes.max(other.near_bytes),
            middle_bytes: self.middle_bytes.max(other.middle_bytes),
            far_bytes: self.far_bytes.max(other.far_bytes),
            streamed_bytes: self.streamed_bytes.max(other.streamed_bytes),
            scattered_bytes: self.scattered_bytes.max(other.scattered_bytes),
        }
    }

    /// Returns the work of doing this `runs` times.
    pub(crate) fn times(self, runs: usize) -> Work {
        let n = runs as f64;
        Work {
            flops: self.flops * n,
            near_bytes: self.near_bytes * n,
            middle_bytes: self.middle_bytes * n,
            far_bytes: self.far_bytes * n,
            streamed_bytes: self.streamed_bytes * n,
            scattered_bytes: self.scattered_bytes * n,
        }
    }
}

/// Returns `problem` with the counts of the tree in place of estimates.
fn counted<V: Value>(problem: &Problem, tree: &Csf<V>) -> Problem {
    let mut exact = problem.clone();
    if let Some(x) = exact.leader_mut() {
        let mut prefix = IndexSet::EMPTY;
        for (&index, level) in x.format.levels().iter().zip(tree.levels()) {
            prefix = prefix.with(index);
            x.pattern.record(prefix, level.coords.len() as u64);
        }
    }
    exact
}

/// A page: hardware looks ahead within one.
const PAGE: u64 = 4096;

/// The work of one array's rows.
fn rows_work<V: Value>(tree: &Csf<V>, touch: &Touch, caches: &Caches) -> Work {
    let mode = tree.mode_order().modes()[touch.level];
    let (level, extent) = (&tree.levels()[touch.level], tree.extents()[mode]);
    let reach = PAGE / touch.row_bytes.max(1);
    // The row at hand is always there, if only in registers.
    let fits = |bytes: u64| (bytes / touch.row_bytes.max(1)).max(1);
    let part = |thread: usize| {
        let nodes = level.coords.len();
        nodes * thread / caches.threads..nodes * (thread + 1) / caches.threads
    };
    let threads: Vec<usize> = (0..caches.threads).collect();
    let own = threads.par_iter().map(|&thread| {
        let accesses = || part(thread).map(|at| level.coords.get(at));
        let beyond = |bytes| least_misses(accesses, extent, fits(bytes), reach).total();
        (changes(level, part(thread)), beyond(caches.l1_bytes), beyond(caches.own()))
    });
    let own: Vec<(u64, u64, u64)> = own.collect();
    let visits: u64 = own.iter().map(|own| own.0).sum();
    let beyond_l1: u64 = own.iter().map(|own| own.1).sum();
    let beyond_l2: u64 = own.iter().map(|own| own.2).sum();
    // The threads in turns, each from where its part begins.
    let longest = threads.iter().map(|&thread| part(thread).len()).max().unwrap_or(0);
    let in_turns = || {
        (0..longest)
            .flat_map(|step| threads.iter().filter_map(move |&thread| part(thread).nth(step)))
    };
    let in_turns = || in_turns().map(|at| level.coords.get(at));
    let beyond_all = if fits(caches.all()) >= extent {
        Misses::default()
    } else {
        least_misses(in_turns, extent, fits(caches.all()), reach)
    };
    let bytes = |rows: u64| (rows * touch.row_bytes * touch.moves) as f64;
    Work {
        flops: 0.0,
        near_bytes: bytes(visits),
        middle_bytes: bytes(beyond_l1),
        far_bytes: bytes(beyond_l2),
        streamed_bytes: bytes(beyond_all.near),
        scattered_bytes: bytes(beyond_all.far),
    }
}

/// What the rows of all arrays bring into the caches of their threads, which they share.
fn shared_work<V: Value>(tree: &Csf<V>, touches: &[Touch], caches: &Caches) -> Work {
    let (nnz, threads) = (tree.nnz(), caches.threads);
    let beyond = |bytes: u64| -> f64 {
        let part = |thread: usize| nnz * thread / threads..nnz * (thread + 1) / threads;
        let parts = (0..threads).into_par_iter().map(part);
        parts.map(|leaves| least_bytes(tree, touches, leaves, bytes)).sum::<u64>() as f64
    };
    let (middle_bytes, far_bytes) = (beyond(caches.l1_bytes), beyond(caches.own()));
    Work { middle_bytes, far_bytes, ..Work::default() }
}

/// Nodes of `part` whose coordinate is not that of the node before.
fn changes(level: &Level, part: std::ops::Range<usize>) -> u64 {
    let mut before = None;
    part.filter(|&at| before.replace(level.coords.get(at)) != Some(level.coords.get(at))).count()
        as u64
}
