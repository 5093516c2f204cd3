//! Merges two lists that ascend: finds the list that each entry of their union comes from.
//!
//! ```text
//! entries of both lists -> disjoint ranges of cells -> numbers of cells -> two bits for each entry of the union
//! ```

use std::ops::Range;

use rayon::prelude::*;

use crate::coo::Coo;
use crate::narrow_ints::{Int, Ints, each_width};
use crate::simd;
use crate::value::Value;

/// The most entries of each list in a range of cells: their numbers stay in a second-level cache.
const PART: usize = 1 << 14;

/// The entries of both lists in a range of cells, and how they are merged.
pub(super) struct Part {
    /// Those entries of each list.
    pub(super) entries: [Range<usize>; 2],
    /// Entries of the result.
    pub(super) len: usize,
    /// Their bits, 64 of them a word.
    pub(super) words: Vec<Bits>,
}

/// Cuts the lists at the same cells, and merges their parts.
pub(super) fn parts<V: Value>(a: &Coo<V>, b: &Coo<V>) -> Vec<Part> {
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
    let merge = |numbers: &mut Numbers, part: usize| {
        let entries = [first[part]..first[part + 1], second[part]..second[part + 1]];
        number_all(a, &entries[0], &mut numbers.first);
        number_all(b, &entries[1], &mut numbers.second);
        numbers.merge(&entries)
    };
    let parts = (0..=cuts.len()).into_par_iter();
    parts.map_init(Numbers::default, merge).flatten_iter().collect()
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

/// Numbers the cells of `entries` in the natural order.
fn number_all<V: Value>(list: &Coo<V>, entries: &Range<usize>, numbers: &mut Vec<u64>) {
    numbers.resize(entries.len(), 0);
    let mut columns = list.coords.iter().zip(&list.extents);
    match columns.next().zip(columns.next()) {
        // Two modes in one pass save a write and a read of the numbers.
        Some(((first, _), (second, &extent))) => each_width!(Ints, first, first => {
            each_width!(Ints, second, second => {
                let (first, second) = (&first[entries.clone()], &second[entries.clone()]);
                simd::run(|| number_pairs(numbers, (first, second), extent));
            });
        }),
        None => {
            let all = numbers.iter_mut().zip(entries.clone());
            all.for_each(|(out, entry)| *out = number(list, entry));
        }
    }
    for (coords, &extent) in columns {
        each_width!(Ints, coords, column => {
            let column = &column[entries.clone()];
            simd::run(|| number_next(numbers, column, extent));
        });
    }
}

/// Numbers the coordinates of the first two modes.
#[inline(always)]
fn number_pairs<T: Int, U: Int>(numbers: &mut [u64], (first, second): (&[T], &[U]), extent: u64) {
    for ((number, at), next) in numbers.iter_mut().zip(first).zip(second) {
        *number = at.wide() * extent + next.wide();
    }
}

/// Extends the numbers by one more mode.
#[inline(always)]
fn number_next<T: Int>(numbers: &mut [u64], column: &[T], extent: u64) {
    for (number, at) in numbers.iter_mut().zip(column) {
        *number = *number * extent + at.wide();
    }
}

/// The numbers of the cells of entries.
#[derive(Default)]
struct Numbers {
    first: Vec<u64>,
    second: Vec<u64>,
}

impl Numbers {
    /// Merges both halves of these `entries`.
    ///
    /// Each step of a merge waits for the one before; those of two halves do not wait for each other.
    fn merge(&self, [own, next]: &[Range<usize>; 2]) -> [Part; 2] {
        let (first, second) = (self.first.as_slice(), self.second.as_slice());
        let longer = if first.len() > second.len() { first } else { second };
        let middle = longer.get(longer.len() / 2).copied().unwrap_or(0);
        let split = |cells: &[u64]| cells.partition_point(|&cell| cell < middle);
        let (at, other) = (split(first), split(second));
        let mut lower = Merge::new([&first[..at], &second[..other]]);
        let mut upper = Merge::new([&first[at..], &second[other..]]);
        while let (Some(cells), Some(others)) = (lower.cells(), upper.cells()) {
            let [word, above] = words([cells, others]);
            lower.push(word);
            upper.push(above);
        }
        let (at, other) = (own.start + at, next.start + other);
        [
            lower.finish([own.start..at, next.start..other]),
            upper.finish([at..own.end, other..next.end]),
        ]
    }
}

/// Two lists of cells as they are merged.
struct Merge<'a> {
    /// The cells that are left.
    left: [&'a [u64]; 2],
    words: Vec<Word>,
}

/// The next cells of two lists.
type Cells<'a> = [&'a [u64; WORD]; 2];

impl<'a> Merge<'a> {
    fn new(left: [&'a [u64]; 2]) -> Merge<'a> {
        Merge { left, words: Vec::with_capacity((left[0].len() + left[1].len()).div_ceil(WORD)) }
    }

    /// Returns the next cells, if both lists have so many.
    fn cells(&self) -> Option<Cells<'a>> {
        let [own, next] = self.left;
        Some([own.first_chunk()?, next.first_chunk()?])
    }

    fn push(&mut self, word: Word) {
        let [own, next] = self.left;
        self.left = [&own[word.passed[0]..], &next[word.passed[1]..]];
        self.words.push(word);
    }

    /// Merges what is left, of a part that has `entries`.
    fn finish(mut self, entries: [Range<usize>; 2]) -> Part {
        while self.left.iter().any(|left| !left.is_empty()) {
            self.push(match self.cells() {
                Some(cells) => words([cells])[0],
                None => last_word(self.left),
            });
        }
        let len = self.words.iter().map(|word| word.len).sum();
        Part { entries, len, words: self.words.iter().map(|word| word.bits).collect() }
    }
}

/// Entries of the result that a word of bits has.
pub(super) const WORD: usize = u64::BITS as usize;

/// The bits of some entries of the result.
#[derive(Clone, Copy, Default)]
pub(super) struct Bits {
    /// Whether only the second list has an entry.
    pub(super) from_second: u64,
    /// Whether both lists have it; its coordinates are those of the first list.
    in_both: u64,
}

/// Some entries of the result.
#[derive(Clone, Copy, Default)]
struct Word {
    len: usize,
    bits: Bits,
    /// How many entries of each list were passed.
    passed: [usize; 2],
}

impl Word {
    /// Adds the next entry, whose cell is `own` in the first list or `next` in the second one.
    ///
    /// Which list comes next is as good as random, so nothing branches on it.
    fn push(&mut self, own: u64, next: u64) {
        self.bits.from_second |= u64::from(next < own) << self.len;
        self.bits.in_both |= u64::from(next == own) << self.len;
        self.passed[0] += usize::from(own <= next);
        self.passed[1] += usize::from(next <= own);
        self.len += 1;
    }
}

/// Merges as many cells as a word has bits, of each of `N` pairs of lists.
fn words<const N: usize>(cells: [Cells<'_>; N]) -> [Word; N] {
    let mut words = [Word::default(); N];
    for _ in 0..WORD {
        for (word, [first, second]) in words.iter_mut().zip(cells) {
            // Places are below `WORD`: the remainder only says so to the compiler.
            let [at, other] = word.passed;
            word.push(first[at % WORD], second[other % WORD]);
        }
    }
    words
}

/// Merges the next cells, at most as many as a word has bits.
fn last_word([first, second]: [&[u64]; 2]) -> Word {
    let mut word = Word::default();
    // No cell has the number `u64::MAX`.
    let cell = |cells: &[u64], at: usize| cells.get(at).copied().unwrap_or(u64::MAX);
    while word.len < WORD && (word.passed[0] < first.len() || word.passed[1] < second.len()) {
        word.push(cell(first, word.passed[0]), cell(second, word.passed[1]));
    }
    word
}

impl Bits {
    /// Returns the entries that the second list has.
    pub(super) fn of_second(self) -> u64 {
        self.from_second | self.in_both
    }

    /// Writes where entries come from.
    pub(super) fn pick(self, picks: &mut Picks) {
        let (mut at, mut other) = (0, WORD as u8);
        for (bit, pick) in picks.iter_mut().enumerate() {
            let second = (self.from_second >> bit) as u8 & 1;
            *pick = if second == 1 { other } else { at };
            at += 1 - second;
            other += (self.of_second() >> bit) as u8 & 1;
        }
    }

    /// Adds the next elements of the second list to the entries that both have.
    pub(super) fn add_both<V: Value>(self, out: &mut [V], second: &[V]) {
        let mut left = self.in_both;
        while left != 0 {
            let bit = left.trailing_zeros();
            let before = self.of_second() & ((1 << bit) - 1);
            out[bit as usize] += second[before.count_ones() as usize];
            left &= left - 1;
        }
    }
}

/// Where each entry of a word comes from.  Places below `WORD` are those of the next entries of the first list; others are
/// `WORD` more than those of the second list.
pub(super) type Picks = [u8; WORD];
