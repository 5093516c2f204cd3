//! Whole runs of `decompose cp` and what they leave.

use std::fs;

use decompose_common::model;

use crate::common::{cp, data, decompose, fit, json, names, without_family};

#[test]
fn the_sun_has_rank_two() {
    let dir = tempfile::tempdir().unwrap();
    let (stdout, stderr) = cp(dir.path(), "sun-elevation.tns.gz", "--rank 2");
    let folder = dir.path().join("decompose-sun-elevation-cp-r2");
    assert!(fit(&folder) > 0.999999, "{stdout}");
    assert_eq!(
        names(&folder),
        [
            "components.csv", "components.png", "components.svg", "convergence.png",
            "convergence.svg", "history.csv", "model.npz", "run.json", "timing.png", "timing.svg",
        ]
    );
    let model = model::read::<f64>(&folder.join("model.npz")).unwrap();
    assert_eq!((model.extents(), model.rank()), (vec![19, 73, 48], 2));
    for word in ["fit ", "relative error", "iterations", "read", "memory", "model.npz"] {
        assert!(stdout.contains(word), "{word}: {stdout}");
    }
    for word in ["indices count from 1", "0 duplicates merged", "expected at the peak"] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
    // The labels beside the tensor are found.
    let figure = fs::read_to_string(folder.join("components.svg")).unwrap();
    assert!(figure.contains("solar-time") && figure.contains("23.5 h"));
}

#[test]
fn the_record_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    cp(dir.path(), "tz-transitions.tns.gz", "--rank 3 --out run --threads 1 --seed 7");
    let record = json(&dir.path().join("run/run.json"));
    assert_eq!(record["options"]["seed"], 7);
    assert_eq!(record["options"]["threads"], 1);
    assert_eq!(record["input"]["extents"].as_array().unwrap().len(), 4);
    assert_eq!(record["input"]["nnz"], 19686);
    assert_eq!(record["input"]["blake3"].as_str().unwrap().len(), 64);
    for mode in record["plan"]["steps"].as_array().unwrap() {
        assert!(mode["predicted_seconds"].as_f64().unwrap() > 0.0);
        assert!(mode["measured_seconds"].as_f64().unwrap() > 0.0);
        assert!(mode["schedule"].as_str().unwrap().contains("nest"));
    }
    let phases = record["phases"].as_array().unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["read", "hash", "sort", "plan", "build", "solve", "write"]);
    assert!(record["memory"]["predicted_peak"].as_u64().unwrap() > 0);
    assert_eq!(record["result"]["stop"], "converged");
    let history = fs::read_to_string(dir.path().join("run/history.csv")).unwrap();
    let iterations = record["result"]["iterations"].as_u64().unwrap();
    assert_eq!(history.lines().count() as u64, iterations + 1);
}

#[test]
fn a_folder_is_never_replaced_unasked() {
    let dir = tempfile::tempdir().unwrap();
    cp(dir.path(), "sun-elevation.tns.gz", "-r 2 -q -o run");
    let before = fs::read(dir.path().join("run/run.json")).unwrap();
    let mut again = decompose(dir.path());
    again.args(["cp", "-r", "2", "-o", "run"]).arg(data("sun-elevation.tns.gz"));
    let refused = again.assert().code(2).get_output().clone();
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("--overwrite"), "{stderr}");
    assert_eq!(fs::read(dir.path().join("run/run.json")).unwrap(), before);
    cp(dir.path(), "sun-elevation.tns.gz", "-r 2 -q -o run --overwrite --restarts 2");
    assert!(dir.path().join("run/restarts.csv").is_file());
    cp(dir.path(), "sun-elevation.tns.gz", "-r 2 -q -o run --overwrite");
    assert!(!dir.path().join("run/restarts.csv").exists());
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = |options: &str, out: &str| {
        cp(dir.path(), "tz-transitions.tns.gz", &format!("-r 4 -q {options} -o {out}"));
        fs::read(dir.path().join(out).join("model.npz")).unwrap()
    };
    let first = bytes("--seed 5", "a");
    assert!(first == bytes("--seed 5", "b"), "the models differ");
    assert!(first != bytes("--seed 6", "c"));
    assert!(first != bytes("--seed random", "d"));
}

#[test]
fn threads_precision_and_interpreter_agree() {
    let dir = tempfile::tempdir().unwrap();
    let fit_of = |options: &str, out: &str| {
        let options = format!("-r 4 --tol 0 --max-iters 12 {options} -o {out}");
        let (_, stderr) = cp(dir.path(), "tz-transitions.tns.gz", &options);
        (fit(&dir.path().join(out)), stderr)
    };
    let (one, _) = fit_of("--threads 1", "one");
    let (two, _) = fit_of("--threads 2", "two");
    assert!((one - two).abs() < 1e-10, "{one} {two}");
    let (single, _) = fit_of("--precision f32", "f32");
    assert!((one - single).abs() < 1e-4, "{one} {single}");
    let model = model::read::<f32>(&dir.path().join("f32/model.npz")).unwrap();
    assert_eq!(model.rank(), 4);
    let (interpreted, stderr) = fit_of("--no-codegen", "slow");
    assert!((one - interpreted).abs() < 1e-10, "{one} {interpreted}");
    assert_eq!(stderr.matches("interpreter").count(), 1, "{stderr}");
}

#[test]
fn restarts_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let (stdout, _) = cp(dir.path(), "sun-elevation.tns.gz", "-r 2 --restarts 3 -o run");
    assert!(stdout.contains("2 of 2 other starts found the same components"), "{stdout}");
    let folder = dir.path().join("run");
    assert!(folder.join("restarts.png").is_file());
    let table = fs::read_to_string(folder.join("restarts.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("restart,seed,fit,") && lines[0].ends_with("match_3"));
    assert!(lines[1].starts_with("1,0,") && lines[3].starts_with("3,2,"), "{table}");
}

#[test]
fn standard_input_and_events() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = decompose(dir.path());
    command.args("cp -r 2 - --json --quiet --max-iters 3".split(' '));
    command.write_stdin(fs::read(data("sun-elevation.tns.gz")).unwrap());
    let output = command.assert().success().get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(without_family(&stderr).is_empty());
    let stdout = String::from_utf8(output.stdout).unwrap();
    let events: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let first = ["start", "read", "sort", "plan", "memory", "build"];
    assert_eq!(kinds[..6], first);
    assert_eq!(kinds[6..], ["iteration", "iteration", "iteration", "result"]);
    assert_eq!(events[8]["facts"]["iteration"], 3);
    assert!(dir.path().join("decompose-stdin-cp-r2/model.npz").is_file());
}

#[test]
fn a_plan_is_explained_without_running() {
    let dir = tempfile::tempdir().unwrap();
    let (stdout, _) = cp(dir.path(), "sun-elevation.tns.gz", "-r 4 --explain");
    for word in ["path ", "nest ", "buffer ", "cost ", "generated C of mode 3: "] {
        assert!(stdout.contains(word), "{word}: {stdout}");
    }
    let source = stdout.split("mode 1: ").nth(1).unwrap().split(" (").next().unwrap();
    assert!(fs::read_to_string(source).unwrap().contains("#include"), "{source}");
    assert!(names(dir.path()).is_empty());
}

#[test]
fn merged_modes_change_no_fit() {
    let dir = tempfile::tempdir().unwrap();
    let fit = |name: &str, plan: &str| {
        let options =
            format!("--rank 3 --out {name} --threads 2 --max-iters 15 --tol 0 --plan {plan}");
        cp(dir.path(), "tz-transitions.tns.gz", &options);
        let record = json(&dir.path().join(name).join("run.json"));
        assert_eq!(record["options"]["plan"], plan);
        let merged: Vec<&str> = record["plan"]["merged"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m.as_str().unwrap())
            .collect();
        let expected: Vec<&str> = plan.split(',').filter(|set| set.contains('+')).collect();
        assert!(plan == "auto" || merged == expected, "{merged:?}");
        for step in record["plan"]["steps"].as_array().unwrap() {
            assert!(step["measured_seconds"].as_f64().unwrap() > 0.0);
        }
        record["result"]["fit"].as_f64().unwrap()
    };
    let plain = fit("plain", "none");
    for (name, plan) in [("auto", "auto"), ("one", "1+2"), ("two", "1+3,2+4"), ("three", "1+2+3")] {
        // Fifteen iterations amplify the different rounding of sums to no more than this.
        assert!((fit(name, plan) - plain).abs() < 1e-10, "{plan}");
    }
    let mut bad = decompose(dir.path());
    bad.args(["cp", "-r", "2", "-o", "bad", "--plan", "1+5"]).arg(data("tz-transitions.tns.gz"));
    let refused = bad.assert().code(2).get_output().clone();
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(
        stderr.contains("modes 1+5 cannot be merged") && !dir.path().join("bad").exists(),
        "{stderr}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn names_need_not_be_unicode() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let dir = tempfile::tempdir().unwrap();
    let name = |bytes: &[u8]| dir.path().join(OsStr::from_bytes(bytes));
    fs::copy(data("sun-elevation.tns.gz"), name(b"sun-\xff.tns.gz")).unwrap();
    for (command, options) in
        [("cp", "-r 1"), ("tucker", "--ranks 1"), ("tt", "--ranks 1"), ("complete", "-r 1")]
    {
        let out = name(&[command.as_bytes(), b"-\xfe"].concat());
        let mut run = decompose(dir.path());
        run.arg(command).arg(name(b"sun-\xff.tns.gz")).args(options.split(' ')).arg("-o").arg(&out);
        run.args(["--max-iters", "2", "-q", "--json"]).assert().success();
        let record = json(&out.join("run.json"));
        assert!(record["input"]["path"].as_str().unwrap().ends_with("sun-\u{fffd}.tns.gz"));
    }
}
