//! The cache of compiled kernels, and compilers that are not plain.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use decompose_core::runtime::Toolchain;

use crate::common::{data, fit, json};

/// Returns a run of `cp` in `folder` with the kernel cache in `folder/cache`.
fn cp(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("decompose").unwrap();
    command.current_dir(folder).env("DECOMPOSE_CACHE", folder.join("cache"));
    command.args(["cp", "-r", "2", "--out", "model", "--overwrite"]);
    command.arg(data("sun-elevation.tns.gz"));
    command
}

/// Runs the command and returns how many kernels were compiled and found, if they were not interpreted.
fn built(command: &mut Command, folder: &Path) -> Option<(u64, u64)> {
    command.assert().success();
    assert!((fit(&folder.join("model")) - 1.0).abs() < 1e-5);
    let run = json(&folder.join("model/run.json"));
    let count = |name| run["plan"][name].as_u64();
    Some((count("kernels_compiled")?, count("kernels_cached")?))
}

fn objects(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.join("cache")).unwrap().map(|file| file.unwrap().path());
    let mut objects: Vec<_> = files.filter(|f| f.extension().is_some_and(|e| e == "so")).collect();
    objects.sort();
    objects
}

fn compiler_is_missing() -> bool {
    let missing = matches!(Toolchain::detect(), Toolchain::Interpreter(_));
    if missing {
        eprintln!("skipped: no C compiler");
    }
    missing
}

/// Writes a program that the shell runs.
fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn damaged_kernels_are_compiled_anew() {
    if compiler_is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cold = built(&mut cp(folder.path()), folder.path()).unwrap();
    assert_eq!(built(&mut cp(folder.path()), folder.path()).unwrap().0, 0);
    let objects = objects(folder.path());
    for (object, damage) in
        objects.iter().zip([&b""[..], b"garbage", b"\x7fELF"].into_iter().cycle())
    {
        fs::write(object, damage).unwrap();
    }
    assert_eq!(built(&mut cp(folder.path()), folder.path()), Some(cold));
    let whole = fs::read(&objects[0]).unwrap();
    fs::write(&objects[0], &whole[..whole.len() / 2]).unwrap();
    assert_eq!(built(&mut cp(folder.path()), folder.path()).unwrap().0, 1);
    assert_eq!(fs::read(&objects[0]).unwrap(), whole, "the same compiler makes the same file");
}

#[test]
fn what_another_user_may_have_planted_is_not_run() {
    if compiler_is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cold = built(&mut cp(folder.path()), folder.path()).unwrap();
    let cache = folder.path().join("cache");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(built(&mut cp(folder.path()), folder.path()), Some(cold), "nothing was trusted");
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    // A link instead of a folder: kernels are kept for one run only, and nowhere that others know.
    let real = folder.path().join("real");
    fs::rename(&cache, &real).unwrap();
    std::os::unix::fs::symlink(&real, &cache).unwrap();
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let run = &mut cp(folder.path());
    assert_eq!(built(run.env("TMPDIR", &temporary), folder.path()), Some(cold));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "nothing is left");
}

#[test]
fn the_cache_keeps_its_size_and_is_cleared_on_request() {
    if compiler_is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    built(&mut cp(folder.path()), folder.path()).unwrap();
    let cache = |action: &str| {
        let mut command = Command::cargo_bin("decompose").unwrap();
        command.env("DECOMPOSE_CACHE", folder.path().join("cache"));
        let output = command.args(["cache", action]).assert().success().get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    };
    let before = objects(folder.path()).len();
    assert!(cache("info").contains(&format!("{before} kernels, ")), "{}", cache("info"));
    // Another precision needs other kernels; the first ones must go.
    let first = objects(folder.path());
    let mut other = cp(folder.path());
    built(other.args(["--precision", "f32", "--cache-size", "1K"]), folder.path());
    assert!(objects(folder.path()).iter().all(|object| !first.contains(object)));
    // A run that finds all its kernels leaves no more than asked either.
    let again = || {
        let mut again = cp(folder.path());
        again.args(["--precision", "f32"]);
        again
    };
    built(&mut again(), folder.path());
    assert!(!objects(folder.path()).is_empty());
    let found = built(again().args(["--cache-size", "1K"]), folder.path()).unwrap();
    assert_eq!((found.0, objects(folder.path()).len()), (0, 0));
    assert!(cache("clear").starts_with("removed "));
    assert!(cache("info").contains("0 kernels, "));
}

#[test]
fn a_cache_that_cannot_be_written_is_told_once() {
    if compiler_is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("X.tns"), "1 1 2\n1 2 3\n2 2 5\n").unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let run = |cache: &Path, options: &[&str]| {
        let mut command = Command::cargo_bin("decompose").unwrap();
        command.current_dir(folder.path()).env("DECOMPOSE_CACHE", cache);
        command.env("TMPDIR", &temporary).args(["einsum", "y(j)=X(i,j)*X(i,k)+X(j,k)"]);
        command.args(["--tensor", "X=X.tns", "--out", "y.npy", "--overwrite"]).args(options);
        let said = command.assert().success().get_output().stderr.clone();
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "nothing is left");
        String::from_utf8(said).unwrap()
    };
    // A folder that cannot be made, and one that nobody can write to.
    for cache in [folder.path().join("file/cache"), "/proc/self/fd".into()] {
        let said = run(&cache, &[]);
        let warnings = said.matches("warning: compiled kernels are not kept").count();
        assert_eq!(warnings, 1, "{said}");
        assert!(said.contains(&cache.display().to_string()), "{said}");
        assert!(said.contains("with DECOMPOSE_CACHE"), "{said}");
        assert!(!said.contains("interpreter"), "{said}");
        let said = run(&cache, &["--no-codegen"]);
        assert!(!said.contains("are not kept"), "no kernel was compiled: {said}");
    }
    let said = run(&folder.path().join("cache"), &[]);
    assert!(!said.contains("are not kept"), "{said}");
}

#[test]
fn a_compiler_may_come_with_arguments() {
    if compiler_is_missing() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wrapper = folder.path().join("wrap");
    script(&wrapper, "exec \"$@\"");
    for cc in ["cc -O1".to_owned(), format!("{} cc", wrapper.display())] {
        let (compiled, _) = built(cp(folder.path()).env("CC", &cc), folder.path()).unwrap();
        assert!(compiled > 0, "{cc}");
    }
}

#[test]
fn what_is_wrong_with_a_compiler_is_told_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let says = |words: &str, variable: (&str, &str), expected: &str| {
        let mut command = Command::cargo_bin("decompose").unwrap();
        command.current_dir(folder.path()).env("DECOMPOSE_CACHE", folder.path().join("cache"));
        command.env(variable.0, variable.1).args(words.split(' '));
        command.arg(data("sun-elevation.tns.gz")).arg("--nowrite");
        let text = String::from_utf8(command.output().unwrap().stderr).unwrap();
        assert!(text.contains("kernels run in the interpreter"), "{words} {variable:?}: {text}");
        assert!(text.contains(expected), "{words} {variable:?}: {text}");
    };
    says("rank --ranks 1:2 -i 1", ("CC", "/no/such"), "/no/such");
    says("cp -r 1 -i 1", ("DECOMPOSE_CC_SECONDS", "abc"), "DECOMPOSE_CC_SECONDS is `abc`");
    let silent = folder.path().join("silent");
    script(&silent, "echo silent 1.0");
    let silent = silent.display().to_string();
    says("cp -r 1 -i 1", ("CC", &silent), &format!("{silent} made no file"));
}

#[test]
fn an_interrupt_ends_a_compiler_that_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let (slow, pid) = (folder.path().join("slow"), folder.path().join("pid"));
    let hang = format!("echo $$ > {0}.new; mv {0}.new {0}; sleep 600", pid.display());
    script(&slow, &format!("case \"$1\" in --version) echo slow 1.0;; *) {hang};; esac"));
    let mut run = std::process::Command::new(assert_cmd::cargo::cargo_bin("decompose"))
        .args(["cp", "-r", "2", "--out", "model", "-t", "1"])
        .arg(data("sun-elevation.tns.gz"))
        .current_dir(folder.path())
        .env("DECOMPOSE_CACHE", folder.path().join("cache"))
        .env("CC", &slow)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    let wait_for = |done: &dyn Fn() -> bool, what: &str| {
        while !done() {
            assert!(Instant::now() < patience, "{what}");
            sleep(Duration::from_millis(10));
        }
    };
    wait_for(&|| pid.exists(), "no kernel was compiled");
    let signal = ["-INT", &run.id().to_string()].map(str::to_owned);
    assert!(std::process::Command::new("kill").args(signal).status().unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let pid = fs::read_to_string(&pid).unwrap();
    // It is gone, or a zombie until it is reaped.
    let ended = || {
        let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        state.map_or(true, |state| state.contains(") Z ") || state.contains(") X "))
    };
    wait_for(&ended, "the compiler runs on");
}

#[test]
fn a_compiler_that_hangs_is_ended_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let slow = folder.path().join("slow");
    script(&slow, "case \"$1\" in --version) echo slow 1.0;; *) sleep 600;; esac");
    let mut command = cp(folder.path());
    let run = command.env("CC", &slow).env("DECOMPOSE_CC_SECONDS", "1");
    let output = run.timeout(Duration::from_secs(300)).assert().success();
    let text = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(text.contains("did not end within 1 s"), "{text}");
    assert!((fit(&folder.path().join("model")) - 1.0).abs() < 1e-9);
}
