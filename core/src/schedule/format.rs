//! Formats: how a sparse operand is stored, level by level.
//!
//! ```text
//! i j k                 compressed sparse fibres (CSF); of a matrix DCSR
//! i:dense j             CSR
//! i j k:singleton       CSF whose last two levels share their positions
//! i j k:dense           CSF whose last fibres are full
//! i j:hashed            coordinates of a row are located by a hash table
//! ```
//!
//! Source: Chou, Kjolstad, Amarasinghe, "Format Abstraction for Sparse Tensor Algebra Compilers", OOPSLA 2018.

use std::fmt;
use std::str::FromStr;

use crate::einsum::Index;

/// The format of a sparse operand: a sequence of levels, outermost first, each with an index and a kind.
///
/// A blocked tree has a level of block numbers above its modes ([`Index::BLOCK`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Format {
    indices: Vec<Index>,
    kinds: Vec<LevelKind>,
}

/// How a level is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LevelKind {
    /// As an array with a place for every coordinate.  A coordinate is located without a search.
    ///
    /// ```text
    /// places  0  1  2  3      of which 1 and 3 have children
    /// ```
    Dense,
    /// As a list of the coordinates that occur, in which a coordinate is searched.
    ///
    /// ```text
    /// coordinates  1  3
    /// ```
    Compressed,
    /// As a list with one coordinate for each position of the level above, with which it is looped.
    ///
    /// ```text
    /// level above  1  1  3
    /// coordinates  0  2  2
    /// ```
    Singleton,
    /// As a compressed level, with a bit for each coordinate below each node above: one look finds whether a coordinate
    /// occurs, and a count of the bits before it which node it is.
    ///
    /// ```text
    /// coordinates  1  3
    /// bits         0  1  0  1
    /// ```
    Bitmap,
    /// As a compressed level, with a hash table of two slots a node.  A slot holds the number of a node, from 1 on.
    ///
    /// ```text
    /// coordinates  1  3
    /// slots        -  -  1  2
    /// ```
    Hashed,
}

impl LevelKind {
    /// All kinds.
    pub const ALL: [LevelKind; 5] = [
        LevelKind::Dense,
        LevelKind::Compressed,
        LevelKind::Singleton,
        LevelKind::Bitmap,
        LevelKind::Hashed,
    ];

    /// Returns what stands before the word *level* where levels are listed: nothing for a compressed one.
    pub fn adjective(self) -> String {
        if self == LevelKind::Compressed { String::new() } else { format!("{self} ") }
    }

    /// Returns the word of the kind.
    pub fn word(self) -> &'static str {
        match self {
            LevelKind::Dense => "dense",
            LevelKind::Compressed => "compressed",
            LevelKind::Singleton => "singleton",
            LevelKind::Bitmap => "bitmap",
            LevelKind::Hashed => "hashed",
        }
    }
}

impl fmt::Display for LevelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Format {
    /// Returns compressed sparse fibres: one compressed level an index.
    pub fn csf(indices: Vec<Index>) -> Format {
        Format::with_fused(indices, 1)
    }

    /// Returns compressed sparse fibres of which the last `fused` levels share their positions; 1 is plain CSF.
    pub fn with_fused(indices: Vec<Index>, fused: usize) -> Format {
        let first = indices.len().saturating_sub(fused.saturating_sub(1));
        let kind = |at| if at < first { LevelKind::Compressed } else { LevelKind::Singleton };
        let kinds = (0..indices.len()).map(kind).collect();
        Format { indices, kinds }
    }

    /// Returns the indices of the levels, outermost first.
    pub fn levels(&self) -> &[Index] {
        &self.indices
    }

    /// Returns the kinds of the levels, outermost first.
    pub fn kinds(&self) -> &[LevelKind] {
        &self.kinds
    }

    /// Returns the levels, outermost first, each with its index and its kind.
    pub fn pairs(&self) -> impl Iterator<Item = (Index, LevelKind)> + '_ {
        self.indices.iter().copied().zip(self.kinds.iter().copied())
    }

    /// Returns how many of the last levels share their positions: the singletons and the level above them.
    pub fn fused(&self) -> usize {
        let singleton = |kind: &&LevelKind| **kind == LevelKind::Singleton;
        1 + self.kinds.iter().rev().take_while(singleton).count()
    }

    /// Tells whether singletons are the last levels only, below a root that stands alone.
    pub fn is_tree(&self) -> bool {
        let fused = self.fused();
        let first = self.kinds.len().saturating_sub(fused - 1);
        (fused == 1 || fused < self.kinds.len())
            && !self.kinds[..first].contains(&LevelKind::Singleton)
    }

    /// Makes level `at` one of another kind.
    ///
    /// # Panics
    ///
    /// If there is no such level.
    pub fn set_kind(&mut self, at: usize, kind: LevelKind) {
        self.kinds[at] = kind;
    }

    /// Returns the levels whose indices are `kept`.
    #[must_use]
    pub(crate) fn only(&self, kept: impl Fn(Index) -> bool) -> Format {
        let (indices, kinds) = self.pairs().filter(|&(index, _)| kept(index)).unzip();
        Format { indices, kinds }
    }

    /// Returns the format of the tree that is built: coordinates are compressed, and a kernel adds to it by what means they
    /// are located.
    #[must_use]
    pub fn tree(&self) -> Format {
        Format::with_fused(self.indices.clone(), self.fused())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (index, kind)) in self.pairs().enumerate() {
            let space = if at == 0 { "" } else { " " };
            match kind {
                LevelKind::Compressed => write!(f, "{space}{index}")?,
                _ => write!(f, "{space}{index}:{kind}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Format {
    type Err = String;

    /// Reads levels that are separated by spaces or commas: `i j:dense k`.
    fn from_str(text: &str) -> Result<Format, String> {
        let words = text.split([' ', ',']).filter(|word| !word.is_empty());
        let levels: Vec<(Index, LevelKind)> = words.map(parse_level).collect::<Result<_, _>>()?;
        let (indices, kinds) = levels.into_iter().unzip();
        Ok(Format { indices, kinds })
    }
}

/// Reads the letter of an index.
pub(super) fn parse_index(word: &str) -> Result<Index, String> {
    let mut letters = word.chars();
    let index = letters.next().and_then(Index::new).filter(|_| letters.next().is_none());
    index.ok_or_else(|| {
        format!("`{word}` is not an index: one letter; `einsum` prints that of a name")
    })
}

fn parse_level(word: &str) -> Result<(Index, LevelKind), String> {
    let (letter, word) = word.split_once(':').unwrap_or((word, "compressed"));
    let index = parse_index(letter)?;
    let kind = LevelKind::ALL.into_iter().find(|kind| kind.word() == word);
    let words = || LevelKind::ALL.map(LevelKind::word).join(", ");
    let kind =
        kind.ok_or_else(|| format!("`{word}` is no kind of level; there are {}", words()))?;
    Ok((index, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read_back() {
        for text in ["i j k", "i:dense j", "i j k:singleton l:singleton", "_ i j:singleton", ""] {
            let format: Format = text.parse().unwrap();
            assert_eq!(format.to_string(), text);
            assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
        }
        assert_eq!("i,j".parse::<Format>().unwrap().to_string(), "i j");
        for (text, wrong) in [("ij", "`ij`"), ("i:densely", "`densely`"), (":dense", "``")] {
            let why = text.parse::<Format>().unwrap_err();
            assert!(why.starts_with(wrong), "{why}");
        }
    }

    #[test]
    fn singletons_at_the_end_are_fused_with_the_level_above() {
        let format: Format = "i j k:singleton".parse().unwrap();
        assert_eq!(format.fused(), 2);
        assert_eq!(format, Format::with_fused(format.levels().to_vec(), 2));
        assert_eq!("i:dense j".parse::<Format>().unwrap().fused(), 1);
        assert_eq!(Format::csf(Vec::new()).fused(), 1);
    }
}
