//! What `decompose einsum` refuses: expressions, programs and operands that do not fit.

use std::fs;
use std::path::Path;

use ndarray::{ArrayD, IxDyn};
use ndarray_npy::write_npy;

use crate::common::{decompose, names};
use crate::einsum::{dense, einsum, sparse};

/// Files for the refusals: X of 4 x 5, matching and other arrays.
fn operands(folder: &Path) {
    sparse(folder, "X.tns", &[4, 5]);
    sparse(folder, "Z.tns", &[5, 3]);
    dense(folder, "B.npy", &[5, 3]);
    dense(folder, "short.npy", &[3, 3]);
    dense(folder, "wide.npy", &[3000]);
    dense(folder, "cube.npy", &[5, 3, 2]);
    fs::write(
        folder.join("X.mtx"),
        "%%MatrixMarket matrix coordinate real general\n4 5 1\n1 1 2\n",
    )
    .unwrap();
    fs::write(
        folder.join("nine.mtx"),
        "%%MatrixMarket matrix coordinate real general\n9 3 1\n1 1 2\n",
    )
    .unwrap();
    for (name, text) in [
        ("empty", "# nothing\n\n"),
        ("bad", "Y(i,j)=X(i,j)\nY(i)\n"),
        ("twice", "Y(i,j)=X(i,j)\nY(i,j)=X(j,i)\n"),
        ("late", "Y(i,j)=X(i,j)*B(i)\nB(i)=X(i,j)\n"),
        ("orders", "Y(i,j)=X(i,j)*B(i)\nZ(i)=X(i)*B(i)\n"),
        ("lost", "Y(i,j)=2*X(i,j)\nZ(i)=X(i,j)\n"),
    ] {
        fs::write(folder.join(name).with_extension("txt"), text).unwrap();
    }
    fs::write(folder.join("text.npy"), "1 2 3\n").unwrap();
    fs::write(folder.join("B.txt"), "1 2 3\n").unwrap();
    fs::write(folder.join("there.npy"), "old").unwrap();
    write_npy(folder.join("nan.npy"), &ArrayD::from_elem(IxDyn(&[5, 3]), f64::NAN)).unwrap();
    let long = ArrayD::from_elem(IxDyn(&[9, 3]), 1.0);
    write_npy(folder.join("long.npy"), &long).unwrap();
}

/// A tree of more modes than any tensor has.
const LONG_TREE: &str =
    "--tree 1-2-3-4-5-6-7-8-9-10-11-12-13-14-15-16-17-18-19-20-21-22-23-24-25-26 --out Y.npy";

/// Runs each command, of which the words stand in two parts; it must be refused with these texts and leave nothing.
fn refuse_all(folder: &Path, cases: &[(&str, &str, &[&str])]) {
    let before = names(folder);
    for (first, rest, expected) in cases {
        let words = format!("{first} {rest}");
        let mut command = decompose(folder);
        command.arg("einsum").args(words.split_whitespace());
        let output = command.assert().code(2).get_output().clone();
        let stderr = String::from_utf8(output.stderr).unwrap();
        for text in *expected {
            assert!(stderr.contains(text), "`{words}` should say `{text}`:\n{stderr}");
        }
        assert!(output.stdout.is_empty() && names(folder) == before, "`{words}` left output");
    }
}

#[test]
fn programs_that_make_no_sense_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    operands(dir.path());
    let x = "Y(i,r)=X(i,j)*B(j,r) --tensor X=X.tns";
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "Y(row,r)=X(row,col)*B(col,r,row) --tensor X=X.tns",
            "--tensor B=B.npy --out Y.npy",
            &["B.npy has 2 axes but B(col,r,row) has 3 indices"],
        ),
        (
            "Y(i,j)=w(i)*w(j) --tensor w=wide.npy",
            "--out Y.npy --max-memory 100M",
            &["the product Y(i,j) = w(i) * w(j)", "100.0 MiB"],
        ),
        (x, "--tensor B=B.npy --out Y.npy --out Q=Q.npy", &["does not compute `Q`", "computes Y"]),
        (x, "--tensor B=B.npy --out Y=Y.npy --out Y.npy", &["Y.npy is to hold two results"]),
        (x, "--program p.txt --out Y.npy", &["cannot be used with"]),
        ("--program absent.txt", "--out Y.npy", &["cannot read absent.txt"]),
        ("--program empty.txt", "--out Y.npy", &["empty.txt has no assignment"]),
        ("--program bad.txt", "--out Y.npy", &["bad.txt, line 2", "there is no `=`"]),
        ("--program twice.txt", "--out Y.npy", &["Y is assigned twice"]),
        ("--program late.txt", "--out Y.npy", &["B is read before it is assigned"]),
        ("--program orders.txt", "--out Y.npy", &["X has 2 indices and 1 indices"]),
        (
            "--program lost.txt --tensor X=X.tns",
            "--out Z.npy",
            &["where does Y(i,j) go?", "--out Y=FILE"],
        ),
    ];
    refuse_all(dir.path(), cases);
}

#[test]
fn formats_that_do_not_fit_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    operands(dir.path());
    let x = "Y(i,r)=X(i,j)*B(j,r) --tensor X=X.tns";
    let cases: &[(&str, &str, &[&str])] = &[
        (x, "--tensor B=Z.tns --out Y.npy --tree 1-2", &["several are sparse", "--format"]),
        (x, "--tensor B=B.npy --out Y.npy --format B=j,r", &["no sparse operand", "there are X"]),
        (x, "--tensor B=B.npy --out Y.npy --format X=i", &["list each index of X(i,j) once"]),
        (x, "--tensor B=B.npy --out Y.npy --format X=i,j:full", &["`full` is no kind", "bitmap"]),
        (x, "--tensor B=B.npy --out Y.npy --format X=i,j:hashed", &["rule 10", "to the leader"]),
        (x, "--tensor B=B.npy --out Y.npy --format X", &["write it as X=i,j:dense"]),
        (x, "--tensor B=B.npy --out Y.npy --format X=i,j:singleton", &["a root that stands alone"]),
        (
            x,
            "--tensor B=B.npy --out Y.npy --format X=i,j --format X=j,i",
            &["X has a format already"],
        ),
        (
            x,
            "--tensor B=B.npy --out Y.npy --format Y=r,i",
            &["in the order of its indices, Y(i,r)"],
        ),
        (
            x,
            "--tensor B=B.npy --out Y.npy --format Y=i",
            &["--format Y=i:", "each index of Y(i,r) once"],
        ),
        (
            x,
            "--tensor B=B.npy --out Y.npy --format Y=i:dense,r",
            &["--format Y=i:dense,r:", "an array or a list"],
        ),
        (x, "--tensor B=B.npy --out Y.npy --format Y=i:hashed,r", &["an array or a list"]),
        (
            x,
            "--tensor B=B.npy --out Y.npy --format Y=i,r --format Y=i,r",
            &["Y has a format already"],
        ),
        (
            "S(i,j)=X(i,j)*B(i,j) --tensor X=X.tns",
            "--tensor B=B.npy --out S.tns --format S=i:dense,j:dense",
            &["S(i,j) has the pattern of an operand", "leave its levels compressed"],
        ),
    ];
    refuse_all(dir.path(), cases);
}

#[test]
fn what_does_not_fit_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    operands(dir.path());
    let x = "Y(i,r)=X(i,j)*B(j,r) --tensor X=X.tns";
    let cases: &[(&str, &str, &[&str])] = &[
        (x, "--tensor B=B.npy --tensor Q=B.npy --out Y.npy", &["no operand `Q`", "are X, B"]),
        (x, "--out Y.npy", &["operand `B`", "has no file", "--tensor B=FILE"]),
        (x, "--tensor B=B.npy --tensor B=short.npy --out Y.npy", &["given twice", "short.npy"]),
        (x, "--tensor B=short.npy --out Y.npy", &["runs to 5 in X.tns but to 3 in short.npy"]),
        (x, "--tensor B=cube.npy --out Y.npy", &["cube.npy has 3 axes but B(j,r) has 2"]),
        (x, "--tensor B=absent.npy --out Y.npy", &["absent.npy", "cannot open"]),
        (x, "--tensor B=text.npy --out Y.npy", &["text.npy", "does not begin as a .npy file"]),
        (x, "--tensor B=nan.npy --out Y.npy", &["nan.npy", "not finite"]),
        (x, "--tensor B=B.npz --out Y.npy", &["archive", "B.npz:factor_1"]),
        (x, "--tensor B=B.txt --out Y.npy --dense B", &["B.txt", "does not tell the format"]),
        (x, "--tensor B=B.npy", &["where does Y(i,r) go?", "--out FILE"]),
        (x, "--tensor B=B.npy --out Y.what", &["does not tell the format"]),
        (x, "--tensor B=B.npy --out there.npy", &["there.npy", "--overwrite"]),
        (x, "--tensor B=B.npy --out Y.npy --max-memory 1M", &["this run needs", "1.0 MiB"]),
        (x, "--tensor B=B.npy --out Y.npy --extents j=4", &["runs to 4 in the options", "to 5"]),
        (x, "--tensor B=B.npy --out Y.npy --tree 1-2-3", &["each of the 2 modes"]),
        (
            "Y(i,r)=X(i,j)*B(j,r) --tensor X=X.mtx",
            "--tensor B=long.npy --out Y.npy",
            &["runs to 5 in X.mtx but to 9 in long.npy"],
        ),
        (
            "Y(i,r)=X(i,j)*B(j,r) --tensor X=B.npy",
            "--tensor B=B.npy --out Y.npy",
            &["index `j` runs to 3 in B.npy but to 5 in B.npy"],
        ),
        (
            "Y(i,k)=X(i,j)*Z(j,k) --tensor X=X.mtx",
            "--tensor Z=nine.mtx --out Y.npy",
            &["index `j` runs to 5 in X.mtx but to 9 in nine.mtx"],
        ),
        (
            "S(i,j)=X(i,j)*B(j,r) --tensor X=X.tns",
            "--tensor B=B.npy --out S.npy",
            &["S(i,j) is sparse", "write it to .tns"],
        ),
        ("s()=X(i,j) --tensor X=X.tns", "--out s.tns", &["is a single number", ".npy"]),
        (
            "y(i)=X(i,j)*v(j) --tensor X=X.tns",
            "--tensor v=v.npy --out y.mtx",
            &["y(i) is no matrix", ".ttx"],
        ),
        ("Y(i,r)=X(i,j)*B(j,q) --tensor X=X.tns", "--out Y.npy", &["index `r` of the output"]),
        ("Y(i,j)=X(i,j)+B(i,q)", "--tensor X=X.tns", &["term 2 lacks index `j`"]),
        (
            "Y(i,j)=X(i,j)+B(j,i)",
            "--tensor X=X.tns --tensor B=X.tns --tree 1-2 --out Y.npy",
            &["--tree is about one product", "has 2"],
        ),
        (
            "Y(i)=X(i,i)",
            "--tensor X=X.mtx --out Y.tns",
            &["`i` runs to 4 in X.mtx but to 5 in X.mtx"],
        ),
        ("Y(i,_)=X(i,j)*B(j,_)", "--tensor X=X.tns", &["`_` is no index"]),
        (x, LONG_TREE, &["lists 26 modes", "up to 25 are supported"]),
    ];
    refuse_all(dir.path(), cases);
    assert_eq!(fs::read(dir.path().join("there.npy")).unwrap(), b"old");
    // The last rows of a list without a header may be empty, and a file may be replaced on request.
    einsum(dir.path(), &format!("{x} --tensor B=long.npy --out there.npy --overwrite"));
}
