//! Text that can be looked at twice: a file or memory, parsed by all threads in place.
//!
//! 1. *Count*: the newlines of every window, so that the arrays are allocated once.
//! 2. *Parse*: every piece, a window extended to whole lines, writes its own slice of each array.
//! 3. *Close*: comments and blank lines leave gaps behind a piece's rows; later rows move up.
//!
//! Memory: the arrays, and a window a thread.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use bytemuck::Pod;
use rayon::prelude::*;

use crate::array::Array;
use crate::io::map::Bytes;
use crate::io::options::Progress;
use crate::io::text::collect;
use crate::io::text::collect::Collector;
use crate::io::text::collect::End;
use crate::io::text::collect::Limits;
use crate::io::text::collect::Piece;
use crate::io::text::collect::Tally;
use crate::io::text::row::Coordinate;
use crate::io::text::row::Layout;
use crate::io::text::row::Rows;
use crate::io::text::row::Stop;
use crate::value::Value;

/// Columns and values of all rows.
pub(super) type Columns<I, V> = (Vec<Array<I>>, Array<V>);

/// A run of whole lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    bytes: Range<u64>,
    /// At least the number of its rows.
    rows: usize,
}

/// Cuts the lines of `text` from byte `start` into runs of about `window` bytes.
pub(super) fn cut(
    text: Bytes<'_>,
    start: u64,
    window: usize,
    layout: Layout,
) -> std::io::Result<Vec<Run>> {
    let (window, end) = (window.max(1) as u64, text.len());
    let blocks: Vec<(u64, Option<u64>)> = (0..(end - start).div_ceil(window))
        .into_par_iter()
        .map(|block| {
            let from = start + block * window;
            let bytes = text.window(from..(from + window).min(end))?;
            let first = memchr::memchr(b'\n', &bytes).map(|at| from + at as u64);
            Ok((memchr::memchr_iter(b'\n', &bytes).count() as u64, first))
        })
        .collect::<std::io::Result<_>>()?;
    let mut runs = Vec::new();
    let (mut from, mut lines) = (start, 0);
    let mut close = |to: u64, lines: u64| {
        let rows = lines.min(layout.most_rows(to - from)) as usize;
        runs.push(Run { bytes: from..to, rows });
        from = to;
    };
    for (block, &(newlines, first)) in blocks.iter().enumerate() {
        match first {
            Some(first) if block > 0 => {
                close(first + 1, lines + 1);
                lines = newlines - 1;
            }
            _ => lines += newlines,
        }
    }
    // The last line may lack its newline.
    close(end, lines + 1);
    Ok(runs)
}

/// Parses `runs` of `text`, all indices as `I`.
pub(super) fn parse<I: Coordinate, V: Value>(
    text: Bytes<'_>,
    runs: &[Run],
    collector: &mut Collector<'_>,
    progress: &Progress,
) -> Result<Columns<I, V>, End> {
    let limits = collector.limits;
    let rows: usize = runs.iter().map(|run| run.rows).sum();
    let mut columns: Vec<Array<I>> = (0..limits.layout.order).map(|_| Array::zeros(rows)).collect();
    let mut values: Array<V> = Array::zeros(rows);
    // Pieces behind a stopped one cannot matter any more; those before it always run, so the
    // first bad line is found whatever the timing.
    let stopped = AtomicUsize::new(usize::MAX);
    let pieces: Vec<Piece> = split(&mut columns, values.make_mut(), runs)
        .into_par_iter()
        .zip(runs)
        .enumerate()
        .with_max_len(1)
        .map(|(number, (mut out, run))| {
            if number > stopped.load(Ordering::Relaxed) {
                return Piece { tally: Tally::default(), stop: None };
            }
            let piece = one(text, run, limits, &mut out);
            if piece.stop.is_some() {
                stopped.fetch_min(number, Ordering::Relaxed);
            }
            progress.advance(run.bytes.end - run.bytes.start);
            piece
        })
        .collect();
    let mut filled = Vec::with_capacity(runs.len());
    for piece in pieces {
        filled.push(piece.tally.counts.rows);
        collector.add(piece)?;
    }
    columns.par_iter_mut().for_each(|column| close_gaps(column, runs, &filled));
    close_gaps(&mut values, runs, &filled);
    Ok((columns, values))
}

fn one<I: Coordinate, V: Value>(
    text: Bytes<'_>,
    run: &Run,
    limits: &Limits,
    out: &mut Rows<'_, I, V>,
) -> Piece {
    match text.window(run.bytes.clone()) {
        Ok(window) => collect::piece(&window, limits, out),
        Err(error) => Piece { tally: Tally::default(), stop: Some(Stop::Io(error)) },
    }
}

/// Gives each run its slice of every array.
fn split<'a, I: Coordinate, V>(
    columns: &'a mut [Array<I>],
    values: &'a mut [V],
    runs: &[Run],
) -> Vec<Rows<'a, I, V>> {
    let mut columns: Vec<&mut [I]> = columns.iter_mut().map(Array::make_mut).collect();
    let mut values = values;
    let mut parts = Vec::with_capacity(runs.len());
    for run in runs {
        let mut take = |rest: &mut &'a mut [I]| {
            let (part, after) = std::mem::take(rest).split_at_mut(run.rows);
            *rest = after;
            part
        };
        let part = columns.iter_mut().map(&mut take).collect();
        let (own, after) = std::mem::take(&mut values).split_at_mut(run.rows);
        values = after;
        parts.push(Rows { columns: part, values: own });
    }
    parts
}

/// Moves the `filled` first elements of each run's part together, and drops the rest.
fn close_gaps<T: Pod>(array: &mut Array<T>, runs: &[Run], filled: &[usize]) {
    let (mut from, mut to) = (0, 0);
    let slots = array.make_mut();
    for (run, &rows) in runs.iter().zip(filled) {
        if from != to {
            slots.copy_within(from..from + rows, to);
        }
        from += run.rows;
        to += rows;
    }
    array.truncate(to);
}
