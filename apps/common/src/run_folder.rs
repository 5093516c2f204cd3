//! The folder of a run, of figures or of measurements: claimed at the beginning, filled aside, whole at the end.
//!
//! ```text
//! run/            locked by the run that writes to it; two runs never share it
//! .run.partial/   the files of a run that will replace those in run/, beside it, or inside as
//!                 run/.run.partial where run/ cannot be exchanged
//! ```
//!
//! A new or empty folder is filled directly.  Where there are files, those of the new run go aside, and at the
//! end both folders change places in one step.  Files that no run writes stay where they are: then the files
//! are moved one by one, listed first in `moving`, and the next run into the folder completes a move that was
//! cut short.  A lock is a lock of the folder itself, which the system gives up with the process: what a killed
//! run has left is told from what a live one is writing, and removed by the next run, except a checkpoint that
//! a resumed run can continue.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use decompose_formats::io::{is_temporary, temporary};

use crate::checkpoint;
use crate::error::{CommonError, FolderTrouble};
use crate::files;
use crate::overwrite::Existing;
use crate::system;

mod contents;

use contents::is_restart;
pub use contents::{Contents, is_result};

/// Lists, in a folder aside, the files of a finished run while they are moved.
const MOVING: &str = "moving";
/// Begins the line of that list which says what the files are.
const HEAD: &str = "# ";

/// A folder that this run alone writes to, until it is dropped.
///
/// Dropped before [`RunFolder::publish`] or [`RunFolder::keep`], it leaves what was there before and a
/// checkpoint, if one was saved.
#[derive(Debug)]
pub struct RunFolder {
    /// As typed.
    path: PathBuf,
    /// Where the links in `path` lead.
    real: PathBuf,
    traces: Traces,
    /// Whether [`Traces::remove`] is due when this is dropped.
    end: End,
    /// The lock; `None` where the file system has none.
    _lock: Option<File>,
}

/// What becomes of the files of a run that is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// They go.
    Remove,
    /// They stay.
    Keep,
}

/// What a run leaves on disk before it ends.
#[derive(Clone, Debug)]
struct Traces {
    /// The folder that its files are written to.
    work: PathBuf,
    place: WorkPlace,
    contents: Contents,
    /// Folders made for it, outermost first.
    made: Vec<PathBuf>,
}

/// Where files are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkPlace {
    /// Into the folder itself.
    Final,
    /// Aside.
    Aside,
}

/// The traces of all runs of this process that have not ended.
static OPEN: Mutex<Vec<Traces>> = Mutex::new(Vec::new());

impl RunFolder {
    /// Claims `path` for a run.
    ///
    /// # Errors
    ///
    /// [`CommonError::Content`] if it is a file, another run writes to it, or something is in it that is to stay;
    /// [`CommonError::Io`] if it cannot be written, or holds no checkpoint to resume.
    pub fn claim(path: &Path, existing: Existing) -> Result<RunFolder, CommonError> {
        RunFolder::claim_for(path, existing, Contents::Run)
    }

    /// Claims `path` for `contents`.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::claim`]; also if a run that was cut short can be resumed into it, unless `contents` is a run.
    pub fn claim_for(
        path: &Path,
        existing: Existing,
        contents: Contents,
    ) -> Result<RunFolder, CommonError> {
        if path.exists() && !path.is_dir() {
            return Err(CommonError::folder(path, FolderTrouble::File));
        }
        if path.is_symlink() && !path.exists() {
            return Err(CommonError::folder(path, FolderTrouble::Dangling));
        }
        if existing == Existing::Resume {
            // Before a folder is made.
            let saved = checkpoint::file(&resumable(path));
            File::open(&saved).map_err(|source| CommonError::io("open", &saved, source))?;
        }
        let fail = |source| CommonError::io("write to", path, source);
        let (place, made) = (WorkPlace::Final, Vec::new());
        let mut traces = Traces { work: path.to_owned(), place, contents, made };
        let claimed = (|| {
            let lock = lock(path, &mut traces.made)?;
            let real = fs::canonicalize(path).map_err(fail)?;
            if lock.is_some() {
                recover(&real).map_err(fail)?;
            }
            match existing {
                Existing::Refuse => check_free(path, &real)?,
                Existing::Replace if contents != Contents::Run => {
                    check_resumed(path, &real)?;
                    remove_asides(&real, lock.as_ref())?;
                }
                Existing::Replace => remove_asides(&real, lock.as_ref())?,
                Existing::Resume if has_checkpoint(&resumable(&real), &real) => {}
                Existing::Resume => remove_asides(&real, lock.as_ref())?,
            }
            sweep(&real).map_err(fail)?;
            if existing != Existing::Resume && is_free(&real).map_err(fail)? {
                probe(&real).map_err(fail)?;
            } else {
                traces.work = aside(&real).map_err(fail)?;
                traces.place = WorkPlace::Aside;
            }
            Ok((lock, real))
        })();
        match claimed {
            Ok((lock, real)) => {
                open().push(traces.clone());
                let path = path.to_owned();
                Ok(RunFolder { path, real, traces, end: End::Remove, _lock: lock })
            }
            Err(error) => {
                remove_empty(&traces.made);
                Err(error)
            }
        }
    }

    /// Returns its path, as typed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder to write files into until the run ends.
    pub fn work(&self) -> &Path {
        &self.traces.work
    }

    /// Returns where the file `path` in [`RunFolder::work`] will be when the run has ended.
    pub fn will_be(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.work()).map_or_else(|_| path.to_owned(), |name| self.path.join(name))
    }

    /// Takes over the checkpoint in `source`, which this run resumes, with the models of finished restarts, unless
    /// it has saved its own.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`].
    pub fn take_checkpoint(&self, source: &Path) -> Result<(), CommonError> {
        let take = || {
            for name in names(source)?.into_iter().filter(|name| is_restart(name)) {
                let (from, to) = (source.join(&name), self.work().join(&name));
                fs::create_dir_all(&to)?;
                names(&from)?
                    .iter()
                    .try_for_each(|model| link(&from.join(model), &to.join(model)))?;
            }
            link(&checkpoint::file(source), &checkpoint::file(self.work()))
        };
        take().map_err(|error| CommonError::io("copy the checkpoint of", source, error))
    }

    /// Keeps what is written so far, whatever becomes of the run, unless that would replace an earlier run.
    pub fn keep(&mut self) {
        if self.traces.place == WorkPlace::Final {
            self.close();
        }
    }

    /// Makes what was written the content of the folder, in place of an earlier run.
    ///
    /// # Errors
    ///
    /// [`CommonError::Io`]; the files then stay in [`RunFolder::work`].
    pub fn publish(mut self) -> Result<(), CommonError> {
        self.close();
        match self.traces.place {
            WorkPlace::Final => Ok(()),
            WorkPlace::Aside => replace(self.work(), &self.real, self.traces.contents)
                .map_err(|source| CommonError::io("move the results to", &self.path, source)),
        }
    }

    /// Leaves the files as they are from now on.
    fn close(&mut self) {
        open().retain(|traces| traces.work != self.traces.work);
        self.end = End::Keep;
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        if self.end == End::Remove {
            self.traces.remove();
            self.close();
        }
    }
}

/// Removes what the runs of this process have written, since it ends before they have a result.
pub(crate) fn abandon_all() {
    open().iter().for_each(Traces::remove);
}

/// Returns the folder that holds the latest checkpoint of the runs into `path`: one that was cut short has left
/// it aside.
pub fn resumable(path: &Path) -> PathBuf {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let aside = asides(&real).into_iter().find(|aside| checkpoint::file(aside).is_file());
    aside.unwrap_or_else(|| path.to_owned())
}

impl Traces {
    fn remove(&self) {
        if checkpoint::file(&self.work).is_file() {
            return;
        }
        // What cannot be removed stays: there is an earlier failure to report.
        match self.place {
            WorkPlace::Aside => drop(fs::remove_dir_all(&self.work)),
            WorkPlace::Final => {
                let ours = names(&self.work).unwrap_or_default();
                ours.iter()
                    .filter(|name| self.contents.has(name) || is_temporary(name))
                    .for_each(|name| drop(remove(&self.work.join(name))));
            }
        }
        remove_empty(&self.made);
    }
}

fn open() -> MutexGuard<'static, Vec<Traces>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the folder where it is missing, noting in `made` what was made, and locks it.
fn lock(path: &Path, made: &mut Vec<PathBuf>) -> Result<Option<File>, CommonError> {
    let fail = |source| CommonError::io("write to", path, source);
    loop {
        make(path, made).map_err(fail)?;
        let Ok(folder) = File::open(path) else {
            // A folder of which the content may not be listed; or one that was removed in between.
            if path.exists() {
                return Ok(None);
            }
            continue;
        };
        match folder.try_lock() {
            Ok(()) if is_at(&folder, path) => return Ok(Some(folder)),
            // Another run has removed it or exchanged it in between.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                made.clear();
                return Err(CommonError::folder(path, FolderTrouble::InUse));
            }
            // Not every file system has locks.
            Err(TryLockError::Error(_)) => return Ok(None),
        }
    }
}

/// Makes `path` and its parents where they are missing, and notes those made here.
fn make(path: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let missing = path.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
    let missing: Vec<&Path> = missing.collect();
    for folder in missing.into_iter().rev() {
        match fs::create_dir(folder) {
            Ok(()) => made.push(folder.to_owned()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Tells whether `folder` is what `path` names now.
#[cfg(unix)]
fn is_at(folder: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(have), Ok(named)) = (folder.metadata(), fs::metadata(path)) else { return false };
    (have.dev(), have.ino()) == (named.dev(), named.ino())
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.is_dir()
}

/// Removes folders that were made here and are empty.
fn remove_empty(made: &[PathBuf]) {
    made.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
}

/// Refuses a folder with something in it.
fn check_free(path: &Path, real: &Path) -> Result<(), CommonError> {
    if !is_free(real).map_err(|source| CommonError::io("read", path, source))? {
        return Err(CommonError::folder(path, FolderTrouble::NotEmpty));
    }
    check_resumed(path, real)?;
    match asides(real).into_iter().find(|aside| aside.exists()) {
        Some(aside) => {
            fs::remove_dir_all(&aside).map_err(|source| CommonError::io("remove", &aside, source))
        }
        None => Ok(()),
    }
}

/// Refuses to discard a checkpoint that can be resumed.
fn check_resumed(path: &Path, real: &Path) -> Result<(), CommonError> {
    match asides(real).into_iter().find(|aside| checkpoint::file(aside).is_file()) {
        Some(aside) => Err(CommonError::folder(path, FolderTrouble::Resumable(aside))),
        None => Ok(()),
    }
}

/// Removes what runs that were cut short have left aside.
fn remove_asides(real: &Path, lock: Option<&File>) -> Result<(), CommonError> {
    for aside in asides(real).into_iter().filter(|aside| aside.exists()) {
        if lock.is_none() {
            let why = "a run that was cut short has left it, or one is still writing to it, and this file system \
                       has no locks to tell; remove it if no run is going on";
            return Err(CommonError::content(&aside, why));
        }
        fs::remove_dir_all(&aside).map_err(|source| CommonError::io("remove", &aside, source))?;
    }
    Ok(())
}

/// Removes half-written files of runs that were killed.
fn sweep(folder: &Path) -> io::Result<()> {
    names(folder)?
        .iter()
        .filter(|name| is_temporary(name))
        .try_for_each(|name| remove(&folder.join(name)))
}

/// Tells whether there is nothing in the folder but what killed runs leave.
fn is_free(folder: &Path) -> io::Result<bool> {
    let aside = asides(folder).map(|aside| aside.file_name().map(ToOwned::to_owned));
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !aside.contains(&Some(name.clone())) && !is_temporary(&name.to_string_lossy()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Tells whether `folder`, which is not the folder of the run itself, holds a checkpoint.
fn has_checkpoint(folder: &Path, real: &Path) -> bool {
    folder != real && checkpoint::file(folder).is_file()
}

/// Returns the places aside of `real`: beside it, and in it.
fn asides(real: &Path) -> [PathBuf; 2] {
    let mut name = std::ffi::OsString::from(".");
    name.push(real.file_name().unwrap_or("run".as_ref()));
    name.push(".partial");
    [real.with_file_name(&name), real.join(&name)]
}

/// Makes a folder aside of `real`, or takes that of a run to resume.
fn aside(real: &Path) -> io::Result<PathBuf> {
    let [beside, inside] = asides(real);
    if let Some(taken) = [&beside, &inside].into_iter().find(|folder| folder.is_dir()) {
        let ours = |name: &&String| !is_restart(name) && *name != "checkpoint.npz";
        names(taken)?.iter().filter(ours).try_for_each(|name| remove(&taken.join(name)))?;
        return Ok(taken.clone());
    }
    // The shell of who runs this would stand in a folder that is no more.
    let is_here = std::env::current_dir().is_ok_and(|here| here.starts_with(real));
    if !is_here && fs::create_dir(&beside).is_ok() {
        let permissions = fs::metadata(real)?.permissions();
        fs::set_permissions(&beside, permissions)?;
        return Ok(beside);
    }
    fs::create_dir(&inside)?;
    Ok(inside)
}

/// Makes the content of `work` that of `real`.
fn replace(work: &Path, real: &Path, contents: Contents) -> io::Result<()> {
    let mut list = names(work)?;
    list.retain(|name| name != MOVING);
    let stays =
        |name: &String| !contents.outdates(name) && !is_temporary(name) && !list.contains(name);
    let is_beside = work.parent() == real.parent();
    if is_beside && !names(real)?.iter().any(stays) && system::exchange(work, real).is_ok() {
        sync(real.parent());
        // It holds the earlier run now; what cannot be removed is removed by the next run.
        let _ = fs::remove_dir_all(work);
        return Ok(());
    }
    let listed = files::replace(&work.join(MOVING), |out| {
        io::Write::write_all(out, format!("{HEAD}{}\n", contents.name()).as_bytes())?;
        list.iter().try_for_each(|name| io::Write::write_all(out, format!("{name}\n").as_bytes()))
    });
    listed.map_err(io::Error::other)?;
    complete(work, real, &list, contents)
}

/// Completes a move that was cut short.
fn recover(real: &Path) -> io::Result<()> {
    for work in asides(real) {
        if let Ok(list) = fs::read_to_string(work.join(MOVING)) {
            let (heads, list): (Vec<&str>, Vec<&str>) =
                list.lines().partition(|line| line.starts_with(HEAD));
            let contents = heads.first().and_then(|head| {
                let name = head.strip_prefix(HEAD)?;
                Contents::ALL.into_iter().find(|contents| contents.name() == name)
            });
            let list: Vec<String> = list.into_iter().map(str::to_owned).collect();
            complete(&work, real, &list, contents.unwrap_or(Contents::Run))?;
        }
    }
    Ok(())
}

/// Moves what is left in `work` of the files in `list` to `real`, where no other file of a run stays.
///
/// The record goes first and comes last, so that what is half of one run and half of another has none.
fn complete(work: &Path, real: &Path, list: &[String], contents: Contents) -> io::Result<()> {
    if let Some(record) = contents.record() {
        let begun = !work.join(record).exists();
        if !begun || !list.iter().any(|name| name == record) {
            remove(&real.join(record))?;
        }
    }
    for name in names(real)? {
        if !list.contains(&name) && contents.outdates(&name) {
            remove(&real.join(&name))?;
        }
    }
    let is_record = |name: &&String| contents.record() == Some(name.as_str());
    let (records, others): (Vec<_>, Vec<_>) = list.iter().partition(is_record);
    for name in others.into_iter().chain(records) {
        let (from, to) = (work.join(name), real.join(name));
        if from.exists() {
            if to.is_dir() {
                fs::remove_dir_all(&to)?;
            }
            fs::rename(&from, &to)?;
        }
    }
    sync(Some(real));
    fs::remove_dir_all(work)
}

/// Has the system write the names in a folder to disk, where it can.
fn sync(folder: Option<&Path>) {
    let _ = folder.and_then(|folder| File::open(folder).ok()).map(|folder| folder.sync_all());
}

/// Removes a file, a link or a folder; one that is not there is fine.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Gives a file a second name, or copies it where the file system has no such thing; a file there stays.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(_) => fs::copy(from, to).map(drop),
    }
}

/// Returns the names in a folder.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let name =
        |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    fs::read_dir(folder)?.map(name).collect()
}

/// Creates and removes a file: permissions alone do not tell whether a folder can be written.
fn probe(folder: &Path) -> io::Result<()> {
    temporary(folder, "")?.close()
}

#[cfg(test)]
mod tests;
