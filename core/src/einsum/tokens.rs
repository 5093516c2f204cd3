//! The words, numbers and signs of a text.

/// One of them, with where it stands in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) begin: usize,
    pub(super) end: usize,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    /// Letters, digits and `_`, of which the first is no digit.
    Word(String),
    /// A decimal number without sign.
    Number(f64),
    /// Any other character.
    Sign(char),
}

/// Cuts `text` into tokens; blanks part them.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((begin, first)) = rest.next() {
        if first.is_whitespace() {
            continue;
        }
        let end = match first {
            _ if first.is_ascii_alphabetic() || first == '_' => {
                begin + length(&text[begin..], |c| c.is_ascii_alphanumeric() || c == '_')
            }
            _ if begins_number(&text[begin..]) => begin + number_length(&text[begin..]),
            _ => begin + first.len_utf8(),
        };
        while rest.next_if(|&(at, _)| at < end).is_some() {}
        let word = &text[begin..end];
        let kind = match word.parse() {
            Ok(number) if begins_number(word) => TokenKind::Number(number),
            _ if first.is_ascii_alphabetic() || first == '_' => TokenKind::Word(word.to_owned()),
            _ => TokenKind::Sign(first),
        };
        found.push(Token { kind, begin, end });
    }
    found
}

/// Tells whether `text` begins with a digit, or with a point before one.
fn begins_number(text: &str) -> bool {
    text.trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit())
        && !text.starts_with("..")
}

/// Returns the bytes at the beginning of `text` that belong to a decimal number.
fn number_length(text: &str) -> usize {
    let digits = |from: usize| from + length(&text[from..], |c| c.is_ascii_digit());
    let mut end = digits(0);
    if text[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if text[end..].starts_with(['e', 'E']) {
        let signed = end + 1 + usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(signed);
        if exponent > signed {
            end = exponent;
        }
    }
    end
}

fn length(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::{TokenKind, tokens};

    #[test]
    fn words_numbers_and_signs() {
        let kinds = |text| tokens(text).into_iter().map(|token| token.kind).collect::<Vec<_>>();
        let word = |text: &str| TokenKind::Word(text.to_owned());
        let (number, sign) = (TokenKind::Number, TokenKind::Sign);
        assert_eq!(kinds("a1(i) "), [word("a1"), sign('('), word("i"), sign(')')]);
        assert_eq!(kinds("2.5e-3*x"), [number(2.5e-3), sign('*'), word("x")]);
        assert_eq!(kinds("1-2e"), [number(1.0), sign('-'), number(2.0), word("e")]);
        assert_eq!(kinds(".5*x"), [number(0.5), sign('*'), word("x")]);
        assert_eq!(kinds("..5"), [sign('.'), number(0.5)]);
        assert_eq!(kinds("é…"), [sign('é'), sign('…')]);
        assert_eq!(tokens(" ab").first().map(|token| (token.begin, token.end)), Some((1, 3)));
    }
}
