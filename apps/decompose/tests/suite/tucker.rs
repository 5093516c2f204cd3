//! Whole runs of `decompose tucker` and what they leave.

use std::fs;
use std::path::Path;

use decompose_common::model::{Model, TuckerModel};
use serde_json::Value as Json;

use crate::common::{data, decompose, fit, json, names, solve};

const SUN: &str = "sun-elevation.tns.gz";
const ZONES: &str = "tz-transitions.tns.gz";

fn tucker(folder: &Path, file: &str, options: &str) -> (String, String) {
    solve("tucker", folder, file, options)
}

/// Runs a command that must be refused; returns what it says.
fn refused(folder: &Path, words: &str) -> String {
    let mut command = decompose(folder);
    command.arg("tucker").args(words.split_whitespace());
    let output = command.assert().code(2).get_output().clone();
    String::from_utf8(output.stderr).unwrap()
}

fn model(folder: &Path) -> TuckerModel<f64> {
    match Model::read(folder).unwrap() {
        Model::Tucker(model) => model,
        other => panic!("a {} model", other.kind().name()),
    }
}

#[test]
fn a_run_leaves_model_history_record_and_figures() {
    let dir = tempfile::tempdir().unwrap();
    let (stdout, stderr) = tucker(dir.path(), SUN, "--ranks 2,3,3 --init hosvd");
    let folder = dir.path().join("decompose-sun-elevation-tucker-r2x3x3");
    assert_eq!(
        names(&folder),
        [
            "components.csv", "components.png", "components.svg", "convergence.png",
            "convergence.svg", "history.csv", "model.npz", "run.json", "spectra.csv",
            "spectra.png", "spectra.svg", "timing.png", "timing.svg",
        ]
    );
    assert!(fit(&folder) > 0.99, "{stdout}");
    let model = model(&folder);
    assert_eq!((model.ranks(), model.extents()), (vec![2, 3, 3], vec![19, 73, 48]));
    for word in ["fit ", "ranks 2x3x3", "iterations", "memory", "spectra.csv"] {
        assert!(stdout.contains(word), "{word}: {stdout}");
    }
    for word in ["HOOI", "trees of modes", "expected at the peak"] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
    let record = json(&folder.join("run.json"));
    assert_eq!(record["program"], "decompose tucker");
    assert_eq!(record["result"]["ranks"], serde_json::json!([2, 3, 3]));
    for step in record["plan"]["steps"].as_array().unwrap() {
        // A partial product updates no mode.
        assert!(step["mode"].is_null() || step["forming"] == "whole", "{step}");
        assert!(step["measured_seconds"].as_f64().unwrap() > 0.0);
    }
    let history = fs::read_to_string(folder.join("history.csv")).unwrap();
    let header = history.lines().next().unwrap();
    assert!(header.ends_with(
        "ttmc_1_seconds,ttmc_2_seconds,ttmc_3_seconds,subspace_1_seconds,subspace_2_seconds,\
         subspace_3_seconds,other_seconds"
    ));
    let spectra = fs::read_to_string(folder.join("spectra.csv")).unwrap();
    // Of short modes all singular values of the unfoldings are known, those of the model of 2, 3 and 3.
    assert_eq!(spectra.lines().count(), 1 + 19 + 73 + 48);
    let of_model = spectra.lines().skip(1).filter(|line| line.split(',').nth(2) != Some(""));
    assert_eq!(of_model.count(), 2 + 3 + 3);
}

#[test]
fn every_method_runs_and_iterating_is_best() {
    let dir = tempfile::tempdir().unwrap();
    let fit_of = |options: &str, out: &str| {
        tucker(dir.path(), ZONES, &format!("--ranks 4,4,4,2 -q {options} -o {out}"));
        fit(&dir.path().join(out))
    };
    let hosvd = fit_of("--method hosvd", "hosvd");
    let sequential = fit_of("--method st-hosvd", "st");
    let hooi = fit_of("--init hosvd --tol 1e-8", "hooi");
    assert!(hooi >= hosvd - 1e-12 && hooi >= sequential - 1e-6, "{hosvd} {sequential} {hooi}");
    let random = fit_of("--tol 1e-8", "random");
    assert!(random > hosvd, "{random} {hosvd}");
    let nonneg = fit_of("--nonneg --max-iters 10", "nonneg");
    assert!(nonneg > 0.0 && nonneg <= hooi + 1e-3, "{nonneg} {hooi}");
    let model = model(&dir.path().join("nonneg"));
    assert!(model.core().iter().all(|&x| x >= 0.0));
    assert!(model.factors().iter().all(|f| f.as_slice().iter().all(|&x| x >= 0.0)));
    let more = fit_of("--init random --max-iters 1 --tol 0", "one");
    let given = fit_of("--init one --max-iters 1 --tol 0", "two");
    assert!(given > more, "{given} {more}");
}

#[test]
fn ranks_are_found_for_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for (number, method) in ["hooi", "hosvd", "st-hosvd"].iter().enumerate() {
        let (stdout, _) =
            tucker(dir.path(), SUN, &format!("--eps 0.05 --method {method} -o run{number}"));
        let result = json(&dir.path().join(format!("run{number}/run.json")))["result"].clone();
        let error = result["relative_error"].as_f64().unwrap();
        let bound = result["hosvd_bound"].as_f64().unwrap();
        assert!(error <= bound + 1e-7 && bound <= 0.05, "{method}: {error} {bound}");
        assert!(stdout.contains("bound "), "{stdout}");
    }
}

#[test]
fn a_core_beyond_the_memory_is_refused_before_its_kernels_are_planned() {
    let dir = tempfile::tempdir().unwrap();
    let line = |entry: usize| {
        let index = |mode: usize| ((entry * (mode + 3) + entry * entry) % 6 + 1).to_string();
        (0..25).map(index).collect::<Vec<_>>().join(" ") + &format!(" {}.5\n", entry + 1)
    };
    fs::write(dir.path().join("x.tns"), (0..6).map(line).collect::<String>()).unwrap();
    let mut command = decompose(dir.path());
    let words = ["tucker", "--eps", "0.1", "x.tns"];
    let run = command.args(words).timeout(std::time::Duration::from_secs(20)).assert().code(2);
    let text = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(text.contains("this run needs") && text.contains("raise --eps"), "{text}");
}

#[test]
fn a_bound_on_the_error_is_no_less_than_rounding() {
    let dir = tempfile::tempdir().unwrap();
    let cells = (0..27).map(|at| [at / 9, at / 3 % 3, at % 3]);
    let line = |[i, j, k]: [usize; 3]| {
        let value = (1.0 + i as f64) * (0.7 + j as f64) * (0.3 + k as f64);
        format!("{} {} {} {value}\n", i + 1, j + 1, k + 1)
    };
    fs::write(dir.path().join("x.tns"), cells.map(line).collect::<String>()).unwrap();
    let mut command = decompose(dir.path());
    let run = command.args(["tucker", "--eps", "1e-20", "x.tns", "-o", "run"]).assert().success();
    let text = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(text.contains("--eps 1e-20 cannot be told from rounding"), "{text}");
    let result = json(&dir.path().join("run/run.json"))["result"].clone();
    let (bound, error) = (&result["hosvd_bound"], &result["relative_error"]);
    assert!(bound.as_f64().unwrap() >= error.as_f64().unwrap().max(1e-8), "{bound} {error}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_checkpoints_resume() {
    let dir = tempfile::tempdir().unwrap();
    let run = |options: &str| {
        tucker(dir.path(), ZONES, &format!("--ranks 3,3,3,2 --tol 0 -q {options}"));
    };
    let bytes = |out: &str| fs::read(dir.path().join(out).join("model.npz")).unwrap();
    run("--max-iters 7 --checkpoint-every 2 -o whole");
    run("--max-iters 3 --checkpoint-every 1 -o part");
    run("--max-iters 7 --checkpoint-every 1 --resume part");
    assert!(bytes("whole") == bytes("part"), "the models differ");
    let lines = |out: &str| -> Vec<String> {
        let text = fs::read_to_string(dir.path().join(out).join("history.csv")).unwrap();
        text.lines().map(|line| line.split(',').take(5).collect::<Vec<_>>().join(",")).collect()
    };
    assert_eq!(lines("whole"), lines("part"));
    assert_eq!(lines("whole").len(), 8);
    run("--max-iters 7 --seed 3 -o other");
    assert!(bytes("whole") != bytes("other"));
}

#[test]
fn precision_threads_and_interpreter_agree() {
    let dir = tempfile::tempdir().unwrap();
    let fit_of = |options: &str, out: &str| {
        let options = format!("--ranks 4,4,4,2 --tol 0 --max-iters 4 -q {options} -o {out}");
        tucker(dir.path(), ZONES, &options);
        fit(&dir.path().join(out))
    };
    let one = fit_of("--threads 1", "one");
    assert!((one - fit_of("--threads 2", "two")).abs() < 1e-10);
    assert!((one - fit_of("--precision f32", "f32")).abs() < 1e-4);
    assert!((one - fit_of("--no-codegen", "slow")).abs() < 1e-10);
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_written() {
    let dir = tempfile::tempdir().unwrap();
    let sun = data(SUN);
    let sun = sun.to_str().unwrap();
    fs::write(dir.path().join("vector.tns"), "1 2.0\n3 1.0\n").unwrap();
    fs::write(dir.path().join("zeros.tns"), "1 1 0.0\n3 2 0\n").unwrap();
    for (words, message) in [
        (sun.to_owned(), "no ranks given"),
        (format!("{sun} --ranks 2,2"), "2 ranks for a tensor of 3 modes"),
        (format!("{sun} --ranks 0"), "`0` is not a number from 1 on"),
        (format!("{sun} --ranks 20"), "the rank 20 of mode 1 is above its extent 19"),
        (format!("{sun} --ranks 2,2,9"), "above the product 4"),
        (format!("{sun} --eps 0"), "no relative error above 0 and below 1"),
        (format!("{sun} --eps 1.5"), "no relative error above 0 and below 1"),
        (format!("{sun} --eps 0.1 --ranks 3"), "cannot be used with"),
        (format!("{sun} --ranks 3 --method hosvd --init random"), "have no start"),
        (format!("{sun} --ranks 3 --method hosvd --nonneg"), "--nonneg iterates"),
        (format!("{sun} --eps 0.1 --init random"), "leave out --init"),
        (format!("{sun} --ranks 3 --init nowhere.npz"), "nowhere.npz"),
        (format!("{sun} --ranks 3 --max-memory 1M"), "of memory but 1.0 MiB may be used"),
        ("vector.tns --ranks 1".into(), "order 1"),
        ("zeros.tns --ranks 1".into(), "nothing to decompose"),
    ] {
        let stderr = refused(dir.path(), &format!("{words} -o run"));
        assert!(stderr.contains(message), "{words}: {stderr}");
        assert!(!dir.path().join("run").exists(), "{words}");
    }
    tucker(dir.path(), SUN, "--ranks 2 -q -o kept");
    let before = fs::read(dir.path().join("kept/run.json")).unwrap();
    let stderr = refused(dir.path(), &format!("{sun} --ranks 2 -o kept"));
    assert!(stderr.contains("--overwrite"), "{stderr}");
    let stderr = refused(dir.path(), &format!("{sun} --ranks 3 --init kept -o kept --overwrite"));
    assert!(stderr.contains("cannot start from"), "{stderr}");
    assert_eq!(fs::read(dir.path().join("kept/run.json")).unwrap(), before);
}

#[test]
fn long_modes_come_in_windows_where_memory_is_short() {
    let dir = tempfile::tempdir().unwrap();
    let mut generate = decompose(dir.path());
    generate.args("generate uniform --dims 60000,50,40 --nnz 100000 -o x.dtb".split(' '));
    generate.assert().success();
    let run = |options: &str, out: &str| -> (u64, f64, String) {
        let mut command = decompose(dir.path());
        command.args(
            "tucker x.dtb --ranks 4,24,24 --above-hosvd no --max-iters 2 --tol 0 -q -t 1 -o"
                .split(' '),
        );
        command.arg(out).args(options.split_whitespace()).assert().success();
        let record = json(&dir.path().join(out).join("run.json"));
        let peak = record["memory"]["predicted"]["peak"].as_u64().unwrap();
        let steps = record["plan"]["steps"].as_array().unwrap().iter();
        let mut first = steps.filter(|step| step["name"] == "mode 1");
        let forming = first.next().unwrap()["forming"].to_string();
        (peak, fit(&dir.path().join(out)), forming)
    };
    // 60000 x 576 doubles are 264 MiB, for 100000 non-zeros; in windows they are formed twice.
    let (small, windows, forming) = run("--plan none --max-memory 150M", "windows");
    assert!(forming.contains("windows") && small < 100 << 20, "{forming} {small}");
    // Merged modes are formed whole, where that fits.
    let (peak, whole, forming) = run("--plan 1+2", "whole");
    assert_eq!(forming, "\"whole\"");
    assert!((whole - windows).abs() < 1e-12, "{whole} {windows}");
    let (less, again, forming) =
        run(&format!("--plan 1+2 --max-memory {}", peak - (8 << 20)), "less");
    assert!(forming.contains("windows") && less < peak, "{forming} {less} {peak}");
    assert_eq!(again, windows);
    let stderr = refused(dir.path(), "x.dtb --ranks 4,24,24 --max-memory 12M -o none");
    assert!(stderr.contains("--max-memory"), "{stderr}");
}

#[test]
fn no_run_ends_below_the_hosvd() {
    let dir = tempfile::tempdir().unwrap();
    let mut generate = decompose(dir.path());
    generate.args("generate uniform --dims 30,20,10 --nnz 200 -o x.dtb".split(' '));
    generate.assert().success();
    let run = |options: &str, out: &str| -> Json {
        let mut command = decompose(dir.path());
        command.args("tucker x.dtb --ranks 4,3,2 -q -o".split(' ')).arg(out);
        command.args(options.split_whitespace()).assert().success();
        json(&dir.path().join(out).join("run.json"))
    };
    let hosvd = run("--method hosvd", "hosvd")["result"]["fit"].as_f64().unwrap();
    let mut followed = 0;
    for seed in 0..8 {
        let options = format!("--max-iters 1 --seed {seed}");
        let record = run(&options, &format!("run{seed}"));
        let result = &record["result"];
        let fit = result["fit"].as_f64().unwrap();
        // The same factors, and kernels that may sum in another order.
        assert!((result["hosvd_fit"].as_f64().unwrap() - hosvd).abs() < 1e-12, "{result}");
        assert!(fit >= hosvd - 1e-12, "seed {seed}: {fit} {hosvd}");
        let starts = result["starts"].as_array().unwrap();
        let alone = &run(&format!("{options} --above-hosvd no"), &format!("alone{seed}"))["result"];
        assert_eq!(starts[0]["fit"], alone["fit"]);
        assert!(alone["hosvd_fit"].is_null() && alone["starts"].as_array().unwrap().len() == 1);
        if alone["fit"].as_f64().unwrap() < hosvd {
            followed += 1;
            assert_eq!((starts.len(), result["best_start"].as_u64()), (2, Some(2)));
        }
    }
    assert!(followed > 0, "one iteration from a random start should end below now and then");
    let words = "x.dtb --ranks 2 --nonneg --above-hosvd yes -o none";
    assert!(refused(dir.path(), words).contains("for hooi without --nonneg"));
}

#[test]
fn the_memory_that_is_held_was_foreseen() {
    let dir = tempfile::tempdir().unwrap();
    let mut generate = decompose(dir.path());
    generate.args("generate uniform --dims 60000,300,200 --nnz 300000 -o x.dtb".split(' '));
    generate.assert().success();
    // Windows beside whole results; a HOSVD beside the start, or none.
    for (number, options) in ["", "--above-hosvd no", "--init hosvd"].iter().enumerate() {
        let mut command = decompose(dir.path());
        let out = format!("run{number}");
        command.args("tucker x.dtb --ranks 12 --max-iters 2 --tol 0 -q -t 2 -o".split(' '));
        command.arg(&out).args(options.split_whitespace()).assert().success();
        let memory = json(&dir.path().join(&out).join("run.json"))["memory"].clone();
        let bytes = |name: &str| memory[name].as_u64().unwrap();
        let (peak, foreseen) = (bytes("actual_peak"), bytes("predicted_peak"));
        // Foreseen to a tenth: see `memory.rs`.
        assert!(peak <= foreseen + foreseen / 10, "{options}: {peak} {memory}");
    }
}

#[test]
fn a_plan_is_explained_without_running() {
    let dir = tempfile::tempdir().unwrap();
    let (stdout, _) = tucker(dir.path(), SUN, "--ranks 4 --explain");
    for word in ["Y(i,s,t)", "nest ", "formed whole", "generated C of mode 3: "] {
        assert!(stdout.contains(word), "{word}: {stdout}");
    }
    let (stdout, _) = tucker(dir.path(), SUN, "--ranks 4 --nonneg --explain");
    assert!(stdout.contains("G(r,s,t)") && stdout.contains("generated C of the core"), "{stdout}");
    assert!(names(dir.path()).is_empty());
}

#[test]
fn merged_modes_change_no_fit() {
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str, plan: &str| {
        let options =
            format!("--ranks 3,3,3,2 --out {name} -t 2 --max-iters 4 --tol 0 --plan {plan}");
        tucker(dir.path(), ZONES, &options);
        let record = json(&dir.path().join(name).join("run.json"));
        assert_eq!(record["options"]["plan"], plan);
        let steps = record["plan"]["steps"].as_array().unwrap();
        for step in steps {
            assert!(step["measured_seconds"].as_f64().unwrap() > 0.0);
        }
        let partials = steps.iter().filter(|step| step["mode"].is_null()).count();
        let sets = plan.split(',').filter(|set| set.contains('+')).count();
        assert!(plan == "auto" || partials == sets, "{plan}: {partials}");
        fit(&dir.path().join(name))
    };
    let plain = run("plain", "none");
    for (name, plan) in [("auto", "auto"), ("one", "1+2"), ("two", "1+3,2+4"), ("three", "1+2+4")] {
        // Four iterations pass the different rounding of sums on.
        assert!((run(name, plan) - plain).abs() < 1e-10, "{plan}");
    }
    let (stdout, _) = tucker(dir.path(), ZONES, "--ranks 2 --plan 1+2 --explain");
    for word in ["merged modes 1+2", "P(i,t,u)", "generated C of partial of modes 1+2", "mode 3"] {
        assert!(stdout.contains(word), "{word}: {stdout}");
    }
    let (stdout, _) = tucker(dir.path(), ZONES, "--ranks 2 --trees 4-3-2-1 --explain");
    assert!(stdout.contains("tree 1: modes 4-3-2-1") && !stdout.contains("tree 2"), "{stdout}");
    for (options, word) in [
        ("--plan 1+5", "modes 1+5 cannot be merged"),
        ("--plan 1+2 --nonneg", "hooi"),
        ("--plan 1+2 --trees 1-2-3-4", "one of them"),
        ("--trees 1-2-3", "does not list each of the 4 modes"),
        ("--trees 1.1.1.1/1-2-3-4", "are for `decompose cp`"),
    ] {
        let file = data(ZONES).display().to_string();
        let stderr = refused(dir.path(), &format!("{file} --ranks 2 -o bad {options}"));
        assert!(stderr.contains(word) && !dir.path().join("bad").exists(), "{stderr}");
    }
}
