//! Distinct cells from draws that repeat.

use rayon::iter::{IntoParallelIterator, ParallelExtend, ParallelIterator};

use crate::array::Array;
use crate::coo::{Coo, Duplicates};
use crate::error::FormatError;
use crate::modes::ModeOrder;
use crate::narrow_ints::{Int, Ints, Width, each_width};
use crate::synth::random::Stream;

/// Rounds of drawing before the rest is spread over the free cells.
const ROUNDS: usize = 12;
/// Least share of draws that must give new cells for another round to be worth it.
const YIELD: f64 = 0.05;

/// Draws exactly `nnz` distinct cells, sorted by the natural order.
///
/// `coord(mode, draw)` is the coordinate in `mode` of a draw.  Draws are made, sorted and merged
/// until enough are distinct; a surplus is thinned out evenly.
pub(super) fn draw(
    extents: &[u64],
    nnz: u64,
    seed: u64,
    coord: impl Fn(usize, u64) -> u64 + Sync,
) -> Result<Coo<f32>, FormatError> {
    let mut cells = Coo::sorted(
        extents.to_vec(),
        empty(extents),
        Vec::new().into(),
        ModeOrder::natural(extents.len()),
    );
    let (mut drawn, mut fresh) = (0, 1.0);
    for _ in 0..ROUNDS {
        let (have, missing) = (cells.nnz() as u64, nnz - (cells.nnz() as u64).min(nnz));
        if missing == 0 || fresh < YIELD {
            break;
        }
        let wanted = (missing as f64 / fresh) as u64;
        // A small surplus saves the last rounds, each of which sorts all cells.
        let draws = if fresh < 1.0 { wanted + wanted / 32 + 64 } else { wanted };
        cells = append(cells, drawn..drawn + draws, &coord)?;
        cells.merge_duplicates(Duplicates::First)?;
        drawn += draws;
        fresh = ((cells.nnz() as u64 - have) as f64 / draws as f64).min(1.0 - f64::EPSILON);
    }
    thin(&mut cells, nnz as usize);
    if (cells.nnz() as u64) < nnz { fill(cells, nnz, seed) } else { Ok(cells) }
}

fn empty(extents: &[u64]) -> Vec<Ints> {
    extents.iter().map(|&extent| Ints::to_fill(0, Width::listed(extent))).collect()
}

/// Adds the cells of `draws`.
fn append(
    cells: Coo<f32>,
    draws: std::ops::Range<u64>,
    coord: impl Fn(usize, u64) -> u64 + Sync,
) -> Result<Coo<f32>, FormatError> {
    let (extents, columns, values) = cells.into_parts();
    let mut values = values.into_vec();
    values.resize(values.len() + (draws.end - draws.start) as usize, 0.0);
    let extend = |(mode, ints): (usize, Ints)| -> Ints {
        let coords = draws.clone().into_par_iter().map(|draw| coord(mode, draw));
        each_width!(Ints, ints, array => extended(array, coords))
    };
    let columns = columns.into_iter().enumerate().map(extend).collect();
    Coo::new(extents, columns, values)
}

fn extended<T: Int>(array: Array<T>, coords: impl ParallelIterator<Item = u64>) -> Ints
where
    Ints: From<Vec<T>>,
{
    let mut column = array.into_vec();
    column.par_extend(coords.map(T::cut));
    column.into()
}

/// Drops evenly spaced cells until `nnz` are left.
fn thin(cells: &mut Coo<f32>, nnz: usize) {
    let len = cells.nnz() as u128;
    let surplus = len.saturating_sub(nnz as u128);
    if surplus > 0 {
        let dropped = |position: u128| position * surplus / len;
        cells.keep(|position| dropped(position as u128) == dropped(position as u128 + 1));
    }
}

/// Adds free cells until there are `nnz`: the free cells, in order, are cut into as many parts of
/// equal size as cells are missing, and one is drawn of each.
fn fill(cells: Coo<f32>, nnz: u64, seed: u64) -> Result<Coo<f32>, FormatError> {
    let extents = cells.extents().to_vec();
    let order = extents.len();
    let all: u128 = extents.iter().map(|&extent| u128::from(extent)).product();
    let (have, missing) = (cells.nnz() as u128, u128::from(nnz) - cells.nnz() as u128);
    let stream = Stream::new(seed, "free cells");
    let rank = |part: u128| {
        let at = |part: u128| {
            part * ((all - have) / missing) + part * ((all - have) % missing) / missing
        };
        let size = (at(part + 1) - at(part)).min(u128::from(u64::MAX)) as u64;
        at(part) + u128::from(stream.below(part as u64, size))
    };
    let taken = |i: usize| {
        (0..order).fold(0, |cell, mode| {
            cell * u128::from(extents[mode]) + u128::from(cells.coords(mode).get(i))
        })
    };
    let mut columns: Vec<Vec<u64>> = vec![Vec::new(); order];
    let mut passed = 0;
    for part in 0..missing {
        // The free cell of a rank comes after that many free cells and all taken ones before it.
        while passed < cells.nnz() && taken(passed) <= rank(part) + passed as u128 {
            passed += 1;
        }
        let mut cell = rank(part) + passed as u128;
        for mode in (0..order).rev() {
            columns[mode].push((cell % u128::from(extents[mode])) as u64);
            cell /= u128::from(extents[mode]);
        }
    }
    let mut filled = append(cells, 0..missing as u64, |mode, draw| columns[mode][draw as usize])?;
    filled.sort(&ModeOrder::natural(order))?;
    Ok(filled)
}
