//! The output folder: one run at a time, the earlier run or the new one as a whole, nothing lost.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{cp, data, decompose, json, names, solve};

/// A run that goes on until it is killed.
const ENDLESS: &str = "-r 4 --tol 0 --max-iters 100000000 -q";

/// Starts `decompose cp` on a shipped tensor in `folder`.
fn start(folder: &Path, options: &str) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin("decompose"))
        .arg("cp")
        .arg(data("tz-transitions.tns.gz"))
        .args(options.split_whitespace())
        .current_dir(folder)
        .env("DECOMPOSE_CACHE", folder.join("cache"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until `file` is there.
fn wait_for(file: &Path) {
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no {} in a minute", file.display());
        sleep(Duration::from_millis(2));
    }
}

/// Runs `decompose cp` in `folder`; returns its exit code and what it said.
fn run(folder: &Path, options: &str) -> (i32, String) {
    let mut command = decompose(folder);
    command.arg("cp").arg(data("tz-transitions.tns.gz")).args(options.split_whitespace());
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn two_runs_never_share_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = start(dir.path(), &format!("{ENDLESS} -o run"));
    wait_for(&dir.path().join("run/history.csv"));
    for options in ["", "--overwrite", "--resume run"] {
        let (code, said) = run(dir.path(), &format!("-r 4 --max-iters 2 -o run {options}"));
        assert_eq!(code, 2, "{options}: {said}");
        let expected =
            if options == "--resume run" { "checkpoint" } else { "another run is writing" };
        assert!(said.contains(expected), "{options}: {said}");
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let (code, said) = run(dir.path(), "-r 4 --max-iters 2 -o run");
    assert!(code == 2 && said.contains("not empty"), "{said}");
    let (code, said) = run(dir.path(), "-r 4 --max-iters 2 -o run --overwrite");
    assert_eq!(code, 0, "{said}");
    assert_eq!(names(dir.path()), ["cache", "run"]);
}

#[test]
fn of_runs_that_begin_at_once_one_gets_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), "-r 3 --max-iters 1 --nowrite");
    let options = |seed: usize| format!("-r 3 --max-iters 3 --tol 0 -q -o run --seed {seed}");
    let runs: Vec<Child> = (0..4).map(|seed| start(dir.path(), &options(seed))).collect();
    let codes = runs.into_iter().map(|mut run| run.wait().unwrap().code());
    let winners: Vec<usize> =
        codes.enumerate().filter(|(_, code)| *code == Some(0)).map(|(seed, _)| seed).collect();
    let [seed] = winners[..] else { panic!("{winners:?} wrote") };
    assert_eq!(json(&dir.path().join("run/run.json"))["options"]["seed"], seed);
    cp(dir.path(), "tz-transitions.tns.gz", &options(seed).replace("-o run", "-o alone"));
    let model = |name: &str| fs::read(dir.path().join(name).join("model.npz")).unwrap();
    assert!(model("run") == model("alone"), "the model is of another seed");
}

#[test]
fn a_kill_leaves_the_earlier_run_or_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let options = |seed: usize| format!("-r 3 --max-iters 20 --tol 0 -q --seed {seed} -o");
    let cp = |options: &str| cp(dir.path(), "tz-transitions.tns.gz", options);
    cp(&format!("{} run --out-format splatt,csv --restarts 2", options(0)));
    cp(&format!("{} other", options(1)));
    let read = |name: &str, file: &str| fs::read(dir.path().join(name).join(file)).unwrap();
    let (old, new) = (read("run", "model.npz"), read("other", "model.npz"));
    let (old_names, new_names) = (names(&dir.path().join("run")), names(&dir.path().join("other")));
    assert!(old_names.contains(&"mode1.mat".to_owned()) && old != new);
    let replaced = || {
        let begun = Instant::now();
        start(dir.path(), &format!("{} other --overwrite", options(1))).wait().unwrap();
        begun.elapsed()
    };
    // The first compiles kernels.
    let whole = replaced().min(replaced());
    let mut seen = [0, 0];
    for part in 1..=10_u32 {
        let mut killed = start(dir.path(), &format!("{} run --overwrite", options(1)));
        sleep(whole * part / 9);
        killed.kill().unwrap();
        killed.wait().unwrap();
        let (names, model) = (names(&dir.path().join("run")), read("run", "model.npz"));
        let is_new = model == new;
        assert!(is_new || model == old, "part {part}: neither model");
        assert_eq!(names, *if is_new { &new_names } else { &old_names }, "part {part}");
        let seed = json(&dir.path().join("run/run.json"))["options"]["seed"].clone();
        assert_eq!(seed, u64::from(is_new), "part {part}");
        seen[usize::from(is_new)] += 1;
    }
    assert!(seen[0] > 0, "no kill came before the end");
    cp(&format!("{} run --overwrite", options(1)));
    assert_eq!(names(&dir.path().join("run")), new_names);
    assert_eq!(names(dir.path()), ["cache", "other", "run"], "leftovers are swept");
}

#[test]
fn a_killed_replacement_is_resumed_from_its_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let run = |options: &str| cp(dir.path(), "tz-transitions.tns.gz", options);
    let common = "-r 3 --tol 0 -q --restarts 2";
    run(&format!("{common} --max-iters 3 --seed 5 -o run"));
    let old = fs::read(dir.path().join("run/model.npz")).unwrap();
    let endless = "-r 3 --tol 0 -q --restarts 2 --max-iters 200 --checkpoint-every 1";
    let mut killed = start(dir.path(), &format!("{endless} -o run --overwrite"));
    wait_for(&dir.path().join(".run.partial/checkpoint.npz"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(fs::read(dir.path().join("run/model.npz")).unwrap() == old, "the old model is gone");
    // Other options are refused, and change nothing.
    let (code, said) = self::run(dir.path(), "-r 3 --resume run --seed 9 --restarts 2");
    assert!(code == 2 && said.contains("seed: saved [0], now [9]"), "{said}");
    run(&format!("{endless} --resume run"));
    run(&format!("{endless} -o whole"));
    let read = |name: &str| fs::read(dir.path().join(name).join("model.npz")).unwrap();
    assert!(read("run") == read("whole"), "the models differ");
    assert_eq!(names(&dir.path().join("run")), names(&dir.path().join("whole")));
    assert!(!dir.path().join(".run.partial").exists());
    // The record names the folder that was typed.
    assert_eq!(json(&dir.path().join("run/run.json"))["options"]["init"], "checkpoint of run");
    // Into another folder, with all that a further resumption needs.
    run(&format!("{} --resume run -o more", endless.replace("200", "201")));
    run(&format!("{} --resume more", endless.replace("200", "202")));
}

#[test]
fn files_of_others_stay_and_links_are_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("run");
    let run = |options: &str| cp(dir.path(), "sun-elevation.tns.gz", options);
    run("-r 2 -q -o run --out-format splatt,csv,ttb");
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    fs::write(dir.path().join("victim"), "mine").unwrap();
    for name in ["model.npz", "history.csv", "run.json", ".decompose-1.part"] {
        let _ = fs::remove_file(folder.join(name));
        symlink("../victim", folder.join(name)).unwrap();
    }
    run("-r 2 -q -o run --overwrite");
    let mine = |path: &Path| fs::read_to_string(path).unwrap() == "mine";
    assert!(mine(&folder.join("notes.txt")) && mine(&dir.path().join("victim")));
    run("-r 2 -q -o fresh");
    let mut expected = names(&dir.path().join("fresh"));
    expected.push("notes.txt".into());
    expected.sort();
    assert_eq!(names(&folder), expected, "files of the earlier run stand beside the new model");
    assert!(!fs::symlink_metadata(folder.join("model.npz")).unwrap().is_symlink());
    assert_eq!(names(dir.path()), ["fresh", "run", "victim"]);
    // Where the shell stands in the folder, the folder stays the same.
    let mut here = decompose(&folder);
    here.args("cp -r 1 -q -o . --overwrite".split(' ')).arg(data("sun-elevation.tns.gz"));
    here.assert().success();
    assert_eq!(names(&folder), expected);
    assert_eq!(json(&folder.join("run.json"))["options"]["rank"], 1);
}

#[test]
fn every_file_of_a_run_is_known_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = "tz-transitions.tns.gz";
    for (command, options) in [
        ("cp", "-r 2 --restarts 2 --max-iters 2 --out-format splatt,ttb,csv --checkpoint-every 1"),
        ("tucker", "--ranks 2 --restarts 2 --max-iters 2 --checkpoint-every 1"),
        ("tt", "--ranks 2 --max-iters 2 --checkpoint-every 1"),
        ("complete", "-r 2 --restarts 2 --max-iters 2 --checkpoint-every 1"),
        ("rank", "--ranks 1:2 --restarts 2 --max-iters 2 --checkpoint-every 1"),
    ] {
        solve(command, dir.path(), file, &format!("{options} -q -o {command}"));
        for name in names(&dir.path().join(command)) {
            assert!(decompose_common::run_folder::is_result(&name), "{command}: {name}");
        }
        let temporary = dir.path().join(command).join(".decompose-1.part");
        fs::write(&temporary, "half").unwrap();
        solve(command, dir.path(), file, &format!("{options} -q -o {command} --overwrite"));
        assert!(!temporary.exists(), "{command}");
    }
    assert_eq!(names(dir.path()), ["complete", "cp", "rank", "tt", "tucker"]);
}
