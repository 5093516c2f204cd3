//! Text from files and command lines, made safe to show on a terminal.
//!
//! A label or a file name may hold any character; those that move the cursor, change colours or
//! turn the direction of writing are shown as escapes.

use std::borrow::Cow;

/// Returns `text` with every control character escaped, as `\u{1b}`, line breaks among them.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_control)
}

/// As [`printable`] for text of several lines: line breaks and tabs stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| is_control(letter) && !matches!(letter, '\n' | '\t'))
}

fn escaped(text: &str, refused: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&refused) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if refused(letter) {
            safe.extend(letter.escape_default());
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

/// Tells whether a terminal would obey `letter`: control characters, and those of Unicode that turn
/// the direction of writing.
fn is_control(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_obey_nothing_of_it() {
        assert!(matches!(printable("Łódź, 日本"), Cow::Borrowed("Łódź, 日本")));
        assert_eq!(printable("a\x1b[2Jb\rc\n"), "a\\u{1b}[2Jb\\rc\\n");
        assert_eq!(printable("x\u{202e}cod\u{9b}31m"), "x\\u{202e}cod\\u{9b}31m");
        assert_eq!(printable_lines("a\n\tb\x07"), "a\n\tb\\u{7}");
    }
}
