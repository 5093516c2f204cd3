//! A study file as text: every entry knows its line, so that every mistake is shown where it stands.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::failure::Failure;

/// The text of a study and its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
}

/// A table of the file, whose entries are taken one by one; what is left is refused.
pub(crate) struct Section<'a> {
    source: Source<'a>,
    /// How messages call it: `[tensors.x]`.
    pub(crate) name: String,
    at: Range<usize>,
    /// In the order of the file.
    entries: Vec<Entry<'a>>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    source: Source<'a>,
    pub(crate) key: String,
    at: Range<usize>,
    value: &'a DeValue<'a>,
}

impl<'a> Source<'a> {
    /// Parses the file.
    ///
    /// # Errors
    ///
    /// Text that is not TOML, with its line.
    pub(crate) fn parse(&self) -> Result<Spanned<DeTable<'a>>, Failure> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            self.fault(&at, error.message().trim_end())
                .help("a study is a TOML file: https://toml.io says what that is")
        })
    }

    /// Returns the file as a section.
    pub(crate) fn section(&self, table: &'a Spanned<DeTable<'a>>) -> Section<'a> {
        Section::new(*self, "the study".to_owned(), table.span(), table.get_ref())
    }

    /// Returns a failure that names the line of a byte range and shows it.
    pub(crate) fn fault(&self, at: &Range<usize>, what: impl AsRef<str>) -> Failure {
        let start = at.start.min(self.text.len());
        let number = 1 + self.text.as_bytes()[..start].iter().filter(|&&b| b == b'\n').count();
        let line = self.text.lines().nth(number - 1).unwrap_or_default();
        let message = format!("{}:{number}: {}", self.path.display(), what.as_ref());
        Failure::in_line(message, number as u64, line)
    }
}

impl<'a> Section<'a> {
    fn new(source: Source<'a>, name: String, at: Range<usize>, table: &'a DeTable<'a>) -> Self {
        let entry = |(key, value): (&Spanned<_>, &'a Spanned<DeValue<'a>>)| Entry {
            source,
            key: <_ as AsRef<str>>::as_ref(key.get_ref()).to_owned(),
            at: key.span(),
            value: value.get_ref(),
        };
        let mut entries: Vec<Entry<'a>> = table.iter().map(entry).collect();
        entries.sort_by_key(|entry| entry.at.start);
        Section { source, name, at, entries }
    }

    /// Takes the entry of `key` out.
    pub(crate) fn take(&mut self, key: &str) -> Option<Entry<'a>> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }

    /// Takes the entry of `key` out, which must be there; `what` says what it is.
    ///
    /// # Errors
    ///
    /// If it is missing.
    pub(crate) fn need(&mut self, key: &str, what: &str) -> Result<Entry<'a>, Failure> {
        let found = self.take(key);
        found.ok_or_else(|| {
            self.fault(format!("{} has no key `{key}`", self.name))
                .help(format!("`{key}` is {what}"))
        })
    }

    /// Takes all entries that are left, in the order of the file.
    pub(crate) fn rest(&mut self) -> Vec<Entry<'a>> {
        std::mem::take(&mut self.entries)
    }

    /// Refuses entries that nobody took; `known` are the keys there are.
    ///
    /// # Errors
    ///
    /// The first such entry.
    pub(crate) fn finish(self, known: &[&str]) -> Result<(), Failure> {
        match self.entries.first() {
            None => Ok(()),
            Some(entry) => {
                let what = format!("{} has no key `{}`", self.name, entry.key);
                let near = nearest(&entry.key, known.iter().copied());
                let near = near.map(|key| format!("did you mean `{key}`? ")).unwrap_or_default();
                let help = format!("{near}the keys are {}", known.join(", "));
                Err(self.source.fault(&entry.at, what).help(help))
            }
        }
    }

    /// Returns a failure that names the line where the section begins.
    pub(crate) fn fault(&self, what: impl AsRef<str>) -> Failure {
        self.source.fault(&self.at, what)
    }
}

impl<'a> Entry<'a> {
    /// Returns a failure that names key and line.
    pub(crate) fn fault(&self, what: impl AsRef<str>) -> Failure {
        self.source.fault(&self.at, format!("`{}`: {}", self.key, what.as_ref()))
    }

    /// Returns a failure that also says which value was found.
    fn wrong(&self, wanted: &str) -> Failure {
        let kind = self.value.type_str();
        let found = match scalar(self.value) {
            Some(word) => format!("`{word}` is {} {kind}", article(kind)),
            None => format!("it is {} {kind}", article(kind)),
        };
        self.fault(format!("{found}, not {wanted}"))
    }

    /// Returns the text.
    ///
    /// # Errors
    ///
    /// Another type.
    pub(crate) fn text(&self) -> Result<String, Failure> {
        let text = self.value.as_str().map(str::to_owned);
        text.ok_or_else(|| self.wrong("text").help("put it between quotes: \"...\""))
    }

    /// Returns an integer from 0 on.
    ///
    /// # Errors
    ///
    /// Another type, or less than 0.
    pub(crate) fn count(&self) -> Result<u64, Failure> {
        let number = self.value.as_integer();
        let number = number.filter(|number| number.radix() == 10);
        let number = number.and_then(|number| number.as_str().parse().ok());
        number.ok_or_else(|| self.wrong("an integer from 0 on").help("write a plain integer: 3"))
    }

    /// Returns a switch.
    ///
    /// # Errors
    ///
    /// Another type.
    pub(crate) fn switch(&self) -> Result<bool, Failure> {
        let switch = self.value.as_bool();
        switch.ok_or_else(|| self.wrong("true or false").help("write true or false, unquoted"))
    }

    /// Returns a value as an option takes it: one word, the words of a list joined by commas, or a switch.
    ///
    /// # Errors
    ///
    /// A table, or a list of anything but words.
    pub(crate) fn setting(&self) -> Result<Setting, Failure> {
        match self.value {
            DeValue::Boolean(on) => Ok(Setting::Switch(*on)),
            DeValue::Array(_) => Ok(Setting::Word(self.words()?.join(","))),
            value => match scalar(value) {
                Some(word) => Ok(Setting::Word(word)),
                None => Err(self.wrong("a number, text, list or switch")),
            },
        }
    }

    /// Returns the words of a list.
    ///
    /// # Errors
    ///
    /// No list, or one of anything but words.
    pub(crate) fn words(&self) -> Result<Vec<String>, Failure> {
        let items = self.items()?;
        let word = |setting| match setting {
            Setting::Word(word) => Ok(word),
            Setting::Switch(_) => Err(self.fault("a switch stands among words")),
        };
        items.into_iter().map(word).collect()
    }

    /// Returns the elements of a list of words or switches.
    ///
    /// # Errors
    ///
    /// No list, an empty one, or one with a list or table in it.
    pub(crate) fn items(&self) -> Result<Vec<Setting>, Failure> {
        let list = self.value.as_array();
        let list = list.ok_or_else(|| self.wrong("a list").help("write [1, 2, 3]"))?;
        if list.is_empty() {
            return Err(self.fault("the list is empty").help("give one value or more"));
        }
        let item = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
            DeValue::Boolean(on) => Ok(Setting::Switch(*on)),
            value => scalar(value).map(Setting::Word).ok_or_else(|| {
                self.fault("the list holds a list or a table")
                    .help("write a list of a value as text: [\"2,2,2\", \"4,4,4\"]")
            }),
        };
        list.iter().map(item).collect()
    }

    /// Tells whether the value is a list.
    pub(crate) fn is_list(&self) -> bool {
        self.value.is_array()
    }

    /// Returns the value as a section called `name`.
    ///
    /// # Errors
    ///
    /// No table.
    pub(crate) fn section(&self, name: String) -> Result<Section<'a>, Failure> {
        match self.value {
            DeValue::Table(table) => Ok(Section::new(self.source, name, self.at.clone(), table)),
            _ => Err(self.wrong("a table").help(format!("write a table: {name}"))),
        }
    }

    /// Returns the tables of a list of tables, each called `name`.
    ///
    /// # Errors
    ///
    /// No list of tables.
    pub(crate) fn sections(&self, name: &str) -> Result<Vec<Section<'a>>, Failure> {
        let wrong =
            || self.wrong("a list of tables").help(format!("begin each with a line {name}"));
        let list = self.value.as_array().ok_or_else(wrong)?;
        let table = |item: &'a Spanned<DeValue<'a>>| match item.get_ref() {
            DeValue::Table(table) => {
                Ok(Section::new(self.source, name.to_owned(), item.span(), table))
            }
            _ => Err(wrong()),
        };
        list.iter().map(table).collect()
    }
}

/// A value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// What is typed after `=`.
    Word(String),
    /// Whether an option without a value is given.
    Switch(bool),
}

/// Returns a number or text as a word.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(on) => Some(on.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// Returns the word of `known` that is spelled most like `word`, if one is at all.
pub(crate) fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let distances = known.map(|other| (distance(word, other), other));
    let (distance, other) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + word.len() / 4).then_some(other)
}

/// Returns how many letters are to be inserted, left out or replaced to make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = replaced.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
