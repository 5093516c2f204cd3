//! What the processor says of itself.

#[cfg(target_arch = "x86_64")]
use raw_cpuid::{CacheType, CpuId};

use crate::cost::machine::{Family, Machine};

/// Describes the machine that the environment names, or the processor that this runs on; what that does not
/// tell is as in its family.
pub(super) fn machine() -> Machine {
    if let Ok(Some(machine)) = Machine::of_environment() {
        return machine;
    }
    let known = family().machine();
    let sizes = cache_sizes().unwrap_or((known.l1_bytes, known.l2_bytes, known.l3_bytes));
    let (l1_bytes, l2_bytes, l3_bytes) = sizes;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Machine { name: processor_name(), l1_bytes, l2_bytes, l3_bytes, threads, ..known }
}

/// Returns the family of the processor that this runs on.
pub(super) fn family() -> Family {
    Family::of_vendor(&vendor())
}

#[cfg(target_arch = "x86_64")]
fn vendor() -> String {
    CpuId::new().get_vendor_info().map_or_else(String::new, |vendor| vendor.as_str().to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn vendor() -> String {
    String::new()
}

#[cfg(target_arch = "x86_64")]
pub(super) fn cache_sizes() -> Option<(u64, u64, u64)> {
    let cpuid = CpuId::new();
    let size = |level: u8| {
        let caches = cpuid.get_cache_parameters()?;
        let of_data = caches.filter(|cache| cache.cache_type() != CacheType::Instruction);
        let sizes = of_data.filter(|cache| cache.level() == level).map(|cache| {
            let lines = cache.associativity() * cache.physical_line_partitions() * cache.sets();
            (lines * cache.coherency_line_size()) as u64
        });
        sizes.max()
    };
    let amd_l1 = cpuid.get_l1_cache_and_tlb_info();
    let amd = cpuid.get_l2_l3_cache_and_tlb_info();
    let l1 = size(1).or_else(|| Some(u64::from(amd_l1?.dcache_size()) << 10))?;
    let l2 = size(2).or_else(|| Some(u64::from(amd.as_ref()?.l2cache_size()) << 10))?;
    let l3 = size(3).or_else(|| Some(u64::from(amd.as_ref()?.l3cache_size()) << 19))?;
    (l1 > 0 && l2 > 0 && l3 > 0).then_some((l1, l2, l3))
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn cache_sizes() -> Option<(u64, u64, u64)> {
    None
}

#[cfg(target_arch = "x86_64")]
fn processor_name() -> String {
    let brand = CpuId::new().get_processor_brand_string();
    brand.map_or_else(|| "x86-64".to_owned(), |brand| brand.as_str().trim().to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn processor_name() -> String {
    std::env::consts::ARCH.to_owned()
}
