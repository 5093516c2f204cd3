//! Labels of modes: where they are found, and where they are shown.

use std::fs;
use std::path::Path;

use decompose_common::model::{Model, Stored};

use crate::common::{decompose, json};

/// Runs a command that must succeed; returns its standard error.
fn run(folder: &Path, words: &str) -> String {
    let output = decompose(folder).args(words.split_whitespace()).assert().success();
    String::from_utf8(output.get_output().stderr.clone()).unwrap()
}

/// Writes a tensor of 4 x 3 x 2 cells whose rows and columns grow, with labels of mode 2 beside it and a file of
/// those of mode 1 elsewhere.
fn write(folder: &Path) {
    let cells = (0..24).map(|cell| [cell / 6 + 1, cell / 2 % 3 + 1, cell % 2 + 1]);
    let lines = cells.map(|[i, j, k]| format!("{i} {j} {k} {}\n", i * j * k + (i + j + k) % 2));
    fs::write(folder.join("x.tns"), lines.collect::<String>()).unwrap();
    fs::write(folder.join("x.2.map"), "Rome\nOslo\n\"Bonn, \"\n").unwrap();
    fs::create_dir(folder.join("names")).unwrap();
    fs::write(folder.join("names/fruit.map"), "apple\npear\nplum\nfig\n").unwrap();
}

/// Returns the rows of a table, its heads first.
fn table(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).unwrap();
    let cells = |row: csv::StringRecord| row.iter().map(str::to_owned).collect();
    reader.records().map(|row| cells(row.unwrap())).collect()
}

#[test]
fn labels_are_found_beside_the_tensor_and_in_files_of_modes() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let commands = [
        ("cp", "cp x.tns --rank 2"),
        ("tucker", "tucker x.tns --ranks 2,2,2"),
        ("complete", "complete x.tns --rank 1 --split 0.9,0,0.1"),
    ];
    for (out, words) in commands {
        let told = run(dir.path(), &format!("{words} --labels 1=names/fruit.map --out {out}"));
        assert!(told.contains("mode 1: 4 of fruit, mode 2: 3 of mode 2"), "{told}");
        let folder = dir.path().join(out);
        let named = json(&folder.join("run.json"))["input"]["labels"].clone();
        assert_eq!(named.as_array().unwrap().len(), 2, "{named}");
        let rows = table(&folder.join("components.csv"));
        let heads = ["component", "weight", "mode", "name", "place", "index", "label", "value"];
        assert_eq!(rows[0], heads);
        let model = Stored::<f64>::read(&folder).unwrap().model;
        let (weights, factors) = match &model {
            Model::Cp(cp) => (Some(cp.weights()), cp.factors()),
            Model::Tucker(tucker) => (None, tucker.factors()),
            Model::Tt(_) => unreachable!(),
        };
        // A line says of its entry what the model has there.
        let labels = [&["apple", "pear", "plum", "fig"][..], &["Rome", "Oslo", "Bonn, "], &[]];
        let mut last = f64::INFINITY;
        for row in &rows[1..] {
            let number = |at: usize| row[at].parse::<usize>().unwrap();
            let (component, mode, place, index) = (number(0), number(2), number(4), number(5));
            let value: f64 = row[7].parse().unwrap();
            assert_eq!(value, factors[mode - 1].row(index - 1)[component - 1], "{out} {row:?}");
            let label = labels[mode - 1].get(index - 1).copied().unwrap_or_default();
            assert_eq!(row[6].trim_matches('"'), label, "{out} {row:?}");
            assert_eq!(row[3], ["fruit", "mode 2", "mode 3"][mode - 1]);
            let weight = weights.map(|weights| weights[component - 1].to_string());
            assert_eq!(row[1], weight.unwrap_or_default());
            assert!(place == 1 || value.abs() <= last, "{out} {row:?}");
            last = value.abs();
        }
        let figure = fs::read_to_string(folder.join("components.svg")).unwrap();
        assert!(figure.contains("\nfig\n") && figure.contains("\nOslo\n"), "{out}");
    }
}

#[test]
fn predictions_have_the_labels_of_the_model() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    run(dir.path(), "cp x.tns --rank 1 --labels 1=names/fruit.map --out run");
    fs::create_dir(dir.path().join("other")).unwrap();
    fs::write(dir.path().join("other/asked.tns"), "4 1 1\n2 3 2\n").unwrap();
    run(dir.path(), "predict run other/asked.tns --base 1 --out all.csv");
    let rows = table(&dir.path().join("all.csv"));
    assert_eq!(rows[0][..3], ["fruit", "mode 2", "mode_3"]);
    let named: Vec<&str> = rows[1..].iter().map(|row| row[0].as_str()).collect();
    assert_eq!(named, ["fig", "pear"]);
    assert_eq!(rows[2][1].trim_matches('"'), "Bonn, ");
    // What is asked for comes first.
    fs::write(dir.path().join("more.map"), "a\nb\nc\nd\n").unwrap();
    run(dir.path(), "predict run other/asked.tns --base 1 --labels 1=more.map --out more.csv");
    let rows = table(&dir.path().join("more.csv"));
    assert_eq!((rows[1][0].as_str(), rows[1][1].as_str()), ("d", "Rome"));
}

#[test]
fn the_report_of_a_study_has_labels() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let study = "[tensors.x]\nfile = \"x.tns\"\nlabels = [\"1=names/fruit.map\"]\n\
                 [[runs]]\ncommand = \"cp\"\noptions = { rank = 1, no-plots = true }\n";
    fs::write(dir.path().join("study.toml"), study).unwrap();
    run(dir.path(), "experiment run study.toml --out s");
    run(dir.path(), "experiment report s");
    let report = dir.path().join("s/report");
    let page = fs::read_to_string(report.join("report.html")).unwrap();
    assert!(page.contains("fig") && page.contains("Oslo") && page.contains("fruit"));
    let rows = table(&report.join("components-cp-x.csv"));
    assert_eq!((rows[1][3].as_str(), rows[1][6].as_str()), ("fruit", "fig"));
    // A mistake stands where it is made.
    fs::write(dir.path().join("study.toml"), study.replace("1=", "0=")).unwrap();
    let output = decompose(dir.path()).args(["experiment", "run", "study.toml"]).assert().code(2);
    let told = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(told.contains("study.toml:3") && told.contains("modes count from 1"), "{told}");
}

#[test]
fn files_of_labels_that_cannot_be_used_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    fs::write(dir.path().join("short.map"), "apple\n").unwrap();
    let cases = [
        ("--labels 1=short.map", "short.map has 1 line for 4 indices of mode 1"),
        ("--labels 2=names/fruit.map", "has more than 3 lines for 3 indices of mode 2"),
        ("--labels 1=none.map", "none.map: "),
        ("--labels 1=names", "names: "),
        ("--labels 4=short.map", "--labels 4=short.map: the tensor has 3 modes"),
        (
            "--labels 1=names/fruit.map --labels 1=short.map",
            "--labels 1=short.map: mode 1 has two files",
        ),
        ("--labels 0=short.map", "modes count from 1, as in 2=cities.map"),
        ("--labels none", "cannot read none"),
        ("--labels names/fruit.map", "the file of a mode as 2=cities.map"),
    ];
    for (options, what) in cases {
        let words = format!("cp x.tns --rank 1 --out run {options}");
        let output = decompose(dir.path()).args(words.split_whitespace()).assert().code(2);
        let told = String::from_utf8(output.get_output().stderr.clone()).unwrap();
        assert!(told.contains(what), "{options}: {told}");
        assert!(!dir.path().join("run").exists(), "{options}");
    }
    // Files beside the tensor that do not fit are passed over.
    fs::write(dir.path().join("x.1.map"), "apple\n").unwrap();
    let told = run(dir.path(), "cp x.tns --rank 1 --out run");
    assert!(told.contains("x.1.map has 1 line") && told.contains("labels are not used"), "{told}");
}
