//! The parallel radix sort: partition into buckets, finish each bucket in the cache.

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::simd;
use crate::sort::bucket;
use crate::sort::column::Column;
use crate::sort::key::{Layout, Word, pack, pack_above, pack_values};
use crate::sort::{BLOCK, Source, Target};
use crate::value::Value;

/// Runs up to this many entries are sorted by one thread inside its cache.
const LEAF: usize = 1 << 16;
/// Bytes of entries a bucket should have: with its scratch it fits half of a second-level cache.
const BUCKET: usize = 1 << 17;
/// Most bits of the partitioning digit: one cursor a bucket must stay in the first-level cache.
const DIGIT: u32 = 11;
/// Least entries of a chunk: below, making cursors costs more than filling buckets.
const CHUNK: usize = 1 << 16;

/// Where entries go, and as much room for pairs.
pub(super) struct Run<'a, E, V> {
    pub(super) target: Target<'a, V>,
    pub(super) entries: &'a mut [E],
}

/// A range of key bits.
#[derive(Clone, Copy)]
struct Digit {
    shift: u32,
    bits: u32,
}

/// Sorts the entries of `source`, or of the target of `run`, stably by the unsettled key bits below
/// `top`; those above are equal.
pub(super) fn sort<W: Word, V: Value>(
    source: Option<&Source<'_, V>>,
    run: Run<'_, W::Entry, V>,
    layout: &Layout,
    top: u32,
) {
    let floor = layout.settled();
    let small = run.entries.len() <= LEAF || floor >= top;
    let Run { target, entries } = run;
    let own = target.read();
    let source = source.unwrap_or(&own);
    if small {
        collect::<W, V>(source, entries, layout);
        return finish::<W, V>(Run { target, entries }, layout, top, &mut Vec::new());
    }
    let wanted = (size_of_val(&*entries) / BUCKET).max(1).ilog2() + 1;
    let bits = wanted.min(DIGIT).min(top - floor);
    let digit = Digit { shift: top - bits, bits };
    let bounds = partition::<W, V>(source, entries, layout, digit);
    let buckets = Run { target, entries }.split(&bounds);
    let buckets: Vec<_> = buckets.into_iter().filter(|b| !b.entries.is_empty()).collect();
    buckets.into_par_iter().with_min_len(4).for_each_init(Vec::new, |scratch, mut bucket| {
        if bucket.entries.len() <= LEAF || floor >= digit.shift {
            finish::<W, V>(bucket, layout, digit.shift, scratch);
        } else {
            unpack::<W, V>(&mut bucket.target, bucket.entries, layout);
            sort::<W, V>(None, bucket, layout, digit.shift);
        }
    });
}

/// Sorts the pairs of a small run and writes them to its target.
fn finish<W: Word, V: Value>(
    run: Run<'_, W::Entry, V>,
    layout: &Layout,
    top: u32,
    scratch: &mut Vec<W::Entry>,
) {
    let Run { mut target, entries } = run;
    let sorted = bucket::sort::<W>(entries, scratch, layout.settled()..top);
    unpack::<W, V>(&mut target, sorted, layout);
}

/// Packs the entries of `source` into pairs, bucket after bucket; returns where buckets end.
fn partition<W: Word, V: Value>(
    source: &Source<'_, V>,
    entries: &mut [W::Entry],
    layout: &Layout,
    digit: Digit,
) -> Vec<usize> {
    let Source { columns, values } = source;
    let len = values.len();
    let chunks = (rayon::current_num_threads() * 4).min(len.div_ceil(CHUNK));
    let chunk = len.div_ceil(chunks);
    let range = |index: usize| (index * chunk).min(len)..((index + 1) * chunk).min(len);

    let counts: Vec<Vec<usize>> = (0..chunks)
        .into_par_iter()
        .map(|index| count::<W>(columns, layout, range(index), digit))
        .collect();

    let mut rest = entries;
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
            pack(layout, columns, start, keys);
            pack_values(layout, &values[start..], keys);
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

/// Packs the entries of `source` into pairs in their order.
fn collect<W: Word, V: Value>(source: &Source<'_, V>, entries: &mut [W::Entry], layout: &Layout) {
    let mut keys = [W::default(); BLOCK];
    for (block, entries) in entries.chunks_mut(BLOCK).enumerate() {
        let keys = &mut keys[..entries.len()];
        pack(layout, &source.columns, block * BLOCK, keys);
        let values = &source.values[block * BLOCK..];
        pack_values(layout, values, keys);
        for ((slot, &key), &value) in entries.iter_mut().zip(&*keys).zip(values) {
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

/// Writes pairs to the columns and values.
fn unpack<W: Word, V: Value>(target: &mut Target<'_, V>, entries: &[W::Entry], layout: &Layout) {
    for field in layout.fields() {
        let mask = u64::MAX >> (u64::BITS - field.bits);
        let coords = entries.iter().map(|&entry| W::of(entry).bits_from(field.shift) & mask);
        target.columns[field.mode].fill(coords);
    }
    let values = target.values.iter_mut().zip(entries);
    match layout.decimals() {
        None => values.for_each(|(slot, &entry)| {
            *slot = V::from_f64(f64::from_bits(W::value(entry)));
        }),
        Some(decimals) => simd::run(|| {
            values.for_each(|(slot, &entry)| *slot = decimals.value(W::value(entry)));
        }),
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
        let Target { columns, values } = self.target;
        let (head, tail) = columns.into_iter().map(|column| column.split_at(at)).unzip();
        let (values, values_tail) = values.split_at_mut(at);
        let (entries, entries_tail) = self.entries.split_at_mut(at);
        let head = Target { columns: head, values };
        let tail = Target { columns: tail, values: values_tail };
        (Run { target: head, entries }, Run { target: tail, entries: entries_tail })
    }
}

impl Digit {
    fn of<W: Word>(self, key: W) -> usize {
        key.bits_from(self.shift) as usize & ((1 << self.bits) - 1)
    }
}
