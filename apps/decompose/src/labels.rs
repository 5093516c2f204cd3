//! Names of modes and indices, from files beside the tensor.
//!
//! `NAME/mode-M-WHAT.map` beside `NAME.tns`, also gzipped, names mode M (from 1) `WHAT` and holds
//! one line for each of its indices, as published with FROSTT.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::failure::Failure;

/// The name of one mode and what its indices stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModeLabels {
    pub(crate) name: String,
    /// One an index; empty where unknown.
    pub(crate) indices: Vec<String>,
}

/// Returns the labels of every mode of `extents`; `folder` overrides the place beside `file`.
///
/// Without a file a mode is called `mode M`; a file of another length than the mode is passed
/// over with a warning.
pub(crate) fn find(
    file: &Path,
    name: &str,
    folder: Option<&Path>,
    extents: &[u64],
) -> Result<(Vec<ModeLabels>, Vec<String>), Failure> {
    let beside = file.with_file_name(name);
    let maps = match folder {
        Some(folder) => maps(folder)
            .map_err(|e| Failure::input(format!("cannot read {}: {e}", folder.display())))?,
        None => maps(&beside).unwrap_or_default(),
    };
    let mut warnings = Vec::new();
    let labels = extents.iter().zip(1..).map(|(&extent, mode)| {
        let found = maps.iter().find(|map| map.mode == mode);
        let Some(map) = found else {
            return ModeLabels { name: format!("mode {mode}"), indices: Vec::new() };
        };
        let mut indices = lines(&map.path).unwrap_or_default();
        if indices.len() as u64 != extent {
            warnings.push(format!(
                "{} has {} lines for {extent} indices of mode {mode}; its labels are not used",
                map.path.display(),
                indices.len()
            ));
            indices.clear();
        }
        ModeLabels { name: map.name.clone(), indices }
    });
    let labels = labels.collect();
    Ok((labels, warnings))
}

/// A file of labels.
struct Map {
    mode: usize,
    name: String,
    path: PathBuf,
}

fn maps(folder: &Path) -> std::io::Result<Vec<Map>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    // The order in a folder is chance.
    paths.sort();
    Ok(paths.into_iter().filter_map(parse).collect())
}

fn parse(path: PathBuf) -> Option<Map> {
    let file = path.file_name()?.to_str()?;
    let stem = file.strip_suffix(".gz").unwrap_or(file).strip_suffix(".map")?;
    let (mode, name) = stem.strip_prefix("mode-")?.split_once('-')?;
    Some(Map { mode: mode.parse().ok()?, name: name.to_owned(), path })
}

fn lines(path: &Path) -> std::io::Result<Vec<String>> {
    let mut text = String::new();
    let mut file = File::open(path)?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        MultiGzDecoder::new(file).read_to_string(&mut text)?;
    } else {
        file.read_to_string(&mut text)?;
    }
    Ok(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beside_the_tensor_name_its_modes() {
        let dir = tempfile::tempdir().unwrap();
        let maps = dir.path().join("x");
        fs::create_dir(&maps).unwrap();
        fs::write(maps.join("mode-2-city-name.map"), "Rome\nOslo\n").unwrap();
        fs::write(maps.join("mode-3-day.map"), "1\n").unwrap();
        fs::write(maps.join("README.md"), "").unwrap();
        let (labels, warnings) = find(&dir.path().join("x.tns"), "x", None, &[4, 2, 3]).unwrap();
        assert_eq!(labels[0], ModeLabels { name: "mode 1".into(), indices: vec![] });
        assert_eq!(labels[1].name, "city-name");
        assert_eq!(labels[1].indices, ["Rome", "Oslo"]);
        assert!(labels[2].indices.is_empty() && warnings.len() == 1, "{warnings:?}");
        assert!(find(Path::new("x.tns"), "x", Some(Path::new("/none")), &[1]).is_err());
    }
}
