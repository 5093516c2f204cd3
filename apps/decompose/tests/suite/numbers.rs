//! Numbers at the edges: ranks beyond the tensor's, single precision, values far from one, components of zeros.

use std::fs;
use std::path::Path;

use decompose_common::model::Model;
use serde_json::Value as Json;

use crate::common::{decompose, fit, json};

/// Runs a solver on `x.tns` into the folder `out`.
fn run(folder: &Path, words: &str) -> String {
    let mut command = decompose(folder);
    let words = words.split_whitespace();
    command.args(words).args(["x.tns", "--out", "out", "--overwrite"]);
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

/// The fit that `eval` finds for the model in `out`.
fn evaluated(folder: &Path) -> Json {
    let mut command = decompose(folder);
    let output = command.args(["eval", "out", "x.tns", "--json"]).assert().success();
    serde_json::from_slice(&output.get_output().stdout).unwrap()
}

fn write(folder: &Path, entries: impl IntoIterator<Item = ([usize; 3], f64)>) {
    let line = |(at, value): ([usize; 3], f64)| {
        format!("{} {} {} {value:e}\n", at[0] + 1, at[1] + 1, at[2] + 1)
    };
    let text: String = entries.into_iter().map(line).collect();
    fs::write(folder.join("x.tns"), text).unwrap();
}

fn cells(extents: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let [a, b, c] = extents;
    (0..a * b * c).map(move |cell| [cell / (b * c), cell / c % b, cell % c])
}

/// A tensor of rank one.
fn rank_one(at: [usize; 3]) -> f64 {
    [1.0, 2.0][at[0]] * [1.0, 3.0][at[1]] * [2.0, 1.0][at[2]]
}

/// A tensor that no small model fits.
fn rugged(at: [usize; 3]) -> f64 {
    ((at[0] * 7 + at[1] * 3 + at[2] * 5) as f64).sin() + 0.5
}

#[test]
fn single_precision_prints_the_fit_of_its_model() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), cells([2, 2, 2]).map(|at| (at, rank_one(at))));
    for words in ["cp -r 2 --seed 4", "cp -r 3 --nonneg", "tucker -r 2", "tt -r 2"] {
        run(dir.path(), &format!("{words} --precision f32"));
        let (printed, found) = (fit(&dir.path().join("out")), evaluated(dir.path()));
        let found = found["fit"].as_f64().unwrap();
        assert!((printed - found).abs() < 1e-5, "{words}: printed {printed}, found {found}");
        assert!(found > 0.998, "{words}: {found}");
    }
}

#[test]
fn models_beyond_the_range_of_numbers_are_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let value = |[i, j, k]: [usize; 3]| 7e307 + 1e307 * (i + 2 * j + 2 * k) as f64;
    write(dir.path(), cells([2, 2, 2]).map(|at| (at, value(at))));
    for words in ["cp -r 1", "tucker -r 1", "tt -r 1"] {
        let mut command = decompose(dir.path());
        command.args(words.split(' ')).args(["x.tns", "--out", "out"]);
        let output = command.assert().code(2).get_output().clone();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("overflowed; scale the tensor's values"), "{words}: {text}");
        assert!(!dir.path().join("out").exists(), "{words}");
    }
}

#[test]
fn a_large_value_is_told_in_few_digits() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), cells([3, 3, 3]).map(|at| (at, 1e308)));
    let mut command = decompose(dir.path());
    command.args(["complete", "-r", "1", "-i", "1", "x.tns", "--nowrite"]);
    let output = command.output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(text.contains("every listed value is 1e308"), "{text}");
    assert!(!text.contains(&"0".repeat(40)), "{text}");
}

#[test]
fn values_far_from_one_are_neither_zero_nor_infinite() {
    let dir = tempfile::tempdir().unwrap();
    let solvers = ["cp -r 2", "cp -r 2 --nonneg", "tucker -r 2", "tucker -r 2 --nonneg", "tt -r 2"];
    for words in solvers {
        write(dir.path(), cells([4, 3, 3]).map(|at| (at, rugged(at))));
        run(dir.path(), words);
        let ordinary = (fit(&dir.path().join("out")), evaluated(dir.path()));
        for power in [-664, 664] {
            let scale = f64::from(power).exp2();
            write(dir.path(), cells([4, 3, 3]).map(|at| (at, rugged(at) * scale)));
            run(dir.path(), words);
            let (printed, found) = (fit(&dir.path().join("out")), evaluated(dir.path()));
            let off = (printed - ordinary.0).abs();
            assert!(off < 1e-9, "{words} at {scale:e}: {printed} {}", ordinary.0);
            for (name, power) in
                [("fit", 1.0), ("rmse", scale), ("norm", scale), ("model_norm", scale)]
            {
                let (have, want) = (&found[name], ordinary.1[name].as_f64().unwrap() * power);
                let have = have.as_f64().unwrap();
                assert!(
                    (have / want - 1.0).abs() < 1e-7,
                    "{words} at {scale:e}: {name} {have} {want}"
                );
            }
        }
    }
}

#[test]
fn hosvd_takes_values_far_from_one_and_ranks_beyond_the_tensor_s() {
    let dir = tempfile::tempdir().unwrap();
    for scale in [1e-200, 1.0, 1e200] {
        write(dir.path(), cells([2, 2, 2]).map(|at| (at, rank_one(at) * scale)));
        for words in ["tucker -r 2 --method hosvd", "tucker -r 2 --method st-hosvd"] {
            run(dir.path(), words);
            assert!(fit(&dir.path().join("out")) > 1.0 - 1e-12, "{words} at {scale:e}");
            let Model::<f64>::Tucker(model) = Model::read(&dir.path().join("out")).unwrap() else {
                panic!("another kind")
            };
            for factor in model.factors() {
                let dot =
                    |r: usize, s: usize| (0..2).map(move |i| factor.row(i)[r] * factor.row(i)[s]);
                let [one, other, cross] =
                    [dot(0, 0), dot(1, 1), dot(0, 1)].map(|dot| dot.sum::<f64>());
                assert!((one - 1.0).abs() + (other - 1.0).abs() + cross.abs() < 1e-12);
            }
        }
    }
}

#[test]
fn components_of_zeros_are_named() {
    let dir = tempfile::tempdir().unwrap();
    // Two blocks of positive values: a third nonnegative component has nothing to fit.
    let block = |at: &[usize; 3]| (at[0] < 2) == (at[1] < 2) && (at[0] < 2) == (at[2] < 2);
    write(dir.path(), cells([4, 4, 4]).filter(block).map(|at| (at, 1.0)));
    let stdout = run(dir.path(), "cp -r 4 --nonneg");
    let record = json(&dir.path().join("out/run.json"));
    let weights: Vec<f64> = serde_json::from_value(record["result"]["weights"].clone()).unwrap();
    let zero: Vec<usize> = (1..=4).filter(|r| weights[r - 1] == 0.0).collect();
    assert_eq!(record["result"]["zero_components"], serde_json::json!(zero));
    let named = stdout.lines().find(|line| line.starts_with("zero "));
    assert_eq!(named.is_some(), !zero.is_empty(), "{stdout}");
}
