//! Files of labels.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use decompose_common::printable::printable;
use decompose_formats::counted;
use flate2::read::MultiGzDecoder;

use crate::labels::{LONGEST, ModeLabels};

/// Bytes of a line that are looked at: the characters that are kept and one more, of four bytes each.
const LINE: usize = 4 * (LONGEST + 1);

/// The most bytes that the labels of a mode may take.
const MOST_BYTES: usize = 1 << 30;

/// A file of labels.
pub(super) struct Map {
    /// From 1.
    pub(super) mode: usize,
    pub(super) name: Option<String>,
    pub(super) path: PathBuf,
    /// The lowest of a mode counts.
    pub(super) rank: usize,
}

impl Map {
    /// Reads the labels.
    ///
    /// # Errors
    ///
    /// Why they cannot be used.
    pub(super) fn read(
        &self,
        extent: u64,
        warnings: &mut Vec<String>,
    ) -> Result<ModeLabels, String> {
        let (path, mode) = (printable(&self.path.display().to_string()).into_owned(), self.mode);
        let Lines { lines, more, replaced } =
            lines(&self.path, extent).map_err(|error| format!("{path}: {error}"))?;
        if more || lines.len() as u64 != extent {
            let count = counted(lines.len(), "line", "lines");
            let count = if more { format!("more than {count}") } else { count };
            let extent = counted(extent, "index", "indices");
            return Err(format!("{path} has {count} for {extent} of mode {mode}"));
        }
        if replaced > 0 {
            warnings
                .push(format!("{path} is not UTF-8; letters that are not are shown as \u{fffd}"));
        }
        let name = self.name.as_deref().map(cut).unwrap_or_else(|| format!("mode {mode}"));
        Ok(ModeLabels { name, indices: lines, file: Some(self.path.clone()) })
    }
}

/// The lines of a file of labels.
struct Lines {
    lines: Vec<String>,
    /// Whether there are more.
    more: bool,
    /// How many were not UTF-8.
    replaced: usize,
}

/// Reads up to `most` lines, each cut to [`LONGEST`] characters.
fn lines(path: &Path, most: u64) -> io::Result<Lines> {
    let file = File::open(path)?;
    let file: Box<dyn Read> = match path.extension().is_some_and(|extension| extension == "gz") {
        true => Box::new(MultiGzDecoder::new(file)),
        false => Box::new(file),
    };
    let mut file = BufReader::new(file);
    let mut found = Lines { lines: Vec::new(), more: false, replaced: 0 };
    let mut bytes = 0;
    while let Some(line) = short_line(&mut file)? {
        if found.lines.len() as u64 == most {
            found.more = true;
            break;
        }
        let text = String::from_utf8_lossy(&line);
        // A character may have been cut in the middle.
        let whole = line.len() < LINE;
        found.replaced += usize::from(whole && matches!(text, std::borrow::Cow::Owned(_)));
        let label = cut(text.trim_end_matches('\r'));
        bytes += label.len() + size_of::<String>();
        if bytes > MOST_BYTES {
            return Err(io::Error::other("its labels take more than 1 GiB"));
        }
        found.lines.push(label);
    }
    Ok(found)
}

/// Reads a line and returns its first [`LINE`] bytes; `None` at the end.
fn short_line(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut begun = false;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(begun.then_some(line));
        }
        begun = true;
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        line.extend_from_slice(&part[..part.len().min(LINE - line.len())]);
        let used = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

/// Cuts a label that is too long to be shown.
fn cut(label: &str) -> String {
    match label.char_indices().nth(LONGEST) {
        None => label.to_owned(),
        Some((end, _)) => format!("{}\u{2026}", &label[..end]),
    }
}
