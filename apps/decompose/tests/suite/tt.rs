//! `decompose tt`, and `predict` and `eval` on models of every kind.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use decompose_common::model::{Model, TtModel};
use serde_json::Value as Json;

use crate::common::{cp, data, decompose, fit, json, names};

/// Runs a command in `folder`; it must succeed.  Returns both streams.
fn run(folder: &Path, words: &str) -> (String, String) {
    let mut command = decompose(folder);
    let output = command.args(words.split_whitespace()).assert().success().get_output().clone();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Runs a command; it must refuse with code 2, say `expected`, and leave no file.
fn refuse(folder: &Path, words: &str, expected: &str) {
    let before = names(folder);
    let output = decompose(folder).args(words.split_whitespace()).assert().code(2);
    let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains(expected), "`{words}` should say `{expected}`:\n{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(names(folder), before, "`{words}` left files");
}

fn sun() -> String {
    data("sun-elevation.tns.gz").display().to_string()
}

fn tz() -> String {
    data("tz-transitions.tns.gz").display().to_string()
}

fn train(folder: &Path) -> TtModel<f64> {
    match Model::<f64>::read(folder).unwrap() {
        Model::Tt(model) => model,
        _ => panic!("not a train"),
    }
}

#[test]
fn the_memory_that_is_held_was_foreseen() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), "generate uniform --dims 60,50,40,30 --nnz 20000 -o x.dtb");
    // Ranks that only the values decide are guessed, and the forecast says so.
    for (options, said) in [("--eps 0.1", "memory   at least "), ("--ranks 4", "memory   ")] {
        let (_, text) = run(dir.path(), &format!("tt {options} -t 2 x.dtb --explain"));
        assert!(text.contains(said), "{options}: {text}");
        assert_eq!(text.contains("at least"), said.contains("at least"), "{options}: {text}");
    }
    // Noise has nearly all the ranks that its shape allows.
    for (number, options) in ["--eps 0.1", "--eps 0.9", "--ranks 40,60,20"].iter().enumerate() {
        run(dir.path(), &format!("tt --method svd {options} -q -t 2 x.dtb -o run{number}"));
        let record = json(&dir.path().join(format!("run{number}/run.json")));
        let bytes = |name: &str| record["memory"][name].as_u64().unwrap();
        let (peak, foreseen) = (bytes("actual_peak"), bytes("predicted_peak"));
        // Foreseen to a tenth: see `memory.rs`.
        assert!(peak <= foreseen + foreseen / 10, "{options}: {peak} {}", record["memory"]);
    }
}

#[test]
fn every_method_finds_the_two_terms_of_the_sun() {
    let dir = tempfile::tempdir().unwrap();
    for (options, folder) in [
        ("--ranks 2,2", "a"),
        ("--eps 1e-6", "b"),
        ("--eps 1e-6 --method dmrg", "c"),
        ("--ranks 2 --order 3,1,2", "d"),
        ("--ranks 2 --order auto --precision f32", "e"),
    ] {
        let (out, _) = run(dir.path(), &format!("tt {options} {} -o {folder}", sun()));
        assert!(out.contains("ranks 2-2"), "{options}: {out}");
        let folder = dir.path().join(folder);
        let record = json(&folder.join("run.json"));
        let result = &record["result"];
        let error = result["relative_error"].as_f64().unwrap();
        // Single precision stores the values to 6e-8 of their size.
        assert!(error < 2e-6, "{options}: {error}");
        assert_eq!(result["verified"]["measured"], "cells", "{options}");
        assert!(result["keeps_bound"].as_bool() != Some(false));
        let model = train(&folder);
        assert_eq!((model.ranks(), model.extents()), (vec![2, 2], vec![19, 73, 48]));
        for name in ["history.csv", "spectra.csv", "spectra.svg", "timing.png"] {
            assert!(folder.join(name).is_file(), "{options}: {name}");
        }
    }
    let order = train(&dir.path().join("d")).order().to_string();
    assert_eq!(order, "3-1-2");
}

#[test]
fn a_bound_below_what_can_be_measured_is_not_said_to_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let cells = (0..27).map(|at| [at / 9, at / 3 % 3, at % 3]);
    let line = |[i, j, k]: [usize; 3]| {
        let value = (1.0 + i as f64) * (0.7 + j as f64) * (0.3 + k as f64);
        format!("{} {} {} {value}\n", i + 1, j + 1, k + 1)
    };
    fs::write(dir.path().join("x.tns"), cells.map(line).collect::<String>()).unwrap();
    let (out, _) = run(dir.path(), "tt --eps 1e-20 x.tns -o run");
    assert!(out.contains("the bound 1e-20 is below what can be measured"), "{out}");
    assert!(json(&dir.path().join("run/run.json"))["result"]["keeps_bound"].is_null());
    let (out, _) = run(dir.path(), "tt --eps 1e-6 x.tns -o other");
    assert!(out.contains("the bound 1e-6 is kept"), "{out}");
}

#[test]
fn a_run_is_explained_told_rounded_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let (out, _) = run(dir.path(), &format!("tt --ranks 4 {} --explain --order auto", tz()));
    for text in ["order: modes", "core 1 on tree", "core 4", "search   spttn", "predicted"] {
        assert!(out.contains(text), "{text}: {out}");
    }
    assert!(names(dir.path()).is_empty());
    run(dir.path(), &format!("tt --eps 0.4 {} -o run", tz()));
    let (out, _) = run(dir.path(), "tt --info run --out info");
    for text in ["ranks        ", "times fewer than cells", "bond 1", "norm  "] {
        assert!(out.contains(text), "{text}: {out}");
    }
    assert_eq!(names(&dir.path().join("info")), ["spectra.csv", "spectra.png", "spectra.svg"]);
    let (out, _) = run(dir.path(), "tt --round run --eps 0.5 -o small");
    assert!(out.contains("the bound is 5e-1"), "{out}");
    let (before, after) = (train(&dir.path().join("run")), train(&dir.path().join("small")));
    let size = |model: &TtModel<f64>| model.cores().iter().map(|core| core.len()).sum::<usize>();
    assert!(size(&after) < size(&before));
    // Told with respect to the train, so that the tensor sees at most both errors together.
    let (out, _) = run(dir.path(), &format!("eval small {} --json", tz()));
    let measures: Json = serde_json::from_str(&out).unwrap();
    assert!(measures["relative_error"].as_f64().unwrap() < 0.4 + 0.5);
    run(dir.path(), "plot run -o drawn");
}

#[test]
fn a_resumed_run_is_the_same_bit_by_bit() {
    let dir = tempfile::tempdir().unwrap();
    let options = format!("tt --ranks 5 --tol 0 {}", tz());
    run(dir.path(), &format!("{options} --max-iters 9 -o whole"));
    run(dir.path(), &format!("{options} --max-iters 4 --checkpoint-every 2 -o part"));
    run(dir.path(), &format!("{options} --max-iters 9 --resume part"));
    let model = |folder: &str| fs::read(dir.path().join(folder).join("model.npz")).unwrap();
    assert_eq!(model("whole"), model("part"));
    let lines = |folder: &str| {
        let text = fs::read_to_string(dir.path().join(folder).join("history.csv")).unwrap();
        text.lines().count()
    };
    assert_eq!((lines("whole"), lines("part")), (10, 10));
    refuse(dir.path(), &format!("tt --ranks 4 --tol 0 {} --resume part", tz()), "ranks: saved");
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_leaves_a_usable_train() {
    let dir = tempfile::tempdir().unwrap();
    let program = assert_cmd::cargo::cargo_bin("decompose");
    let mut run = Command::new(program)
        .arg("tt")
        .arg(data("tz-transitions.tns.gz"))
        .args("--ranks 8 --tol 0 --max-iters 100000000 -q -o run".split(' '))
        .current_dir(dir.path())
        .env("DECOMPOSE_CACHE", dir.path().join("cache"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let history = dir.path().join("run/history.csv");
    let begun = Instant::now();
    while !fs::read_to_string(&history).is_ok_and(|text| text.lines().count() > 3) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no iteration within a minute");
        sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let record = json(&dir.path().join("run/run.json"));
    assert_eq!(record["result"]["stop"], "interrupted");
    assert_eq!(train(&dir.path().join("run")).ranks(), [8, 8, 2]);
}

#[test]
fn bad_options_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("v.tns"), "1 1\n3 2\n").unwrap();
    fs::write(dir.path().join("m.tns"), "1 1 1\n3 2 2\n").unwrap();
    fs::write(dir.path().join("zero.tns"), "1 1 0\n3 2 0\n").unwrap();
    let sun = sun();
    for (words, expected) in [
        (format!("tt {sun}"), "no ranks given"),
        (format!("tt --ranks 2,2,2 {sun}"), "3 ranks for a tensor of order 3"),
        (format!("tt --ranks 20,2 {sun}"), "rank 20 of bond 1 is more than the 19"),
        (format!("tt --ranks 0 {sun}"), "not a number from 1 on"),
        (format!("tt --eps 0 {sun}"), "eps is 0; use a number between 0 and 1"),
        (format!("tt --eps 2 {sun}"), "eps is 2"),
        (format!("tt --eps 0.1 --method als {sun}"), "use dmrg or svd"),
        (format!("tt --eps 0.1 --ranks 2 {sun}"), "cannot be used with"),
        (format!("tt --ranks 2 --max-rank 3 {sun}"), "--eps"),
        (format!("tt --ranks 2 --order 1,2 {sun}"), "does not list each of the 3 modes once"),
        (format!("tt --ranks 2 --order 1,2,2 {sun}"), "no order of the modes"),
        (format!("tt --ranks 2 --method magic {sun}"), "no method `magic`"),
        ("tt --ranks 2 v.tns".into(), "order 1"),
        ("tt --eps 0.1 --method dmrg m.tns".into(), "use svd or als"),
        ("tt --ranks 1 zero.tns".into(), "every value of the tensor is zero"),
        (format!("tt --ranks 2 --max-memory 1M {sun}"), "may be used"),
        (format!("tt --eps 0.1 --resume nowhere {sun}"), "nothing to start from or to resume"),
        (format!("tt --info {sun}"), "sun-elevation"),
        ("tt --info nowhere.npz".into(), "cannot open"),
        ("tt --round nowhere.npz --eps 0.1".into(), "cannot open"),
    ] {
        refuse(dir.path(), &words, expected);
    }
}

/// The columns of a list of non-zeros.
fn rows(path: &Path) -> Vec<Vec<f64>> {
    let text = fs::read_to_string(path).unwrap();
    let row = |line: &str| line.split_whitespace().map(|word| word.parse().unwrap()).collect();
    text.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

#[test]
fn models_of_every_kind_predict_and_are_measured() {
    let dir = tempfile::tempdir().unwrap();
    cp(dir.path(), "sun-elevation.tns.gz", "--rank 2 -o cp --tol 0 --max-iters 200");
    run(dir.path(), &format!("tt --ranks 2,2 --order 2,3,1 {} -o tt", sun()));
    // The first cell, one twice, in any order, without values and with.
    fs::write(dir.path().join("bare.tns"), "# cells\n19 73 48\n1 1 1\n5 40 20\n1 1 1\n").unwrap();
    fs::write(dir.path().join("full.tns"), "19 73 48 9\n1 1 1 9\n5 40 20 9\n1 1 1 9\n").unwrap();
    run(dir.path(), &format!("convert {} sun.tns", sun()));
    let truth = rows(&dir.path().join("sun.tns"));
    for model in ["cp", "tt"] {
        for list in ["bare", "full"] {
            run(dir.path(), &format!("predict {model} {list}.tns --out p.tns --overwrite"));
            let found = rows(&dir.path().join("p.tns"));
            assert_eq!(found.len(), 4);
            assert_eq!(found[1], found[3]);
            for row in &found {
                let cell = truth.iter().find(|cell| cell[..3] == row[..3]).unwrap();
                // The fit of cp is known to 3e-8 only.
                assert!((row[3] - cell[3]).abs() < 1e-6, "{model} {list}: {row:?} {cell:?}");
            }
        }
        run(dir.path(), &format!("predict {model} full.tns --out {model}.npy"));
        let (out, _) =
            run(dir.path(), &format!("eval {model} {} --json --residuals {model}-r.tns", sun()));
        let measures: Json = serde_json::from_str(&out).unwrap();
        let number = |name: &str| measures[name].as_f64().unwrap();
        assert!((number("fit") - fit(&dir.path().join(model))).abs() < 1e-7, "{out}");
        assert!(number("rmse") < 1e-6 && number("mae") <= number("rmse"), "{out}");
        let residuals = rows(&dir.path().join(format!("{model}-r.tns")));
        let largest = residuals.iter().map(|row| row[3].abs()).fold(0.0, f64::max);
        assert_eq!((residuals.len(), largest), (66_576, number("largest_residual")));
        let (out, _) = run(dir.path(), &format!("eval {model} {}", sun()));
        assert!(out.contains("RMSE") && out.contains("over all cells"), "{out}");
    }
}

#[test]
fn coordinates_outside_of_a_model_are_named_with_their_line() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), &format!("tt --ranks 2,2 {} -o tt", sun()));
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("far.tns", "# cells\n\n1 1 1 1\n5 74 20 1\n");
    write("bare.tns", "1 1 1\n5 7 49\n");
    write("half.tns", "1 1 1\n5 7 1.5\n");
    write("flat.tns", "1 1\n2 2\n");
    for (words, expected) in [
        ("predict tt far.tns --out p.tns", "far.tns:4: index 74 in mode 2 is outside"),
        ("eval tt far.tns", "far.tns:4: index 74 in mode 2 is outside"),
        ("predict tt bare.tns --out p.tns", "bare.tns:2: index 49 in mode 3 is outside"),
        ("predict tt half.tns --out p.tns", "half.tns:2: index 1.5 in mode 3 is outside"),
        ("predict tt flat.tns --out p.tns", "is of order 1, the model of 3"),
        ("eval tt bare.tns", "is of order 2, the model of 3"),
        ("predict nowhere bare.tns --out p.tns", "cannot open"),
        ("predict tt far.tns --out p.xyz", "does not tell the format"),
        ("predict tt bare.tns --out bare.tns", "exists"),
    ] {
        refuse(dir.path(), words, expected);
    }
}
