//! The memory of a list that is to be read from text, estimated from some of its lines.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use decompose_common::memory;
use decompose_formats::Width;
use decompose_formats::io::{Compression, Format};

use crate::failure::Failure;

/// Bytes of text that are looked at, at the beginning, in the middle and at the end.
const LOOK: u64 = 1 << 16;

/// Foresees the list that a text file which is not packed becomes, of values of `value_bytes`; others are
/// foreseen when they are read.
///
/// # Errors
///
/// The numbers, if it does not fit.
pub(crate) fn foresee(
    path: &Path,
    format: Option<Format>,
    value_bytes: usize,
) -> Result<(), Failure> {
    let named = Format::of_path(path).ok();
    let packed = named.is_some_and(|(_, compression)| compression != Compression::None);
    let known = format.or(named.map(|(format, _)| format));
    if packed || !matches!(known, Some(Format::Tns | Format::Mtx)) {
        return Ok(());
    }
    let Some(bytes) = list_bytes(path, value_bytes as u64) else { return Ok(()) };
    let what = || format!("the list of {}", path.display());
    Ok(memory::foresee(bytes, what, "raise --max-memory")?)
}

/// Returns about how many bytes the list of a file takes; `None` if its lines show nothing.
fn list_bytes(path: &Path, value_bytes: u64) -> Option<u64> {
    let mut file = File::open(path).ok()?;
    let data = file.metadata().ok().filter(|data| data.is_file())?;
    let len = data.len();
    let mut seen = Seen::default();
    for start in [0, len.saturating_sub(LOOK) / 2, len.saturating_sub(LOOK)] {
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(start)).ok()?;
        Read::by_ref(&mut file).take(LOOK).read_to_end(&mut text).ok()?;
        // The first line may be a part of one.
        let text = String::from_utf8_lossy(&text);
        let cut = if start > 0 { text.find('\n').map_or(text.len(), |end| end + 1) } else { 0 };
        seen.look(&text[cut..]);
    }
    let lines = (len as f64 * seen.lines as f64 / seen.bytes.max(1) as f64).ceil() as u64;
    // Short modes alone are listed in two bytes.
    let width = if seen.largest > 1 << 16 { Width::W32 } else { Width::W16 };
    let modes = seen.words.checked_sub(1)?;
    Some(lines.saturating_mul(modes as u64 * width.bytes() as u64 + value_bytes))
}

/// What some lines show.
#[derive(Default)]
struct Seen {
    lines: u64,
    bytes: u64,
    /// Words of the longest line.
    words: usize,
    largest: u64,
}

impl Seen {
    /// Looks at the lines of `text`; the last may be a part of one.
    fn look(&mut self, text: &str) {
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        lines.pop_if(|last| !last.ends_with('\n'));
        for line in lines {
            self.bytes += line.len() as u64;
            if line.trim().is_empty() || line.starts_with(['#', '%']) {
                continue;
            }
            self.lines += 1;
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            self.words = self.words.max(words.len());
            let indices = words[..words.len().saturating_sub(1)].iter();
            let largest = indices.filter_map(|word| word.parse().ok()).max();
            self.largest = self.largest.max(largest.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::list_bytes;

    #[test]
    fn lists_are_estimated_from_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tns");
        let bytes = |largest: u64| {
            let mut text = String::from("# a comment\n\n");
            for entry in 0..50_000_u64 {
                writeln!(text, "{} {} 1.5", entry % 100 + 1, entry * largest / 50_000 + 1).unwrap();
            }
            std::fs::write(&path, text).unwrap();
            list_bytes(&path, 8).unwrap() as f64 / 50_000.0
        };
        for (largest, want) in [(500, 12.0), (1_000_000, 16.0)] {
            let entry = bytes(largest);
            assert!((entry / want - 1.0).abs() < 0.05, "{largest}: {entry} bytes an entry");
        }
        std::fs::write(&path, "").unwrap();
        assert_eq!(list_bytes(&path, 8), None);
        assert_eq!(list_bytes(&dir.path().join("none.tns"), 8), None);
    }
}
