//! The state of a scan on disk: the ranks that are done, and the fits of the one that is not.

use std::path::Path;

use decompose_common::CommonError;
use decompose_common::checkpoint::{self, Identity};
use decompose_common::model::CpModel;
use decompose_common::npz::{self, NpzIn};
use decompose_complete::{
    CompleteConfig, Data, RankFit, RankRow, SolverError, check_identity, write_identity,
};
use ndarray::Array2;

use crate::complete::settings::Settings;
use crate::failure::Failure;
use crate::rank::args::ScanMethod;

/// The layout of the arrays; a reader refuses others.
const VERSION: u64 = 2;

/// What of a scan is done.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) rows: Vec<RankRow>,
    /// The rank of `fits`; 0 for none.
    pub(crate) rank: usize,
    /// Those of its first starts.
    pub(crate) fits: Vec<RankFit>,
}

/// What a resumed scan must agree in with the one that was cut short.
pub(crate) struct Signature<'a> {
    data: Data<'a>,
    config: CompleteConfig,
    course: Identity,
}

impl<'a> Signature<'a> {
    /// Takes what decides the fits beside their rank: which ranks are compared may change.
    pub(crate) fn new(settings: &Settings, method: ScanMethod, data: Data<'a>) -> Signature<'a> {
        let config = settings.with_rank(1).config(data.train.order(), 0);
        let course = vec![
            ("method", vec![u64::from(method == ScanMethod::Cp)]),
            ("restarts", vec![settings.restarts as u64]),
            ("epochs and patience", vec![config.max_epochs as u64, config.patience.epochs as u64]),
            ("tolerance in 1e-15", vec![(config.patience.tol * 1e15) as u64]),
        ];
        Signature { data, config, course }
    }
}

/// Saves `state` in `folder`.
///
/// # Errors
///
/// If the file cannot be written.
pub(crate) fn save(state: &State, signature: &Signature<'_>, folder: &Path) -> Result<(), Failure> {
    let rows: Vec<[f64; 11]> = state.rows.iter().map(RankRow::to_numbers).collect();
    let fits: Vec<[f64; 6]> = state.fits.iter().map(RankFit::to_numbers).collect();
    let written = npz::write(&checkpoint::file(folder), |out| {
        out.numbers("version", &[VERSION])?;
        write_identity(out, signature.data, &signature.config)?;
        signature.course.iter().try_for_each(|(name, numbers)| out.numbers(name, numbers))?;
        out.array("rows", Array2::from(rows).view())?;
        out.array("fits", Array2::from(fits).view())?;
        out.numbers("rank", &[state.rank as u64])?;
        for (fit, at) in state.fits.iter().zip(1..) {
            out.numbers(&format!("weights_{at}"), fit.model.weights())?;
            for (factor, mode) in fit.model.factors().iter().zip(1..) {
                out.matrix(&format!("factor_{at}_{mode}"), factor)?;
            }
        }
        Ok(())
    });
    written.map_err(|error| Failure::from(error).while_writing())
}

/// Reads what [`save`] wrote.
///
/// # Errors
///
/// If there is no readable checkpoint, or it is of other data or options.
pub(crate) fn load(folder: &Path, signature: &Signature<'_>) -> Result<State, Failure> {
    let mut archive = checkpoint::open(folder, VERSION)?;
    check_identity(&mut archive, signature.data, &signature.config)?;
    if let Some(why) = checkpoint::difference(&mut archive, &signature.course)? {
        let what = checkpoint::file(folder).display().to_string();
        return Err(SolverError::Start { what, why }.into());
    }
    let order = signature.data.train.order();
    let rows = table::<11>(&mut archive, "rows")?.into_iter().map(RankRow::from_numbers).collect();
    let [rank] = checkpoint::fixed::<u64, 1>(&mut archive, "rank")?;
    let mut fits = Vec::new();
    for (numbers, at) in table::<6>(&mut archive, "fits")?.into_iter().zip(1..) {
        let weights = archive.numbers(&format!("weights_{at}"))?;
        let factors = (1..=order).map(|mode| archive.matrix(&format!("factor_{at}_{mode}")));
        let model = CpModel::new(weights, factors.collect::<Result<_, _>>()?)?;
        fits.push(RankFit::from_numbers(numbers, model));
    }
    Ok(State { rows, rank: rank as usize, fits })
}

/// Reads a table of `N` columns.
fn table<const N: usize>(archive: &mut NpzIn, name: &str) -> Result<Vec<[f64; N]>, Failure> {
    let table: Array2<f64> = archive.array(name)?;
    let lines: Result<_, _> =
        table.rows().into_iter().map(|line| line.to_vec().try_into()).collect();
    let why = || format!("array `{name}` has {} columns", table.ncols());
    Ok(lines.map_err(|_: Vec<f64>| CommonError::content(archive.path(), why()))?)
}
