//! Which pages large memory asks the system for.
//!
//! Gathers of rows from many small pages miss the translation buffer, so matrices of some size ask for
//! huge pages.  Arrays that are read in order ask for them too, since to touch 40 000 small pages for
//! the first time costs as much as to parse the text that fills them; but not in a virtual machine whose
//! host takes free memory back.  It does so in huge pages, which come back twenty times slower than they
//! are cleared elsewhere, and four times slower than as many small ones.  [`Pages::Small`] refuses huge
//! pages, whatever the system's default, to see what they bring.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Whether memory asks for small pages.
static SMALL: AtomicBool = AtomicBool::new(false);

/// Which pages large arrays, matrices and the memory of sorts ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// Huge ones, usually of 2 MiB, except for arrays where these come slowly.
    #[default]
    Huge,
    /// Those of the processor's usual size, usually 4 KiB.
    Small,
}

impl Pages {
    /// Does `work`, whose memory asks for these pages, as does all memory that the process makes
    /// meanwhile; afterwards what held before holds again.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        let _restored = Restored(SMALL.swap(self == Pages::Small, Ordering::Relaxed));
        work()
    }
}

/// Restores what held before, even after a panic.
struct Restored(bool);

impl Drop for Restored {
    fn drop(&mut self) {
        SMALL.store(self.0, Ordering::Relaxed);
    }
}

/// Asks the system for the pages that are wanted for memory whose rows are gathered; a refusal costs
/// speed only.
pub(crate) fn ask(memory: &MmapMut) {
    advise(memory, wanted());
}

/// As [`ask`] for memory that is read and written in order.
pub(crate) fn ask_in_order(memory: &MmapMut) {
    advise(memory, if memory_goes_back() { Pages::Small } else { wanted() });
}

fn wanted() -> Pages {
    if SMALL.load(Ordering::Relaxed) { Pages::Small } else { Pages::Huge }
}

fn advise(memory: &MmapMut, pages: Pages) {
    let _ = memory.advise(match pages {
        Pages::Huge => Advice::HugePage,
        Pages::Small => Advice::NoHugePage,
    });
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

    use super::{HUGE_PAGES_FROM, Pages, TAKEN, ask, ask_in_order, memory_goes_back, take};

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

    /// The flags that the system keeps for the mapping at `memory`.
    fn flags(memory: &MmapMut) -> Vec<String> {
        told(memory, "VmFlags")
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

    /// Both ways in one test, since the setting is that of the process.
    #[test]
    fn memory_asks_for_the_pages_that_are_wanted() {
        if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            eprintln!("skipped: the system has no transparent huge pages");
            return;
        }
        let made_by = |ask: fn(&MmapMut)| {
            move || {
                let memory = MmapMut::map_anon(HUGE_PAGES_FROM).unwrap();
                ask(&memory);
                memory
            }
        };
        let refused = |memory: &MmapMut| flags(memory).contains(&"nh".to_owned());
        let made = made_by(ask);
        let (huge, small) = (made(), Pages::Small.during(made));
        let nested = Pages::Small.during(|| Pages::Huge.during(made));
        assert!(refused(&small), "{:?}", flags(&small));
        let in_order = made_by(ask_in_order);
        assert_eq!(refused(&in_order()), memory_goes_back());
        assert!(refused(&Pages::Small.during(in_order)));
        for memory in [huge, nested, made()] {
            assert!(!refused(&memory), "{:?}", flags(&memory));
        }
    }
}
