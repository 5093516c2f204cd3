//! Names of modes and indices, from files beside the tensor.
//!
//! `NAME/mode-M-WHAT.map` beside `NAME.tns`, also gzipped, names mode M (from 1) `WHAT` and holds
//! one line for each of its indices, as published with FROSTT.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use decompose_core::plot::ModeLook;
use flate2::read::MultiGzDecoder;

use crate::failure::Failure;

/// The name of one mode and what its indices stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModeLabels {
    pub(crate) name: String,
    /// One an index; empty where unknown.
    pub(crate) indices: Vec<String>,
}

impl ModeLabels {
    /// Returns how its profiles are drawn: as lines where labels count or date the indices, as bars where they
    /// name them.
    pub(crate) fn look(&self) -> ModeLook {
        match self.indices.as_slice() {
            [] => ModeLook::Plain,
            labels if is_ordered(labels) => ModeLook::Lines,
            _ => ModeLook::Bars,
        }
    }
}

/// Tells whether labels follow an order: numbers, dates or times that rise or fall, or days and months in their
/// turn.
fn is_ordered(labels: &[String]) -> bool {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    if labels.len() < 3 {
        return false;
    }
    let numbers: Option<Vec<f64>> = labels.iter().map(|label| leading_number(label)).collect();
    if let Some(numbers) = numbers {
        let rises = numbers.is_sorted_by(|a, b| a < b);
        return rises || numbers.is_sorted_by(|a, b| a > b);
    }
    // Dates and times are written so that they sort as text.
    let is_date = |label: &String| {
        label.starts_with(|c: char| c.is_ascii_digit())
            && label.chars().all(|c| c.is_ascii_digit() || "-/:. TZW+".contains(c))
    };
    if labels.iter().all(is_date) && labels.is_sorted_by(|a, b| a < b) {
        return true;
    }
    let turn = |names: &[&str]| {
        let place = |label: &String| {
            let start: String = label.chars().take(3).collect::<String>().to_lowercase();
            names.iter().position(|name| *name == start)
        };
        let places: Option<Vec<usize>> = labels.iter().map(place).collect();
        places.is_some_and(|places| {
            places.windows(2).all(|pair| pair[1] == (pair[0] + 1) % names.len())
        })
    };
    turn(&DAYS) || turn(&MONTHS)
}

/// Returns the number that a label is, also with a unit of up to three letters after a blank.
fn leading_number(label: &str) -> Option<f64> {
    let (number, unit) = label.trim().split_once(' ').unwrap_or((label.trim(), ""));
    let is_unit = unit.chars().count() <= 3 && !unit.contains(|c: char| c.is_ascii_digit());
    number.parse().ok().filter(|number: &f64| is_unit && number.is_finite())
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

    #[test]
    fn labels_tell_what_has_an_order() {
        let look = |labels: &[&str]| {
            let indices = labels.iter().map(|&label| label.to_owned()).collect();
            ModeLabels { name: String::new(), indices }.look()
        };
        let lines: [&[&str]; 6] = [
            &["-90", "-80", "90"],
            &["00.0 h", "00.5 h", "23.5 h"],
            &["2014-04-01", "2014-04-02", "2014-12-01"],
            &["Friday", "Saturday", "Sunday", "Monday"],
            &["Nov", "Dec", "Jan"],
            &["400 nm", "300 nm", "250 nm"],
        ];
        for labels in lines {
            assert_eq!(look(labels), ModeLook::Lines, "{labels:?}");
        }
        let bars: [&[&str]; 5] = [
            &["Rome", "Oslo", "Bonn"],
            &["3", "1", "2"],
            &["3 doors", "4 doors", "5 doors"],
            &["Mon", "Wed", "Fri"],
            &["no", "yes"],
        ];
        for labels in bars {
            assert_eq!(look(labels), ModeLook::Bars, "{labels:?}");
        }
        assert_eq!(look(&[]), ModeLook::Plain);
    }
}
