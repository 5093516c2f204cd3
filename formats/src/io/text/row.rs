//! The rows of a piece of text: one non-zero a line.
//!
//! Short plain rows, nearly all of a real file, take [`vector::rows`] or, where the processor lacks
//! what it needs, [`fast_row`]; every other line (comments,
//! blank lines, long indices, unusual spacing, the last line of a piece) takes [`careful_row`],
//! which accepts all that is legal and names what is not.

use bytemuck::Pod;

use crate::error::LineFault;
use crate::io::options::Missing;
use crate::io::text::number;
use crate::io::text::vector;
use crate::value::Value;

/// The form of a line of a tensor.
const FORM: &str = "i1 i2 ... iN value";

/// The most lines for which the vector code is not tried again.
const LONGEST_PAUSE: u32 = 255;

/// Characters of a bad line that are quoted.
const QUOTED: usize = 80;

/// What every line of a file looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) order: usize,
    pub(super) values: ValueColumn,
    /// The first character of comment lines.
    pub(super) comment: u8,
    /// What stands for an unknown value.
    pub(super) missing: Missing,
}

/// Whether lines end with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueColumn {
    Present,
    /// A pattern matrix: every entry is 1.
    Absent,
}

impl Layout {
    pub(super) fn columns(self) -> usize {
        self.order + usize::from(self.values == ValueColumn::Present)
    }

    /// Bounds the rows of a piece from its bytes: a column takes two at least, the last row may
    /// lack its newline.
    pub(super) fn most_rows(self, bytes: u64) -> u64 {
        bytes / (2 * self.columns() as u64) + 1
    }
}

/// A type that holds an index while a file is parsed.
///
/// Indices are stored as if they counted from 1, so an index 0 wraps to the largest number until
/// the base of the file is known.
pub(super) trait Coordinate: Pod + Ord + Send + Sync {
    /// The largest index that fits.
    const MOST: u64;

    /// Stores the index `raw` of the text; `None` if it needs a wider type.
    fn stored(raw: u64) -> Option<Self>;
    /// Stores an index `raw` that fits.
    fn short(raw: u32) -> Self;
    /// Returns the coordinate if indices count from 0.
    fn zero_based(self) -> Self;
    /// Widens to 64 bits.
    fn number(self) -> u64;

    /// Returns the index as the text has it.
    fn raw(self) -> u64 {
        self.zero_based().number()
    }
}

macro_rules! coordinates {
    ($($type:ty),*) => {$(
        impl Coordinate for $type {
            const MOST: u64 = <$type>::MAX as u64;

            #[inline(always)]
            fn stored(raw: u64) -> Option<$type> {
                Some(<$type>::try_from(raw).ok()?.wrapping_sub(1))
            }

            #[inline(always)]
            fn short(raw: u32) -> $type {
                (raw as $type).wrapping_sub(1)
            }

            fn zero_based(self) -> $type {
                self.wrapping_add(1)
            }

            fn number(self) -> u64 {
                self as u64
            }
        }
    )*};
}

coordinates!(u16, u32, u64);

/// Where the rows of one piece of text go: a slice of each column, all of one length.
pub(super) struct Rows<'a, I, V> {
    pub(super) columns: Vec<&'a mut [I]>,
    pub(super) values: &'a mut [V],
}

/// What a piece of text held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) rows: usize,
    pub(super) lines: u64,
    pub(super) comments: u64,
    pub(super) blanks: u64,
    /// Rows left out because their values are unknown.
    pub(super) missing: u64,
}

/// Why parsing a piece stopped early; the rows before it are in place.
#[derive(Debug)]
pub(super) enum Stop {
    /// An index does not fit the type.
    Wide,
    /// The piece could not be fetched.
    Io(std::io::Error),
    /// The rows so far take more memory than they may.
    Large(u64),
    /// A line is wrong.
    Fault(Bad),
}

/// A bad line of a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    /// Lines before it in the piece.
    pub(super) line: u64,
    pub(super) text: String,
    pub(super) fault: LineFault,
}

/// Parses whole lines of `text` into `out`; the counts cover what was parsed, up to the stop.
pub(super) fn parse<I: Coordinate, V: Value>(
    text: &[u8],
    layout: Layout,
    out: &mut Rows<'_, I, V>,
) -> (Counts, Option<Stop>) {
    let best = if vector::available() { Way::Vector } else { Way::Words };
    parse_by(best, text, layout, out)
}

/// How plain rows are parsed; the results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// All fields of a line at once, and by words what is not plain enough for that.
    Vector,
    /// Eight digits at a time.
    Words,
    /// As every other row.
    #[cfg(test)]
    Careful,
}

/// Parses whole lines of `text` in one of the ways.
pub(super) fn parse_by<I: Coordinate, V: Value>(
    way: Way,
    text: &[u8],
    layout: Layout,
    out: &mut Rows<'_, I, V>,
) -> (Counts, Option<Stop>) {
    let mut counts = Counts::default();
    let mut at = 0;
    // Lines before the vector code is tried again: where no row is plain for it, seldom.
    let (mut pause, mut last_pause) = (0, 0);
    while at < text.len() {
        if layout.values == ValueColumn::Present && way == Way::Vector && pause == 0 {
            let (next, rows) = vector::rows(text, at, counts.rows, out);
            at = next;
            counts.add_rows(rows);
            last_pause = if rows == 0 { LONGEST_PAUSE.min(2 * last_pause + 1) } else { 0 };
            pause = last_pause;
            if at == text.len() {
                break;
            }
        }
        pause = pause.saturating_sub(1);
        if layout.values == ValueColumn::Present
            && matches!(way, Way::Vector | Way::Words)
            && let Some(next) = fast_row(text, at, counts.rows, out)
        {
            counts.add_rows(1);
            at = next;
            continue;
        }
        match careful_line(text, at, layout, &mut counts, out) {
            Ok(next) => at = next,
            Err(stop) => return (counts, Some(stop)),
        }
    }
    (counts, None)
}

impl Counts {
    fn add_rows(&mut self, rows: usize) {
        self.rows += rows;
        self.lines += rows as u64;
    }
}

/// Parses the line at `at`, whatever it is, and returns where the next one starts.
fn careful_line<I: Coordinate, V: Value>(
    text: &[u8],
    at: usize,
    layout: Layout,
    counts: &mut Counts,
    out: &mut Rows<'_, I, V>,
) -> Result<usize, Stop> {
    let (line, next) = line_at(text, at);
    match kind_of(line, layout) {
        Kind::Blank => counts.blanks += 1,
        Kind::Comment => counts.comments += 1,
        Kind::Missing => counts.missing += 1,
        Kind::Row => {
            careful_row(line, layout, *counts, out)?;
            counts.rows += 1;
        }
    }
    counts.lines += 1;
    Ok(next)
}

/// Parses a row of short plain numbers at `at` and returns where the next line starts; `None`
/// leaves the line to [`careful_row`].
#[inline(always)]
fn fast_row<I: Coordinate, V: Value>(
    text: &[u8],
    mut at: usize,
    row: usize,
    out: &mut Rows<'_, I, V>,
) -> Option<usize> {
    for column in &mut out.columns {
        let (raw, count) = number::digits(number::load(text, at)?);
        at += count;
        if count == 0 || !is_gap(*text.get(at)?) {
            return None;
        }
        at += 1;
        while is_gap(*text.get(at)?) {
            at += 1;
        }
        *column.get_mut(row)? = I::stored(raw)?;
    }
    let (value, end) = number::value_at(text, at)?;
    *out.values.get_mut(row)? = value;
    match *text.get(end)? {
        b'\n' => Some(end + 1),
        b'\r' if *text.get(end + 1)? == b'\n' => Some(end + 2),
        _ => None,
    }
}

fn is_gap(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Parses one line into row `counts.rows`.
fn careful_row<I: Coordinate, V: Value>(
    line: &[u8],
    layout: Layout,
    counts: Counts,
    out: &mut Rows<'_, I, V>,
) -> Result<(), Stop> {
    let bad = |fault| Stop::Fault(Bad { line: counts.lines, text: quote(line), fault });
    let found = fields(line).count();
    if found != layout.columns() {
        let expected = layout.columns();
        return Err(bad(LineFault::Columns { expected, found, form: FORM }));
    }
    let mut fields = fields(line);
    for (mode, (column, field)) in out.columns.iter_mut().zip(&mut fields).enumerate() {
        let raw = number::index_field(field, mode + 1).map_err(bad)?;
        *column.get_mut(counts.rows).ok_or_else(changed)? = I::stored(raw).ok_or(Stop::Wide)?;
    }
    *out.values.get_mut(counts.rows).ok_or_else(changed)? = match fields.next() {
        Some(field) => number::value_field(field).map_err(bad)?,
        None => V::from_f64(1.0),
    };
    Ok(())
}

/// Reads a line of a dense array: its element, `Some(None)` if that is unknown, and `None` if the line is
/// none; counts what it is, but for the line itself.
pub(super) fn element<V: Value>(
    line: &[u8],
    layout: Layout,
    counts: &mut Counts,
) -> Result<Option<Option<V>>, LineFault> {
    let layout = Layout { order: 0, ..layout };
    match kind_of(line, layout) {
        Kind::Blank => counts.blanks += 1,
        Kind::Comment => counts.comments += 1,
        Kind::Missing => {
            counts.missing += 1;
            return Ok(Some(None));
        }
        Kind::Row => {
            let found = fields(line).count();
            if found != 1 {
                let form = "value";
                return Err(LineFault::Columns { expected: 1, found, form });
            }
            return Ok(Some(Some(number::value_field(line.trim_ascii())?)));
        }
    }
    Ok(None)
}

/// The stop for more rows than there were lines when the arrays were made.
fn changed() -> Stop {
    Stop::Io(std::io::Error::other("the file changed while it was read"))
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Blank,
    Comment,
    Row,
    /// A row whose value is unknown.
    Missing,
}

/// Tells what `line` is in a file of this layout.
fn kind_of(line: &[u8], layout: Layout) -> Kind {
    match kind(line, layout.comment) {
        Kind::Row if layout.missing == Missing::Nan && is_missing(line, layout) => Kind::Missing,
        kind => kind,
    }
}

/// Tells whether a row of as many columns as it should have ends with a NaN.
fn is_missing(line: &[u8], layout: Layout) -> bool {
    let last = fields(line).last().unwrap_or_default();
    let last = last.strip_prefix(b"-").or(last.strip_prefix(b"+")).unwrap_or(last);
    layout.values == ValueColumn::Present
        && last.eq_ignore_ascii_case(b"nan")
        && fields(line).count() == layout.columns()
}

/// Tells what `line` is in a file whose comments begin with `comment`.
pub(super) fn kind(line: &[u8], comment: u8) -> Kind {
    match line.trim_ascii_start().first() {
        None => Kind::Blank,
        Some(&first) if first == comment => Kind::Comment,
        Some(_) => Kind::Row,
    }
}

/// Returns the line at `at` without its end, and where the next one starts.
pub(in crate::io) fn line_at(text: &[u8], at: usize) -> (&[u8], usize) {
    let rest = &text[at..];
    match memchr::memchr(b'\n', rest) {
        Some(len) => (&rest[..len], at + len + 1),
        None => (rest, text.len()),
    }
}

/// Splits a line at white space.
pub(super) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// Returns a line for an error message, shortened.
pub(in crate::io) fn quote(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.trim_ascii());
    match text.char_indices().nth(QUOTED) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.into_owned(),
    }
}

/// Finds the line of row `row` in a piece: the lines before it, and its text.
pub(super) fn find_row(text: &[u8], layout: Layout, row: usize) -> (u64, String) {
    let (mut at, mut lines, mut rows) = (0, 0, 0);
    while at < text.len() {
        let (line, next) = line_at(text, at);
        if kind_of(line, layout) == Kind::Row {
            if rows == row {
                return (lines, quote(line));
            }
            rows += 1;
        }
        lines += 1;
        at = next;
    }
    (lines, String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grew_is_an_error() {
        let (values, missing) = (ValueColumn::Present, Missing::None);
        let layout = Layout { order: 1, values, comment: b'#', missing };
        let (mut column, mut values) = ([0u32; 1], [0.0f64; 1]);
        let mut out = Rows { columns: vec![&mut column[..]], values: &mut values[..] };
        let (counts, stop) = parse(b"1 1\n2 2\n        ", layout, &mut out);
        assert_eq!(counts.rows, 1);
        assert!(matches!(stop, Some(Stop::Io(_))));
    }

    #[test]
    fn rows_are_found_between_comments() {
        let (values, missing) = (ValueColumn::Present, Missing::None);
        let layout = Layout { order: 1, values, comment: b'#', missing };
        let text = b"# c\n1 1\n\n2 2\n";
        assert_eq!(find_row(text, layout, 1), (3, "2 2".to_owned()));
    }
}
