//! What is written reads back the same, in every format and dialect.

use std::path::Path;

use decompose_formats::Coo;
use decompose_formats::Ints;
use decompose_formats::Value;
use decompose_formats::Width;
use decompose_formats::io;
use decompose_formats::io::Base;
use decompose_formats::io::Dialect;
use decompose_formats::io::Progress;
use decompose_formats::io::ReadOptions;
use decompose_formats::io::Source;
use decompose_formats::io::WriteOptions;
use proptest::prelude::*;

/// An index bound of each mode, and for each entry where in its range it lies, and its value.
type Parts = (Vec<u64>, Vec<(Vec<u32>, f64)>);

fn parts() -> impl Strategy<Value = Parts> {
    let extent = prop_oneof![1u64..5, 1u64..100_000, (1u64 << 32)..(1 << 40)];
    let finite =
        proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO;
    let value = prop_oneof![finite, (-1000i32..1000).prop_map(f64::from)];
    (1usize..=6).prop_flat_map(move |order| {
        let entry = (prop::collection::vec(any::<u32>(), order), value.clone());
        (prop::collection::vec(extent.clone(), order), prop::collection::vec(entry, 1..60))
    })
}

fn tensor<V: Value>((extents, entries): &Parts) -> Coo<V> {
    let column = |mode: usize| -> Ints {
        let place = |(at, _): &(Vec<u32>, f64)| {
            ((u128::from(at[mode]) * u128::from(extents[mode])) >> 32) as u64
        };
        let wide: Vec<u64> = entries.iter().map(place).collect();
        match extents[mode] > 1 << 32 {
            true => wide.into(),
            false => wide.into_iter().map(|index| index as u32).collect::<Vec<u32>>().into(),
        }
    };
    let coords = (0..extents.len()).map(column).collect();
    let finite =
        |value: f64| V::from_f64(if V::BYTES == 4 { value.clamp(-1e38, 1e38) } else { value });
    let values: Vec<V> = entries.iter().map(|&(_, value)| finite(value)).collect();
    Coo::new(extents.clone(), coords, values).expect("a tensor")
}

fn again<V: Value>(coo: &Coo<V>, path: &Path, dialect: Dialect, base: Base) -> Coo<V> {
    let options = WriteOptions { dialect, base, ..WriteOptions::default() };
    io::write(coo, path, &options).expect("written");
    // Nothing is told to the reader: extents and base come from the file.
    let options = ReadOptions { window: 50, ..ReadOptions::default() };
    io::read(&Source::new(path), &options, &Progress::new()).expect("read").0
}

/// Indices as written and the value of each entry.
type Entries = Vec<(Vec<u64>, f64)>;

/// Reads a list as SPLATT does: a line that begins with `#` is skipped, any other is an entry.
fn skipping_comments(path: &Path) -> Entries {
    let text = std::fs::read_to_string(path).expect("text");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |row: &str| {
        let mut fields: Vec<&str> = row.split(' ').collect();
        let value = fields.pop().expect("a value").parse().expect("a number");
        (fields.iter().map(|field| field.parse().expect("an index")).collect(), value)
    };
    rows.map(entry).collect()
}

fn entries<V: Value>(coo: &Coo<V>, base: Base) -> Entries {
    let first = u64::from(base == Base::One);
    let entry = |at: usize| {
        let indices = (0..coo.order()).map(|mode| coo.coords(mode).get(at) + first);
        // A single is written with the digits that tell it apart, not those of its double.
        let value = match V::BYTES {
            4 => (coo.values()[at].to_f64() as f32).to_string().parse().expect("a number"),
            _ => coo.values()[at].to_f64(),
        };
        (indices.collect(), value)
    };
    (0..coo.nnz()).map(entry).collect()
}

fn all_formats<V: Value>(parts: &Parts) {
    let coo = tensor::<V>(parts);
    let folder = tempfile::tempdir().expect("a folder");
    let market = if coo.order() == 2 { "x.mtx" } else { "x.ttx" };
    for (name, dialect, base) in [
        ("x.tns", Dialect::Plain, Base::One),
        ("zero.tns", Dialect::Plain, Base::Zero),
        ("toolbox.tns", Dialect::Toolbox, Base::One),
        ("toolbox-zero.tns", Dialect::Toolbox, Base::Zero),
        ("parti.tns", Dialect::Parti, Base::One),
        ("extended.tns", Dialect::ExtendedFrostt, Base::One),
        ("x.tns.gz", Dialect::Plain, Base::One),
        ("zero.tns.zst", Dialect::Plain, Base::Zero),
        ("x.tns.bz2", Dialect::Plain, Base::One),
        (market, Dialect::Plain, Base::One),
        ("x.dtb", Dialect::Plain, Base::One),
    ] {
        let path = folder.path().join(name);
        let back = again(&coo, &path, dialect, base);
        assert_eq!(back, coo, "{name}");
        if dialect == Dialect::Plain && name.ends_with(".tns") {
            assert_eq!(skipping_comments(&path), entries(&coo, base), "{name}");
        }
        let same_bits = back
            .values()
            .iter()
            .zip(coo.values())
            .all(|(a, b)| a.to_f64().to_bits() == b.to_f64().to_bits());
        assert!(same_bits, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tensors_of_doubles_round_trip(parts in parts()) {
        all_formats::<f64>(&parts);
    }

    #[test]
    fn tensors_of_singles_round_trip(parts in parts()) {
        all_formats::<f32>(&parts);
    }
}

#[test]
fn a_base_that_a_header_cannot_tell_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (coo, _) = io::read_bytes::<f64>(b"1 1 5\n", &ReadOptions::default()).expect("a matrix");
    for (name, dialect) in
        [("x.mtx", Dialect::Plain), ("p.tns", Dialect::Parti), ("e.tns", Dialect::ExtendedFrostt)]
    {
        let options = WriteOptions { dialect, base: Base::Zero, ..WriteOptions::default() };
        let refused = io::write(&coo, &folder.path().join(name), &options);
        let message = refused.expect_err("no base 0").to_string();
        assert!(message.contains("indices count from 1 behind a"), "{message}");
    }
}

#[test]
fn an_extent_decides_the_width_even_if_no_index_needs_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wide.tns");
    std::fs::write(&path, "1 7 2.5\n").expect("written");
    for (extent, width) in [(1 << 32, Width::W32), ((1 << 32) + 1, Width::W64)] {
        let options = ReadOptions { extents: Some(vec![1, extent]), ..ReadOptions::default() };
        let (coo, _) = io::read::<f64>(&Source::new(&path), &options, &Progress::new()).unwrap();
        assert_eq!(coo.coords(1).width(), width);
        assert_eq!(coo.coords(1).get(0), 6);
    }
}

#[test]
fn a_file_of_many_tasks_keeps_its_order() {
    let rows = 200_000u32;
    let coords =
        vec![(0..rows).collect::<Vec<u32>>().into(), (0..rows).rev().collect::<Vec<u32>>().into()];
    let values: Vec<f64> = (0..rows).map(|row| f64::from(row) / 7.0).collect();
    let coo = Coo::new(vec![u64::from(rows); 2], coords, values).expect("a tensor");
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["x.tns", "x.tns.zst", "x.mtx"] {
        let path = folder.path().join(name);
        io::write(&coo, &path, &WriteOptions::default()).expect("written");
        let options = ReadOptions { window: 100_000, ..ReadOptions::default() };
        let progress = Progress::new();
        let (back, report) = io::read::<f64>(&Source::new(&path), &options, &progress).expect(name);
        assert_eq!(back, coo, "{name}");
        assert_eq!(progress.done(), progress.total());
        assert_eq!(report.entries, u64::from(rows));
    }
}

#[test]
fn a_text_is_hashed_as_it_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.tns");
    // The comments fill several windows; an index that needs three bytes comes late, so that text is read twice.
    let comments = "# a comment of some length\n".repeat(200);
    let rows: String = (1..3000).map(|row| format!("{row} {} 0.5\n", 2 * row + 65_000)).collect();
    let hashed = |text: &str, window| {
        std::fs::write(&path, text).expect("written");
        let options = ReadOptions { window, hash: true, ..ReadOptions::default() };
        let progress = Progress::new();
        let (coo, report) =
            io::read::<f64>(&Source::new(&path), &options, &progress).expect("read");
        assert_eq!(progress.done(), progress.total());
        assert_eq!(coo.nnz(), 2999);
        report.blake3
    };
    for text in
        [rows.clone(), format!("{comments}{rows}"), format!("{comments}{}", rows.trim_end())]
    {
        for window in [1024, 4096, 1 << 15] {
            assert_eq!(hashed(&text, window), io::file_hash(&path).ok(), "{window}");
        }
        assert_eq!(hashed(&text, 3000), None, "windows that are no subtrees");
        assert_eq!(hashed(&text, 1 << 20), None, "a single window");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_as_a_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe.tns");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no mkfifo here");
        return;
    }
    let writer = std::thread::spawn({
        let path = path.clone();
        move || std::fs::write(path, "1 2 3\n4 5 6\n").expect("written")
    });
    let progress = Progress::new();
    let (coo, _) =
        io::read::<f64>(&Source::new(&path), &ReadOptions::default(), &progress).expect("read");
    writer.join().expect("the writer ended");
    assert_eq!((coo.nnz(), coo.extents()), (2, &[4, 5][..]));
}
