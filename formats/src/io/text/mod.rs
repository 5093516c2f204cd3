//! Text files: FROSTT `.tns` in its dialects, Matrix Market.
//!
//! | phase | in -> out | where |
//! |---|---|---|
//! | prelude | first bytes -> dialect, order, header | `prelude`, `market` |
//! | array | elements of a dense matrix -> [`Coo`] | `market_array` |
//! | parse | lines -> columns of indices as written, less one | `row`, `vector`, `number` |
//! | look | columns in cache -> ranges, whether they ascend | `column_ranges` |
//! | spread | whole text -> pieces parsed by all threads | `windows` (files), `stream` (streams) |
//! | collect | pieces -> counts, largest indices, first bad line | `collect` |
//! | finish | columns -> base decided, extents -> [`Coo`] | here |
//!
//! A row costs a few nanoseconds a number and no allocation.  The result, including the error of
//! a bad file, does not depend on the number of threads or their timing.

#[cfg(test)]
mod agreement_tests;
mod collect;
mod column_ranges;
mod market;
mod market_array;
pub(super) mod number;
mod prelude;
pub(super) mod row;
mod stream;
mod vector;
mod windows;

use std::io;
use std::io::Read;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::array::Array;
use crate::coo::Coo;
use crate::error::FormatError;
use crate::error::LineError;
use crate::error::LineFault;
use crate::io::claimed_sizes;
use crate::io::hash;
use crate::io::map::Bytes;
use crate::io::options::Base;
use crate::io::options::Progress;
use crate::io::options::ReadOptions;
use crate::io::report::BaseFrom;
use crate::io::report::Dialect;
use crate::io::report::ExtentsFrom;
use crate::io::report::ReadReport;
use crate::io::report::TextReport;
use crate::io::source::Compression;
use crate::io::source::Format;
use crate::io::text::collect::Collector;
use crate::io::text::collect::End;
use crate::io::text::collect::Limits;
use crate::io::text::market::Symmetry;
use crate::io::text::prelude::Form;
use crate::io::text::prelude::Head;
use crate::io::text::prelude::Prelude;
use crate::io::text::row::Coordinate;
use crate::io::text::row::Layout;
use crate::io::text::stream::Grown;
use crate::io::text::windows::Columns;
use crate::io::text::windows::Lines;
use crate::narrow_ints::Ints;
use crate::narrow_ints::Width;
use crate::value::Value;

/// Bytes looked at first for the prelude; more if it is longer.
const HEAD: usize = 64 << 10;

/// Bytes of the longest line that is read, and of the longest prelude.
const LONGEST_LINE: u64 = 64 << 20;

/// Reads text that can be looked at twice.
pub(super) fn read_windows<V: Value>(
    text: Bytes<'_>,
    file: &str,
    options: &ReadOptions,
    progress: &Progress,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    let refused = |source| FormatError::Io { action: "read", path: PathBuf::from(file), source };
    let mut size = HEAD as u64;
    let prelude = loop {
        let len = size.min(text.len());
        let head = if len == text.len() { Head::Whole } else { Head::Partial };
        if let Some(prelude) = prelude::read(&text.window(0..len).map_err(refused)?, head, file)? {
            break prelude;
        }
        check_head(len, file)?;
        size *= 4;
    };
    let limits = limits(&prelude, file, options)?;
    let start = prelude.bytes as u64;
    if prelude.form == Form::Array {
        let bytes = text.window(start..text.len()).map_err(refused)?;
        let stored = Stored { bytes: text.len(), compression: Compression::None };
        return market_array::read(&bytes, stored, &prelude, &limits, file);
    }
    let window = options.window.max(1) as u64;
    let hash = if options.hash { hash::Windows::new(text.len(), window) } else { None };
    let lines = Lines { text, start, window, hash: hash.as_ref() };
    let read = Reading { lines, file, prelude: &prelude, limits: &limits, progress };
    let narrow =
        if windows::seems_narrow::<V>(lines, &limits) { read.run::<u16, V>() } else { None };
    let found = narrow.or_else(|| read.run::<u32, V>()).or_else(|| read.run::<u64, V>());
    let (tensor, report) = found.unwrap_or_else(|| unreachable!("64-bit indices always fit"))?;
    let blake3 = hash.and_then(|windows| windows.root());
    Ok((tensor, ReadReport { blake3, ..report }))
}

/// Text that can be looked at twice, with all that is known of it.
struct Reading<'a> {
    lines: Lines<'a>,
    file: &'a str,
    prelude: &'a Prelude,
    limits: &'a Limits,
    progress: &'a Progress,
}

impl Reading<'_> {
    /// Parses with indices as `I`; `None` if one does not fit.
    fn run<I: Coordinate, V: Value>(&self) -> Option<Result<(Coo<V>, ReadReport), FormatError>>
    where
        Ints: From<Array<I>>,
    {
        let Reading { lines, file, prelude, limits, progress } = *self;
        let bytes = lines.text.len();
        let mut collector = Collector::new(file, limits, prelude.counts);
        progress.restart(bytes);
        progress.advance(lines.start);
        match windows::parse::<I, V>(lines, &mut collector, progress) {
            Ok(columns) => {
                let stored = Stored { bytes, compression: Compression::None };
                let finish = Finish { prelude, stored };
                Some(finish.run(columns, &collector))
            }
            Err(End::Error(error)) => Some(Err(error)),
            Err(End::Wide) => None,
        }
    }
}

/// Reads text that passes once, as the decompressor of `compression` yields it.
pub(super) fn read_blocks<V: Value>(
    mut reader: impl Read + Send,
    compression: Compression,
    file: &str,
    options: &ReadOptions,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    let damaged = |source: io::Error| match (compression, source.kind()) {
        (Compression::None, _) | (_, io::ErrorKind::OutOfMemory) => {
            FormatError::Io { action: "read", path: PathBuf::from(file), source }
        }
        _ => {
            let (kind, why) = (compression.name(), source.to_string());
            FormatError::Corrupt { file: file.to_owned(), kind, why }
        }
    };
    let mut head = Vec::new();
    let prelude = loop {
        let more = (3 * head.len()).max(HEAD);
        let got = reader.by_ref().take(more as u64).read_to_end(&mut head).map_err(damaged)?;
        let size = if got < more { Head::Whole } else { Head::Partial };
        if let Some(prelude) = prelude::read(&head, size, file)? {
            break prelude;
        }
        check_head(head.len() as u64, file)?;
    };
    let limits = limits(&prelude, file, options)?;
    let mut collector = Collector::new(file, &limits, prelude.counts);
    let mut body = head[prelude.bytes..].chain(reader);
    if prelude.form == Form::Array {
        let mut bytes = Vec::new();
        let most = options.max_bytes.unwrap_or(u64::MAX);
        body.by_ref().take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(damaged)?;
        claimed_sizes::check(bytes.len() as u64, most, file)?;
        let stored = Stored { bytes: (prelude.bytes + bytes.len()) as u64, compression };
        return market_array::read(&bytes, stored, &prelude, &limits, file);
    }
    let (grown, bytes) = stream::parse(body, options.window, &mut collector, &damaged)?;
    let stored = Stored { bytes: bytes + prelude.bytes as u64, compression };
    let finish = Finish { prelude: &prelude, stored };
    match grown {
        Grown::Narrow(columns) => finish.run(arrays(columns), &collector),
        Grown::Wide(columns) => finish.run(arrays(columns), &collector),
    }
}

/// Refuses a file whose first bytes hold no entry.
fn check_head(bytes: u64, file: &str) -> Result<(), FormatError> {
    if bytes < LONGEST_LINE {
        return Ok(());
    }
    let what = format!("its first {} MiB hold no whole entry", bytes >> 20);
    let remedy = "give a file of one entry a line, with fewer comments before them";
    Err(FormatError::Unsupported { file: file.to_owned(), what, remedy })
}

fn arrays<I: Coordinate, V: Value>((columns, values): stream::Columns<I, V>) -> Columns<I, V> {
    (columns.into_iter().map(Array::from).collect(), Array::from(values))
}

/// Settles what is known before the first entry.
fn limits(prelude: &Prelude, file: &str, options: &ReadOptions) -> Result<Limits, FormatError> {
    let order = prelude.layout.order;
    options.check_order(order, file)?;
    // Its size line would pass for an entry of a plain file.
    if options.format == Some(Format::Mtx) && prelude.dialect != Dialect::MatrixMarket {
        let what =
            "a Matrix Market file begins with `%%MatrixMarket`, this one does not".to_owned();
        let remedy = "add the banner, or name it .tns if it is a plain list";
        return Err(FormatError::Unsupported { file: file.to_owned(), what, remedy });
    }
    let asked = options.base.map(|base| (base, BaseFrom::Caller));
    let base = asked.or(prelude.base.map(|base| (base, BaseFrom::Dialect)));
    let given = options.extents.as_ref();
    if let Some(given) = given.filter(|given| given.len() != order) {
        let (file, given) = (file.to_owned(), given.len());
        return Err(FormatError::ExtentCount { file, order, given });
    }
    let header = prelude.extents.clone().map(|extents| (extents, ExtentsFrom::Header));
    let extents = header
        .or(given.map(|extents| (extents.clone(), ExtentsFrom::Caller)))
        .or(prelude.noted.clone().map(|extents| (extents, ExtentsFrom::Comment)));
    let layout = Layout { missing: options.missing, ..prelude.layout };
    let max_bytes = options.max_bytes.unwrap_or(u64::MAX);
    Ok(Limits { layout, base, extents, max_bytes })
}

/// A text as its file holds it.
#[derive(Clone, Copy)]
struct Stored {
    /// The bytes of the text, prelude included.
    bytes: u64,
    /// How its file is compressed.
    compression: Compression,
}

/// The last phase: from columns of indices as written to a tensor.
struct Finish<'a> {
    prelude: &'a Prelude,
    stored: Stored,
}

impl Finish<'_> {
    fn run<I, V>(
        &self,
        (mut columns, mut values): Columns<I, V>,
        collector: &Collector<'_>,
    ) -> Result<(Coo<V>, ReadReport), FormatError>
    where
        I: Coordinate,
        V: Value,
        Ints: From<Array<I>>,
    {
        let found = values.len() as u64;
        let file = collector.file.to_owned();
        let listed = found + collector.total.counts.missing;
        if let Some(declared) = self.prelude.entries.filter(|&declared| declared != listed) {
            return Err(FormatError::EntryCount { file, declared, found: listed });
        }
        if found == 0 {
            return Err(FormatError::NoEntries(file));
        }
        self.refuse_header(&columns, &values, collector)?;
        let (base, base_from) = collector.base()?;
        if base == Base::Zero {
            for column in &mut columns {
                column.make_mut().par_iter_mut().for_each(|index| *index = index.zero_based());
            }
        }
        let largest = &collector.total.largest;
        let extents = match &collector.limits.extents {
            Some((extents, _)) => extents.clone(),
            None => largest.iter().map(|index| index + u64::from(base == Base::Zero)).collect(),
        };
        if self.prelude.symmetry != Symmetry::General {
            market::mirror(&mut columns, &mut values, self.prelude.symmetry);
        }
        let mirrored = values.len() as u64 - found;
        let report = self.report(collector, base, base_from, &extents, mirrored);
        let narrow = extents.iter().all(|&extent| Width::below(extent) == Width::W16);
        let width = |&extent: &u64| if narrow { Width::W16 } else { Width::listed(extent) };
        // An extent may be larger than any index needs.
        let fitted = |(column, extent)| Ints::from(column).into_width(width(extent));
        let coords = columns.into_iter().zip(&extents).map(fitted).collect();
        let ascending = collector.total.order.ascends() && mirrored == 0;
        let tensor = if ascending {
            Coo::ascending(extents, coords, values)
        } else {
            Coo::fitting(extents, coords, values)
        };
        Ok((tensor, report))
    }

    /// Refuses a plain file whose first line may be a header: no other row has a larger index, and as
    /// many rows follow as its last number says.
    ///
    /// In a list that ascends no first row is so.  A single row of one cell stays an entry.
    fn refuse_header<I: Coordinate, V: Value>(
        &self,
        columns: &[Array<I>],
        values: &[V],
        collector: &Collector<'_>,
    ) -> Result<(), FormatError> {
        let followers = values.len() - 1;
        if self.prelude.dialect != Dialect::Plain
            || self.prelude.noted.is_some()
            || values[0].to_f64() != followers as f64
        {
            return Ok(());
        }
        let first: Vec<u64> = columns.iter().map(|column| column[0].raw()).collect();
        let cells = first.iter().fold(1_u64, |cells, &extent| cells.saturating_mul(extent));
        if first != collector.total.largest || cells < 2 || cells < followers as u64 {
            return Ok(());
        }
        let joined = |by: &str| {
            let numbers: Vec<String> = first.iter().map(u64::to_string).collect();
            numbers.join(by)
        };
        let (extents, comment, entries) = (joined(" x "), joined(" "), followers as u64);
        let fault = LineFault::UnmarkedHeader { extents, comment, entries };
        let line = self.prelude.counts.lines + 1;
        let text = format!("{} {entries}", joined(" "));
        let file = collector.file.to_owned();
        Err(FormatError::Line(Box::new(LineError { file, line, text, fault })))
    }

    fn report(
        &self,
        collector: &Collector<'_>,
        base: Base,
        base_from: BaseFrom,
        extents: &[u64],
        mirrored: u64,
    ) -> ReadReport {
        let dialect = self.prelude.dialect;
        let counts = collector.total.counts;
        ReadReport {
            file: collector.file.to_owned(),
            format: if dialect == Dialect::MatrixMarket { Format::Mtx } else { Format::Tns },
            compression: self.stored.compression,
            bytes: self.stored.bytes,
            entries: counts.rows as u64 + mirrored,
            missing: counts.missing,
            extents: extents.to_vec(),
            extents_from: match &collector.limits.extents {
                Some((_, from)) => *from,
                None => ExtentsFrom::LargestIndex,
            },
            text: Some(TextReport {
                dialect,
                base,
                base_from,
                lines: counts.lines,
                comments: counts.comments,
                blanks: counts.blanks,
                mirrored,
            }),
            sorted_by: None,
            blake3: None,
        }
    }
}
