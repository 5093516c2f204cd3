//! The parallel radix sort: partition into buckets, finish each bucket in the cache.

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::sort::BLOCK;
use crate::sort::column::{Column, ColumnMut};
use crate::sort::key::{Layout, Word, pack, pack_above};
use crate::sort::leaf;
use crate::value::Value;

/// Runs up to this many entries are sorted by one thread inside its cache.
const LEAF: usize = 1 << 16;
/// Entries a bucket should have: with its scratch it fits half of a second-level cache.
const BUCKET: usize = 1 << 13;
/// Most bits of the partitioning digit: one cursor a bucket must stay in the first-level cache.
const DIGIT: u32 = 11;
/// Least entries of a chunk: below, making cursors costs more than filling buckets.
const CHUNK: usize = 1 << 16;

/// Entries to be sorted in place, and as much room for pairs.
pub(super) struct Run<'a, E, V> {
    pub(super) columns: Vec<ColumnMut<'a>>,
    pub(super) values: &'a mut [V],
    pub(super) entries: &'a mut [E],
}

/// A range of key bits.
#[derive(Clone, Copy)]
struct Digit {
    shift: u32,
    bits: u32,
}

/// Sorts `run` stably by the unsettled key bits below `top`; those above are equal.
pub(super) fn sort<W: Word, V: Value>(mut run: Run<'_, W::Entry, V>, layout: &Layout, top: u32) {
    let floor = layout.settled();
    if run.values.len() <= LEAF || floor >= top {
        collect::<W, V>(&mut run, layout);
        return finish::<W, V>(run, layout, top, &mut Vec::new());
    }
    let wanted = (run.values.len() / BUCKET).ilog2() + 1;
    let bits = wanted.min(DIGIT).min(top - floor);
    let digit = Digit { shift: top - bits, bits };
    let bounds = partition::<W, V>(&mut run, layout, digit);
    let buckets: Vec<_> = run.split(&bounds).into_iter().filter(|b| !b.values.is_empty()).collect();
    buckets.into_par_iter().with_min_len(4).for_each_init(Vec::new, |scratch, mut bucket| {
        if bucket.values.len() <= LEAF || floor >= digit.shift {
            finish::<W, V>(bucket, layout, digit.shift, scratch);
        } else {
            unpack::<W, V>(&mut bucket.columns, bucket.values, bucket.entries, layout);
            sort::<W, V>(bucket, layout, digit.shift);
        }
    });
}

/// Sorts the pairs of a small run and writes them over its columns.
fn finish<W: Word, V: Value>(
    run: Run<'_, W::Entry, V>,
    layout: &Layout,
    top: u32,
    scratch: &mut Vec<W::Entry>,
) {
    let Run { mut columns, values, entries } = run;
    let sorted = leaf::sort::<W>(entries, scratch, (layout.settled(), top));
    unpack::<W, V>(&mut columns, values, sorted, layout);
}

/// Packs the entries into the room for pairs, bucket after bucket; returns where buckets end.
fn partition<W: Word, V: Value>(
    run: &mut Run<'_, W::Entry, V>,
    layout: &Layout,
    digit: Digit,
) -> Vec<usize> {
    let len = run.values.len();
    let chunks = (rayon::current_num_threads() * 4).min(len.div_ceil(CHUNK));
    let chunk = len.div_ceil(chunks);
    let columns: Vec<Column<'_>> = run.columns.iter().map(ColumnMut::read).collect();
    let values = &*run.values;
    let range = |index: usize| (index * chunk).min(len)..((index + 1) * chunk).min(len);

    let counts: Vec<Vec<usize>> = (0..chunks)
        .into_par_iter()
        .map(|index| count::<W>(&columns, layout, range(index), digit))
        .collect();

    let mut rest = &mut *run.entries;
    let mut cursors: Vec<Vec<_>> =
        (0..chunks).map(|_| Vec::with_capacity(1 << digit.bits)).collect();
    let mut bounds = Vec::with_capacity(1 << digit.bits);
    for bucket in 0..1 << digit.bits {
        for (cursors, counts) in cursors.iter_mut().zip(&counts) {
            let (piece, tail) = rest.split_at_mut(counts[bucket]);
            cursors.push(piece.iter_mut());
            rest = tail;
        }
        bounds.push(len - rest.len());
    }

    cursors.into_par_iter().enumerate().for_each(|(index, mut cursors)| {
        let mut keys = [W::default(); BLOCK];
        let range = range(index);
        for start in range.clone().step_by(BLOCK) {
            let keys = &mut keys[..BLOCK.min(range.end - start)];
            pack(layout, &columns, start, keys);
            for (&key, &value) in keys.iter().zip(&values[start..]) {
                // Each cursor was given the room that its chunk counted.
                if let Some(slot) = cursors[digit.of(key)].next() {
                    *slot = key.with(value.to_f64().to_bits());
                }
            }
        }
    });
    bounds
}

/// Packs the entries into the room for pairs in their order.
fn collect<W: Word, V: Value>(run: &mut Run<'_, W::Entry, V>, layout: &Layout) {
    let columns: Vec<Column<'_>> = run.columns.iter().map(ColumnMut::read).collect();
    let mut keys = [W::default(); BLOCK];
    for (block, entries) in run.entries.chunks_mut(BLOCK).enumerate() {
        let keys = &mut keys[..entries.len()];
        pack(layout, &columns, block * BLOCK, keys);
        for ((slot, &key), &value) in
            entries.iter_mut().zip(&*keys).zip(&run.values[block * BLOCK..])
        {
            *slot = key.with(value.to_f64().to_bits());
        }
    }
}

/// Counts the entries of each bucket in a range of positions.
fn count<W: Word>(
    columns: &[Column<'_>],
    layout: &Layout,
    range: std::ops::Range<usize>,
    digit: Digit,
) -> Vec<usize> {
    let mut counts = vec![0; 1 << digit.bits];
    let mut keys = [W::default(); BLOCK];
    for start in range.clone().step_by(BLOCK) {
        let keys = &mut keys[..BLOCK.min(range.end - start)];
        pack_above(layout, columns, start, digit.shift, keys);
        keys.iter().for_each(|&key| counts[digit.of(key)] += 1);
    }
    counts
}

/// Writes pairs over the columns and values.
fn unpack<W: Word, V: Value>(
    columns: &mut [ColumnMut<'_>],
    values: &mut [V],
    entries: &[W::Entry],
    layout: &Layout,
) {
    for field in layout.fields() {
        let mask = u64::MAX >> (u64::BITS - field.bits);
        let coords = entries.iter().map(|&entry| W::of(entry).bits_from(field.shift) & mask);
        columns[field.mode].fill(coords);
    }
    for (slot, &entry) in values.iter_mut().zip(entries) {
        *slot = V::from_f64(f64::from_bits(W::value(entry)));
    }
}

impl<'a, E, V> Run<'a, E, V> {
    /// Splits the run at `bounds`, which ascend up to its length.
    fn split(self, bounds: &[usize]) -> Vec<Run<'a, E, V>> {
        let (mut rest, mut start) = (self, 0);
        let mut runs = Vec::with_capacity(bounds.len());
        for &end in bounds {
            let (head, tail) = rest.split_at(end - start);
            runs.push(head);
            (rest, start) = (tail, end);
        }
        runs
    }

    fn split_at(self, at: usize) -> (Run<'a, E, V>, Run<'a, E, V>) {
        let (head, tail) = self.columns.into_iter().map(|column| column.split_at(at)).unzip();
        let (values, values_tail) = self.values.split_at_mut(at);
        let (entries, entries_tail) = self.entries.split_at_mut(at);
        let head = Run { columns: head, values, entries };
        (head, Run { columns: tail, values: values_tail, entries: entries_tail })
    }
}

impl Digit {
    fn of<W: Word>(self, key: W) -> usize {
        key.bits_from(self.shift) as usize & ((1 << self.bits) - 1)
    }
}
