//! How much memory this process may hold, and how much it is foreseen to hold.
//!
//! A step that takes much memory is told before it is taken:
//!
//! ```text
//! expected = max over the steps of   held now + bytes of the step + GROWTH
//! ```
//!
//! What is held is measured, so that the error of one step is none of the next.  A step that would
//! exceed the limit is refused.  The numbers are those of the process: steps of one run only.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::SolverError;
use crate::machine::{self, size};

/// What the program itself grows by in a step: pages of its code, stacks, tables.
const GROWTH: u64 = 1 << 20;

/// Steps up to this size are taken without a look at the limit.
const LEAST: u64 = 2 << 20;

/// The most memory that the process may hold, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Limit {
    /// The most resident bytes.
    #[serde(rename = "limit")]
    pub bytes: u64,
    /// Where the number comes from.
    #[serde(rename = "limit_source")]
    pub source: LimitSource,
}

/// Where a limit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitSource {
    /// The user.
    Asked,
    /// The control group of the process or one above it.
    Group,
    /// The limit on the address space.
    AddressSpace,
    /// What the system has left.
    Available,
}

impl fmt::Display for LimitSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LimitSource::Asked => "as asked for",
            LimitSource::Group => "limit of the control group",
            LimitSource::AddressSpace => "ulimit -v",
            LimitSource::Available => "available",
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", size(self.bytes), self.source)
    }
}

/// Returns the most memory that this process may hold: the least of what was `asked` for - without,
/// of what the system has available -, what its control groups leave, and its address space; `None`
/// where nothing is known.
pub fn limit(asked: Option<u64>) -> Option<Limit> {
    let held = machine::resident_bytes().unwrap_or(0);
    let more = |bytes: Option<u64>, source| {
        bytes.map(|bytes| Limit { bytes: bytes.saturating_add(held), source })
    };
    let soft = match asked {
        Some(bytes) => Some(Limit { bytes, source: LimitSource::Asked }),
        None => more(machine::system_bytes(), LimitSource::Available),
    };
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = more(left_by_groups(&groups, Path::new("/sys/fs/cgroup")), LimitSource::Group);
    let mapped = machine::mapped_bytes().unwrap_or(0);
    let space = address_space_limit().map(|most| most.saturating_sub(mapped));
    let space = more(space, LimitSource::AddressSpace);
    [soft, group, space].into_iter().flatten().min_by_key(|limit| limit.bytes)
}

/// Sets the limit of the steps that follow.
pub fn set_limit(limit: Option<Limit>) {
    ledger().limit = limit;
}

/// Returns the bytes that a step may take now: what the limit leaves - without one that was set, what
/// [`limit`] says of the machine -, but as much as steps that are always taken, within the whole limit.
pub fn left() -> Option<u64> {
    let set = ledger().limit;
    let limit = set.or_else(|| limit(None))?;
    let held = machine::resident_bytes().unwrap_or(0);
    Some(limit.bytes.saturating_sub(held).max(LEAST).min(limit.bytes))
}

/// Foresees a step that holds `bytes` more than is held now; `what` it is, and the `remedy` if they are too
/// many, are told where it is refused.
///
/// # Errors
///
/// [`SolverError::Memory`] if that exceeds the limit.
pub fn foresee(
    bytes: u64,
    what: impl FnOnce() -> String,
    remedy: &'static str,
) -> Result<(), SolverError> {
    check(bytes, what, remedy)?;
    note(bytes);
    Ok(())
}

/// Checks that the search for kernels of a tensor of `order` modes fits; what it took is held when the next step
/// is foreseen.
///
/// # Errors
///
/// [`SolverError::Memory`] if it exceeds the limit.
pub fn search(order: usize) -> Result<(), SolverError> {
    // Searches are bounded by counted work from six modes on.
    let bytes = match order {
        0..=4 => 2 << 20,
        5..=6 => 6 << 20,
        _ => 12 << 20,
    };
    check(bytes, || "the search for kernels".into(), "raise the limit")
}

fn check(
    bytes: u64,
    what: impl FnOnce() -> String,
    remedy: &'static str,
) -> Result<(), SolverError> {
    if bytes > LEAST {
        machine::return_free_memory();
    }
    let need = need(bytes);
    let limit = ledger().limit.filter(|limit| need > limit.bytes && bytes > LEAST);
    let beyond = limit.map(|limit| (need, limit)).or_else(|| beyond_address_space(bytes));
    let Some((need, Limit { bytes, source })) = beyond else { return Ok(()) };
    let (need, limit) = (size(need), format!("{} may be used ({source})", size(bytes)));
    Err(SolverError::Memory { what: what(), need, limit, remedy })
}

/// Returns the address space that a step of `bytes` needs, and its limit, if it is beyond that.
///
/// The space is mapped long before it is held, so that what is held says little of it.
fn beyond_address_space(bytes: u64) -> Option<(u64, Limit)> {
    if bytes <= LEAST {
        return None;
    }
    let most = address_space_limit()?;
    let need = machine::mapped_bytes()?.saturating_add(bytes);
    (need > most).then_some((need, Limit { bytes: most, source: LimitSource::AddressSpace }))
}

/// Foresees a step that is taken whatever it holds, as results are written that would be lost.
pub fn note(bytes: u64) {
    let need = need(bytes);
    let mut ledger = ledger();
    ledger.expected = ledger.expected.max(need);
}

fn need(bytes: u64) -> u64 {
    let held = machine::resident_bytes().unwrap_or(0);
    held.saturating_add(bytes).saturating_add(GROWTH)
}

/// Returns the most that the steps so far were foreseen to hold; `None` before the first.
pub fn expected() -> Option<u64> {
    Some(ledger().expected).filter(|&bytes| bytes > 0)
}

struct Ledger {
    limit: Option<Limit>,
    expected: u64,
}

fn ledger() -> MutexGuard<'static, Ledger> {
    static LEDGER: Mutex<Ledger> = Mutex::new(Ledger { limit: None, expected: 0 });
    LEDGER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the bytes that the control groups listed in `groups`, as `/proc/self/cgroup` lists them, leave
/// under `mount`; file pages that the system can drop do not count.
fn left_by_groups(groups: &str, mount: &Path) -> Option<u64> {
    let fields = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let left = fields.filter_map(|(_, controllers, path)| {
        let (root, files) = match controllers {
            "" => (mount.to_owned(), ["memory.max", "memory.current", "inactive_file"]),
            names if names.split(',').any(|name| name == "memory") => (
                mount.join("memory"),
                ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"],
            ),
            _ => return None,
        };
        let own = root.join(path.trim_start_matches('/'));
        let above = own.ancestors().take_while(|folder| folder.starts_with(&root));
        above.filter_map(|folder| left_by(folder, files)).min()
    });
    left.min()
}

/// Returns what a control group leaves: its limit less what it holds that cannot be dropped.
fn left_by(folder: &Path, [most, current, dropped]: [&str; 3]) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    // A group without a limit says `max`, or a number beyond all memory.
    let most = read(most)?.trim().parse::<u64>().ok().filter(|&most| most < 1 << 60)?;
    let current = read(current).and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let stat = read("memory.stat").unwrap_or_default();
    let words = stat.lines().filter_map(|line| line.split_once(' '));
    let found = words.filter(|(name, _)| *name == dropped).find_map(|(_, n)| n.parse().ok());
    let held: u64 = u64::saturating_sub(current, found.unwrap_or(0));
    Some(most.saturating_sub(held))
}

/// Returns the limit on the address space of this process (`ulimit -v`), if there is one.
pub(crate) fn address_space_limit() -> Option<u64> {
    address_space(&fs::read_to_string("/proc/self/limits").ok()?)
}

/// Returns the limit on the address space in the text of `/proc/self/limits`.
fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{
        LEAST, Limit, LimitSource, address_space, expected, foresee, left, left_by_groups, limit,
        set_limit,
    };

    #[test]
    fn the_tightest_group_limits() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        assert_eq!(left_by_groups("0::/a/b\n", dir.path()), None);
        write("a/b/memory.max", "max\n");
        write("a/memory.max", "1000000\n");
        write("a/memory.current", "700000\n");
        write("a/memory.stat", "anon 5\ninactive_file 200000\n");
        assert_eq!(left_by_groups("0::/a/b\n", dir.path()), Some(500_000));
        write("a/b/memory.max", "90\n");
        write("a/b/memory.current", "100\n");
        assert_eq!(left_by_groups("0::/a/b\n", dir.path()), Some(0));
        assert_eq!(left_by_groups("0::/a\n3:cpu:/a/b\n", dir.path()), Some(500_000));
        fs::create_dir_all(dir.path().join("memory/c")).unwrap();
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/c/memory.limit_in_bytes", "4096\n");
        assert_eq!(left_by_groups("5:cpu,memory:/c\n", dir.path()), Some(4096));
    }

    #[test]
    fn the_address_space_is_read() {
        let line = |soft: &str| format!("Max cpu time 1 2\nMax address space   {soft}  9 bytes\n");
        assert_eq!(address_space(&line("4096")), Some(4096));
        assert_eq!(address_space(&line("unlimited")), None);
        assert_eq!(
            limit(Some(1 << 20)),
            Some(Limit { bytes: 1 << 20, source: LimitSource::Asked })
        );
    }

    #[test]
    fn a_step_beyond_the_limit_is_refused_and_others_are_remembered() {
        foresee(1 << 30, || "a step".into(), "").unwrap();
        assert!(expected().unwrap() >= 1 << 30);
        set_limit(Some(Limit { bytes: 1 << 32, source: LimitSource::Asked }));
        assert!((1 << 31..1 << 32).contains(&left().unwrap()));
        let refused = foresee(1 << 33, || "the matrix".into(), "lower the rank").unwrap_err();
        set_limit(Some(Limit { bytes: LEAST, source: LimitSource::Asked }));
        assert_eq!(left(), Some(LEAST));
        set_limit(Some(Limit { bytes: 1000, source: LimitSource::Asked }));
        assert_eq!(left(), Some(1000));
        set_limit(None);
        let text = refused.to_string();
        for word in ["the matrix needs 8.", "4.0 GiB may be used (as asked for)", "lower the rank"]
        {
            assert!(text.contains(word), "{text}");
        }
        assert!(expected().unwrap() < 1 << 32);
    }
}
