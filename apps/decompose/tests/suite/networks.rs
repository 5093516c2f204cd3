//! Networks of several sparse tensors from quantum chemistry, against the values that come with them.
//!
//! The integrals of a chain of hydrogen molecules lie beside the project; where they do not, the test is skipped.

use std::path::{Path, PathBuf};

use decompose_formats::io::{self, Progress, ReadOptions, Source};
use ndarray::ArrayD;
use ndarray_npy::read_npy;

use crate::common::{decompose, json};

/// The folder of the networks' tensors.
fn shared() -> Option<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/own"));
    let there = root.join("qc-h24-check.json").exists();
    if !there {
        eprintln!("skipped: no ../shared/data/own/qc-h24-check.json");
    }
    there.then(|| root.to_owned())
}

/// Computes `expr` in `folder` with the scheduler `const`, in one kernel; returns what it says.
fn einsum(folder: &Path, expr: &str, tensors: &[(&str, PathBuf)], out: &str) -> String {
    let extents = ["k=264", "l=264", "i=12", "j=12", "u=48", "v=48", "m=48", "n=48"];
    let indices = expr.split(|c: char| "(,)".contains(c)).collect::<Vec<_>>();
    let extents = extents.into_iter().filter(|extent| indices.contains(&&extent[..1]));
    let mut command = decompose(folder);
    command.args(["einsum", expr, "--scheduler", "const", "--one-kernel", "--out", out]);
    for (name, file) in tensors {
        command.arg("--tensor").arg(format!("{name}={}", file.display()));
    }
    command.arg("--extents").arg(extents.collect::<Vec<_>>().join(","));
    let output = command.assert().success().get_output().clone();
    String::from_utf8(output.stderr).unwrap()
}

/// The sum of the elements in a file, and their Frobenius norm.
fn sums(file: &Path) -> [f64; 2] {
    let values: Vec<f64> = match file.extension().is_some_and(|extension| extension == "npy") {
        true => read_npy::<_, ArrayD<f64>>(file).unwrap().into_iter().collect(),
        false => {
            let options = ReadOptions::default();
            let read = io::read::<f64>(&Source::new(file), &options, &Progress::new());
            read.unwrap().0.values().to_vec()
        }
    };
    let squares: f64 = values.iter().map(|value| value * value).sum();
    [values.iter().sum(), squares.sqrt()]
}

#[test]
fn integrals_of_quantum_chemistry_have_their_values() {
    let Some(data) = shared() else { return };
    let dir = tempfile::tempdir().unwrap();
    let check = json(&data.join("qc-h24-check.json"));
    let file = |name: &str| data.join(format!("qc-h24-{name}/qc-h24-{name}.tns.gz"));
    let given = |names: &[&'static str]| -> Vec<(&'static str, PathBuf)> {
        names.iter().map(|&name| (name, file(name))).collect()
    };
    let holds = |result: &str, out: &str, said: &str| {
        assert!(said.contains("search   const"), "{said}");
        for (kind, have) in ["sum", "fro"].into_iter().zip(sums(&dir.path().join(out))) {
            let want = check[format!("{result}_{kind}")].as_f64().unwrap();
            assert!((have - want).abs() <= 1e-11 * want.abs(), "{result}: {have} for {want}");
        }
    };
    let unrestricted = "F(k,i,m) = Int(u,v,k) * C(v,i) * Phat(u,m)";
    let said = einsum(dir.path(), unrestricted, &given(&["Int", "C", "Phat"]), "F.tns");
    assert!(said.contains("l = 1 solved"), "{said}");
    holds("F", "F.tns", &said);
    let restricted = "X(k,i,m) = Int(u,v,k) * L(k,i) * C(v,i) * Phat(u,m)";
    let said = einsum(dir.path(), restricted, &given(&["Int", "L", "C", "Phat"]), "X.tns");
    holds("X", "X.tns", &said);
    let four = "R(i,m,j,n) = F(k,i,m) * D(k,l) * F(l,j,n)";
    let tensors = [("F", dir.path().join("F.tns")), ("D", file("D"))];
    let said = einsum(dir.path(), four, &tensors, "R.npy");
    holds("R", "R.npy", &said);
}
