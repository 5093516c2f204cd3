//! Where the iterations begin.

use decompose_common::init;
use decompose_common::model::{self, CpModel};
use decompose_cp::{Start, nvecs_start};
use decompose_formats::{Coo, Value};

use crate::cp::args::Init;
use crate::cp::compat::StartRange;
use crate::cp::settings::{Settings, StartFrom};
use crate::failure::Failure;

/// Reads the model that `--init` names; `None` if it names none.
///
/// # Errors
///
/// A file that is missing or no model.
pub(crate) fn given<V: Value>(settings: &Settings) -> Result<Option<CpModel<V>>, Failure> {
    let StartFrom::Init(Init::File(path)) = &settings.start else { return Ok(None) };
    let path = if path.is_dir() { path.join("model.npz") } else { path.clone() };
    Ok(Some(model::read(&path)?))
}

/// Makes the start that the settings ask for, from the sorted list where it depends on it.
///
/// # Errors
///
/// As [`nvecs_start`] and [`init::random`].
pub(crate) fn make<V: Value>(
    settings: &Settings,
    given: Option<CpModel<V>>,
    tensor: &Coo<V>,
) -> Result<Start<V>, Failure> {
    let config = &settings.config;
    Ok(match (&settings.start, given) {
        (StartFrom::Checkpoint(folder), _) => Start::Checkpoint(folder.clone()),
        (_, Some(model)) => Start::Given(model),
        (StartFrom::Init(Init::Nvecs), None) => nvecs_start(tensor, config)?,
        _ if settings.range == StartRange::PlusMinusThree => {
            let mut factors = init::random(tensor.extents(), config.rank, config.seed)?;
            for factor in &mut factors {
                for row in 0..factor.rows() {
                    let values = factor.row_mut(row).iter_mut();
                    values.for_each(|x: &mut V| *x = V::from_f64(6.0 * x.to_f64() - 3.0));
                }
            }
            Start::Given(CpModel::new(vec![1.0; config.rank], factors)?)
        }
        _ => Start::Random,
    })
}
