//! What a reader decided about a file, and why.

use std::fmt;

use serde::Serialize;

use crate::io::options::Base;
use crate::io::source::Compression;
use crate::io::source::Format;
use crate::modes::ModeOrder;
use crate::plural::counted;

/// What was read and what was decided; its `Display` says it in words, a line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReadReport {
    /// The file as the user named it, or `standard input`.
    pub file: String,
    /// The format.
    pub format: Format,
    /// The compression of the file.
    pub compression: Compression,
    /// Bytes of content, after decompression.
    pub bytes: u64,
    /// Entries of the tensor (duplicates and explicit zeros included).
    pub entries: u64,
    /// Entries left out because their values are unknown.
    pub missing: u64,
    /// The extents.
    pub extents: Vec<u64>,
    /// Where the extents come from.
    pub extents_from: ExtentsFrom,
    /// What only text files have.
    pub text: Option<TextReport>,
    /// The order in which the entries are sorted, where the file says (and it was checked).
    pub sorted_by: Option<ModeOrder>,
    /// The BLAKE3 hash of the file in hexadecimal, where it was asked for and could be taken on the way.
    #[serde(skip)]
    pub blake3: Option<String>,
}

/// What was decided about a text file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextReport {
    /// The header dialect.
    pub dialect: Dialect,
    /// From where indices count.
    pub base: Base,
    /// Why.
    pub base_from: BaseFrom,
    /// Lines in all.
    pub lines: u64,
    /// Comment lines.
    pub comments: u64,
    /// Blank lines.
    pub blanks: u64,
    /// Entries added because the file lists only one triangle of a symmetric matrix.
    pub mirrored: u64,
}

/// A dialect of text files, told by what stands before the entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub enum Dialect {
    /// FROSTT: no header; a comment may give the extents.
    #[default]
    Plain,
    /// Tensor Toolbox `sptensor`.
    Toolbox,
    /// ParTI: order and extents.
    Parti,
    /// Extended FROSTT: order and count, then extents.
    ExtendedFrostt,
    /// Matrix Market or TensorMarket.
    MatrixMarket,
}

impl Dialect {
    /// Tells whether a file of this dialect can say that its indices count from 0.
    pub fn tells_base(self) -> bool {
        matches!(self, Dialect::Plain | Dialect::Toolbox)
    }
}

/// Where the extents come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum ExtentsFrom {
    /// The file's header.
    Header,
    /// The caller.
    Caller,
    /// A comment `# extents ...` before the entries.
    Comment,
    /// The largest index of each mode; empty slices at the end cannot be seen.
    LargestIndex,
}

/// Why indices were taken to count from 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum BaseFrom {
    /// The caller says so.
    Caller,
    /// The dialect, its header or a comment says so.
    Dialect,
    /// This line has an index 0.
    ZeroAt {
        /// The line, counted from 1.
        line: u64,
    },
    /// No index is 0.
    NoZero,
}

impl fmt::Display for ReadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReadReport { file, format, bytes, entries, .. } = self;
        write!(f, "{file}: {format}")?;
        if let Some(text) = &self.text {
            write!(f, " ({})", text.dialect)?;
        }
        if self.compression != Compression::None {
            write!(f, ", {}", self.compression.name())?;
        }
        let (bytes, entries) =
            (counted(*bytes, "byte", "bytes"), counted(*entries, "entry", "entries"));
        write!(f, ", {bytes}, {entries}")?;
        if self.missing > 0 {
            write!(f, ", {} missing", self.missing)?;
        }
        f.write_str("\nextents ")?;
        for (mode, extent) in self.extents.iter().enumerate() {
            let times = if mode == 0 { "" } else { " x " };
            write!(f, "{times}{extent}")?;
        }
        write!(f, " ({})", self.extents_from)?;
        if let Some(text) = &self.text {
            write!(f, "\n{text}")?;
        }
        if let Some(order) = &self.sorted_by {
            write!(f, "\nsorted by modes {order}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TextReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = match self.base {
            Base::Zero => 0,
            Base::One => 1,
        };
        write!(f, "indices count from {from} ({})", self.base_from)?;
        let TextReport { lines, comments, blanks, mirrored, .. } = self;
        let (lines, comments) =
            (counted(*lines, "line", "lines"), counted(*comments, "comment", "comments"));
        write!(f, "; {lines}, of these {comments} and {blanks} blank")?;
        if *mirrored > 0 {
            write!(f, "; {} added by symmetry", counted(*mirrored, "entry", "entries"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Plain => "plain, no header",
            Dialect::Toolbox => "Tensor Toolbox header",
            Dialect::Parti => "ParTI header",
            Dialect::ExtendedFrostt => "extended FROSTT header",
            Dialect::MatrixMarket => "Matrix Market header",
        })
    }
}

impl fmt::Display for ExtentsFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExtentsFrom::Header => "from the header",
            ExtentsFrom::Caller => "as given",
            ExtentsFrom::Comment => "from a comment",
            ExtentsFrom::LargestIndex => "the largest indices",
        })
    }
}

impl fmt::Display for BaseFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BaseFrom::Caller => f.write_str("as asked"),
            BaseFrom::Dialect => f.write_str("as the file says"),
            BaseFrom::ZeroAt { line } => write!(f, "line {line} has an index 0"),
            BaseFrom::NoZero => f.write_str("no index is 0"),
        }
    }
}
