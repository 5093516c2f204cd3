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

use crate::bench::peers::{self, Peer, programs};
use crate::experiment::report::peers::{ITERATION, SOLVE};
use crate::experiment::study::group::{Common, Group};
use crate::experiment::study::source::{Entry, Source};
use crate::experiment::study::tensors::TensorSpec;
use crate::failure::Failure;

/// A study file.
#[derive(Clone, Debug)]
pub(crate) struct Study {
    /// Its name, for the folder.
    pub(crate) name: String,
    pub(crate) title: String,
    /// The group or program that speed-ups are measured against.
    pub(crate) baseline: Option<String>,
    /// Results of other programs.
    pub(crate) peers: Vec<Peer>,
    pub(crate) tensors: Vec<TensorSpec>,
    pub(crate) groups: Vec<Group>,
    /// The file as it is.
    pub(crate) text: String,
}

const KEYS: &[&str] =
    &["title", "seeds", "repeats", "timed", "baseline", "peers", "tensors", "runs"];

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
        let peers = root.take("peers").map(|entry| read_peers(&entry, &folder, &tensors));
        let peers = peers.transpose()?.unwrap_or_default();
        let baseline = root.take("baseline");
        let named = baseline.as_ref().map(|entry| entry.text()).transpose()?;
        if let (Some(entry), Some(name)) = (&baseline, &named)
            && !groups.iter().any(|group| group.name == *name)
            && !peers.iter().any(|peer| peer.program == *name)
        {
            let mut known: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
            known.extend(programs(&peers));
            let why = format!("no group of runs and no program of the peers is called `{name}`");
            return Err(entry.fault(why).help(format!("there are {}", known.join(", "))));
        }
        root.finish(KEYS)?;
        let (name, title) = (stem.clone(), title.unwrap_or(stem));
        Ok(Study { name, title, baseline: named, peers, tensors, groups, text })
    }
}

/// Reads the results of other programs on the tensors of a study, of which the seconds of an iteration or of all count.
fn read_peers(
    entry: &Entry<'_>,
    folder: &Path,
    tensors: &[TensorSpec],
) -> Result<Vec<Peer>, Failure> {
    let mut peers = peers::read(&from_folder(folder, &entry.text()?))?;
    let is_shown = |quantity: &str| [ITERATION, SOLVE].contains(&quantity);
    peers.retain(|peer| is_shown(&peer.quantity));
    if peers.is_empty() {
        let why = format!("no row has the quantity `{ITERATION}` or `{SOLVE}`");
        return Err(entry.fault(why).help("the others are for `decompose bench --peer`"));
    }
    let unknown = |peer: &&Peer| tensors.iter().all(|tensor| tensor.name != peer.tensor);
    if let Some(peer) = peers.iter().find(unknown) {
        let known: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        let why = format!("there is no [tensors.{}]", peer.tensor);
        return Err(entry.fault(why).help(format!("the tensors are {}", known.join(", "))));
    }
    Ok(peers)
}

/// Returns a path in the file as it is from `folder`, that of the file, absolute.
fn from_folder(folder: &Path, path: &str) -> PathBuf {
    let joined = folder.join(path);
    let absolute = fs::canonicalize(&joined).or_else(|_| std::path::absolute(&joined));
    absolute.unwrap_or(joined)
}
