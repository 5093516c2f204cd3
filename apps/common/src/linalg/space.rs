//! The address space of dense algebra.
//!
//! On x86-64 faer maps twice the last-level cache for each thread that multiplies, and touches what a product packs: that
//! costs nothing unless the address space is limited (`ulimit -v`).  Where it is, threads map such a buffer each as long as
//! all take no more than half of the limit, and the others hand their work to one thread that has one.  No routine
//! runs on more than one thread, so results are the same.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use decompose_core::cost::Machine;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::memory;

thread_local! {
    /// Whether this thread may map a buffer, once it has asked.
    static OWN: Cell<Option<bool>> = const { Cell::new(None) };
    /// Whether this thread is in dense algebra where the address space is limited.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// What a limited address space leaves to dense algebra.
struct Space {
    /// Buffers that threads may map.
    left: AtomicU64,
    /// The thread that works for those without; `None` if the system refuses it.
    shared: Option<ThreadPool>,
}

/// Runs dense algebra on this thread, or on one that can map what it needs.
pub(super) fn roomy<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static SPACE: OnceLock<Option<Space>> = OnceLock::new();
    let space = SPACE.get_or_init(|| memory::address_space_limit().map(Space::within));
    let Some(space) = space else { return work() };
    let work = || {
        INSIDE.set(true);
        let result = work();
        INSIDE.set(false);
        result
    };
    match &space.shared {
        Some(shared) if !space.is_own() => shared.install(work),
        _ => work(),
    }
}

/// Tells whether what this thread asks for now is a buffer of dense algebra, in a limited address space.
pub(crate) fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(false)
}

impl Space {
    fn within(limit: u64) -> Space {
        let buffer = 2 * Machine::last_level_bytes().max(1);
        // One is that of the shared thread.
        let left = AtomicU64::new((limit / 2 / buffer).saturating_sub(1));
        Space { left, shared: ThreadPoolBuilder::new().num_threads(1).build().ok() }
    }

    /// Tells whether this thread has a buffer of its own, and lets it have one if any is left.
    fn is_own(&self) -> bool {
        OWN.get().unwrap_or_else(|| {
            let take = |left: u64| left.checked_sub(1);
            let own = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
            OWN.set(Some(own));
            own
        })
    }
}

#[cfg(test)]
mod tests {
    use decompose_core::cost::Machine;

    use super::{OWN, Space};

    #[test]
    fn buffers_take_half_of_the_space_and_one_thread_works_for_the_others() {
        let buffer = 2 * Machine::last_level_bytes();
        let owners = |limit: u64| {
            let space = Space::within(limit);
            let ask = || {
                let asked = (space.is_own(), space.is_own());
                assert_eq!(asked.0, asked.1, "an answer stays");
                asked.0
            };
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
                threads.into_iter().map(|t| usize::from(t.join().unwrap())).sum::<usize>()
            })
        };
        assert_eq!([owners(buffer), owners(2 * buffer), owners(6 * buffer)], [0, 0, 2]);
        let space = Space::within(buffer);
        let shared = space.shared.as_ref().unwrap();
        assert_eq!(shared.install(rayon::current_num_threads), 1);
        assert_eq!(OWN.get(), None);
    }
}
