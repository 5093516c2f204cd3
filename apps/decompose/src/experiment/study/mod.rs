//! What a study is: tensors, and groups of runs on them.
//!
//! ```text
//! source    text with lines             grid     lists, ranges, zips, their combinations
//! options   those of a command          tensors  files and recipes
//! group     the runs of one [[runs]]
//! ```

pub(crate) mod grid;
pub(crate) mod group;
pub(crate) mod options;
pub(crate) mod source;
pub(crate) mod tensors;

use std::fs;
use std::path::{Path, PathBuf};

use crate::experiment::study::group::{Common, Group};
use crate::experiment::study::source::Source;
use crate::experiment::study::tensors::TensorSpec;
use crate::failure::Failure;

/// A study file.
#[derive(Clone, Debug)]
pub(crate) struct Study {
    /// Its name, for the folder.
    pub(crate) name: String,
    pub(crate) title: String,
    /// The group that speed-ups are measured against.
    pub(crate) baseline: Option<String>,
    pub(crate) tensors: Vec<TensorSpec>,
    pub(crate) groups: Vec<Group>,
    /// The file as it is.
    pub(crate) text: String,
}

const KEYS: &[&str] = &["title", "seeds", "repeats", "timed", "baseline", "tensors", "runs"];

impl Study {
    /// Reads a study file.
    ///
    /// # Errors
    ///
    /// Anything in it that is not understood, with file, line, key, value and remedy.
    pub(crate) fn read(path: &Path) -> Result<Study, Failure> {
        let text = fs::read_to_string(path).map_err(|error| {
            Failure::input(format!("cannot read {}: {error}", path.display()))
                .help("give a study file: see `data/studies`")
        })?;
        let source = Source { path, text: &text };
        let table = source.parse()?;
        let mut root = source.section(&table);
        let stem = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let title = root.take("title").map(|entry| entry.text()).transpose()?;
        let common = Common::read(&mut root, &Common::default())?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let tensors =
            root.need("tensors", "a table with an entry for each tensor: [tensors.NAME]")?;
        let tensors = tensors.section("[tensors]".into())?.rest();
        let tensors: Vec<TensorSpec> = tensors
            .iter()
            .map(|entry| TensorSpec::read(entry, &folder))
            .collect::<Result<_, _>>()?;
        let runs = root.need("runs", "a list of tables: begin each group of runs with [[runs]]")?;
        let mut groups: Vec<Group> = Vec::new();
        for section in runs.sections("[[runs]]")? {
            groups.push(Group::read(section, &common, &tensors, (&folder, &groups))?);
        }
        let baseline = root.take("baseline");
        let named = baseline.as_ref().map(|entry| entry.text()).transpose()?;
        if let (Some(entry), Some(name)) = (&baseline, &named)
            && !groups.iter().any(|group| group.name == *name)
        {
            let known: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
            let why = format!("no group of runs is called `{name}`");
            return Err(entry.fault(why).help(format!("the groups are {}", known.join(", "))));
        }
        root.finish(KEYS)?;
        let (name, title) = (stem.clone(), title.unwrap_or(stem));
        Ok(Study { name, title, baseline: named, tensors, groups, text })
    }
}

/// Returns a path in the file as it is from `folder`, that of the file, absolute.
fn from_folder(folder: &Path, path: &str) -> PathBuf {
    let joined = folder.join(path);
    let absolute = fs::canonicalize(&joined).or_else(|_| std::path::absolute(&joined));
    absolute.unwrap_or(joined)
}
