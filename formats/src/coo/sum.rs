//! Sums of lists: the union of their patterns.

use std::ops::Range;

use rayon::prelude::*;

use crate::array::Array;
use crate::coo::Coo;
use crate::error::FormatError;
use crate::modes::ModeOrder;
use crate::narrow_ints::{Int, Ints, Width, each_width};
use crate::sort::Layout;
use crate::value::Value;

/// Entries of both lists that a task merges.
const PART: usize = 1 << 16;

/// Entries of the result whose places in the lists are looked up together.
const BLOCK: usize = 1 << 11;

/// Two lists whose sum is to be made: sorted, and their common cells counted.
pub struct Union<V: Value> {
    a: Coo<V>,
    b: Coo<V>,
    /// `None` where the cells cannot be numbered in 64 bits.
    cells: Option<Cells>,
}

/// The cells of both lists.
struct Cells {
    first: Array<u64>,
    second: Array<u64>,
    parts: Vec<Part>,
    /// Entries of the result, by part.
    lengths: Vec<usize>,
}

impl<V: Value> Coo<V> {
    /// Returns `self + other`: an entry for every coordinate that either lists, in the natural order.
    ///
    /// See [`Coo::union`], which tells the memory before it is taken.
    ///
    /// # Errors
    ///
    /// As [`Coo::union`].
    pub fn plus(self, other: Coo<V>) -> Result<Coo<V>, FormatError> {
        self.union(other)?.sum()
    }

    /// Sorts both lists, leaves out their duplicates, and counts the coordinates that either lists.
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
        let cells = self.has_numbers().then(|| Cells::of(&self, &other));
        Ok(Union { a: self, b: other, cells })
    }

    /// Returns the bytes that [`Coo::union`] takes beside the lists.
    pub fn union_bytes(&self, other: &Coo<V>) -> u64 {
        let natural = ModeOrder::natural(self.order());
        let tidied = |list: &Coo<V>| list.bytes_to_sort(&natural).max(list.nnz() as u64 / 8);
        // A list that is not sorted in its own arrays stays in others.
        let (first, second) = (tidied(self), tidied(other));
        let numbers = if self.has_numbers() { 8 * (self.nnz() + other.nnz()) as u64 } else { 0 };
        let kept = self.bytes_to_copy(&natural) + other.bytes_to_copy(&natural);
        first.max(self.bytes_to_copy(&natural) + second).max(kept + numbers)
    }

    /// Tells whether all cells have numbers of 64 bits.
    fn has_numbers(&self) -> bool {
        self.extents.iter().try_fold(1_u64, |cells, &n| cells.checked_mul(n)).is_some()
    }
}

impl<V: Value> Union<V> {
    /// Returns the bytes that [`Union::sum`] takes beside the lists.
    pub fn sum_bytes(&self) -> u64 {
        let row = |width: &dyn Fn(usize) -> usize| -> u64 {
            ((0..self.a.order()).map(width).sum::<usize>() + V::BYTES) as u64
        };
        match &self.cells {
            Some(cells) => {
                let width = |mode: usize| Width::listed(self.a.extents[mode]).bytes();
                cells.lengths.iter().sum::<usize>() as u64 * row(&width)
            }
            None => {
                let width = |mode| self.a.coords(mode).width().max(self.b.coords(mode).width());
                let layout = Layout::new(&self.a.extents, &ModeOrder::natural(self.a.order()));
                let sorted = row(&|mode| width(mode).bytes()) + layout.entry_bytes() as u64;
                (self.a.nnz() + self.b.nnz()) as u64 * sorted
            }
        }
    }

    /// Returns the sum: an entry for every coordinate that either lists, in the natural order.
    ///
    /// Both lists are merged.  Parallel; time `O(nnz * order)`, memory [`Union::sum_bytes`].
    ///
    /// # Errors
    ///
    /// As [`Coo::sort`].
    pub fn sum(self) -> Result<Coo<V>, FormatError> {
        match &self.cells {
            Some(cells) => Ok(merged(&self.a, &self.b, cells)),
            None => chained(&self.a, &self.b),
        }
    }
}

impl Cells {
    fn of<V: Value>(a: &Coo<V>, b: &Coo<V>) -> Cells {
        let (first, second) = (numbers(a), numbers(b));
        let parts = parts(&first, &second);
        let length = |(own, other): &Part| {
            own.len() + other.len() - common(&first[own.clone()], &second[other.clone()])
        };
        let lengths = parts.par_iter().map(length).collect();
        Cells { first, second, parts, lengths }
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
fn merged<V: Value>(a: &Coo<V>, b: &Coo<V>, cells: &Cells) -> Coo<V> {
    let Cells { first, second, parts, lengths } = cells;
    let len = lengths.iter().sum();
    let mut coords: Vec<Wide> = a.extents.iter().map(|&extent| Wide::of(extent, len)).collect();
    let mut values: Array<V> = Array::to_fill(len);
    let mut columns: Vec<Vec<Slot<'_>>> = coords.iter_mut().map(|own| own.cut(lengths)).collect();
    let mut tasks: Vec<Task<'_, V>> = Vec::with_capacity(parts.len());
    let mut rest = values.make_mut();
    for (part, &length) in parts.iter().zip(lengths).rev() {
        let (before, own) = rest.split_at_mut(rest.len() - length);
        rest = before;
        let columns = columns.iter_mut().filter_map(Vec::pop).collect();
        tasks.push(Task { part: part.clone(), columns, values: own });
    }
    tasks.into_par_iter().for_each(|task| {
        task.run(&Numbered { list: a, numbers: first }, &Numbered { list: b, numbers: second });
    });
    let coords = coords.into_iter().map(Wide::ints).collect();
    Coo::ascending(a.extents.clone(), coords, values)
}

/// Numbers the cell of each entry in the natural order.
fn numbers<V: Value>(list: &Coo<V>) -> Array<u64> {
    let mut numbers: Array<u64> = Array::to_fill(list.nnz());
    numbers.make_mut().par_chunks_mut(PART).enumerate().for_each(|(chunk, numbers)| {
        let begin = chunk * PART;
        for (coords, &extent) in list.coords.iter().zip(&list.extents) {
            each_width!(Ints, coords, column => {
                let own = &column[begin..begin + numbers.len()];
                let pairs = numbers.iter_mut().zip(own);
                pairs.for_each(|(number, &at)| *number = *number * extent + at.wide());
            });
        }
    });
    numbers
}

/// A list with the number of the cell of each entry.
struct Numbered<'a, V: Value> {
    list: &'a Coo<V>,
    numbers: &'a [u64],
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

/// Counts the cells that both lists have.
///
/// Which list comes next is as good as random: the steps are computed, not branched to.
fn common(a: &[u64], b: &[u64]) -> usize {
    let (mut at, mut other, mut equal) = (0, 0, 0);
    while at < a.len() && other < b.len() {
        let (first, second) = (a[at], b[other]);
        equal += usize::from(first == second);
        at += usize::from(first <= second);
        other += usize::from(second <= first);
    }
    equal
}

/// Where the entries of a block of the result come from, within a part.
#[derive(Default)]
struct Picks {
    /// Twice the place in a list, and one more for the second list.
    from: Vec<u32>,
    /// Entries of the block that the second list has too, with the place there.
    both: Vec<(u32, u32)>,
}

/// Goes through a part of both lists by number.
struct Merge<'a> {
    first: &'a [u64],
    second: &'a [u64],
    at: usize,
    other: usize,
}

impl Merge<'_> {
    /// Finds the next entries of the result, as many as a block has if there are so many.
    fn next(&mut self, picks: &mut Picks) {
        picks.from.clear();
        picks.both.clear();
        let Merge { first, second, .. } = *self;
        let (mut at, mut other) = (self.at, self.other);
        while picks.from.len() < BLOCK && at < first.len() && other < second.len() {
            let (own, next) = (first[at], second[other]);
            let is_second = next < own;
            let place = if is_second { other } else { at };
            if own == next {
                picks.both.push((picks.from.len() as u32, other as u32));
            }
            picks.from.push((place as u32) << 1 | u32::from(is_second));
            at += usize::from(own <= next);
            other += usize::from(next <= own);
        }
        if other == second.len() {
            let end = first.len().min(at + BLOCK - picks.from.len());
            picks.from.extend((at..end).map(|place| (place as u32) << 1));
            at = end;
        }
        if at == first.len() {
            let end = second.len().min(other + BLOCK - picks.from.len());
            picks.from.extend((other..end).map(|place| (place as u32) << 1 | 1));
            other = end;
        }
        (self.at, self.other) = (at, other);
    }
}

/// A part with its place in the result.
struct Task<'a, V> {
    part: Part,
    columns: Vec<Slot<'a>>,
    values: &'a mut [V],
}

impl<V: Value> Task<'_, V> {
    fn run(mut self, first: &Numbered<'_, V>, second: &Numbered<'_, V>) {
        let (own, other) = self.part.clone();
        let (a, b) = (first.list, second.list);
        let (first, second) = (&first.numbers[own.clone()], &second.numbers[other.clone()]);
        let values = [&a.values[own.clone()], &b.values[other.clone()]];
        let mut merge = Merge { first, second, at: 0, other: 0 };
        let mut picks = Picks::default();
        let mut begin = 0;
        loop {
            merge.next(&mut picks);
            if picks.from.is_empty() {
                return;
            }
            let block = begin..begin + picks.from.len();
            begin = block.end;
            for (mode, column) in self.columns.iter_mut().enumerate() {
                let lists = [(&a.coords[mode], &own), (&b.coords[mode], &other)];
                column.fill(block.clone(), &picks.from, lists);
            }
            let out = &mut self.values[block];
            gather(out, &picks.from, values);
            picks
                .both
                .iter()
                .for_each(|&(at, place)| out[at as usize] += values[1][place as usize]);
        }
    }
}

/// A column of the result.
enum Wide {
    W32(Array<u32>),
    W64(Array<u64>),
}

/// A part of a column.
enum Slot<'a> {
    W32(&'a mut [u32]),
    W64(&'a mut [u64]),
}

impl Wide {
    fn of(extent: u64, len: usize) -> Wide {
        match Width::listed(extent) {
            Width::W64 => Wide::W64(Array::to_fill(len)),
            Width::W16 | Width::W32 => Wide::W32(Array::to_fill(len)),
        }
    }

    fn cut(&mut self, lengths: &[usize]) -> Vec<Slot<'_>> {
        match self {
            Wide::W32(column) => {
                cut(column.make_mut(), lengths).into_iter().map(Slot::W32).collect()
            }
            Wide::W64(column) => {
                cut(column.make_mut(), lengths).into_iter().map(Slot::W64).collect()
            }
        }
    }

    fn ints(self) -> Ints {
        match self {
            Wide::W32(column) => Ints::U32(column),
            Wide::W64(column) => Ints::U64(column),
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

/// The coordinates of a mode in a list, and the entries of them that a part has.
type Coordinates<'a> = (&'a Ints, &'a Range<usize>);

impl Slot<'_> {
    fn fill(&mut self, block: Range<usize>, from: &[u32], lists: [Coordinates<'_>; 2]) {
        let [(a, own), (b, other)] = lists;
        match (self, a, b) {
            (Slot::W32(out), Ints::U32(a), Ints::U32(b)) => {
                gather(&mut out[block], from, [&a[own.clone()], &b[other.clone()]]);
            }
            (Slot::W64(out), Ints::U64(a), Ints::U64(b)) => {
                gather(&mut out[block], from, [&a[own.clone()], &b[other.clone()]]);
            }
            (Slot::W32(out), a, b) => each(&mut out[block], from, |first, at| match first {
                true => a.get(own.start + at) as u32,
                false => b.get(other.start + at) as u32,
            }),
            (Slot::W64(out), a, b) => each(&mut out[block], from, |first, at| match first {
                true => a.get(own.start + at),
                false => b.get(other.start + at),
            }),
        }
    }
}

/// Takes each element from where it is, by whether that is the first list and the place.
fn each<T>(out: &mut [T], from: &[u32], of: impl Fn(bool, usize) -> T) {
    let pairs = out.iter_mut().zip(from);
    pairs.for_each(|(out, &code)| *out = of(code & 1 == 0, (code >> 1) as usize));
}

fn gather<T: Copy>(out: &mut [T], from: &[u32], lists: [&[T]; 2]) {
    let pairs = out.iter_mut().zip(from);
    pairs.for_each(|(out, &code)| *out = lists[(code & 1) as usize][(code >> 1) as usize]);
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
