//! Sums of lists: the union of their patterns.

use std::ops::Range;

use rayon::prelude::*;

use crate::array::Array;
use crate::coo::Coo;
use crate::coo::merge::{Part, Picks, WORD, parts};
use crate::error::FormatError;
use crate::modes::ModeOrder;
use crate::narrow_ints::{Ints, Width};
use crate::sort::Layout;
use crate::value::Value;

/// Two sorted lists whose sum is to be made, and the cells of their union, counted.
pub struct Union<V: Value> {
    a: Coo<V>,
    b: Coo<V>,
    /// `None` where the cells cannot be numbered in 64 bits.
    parts: Option<Vec<Part>>,
}

impl<V: Value> Coo<V> {
    /// Returns `self + other`: an entry for every coordinate that either lists, in the natural order.
    ///
    /// [`Coo::union_bytes`] and [`Union::sum_bytes`] tell the memory beforehand.
    ///
    /// # Errors
    ///
    /// As [`Coo::union`].
    pub fn plus(self, other: Coo<V>) -> Result<Coo<V>, FormatError> {
        self.union(other)?.sum()
    }

    /// Sorts both lists, sums up their duplicates, and counts the cells of their union.
    ///
    /// Parallel; time `O(nnz * order)` for lists in the natural order, memory [`Coo::union_bytes`].
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if the extents differ; as [`Coo::sort`].
    pub fn union(mut self, mut other: Coo<V>) -> Result<Union<V>, FormatError> {
        if self.extents != other.extents {
            let (a, b) = (&self.extents, &other.extents);
            return Err(FormatError::NotATensor(format!("a sum of tensors of {a:?} and {b:?}")));
        }
        let natural = ModeOrder::natural(self.order());
        for list in [&mut self, &mut other] {
            list.sort(&natural)?;
            list.sum_duplicates()?;
        }
        let parts = self.has_numbers().then(|| parts(&self, &other));
        Ok(Union { a: self, b: other, parts })
    }

    /// Returns the bytes that [`Coo::union`] takes beside the lists.
    pub fn union_bytes(&self, other: &Coo<V>) -> u64 {
        let natural = ModeOrder::natural(self.order());
        let tidied = |list: &Coo<V>| list.bytes_to_sort(&natural).max(list.nnz() as u64 / 8);
        // A list that cannot be sorted in its own arrays is kept in a sorted copy.
        let (first, second) = (tidied(self), tidied(other));
        let bits = if self.has_numbers() { (self.nnz() + other.nnz()) as u64 / 4 } else { 0 };
        let kept = self.bytes_to_copy(&natural) + other.bytes_to_copy(&natural);
        first.max(self.bytes_to_copy(&natural) + second).max(kept + bits)
    }

    /// Tells whether all cells have numbers of 64 bits.
    fn has_numbers(&self) -> bool {
        self.extents.iter().try_fold(1_u64, |cells, &n| cells.checked_mul(n)).is_some()
    }
}

impl<V: Value> Union<V> {
    /// Returns the bytes that [`Union::sum`] takes beside the lists.
    pub fn sum_bytes(&self) -> u64 {
        let width = |mode| width_of(&self.a.extents, mode).bytes() as u64;
        let entry = (0..self.a.order()).map(width).sum::<u64>() + V::BYTES as u64;
        match &self.parts {
            Some(parts) => parts.iter().map(|part| part.len as u64).sum::<u64>() * entry,
            None => {
                let layout = Layout::new(&self.a.extents, &ModeOrder::natural(self.a.order()));
                (self.a.nnz() + self.b.nnz()) as u64 * (entry + layout.entry_bytes() as u64)
            }
        }
    }

    /// Returns the sum: an entry for every coordinate that either lists, in the natural order.
    ///
    /// Lists are merged, or sorted where their cells have no numbers of 64 bits.  Parallel; time `O(nnz * order)` to merge,
    /// memory [`Union::sum_bytes`].
    ///
    /// # Errors
    ///
    /// As [`Coo::sort`].
    pub fn sum(self) -> Result<Coo<V>, FormatError> {
        match &self.parts {
            Some(parts) => Ok(merged(&self.a, &self.b, parts)),
            None => chained(&self.a, &self.b),
        }
    }
}

/// The width of the coordinates of a mode in the sum: two bytes if no mode is longer than 65,536, four or eight otherwise.
fn width_of(extents: &[u64], mode: usize) -> Width {
    let width = Width::below(extents[mode]);
    let are_short = extents.iter().all(|&extent| Width::below(extent) == Width::W16);
    if are_short { width } else { width.max(Width::W32) }
}

/// Puts the lists one behind the other, and sorts them.
fn chained<V: Value>(a: &Coo<V>, b: &Coo<V>) -> Result<Coo<V>, FormatError> {
    let column = |mode| {
        let both = a.coords(mode).iter().chain(b.coords(mode).iter());
        Ints::collect(both, width_of(&a.extents, mode))
    };
    let coords = (0..a.order()).map(column).collect();
    let values: Vec<V> = a.values.iter().chain(b.values.iter()).copied().collect();
    let mut sum = Coo::fitting(a.extents.clone(), coords, values.into());
    sum.sum_duplicates()?;
    Ok(sum)
}

/// Merges lists that ascend, as their `parts` tell.
fn merged<V: Value>(a: &Coo<V>, b: &Coo<V>, parts: &[Part]) -> Coo<V> {
    let lengths: Vec<usize> = parts.iter().map(|part| part.len).collect();
    let len = lengths.iter().sum();
    let column = |mode| Ints::to_fill(len, width_of(&a.extents, mode));
    let mut coords: Vec<Ints> = (0..a.order()).map(column).collect();
    let mut values: Array<V> = Array::to_fill(len);
    let mut columns: Vec<Vec<Slot<'_>>> =
        coords.iter_mut().map(|own| slots(own, &lengths)).collect();
    let mut tasks: Vec<Task<'_, V>> = Vec::with_capacity(parts.len());
    let mut rest = values.make_mut();
    for part in parts.iter().rev() {
        let (before, own) = rest.split_at_mut(rest.len() - part.len);
        rest = before;
        let columns = columns.iter_mut().filter_map(Vec::pop).collect();
        tasks.push(Task { part, columns, values: own });
    }
    tasks.into_par_iter().for_each(|task| task.run(a, b));
    Coo::ascending(a.extents.clone(), coords, values)
}

/// A part with its place in the result.
struct Task<'a, V> {
    part: &'a Part,
    columns: Vec<Slot<'a>>,
    values: &'a mut [V],
}

impl<V: Value> Task<'_, V> {
    fn run(mut self, a: &Coo<V>, b: &Coo<V>) {
        let [mut at, mut other] = self.part.entries.each_ref().map(|entries| entries.start);
        let mut picks = [0; WORD];
        for (word, bits) in self.part.words.iter().enumerate() {
            let begin = word * WORD;
            let out = begin..(begin + WORD).min(self.part.len);
            bits.pick(&mut picks);
            for (mode, column) in self.columns.iter_mut().enumerate() {
                column.fill(out.clone(), &picks, [(&a.coords[mode], at), (&b.coords[mode], other)]);
            }
            let values = [&a.values[at..], &b.values[other..]];
            gather(&mut self.values[out.clone()], &picks, values, |value| value);
            bits.add_both(&mut self.values[out.clone()], values[1]);
            at += out.len() - bits.from_second.count_ones() as usize;
            other += bits.of_second().count_ones() as usize;
        }
    }
}

/// A part of a column of the result.
enum Slot<'a> {
    W16(&'a mut [u16]),
    W32(&'a mut [u32]),
    W64(&'a mut [u64]),
}

/// Cuts a column into parts.
fn slots<'a>(column: &'a mut Ints, lengths: &[usize]) -> Vec<Slot<'a>> {
    match column {
        Ints::U16(column) => cut(column.make_mut(), lengths).into_iter().map(Slot::W16).collect(),
        Ints::U32(column) => cut(column.make_mut(), lengths).into_iter().map(Slot::W32).collect(),
        Ints::U64(column) => cut(column.make_mut(), lengths).into_iter().map(Slot::W64).collect(),
    }
}

fn cut<'a, T>(mut column: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let mut slots = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (own, rest) = column.split_at_mut(length);
        slots.push(own);
        column = rest;
    }
    slots
}

/// The coordinates of a mode in a list, and the place of the next entry.
type Coordinates<'a> = (&'a Ints, usize);

impl Slot<'_> {
    /// Writes the entries `out` of the part.
    fn fill(&mut self, out: Range<usize>, picks: &Picks, lists: [Coordinates<'_>; 2]) {
        let [(a, at), (b, other)] = lists;
        match (self, a, b) {
            (Slot::W16(own), Ints::U16(a), Ints::U16(b)) => {
                gather(&mut own[out], picks, [&a[at..], &b[other..]], |at| at);
            }
            (Slot::W16(own), Ints::U32(a), Ints::U32(b)) => {
                gather(&mut own[out], picks, [&a[at..], &b[other..]], |at| at as u16);
            }
            (Slot::W32(own), Ints::U32(a), Ints::U32(b)) => {
                gather(&mut own[out], picks, [&a[at..], &b[other..]], |at| at);
            }
            (Slot::W64(own), Ints::U64(a), Ints::U64(b)) => {
                gather(&mut own[out], picks, [&a[at..], &b[other..]], |at| at);
            }
            (Slot::W16(own), ..) => each(&mut own[out], picks, lists, |at| at as u16),
            (Slot::W32(own), ..) => each(&mut own[out], picks, lists, |at| at as u32),
            (Slot::W64(own), ..) => each(&mut own[out], picks, lists, |at| at),
        }
    }
}

/// Takes each coordinate from where it is.
fn each<T>(out: &mut [T], picks: &Picks, lists: [Coordinates<'_>; 2], narrow: fn(u64) -> T) {
    for (out, &pick) in out.iter_mut().zip(picks) {
        let (list, place) = (usize::from(pick) / WORD, usize::from(pick) % WORD);
        let (coords, begin) = lists[list];
        *out = narrow(coords.get(begin + place));
    }
}

/// Takes each element from where it is among the next ones of two lists.
fn gather<T: Copy + Default, U>(
    out: &mut [U],
    picks: &Picks,
    [first, second]: [&[T]; 2],
    narrow: impl Fn(T) -> U,
) {
    let next = match (first.first_chunk(), second.first_chunk()) {
        (Some(first), Some(second)) => chained_words(first, second),
        // The lists end here.
        _ => chained_words(&padded(first), &padded(second)),
    };
    // No pick is beyond the last: the remainder only says so to the compiler.
    let pairs = out.iter_mut().zip(picks);
    pairs.for_each(|(out, &pick)| *out = narrow(next[usize::from(pick) % (2 * WORD)]));
}

/// Returns the next elements of two lists, one behind the other.
fn chained_words<T: Copy + Default>(first: &[T; WORD], second: &[T; WORD]) -> [T; 2 * WORD] {
    let mut both = [T::default(); 2 * WORD];
    both[..WORD].copy_from_slice(first);
    both[WORD..].copy_from_slice(second);
    both
}

/// Returns the first elements of a list, with zeros behind its last.
fn padded<T: Copy + Default>(list: &[T]) -> [T; WORD] {
    let mut first = [T::default(); WORD];
    let have = list.len().min(WORD);
    first[..have].copy_from_slice(&list[..have]);
    first
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::coo::Coo;

    /// A list of cells that `step` leaps over, in no order, some of them twice.
    fn list(extents: &[u64], len: u64, step: u64) -> Coo<f64> {
        let cells: u64 = extents.iter().product();
        let cell = |entry: u64| entry.wrapping_mul(step).wrapping_mul(0x9e37_79b9) % cells;
        let mut coords = vec![Vec::new(); extents.len()];
        for entry in 0..len {
            let mut rest = cell(entry);
            for (mode, &extent) in extents.iter().enumerate().rev() {
                coords[mode].push(rest % extent);
                rest /= extent;
            }
        }
        let coords = coords.into_iter().map(Into::into).collect();
        let values = (0..len).map(|entry| entry as f64 + 0.5).collect::<Vec<f64>>();
        Coo::new(extents.to_vec(), coords, values).unwrap()
    }

    fn map(list: &Coo<f64>) -> BTreeMap<Vec<u64>, f64> {
        let mut map = BTreeMap::new();
        for (entry, &value) in list.values().iter().enumerate() {
            let place = (0..list.order()).map(|mode| list.coords(mode).get(entry)).collect();
            *map.entry(place).or_default() += value;
        }
        map
    }

    #[test]
    fn sums_have_the_entries_of_both() {
        for (extents, a, b) in [
            (vec![30, 40, 50], 20_000, 300),
            (vec![30, 40, 50], 0, 300),
            (vec![700, 900], 200_000, 150_000),
            (vec![700, 900], 90, 250_000),
            (vec![1 << 33, 50], 500, 500),
        ] {
            let (a, b) = (list(&extents, a, 7), list(&extents, b, 11));
            let mut want = map(&a);
            for (place, value) in map(&b) {
                *want.entry(place).or_default() += value;
            }
            let mut narrow = a.clone();
            narrow.narrow();
            assert_eq!(map(&narrow.plus(b.clone()).unwrap()), want);
            let twice = a.clone().plus(a.clone()).unwrap();
            assert_eq!(map(&twice), map(&a).into_iter().map(|(at, v)| (at, 2.0 * v)).collect());
            let sum = a.plus(b).unwrap();
            assert_eq!(map(&sum), want);
            assert_eq!(sum.nnz(), want.len());
            let places: Vec<Vec<u64>> = (0..sum.nnz())
                .map(|entry| (0..sum.order()).map(|mode| sum.coords(mode).get(entry)).collect())
                .collect();
            assert!(places.is_sorted());
        }
    }

    #[test]
    fn parts_of_every_length_are_merged_to_their_end() {
        let row = |len: u64| {
            let columns: Vec<u64> = (0..len).collect();
            let coords = vec![vec![0_u64; len as usize].into(), columns.into()];
            Coo::new(vec![1, 1 << 20], coords, vec![1.0; len as usize]).unwrap()
        };
        for len in (0..200).chain([(1 << 14) - 1, 1 << 14, (1 << 14) + 63]) {
            let sum = row(len).plus(row(len)).unwrap();
            assert_eq!(sum.values(), vec![2.0; len as usize]);
            let sum = row(len).plus(row(len + 63)).unwrap();
            assert_eq!(sum.nnz() as u64, len + 63);
            assert_eq!(sum.values().iter().sum::<f64>(), (2 * len + 63) as f64);
        }
    }

    #[test]
    fn cells_without_numbers_are_sorted() {
        let far = 1_u64 << 40;
        let one = |at: u64, value: f64| {
            let coords = vec![vec![at].into(), vec![far - 1 - at].into()];
            Coo::new(vec![far, far], coords, vec![value]).unwrap()
        };
        let sum = one(5, 1.0).plus(one(3, 2.0)).unwrap().plus(one(5, 4.0)).unwrap();
        assert_eq!(sum.values(), [2.0, 5.0]);
        assert_eq!(sum.coords(0).iter().collect::<Vec<_>>(), [3, 5]);
        let other = Coo::new(vec![2], vec![vec![0u32].into()], vec![1.0]).unwrap();
        assert!(one(1, 1.0).plus(other).is_err());
    }
}
