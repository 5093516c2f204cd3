//! Checkpoints: a run cut short and resumed ends with the same bytes.

use std::fs;

use crate::common::{cp, data, decompose};

#[test]
fn resumed_runs_end_with_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let common = "-r 3 --tol 0 -q --checkpoint-every 2";
    let run = |options: &str| cp(dir.path(), "tz-transitions.tns.gz", options);
    run(&format!("{common} --max-iters 9 -o whole"));
    run(&format!("{common} --max-iters 4 -o part"));
    run(&format!("{common} --max-iters 9 --resume part"));
    let read = |path: &str| fs::read(dir.path().join(path)).unwrap();
    assert!(read("whole/model.npz") == read("part/model.npz"), "the models differ");
    let fits = |path: &str| -> Vec<String> {
        let text = String::from_utf8(read(path)).unwrap();
        text.lines().map(|line| line.split(',').take(5).collect::<Vec<_>>().join(",")).collect()
    };
    assert_eq!(fits("whole/history.csv"), fits("part/history.csv"));
    // Into another folder, which must not exist, while the checkpoint stays.
    run(&format!("{common} --max-iters 12 --resume part -o longer"));
    assert_eq!(fits("longer/history.csv").len(), 13);
    assert_eq!(fits("part/history.csv").len(), 10);
    let mut other = decompose(dir.path());
    other.arg("cp").arg(data("tz-transitions.tns.gz"));
    other.args("-r 3 --resume part --seed 3".split(' '));
    let output = other.assert().code(2).get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("seed: saved [0], now [3]"), "{stderr}");
    assert!(read("whole/model.npz") == read("part/model.npz"), "the models differ");
    assert_eq!(fits("part/history.csv").len(), 10, "a refused run changes nothing");
}

#[test]
fn a_refused_start_leaves_an_earlier_run_alone() {
    let dir = tempfile::tempdir().unwrap();
    cp(dir.path(), "sun-elevation.tns.gz", "-r 2 -q -o run");
    let before = fs::read(dir.path().join("run/run.json")).unwrap();
    let mut other = decompose(dir.path());
    other.arg("cp").arg(data("sun-elevation.tns.gz"));
    other.args("-r 3 --init run -o run --overwrite".split(' ')).assert().code(2);
    assert_eq!(fs::read(dir.path().join("run/run.json")).unwrap(), before);
    cp(dir.path(), "sun-elevation.tns.gz", "-r 2 -q -o run --overwrite --checkpoint-every 1");
    assert!(dir.path().join("run/checkpoint.npz").is_file());
    cp(dir.path(), "sun-elevation.tns.gz", "-r 2 -q -o run --overwrite");
    assert!(!dir.path().join("run/checkpoint.npz").exists());
}

#[test]
fn checkpoints_that_do_not_suit_are_told_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = data("sun-elevation.tns.gz").display().to_string();
    let run = |words: &str| {
        let mut command = decompose(dir.path());
        command.args(words.split(' ')).arg(&file);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let saving = "-i 2 --tol 0 --checkpoint-every 1";
    assert_eq!(run(&format!("cp -r 2 {saving} -o cp")).0, Some(0));
    assert_eq!(run(&format!("tt -r 2 {saving} -o tt")).0, Some(0));
    for (words, expected) in [
        ("cp -r 2 --reg 1 --resume cp", "reg: saved [0.0], now [1.0]; resume with the command"),
        ("tucker -r 2 --resume cp", "another command or version"),
        ("tucker -r 2 --resume tt", "resume with the command and the options that saved it"),
    ] {
        let (code, text) = run(words);
        assert_eq!(code, Some(2), "{words}: {text}");
        assert!(text.contains(expected), "{words}: {text}");
    }
    let saved = dir.path().join("cp/checkpoint.npz");
    let bytes = fs::read(&saved).unwrap();
    fs::write(&saved, &bytes[..bytes.len() / 2]).unwrap();
    let (code, text) = run("cp -r 2 --resume cp");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("cut off") && !text.contains("EOCD"), "{text}");
}
