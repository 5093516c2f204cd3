//! `decompose complete` and `rank`: cells that are unknown, measured twice, or all alike.

use std::fs;
use std::path::Path;

use decompose_common::model::Model;
use ndarray::{Array2, array};
use ndarray_npy::write_npy;

use crate::common::{decompose, json};

/// Runs the command in `folder`; it must end with `code`.
fn run(folder: &Path, words: &str, code: i32) -> (String, String) {
    let mut command = decompose(folder);
    command.args(words.split_whitespace());
    let output = command.assert().code(code).get_output().clone();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Returns the value of the model in `run` at a cell, counted from 0.
fn at(run: &Path, cell: [usize; 2]) -> f64 {
    let Model::Cp(model) = Model::<f64>::read(run).unwrap() else { panic!("no CP model") };
    (0..model.rank())
        .map(|r| {
            let rows = model.factors().iter().zip(cell).map(|(factor, index)| factor.row(index)[r]);
            model.weights()[r] * rows.product::<f64>()
        })
        .sum()
}

const EXACT: &str = "--rank 1 --split 1,0 --reg 1e-9 --tol 1e-12 --no-codegen";

#[test]
fn missing_cells_are_learnt_and_zeros_count() {
    let dir = tempfile::tempdir().unwrap();
    // (0, 1, 2, 3) x (1, 2, 4), three cells unknown.
    let mut table: Array2<f64> = array![[0.0], [1.0], [2.0], [3.0]].dot(&array![[1.0, 2.0, 4.0]]);
    let unknown = [[0, 0], [1, 1], [3, 2]];
    let values = unknown.map(|cell| std::mem::replace(&mut table[cell], f64::NAN));
    write_npy(dir.path().join("x.npy"), &table).unwrap();
    let text: String = table
        .indexed_iter()
        .map(|((i, j), value)| format!("{} {} {value}\n", i + 1, j + 1))
        .collect();
    fs::write(dir.path().join("x.tns"), text).unwrap();
    for file in ["x.npy", "x.tns"] {
        let (_, refusal) = run(dir.path(), &format!("complete {file} {EXACT} --out r"), 2);
        assert!(refusal.contains("NaN") && !dir.path().join("r").exists(), "{refusal}");
        let words = format!("complete {file} {EXACT} --missing nan --out r --overwrite");
        let (_, stderr) = run(dir.path(), &words, 0);
        assert!(stderr.contains("3 missing") && !stderr.contains("are taken to be"), "{stderr}");
        let record = json(&dir.path().join("r/run.json"));
        // Three of the nine known cells are zeros.
        assert_eq!(record["plan"]["train_entries"], 9, "{file}");
        assert_eq!(record["options"]["missing"], "nan");
        for (cell, value) in unknown.into_iter().zip(values) {
            let have = at(&dir.path().join("r"), cell);
            assert!((have - value).abs() < 1e-5, "{file} {cell:?}: {have} for {value}");
        }
        fs::remove_dir_all(dir.path().join("r")).unwrap();
    }
    // Cells that the mask does not have are unknown too; a NaN there is one more of them.
    fs::write(dir.path().join("mask.tns"), "1 2 1\n2 1 1\n2 3 1\n3 1 1\n4 1 1\n4 2 nan\n").unwrap();
    let words = format!("complete x.npy {EXACT} --missing nan --mask mask.tns --out m");
    run(dir.path(), &words, 0);
    assert_eq!(json(&dir.path().join("m/run.json"))["plan"]["train_entries"], 5);
    let (_, refusal) = run(dir.path(), "rank x.npy --ranks 1 --method cp --missing nan", 2);
    assert!(refusal.contains("--missing needs --method complete"), "{refusal}");
}

#[test]
fn measurements_of_a_cell_are_averaged_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    // (1, 2) x (1, 3, 2); cells 1 1 and 2 3 were measured twice and three times.
    let text = "1 1 0.5\n1 1 1.5\n1 2 3\n1 3 2\n2 1 2\n2 2 6\n2 3 3\n2 3 4\n2 3 5\n";
    fs::write(dir.path().join("x.tns"), text).unwrap();
    let complete = |options: &str| {
        let words = format!("complete x.tns {EXACT} {options} --out r --overwrite");
        let (_, stderr) = run(dir.path(), &words, 0);
        (json(&dir.path().join("r/run.json")), stderr)
    };
    let (record, stderr) = complete("");
    assert_eq!(record["options"]["duplicates"], "mean");
    assert_eq!(record["input"]["duplicates_merged"], 3);
    assert!(stderr.contains("warning: 3 entries have the indices of another one"), "{stderr}");
    for (cell, value) in [([0, 0], 1.0), ([1, 2], 4.0)] {
        assert!((at(&dir.path().join("r"), cell) - value).abs() < 1e-5);
    }
    // Who asks for a rule needs no warning.
    let (record, stderr) = complete("--duplicates sum");
    assert_eq!(record["options"]["duplicates"], "sum");
    assert!(!stderr.contains("of another one"), "{stderr}");
    let rank = |method: &str| {
        let words = format!(
            "rank x.tns --ranks 1 --split 1,0 --max-iters 2 --no-codegen --method {method} --out {method}"
        );
        let (_, stderr) = run(dir.path(), &words, 0);
        let record = json(&dir.path().join(method).join("run.json"));
        assert_eq!(record["result"]["stop"], "complete");
        (record["options"]["duplicates"].clone(), stderr.contains("of another one"))
    };
    assert_eq!(rank("complete"), ("mean".into(), true));
    assert_eq!(rank("cp"), ("sum".into(), false));
}

#[test]
fn values_that_are_all_equal_are_nothing_to_complete() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, last: u32| {
        let line = |at: u32| {
            format!("{} {} {}\n", at % 7 + 1, at / 7 + 1, if at == 48 { last } else { 1 })
        };
        fs::write(dir.path().join(name), (0..49).map(line).collect::<String>()).unwrap();
    };
    write("ones.tns", 1);
    write("two.tns", 2);
    let words = |file: &str| {
        format!("complete {file} --rank 2 --max-iters 5 --no-codegen --out {file}-run")
    };
    let (stdout, stderr) = run(dir.path(), &words("ones.tns"), 0);
    assert!(
        stderr.contains("every listed value is 1: cells that are not listed seem to be zeros"),
        "{stderr}"
    );
    assert!(stderr.contains("--mask") && stderr.contains("decompose cp"), "{stderr}");
    assert!(
        stdout.contains("there is nothing to learn") && !stdout.contains("another rank"),
        "{stdout}"
    );
    let (stdout, stderr) = run(dir.path(), &words("two.tns"), 0);
    assert!(!stderr.contains("every listed") && !stdout.contains("every listed"), "{stderr}");
    // With the zeros of a mask there is something to learn.
    let cells: String = (0..98).map(|at| format!("{} {} 1\n", at % 7 + 1, at / 7 + 1)).collect();
    fs::write(dir.path().join("mask.tns"), cells).unwrap();
    let (_, stderr) =
        run(dir.path(), &format!("{} --mask mask.tns --overwrite", words("ones.tns")), 0);
    assert!(!stderr.contains("every listed"), "{stderr}");
}

#[test]
fn tables_and_warnings_name_labelled_indices() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.tns"), "1 1 1\n1 2 2\n2 1 2\n2 2 4\n3 1 3\n3 2 6\n").unwrap();
    fs::write(dir.path().join("test.tns"), "3 2 6\n2 1 2\n").unwrap();
    fs::create_dir(dir.path().join("x")).unwrap();
    fs::write(dir.path().join("x/mode-1-city.map"), "Rome\n\"Oslo\", N\nBonn\n").unwrap();
    let (_, stderr) =
        run(dir.path(), "complete x.tns --rank 1 --test test.tns --no-codegen --out r", 0);
    assert!(stderr.contains("(the first: 2 (\"Oslo\", N) 1)"), "{stderr}");
    let table = fs::read_to_string(dir.path().join("r/predictions.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "mode_1,mode_2,observed,predicted,label_1");
    let ends = ["2,1,2,", "3,2,6,"].iter().zip([",\"\"\"Oslo\"\", N\"", ",Bonn"]);
    for (line, (start, end)) in lines[1..].iter().zip(ends) {
        assert!(line.starts_with(start) && line.ends_with(end), "{line}");
    }
    run(dir.path(), "cp x.tns -r 1 --out-format csv --no-codegen --out c", 0);
    let factor =
        |mode: usize| fs::read_to_string(dir.path().join(format!("c/factor_{mode}.csv"))).unwrap();
    assert!(factor(1).starts_with("index,component_1,label\n1,"), "{}", factor(1));
    assert!(factor(1).contains(",Rome\n2,") && factor(2).starts_with("index,component_1\n"));
}
