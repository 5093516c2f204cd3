//! The entries of a completion.

use decompose_common::SolverError;
use decompose_formats::Coo;

use crate::loss::Loss;

/// The entries of a completion, without duplicates.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Those that the model is fitted to.
    pub train: &'a Coo<f64>,
    /// Those that end the fit and choose the model.
    pub val: Option<&'a Coo<f64>>,
    /// Those that judge it.
    pub test: Option<&'a Coo<f64>>,
}

/// Checks the parts against each other and the loss.
pub(crate) fn check(data: Data<'_>, loss: Loss) -> Result<(), SolverError> {
    let extents = data.train.extents();
    let parts = [("training", Some(data.train)), ("validation", data.val), ("test", data.test)];
    for (name, part) in parts {
        let Some(part) = part else { continue };
        if part.nnz() == 0 {
            return Err(SolverError::Data(format!("there are no {name} entries")));
        }
        if part.extents() != extents {
            let (have, want) = (part.extents(), extents);
            let why = format!("the {name} entries have extents {have:?}, the training {want:?}");
            return Err(SolverError::Data(why));
        }
        if let Some(entry) = part.values().iter().position(|&x| !loss.allows(x)) {
            let at: Vec<String> = (0..part.order())
                .map(|mode| (part.coords(mode).get(entry) + 1).to_string())
                .collect();
            return Err(SolverError::Data(format!(
                "the {name} entry at {} is {}; the {loss} loss is for {}",
                at.join(" "),
                part.values()[entry],
                loss.domain()
            )));
        }
    }
    Ok(())
}

/// Counts the slices of a mode without an entry.
pub(crate) fn unseen(tensor: &Coo<f64>, mode: usize) -> u64 {
    let mut seen = vec![false; tensor.extents()[mode] as usize];
    tensor.coords(mode).iter().for_each(|row| seen[row as usize] = true);
    seen.iter().filter(|seen| !**seen).count() as u64
}
