//! Bad input: a clear message, exit code 2, nothing written.

use std::fs;
use std::path::Path;

use crate::common::{data, decompose, names};

/// Runs `decompose cp` with `options` in `folder`; it must refuse, say `expected` and add no file.
fn refuse(folder: &Path, options: &str, expected: &[&str]) {
    let before = names(folder);
    let mut command = decompose(folder);
    command.arg("cp").args(options.split_whitespace());
    let output = command.assert().code(2).get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    for text in expected {
        assert!(stderr.contains(text), "`{options}` should say `{text}`:\n{stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(output.stdout.is_empty(), "`{options}` wrote to standard output");
    assert_eq!(names(folder), before, "`{options}` left files");
}

#[test]
fn files_that_are_no_tensor() {
    let dir = tempfile::tempdir().unwrap();
    let cases: &[(&str, &str, &[&str])] = &[
        ("empty.tns", "", &["empty.tns is empty"]),
        ("none.tns", "# a comment\n\n", &["lists no non-zeros"]),
        ("columns.tns", "1 1 1 2\n1 2 3\n", &["columns.tns:2", "expected 4 columns", "2 | 1 2 3"]),
        ("negative.tns", "1 -1 1 2\n", &["negative.tns:1", "`-1`", "negative"]),
        ("fraction.tns", "1 1.5 1 2\n", &["`1.5`", "fractional"]),
        ("huge.tns", "1 99999999999999999999 1 2\n", &["beyond"]),
        ("word.tns", "1 1 1 two\n", &["`two` is not a number"]),
        ("nan.tns", "1 1 1 2\n1 1 2 nan\n", &["nan.tns:2", "not finite"]),
        ("inf.tns", "1 1 1 -inf\n", &["not finite"]),
        ("zeros.tns", "1 1 1 0\n", &["every value of the tensor is zero"]),
        ("what.xyz", "1 1 1 1\n", &["does not tell the format"]),
        ("text.npy", "1 1 1 1\n", &["text.npy"]),
        ("text.tns.gz", "1 1 1 1\n", &["text.tns.gz"]),
    ];
    for (name, text, expected) in cases {
        fs::write(dir.path().join(name), text).unwrap();
        refuse(dir.path(), &format!("-r 2 {name}"), expected);
    }
    let zero_based = "0 1 1 2\n1 2 3 1\n";
    fs::write(dir.path().join("zero.tns"), zero_based).unwrap();
    refuse(dir.path(), "-r 2 zero.tns --base 1", &["index 0 in mode 1", "zero.tns:1"]);
    refuse(dir.path(), "-r 2 missing.tns", &["no such file: missing.tns"]);
    refuse(dir.path(), "-r 2 .", &["is a folder"]);
    fs::write(dir.path().join("twice.tns"), "1 1 1\n1 1 2\n").unwrap();
    refuse(dir.path(), "-r 1 twice.tns --duplicates error", &["duplicate entry at 1 1"]);
}

#[test]
fn damaged_files() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read(data("sun-elevation.tns.gz")).unwrap();
    fs::write(dir.path().join("cut.tns.gz"), &whole[..whole.len() / 2]).unwrap();
    refuse(dir.path(), "-r 2 cut.tns.gz", &["damaged gzip"]);
    let mut convert = decompose(dir.path());
    convert.arg("convert").arg(data("sun-elevation.tns.gz")).arg("x.dtb").assert().success();
    let mut binary = fs::read(dir.path().join("x.dtb")).unwrap();
    fs::write(dir.path().join("cut.dtb"), &binary[..binary.len() - 9]).unwrap();
    refuse(dir.path(), "-r 2 cut.dtb", &["damaged .dtb"]);
    let middle = binary.len() / 2;
    binary[middle] ^= 1;
    fs::write(dir.path().join("flipped.dtb"), binary).unwrap();
    refuse(dir.path(), "-r 2 flipped.dtb", &["damaged .dtb"]);
}

/// A tree of more modes than a tensor may have.
const MANY_MODES: &str = "-r 2 x.tns --trees \
    1-2-3-4-5-6-7-8-9-10-11-12-13-14-15-16-17-18-19-20-21-22-23-24-25-26";

#[test]
fn options_that_make_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.tns");
    fs::write(&file, "1 1 1 2\n2 3 1 1\n2 1 2 4\n").unwrap();
    let cases: &[(&str, &[&str])] = &[
        ("x.tns", &["no rank given", "try `--rank 10`"]),
        ("-r 0 x.tns", &["`0` is not a number from 1 on"]),
        ("-r -3 x.tns", &["-3"]),
        ("-r 2 x.tns --tol -1", &["-1"]),
        ("-r 2 x.tns --seed monday", &["`monday` is no seed"]),
        ("-r 2 x.tns --nonneg 1,2", &["write --nonneg=1,2"]),
        ("-r 2 x.tns --nonneg=0", &["modes count from 1"]),
        ("-r 2 x.tns --nonneg=4", &["mode 4 of an order-3 tensor"]),
        ("-r 2 x.tns --con simplex", &["`simplex` is no constraint known here"]),
        ("-r 2 x.tns --dimorder 1,1,2", &["no order of the modes"]),
        ("-r 2 x.tns --dimorder 2,1", &["does not list each of the 3 modes"]),
        ("-r 2 x.tns --trees 2-1", &["does not list each of the 3 modes"]),
        ("-r 2 x.tns --trees 1.1/1-2-3", &["`1.1/1-2-3` is no tree"]),
        ("-r 2 x.tns --trees 9.9.9/1-2-3", &["more bits than coordinates"]),
        (MANY_MODES, &["lists 26 modes", "up to 25 are supported"]),
        ("-r 2 x.tns --trees choose --trees 1-2-3", &["not both"]),
        ("-r 2 x.tns --dims 2,3", &["2 extents were given"]),
        ("-r 2 x.tns --max-memory lots", &["is not a size"]),
        ("-r 2 x.tns --max-time soon", &["is no time"]),
        ("-r 2 x.tns --init absent.npz", &["cannot open absent.npz"]),
        ("-r 2 x.tns --init x.tns", &["x.tns:1"]),
        ("-r 2 x.tns --resume absent", &["cannot open absent"]),
        ("-r 2 x.tns --labels absent", &["cannot read absent"]),
        ("-r 2 x.tns --nowrite --checkpoint-every 2", &["--checkpoint-every writes files"]),
        ("-r 2 x.tns --precision f16", &["f16"]),
        ("-r 2 x.tns --out-format mat", &["use npz, splatt, ttb or csv"]),
        ("-r 2 x.tns --out x.tns --overwrite", &["is a file"]),
        ("-r 2 x.tns --out x.tns/run", &["cannot write to x.tns/run"]),
        ("-r 2 x.tns --out /proc/run", &["cannot write to /proc/run"]),
    ];
    for (options, expected) in cases {
        refuse(dir.path(), options, expected);
    }
}

#[test]
fn more_than_memory_holds() {
    let dir = tempfile::tempdir().unwrap();
    let file = data("sun-elevation.tns.gz");
    let file = file.to_str().unwrap();
    refuse(dir.path(), &format!("-r 1000000000000 {file}"), &["this run needs", "lower --rank"]);
    refuse(dir.path(), &format!("-r {} {file}", u64::MAX), &["this run needs"]);
    refuse(
        dir.path(),
        &format!("-r 2 {file} --max-memory 2M"),
        &["but 2.0 MiB may be used", "factors"],
    );
    // The entries alone are more, which is found while they are unpacked.
    refuse(
        dir.path(),
        &format!("-r 2 {file} --max-memory 1M"),
        &["of memory but 1.0 MiB may be used", "sun-elevation"],
    );
}

#[test]
fn a_start_that_does_not_fit() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.tns"), "1 1 1 2\n2 3 1 1\n2 1 2 4\n").unwrap();
    fs::write(dir.path().join("y.tns"), "1 1 1 2\n2 3 1 1\n2 1 5 4\n").unwrap();
    decompose(dir.path()).args(["cp", "-r", "2", "x.tns", "-q", "-o", "x"]).assert().success();
    refuse(dir.path(), "-r 3 x.tns --init x", &["it has rank 2"]);
    refuse(dir.path(), "-r 2 y.tns --init x", &["extents"]);
}

/// Runs a command in `folder`; it must refuse and say each of `expected`, and none of `never`.
fn refused(folder: &Path, words: &str, expected: &[&str], never: &str) {
    let before = names(folder);
    let mut command = decompose(folder);
    let output = command.args(words.split_whitespace()).assert().code(2).get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    for text in expected {
        assert!(stderr.contains(text), "`{words}` should say `{text}`:\n{stderr}");
    }
    assert!(!stderr.contains(never), "`{words}` should not say `{never}`:\n{stderr}");
    assert_eq!(names(folder), before, "`{words}` left files");
}

#[test]
fn refusals_name_the_file_the_value_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("x.tns", "1 1 1 1\n2 2 2 2\n2 1 2 3\n1 2 1 1\n");
    write("zero.tns", "1 1 1 0\n2 2 2 0\n");
    write("twice.csv", "a,a,v\n1,2,3\n2,1,4\n");
    write("log.csv", "a,b\n1,2\n2,1\n");
    write("v.csv", "v\n1\n2\n");
    decompose(dir.path()).args("cp -r 1 x.tns -o model".split(' ')).assert().success();
    for (words, expected, never) in [
        ("cp -r 1 zero.tns", &["zero.tns: every value of the tensor is zero"][..], "panicked"),
        ("complete -r 1 x.tns", &["x.tns: the validation part is empty", "4 entries"], "panicked"),
        ("eval model x.tns --residuals r.csv", &["r.csv: residuals", "use .tns"], ".npy"),
        ("plot model --lines 1 --bars 1,2 -o p", &["mode 1 is in both --lines and --bars"], "note"),
        (
            "convert twice.csv y.tns --modes a --value v",
            &["columns 1 and 2 are both called `a`"],
            "merged",
        ),
        (
            "convert log.csv y.tns --modes a,b --value b",
            &["log.csv: the column `b` is asked for twice", "--modes or with --value"],
            "merged",
        ),
        (
            "convert v.csv y.tns --value v",
            &["v.csv: no column is left for a mode", "leave out --value"],
            "merged",
        ),
        ("cp -r 1 -t 2000 x.tns", &["2000 threads are more than 1024"], "panicked"),
    ] {
        refused(dir.path(), words, expected, never);
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/no/such/folder", dir.path().join("dangling")).unwrap();
        let said = &["dangling: is a link to a folder that does not exist"][..];
        refused(dir.path(), "cp -r 1 x.tns -o dangling", said, "os error");
    }
}

#[test]
fn more_threads_than_cores_are_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.tns"), "1 1 1 1\n2 2 2 2\n2 1 2 3\n").unwrap();
    let threads = std::thread::available_parallelism().unwrap().get() + 1;
    let line = format!("cp -r 1 -i 1 -t {threads} x.tns --nowrite");
    let run = decompose(dir.path()).args(line.split(' ')).assert().success();
    let text = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(text.contains(&format!("warning: {threads} threads share ")), "{text}");
}
