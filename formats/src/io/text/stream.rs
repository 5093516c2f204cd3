//! Text that passes once: compressed files and pipes.
//!
//! One thread reads and decompresses into blocks of whole lines; the others parse the blocks that
//! are ready, and append them in order.  Memory: the arrays and a few blocks.

use std::io;
use std::io::Read;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::SyncSender;

use rayon::prelude::*;

use crate::error::FormatError;
use crate::io::claimed_sizes;
use crate::io::text::LONGEST_LINE;
use crate::io::text::collect;
use crate::io::text::collect::Collector;
use crate::io::text::collect::End;
use crate::io::text::collect::Limits;
use crate::io::text::collect::Piece;
use crate::io::text::row::Coordinate;
use crate::io::text::row::Rows;
use crate::io::text::row::Stop;
use crate::io::text::windows::longest_line;
use crate::value::Value;

/// Columns and values that grow.
pub(super) type Columns<I, V> = (Vec<Vec<I>>, Vec<V>);

/// Columns of the width that the indices so far need.
pub(super) enum Grown<V> {
    Narrow(Columns<u32, V>),
    Wide(Columns<u64, V>),
}

/// A parsed block.
struct Parsed<V> {
    columns: Grown<V>,
    piece: Piece,
}

/// Parses all lines of `reader` in blocks of about `window` bytes; returns the columns and the
/// number of bytes.
///
/// `damaged` makes the error of a failing reader.
pub(super) fn parse<V: Value>(
    reader: impl Read + Send,
    window: usize,
    collector: &mut Collector<'_>,
    damaged: &dyn Fn(io::Error) -> FormatError,
) -> Result<(Grown<V>, u64), FormatError> {
    let threads = rayon::current_num_threads();
    let (sender, receiver) = mpsc::sync_channel(threads);
    // Leaving the scope drops the receiver first, which ends the thread at its next block.
    std::thread::scope(|scope| {
        let send = move || send_blocks(reader, window.max(1), &sender);
        let refused = |error| {
            let why = format!("the system refused a thread: {error}");
            damaged(io::Error::new(io::ErrorKind::OutOfMemory, why))
        };
        std::thread::Builder::new().spawn_scoped(scope, send).map_err(refused)?;
        gather(receiver, threads, collector, damaged)
    })
}

/// Cuts what `reader` yields into blocks that end with a line, and sends them.
fn send_blocks(mut reader: impl Read, window: usize, sender: &SyncSender<io::Result<Vec<u8>>>) {
    let mut rest = Vec::new();
    loop {
        let mut block = rest;
        let before = block.len();
        block.reserve(window);
        match reader.by_ref().take(window as u64).read_to_end(&mut block) {
            Ok(0) => {
                // Nobody listens after an error: that is no failure here.
                let _ = sender.send(Ok(block));
                return;
            }
            Ok(_) => {}
            Err(error) => {
                let _ = sender.send(Err(error));
                return;
            }
        }
        // A line longer than the window grows the block.
        let Some(end) = memchr::memrchr(b'\n', &block[before..]) else {
            if block.len() as u64 > LONGEST_LINE {
                let _ = sender.send(Err(longest_line()));
                return;
            }
            rest = block;
            continue;
        };
        rest = block.split_off(before + end + 1);
        if sender.send(Ok(block)).is_err() {
            return;
        }
    }
}

/// Parses the blocks as they come and appends them in order.
fn gather<V: Value>(
    receiver: Receiver<io::Result<Vec<u8>>>,
    threads: usize,
    collector: &mut Collector<'_>,
    damaged: &dyn Fn(io::Error) -> FormatError,
) -> Result<(Grown<V>, u64), FormatError> {
    let limits = collector.limits;
    let mut all = Grown::Narrow((vec![Vec::new(); limits.layout.order], Vec::new()));
    let mut bytes = 0;
    while let Ok(first) = receiver.recv() {
        let batch: Vec<_> =
            std::iter::once(first).chain(receiver.try_iter().take(threads - 1)).collect();
        let parsed: Vec<io::Result<(usize, Parsed<V>)>> = batch
            .into_par_iter()
            .with_max_len(1)
            .map(|block| block.map(|block| (block.len(), parse_block(&block, limits))))
            .collect();
        for block in parsed {
            let (len, Parsed { columns, piece }) = block.map_err(damaged)?;
            bytes += len as u64;
            match collector.add(piece) {
                Ok(()) => {
                    all = all.append(columns, collector.file)?;
                    claimed_sizes::check(all.bytes(), limits.max_bytes, collector.file)?;
                }
                Err(End::Error(error)) => return Err(error),
                // Blocks of wide indices were parsed as such.
                Err(End::Wide) => unreachable!("64-bit indices always fit"),
            }
        }
    }
    Ok((all, bytes))
}

fn parse_block<V: Value>(block: &[u8], limits: &Limits) -> Parsed<V> {
    let (columns, piece) = parse_as::<u32, V>(block, limits);
    if !matches!(piece.stop, Some(Stop::Wide)) {
        return Parsed { columns: Grown::Narrow(columns), piece };
    }
    let (columns, piece) = parse_as::<u64, V>(block, limits);
    Parsed { columns: Grown::Wide(columns), piece }
}

fn parse_as<I: Coordinate, V: Value>(block: &[u8], limits: &Limits) -> (Columns<I, V>, Piece) {
    let lines = memchr::memchr_iter(b'\n', block).count() as u64 + 1;
    let rows = lines.min(limits.layout.most_rows(block.len() as u64)) as usize;
    let mut columns = vec![vec![I::zeroed(); rows]; limits.layout.order];
    let mut values = vec![V::default(); rows];
    let slices = columns.iter_mut().map(Vec::as_mut_slice).collect();
    let piece = collect::piece(block, limits, &mut Rows { columns: slices, values: &mut values });
    columns.iter_mut().for_each(|column| column.truncate(piece.tally.counts.rows));
    values.truncate(piece.tally.counts.rows);
    ((columns, values), piece)
}

impl<V: Value> Grown<V> {
    /// Appends a block, widening whichever side is narrow if the other is wide.
    fn append(self, block: Grown<V>, file: &str) -> Result<Grown<V>, FormatError> {
        Ok(match (self, block) {
            (Grown::Narrow(all), Grown::Narrow(block)) => Grown::Narrow(joined(all, block, file)?),
            (all, block) => Grown::Wide(joined(all.widen(), block.widen(), file)?),
        })
    }

    /// Returns the bytes of columns and values.
    fn bytes(&self) -> u64 {
        let (rows, width, order) = match self {
            Grown::Narrow((columns, values)) => (values.len(), size_of::<u32>(), columns.len()),
            Grown::Wide((columns, values)) => (values.len(), size_of::<u64>(), columns.len()),
        };
        (rows * (order * width + V::BYTES)) as u64
    }

    fn widen(self) -> Columns<u64, V> {
        match self {
            Grown::Wide(columns) => columns,
            Grown::Narrow((columns, values)) => (columns.into_iter().map(widen).collect(), values),
        }
    }
}

/// Widens stored indices, an index 0 (wrapped) among them.
fn widen(column: Vec<u32>) -> Vec<u64> {
    column.into_iter().map(|index| index.raw().wrapping_sub(1)).collect()
}

fn joined<I: Copy, V: Copy>(
    mut all: Columns<I, V>,
    block: Columns<I, V>,
    file: &str,
) -> Result<Columns<I, V>, FormatError> {
    for (all, block) in all.0.iter_mut().zip(&block.0) {
        claimed_sizes::grow(all, block.len(), file)?;
        all.extend_from_slice(block);
    }
    claimed_sizes::grow(&mut all.1, block.1.len(), file)?;
    all.1.extend_from_slice(&block.1);
    Ok(all)
}
