//! The tensors of a study: files, or recipes of `decompose generate`.

use std::path::{Path, PathBuf};

use crate::experiment::study::from_folder;
use crate::experiment::study::options::{Catalogue, Settings, check, check_kind, words};
use crate::experiment::study::source::{Entry, Setting};
use crate::failure::Failure;
use crate::labels::LabelPlace;

/// A tensor.
#[derive(Clone, Debug)]
pub(crate) struct TensorSpec {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    /// Where its labels are, if they do not lie beside it.
    pub(crate) labels: Vec<LabelPlace>,
}

/// Where a tensor comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file.
    File(PathBuf),
    /// What is typed after `decompose generate`, but the file.
    Recipe(Vec<String>),
}

/// Options of `generate` that say how large a tensor is, or which of many alike.
const SIZES: [&str; 4] = ["--dims", "--nnz", "--scale", "--seed"];

impl Origin {
    /// Returns what a recipe has in common with those that make such tensors of other sizes; `None` of a file.
    pub(crate) fn family(&self) -> Option<String> {
        let Origin::Recipe(recipe) = self else { return None };
        let is_size = |word: &&String| {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            SIZES.contains(&name)
        };
        let kept = recipe.iter().filter(|word| !is_size(word));
        let words = kept.map(|word| word.trim_start_matches("--").replace('=', " "));
        Some(words.collect::<Vec<_>>().join(", "))
    }
}

/// Options of `generate` that say how a file is written.
const WRITING: &[&str] = &["header", "out-base"];

impl TensorSpec {
    /// Reads `[tensors.NAME]`; files are named from `folder`.
    ///
    /// # Errors
    ///
    /// No tensor, or two; a file that is not there; an option that `generate` does not take.
    pub(super) fn read(entry: &Entry<'_>, folder: &Path) -> Result<TensorSpec, Failure> {
        let name = entry.key.clone();
        check_name(entry)?;
        let mut section = entry.section(format!("[tensors.{name}]"))?;
        let file = section.take("file");
        let labels = section.take("labels");
        let labels = labels.map(|entry| read_labels(&entry, folder)).transpose()?;
        let labels = labels.unwrap_or_default();
        let (kind, like) = (section.take("generate"), section.take("like"));
        if let Some(file) = file {
            if let Some(other) = kind.or(like) {
                let why = "the tensor is a file already";
                return Err(other.fault(why).help("give `file`, or `generate` or `like`"));
            }
            section.finish(&["file", "labels"])?;
            let path = from_folder(folder, &file.text()?);
            if !path.is_file() {
                let why = format!("there is no file {}", path.display());
                return Err(file.fault(why).help("paths begin in the folder of the study file"));
            }
            return Ok(TensorSpec { name, origin: Origin::File(path), labels });
        }
        if kind.is_none() && like.is_none() {
            let why = format!("{} has no tensor", section.name);
            let help = "give `file = \"x.tns\"`, `like = \"nell-2\"`, or `generate = \"low-rank\"` with \
                        its options";
            return Err(section.fault(why).help(help));
        }
        let generate = Catalogue::of("generate")
            .ok_or_else(|| Failure::internal("there is no command `generate`"))?;
        let mut settings: Settings = Vec::new();
        let mut entries = Vec::new();
        if let Some(like) = like {
            settings.push(("like".into(), Setting::Word(like.text()?)));
            entries.push(("like".to_owned(), like));
        }
        for entry in section.rest() {
            if WRITING.contains(&entry.key.as_str()) {
                let why = "it says how a file is written, which a study decides";
                return Err(entry.fault(why).help("leave it out"));
            }
            let known = generate.find(&entry.key, &entry)?;
            let setting = entry.setting()?;
            check_kind(&known, &setting, &entry)?;
            settings.push((known.long.clone(), setting));
            entries.push((known.long, entry));
        }
        let kind_word = kind.as_ref().map(|kind| kind.text()).transpose()?;
        let mut recipe: Vec<String> = kind_word.into_iter().collect();
        recipe.extend(words(&settings));
        let begin = ["generate".to_owned(), "--out=x.dtb".to_owned()];
        let line: Vec<String> = begin.iter().chain(&recipe).cloned().collect();
        check(&line, &entries, kind.as_ref().unwrap_or(entry))?;
        Ok(TensorSpec { name, origin: Origin::Recipe(recipe), labels })
    }
}

/// Reads where labels are: a folder, `MODE=FILE`, or a list of these.
fn read_labels(entry: &Entry<'_>, folder: &Path) -> Result<Vec<LabelPlace>, Failure> {
    let words = if entry.is_list() { entry.words()? } else { vec![entry.text()?] };
    let place = |word: &String| match word.parse::<LabelPlace>() {
        Ok(place) => Ok(place.with_path(|path| from_folder(folder, &path.to_string_lossy()))),
        Err(why) => Err(entry.fault(why).help("give a folder, or files as [\"2=cities.map\"]")),
    };
    words.iter().map(place).collect()
}

/// Checks that a name may be a part of a file's name.
///
/// # Errors
///
/// A letter that may not be.
pub(super) fn check_name(entry: &Entry<'_>) -> Result<(), Failure> {
    if is_name(&entry.key) {
        return Ok(());
    }
    Err(entry.fault("it is no name of a tensor").help(NAME_HELP))
}

/// What names consist of.
pub(super) const NAME_HELP: &str =
    "names of files are made of it: use letters, digits, `-`, `_` and `.`";

/// Tells whether a word may be a part of a file's name.
pub(super) fn is_name(word: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !word.is_empty() && word.len() <= 40 && word.chars().all(good) && !word.starts_with(['.', '-'])
}
