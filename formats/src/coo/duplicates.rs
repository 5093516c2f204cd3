//! Entries that share their coordinates, and entries of value zero.

use std::fmt;

use crate::coo::Coo;
use crate::coo::mask::Mask;
use crate::coo::mask::heads;
use crate::error::FormatError;
use crate::modes::ModeOrder;
use crate::value::Value;

/// What becomes of several entries with the same coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Duplicates {
    /// Their values are added, in `f64` and in the order of the list.
    #[default]
    Sum,
    /// Their mean: the sum as above over their number.
    Mean,
    /// The first of them stays.
    First,
    /// The last of them stays.
    Last,
    /// The least value stays.
    Min,
    /// The greatest value stays.
    Max,
    /// They are refused.
    Error,
}

impl Duplicates {
    /// All of them, in the order of the help.
    pub const ALL: [Duplicates; 7] = [
        Duplicates::Sum,
        Duplicates::Mean,
        Duplicates::First,
        Duplicates::Last,
        Duplicates::Min,
        Duplicates::Max,
        Duplicates::Error,
    ];

    /// Returns the one value for `values`, which share their coordinates and stand in the order of the list.
    fn of<V: Value>(self, values: &[V]) -> V {
        let wide = || values.iter().map(|value| value.to_f64());
        match self {
            Duplicates::Sum | Duplicates::Error => V::from_f64(wide().sum()),
            Duplicates::Mean => V::from_f64(wide().sum::<f64>() / values.len() as f64),
            Duplicates::First => values[0],
            Duplicates::Last => values[values.len() - 1],
            Duplicates::Min => V::from_f64(wide().fold(f64::INFINITY, f64::min)),
            Duplicates::Max => V::from_f64(wide().fold(f64::NEG_INFINITY, f64::max)),
        }
    }
}

impl fmt::Display for Duplicates {
    /// Writes the name on the command line: `sum`, `mean`, `first`, `last`, `min`, `max` or `error`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Duplicates::Sum => "sum",
            Duplicates::Mean => "mean",
            Duplicates::First => "first",
            Duplicates::Last => "last",
            Duplicates::Min => "min",
            Duplicates::Max => "max",
            Duplicates::Error => "error",
        })
    }
}

impl<V: Value> Coo<V> {
    /// Adds up entries of equal coordinates; returns how many entries that removed.
    ///
    /// As [`Coo::merge_duplicates`] with [`Duplicates::Sum`].
    ///
    /// # Errors
    ///
    /// As [`Coo::sort`].
    pub fn sum_duplicates(&mut self) -> Result<u64, FormatError> {
        self.merge_duplicates(Duplicates::Sum)
    }

    /// Leaves one entry for each set of coordinates; returns how many entries that removed.
    ///
    /// The list is sorted by the natural order first unless it is known to be sorted.  Parallel,
    /// time `O(nnz * order)`, `O(1)` once it is known that there are none; columns are rewritten one at a time, and not
    /// at all without duplicates.
    ///
    /// # Errors
    ///
    /// As [`Coo::sort`]; [`FormatError::Duplicate`] if `policy` is [`Duplicates::Error`] and there
    /// is one.
    pub fn merge_duplicates(&mut self, policy: Duplicates) -> Result<u64, FormatError> {
        if self.distinct {
            return Ok(0);
        }
        if self.sorted_by.is_none() {
            self.sort(&ModeOrder::natural(self.order()))?;
        }
        let columns = self.columns();
        let mask = Mask::new(self.nnz(), |range| heads(&columns, range));
        let merged = self.nnz() - mask.count();
        if merged == 0 {
            self.distinct = true;
            return Ok(0);
        }
        let values = self.values();
        match policy {
            Duplicates::Error => return Err(self.duplicate(&mask)),
            Duplicates::First => self.retain(&mask),
            Duplicates::Sum
            | Duplicates::Mean
            | Duplicates::Last
            | Duplicates::Min
            | Duplicates::Max => {
                let run = |first: usize| &values[first..mask.next(first + 1)];
                let merged = mask.compact(|first| policy.of(run(first)));
                self.set_values(merged);
                for ints in &mut self.coords {
                    *ints = mask.compact_ints(ints);
                }
            }
        }
        self.distinct = true;
        Ok(merged as u64)
    }

    /// Returns how many entries have the value zero.
    pub fn zeros(&self) -> u64 {
        (self.nnz() - self.non_zeros().count()) as u64
    }

    /// Leaves out the entries of value zero, and returns how many there were; columns are rewritten one at a time.
    pub fn drop_zeros(&mut self) -> u64 {
        let mask = self.non_zeros();
        let zeros = self.nnz() - mask.count();
        if zeros > 0 {
            self.retain(&mask);
        }
        zeros as u64
    }

    /// Keeps the entries whose position passes `test`.
    pub(crate) fn keep(&mut self, test: impl Fn(usize) -> bool + Sync) {
        self.retain(&self.mask_of(test));
    }

    /// Returns the entries whose position passes `test`, in their order.  Parallel.
    pub fn filtered(&self, test: impl Fn(usize) -> bool + Sync) -> Coo<V> {
        self.masked(&self.mask_of(test))
    }

    /// Returns which entries pass `test` by their position.
    pub(super) fn mask_of(&self, test: impl Fn(usize) -> bool + Sync) -> Mask {
        let bit = |(bit, position)| u64::from(test(position)) << bit;
        Mask::new(self.nnz(), |range| range.enumerate().map(bit).sum())
    }

    /// Returns the entries that stay, in their order.
    pub(super) fn masked(&self, mask: &Mask) -> Coo<V> {
        let coords = self.coords.iter().map(|ints| mask.compact_ints(ints)).collect();
        let values = self.values();
        let values = mask.compact(|position| values[position]);
        Coo {
            sorted_by: self.sorted_by.clone(),
            distinct: self.distinct,
            ..Coo::listed(self.extents.clone(), coords, values)
        }
    }

    fn non_zeros(&self) -> Mask {
        let values = self.values();
        Mask::new(values.len(), |range| {
            let bits = values[range].iter().enumerate();
            bits.fold(0, |word, (bit, value)| word | u64::from(*value != V::default()) << bit)
        })
    }

    fn retain(&mut self, mask: &Mask) {
        for ints in &mut self.coords {
            *ints = mask.compact_ints(ints);
        }
        let values = self.values();
        self.set_values(mask.compact(|position| values[position]));
    }

    fn duplicate(&self, mask: &Mask) -> FormatError {
        let second = (0..self.nnz()).find(|&position| !mask.has(position)).unwrap_or(0);
        let coords = self.coords.iter().map(|ints| (ints.get(second) + 1).to_string());
        FormatError::Duplicate(coords.collect::<Vec<_>>().join(" "))
    }
}
