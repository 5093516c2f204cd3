//! The two notations of expressions.
//!
//! ```text
//! taco   := access "=" access ("*" access)*        access := name "(" [letter ("," letter)*] ")"
//! einsum := letters ("," letters)* "->" letters    operands are named X, A, B, ...; the result Y
//! ```

use std::str::FromStr;

use crate::einsum::{Access, Expr, Index, IndexSet};
use crate::error::CoreError;

impl FromStr for Expr {
    type Err = CoreError;

    fn from_str(text: &str) -> Result<Expr, CoreError> {
        let expr = if text.contains("->") { einsum(text) } else { taco(text) };
        expr.and_then(check).map_err(|why| CoreError::Expression { text: text.to_owned(), why })
    }
}

fn taco(text: &str) -> Result<Expr, String> {
    let (output, inputs) = text.split_once('=').ok_or("there is no `=` and no `->`")?;
    let inputs = inputs.split('*').map(access).collect::<Result<_, _>>()?;
    Ok(Expr { output: access(output.trim_end_matches('+'))?, inputs })
}

fn access(text: &str) -> Result<Access, String> {
    let text = text.trim();
    let bad = || {
        let word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let sum = text.contains(['+', '-']);
        let remedy = match text.parse::<f64>() {
            Ok(_) => "; scale an operand beforehand",
            Err(_) if word => "; a single number is written with brackets too, as `s()`",
            Err(_) if sum => {
                "; an expression is one product, so compute each term of a sum by itself"
            }
            Err(_) => "",
        };
        format!("`{text}` is not a tensor such as `A(i,r)`{remedy}")
    };
    let (name, rest) = text.split_once('(').ok_or_else(bad)?;
    let list = rest.strip_suffix(')').filter(|list| !list.contains(['(', ')']));
    let list = list.ok_or_else(bad)?;
    let name = name.trim();
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(word) || name.starts_with(|c: char| c.is_ascii_digit())
    {
        return Err(bad());
    }
    let indices = list.split(',').map(str::trim).filter(|word| !word.is_empty()).map(letter);
    Ok(Access { tensor: name.to_owned(), indices: indices.collect::<Result<_, _>>()? })
}

fn letter(word: &str) -> Result<Index, String> {
    let mut chars = word.chars();
    match (chars.next().and_then(Index::named), chars.next()) {
        (Some(index), None) => Ok(index),
        _ if word == "_" => {
            Err("`_` is no index: it stands for the blocks of a stored tensor".into())
        }
        _ => Err(format!("`{word}` is not an index: indices are single letters")),
    }
}

fn einsum(text: &str) -> Result<Expr, String> {
    let (inputs, output) = text.split_once("->").ok_or("there is no `->`")?;
    let names = ["X", "A", "B", "C", "D", "E", "F", "G", "H"];
    let one = |name: &str, letters: &str| -> Result<Access, String> {
        let letters = letters.chars().filter(|c| !c.is_whitespace());
        let indices = letters.map(|c| letter(&c.to_string())).collect::<Result<_, _>>()?;
        Ok(Access { tensor: name.to_owned(), indices })
    };
    let inputs = inputs.split(',').enumerate().map(|(position, letters)| {
        let name = names.get(position).map_or_else(|| format!("A{position}"), |n| (*n).to_owned());
        one(&name, letters)
    });
    Ok(Expr { output: one("Y", output)?, inputs: inputs.collect::<Result<_, _>>()? })
}

fn check(expr: Expr) -> Result<Expr, String> {
    for access in expr.inputs.iter().chain([&expr.output]) {
        if access.set().len() != access.indices.len() {
            return Err(format!("{access} repeats an index: take the diagonal beforehand"));
        }
    }
    let inputs = expr.inputs.iter().fold(IndexSet::EMPTY, |set, access| set | access.set());
    let unbound = expr.output.set() - inputs;
    if !unbound.is_empty() {
        return Err(format!("index `{unbound}` of the output stands in no operand"));
    }
    Ok(expr)
}

#[cfg(test)]
mod tests {
    use super::Expr;

    #[test]
    fn both_notations_say_the_same() {
        let taco: Expr = "Y(i,r) = X(i,j,k) * A(j,r)*B( k , r )".parse().unwrap();
        let einsum: Expr = "ijk, jr, kr -> ir".parse().unwrap();
        assert_eq!(taco, einsum);
        assert_eq!(taco.to_string(), "Y(i,r) = X(i,j,k) * A(j,r) * B(k,r)");
        assert_eq!(taco.to_string().parse::<Expr>().unwrap(), taco);
    }

    #[test]
    fn scalars_are_tensors_without_indices() {
        let dot: Expr = "s() = x(i) * y(i)".parse().unwrap();
        assert!(dot.output.indices.is_empty());
        assert_eq!("i,i->".parse::<Expr>().unwrap().output.indices, []);
    }

    #[test]
    fn mistakes_are_quoted() {
        let cases = [
            ("A(i,r)", "no `=`"),
            ("A(i = X(i)", "`A(i` is not a tensor"),
            ("A(i) = X(i,i)", "X(i,i) repeats an index"),
            ("A(i,q) = X(i,j)", "index `q` of the output"),
            ("A(ii) = X(ii,j)", "`ii` is not an index"),
            ("A(i) = 3*X(i)", "`3` is not a tensor such as `A(i,r)`; scale an operand"),
            (
                "s = X(i)",
                "`s` is not a tensor such as `A(i,r)`; a single number is written with brackets",
            ),
            ("A(i) = X(i) + Y(i)", "one product, so compute each term of a sum by itself"),
            ("A(i) = X(i,_)", "`_` is no index"),
            ("i_->i", "`_` is no index"),
            ("i1->i", "`1` is not an index"),
        ];
        for (text, message) in cases {
            let error = text.parse::<Expr>().unwrap_err().to_string();
            assert!(error.contains(message) && error.contains(text), "{text}: {error}");
        }
    }
}
