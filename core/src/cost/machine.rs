//! The machine that a schedule is judged for.

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use raw_cpuid::CacheType;

/// Sizes and speeds of one core and its caches.
///
/// The sizes are read from the processor.  The times are throughputs with prefetching and some
/// independent work in flight; they and the shares of the caches are fitted to 1,419 generated kernels
/// (MTTKRP, TTMc, TTTP, TTTc; six tensors; ranks 8 to 64), each the median of up to seven rounds, on two
/// cores of a Zen 5 server, so that the fastest of a few candidates ranks first.  That of a line of a small
/// buffer was set by hand, with TTTc of order 4 in view.  Those of a scalar multiply-add and of a scattered
/// one are fitted to loops in C that build a matrix of 3 and of 13 MB from a tensor of 11 million
/// non-zeros.  They rank schedules and are no promise of seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The processor's name, as it reports itself.
    pub name: String,
    /// Bytes of first-level data cache a core.
    pub l1_bytes: u64,
    /// Bytes of second-level cache a core.
    pub l2_bytes: u64,
    /// Bytes of last-level cache.
    pub l3_bytes: u64,
    /// The part of the second-level cache that a table may count on.
    pub l2_share: f64,
    /// The part of the last-level cache that a table may count on: on a shared server the programs of
    /// others use it too.
    pub l3_share: f64,
    /// Threads that share the last-level cache, each with buffers of its own.
    pub threads: usize,
    /// Seconds to load a 64-byte line again that was just loaded.
    pub l1_line: f64,
    /// Seconds to load or store a line of a buffer in the first-level cache.
    pub buffer_line: f64,
    /// Seconds to gather a 64-byte line that is in the second-level cache.
    pub l2_line: f64,
    /// Seconds to gather a line from the last-level cache.
    pub l3_line: f64,
    /// Seconds to gather a line from memory.
    pub memory_line: f64,
    /// Seconds that a gathered row from the last-level cache takes beside its lines: the part of the
    /// latency that is not hidden.
    pub l3_wait: f64,
    /// The same from memory.
    pub memory_wait: f64,
    /// Seconds to stream a line from memory.
    pub stream_line: f64,
    /// Seconds for one multiply-add of one value, vectorised.
    pub flop_pair: f64,
    /// Seconds for one multiply-add of one value in a loop without vectors, its loads and stores in
    /// the first-level cache.
    pub scalar_pair: f64,
    /// Seconds to add up the lanes of a vector.
    pub lane_sum: f64,
    /// Seconds to add to a value at a random place in memory: its line is read and written, and its
    /// page's translation is missing too.
    pub scatter_line: f64,
    /// Seconds to open and close one loop over a few iterations: mispredicted branches.
    pub loop_overhead: f64,
}

impl Machine {
    /// Returns this machine, described once a process.
    pub fn here() -> &'static Machine {
        static HERE: OnceLock<Machine> = OnceLock::new();
        HERE.get_or_init(detect)
    }
}

fn detect() -> Machine {
    let (l1_bytes, l2_bytes, l3_bytes) = cache_sizes().unwrap_or((32 << 10, 1 << 20, 32 << 20));
    Machine {
        name: processor_name(),
        l1_bytes,
        l2_bytes,
        l3_bytes,
        l2_share: 0.842,
        l3_share: 0.305,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        l1_line: 0.213e-9,
        buffer_line: 0.1e-9,
        l2_line: 0.305e-9,
        l3_line: 0.958e-9,
        memory_line: 2.85e-9,
        l3_wait: 0.193e-9,
        memory_wait: 3.44e-9,
        stream_line: 4.21e-9,
        flop_pair: 0.00675e-9,
        scalar_pair: 1.0e-9,
        lane_sum: 1.91e-9,
        scatter_line: 13.0e-9,
        loop_overhead: 5.2e-9,
    }
}

#[cfg(target_arch = "x86_64")]
fn cache_sizes() -> Option<(u64, u64, u64)> {
    let cpuid = raw_cpuid::CpuId::new();
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
fn cache_sizes() -> Option<(u64, u64, u64)> {
    None
}

#[cfg(target_arch = "x86_64")]
fn processor_name() -> String {
    let brand = raw_cpuid::CpuId::new().get_processor_brand_string();
    brand.map_or_else(|| "x86-64".to_owned(), |brand| brand.as_str().trim().to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn processor_name() -> String {
    std::env::consts::ARCH.to_owned()
}
