//! Text that can be looked at by pieces: a file or memory, parsed by all threads in place.
//!
//! 1. *Take* the next window, read the lines that begin in it, once, and hash its bytes if that is asked.
//! 2. *Count* its lines, and cut their room off the front of every array: in the order of the
//!    windows, each as soon as those before it are counted.
//! 3. *Parse* the lines into that room.
//! 4. *Close*: comments and blank lines leave gaps behind a window's rows; later rows move up.
//!
//! The arrays are made for the most rows that so many bytes can hold; what lies behind the last row
//! is never touched and takes no memory.  Memory: the arrays, and a window a thread.

use std::hint;
use std::io;
use std::ops::Range;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use rayon::prelude::*;

use crate::array::Array;
use crate::error::FormatError;
use crate::io::hash;
use crate::io::map::Bytes;
use crate::io::map::Window;
use crate::io::options::Progress;
use crate::io::text::LONGEST_LINE;
use crate::io::text::collect;
use crate::io::text::collect::Collector;
use crate::io::text::collect::End;
use crate::io::text::collect::Limits;
use crate::io::text::collect::Piece;
use crate::io::text::collect::Tally;
use crate::io::text::row;
use crate::io::text::row::Coordinate;
use crate::io::text::row::Rows;
use crate::io::text::row::Stop;
use crate::value::Value;

/// Columns and values of all rows.
pub(super) type Columns<I, V> = (Vec<Array<I>>, Array<V>);

/// Places of a file, and bytes of each, that are looked at for indices of more than two bytes.
const SPOTS: usize = 16;
const SPOT: u64 = 1 << 12;

/// How long a thread looks whether it is its turn before it sleeps: longer than it takes to count a window.
///
/// Virtual machines may wake a thread on the core of the one that wakes it, where both stay for milliseconds.
const PATIENCE: Duration = Duration::from_millis(1);

/// What is read behind a window at first, for the end of its last line.
const BEHIND: u64 = 1 << 12;

/// The lines behind the prelude, and how the text is cut: what begins in a window belongs to it.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    pub(super) text: Bytes<'a>,
    /// The first byte behind the prelude.
    pub(super) start: u64,
    /// Bytes of a window, at least 1.
    pub(super) window: u64,
    /// Takes the bytes of windows, if they are to be hashed.
    pub(super) hash: Option<&'a hash::Windows>,
}

/// The rows of a window: the room for them and what came of it.
struct Done {
    window: usize,
    room: usize,
    piece: Piece,
}

/// Parses `lines`, all indices as `I`.
pub(super) fn parse<I: Coordinate, V: Value>(
    lines: Lines<'_>,
    collector: &mut Collector<'_>,
    progress: &Progress,
) -> Result<Columns<I, V>, End> {
    let limits = collector.limits;
    // A window may have room for one row more than its bytes hold.
    let rows = limits.layout.most_rows(lines.text.len() - lines.start) as usize + lines.windows();
    let made = (0..limits.layout.order).map(|_| Array::try_zeros(rows)).collect();
    let (Some::<Vec<Array<I>>>(mut columns), Some::<Array<V>>(mut values)) =
        (made, Array::try_zeros(rows))
    else {
        let row_bytes = (limits.layout.order * size_of::<I>() + V::BYTES) as u64;
        let (file, needs) = (collector.file.to_owned(), row_bytes.saturating_mul(rows as u64));
        return Err(End::Error(FormatError::NoMemory { file, needs }));
    };
    let slices = columns.iter_mut().map(Array::make_mut).collect();
    let queue = Queue::new(Rows { columns: slices, values: values.make_mut() });
    let threads = rayon::current_num_threads().min(lines.windows());
    let work = (0..threads).into_par_iter().with_max_len(1);
    let mut done: Vec<Done> = work.flat_map_iter(|_| queue.work(lines, limits, progress)).collect();
    done.sort_unstable_by_key(|done| done.window);
    let mut parts = Vec::with_capacity(done.len());
    for Done { room, piece, .. } in done {
        parts.push((room, piece.tally.counts.rows));
        collector.add(piece)?;
    }
    columns.par_iter_mut().for_each(|column| close_gaps(column, &parts));
    close_gaps(&mut values, &parts);
    Ok((columns, values))
}

/// Tells whether all indices fit in two bytes, as far as extents or some lines here and there say.
pub(super) fn seems_narrow<V: Value>(lines: Lines<'_>, limits: &Limits) -> bool {
    if let Some((extents, _)) = &limits.extents {
        return extents.iter().all(|&extent| extent <= u16::MAX.into());
    }
    let spots = Lines { window: SPOT, hash: None, ..lines };
    let windows = spots.windows();
    let places = windows.min(SPOTS);
    let narrow = |number: usize| {
        let Ok((bytes, range)) = spots.read(number) else { return false };
        let text = &bytes[range];
        let rows = limits.layout.most_rows(text.len() as u64) as usize;
        let mut columns = vec![vec![0_u16; rows]; limits.layout.order];
        let columns = columns.iter_mut().map(Vec::as_mut_slice).collect();
        let values = &mut vec![V::default(); rows][..];
        let (_, stop) = row::parse(text, limits.layout, &mut Rows { columns, values });
        !matches!(stop, Some(Stop::Wide))
    };
    // The first and the last among them.
    (0..places).all(|place| narrow(place * (windows - 1) / (places - 1).max(1)))
}

impl<'a> Lines<'a> {
    fn windows(self) -> usize {
        self.text.len().div_ceil(self.window) as usize
    }

    /// Returns where the bytes of window `number` are.
    fn place(self, number: usize) -> Range<u64> {
        let from = number as u64 * self.window;
        from..self.text.len().min(from + self.window)
    }

    /// Reads the lines that begin in window `number`; gives their place in the bytes read.
    fn read(self, number: usize) -> io::Result<(Window<'a>, Range<usize>)> {
        let end = self.text.len();
        let Range { start: from, end: to } = self.place(number);
        // With the byte before it: a newline there means that a line begins with the window.
        let before = from - u64::from(number > 0);
        let mut behind = BEHIND;
        loop {
            let stop = end.min(to.saturating_add(behind));
            let bytes = self.text.window(before..stop)?;
            let first = match self.start.checked_sub(from) {
                Some(prelude) => Some((from - before + prelude) as usize),
                None => memchr::memchr(b'\n', &bytes).map(|at| at + 1),
            };
            let edge = (to - before) as usize;
            let Some(first) = first.filter(|&first| first < edge) else { return Ok((bytes, 0..0)) };
            match memchr::memchr(b'\n', &bytes[edge - 1..]) {
                Some(len) => return Ok((bytes, first..edge + len)),
                None if stop == end => {
                    let all = bytes.len();
                    return Ok((bytes, first..all));
                }
                None if behind > LONGEST_LINE => return Err(longest_line()),
                None => behind *= 8,
            }
        }
    }

    /// Hashes window `number`, of which `bytes` are what [`Lines::read`] returned.
    fn hash(self, number: usize, bytes: &[u8]) {
        let Some(hash) = self.hash else { return };
        let Range { start, end } = self.place(number);
        let before = usize::from(number > 0);
        hash.add(number, &bytes[before..][..(end - start) as usize]);
    }
}

/// The windows not yet taken and the room not yet given.
struct Queue<'a, I, V> {
    next: AtomicUsize,
    /// The first window known to stop the reading.  Windows behind it cannot matter any more;
    /// those before it are always parsed, so the first bad line is found whatever the timing.
    stopped: AtomicUsize,
    /// The window whose turn it is to take room.
    turn: AtomicUsize,
    /// The rows that there is room for at first.
    most: usize,
    /// The room that is left.
    rest: Mutex<Rows<'a, I, V>>,
    turned: Condvar,
}

impl<'a, I: Coordinate, V: Value> Queue<'a, I, V> {
    fn new(room: Rows<'a, I, V>) -> Queue<'a, I, V> {
        Queue {
            next: AtomicUsize::new(0),
            stopped: AtomicUsize::new(usize::MAX),
            turn: AtomicUsize::new(0),
            most: room.values.len(),
            rest: Mutex::new(room),
            turned: Condvar::new(),
        }
    }

    /// Parses window after window until none is left.
    fn work(&self, lines: Lines<'_>, limits: &Limits, progress: &Progress) -> Vec<Done> {
        let next = || Some(self.next.fetch_add(1, Relaxed)).filter(|&next| next < lines.windows());
        let mut all = Vec::new();
        while let Some(window) = next() {
            let (room, piece) = self.one(window, lines, limits);
            if piece.stop.is_some() {
                self.stopped.fetch_min(window, Relaxed);
            }
            let Range { start: from, end: to } = lines.place(window);
            progress.advance(to.saturating_sub(from.max(lines.start)));
            all.push(Done { window, room, piece });
        }
        all
    }

    fn one(&self, window: usize, lines: Lines<'_>, limits: &Limits) -> (usize, Piece) {
        let nothing = |stop| Piece { tally: Tally::default(), stop };
        if window > self.stopped.load(Relaxed) {
            self.room(window, 0);
            return (0, nothing(None));
        }
        match lines.read(window) {
            Ok((bytes, range)) => {
                lines.hash(window, &bytes);
                let text = &bytes[range];
                // The last line may lack its newline.
                let open = u64::from(text.last().is_some_and(|&last| last != b'\n'));
                let count = memchr::memchr_iter(b'\n', text).count() as u64 + open;
                let room = count.min(limits.layout.most_rows(text.len() as u64)) as usize;
                let (mut rows, bytes) = self.room(window, room);
                match bytes > limits.max_bytes {
                    true => (room, nothing(Some(Stop::Large(bytes)))),
                    false => (room, collect::piece(text, limits, &mut rows)),
                }
            }
            Err(error) => {
                self.room(window, 0);
                (0, nothing(Some(Stop::Io(error))))
            }
        }
    }

    /// Waits until all windows before `window` have their room, and takes that of `rows` rows; also returns the
    /// bytes of all rows so far.
    ///
    /// The windows before it are being read by threads that wait for nobody but those before them.
    fn room(&self, window: usize, rows: usize) -> (Rows<'a, I, V>, u64) {
        let others_turn = || self.turn.load(Acquire) != window;
        let begun = Instant::now();
        while others_turn() && begun.elapsed() < PATIENCE {
            hint::spin_loop();
        }
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.turned.wait_while(rest, |_| others_turn());
        let mut rest = wait.unwrap_or_else(PoisonError::into_inner);
        let Rows { columns, values } = &mut *rest;
        let columns = columns.iter_mut().map(|column| take(column, rows)).collect();
        let room = Rows { columns, values: take(values, rows) };
        let row_bytes = rest.columns.len() * size_of::<I>() + V::BYTES;
        let bytes = ((self.most - rest.values.len()) * row_bytes) as u64;
        self.turn.store(window + 1, Release);
        self.turned.notify_all();
        (room, bytes)
    }
}

/// The error for a line that never ends.
pub(super) fn longest_line() -> io::Error {
    let why = format!("a line is longer than {} MiB", LONGEST_LINE >> 20);
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Takes the first `len` elements off `rest`.
fn take<'a, T>(rest: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let (part, after) = std::mem::take(rest).split_at_mut(len);
    *rest = after;
    part
}

/// Moves the rows of every part, its room and how many there are, together, and drops the rest.
fn close_gaps<T: Pod>(array: &mut Array<T>, parts: &[(usize, usize)]) {
    let (mut from, mut to) = (0, 0);
    let slots = array.make_mut();
    for &(room, rows) in parts {
        if from != to {
            slots.copy_within(from..from + rows, to);
        }
        from += room;
        to += rows;
    }
    array.truncate(to);
}
