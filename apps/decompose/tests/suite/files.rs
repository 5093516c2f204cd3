//! Files that are read and written: other programs' view of them, bases, tables, labels, false claims.

use std::fs;
use std::path::Path;

use crate::common::{decompose, json};

/// Runs the program in `folder`; it must succeed.  Returns what it says on both outputs.
fn run(folder: &Path, words: &str) -> String {
    let mut command = decompose(folder);
    let output = command.args(words.split_whitespace()).assert().success().get_output().clone();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

/// Runs the program in `folder`; it must refuse.  Returns the message.
fn refused(folder: &Path, words: &str) -> String {
    let mut command = decompose(folder);
    let output = command.args(words.split_whitespace()).assert().code(2).get_output().clone();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!message.contains("panicked"), "{message}");
    message
}

/// Reads a list as SPLATT does: lines that begin with `#` are skipped, all others are entries.
fn entries(path: &Path) -> Vec<Vec<f64>> {
    let text = fs::read_to_string(path).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| row.split(' ').map(|field| field.parse().unwrap()).collect()).collect()
}

#[test]
fn other_programs_read_what_is_written() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), "generate uniform --dims 40,30,20 --nnz 50 --seed 3 -o x.tns");
    let rows = entries(&dir.path().join("x.tns"));
    assert!(rows.len() == 50 && rows.iter().all(|row| row.len() == 4));
    // The extents come back, though the last slices are empty.
    let stats: serde_json::Value =
        serde_json::from_str(run(dir.path(), "stats x.tns --json").lines().next().unwrap())
            .unwrap();
    assert_eq!(stats["stats"]["extents"], serde_json::json!([40, 30, 20]));
    run(dir.path(), "convert x.tns y.tns --header extended-frostt");
    let header = fs::read_to_string(dir.path().join("y.tns")).unwrap();
    assert!(header.starts_with("# extended FROSTT format\n3 50\n40 30 20\n"), "{header}");
    run(dir.path(), "convert y.tns z.tns");
    let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("x.tns") == bytes("z.tns"), "extents or entries differ");
}

#[test]
fn indices_keep_the_base_of_their_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.tns"), "0 1 2 1\n2 3 1 4\n1 0 0 2\n").unwrap();
    let first = |name: &str| entries(&dir.path().join(name))[0][..3].to_vec();
    run(dir.path(), "convert x.tns kept.tns");
    assert_eq!(first("kept.tns"), [0.0, 1.0, 2.0]);
    run(dir.path(), "convert x.tns one.tns --out-base 1");
    assert_eq!(first("one.tns"), [1.0, 2.0, 3.0]);
    run(dir.path(), "convert one.tns zero.tns --out-base 0");
    let bytes = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(bytes("kept.tns") == bytes("zero.tns"));
    run(dir.path(), "convert x.tns x.ttx");
    let market = fs::read_to_string(dir.path().join("x.ttx")).unwrap();
    assert!(market.contains("\n1 2 3 1\n"), "{market}");
    let message = refused(dir.path(), "convert x.tns y.ttx --out-base 0");
    assert!(message.contains("indices count from 1 behind a Matrix Market"), "{message}");

    run(dir.path(), "cp -r 1 x.tns -q --no-codegen -o model");
    run(dir.path(), "predict model x.tns -o p.tns --no-codegen");
    assert_eq!(entries(&dir.path().join("p.tns"))[1][..3], [2.0, 3.0, 1.0]);
    run(dir.path(), "predict model x.tns -o p.csv --no-codegen --out-base 1");
    let table = fs::read_to_string(dir.path().join("p.csv")).unwrap();
    assert!(table.starts_with("mode_1,mode_2,mode_3,value\n1,2,3,"), "{table}");
    let mut einsum = decompose(dir.path());
    einsum.args([
        "einsum",
        "S(i,j,k) = X(i,j,k) * U(i)",
        "--tensor",
        "X=x.tns",
        "--tensor",
        "U=u.npy",
    ]);
    ndarray_npy::write_npy(dir.path().join("u.npy"), &ndarray::arr1(&[1.0, 1.0, 2.0])).unwrap();
    einsum.args(["-o", "s.tns", "--no-codegen"]).assert().success();
    assert_eq!(entries(&dir.path().join("s.tns"))[2], [2.0, 3.0, 1.0, 8.0]);
}

#[test]
fn duplicates_are_merged_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.tns"), "2 2 1\n1 1 5\n2 2 4\n2 2 -2\n").unwrap();
    for (policy, want) in
        [("sum", 3.0), ("mean", 1.0), ("first", 1.0), ("last", -2.0), ("min", -2.0), ("max", 4.0)]
    {
        run(dir.path(), &format!("convert x.tns y.tns --overwrite --duplicates {policy}"));
        let rows = entries(&dir.path().join("y.tns"));
        assert_eq!(rows, [[1.0, 1.0, 5.0], [2.0, 2.0, want]], "{policy}");
    }
    assert!(
        refused(dir.path(), "stats x.tns --duplicates median").contains("use sum, mean, first")
    );
}

#[test]
fn a_table_becomes_a_tensor_with_labels_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let log = "user,item,hour,rating\n\
               bob,tea,10,4\nann,milk,9,5\nbob,milk,9,1\nbob,tea,10,2\ncat,\"a, b\",11,3\n";
    fs::write(dir.path().join("log.csv"), log).unwrap();
    let modes = "--modes user,item,hour";
    run(dir.path(), &format!("convert log.csv x.dtb {modes} --value rating --duplicates mean"));
    let map = |name: &str| fs::read_to_string(dir.path().join("x").join(name)).unwrap();
    assert_eq!(map("mode-1-user.map"), "ann\nbob\ncat\n");
    assert_eq!(map("mode-2-item.map"), "a, b\nmilk\ntea\n");
    assert_eq!(map("mode-3-hour.map"), "9\n10\n11\n");
    run(dir.path(), "convert x.dtb back.csv");
    let back = fs::read_to_string(dir.path().join("back.csv")).unwrap();
    let want = "user,item,hour,value\n\
                ann,milk,9,5\nbob,milk,9,1\nbob,tea,10,3\ncat,\"a, b\",11,3\n";
    assert_eq!(back, want);
    run(dir.path(), &format!("convert log.csv counts.tns {modes}"));
    let counts = entries(&dir.path().join("counts.tns"));
    assert_eq!(counts.iter().map(|row| row[3]).collect::<Vec<_>>(), [1.0, 1.0, 2.0, 1.0]);

    let told = run(dir.path(), "cp -r 1 x.dtb --no-codegen -o model");
    assert!(told.contains("labels   mode 1: 3 of user, mode 2: 3 of item"), "{told}");
    let labels = &json(&dir.path().join("model/run.json"))["input"]["labels"];
    assert_eq!((&labels[2]["name"], &labels[2]["labels"]), (&"hour".into(), &3.into()));
    assert!(labels[2]["file"].as_str().unwrap().ends_with("x/mode-3-hour.map"), "{labels}");
    run(dir.path(), "predict model x.dtb -o p.tsv --no-codegen");
    let table = fs::read_to_string(dir.path().join("p.tsv")).unwrap();
    assert!(table.starts_with("user\titem\thour\tvalue\nann\tmilk\t9\t"), "{table}");

    assert!(refused(dir.path(), "convert log.csv y.dtb --modes usr").contains("user, item, hour"));
    assert!(refused(dir.path(), "convert log.csv x.tns").contains("exists already"));
    assert!(refused(dir.path(), "cp -r 1 log.csv").contains("`decompose convert` reads tables"));
}

#[test]
fn labels_do_not_reach_the_terminal_raw() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.tns"), "1 1 1\n2 1 3\n").unwrap();
    fs::create_dir(dir.path().join("x")).unwrap();
    fs::write(dir.path().join("x/mode-1-a\x1b[31mb.map"), "p\nq\n").unwrap();
    fs::write(dir.path().join("x.2.map"), "p\nq\n").unwrap();
    let told = run(dir.path(), "cp -r 1 x.tns --no-codegen --nowrite");
    assert!(told.contains("a\\u{1b}[31mb") && !told.contains('\x1b'), "{told}");
    assert!(told.contains("x.2.map has more than 1 line for 1 index of mode 2"), "{told}");
    let message = refused(dir.path(), "stats no\x1bfile.tns");
    assert!(message.contains("no\\u{1b}file.tns"), "{message}");
    let told = run(dir.path(), "cp -r 1 x.tns --no-codegen --nowrite --labels .");
    assert!(told.contains("warning: --labels . gives no labels"), "{told}");
    let told = run(dir.path(), "cp -r 1 x.tns --no-codegen --nowrite --quiet --labels .");
    assert!(told.contains("--labels . gives no labels"), "{told}");
}

#[test]
fn claims_of_files_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("x.tns"), "1 1 1\n2 1 3\n").unwrap();
    let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (17179869184, 64), }\n";
    let length = (text.len() as u16).to_le_bytes();
    let lying = [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), &[0; 16]].concat();
    fs::write(dir.path().join("lying.npy"), lying).unwrap();
    let mut einsum = decompose(dir.path());
    einsum.args(["einsum", "Y(i,r) = X(i,j) * B(j,r)", "--tensor", "X=x.tns", "-o", "y.npy"]);
    let failed = einsum.args(["--tensor", "B=lying.npy"]).assert().code(2).get_output().clone();
    let message = String::from_utf8(failed.stderr).unwrap();
    assert!(message.contains("lying.npy would take 8.0 TiB of memory"), "{message}");
    assert!(refused(dir.path(), "stats lying.npy").contains("but 16 follow"));
    let many: String = "1 ".repeat(200_000) + "\n";
    fs::write(dir.path().join("many.tns"), many).unwrap();
    assert!(refused(dir.path(), "stats many.tns").contains("order 199999"));
    let rows: String = (1..20_000).map(|row| format!("{row} 1 1 1 1 0.5\n")).collect();
    fs::write(dir.path().join("rows.tns"), rows).unwrap();
    run(dir.path(), "convert rows.tns rows.tns.gz");
    let message = refused(dir.path(), "cp -r 1 rows.tns.gz --max-memory 100K");
    assert!(message.contains("of memory but 100.0 KiB may be used"), "{message}");
    let mut model =
        ndarray_npy::NpzWriter::new(fs::File::create(dir.path().join("m.npz")).unwrap());
    model.add_array("factor_1", &ndarray::Array2::<f64>::zeros((0, 2))).unwrap();
    model.add_array("factor_2", &ndarray::Array2::<f64>::ones((3, 2))).unwrap();
    model.finish().unwrap();
    assert!(refused(dir.path(), "eval m.npz x.tns").contains("`factor_1` is of 0 x 2"));
}

#[test]
fn an_unknown_value_is_left_out_where_it_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let array = ndarray::arr2(&[[0.0, f64::NAN], [2.5, 0.0]]);
    ndarray_npy::write_npy(dir.path().join("x.npy"), &array).unwrap();
    assert!(refused(dir.path(), "convert x.npy y.tns").contains("value at (1, 2) is NaN"));
    run(dir.path(), "convert x.npy y.tns --missing nan");
    let want = [[1.0, 1.0, 0.0], [2.0, 1.0, 2.5], [2.0, 2.0, 0.0]];
    assert_eq!(entries(&dir.path().join("y.tns")), want);
}

#[test]
fn indices_of_one_label_stay_apart_in_a_table() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("x")).unwrap();
    fs::write(dir.path().join("x/mode-2-city.map"), "Rome\nOslo\nRome\n").unwrap();
    fs::write(dir.path().join("x.tns"), "1 1 5\n2 2 6\n2 3 7\n").unwrap();
    let said = run(dir.path(), "convert x.tns x.csv");
    assert!(said.contains("indices 1 and 3 of mode 2 have the same label `Rome`"), "{said}");
    run(dir.path(), "convert x.csv y.tns --value value");
    assert_eq!(entries(&dir.path().join("y.tns")).len(), 3);
    assert_eq!(fs::read_to_string(dir.path().join("y/mode-2-city.map")).unwrap(), "1\n2\n3\n");
}
