//! Text files: FROSTT `.tns` in its dialects, Matrix Market.
//!
//! | phase | in -> out | where |
//! |---|---|---|
//! | prelude | first bytes -> dialect, order, header | `prelude`, `market` |
//! | parse | lines -> columns of indices as written, less one | `row`, `vector`, `number` |
//! | look | columns in cache -> ranges, whether they ascend | `look` |
//! | spread | whole text -> pieces parsed by all threads | `windows` (files), `blocks` (streams) |
//! | collect | pieces -> counts, largest indices, first bad line | `collect` |
//! | finish | columns -> base decided, extents -> [`Coo`] | here |
//!
//! A row costs a few nanoseconds a number and no allocation.  The result, including the error of
//! a bad file, does not depend on the number of threads or their timing.

mod blocks;
mod collect;
mod look;
mod market;
mod number;
mod prelude;
mod row;
mod vector;
#[cfg(test)]
mod ways;
mod windows;

use std::io;
use std::io::Read;
use std::path::PathBuf;

use rayon::prelude::*;

use crate::array::Array;
use crate::coo::Coo;
use crate::error::FormatError;
use crate::ints::Ints;
use crate::ints::Width;
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
use crate::io::text::blocks::Grown;
use crate::io::text::collect::Collector;
use crate::io::text::collect::End;
use crate::io::text::collect::Limits;
use crate::io::text::market::Symmetry;
use crate::io::text::prelude::Head;
use crate::io::text::prelude::Prelude;
use crate::io::text::row::Coordinate;
use crate::io::text::windows::Columns;
use crate::io::text::windows::Lines;
use crate::value::Value;

/// Bytes looked at first for the prelude; more if it is longer.
const HEAD: usize = 64 << 10;

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
        size *= 4;
    };
    let limits = limits(&prelude, file, options)?;
    let start = prelude.bytes as u64;
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
                let finish = Finish { prelude, bytes, compression: Compression::None };
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
    let damaged = |source: io::Error| match compression {
        Compression::None => FormatError::Io { action: "read", path: PathBuf::from(file), source },
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
    };
    let limits = limits(&prelude, file, options)?;
    let mut collector = Collector::new(file, &limits, prelude.counts);
    let body = head[prelude.bytes..].chain(reader);
    let (grown, bytes) = blocks::parse(body, options.window, &mut collector, &damaged)?;
    let finish = Finish { prelude: &prelude, bytes: bytes + prelude.bytes as u64, compression };
    match grown {
        Grown::Narrow(columns) => finish.run(arrays(columns), &collector),
        Grown::Wide(columns) => finish.run(arrays(columns), &collector),
    }
}

fn arrays<I: Coordinate, V: Value>((columns, values): blocks::Columns<I, V>) -> Columns<I, V> {
    (columns.into_iter().map(Array::from).collect(), Array::from(values))
}

/// Settles what is known before the first entry.
fn limits(prelude: &Prelude, file: &str, options: &ReadOptions) -> Result<Limits, FormatError> {
    let order = prelude.layout.order;
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
    let header = prelude.extents.clone().map(|extents| (extents, "from the header"));
    let extents = header.or(given.map(|extents| (extents.clone(), "as given")));
    Ok(Limits { layout: prelude.layout, base, extents })
}

/// The last phase: from columns of indices as written to a tensor.
struct Finish<'a> {
    prelude: &'a Prelude,
    bytes: u64,
    compression: Compression,
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
        if let Some(declared) = self.prelude.entries.filter(|&declared| declared != found) {
            return Err(FormatError::EntryCount { file, declared, found });
        }
        if found == 0 {
            return Err(FormatError::NoEntries(file));
        }
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
        let report = self.report(collector, (base, base_from), &extents, mirrored);
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

    fn report(
        &self,
        collector: &Collector<'_>,
        (base, base_from): (Base, BaseFrom),
        extents: &[u64],
        mirrored: u64,
    ) -> ReadReport {
        let Prelude { dialect, extents: header, .. } = self.prelude;
        let counts = collector.total.counts;
        ReadReport {
            file: collector.file.to_owned(),
            format: if *dialect == Dialect::MatrixMarket { Format::Mtx } else { Format::Tns },
            compression: self.compression,
            bytes: self.bytes,
            entries: counts.rows as u64 + mirrored,
            extents: extents.to_vec(),
            extents_from: match (&collector.limits.extents, header) {
                (_, Some(_)) => ExtentsFrom::Header,
                (Some(_), None) => ExtentsFrom::Caller,
                (None, None) => ExtentsFrom::LargestIndex,
            },
            text: Some(TextReport {
                dialect: *dialect,
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
