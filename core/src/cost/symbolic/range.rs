//! What a user says of the sizes: ranges, and relations between sizes.

use std::fmt;
use std::str::FromStr;

use crate::einsum::IndexNames;

/// A size that is an extent, a number of non-zeros or a sparsity, as typed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Size {
    /// The extent of the index with this name.
    Extent(String),
    /// The non-zeros of an operand; of the first sparse one without a name.
    Nonzeros(Option<String>),
    /// Its share of non-zeros.
    Sparsity(Option<String>),
}

/// A range of a size: `i=1000:1000000`, `nnz(B)=10:1e6`, `sparsity=0.001:0.01`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    pub(super) size: Size,
    pub(super) low: f64,
    pub(super) high: f64,
    typed: String,
}

/// A product of a number and sizes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Factors {
    pub(super) count: f64,
    pub(super) sizes: Vec<Size>,
}

/// A relation between sums of products of sizes: `10*j < k`, `nnz(B) <= i*j`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumption {
    pub(super) left: Vec<Factors>,
    pub(super) relation: Relation,
    pub(super) right: Vec<Factors>,
    typed: String,
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

/// How the sides of an assumption relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Below,
    Above,
    AtMost,
    AtLeast,
    Equal,
}

impl Size {
    /// Returns the name of the operand that it is about.
    pub(super) fn operand(&self) -> Option<&str> {
        match self {
            Size::Extent(_) => None,
            Size::Nonzeros(name) | Size::Sparsity(name) => name.as_deref(),
        }
    }

    /// Writes the letter of an index for its name.
    fn lettered(&mut self, names: &IndexNames) {
        if let Size::Extent(name) = self
            && let Some(index) = names.find(name)
        {
            *name = index.to_string();
        }
    }
}

impl Range {
    /// Returns the range with the letter of an index for its name.
    pub fn lettered(mut self, names: &IndexNames) -> Range {
        self.size.lettered(names);
        self
    }
}

impl Assumption {
    /// Returns the relation with the letters of indices for their names.
    pub fn lettered(mut self, names: &IndexNames) -> Assumption {
        let factors = self.left.iter_mut().chain(&mut self.right);
        factors.flat_map(|one| &mut one.sizes).for_each(|size| size.lettered(names));
        self
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let text = text.trim();
        let (word, operand) = match text.split_once('(') {
            Some((word, rest)) => {
                let name = rest.strip_suffix(')').map(str::trim).filter(|name| !name.is_empty());
                let name = name.ok_or_else(|| format!("`{text}` is not closed; write nnz(B)"))?;
                (word.trim(), Some(name.to_owned()))
            }
            None => (text, None),
        };
        let named = word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match (word, &operand) {
            ("nnz", _) => Ok(Size::Nonzeros(operand)),
            ("sparsity", _) => Ok(Size::Sparsity(operand)),
            (_, None) if named => Ok(Size::Extent(word.to_owned())),
            _ => Err(format!("`{text}` is no size; use an index, nnz(B) or sparsity(B)")),
        }
    }
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Range, String> {
        let bad =
            || format!("`{text}` is no range; write it as i=1000:1000000 or sparsity=0.001:0.01");
        let (size, range) = text.split_once('=').ok_or_else(bad)?;
        let size: Size = size.parse()?;
        let (low, high) = range.split_once(':').unwrap_or((range, range));
        let number = |word: &str| word.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        let (low, high) = number(low).zip(number(high)).ok_or_else(bad)?;
        if low > high {
            return Err(format!("`{text}` ends before it begins"));
        }
        let least = if matches!(size, Size::Sparsity(_)) { 0.0 } else { 1.0 };
        let most = if matches!(size, Size::Sparsity(_)) { 1.0 } else { super::domain::MOST };
        if low < least || high > most || high <= 0.0 {
            return Err(format!("`{text}` leaves the range {least}:{most}"));
        }
        Ok(Range { size, low, high, typed: text.to_owned() })
    }
}

impl FromStr for Assumption {
    type Err = String;

    fn from_str(text: &str) -> Result<Assumption, String> {
        let bad = || format!("`{text}` is no assumption; write it as 10*j<k or nnz(B)<=i*j");
        let signs = [
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
            ("==", Relation::Equal),
            ("<", Relation::Below),
            (">", Relation::Above),
            ("=", Relation::Equal),
        ];
        let found =
            signs.iter().find_map(|&(sign, relation)| Some((text.split_once(sign)?, relation)));
        let ((left, right), relation) = found.ok_or_else(bad)?;
        Ok(Assumption { left: sum(left)?, relation, right: sum(right)?, typed: text.to_owned() })
    }
}

fn sum(text: &str) -> Result<Vec<Factors>, String> {
    text.split('+').map(product).collect()
}

fn product(text: &str) -> Result<Factors, String> {
    let mut factors = Factors { count: 1.0, sizes: Vec::new() };
    for word in text.split('*') {
        match word.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => factors.count *= number,
            Ok(_) => return Err(format!("`{}` is no number of zero or more", word.trim())),
            Err(_) => match word.parse()? {
                Size::Sparsity(_) => {
                    return Err("a sparsity has a range only; write sparsity=0.001:0.01".into());
                }
                size => factors.sizes.push(size),
            },
        }
    }
    Ok(factors)
}

#[cfg(test)]
mod tests {
    use super::{Assumption, Range, Relation, Size};

    #[test]
    fn what_users_type_is_read() {
        let range: Range = "sparsity=0.001:0.01".parse().unwrap();
        assert_eq!((range.size, range.low, range.high), (Size::Sparsity(None), 0.001, 0.01));
        let range: Range = "nnz(B)=1e3".parse().unwrap();
        assert_eq!(range.size, Size::Nonzeros(Some("B".into())));
        assert_eq!((range.low, range.high), (1e3, 1e3));
        let assumed: Assumption = "10*j + 2 < k*nnz(B)".parse().unwrap();
        assert_eq!((assumed.left.len(), assumed.relation), (2, Relation::Below));
        assert_eq!(assumed.left[0].count, 10.0);
        assert_eq!(assumed.right[0].sizes.len(), 2);
    }

    #[test]
    fn mistakes_are_named() {
        let range = |text: &str| text.parse::<Range>().unwrap_err();
        assert!(range("i").contains("is no range"));
        assert!(range("i-j=1:2").contains("is no size"));
        assert!(range("i=5:2").contains("ends before"));
        assert!(range("sparsity=0:2").contains("leaves the range"));
        let assumed = |text: &str| text.parse::<Assumption>().unwrap_err();
        assert!(assumed("j").contains("is no assumption"));
        assert!(assumed("j<sparsity").contains("has a range only"));
        assert!(assumed("-1<j").contains("is no number"));
    }
}
