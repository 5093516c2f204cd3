//! Every way to be wrong is named: the file, the line, the value and the remedy.

use std::path::Path;

use decompose_formats::Coo;
use decompose_formats::FormatError;
use decompose_formats::io;
use decompose_formats::io::Base;
use decompose_formats::io::Format;
use decompose_formats::io::Overwrite;
use decompose_formats::io::Progress;
use decompose_formats::io::ReadOptions;
use decompose_formats::io::Source;
use decompose_formats::io::WriteOptions;

/// Reads `text` by window and by stream in several sizes: always the same error.
fn error_of(text: &[u8], options: &ReadOptions) -> String {
    let message = |result: Result<(Coo<f64>, _), FormatError>| {
        result.map(|(coo, _): (_, io::ReadReport)| coo).expect_err("an error").to_string()
    };
    let want = message(io::read_bytes(text, options));
    for window in [1, 4, 7, 20, 1 << 20] {
        let options = ReadOptions { window, ..options.clone() };
        assert_eq!(message(io::read_bytes(text, &options)), want, "window {window}");
        let streamed = io::read_stream(text, "memory", &options, &Progress::new());
        assert_eq!(message(streamed), want, "stream, window {window}");
    }
    want
}

fn check(text: &str, options: &ReadOptions, wanted: &[&str]) {
    let message = error_of(text.as_bytes(), options);
    for part in wanted {
        assert!(message.contains(part), "{text:?}: `{message}` lacks `{part}`");
    }
}

#[test]
fn bad_lines_are_named() {
    let cases: &[(&str, &[&str])] = &[
        ("1 1 1\n1 1\n", &["line 2", "expected 3 columns but found 2", "`1 1`"]),
        ("1 1 1\n# c\n1 1 1 1\n", &["line 3", "found 4"]),
        ("1 1 x\n", &["line 1", "value `x` is not a number"]),
        ("1 1 1\n1 1 0x10\n", &["line 2", "`0x10` is not a number"]),
        ("1 1 1d5\n", &["`1d5` is not a number"]),
        ("1 1 +-1\n", &["`+-1` is not a number"]),
        ("1 1 nan\n", &["value `nan` is not finite"]),
        ("1 1 -Inf\n", &["value `-Inf` is not finite"]),
        ("1 1 1e999\n", &["`1e999` is beyond the range of f64"]),
        ("-1 1 1\n", &["index `-1` of mode 1 is negative"]),
        ("1 -3 1\n", &["index `-3` of mode 2 is negative"]),
        ("1 1.5 1\n", &["index `1.5` of mode 2 is fractional"]),
        ("a 1 1\n", &["index `a` of mode 1 is not an integer"]),
        ("nan 1 1\n", &["index `nan` of mode 1 is not an integer"]),
        ("1 9223372036854775808 1\n", &["`9223372036854775808` of mode 2 is beyond 2^63"]),
        ("1 99999999999999999999999 1\n", &["beyond 2^63"]),
        ("1 1e300 1\n", &["`1e300` of mode 2 is beyond 2^63"]),
        ("1,2,3\n", &["line 1", "`1,2,3`", "columns are separated by `,`", "decompose convert"]),
        ("1, 2, 3\n", &["columns are separated by `,`"]),
        ("1;2;3\n", &["columns are separated by `;`"]),
        ("1 2 3,5\n", &["value `3,5` is not a number"]),
        ("1 1 1\n2 2 2\n3 3 y\n4 z 4\n", &["line 3", "`y`"]),
    ];
    for (text, wanted) in cases {
        check(text, &ReadOptions::default(), wanted);
    }
}

#[test]
fn the_first_bad_line_wins_whatever_the_size_of_windows() {
    let mut text = String::new();
    for line in 1..=5000 {
        text += if line % 1234 == 0 { "bad\n" } else { "1 2 3.5\n" };
    }
    check(&text, &ReadOptions::default(), &["line 1234:"]);
}

#[test]
fn long_lines_are_quoted_shortened() {
    let message = error_of(format!("1 1 {}\n", "é".repeat(500)).as_bytes(), &Default::default());
    assert!(message.contains("...`"), "{message}");
}

#[test]
fn a_zero_contradicts_base_one() {
    let one = ReadOptions { base: Some(Base::One), ..ReadOptions::default() };
    check("1 1 1\n1 0 1\n", &one, &["line 2", "index 0 in mode 2", "base 1 was asked for"]);
    let banner = "%%MatrixMarket matrix coordinate real general\n2 2 1\n0 1 1\n";
    check(banner, &ReadOptions::default(), &["line 3", "index 0 in mode 1", "header says so"]);
    check("2\n2 2\n1 0 1\n", &ReadOptions::default(), &["line 3", "index 0 in mode 2"]);
    let extended = "# extended FROSTT format\n2 1\n2 2\n0 1 1\n";
    check(extended, &ReadOptions::default(), &["line 4", "index 0"]);
    let toolbox = "sptensor indices-start-at-one\n1\n9\n1\n0 3\n";
    check(toolbox, &ReadOptions::default(), &["line 5", "index 0"]);
}

#[test]
fn indices_stay_below_their_extents() {
    let given = ReadOptions { extents: Some(vec![2, 5]), ..ReadOptions::default() };
    check("1 1 1\n3 1 1\n", &given, &["line 2", "index 3 in mode 1", "extent 2", "as given"]);
    check("1 1 1\n1 6 1\n9 1 1\n", &given, &["line 2", "index 6 in mode 2", "extent 5"]);
    check("2\n4 5\n5 1 1\n", &ReadOptions::default(), &["line 3", "from the header"]);
    // Index 5 is right in a file that counts from 1 and wrong in one that has a 0.
    check(
        "1 5 1\n1 1 1\n0 0 1\n",
        &given,
        &["line 1", "index 5 in mode 2", "line 3 has an index 0"],
    );
    // So it is the first bad line, whatever follows and wherever windows end.
    check("1 5 1\n0 0 1\n1 1\n", &given, &["line 1", "index 5 in mode 2"]);
    check("1 5 1\n1 1\n0 0 1\n", &given, &["line 2", "found 2"]);
    check("1 5 1\n9 1 1\n0 0 1\n", &given, &["line 2", "index 9 in mode 1"]);
    let zero = ReadOptions { base: Some(Base::Zero), ..given.clone() };
    check("1 1 1\n2 1 1\n", &zero, &["line 2", "index 2 in mode 1", "counting from 0"]);
    let few = ReadOptions { extents: Some(vec![2]), ..ReadOptions::default() };
    check("1 1 1\n", &few, &["of order 2", "1 extents"]);
}

#[test]
fn bad_headers_are_named() {
    let cases: &[(&str, &[&str])] = &[
        ("sptensor\nx\n", &["line 2", "expected the order"]),
        ("sptensor\n2\n2\n1\n1 1 1\n", &["line 3", "expected the extents, 2"]),
        ("sptensor\n2\n2 0\n1\n1 1 1\n", &["line 3", "extent 0 of mode 2"]),
        ("sptensor first\n", &["line 1", "indices-start-at-one"]),
        ("sptensor\n2\n2 2\n3\n1 1 1\n", &["announces 3 entries but 1 follow"]),
        ("# extended FROSTT format\n1 1 1\n", &["line 2", "order and the number of entries"]),
        ("# extended FROSTT format\n2 2\n3 3\n1 1 1\n", &["announces 2 entries but 1"]),
        ("# extended FROSTT format\n0 0\n\n", &["lists no non-zeros"]),
        ("3\n4 5\n1 2 3 4\n", &["line 1", "found 1"]),
        ("tensor\n2\n2 2\n1\n2\n3\n4\n", &["Tensor Toolbox `tensor`", "export"]),
        ("%%MatrixMarket matrix array real general\n2 2\n", &["announces 4 entries but 0 follow"]),
        ("%%MatrixMarket matrix array real general\n2 2 4\n", &["line 2", "all extents"]),
        ("%%MatrixMarket matrix array real general\n2 1\n1\n2 3\n", &["line 4", "found 2"]),
        ("%%MatrixMarket matrix array real general\n2 1\n1\nx\n", &["line 4", "`x` is not"]),
        ("%%MatrixMarket matrix array pattern general\n2 2\n", &["complex or unknown"]),
        ("%%MatrixMarket matrix array real symmetric\n2 2\n1\n", &["announces 3 entries"]),
        ("3 2\n4 5 6\n1 2 3 4\n", &["announces 2 entries but 1 follow"]),
        ("%%MatrixMarket matrix coordinate complex general\n2 2 1\n", &["complex"]),
        ("%%MatrixMarket matrix coordinate real hermitian\n2 2 1\n", &["Hermitian"]),
        ("%%MatrixMarket vector coordinate real general\n2 1\n", &["other than matrix"]),
        ("%%MatrixMarket matrix coordinate real\n2 2 1\n", &["banner"]),
        ("%%MatrixMarket matrix coordinate real general\n2 2\n", &["line 2", "size line"]),
        ("%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n1 1 1\n", &["must be square"]),
    ];
    for (text, wanted) in cases {
        check(text, &ReadOptions::default(), wanted);
    }
}

#[test]
fn a_first_line_that_may_be_a_header_is_refused() {
    let cases: &[(&str, &[&str])] = &[
        ("17 13 3 3\n1 2 3 0.5\n17 1 1 2\n4 13 3 1\n", &["line 1", "17 x 13 x 3 and 3 entries"]),
        ("2 2 4\n1 1 1\n1 2 1\n2 1 1\n2 2 1\n", &["line 1", "# extents 2 2`"]),
        ("# c\n\n5 4 1\n0 3 0.5\n", &["line 3", "5 x 4 and 1 entry", "move it behind"]),
    ];
    for (text, wanted) in cases {
        check(text, &ReadOptions::default(), wanted);
    }
    let entries = |text: &str| {
        io::read_bytes::<f64>(text.as_bytes(), &ReadOptions::default()).expect(text).0.nnz()
    };
    // One row more or a larger index, and it is an entry; so it is behind the extents.
    assert_eq!(entries("17 13 3 3\n1 2 3 0.5\n17 1 1 2\n"), 3);
    assert_eq!(entries("17 13 3 2\n1 2 4 0.5\n17 1 1 2\n"), 3);
    assert_eq!(entries("# extents 17 13 3\n17 13 3 2\n1 2 3 0.5\n17 1 1 2\n"), 3);
    assert_eq!(entries("1 1 1\n1 1 5\n"), 2);
}

#[test]
fn a_file_of_many_columns_is_refused_by_its_first_line() {
    let mut text = "1 ".repeat(100_000);
    text.push('\n');
    let wanted = ["order 99999", "up to 64 modes"];
    check(&text, &ReadOptions::default(), &wanted);
    let few = ReadOptions { max_order: 2, ..ReadOptions::default() };
    check("1 1 1 5\n1 1 x\n", &few, &["order 3", "up to 2 modes"]);
}

#[test]
fn memory_is_refused_before_it_is_taken() {
    let small = ReadOptions { max_bytes: Some(1000), window: 64, ..ReadOptions::default() };
    let text: String = (1..200).map(|i| format!("{i} 1 0.5\n")).collect();
    let error = io::read_stream::<f64>(text.as_bytes(), "memory", &small, &Progress::new());
    let message = error.expect_err("199 entries of 16 bytes").to_string();
    assert!(message.contains("of memory but 1000 B may be used"), "{message}");
    let error = io::read_bytes::<f64>(text.as_bytes(), &small);
    assert!(matches!(error, Err(FormatError::TooLarge { limit: 1000, .. })), "{error:?}");
    let array = "%%MatrixMarket matrix array real general\n99 99\n";
    let text = format!("{array}{}", "1\n".repeat(99 * 99));
    let error = io::read_stream::<f64>(text.as_bytes(), "memory", &small, &Progress::new());
    assert!(matches!(error, Err(FormatError::TooLarge { limit: 1000, .. })), "{error:?}");
    let error = io::read_bytes::<f64>(text.as_bytes(), &small);
    assert!(matches!(error, Err(FormatError::TooLarge { limit: 1000, .. })), "{error:?}");
}

#[test]
fn files_that_only_look_right_are_refused() {
    check("1 1 1\r2 2 2\r", &ReadOptions::default(), &["line 1", "carriage return alone"]);
    let market = ReadOptions { format: Some(Format::Mtx), ..ReadOptions::default() };
    check("2 2 1\n1 1 1\n", &market, &["begins with `%%MatrixMarket`", "add the banner"]);
}

#[test]
fn files_without_entries_are_refused() {
    check("", &ReadOptions::default(), &["empty (0 bytes)"]);
    check("# only a comment\n\n", &ReadOptions::default(), &["lists no non-zeros"]);
    check("2\n3 4\n", &ReadOptions::default(), &["lists no non-zeros"]);
}

#[test]
fn singles_have_their_own_range() {
    let error = io::read_bytes::<f32>(b"1 1e39\n", &ReadOptions::default()).expect_err("range");
    assert!(error.to_string().contains("beyond the range of f32; read the file as f64"), "{error}");
}

fn read(path: &Path) -> Result<(Coo<f64>, io::ReadReport), FormatError> {
    io::read(&Source::new(path), &ReadOptions::default(), &Progress::new())
}

#[test]
fn paths_that_are_no_tensor_files_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    assert!(matches!(read(&at("none.tns")), Err(FormatError::Missing(_))));
    assert!(matches!(read(folder.path()), Err(FormatError::IsAFolder(_))));
    for name in ["x.csv", "x", "x.gz", "x.csv.gz"] {
        std::fs::write(at(name), "1 1 1\n").expect("written");
        assert!(matches!(read(&at(name)), Err(FormatError::UnknownFormat(_))), "{name}");
    }
    for name in ["x.dtb.gz", "x.npy.zst"] {
        std::fs::write(at(name), "1 1 1\n").expect("written");
        assert!(matches!(read(&at(name)), Err(FormatError::Unsupported { .. })), "{name}");
    }
    for name in ["x.tns", "x.mtx", "x.npy", "x.dtb", "x.tns.gz"] {
        std::fs::write(at(name), "").expect("written");
        assert!(matches!(read(&at(name)), Err(FormatError::EmptyFile(_))), "{name}");
    }
    let options = ReadOptions { format: Some(Format::Tns), ..ReadOptions::default() };
    let named = io::read::<f64>(&Source::new(at("x.csv")), &options, &Progress::new());
    assert_eq!(named.expect("the format is given").0.nnz(), 1);
}

#[test]
fn damaged_compressed_files_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let text: String = (1..5000).map(|i| format!("{i} {} {}\n", i * 7 % 100 + 1, i * i)).collect();
    let (coo, _) =
        io::read_bytes::<f64>(text.as_bytes(), &ReadOptions::default()).expect("a tensor");
    for extension in ["gz", "zst", "bz2"] {
        let path = folder.path().join(format!("x.tns.{extension}"));
        io::write(&coo, &path, &WriteOptions::default()).expect("written");
        let whole = std::fs::read(&path).expect("read");
        let refused = |bytes: &[u8], what: &str| {
            std::fs::write(&path, bytes).expect("written");
            let result = read(&path);
            assert!(matches!(result, Err(FormatError::Corrupt { .. })), "{extension}: {what}");
        };
        for cut in [5, 20, whole.len() / 2, whole.len() - 1] {
            refused(&whole[..cut], &format!("cut to {cut}"));
        }
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 0x10;
        std::fs::write(&path, &flipped).expect("written");
        assert!(read(&path).is_err(), "{extension}: a flipped bit");
        refused(b"1 1 1\n", "text under the name of a compressed file");
        // Two members one after the other are one text.
        std::fs::write(&path, [whole.as_slice(), &whole].concat()).expect("written");
        assert_eq!(read(&path).expect("two members").0.nnz(), 2 * coo.nnz());
    }
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.tns");
    let (coo, _) = io::read_bytes::<f64>(b"1 1 1\n", &ReadOptions::default()).expect("a tensor");
    std::fs::write(&path, "precious").expect("written");
    let refused = io::write(&coo, &path, &WriteOptions::default());
    assert!(matches!(refused, Err(FormatError::Exists(_))));
    assert_eq!(std::fs::read_to_string(&path).expect("read"), "precious");
    let replace = WriteOptions { overwrite: Overwrite::Replace, ..WriteOptions::default() };
    io::write(&coo, &path, &replace).expect("replaced");
    assert_eq!(
        std::fs::read_to_string(&path).expect("read"),
        "# extents 1 1, indices from 1\n1 1 1\n"
    );
    let leftovers = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(leftovers, 1, "no temporary file stays");
    let lost = io::write(&coo, &folder.path().join("none/x.tns"), &replace);
    assert!(matches!(lost, Err(FormatError::Io { action: "write", .. })));
    for name in ["x.npy", "cube.mtx"] {
        let cube = io::read_bytes::<f64>(b"1 1 1 1\n", &ReadOptions::default()).expect("a cube").0;
        let refused = io::write(&cube, &folder.path().join(name), &replace);
        assert!(matches!(refused, Err(FormatError::Unsupported { .. })), "{name}");
    }
}
