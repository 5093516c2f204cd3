//! `decompose eval` and `predict` say of a completion's model what the completion said.

use std::fs;
use std::path::Path;

use decompose_common::model::{self, CpModel, Link, ModelFormat, Stored};
use decompose_formats::Matrix;
use serde_json::Value as Json;

use crate::common::{decompose, json};

/// Runs the command in `folder`; it must succeed.  Returns standard output and error.
fn run(folder: &Path, line: &str) -> (String, String) {
    let output = decompose(folder).args(line.split_whitespace()).assert().success();
    let output = output.get_output().clone();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Writes entries of a 12 x 10 x 8 box: training and, one of four, test.
fn write(folder: &Path, value: impl Fn([usize; 3], usize) -> f64) {
    let (mut train, mut test) = (String::new(), String::new());
    for entry in 0..960 {
        let at = [entry / 80, entry / 8 % 10, entry % 8];
        let line = format!("{} {} {} {:e}\n", at[0] + 1, at[1] + 1, at[2] + 1, value(at, entry));
        // Every index is in training entries, too.
        if (entry + entry / 8) % 4 == 1 { test += &line } else { train += &line }
    }
    fs::write(folder.join("train.tns"), train).unwrap();
    fs::write(folder.join("test.tns"), test).unwrap();
}

/// A number from 0 to 1 that looks random.
fn draw(entry: usize) -> f64 {
    (entry as f64 * 12.9898).sin().abs() * 43758.547 % 1.0
}

fn logit([i, j, k]: [usize; 3]) -> f64 {
    let wave = |at: usize, n: usize| (at as f64 * 1.7 + n as f64).sin();
    6.0 * wave(i, 0) * wave(j, 1) * wave(k, 2)
}

fn number(json: &Json, name: &str) -> f64 {
    json[name].as_f64().unwrap_or(f64::NAN)
}

#[test]
fn zeros_and_ones_are_predicted_by_probabilities_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let bit =
        |at, entry: usize| f64::from(u8::from(draw(entry) < 1.0 / (1.0 + f64::exp(-logit(at)))));
    write(dir.path(), bit);
    for (out, more) in [("plain", ""), ("offsets", "--biases")] {
        let options = "--rank 2 --loss bernoulli --reg 0.1 --test test.tns --seed 1";
        let (stdout, _) =
            run(dir.path(), &format!("complete train.tns {options} {more} --out {out}"));
        for word in ["AUC", "log-loss", "Brier score", "calibration", "R2"] {
            assert!(stdout.contains(word), "{word}: {stdout}");
        }
        let result = &json(&dir.path().join(out).join("run.json"))["result"];
        let test = &result["best"]["test"];
        let (evaluated, _) = run(dir.path(), &format!("eval {out} test.tns --json"));
        let evaluated: Json = serde_json::from_str(&evaluated).unwrap();
        for name in ["rmse", "mae"] {
            let (have, want) = (number(&evaluated, name), number(test, name));
            assert!((have / want - 1.0).abs() < 1e-9, "{out} {name}: {have} for {want}");
        }
        let bits = &evaluated["bits"];
        assert!((number(bits, "log_loss") / number(test, "log_loss") - 1.0).abs() < 1e-9);
        assert!((number(bits, "auc") - number(test, "auc")).abs() < 1e-9);
        assert!((number(bits, "brier").sqrt() / number(test, "rmse") - 1.0).abs() < 1e-9);
        let told = &result["held_out"]["bits"];
        assert!(
            (number(bits, "calibration_error") - number(told, "calibration_error")).abs() < 1e-9
        );
        assert!(evaluated["fit"].is_null() && evaluated["loss"] == "bernoulli");
        // Probabilities, as in predictions.csv; log-odds when asked for.
        run(dir.path(), &format!("predict {out} test.tns --out {out}.tns"));
        run(dir.path(), &format!("predict {out} test.tns --link --out {out}-odds.tns"));
        let last = |text: &str, separator: char| -> Vec<(String, f64)> {
            let rows = text.lines().filter(|line| !line.starts_with('#'));
            let parts = rows.map(|line| line.rsplit_once(separator).unwrap());
            parts.map(|(at, value)| (at.to_owned(), value.parse().unwrap())).collect()
        };
        let read = |name: String| fs::read_to_string(dir.path().join(name)).unwrap();
        let table = read(format!("{out}/predictions.csv"));
        let table = last(table.split_once('\n').unwrap().1, ',');
        let (means, odds) =
            (last(&read(format!("{out}.tns")), ' '), last(&read(format!("{out}-odds.tns")), ' '));
        assert_eq!((means.len(), odds.len()), (table.len(), table.len()));
        for (at, p) in &table {
            let (at, _) = at.rsplit_once(',').unwrap();
            let same = means.iter().position(|(a, _)| a.replace(' ', ",") == at).unwrap();
            assert!((means[same].1 - p).abs() < 1e-9, "{at}: {p}");
            assert!((1.0 / (1.0 + (-odds[same].1).exp()) - p).abs() < 1e-9, "{at}");
        }
    }
    let stored = Stored::<f64>::read(&dir.path().join("offsets")).unwrap();
    assert_eq!((stored.meaning.link, stored.meaning.biases), (Link::Logit, 4));
    let start = decompose(dir.path())
        .args("cp train.tns --rank 2 --init plain/model.npz --nowrite".split(' '))
        .assert()
        .code(2);
    let stderr = String::from_utf8(start.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains("a model of log-odds"), "{stderr}");
}

#[test]
fn counts_keep_their_deviance_and_values_of_any_size_their_fit() {
    let dir = tempfile::tempdir().unwrap();
    let rate = |[i, j, k]: [usize; 3]| ((1 + i) * (2 + j) * (1 + k)) as f64 / 20.0;
    write(dir.path(), |at, entry| (rate(at) * (0.5 + draw(entry))).round());
    run(dir.path(), "complete train.tns --rank 1 --loss poisson --test test.tns --out run");
    let record = json(&dir.path().join("run/run.json"));
    let test = &record["result"]["best"]["test"];
    let (evaluated, _) = run(dir.path(), "eval run test.tns --json");
    let evaluated: Json = serde_json::from_str(&evaluated).unwrap();
    for name in ["rmse", "deviance"] {
        assert!((number(&evaluated, name) / number(test, name) - 1.0).abs() < 1e-9, "{name}");
    }
    assert!(number(&evaluated, "fit") < 1.0 && evaluated["bits"].is_null());
    for unit in [1e-200, 1e200] {
        write(dir.path(), |at, entry| unit * rate(at) * (0.9 + 0.2 * draw(entry)));
        let options = "--rank 1 --test test.tns --out any --overwrite";
        let (_, stderr) = run(dir.path(), &format!("complete train.tns {options}"));
        assert!(!stderr.contains("warning: the model"), "{stderr}");
        let record = json(&dir.path().join("any/run.json"));
        assert!(number(&record["result"], "fit") > 0.9, "{unit}: {}", record["result"]["fit"]);
        let (evaluated, _) = run(dir.path(), "eval any test.tns --json");
        let evaluated: Json = serde_json::from_str(&evaluated).unwrap();
        let told = number(&record["result"]["best"]["test"], "rmse");
        assert!((number(&evaluated, "rmse") / told - 1.0).abs() < 1e-9, "{unit}");
        assert!(number(&evaluated, "r2") > 0.9 && number(&evaluated, "model_norm") > 0.0, "{unit}");
    }
}

#[test]
fn models_that_are_no_numbers_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.tns"), "1 1 1\n2 2 3\n").unwrap();
    let mut factor = Matrix::zeros(2, 1).unwrap();
    factor.row_mut(1)[0] = f64::NAN;
    let other = Matrix::zeros(2, 1).unwrap();
    let cp = CpModel::<f64>::new(vec![1.0], vec![factor, other]).unwrap();
    model::write(&cp, dir.path(), ModelFormat::Npz).unwrap();
    for line in ["eval model.npz x.tns", "predict model.npz x.tns --out y.tns"] {
        let output = decompose(dir.path()).args(line.split(' ')).assert().code(2);
        let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
        let want = "array `factor_1`, row 2, column 1, is NaN";
        assert!(stderr.contains("model.npz") && stderr.contains(want), "{line}: {stderr}");
    }
    assert!(!dir.path().join("y.tns").exists());
}
