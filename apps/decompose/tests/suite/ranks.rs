//! Which entries `decompose complete` sees, and what `decompose rank` says and refuses.

use std::fs;
use std::time::{Duration, Instant};

use crate::common::{data, decompose, json};

#[test]
fn ranks_that_are_claimed_are_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let mut command = decompose(dir.path());
    command.arg("rank").arg(data("sun-elevation.tns.gz"));
    let output = command.args(["--ranks", "1:18446744073709551615"]).assert().code(2);
    let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains("compare at most 10000"), "{stderr}");
    // Not a measurement: to list the ranks would take all memory.
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn entries_that_are_all_one_tell_no_rank_from_another() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = decompose(dir.path());
    command.arg("rank").arg(data("tz-transitions.tns.gz"));
    let options = "--ranks 1,2 --restarts 2 --max-iters 3 --biases --out r";
    let output = command.args(options.split(' ')).assert();
    let code = output.get_output().status.code();
    assert!(matches!(code, Some(0 | 3)), "{:?}", output.get_output());
    let record = json(&dir.path().join("r/run.json"));
    assert!(record["result"]["recommended_rank"].is_null(), "{}", record["result"]);
    let why = record["result"]["why"][0].as_str().unwrap();
    assert!(why.contains("no rank can be told from another"), "{why}");
    let table = fs::read_to_string(dir.path().join("r/rank.csv")).unwrap();
    assert!(table.starts_with("rank,train,val,test,worst,fit,match,reached,agreement,seconds\n"));
    assert_eq!(table.lines().count(), 3);
}

#[test]
fn masks_say_which_cells_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    // (0, 1, 2) x (1, 2, 3): the tensor lists what is not zero, and an entry that is wrong.
    write("x.tns", "2 1 1\n2 3 3\n3 1 2\n3 2 4\n3 3 99\n");
    write("seen.tns", "1 1 1\n1 2 1\n1 3 1\n2 1 1\n2 2 0\n2 3 1\n3 1 1\n3 2 1\n");
    let run = |options: &str| {
        let mut command = decompose(dir.path());
        command.args("complete x.tns --rank 1 --split 1,0 --reg 1e-9 --out run".split(' '));
        command.args(options.split_whitespace()).assert()
    };
    let output = run("--mask seen.tns").success();
    let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains("7 observed cells, of these 3 zeros"), "{stderr}");
    assert!(stderr.contains("1 entry is outside and unknown"), "{stderr}");
    let record = json(&dir.path().join("run/run.json"));
    assert_eq!(record["plan"]["train_entries"], 7);
    let mut predict = decompose(dir.path());
    write("asked.tns", "2 2 0\n3 3 0\n");
    predict.args("predict run asked.tns --out y.tns".split(' ')).assert().success();
    let text = fs::read_to_string(dir.path().join("y.tns")).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let values = rows.map(|line| line.split(' ').next_back().unwrap().parse::<f64>());
    let values: Vec<f64> = values.map(Result::unwrap).collect();
    assert!((values[0] - 2.0).abs() < 1e-3 && (values[1] - 6.0).abs() < 1e-3, "{values:?}");
    write("flat.tns", "1 1 1 1\n");
    let output = run("--mask flat.tns --overwrite").code(2);
    let stderr = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains("the mask flat.tns is of order 3, the tensor of 2"), "{stderr}");
}
