//! A disk that is full: what is computed is kept as far as it can be, and one exit code tells.
#![cfg(unix)]

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{cp, data, decompose, json};

/// The exit code if something could not be written.
const WRITING: Option<i32> = Some(3);

/// Runs the program where no file may become longer than `blocks` of 512 bytes.
fn limited(folder: &Path, blocks: u64, words: &str) -> Output {
    let program = assert_cmd::cargo::cargo_bin("decompose");
    let script = format!("ulimit -f {blocks}; exec '{}' {words}", program.display());
    Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder)
        // Kernels would be files too.
        .env("DECOMPOSE_CACHE", folder.join("cache"))
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_model_outlives_figures_and_checkpoints_that_do_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    let file = data("sun-elevation.tns.gz");
    let options = format!("cp {} -r 2 --no-codegen --max-iters 2 -t 1", file.display());
    cp(
        dir.path(),
        "sun-elevation.tns.gz",
        "-r 2 --no-codegen --max-iters 2 -t 1 -q -o whole --checkpoint-every 1",
    );
    let length = |name: &str| fs::metadata(dir.path().join("whole").join(name)).unwrap().len();
    let blocks = length("model.npz").div_ceil(512) + 1;
    assert!(blocks * 512 < length("convergence.png"), "figures fit: the test tests nothing");
    let output = limited(dir.path(), blocks, &format!("{options} -o run"));
    assert_eq!(output.status.code(), WRITING, "{}", said(&output));
    assert!(said(&output).contains("warning: the figure"), "{}", said(&output));
    let read = |name: &str, file: &str| fs::read(dir.path().join(name).join(file)).unwrap();
    assert!(read("run", "model.npz") == read("whole", "model.npz"), "the models differ");
    assert!(read("run", "history.csv").len() > 100);
    let mut eval = decompose(dir.path());
    eval.args(["eval", "run"]).arg(&file).assert().success();

    // A checkpoint holds more than the model.
    let blocks = (length("checkpoint.npz") - 1) / 512;
    assert!(blocks * 512 > length("model.npz"));
    let options = format!("{options} -o saved --checkpoint-every 1");
    let output = limited(dir.path(), blocks, &options);
    assert_eq!(output.status.code(), WRITING, "{}", said(&output));
    assert!(said(&output).contains("warning: no checkpoint was saved"), "{}", said(&output));
    assert!(!said(&output).contains("ZipWriter"), "{}", said(&output));
    assert!(said(&output).contains("the last checkpoint was not saved"), "{}", said(&output));
    assert!(read("saved", "model.npz") == read("whole", "model.npz"), "the models differ");
}

#[test]
fn a_model_that_does_not_fit_leaves_the_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = data("sun-elevation.tns.gz");
    cp(dir.path(), "sun-elevation.tns.gz", "-r 2 -q -o run");
    let before = fs::read(dir.path().join("run/model.npz")).unwrap();
    let options =
        format!("cp {} -r 9 --no-codegen --max-iters 2 -o run --overwrite", file.display());
    let output = limited(dir.path(), 4, &options);
    assert_eq!(output.status.code(), WRITING, "{}", said(&output));
    assert!(said(&output).contains("cannot write") && !said(&output).contains("internal"));
    assert!(fs::read(dir.path().join("run/model.npz")).unwrap() == before);
    assert_eq!(json(&dir.path().join("run/run.json"))["options"]["rank"], 2);
    assert!(!dir.path().join(".run.partial").exists());
}

#[test]
fn the_exit_code_is_the_same_wherever_the_disk_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let file = data("sun-elevation.tns.gz");
    let file = file.display();
    for words in [
        format!("convert {file} x.tns"),
        format!("convert {file} x.dtb"),
        "generate uniform --dims 30,30,30 --nnz 9000 -o y.tns".to_owned(),
        format!("tucker {file} --ranks 8 --no-codegen --max-iters 1 -o tucker"),
        format!("tt {file} --ranks 8 --no-codegen --max-iters 1 -o tt"),
        format!("complete {file} -r 8 --no-codegen --max-iters 1 -o complete"),
        format!("stats {file} > /dev/full"),
        format!("stats {file} --json > /dev/full"),
    ] {
        let output = limited(dir.path(), 4, &words);
        assert_eq!(output.status.code(), WRITING, "{words}: {}", said(&output));
    }
}

#[test]
fn results_of_a_program_are_written_together_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let lines = (1..=2000).map(|row| format!("{row} 1 {row}\n"));
    fs::write(dir.path().join("X.tns"), lines.collect::<String>()).unwrap();
    fs::write(dir.path().join("p.txt"), "s(j)=X(i,j)\nY(i,j)=2*X(i,j)\n").unwrap();
    fs::write(dir.path().join("s.npy"), "old").unwrap();
    let words = "einsum --program p.txt --tensor X=X.tns --no-codegen --out s=s.npy --out Y.tns --overwrite";
    let output = limited(dir.path(), 4, words);
    assert_eq!(output.status.code(), WRITING, "{}", said(&output));
    assert_eq!(fs::read_to_string(dir.path().join("s.npy")).unwrap(), "old");
    assert!(!dir.path().join("Y.tns").exists());
    let names = fs::read_dir(dir.path()).unwrap().filter_map(|entry| entry.ok());
    assert!(
        names.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().ends_with(".part"))
    );
}

#[test]
fn what_is_computed_outlives_a_reader_that_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let mut run = Command::new(assert_cmd::cargo::cargo_bin("decompose"));
    run.arg("cp").arg(data("sun-elevation.tns.gz")).args("-r 2 --no-codegen -o run".split(' '));
    let output = run.current_dir(dir.path()).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), WRITING, "{}", said(&output));
    assert_eq!(said(&output).matches("cannot write to standard output").count(), 1);
    assert!(dir.path().join("run/model.npz").is_file());
}
