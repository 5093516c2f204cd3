//! Coordinate lists.

mod diagonal;
mod duplicates;
mod mask;
mod merge;
mod sum;
mod values;

use std::sync::OnceLock;

use crate::array::Array;
use crate::blocking::Blocking;
use crate::error::FormatError;
use crate::modes::ModeOrder;
use crate::narrow_ints::{Ints, Width};
use crate::sort;
use crate::sort::Column;
use crate::sort::ColumnMut;
use crate::sort::{Decimals, Layout, Room, Source, Target};
use crate::value::Value;

pub use crate::coo::diagonal::Diagonal;
pub use crate::coo::duplicates::Duplicates;
pub use crate::coo::sum::Union;

/// A sparse tensor as a list of coordinates and values, one array a mode ("structure of arrays").
///
/// Coordinates count from 0.  The non-zeros stand in any order and may repeat a coordinate until
/// they are sorted and summed.  Memory: `nnz * (sum of index widths + V::BYTES)` bytes.
///
/// # Example
///
/// ```
/// use decompose_formats::{Coo, ModeOrder};
///
/// let coords = vec![vec![1u32, 0, 1].into(), vec![2u32, 0, 2].into()];
/// let mut coo = Coo::new(vec![2, 3], coords, vec![1.0, 5.0, 2.0])?;
/// coo.sort(&ModeOrder::natural(2))?;
/// assert_eq!(coo.sum_duplicates()?, 1);
/// assert_eq!(coo.values(), [5.0, 3.0]);
/// # Ok::<(), decompose_formats::FormatError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Coo<V: Value> {
    extents: Vec<u64>,
    coords: Vec<Ints>,
    values: Array<V>,
    /// An order by which the entries are known to be sorted; no part of what the tensor is.
    sorted_by: Option<ModeOrder>,
    /// Whether no two entries are known to share their coordinates; no part of it either.
    distinct: bool,
    /// Memory of the last sort, if the next is to use it again; no part of it either.
    room: Option<Room>,
    /// How the values become codes, if they do, once that was asked; no part of it either.
    decimals: OnceLock<Option<Decimals>>,
}

impl<V: Value> PartialEq for Coo<V> {
    /// Compares the lists: equal extents, and equal entries in equal order.
    fn eq(&self, other: &Coo<V>) -> bool {
        self.extents == other.extents && self.coords == other.coords && self.values == other.values
    }
}

/// Returns how many bytes [`Coo::sort`] needs beyond a list of these extents for each entry, if its values are no decimals
/// of few digits.
pub fn sort_entry_bytes(extents: &[u64]) -> usize {
    Layout::new(extents, &ModeOrder::natural(extents.len())).entry_bytes()
}

impl<V: Value> Coo<V> {
    /// Makes a tensor of extents `extents` from one coordinate array a mode and the values.
    ///
    /// Time `O(nnz * order)`: every coordinate is checked against its extent.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if there is no mode, the arrays differ in length, or a
    /// coordinate is not below its extent.
    pub fn new(
        extents: Vec<u64>,
        coords: Vec<Ints>,
        values: impl Into<Array<V>>,
    ) -> Result<Coo<V>, FormatError> {
        let coo = Coo::listed(extents, coords, values.into());
        coo.check()?;
        Ok(coo)
    }

    fn listed(extents: Vec<u64>, coords: Vec<Ints>, values: Array<V>) -> Coo<V> {
        let (sorted_by, distinct, room, decimals) = (None, false, None, OnceLock::new());
        Coo { extents, coords, values, sorted_by, distinct, room, decimals }
    }

    /// Makes a tensor of parts that are known to fit and to be sorted.
    pub(crate) fn sorted(
        extents: Vec<u64>,
        coords: Vec<Ints>,
        values: Array<V>,
        order: ModeOrder,
    ) -> Coo<V> {
        Coo { sorted_by: Some(order), ..Coo::listed(extents, coords, values) }
    }

    /// Makes a tensor of parts that are known to fit.
    pub(crate) fn fitting(extents: Vec<u64>, coords: Vec<Ints>, values: Array<V>) -> Coo<V> {
        let coo = Coo::listed(extents, coords, values);
        debug_assert!(coo.check().is_ok(), "parts that do not fit");
        coo
    }

    /// Makes a tensor of parts that are known to fit and whose entries ascend strictly.
    pub(crate) fn ascending(extents: Vec<u64>, coords: Vec<Ints>, values: Array<V>) -> Coo<V> {
        let natural = ModeOrder::natural(extents.len());
        Coo { distinct: true, ..Coo::sorted(extents, coords, values, natural) }
    }

    /// Sorts the entries by `order`, stably; does nothing if they are sorted so already.
    ///
    /// They stay in their arrays, unless a file or another list has these: then a copy is sorted.
    ///
    /// Parallel, and the same whatever the number of threads.  A list known to be sorted by
    /// another order is sorted by its leading modes only.  Time `O(nnz * key bits / 10)`, memory
    /// [`Coo::sort_bytes`] beyond the list.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if `order` is not of this tensor's modes or the memory for the
    /// sort cannot be had.
    pub fn sort(&mut self, order: &ModeOrder) -> Result<(), FormatError> {
        self.check_order(order)?;
        if self.is_sorted_by(order) {
            self.sorted_by = Some(order.clone());
            return Ok(());
        }
        if self.sorted_by.is_none() {
            // Files mostly come in the natural order; a shuffled one fails this test at once.
            let natural = ModeOrder::natural(self.order());
            self.sorted_by = Some(natural).filter(|natural| self.is_sorted_by(natural));
        }
        let layout = Layout::from(&self.extents, order, self.sorted_by.as_ref());
        let layout = layout.with_codes(self.decimals());
        let room = self.room.clone().unwrap_or_default();
        if self.is_own() {
            let columns = self.coords.iter_mut().map(ColumnMut::of).collect();
            let target = Target { columns, values: self.values.make_mut() };
            sort::sort(None, target, &layout, &room)?;
        } else {
            self.sort_away(&layout, &room)?;
        }
        self.sorted_by = Some(order.clone());
        Ok(())
    }

    /// Returns how many bytes a sort needs beyond the list: 16 an entry, 24 if the indices need more than
    /// 64 bits together; 8 less if the values are decimals of so few digits that they fit beside the indices.
    /// With `blocks`, their numbers are one more mode.  Time `O(nnz)` when it is first asked, parallel.
    pub fn sort_bytes(&self, blocks: Option<&Blocking>) -> u64 {
        let mut extents = self.extents.clone();
        extents.extend(blocks.map(Blocking::extent));
        let layout = Layout::new(&extents, &ModeOrder::natural(extents.len()));
        (self.nnz() * layout.with_codes(self.decimals()).entry_bytes()) as u64
    }

    /// Returns how many bytes [`Coo::sort`] by `order` takes beside the list: none if it is sorted so, those of other
    /// arrays too if its own may not change.
    ///
    /// # Panics
    ///
    /// If `order` is not of this tensor's modes.
    pub fn bytes_to_sort(&self, order: &ModeOrder) -> u64 {
        match self.is_sorted_by(order) {
            true => 0,
            false => self.sort_bytes(None) + self.bytes_to_copy(order),
        }
    }

    /// Returns the bytes of the other arrays to which a sort by `order` moves the list.
    fn bytes_to_copy(&self, order: &ModeOrder) -> u64 {
        if self.is_own() || self.is_sorted_by(order) { 0 } else { self.bytes() }
    }

    /// Returns how the values become codes, if they do.
    fn decimals(&self) -> Option<Decimals> {
        // Threads look at the values together: none may wait here for another meanwhile.
        let found = self.decimals.get().copied().unwrap_or_else(|| Decimals::of(&self.values));
        let _ = self.decimals.set(found);
        found
    }

    /// Replaces the values by others, as many as there are coordinates.
    fn set_values(&mut self, values: Array<V>) {
        self.values = values;
        self.decimals = OnceLock::new();
    }

    /// Sorts the entries into other arrays.
    fn sort_away(&mut self, layout: &Layout, room: &Room) -> Result<(), FormatError> {
        let columns = self.coords.iter().map(|old| room.column(old.len(), old.width()));
        let mut coords: Vec<Ints> = columns.collect();
        let mut values = Array::to_fill(self.values.len());
        let mut columns: Vec<ColumnMut<'_>> = coords.iter_mut().map(ColumnMut::of).collect();
        // Sorts pass over modes of extent 1.
        let single = columns.iter_mut().zip(&self.extents).filter(|(_, extent)| **extent == 1);
        single.for_each(|(column, _)| column.fill(std::iter::repeat(0)));
        let source = Source { columns: self.columns(), values: &self.values[..] };
        let target = Target { columns, values: values.make_mut() };
        sort::sort(Some(&source), target, layout, room)?;
        (self.coords, self.values) = (coords, values);
        Ok(())
    }

    /// Returns a column of a coordinate an entry with anything in it, if there is one from memory of
    /// sorts.
    pub(crate) fn spare_column(&self, width: Width) -> Ints {
        self.room.clone().unwrap_or_default().column(self.nnz(), width)
    }

    /// Gives the list up; columns that nothing else has become memory for sorts.
    pub(crate) fn recycle(self) {
        if let Some(room) = self.room {
            room.put(self.coords);
        }
    }

    /// Returns a list of the same arrays, and of the same memory for sorts; who sorts first gets arrays
    /// of its own.
    pub fn share(&mut self) -> Coo<V> {
        Coo {
            extents: self.extents.clone(),
            coords: self.coords.iter_mut().map(Ints::share).collect(),
            values: self.values.share(),
            sorted_by: self.sorted_by.clone(),
            distinct: self.distinct,
            room: self.room.clone(),
            decimals: self.decimals.clone(),
        }
    }

    /// Returns the bytes of the coordinates.
    pub fn coordinate_bytes(&self) -> u64 {
        self.coords.iter().map(Ints::bytes).sum()
    }

    /// Returns the bytes of the coordinates and the values.
    pub fn bytes(&self) -> u64 {
        self.coordinate_bytes() + (self.nnz() * V::BYTES) as u64
    }

    /// Tells whether no other list, tree or file has arrays of this one.
    pub fn is_own(&self) -> bool {
        self.values.is_own() && self.coords.iter().all(Ints::is_own)
    }

    /// Tells whether an array is mapped from a file.
    pub fn is_mapped(&self) -> bool {
        self.values.is_mapped() || self.coords.iter().any(Ints::is_mapped)
    }

    /// Lets all sorts from now on, of this list and of those shared with it, use the same memory and codes,
    /// until they are given up.
    pub(crate) fn keep_room(&mut self) {
        self.decimals();
        self.room.get_or_insert_default();
    }

    /// Gives back the memory of the last sort.
    pub(crate) fn give_room_back(&mut self) {
        self.room = None;
    }

    /// Makes the coordinates as narrow as levels of trees are, one column after the other, and lets a
    /// file go from which the list is mapped: its pages would count as memory of this process.
    pub(crate) fn narrow(&mut self) {
        for (column, &extent) in self.coords.iter_mut().zip(&self.extents) {
            let listed = std::mem::replace(column, Ints::to_fill(0, Width::W16));
            *column = listed.into_width(Width::below(extent));
        }
        let values = std::mem::replace(&mut self.values, Array::from(Vec::new()));
        self.values = values.into_owned();
    }

    /// Renumbers the modes: mode `order.modes()[p]` becomes mode `p`.  No entry is moved.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if `order` is not of this tensor's modes.
    pub fn permute_modes(mut self, order: &ModeOrder) -> Result<Coo<V>, FormatError> {
        self.check_order(order)?;
        let mut columns: Vec<Option<Ints>> = self.coords.into_iter().map(Some).collect();
        self.coords = order.modes().iter().filter_map(|&mode| columns[mode].take()).collect();
        self.extents = order.modes().iter().map(|&mode| self.extents[mode]).collect();
        self.sorted_by = self.sorted_by.and_then(|sorted| {
            let modes: Option<_> = sorted.modes().iter().map(|&m| order.level_of(m)).collect();
            modes.and_then(ModeOrder::new)
        });
        Ok(self)
    }

    /// Adds a mode, the last, whose coordinates follow from those of the others.
    pub(crate) fn with_mode(mut self, extent: u64, coords: Ints) -> Coo<V> {
        self.extents.push(extent);
        self.coords.push(coords);
        self.sorted_by = self.sorted_by.map(ModeOrder::with_mode);
        debug_assert!(self.check().is_ok(), "coordinates that do not fit");
        self
    }

    /// Tells whether the entries are sorted by `order`; duplicates may be present.
    ///
    /// Time `O(1)` after a sort by `order`, else `O(nnz * order)`, in parallel.
    ///
    /// # Panics
    ///
    /// If `order` is not of this tensor's modes.
    pub fn is_sorted_by(&self, order: &ModeOrder) -> bool {
        self.sorted_by.as_ref() == Some(order)
            || sort::is_sorted(&self.columns(), &Layout::new(&self.extents, order))
    }

    /// Returns the order of the last sort, if the entries are still sorted by it.
    pub fn sorted_by(&self) -> Option<&ModeOrder> {
        self.sorted_by.as_ref()
    }

    /// Returns how many key bits a sort by `order` would have to sort, which is the measure of its work;
    /// with `blocks`, their number is one more mode.
    pub(crate) fn bits_to_sort(&self, blocks: Option<&Blocking>, order: &ModeOrder) -> u32 {
        let mut extents = self.extents.clone();
        let mut known = self.sorted_by.clone();
        if let Some(blocks) = blocks {
            extents.push(blocks.extent());
            known = known.map(ModeOrder::with_mode);
        }
        let layout = Layout::from(&extents, order, known.as_ref());
        layout.bits() - layout.settled()
    }

    /// Returns the columns, by mode.
    pub(crate) fn columns(&self) -> Vec<Column<'_>> {
        self.coords.iter().map(Column::of).collect()
    }

    /// Checks that `order` lists the modes of this tensor.
    pub(crate) fn check_order(&self, order: &ModeOrder) -> Result<(), FormatError> {
        if order.modes().len() == self.order() {
            return Ok(());
        }
        let why = format!("mode order {order} for a tensor of {} modes", self.order());
        Err(FormatError::NotATensor(why))
    }

    fn check(&self) -> Result<(), FormatError> {
        let fail = |why: String| Err(FormatError::NotATensor(why));
        if self.extents.is_empty() || self.extents.len() != self.coords.len() {
            return fail(format!("{} extents, {} modes", self.extents.len(), self.coords.len()));
        }
        for (mode, (coords, &extent)) in self.coords.iter().zip(&self.extents).enumerate() {
            if coords.len() != self.values.len() {
                let (have, want) = (coords.len(), self.values.len());
                return fail(format!("mode {} has {have} coordinates for {want} values", mode + 1));
            }
            if let Some(max) = coords.max().filter(|&max| max >= extent) {
                return fail(format!("index {} in mode {} of extent {extent}", max + 1, mode + 1));
            }
        }
        Ok(())
    }

    /// Returns the number of modes.
    pub fn order(&self) -> usize {
        self.extents.len()
    }

    /// Returns the extent of every mode.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Returns the number of listed entries (explicit zeros and duplicates included).
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Returns the coordinates in `mode`, one for each entry.
    pub fn coords(&self, mode: usize) -> &Ints {
        &self.coords[mode]
    }

    /// Returns the values.
    pub fn values(&self) -> &[V] {
        &self.values
    }

    /// Takes the tensor apart: extents, coordinates by mode, values.
    pub fn into_parts(self) -> (Vec<u64>, Vec<Ints>, Array<V>) {
        (self.extents, self.coords, self.values)
    }
}
