//! The start of a text file: which dialect it speaks, and its header.
//!
//! | dialect | before the entries |
//! |---|---|
//! | plain FROSTT | nothing, or a comment `# extents 4 3 5, indices from 1` |
//! | Tensor Toolbox | `sptensor`, order, extents, count, a line each |
//! | ParTI | order, extents, a line each |
//! | extended FROSTT | `order count`, then extents; told by a comment `extended FROSTT format` or by this shape |
//! | Matrix Market | banner, then `rows columns count` (TensorMarket: `extents count`) |

use crate::error::FormatError;
use crate::error::LineError;
use crate::error::LineFault;
use crate::io::options::Base;
use crate::io::options::Missing;
use crate::io::report::Dialect;
use crate::io::text::market;
use crate::io::text::market::Symmetry;
use crate::io::text::row;
use crate::io::text::row::Counts;
use crate::io::text::row::Kind;
use crate::io::text::row::Layout;
use crate::io::text::row::ValueColumn;

/// What the lines before the entries say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prelude {
    pub(super) dialect: Dialect,
    pub(super) layout: Layout,
    pub(super) symmetry: Symmetry,
    /// Where the dialect says that indices start.
    pub(super) base: Option<Base>,
    pub(super) extents: Option<Vec<u64>>,
    /// The extents that a comment of a plain file gives; the caller's count before them.
    pub(super) noted: Option<Vec<u64>>,
    pub(super) form: Form,
    pub(super) entries: Option<u64>,
    /// Bytes before the first entry.
    pub(super) bytes: usize,
    /// The lines before the first entry, header lines among them.
    pub(super) counts: Counts,
}

/// What stands behind the prelude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A line for each entry.
    List,
    /// A line for each element of a dense array, first mode fastest.
    Array,
}

/// Whether the text at hand is the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Whole,
    Partial,
}

/// Reads the prelude from the first bytes of `file`; `None` asks for more of them.
///
/// # Errors
///
/// [`FormatError::EmptyFile`], [`FormatError::NoEntries`], [`FormatError::Unsupported`] for
/// dense or factor files, and [`FormatError::Line`] for a header that does not parse.
pub(super) fn read(head: &[u8], size: Head, file: &str) -> Result<Option<Prelude>, FormatError> {
    if head.is_empty() && size == Head::Whole {
        return Err(FormatError::EmptyFile(file.to_owned()));
    }
    let mut lines = Lines::new(head, size, file);
    let first = match lines.next_row() {
        Next::Row(line) => line,
        Next::More => return Ok(None),
        Next::End => return Err(FormatError::NoEntries(file.to_owned())),
    };
    // Read as white space, they would join all lines into one entry of a high order.
    let lone = first.text.trim_ascii_end().contains(&b'\r');
    let found = if lone {
        Err(lines.header_fault(first, LONE.to_owned()))
    } else {
        dialect(&mut lines, first)
    };
    match found {
        Err(Trouble::More) => Ok(None),
        Err(Trouble::Error(error)) => Err(*error),
        Ok(prelude) => Ok(Some(prelude)),
    }
}

fn dialect(lines: &mut Lines<'_>, first: Line<'_>) -> Result<Prelude, Trouble> {
    if lines.marked {
        return extended(lines, first);
    }
    if lines.banner.is_some() {
        return market::read(lines, first);
    }
    if let Some(fault) = separated(first.text) {
        return Err(lines_fault(lines.file, first, fault));
    }
    let mut words = row::fields(first.text);
    match words.next().map(<[u8]>::to_ascii_lowercase).as_deref() {
        Some(b"sptensor") => return toolbox(lines, first, words.next()),
        Some(word @ (b"tensor" | b"ktensor" | b"ttensor" | b"matrix" | b"facmatrix")) => {
            let what = format!("it holds a Tensor Toolbox `{}`", String::from_utf8_lossy(word));
            let remedy = "only `sptensor` files are read; export the tensor as coordinates";
            let file = lines.file.to_owned();
            return Err(FormatError::Unsupported { file, what, remedy }.into());
        }
        _ => {}
    }
    match words.next() {
        Some(_) if looks_extended(lines, first)? => extended(lines, first),
        Some(_) => Ok(plain(lines, first)),
        None => parti(lines, first),
    }
}

/// Tells whether `first` and the lines behind it have the shape of the extended dialect: two integers,
/// of which the first says how many integers follow in the next line, and rows of that many indices.
fn looks_extended(lines: &Lines<'_>, first: Line<'_>) -> Result<bool, Trouble> {
    let [order, _] = integers(first.text)[..] else { return Ok(false) };
    if row::fields(first.text).count() != 2 || order == 0 {
        return Ok(false);
    }
    // A copy: what is looked at here may be entries.
    let mut ahead = lines.clone();
    let second = match ahead.next_row() {
        Next::Row(line) => line.text,
        Next::More => return Err(Trouble::More),
        Next::End => return Ok(false),
    };
    let fields = row::fields(second).count() as u64;
    if fields != order || integers(second).len() as u64 != order {
        return Ok(false);
    }
    match ahead.next_row() {
        Next::Row(third) => Ok(row::fields(third.text).count() as u64 == order + 1),
        Next::More => Err(Trouble::More),
        // Two lines of two numbers may be two entries.
        Next::End => Ok(order != 2),
    }
}

/// Tells that the columns of a row are separated by commas or semicolons.
fn separated(row: &[u8]) -> Option<LineFault> {
    let first = row::fields(row).next()?;
    let by = [',', ';'].into_iter().find(|by| first.contains(&(*by as u8)))?;
    Some(LineFault::Separator(by))
}

fn plain(lines: &Lines<'_>, first: Line<'_>) -> Prelude {
    let order = row::fields(first.text).count() - 1;
    let noted = lines.noted.clone().filter(|noted| noted.extents.len() == order);
    let (noted, base) = noted.map(|noted| (noted.extents, noted.base)).unzip();
    Prelude {
        dialect: Dialect::Plain,
        layout: listed(order, b'#'),
        symmetry: Symmetry::General,
        base: base.flatten(),
        extents: None,
        noted,
        form: Form::List,
        entries: None,
        bytes: first.start,
        counts: first.before,
    }
}

/// The layout of `order` indices and a value a line.
fn listed(order: usize, comment: u8) -> Layout {
    Layout { order, values: ValueColumn::Present, comment, missing: Missing::None }
}

/// Reads `order`, `extents` if the second line has as many integers as the first says; a lone
/// number is no entry of a plain file either, so anything else is an error.
fn parti(lines: &mut Lines<'_>, first: Line<'_>) -> Result<Prelude, Trouble> {
    let columns = || {
        let form = "i1 i2 ... iN value, or a header";
        lines_fault(lines.file, first, LineFault::Columns { expected: 2, found: 1, form })
    };
    let Ok([order]) = integers(first.text)[..].try_into().map(|[order]: [u64; 1]| [order]) else {
        return Err(columns());
    };
    let second = match lines.next_row() {
        Next::Row(line) => line,
        Next::More => return Err(Trouble::More),
        Next::End => return Err(columns()),
    };
    let extents = integers(second.text);
    let found = row::fields(second.text).count();
    if extents.len() as u64 != order || found != extents.len() {
        return Err(columns());
    }
    let extents = lines.extents(second, extents)?;
    Ok(lines.headed(Dialect::Parti, extents).declare(None, Base::One))
}

/// Reads the order, the extents and the count behind the word `sptensor`.
fn toolbox(
    lines: &mut Lines<'_>,
    first: Line<'_>,
    option: Option<&[u8]>,
) -> Result<Prelude, Trouble> {
    let base = match option {
        None => None,
        Some(b"indices-start-at-one") => Some(Base::One),
        Some(b"indices-start-at-zero") => Some(Base::Zero),
        Some(_) => {
            let why = "after `sptensor` only `indices-start-at-one` or `-zero` may stand";
            return Err(lines.header_fault(first, why.to_owned()));
        }
    };
    let order = lines.header_line("the order", 1)?.1[0];
    let (line, extents) = lines.header_line("the extents", order)?;
    let extents = lines.extents(line, extents)?;
    let entries = lines.header_line("the number of entries", 1)?.1[0];
    let prelude = lines.headed(Dialect::Toolbox, extents);
    Ok(Prelude { base, entries: Some(entries), ..prelude })
}

/// Reads `order count` and the extents.
fn extended(lines: &mut Lines<'_>, first: Line<'_>) -> Result<Prelude, Trouble> {
    let numbers = lines.expect(first, "the order and the number of entries", 2)?;
    let (line, extents) = lines.header_line("the extents", numbers[0])?;
    let extents = lines.extents(line, extents)?;
    Ok(lines.headed(Dialect::ExtendedFrostt, extents).declare(Some(numbers[1]), Base::One))
}

impl Prelude {
    pub(super) fn declare(self, entries: Option<u64>, base: Base) -> Prelude {
        Prelude { entries, base: Some(base), ..self }
    }
}

/// Why a header could not be read.
pub(super) enum Trouble {
    /// It is longer than the text at hand.
    More,
    Error(Box<FormatError>),
}

impl From<FormatError> for Trouble {
    fn from(error: FormatError) -> Trouble {
        Trouble::Error(Box::new(error))
    }
}

/// A line that is neither blank nor a comment.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) text: &'a [u8],
    start: usize,
    before: Counts,
}

pub(super) enum Next<'a> {
    Row(Line<'a>),
    More,
    End,
}

/// What a comment of a plain file says.
#[derive(Clone)]
struct Noted {
    extents: Vec<u64>,
    base: Option<Base>,
}

/// The lines of a file's head.
#[derive(Clone)]
pub(super) struct Lines<'a> {
    head: &'a [u8],
    size: Head,
    pub(super) file: &'a str,
    at: usize,
    counts: Counts,
    comment: u8,
    /// The Matrix Market banner.
    pub(super) banner: Option<&'a [u8]>,
    /// Whether a comment says `extended FROSTT format`.
    marked: bool,
    noted: Option<Noted>,
}

impl<'a> Lines<'a> {
    fn new(head: &'a [u8], size: Head, file: &'a str) -> Lines<'a> {
        // A byte order mark, as some editors leave.
        let at = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let is_market = head[at..].get(..14).is_some_and(|b| b.eq_ignore_ascii_case(BANNER));
        let comment = if is_market { b'%' } else { b'#' };
        let banner = is_market.then(|| row::line_at(head, at).0);
        let (counts, marked, noted) = (Counts::default(), false, None);
        Lines { head, size, file, at, counts, comment, banner, marked, noted }
    }

    /// Returns the next line that is neither blank nor a comment.
    pub(super) fn next_row(&mut self) -> Next<'a> {
        let first = self.counts.rows == 0;
        loop {
            let (text, next) = row::line_at(self.head, self.at);
            if next == self.head.len() && self.size == Head::Partial {
                return Next::More;
            }
            if self.at == self.head.len() {
                return Next::End;
            }
            let line = Line { text, start: self.at, before: self.counts };
            self.at = next;
            self.counts.lines += 1;
            // Some writers of the extended dialect mark its first line by a semicolon.
            let semicolon = first && row::kind(text, b';') == Kind::Comment;
            match row::kind(text, self.comment) {
                Kind::Blank => self.counts.blanks += 1,
                Kind::Row if !semicolon => {
                    self.counts.rows += 1;
                    return Next::Row(line);
                }
                _ => {
                    self.counts.comments += 1;
                    if first {
                        self.marked |= says_extended(text);
                        self.noted = self.noted.take().or_else(|| note(text));
                    }
                }
            }
        }
    }

    /// Returns the next line as the `count` integers that are `what`.
    pub(super) fn header_line(
        &mut self,
        what: &str,
        count: u64,
    ) -> Result<(Line<'a>, Vec<u64>), Trouble> {
        match self.next_row() {
            Next::Row(line) => Ok((line, self.expect(line, what, count)?)),
            Next::More => Err(Trouble::More),
            Next::End => Err(FormatError::NoEntries(self.file.to_owned()).into()),
        }
    }

    /// Reads a line as the `count` integers that are `what`.
    fn expect(&self, line: Line<'_>, what: &str, count: u64) -> Result<Vec<u64>, Trouble> {
        let numbers = integers(line.text);
        let fields = row::fields(line.text).count();
        if numbers.len() == fields && fields as u64 == count {
            return Ok(numbers);
        }
        Err(self.header_fault(line, format!("expected {what}, {count} non-negative integers")))
    }

    /// Checks extents.
    pub(super) fn extents(&self, line: Line<'_>, extents: Vec<u64>) -> Result<Vec<u64>, Trouble> {
        if extents.is_empty() {
            return Err(self.header_fault(line, "a tensor has at least one mode".to_owned()));
        }
        match extents.iter().position(|&extent| extent == 0 || extent >= 1 << 63) {
            None => Ok(extents),
            Some(mode) => {
                let why = format!("extent {} of mode {}", extents[mode], mode + 1);
                Err(self.header_fault(line, format!("{why} is not between 1 and 2^63 - 1")))
            }
        }
    }

    /// Makes the prelude of a file with header that ends here.
    pub(super) fn headed(&self, dialect: Dialect, extents: Vec<u64>) -> Prelude {
        Prelude {
            dialect,
            layout: listed(extents.len(), self.comment),
            symmetry: Symmetry::General,
            base: None,
            extents: Some(extents),
            noted: None,
            form: Form::List,
            entries: None,
            bytes: self.at,
            counts: Counts { rows: 0, ..self.counts },
        }
    }

    pub(super) fn header_fault(&self, line: Line<'_>, why: String) -> Trouble {
        lines_fault(self.file, line, LineFault::Header(why))
    }
}

const LONE: &str = "lines end with a carriage return alone; convert them (`tr '\\r' '\\n'`)";

const BANNER: &[u8] = b"%%MatrixMarket";

fn lines_fault(file: &str, line: Line<'_>, fault: LineFault) -> Trouble {
    let text = row::quote(line.text);
    let error = LineError { file: file.to_owned(), line: line.before.lines + 1, text, fault };
    FormatError::Line(Box::new(error)).into()
}

fn says_extended(comment: &[u8]) -> bool {
    let text = comment.to_ascii_lowercase();
    memchr::memmem::find(&text, b"extended frostt").is_some()
}

/// Reads a comment `# extents 4 3 5` or `# extents 4 3 5, indices from 0`, as plain files begin.
fn note(comment: &[u8]) -> Option<Noted> {
    let text = str::from_utf8(comment).ok()?.trim().trim_start_matches('#').trim_start();
    let text = text.strip_prefix("extents")?;
    let (extents, base) = match text.split_once(',') {
        None => (text, None),
        Some((extents, rest)) => match rest.trim().strip_prefix("indices from")?.trim() {
            "0" => (extents, Some(Base::Zero)),
            "1" => (extents, Some(Base::One)),
            _ => return None,
        },
    };
    let extents = extents.trim_start_matches(':').split_whitespace();
    let extents: Vec<u64> = extents.map(|extent| extent.parse().ok()).collect::<Option<_>>()?;
    let fit = !extents.is_empty() && extents.iter().all(|&extent| (1..1 << 63).contains(&extent));
    fit.then_some(Noted { extents, base })
}

/// Returns the fields that are non-negative integers.
pub(super) fn integers(line: &[u8]) -> Vec<u64> {
    row::fields(line).filter_map(|field| str::from_utf8(field).ok()?.parse().ok()).collect()
}
