//! Which cells were observed, from a file of its own.
//!
//! A cell is observed where the mask has a number other than zero; an observed cell that the tensor
//! does not list is a zero, and an entry outside of the mask is unknown.

use std::cmp::Ordering;
use std::path::Path;

use decompose_formats::io::Base;
use decompose_formats::{Coo, Duplicates, Ints, Width, counted};

use crate::complete::settings::Settings;
use crate::failure::Failure;
use crate::run::console::Console;

/// Reads the mask in `file` and takes what it says of the sorted `tensor`, whose indices count from
/// `base`.
///
/// # Errors
///
/// A file that is no list or array, of another order, or without an observed cell.
pub(crate) fn apply(
    settings: &Settings,
    file: &Path,
    base: Option<Base>,
    tensor: &Coo<f64>,
    console: &mut Console,
) -> Result<Coo<f64>, Failure> {
    let mut input = settings.input.beside(file, base).read::<f64>(&mut console.screen)?;
    let (have, want) = (input.tensor.order(), tensor.order());
    if have != want {
        let why = format!("the mask {} is of order {have}, the tensor of {want}", file.display());
        return Err(Failure::input(why).help("a line of a mask is `i j k 1`, as one of the tensor"));
    }
    input.tidy(Duplicates::Sum, &mut console.screen)?;
    let mask = input.tensor;
    let values = mask.values();
    let observed = mask.filtered(|entry| values[entry] != 0.0);
    if observed.nnz() == 0 {
        return Err(Failure::input(format!("the mask {} has no observed cell", file.display())));
    }
    let (masked, found) = masked(tensor, &observed)?;
    let (zeros, unknown) = (masked.nnz() - found, tensor.nnz() - found);
    console.screen.line(format!(
        "mask     {}, of these {} that the tensor does not list; {} outside and unknown",
        counted(masked.nnz(), "observed cell", "observed cells"),
        counted(zeros, "zero", "zeros"),
        counted(unknown, "entry is", "entries are")
    ));
    Ok(masked)
}

/// Returns the cells of `mask` with the values of `tensor`, zero where it has none, and how many it
/// has; both are sorted by their natural order, without duplicates.
fn masked(tensor: &Coo<f64>, mask: &Coo<f64>) -> Result<(Coo<f64>, usize), Failure> {
    let order = tensor.order();
    let compare = |entry: usize, cell: usize| {
        let pairs = (0..order).map(|m| (tensor.coords(m).get(entry), mask.coords(m).get(cell)));
        pairs.map(|(a, b)| a.cmp(&b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    let (mut entry, mut found) = (0, 0);
    let value = |cell: usize| {
        while entry < tensor.nnz() && compare(entry, cell).is_lt() {
            entry += 1;
        }
        if entry < tensor.nnz() && compare(entry, cell).is_eq() {
            found += 1;
            return tensor.values()[entry];
        }
        0.0
    };
    let values: Vec<f64> = (0..mask.nnz()).map(value).collect();
    let pairs = tensor.extents().iter().zip(mask.extents());
    let extents: Vec<u64> = pairs.map(|(&a, &b)| a.max(b)).collect();
    let coords = (0..order)
        .map(|mode| Ints::collect(mask.coords(mode).iter(), Width::listed(extents[mode])));
    let coords = coords.collect();
    let mut masked = Coo::new(extents, coords, values)?;
    masked.sum_duplicates()?;
    Ok((masked, found))
}

#[cfg(test)]
mod tests {
    use decompose_formats::Coo;

    use super::masked;

    fn list(extents: &[u64], cells: &[(u32, u32, f64)]) -> Coo<f64> {
        let rows = cells.iter().map(|cell| cell.0).collect::<Vec<u32>>();
        let cols = cells.iter().map(|cell| cell.1).collect::<Vec<u32>>();
        let values: Vec<f64> = cells.iter().map(|cell| cell.2).collect();
        Coo::new(extents.to_vec(), vec![rows.into(), cols.into()], values).unwrap()
    }

    #[test]
    fn observed_cells_that_are_not_listed_are_zeros() {
        let tensor = list(&[3, 3], &[(0, 1, 2.0), (1, 0, 3.0), (2, 2, 4.0)]);
        let mask =
            list(&[3, 4], &[(0, 0, 1.0), (0, 1, 1.0), (1, 1, 1.0), (2, 2, 1.0), (2, 3, 1.0)]);
        let (observed, found) = masked(&tensor, &mask).unwrap();
        assert_eq!(observed.values(), [0.0, 2.0, 0.0, 4.0, 0.0]);
        assert_eq!((observed.extents(), found), (&[3, 4][..], 2));
    }
}
