//! Ctrl-C: the iteration ends, everything is written, the exit code tells.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use decompose_core::runtime::Toolchain;

use crate::common::{data, decompose, json, without_family};

#[test]
fn an_interrupted_decomposition_writes_everything() {
    interrupt("cp", "-r 8 --tol 0 --max-iters 100000000 -q -o run", "timing.svg", 0);
}

#[test]
fn an_interrupted_tucker_run_leaves_a_usable_model() {
    let options = "--ranks 8,8,6,2 --tol 0 --max-iters 100000000 -q -o run";
    interrupt("tucker", options, "timing.svg", 0);
}

#[test]
fn an_interrupted_completion_writes_everything() {
    let options = "-r 8 --patience 100000000 --max-iters 100000000 -q -o run";
    // The start is a line of its own.
    interrupt("complete", options, "predictions.svg", 1);
}

#[test]
fn an_interrupted_measurement_prints_what_was_measured() {
    if Toolchain::detect().compiler().is_err() {
        eprintln!("skipped: no compiler, and nothing is measured");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let mut run = Command::new(assert_cmd::cargo::cargo_bin("decompose"));
    run.args(["schedule", "mttkrp:3:1", "-r", "8", "--measure", "--budget", "3600", "--json"]);
    run.arg("--tensor").arg(format!("X={}", data("sun-elevation.tns.gz").display()));
    run.env("DECOMPOSE_CACHE", &cache).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    let begun = Instant::now();
    let built = || -> usize {
        let Ok(folder) = fs::read_dir(&cache) else { return 0 };
        let library =
            |path: &std::path::Path| path.extension().is_some_and(|ending| ending == "so");
        folder.flatten().filter(|file| library(&file.path())).count()
    };
    // The second kernel is built after the first one was timed.
    while built() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(120), "no kernels within two minutes");
        sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let candidates = told["candidates"].as_array().unwrap();
    assert!(candidates.iter().any(|one| one["measured_seconds"].as_f64() > Some(0.0)), "{told}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("stopping: what is measured so far") && !said.contains("keep "),
        "{said}"
    );
}

#[test]
fn an_interrupted_comparison_of_ranks_is_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let options = "--restarts 3 --patience 150 --max-iters 150 --threads 2 -q";
    let command = |more: &str| {
        let mut run = Command::new(assert_cmd::cargo::cargo_bin("decompose"));
        run.arg("rank").arg(data("tz-transitions.tns.gz")).args(options.split(' '));
        run.args(more.split(' ')).current_dir(dir.path());
        run.env("DECOMPOSE_CACHE", dir.path().join("cache")).stdout(Stdio::null());
        run
    };
    assert!(command("--ranks 2:5 -o whole").status().unwrap().success());
    let mut run = command("--ranks 2:5 -o part --checkpoint-every 1").spawn().unwrap();
    let begun = Instant::now();
    // The first fit is done, eleven are not.
    while !dir.path().join("part/checkpoint.npz").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no fit within a minute");
        sleep(Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    // Other options are refused and change nothing; other ranks are fine.
    let refused = command("--ranks 2:5 --resume part --tol 1e-3").output().unwrap();
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("tolerance in 1e-15: saved"), "{stderr}");
    assert!(command("--ranks 2:3 --resume part --checkpoint-every 2").status().unwrap().success());
    assert!(command("--ranks 2:5 --resume part").status().unwrap().success());
    let numbers = |folder: &str| -> Vec<String> {
        let text = fs::read_to_string(dir.path().join(folder).join("rank.csv")).unwrap();
        let timeless = |line: &str| line.rsplit_once(',').unwrap().0.to_owned();
        text.lines().map(timeless).collect()
    };
    assert_eq!(numbers("part"), numbers("whole"));
    assert_eq!(numbers("part").len(), 5);
}

#[test]
fn interrupted_before_the_first_iteration_everything_stays_as_it_was() {
    for (command, options) in [
        ("cp", "-r 8"),
        ("tucker", "--ranks 8,8,6,2"),
        ("tucker", "--ranks 8,8,6,2 --method hosvd"),
        ("complete", "-r 8"),
        ("tt", "--ranks 8"),
        ("rank", "--ranks 2:5"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let earlier = dir.path().join("run/model.npz");
        fs::create_dir(dir.path().join("run")).unwrap();
        fs::write(&earlier, "an earlier model").unwrap();
        // A pipe that nobody writes to: the tensor is never read.
        let pipe = dir.path().join("x.tns");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut run = Command::new(assert_cmd::cargo::cargo_bin("decompose"))
            .arg(command)
            .arg(&pipe)
            .args(options.split(' '))
            .args(["-o", "run", "--overwrite"])
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(run.stderr.take().unwrap());
        let mut text = String::new();
        while without_family(&text).is_empty() {
            assert!(stderr.read_line(&mut text).unwrap() > 0, "{command}: {text}");
        }
        assert!(without_family(&text).starts_with("decompose "), "{command}: {text}");
        let killed = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
        assert!(killed.success());
        stderr.read_to_string(&mut text).unwrap();
        assert_eq!(run.wait().unwrap().code(), Some(130), "{command}: {text}");
        assert!(text.contains("nothing was written"), "{command}: {text}");
        assert_eq!(fs::read_to_string(&earlier).unwrap(), "an earlier model", "{command}");
        assert_eq!(fs::read_dir(dir.path().join("run")).unwrap().count(), 1, "{command}");
    }
}

/// Interrupts `command` in its third iteration or later; `more` are lines of the history beside its
/// header and one an iteration.
fn interrupt(command: &str, options: &str, figure: &str, more: u64) {
    let dir = tempfile::tempdir().unwrap();
    let program = assert_cmd::cargo::cargo_bin("decompose");
    let mut run = Command::new(program)
        .arg(command)
        .arg(data("tz-transitions.tns.gz"))
        .args(options.split(' '))
        .current_dir(dir.path())
        .env("DECOMPOSE_CACHE", dir.path().join("cache"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let history = dir.path().join("run/history.csv");
    let begun = Instant::now();
    while fs::read_to_string(&history).is_ok_and(|text| text.lines().count() < 3)
        || !history.exists()
    {
        assert!(begun.elapsed() < Duration::from_secs(60), "no iteration within a minute");
        sleep(Duration::from_millis(20));
    }
    let killed = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let record = json(&dir.path().join("run/run.json"));
    assert_eq!(record["result"]["stop"], "interrupted");
    let iterations = record["result"]["iterations"].as_u64().unwrap();
    assert_eq!(fs::read_to_string(&history).unwrap().lines().count() as u64, iterations + 1 + more);
    for name in ["model.npz", "convergence.png", figure] {
        assert!(dir.path().join("run").join(name).is_file(), "{name}");
    }
    let mut eval = decompose(dir.path());
    eval.args(["eval", "run", "-q"]).arg(data("tz-transitions.tns.gz"));
    let output = eval.assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(output).unwrap().contains("fit"));
}
