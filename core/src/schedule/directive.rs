//! Directives that restructure a nest: `loopfuse` and `reorder` of SparseAuto, section 4.4.
//!
//! ```text
//! loopfuse path={1} loc=2 pol=true         split the product behind factor 2, share what loops both sides have
//! loopfuse path={1} loc=2 pol=true fuse=1  the same, but share one loop at most
//! reorder path={1} order={m,k,n,j}         loop in this order
//! ```
//!
//! A path leads to a linear section: `{}` is the root, `0` goes on to the producer and `1` to the consumer of a branch.
//! With `pol=true` the factors up to `loc` are the producer, otherwise those behind it.

use std::fmt;
use std::str::FromStr;

use crate::einsum::Index;

/// A change of a branched nest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Directive {
    /// Splits the product of a linear section in two, which share the loops that both have first.
    Loopfuse {
        /// Which section.
        path: Vec<usize>,
        /// Behind which factor it is split.
        loc: usize,
        /// Whether the first part is the producer.
        pol: bool,
        /// The most loops that the parts share; `None`: all that they can.
        fuse: Option<usize>,
    },
    /// Reorders the loops of a linear section.
    Reorder {
        /// Which section.
        path: Vec<usize>,
        /// Its loops, outermost first.
        order: Vec<Index>,
    },
}

impl Directive {
    /// Returns the path to its section.
    pub fn path(&self) -> &[usize] {
        match self {
            Directive::Loopfuse { path, .. } | Directive::Reorder { path, .. } => path,
        }
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", items.collect::<Vec<_>>().join(","))
}

impl fmt::Display for Directive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = list(self.path().iter().map(usize::to_string));
        match self {
            Directive::Loopfuse { loc, pol, fuse, .. } => {
                write!(f, "loopfuse path={path} loc={loc} pol={pol}")?;
                fuse.map_or(Ok(()), |most| write!(f, " fuse={most}"))
            }
            Directive::Reorder { order, .. } => {
                write!(f, "reorder path={path} order={}", list(order.iter().map(Index::to_string)))
            }
        }
    }
}

impl FromStr for Directive {
    type Err = String;

    fn from_str(text: &str) -> Result<Directive, String> {
        let (word, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let settings = rest.split_whitespace().map(|word| {
            word.split_once('=').ok_or_else(|| format!("`{word}` is no setting; write loc=2"))
        });
        let settings: Vec<(&str, &str)> = settings.collect::<Result<_, _>>()?;
        let known: &[&str] = match word {
            "loopfuse" => &["path", "loc", "pol", "fuse"],
            "reorder" => &["path", "order"],
            _ => return Err(format!("`{word}` is no directive; use loopfuse or reorder")),
        };
        if let Some((name, _)) = settings.iter().find(|(name, _)| !known.contains(name)) {
            return Err(format!("{word} has no setting `{name}`; it has {}", known.join(", ")));
        }
        let get =
            |name: &str| settings.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let need = |name: &str| get(name).ok_or_else(|| format!("{word} needs {name}"));
        let number = |name: &str, value: &str| {
            value.parse::<usize>().map_err(|_| format!("{name}={value} is no number"))
        };
        let path = items(get("path").unwrap_or("{}"))?.into_iter().map(|side| match side {
            "0" => Ok(0),
            "1" => Ok(1),
            _ => Err(format!(
                "`{side}` is no side; a path goes on to 0, the producer, or 1, the consumer"
            )),
        });
        let path = path.collect::<Result<Vec<usize>, String>>()?;
        if word == "reorder" {
            let index = |name: &str| {
                let mut letters = name.chars();
                let index =
                    letters.next().and_then(Index::new).filter(|_| letters.next().is_none());
                index.ok_or_else(|| format!("`{name}` is no index"))
            };
            let order = items(need("order")?)?.into_iter().map(index).collect::<Result<_, _>>()?;
            return Ok(Directive::Reorder { path, order });
        }
        let pol = match need("pol")? {
            "true" => true,
            "false" => false,
            other => return Err(format!("pol={other} is neither true nor false")),
        };
        let loc = number("loc", need("loc")?)?;
        let fuse = get("fuse").map(|most| number("fuse", most)).transpose()?;
        Ok(Directive::Loopfuse { path, loc, pol, fuse })
    }
}

/// The items of a list in braces.
fn items(text: &str) -> Result<Vec<&str>, String> {
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let inner = inner.ok_or_else(|| format!("`{text}` is no list; write {{1,0}}"))?;
    Ok(inner.split(',').map(str::trim).filter(|item| !item.is_empty()).collect())
}
