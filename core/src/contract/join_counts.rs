//! How many products and elements a join of two lists has.

use std::collections::HashMap;

use decompose_formats::mix::mix;
use decompose_formats::{Coo, Value};

use crate::einsum::{Access, Index, IndexSet};
use crate::schedule::JoinCounts;

/// Products of which the different elements are counted.
const SAMPLED: u64 = 1 << 18;

/// Cells for each non-zero up to which non-zeros are counted in an array.
const CELLS_PER_ENTRY: u64 = 8;

/// Up to so many cells are counted in an array in any case.
const FEW_CELLS: u64 = 1 << 16;

/// Cells of which the different ones are counted, at most: those of a sample, but for the partners of its last entry.
const MOST_CELLS: u64 = 4 * SAMPLED;

/// Bytes of a table of counts by coordinate, for each coordinate: key and count, of which up to half stay free.
const TABLE_BYTES: u64 = 2 * (16 + 8);

/// Bytes of the number of a cell, in a list that grows.
const CELL_BYTES: u64 = 8 * 3 / 2;

/// Bytes of an entry in the sample and in the list of partners.
const SAMPLE_BYTES: u64 = 8;

/// Returns about how many bytes [`count_join`] holds at its peak.
pub fn join_bytes<V: Value>(first: (&Access, &Coo<V>), second: (&Access, &Coo<V>)) -> u64 {
    let [first, second] = [first, second].map(|(access, list)| List { access, list });
    let shared: Vec<Index> = (first.access.set() & second.access.set()).iter().collect();
    let (nnz, other_nnz) = (first.list.nnz() as u64, second.list.nnz() as u64);
    let cells = first.cells(&shared);
    let counts = match first.counts_in_array(cells) {
        true => cells.saturating_mul(4),
        false => nnz.min(cells).saturating_mul(TABLE_BYTES),
    };
    let products = nnz.saturating_mul(other_nnz).min(SAMPLED);
    let sampled = (nnz + other_nnz).min(SAMPLED);
    counts.max(products * CELL_BYTES + sampled * SAMPLE_BYTES)
}

/// Counts the join of two operands, each with its list without duplicates: the products of non-zeros whose
/// coordinates agree in the indices that both have, and about how many different coordinates these have in `output`.
///
/// Products are exact.  Elements are counted for a sample of the coordinates of one index of the output, with about
/// 262,144 products, and scaled by the share of products; they are exact where there are fewer.  Deterministic; time
/// `O(nnz)`, memory as [`join_bytes`] says.
pub fn count_join<V: Value>(
    first: (&Access, &Coo<V>),
    second: (&Access, &Coo<V>),
    output: IndexSet,
) -> JoinCounts {
    let [first, second] = [first, second].map(|(access, list)| List { access, list });
    let shared: Vec<Index> = (first.access.set() & second.access.set()).iter().collect();
    let products = count_products(&first, &second, &shared);
    let output: Vec<Index> = ((first.access.set() | second.access.set()) & output).iter().collect();
    let extent = |index: &Index| first.cells(&[*index]).max(second.cells(&[*index]));
    let Some(&row) = output.iter().max_by_key(|index| extent(index)) else {
        return JoinCounts { products, elements: products.min(1) };
    };
    // The list with the index is the one that is sampled.
    let (own, other) = match first.access.indices.contains(&row) {
        true => (&first, &second),
        false => (&second, &first),
    };
    let share = (SAMPLED as f64 / products.max(1) as f64).min(1.0);
    let sample = own.sample(row, share);
    let (met, distinct) = own.distinct(&sample, other, &shared, &output);
    let cells = output.iter().map(extent).fold(1, u64::saturating_mul);
    // A sample of few rows may have none.
    let elements = match met {
        0 => products,
        met => (distinct as f64 * (products as f64 / met as f64)).ceil() as u64,
    };
    JoinCounts { products, elements: elements.min(cells) }
}

/// A list with the indices of its modes.
struct List<'a, V: Value> {
    access: &'a Access,
    list: &'a Coo<V>,
}

impl<'a, V: Value> List<'a, V> {
    fn mode(&self, index: Index) -> Option<usize> {
        self.access.indices.iter().position(|&own| own == index)
    }

    /// Returns the number of the cell of an entry in the modes of `indices` that it has; of cells beyond 128 bits equal
    /// ones may have the same number.
    fn cell(&self, indices: &[Index]) -> impl Fn(usize) -> u128 + use<'a, V> {
        let modes: Vec<usize> = indices.iter().filter_map(|&index| self.mode(index)).collect();
        let list = self.list;
        move |entry| {
            modes.iter().fold(0, |number: u128, &mode| {
                let extent = u128::from(list.extents()[mode]);
                number.wrapping_mul(extent).wrapping_add(u128::from(list.coords(mode).get(entry)))
            })
        }
    }

    /// Returns the cells in the modes of `indices`; saturates.
    fn cells(&self, indices: &[Index]) -> u64 {
        let extents = indices.iter().filter_map(|&index| self.mode(index));
        extents.map(|mode| self.list.extents()[mode]).fold(1, u64::saturating_mul)
    }

    /// Returns the entries of about this share of the coordinates of `row`.
    fn sample(&self, row: Index, share: f64) -> Vec<usize> {
        let Some(mode) = self.mode(row) else { return Vec::new() };
        let most = (share * u64::MAX as f64) as u64;
        let coords = self.list.coords(mode);
        (0..self.list.nnz()).filter(|&entry| mix(coords.get(entry)) <= most).collect()
    }

    /// Joins the entries `sample` with `other`; returns the products, and the different cells of `output` among them.
    fn distinct(
        &self,
        sample: &[usize],
        other: &List<'_, V>,
        shared: &[Index],
        output: &[Index],
    ) -> (u64, u64) {
        let (key, other_key) = (self.cell(shared), other.cell(shared));
        let mut partners: HashMap<u128, Vec<usize>> = HashMap::new();
        for &entry in sample {
            partners.entry(key(entry)).or_default();
        }
        for entry in 0..other.list.nnz() {
            if let Some(partners) = partners.get_mut(&other_key(entry)) {
                partners.push(entry);
            }
        }
        let rest: Vec<Index> =
            output.iter().copied().filter(|&index| self.mode(index).is_none()).collect();
        let (own_cell, other_cell) = (self.cell(output), other.cell(&rest));
        let width = u128::from(other.cells(&rest));
        let cell = |own: u128, other: u128| folded(own.wrapping_mul(width).wrapping_add(other));
        let mut cells: Vec<u64> = Vec::new();
        for &entry in sample {
            let own = own_cell(entry);
            let partners = partners.get(&key(entry)).map_or(&[][..], Vec::as_slice);
            cells.extend(partners.iter().map(|&partner| cell(own, other_cell(partner))));
            if cells.len() as u64 > MOST_CELLS {
                break;
            }
        }
        let products = cells.len() as u64;
        cells.sort_unstable();
        cells.dedup();
        (products, cells.len() as u64)
    }

    /// Tells whether non-zeros are counted by `cells` in an array, not in a table.
    fn counts_in_array(&self, cells: u64) -> bool {
        cells <= (self.list.nnz() as u64).saturating_mul(CELLS_PER_ENTRY).max(FEW_CELLS)
    }
}

/// Folds the number of a cell to 64 bits: different cells below 2^64 stay different, others almost surely.
fn folded(cell: u128) -> u64 {
    cell as u64 ^ mix((cell >> 64) as u64)
}

/// Counts the products of non-zeros that agree in the indices `shared`; saturates.
fn count_products<V: Value>(first: &List<'_, V>, second: &List<'_, V>, shared: &[Index]) -> u64 {
    let (own, others) = (first.cell(shared), second.cell(shared));
    let (nnz, other_nnz) = (first.list.nnz(), second.list.nnz());
    let cells = first.cells(shared);
    if first.counts_in_array(cells) {
        let mut counts = vec![0_u32; cells as usize];
        (0..nnz).for_each(|entry| counts[own(entry) as usize] += 1);
        let met = |entry| u64::from(counts[others(entry) as usize]);
        return (0..other_nnz).map(met).fold(0, u64::saturating_add);
    }
    let mut counts: HashMap<u128, u64> = HashMap::new();
    for entry in 0..nnz {
        *counts.entry(own(entry)).or_default() += 1;
    }
    let met = |entry| counts.get(&others(entry)).copied().unwrap_or(0);
    (0..other_nnz).map(met).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use decompose_formats::Coo;

    use super::count_join;
    use crate::einsum::Expr;

    /// A matrix of `rows` rows of which each has the columns that `column` says.
    fn matrix(rows: u32, cols: u64, each: u32, column: impl Fn(u32, u32) -> u32) -> Coo<f64> {
        let mut places = BTreeSet::new();
        for row in 0..rows {
            places.extend((0..each).map(|at| (row, column(row, at))));
        }
        let (a, b): (Vec<u32>, Vec<u32>) = places.into_iter().unzip();
        let values = vec![1.0; a.len()];
        Coo::new(vec![u64::from(rows), cols], vec![a.into(), b.into()], values).unwrap()
    }

    fn exact(a: &Coo<f64>, b: &Coo<f64>) -> (u64, u64) {
        let mut cells = BTreeSet::new();
        let mut products = 0;
        let mut of_row = vec![Vec::new(); b.extents()[0] as usize];
        for entry in 0..b.nnz() {
            of_row[b.coords(0).get(entry) as usize].push(b.coords(1).get(entry));
        }
        for entry in 0..a.nnz() {
            for &col in &of_row[a.coords(1).get(entry) as usize] {
                products += 1;
                cells.insert((a.coords(0).get(entry), col));
            }
        }
        (products, cells.len() as u64)
    }

    #[test]
    fn products_are_exact_and_elements_within_a_tenth() {
        let band = matrix(4000, 4000, 20, |row, at| (row + at).min(3999));
        let mixed = |row: u32, at: u32| (row.wrapping_mul(7919) ^ at.wrapping_mul(104_729)) % 4000;
        let even = matrix(4000, 4000, 12, mixed);
        let skewed = matrix(4000, 4000, 12, |row, at| mixed(row, at) * mixed(row, at) / 4000);
        let few = matrix(30, 50, 4, |row, at| (row * 3 + at * 11) % 50);
        let square = |a: &Coo<f64>, b: &Coo<f64>, expr: &str, most: f64| {
            let expr: Expr = expr.parse().unwrap();
            let [x, y] = expr.inputs.as_slice() else { panic!("two inputs") };
            let counts = count_join((x, a), (y, b), expr.output.set());
            let (products, elements) = exact(a, b);
            assert_eq!(counts.products, products);
            let ratio = counts.elements as f64 / elements as f64;
            assert!((1.0 / most..=most).contains(&ratio), "{ratio} of {elements}");
        };
        for matrix in [&band, &even, &skewed] {
            square(matrix, matrix, "ij,jk->ik", 1.1);
            square(matrix, matrix, "ij,jk->ki", 1.1);
        }
        let wide = matrix(50, 40, 5, |row, at| (row * 5 + at * 7) % 40);
        square(&few, &wide, "ij,jk->ik", 1.0);
    }

    #[test]
    fn cells_beyond_64_bits_are_told_apart() {
        let extent = 1_u64 << 31;
        let far = |at: u32| at * 1_000_003 % 2_147_483_647;
        let list = |rows: &[u32]| {
            let modes =
                [1, 7, 31].map(|by| rows.iter().map(|&row| far(row * by)).collect::<Vec<_>>());
            let [a, b, c] = modes.map(Into::into);
            let keys: Vec<u32> = rows.iter().map(|row| row % 5).collect();
            let values = vec![1.0; rows.len()];
            Coo::new(vec![extent, extent, extent, 5], vec![a, b, c, keys.into()], values).unwrap()
        };
        let (left, right) = (list(&(0..40).collect::<Vec<_>>()), list(&[3, 4, 9]));
        let expr: Expr = "abcx,defx->abcdef".parse().unwrap();
        let [x, y] = expr.inputs.as_slice() else { panic!("two inputs") };
        let counts = count_join((x, &left), (y, &right), expr.output.set());
        // Eight rows of each key meet one right row of key 3 and two of key 4, each pair in another cell.
        assert_eq!((counts.products, counts.elements), (24, 24));
    }

    #[test]
    fn a_number_is_one_element() {
        let x = matrix(30, 50, 4, |row, at| (row * 3 + at * 11) % 50);
        let expr: Expr = "ij,ij->".parse().unwrap();
        let counts = count_join((&expr.inputs[0], &x), (&expr.inputs[1], &x), expr.output.set());
        assert_eq!((counts.products, counts.elements), (x.nnz() as u64, 1));
    }
}
