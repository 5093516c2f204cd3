//! Which pages large memory asks the system for.
//!
//! Gathers of rows from many small pages miss the translation buffer, so matrices of some size ask for
//! huge pages.  Arrays that are read in order ask for them too, since to touch 40 000 small pages for
//! the first time costs as much as to parse the text that fills them; but not in a virtual machine whose
//! host takes free memory back.  It does so in huge pages, which come back twenty times slower than they
//! are cleared elsewhere, and four times slower than as many small ones.

use std::ops::Range;
use std::sync::OnceLock;

use memmap2::{Advice, MmapMut};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// The usual size of a huge page, in bytes.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// Arrays from this size on ask for huge pages: two of them, in bytes.
pub(crate) const HUGE_PAGES_FROM: usize = 2 * HUGE_PAGE;

/// A multiple of the usual sizes of small pages.
const PAGE: usize = 1 << 16;

/// Memory whose pages are taken at a time: enough that the call costs nothing beside them, and little enough
/// that threads share the work.
const TAKEN: usize = 1 << 18;

/// The feature of a memory balloon, by its place in the text of them, that free pages are reported:
/// `VIRTIO_BALLOON_F_REPORTING` in section 5.5.3 of the Virtio specification 1.2.
const BALLOON_REPORTING: usize = 5;

/// Asks the system for huge pages for memory whose rows are gathered; a refusal costs speed only.
pub(crate) fn ask(memory: &MmapMut) {
    let _ = memory.advise(Advice::HugePage);
}

/// As [`ask`] for memory that is read and written in order, which takes small pages where huge ones come slowly.
pub(crate) fn ask_in_order(memory: &MmapMut) {
    let _ = memory.advise(if memory_goes_back() { Advice::NoHugePage } else { Advice::HugePage });
}

/// Takes the pages of memory that will be written whole, all threads together.
///
/// The system takes many at once in two thirds of the time of as many first writes, each of which interrupts the
/// thread.  Where it cannot, pages are taken as they are written.
pub(crate) fn take(memory: &MmapMut) {
    #[cfg(target_os = "linux")]
    (0..memory.len().div_ceil(TAKEN)).into_par_iter().for_each(|part| {
        let start = part * TAKEN;
        let bytes = TAKEN.min(memory.len() - start);
        let _ = memory.advise_range(Advice::PopulateWrite, start, bytes);
    });
}

/// Tells whether this is a virtual machine that reports free memory to its host.
fn memory_goes_back() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let devices = std::fs::read_dir("/sys/bus/virtio/drivers/virtio_balloon");
        let features = devices.into_iter().flatten().flatten();
        let features = features.filter_map(|dev| std::fs::read(dev.path().join("features")).ok());
        features.into_iter().any(|bits| bits.get(BALLOON_REPORTING) == Some(&b'1'))
    })
}

/// Gives the whole pages within `bytes` of `memory` back to the system; they read as zeros afterwards,
/// or, where the system does not support it, as before.
#[expect(unsafe_code, reason = "memory changes that nobody writes")]
pub(crate) fn release(memory: &mut MmapMut, bytes: Range<usize>) {
    let (start, end) = (bytes.start.next_multiple_of(PAGE), bytes.end / PAGE * PAGE);
    if start < end {
        #[cfg(target_os = "linux")]
        // SAFETY: the memory is anonymous and private, and borrowed here alone; zeros are values of any
        // type that is stored in it.
        let _ = unsafe {
            memory.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start)
        };
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use memmap2::{Advice, MmapMut};

    use super::{HUGE_PAGES_FROM, TAKEN, ask, ask_in_order, memory_goes_back, take};

    /// What the system tells in the line that begins with `name` of the mapping at `memory`.
    fn told(memory: &MmapMut, name: &str) -> Vec<String> {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let start = memory.as_ptr() as usize;
        let holds = |line: &str| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let ends =
                range.map(|(a, b)| (usize::from_str_radix(a, 16), usize::from_str_radix(b, 16)));
            matches!(ends, Some((Ok(first), Ok(end))) if (first..end).contains(&start))
        };
        let line = maps.lines().skip_while(|line| !holds(line)).find(|line| line.starts_with(name));
        line.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn memory_to_fill_is_there_before_it_is_written() {
        let bytes = 3 * TAKEN + 100;
        let memory = MmapMut::map_anon(bytes).unwrap();
        take(&memory);
        if memory.advise_range(Advice::PopulateWrite, 0, 1).is_err() {
            eprintln!("skipped: the system takes no pages before they are written");
            return;
        }
        let there: usize = told(&memory, "Rss:")[1].parse().unwrap();
        assert!(there * 1024 >= bytes, "{there} KiB of {bytes} bytes");
        assert!(memory.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn memory_asks_for_huge_pages() {
        if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            eprintln!("skipped: the system has no transparent huge pages");
            return;
        }
        let flags_after = |ask: fn(&MmapMut)| {
            let memory = MmapMut::map_anon(HUGE_PAGES_FROM).unwrap();
            ask(&memory);
            told(&memory, "VmFlags")
        };
        let has = |flags: &[String], flag: &str| flags.iter().any(|have| have == flag);
        let gathered = flags_after(ask);
        assert!(has(&gathered, "hg") && !has(&gathered, "nh"), "{gathered:?}");
        let in_order = flags_after(ask_in_order);
        assert_eq!(has(&in_order, "nh"), memory_goes_back(), "{in_order:?}");
        assert_eq!(has(&in_order, "hg"), !memory_goes_back(), "{in_order:?}");
    }
}
