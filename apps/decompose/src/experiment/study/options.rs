//! The options of a command as a study names them: those of its command line, which says what there is.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, CommandFactory};

use crate::cli::{Cli, TaskArgs};
use crate::experiment::study::source::{Entry, Setting, nearest};
use crate::failure::Failure;

/// Options that a study decides itself, and how it does.
const OWN: &[(&str, &str)] = &[
    ("out", "every run has a folder of its own in that of the study"),
    ("overwrite", "every run has a folder of its own in that of the study"),
    ("resume", "`decompose experiment run --resume` goes on with a study"),
    ("checkpoint-every", "`decompose experiment run --resume` goes on with a study"),
    ("nowrite", "the report is made of what the runs write"),
    ("explain", "the report is made of what the runs write"),
    ("quiet", "what a run says is in its log.txt"),
    ("json", "what a run says is in its log.txt"),
    ("tensor", "name tensors with `tensors`, and other operands in [runs.operands]"),
    ("like", "name tensors with `tensors`"),
    ("labels", "it belongs to a tensor: write it below [tensors.NAME]"),
    ("info", "it computes nothing"),
    ("round", "it decomposes no tensor"),
    ("help", "it computes nothing"),
    ("version", "it computes nothing"),
    ("cache-size", "it belongs to `decompose experiment`"),
];

/// The options of one command.
pub(crate) struct Catalogue {
    command: clap::Command,
}

/// An option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its first name.
    pub(crate) long: String,
    takes: Takes,
}

/// What stands behind an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    Value,
    /// A value, or nothing.
    Either,
}

/// Options with their values, in the order of the file.
pub(crate) type Settings = Vec<(String, Setting)>;

impl Catalogue {
    /// Returns the options of `command`; `None` if there is no such command.
    pub(crate) fn of(command: &str) -> Option<Catalogue> {
        let mut cli = Cli::command();
        cli.build();
        Some(Catalogue { command: cli.find_subcommand(command)?.clone() })
    }

    /// Returns the option of the name that an entry has.
    ///
    /// # Errors
    ///
    /// One that there is not, or that the study decides.
    pub(crate) fn find(&self, key: &str, entry: &Entry<'_>) -> Result<Known, Failure> {
        let command = self.command.get_name();
        if let Some((_, why)) = OWN.iter().find(|(own, _)| *own == key) {
            return Err(entry.fault(format!("a study does not take --{key}")).help(*why));
        }
        let shown = || self.command.get_arguments().filter(|arg| !arg.is_hide_set());
        let found = shown().find(|arg| names(arg).any(|name| name == key));
        let unknown = || {
            let all: Vec<&str> = shown().filter_map(Arg::get_long).filter(|l| !is_own(l)).collect();
            let near = nearest(key, all.iter().copied());
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the options are {}", all.join(", ")),
            };
            entry.fault(format!("`decompose {command}` has no option --{key}")).help(help)
        };
        let (arg, long) = found.and_then(|arg| Some((arg, arg.get_long()?))).ok_or_else(unknown)?;
        let least = arg.get_num_args().map_or(1, |count| count.min_values());
        let takes = match arg.get_action() {
            ArgAction::SetTrue => Takes::Nothing,
            _ if least == 0 => Takes::Either,
            _ => Takes::Value,
        };
        Ok(Known { long: long.to_owned(), takes })
    }

    /// Tells whether there is an option `long`.
    pub(crate) fn has(&self, long: &str) -> bool {
        self.command.get_arguments().any(|arg| arg.get_long() == Some(long))
    }
}

fn is_own(long: &str) -> bool {
    OWN.iter().any(|(own, _)| *own == long)
}

fn names(arg: &Arg) -> impl Iterator<Item = &str> {
    arg.get_long().into_iter().chain(arg.get_all_aliases().unwrap_or_default())
}

/// Checks that a value is of the kind that an option takes.
///
/// # Errors
///
/// A switch for a value, or a value for a switch.
pub(crate) fn check_kind(
    known: &Known,
    setting: &Setting,
    entry: &Entry<'_>,
) -> Result<(), Failure> {
    match (setting, known.takes) {
        (Setting::Word(word), Takes::Nothing) => {
            let why = format!("--{} takes no value, but `{word}` is given", known.long);
            Err(entry.fault(why).help("write true or false"))
        }
        (Setting::Switch(on), Takes::Value) => {
            let why = format!("--{} takes a value, but {on} is given", known.long);
            Err(entry.fault(why).help("`decompose COMMAND --help` tells which"))
        }
        _ => Ok(()),
    }
}

/// Returns options as they are typed.
pub(crate) fn words(settings: &[(String, Setting)]) -> Vec<String> {
    let word = |(long, setting): &(String, Setting)| match setting {
        Setting::Word(word) => Some(format!("--{long}={word}")),
        Setting::Switch(true) => Some(format!("--{long}")),
        Setting::Switch(false) => None,
    };
    settings.iter().filter_map(word).collect()
}

/// Checks the words of a command line, without the name of the program.
///
/// # Errors
///
/// What the command says of them before it reads a tensor, at the entry of the option that it names, or at `place`.
pub(crate) fn check(
    words: &[String],
    entries: &[(String, Entry<'_>)],
    place: &Entry<'_>,
) -> Result<(), Failure> {
    let error = match TaskArgs::parse(words) {
        Ok(None) => return Ok(()),
        Ok(Some(args)) => {
            return args.check().map_err(|failure| {
                let named = entries.iter().find(|(option, _)| names_option(&failure, option));
                let fault = named.map_or(place, |(_, entry)| entry).fault(failure.message());
                match failure.remedy() {
                    Some(help) => fault.help(help),
                    None => fault,
                }
            });
        }
        Err(error) => error,
    };
    let named = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(arg)) => Some(arg.as_str()),
        Some(ContextValue::Strings(args)) => args.first().map(String::as_str),
        _ => None,
    };
    let long = named.and_then(|arg| arg.strip_prefix("--")?.split([' ', '=']).next());
    let entry = entries.iter().find(|(option, _)| Some(option.as_str()) == long);
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first).split_whitespace();
    let what = first.collect::<Vec<_>>().join(" ");
    let help = match error.kind() {
        ErrorKind::ArgumentConflict => "leave one of them out",
        _ => "`decompose COMMAND --help` says what its options take",
    };
    Err(entry.map_or(place, |(_, entry)| entry).fault(what).help(help))
}

/// Tells whether a failure is about an option.
fn names_option(failure: &Failure, long: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let mut words = failure.message().split(|letter: char| !is_name(letter));
    words.any(|word| word.strip_prefix("--") == Some(long))
}
