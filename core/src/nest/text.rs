//! Forests as text, and back.

use std::fmt;
use std::str::FromStr;

use crate::einsum::Index;
use crate::error::CoreError;
use crate::nest::{Forest, Node};

impl fmt::Display for Forest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nodes(&self.roots, f)
    }
}

fn write_nodes(nodes: &[Node], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (position, node) in nodes.iter().enumerate() {
        if position > 0 {
            f.write_str(" ")?;
        }
        match node {
            Node::Term(term) => write!(f, "T{}", term + 1)?,
            Node::Loop { index, body } => {
                write!(f, "{index}{{ ")?;
                write_nodes(body, f)?;
                f.write_str(" }")?;
            }
        }
    }
    Ok(())
}

impl FromStr for Forest {
    type Err = CoreError;

    fn from_str(text: &str) -> Result<Forest, CoreError> {
        let spaced = text.replace('{', " { ").replace('}', " } ");
        let mut words = spaced.split_whitespace();
        let parsed = parse_nodes(&mut words, Depth(0));
        let parsed = parsed.map_err(|why| CoreError::Nest { text: text.to_owned(), why });
        Ok(Forest { roots: parsed? })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Depth(usize);

fn parse_nodes<'a>(
    words: &mut impl Iterator<Item = &'a str>,
    depth: Depth,
) -> Result<Vec<Node>, String> {
    let mut nodes = Vec::new();
    while let Some(word) = words.next() {
        if word == "}" {
            let closed = if depth == Depth(0) { Err("`}` without `{`".into()) } else { Ok(nodes) };
            return closed;
        }
        if let Some(number) = word.strip_prefix('T').and_then(|n| n.parse::<usize>().ok()) {
            let term = number.checked_sub(1).ok_or("terms count from T1")?;
            nodes.push(Node::Term(term));
            continue;
        }
        let mut letters = word.chars();
        let index = letters.next().and_then(Index::new).filter(|_| letters.next().is_none());
        let index = index.ok_or_else(|| format!("`{word}` is neither a loop nor a term"))?;
        if words.next() != Some("{") {
            return Err(format!("loop `{word}` needs a body in braces"));
        }
        nodes.push(Node::Loop { index, body: parse_nodes(words, Depth(depth.0 + 1))? });
    }
    if depth == Depth(0) { Ok(nodes) } else { Err("a `{` is not closed".into()) }
}

#[cfg(test)]
mod tests {
    use crate::nest::Forest;

    #[test]
    fn text_comes_back() {
        for text in ["T1", "i{ j{ k{ r{ T1 } } r{ T2 } } }", "i{ T1 } j{ T2 T3 }"] {
            assert_eq!(text.parse::<Forest>().unwrap().to_string(), text);
        }
        assert_eq!("i{j{T1}}".parse::<Forest>().unwrap().to_string(), "i{ j{ T1 } }");
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [("i{ T1", "not closed"), ("T1 }", "without"), ("i T1", "needs a body")];
        let more = [("ij{ T1 }", "`ij` is neither"), ("T0", "count from T1")];
        for (text, message) in cases.into_iter().chain(more) {
            let error = text.parse::<Forest>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
