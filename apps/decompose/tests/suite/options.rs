//! Options: other names, starts, constraints, presets, limits.

use std::fs;

use decompose_common::model;

use crate::common::{cp, data, decompose, fit, json};

#[test]
fn names_of_other_programs_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let ours = "-r 3 --max-iters 4 --tol 1e-9 --reg 0.1 --max-time 60 --threads 1 -o a";
    let theirs = "-r 3 --maxiters 4 --tol 1e-9 --penalty 0.1 --maxsecs 1m -t 1 --stem b";
    cp(dir.path(), "tz-transitions.tns.gz", &format!("{ours} --print-every 2"));
    cp(dir.path(), "tz-transitions.tns.gz", &format!("{theirs} --printitn 2"));
    cp(dir.path(), "tz-transitions.tns.gz", "-r 3 --iters 4 --tol 1e-9 --reg 0.1 -t 1 -s c");
    let bytes = |name: &str| fs::read(dir.path().join(name).join("model.npz")).unwrap();
    assert!(bytes("a") == bytes("b"), "a and b differ");
    assert!(bytes("a") == bytes("c"), "a and c differ");
    assert_eq!(json(&dir.path().join("b/run.json"))["options"]["max_time"], 60.0);
}

#[test]
fn starts_can_be_given() {
    let dir = tempfile::tempdir().unwrap();
    let run = |options: &str| cp(dir.path(), "sun-elevation.tns.gz", options);
    run("-r 2 --max-iters 2 --tol 0 -q -o first --out-format ttb");
    for (number, init) in ["first", "first/model.npz", "first/model.ktensor"].iter().enumerate() {
        run(&format!("-r 2 --max-iters 1 -q --init {init} -o more{number}"));
        let more = fit(&dir.path().join(format!("more{number}")));
        assert!(more > fit(&dir.path().join("first")), "{init}: {more}");
    }
    run("-r 2 --init nvecs -q -o nvecs");
    assert!(fit(&dir.path().join("nvecs")) > 0.999999);
}

#[test]
fn optimisations_can_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let optimisations =
        ["constants", "registers", "prefetch", "blocks", "panels", "merging", "fusing", "layouts"];
    let all = optimisations.join(",");
    for threads in [1, 2] {
        let run = |name: &str, options: &str| {
            let options = format!("-r 5 --max-iters 8 --tol 0 -t {threads} -o {name} {options}");
            let (_, stderr) = cp(dir.path(), "tz-transitions.tns.gz", &options);
            (fit(&dir.path().join(name)), stderr)
        };
        let (full, stderr) = run(&format!("full-{threads}"), "");
        assert!(!stderr.contains("without"), "{stderr}");
        for left_out in optimisations.iter().copied().chain([all.as_str()]) {
            let name = format!("{threads}-{}", left_out.len());
            let (fit, stderr) = run(&name, &format!("--overwrite --without {left_out}"));
            // Sums are taken in another order; eight sweeps amplify that little.
            assert!((fit - full).abs() <= 1e-10, "without {left_out}: {fit} for {full}");
            let names = left_out.replace(',', ", ");
            assert!(stderr.contains(&format!("without  {names}")), "{stderr}");
            let record = json(&dir.path().join(&name).join("run.json"));
            let list: Vec<&str> = left_out.split(',').collect();
            assert_eq!(record["options"]["without"], serde_json::json!(list));
        }
    }
    for (options, expected) in [
        ("--without luck", "[possible values: constants, registers"),
        ("--without layouts --trees 1-2-3-4", "what --trees asks for"),
        ("--without fusing --trees 1-2-3+4", "what --trees asks for"),
        ("--without merging --plan 1+2", "what --plan asks for"),
        ("--without blocks --trees 1.1.1.0/1-2-3+4", "what --trees asks for"),
    ] {
        let mut command = decompose(dir.path());
        command.arg("cp").arg(data("tz-transitions.tns.gz")).args(["-r", "2", "-o", "refused"]);
        let output = command.args(options.split(' ')).assert().code(2).get_output().clone();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(expected), "{options}: {stderr}");
        assert!(!dir.path().join("refused").exists());
    }
}

#[test]
fn trees_of_blocks_give_the_same_model() {
    let dir = tempfile::tempdir().unwrap();
    let fit = |name: &str, options: &str| -> f64 {
        let options = format!("-r 5 --max-iters 8 --tol 0 -q -o {name} {options}");
        cp(dir.path(), "tz-transitions.tns.gz", &options);
        let record = json(&dir.path().join(name).join("run.json"));
        record["result"]["fit"].as_f64().unwrap()
    };
    let plain = fit("plain", "--plan none");
    for (name, trees) in [
        ("one", "--trees 3.2.1.0/4+2+3+1"),
        ("both", "--trees 2.2.2.1/1-2-3+4 --trees 3-2-1-4"),
        ("two", "--trees 1.1.0.0/3-4-1-2 --trees 9.7.6.1/2-1+3+4"),
    ] {
        // Eight sweeps pass the different rounding of sums on.
        let have = fit(name, trees);
        assert!((have - plain).abs() < 1e-10, "{trees}: {have} for {plain}");
    }
}

#[test]
fn constraints_hold() {
    let dir = tempfile::tempdir().unwrap();
    let run = |options: &str| cp(dir.path(), "sun-elevation.tns.gz", options);
    let least = |name: &str| -> Vec<f64> {
        let model = model::read::<f64>(&dir.path().join(name).join("model.npz")).unwrap();
        let least = |factor: &decompose_formats::Matrix<f64>| {
            factor.view().iter().copied().fold(f64::INFINITY, f64::min)
        };
        model.factors().iter().map(least).collect()
    };
    run("-r 2 --nonneg -q -o all");
    assert!(least("all").iter().all(|&x| x >= 0.0));
    run("-r 2 --nonneg=1,3 -q -o some");
    let some = least("some");
    assert!(some[0] >= 0.0 && some[2] >= 0.0, "{some:?}");
    run("-r 2 --con nonneg,1,3 -q -o con");
    let bytes = |name: &str| fs::read(dir.path().join(name).join("model.npz")).unwrap();
    assert!(bytes("some") == bytes("con"), "some and con differ");
}

#[test]
fn presets_bring_defaults_and_files() {
    let dir = tempfile::tempdir().unwrap();
    let cases = [
        ("splatt", "", 10, 50, 1e-5, "mode3.mat"),
        ("ttb", "-r 2", 2, 50, 1e-4, "model.ktensor"),
        ("pyttb", "-r 2", 2, 1000, 1e-4, "model.ktensor"),
        ("genten", "", 16, 100, 4e-4, "model.ktensor"),
        ("tensorly", "-r 2", 2, 100, 1e-8, "model.npz"),
    ];
    for (name, options, rank, max_iters, tol, file) in cases {
        let options = format!("--compat {name} {options} -q -o {name}");
        cp(dir.path(), "sun-elevation.tns.gz", &options);
        let folder = dir.path().join(name);
        let chosen = &json(&folder.join("run.json"))["options"];
        assert_eq!(chosen["rank"], rank, "{name}");
        assert_eq!(chosen["max_iters"], max_iters, "{name}");
        assert_eq!(chosen["tol"], tol, "{name}");
        assert!(folder.join(file).is_file() && folder.join("model.npz").is_file(), "{name}");
    }
    // An option given explicitly wins.
    let options = "--compat pyttb -r 2 --max-iters 7 --out-format csv -q -o mine";
    cp(dir.path(), "sun-elevation.tns.gz", options);
    let folder = dir.path().join("mine");
    assert_eq!(json(&folder.join("run.json"))["options"]["max_iters"], 7);
    assert!(folder.join("weights.csv").is_file() && !folder.join("model.ktensor").exists());
}

#[test]
fn a_memory_limit_brings_a_leaner_plan() {
    let dir = tempfile::tempdir().unwrap();
    let trees = |limit: &str| -> Option<(usize, u64)> {
        let mut command = decompose(dir.path());
        command.args("cp -r 40 x.dtb --json -q --nowrite --max-iters 1 -t 1".split(' '));
        let options = if limit.is_empty() { vec![] } else { vec!["--max-memory", limit] };
        let output = command.args(options).output().unwrap();
        if output.status.code() == Some(2) {
            return None;
        }
        assert!(output.status.success(), "{output:?}");
        let stdout = String::from_utf8(output.stdout).unwrap();
        let event = |name: &str| -> serde_json::Value {
            let mut events = stdout.lines().map(|l| serde_json::from_str(l).unwrap());
            events.find(|event: &serde_json::Value| event["event"] == name).unwrap()
        };
        let trees = event("plan")["facts"]["trees"].as_array().unwrap().len();
        Some((trees, event("memory")["facts"]["peak"].as_u64().unwrap()))
    };
    let mut generate = decompose(dir.path());
    generate.args("generate uniform --dims 3000,2000,1000 --nnz 600000 -o x.dtb".split(' '));
    generate.assert().success();
    let (rich, peak) = trees("").unwrap();
    match trees(&(peak - (1 << 20)).to_string()) {
        Some((lean, less)) => {
            assert!(lean <= rich && less <= peak - (1 << 20), "{rich} {peak}, {lean} {less}");
        }
        // With a single tree nothing is leaner.
        None => assert_eq!(rich, 1),
    }
}

#[test]
fn files_are_read_as_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x"), "0 0 0 1\n1 2 1 3\n1 2 1 4\n").unwrap();
    let mut command = decompose(dir.path());
    command.args("cp -r 1 x --format tns --base 0 --dims 3,4,2 -o run".split(' '));
    let output = command.assert().success().get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("1 duplicate merged"), "{stderr}");
    assert!(stderr.contains("3 x 4 x 2 (as given)"), "{stderr}");
    let record = json(&dir.path().join("run/run.json"));
    assert_eq!(record["input"]["nnz"], 2);
    assert!(!data("x").exists());
}
