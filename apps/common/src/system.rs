//! Calls of the operating system for which the standard library has no name.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use decompose_formats::io::meets_refusal;

use crate::linalg::maps_buffer;

/// Lets a write beyond the limit on the size of files (`ulimit -f`) fail with an error.
///
/// Otherwise the system ends the process, and what it has computed is lost.
pub fn let_large_writes_fail() {
    #[cfg(unix)]
    {
        // SAFETY: to ignore a signal installs no handler, and nothing else here sets this one.
        #[expect(unsafe_code, reason = "signals have no safe binding")]
        // A refusal leaves the signal as it was.
        let _ = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    }
}

/// The allocator of the system.  Where the system refuses memory it ends the process with [`NO_MEMORY`], its folders removed
/// and the reason on standard error, unless the caller can meet a refusal ([`meets_refusal`]).
///
/// Steps that take much are foreseen, and refused before; this is for what no forecast knows, such as other
/// processes.
pub struct Allocator;

// SAFETY: every call is that of the system's allocator, with the arguments of the caller.
#[expect(unsafe_code, reason = "the trait of allocators is unsafe")]
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        granted(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn granted(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() && !meets_refusal() {
        end_without_memory(bytes);
    }
    memory
}

/// The exit status of a process that the system refused memory: that of a bad input.
pub const NO_MEMORY: u8 = 2;

/// Tells whether a panic at `place` says that the system refused a thread its stack for signals: the standard library asks
/// no allocator for it.
pub fn is_refused_stack(place: &std::panic::Location<'_>) -> bool {
    cfg!(unix) && place.file().ends_with("stack_overflow.rs")
}

/// Ends the process, which the system refused a stack for signals, as [`Allocator`] does.
pub fn end_without_stack() {
    #[cfg(unix)]
    end_without_memory(libc::SIGSTKSZ);
}

/// Ends the process, which the system refused `bytes`, without another request if there is no memory for one.
fn end_without_memory(bytes: usize) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        let mut text = [0; 512];
        let mut rest = &mut text[..];
        let of = if maps_buffer() {
            "of address space for matrix products: each thread that multiplies maps twice the last-level cache, and \
             uses little of it\nhelp: "
        } else {
            "of memory\nhelp: lower the rank or the number of threads, or "
        };
        // The text is shorter than that.
        let _ = writeln!(
            rest,
            "error: the system refused {bytes} {} {of}raise the limit on memory (ulimit -v)",
            if bytes == 1 { "byte" } else { "bytes" },
        );
        let unused = rest.len();
        let text = &text[..text.len() - unused];
        // Standard error is not buffered, but its lock may be held by this thread.
        #[cfg(unix)]
        // SAFETY: the text lives through the call.
        #[expect(unsafe_code, reason = "the standard library takes a lock to write")]
        unsafe {
            libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        }
        crate::run_folder::abandon_all();
    }
    #[cfg(unix)]
    // SAFETY: it does not return, and runs nothing of this process, whose locks may be held.
    #[expect(unsafe_code, reason = "the standard library runs what was registered for the end")]
    unsafe {
        libc::_exit(NO_MEMORY.into())
    }
}

/// Exchanges two folders of one file system in one step: no reader and no crash meets a state between.
///
/// # Errors
///
/// If one does not exist, is in use as a mount point or not writable, or the system cannot do it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    let name = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (one, other) = (name(one)?, name(other)?);
    // SAFETY: both names end with a zero and live until the call returns.
    #[expect(unsafe_code, reason = "the standard library only renames")]
    let done = unsafe {
        libc::renameat2(
            libc::AT_FDCWD,
            one.as_ptr(),
            libc::AT_FDCWD,
            other.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Refuses: this system has no such call.
///
/// # Errors
///
/// Always.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::fs;

    use super::exchange;

    #[test]
    fn folders_change_places() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        fs::write(a.join("x"), "a").unwrap();
        exchange(&a, &b).unwrap();
        assert!(b.join("x").exists() && fs::read_dir(&a).unwrap().next().is_none());
        assert!(exchange(&a, &dir.path().join("absent")).is_err());
    }
}
