//! What is recorded of the machine, and how much memory there is and was used.
//!
//! The numbers come from `/proc`; elsewhere they are unknown (`None`).

use std::fs;

/// The machine of a run, for its record.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct MachineFacts {
    /// The processor's name.
    pub processor: Option<String>,
    /// Hardware threads this process may use.
    pub hardware_threads: usize,
    /// Bytes of main memory.
    pub memory_bytes: Option<u64>,
    /// Operating system and architecture, as `linux x86_64`.
    pub system: String,
}

impl MachineFacts {
    /// Describes this machine.
    pub fn here() -> MachineFacts {
        MachineFacts {
            processor: text_after("/proc/cpuinfo", "model name"),
            hardware_threads: hardware_threads(),
            memory_bytes: kib_after("/proc/meminfo", "MemTotal"),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        }
    }
}

/// Returns how many threads of the hardware this process may use.
pub fn hardware_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Has freed blocks of a MiB and more handed back to the system at once.
///
/// glibc learns from every large block that is freed to keep the next: up to 32 MiB then stay with
/// each thread that had such a block, and what a process holds at its peak depends on how its
/// threads happened to run.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGE: libc::c_int = 1 << 20;
        for setting in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
            // SAFETY: both settings take any number of bytes; the call locks the allocator.
            #[expect(unsafe_code, reason = "the allocator's settings have no safe binding")]
            // A refusal changes nothing but the peak.
            let _ = unsafe { libc::mallopt(setting, LARGE) };
        }
    }
}

/// Has threads share the allocator's arenas where the address space is limited (`ulimit -v`).
///
/// glibc maps 64 MiB for an arena of each thread.  Where the limit refuses that, every request asks for it again.
pub fn share_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if let Some(arenas) = crate::memory::address_space_limit().and_then(arenas_within) {
        // SAFETY: the setting takes any number from 1 on; the call locks the allocator.
        #[expect(unsafe_code, reason = "the allocator's settings have no safe binding")]
        // A refusal changes nothing but the time.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas) };
    }
}

/// Returns how many arenas take no more than an eighth of a limited address space, at least one; `None` for more than there
/// ever are.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn arenas_within(limit: u64) -> Option<libc::c_int> {
    const ARENA: u64 = 64 << 20;
    libc::c_int::try_from((limit / 8 / ARENA).max(1)).ok()
}

/// Hands freed blocks of any size back to the system, as whole pages.
///
/// glibc keeps small ones; a search that made many leaves megabytes of them.
pub fn return_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the call locks the allocator.
        #[expect(unsafe_code, reason = "the allocator has no safe binding")]
        // Whether anything was returned changes nothing but the peak.
        let _ = unsafe { libc::malloc_trim(0) };
    }
}

/// Returns the bytes of main memory this process holds now.
pub fn resident_bytes() -> Option<u64> {
    kib_after("/proc/self/status", "VmRSS")
}

/// Returns the most bytes of main memory this process has held so far.
pub fn peak_bytes() -> Option<u64> {
    kib_after("/proc/self/status", "VmHWM")
}

/// Returns the bytes of the address space of this process.
pub fn mapped_bytes() -> Option<u64> {
    kib_after("/proc/self/status", "VmSize")
}

/// Returns the bytes that the system has available without swapping.
pub fn system_bytes() -> Option<u64> {
    kib_after("/proc/meminfo", "MemAvailable")
}

/// Writes a size for people, as `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < units.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{size:.1} {}", units[unit]) }
}

/// Reads a size: a number with an optional unit, `16G`, `512M`, `1.5GiB`; units are powers of
/// 1024.
///
/// # Errors
///
/// A sentence for the user if `text` is no size.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let unit = unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit);
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|known| *known == unit);
    let number: Option<f64> = digits.trim().parse().ok().filter(|n: &f64| *n > 0.0);
    match (number, power) {
        (Some(number), Some(power)) => Ok((number * 1024_f64.powi(power as i32)) as u64),
        _ => Err(format!("`{text}` is not a size; write it as 16G, 512M or a number of bytes")),
    }
}

fn text_after(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = pairs.find(|(name, _)| name.trim() == key)?;
    Some(value.trim().to_owned())
}

fn kib_after(path: &str, key: &str) -> Option<u64> {
    let kib: u64 = text_after(path, key)?.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_and_print() {
        for (text, bytes) in [
            ("1024", 1024),
            ("16G", 16 << 30),
            ("1.5 GiB", 3 << 29),
            ("2kb", 2048),
            ("3m", 3 << 20),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "-1G", "0", "1X", "nan"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!([12, 1024, 3 << 29].map(size), ["12 B", "1.0 KiB", "1.5 GiB"]);
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn arenas_take_an_eighth_of_a_limited_address_space() {
        let arenas = [100 << 20, 1 << 30, 8 << 30, u64::MAX].map(arenas_within);
        assert_eq!(arenas, [Some(1), Some(2), Some(16), None]);
    }

    #[test]
    fn the_peak_follows_what_is_held() {
        let Some(before) = peak_bytes() else { return };
        let block = vec![1_u8; 64 << 20];
        let held = resident_bytes().unwrap_or(0);
        assert!(held >= 64 << 20, "{held}");
        drop(block);
        assert!(peak_bytes().unwrap_or(0) >= before.max(64 << 20));
    }
}
