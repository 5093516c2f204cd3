//! `decompose tune`: constants that other commands take, and what is refused of them.

use std::fs;
use std::path::Path;

use decompose_core::cost::Machine;

use crate::common::{decompose, names};

/// Runs `decompose schedule mttkrp:3:1` by the constants in `machine`; returns whether it succeeded and what it said.
fn schedule_by(folder: &Path, machine: &str) -> (Option<i32>, String) {
    let mut command = decompose(folder);
    command.args([
        "schedule", "mttkrp:3:1", "--extents", "i=1000,j=900,k=800", "--nnz", "90000", "--rank",
        "16",
    ]);
    let output = command.env("DECOMPOSE_MACHINE", machine).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// Measures the fewest kernels there are; returns the constants as text.
fn tune(folder: &Path) -> String {
    let mut command = decompose(folder);
    command.args(["tune", "--kernels", "spmv", "--rows", "1024", "--rounds", "1"]);
    command.args(["--evaluations", "14", "--out", "tuned"]);
    let output = command.assert().success().get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("kernels"), "{stderr}");
    fs::read_to_string(folder.join("tuned/machine.toml")).unwrap()
}

#[test]
fn constants_are_fitted_and_taken_by_other_commands() {
    let dir = tempfile::tempdir().unwrap();
    let constants = tune(dir.path());
    let machine: Machine = toml::from_str(&constants).unwrap();
    assert!(machine.greedy.transpose > 0.0 && machine.l2_line > 0.0, "{constants}");
    // Every loop order of every matrix, and its two levels.
    let timings = fs::read_to_string(dir.path().join("tuned/timings.csv")).unwrap();
    let rows: Vec<Vec<&str>> = timings.lines().skip(1).map(|l| l.split(',').collect()).collect();
    for matrix in ["even-128-4", "band-1024-8"] {
        let of_matrix = rows.iter().filter(|row| row[1] == matrix);
        let levels: Vec<&str> = of_matrix.clone().map(|row| row[4]).collect();
        assert!(levels.contains(&"ij") && levels.contains(&"ji"), "{timings}");
        let seconds = of_matrix.map(|row| row[5].parse::<f64>().unwrap());
        assert!(seconds.fold(f64::INFINITY, f64::min) > 0.0);
        let by = rows.iter().filter(|row| row[1] == matrix).map(|row| row[7]);
        assert!(by.collect::<String>().contains("spttn"), "{timings}");
    }
    assert_eq!(schedule_by(dir.path(), "tuned/machine.toml").0, Some(0));
}

#[test]
fn constants_that_are_none_are_refused_with_their_file_and_key() {
    let dir = tempfile::tempdir().unwrap();
    let xeon = decompose_core::cost::Family::Xeon.machine().constants();
    for (name, text, says) in [
        ("negative.toml", xeon.replace("l2_line = ", "l2_line = -"), "`l2_line` is -"),
        ("unknown.toml", format!("speed = 3\n{xeon}"), "unknown field `speed`"),
        ("few.toml", "l2_line = 1e-9\n".to_owned(), "missing field"),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
        let (code, said) = schedule_by(dir.path(), name);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(name) && said.contains(says), "{said}");
    }
    let (code, said) = schedule_by(dir.path(), "none.toml");
    assert!(code == Some(2) && said.contains("none.toml"), "{said}");
    let (code, said) = schedule_by(dir.path(), "Itanium");
    assert!(code == Some(2) && said.contains("Zen, Xeon, Neutral"), "{said}");
}

#[test]
fn results_are_not_replaced_and_sizes_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("tuned")).unwrap();
    fs::write(dir.path().join("tuned/notes"), "mine").unwrap();
    let before = names(&dir.path().join("tuned"));
    let mut command = decompose(dir.path());
    command.args(["tune", "--kernels", "spmv", "--rows", "1024", "--out", "tuned"]);
    command.assert().code(2);
    assert_eq!(names(&dir.path().join("tuned")), before);
    for wrong in [["--rows", "10"], ["--kernels", "gemm"], ["--rounds", "0"]] {
        decompose(dir.path()).arg("tune").args(wrong).assert().code(2);
    }
}
