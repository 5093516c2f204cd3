//! How many products and elements a join of lists has.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use decompose_formats::mix::mix;
use decompose_formats::{Coo, Value};
use rayon::prelude::*;

use crate::einsum::{Access, Index, IndexSet};
use crate::schedule::JoinCounts;

/// A table by the number of a cell.
type Table<T> = HashMap<u128, T, BuildHasherDefault<CellHasher>>;

/// Hashes the numbers of cells: they are no text that somebody might choose to make collide.
#[derive(Default)]
struct CellHasher(u64);

impl Hasher for CellHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = mix(self.0 ^ u64::from(byte)));
    }

    fn write_u128(&mut self, cell: u128) {
        self.0 = mix(folded(cell));
    }
}

/// Products of which the different elements are counted, and non-zeros that are joined for them, of which few may have
/// partners.
const SAMPLED: u64 = 1 << 18;

/// Cells for each non-zero up to which non-zeros are counted in an array.
const CELLS_PER_ENTRY: u64 = 8;

/// Up to so many cells are counted in an array in any case.
const FEW_CELLS: u64 = 1 << 16;

/// Products that are listed at most: those of a sample, but for the partners of its last entry.
const MOST_CELLS: u64 = 4 * SAMPLED;

/// Bytes of the number of a cell by which non-zeros are sorted.
const KEY_BYTES: u64 = 8;

/// Bytes of the number of a cell with how often it comes, in a list that grows.
const CELL_BYTES: u64 = 16 * 3 / 2;

/// Bytes of an entry in the sample and in the list of partners, without its coordinates.
const SAMPLE_BYTES: u64 = 16;

/// Bytes of the list of partners of a sampled entry in a table of which up to half stays free: number, list, and a byte.
const PARTNER_BYTES: u64 = 2 * (16 + 32 + 1);

/// Bytes of a coordinate of a tuple.
const COORDINATE_BYTES: u64 = 8;

/// Bytes of a product of more than two operands: its number and places, and those of its coordinates that are needed.
const PRODUCT_BYTES: u64 = 8 + 24 + 2 * COORDINATE_BYTES;

/// Returns about how many bytes [`count_join`] holds at its peak.
pub fn join_bytes<V: Value>(operands: &[(&Access, &Coo<V>)]) -> u64 {
    let lists = operands.iter().map(|&(access, list)| List { access, list });
    let lists: Vec<List<'_, V>> = lists.collect();
    let [first, others @ ..] = lists.as_slice() else { return 0 };
    let nnz = first.list.nnz() as u64;
    let counts = others.iter().map(|second| {
        let cells = first.cells(&shared(first, second));
        match first.counts_in_array(cells) {
            true => cells.saturating_mul(4),
            false => (nnz + second.list.nnz() as u64).saturating_mul(KEY_BYTES),
        }
    });
    let all = lists.iter().map(|list| list.list.nnz() as u64);
    let products = all.clone().fold(1, u64::saturating_mul).min(SAMPLED);
    let keys = all.clone().max().unwrap_or(0).min(SAMPLED);
    let sampled = all.sum::<u64>().min(SAMPLED);
    let entry = SAMPLE_BYTES + COORDINATE_BYTES * first.access.indices.len() as u64;
    let more = if lists.len() > 2 { PRODUCT_BYTES + SAMPLE_BYTES } else { 0 };
    counts
        .max()
        .unwrap_or(0)
        .max(products * (CELL_BYTES + more) + sampled * entry + keys * PARTNER_BYTES)
}

/// Counts the join of two or more operands, each with its list without duplicates: the products of non-zeros whose
/// coordinates agree in the indices that they share, and about how many different coordinates these have in `output`.
///
/// Products of two operands are exact, beyond 2^64 cells almost surely.  Elements are counted for a sample of the
/// coordinates of one index of the output, with about 262,144 products or non-zeros, and scaled by the share of products;
/// they are exact where there are fewer.  More operands are joined with the sample one after the other, and the sample is
/// thinned where its products become too many.  Deterministic; time `O(nnz log nnz)`, memory as [`join_bytes`] says.
pub fn count_join<V: Value>(operands: &[(&Access, &Coo<V>)], output: IndexSet) -> JoinCounts {
    let lists = operands.iter().map(|&(access, list)| List { access, list });
    let mut lists: Vec<List<'_, V>> = lists.collect();
    let extent = |index: &Index| lists.iter().map(|list| list.cells(&[*index])).max().unwrap_or(1);
    let walked = lists.iter().fold(IndexSet::EMPTY, |set, list| set | list.access.set());
    let kept: Vec<(Index, u64)> =
        (walked & output).iter().map(|index| (index, extent(&index))).collect();
    let row = kept.iter().max_by_key(|(_, extent)| *extent).map(|&(index, _)| index);
    let row = row.or_else(|| lists.first()?.access.indices.first().copied());
    let Some(row) = row else { return JoinCounts { products: 1, elements: 1 } };
    // A list with the index is sampled.
    let own = lists.iter().position(|list| list.mode(row).is_some()).unwrap_or(0);
    let own = lists.remove(own);
    let Some(next) = take_next(&mut lists, own.access.set()) else {
        return JoinCounts { products: own.list.nnz() as u64, elements: own.list.nnz() as u64 };
    };
    let products = count_products(&own, &next, &shared(&own, &next));
    let most = products.max(own.list.nnz() as u64).max(1);
    let share = (SAMPLED as f64 / most as f64).min(1.0);
    let sample = own.sample(row, share);
    let scale = Scale { exact: products, row };
    let counts = scale.count(sample, next, lists, &kept);
    let cells = kept.iter().map(|(_, extent)| *extent).fold(1, u64::saturating_mul);
    JoinCounts { elements: counts.elements.min(cells), ..counts }
}

/// Takes the list that shares most indices with `own`.
fn take_next<'a, V: Value>(lists: &mut Vec<List<'a, V>>, own: IndexSet) -> Option<List<'a, V>> {
    let shared = |list: &List<'a, V>| (list.access.set() & own).len();
    let places = (0..lists.len()).rev();
    let most = places.max_by_key(|&at| shared(&lists[at]))?;
    Some(lists.remove(most))
}

/// Returns the indices that both lists have.
fn shared<V: Value>(first: &List<'_, V>, second: &List<'_, V>) -> Vec<Index> {
    (first.access.set() & second.access.set()).iter().collect()
}

/// How a count of a sample becomes one of all.
struct Scale {
    /// The products of the first two lists.
    exact: u64,
    /// The index whose coordinates are sampled.
    row: Index,
}

impl Scale {
    /// Joins `sample` with `next` and then with `rest`, and counts the products and the different coordinates in the indices
    /// `kept`, which come with their extents.
    fn count<'a, V: Value>(
        &self,
        mut sample: Tuples,
        mut next: List<'a, V>,
        mut rest: Vec<List<'a, V>>,
        kept: &[(Index, u64)],
    ) -> JoinCounts {
        let mut scale = None;
        loop {
            let joined = sample.join(&next);
            let thinned = sample.thin(self.row, &joined);
            let met = joined.products(&sample);
            let by = scale.map_or(self.exact as f64 / met.max(1) as f64, |by: f64| by * thinned);
            let scope = sample.set() | next.access.set();
            let Some(following) = take_next(&mut rest, scope) else {
                let distinct = joined.distinct(&sample, &next, kept);
                let products = (met as f64 * by).round() as u64;
                // A sample of few rows may have none.
                let elements = match met {
                    0 => self.exact,
                    _ => (distinct as f64 * by).ceil() as u64,
                };
                return JoinCounts { products, elements };
            };
            let needed = rest.iter().fold(following.access.set(), |set, l| set | l.access.set());
            let needed = kept.iter().fold(needed, |set, &(index, _)| set.with(index));
            sample = joined.tuples(&sample, &next, needed & scope);
            (next, scale) = (following, Some(by));
        }
    }
}

/// Coordinates of entries, index by index.
trait Coordinates {
    /// The index of each mode.
    fn indices(&self) -> &[Index];
    /// The extent of a mode.
    fn extent(&self, mode: usize) -> u64;
    /// The coordinate of an entry in a mode.
    fn at(&self, mode: usize, entry: usize) -> u64;

    fn mode(&self, index: Index) -> Option<usize> {
        self.indices().iter().position(|&own| own == index)
    }

    /// Returns the number of the cell of an entry in the modes of `indices` that it has; of cells beyond 128 bits equal
    /// ones may have the same number.
    fn cell<'a>(&'a self, indices: &[Index]) -> impl Fn(usize) -> u128 + use<'a, Self> {
        let modes = indices.iter().filter_map(|&index| self.mode(index));
        let modes: Vec<(usize, u128)> =
            modes.map(|mode| (mode, u128::from(self.extent(mode)))).collect();
        move |entry| {
            modes.iter().fold(0, |number: u128, &(mode, extent)| {
                number.wrapping_mul(extent).wrapping_add(u128::from(self.at(mode, entry)))
            })
        }
    }

    /// Returns the cells in the modes of `indices`; saturates.
    fn cells(&self, indices: &[Index]) -> u64 {
        let modes = indices.iter().filter_map(|&index| self.mode(index));
        modes.map(|mode| self.extent(mode)).fold(1, u64::saturating_mul)
    }
}

/// A list with the indices of its modes.
struct List<'a, V: Value> {
    access: &'a Access,
    list: &'a Coo<V>,
}

impl<V: Value> Coordinates for List<'_, V> {
    fn indices(&self) -> &[Index] {
        &self.access.indices
    }

    fn extent(&self, mode: usize) -> u64 {
        self.list.extents()[mode]
    }

    fn at(&self, mode: usize, entry: usize) -> u64 {
        self.list.coords(mode).get(entry)
    }
}

impl<V: Value> List<'_, V> {
    /// Returns the entries of about this share of the coordinates of `row`.
    fn sample(&self, row: Index, share: f64) -> Tuples {
        let nnz = 0..self.list.nnz();
        let entries: Vec<usize> = match self.mode(row) {
            Some(mode) => nnz.filter(|&at| is_sampled(self.at(mode, at), share)).collect(),
            None => Vec::new(),
        };
        let coords = (0..self.access.indices.len())
            .map(|mode| entries.iter().map(|&entry| self.at(mode, entry)).collect())
            .collect();
        Tuples {
            indices: self.access.indices.clone(),
            extents: self.list.extents().to_vec(),
            coords,
            times: vec![1; entries.len()],
        }
    }

    /// Tells whether non-zeros are counted by `cells` in an array, not in a table.
    fn counts_in_array(&self, cells: u64) -> bool {
        cells <= (self.list.nnz() as u64).saturating_mul(CELLS_PER_ENTRY).max(FEW_CELLS)
    }
}

/// Tells whether a coordinate belongs to a sample of about this share of all.
fn is_sampled(coordinate: u64, share: f64) -> bool {
    draw(coordinate) <= (share * u64::MAX as f64) as u64
}

/// Returns the number by which a coordinate is drawn.
fn draw(coordinate: u64) -> u64 {
    // Zero is mixed to zero: the first coordinate, often that with the most non-zeros, would be in every sample.
    mix(coordinate.wrapping_add(GOLDEN))
}

/// 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Coordinate tuples, each once, with the number of products that have it.
struct Tuples {
    indices: Vec<Index>,
    extents: Vec<u64>,
    /// By index.
    coords: Vec<Vec<u64>>,
    times: Vec<u64>,
}

impl Coordinates for Tuples {
    fn indices(&self) -> &[Index] {
        &self.indices
    }

    fn extent(&self, mode: usize) -> u64 {
        self.extents[mode]
    }

    fn at(&self, mode: usize, entry: usize) -> u64 {
        self.coords[mode][entry]
    }
}

impl Tuples {
    fn set(&self) -> IndexSet {
        self.indices.iter().copied().collect()
    }

    /// Finds the entries of `other` that each tuple meets.
    fn join<V: Value>(&self, other: &List<'_, V>) -> Partners {
        let shared: Vec<Index> = (self.set() & other.access.set()).iter().collect();
        let (key, other_key) = (self.cell(&shared), other.cell(&shared));
        let mut partners: Table<Vec<usize>> = Table::default();
        partners.reserve(self.times.len());
        for at in 0..self.times.len() {
            partners.entry(key(at)).or_default();
        }
        for entry in 0..other.list.nnz() {
            if let Some(partners) = partners.get_mut(&other_key(entry)) {
                partners.push(entry);
            }
        }
        Partners { shared, of_key: partners }
    }

    /// Leaves out tuples by the coordinate of `row` until they have few `partners`; returns by how much what is counted of
    /// the others is to be multiplied.
    fn thin(&mut self, row: Index, partners: &Partners) -> f64 {
        let pairs = partners.pairs(self);
        let Some(mode) = self.mode(row).filter(|_| pairs > SAMPLED) else { return 1.0 };
        // The coordinates that are left passed a test of the same numbers.
        let mut numbers: Vec<u64> = self.coords[mode].iter().map(|&at| draw(at)).collect();
        let before: u64 = self.times.iter().fold(0, |sum, &n| sum.saturating_add(n));
        numbers.sort_unstable();
        let left = (numbers.len() as f64 * SAMPLED as f64 / pairs as f64) as usize;
        let most = numbers[left.min(numbers.len() - 1)];
        let keep: Vec<bool> = self.coords[mode].iter().map(|&at| draw(at) <= most).collect();
        let kept = |list: &[u64]| -> Vec<u64> {
            list.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(&at, _)| at).collect()
        };
        self.coords = self.coords.iter().map(|own| kept(own)).collect();
        self.times = kept(&self.times);
        let after: u64 = self.times.iter().fold(0, |sum, &n| sum.saturating_add(n));
        before as f64 / after.max(1) as f64
    }
}

/// The entries of a list that tuples meet.
struct Partners {
    shared: Vec<Index>,
    of_key: Table<Vec<usize>>,
}

impl Partners {
    /// Iterates over the tuples with their partners, until too many were met.
    fn each<'a>(&'a self, tuples: &'a Tuples) -> impl Iterator<Item = (usize, &'a [usize])> {
        let key = tuples.cell(&self.shared);
        let mut met = 0;
        let of = move |at: usize| (at, self.of_key.get(&key(at)).map_or(&[][..], Vec::as_slice));
        (0..tuples.times.len()).map(of).take_while(move |(_, partners)| {
            let enough = met > MOST_CELLS;
            met += partners.len() as u64;
            !enough
        })
    }

    /// Returns the number of pairs of a tuple and a partner; saturates.
    fn pairs(&self, tuples: &Tuples) -> u64 {
        let key = tuples.cell(&self.shared);
        let of = |at: usize| self.of_key.get(&key(at)).map_or(0, |own| own.len() as u64);
        (0..tuples.times.len()).map(of).fold(0, u64::saturating_add)
    }

    /// Returns the products that the pairs stand for; saturates.
    fn products(&self, tuples: &Tuples) -> u64 {
        let of = |(at, partners): (usize, &[usize])| {
            tuples.times[at].saturating_mul(partners.len() as u64)
        };
        self.each(tuples).map(of).fold(0, u64::saturating_add)
    }

    /// Counts the different coordinates of the pairs in the indices `kept`, which come with their extents.
    fn distinct<V: Value>(
        &self,
        tuples: &Tuples,
        other: &List<'_, V>,
        kept: &[(Index, u64)],
    ) -> u64 {
        let mut cells = self.numbers(tuples, other, kept);
        cells.sort_unstable();
        cells.dedup();
        cells.len() as u64
    }

    /// Returns the number of the cell of each pair in the indices `kept`, which come with their extents.
    fn numbers<V: Value>(
        &self,
        tuples: &Tuples,
        other: &List<'_, V>,
        kept: &[(Index, u64)],
    ) -> Vec<u64> {
        let own = kept.iter().map(|&(index, _)| index);
        let (own, rest): (Vec<Index>, Vec<Index>) =
            own.partition(|&index| tuples.mode(index).is_some());
        let (own_cell, other_cell) = (tuples.cell(&own), other.cell(&rest));
        let width = u128::from(other.cells(&rest));
        let cell = |own: u128, other: u128| folded(own.wrapping_mul(width).wrapping_add(other));
        let mut numbers = Vec::new();
        for (at, partners) in self.each(tuples) {
            let own = own_cell(at);
            numbers.extend(partners.iter().map(|&partner| cell(own, other_cell(partner))));
        }
        numbers
    }

    /// Returns the different coordinate tuples of the pairs in the indices `needed`.
    fn tuples<V: Value>(&self, from: &Tuples, other: &List<'_, V>, needed: IndexSet) -> Tuples {
        let extent = |index: Index| from.cells(&[index]).max(other.cells(&[index]));
        let kept: Vec<(Index, u64)> = needed.iter().map(|index| (index, extent(index))).collect();
        let pairs = self.each(from);
        let pairs = pairs.flat_map(|(at, partners)| partners.iter().map(move |&own| (at, own)));
        let mut numbered: Vec<(u64, usize, usize)> = self
            .numbers(from, other, &kept)
            .into_iter()
            .zip(pairs)
            .map(|(number, (at, partner))| (number, at, partner))
            .collect();
        numbered.sort_unstable();
        let mut tuples = Tuples {
            indices: kept.iter().map(|&(index, _)| index).collect(),
            extents: kept.iter().map(|&(_, extent)| extent).collect(),
            coords: vec![Vec::new(); kept.len()],
            times: Vec::new(),
        };
        let mut last = None;
        for (number, at, partner) in numbered {
            if let Some(times) = tuples.times.last_mut().filter(|_| last == Some(number)) {
                *times = times.saturating_add(from.times[at]);
                continue;
            }
            last = Some(number);
            tuples.times.push(from.times[at]);
            for (mode, coords) in tuples.coords.iter_mut().enumerate() {
                let index = kept[mode].0;
                let own = from.mode(index).map(|mode| from.at(mode, at));
                let own = own.or_else(|| Some(other.at(other.mode(index)?, partner)));
                coords.extend(own);
            }
        }
        tuples
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
    let mut own: Vec<u64> = (0..nnz).map(|entry| folded(own(entry))).collect();
    let mut others: Vec<u64> = (0..other_nnz).map(|entry| folded(others(entry))).collect();
    own.par_sort_unstable();
    others.par_sort_unstable();
    let (mut products, mut first) = (0_u64, 0);
    for run in own.chunk_by(|a, b| a == b) {
        first += others[first..].iter().take_while(|cell| **cell < run[0]).count();
        let met = others[first..].iter().take_while(|cell| **cell == run[0]).count();
        products = products.saturating_add((run.len() as u64).saturating_mul(met as u64));
    }
    products
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
            let counts = count_join(&[(x, a), (y, b)], expr.output.set());
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

    /// The coordinates of the product of `left` and the matrix `b`.
    fn product(left: &BTreeSet<(u64, u64)>, b: &Coo<f64>) -> BTreeSet<(u64, u64)> {
        let mut of_row = vec![Vec::new(); b.extents()[0] as usize];
        for entry in 0..b.nnz() {
            of_row[b.coords(0).get(entry) as usize].push(b.coords(1).get(entry));
        }
        left.iter().flat_map(|&(i, j)| of_row[j as usize].iter().map(move |&k| (i, k))).collect()
    }

    #[test]
    fn elements_of_chains_and_masks_are_within_a_fifth() {
        let band = matrix(3000, 3000, 8, |row, at| (row + at).min(2999));
        let mixed = |row: u32, at: u32| (row.wrapping_mul(7919) ^ at.wrapping_mul(104_729)) % 3000;
        let even = matrix(3000, 3000, 9, mixed);
        let skewed = matrix(3000, 3000, 9, |row, at| mixed(row, at) * mixed(row, at) / 3000);
        for a in [&band, &even, &skewed] {
            let own = (0..a.nnz()).map(|at| (a.coords(0).get(at), a.coords(1).get(at)));
            let own: BTreeSet<(u64, u64)> = own.collect();
            let square = product(&own, a);
            let cube = product(&square, a).len();
            let masked = square.intersection(&own).count();
            let rows: BTreeSet<u64> = square.iter().map(|&(i, _)| i).collect();
            for (expr, exact) in
                [("ij,jk,kl->il", cube), ("ij,jk,ik->ik", masked), ("ij,jk,kl->i", rows.len())]
            {
                let expr: Expr = expr.parse().unwrap();
                let operands: Vec<_> = expr.inputs.iter().map(|access| (access, a)).collect();
                let counted = count_join(&operands, expr.output.set()).elements as f64;
                let ratio = counted / exact as f64;
                assert!((1.0 / 1.2..=1.2).contains(&ratio), "{expr}: {counted} of {exact}");
            }
        }
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
        let counts = count_join(&[(x, &left), (y, &right)], expr.output.set());
        // Eight rows of each key meet one right row of key 3 and two of key 4, each pair in another cell.
        assert_eq!((counts.products, counts.elements), (24, 24));
    }

    #[test]
    fn a_number_is_one_element() {
        let x = matrix(30, 50, 4, |row, at| (row * 3 + at * 11) % 50);
        let expr: Expr = "ij,ij->".parse().unwrap();
        let inputs = [(&expr.inputs[0], &x), (&expr.inputs[1], &x)];
        let counts = count_join(&inputs, expr.output.set());
        assert_eq!((counts.products, counts.elements), (x.nnz() as u64, 1));
    }
}
