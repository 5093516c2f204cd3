//! Sums of lists: the union of their patterns.

use std::ops::Range;

use rayon::prelude::*;

use crate::array::Array;
use crate::coo::Coo;
use crate::dims::ModeOrder;
use crate::error::FormatError;
use crate::ints::{Ints, Width};
use crate::value::Value;

/// Entries of both lists that a task merges.
const PART: usize = 1 << 16;

/// Entries of the result whose places in the lists are looked up together.
const BLOCK: usize = 1 << 11;

impl<V: Value> Coo<V> {
    /// Returns `self + other`: an entry for every coordinate that either lists, in the natural order.
    ///
    /// Both lists are sorted, without duplicates afterwards, and then merged.  Parallel; time `O(nnz * order)` for lists in
    /// the natural order, memory the result and, where the cells can be numbered in 64 bits, 8 bytes an entry.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if the extents differ; as [`Coo::sort`].
    pub fn plus(mut self, mut other: Coo<V>) -> Result<Coo<V>, FormatError> {
        if self.extents != other.extents {
            let (a, b) = (&self.extents, &other.extents);
            return Err(FormatError::NotATensor(format!("a sum of tensors of {a:?} and {b:?}")));
        }
        let natural = ModeOrder::natural(self.order());
        for list in [&mut self, &mut other] {
            list.sort(&natural)?;
            list.sum_duplicates()?;
        }
        let cells = self.extents.iter().try_fold(1_u64, |cells, &n| cells.checked_mul(n));
        match cells {
            Some(_) => Ok(merged(&self, &other)),
            None => chained(&self, &other),
        }
    }
}

/// Puts the lists one behind the other, and sorts them.
fn chained<V: Value>(a: &Coo<V>, b: &Coo<V>) -> Result<Coo<V>, FormatError> {
    let column =
        |(a, b): (&Ints, &Ints)| Ints::collect(a.iter().chain(b.iter()), a.width().max(b.width()));
    let coords = a.coords.iter().zip(&b.coords).map(column).collect();
    let values: Vec<V> = a.values.iter().chain(b.values.iter()).copied().collect();
    let mut sum = Coo::fitting(a.extents.clone(), coords, values.into());
    sum.sum_duplicates()?;
    Ok(sum)
}

/// Merges lists that ascend, and whose cells have numbers.
fn merged<V: Value>(a: &Coo<V>, b: &Coo<V>) -> Coo<V> {
    let (first, second) = (numbers(a), numbers(b));
    let parts = parts(&first, &second);
    let lengths: Vec<usize> =
        parts.par_iter().map(|part| Merge::new(&first, &second, part).map(|_| 1).sum()).collect();
    let mut coords: Vec<Wide> =
        a.extents.iter().map(|&extent| Wide::of(extent, lengths.iter().sum())).collect();
    let mut values = vec![V::default(); lengths.iter().sum()];
    let mut columns: Vec<Vec<Slot<'_>>> = coords.iter_mut().map(|own| own.cut(&lengths)).collect();
    let mut tasks: Vec<Task<'_, V>> = Vec::with_capacity(parts.len());
    let mut rest = values.as_mut_slice();
    for (part, &length) in parts.iter().zip(&lengths).rev() {
        let (before, own) = rest.split_at_mut(rest.len() - length);
        rest = before;
        let columns = columns.iter_mut().filter_map(Vec::pop).collect();
        tasks.push(Task { part: part.clone(), columns, values: own });
    }
    tasks.into_par_iter().for_each(|task| task.run((a, &first), (b, &second)));
    let coords = coords.into_iter().map(Wide::ints).collect();
    Coo::ascending(a.extents.clone(), coords, values.into())
}

/// Numbers the cell of each entry in the natural order.
fn numbers<V: Value>(list: &Coo<V>) -> Vec<u64> {
    let mut numbers = vec![0_u64; list.nnz()];
    for (coords, &extent) in list.coords.iter().zip(&list.extents) {
        numbers.par_chunks_mut(PART).enumerate().for_each(|(chunk, numbers)| {
            let begin = chunk * PART;
            let step = |(at, number): (usize, &mut u64)| {
                *number = *number * extent + coords.get(begin + at);
            };
            numbers.iter_mut().enumerate().for_each(step);
        });
    }
    numbers
}

/// Entries of both lists whose cells no other part has.
type Part = (Range<usize>, Range<usize>);

/// Cuts the lists at the same cells.
fn parts(a: &[u64], b: &[u64]) -> Vec<Part> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let cuts = (1..long.len().div_ceil(PART)).map(|part| part * PART);
    let mut parts = Vec::new();
    let (mut begin, mut other) = (0, 0);
    let pair = |long: Range<usize>, short: Range<usize>| match a.len() >= b.len() {
        true => (long, short),
        false => (short, long),
    };
    for cut in cuts {
        let place = short.partition_point(|&number| number < long[cut]);
        parts.push(pair(begin..cut, other..place));
        (begin, other) = (cut, place);
    }
    parts.push(pair(begin..long.len(), other..short.len()));
    parts
}

/// Where an entry of the result comes from.
#[derive(Clone, Copy)]
struct Pick {
    first: Option<usize>,
    second: Option<usize>,
}

/// Goes through a part of both lists by number.
struct Merge<'a> {
    first: &'a [u64],
    second: &'a [u64],
    at: usize,
    end: usize,
    other: usize,
    other_end: usize,
}

impl<'a> Merge<'a> {
    fn new(first: &'a [u64], second: &'a [u64], part: &Part) -> Merge<'a> {
        let (own, other) = part;
        let (at, end, other, other_end) = (own.start, own.end, other.start, other.end);
        Merge { first, second, at, end, other, other_end }
    }
}

impl Iterator for Merge<'_> {
    type Item = Pick;

    fn next(&mut self) -> Option<Pick> {
        let (has, other_has) = (self.at < self.end, self.other < self.other_end);
        if !has && !other_has {
            return None;
        }
        let takes = has && (!other_has || self.first[self.at] <= self.second[self.other]);
        let other_takes = other_has && (!has || self.second[self.other] <= self.first[self.at]);
        let pick =
            Pick { first: takes.then_some(self.at), second: other_takes.then_some(self.other) };
        self.at += usize::from(takes);
        self.other += usize::from(other_takes);
        Some(pick)
    }
}

/// A part with its place in the result.
struct Task<'a, V> {
    part: Part,
    columns: Vec<Slot<'a>>,
    values: &'a mut [V],
}

impl<V: Value> Task<'_, V> {
    fn run(mut self, (a, first): (&Coo<V>, &[u64]), (b, second): (&Coo<V>, &[u64])) {
        let mut merge = Merge::new(first, second, &self.part);
        let mut begin = 0;
        loop {
            let picks: Vec<Pick> = merge.by_ref().take(BLOCK).collect();
            if picks.is_empty() {
                return;
            }
            let block = begin..begin + picks.len();
            begin = block.end;
            for (mode, column) in self.columns.iter_mut().enumerate() {
                column.fill(block.clone(), &picks, (&a.coords[mode], &b.coords[mode]));
            }
            let value = |list: &Coo<V>, at: Option<usize>| at.map(|at| list.values[at]);
            for (out, pick) in self.values[block].iter_mut().zip(&picks) {
                *out = match (value(a, pick.first), value(b, pick.second)) {
                    (Some(a), Some(b)) => a + b,
                    (a, b) => a.or(b).unwrap_or_default(),
                };
            }
        }
    }
}

/// A column of the result.
enum Wide {
    W32(Vec<u32>),
    W64(Vec<u64>),
}

/// A part of a column.
enum Slot<'a> {
    W32(&'a mut [u32]),
    W64(&'a mut [u64]),
}

impl Wide {
    fn of(extent: u64, len: usize) -> Wide {
        match Width::listed(extent) {
            Width::W64 => Wide::W64(vec![0; len]),
            Width::W16 | Width::W32 => Wide::W32(vec![0; len]),
        }
    }

    fn cut(&mut self, lengths: &[usize]) -> Vec<Slot<'_>> {
        match self {
            Wide::W32(column) => cut(column, lengths).into_iter().map(Slot::W32).collect(),
            Wide::W64(column) => cut(column, lengths).into_iter().map(Slot::W64).collect(),
        }
    }

    fn ints(self) -> Ints {
        match self {
            Wide::W32(column) => Ints::U32(Array::from(column)),
            Wide::W64(column) => Ints::U64(Array::from(column)),
        }
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

impl Slot<'_> {
    fn fill(&mut self, block: Range<usize>, picks: &[Pick], (a, b): (&Ints, &Ints)) {
        match (self, a, b) {
            (Slot::W32(out), Ints::U32(a), Ints::U32(b)) => gather(&mut out[block], picks, a, b),
            (Slot::W64(out), Ints::U64(a), Ints::U64(b)) => gather(&mut out[block], picks, a, b),
            (Slot::W32(out), a, b) => each(&mut out[block], picks, |pick| of(pick, a, b) as u32),
            (Slot::W64(out), a, b) => each(&mut out[block], picks, |pick| of(pick, a, b)),
        }
    }
}

fn each<T>(out: &mut [T], picks: &[Pick], of: impl Fn(&Pick) -> T) {
    out.iter_mut().zip(picks).for_each(|(out, pick)| *out = of(pick));
}

fn gather<T: Copy + Default>(out: &mut [T], picks: &[Pick], a: &[T], b: &[T]) {
    each(out, picks, |pick| match (pick.first, pick.second) {
        (Some(at), _) => a[at],
        (None, Some(at)) => b[at],
        (None, None) => T::default(),
    });
}

fn of(pick: &Pick, a: &Ints, b: &Ints) -> u64 {
    match (pick.first, pick.second) {
        (Some(at), _) => a.get(at),
        (None, Some(at)) => b.get(at),
        (None, None) => 0,
    }
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
            (vec![1 << 33, 50], 500, 500),
        ] {
            let (a, b) = (list(&extents, a, 7), list(&extents, b, 11));
            let mut want = map(&a);
            for (place, value) in map(&b) {
                *want.entry(place).or_default() += value;
            }
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
