//! The other commands.

use std::fs;

use crate::common::{cp, data, decompose, names};

fn output(folder: &std::path::Path, words: &str) -> String {
    let mut command = decompose(folder);
    command.args(words.split_whitespace());
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

#[test]
fn statistics_for_people_and_programs() {
    let dir = tempfile::tempdir().unwrap();
    let file = data("tz-transitions.tns.gz");
    let file = file.to_str().unwrap();
    let text = output(dir.path(), &format!("stats {file} --rank 10"));
    for word in ["312 x 110 x 53 x 2", "19,686", "empty slices", "memory at rank 10"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&output(dir.path(), &format!("stats {file} --json"))).unwrap();
    assert_eq!(json["stats"]["nnz"], 19686);
    assert_eq!(json["stats"]["prefix_counts"][0]["value"], 300);
}

#[test]
fn conversions_keep_every_bit() {
    let dir = tempfile::tempdir().unwrap();
    let original = data("sun-elevation.tns.gz");
    output(dir.path(), &format!("convert {} a.dtb", original.display()));
    output(dir.path(), "convert a.dtb a.tns");
    output(dir.path(), "convert a.dtb b.tns.zst");
    output(dir.path(), "convert b.tns.zst c.tns.bz2 --header toolbox");
    output(dir.path(), "convert c.tns.bz2 d.ttx.gz");
    output(dir.path(), "convert d.ttx.gz e.tns");
    output(dir.path(), "convert e.tns f.dtb");
    let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("a.tns") == bytes("e.tns"), "the text differs");
    assert!(bytes("a.dtb") == bytes("f.dtb"), "the binary file differs");
    decompose(dir.path()).args(["convert", "e.tns", "f.dtb"]).assert().code(2);
    output(dir.path(), "convert e.tns f.dtb --overwrite");
    decompose(dir.path()).args(["convert", "e.tns", "f.what"]).assert().code(2);
}

#[test]
fn generated_tensors_repeat() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ["uniform", "power-law", "low-rank"] {
        for name in ["a", "b"] {
            let words = format!("generate {kind} --dims 30,20,10 --nnz 900 --seed 3 -o {name}.tns");
            output(dir.path(), &format!("{words} --overwrite"));
        }
        let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
        assert!(bytes("a.tns") == bytes("b.tns"), "{kind}");
    }
    output(dir.path(), "generate --like nell-2 --scale 0.001 --out n.dtb --values counts");
    let text = output(dir.path(), "stats n.dtb");
    assert!(text.contains("76,879") && text.contains("counts"), "{text}");
    let refused = decompose(dir.path()).args(["generate", "--out", "x.tns"]).assert().code(2);
    assert!(String::from_utf8_lossy(&refused.get_output().stderr).contains("--like"));
    let mut unknown = decompose(dir.path());
    unknown.args("generate --like nell --out x.tns".split(' ')).assert().code(2);
}

#[test]
fn runs_are_drawn_together() {
    let dir = tempfile::tempdir().unwrap();
    cp(dir.path(), "sun-elevation.tns.gz", "-r 2 -q -o two");
    cp(dir.path(), "sun-elevation.tns.gz", "-r 1 -q -o one --restarts 2");
    output(dir.path(), "plot one two --out both");
    assert_eq!(
        names(&dir.path().join("both")),
        ["convergence.png", "convergence.svg", "timing.png", "timing.svg"]
    );
    let figure = fs::read_to_string(dir.path().join("both/convergence.svg")).unwrap();
    assert!(figure.contains("one, start 2") && figure.contains("two"));
    decompose(dir.path()).args(["plot", "one", "--out", "both"]).assert().code(2);
    decompose(dir.path()).args(["plot", "absent"]).assert().code(2);
}

#[test]
fn the_command_line_documents_itself() {
    let dir = tempfile::tempdir().unwrap();
    let help = output(dir.path(), "cp --help");
    for word in ["Modes count from 1", "--max-memory", "--penalty", "--maxiters", "--resume"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(output(dir.path(), &format!("completions {shell}")).contains("decompose"));
    }
    assert!(output(dir.path(), "man").contains(".TH"));
    output(dir.path(), "man --out pages");
    assert!(dir.path().join("pages/decompose-cp.1").is_file());
    decompose(dir.path()).arg("frobnicate").assert().code(2);
    assert!(output(dir.path(), "--version").starts_with("decompose 0."));
}
