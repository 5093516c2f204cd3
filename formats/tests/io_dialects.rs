//! Text in every dialect and notation, through windows and streams of many sizes.

use decompose_formats::Coo;
use decompose_formats::FormatError;
use decompose_formats::Value;
use decompose_formats::io;
use decompose_formats::io::Base;
use decompose_formats::io::BaseFrom;
use decompose_formats::io::Dialect;
use decompose_formats::io::ExtentsFrom;
use decompose_formats::io::Missing;
use decompose_formats::io::Progress;
use decompose_formats::io::ReadOptions;
use decompose_formats::io::ReadReport;

const WINDOWS: &[usize] = &[1, 2, 3, 5, 8, 13, 33, 100, 4 << 20];

/// Reads `text` whole and as a stream, in windows of all sizes, and expects the same each time.
fn read<V: Value>(text: &str, options: &ReadOptions) -> Result<(Coo<V>, ReadReport), FormatError> {
    let first = io::read_bytes::<V>(text.as_bytes(), options);
    let show = |result: &Result<(Coo<V>, ReadReport), FormatError>| match result {
        Ok((coo, report)) => format!("{coo:?} {report:?}"),
        Err(error) => error.to_string(),
    };
    let want = show(&first);
    for &window in WINDOWS {
        let options = ReadOptions { window, ..options.clone() };
        let mapped = show(&io::read_bytes::<V>(text.as_bytes(), &options));
        assert_eq!(mapped, want, "window {window}");
        let progress = Progress::new();
        let streamed = io::read_stream::<V>(text.as_bytes(), "memory", &options, &progress);
        assert_eq!(show(&streamed), want, "stream, window {window}");
    }
    first
}

/// Lists a tensor as `i1 i2 ... value` counted from 0, entries separated by `; `.
fn listed<V: Value>(coo: &Coo<V>) -> String {
    let entry = |position: usize| {
        let indices = (0..coo.order()).map(|mode| coo.coords(mode).get(position).to_string());
        let fields: Vec<String> = indices.chain([coo.values()[position].to_string()]).collect();
        fields.join(" ")
    };
    (0..coo.nnz()).map(entry).collect::<Vec<String>>().join("; ")
}

#[test]
fn every_dialect_is_recognised() {
    use Dialect::{ExtendedFrostt, MatrixMarket, Parti, Plain, Toolbox};
    let cases: &[(&str, Dialect, &[u64], &str)] = &[
        ("1 2 5\n", Plain, &[1, 2], "0 1 5"),
        ("3 2.5\n1 4\n", Plain, &[3], "2 2.5; 0 4"),
        ("# note\n\n1 1 1 1 1 1 7\n", Plain, &[1; 6], "0 0 0 0 0 0 7"),
        ("sptensor\n3\n2 3 4\n1\n2 3 4 1.5\n", Toolbox, &[2, 3, 4], "1 2 3 1.5"),
        ("SPTENSOR indices-start-at-one\n1\n9\n1\n2 3\n", Toolbox, &[9], "1 3"),
        ("sptensor\n# c\n2\n2 3\n1\n0 0 1\n", Toolbox, &[2, 3], "0 0 1"),
        ("sptensor indices-start-at-zero\n2\n2 3\n1\n1 1 1\n", Toolbox, &[2, 3], "1 1 1"),
        ("3\n4 5 6\n1 2 3 4\n", Parti, &[4, 5, 6], "0 1 2 4"),
        ("1\n4\n1 2\n", Parti, &[4], "0 2"),
        ("# extended FROSTT format\n2 1\n4 5\n1 2 3\n", ExtendedFrostt, &[4, 5], "0 1 3"),
        ("; extended FROSTT format\n2 1\n4 5\n1 2 3\n", ExtendedFrostt, &[4, 5], "0 1 3"),
        ("2 1\n4 5\n1 2 3\n", ExtendedFrostt, &[4, 5], "0 1 3"),
        ("# any comment\n3 1\n4 5 6\n1 2 3 4\n", ExtendedFrostt, &[4, 5, 6], "0 1 2 4"),
        ("1 2\n9\n4 0.5\n7 1\n", ExtendedFrostt, &[9], "3 0.5; 6 1"),
        ("2 18\n4 3\n", Plain, &[4], "1 18; 3 3"),
        ("2 18\n4 3\n1 7\n", Plain, &[4], "1 18; 3 3; 0 7"),
        ("# extents 4 5, indices from 1\n1 2 3\n", Plain, &[4, 5], "0 1 3"),
        ("#extents: 4 5\n0 2 3\n", Plain, &[4, 5], "0 2 3"),
        ("# extents 4 5, indices from 0\n1 2 3\n", Plain, &[4, 5], "1 2 3"),
        ("# extents 4 5 6\n1 2 3\n", Plain, &[1, 2], "0 1 3"),
        (
            "%%MatrixMarket matrix array real general\n% c\n3 2\n1\n0\n-2\n% c\n0\n5\n6\n",
            MatrixMarket,
            &[3, 2],
            "0 0 1; 1 1 5; 2 0 -2; 2 1 6",
        ),
        (
            "%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n",
            MatrixMarket,
            &[2, 2],
            "0 0 1; 0 1 2; 1 0 2; 1 1 3",
        ),
        (
            "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n",
            MatrixMarket,
            &[3, 3],
            "0 1 -1; 0 2 -2; 1 0 1; 1 2 -3; 2 0 2; 2 1 3",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n% c\n2 3 2\n1 1 4\n2 3 5\n",
            MatrixMarket,
            &[2, 3],
            "0 0 4; 1 2 5",
        ),
        (
            "%%matrixmarket TENSOR coordinate real general\n2 3 4 1\n1 2 3 5\n",
            MatrixMarket,
            &[2, 3, 4],
            "0 1 2 5",
        ),
        (
            "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 1\n3 1\n",
            MatrixMarket,
            &[3, 3],
            "0 0 1; 2 0 1; 0 2 1",
        ),
        (
            "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 1\n3 1 7\n",
            MatrixMarket,
            &[3, 3],
            "2 0 7; 0 2 -7",
        ),
    ];
    for (text, dialect, extents, want) in cases {
        let (coo, report) = read::<f64>(text, &ReadOptions::default()).expect(text);
        assert_eq!(coo.extents(), *extents, "{text}");
        assert_eq!(listed(&coo), *want, "{text}");
        assert_eq!(report.text.expect("text").dialect, *dialect, "{text}");
    }
}

#[test]
fn lines_may_be_spaced_and_written_in_many_ways() {
    let cases: &[(&str, &str)] = &[
        ("1 2 3", "0 1 3"),
        ("1\t2\t3\n", "0 1 3"),
        ("  1   2 \t 3  \n", "0 1 3"),
        ("1 2 3\r\n4 5 6\r\n", "0 1 3; 3 4 6"),
        ("1 2 3\r\n\r\n# c\r\n4 5 6", "0 1 3; 3 4 6"),
        ("\u{feff}1 2 3\n", "0 1 3"),
        ("1 2 -2.5e3\n1 2 .5\n1 2 +3\n1 2 5.\n", "0 1 -2500; 0 1 0.5; 0 1 3; 0 1 5"),
        ("1 2 1e-3\n1 2 1E+2\n1 2 -0\n", "0 1 0.001; 0 1 100; 0 1 -0"),
        ("1 2 0.1234567890123456789\n", "0 1 0.12345678901234568"),
        ("1 2 123456789012345678901\n", "0 1 123456789012345680000"),
        ("1 2 99999999.99999999\n", "0 1 99999999.99999999"),
        ("1.0 2e0 3\n+1 002 3\n", "0 1 3; 0 1 3"),
        ("12345678 1 1\n123456789 1 2\n", "12345677 0 1; 123456788 0 2"),
        ("   # indented comment\n1 1 1\n", "0 0 1"),
        ("1 1 1\n1 1 2\n1 1 1\n", "0 0 1; 0 0 2; 0 0 1"),
    ];
    for (text, want) in cases {
        let (coo, _) = read::<f64>(text, &ReadOptions::default()).expect(text);
        assert_eq!(listed(&coo), *want, "{text:?}");
    }
}

#[test]
fn single_precision_is_rounded_once() {
    // The third lies so near the middle of two singles that rounding to double first errs.
    let text = "1 0.1\n1 16777217\n1 1.00000005960464477540\n1 3.4e38\n";
    let (coo, _) = read::<f32>(text, &ReadOptions::default()).expect("four values");
    let want = ["0.1", "16777217", "1.00000005960464477540", "3.4e38"];
    let want: Vec<f32> = want.iter().map(|text| text.parse().expect("a number")).collect();
    assert_eq!(coo.values(), want);
}

#[test]
fn indices_widen_where_they_need_to() {
    let text = "1 4294967295 1\n2 4294967296 2\n3 4294967297 3\n9223372036854775807 1 4\n";
    let (coo, _) = read::<f64>(text, &ReadOptions::default()).expect("wide indices");
    assert_eq!(coo.extents(), [i64::MAX as u64, 4_294_967_297]);
    assert_eq!(coo.coords(0).get(3), i64::MAX as u64 - 1);
    assert_eq!(
        coo.coords(1).iter().collect::<Vec<u64>>()[..3],
        [4_294_967_294, 4_294_967_295, 4_294_967_296]
    );
    let (coo, _) = read::<f64>("1 4294967296 1\n", &ReadOptions::default()).expect("one entry");
    assert_eq!(coo.coords(0).width().bytes(), 4);
    assert_eq!(coo.coords(1).width().bytes(), 4, "extent 2^32 fits coordinates of 32 bits");
    let (coo, _) = read::<f64>("0 4294967295 1\n4294967296 0 1", &ReadOptions::default())
        .expect("zero-based wide indices");
    assert_eq!(listed(&coo), "0 4294967295 1; 4294967296 0 1");
}

#[test]
fn an_index_of_more_than_two_bytes_may_come_anywhere() {
    let lines = |long: usize| -> String {
        let row = |row: usize| if row == long { 65_536 } else { row % 65_535 + 1 };
        (0..30_000).map(|at| format!("{} {} 1\n", at / 300 + 1, row(at))).collect()
    };
    let options = ReadOptions::default();
    for (long, most) in [(0, 65_536), (15_001, 65_536), (29_999, 65_536), (30_000, 30_000)] {
        let (coo, _) = io::read_bytes::<f64>(lines(long).as_bytes(), &options).expect("a list");
        assert_eq!(coo.extents(), [100, most]);
        let column: Vec<u64> = coo.coords(1).iter().collect();
        let want = |at: usize| if at == long { 65_535 } else { at as u64 % 65_535 };
        assert!(column.into_iter().eq((0..30_000).map(want)), "row {long}");
    }
}

#[test]
fn a_zero_anywhere_makes_the_whole_file_count_from_zero() {
    let text = "# c\n1 1 1\n\n2 3 4\n0 2 5\n";
    let (coo, report) = read::<f64>(text, &ReadOptions::default()).expect("a base");
    assert_eq!(listed(&coo), "1 1 1; 2 3 4; 0 2 5");
    assert_eq!(coo.extents(), [3, 4]);
    let told = report.text.expect("text");
    assert_eq!((told.base, told.base_from), (Base::Zero, BaseFrom::ZeroAt { line: 5 }));
    assert_eq!((told.lines, told.comments, told.blanks), (5, 1, 1));
}

#[test]
fn the_caller_sets_base_and_extents() {
    let options = ReadOptions { base: Some(Base::Zero), ..ReadOptions::default() };
    let (coo, report) = read::<f64>("1 1 1\n", &options).expect("base 0");
    assert_eq!((listed(&coo).as_str(), coo.extents()), ("1 1 1", &[2, 2][..]));
    assert_eq!(report.text.expect("text").base_from, BaseFrom::Caller);
    assert_eq!(report.extents_from, ExtentsFrom::LargestIndex);

    let options = ReadOptions { extents: Some(vec![7, 1]), ..ReadOptions::default() };
    let (coo, report) = read::<f64>("1 1 1\n", &options).expect("extents");
    assert_eq!((coo.extents(), report.extents_from), (&[7, 1][..], ExtentsFrom::Caller));

    // So they do where a comment has others.
    let noted = "# extents 4 5\n1 1 1\n";
    let (coo, report) = read::<f64>(noted, &ReadOptions::default()).expect("a comment");
    assert_eq!((coo.extents(), report.extents_from), (&[4, 5][..], ExtentsFrom::Comment));
    let (coo, report) = read::<f64>(noted, &options).expect("extents");
    assert_eq!((coo.extents(), report.extents_from), (&[7, 1][..], ExtentsFrom::Caller));

    // Where the header has extents, they count.
    let (coo, report) = read::<f64>("2\n4 5\n1 1 1\n", &options).expect("a header");
    assert_eq!((coo.extents(), report.extents_from), (&[4, 5][..], ExtentsFrom::Header));
}

#[test]
fn a_nan_may_stand_for_what_is_unknown() {
    let options = ReadOptions { missing: Missing::Nan, ..ReadOptions::default() };
    let text = "3 1 nan\n1 1 2\n# c\n2 1 NaN\n2 2 0\n1 3 -nan\n";
    let (coo, report) = read::<f64>(text, &options).expect("three of six are known");
    assert_eq!((listed(&coo).as_str(), report.missing), ("0 0 2; 1 1 0", 3));
    let counted = "2 3\n3 3\n3 1 nan\n1 1 2\n2 2 4\n";
    let (coo, report) = read::<f64>(counted, &options).expect("the count covers all rows");
    assert_eq!((listed(&coo).as_str(), report.missing), ("0 0 2; 1 1 4", 1));
    let error = read::<f64>("1 1 nan\n", &options).expect_err("nothing is known");
    assert!(matches!(error, FormatError::NoEntries(_)), "{error}");
    let error = read::<f64>("1 1 nan\n1 2\n", &options).expect_err("a short line");
    assert!(error.to_string().contains("line 2"), "{error}");
    let array = "%%MatrixMarket matrix array real general\n2 2\n0\nnan\n3\n0\n";
    let (coo, _) = read::<f64>(array, &options).expect("an array");
    assert_eq!(listed(&coo), "0 0 0; 0 1 3; 1 1 0");
}

#[test]
fn a_long_prelude_is_read_to_its_end() {
    let text = format!("{}1 2 3\n", "# a comment of some length\n".repeat(20_000));
    let (coo, report) = io::read_bytes::<f64>(text.as_bytes(), &ReadOptions::default())
        .expect("a tensor behind half a megabyte of comments");
    assert_eq!(listed(&coo), "0 1 3");
    assert_eq!(report.text.expect("text").comments, 20_000);
    let streamed = io::read_stream::<f64>(
        text.as_bytes(),
        "memory",
        &ReadOptions::default(),
        &Progress::new(),
    );
    assert_eq!(streamed.expect("the same").1.entries, 1);
}

#[test]
fn the_report_says_in_words_what_was_decided() {
    let (_, report) = read::<f64>("# c\n0 2 1\n", &ReadOptions::default()).expect("a tensor");
    assert_eq!(
        report.to_string(),
        "memory: FROSTT text (plain, no header), 10 bytes, 1 entry\n\
         extents 1 x 3 (the largest indices)\n\
         indices count from 0 (line 2 has an index 0); 2 lines, of these 1 comment and 0 blank"
    );
}
