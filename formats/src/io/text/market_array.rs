//! Dense matrices in Matrix Market form: `%%MatrixMarket matrix array real general`, the size line,
//! then an element a line, first mode fastest; of symmetric ones the lower triangle only.

use crate::coo::Coo;
use crate::error::FormatError;
use crate::error::LineError;
use crate::io::claimed_sizes;
use crate::io::options::Base;
use crate::io::options::Missing;
use crate::io::report::BaseFrom;
use crate::io::report::ExtentsFrom;
use crate::io::report::ReadReport;
use crate::io::report::TextReport;
use crate::io::source::Format;
use crate::io::text::Stored;
use crate::io::text::collect::Limits;
use crate::io::text::market::Symmetry;
use crate::io::text::prelude::Prelude;
use crate::io::text::row;
use crate::io::text::row::Counts;
use crate::modes::ModeOrder;
use crate::narrow_ints::Ints;
use crate::narrow_ints::Width;
use crate::value::Value;

/// Reads the elements behind the prelude; zeros are dropped unless NaN stands for what is unknown.
///
/// Entries come sorted, first mode outermost.
pub(super) fn read<V: Value>(
    text: &[u8],
    stored: Stored,
    prelude: &Prelude,
    limits: &Limits,
    file: &str,
) -> Result<(Coo<V>, ReadReport), FormatError> {
    let extents = prelude.extents.clone().unwrap_or_default();
    let mut elements = Elements::new(&extents, prelude.symmetry);
    let declared = elements.declared();
    let mut list = List { columns: vec![Vec::new(); extents.len()], values: Vec::new() };
    let mut counts = prelude.counts;
    let mut found = 0;
    let fits = |list: &List<V>| {
        let row = (extents.len() * size_of::<u64>() + V::BYTES) as u64;
        claimed_sizes::check(row * list.values.len() as u64, limits.max_bytes, file)
    };
    let mut at = 0;
    while at < text.len() {
        let (line, next) = row::line_at(text, at);
        at = next;
        let value = row::element::<V>(line, limits.layout, &mut counts).map_err(|fault| {
            let (line, text) = (counts.lines + 1, row::quote(line));
            let file = file.to_owned();
            FormatError::Line(Box::new(LineError { file, line, text, fault }))
        });
        counts.lines += 1;
        let place = match value? {
            None => continue,
            Some(value) => {
                found += 1;
                elements.next().map(|place| (place, value))
            }
        };
        let Some((place, Some(value))) = place else { continue };
        if value == V::default() && limits.layout.missing == Missing::None {
            continue;
        }
        list.push(place, value, prelude.symmetry);
        fits(&list)?;
    }
    if declared != Some(found) {
        let (file, declared) = (file.to_owned(), declared.unwrap_or(u64::MAX));
        return Err(FormatError::EntryCount { file, declared, found });
    }
    if list.values.is_empty() {
        return Err(FormatError::NoEntries(file.to_owned()));
    }
    let narrow = |(column, &extent): (Vec<u64>, &u64)| Ints::collect(column, Width::listed(extent));
    let coords = list.columns.into_iter().zip(&extents).map(narrow).collect();
    let mut tensor = Coo::new(extents.clone(), coords, list.values)?;
    tensor.sort(&ModeOrder::natural(extents.len()))?;
    let report = report(&tensor, stored, prelude, counts, file);
    Ok((tensor, report))
}

fn report<V: Value>(
    tensor: &Coo<V>,
    stored: Stored,
    prelude: &Prelude,
    counts: Counts,
    file: &str,
) -> ReadReport {
    ReadReport {
        file: file.to_owned(),
        format: Format::Mtx,
        compression: stored.compression,
        bytes: stored.bytes,
        entries: tensor.nnz() as u64,
        missing: counts.missing,
        extents: tensor.extents().to_vec(),
        extents_from: ExtentsFrom::Header,
        text: Some(TextReport {
            dialect: prelude.dialect,
            base: Base::One,
            base_from: BaseFrom::Dialect,
            lines: counts.lines,
            comments: counts.comments,
            blanks: counts.blanks,
            mirrored: 0,
        }),
        sorted_by: None,
        blake3: None,
    }
}

/// Entries as they are found.
struct List<V> {
    columns: Vec<Vec<u64>>,
    values: Vec<V>,
}

impl<V: Value> List<V> {
    /// Adds an entry, and its mirror image where the file leaves that out.
    fn push(&mut self, place: Vec<u64>, value: V, symmetry: Symmetry) {
        let mirrored = match symmetry {
            Symmetry::General => None,
            Symmetry::Symmetric => Some(value),
            Symmetry::Skew => Some(-value),
        };
        let off = place.first() != place.get(1);
        let images = [
            Some((place.clone(), value)),
            mirrored.filter(|_| off).map(|value| (place.into_iter().rev().collect(), value)),
        ];
        for (place, value) in images.into_iter().flatten() {
            self.columns.iter_mut().zip(place).for_each(|(column, index)| column.push(index));
            self.values.push(value);
        }
    }
}

/// The places of the elements in the order of the file.
struct Elements<'a> {
    extents: &'a [u64],
    symmetry: Symmetry,
    /// The next place; `None` behind the last.
    next: Option<Vec<u64>>,
}

impl Elements<'_> {
    fn new(extents: &[u64], symmetry: Symmetry) -> Elements<'_> {
        let mut first = vec![0; extents.len()];
        if symmetry == Symmetry::Skew {
            first[0] = 1;
        }
        let some = first.iter().zip(extents).all(|(index, extent)| index < extent);
        Elements { extents, symmetry, next: some.then_some(first) }
    }

    /// Returns how many elements the file lists; `None` beyond 2^64.
    fn declared(&self) -> Option<u64> {
        let all = || self.extents.iter().try_fold(1_u64, |all, &extent| all.checked_mul(extent));
        let side = self.extents.first().copied().unwrap_or(0);
        match self.symmetry {
            Symmetry::General => all(),
            Symmetry::Symmetric => Some(side.checked_mul(side.checked_add(1)?)? / 2),
            Symmetry::Skew => Some(side.checked_mul(side.saturating_sub(1))? / 2),
        }
    }
}

impl Iterator for Elements<'_> {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        let place = self.next.take()?;
        let mut after = place.clone();
        for mode in 0..after.len() {
            after[mode] += 1;
            if after[mode] < self.extents[mode] {
                self.next = Some(after);
                break;
            }
            after[mode] = 0;
        }
        // Of a triangle each column begins at the diagonal, or below it.
        if let (Some(next), false) = (&mut self.next, self.symmetry == Symmetry::General)
            && next[0] == 0
        {
            next[0] = next[1] + u64::from(self.symmetry == Symmetry::Skew);
            if next[0] >= self.extents[0] {
                self.next = None;
            }
        }
        Some(place)
    }
}
