//! From trees back to the list of a tensor.

use decompose_formats::narrow_ints::Width;
use decompose_formats::{Coo, Csf, Ints, ModeOrder, Value};

use crate::error::CoreError;

/// The tuples of merged modes: the modes, and the tree whose last mode but groups numbers the tuples.
pub type Tuples<'a, V> = (&'a [usize], &'a Csf<V>);

/// Returns the tensor of `extents` that `tree` has over the groups of modes `groups`, sorted by its natural order;
/// `merged` has the tuples of each group of several modes.
///
/// # Errors
///
/// [`CoreError::Format`] if there is no memory; [`CoreError::Internal`] if a group has no tuples.
pub fn entries_of<V: Value>(
    tree: &Csf<V>,
    extents: &[u64],
    groups: &[Vec<usize>],
    merged: &[Tuples<'_, V>],
) -> Result<Coo<V>, CoreError> {
    // The number of a group of entries, if the tree has any, is the last column.
    let (_, stored, values) = tree.to_coo().into_parts();
    let mut coords: Vec<Option<Ints>> = extents.iter().map(|_| None).collect();
    for (column, modes) in stored.into_iter().zip(groups) {
        if let [mode] = modes[..] {
            coords[mode] = Some(column);
            continue;
        }
        let found = merged.iter().find(|(merged, _)| merged == modes);
        let (_, tuples) =
            found.ok_or_else(|| CoreError::Internal("modes without tuples".into()))?;
        let (_, tuples, _) = tuples.to_coo().into_parts();
        let (numbers, parts) = (&tuples[modes.len()], &tuples[..modes.len()]);
        for (&mode, part) in modes.iter().zip(parts) {
            let mut table = vec![0; numbers.len()];
            numbers.iter().zip(part.iter()).for_each(|(number, at)| table[number as usize] = at);
            let places = column.iter().map(|number| table[number as usize]);
            coords[mode] = Some(Ints::collect(places, Width::listed(extents[mode])));
        }
    }
    let coords: Option<Vec<Ints>> = coords.into_iter().collect();
    let coords = coords.ok_or_else(|| CoreError::Internal("a mode without coordinates".into()))?;
    let mut list = Coo::new(extents.to_vec(), coords, values)?;
    list.sort(&ModeOrder::natural(extents.len()))?;
    Ok(list)
}
