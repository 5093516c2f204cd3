//! The two notations of assignments.
//!
//! ```text
//! taco    := access "=" sum | access "=" function "(" sum ")"
//! sum     := ["-"] product (("+" | "-") product)*
//! product := factor ("*" factor)*                  factor := number | access
//! access  := name ["(" [index ("," index)*] ")"]   without brackets: a single number
//! einsum  := letters ("," letters)* "->" letters   operands are named X, A, B, ...; the result Y
//! ```

use std::str::FromStr;

use crate::einsum::tokens::{Token, TokenKind, tokens};
use crate::einsum::{Access, Assignment, Expr, Function, Index, IndexNames, IndexSet, Summand};
use crate::error::CoreError;

impl FromStr for Expr {
    type Err = CoreError;

    /// Reads one product of tensors.
    fn from_str(text: &str) -> Result<Expr, CoreError> {
        let assignment: Assignment = text.parse()?;
        let why = "it is not a single product of tensors without factors, functions and diagonals";
        let error = || CoreError::Expression { text: text.to_owned(), why: why.to_owned() };
        assignment.into_product().ok_or_else(error)
    }
}

impl FromStr for Assignment {
    type Err = CoreError;

    fn from_str(text: &str) -> Result<Assignment, CoreError> {
        let read = if text.contains("->") { einsum(text) } else { taco(text) };
        read.and_then(check).map_err(|why| CoreError::Expression { text: text.to_owned(), why })
    }
}

fn taco(text: &str) -> Result<Assignment, String> {
    if text.contains("...") {
        return Err(ellipsis());
    }
    let (output, sum) = text.split_once('=').ok_or("there is no `=` and no `->`")?;
    let output = output.trim_end_matches('+');
    let mut letters = Letters::of(text);
    let output = {
        let mut reader = Reader::new(output);
        let access = reader.access(&mut letters)?;
        reader.end()?;
        access
    };
    let mut reader = Reader::new(sum);
    let function = reader.function();
    let summands = reader.sum(&mut letters)?;
    if function.is_some() {
        reader.expect(')')?;
    }
    reader.end()?;
    Ok(Assignment { output, summands, function, names: letters.names })
}

fn ellipsis() -> String {
    "`...` stands for indices without a name; name each index".into()
}

fn einsum(text: &str) -> Result<Assignment, String> {
    if text.contains("...") {
        return Err(ellipsis());
    }
    let (inputs, output) = text.split_once("->").ok_or("there is no `->`")?;
    let names = ["X", "A", "B", "C", "D", "E", "F", "G", "H"];
    let one = |name: &str, letters: &str| -> Result<Access, String> {
        let letters = letters.chars().filter(|c| !c.is_whitespace());
        let indices = letters.map(letter).collect::<Result<_, _>>()?;
        Ok(Access { tensor: name.to_owned(), indices })
    };
    let inputs = inputs.split(',').enumerate().map(|(position, letters)| {
        let name = names.get(position).map_or_else(|| format!("A{position}"), |n| (*n).to_owned());
        one(&name, letters)
    });
    let inputs = inputs.collect::<Result<_, _>>()?;
    Ok(Expr { output: one("Y", output)?, inputs }.into())
}

fn letter(c: char) -> Result<Index, String> {
    match c {
        '_' => Err(blocks()),
        _ => Index::named(c).ok_or_else(|| {
            format!("`{c}` is not an index: indices of einsum notation are single letters")
        }),
    }
}

fn blocks() -> String {
    "`_` is no index: it stands for the blocks of a stored tensor".into()
}

/// The letters that indices have.
struct Letters {
    names: IndexNames,
    /// Letters of no name yet, the last first.
    free: Vec<Index>,
}

impl Letters {
    /// Leaves the letters that stand alone in `text` to the indices of that name.
    fn of(text: &str) -> Letters {
        let taken: Vec<String> = tokens(text)
            .into_iter()
            .filter_map(|token| match token.kind {
                TokenKind::Word(word) => Some(word),
                TokenKind::Number(_) | TokenKind::Sign(_) => None,
            })
            .collect();
        let letters = ('a'..='z').chain('A'..='Z').rev();
        let free = letters.filter(|letter| !taken.contains(&letter.to_string()));
        Letters { names: IndexNames::default(), free: free.filter_map(Index::named).collect() }
    }

    fn index(&mut self, name: &str) -> Result<Index, String> {
        if name == "_" {
            return Err(blocks());
        }
        if let Some(index) = self.names.find(name) {
            return Ok(index);
        }
        let index = self.free.pop().ok_or("there are more than 52 indices")?;
        self.names.add(index, name);
        Ok(index)
    }
}

/// Reads a text token by token.
struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// The next one.
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        Reader { text, tokens: tokens(text), at: 0 }
    }

    fn next(&self) -> Option<&TokenKind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn takes(&mut self, sign: char) -> bool {
        let found = self.next() == Some(&TokenKind::Sign(sign));
        self.at += usize::from(found);
        found
    }

    /// Returns the text from token `begin` up to the next one, that included.
    fn quoted(&self, begin: usize) -> &'a str {
        let end = self.tokens.get(self.at).or(self.tokens.last()).map_or(0, |token| token.end);
        let begin = self.tokens.get(begin).map_or(end, |token| token.begin);
        self.text[begin..end].trim()
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        match self.takes(sign) {
            true => Ok(()),
            false => Err(format!("`{sign}` is missing after `{}`", self.text.trim())),
        }
    }

    fn end(&self) -> Result<(), String> {
        match self.tokens.get(self.at) {
            None => Ok(()),
            Some(Token { kind: TokenKind::Sign('/'), .. }) => {
                Err("there is no division; give the inverse as an operand".into())
            }
            Some(token) => {
                let rest = self.text[token.begin..].trim();
                Err(format!("`{rest}` follows where `*`, `+`, `-` or the end is expected"))
            }
        }
    }

    /// Reads the name of a function, if that of a tensor with these indices is not meant, and its bracket.
    fn function(&mut self) -> Option<Function> {
        let Some(TokenKind::Word(word)) = self.next() else { return None };
        let function = Function::named(word)?;
        let inside = self.tokens.get(self.at + 1..)?;
        let (open, inside) = inside.split_first()?;
        // Indices alone up to the bracket that closes are those of a tensor of this name.
        let index =
            |token: &&Token| matches!(token.kind, TokenKind::Word(_) | TokenKind::Sign(','));
        let after = inside.iter().find(|token| !index(token)).map(|token| &token.kind);
        let is_call = open.kind == TokenKind::Sign('(') && after != Some(&TokenKind::Sign(')'));
        self.at += if is_call { 2 } else { 0 };
        is_call.then_some(function)
    }

    fn sum(&mut self, letters: &mut Letters) -> Result<Vec<Summand>, String> {
        let mut sign = if self.takes('-') { -1.0 } else { 1.0 };
        let mut summands = Vec::new();
        loop {
            summands.push(self.product(sign, letters)?);
            sign = match (self.takes('+'), self.takes('-')) {
                (false, false) => return Ok(summands),
                (_, minus) => {
                    if minus {
                        -1.0
                    } else {
                        1.0
                    }
                }
            };
        }
    }

    fn product(&mut self, sign: f64, letters: &mut Letters) -> Result<Summand, String> {
        let begin = self.at;
        let mut summand = Summand { factor: sign, inputs: Vec::new() };
        loop {
            match self.next() {
                Some(&TokenKind::Number(number)) => {
                    summand.factor *= number;
                    self.at += 1;
                }
                _ => summand.inputs.push(self.access(letters)?),
            }
            if !self.takes('*') {
                break;
            }
        }
        if summand.inputs.is_empty() {
            self.at -= 1;
            let term = self.quoted(begin);
            return Err(format!("the term `{term}` has no tensor"));
        }
        if !summand.factor.is_finite() {
            return Err("a factor is too large for a number of double precision".into());
        }
        Ok(summand)
    }

    fn access(&mut self, letters: &mut Letters) -> Result<Access, String> {
        let begin = self.at;
        let bad = |reader: &Reader<'_>| {
            format!("`{}` is not a tensor such as `A(i,r)`", reader.quoted(begin))
        };
        let Some(TokenKind::Word(name)) = self.next().cloned() else { return Err(bad(self)) };
        if name == "_" {
            return Err(bad(self));
        }
        self.at += 1;
        let mut access = Access { tensor: name, indices: Vec::new() };
        if !self.takes('(') || self.takes(')') {
            return Ok(access);
        }
        loop {
            let Some(TokenKind::Word(index)) = self.next().cloned() else { return Err(bad(self)) };
            access.indices.push(letters.index(&index)?);
            self.at += 1;
            if self.takes(')') {
                return Ok(access);
            }
            if !self.takes(',') {
                return Err(bad(self));
            }
        }
    }
}

fn check(assignment: Assignment) -> Result<Assignment, String> {
    let names = |set: IndexSet| -> String {
        set.iter().map(|index| assignment.names.of(index)).collect::<Vec<_>>().join(",")
    };
    let output = &assignment.output;
    if output.set().len() != output.indices.len() {
        let output = assignment.named(output);
        return Err(format!("the result {output} repeats an index; only operands may"));
    }
    if assignment.inputs().any(|access| access.tensor == output.tensor) {
        let name = &output.tensor;
        return Err(format!("{name} is the result and an operand; give the result another name"));
    }
    for (at, summand) in assignment.summands.iter().enumerate() {
        let own = summand.inputs.iter().fold(IndexSet::EMPTY, |set, access| set | access.set());
        let lacks = output.set() - own;
        if !lacks.is_empty() {
            let lacks = names(lacks);
            return Err(match assignment.summands.len() {
                1 => format!("index `{lacks}` of the output stands in no operand"),
                _ => format!(
                    "term {} lacks index `{lacks}` of the output, which every term must have",
                    at + 1
                ),
            });
        }
    }
    Ok(assignment)
}

#[cfg(test)]
mod tests {
    use crate::einsum::{Assignment, Expr, Function};

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
        let dot: Expr = "s = x(i) * y(i)".parse().unwrap();
        assert_eq!(dot, "s() = x(i) * y(i)".parse().unwrap());
        assert!(dot.output.indices.is_empty());
        assert_eq!("i,i->".parse::<Expr>().unwrap().output.indices, []);
    }

    #[test]
    fn sums_factors_functions_and_names_are_printed_as_read() {
        let texts = [
            "Z(i,k) = X(i,j) * Y(j,k) + 2 * W(i,k)",
            "Z(i) = -X(i,i) - 0.5 * a() * Y(i)",
            "Z(row,col) = relu(X(row,k1) * Y(k1,col) - b(col) * e(row))",
            "exp(i) = exp(X(i,j) * v(j))",
            "Z(i) = exp(i) * log(i)",
        ];
        for text in texts {
            let read: Assignment = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
            assert_eq!(read.to_string().parse::<Assignment>().unwrap(), read);
        }
        let scaled: Assignment = "z = 2 * x(i) * 3e-1 * y(i) - s".parse().unwrap();
        assert_eq!(scaled.summands[0].factor, 0.6);
        assert_eq!(scaled.summands[1].factor, -1.0);
        let relu: Assignment = "z(i) = relu(s() * x(i))".parse().unwrap();
        assert_eq!(relu.function, Some(Function::Relu));
    }

    #[test]
    fn long_names_take_letters_that_are_free() {
        let read: Assignment = "Z(row,a) = X(row,b,col) * Y(col,a)".parse().unwrap();
        assert_eq!(read.product(0).to_string(), "Z(c,a) = X(c,b,d) * Y(d,a)");
        let names: Vec<String> =
            read.names.iter().map(|(index, name)| format!("{index}={name}")).collect();
        assert_eq!(names, ["c=row", "d=col"]);
    }

    #[test]
    fn a_repeated_index_is_left_once() {
        let trace: Assignment = "ii->".parse().unwrap();
        assert_eq!(trace.product(0).to_string(), "Y() = X(i)");
        assert_eq!(trace.summands[0].inputs[0].diagonal(), [0, 0]);
        let mixed: Assignment = "Z(i,j) = X(i,j,i,k)".parse().unwrap();
        assert_eq!(mixed.product(0).to_string(), "Z(i,j) = X(i,j,k)");
        assert_eq!(mixed.summands[0].inputs[0].diagonal(), [0, 1, 0, 2]);
    }

    #[test]
    fn mistakes_are_quoted() {
        let cases = [
            ("A(i,r)", "no `=`"),
            ("A(i = X(i)", "`A(i` is not a tensor"),
            ("A(i,i) = X(i)", "A(i,i) repeats an index; only operands may"),
            ("A(i,q) = X(i,j)", "index `q` of the output"),
            ("A(i,q) = X(i,q) + Y(i)", "term 2 lacks index `q`"),
            ("A(i) = X(i) + 3", "the term `3` has no tensor"),
            ("A(i) = X(i) Y(i)", "`Y(i)` follows where"),
            ("A(i) = X(i) / Y(i)", "there is no division"),
            ("A(i) = relu(X(i) * 2", "`)` is missing"),
            ("A(i) = X(i,2)", "`X(i,2` is not a tensor"),
            ("A(i) = X(i) *", "is not a tensor"),
            ("A(i) = 1e999 * X(i)", "too large"),
            ("A(i) = A(i) * X(i)", "A is the result and an operand"),
            ("A(i) = X(i,_)", "`_` is no index"),
            ("A(i) = X(i,...)", "`...` stands for indices without a name"),
            ("i...->i", "`...` stands for indices without a name"),
            ("i_->i", "`_` is no index"),
            ("i1->i", "`1` is not an index"),
        ];
        for (text, message) in cases {
            let error = text.parse::<Assignment>().unwrap_err().to_string();
            assert!(error.contains(message) && error.contains(text), "{text}: {error}");
        }
        for text in ["A(i) = 3*X(i)", "A(i) = X(i) + Y(i)", "ii->i", "A(i) = exp(X(i) * s())"] {
            let error = text.parse::<Expr>().unwrap_err().to_string();
            assert!(error.contains("not a single product"), "{text}: {error}");
        }
    }
}
