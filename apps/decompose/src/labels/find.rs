//! Where the labels of a tensor or of a model are.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use decompose_common::printable::printable;
use serde_json::Value as Json;

use crate::failure::Failure;
use crate::input::name_of;
use crate::labels::ModeLabels;
use crate::labels::read::Map;

/// What `--labels` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LabelPlace {
    /// A folder of files that say their mode.
    Folder(PathBuf),
    /// The file of a mode, which counts from 1.
    File { mode: usize, path: PathBuf },
}

impl FromStr for LabelPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<LabelPlace, String> {
        let is_number = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
        match text.split_once('=').filter(|(mode, _)| is_number(mode)) {
            Some((mode, path)) => match mode.parse() {
                Ok(mode) if mode > 0 && !path.is_empty() => {
                    Ok(LabelPlace::File { mode, path: path.into() })
                }
                _ => Err(format!(
                    "`{text}` is no file of labels; modes count from 1, as in 2=cities.map"
                )),
            },
            None if text.is_empty() => Err("give a folder, or MODE=FILE".to_owned()),
            None => Ok(LabelPlace::Folder(text.into())),
        }
    }
}

impl fmt::Display for LabelPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelPlace::Folder(folder) => write!(f, "{}", folder.display()),
            LabelPlace::File { mode, path } => write!(f, "{mode}={}", path.display()),
        }
    }
}

impl LabelPlace {
    /// Returns it with another path.
    pub(crate) fn with_path(self, change: impl FnOnce(PathBuf) -> PathBuf) -> LabelPlace {
        match self {
            LabelPlace::Folder(path) => LabelPlace::Folder(change(path)),
            LabelPlace::File { mode, path } => LabelPlace::File { mode, path: change(path) },
        }
    }
}

/// Returns the labels of every mode of the tensor in `file`, and warnings.
///
/// What was `asked` for comes before the places beside the file.  Without a file a mode is called `mode M`; a file of
/// another length than the mode is passed over with a warning.
///
/// # Errors
///
/// A folder or a file that was asked for and cannot be used.
pub(crate) fn find(
    file: &Path,
    name: &str,
    asked: &[LabelPlace],
    extents: &[u64],
) -> Result<(Vec<ModeLabels>, Vec<String>), Failure> {
    let mut groups = given(asked, name, extents.len())?;
    if groups.len() == 1 {
        groups.push(beside(file, name));
    }
    let (labels, mut warnings) = read(&groups, extents)?;
    warnings.extend(useless(asked, &labels));
    Ok((labels, warnings))
}

/// Returns the labels of every mode of a model, and warnings.
///
/// Where no folder was `asked` for, they are in the folder of the model, in the files that its run has read, or beside
/// the tensor of the run.
///
/// # Errors
///
/// As [`find`].
pub(crate) fn of_model(
    path: &Path,
    asked: &[LabelPlace],
    extents: &[u64],
) -> Result<(Vec<ModeLabels>, Vec<String>), Failure> {
    let (record, tensor) = (record(path), source(path));
    let name = tensor.as_deref().map(name_of).unwrap_or_default();
    let mut groups = given(asked, &name, extents.len())?;
    if groups.len() == 1 {
        groups.push(list(folder_of(path), MapPlace::Own).unwrap_or_default());
        let labels = record["input"]["labels"].as_array().map_or(&[][..], Vec::as_slice);
        groups.push(labels.iter().filter_map(recorded).filter(|map| map.path.is_file()).collect());
        groups.extend(tensor.map(|file| beside(&file, &name)));
    }
    let (labels, mut warnings) = read(&groups, extents)?;
    warnings.extend(useless(asked, &labels));
    Ok((labels, warnings))
}

/// Returns the tensor that the run in the folder of a model has read, if that is recorded.
pub(crate) fn source(path: &Path) -> Option<PathBuf> {
    record(path)["input"]["path"].as_str().map(PathBuf::from)
}

fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if path.is_dir() { path } else { parent.unwrap_or(Path::new(".")) }
}

/// Returns the record of the run in the folder of a model; null if there is none.
fn record(path: &Path) -> Json {
    let text = fs::read(folder_of(path).join("run.json")).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Returns a file of labels that a record names.
fn recorded(labels: &Json) -> Option<Map> {
    let mode = usize::try_from(labels["mode"].as_u64()?).ok()?;
    let (name, path) = (labels["name"].as_str()?, labels["file"].as_str()?);
    Some(Map { mode, name: Some(name.to_owned()), path: path.into(), rank: 0 })
}

/// Returns the files that were asked for, and if folders were, their files.
fn given(asked: &[LabelPlace], name: &str, order: usize) -> Result<Vec<Vec<Map>>, Failure> {
    let mut files = Vec::new();
    let mut folders: Option<Vec<Map>> = None;
    for place in asked {
        match place {
            LabelPlace::Folder(folder) => {
                let both = list(folder, MapPlace::Either(name));
                let fail = |error| {
                    let why = format!("cannot read {}: {error}", folder.display());
                    Failure::input(why).help("give a folder, or the file of a mode as 2=cities.map")
                };
                folders.get_or_insert_default().extend(both.map_err(fail)?);
            }
            LabelPlace::File { mode, .. } if *mode > order => {
                let why = format!("--labels {place}: the tensor has {order} modes");
                return Err(Failure::input(why).help("modes count from 1"));
            }
            LabelPlace::File { mode, .. } if files.iter().any(|map: &Map| map.mode == *mode) => {
                let why = format!("--labels {place}: mode {mode} has two files of labels");
                return Err(Failure::input(why).help("give one file for each mode"));
            }
            LabelPlace::File { mode, path } => {
                files.push(Map { mode: *mode, name: told(path), path: path.clone(), rank: 0 });
            }
        }
    }
    Ok(std::iter::once(files).chain(folders).collect())
}

/// Returns what the name of a file calls its mode: `city` of `mode-2-city.map` and of `city.map`.
fn told(path: &Path) -> Option<String> {
    if let Some(map) = parse(path.to_owned(), MapPlace::Own) {
        return map.name;
    }
    let file = path.file_name()?.to_str()?;
    let stem = file.strip_suffix(".gz").unwrap_or(file);
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    let numbered = stem.rsplit('.').next().is_some_and(|end| end.parse::<u64>().is_ok());
    (!numbered).then(|| stem.to_owned())
}

/// Returns the files in the places beside a tensor.
fn beside(file: &Path, name: &str) -> Vec<Map> {
    if file.as_os_str() == "-" {
        return Vec::new();
    }
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut maps = list(&file.with_file_name(name), MapPlace::Own).unwrap_or_default();
    let shared = list(parent.unwrap_or(Path::new(".")), MapPlace::Shared(name));
    maps.extend(shared.unwrap_or_default());
    maps
}

/// Reads for each mode the first file of the first group that has one.  Those of the very first were asked for: they
/// must fit.
fn read(groups: &[Vec<Map>], extents: &[u64]) -> Result<(Vec<ModeLabels>, Vec<String>), Failure> {
    let mut warnings = Vec::new();
    let mut labels = Vec::new();
    for (&extent, mode) in extents.iter().zip(1..) {
        let of_mode = |maps: &'_ [Map]| {
            maps.iter()
                .enumerate()
                .filter(|(_, map)| map.mode == mode)
                .min_by_key(|(_, m)| m.rank)
                .map(|(at, _)| at)
        };
        let found =
            groups.iter().enumerate().find_map(|(group, maps)| Some((group, of_mode(maps)?)));
        let read = found.map(|(group, at)| (group, groups[group][at].read(extent, &mut warnings)));
        labels.push(match read {
            Some((_, Ok(labels))) => labels,
            Some((0, Err(why))) => return Err(Failure::input(why)),
            Some((_, Err(why))) => {
                warnings.push(format!("{why}; its labels are not used"));
                ModeLabels::unknown(mode)
            }
            None => ModeLabels::unknown(mode),
        });
    }
    Ok((labels, warnings))
}

/// Warns of folders that were asked for and give no labels.
fn useless(asked: &[LabelPlace], labels: &[ModeLabels]) -> Vec<String> {
    let is_useless = |place: &&LabelPlace| {
        let LabelPlace::Folder(folder) = place else { return false };
        let files = labels.iter().filter_map(|mode| mode.file.as_deref());
        files.filter_map(Path::parent).all(|parent| parent != folder)
    };
    let warning = |place: &LabelPlace| {
        let place = place.to_string();
        format!(
            "--labels {} gives no labels: it has no mode-K.map, mode-K-NAME.map or K.map that fits a mode still \
             without labels",
            printable(&place)
        )
    };
    asked.iter().filter(is_useless).map(warning).collect()
}

/// Which files of a folder are looked for.
#[derive(Clone, Copy)]
enum MapPlace<'a> {
    /// The tensor's own folder: `mode-K-WHAT.map` and `mode-K.map`.
    Own,
    /// The folder that the tensor of this name is in: `NAME.K.map` and `K.map`.
    Shared(&'a str),
    /// All of them.
    Either(&'a str),
}

fn list(folder: &Path, place: MapPlace<'_>) -> io::Result<Vec<Map>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    // The order in a folder is chance.
    paths.sort();
    Ok(paths.into_iter().filter_map(|path| parse(path, place)).collect())
}

fn parse(path: PathBuf, place: MapPlace<'_>) -> Option<Map> {
    let file = path.file_name()?.to_str()?;
    let stem = file.strip_suffix(".gz").unwrap_or(file).strip_suffix(".map")?;
    let own = || {
        let stem = stem.strip_prefix("mode-")?;
        Some(match stem.split_once('-') {
            Some((mode, name)) => (mode.parse().ok()?, Some(name.to_owned()), 0),
            None => (stem.parse().ok()?, None, 1),
        })
    };
    let shared = |name: &str| {
        let named = stem.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')?.parse().ok());
        match named {
            Some(mode) => Some((mode, None, 2)),
            None => Some((stem.parse().ok()?, None, 3)),
        }
    };
    let (mode, name, rank) = match place {
        MapPlace::Own => own()?,
        MapPlace::Shared(name) => shared(name)?,
        MapPlace::Either(name) => own().or_else(|| shared(name))?,
    };
    Some(Map { mode, name, path, rank })
}
