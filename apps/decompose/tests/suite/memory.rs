//! What is foreseen of a run's memory, beside what it takes: each run in a process of its own.

use std::path::Path;
use std::process::{Command, Output};

use decompose_core::cost::Machine;
use tempfile::TempDir;

use crate::common::decompose;

/// What every run must keep: the forecast over the peak.
const WITHIN: std::ops::RangeInclusive<f64> = 0.9..=1.1;

/// What the short runs must keep: they hold little beside the program, whose code takes more memory unoptimised, and
/// more or less of it on other systems.
const WITHIN_SHORT: std::ops::RangeInclusive<f64> = 0.85..=1.15;

/// The tensors of the short runs.
const TENSORS: &[&str] = &[
    "--dims 700,600,500 --nnz 150000 -o a.tns",
    "--dims 120,100,80,20 --nnz 100000 -o b.tns",
    "uniform --dims 14,14,56 --nnz 3000 -o short.tns",
    "low-rank --dims 60,50,40 --nnz 60000 --rank 4 --noise 0.1 -o low.tns",
    "--dims 40000,20000 --nnz 600000 -o m.tns",
];

/// One run a line.  Kernels are interpreted, so that nothing depends on a compiler or a cache.
const RUNS: &[&str] = &[
    "cp -r 8 -i 1 a.tns",
    "cp -r 400 -i 1 short.tns",
    "cp -r 8 -i 1 --restarts 2 b.tns",
    "tucker -r 4 --method st-hosvd b.tns",
    "tucker --eps 0.3 -i 1 low.tns",
    "tt --eps 0.3 low.tns",
    "tt -r 6 --method svd b.tns",
    "complete -r 4 -i 1 a.tns",
    "complete -r 4 -i 1 --alg ccd a.tns",
    "rank -r 1,3 -i 1 a.tns",
];

/// Runs of commands that fit nothing; `model` is a folder with a CP model of `a.tns`.
const OTHER_RUNS: &[&str] = &[
    "convert a.tns a.dtb",
    "predict model a.tns -o p.tns",
    "eval model a.tns",
    "einsum Y(i,r)=X(i,j,k)*A(j,r)*B(k,r) --tensor X=a.tns --tensor A=A.npy --tensor B=B.npy -o Y.npy",
    "einsum Y(i,r)=X(i,j,k)*A(j,r)*B(k,r) --tensor X=a.dtb --tensor A=A.npy --tensor B=B.npy -o Z.npy",
    "einsum Y(i,j)=D(i,j)*D(i,j) --tensor D=D.npy -o E.npy",
    "einsum Y(i,j)=D(i,k)*D(k,j) --tensor D=D.npy -o F.npy",
    "einsum Y(i,k)=M(i,j)*C(j,k) --tensor M=m.tns --tensor C=C.npy -o G.npy",
    "einsum Y(i,k)=M(i,j)*C(j,k) --tensor M=m.tns --tensor C=C.npy --schedule pieces.txt -o H.npy",
];

/// Expressions of which something else than a kernel takes the most memory.
const WITHOUT_KERNELS: &[&str] = &[
    "einsum Z(i,j)=L(i,j)+2*N(i,j) --tensor L=l.dtb --tensor N=n.dtb -o sum.dtb",
    "einsum Z(i,j)=L(i,j)-0.5*L(i,j) --tensor L=l.dtb -o twice.dtb",
    "einsum Z(i,j)=L(i,j)+L(j,i) --tensor L=l.dtb -o symmetric.tns",
    "einsum Z(j,i)=L(i,j) --tensor L=l.dtb -o permuted.dtb",
    "einsum Z(i,j)=relu(D(i,j,i)+L(i,j)) --tensor D=d.tns --tensor L=l.dtb -o diagonal.dtb",
    "einsum Z(i,j)=exp(L(i,j)) --tensor L=l.dtb -o exp.dtb",
    "einsum Z(j,i)=A(i,j)+A(j,i) --tensor A=square.npy -o dense.npy",
    "einsum Z(j,i)=A(i,j) --tensor A=square.npy -o listed.dtb",
    "einsum Z(i,j)=S(i,j)+S(j,i) --tensor S=s.dtb -o filled.npy",
];

/// The tensors of these.
const LISTS: &[&str] = &[
    "--dims 3000,3000 --nnz 1000000 -o l.dtb",
    "--dims 3000,3000 --nnz 1000000 --seed 2 -o n.dtb",
    "--dims 3000,3000 --nnz 300000 --seed 3 -o s.dtb",
    "--dims 3000,3000,3000 --nnz 1000000 --seed 4 -o d.tns",
];

/// Makes what [`WITHOUT_KERNELS`] read.
fn folder_of_lists() -> TempDir {
    let dir = folder(LISTS);
    let square = ndarray::Array2::<f64>::ones((2000, 2000));
    ndarray_npy::write_npy(dir.path().join("square.npy"), &square).unwrap();
    dir
}

/// The tensors of the long runs; large enough that lists, trees and matrices count beside the program.
const LARGE_TENSORS: &[&str] = &[
    "--dims 700,600,500 --nnz 400000 -o a.tns",
    "--dims 120,100,80,20 --nnz 300000 -o b.tns",
    "uniform --dims 14,14,56 --nnz 3000 -o short.tns",
    "uniform --dims 12,11,10,9,8,7,6 --nnz 60000 -o seven.tns",
    "low-rank --dims 60,50,40 --nnz 60000 --rank 4 --noise 0.1 -o low.tns",
    "uniform --dims 60,50,40,30 --nnz 20000 -o noise.tns",
];

/// The long runs: every method of every command.
const LONG_RUNS: &[&str] = &[
    "cp -r 2 sun.tns.gz",
    "cp -r 50 -i 3 sun.tns.gz",
    "cp -r 8 -i 2 a.tns",
    "cp -r 8 -i 2 a.dtb",
    "cp -r 40 -i 1 --precision f32 a.tns",
    "cp -r 600 -i 1 short.tns",
    "cp -r 8 -i 1 --restarts 2 b.tns",
    "cp -r 8 -i 1 --init nvecs a.tns",
    "cp -r 8 -i 1 --plan 1+2 b.tns",
    "cp -r 8 -i 1 --nonneg b.tns",
    "tucker -r 2 sun.tns.gz",
    "tucker -r 4 -i 1 b.tns",
    "tucker -r 4 -i 1 a.dtb",
    "tucker -r 4 --method hosvd a.tns",
    "tucker -r 4 --method st-hosvd b.tns",
    "tucker -r 4 -i 1 --nonneg b.tns",
    "tucker --eps 0.3 -i 1 low.tns",
    "tt -r 4 sun.tns.gz",
    "tt -r 6 -i 1 b.tns",
    "tt --eps 0.3 low.tns",
    "tt -r 6 --method dmrg -i 1 b.tns",
    "tt -r 6 --method svd b.tns",
    "complete -r 3 sun.tns.gz",
    "complete -r 4 -i 1 a.tns",
    "complete -r 4 -i 1 --alg ccd a.tns",
    "complete -r 4 -i 1 --alg sgd a.tns",
    "complete -r 4 -i 1 --alg adam a.tns",
    "complete -r 4 -i 1 --alg lbfgs a.tns",
    "complete -r 4 -i 1 seven.tns",
    "complete -r 4 -i 1 --alg ccd seven.tns",
    "complete -r 4 -i 1 --alg lbfgs seven.tns",
    "complete --model tucker --ranks 2 -i 1 b.tns",
    "complete --model tt --ranks 2 -i 1 b.tns",
    "rank -r 1,2 -i 5 sun.tns.gz",
    "rank -r 1,3 -i 1 a.tns",
    "rank -r 2 -i 1 --method cp a.tns",
    // With files and figures.
    "cp -r 2 sun.tns.gz -o cp",
    "cp -r 8 -i 2 a.tns -o cp-a",
    "tucker -r 2 sun.tns.gz -o tucker",
    "tt -r 4 sun.tns.gz -o tt",
    "complete -r 3 sun.tns.gz -o complete",
    "rank -r 1,2 -i 5 sun.tns.gz -o rank",
    "tt --eps 0.1 --method svd noise.tns -o tt-svd",
    "complete --model tucker --ranks 2 sun.tns.gz -o complete-tucker",
    "complete --model tt --ranks 2 sun.tns.gz -o complete-tt",
];

/// Makes the tensors in a new folder.
fn folder(tensors: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for tensor in tensors {
        let mut command = decompose(dir.path());
        command.arg("generate").args(tensor.split_whitespace()).assert().success();
    }
    dir
}

/// Makes what the runs of commands that fit nothing read.
fn with_model(dir: &Path) {
    let array = |name: &str, rows: usize| {
        let array = ndarray::Array2::<f64>::ones((rows, 16));
        ndarray_npy::write_npy(dir.join(name), &array).unwrap();
    };
    let square = ndarray::Array2::<f64>::ones((1500, 1500));
    ndarray_npy::write_npy(dir.join("D.npy"), &square).unwrap();
    let rows = ndarray::Array2::<f64>::ones((20_000, 96));
    ndarray_npy::write_npy(dir.join("C.npy"), &rows).unwrap();
    let pieces = "split i I 512\nsplit k K 32\npath M*C\nnest I{ i{ j{ K{ k{ T1 } } } } }\n\
                  layout I i j\nparallel I position owner\n";
    std::fs::write(dir.join("pieces.txt"), pieces).unwrap();
    array("A.npy", 600);
    array("B.npy", 500);
    let model = run(dir, "cp -r 8 -i 1 a.tns -o model", &["--no-codegen"]);
    assert!(model.status.success(), "{}", printed(&model));
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
fn off(
    folder: &Path,
    line: &str,
    options: &[&str],
    within: &std::ops::RangeInclusive<f64>,
) -> Option<String> {
    let output = run(folder, line, options);
    let text = printed(&output);
    assert!(output.status.success(), "{line}: {text}");
    let Some((peak, forecast)) = peak_and_forecast(&text) else {
        // No peak is known without /proc.
        assert!(!Path::new("/proc/self/status").exists(), "{line}: {text}");
        return None;
    };
    let ratio = forecast / peak;
    eprintln!("{line:?},{forecast:.1},{peak:.1},{ratio:.3}");
    (!within.contains(&ratio)).then(|| format!("{line}: {forecast} of {peak} MiB"))
}

const WRITTEN_NOT: [&str; 3] = ["--nowrite", "-t", "2"];
const INTERPRETED: [&str; 4] = ["--nowrite", "--no-codegen", "-t", "2"];

/// The options of a run of [`OTHER_RUNS`].
fn options_of(line: &str) -> &'static [&'static str] {
    if line.starts_with("convert") { &[] } else { &["--no-codegen"] }
}

#[test]
fn forecasts_are_close_to_the_peak() {
    let dir = folder(TENSORS);
    with_model(dir.path());
    let fits = RUNS.iter().filter_map(|line| off(dir.path(), line, &INTERPRETED, &WITHIN_SHORT));
    let others =
        OTHER_RUNS.iter().filter_map(|line| off(dir.path(), line, options_of(line), &WITHIN_SHORT));
    let wrong: Vec<String> = fits.chain(others).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Prints a line of CSV a run, for a record.
#[test]
#[ignore = "takes minutes: cargo test --release --workspace --test suite all_methods -- --ignored --nocapture"]
fn forecasts_of_all_methods_are_within_a_tenth_of_the_peak() {
    let dir = folder(LARGE_TENSORS);
    with_model(dir.path());
    std::fs::copy(crate::common::data("sun-elevation.tns.gz"), dir.path().join("sun.tns.gz"))
        .unwrap();
    run(dir.path(), "convert a.tns a.dtb", &[]);
    eprintln!("run,expected_mib,peak_mib,ratio");
    let options = |line: &str| if line.contains(" -o ") { &["-t", "2"][..] } else { &WRITTEN_NOT };
    let fits = LONG_RUNS.iter().filter_map(|line| off(dir.path(), line, options(line), &WITHIN));
    let others = OTHER_RUNS.iter().filter_map(|line| {
        let overwritten: &[&str] = if line.starts_with("convert") { &["--overwrite"] } else { &[] };
        off(dir.path(), line, overwritten, &WITHIN)
    });
    let bench = "bench a.tns --what ingest -t 2 --rounds 5 -o bench";
    let wrong: Vec<String> =
        fits.chain(others).chain(off(dir.path(), bench, &[], &WITHIN)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_no_kernel_is_foreseen_too() {
    let dir = folder_of_lists();
    let options = ["--no-codegen", "-t", "2"];
    let wrong = WITHOUT_KERNELS.iter().filter_map(|line| off(dir.path(), line, &options, &WITHIN));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_no_kernel_keeps_the_limit() {
    let dir = folder_of_lists();
    for line in WITHOUT_KERNELS {
        let options = ["--no-codegen", "-t", "2", "--overwrite"];
        let free = run(dir.path(), line, &options);
        let Some((peak, _)) = peak_and_forecast(&printed(&free)) else { return };
        let file = dir.path().join(line.split(" -o ").nth(1).unwrap());
        std::fs::remove_file(&file).unwrap();
        for share in [0.7, 0.95] {
            let limit = format!("{:.0}", peak * share * f64::from(1 << 20));
            let limited =
                run(dir.path(), line, &[&options[..], &["--max-memory", &limit]].concat());
            let text = printed(&limited);
            // Steps that were foreseen within the limit may find a way of less memory.
            if limited.status.success() {
                let (taken, _) = peak_and_forecast(&text).unwrap();
                assert!(taken <= 1.05 * share * peak, "{line}: {taken} of {}", share * peak);
                std::fs::remove_file(&file).unwrap();
                continue;
            }
            assert_eq!(limited.status.code(), Some(2), "{line}: {text}");
            assert!(text.contains("may be used (as asked for)"), "{line}: {text}");
            assert!(text.contains("help: "), "{line}: {text}");
            assert!(!file.exists(), "{line}: {text}");
        }
    }
}

#[test]
fn limits_hold() {
    let dir = folder(TENSORS);
    let runs = [
        "cp -r 8 -i 1 a.tns",
        "cp -r 400 -i 1 short.tns",
        "tucker -r 4 -i 1 b.tns",
        "tt -r 6 --method svd b.tns",
        "complete -r 4 -i 1 a.tns",
    ];
    for line in runs {
        let free = run(dir.path(), line, &INTERPRETED);
        let Some((peak, _)) = peak_and_forecast(&printed(&free)) else { return };
        for share in [0.6, 0.95] {
            let limit = format!("{:.0}", peak * share * f64::from(1 << 20));
            let options = [&INTERPRETED[..], &["--max-memory", &limit]].concat();
            let limited = run(dir.path(), line, &options);
            let text = printed(&limited);
            match limited.status.code() {
                Some(0) => {
                    let (taken, _) = peak_and_forecast(&text).unwrap();
                    assert!(taken <= 1.05 * share * peak, "{line}: {taken} of {}", share * peak);
                }
                code => {
                    assert_eq!(code, Some(2), "{line}: {text}");
                    assert!(text.contains("(as asked for)"), "{line}: {text}");
                }
            }
        }
    }
}

#[test]
fn runs_beyond_the_limit_are_refused_before_kernels_are_compiled() {
    let dir = folder(WIDE);
    for line in BEYOND {
        let cache = dir.path().join("cache");
        let mut command = decompose(dir.path());
        command.args(line.split_whitespace()).args(["--nowrite", "--max-memory", "8G"]);
        let output = command.env("DECOMPOSE_CACHE", &cache).output().unwrap();
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains("8.0 GiB may be used (as asked for)"), "{line}: {text}");
        assert!(text.contains("lower --rank"), "{line}: {text}");
        let kernels = std::fs::read_dir(&cache).into_iter().flatten().flatten();
        let kernels: Vec<_> =
            kernels.filter(|file| file.path().extension() == Some("so".as_ref())).collect();
        assert!(kernels.is_empty(), "{line}: {kernels:?}");
    }
}

/// A tensor whose matrices are large, though its list is short.
const WIDE: &[&str] = &["--dims 20000,20000,20000 --nnz 1000 -o wide.tns"];

/// Runs whose matrices of the rank, core or train do not fit 8 GiB.
const BEYOND: &[&str] = &[
    "cp -r 65536 -i 1 wide.tns",
    "tucker -r 2000 -i 1 --init random wide.tns",
    "tt -r 4000 -i 1 wide.tns",
    "complete -r 65536 -i 1 wide.tns",
];

/// Runs a command with an address space of some MiB.
#[cfg(target_os = "linux")]
fn within_space(dir: &Path, line: &str, mebibytes: u64) -> Output {
    let program = decompose(dir).get_program().to_owned();
    let script = format!("ulimit -v {} && exec \"$0\" \"$@\"", mebibytes << 10);
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(program).args(line.split_whitespace());
    command.current_dir(dir).output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn the_address_space_is_a_limit() {
    let dir = folder(WIDE);
    for line in BEYOND {
        let options = format!("{line} --nowrite --no-codegen -t 2");
        let output = within_space(dir.path(), &options, 8 << 10);
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains("(ulimit -v)"), "{line}: {text}");
    }
    let line = "cp -r 4 -i 1 wide.tns --nowrite --no-codegen -t 2";
    let output = within_space(dir.path(), line, 8 << 10);
    assert!(output.status.success(), "{}", printed(&output));
}

/// Threads share what dense products map of the address space.
#[cfg(target_os = "linux")]
#[test]
fn a_limited_address_space_serves_dense_products_of_all_threads() {
    let dir = folder(&TENSORS[1..2]);
    let buffer = (2 * Machine::last_level_bytes()) >> 20;
    for line in ["tt --eps 0.9 b.tns", "tucker -r 20 -i 1 b.tns", "cp -r 100 -i 1 b.tns"] {
        let line = format!("{line} --nowrite --no-codegen -t 3");
        let output = within_space(dir.path(), &line, 700 + buffer);
        assert!(output.status.success(), "{line}: {}", printed(&output));
    }
    // Without room for a single buffer the limit is told.
    let line = "cp -r 100 -i 1 b.tns --nowrite --no-codegen -t 1";
    let output = within_space(dir.path(), line, 200);
    if buffer > 200 {
        let text = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("of address space for matrix products"), "{text}");
        assert!(text.contains("help: raise the limit on memory (ulimit -v)"), "{text}");
    }
}

/// Whatever the system leaves to a program that it can start, a run ends with a result or with a reason: matrix
/// products, for one, take twice the last cache of the address space for each thread.
#[cfg(target_os = "linux")]
#[test]
fn no_run_aborts_for_want_of_memory() {
    let dir = folder(&TENSORS[2..3]);
    let starts = |mebibytes: u64| within_space(dir.path(), "--version", mebibytes).status.success();
    let least = (10..).find(|&mebibytes| starts(mebibytes)).unwrap();
    let tight = (0..12).map(|step| least + 2 * step);
    for mebibytes in tight.chain([120, 160, 250, 500]) {
        let line = "cp -r 100 -i 1 short.tns --nowrite --no-codegen -t 2";
        let output = within_space(dir.path(), line, mebibytes);
        let text = printed(&output);
        if !output.status.success() {
            assert_eq!(output.status.code(), Some(2), "{mebibytes} MiB: {text}");
            assert!(text.contains("error: "), "{mebibytes} MiB: {text}");
            assert!(!text.contains("memory allocation of"), "{mebibytes} MiB: {text}");
        }
    }
}
