//! Reading a table: rows to codes in the order of appearance, then codes to sorted indices.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::PathBuf;
use std::rc::Rc;

use csv::ByteRecord;

use crate::coo::Coo;
use crate::error::FormatError;
use crate::error::LineError;
use crate::error::LineFault;
use crate::io::claimed_sizes;
use crate::io::csv::ModeNames;
use crate::io::csv::Table;
use crate::io::csv::TableOptions;
use crate::io::open;
use crate::io::open::Counted;
use crate::io::open::Opened;
use crate::io::options::Missing;
use crate::io::options::Progress;
use crate::io::source::Compression;
use crate::io::source::Source;
use crate::io::text::number;
use crate::io::text::row;
use crate::narrow_ints::Ints;
use crate::value::Value;

/// Bytes of the longest row: a quote that is never closed would take the rest of the file.
const LONGEST_ROW: usize = 64 << 20;

/// Rows between looks at the memory they take.
const ROWS: usize = 1 << 12;

/// Bytes that a label takes beside its letters: a string, and an entry of the table of labels.
const LABEL: usize = 96;

/// The form of a row, for messages.
const FORM: &str = "label, label, ..., value";

/// Reads a table; the compression is told by the first bytes.
///
/// What separates columns is told by the header row: whichever of comma, tab and semicolon it has most of.
///
/// # Errors
///
/// Any of [`FormatError`] but those of writing; of a bad row its line.
pub fn read_table<V: Value>(
    source: &Source,
    options: &TableOptions,
    progress: &Progress,
) -> Result<Table<V>, FormatError> {
    let name = source.to_string();
    match source {
        Source::Stdin => read_table_stream(io::stdin(), &name, options, progress),
        Source::Path(path) => match open::open(path)? {
            Opened::File(_, 0) => Err(FormatError::EmptyFile(name)),
            Opened::File(file, len) => {
                progress.restart(len);
                read_table_stream(file, &name, options, progress)
            }
            Opened::Pipe(pipe) => read_table_stream(pipe, &name, options, progress),
        },
    }
}

/// Reads a table from a stream that passes once; `file` stands for it in messages.
///
/// # Errors
///
/// As [`read_table`].
pub fn read_table_stream<V: Value>(
    reader: impl Read + Send,
    file: &str,
    options: &TableOptions,
    progress: &Progress,
) -> Result<Table<V>, FormatError> {
    let refused = |source| FormatError::Io { action: "read", path: PathBuf::from(file), source };
    let mut reader = Counted { inner: reader, progress };
    let head = open::magic(&mut reader).map_err(refused)?;
    let compression = Compression::of_magic(&head);
    let text = open::decompress(head.as_slice().chain(reader), compression).map_err(refused)?;
    let mut text = BufReader::with_capacity(1 << 16, text);
    let delimiter = delimiter(text.fill_buf().map_err(refused)?);
    let since = Rc::new(Cell::new(0));
    let bounded = Bounded { inner: text, since: Rc::clone(&since) };
    let table = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(bounded);
    Rows { table, since, file, options }.read()
}

/// Returns the separator of which the first line has most.
fn delimiter(head: &[u8]) -> u8 {
    let (line, _) = row::line_at(head, 0);
    let count = |by: u8| line.iter().filter(|&&byte| byte == by).count();
    // The last of equals wins.
    [b';', b'\t', b','].into_iter().max_by_key(|&by| count(by)).unwrap_or(b',')
}

/// A reader that fails when a row takes too many bytes.
struct Bounded<R> {
    inner: R,
    /// Bytes read since the last row.
    since: Rc<Cell<usize>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.since.set(self.since.get() + bytes);
        if self.since.get() > LONGEST_ROW {
            let why = "a row is longer than 64 MiB; is a quotation mark not closed?";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(bytes)
    }
}

/// A table being read.
struct Rows<'a, R> {
    table: csv::Reader<Bounded<R>>,
    since: Rc<Cell<usize>>,
    file: &'a str,
    options: &'a TableOptions,
}

/// Where the columns of interest are.
struct Columns {
    modes: Vec<usize>,
    value: Option<usize>,
}

impl<R: Read> Rows<'_, R> {
    fn read<V: Value>(mut self) -> Result<Table<V>, FormatError> {
        let header = self.table.byte_headers().cloned();
        let header = header.map_err(|error| self.fault(&error))?;
        let columns = self.columns(&header)?;
        let order = columns.modes.len();
        let mut codes: Vec<Codes> = (0..order).map(|_| Codes::default()).collect();
        let (mut values, mut missing) = (Vec::<V>::new(), 0);
        let mut record = ByteRecord::new();
        loop {
            self.since.set(0);
            match self.table.read_byte_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(self.fault(&error)),
            }
            let Some(value) = self.value(&record, &columns)? else {
                missing += 1;
                continue;
            };
            claimed_sizes::grow(&mut values, 1, self.file)?;
            values.push(value);
            for (codes, &column) in codes.iter_mut().zip(&columns.modes) {
                let label = record.get(column).unwrap_or_default();
                if label.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
                    let why = "a label has a line break, and a .map file has a label a line; \
                               remove it";
                    return Err(self.bad(&record, LineFault::Header(why.to_owned())));
                }
                codes.add(label, self.file)?;
            }
            if values.len().is_multiple_of(ROWS) {
                self.check_memory::<V>(&codes, values.len())?;
            }
        }
        if values.is_empty() {
            return Err(FormatError::NoEntries(self.file.to_owned()));
        }
        self.check_memory::<V>(&codes, values.len())?;
        let (coords, modes): (Vec<Ints>, Vec<ModeNames>) = codes
            .into_iter()
            .zip(&columns.modes)
            .map(|(codes, &column)| {
                let (indices, labels) = codes.sorted();
                (indices, ModeNames { name: text(&header[column]), labels })
            })
            .unzip();
        let extents = modes.iter().map(|mode| mode.labels.len() as u64).collect();
        Ok(Table { tensor: Coo::new(extents, coords, values)?, modes, missing })
    }

    /// Finds the columns of modes and values.
    fn columns(&self, header: &ByteRecord) -> Result<Columns, FormatError> {
        let TableOptions { modes, value, max_order, .. } = self.options;
        let value = value.as_ref().map(|name| self.column(header, name)).transpose()?;
        let named: Vec<usize> = match modes.is_empty() {
            true => (0..header.len()).filter(|&column| Some(column) != value).collect(),
            false => {
                let columns = modes.iter().map(|name| self.column(header, name));
                columns.collect::<Result<_, _>>()?
            }
        };
        let order = named.len();
        if order > *max_order {
            let file = self.file.to_owned();
            return Err(FormatError::Order { file, order, most: *max_order });
        }
        if order == 0 {
            return Err(FormatError::NoModes(self.file.to_owned()));
        }
        let asked: Vec<usize> = named.iter().copied().chain(value).collect();
        let twice = (1..asked.len()).find(|&at| asked[..at].contains(&asked[at]));
        if let Some(at) = twice {
            let (file, column) = (self.file.to_owned(), text(&header[asked[at]]));
            return Err(FormatError::ColumnTwice { file, column });
        }
        Ok(Columns { modes: named, value })
    }

    /// Finds a column by its name, or by its number from 1 where no name is so.
    fn column(&self, header: &ByteRecord, name: &str) -> Result<usize, FormatError> {
        let mut having = header.iter().enumerate().filter(|(_, field)| text(field) == name);
        let named = having.next().map(|(at, _)| at);
        if let (Some(first), Some((second, _))) = (named, having.next()) {
            let (first, second) = (first + 1, second + 1);
            let what = format!("columns {first} and {second} are both called `{name}`");
            let remedy = "name them differently";
            return Err(FormatError::Unsupported { file: self.file.to_owned(), what, remedy });
        }
        let number = || name.parse::<usize>().ok()?.checked_sub(1).filter(|at| *at < header.len());
        named.or_else(number).ok_or_else(|| {
            let names: Vec<String> = header.iter().take(50).map(text).collect();
            let what = format!("no column is called `{name}`; there are: {}", names.join(", "));
            let remedy = "the first row must name the columns";
            FormatError::Unsupported { file: self.file.to_owned(), what, remedy }
        })
    }

    /// Reads the value of a row; `None` if it is unknown.
    fn value<V: Value>(
        &self,
        record: &ByteRecord,
        columns: &Columns,
    ) -> Result<Option<V>, FormatError> {
        let Some(column) = columns.value else { return Ok(Some(V::from_f64(1.0))) };
        let field = record.get(column).unwrap_or_default().trim_ascii();
        let unknown = field.is_empty() || field.eq_ignore_ascii_case(b"nan");
        if unknown && self.options.missing == Missing::Nan {
            return Ok(None);
        }
        number::value_field(field).map(Some).map_err(|fault| self.bad(record, fault))
    }

    fn check_memory<V: Value>(&self, codes: &[Codes], rows: usize) -> Result<(), FormatError> {
        let labels: usize = codes.iter().map(|codes| codes.bytes).sum();
        let needs = rows * (codes.len() * size_of::<u32>() + V::BYTES) + labels;
        claimed_sizes::check(needs as u64, self.options.max_bytes.unwrap_or(u64::MAX), self.file)
    }

    fn bad(&self, record: &ByteRecord, fault: LineFault) -> FormatError {
        let line = record.position().map_or(0, csv::Position::line);
        let text = row::quote(&record.iter().collect::<Vec<&[u8]>>().join(&b","[..]));
        let file = self.file.to_owned();
        FormatError::Line(Box::new(LineError { file, line, text, fault }))
    }

    fn fault(&self, error: &csv::Error) -> FormatError {
        match error.kind() {
            csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                let (expected, found) = (*expected_len as usize, *len as usize);
                let line = pos.as_ref().map_or(0, csv::Position::line);
                let fault = LineFault::Columns { expected, found, form: FORM };
                let (file, text) = (self.file.to_owned(), String::new());
                FormatError::Line(Box::new(LineError { file, line, text, fault }))
            }
            csv::ErrorKind::Io(error) => {
                let source = io::Error::new(error.kind(), error.to_string());
                FormatError::Io { action: "read", path: PathBuf::from(self.file), source }
            }
            _ => {
                let (file, why) = (self.file.to_owned(), error.to_string());
                FormatError::Corrupt { file, kind: "table", why }
            }
        }
    }
}

/// The labels of a column, numbered as they appear.
#[derive(Default)]
struct Codes {
    numbers: HashMap<Vec<u8>, u32>,
    column: Vec<u32>,
    /// Bytes of the labels.
    bytes: usize,
}

impl Codes {
    /// Adds the label of a row.
    fn add(&mut self, label: &[u8], file: &str) -> Result<(), FormatError> {
        let number = match self.numbers.get(label) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(self.numbers.len()).map_err(|_| {
                    let (what, remedy) = ("more than 2^32 labels in a column", "leave it out");
                    FormatError::Unsupported { file: file.to_owned(), what: what.into(), remedy }
                })?;
                self.bytes += label.len() + LABEL;
                self.numbers.insert(label.to_vec(), number);
                number
            }
        };
        claimed_sizes::grow(&mut self.column, 1, file)?;
        self.column.push(number);
        Ok(())
    }

    /// Returns the index of every row and the labels in their order.
    fn sorted(self) -> (Ints, Vec<String>) {
        let mut labels: Vec<(Vec<u8>, u32)> = self.numbers.into_iter().collect();
        let number = |label: &[u8]| {
            let number: Option<f64> = fast_float2::parse(label.trim_ascii()).ok();
            number.filter(|number| number.is_finite())
        };
        let numbers: Option<Vec<f64>> = labels.iter().map(|(label, _)| number(label)).collect();
        match numbers {
            Some(_) => labels.sort_by(|(a, _), (b, _)| {
                let (x, y) = (number(a).unwrap_or(0.0), number(b).unwrap_or(0.0));
                x.total_cmp(&y).then_with(|| a.cmp(b))
            }),
            None => labels.sort(),
        }
        let mut indices = vec![0; labels.len()];
        labels.iter().zip(0..).for_each(|((_, code), index)| indices[*code as usize] = index);
        let column: Vec<u32> = self.column.iter().map(|&code| indices[code as usize]).collect();
        (column.into(), labels.iter().map(|(label, _)| text(label)).collect())
    }
}

/// Returns a field as text; what is not UTF-8 is replaced.
fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).into_owned()
}
