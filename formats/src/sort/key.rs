//! Keys: the coordinates of an entry packed into one word.

use std::ops::BitOrAssign;

use bytemuck::Pod;

use crate::modes::ModeOrder;
use crate::narrow_ints::{Int, each_width};
use crate::simd;
use crate::sort::column::Column;
use crate::sort::decimals::Decimals;
use crate::value::Value;

/// Where the coordinates of each mode lie in a key; the code of the value, if it stands there too, is lowest.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    fields: Vec<Field>,
    order: ModeOrder,
    bits: u32,
    settled: u32,
    decimals: Option<Decimals>,
}

/// The bits of one mode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) mode: usize,
    pub(crate) shift: u32,
    pub(crate) bits: u32,
}

impl Layout {
    /// Lays out the modes of `order`, outermost highest, each as wide as its extent needs.
    pub(crate) fn new(extents: &[u64], order: &ModeOrder) -> Layout {
        let mut fields = Vec::with_capacity(extents.len());
        let mut shift = 0;
        for &mode in order.modes().iter().rev() {
            let bits = u64::BITS - extents[mode].saturating_sub(1).leading_zeros();
            // Modes of extent 1 have no bits: their coordinates are all zero and stay so.
            if bits > 0 {
                fields.push(Field { mode, shift, bits });
            }
            shift += bits;
        }
        fields.reverse();
        Layout { fields, order: order.clone(), bits: shift, settled: 0, decimals: None }
    }

    /// Lays out the modes of `order` for entries that may be known to be sorted.
    pub(crate) fn from(extents: &[u64], order: &ModeOrder, known: Option<&ModeOrder>) -> Layout {
        match known {
            Some(known) => Layout::resorting(extents, order, known),
            None => Layout::new(extents, order),
        }
    }

    /// Lays out the modes of `order` for entries sorted by `known`.
    ///
    /// A stable sort by the leading modes of `order` leaves the entries that agree in them as
    /// `known` without these modes has them.  As soon as that is the rest of `order`, the bits of
    /// the rest are settled: from `1-2-3` to `2-1-3` only the bits of mode 2 are sorted.
    fn resorting(extents: &[u64], order: &ModeOrder, known: &ModeOrder) -> Layout {
        let mut layout = Layout::new(extents, order);
        let leading = (0..=extents.len()).find(|&leading| {
            let (sorted, rest) = order.modes().split_at(leading);
            known.modes().iter().filter(|mode| !sorted.contains(mode)).eq(rest)
        });
        let rest = &order.modes()[leading.unwrap_or(extents.len())..];
        let in_rest = |field: &&Field| rest.contains(&field.mode);
        layout.settled = layout.fields.iter().filter(in_rest).map(|field| field.bits).sum();
        layout
    }

    /// Puts the codes of values into the lowest bits, if that leaves fewer words an entry.
    pub(crate) fn with_codes(mut self, decimals: Option<Decimals>) -> Layout {
        let word = if self.bits <= u64::BITS { u64::BITS } else { u128::BITS };
        let Some(decimals) = decimals.filter(|codes| self.bits + codes.bits() <= word) else {
            return self;
        };
        self.fields.iter_mut().for_each(|field| field.shift += decimals.bits());
        self.bits += decimals.bits();
        self.settled += decimals.bits();
        Layout { decimals: Some(decimals), ..self }
    }

    /// Returns how many bytes an entry has while it is sorted.
    pub(crate) fn entry_bytes(&self) -> usize {
        if self.bits > u128::BITS {
            // Its position in two arrays, its indices and its value.
            return size_of::<u64>() * (3 + self.order.modes().len());
        }
        let value = if self.decimals.is_some() { 0 } else { size_of::<u64>() };
        value + if self.bits <= u64::BITS { size_of::<u64>() } else { size_of::<u128>() }
    }

    /// Returns the codes of values, if they stand in keys.
    pub(crate) fn decimals(&self) -> Option<Decimals> {
        self.decimals
    }

    /// Returns the width of a key.
    pub(crate) fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns how many low bits need no sorting.
    pub(crate) fn settled(&self) -> u32 {
        self.settled
    }

    /// Returns the modes that have bits, outermost first.
    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the mode order of the keys.
    pub(crate) fn order(&self) -> &ModeOrder {
        &self.order
    }
}

/// A machine word that holds a key.
pub(crate) trait Word: Copy + Default + Ord + BitOrAssign + Send + Sync {
    /// A key with the bits of a value, as memory.
    type Entry: Pod + Send + Sync;

    /// Returns `coord` at `shift`.
    fn place(coord: u64, shift: u32) -> Self;

    /// Returns the 64 bits from `shift` up.
    fn bits_from(self, shift: u32) -> u64;

    /// Returns the key without its lowest `shift` bits.
    fn above(self, shift: u32) -> Self;

    /// Joins the key with the bits of a value.
    fn with(self, value: u64) -> Self::Entry;

    /// Returns the key of an entry.
    fn of(entry: Self::Entry) -> Self;

    /// Returns the bits of the value of an entry.
    fn value(entry: Self::Entry) -> u64;
}

impl Word for u64 {
    type Entry = [u64; 2];

    fn place(coord: u64, shift: u32) -> u64 {
        coord << shift
    }

    fn bits_from(self, shift: u32) -> u64 {
        self >> shift
    }

    fn above(self, shift: u32) -> u64 {
        self.unbounded_shr(shift)
    }

    fn with(self, value: u64) -> [u64; 2] {
        [self, value]
    }

    fn of(entry: [u64; 2]) -> u64 {
        entry[0]
    }

    fn value(entry: [u64; 2]) -> u64 {
        entry[1]
    }
}

impl Word for u128 {
    type Entry = [u64; 3];

    fn place(coord: u64, shift: u32) -> u128 {
        u128::from(coord) << shift
    }

    fn bits_from(self, shift: u32) -> u64 {
        (self >> shift) as u64
    }

    fn above(self, shift: u32) -> u128 {
        self.unbounded_shr(shift)
    }

    fn with(self, value: u64) -> [u64; 3] {
        [self as u64, (self >> 64) as u64, value]
    }

    fn of(entry: [u64; 3]) -> u128 {
        u128::from(entry[0]) | u128::from(entry[1]) << 64
    }

    fn value(entry: [u64; 3]) -> u64 {
        entry[2]
    }
}

/// A key in which the code of the value stands as well: an entry is nothing but this.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Whole<W>(W);

impl<W: BitOrAssign> BitOrAssign for Whole<W> {
    fn bitor_assign(&mut self, other: Whole<W>) {
        self.0 |= other.0;
    }
}

impl<W: Word + Pod> Word for Whole<W> {
    type Entry = W;

    fn place(coord: u64, shift: u32) -> Whole<W> {
        Whole(W::place(coord, shift))
    }

    fn bits_from(self, shift: u32) -> u64 {
        self.0.bits_from(shift)
    }

    fn above(self, shift: u32) -> Whole<W> {
        Whole(self.0.above(shift))
    }

    fn with(self, _: u64) -> W {
        self.0
    }

    fn of(entry: W) -> Whole<W> {
        Whole(entry)
    }

    fn value(entry: W) -> u64 {
        entry.bits_from(0)
    }
}

/// Packs the keys of the entries `start..start + keys.len()`, mode by mode: plain loops over one
/// column each, which the compiler turns into vector code.
pub(crate) fn pack<W: Word>(layout: &Layout, columns: &[Column<'_>], start: usize, keys: &mut [W]) {
    pack_above(layout, columns, start, 0, keys);
}

/// Adds the codes of `values`, if they stand in keys.
pub(crate) fn pack_values<W: Word, V: Value>(layout: &Layout, values: &[V], keys: &mut [W]) {
    let Some(decimals) = layout.decimals else { return };
    let entries = keys.iter_mut().zip(values);
    simd::run(|| entries.for_each(|(key, &value)| *key |= W::place(decimals.code(value), 0)));
}

/// Packs as [`pack`], but leaves out modes that lie wholly below bit `floor` of the key.
pub(crate) fn pack_above<W: Word>(
    layout: &Layout,
    columns: &[Column<'_>],
    start: usize,
    floor: u32,
    keys: &mut [W],
) {
    keys.fill(W::default());
    let end = start + keys.len();
    for field in layout.fields.iter().filter(|field| field.shift + field.bits > floor) {
        each_width!(Column, columns[field.mode], coords => {
            let entries = keys.iter_mut().zip(&coords[start..end]);
            simd::run(|| entries.for_each(|(key, &coord)| {
                *key |= W::place(coord.wide(), field.shift);
            }));
        });
    }
}
