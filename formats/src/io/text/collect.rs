//! From pieces to the whole: what the pieces of a text file held, checked and added up in order.

use std::path::PathBuf;

use crate::error::FormatError;
use crate::error::LineError;
use crate::error::LineFault;
use crate::io::options::Base;
use crate::io::report::BaseFrom;
use crate::io::report::ExtentsFrom;
use crate::io::text::column_ranges;
use crate::io::text::column_ranges::RowOrder;
use crate::io::text::row;
use crate::io::text::row::Bad;
use crate::io::text::row::Coordinate;
use crate::io::text::row::Counts;
use crate::io::text::row::Layout;
use crate::io::text::row::Rows;
use crate::io::text::row::Stop;
use crate::value::Value;

/// What every index of a file is checked against.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) layout: Layout,
    /// From where indices count and why, if that is settled before reading.
    pub(super) base: Option<(Base, BaseFrom)>,
    /// The extents and who gives them, if known before reading.
    pub(super) extents: Option<(Vec<u64>, ExtentsFrom)>,
    /// The most bytes of columns and values.
    pub(super) max_bytes: u64,
}

/// A row that matters for the decision between the bases.
#[derive(Clone, Debug)]
struct Sight {
    /// Lines before it in its piece, later in the file.
    line: u64,
    mode: usize,
    index: u64,
    text: String,
}

/// What a piece, or the file so far, held.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) counts: Counts,
    /// The largest index of each mode as written.
    pub(super) largest: Vec<u64>,
    /// The order of the rows.
    pub(super) order: RowOrder,
    /// The first row with an index 0, while the base is open.
    zero: Option<Sight>,
    /// The first row with an index equal to its extent, while the base is open.
    full: Option<Sight>,
}

/// The result of a piece.
pub(super) struct Piece {
    pub(super) tally: Tally,
    pub(super) stop: Option<Stop>,
}

/// Parses a piece of whole lines into `out` and checks its indices.
pub(super) fn piece<I: Coordinate, V: Value>(
    text: &[u8],
    limits: &Limits,
    out: &mut Rows<'_, I, V>,
) -> Piece {
    let (counts, stop) = row::parse(text, limits.layout, out);
    let columns: Vec<&[I]> = out.columns.iter().map(|column| &column[..counts.rows]).collect();
    // A second look at the columns, still in cache, is cheaper than checks between the digits.
    let ranges: Vec<(u64, u64)> =
        columns.iter().map(|column| column_ranges::range(column)).collect();
    let order = RowOrder::of(&columns);
    let sighting = Sighting { text, limits, columns: &columns, ranges: &ranges };
    let zero = sighting.first(|_, index| index == 0);
    let mut tally = Tally { counts, order, ..Tally::default() };
    let bad = match limits.base.map(|(base, _)| base) {
        Some(Base::Zero) => sighting.reaching(|extent| extent),
        Some(Base::One) => {
            let beyond = sighting.reaching(|extent| extent.saturating_add(1));
            zero.into_iter().chain(beyond).min_by_key(|sight| sight.line)
        }
        None => {
            tally.full = sighting.reaching(|extent| extent);
            tally.zero = zero;
            sighting.reaching(|extent| extent.saturating_add(1))
        }
    };
    tally.largest = ranges.into_iter().map(|(_, largest)| largest).collect();
    // Rows precede the line at which parsing stopped.
    let stop = match bad {
        Some(sight) => Some(Stop::Fault(limits.fault(sight))),
        None => stop,
    };
    Piece { tally, stop }
}

/// A look for rows with certain indices.
struct Sighting<'a, I> {
    text: &'a [u8],
    limits: &'a Limits,
    columns: &'a [&'a [I]],
    ranges: &'a [(u64, u64)],
}

impl<I: Coordinate> Sighting<'_, I> {
    /// Finds the first row with an index that reaches `bound(extent)`.
    fn reaching(&self, bound: impl Fn(u64) -> u64) -> Option<Sight> {
        let (extents, _) = self.limits.extents.as_ref()?;
        self.first(|mode, index| index >= bound(extents[mode]))
    }

    /// Finds the first row with an index that is `wanted`, a condition on an end of the range.
    fn first(&self, wanted: impl Fn(usize, u64) -> bool) -> Option<Sight> {
        let in_mode = |mode: usize| {
            let (least, largest) = self.ranges[mode];
            if !wanted(mode, least) && !wanted(mode, largest) {
                return None;
            }
            let found = self.columns[mode].iter().position(|index| wanted(mode, index.raw()));
            Some((found?, mode))
        };
        let (row, mode) = (0..self.columns.len()).filter_map(in_mode).min()?;
        let (line, text) = row::find_row(self.text, self.limits.layout, row);
        Some(Sight { line, mode, index: self.columns[mode][row].raw(), text })
    }
}

impl Limits {
    fn fault(&self, sight: Sight) -> Bad {
        let Sight { line, mode, index, text } = sight;
        let mode_number = mode + 1;
        let fault = match (&self.extents, self.base) {
            (_, Some((Base::One, from))) if index == 0 => {
                let why = match from {
                    BaseFrom::Caller => "base 1 was asked for; leave it out to read base 0",
                    _ => "the header says so (or a comment); ask for base 0 if it is wrong",
                };
                LineFault::ZeroIndex { mode: mode_number, why }
            }
            (Some((extents, who)), base) => {
                let zero = matches!(base, Some((Base::Zero, _)));
                let counting = if zero { ", counting from 0" } else { "" };
                let why = format!(" ({who}){counting}; give larger extents or mend the line");
                LineFault::BeyondExtent { mode: mode_number, index, extent: extents[mode], why }
            }
            (None, _) => LineFault::Header("an extent is missing".to_owned()),
        };
        Bad { line, text, fault }
    }
}

/// Adds up the pieces of a file in their order.
pub(super) struct Collector<'a> {
    pub(super) file: &'a str,
    pub(super) limits: &'a Limits,
    pub(super) total: Tally,
}

/// Why collecting ended.
pub(super) enum End {
    /// An index does not fit the coordinate type: start over with a wider one.
    Wide,
    Error(FormatError),
}

impl<'a> Collector<'a> {
    /// Starts behind a prelude of `before`.
    pub(super) fn new(file: &'a str, limits: &'a Limits, before: Counts) -> Collector<'a> {
        let largest = vec![0; limits.layout.order];
        Collector { file, limits, total: Tally { counts: before, largest, ..Tally::default() } }
    }

    /// Adds the next piece.
    pub(super) fn add(&mut self, piece: Piece) -> Result<(), End> {
        let Piece { tally, stop } = piece;
        let before = self.total.counts.lines;
        let bad = match stop {
            None => None,
            Some(Stop::Fault(bad)) => Some(bad),
            Some(Stop::Wide) => return Err(End::Wide),
            Some(Stop::Io(source)) => {
                let path = PathBuf::from(self.file);
                return Err(End::Error(FormatError::Io { action: "read", path, source }));
            }
            Some(Stop::Large(needs)) => {
                let (file, limit) = (self.file.to_owned(), self.limits.max_bytes);
                return Err(End::Error(FormatError::TooLarge { file, needs, limit }));
            }
        };
        // Of a bad file only what stands before the bad line counts: a piece may have looked at
        // rows behind it, and how many depends on the size of the pieces.
        let end = bad.as_ref().map_or(u64::MAX, |bad| bad.line);
        let sooner = |sight: &Sight| sight.line < end;
        let later = |sight: Sight| Sight { line: before + sight.line, ..sight };
        let total = &mut self.total;
        total.zero = total.zero.take().or(tally.zero.filter(sooner).map(later));
        total.full = total.full.take().or(tally.full.filter(sooner).map(later));
        if let Some(bad) = bad {
            self.base().map_err(End::Error)?;
            return Err(End::Error(self.line_error(before, bad)));
        }
        let total = &mut self.total;
        total.counts.rows += tally.counts.rows;
        total.counts.lines += tally.counts.lines;
        total.counts.comments += tally.counts.comments;
        total.counts.blanks += tally.counts.blanks;
        total.counts.missing += tally.counts.missing;
        total.order.append(tally.order);
        for (all, largest) in total.largest.iter_mut().zip(tally.largest) {
            *all = largest.max(*all);
        }
        Ok(())
    }

    /// Decides from where indices count: any 0 anywhere means from 0, for the whole file.
    ///
    /// # Errors
    ///
    /// [`FormatError::Line`] if an index equals its extent in a file that has a 0.
    pub(super) fn base(&self) -> Result<(Base, BaseFrom), FormatError> {
        if let Some(settled) = self.limits.base {
            return Ok(settled);
        }
        let Some(zero) = &self.total.zero else { return Ok((Base::One, BaseFrom::NoZero)) };
        let line = zero.line + 1;
        let (Some(full), Some((extents, who))) = (&self.total.full, &self.limits.extents) else {
            return Ok((Base::Zero, BaseFrom::ZeroAt { line }));
        };
        let Sight { line: bad_line, mode, index, text } = full.clone();
        let why = format!(" ({who}), as line {line} has an index 0 and so all count from 0");
        let extent = extents[mode];
        let fault = LineFault::BeyondExtent { mode: mode + 1, index, extent, why };
        Err(self.line_error(0, Bad { line: bad_line, text, fault }))
    }

    fn line_error(&self, before: u64, bad: Bad) -> FormatError {
        let Bad { line, text, fault } = bad;
        let line = before + line + 1;
        FormatError::Line(Box::new(LineError { file: self.file.to_owned(), line, text, fault }))
    }
}
