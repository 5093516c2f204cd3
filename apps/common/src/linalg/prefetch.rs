//! Requests to memory ahead of time.

#![expect(unsafe_code, reason = "the instruction takes an address")]

/// Requests the cache line in which `values` begin; where there is no such instruction known, nothing happens.
#[inline(always)]
pub(super) fn prefetch<V>(values: &[V]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address has no effect but on caches.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}
