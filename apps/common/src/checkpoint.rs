//! What the checkpoints of all solvers have in common.
//!
//! `checkpoint.npz` holds the state of a run to the last bit, its history, the reports of finished
//! restarts, and its *identity*: the options that must agree when the run is resumed.  Each solver
//! writes its own state beside these arrays; a file is always replaced as a whole.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use ndarray::{Array2, ArrayView1};
use ndarray_npy::ReadableElement;

use crate::SolverError;
use crate::error::CommonError;
use crate::history::{Detail, IterationRecord, from_table, to_table};
use crate::npz::{NpzIn, NpzOut};
use crate::restarts::{RestartReport, seed_of};
use crate::standing::Standing;
use crate::stopping::StopReason;

/// Where and how often to save the state of a run.
#[derive(Clone, Debug)]
pub struct CheckpointRule {
    /// An existing folder; `checkpoint.npz` and one `restart-K/model.npz` for each finished
    /// restart go there.
    pub folder: PathBuf,
    /// Iterations between two checkpoints; the end of the run is always saved.
    pub every: usize,
    troubles: Troubles,
}

/// Why checkpoints could not be saved, seen by all clones of a rule.
type Troubles = Arc<Mutex<Vec<String>>>;

impl CheckpointRule {
    /// Saves into `folder`, which exists, every `every` iterations.
    pub fn new(folder: &Path, every: usize) -> CheckpointRule {
        CheckpointRule { folder: folder.to_owned(), every, troubles: Troubles::default() }
    }

    /// Checks the rule.
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] if it asks for a checkpoint each zeroth iteration.
    pub fn validate(&self) -> Result<(), SolverError> {
        match self.every {
            0 => Err(SolverError::Config("checkpoints every 0 iterations; use at least 1".into())),
            _ => Ok(()),
        }
    }

    /// Saves by `save`, which is given the folder.
    ///
    /// A failure is kept for [`CheckpointRule::take_troubles`]: a full disk is no reason to lose a run.
    pub fn attempt<E: Display>(&self, save: impl FnOnce(&Path) -> Result<(), E>) {
        if let Err(error) = save(&self.folder) {
            self.troubles().push(error.to_string());
        }
    }

    /// Does [`CheckpointRule::attempt`] if a checkpoint is due after `iteration`.
    pub fn attempt_after<E: Display>(
        &self,
        iteration: usize,
        save: impl FnOnce(&Path) -> Result<(), E>,
    ) {
        if iteration.is_multiple_of(self.every) {
            self.attempt(save);
        }
    }

    /// Returns why checkpoints could not be saved since the last call.
    pub fn take_troubles(&self) -> Vec<String> {
        std::mem::take(&mut *self.troubles())
    }

    fn troubles(&self) -> MutexGuard<'_, Vec<String>> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The options that decide the course of a run, by name, as numbers.
pub type Identity = Vec<(&'static str, Vec<u64>)>;

/// Returns the file of a saved state in `folder`.
pub fn file(folder: &Path) -> PathBuf {
    folder.join("checkpoint.npz")
}

/// Returns the file of the model of finished restart number `restart`, from 0, in `folder`.
pub fn restart_model(folder: &Path, restart: usize) -> PathBuf {
    folder.join(format!("restart-{}/model.npz", restart + 1))
}

/// Saves the model of a finished restart as [`restart_model`] by `write`, which is given the model's folder.
///
/// # Errors
///
/// [`CommonError::Io`] if there can be no such folder; those of `write`.
pub fn save_restart<T>(
    folder: &Path,
    restart: usize,
    write: impl FnOnce(&Path) -> Result<T, CommonError>,
) -> Result<(), SolverError> {
    let folder = folder.join(format!("restart-{}", restart + 1));
    fs::create_dir_all(&folder).map_err(|source| CommonError::io("create", &folder, source))?;
    write(&folder)?;
    Ok(())
}

/// Opens the checkpoint in `folder`, whose arrays must be laid out as `version` says.
///
/// # Errors
///
/// [`CommonError::Io`] if there is none, [`CommonError::Content`] if it is of another layout.
pub fn open(folder: &Path, version: u64) -> Result<NpzIn, CommonError> {
    let mut archive = NpzIn::open(&file(folder))?;
    let found: Vec<u64> = archive.numbers("version")?;
    if found != [version] {
        let found: Vec<String> = found.iter().map(u64::to_string).collect();
        let why = format!(
            "its arrays have layout {}, this command reads {version}: another command or version of this program \
             has saved it; {REMEDY}",
            found.join(" ")
        );
        return Err(CommonError::content(archive.path(), why));
    }
    Ok(archive)
}

/// Writes the arrays that every checkpoint has.
///
/// # Errors
///
/// If the file cannot be written.
pub fn write_common(
    out: &mut NpzOut<'_>,
    version: u64,
    identity: &Identity,
    history: &[IterationRecord],
    finished: &[RestartReport],
) -> io::Result<()> {
    out.numbers("version", &[version])?;
    identity.iter().try_for_each(|(name, numbers)| out.numbers(name, numbers))?;
    out.array("history", to_table(history).view())?;
    out.array("finished", finished_table(finished).view())
}

/// Opens the checkpoint in `folder` as [`open`] does, and checks that it is of a run of these options.
///
/// # Errors
///
/// [`SolverError::Start`] with what differs; [`SolverError::Common`] if there is no readable checkpoint.
pub fn open_same(folder: &Path, version: u64, wanted: &Identity) -> Result<NpzIn, SolverError> {
    let mut archive = open(folder, version)?;
    match difference(&mut archive, wanted)? {
        Some(why) => Err(mismatch(folder, why)),
        None => Ok(archive),
    }
}

/// Returns the refusal of the checkpoint in `folder`.
pub fn mismatch(folder: &Path, why: String) -> SolverError {
    SolverError::Start { what: file(folder).display().to_string(), why }
}

/// What to do about a checkpoint that does not suit.
const REMEDY: &str = "resume with the command and the options that saved it, or begin anew";

/// The end of the name of an option that is a number, saved as its bits.
const AS_BITS: &str = ", as bits";

/// Writes the value of an option for people.
fn shown(name: &str, numbers: &[u64]) -> String {
    match name.ends_with(AS_BITS) {
        true => format!("{:?}", numbers.iter().map(|&n| f64::from_bits(n)).collect::<Vec<_>>()),
        false => format!("{numbers:?}"),
    }
}

/// Returns the first option in which the saved run differs from `wanted`, with both values;
/// `None` if they agree.
///
/// # Errors
///
/// [`CommonError::Content`] if an array is missing or of another type.
pub fn difference(archive: &mut NpzIn, wanted: &Identity) -> Result<Option<String>, CommonError> {
    for (name, wanted) in wanted {
        if !archive.has(name) {
            let why = format!("another command has saved it; {REMEDY}");
            return Err(CommonError::content(archive.path(), why));
        }
        let saved: Vec<u64> = archive.numbers(name)?;
        if saved != *wanted {
            let option = name.strip_suffix(AS_BITS).unwrap_or(name);
            let (saved, now) = (shown(name, &saved), shown(name, wanted));
            return Ok(Some(format!("{option}: saved {saved}, now {now}; {REMEDY}")));
        }
    }
    Ok(None)
}

/// Refuses the checkpoint in `folder` if the squared norms of the saved and the present tensor differ.
///
/// Another number of threads may add the squares in another order, so 1e-9 relative is allowed.
///
/// # Errors
///
/// [`SolverError::Start`] with both norms.
pub fn check_norm(folder: &Path, saved_squared: f64, squared: f64) -> Result<(), SolverError> {
    let (saved, now) = (saved_squared.sqrt(), squared.sqrt());
    match (squared / saved_squared - 1.0).abs() > 1e-9 {
        true => Err(mismatch(folder, format!("norm of the tensor: saved {saved}, now {now}"))),
        false => Ok(()),
    }
}

/// Writes where a start stands, its number of iterations excepted.
///
/// # Errors
///
/// If the file cannot be written.
pub fn write_standing(out: &mut NpzOut<'_>, standing: &Standing) -> io::Result<()> {
    out.numbers("measures", &[standing.fit, standing.change, standing.relative_error])
}

/// Reads where a start stands after so many iterations.
///
/// # Errors
///
/// [`CommonError::Content`] if the array is missing, or of another type or length.
pub fn read_standing(archive: &mut NpzIn, iterations: u64) -> Result<Standing, CommonError> {
    let [fit, change, relative_error] = fixed::<f64, 3>(archive, "measures")?;
    Ok(Standing { iteration: iterations as usize, fit, change, relative_error })
}

/// Reads an array of exactly `N` numbers.
///
/// # Errors
///
/// [`CommonError::Content`] if it is missing, or of another type or length.
pub fn fixed<A: Copy + ReadableElement, const N: usize>(
    archive: &mut NpzIn,
    name: &str,
) -> Result<[A; N], CommonError> {
    let numbers: Vec<A> = archive.numbers(name)?;
    let why = format!("array `{name}` has {} numbers for {N}", numbers.len());
    numbers.try_into().map_err(|_| CommonError::content(archive.path(), why))
}

/// Reads the iterations that a checkpoint's run has behind it; `layout` has the names and shapes
/// of their details.
///
/// # Errors
///
/// [`CommonError::Content`] if the array is missing or of another width.
pub fn read_history(
    archive: &mut NpzIn,
    layout: &[Detail],
) -> Result<Vec<IterationRecord>, CommonError> {
    let table: Array2<f64> = archive.array("history")?;
    let why = format!("array `history` has {} columns", table.ncols());
    from_table(&table, layout).ok_or_else(|| CommonError::content(archive.path(), why))
}

/// Reads the reports of the restarts that a checkpoint's run, of `seed`, has behind it.
///
/// # Errors
///
/// [`CommonError::Content`] if the array is missing, of another type or width, or names no reason to stop.
pub fn read_finished(archive: &mut NpzIn, seed: u64) -> Result<Vec<RestartReport>, CommonError> {
    let table: Array2<f64> = archive.array("finished")?;
    let report = |(restart, line): (usize, ArrayView1<'_, f64>)| {
        let [fit, relative_error, iterations, stop] = line.to_vec().try_into().ok()?;
        Some(RestartReport {
            seed: seed_of(seed, restart),
            fit,
            relative_error,
            iterations: iterations as usize,
            stop: StopReason::of_number(stop as u64)?,
        })
    };
    let reports: Option<Vec<RestartReport>> =
        table.rows().into_iter().enumerate().map(report).collect();
    let broken = "array `finished` holds no reports of restarts";
    reports.ok_or_else(|| CommonError::content(archive.path(), broken))
}

fn finished_table(finished: &[RestartReport]) -> Array2<f64> {
    let mut table = Array2::zeros((finished.len(), 4));
    for (mut line, report) in table.rows_mut().into_iter().zip(finished) {
        let stop = report.stop.number() as f64;
        let fields = [report.fit, report.relative_error, report.iterations as f64, stop];
        line.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
    }
    table
}
