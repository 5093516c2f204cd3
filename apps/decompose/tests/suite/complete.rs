//! Whole runs of `decompose complete` and what they leave.

use std::fs;
use std::path::Path;

use decompose_common::model::Model;

use crate::common::{data, decompose, json, names};

/// Runs the command in `folder`; it must succeed.
fn complete(folder: &Path, file: &Path, options: &str) -> (String, String) {
    let mut command = decompose(folder);
    command.arg("complete").arg(file).args(options.split_whitespace());
    let output = command.assert().success().get_output().clone();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Runs the command in `folder`; it must refuse its input and write nothing.
fn refused(folder: &Path, file: &Path, options: &str) -> String {
    let before = names(folder);
    let mut command = decompose(folder);
    command.arg("complete").arg(file).args(options.split_whitespace());
    let output = command.assert().code(2).get_output().clone();
    assert_eq!(names(folder), before, "{options}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_twentieth_of_the_sun_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    let sun = data("sun-elevation.tns.gz");
    let (stdout, stderr) =
        complete(dir.path(), &sun, "--rank 2 --split 0.05,0.05,0.9 --reg 1e-6 --seed 1");
    let folder = dir.path().join("decompose-sun-elevation-complete-cp-r2");
    assert_eq!(
        names(&folder),
        [
            "components.csv", "components.png", "components.svg", "convergence.png",
            "convergence.svg", "history.csv", "model.npz", "predictions.csv", "predictions.png",
            "predictions.svg", "run.json", "timing.png", "timing.svg",
        ]
    );
    let record = json(&folder.join("run.json"));
    let test = record["result"]["best"]["test"]["rmse"].as_f64().unwrap();
    let none = record["result"]["baselines"][0]["test"]["rmse"].as_f64().unwrap();
    // Sines of angles, of rank two, to six digits in the file.
    assert!(test < 1e-5 && none > 0.4, "{test} {none}\n{stdout}");
    assert_eq!(record["options"]["held_out"]["split"]["train"], 0.05);
    let entries = record["plan"]["test_entries"].as_u64().unwrap();
    let predictions = fs::read_to_string(folder.join("predictions.csv")).unwrap();
    assert_eq!(predictions.lines().count() as u64, entries + 1);
    let head = "mode_1,mode_2,mode_3,observed,predicted,label_1,label_2,label_3\n";
    assert!(predictions.starts_with(head), "{predictions}");
    let history = fs::read_to_string(folder.join("history.csv")).unwrap();
    for column in ["objective", "train_rmse", "val_mae", "test_rmse", "epoch_seconds"] {
        assert!(history.lines().next().unwrap().contains(column), "{column}");
    }
    for word in ["mean of all", "mean by mode 3", "model", "epochs", "predictions.csv"] {
        assert!(stdout.contains(word), "{word}: {stdout}");
    }
    assert!(stderr.contains("training") && stderr.contains("expected at the peak"), "{stderr}");
    let model = Model::<f64>::read(&folder).unwrap();
    assert_eq!(model.extents(), [19, 73, 48]);
}

#[test]
fn every_model_and_loss_runs_and_repeats() {
    let dir = tempfile::tempdir().unwrap();
    let counts = data("tz-transitions.tns.gz");
    let cases = [
        "--rank 2 --alg ccd",
        "--rank 2 --alg sgd",
        "--rank 2 --alg als-cg --biases",
        "--rank 2 --alg als --nonneg",
        "--model tucker --ranks 2 --alg lbfgs",
        "--model tt --ranks 2,3,2 --alg als",
        "--rank 2 --loss poisson",
        "--rank 2 --loss gamma",
        "--rank 2 --loss huber --huber-delta 2 --alg adam",
        "--rank 2 --loss bernoulli",
    ];
    for case in cases {
        let run = |out: &str| {
            let options = format!("{case} --max-iters 3 --threads 2 --quiet --out {out}");
            complete(dir.path(), &counts, &options)
        };
        run("a");
        run("b");
        let model = |out: &str| fs::read(dir.path().join(out).join("predictions.csv")).unwrap();
        assert_eq!(model("a"), model("b"), "{case}");
        for out in ["a", "b"] {
            fs::remove_dir_all(dir.path().join(out)).unwrap();
        }
    }
}

#[test]
fn files_of_held_out_entries_and_zeros_count() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    // An exact rank-one table with explicit zeros: (0, 1, 2) x (1, 2, 3).
    let train = write("train.tns", "1 1 0\n1 2 0\n2 1 1\n2 3 3\n3 2 4\n3 3 6\n3 1 2\n");
    write("val.tns", "2 2 2\n");
    write("test.tns", "1 3 0\n3 1 2\n");
    let options = "--rank 1 --val val.tns --test test.tns --reg 1e-9 --out run";
    let (stdout, stderr) = complete(dir.path(), &train, options);
    let record = json(&dir.path().join("run/run.json"));
    let rmse = |part: &str| record["result"]["best"][part]["rmse"].as_f64().unwrap();
    assert!(rmse("test") < 1e-3 && rmse("val") < 1e-3, "{stdout}");
    assert!(stderr.contains("1 test entry has the indices of a training entry (the first: 3 1)"));
    let record_entries = record["plan"]["train_entries"].as_u64().unwrap();
    assert_eq!(record_entries, 7);
}

#[test]
fn resumed_runs_end_with_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let counts = data("tz-transitions.tns.gz");
    let cases = ["--rank 3 --alg als", "--rank 3 --alg sgd", "--model tt --ranks 2 --alg lbfgs"];
    for case in cases {
        let run = |options: &str| {
            let options = format!("{case} --patience 50 --checkpoint-every 2 --quiet {options}");
            complete(dir.path(), &counts, &options)
        };
        run("--max-iters 7 --restarts 2 --out whole");
        run("--max-iters 4 --out part");
        run("--max-iters 7 --restarts 2 --resume part");
        let read = |path: &str| fs::read(dir.path().join(path)).unwrap();
        for name in ["model.npz", "predictions.csv"] {
            let same = read(&format!("whole/{name}")) == read(&format!("part/{name}"));
            assert!(same, "{case}: {name} differs");
        }
        let errors = |path: &str| -> Vec<String> {
            let text = String::from_utf8(read(path)).unwrap();
            text.lines().map(|line| line.split(',').take(5).collect::<Vec<_>>().join(",")).collect()
        };
        assert_eq!(errors("whole/history.csv"), errors("part/history.csv"), "{case}");
        assert_eq!(errors("whole/history.csv").len(), 1 + 2 * 8, "{case}");
        let mut other = decompose(dir.path());
        other.arg("complete").arg(&counts).args(case.split(' '));
        let output = other.args("--resume part --seed 3".split(' ')).assert().code(2);
        let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
        // The seed of the split is another one too.
        assert!(stderr.contains("part/checkpoint.npz: entries: saved ["), "{stderr}");
        assert!(read("whole/model.npz") == read("part/model.npz"), "a refused run changes nothing");
        for out in ["whole", "part"] {
            fs::remove_dir_all(dir.path().join(out)).unwrap();
        }
    }
}

#[test]
fn unknown_indices_are_refused_or_means() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tns");
    // An exact table: (1, 2, 3) x (1, 2, 4).
    fs::write(&path, "1 1 1\n1 2 2\n1 3 4\n2 1 2\n2 2 4\n2 3 8\n3 1 3\n3 2 6\n3 3 12\n").unwrap();
    complete(dir.path(), &path, "--rank 1 --split 1,0 --reg 0 --out run --quiet");
    fs::write(dir.path().join("cells.tns"), "2 3 0\n5 2 0\n9 9 0\n").unwrap();
    let predict = |options: &str| {
        let mut command = decompose(dir.path());
        command.args("predict run cells.tns --out values.tns".split(' '));
        command.args(options.split_whitespace()).assert()
    };
    let refused = predict("").code(2).get_output().clone();
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("cells.tns:2: index 5 in mode 1 is outside"), "{stderr}");
    assert!(stderr.contains("--unknown mean"), "{stderr}");
    assert!(!dir.path().join("values.tns").exists());
    let output = predict("--unknown mean").success().get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("2 coordinates are outside of the model"), "{stderr}");
    let text = fs::read_to_string(dir.path().join("values.tns")).unwrap();
    let rows: Vec<Vec<f64>> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
        .collect();
    // 2 x 4; the mean of 2, 4, 6; the mean of all nine.  Alternation fits them to rounding.
    let wanted = [[2.0, 3.0, 8.0], [5.0, 2.0, 4.0], [9.0, 9.0, 14.0 / 3.0]];
    for (row, wanted) in rows.iter().zip(wanted) {
        let close = row.iter().zip(wanted).all(|(have, want)| (have - want).abs() < 1e-6);
        assert!(close && rows.len() == 3, "{rows:?}");
    }
}

#[test]
fn bad_input_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tns");
    fs::write(&path, "1 1 1\n2 1 -2\n2 2 3\n1 2 4\n").unwrap();
    let cases = [
        ("", "no rank given"),
        ("--rank 2 --loss poisson --split 1,0", "training entry at 2 1 is -2"),
        ("--rank 2 --loss bernoulli --split 1,0", "the bernoulli loss is for 0 or 1"),
        ("--rank 2 --split 0.5,0.4", "adds up to 0.9"),
        ("--rank 2 --split 0.9999,0.0001", "test part is empty"),
        ("--rank 2 --split-by time", "needs --time-mode"),
        ("--rank 2 --split-by time --time-mode 3", "time mode 3 of a tensor of 2 modes"),
        ("--rank 2 --loss huber --alg ccd --split 1,0", "ccd minimises the gaussian loss"),
        ("--model tucker --ranks 2,2,2", "3 ranks for a tensor of 2 modes"),
        ("--rank 1 --val missing.tns", "missing.tns"),
        ("--rank 1 --precision f32", "double precision"),
    ];
    for (options, message) in cases {
        let stderr = refused(dir.path(), &path, options);
        assert!(stderr.contains(message), "{options}: {stderr}");
    }
}

#[test]
fn a_ridge_is_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let sun = data("sun-elevation.tns.gz");
    let options = "--rank 1 --reg auto --biases --max-iters 15 --seed 3";
    let run = |split: &str, out: &str| {
        let options = format!("{options} --split {split} --out {out}");
        let (stdout, _) = complete(dir.path(), &sun, &options);
        (stdout, json(&dir.path().join(out).join("run.json")))
    };
    let (stdout, record) = run("0.1,0.1,0.8", "with");
    assert!(stdout.contains("by the validation error"), "{stdout}");
    assert_eq!(record["options"]["reg"], "auto");
    let starts = record["result"]["starts"].as_array().unwrap();
    let error = |start: &serde_json::Value| start["error"].as_f64().unwrap();
    let least = starts.iter().min_by(|a, b| error(a).total_cmp(&error(b))).unwrap();
    assert_eq!(least["reg"], record["result"]["reg"]);
    assert!(starts.len() > 3 && record["result"]["held_out_to_choose"].is_null());
    let (stdout, record) = run("0.1,0.9", "without");
    let held_out = record["result"]["held_out_to_choose"].as_u64().unwrap();
    assert!(stdout.contains(&format!("by {held_out} of the training entries, then fitted to all")));
    let text = refused(dir.path(), &sun, "--rank 2 --reg auto,0.1,0.1");
    assert!(text.contains("one ridge for all modes"), "{text}");
    let text = refused(dir.path(), &sun, "--rank 2 --reg some");
    assert!(text.contains("`some` is not a number from 0 on, or `auto`"), "{text}");
    // Entries that are all one are fitted by the offset alone, which is no error of figures.
    let ones = data("tz-transitions.tns.gz");
    complete(dir.path(), &ones, "--rank 1 --reg auto --biases --max-iters 2 --out ones");
}

#[test]
fn time_holds_out_the_latest_days() {
    let dir = tempfile::tempdir().unwrap();
    let counts = data("tz-transitions.tns.gz");
    let options =
        "--rank 2 --split 0.8,0.1,0.1 --split-by time --time-mode 2 --max-iters 2 --out r";
    let (_, stderr) = complete(dir.path(), &counts, options);
    // Years without training entries are unknown to the model, and the user is told.
    assert!(stderr.contains("indices of mode 2 have no training entry"), "{stderr}");
    let record = json(&dir.path().join("r/run.json"));
    assert_eq!(record["options"]["held_out"]["by"]["time"]["mode"], 1);
}

#[test]
fn ranks_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let run = |options: &str| {
        let mut command = decompose(dir.path());
        command.arg("rank").arg(data("sun-elevation.tns.gz")).args(options.split_whitespace());
        let output = command.assert().success().get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    };
    let stdout = run("--ranks 1:4 --split 0.1,0.1,0.8 --restarts 3 --reg 1e-6 --out r");
    assert!(stdout.contains("recommended 2 (*)"), "{stdout}");
    assert_eq!(names(&dir.path().join("r")), ["rank.csv", "rank.png", "rank.svg", "run.json"]);
    let table = fs::read_to_string(dir.path().join("r/rank.csv")).unwrap();
    assert_eq!(table.lines().count(), 5);
    let record = json(&dir.path().join("r/run.json"));
    assert_eq!(record["result"]["recommended_rank"], 2);
    let stdout = run("--ranks 1,2 --method cp --restarts 2 --max-iters 20 --nowrite");
    // Every cell is listed, so the decomposition of the whole is exact at rank 2.
    let exact = |line: &str| line.starts_with("   2") && line.contains("1.000000");
    assert!(stdout.lines().any(exact), "{stdout}");
}
