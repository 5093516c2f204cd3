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

/// The most entries of each list that a task merges: the numbers of their cells stay in a second-level cache.
const PART: usize = 1 << 14;

/// Entries of the result whose places in the lists are looked up together: whole words of bits.
const BLOCK: usize = 1 << 11;

/// Two lists whose sum is to be made: sorted, and their common cells counted.
pub struct Union<V: Value> {
    a: Coo<V>,
    b: Coo<V>,
    /// `None` where the cells cannot be numbered in 64 bits.
    parts: Option<Vec<Part>>,
}

/// Entries of both lists whose cells no other part has, and how they are merged.
struct Part {
    /// Those of the first list.
    first: Range<usize>,
    /// Those of the second list.
    second: Range<usize>,
    /// Entries of the result.
    len: usize,
    /// A bit for each of them: whether it comes from the second list.
    from_second: Vec<u64>,
    /// A bit for each of them: whether both lists have it, so that it comes from the first list.
    in_both: Vec<u64>,
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
        let parts = self.has_numbers().then(|| parts(&self, &other));
        Ok(Union { a: self, b: other, parts })
    }

    /// Returns the bytes that [`Coo::union`] takes beside the lists.
    pub fn union_bytes(&self, other: &Coo<V>) -> u64 {
        let natural = ModeOrder::natural(self.order());
        let tidied = |list: &Coo<V>| list.bytes_to_sort(&natural).max(list.nnz() as u64 / 8);
        // A list that is not sorted in its own arrays stays in others.
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
        let row = |width: &dyn Fn(usize) -> usize| -> u64 {
            ((0..self.a.order()).map(width).sum::<usize>() + V::BYTES) as u64
        };
        match &self.parts {
            Some(parts) => {
                let width = |mode: usize| Width::listed(self.a.extents[mode]).bytes();
                parts.iter().map(|part| part.len as u64).sum::<u64>() * row(&width)
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
        match &self.parts {
            Some(parts) => Ok(merged(&self.a, &self.b, parts)),
            None => chained(&self.a, &self.b),
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

/// Merges lists that ascend, as their `parts` tell.
fn merged<V: Value>(a: &Coo<V>, b: &Coo<V>, parts: &[Part]) -> Coo<V> {
    let lengths: Vec<usize> = parts.iter().map(|part| part.len).collect();
    let len = lengths.iter().sum();
    let mut coords: Vec<Wide> = a.extents.iter().map(|&extent| Wide::of(extent, len)).collect();
    let mut values: Array<V> = Array::to_fill(len);
    let mut columns: Vec<Vec<Slot<'_>>> = coords.iter_mut().map(|own| own.cut(&lengths)).collect();
    let mut tasks: Vec<Task<'_, V>> = Vec::with_capacity(parts.len());
    let mut rest = values.make_mut();
    for part in parts.iter().rev() {
        let (before, own) = rest.split_at_mut(rest.len() - part.len);
        rest = before;
        let columns = columns.iter_mut().filter_map(Vec::pop).collect();
        tasks.push(Task { part, columns, values: own });
    }
    tasks.into_par_iter().for_each(|task| task.run(a, b));
    let coords = coords.into_iter().map(Wide::ints).collect();
    Coo::ascending(a.extents.clone(), coords, values)
}

/// Cuts the lists at the same cells, and merges their parts.
fn parts<V: Value>(a: &Coo<V>, b: &Coo<V>) -> Vec<Part> {
    let cells = |list: &Coo<V>| -> Vec<u64> {
        (PART..list.nnz()).step_by(PART).map(|entry| number(list, entry)).collect()
    };
    let mut cuts = [cells(a), cells(b)].concat();
    cuts.sort_unstable();
    cuts.dedup();
    let places = |list: &Coo<V>| -> Vec<usize> {
        let inner = cuts.par_iter().map(|&cell| first_from(list, cell));
        [vec![0], inner.collect(), vec![list.nnz()]].concat()
    };
    let (first, second) = (places(a), places(b));
    let range = |places: &[usize], part: usize| places[part]..places[part + 1];
    (0..=cuts.len())
        .into_par_iter()
        .map_init(Numbers::default, |numbers, part| {
            numbers.merge((a, range(&first, part)), (b, range(&second, part)))
        })
        .collect()
}

/// The number of the cell of an entry in the natural order.
fn number<V: Value>(list: &Coo<V>, entry: usize) -> u64 {
    let columns = list.coords.iter().zip(&list.extents);
    columns.fold(0, |number, (coords, &extent)| number * extent + coords.get(entry))
}

/// Returns the first entry whose cell has number `cell` or a higher one.
fn first_from<V: Value>(list: &Coo<V>, cell: u64) -> usize {
    let (mut low, mut high) = (0, list.nnz());
    while low < high {
        let middle = low + (high - low) / 2;
        match number(list, middle) < cell {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// Numbers the cells of `entries` in the natural order, and appends one that no cell has.
fn number_all<V: Value>(list: &Coo<V>, entries: &Range<usize>, numbers: &mut Vec<u64>) {
    numbers.clear();
    for (mode, (coords, &extent)) in list.coords.iter().zip(&list.extents).enumerate() {
        each_width!(Ints, coords, column => {
            let own = column[entries.clone()].iter().map(|at| at.wide());
            match mode {
                0 => numbers.extend(own),
                _ => {
                    let pairs = numbers.iter_mut().zip(own);
                    pairs.for_each(|(number, at)| *number = *number * extent + at);
                }
            }
        });
    }
    numbers.push(u64::MAX);
}

/// The numbers of the cells of a part.
#[derive(Default)]
struct Numbers {
    first: Vec<u64>,
    second: Vec<u64>,
}

impl Numbers {
    /// Finds from which list each entry of the result comes.
    ///
    /// Which list comes next is as good as random: the steps are computed, not branched to.
    fn merge<V: Value>(
        &mut self,
        (a, first): (&Coo<V>, Range<usize>),
        (b, second): (&Coo<V>, Range<usize>),
    ) -> Part {
        number_all(a, &first, &mut self.first);
        number_all(b, &second, &mut self.second);
        let words = (first.len() + second.len()).div_ceil(WORD);
        let (mut from_second, mut in_both) = (Vec::with_capacity(words), Vec::with_capacity(words));
        let (mut at, mut other, mut len) = (0, 0, 0);
        while at < first.len() || other < second.len() {
            let cells = (&self.first[at..first.len()], &self.second[other..second.len()]);
            let merged = match (cells.0.first_chunk(), cells.1.first_chunk()) {
                (Some(own), Some(next)) => word(own, next),
                _ => last_word(&self.first[at..], &self.second[other..]),
            };
            at += merged.passed[0];
            other += merged.passed[1];
            len += merged.len;
            from_second.push(merged.from_second);
            in_both.push(merged.in_both);
        }
        Part { first, second, len, from_second, in_both }
    }
}

/// Entries of the result that a word of bits has.
const WORD: usize = u64::BITS as usize;

/// The bits of some entries of the result.
#[derive(Default)]
struct Word {
    len: usize,
    from_second: u64,
    in_both: u64,
    /// How many entries of each list they are.
    passed: [usize; 2],
}

impl Word {
    /// Adds the next entry, whose cell is `own` in the first list or `next` in the second one.
    fn push(&mut self, own: u64, next: u64) {
        self.from_second |= u64::from(next < own) << self.len;
        self.in_both |= u64::from(next == own) << self.len;
        self.passed[0] += usize::from(own <= next);
        self.passed[1] += usize::from(next <= own);
        self.len += 1;
    }
}

/// Merges as many cells as a word has bits.
fn word(first: &[u64; WORD], second: &[u64; WORD]) -> Word {
    let (mut at, mut other, mut from_second, mut in_both) = (0, 0, 0, 0);
    for bit in 0..WORD {
        // No place is beyond the last: the remainder only says so to the compiler.
        let (own, next) = (first[at % WORD], second[other % WORD]);
        let (is_second, is_first) = (u64::from(next < own), u64::from(own < next));
        from_second |= is_second << bit;
        in_both |= (1 ^ is_second ^ is_first) << bit;
        at += 1 - is_second as usize;
        other += 1 - is_first as usize;
    }
    Word { len: WORD, from_second, in_both, passed: [at, other] }
}

/// Merges as many cells as a word has bits, if there are so many: both lists end in a number that no cell has.
fn last_word(first: &[u64], second: &[u64]) -> Word {
    let mut word = Word::default();
    while word.len < WORD {
        let [at, other] = word.passed;
        if first[at] == u64::MAX && second[other] == u64::MAX {
            break;
        }
        word.push(first[at], second[other]);
    }
    word
}

/// Where the entries of a block of the result come from, within a part.
#[derive(Default)]
struct Picks {
    /// Twice the place in a list, and one more for the second list.
    from: Vec<u32>,
    /// Entries of the block that the second list has too, with the place there.
    both: Vec<(u32, u32)>,
    /// How many entries of each list came before the next block.
    passed: [u32; 2],
}

impl Picks {
    /// Finds the next `len` entries, whose bits are given.
    fn next(&mut self, (from_second, in_both): (&[u64], &[u64]), len: usize) {
        self.from.clear();
        self.both.clear();
        let [mut at, mut other] = self.passed;
        for (word, (from, both)) in from_second.iter().zip(in_both).enumerate() {
            for bit in 0..WORD.min(len - word * WORD) {
                let (second, is_both) = ((from >> bit) as u32 & 1, (both >> bit) as u32 & 1);
                if is_both == 1 {
                    self.both.push((self.from.len() as u32, other));
                }
                let place = if second == 1 { other } else { at };
                self.from.push(place << 1 | second);
                at += 1 - second;
                other += second | is_both;
            }
        }
        self.passed = [at, other];
    }
}

/// A part with its place in the result.
struct Task<'a, V> {
    part: &'a Part,
    columns: Vec<Slot<'a>>,
    values: &'a mut [V],
}

impl<V: Value> Task<'_, V> {
    fn run(mut self, a: &Coo<V>, b: &Coo<V>) {
        let Part { first, second, len, from_second, in_both } = self.part;
        let values = [&a.values[first.clone()], &b.values[second.clone()]];
        let mut picks = Picks::default();
        for begin in (0..*len).step_by(BLOCK) {
            let block = begin..(begin + BLOCK).min(*len);
            let words = begin / WORD..block.end.div_ceil(WORD);
            picks.next((&from_second[words.clone()], &in_both[words]), block.len());
            for (mode, column) in self.columns.iter_mut().enumerate() {
                let lists = [(&a.coords[mode], first), (&b.coords[mode], second)];
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
            (vec![700, 900], 90, 250_000),
            (vec![1 << 33, 50], 500, 500),
        ] {
            let (a, b) = (list(&extents, a, 7), list(&extents, b, 11));
            let mut want = map(&a);
            for (place, value) in map(&b) {
                *want.entry(place).or_default() += value;
            }
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
