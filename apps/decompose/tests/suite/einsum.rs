//! `decompose einsum`: results against the definition.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use decompose_core::einsum::{Assignment, Expr, oracle};
use decompose_formats::io::{self, Progress, ReadOptions, Source};
use ndarray::{ArrayD, IxDyn};
use ndarray_npy::{read_npy, write_npy};

use crate::common::{decompose, names, without_family};

/// A number that depends on its place only.
fn number(place: usize) -> f64 {
    ((place * 7919 + 13) % 101) as f64 / 50.0 - 1.0
}

/// Writes a dense operand and returns it.
pub(crate) fn dense(folder: &Path, name: &str, shape: &[usize]) -> ArrayD<f64> {
    let len: usize = shape.iter().product();
    let numbers =
        (0..len).map(|place| number(place + name.len() + shape.first().unwrap_or(&1))).collect();
    let array = ArrayD::from_shape_vec(IxDyn(shape), numbers).unwrap();
    write_npy(folder.join(name), &array).unwrap();
    array
}

/// Writes a sparse operand as text, every third cell, and returns it as a dense one.
pub(crate) fn sparse(folder: &Path, name: &str, shape: &[usize]) -> ArrayD<f64> {
    let mut array = ArrayD::zeros(IxDyn(shape));
    let mut text = String::new();
    for (at, (place, element)) in array.indexed_iter_mut().enumerate() {
        // The last cell fixes the extents.
        if at % 3 == 0 || at + 1 == shape.iter().product::<usize>() {
            *element = number(at) + 2.0;
            (0..shape.len()).for_each(|mode| write!(text, "{} ", place[mode] + 1).unwrap());
            writeln!(text, "{}", *element).unwrap();
        }
    }
    fs::write(folder.join(name), text).unwrap();
    array
}

/// Runs `decompose einsum`; it must succeed.  Returns both streams.
pub(crate) fn einsum(folder: &Path, words: &str) -> (String, String) {
    let mut command = decompose(folder);
    command.arg("einsum").args(words.split_whitespace());
    let output = command.assert().success().get_output().clone();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Reads a list of non-zeros as a dense array of `shape`.
fn listed(path: &Path, shape: &[usize]) -> ArrayD<f64> {
    let source = Source::new(path);
    let read = io::read::<f64>(&source, &ReadOptions::default(), &Progress::new());
    let list = read.unwrap().0;
    let mut array = ArrayD::zeros(IxDyn(shape));
    for (entry, value) in list.values().iter().enumerate() {
        let place: Vec<usize> =
            (0..shape.len()).map(|mode| list.coords(mode).get(entry) as usize).collect();
        array[IxDyn(&place)] = *value;
    }
    array
}

fn close(have: &ArrayD<f64>, want: &ArrayD<f64>, tolerance: f64) {
    assert_eq!(have.shape(), want.shape());
    for (have, want) in have.iter().zip(want) {
        assert!((have - want).abs() <= tolerance, "{have} for {want}");
    }
}

/// Compares what a file holds, an array or a list, with `want`.
fn check_file(file: &Path, want: &ArrayD<f64>) {
    let have = match file.extension().is_some_and(|extension| extension == "npy") {
        true => read_npy(file).unwrap(),
        false => listed(file, want.shape()),
    };
    close(&have, want, 1e-12);
}

/// Computes `expr` from files of these shapes and compares it with its definition.
fn check(expr: &str, shapes: &[&[usize]], options: &str) {
    let dir = tempfile::tempdir().unwrap();
    let parsed: Expr = expr.parse().unwrap();
    let mut operands = vec![sparse(dir.path(), "X.tns", shapes[0])];
    let mut words = format!("{} --tensor X=X.tns", expr.replace(' ', ""));
    for (access, shape) in parsed.inputs.iter().zip(shapes).skip(1) {
        let file = format!("{}.npy", access.tensor);
        operands.push(dense(dir.path(), &file, shape));
        write!(words, " --tensor {}={file}", access.tensor).unwrap();
    }
    let want = oracle::evaluate(&parsed, &operands);
    let pattern = parsed.inputs[0].set().is_subset(parsed.output.set());
    let out = dir.path().join(if pattern { "Y.dtb" } else { "Y.npy" });
    let (_, said) = einsum(dir.path(), &format!("{words} {options} --out {}", out.display()));
    assert!(said.contains("schedule ") && said.contains("at the peak"), "{said}");
    let have = if pattern { listed(&out, want.shape()) } else { read_npy(&out).unwrap() };
    close(&have, &want, 1e-12);
}

#[test]
fn results_are_those_of_the_definition() {
    let x: &[usize] = &[4, 5, 6];
    let mttkrp: &[&[usize]] = &[x, &[5, 3], &[6, 3]];
    check("A(i,r) = X(i,j,k) * B(j,r) * C(k,r)", mttkrp, "");
    check("A(i,r) = X(i,j,k) * B(j,r) * C(k,r)", mttkrp, "--threads 1 --tree 3-1-2");
    check("A(i,r) = X(i,j,k) * B(j,r) * C(k,r)", mttkrp, "--no-codegen --tree 1-2+3");
    check("Y(i,s,t) = X(i,j,k) * B(j,s) * C(k,t)", &[x, &[5, 3], &[6, 4]], "");
    check("S(i,j,k) = X(i,j,k) * A(i,r) * B(j,r) * C(k,r)", &[x, &[4, 2], &[5, 2], &[6, 2]], "");
    check("S(i,j) = X(i,j) * A(i,r) * B(j,r)", &[&[7, 9], &[7, 2], &[9, 2]], "");
    check("y(i) = X(i,j) * v(j)", &[&[7, 9], &[9]], "");
    check("y(j) = X(i,j) * v(i)", &[&[7, 9], &[7]], "--scheduler exhaustive");
}

/// Computes `expr`, all of whose operands are sparse, from files of these shapes; `out` is the file of
/// the result.
fn check_sparse(expr: &str, shapes: &[&[usize]], (out, options): (&str, &str)) -> String {
    let dir = tempfile::tempdir().unwrap();
    let parsed: Expr = expr.parse().unwrap();
    let mut words = expr.replace(' ', "");
    let mut operands = Vec::new();
    let mut given: Vec<&str> = Vec::new();
    for (access, shape) in parsed.inputs.iter().zip(shapes) {
        let file = format!("{}.tns", access.tensor);
        operands.push(sparse(dir.path(), &file, shape));
        if !given.contains(&access.tensor.as_str()) {
            write!(words, " --tensor {}={file}", access.tensor).unwrap();
            given.push(&access.tensor);
        }
    }
    let want = oracle::evaluate(&parsed, &operands);
    let (_, said) = einsum(dir.path(), &format!("{words} --out {out} {options}"));
    check_file(&dir.path().join(out), &want);
    said
}

#[test]
fn several_sparse_operands_are_joined() {
    let matrices: &[&[usize]] = &[&[7, 9], &[9, 8]];
    let said = check_sparse("C(i,k) = X(i,j) * Z(j,k)", matrices, ("C.npy", ""));
    assert!(said.contains("on trees "), "{said}");
    check_sparse("C(k,i) = X(i,j) * Z(j,k)", matrices, ("C.npy", "--no-codegen --threads 1"));
    for (out, options) in [("C.mtx", ""), ("C.tns", "--no-codegen"), ("C.dtb", "--threads 1")] {
        check_sparse("C(i,k) = X(i,j) * Z(j,k)", matrices, (out, options));
        check_sparse("C(k,i) = X(i,j) * Z(j,k)", matrices, (out, options));
    }
    check_sparse("C(i,k) = X(i,j) * Z(k,j)", &[&[7, 9], &[8, 9]], ("C.npy", ""));
    check_sparse("C(i,k) = X(i,j) * X(k,j)", &[&[7, 9], &[7, 9]], ("C.npy", ""));
    let same: &[&[usize]] = &[&[4, 5, 6], &[4, 5, 6]];
    check_sparse("P(i,j,k) = X(i,j,k) * Z(i,j,k)", same, ("P.tns", ""));
    check_sparse("P(k,i,j) = X(i,j,k) * Z(i,j,k)", same, ("P.dtb", ""));
    let chain: &[&[usize]] = &[&[5, 6], &[6, 7], &[7, 4]];
    check_sparse("A(i,l) = X(i,j) * Y(j,k) * Z(k,l)", chain, ("A.npy", ""));
    check_sparse("A(i,l) = X(i,j) * Y(j,k) * Z(k,l)", chain, ("A.tns", ""));
    let deep: &[&[usize]] = &[&[4, 5, 6], &[6, 3]];
    check_sparse("T(i,j,l) = X(i,j,k) * Z(k,l)", deep, ("T.tns", ""));
    check_sparse("Y(i,j) = X(i,j) * M(j)", &[&[7, 9], &[9]], ("Y.mtx", ""));
}

#[test]
fn operands_are_stored_in_the_formats_that_are_asked_for() {
    let matrices: &[&[usize]] = &[&[7, 9], &[9, 8]];
    for format in ["Z=j:dense,k", "Z=j:hashed,k", "Z=j:bitmap,k", "Z=j,k", "X=j,i:hashed"] {
        for options in ["--threads 1", "--no-codegen"] {
            let options = format!("{options} --format {format}");
            check_sparse("C(i,k) = X(i,j) * Z(j,k)", matrices, ("C.tns", &options));
        }
    }
    // An array in a list, and a list in an array.
    let said = check_sparse("C(i,k) = X(i,j) * Z(j,k)", matrices, ("C.npy", "--format C=i,k"));
    assert!(said.contains("array: 8 cells"), "{said}");
    let options = "--format C=i:dense,k:dense";
    let said = check_sparse("C(i,k) = X(i,j) * Z(j,k)", matrices, ("C.tns", options));
    assert!(!said.contains("cells"), "{said}");
    // Results of steps on the way have formats of their own.
    let chain: &[&[usize]] = &[&[7, 9], &[9, 8], &[8, 6]];
    let options = "--format A=i:dense,l:dense";
    check_sparse("A(i,l) = X(i,j) * Y(j,k) * Z(k,l)", chain, ("A.npy", options));
    let deep: &[&[usize]] = &[&[4, 5, 6], &[5, 6]];
    let options = "--format X=i,j,k --format Y=j:dense,k:bitmap";
    let said = check_sparse("S(i) = X(i,j,k) * Y(j,k)", deep, ("S.npy", options));
    assert!(said.contains("X 1-2-3, Y 1-2"), "{said}");
    check("y(i) = X(i,j) * v(j)", &[&[7, 9], &[9]], "--format X=i,j");
}

#[test]
fn results_have_the_forms_that_are_asked_for() {
    // A list of one sparse operand and a dense one; from a .tns alone it is an array.
    let dir = tempfile::tempdir().unwrap();
    let (x, b) = (sparse(dir.path(), "X.tns", &[7, 9]), dense(dir.path(), "B.npy", &[9, 4]));
    let want = oracle::evaluate(&"Y(i,r)=X(i,j)*B(j,r)".parse().unwrap(), &[x, b]);
    let words = "Y(i,r)=X(i,j)*B(j,r) --tensor X=X.tns --tensor B=B.npy --out Y.tns --overwrite";
    for (format, is_list) in [("--format Y=i,r", true), ("--format Y=i:dense,r:dense", false)] {
        let (_, said) = einsum(dir.path(), &format!("{words} {format}"));
        assert_eq!(said.contains("elements, "), is_list, "{said}");
        close(&listed(&dir.path().join("Y.tns"), want.shape()), &want, 1e-12);
    }
    // Every result of a program has its own.
    fs::write(dir.path().join("p.txt"), "T(i,k) = X(i,j) * X(k,j)\nZ(i,r) = T(i,k) * E(k,r)\n")
        .unwrap();
    dense(dir.path(), "E.npy", &[7, 4]);
    let words = "--program p.txt --tensor X=X.tns --tensor E=E.npy --out Z.npy --overwrite";
    einsum(dir.path(), words);
    let want: ArrayD<f64> = read_npy(dir.path().join("Z.npy")).unwrap();
    for format in ["--format T=i:dense,k:dense", "--format T=i,k --format Z=i,r"] {
        einsum(dir.path(), &format!("{words} {format}"));
        close(&read_npy(dir.path().join("Z.npy")).unwrap(), &want, 1e-12);
    }
}

/// Rows grow beyond the first room of a hash table, and shrink again.
#[test]
fn workspaces_of_all_kinds_hold_long_rows() {
    let dir = tempfile::tempdir().unwrap();
    let x = sparse(dir.path(), "X.tns", &[20, 30]);
    let z = sparse(dir.path(), "Z.tns", &[30, 400]);
    let want = oracle::evaluate(&"C(i,k)=X(i,j)*Z(j,k)".parse().unwrap(), &[x, z]);
    let words = "C(i,k)=X(i,j)*Z(j,k) --tensor X=X.tns --tensor Z=Z.tns";
    let nest = "path X*Z\nnest i{ j{ k{ T1 } } }\nlayout X: i j\nlayout Z: j:dense k\n";
    for kind in ["dense", "hashed", "list"] {
        let text = format!("{nest}workspace {kind}\nparallel i position assemble\n");
        fs::write(dir.path().join("s.txt"), text).unwrap();
        for options in ["--threads 1", "--threads 2", "--no-codegen"] {
            let words = format!("{words} --schedule s.txt --out C.tns --overwrite {options}");
            einsum(dir.path(), &words);
            close(&listed(&dir.path().join("C.tns"), want.shape()), &want, 1e-12);
        }
    }
}

#[test]
fn a_schedule_for_several_sparse_operands_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let x = sparse(dir.path(), "X.tns", &[7, 9]);
    let z = sparse(dir.path(), "Z.tns", &[9, 8]);
    let words = "C(i,k)=X(i,j)*Z(j,k) --tensor X=X.tns --tensor Z=Z.tns";
    let show = |options: &str| {
        let mut command = decompose(dir.path());
        command.arg("schedule").args(words.split(' ')).args(options.split_whitespace());
        String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
    };
    let text = show("--emit nest");
    assert!(text.contains("layout   X: ") && text.contains("layout   Z: "), "{text}");
    let joined = show("--emit ir");
    assert!(
        joined.lines().any(|line| line.contains(" level 1 of ") && line.contains(" and ")),
        "{joined}"
    );
    assert!(show("").contains("nest on trees "));
    fs::write(dir.path().join("s.txt"), &text).unwrap();
    let (_, said) = einsum(dir.path(), &format!("{words} --schedule s.txt --out C.npy"));
    assert!(said.contains("given in s.txt"), "{said}");
    let expr = "C(i,k)=X(i,j)*Z(j,k)".parse().unwrap();
    let met = oracle::evaluate(&expr, &[x.mapv(f64::abs), z.mapv(f64::abs)]);
    let met = met.iter().filter(|&&value| value > 0.0).count();
    let text_of_all = show("--scheduler scorch");
    let said_of_result = text_of_all.lines().find(|line| line.starts_with("result "));
    let said_of_result = said_of_result.expect("a line on the result");
    assert!(said_of_result.contains("elements estimated"), "{said_of_result}");
    assert!(said_of_result.contains(&format!(", {met} counted")), "{said_of_result}, {met}");
    let told: serde_json::Value = serde_json::from_str(&show("--json")).unwrap();
    assert_eq!(told["result"]["counted"], met);
    assert!(told["result"]["estimated"].as_u64().unwrap() > 0, "{told}");
    let levels = told["result"]["levels"].as_array().unwrap();
    let named: Vec<&str> = levels.iter().filter_map(|level| level["index"].as_str()).collect();
    assert_eq!(named, ["i", "k"]);
    let want = oracle::evaluate(&expr, &[x, z]);
    close(&read_npy(dir.path().join("C.npy")).unwrap(), &want, 1e-12);
    // What `schedule` prints, `einsum` takes, whatever the file of the result holds.
    einsum(dir.path(), &format!("{words} --schedule s.txt --out C.tns"));
    close(&listed(&dir.path().join("C.tns"), want.shape()), &want, 1e-12);
    let text = show("--emit nest --format C=i,k");
    for workspace in ["dense", "hashed", "list"] {
        assert!(text.contains("workspace dense"), "{text}");
        let text = text.replace("workspace dense", &format!("workspace {workspace}"));
        fs::write(dir.path().join("s.txt"), &text).unwrap();
        einsum(dir.path(), &format!("{words} --schedule s.txt --out C.mtx --overwrite"));
        close(&listed(&dir.path().join("C.mtx"), want.shape()), &want, 1e-12);
    }
    let measured = show("--measure --top 3 --budget 0.2");
    assert!(measured.contains("measured"), "{measured}");
}

#[test]
fn results_over_indices_of_several_sparse_operands_are_assembled() {
    let outer: &[&[usize]] = &[&[7], &[9]];
    check_sparse("Y(i,k) = X(i) * Z(k)", outer, ("Y.tns", ""));
    check_sparse("Y(i,k) = X(i) * Z(k)", outer, ("Y.npy", "--no-codegen"));
    let joined: &[&[usize]] = &[&[4, 5], &[5, 6]];
    check_sparse("Y(i,j,k) = X(i,j) * Z(j,k)", joined, ("Y.tns", ""));
    check_sparse("Y(k,i,j) = X(i,j) * Z(j,k)", joined, ("Y.npy", ""));
    // Extents of a million: an array would take terabytes.
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("h.tns"), "1 1 2\n999999 1000000 3\n").unwrap();
    let words = "Y(i,j,k)=X(i,j)*X(k,j) --tensor X=h.tns --max-memory 100M";
    einsum(dir.path(), &format!("{words} --out Y.tns"));
    let text = fs::read_to_string(dir.path().join("Y.tns")).unwrap();
    assert!(text.ends_with("1 1 1 4\n999999 1000000 999999 9\n"), "{text}");
    let mut array = decompose(dir.path());
    array.arg("einsum").args(words.split(' ')).args(["--out", "Y.npy"]);
    let refused = array.assert().code(2).get_output().clone();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("write a list of non-zeros"), "{said}");
}

#[test]
fn an_assembled_result_keeps_the_limit_of_memory() {
    let dir = tempfile::tempdir().unwrap();
    // One column that is full: its square is dense.
    let lines = (1..=4000).map(|row| format!("{row} 7 1\n"));
    fs::write(dir.path().join("X.tns"), lines.collect::<String>()).unwrap();
    fs::write(dir.path().join("Z.tns"), "1 1 1\n4000 4000 1\n").unwrap();
    let refuse = |words: &str, said: &str| {
        let mut command = decompose(dir.path());
        command.arg("einsum").args(words.split(' ')).args(["--tensor", "X=X.tns"]);
        command.args(["--out", "Y.tns", "--max-memory", "100M"]);
        let output = command.assert().code(2).get_output().clone();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(said) && !dir.path().join("Y.tns").exists(), "{text}");
    };
    // Sixteen million products of two operands are counted before the run, those of three met in it.
    refuse("Y(i,k)=X(i,j)*X(k,j)", "this run needs");
    refuse(
        "Y(i,l)=X(i,j)*X(k,j)*X(l,j)*Z(k,m) --tensor Z=Z.tns",
        "there is no memory for the result of",
    );
}

#[test]
fn a_result_of_zeros_is_an_empty_list() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("X.tns"), "1 1 2\n3 4 1\n").unwrap();
    fs::write(dir.path().join("Z.tns"), "1 2 2\n3 3 1\n").unwrap();
    let words = "Y(i,j)=X(i,j)*Z(i,j) --tensor X=X.tns --tensor Z=Z.tns";
    einsum(dir.path(), &format!("{words} --out Y.tns"));
    let text = fs::read_to_string(dir.path().join("Y.tns")).unwrap();
    assert_eq!(text, "# extents 3 4, indices from 1\n");
    einsum(dir.path(), &format!("{words} --out Y.mtx"));
    let text = fs::read_to_string(dir.path().join("Y.mtx")).unwrap();
    assert!(text.ends_with("\n3 4 0\n"), "{text}");
}

#[test]
fn a_single_number_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let x = sparse(dir.path(), "X.tns", &[4, 5]);
    let (u, v) = (dense(dir.path(), "u.npy", &[4]), dense(dir.path(), "v.npy", &[5]));
    let expr = "s()=X(i,j)*u(i)*v(j)";
    let want = oracle::evaluate(&expr.parse().unwrap(), &[x, u, v]);
    let files = "--tensor X=X.tns --tensor u=u.npy --tensor v=v.npy";
    let (text, _) = einsum(dir.path(), &format!("{expr} {files}"));
    let printed: f64 = text.trim().strip_prefix("s() = ").unwrap().parse().unwrap();
    assert!((printed - want.first().unwrap()).abs() < 1e-12);
    einsum(dir.path(), &format!("{expr} {files} --out s.npy"));
    let read: ArrayD<f64> = read_npy(dir.path().join("s.npy")).unwrap();
    assert_eq!((read.ndim(), *read.first().unwrap()), (0, printed));
}

#[test]
fn other_files_and_precisions() {
    let dir = tempfile::tempdir().unwrap();
    let x = sparse(dir.path(), "X.tns", &[4, 5]);
    let b = dense(dir.path(), "B.npy", &[5, 3]);
    let expr = "Y(i,r)=X(i,j)*B(j,r)";
    let want = oracle::evaluate(&expr.parse().unwrap(), &[x.clone(), b.clone()]);
    einsum(dir.path(), &format!("{expr} --tensor X=X.tns --tensor B=B.npy --out Y.mtx"));
    close(&listed(&dir.path().join("Y.mtx"), &[4, 3]), &want, 1e-12);
    let single = "--tensor X=X.tns --tensor B=B.npy --precision f32 --out Y32.npy";
    einsum(dir.path(), &format!("{expr} {single}"));
    let have: ArrayD<f32> = read_npy(dir.path().join("Y32.npy")).unwrap();
    close(&have.mapv(f64::from), &want, 1e-4);
    // A small list may be taken as dense, and one array may stand twice.
    sparse(dir.path(), "Z.tns", &[5, 3]);
    let z = listed(&dir.path().join("Z.tns"), &[5, 3]);
    let want = oracle::evaluate(&expr.parse().unwrap(), &[x.clone(), z]);
    einsum(dir.path(), &format!("{expr} --tensor X=X.tns --tensor B=Z.tns --dense B --out Z.npy"));
    close(&read_npy(dir.path().join("Z.npy")).unwrap(), &want, 1e-12);
    let square = dense(dir.path(), "Q.npy", &[5, 5]);
    let twice = "Y(i,k)=X(i,j)*Q(j,l)*Q(l,k)";
    let want = oracle::evaluate(&twice.parse().unwrap(), &[x, square.clone(), square]);
    einsum(dir.path(), &format!("{twice} --tensor X=X.tns --tensor Q=Q.npy --out Q2.npy"));
    close(&read_npy(dir.path().join("Q2.npy")).unwrap(), &want, 1e-12);
    // A factor of a model, by its name in the archive.
    let model = ["cp", "X.tns", "-r", "3", "-q", "-o", "run"];
    decompose(dir.path()).args(model).assert().success();
    let factor = "--tensor X=X.tns --tensor B=run/model.npz:factor_2 --out F.npy";
    einsum(dir.path(), &format!("{expr} {factor}"));
}

#[test]
fn a_given_schedule_is_run() {
    let dir = tempfile::tempdir().unwrap();
    let x = sparse(dir.path(), "X.tns", &[4, 5, 6]);
    let (b, c) = (dense(dir.path(), "B.npy", &[5, 3]), dense(dir.path(), "C.npy", &[6, 3]));
    let expr = "A(i,r)=X(i,j,k)*B(j,r)*C(k,r)";
    let words = format!("{expr} --tensor X=X.tns");
    let shown = decompose(dir.path())
        .arg("schedule")
        .args(words.split(' '))
        .args(["--rank", "3", "--tree", "2-3-1", "--emit", "nest"])
        .assert()
        .success();
    fs::write(dir.path().join("s.txt"), &shown.get_output().stdout).unwrap();
    let dense = "--tensor B=B.npy --tensor C=C.npy --schedule s.txt --out A.npy";
    let (_, said) = einsum(dir.path(), &format!("{words} {dense}"));
    assert!(said.contains("on tree 2-3-1") && said.contains("given in s.txt"), "{said}");
    let want = oracle::evaluate(&expr.parse().unwrap(), &[x, b, c]);
    close(&read_npy(dir.path().join("A.npy")).unwrap(), &want, 1e-12);
}

#[test]
fn a_sparse_result_lists_no_zeros_and_quiet_says_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("X.tns"), "1 1 2\n1 2 3\n2 1 4\n2 2 5\n").unwrap();
    let left = ArrayD::from_shape_vec(IxDyn(&[2, 1]), vec![0.0, 1.0]).unwrap();
    write_npy(dir.path().join("A.npy"), &left).unwrap();
    write_npy(dir.path().join("B.npy"), &ArrayD::from_elem(IxDyn(&[2, 1]), 10.0)).unwrap();
    let words = "S(i,j)=X(i,j)*A(i,r)*B(j,r) --tensor X=X.tns --tensor A=A.npy --tensor B=B.npy";
    let (text, said) = einsum(dir.path(), &format!("{words} --out S.tns -q"));
    assert_eq!((text.as_str(), without_family(&said).as_str()), ("", ""));
    let lines = fs::read_to_string(dir.path().join("S.tns")).unwrap();
    let listed: Vec<&str> = lines.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(listed.contains(&"2 1 40") && listed.contains(&"2 2 50"), "{lines}");
    assert!(!listed.iter().any(|line| line.ends_with(" 0")), "{lines}");
}

/// Computes `text` from a sparse X and Y and a dense B, all of 6 x 6, and a number s.
fn check_assignment(text: &str, out: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let shape: &[usize] = &[6, 6];
    let assignment: Assignment = text.parse().unwrap();
    let mut files = vec![
        ("X", "X.tns", sparse(dir.path(), "X.tns", shape)),
        ("Y", "Y.tns", sparse(dir.path(), "Y.tns", shape)),
        ("B", "B.npy", dense(dir.path(), "B.npy", shape)),
        ("s", "s.npy", dense(dir.path(), "s.npy", &[])),
    ];
    files.retain(|(name, ..)| assignment.inputs().any(|access| access.tensor == *name));
    let operands: Vec<ArrayD<f64>> = assignment
        .inputs()
        .map(|access| files.iter().find(|(name, ..)| *name == access.tensor).unwrap().2.clone())
        .collect();
    let want = oracle::assign(&assignment, &operands);
    let mut words = text.replace(' ', "");
    files.iter().for_each(|(name, file, _)| write!(words, " --tensor {name}={file}").unwrap());
    let (_, said) = einsum(dir.path(), &format!("{words} --out {out}"));
    check_file(&dir.path().join(out), &want);
    said
}

#[test]
fn sums_diagonals_functions_and_named_indices() {
    check_assignment("Z(i,k) = X(i,j) * B(j,k) + 2 * Y(i,k)", "Z.npy");
    check_assignment("Z(i,k) = X(i,k) - 0.5 * Y(k,i)", "Z.tns");
    let said = check_assignment("Z(i,k) = X(i,j) * Y(j,k) - 0.5 * X(i,k)", "Z.mtx");
    assert!(said.contains("sum      Z(i,k) = X(i,j) * Y(j,k)\n"), "{said}");
    assert!(said.contains("         - 0.5 * X(i,k)\n"), "{said}");
    assert!(said.contains("one kernel, "), "{said}");
    check_assignment("Z(i) = X(i,i) + B(i,i)", "Z.npy");
    check_assignment("Z(i,j) = relu(s * X(i,j) + 3 * Y(i,j))", "Z.dtb");
    check_assignment("Z(i,j) = softmax(B(i,k) * B(k,j))", "Z.npy");
    let said = check_assignment("Z(row,k) = X(row,col) * B(col,k)", "Z.npy");
    assert!(said.contains("with a = row, b = col"), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let x = sparse(dir.path(), "X.tns", &[5, 5]);
    dense(dir.path(), "B.npy", &[5, 3]);
    let (_, said) = einsum(dir.path(), "Z(i,j)=log(-B(i,j)*B(i,j)) --tensor B=B.npy --out Z.npy");
    assert!(said.contains("15 elements of Z(i,j) infinite or not a number"), "{said}");
    let (text, _) = einsum(dir.path(), "t=X(i,i) --tensor X=X.tns");
    let trace: f64 = text.trim().strip_prefix("t() = ").unwrap().parse().unwrap();
    assert!((trace - (0..5).map(|i| x[[i, i]]).sum::<f64>()).abs() < 1e-12);
}

#[test]
fn a_program_is_computed_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let a = sparse(dir.path(), "A.tns", &[40, 40]);
    let (x, w) = (dense(dir.path(), "X.npy", &[40, 30]), dense(dir.path(), "W.npy", &[30, 2]));
    fs::write(
        dir.path().join("layer.txt"),
        "# a layer of a graph network\nS(i,j) = 0.5 * A(i,j) + 0.5 * A(j,i)\n\n\
         H(i,f) = relu(S(i,j) * X(j,k) * W(k,f))  # two steps\nP(i,f) = softmax(H(i,f))\n",
    )
    .unwrap();
    let files = "--tensor A=A.tns --tensor X=X.npy --tensor W=W.npy";
    let outs = "--out P.npy --out S=S.tns --out H=H.npy";
    let (_, said) = einsum(dir.path(), &format!("--program layer.txt {files} {outs}"));
    assert!(said.contains("step     P1(j,f) = X(j,k) * W(k,f)"), "{said}");
    let (_, said) = einsum(
        dir.path(),
        &format!("--program layer.txt {files} --out Q.npy --one-kernel --no-codegen"),
    );
    assert!(!said.contains("P1"), "{said}");
    let s = (&a + &a.t()) * 0.5;
    let dot = |a: &ArrayD<f64>, b: &ArrayD<f64>| {
        oracle::evaluate(&"ij,jk->ik".parse().unwrap(), &[a.clone(), b.clone()])
    };
    let h = dot(&s, &dot(&x, &w)).mapv(|value| value.max(0.0));
    close(&listed(&dir.path().join("S.tns"), &[40, 40]), &s, 1e-12);
    close(&read_npy(dir.path().join("H.npy")).unwrap(), &h, 1e-12);
    let p: ArrayD<f64> = read_npy(dir.path().join("P.npy")).unwrap();
    close(&read_npy(dir.path().join("Q.npy")).unwrap(), &p, 1e-12);
    for (row, of) in p.rows().into_iter().zip(h.rows()) {
        let sum: f64 = of.iter().map(|value| value.exp()).sum();
        for (have, value) in row.iter().zip(of) {
            assert!((have - value.exp() / sum).abs() < 1e-12);
        }
    }
}

#[test]
fn a_program_leaves_all_files_as_they_were_if_one_result_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("X.tns"), "1 1 2\n3 4 1\n").unwrap();
    fs::write(dir.path().join("E.tns"), "1 2 2\n3 3 1\n").unwrap();
    fs::write(dir.path().join("p.txt"), "Y(i,j)=2*X(i,j)\nZ(i,j)=X(i,j)*E(i,j)\n").unwrap();
    fs::write(dir.path().join("Y.tns"), "old").unwrap();
    let before = names(dir.path());
    let run = |outs: &str, code: i32| {
        let words = format!("--program p.txt --tensor X=X.tns --tensor E=E.tns --overwrite {outs}");
        let mut command = decompose(dir.path());
        command.arg("einsum").args(words.split_whitespace());
        let output = command.assert().code(code).get_output().clone();
        String::from_utf8(output.stderr).unwrap()
    };
    // That all elements are zero shows in the end.
    let said = run("--out Y=Y.tns --out Z=Z.dtb", 2);
    assert!(said.contains("zero everywhere") && !said.contains("\nwrite "), "{said}");
    assert_eq!(fs::read_to_string(dir.path().join("Y.tns")).unwrap(), "old");
    assert_eq!(names(dir.path()), before);
    // What shows before is told before anything is read.
    for (outs, expected) in [
        ("--out Y=Y.tns --out Z=/proc/self/Z.tns", "cannot write /proc/self/Z.tns"),
        ("--out Y=Y.tns --out Z=Z.mtx --out-base 0", "indices count from 1"),
        ("--out Y=Y.tns --out Z=none/Z.tns", "there is no folder none"),
    ] {
        let said = run(outs, 2);
        assert!(said.contains(expected) && !said.contains("read "), "{outs}: {said}");
        assert_eq!(names(dir.path()), before);
    }
    let said = run("--out Y=Y.tns --out Z=Z.tns", 0);
    assert_eq!(said.matches("\nwrite ").count(), 2, "{said}");
    assert!(dir.path().join("Z.tns").exists());
    // The name of a folder tells nothing of the file.
    fs::create_dir(dir.path().join("a.mtx")).unwrap();
    let cube = "C(i,j,k)=X(i,j)*E(j,k) --tensor X=X.tns --tensor E=E.tns --extents j=4";
    fs::write(dir.path().join("E.tns"), "1 2 2\n4 3 1\n").unwrap();
    einsum(dir.path(), &format!("{cube} --out a.mtx/C.ttx"));
}

#[test]
fn products_of_many_factors_are_those_of_the_definition() {
    let dir = tempfile::tempdir().unwrap();
    let x = sparse(dir.path(), "X.tns", &[4, 5, 3]);
    let mut operands = vec![x];
    let mut expr = "Y(i,r)=X(i,j,k)".to_owned();
    let mut files = String::from("--tensor X=X.tns");
    for factor in 0..64 {
        let (index, extent) = [("i", 4), ("j", 5), ("k", 3)][factor % 3];
        let file = format!("F{factor}.npy");
        let shape: &[usize] = if factor % 2 == 0 { &[extent, 2] } else { &[extent] };
        let own = dense(dir.path(), &file, shape).mapv(|value| 1.0 + value / 8.0);
        write_npy(dir.path().join(&file), &own).unwrap();
        operands.push(own);
        let rank = if factor % 2 == 0 { ",r" } else { "" };
        write!(expr, "*F{factor}({index}{rank})").unwrap();
        write!(files, " --tensor F{factor}={file}").unwrap();
    }
    let want = oracle::evaluate(&expr.parse().unwrap(), &operands);
    einsum(dir.path(), &format!("{expr} {files} --out Y.npy"));
    let have: ArrayD<f64> = read_npy(dir.path().join("Y.npy")).unwrap();
    for (have, want) in have.iter().zip(&want) {
        assert!((have - want).abs() <= 1e-12 * want.abs().max(1.0), "{have} for {want}");
    }
}
