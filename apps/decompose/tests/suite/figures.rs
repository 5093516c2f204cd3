//! Figures beside results: they never cost a run, and can be left out.

use std::fs;
use std::path::Path;

use crate::common::{cp, decompose, json, names};

/// Runs a command that must succeed; returns what it says on standard error.
fn run(folder: &Path, words: &str) -> String {
    let output = decompose(folder).args(words.split_whitespace()).assert().success();
    String::from_utf8(output.get_output().stderr.clone()).unwrap()
}

/// Writes a tensor of 4 x 3 x 2 cells, each `value`.
fn constant(path: &Path, value: f64) {
    let cells = (0..24).map(|cell| (cell / 6 + 1, cell / 2 % 3 + 1, cell % 2 + 1));
    let lines: Vec<String> = cells.map(|(i, j, k)| format!("{i} {j} {k} {value}\n")).collect();
    fs::write(path, lines.concat()).unwrap();
}

#[test]
fn a_figure_with_nothing_to_show_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    constant(&dir.path().join("negative.tns"), -1.0);
    // No nonnegative model is better than none: its core is zero.
    let stderr = run(dir.path(), "tucker --nonneg --ranks 1,1,1 negative.tns --out run");
    let folder = dir.path().join("run");
    let warnings = json(&folder.join("run.json"))["warnings"].clone();
    for figure in ["spectra"] {
        let missing = format!("the figure `{figure}` is left out: ");
        assert!(stderr.contains(&format!("warning: {missing}")), "{stderr}");
        let warnings = warnings.as_array().unwrap();
        let told = warnings.iter().any(|warning| warning.as_str().unwrap().starts_with(&missing));
        assert!(told, "{warnings:?}");
        assert!(!folder.join(format!("{figure}.svg")).exists());
    }
    for name in ["model.npz", "spectra.csv", "convergence.svg", "timing.svg"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
}

#[test]
fn figures_are_chosen_by_format_or_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let sun = "sun-elevation.tns.gz";
    cp(dir.path(), sun, "-r 1 -i 1 --out none --no-plots");
    let results = ["history.csv", "model.npz", "run.json"];
    assert_eq!(names(&dir.path().join("none")), results);
    cp(dir.path(), sun, "-r 1 -i 1 --out svg --plot-format svg");
    let mut expected: Vec<String> = results.map(str::to_owned).to_vec();
    expected.extend(["components.svg", "convergence.svg", "timing.svg"].map(str::to_owned));
    expected.sort();
    assert_eq!(names(&dir.path().join("svg")), expected);
    let mut wrong = decompose(dir.path());
    wrong.args(["cp", "-r", "1", "x.tns", "--plot-format", "pdf"]).assert().code(2);
}

#[test]
fn the_figure_of_phases_has_the_writing() {
    let dir = tempfile::tempdir().unwrap();
    cp(dir.path(), "sun-elevation.tns.gz", "-r 1 -i 2 --out run");
    let figure = fs::read_to_string(dir.path().join("run/timing.svg")).unwrap();
    let phases = json(&dir.path().join("run/run.json"))["phases"].clone();
    let names: Vec<&str> =
        phases.as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names.last(), Some(&"write"));
    for name in names {
        assert!(figure.contains(&format!("\n{name}\n")), "{name}");
    }
}
