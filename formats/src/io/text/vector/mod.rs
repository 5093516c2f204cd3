//! Rows by vector code, where the processor has it.

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(not(target_arch = "x86_64"))]
mod disabled;

#[cfg(target_arch = "x86_64")]
pub(super) use crate::io::text::vector::avx512::{available, rows};
#[cfg(not(target_arch = "x86_64"))]
pub(super) use crate::io::text::vector::disabled::{available, rows};
