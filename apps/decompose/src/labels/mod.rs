//! Names of modes and indices, from files beside the tensor.
//!
//! Of `NAME.tns`, mode K (from 1) is named by the first of these files that is there, also gzipped:
//!
//! ```text
//! NAME/mode-K-WHAT.map    as published with FROSTT; the mode is then called WHAT
//! NAME/mode-K.map
//! NAME.K.map              in the folder of the tensor
//! K.map                   in the folder of the tensor
//! ```
//!
//! A file holds a line for each index.  A model has such files in its own folder, or those of its run.

mod find;
mod read;

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use decompose_common::files;
use decompose_common::printable::printable;
use decompose_formats::io::ModeNames;
use decompose_plot::ModeLook;
use serde::Serialize;

use crate::failure::Failure;

pub(crate) use crate::labels::find::{LabelPlace, find, of_model, source};

/// Characters of a label that are kept.
const LONGEST: usize = 200;

/// The name of one mode and what its indices stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModeLabels {
    pub(crate) name: String,
    /// One an index; empty where unknown.
    pub(crate) indices: Vec<String>,
    /// The file that they are from.
    pub(crate) file: Option<PathBuf>,
}

/// What a record says of the labels of a mode.
#[derive(Serialize)]
pub(crate) struct LabelRecord<'a> {
    mode: usize,
    name: &'a str,
    file: &'a Path,
    labels: usize,
}

impl ModeLabels {
    /// Returns a mode without labels, which counts from 1.
    fn unknown(mode: usize) -> ModeLabels {
        ModeLabels { name: format!("mode {mode}"), ..ModeLabels::default() }
    }

    /// Returns how its profiles are drawn: as lines where labels count or date the indices, as bars where they
    /// name them.
    pub(crate) fn look(&self) -> ModeLook {
        match self.indices.as_slice() {
            [] => ModeLook::Plain,
            labels if is_ordered(labels) => ModeLook::Lines,
            _ => ModeLook::Bars,
        }
    }

    /// Returns the label of an index that counts from 0.
    pub(crate) fn at(&self, index: usize) -> Option<&str> {
        self.indices.get(index).map(String::as_str)
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

/// Returns a cell, its indices counted from 0, for people: `3 (Rome) 1`, indices counted from 1.
pub(crate) fn cell(labels: &[ModeLabels], indices: impl IntoIterator<Item = u64>) -> String {
    let word = |(mode, index): (usize, u64)| {
        let label = labels.get(mode).zip(usize::try_from(index).ok());
        match label.and_then(|(labels, index)| labels.at(index)) {
            Some(label) => format!("{} ({})", index + 1, printable(label)),
            None => (index + 1).to_string(),
        }
    };
    let words: Vec<String> = indices.into_iter().enumerate().map(word).collect();
    words.join(" ")
}

/// Returns the names of modes and indices as tables have them.
pub(crate) fn names(labels: &[ModeLabels]) -> Vec<ModeNames> {
    let name = |(mode, labels): (usize, &ModeLabels)| ModeNames {
        name: match labels.file {
            Some(_) => labels.name.clone(),
            None => format!("mode_{mode}"),
        },
        labels: labels.indices.clone(),
    };
    (1..).zip(labels).map(name).collect()
}

/// Leaves the labels of a mode out where one stands for two indices, which would be one index when the table is read;
/// says so.
pub(crate) fn distinct(mut names: Vec<ModeNames>) -> (Vec<ModeNames>, Vec<String>) {
    let mut warnings = Vec::new();
    for (mode, number) in names.iter_mut().zip(1..) {
        let mut first = HashMap::new();
        let again = mode.labels.iter().zip(1..).find_map(|(label, index)| {
            first.insert(label.as_str(), index).map(|before: usize| (label, before, index))
        });
        if let Some((label, before, index)) = again {
            warnings.push(format!(
                "indices {before} and {index} of mode {number} have the same label `{}`: the mode is written as \
                 numbers; give each index a label of its own",
                printable(label)
            ));
            mode.labels.clear();
        }
    }
    (names, warnings)
}

/// Returns what is recorded of the modes that have labels.
pub(crate) fn records(labels: &[ModeLabels]) -> Vec<LabelRecord<'_>> {
    (1..)
        .zip(labels)
        .filter_map(|(mode, labels)| {
            let (name, file) = (labels.name.as_str(), labels.file.as_deref()?);
            Some(LabelRecord { mode, name, file, labels: labels.indices.len() })
        })
        .collect()
}

/// Says in a line which modes have labels; `None` if none has.
pub(crate) fn told(labels: &[ModeLabels]) -> Option<String> {
    let found: Vec<String> = (1..)
        .zip(labels)
        .filter(|(_, labels)| labels.file.is_some())
        .map(|(mode, labels)| {
            let (name, count) = (printable(&labels.name), labels.indices.len());
            format!("mode {mode}: {count} of {name}")
        })
        .collect();
    (!found.is_empty()).then(|| format!("labels   {}", found.join(", ")))
}

/// Writes the labels of a tensor that is written to `file`, in the folder of its name, where [`find()`]
/// looks first; returns the files.
pub(crate) fn write(file: &Path, name: &str, modes: &[ModeNames]) -> Result<Vec<PathBuf>, Failure> {
    let folder = file.with_file_name(name);
    fs::create_dir_all(&folder)
        .map_err(|e| Failure::input(format!("cannot write {}: {e}", folder.display())))?;
    let mut written = Vec::new();
    for (mode, path) in modes.iter().zip(paths(&folder, modes)) {
        files::replace(&path, |out| {
            mode.labels.iter().try_for_each(|label| writeln!(out, "{label}"))
        })?;
        written.push(path);
    }
    Ok(written)
}

/// Returns the files that [`write()`] makes in `folder`.
pub(crate) fn paths(folder: &Path, modes: &[ModeNames]) -> Vec<PathBuf> {
    let plain = |letter: char| match letter {
        letter if letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ' ') => letter,
        _ => '_',
    };
    let path = |(number, mode): (usize, &ModeNames)| {
        let name: String = mode.name.chars().take(LONGEST / 4).map(plain).collect();
        let name = name.trim();
        let name = if name.is_empty() { "labels" } else { name };
        folder.join(format!("mode-{number}-{name}.map"))
    };
    (1..).zip(modes).map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(path: &Path) -> LabelPlace {
        LabelPlace::Folder(path.to_owned())
    }

    #[test]
    fn files_beside_the_tensor_name_its_modes() {
        let dir = tempfile::tempdir().unwrap();
        let maps = dir.path().join("x");
        fs::create_dir(&maps).unwrap();
        fs::write(maps.join("mode-2-city-name.map"), "Rome\nOslo\n").unwrap();
        fs::write(maps.join("mode-3-day.map"), "1\n").unwrap();
        fs::write(maps.join("README.md"), "").unwrap();
        let (labels, warnings) = find(&dir.path().join("x.tns"), "x", &[], &[4, 2, 3]).unwrap();
        assert_eq!(labels[0], ModeLabels { name: "mode 1".into(), ..ModeLabels::default() });
        assert_eq!(labels[1].name, "city-name");
        assert_eq!(labels[1].indices, ["Rome", "Oslo"]);
        assert_eq!(labels[1].at(1), Some("Oslo"));
        assert_eq!(cell(&labels, [3, 1, 0]), "4 2 (Oslo) 1");
        // Without a label, and beyond the modes that have any.
        assert_eq!(cell(&labels[..2], [0, 7, u64::MAX - 1]), format!("1 8 {}", u64::MAX));
        assert!(labels[2].indices.is_empty() && warnings.len() == 1, "{warnings:?}");
        assert!(
            find(Path::new("x.tns"), "x", &[LabelPlace::Folder("/none".into())], &[1]).is_err()
        );
    }

    #[test]
    fn every_layout_is_found_and_the_own_folder_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &[u8]| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let file = dir.path().join("x.tns.gz");
        put("x/mode-1.map", b"a\nb\n");
        put("1.map", b"wrong\nwrong\n");
        put("x.2.map", b"c\r\nd\r\n");
        put("y.3.map", b"of another tensor\n");
        put("3.map", b"e\nf");
        let extents = [2, 2, 2];
        let (labels, warnings) = find(&file, "x", &[], &extents).unwrap();
        let found: Vec<_> = labels.iter().map(|mode| mode.indices.join(" ")).collect();
        assert_eq!((found, warnings.len()), (vec!["a b".into(), "c d".into(), "e f".into()], 0));
        assert_eq!(records(&labels).len(), 3);
        let (labels, _) = find(&file, "x", &[folder(dir.path())], &extents).unwrap();
        assert_eq!(labels[0].indices, ["wrong", "wrong"]);
        let line = told(&labels).unwrap();
        assert!(line.contains("mode 3: 2 of mode 3"), "{line}");
        put("empty/README", b"");
        let empty = dir.path().join("empty");
        let (labels, warnings) = find(&file, "x", &[folder(&empty)], &extents).unwrap();
        assert!(warnings[0].contains("gives no labels"), "{warnings:?}");
        assert_eq!(told(&labels), None);
        // The files of a folder that name modes which the tensor has not.
        put("empty/mode-4.map", b"g\nh\n");
        let (_, warnings) = find(&file, "x", &[folder(&empty)], &extents).unwrap();
        assert!(warnings[0].contains("gives no labels"), "{warnings:?}");
    }

    #[test]
    fn long_and_odd_labels_are_cut_and_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("1.map");
        let long = "\u{e9}".repeat(50_000);
        fs::write(&path, [long.as_bytes(), b"\ncaf\xe9\n"].concat()).unwrap();
        let (labels, warnings) = find(&dir.path().join("x.tns"), "x", &[], &[2]).unwrap();
        assert_eq!(labels[0].indices[0], format!("{}\u{2026}", "\u{e9}".repeat(LONGEST)));
        assert_eq!(labels[0].indices[1], "caf\u{fffd}");
        assert!(warnings.len() == 1 && warnings[0].contains("not UTF-8"), "{warnings:?}");
        let (_, warnings) = find(&dir.path().join("x.tns"), "x", &[], &[1]).unwrap();
        assert!(warnings[0].contains("more than 1 line for 1 index"), "{warnings:?}");
    }

    #[test]
    fn labels_tell_what_has_an_order() {
        let look = |labels: &[&str]| {
            let indices = labels.iter().map(|&label| label.to_owned()).collect();
            ModeLabels { indices, ..ModeLabels::default() }.look()
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
