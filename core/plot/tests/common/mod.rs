//! Figures that are saved, and what is looked at in their files.
#![allow(dead_code, reason = "every suite uses a part")]

use std::fs;
use std::path::{Path, PathBuf};

use decompose_plot::{Figure, PlotFormat, render, save};
use tempfile::tempdir;

/// Saves a figure, checks both files, and that the SVG has all of `words`.
#[track_caller]
pub(crate) fn check(figure: &impl Figure, words: &[&str]) {
    let dir = tempdir().unwrap();
    let [svg, png] = saved(figure, dir.path(), "figure");
    let svg = fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for word in words {
        assert!(svg.contains(word), "the SVG lacks `{word}`");
    }
    let (width, height) = figure.size();
    assert_eq!(png_size(&fs::read(png).unwrap()), (2 * width, 2 * height));
    assert_eq!(names(dir.path()), ["figure.png", "figure.svg"]);
}

/// Returns the texts of a figure.
pub(crate) fn svg_words(figure: &impl Figure) -> Vec<String> {
    let rendered = render(figure, &[PlotFormat::Svg]).unwrap();
    let texts = rendered.svg().unwrap().split('>').filter_map(|part| part.split('<').next());
    texts.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

/// Saves a figure and returns the paths of its SVG and its PNG file.
pub(crate) fn saved(figure: &impl Figure, dir: &Path, stem: &str) -> [PathBuf; 2] {
    save(figure, dir, stem).unwrap().try_into().unwrap()
}

/// Returns width and height of a PNG file, whose chunks must lead from its first to its last byte.
pub(crate) fn png_size(file: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&file[12..16], b"IHDR");
    let mut at = 8;
    let mut last = [0; 4];
    while at < file.len() {
        last.copy_from_slice(&file[at + 4..at + 8]);
        at += 12 + number(at) as usize;
    }
    assert_eq!((at, &last), (file.len(), b"IEND"));
    (number(16), number(20))
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
