//! Loops compiled for the widest vectors of the processor.
//!
//! The program is built for any processor of its family, whose vectors are 16 bytes; plain loops
//! over arrays gain two to eight times from compiling them again for wider ones.  Only for code
//! whose results are the same either way: integers, and floating point whose sums are written out
//! lane by lane (products and sums are never contracted).
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "code for processor features may only run where they are")
)]

/// Runs `work`, compiled for the widest vectors there are.
///
/// What `work` calls is compiled so as well if it is inlined into it.  Keep `work` to a short loop: a long one
/// is called from here instead of being inlined, and stays as narrow as the program.
#[inline]
pub fn run<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        let bits = is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        let wide = is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        if bits && wide {
            // SAFETY: the processor has the features, as was just tested.
            return unsafe { avx512(work) };
        }
        if bits && is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { avx2(work) };
        }
    }
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
fn avx512<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}
