//! The cache of compiled kernels: a private folder of files named by what they were made from.
//!
//! Loading a shared object runs code.  So the folder belongs to the user who runs the program, nobody
//! else can write to it, and every object is compared with the hash that stands at the end of its C file.
//!
//! ```text
//! KEY.c     the generated source, and in its last line the hash of the object
//! KEY.so    the object
//! ```
//!
//! An entry that is empty, cut or changed is compiled anew.  Files are written under another name, synced
//! and renamed, so that runs side by side do not disturb each other.  At its end a process that compiled, or that bounds
//! the cache to less than usual, removes what killed processes left, and the oldest entries beyond [`KernelCache::limit`].

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// How the last line of a cached C file begins.
const HASH_LINE: &str = "// object ";

/// How the names of folders begin in which kernels are being compiled.
const SCRATCH: &str = ".compiling-";

/// A folder of a compilation that is older than this belongs to no living process.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The size of the cache in bytes unless [`KernelCache::set_limit`] says otherwise: some 20,000 kernels.
const DEFAULT_LIMIT: u64 = 1 << 30;

static LIMIT: OnceLock<u64> = OnceLock::new();

/// The user's cache, once it was opened.
static OPENED: OnceLock<PathBuf> = OnceLock::new();

/// Whether this process has compiled.
static COMPILED: AtomicBool = AtomicBool::new(false);

/// What stands for the user's cache in this process, removed by [`KernelCache::close`].
static TEMPORARY: Mutex<Option<Temporary>> = Mutex::new(None);

/// A folder for kernels that no other process finds.
struct Temporary {
    folder: TempDir,
    /// Why the user's cache is not used.
    why: String,
}

/// A folder of compiled kernels.
#[derive(Clone, Debug)]
pub struct KernelCache {
    folder: PathBuf,
    /// Why the folder lasts for this process only.
    temporary: Option<String>,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Kernels.
    pub kernels: usize,
    /// Bytes of their files.
    pub bytes: u64,
}

/// The two files of a cached kernel.
#[derive(Clone, Debug)]
pub(super) struct CachedKernel {
    pub(super) object: PathBuf,
    pub(super) source: PathBuf,
}

impl KernelCache {
    /// Bounds the cache to `bytes`; the first call in a process counts.
    pub fn set_limit(bytes: u64) {
        let _ = LIMIT.set(bytes);
    }

    /// Returns how many bytes of kernels are kept.
    pub fn limit() -> u64 {
        LIMIT.get().copied().unwrap_or(DEFAULT_LIMIT)
    }

    /// Opens the user's cache: `$DECOMPOSE_CACHE`, else the folder for caches in the user's home.
    ///
    /// If there is none, or others can write to it or own it, a temporary folder stands for it.
    ///
    /// # Errors
    ///
    /// The system's message if no folder can be made.
    pub fn open() -> Result<KernelCache, String> {
        let asked = std::env::var_os("DECOMPOSE_CACHE").filter(|f| !f.is_empty());
        let usual = || {
            let dirs = directories::ProjectDirs::from("", "", "decompose")?;
            Some(dirs.cache_dir().join("kernels"))
        };
        let private = match asked.map(PathBuf::from).or_else(usual) {
            Some(folder) => make_private(&folder).map(|()| folder),
            None => Err("there is no home folder".to_owned()),
        };
        match private {
            Ok(folder) => {
                let _ = OPENED.set(folder.clone());
                Ok(KernelCache::at(folder))
            }
            Err(why) => KernelCache::temporary(why),
        }
    }

    /// Takes a folder as it is.
    pub(super) fn at(folder: PathBuf) -> KernelCache {
        KernelCache { folder, temporary: None }
    }

    /// Makes a folder that [`KernelCache::close`] removes.
    fn temporary(why: String) -> Result<KernelCache, String> {
        let mut kept = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = match &*kept {
            Some(made) => made.folder.path().to_owned(),
            None => {
                let made = tempfile::Builder::new().prefix("decompose-kernels-").tempdir();
                let folder =
                    made.map_err(|e| format!("{why}, and there is no temporary folder: {e}"))?;
                kept.insert(Temporary { folder, why: why.clone() }).folder.path().to_owned()
            }
        };
        Ok(KernelCache { temporary: Some(why), ..KernelCache::at(folder) })
    }

    /// Returns a temporary folder in place of this one, to which the system does not let this process write as `error`
    /// says.
    ///
    /// # Errors
    ///
    /// What the system says if this folder is temporary already, or no other can be made.
    pub(super) fn stand_in(&self, error: &io::Error) -> Result<KernelCache, String> {
        let why = format!("cannot write to the kernel cache {}: {error}", self.folder.display());
        match self.temporary {
            None => KernelCache::temporary(why),
            Some(_) => Err(why),
        }
    }

    /// Bounds the user's cache, and removes the temporary folder of this process, if it has one; loaded kernels stay
    /// loaded.
    ///
    /// Returns why kernels that this process compiled go with the folder, if they do.
    pub fn close() -> Option<String> {
        let limit = KernelCache::limit();
        // To list a large cache takes a while.
        let due = COMPILED.load(Ordering::Relaxed) || limit < DEFAULT_LIMIT;
        if let Some(folder) = OPENED.get().filter(|_| due) {
            KernelCache::at(folder.clone()).tidy(limit);
        }
        let temporary = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        COMPILED.load(Ordering::Relaxed).then_some(temporary.why)
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns why kernels are kept for this process only; `None` if they stay.
    pub fn lasts_for_this_process_only(&self) -> Option<&str> {
        self.temporary.as_deref()
    }

    /// Returns the entry of `key`, if it was made from `source` and its object is whole.
    ///
    /// Reads both files: `O(bytes)`.
    pub(super) fn find(&self, key: &str, source: &str) -> Option<CachedKernel> {
        let entry = self.entry(key);
        let text = fs::read_to_string(&entry.source).ok()?;
        let hash = text.strip_prefix(source)?.trim_start().strip_prefix(HASH_LINE)?;
        let object = fs::read(&entry.object).ok()?;
        if hash.trim_end() != blake3::hash(&object).to_hex().as_str() {
            return None;
        }
        // The time of the last use decides what goes first; without it the kernel is only compiled anew.
        let _ = File::options()
            .append(true)
            .open(&entry.source)
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(entry)
    }

    /// Makes a folder to compile in.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn scratch(&self) -> io::Result<TempDir> {
        COMPILED.store(true, Ordering::Relaxed);
        tempfile::Builder::new().prefix(SCRATCH).tempdir_in(&self.folder)
    }

    /// Moves the compiled `object` of `source` into the cache.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn store(
        &self,
        key: &str,
        source: &str,
        object: &Path,
        scratch: &Path,
    ) -> io::Result<CachedKernel> {
        let entry = self.entry(key);
        let hash = blake3::hash(&fs::read(object)?).to_hex();
        let text = scratch.join("entry.c");
        fs::write(&text, format!("{source}\n{HASH_LINE}{hash}\n"))?;
        for file in [object, &text] {
            File::open(file)?.sync_all()?;
        }
        // The source goes last: with it the entry is whole.
        fs::rename(object, &entry.object)?;
        fs::rename(&text, &entry.source)?;
        Ok(entry)
    }

    /// Keeps a source that the compiler refused, and returns where.
    pub(super) fn keep_refused(&self, key: &str, source: &Path) -> io::Result<PathBuf> {
        let kept = self.entry(key).source;
        fs::rename(source, &kept)?;
        Ok(kept)
    }

    /// Returns what the cache holds.
    pub fn usage(&self) -> Usage {
        let entries = self.by_age();
        Usage { kernels: entries.len(), bytes: entries.iter().map(|entry| entry.bytes).sum() }
    }

    /// Removes all kernels, and what is known of the compiler and of measured schedules; returns what was removed.
    ///
    /// # Errors
    ///
    /// The system's, naming the file.
    pub fn clear(&self) -> Result<Usage, String> {
        let usage = self.usage();
        let failed = |path: &Path, e: io::Error| format!("cannot remove {}: {e}", path.display());
        let listed = fs::read_dir(&self.folder).map_err(|e| failed(&self.folder, e))?;
        for path in listed.filter_map(|entry| Some(entry.ok()?.path())).filter(|p| is_ours(p)) {
            let removed = match path.is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            match removed {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(&path, e)),
                _ => {}
            }
        }
        Ok(usage)
    }

    /// Removes abandoned compilations, and the kernels unused for longest until `limit` bytes remain.
    fn tidy(&self, limit: u64) {
        for path in self.listed().filter(|path| begins_with(path, SCRATCH)) {
            if age(&path).is_some_and(|age| age > ABANDONED) {
                let _ = fs::remove_dir_all(path);
            }
        }
        let entries = self.by_age();
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        for entry in entries {
            if bytes <= limit {
                break;
            }
            bytes -= entry.bytes;
            let _ = fs::remove_file(&entry.source);
            let _ = fs::remove_file(entry.source.with_extension("so"));
        }
    }

    /// Returns the kernels, those unused for longest first.
    fn by_age(&self) -> Vec<Aged> {
        let sources = self.listed().filter(|path| path.extension().is_some_and(|e| e == "c"));
        let mut entries: Vec<Aged> = sources
            .filter_map(|source| {
                let data = fs::metadata(&source).ok()?;
                let object = fs::metadata(source.with_extension("so")).map_or(0, |o| o.len());
                Some(Aged { used: data.modified().ok()?, bytes: data.len() + object, source })
            })
            .collect();
        entries.sort_by(|a, b| (a.used, &a.source).cmp(&(b.used, &b.source)));
        entries
    }

    fn listed(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path()))
    }

    fn entry(&self, key: &str) -> CachedKernel {
        let file = |extension| self.folder.join(format!("{key}.{extension}"));
        CachedKernel { object: file("so"), source: file("c") }
    }
}

/// A kernel in the cache.
struct Aged {
    used: SystemTime,
    /// Of both files.
    bytes: u64,
    source: PathBuf,
}

/// Makes `folder` one that only this user reads and writes.
///
/// What others could write before is removed: it may be theirs.
fn make_private(folder: &Path) -> Result<(), String> {
    let shown = folder.display();
    let failed = |e: io::Error| format!("cannot make the kernel cache {shown}: {e}");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let data = fs::symlink_metadata(folder).map_err(failed)?;
    if !data.is_dir() {
        return Err(format!("the kernel cache {shown} is a link"));
    }
    if data.uid() != rustix::process::geteuid().as_raw() {
        return Err(format!("the kernel cache {shown} belongs to another user"));
    }
    if data.mode() & 0o077 != 0 {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    if data.mode() & 0o022 != 0 {
        KernelCache::at(folder.to_owned()).clear()?;
    }
    Ok(())
}

/// Tells whether a path in the cache is one that this program makes there.
fn is_ours(path: &Path) -> bool {
    let kernel = path.extension().is_some_and(|e| e == "c" || e == "so");
    let named = ["compiler.txt", "choices"].iter().any(|name| path.ends_with(name));
    kernel || named || begins_with(path, SCRATCH) || begins_with(path, ".tmp")
}

fn begins_with(path: &Path, start: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start))
}

/// Returns how long ago a file was changed.
fn age(path: &Path) -> Option<Duration> {
    fs::symlink_metadata(path).ok()?.modified().ok()?.elapsed().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::{KernelCache, SCRATCH, Usage, make_private};

    /// Stores a kernel whose object is `bytes`.
    fn store(cache: &KernelCache, key: &str, source: &str, bytes: &[u8]) {
        let scratch = cache.scratch().unwrap();
        let object = scratch.path().join("k.so");
        fs::write(&object, bytes).unwrap();
        cache.store(key, source, &object, scratch.path()).unwrap();
    }

    #[test]
    fn only_whole_entries_of_the_same_source_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let cache = KernelCache::at(folder.path().to_owned());
        assert!(cache.find("k", "int f;\n").is_none());
        store(&cache, "k", "int f;\n", b"object");
        let entry = cache.find("k", "int f;\n").unwrap();
        assert!(cache.find("k", "int g;\n").is_none(), "another source");
        assert!(cache.find("k", "int f").is_none(), "a part of the source");
        for damaged in [&b""[..], b"objec", b"objecT", b"planted"] {
            fs::write(&entry.object, damaged).unwrap();
            assert!(cache.find("k", "int f;\n").is_none(), "{damaged:?}");
        }
        fs::write(&entry.object, b"object").unwrap();
        assert!(cache.find("k", "int f;\n").is_some());
        fs::write(&entry.source, "").unwrap();
        assert!(cache.find("k", "int f;\n").is_none(), "an empty source");
    }

    #[test]
    fn the_oldest_kernels_go_first_and_abandoned_compilations_with_them() {
        let folder = tempfile::tempdir().unwrap();
        let cache = KernelCache::at(folder.path().to_owned());
        let old = |path: &Path, seconds: u64| {
            let when = SystemTime::now() - Duration::from_secs(seconds);
            fs::File::open(path).unwrap().set_modified(when).unwrap();
        };
        for (at, key) in ["a", "b", "c"].into_iter().enumerate() {
            store(&cache, key, "", &[0; 1000]);
            old(&folder.path().join(format!("{key}.c")), 100 - at as u64);
        }
        let [dead, living] =
            ["dead", "living"].map(|n| folder.path().join(format!("{SCRATCH}{n}")));
        fs::create_dir(&dead).unwrap();
        fs::create_dir(&living).unwrap();
        old(&dead, 7200);
        let Usage { kernels, bytes } = cache.usage();
        assert_eq!(kernels, 3);
        assert!(cache.find("a", "").is_some(), "it is used and so no longer the oldest");
        cache.tidy(bytes - 1);
        let left = ["a", "b", "c"].map(|key| cache.find(key, "").is_some());
        assert_eq!(left, [true, false, true]);
        assert!(!dead.exists() && living.exists());
        cache.clear().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_others_could_write_is_removed_and_links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("cache");
        let cache = KernelCache::at(open.clone());
        make_private(&open).unwrap();
        store(&cache, "k", "", b"object");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let set = |mode| fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
        set(0o755);
        make_private(&open).unwrap();
        assert!(mode(&open) == 0o700 && cache.find("k", "").is_some(), "others could only read");
        set(0o777);
        make_private(&open).unwrap();
        assert!(mode(&open) == 0o700 && cache.find("k", "").is_none());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&open, &link).unwrap();
        assert!(make_private(&link).unwrap_err().contains("link"));
    }
}
