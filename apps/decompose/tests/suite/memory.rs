//! What is foreseen of a run's memory, beside what it takes: each run in a process of its own.

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::common::decompose;

/// What every run must keep: the forecast over the peak.
const WITHIN: std::ops::RangeInclusive<f64> = 0.9..=1.1;

/// The tensors of the table; large enough that lists, trees and matrices count beside the program.
const TENSORS: &[&str] = &[
    "--dims 700,600,500 --nnz 400000 -o a.tns",
    "--dims 120,100,80,20 --nnz 300000 -o b.tns",
    "uniform --dims 14,14,56 --nnz 3000 -o short.tns",
    "uniform --dims 12,11,10,9,8,7,6 --nnz 60000 -o seven.tns",
    "low-rank --dims 60,50,40 --nnz 60000 --rank 4 --noise 0.1 -o low.tns",
];

/// One run a line.  Kernels are interpreted, so that nothing depends on a compiler or a cache.
const RUNS: &[&str] = &[
    "cp -r 8 -i 2 a.tns",
    "cp -r 40 -i 1 --precision f32 a.tns",
    "cp -r 600 -i 1 short.tns",
    "cp -r 8 -i 1 --restarts 2 b.tns",
    "cp -r 8 -i 1 --init nvecs a.tns",
    "cp -r 8 -i 1 --plan 1+2 b.tns",
    "tucker -r 4 -i 1 b.tns",
    "tucker -r 4 --method hosvd a.tns",
    "tucker -r 4 --method st-hosvd b.tns",
    "tucker -r 4 -i 1 --nonneg b.tns",
    "tucker --eps 0.3 -i 1 low.tns",
    "tt -r 6 -i 1 b.tns",
    "tt --eps 0.3 low.tns",
    "tt -r 6 --method dmrg -i 1 b.tns",
    "tt -r 6 --method svd b.tns",
    "complete -r 4 -i 1 a.tns",
    "complete -r 4 -i 1 --alg ccd a.tns",
    "complete -r 4 -i 1 --alg sgd a.tns",
    "complete -r 4 -i 1 --alg adam a.tns",
    "complete -r 4 -i 1 --alg lbfgs seven.tns",
    "complete -r 4 -i 1 seven.tns",
    "complete --model tucker --ranks 2 -i 1 b.tns",
    "complete --model tt --ranks 2 -i 1 b.tns",
    "rank -r 1,3 -i 1 a.tns",
    "rank -r 2 -i 1 --method cp a.tns",
];

/// Runs of commands that fit nothing; `model` is a folder with a CP model of `a.tns`.
const OTHER_RUNS: &[&str] = &[
    "convert a.tns a.dtb",
    "predict model a.tns -o p.tns",
    "eval model a.tns",
    "einsum Y(i,r)=X(i,j,k)*A(j,r)*B(k,r) --tensor X=a.tns --tensor A=A.npy --tensor B=B.npy -o Y.npy",
];

/// Makes the tensors in a new folder.
fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for tensor in TENSORS {
        let mut command = decompose(dir.path());
        command.arg("generate").args(tensor.split_whitespace()).assert().success();
    }
    dir
}

fn run(folder: &Path, line: &str, options: &[&str]) -> Output {
    let mut command = decompose(folder);
    command.args(line.split_whitespace()).args(options);
    command.output().unwrap()
}

/// What a run printed, of both streams.
fn printed(output: &Output) -> String {
    [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// The peak and the forecast that a run printed, in MiB.
fn peak_and_forecast(text: &str) -> Option<(f64, f64)> {
    let line = text.lines().find(|line| line.contains(" at the peak, "))?;
    let sizes = line.trim_start_matches("memory").split(" at the peak, ");
    let sizes: Vec<f64> = sizes.filter_map(mebibytes).collect();
    Some((*sizes.first()?, *sizes.get(1)?))
}

fn mebibytes(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let unit = match words.next()? {
        "KiB" => 1.0 / 1024.0,
        "MiB" => 1.0,
        "GiB" => 1024.0,
        _ => return None,
    };
    Some(number * unit)
}

/// The line of a run whose forecast is not within the bounds.
fn off(folder: &Path, line: &str, options: &[&str]) -> Option<String> {
    let output = run(folder, line, options);
    let text = printed(&output);
    assert!(output.status.success(), "{line}: {text}");
    let Some((peak, forecast)) = peak_and_forecast(&text) else {
        // No peak is known without /proc.
        assert!(!Path::new("/proc/self/status").exists(), "{line}: {text}");
        return None;
    };
    let ratio = forecast / peak;
    eprintln!("{ratio:5.2}  {forecast:7.1} expected  {peak:7.1} MiB  {line}");
    (!WITHIN.contains(&ratio)).then(|| format!("{line}: {forecast} of {peak} MiB"))
}

#[test]
fn forecasts_are_within_a_tenth_of_the_peak() {
    let dir = folder();
    let options = ["--nowrite", "--no-codegen", "-t", "2"];
    let wrong: Vec<String> =
        RUNS.iter().filter_map(|line| off(dir.path(), line, &options)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn commands_that_fit_nothing_foresee_their_memory() {
    let dir = folder();
    let array = |name: &str, rows: usize| {
        let array = ndarray::Array2::<f64>::ones((rows, 16));
        ndarray_npy::write_npy(dir.path().join(name), &array).unwrap();
    };
    array("A.npy", 600);
    array("B.npy", 500);
    let model = run(dir.path(), "cp -r 8 -i 1 a.tns -o model", &["--no-codegen"]);
    assert!(model.status.success(), "{}", printed(&model));
    let wrong = OTHER_RUNS.iter().filter_map(|line| {
        let codegen: &[&str] = if line.starts_with("convert") { &[] } else { &["--no-codegen"] };
        off(dir.path(), line, codegen)
    });
    let bench = "bench a.tns --what ingest -t 2 --rounds 5 -o bench";
    let wrong: Vec<String> = wrong.chain(off(dir.path(), bench, &[])).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn limits_hold() {
    let dir = folder();
    let runs = [
        "cp -r 8 -i 1 a.tns",
        "cp -r 600 -i 1 short.tns",
        "tucker -r 4 -i 1 b.tns",
        "tt -r 6 --method svd b.tns",
        "complete -r 4 -i 1 a.tns",
        "rank -r 1,3 -i 1 --method cp a.tns",
    ];
    for line in runs {
        let options = ["--nowrite", "--no-codegen", "-t", "2", "--max-memory"];
        let free = run(dir.path(), line, &options[..4]);
        let Some((peak, _)) = peak_and_forecast(&printed(&free)) else { return };
        for share in [0.6, 0.8, 0.95] {
            let limit = format!("{:.0}", peak * share * f64::from(1 << 20));
            let limited = run(dir.path(), line, &[&options[..], &[&limit]].concat());
            let text = printed(&limited);
            match limited.status.code() {
                Some(0) => {
                    let (taken, _) = peak_and_forecast(&text).unwrap();
                    assert!(taken <= 1.05 * share * peak, "{line}: {taken} of {}", share * peak);
                }
                code => {
                    assert_eq!(code, Some(2), "{line}: {text}");
                    assert!(text.contains("(--max-memory)"), "{line}: {text}");
                }
            }
        }
    }
}

#[test]
fn matrices_of_the_rank_count() {
    let dir = folder();
    for line in ["cp -r 65536 -i 1 short.tns", "complete -r 65536 -i 1 short.tns"] {
        let output = run(dir.path(), line, &["--nowrite", "--max-memory", "8G"]);
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains("8.0 GiB may be used (--max-memory)"), "{line}: {text}");
        assert!(text.contains("lower --rank"), "{line}: {text}");
    }
}
