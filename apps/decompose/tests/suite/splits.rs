//! Indices cut into pieces, and the templates of `--scheduler partition`.

use std::fs;

use ndarray::{Array2, array};
use ndarray_npy::{read_npy, write_npy};
use serde_json::Value as Json;

use crate::common::{decompose, names};
use crate::schedule::{refuse, schedule, sun};

/// A small matrix in rows on an assumed pattern.
const SPMM: &str = "A(i,k)=X(i,j)*C(j,k) --extents i=400,j=300 --nnz 4000 --dense k=40 --tree 1-2";

#[test]
fn a_schedule_with_pieces_is_read_explained_and_computed() {
    let dir = tempfile::tempdir().unwrap();
    let lines = "split k K 2\nsplit j J 2 of X strided\npath X*C\nnest K{ i{ J{ j{ k{ T1 } } } } }\n\
                 layout i J j\nparallel i coordinate owner split 1\n";
    fs::write(dir.path().join("s.txt"), lines).unwrap();
    fs::write(dir.path().join("x.tns"), "1 1 2\n1 3 1\n2 2 3\n3 1 1\n3 2 1\n3 3 1\n").unwrap();
    let c: Array2<f64> = array![[1., 2., 3., 4., 5.], [6., 7., 8., 9., 10.], [1., 1., 1., 1., 1.]];
    write_npy(dir.path().join("c.npy"), &c).unwrap();
    let (text, _) = schedule(
        dir.path(),
        "A(i,k)=X(i,j)*C(j,k) --tensor X=x.tns --dense k=5 --schedule s.txt --emit nest",
    );
    for line in ["split    k K 2", "split    j J 2 of X strided", "split 1"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let (text, _) =
        schedule(dir.path(), "A(i,k)=X(i,j)*C(j,k) --tensor X=x.tns --dense k=5 --schedule s.txt");
    for words in ["k in 3 pieces of 2, numbered by K", "pieces of level 2 of X", "3 (ijk)"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let args = "einsum A(i,k)=X(i,j)*C(j,k) --tensor X=x.tns --tensor C=c.npy --schedule s.txt \
                --out a.npy";
    decompose(dir.path()).args(args.split_whitespace()).assert().success();
    let a: Array2<f64> = read_npy(dir.path().join("a.npy")).unwrap();
    let x: Array2<f64> = array![[2., 0., 1.], [0., 3., 0.], [1., 1., 1.]];
    assert_eq!(a, x.dot(&c));
}

/// Indices of sparse operands, of results, and parts of parts, against the product without a schedule.
#[test]
fn products_with_cut_indices_are_computed() {
    let dir = tempfile::tempdir().unwrap();
    let make = |dims: &str, file: &str| {
        let args = ["generate", "uniform", "--dims", dims, "--nnz", "90", "--out", file];
        decompose(dir.path()).args(args).assert().success();
    };
    make("23,17", "x.tns");
    make("17,19", "y.tns");
    let c = Array2::from_shape_fn((17, 13), |(j, k)| (j * 13 + k) as f64 / 7.0);
    write_npy(dir.path().join("c.npy"), &c).unwrap();
    let compute = |expr: &str, files: &str, more: &str, out: &str| {
        let mut command = decompose(dir.path());
        command.arg("einsum").arg(expr).args(files.split_whitespace());
        command.args(more.split_whitespace()).args(["--out", out]).assert().success();
    };
    let dense = "--tensor X=x.tns --tensor C=c.npy";
    compute("A(i,k)=X(i,j)*C(j,k)", dense, "", "whole.npy");
    let whole: Array2<f64> = read_npy(dir.path().join("whole.npy")).unwrap();
    for (at, lines) in [
        "split j J 7\npath X*C\nnest i{ J{ j{ k{ T1 } } } }\nlayout i J j\nparallel i position owner\n",
        "split i I 4\nsplit j J 2\npath X*C\nnest I{ J{ i{ j{ k{ T1 } } } } }\nlayout I J i j\n\
         parallel I coordinate owner\n",
        "split k K 4\nsplit K L 2\npath X*C\nnest L{ K{ i{ j{ k{ T1 } } } } }\nlayout i j\n\
         parallel i position boundary\n",
        "divide i I 3 of X\npath X*C\nnest j{ I{ i{ k{ T1 } } } }\nlayout j I i\n\
         parallel j position privatise divide 2\n",
        "split j J 3 of X\nsplit k K 8\npath X*C\nnest K{ i{ J{ j{ k{ T1 } } } } }\nlayout i J j\n\
         parallel i position boundary\n",
    ]
    .iter()
    .enumerate()
    {
        fs::write(dir.path().join("s.txt"), lines).unwrap();
        let out = format!("a{at}.npy");
        compute("A(i,k)=X(i,j)*C(j,k)", dense, "--schedule s.txt", &out);
        let a: Array2<f64> = read_npy(dir.path().join(&out)).unwrap();
        let error = (&a - &whole).mapv(f64::abs).sum();
        assert!(error < 1e-10, "{lines}: {error}");
    }
    let sparse = "--tensor X=x.tns --tensor Y=y.tns";
    compute("Z(i,k)=X(i,j)*Y(j,k)", sparse, "", "z.tns");
    let lines = "split k K 8\npath X*Y\nnest i{ j{ K{ k{ T1 } } } }\nlayout X: i j\n\
                 layout Y: j K k\nworkspace dense\nparallel i position assemble\n";
    fs::write(dir.path().join("s.txt"), lines).unwrap();
    compute("Z(i,k)=X(i,j)*Y(j,k)", sparse, "--schedule s.txt", "z1.tns");
    let read = |file: &str| fs::read_to_string(dir.path().join(file)).unwrap();
    assert_eq!(read("z.tns"), read("z1.tns"));
    // The choice of the templates stores its operand in pieces.
    for threads in ["1", "2"] {
        let more = format!("--scheduler partition --threads {threads}");
        compute("A(i,k)=X(i,j)*C(j,k)", dense, &more, &format!("p{threads}.npy"));
        let a: Array2<f64> = read_npy(dir.path().join(format!("p{threads}.npy"))).unwrap();
        assert!((&a - &whole).mapv(f64::abs).sum() < 1e-10);
    }
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = |lines: &str| fs::write(dir.path().join("s.txt"), lines).unwrap();
    let rest = "path X*C\nnest K{ i{ j{ k{ T1 } } } }\nlayout i j\nparallel i position boundary\n";
    for (line, why) in [
        ("split k K 40", "a factor from 2 to 39 cuts it"),
        ("split k i 8", "i is an index already; take another letter"),
        ("split k L 8\nsplit k K 3", "k counts inside pieces of 8, which 3 must divide"),
        ("split z K 8", "z is no index of"),
        ("split k K eight", "`eight` is no number"),
        ("split k K", "write: split|divide INDEX OUTER NUMBER"),
        ("split i I 8 of X", "is no level below the root"),
        ("split j J 8 of B", "there is no operand `B`"),
    ] {
        file(&format!("{line}\n{rest}"));
        refuse(dir.path(), &format!("{SPMM} --schedule s.txt").replace("--tree 1-2", ""), &[why]);
    }
    file(&format!("{rest}parallel i position owner\n"));
    let words = format!("{SPMM} --schedule s.txt").replace("--tree 1-2", "");
    refuse(dir.path(), &words, &["there is a line `parallel` above it"]);
    file(&format!("{rest}split k K 8\n"));
    let words = format!("{SPMM} --schedule s.txt").replace("--tree 1-2", "");
    refuse(dir.path(), &words, &["splits come first"]);
}

#[test]
fn templates_are_listed_and_picked() {
    let dir = tempfile::tempdir().unwrap();
    let words = format!("{SPMM} --scheduler partition");
    let (table, said) = schedule(dir.path(), &format!("{words} --templates"));
    assert!(table.contains("split settings   predicted    measured  template"), "{table}");
    assert!(said.contains("not generated: "), "{said}");
    let rows = table.lines().count() - 1;
    assert!(rows > 50, "{rows}");
    let (picked, _) = schedule(dir.path(), &format!("{words} --templates --take 2,4-5"));
    let rows: Vec<&str> =
        picked.lines().skip(1).filter_map(|row| row.split_whitespace().next()).collect();
    assert_eq!(rows, ["2", "4", "5"], "{picked}");
    let (nest, _) = schedule(dir.path(), &format!("{words} --take 2 --emit nest"));
    fs::write(dir.path().join("s.txt"), &nest).unwrap();
    let given = format!("{SPMM} --schedule s.txt --emit nest").replace("--tree 1-2", "");
    assert_eq!(schedule(dir.path(), &given).0, nest);
    refuse(dir.path(), &format!("{words} --take 0"), &["`0` is no template", "see --templates"]);
    refuse(dir.path(), &format!("{SPMM} --templates"), &["add --scheduler partition"]);
    let seven = "ij,jabcde->iabcde --extents i=40,j=30 --nnz 900 --dense a=4,b=4,c=4,d=4,e=4 \
                 --scheduler partition";
    refuse(dir.path(), seven, &["no partition template is generated"]);
}

#[test]
fn templates_are_measured_by_sampling() {
    let dir = tempfile::tempdir().unwrap();
    let words = format!(
        "ttv:3:1 {} --scheduler partition --take 1-4 --measure --budget 0.2 --threads 2",
        sun()
    );
    let plots = "--plot-race race.svg --plot-templates t.png";
    let (text, said) = schedule(dir.path(), &format!("{words} --json {plots}"));
    assert!(said.contains("measured in") && !said.contains("keep "), "{said}");
    let figures = ["race", "t-space", "t-times", "t-trimming"];
    let files = figures.map(|name| [format!("{name}.png"), format!("{name}.svg")]);
    assert_eq!(names(dir.path()), files.concat());
    let json: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(json["choice"]["how"], "measured");
    let templates = json["templates"].as_array().unwrap();
    let schedules = templates.iter().flat_map(|one| one["schedules"].as_array().unwrap());
    let timed = schedules.filter(|one| one["measured_seconds"].is_f64()).count();
    let measured = json["candidates"].as_array().unwrap();
    assert_eq!((templates.len(), timed), (4, measured.len()));
    assert!(measured.iter().all(|one| one["measured_seconds"].as_f64().unwrap() > 0.0));
    let (table, _) = schedule(dir.path(), &format!("{words} --templates --exhaustive"));
    let measured = |row: &str| row.split_whitespace().nth(4).is_some_and(|word| word != "-");
    assert!(table.lines().skip(1).all(measured), "{table}");
}

#[test]
fn the_fastest_of_all_templates_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let words = format!("ttv:3:1 {} --threads 2", sun());
    let partition = format!("{words} --scheduler partition --measure --budget 0.1 --emit nest");
    let (chosen, said) = schedule(dir.path(), &partition);
    assert!(said.contains("keep "), "{said}");
    let (kept, _) = schedule(dir.path(), &format!("{words} --scheduler measured --emit nest"));
    assert_eq!(kept, chosen);
}
