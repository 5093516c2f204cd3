//! The assembly of an output whose coordinates are not known before.
//!
//! Products are summed up in a workspace, cell by cell; what was met is appended to a list, in the order of cells, and
//! the workspace is empty again.  The numbers of cells are offsets in the program's array of the output, and the
//! coordinates of the loops outside are given with each part that is appended.  Where the innermost index of the
//! workspace is one of lanes, the cells of a row are met together, and the first one stands for them.
//!
//! A dense workspace marks the cells that were met in bitmaps (`bitmap`), which give them in order.  The cells of a hashed
//! one (`table`) and of a list are sorted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use decompose_formats::{Matrix, Value};

use crate::error::CoreError;
use crate::lower::Program;
use crate::lower::bitmap::Bitmap;
use crate::lower::table;
use crate::schedule::Workspace;

/// The memory that all tasks together may still take: for elements, and for workspaces that become longer.
#[derive(Debug)]
pub struct Room {
    bytes: AtomicU64,
    element: u64,
}

impl Room {
    /// Allows `bytes`, of which an element takes `element`.
    pub fn new(bytes: u64, element: u64) -> Room {
        Room { bytes: AtomicU64::new(bytes), element: element.max(1) }
    }

    /// Allows whatever there is.
    pub fn unlimited() -> Room {
        Room::new(u64::MAX, 1)
    }

    /// Returns how many elements may be appended, if no workspace becomes longer.
    pub fn elements(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed) / self.element
    }

    /// Takes `bytes` of what is left; returns whether there were as many.
    fn take(&self, bytes: u64) -> bool {
        let left = |left: u64| left.checked_sub(bytes);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
    }
}

/// A workspace, and the list that it is appended to.
pub struct Assembly<V: Value> {
    kind: Workspace,
    room: Arc<Room>,
    /// Whether there was too little room: what is added and appended from then on is lost.
    full: bool,
    /// Cells that are met together, beginning with one that is marked and listed.
    together: usize,
    /// The values of all cells; none unless the workspace is dense.
    cells: Matrix<V>,
    /// The cells that have been met.
    bitmap: Bitmap,
    /// Cells that have been met, in the order of the products; the slots of a table, as [`table`] has them; none of a dense
    /// workspace.
    list: Vec<u64>,
    /// The slots of a table that are taken, in the order of the products.
    taken: Vec<u64>,
    /// Values of listed cells, or of those in slots.
    values: Vec<V>,
    /// How many are listed or in slots; of a dense workspace whether any cell was met.
    listed: usize,
    /// How many may be.
    capacity: usize,
    /// Cells and values that are sorted or moved.
    pairs: Vec<(u64, V)>,
    assembled: Assembled<V>,
}

/// The arrays of a workspace.
pub(crate) struct Arrays<'a, V> {
    pub(crate) cells: &'a mut [V],
    pub(crate) met: &'a mut [u64],
    pub(crate) words: &'a mut [u64],
    pub(crate) list: &'a mut [u64],
    pub(crate) values: &'a mut [V],
    /// How many cells may be listed.
    pub(crate) room: usize,
}

/// Elements of an assembled output, in the order in which they were appended.
#[derive(Debug, Default)]
pub struct Assembled<V: Value> {
    /// The coordinates of the loops outside of each part, one after the other.
    pub outside: Vec<u64>,
    /// One past the last element of each part.
    pub ends: Vec<usize>,
    /// The elements.
    pub blocks: Vec<Block<V>>,
}

/// Elements that stand together in memory: a list that grew as one would be copied as it does.
#[derive(Debug, Default)]
pub struct Block<V: Value> {
    /// The low halves of the numbers of their cells.
    pub low: Vec<u32>,
    /// The high halves; none if all are zero.
    pub high: Vec<u32>,
    /// Their values.
    pub values: Vec<V>,
}

/// Elements of the first block of a task, unless a part has more: many tasks have few.
const FIRST_BLOCK: usize = 1 << 12;

/// Elements of other blocks: their arrays are so long that their memory is given back at once when they are freed.
const BLOCK: usize = 1 << 18;

impl<V: Value> Assembled<V> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Tells whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends a part of `elements` elements inside loops at `outside`; returns the block for it.
    fn part(&mut self, outside: &[u64], elements: usize) -> &mut Block<V> {
        self.outside.extend_from_slice(outside);
        self.ends.push(self.len() + elements);
        let room = |block: &Block<V>| block.values.capacity() - block.values.len();
        if self.blocks.last().is_none_or(|block| room(block) < elements) {
            let most = elements.max(if self.blocks.is_empty() { FIRST_BLOCK } else { BLOCK });
            let (low, values) = (Vec::with_capacity(most), Vec::with_capacity(most));
            self.blocks.push(Block { low, high: Vec::new(), values });
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }
}

impl<V: Value> Block<V> {
    /// Returns the numbers of the cells.
    pub fn cells(&self) -> impl Iterator<Item = u64> + '_ {
        let high = |at: usize| self.high.get(at).map_or(0, |&high| u64::from(high) << 32);
        self.low.iter().enumerate().map(move |(at, &low)| high(at) | u64::from(low))
    }

    /// Adds elements, sorted by cell.
    fn extend(&mut self, elements: &[(u64, V)]) {
        let wide = elements.last().is_some_and(|&(cell, _)| cell >> 32 != 0);
        if wide || !self.high.is_empty() {
            self.high.resize(self.low.len(), 0);
            self.high.extend(elements.iter().map(|&(cell, _)| (cell >> 32) as u32));
        }
        self.low.extend(elements.iter().map(|&(cell, _)| cell as u32));
        self.values.extend(elements.iter().map(|&(_, value)| value));
    }
}

/// Cells of a list before it is sorted and appended.
const LISTED: usize = 1 << 16;

/// Returns about how many bytes a workspace of this kind takes that has `cells` cells, of which `met` are met together.
pub fn workspace_bytes<V: Value>(kind: Workspace, cells: u64, met: u64) -> u64 {
    match kind {
        Workspace::Dense => cells.saturating_mul(V::BYTES as u64).saturating_add(cells.div_ceil(8)),
        Workspace::Hashed => {
            let room = met.clamp(table::LEAST as u64, 1 << 32).next_power_of_two();
            longer_bytes::<V>(table::SLOTS, room as usize)
        }
        // A list is made longer as long as it is more than half full.
        Workspace::List => {
            let room = met.saturating_mul(2).clamp(LISTED as u64, 1 << 32).next_power_of_two();
            longer_bytes::<V>(1, room as usize)
        }
    }
}

/// Returns the bytes of a part inside so many loops, beside its elements.
pub(crate) fn part_bytes(outside: usize) -> u64 {
    (outside * size_of::<u64>() + size_of::<usize>()) as u64
}

/// Returns the bytes of a list or table of `cells` cells, each with so many slots, and of the pairs that they become.
fn longer_bytes<V: Value>(slots: usize, cells: usize) -> u64 {
    let slot = size_of::<u64>() + V::BYTES;
    let taken = (slots - 1) * size_of::<u64>();
    (cells * (slots * slot + taken + size_of::<(u64, V)>())) as u64
}

impl<V: Value> Assembly<V> {
    /// Makes an empty workspace for the output of `program`, from which no more than `room` is appended.
    ///
    /// # Errors
    ///
    /// If there is no memory for its cells.
    pub fn new(
        kind: Workspace,
        program: &Program,
        room: Arc<Room>,
    ) -> Result<Assembly<V>, CoreError> {
        let cells = program.output.len;
        let (cells, list, capacity) = match kind {
            Workspace::Dense => (cells as usize, 0, 0),
            Workspace::Hashed => (0, table::SLOTS * table::LEAST, table::LEAST),
            Workspace::List => (0, LISTED, LISTED),
        };
        Ok(Assembly {
            kind,
            room,
            full: false,
            together: program.cells_met_together() as usize,
            bitmap: Bitmap::new(cells),
            cells: Matrix::zeros(1, cells)?,
            list: vec![0; list],
            taken: vec![0; list - capacity],
            values: vec![V::default(); list],
            listed: 0,
            capacity,
            pairs: Vec::new(),
            assembled: Assembled::default(),
        })
    }

    /// Tells whether the workspace is of this kind and has `cells` cells.
    pub(crate) fn is_for(&self, kind: Workspace, cells: u64) -> bool {
        let len = self.cells.as_slice().len() as u64;
        self.kind == kind && (kind != Workspace::Dense || len >= cells)
    }

    /// Tells whether elements were left out since there was no room for them.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Adds `value` to `cell`.
    pub fn add(&mut self, cell: u64, value: V) {
        match self.kind {
            Workspace::Dense => self.meet(cell)[0] += value,
            Workspace::Hashed => {
                if self.listed == self.capacity {
                    self.lengthen();
                }
                let slot = table::slot_of(cell, &self.list[..table::SLOTS * self.capacity]);
                if self.list[slot] == table::FREE {
                    (self.list[slot], self.taken[self.listed]) = (cell + 1, slot as u64);
                    self.listed += 1;
                }
                self.values[slot] += value;
            }
            Workspace::List => {
                if self.listed == self.capacity {
                    self.lengthen();
                }
                self.list[self.listed] = cell;
                self.values[self.listed] = value;
                self.listed += 1;
            }
        }
    }

    /// Marks `cell` of a dense workspace as met; returns it and those behind it.
    pub(crate) fn meet(&mut self, cell: u64) -> &mut [V] {
        let at = cell as usize;
        self.bitmap.mark(at);
        self.listed = 1;
        &mut self.cells.as_mut_slice()[at..]
    }

    /// Makes room: sums up a full list, and makes it longer if that leaves little room, or makes a table larger.  Where
    /// there is no memory for it, the workspace is emptied, and of no use any more.
    pub fn lengthen(&mut self) {
        if self.kind == Workspace::List {
            self.sum_list();
            if self.listed > self.capacity / 2 && !self.resize(2 * self.capacity) {
                self.give_up();
            }
            return;
        }
        self.take_table();
        if !self.resize(2 * self.capacity) {
            self.give_up();
            return;
        }
        let slots = &mut self.list[..table::SLOTS * self.capacity];
        for ((cell, value), taken) in self.pairs.drain(..).zip(&mut self.taken) {
            let slot = table::slot_of(cell, slots);
            (slots[slot], self.values[slot], *taken) = (cell + 1, value, slot as u64);
        }
    }

    /// Moves the cells of a table to `pairs`, in the order in which they were met.
    fn take_table(&mut self) {
        let met = self.taken[..self.listed].iter().map(|&slot| {
            let slot = slot as usize;
            let cell = std::mem::replace(&mut self.list[slot], table::FREE) - 1;
            (cell, std::mem::take(&mut self.values[slot]))
        });
        self.pairs.extend(met);
    }

    /// Makes room for `cells` cells; returns whether there is memory for them.
    fn resize(&mut self, cells: usize) -> bool {
        let slots = if self.kind == Workspace::Hashed { table::SLOTS } else { 1 };
        if self.list.len() < slots * cells {
            let more =
                longer_bytes::<V>(slots, cells) - longer_bytes::<V>(slots, self.list.len() / slots);
            if !self.room.take(more) {
                return false;
            }
            self.taken.resize((slots - 1) * cells, 0);
            self.list.resize(slots * cells, 0);
            self.values.resize(slots * cells, V::default());
        }
        self.capacity = cells;
        true
    }

    /// Empties a workspace for which there is too little memory.
    fn give_up(&mut self) {
        self.full = true;
        self.listed = 0;
        self.pairs.clear();
    }

    /// Sorts the list by cells and adds up values of the same, in the order in which they came.
    fn sum_list(&mut self) {
        let pairs = self.list[..self.listed].iter().copied().zip(self.values.iter().copied());
        self.pairs.extend(pairs);
        self.pairs.sort_by_key(|&(cell, _)| cell);
        self.listed = 0;
        for (cell, value) in self.pairs.drain(..) {
            match self.listed.checked_sub(1).filter(|&last| self.list[last] == cell) {
                Some(last) => self.values[last] += value,
                None => {
                    self.list[self.listed] = cell;
                    self.values[self.listed] = value;
                    self.listed += 1;
                }
            }
        }
    }

    /// Appends what was met, whose loops outside are at `outside`, and empties the workspace; returns whether there
    /// was room.  Where there was none nothing is appended, and the workspace is of no use any more.
    pub fn append(&mut self, outside: &[u64]) -> bool {
        if self.full || self.listed == 0 {
            return !self.full;
        }
        let elements = match self.kind {
            Workspace::Dense => self.bitmap.count() * self.together,
            Workspace::Hashed => {
                self.take_table();
                self.listed
            }
            Workspace::List => {
                self.sum_list();
                self.listed
            }
        };
        self.listed = 0;
        let bytes = elements as u64 * self.room.element + part_bytes(outside.len());
        if !self.room.take(bytes) {
            self.full = true;
            return false;
        }
        let block = self.assembled.part(outside, elements);
        match self.kind {
            Workspace::Dense => self.append_met(elements),
            Workspace::Hashed => {
                self.pairs.sort_unstable_by_key(|&(cell, _)| cell);
                block.extend(&self.pairs);
                self.pairs.clear();
                // Few cells in a table of many slots are far apart.
                self.capacity = elements.next_power_of_two().clamp(table::LEAST, self.capacity);
            }
            Workspace::List => {
                let listed = self.list[..elements].iter().copied().zip(self.values.iter().copied());
                self.pairs.extend(listed);
                block.extend(&self.pairs);
                self.pairs.clear();
            }
        }
        true
    }

    /// Moves what was met, `elements` elements, to the end of the last block.
    fn append_met(&mut self, elements: usize) {
        let Some(block) = self.assembled.blocks.last_mut() else { return };
        let first = block.values.len();
        block.low.resize(first + elements, 0);
        block.values.resize(first + elements, V::default());
        let mut out = block.low[first..].iter_mut().zip(&mut block.values[first..]);
        let (cells, together) = (self.cells.as_mut_slice(), self.together);
        self.bitmap.take(|cell| {
            let row = cells[cell..cell + together].iter_mut().zip(cell..);
            for ((value, number), (low, to)) in row.zip(&mut out) {
                *low = number as u32;
                *to = std::mem::take(value);
            }
        });
    }

    /// Returns the arrays, as compiled code works on them.
    pub(crate) fn arrays(&mut self) -> Arrays<'_, V> {
        let Assembly { kind, cells, bitmap, list, taken, values, capacity, .. } = self;
        let Bitmap { met, words } = bitmap;
        let met = if *kind == Workspace::Hashed { taken } else { met };
        Arrays { cells: cells.as_mut_slice(), met, words, list, values, room: *capacity }
    }

    /// Says how many are listed, where compiled code wrote to the arrays.
    pub(crate) fn set_listed(&mut self, listed: usize) {
        self.listed = listed;
    }

    /// Returns how many are listed.
    pub(crate) fn listed(&self) -> usize {
        self.listed
    }

    /// Takes the list, which begins anew.
    pub fn take(&mut self) -> Assembled<V> {
        std::mem::take(&mut self.assembled)
    }
}
