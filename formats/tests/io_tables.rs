//! Tables of named categories become tensors, and tensors tables.

use decompose_formats::Coo;
use decompose_formats::FormatError;
use decompose_formats::io;
use decompose_formats::io::Base;
use decompose_formats::io::Missing;
use decompose_formats::io::ModeNames;
use decompose_formats::io::Overwrite;
use decompose_formats::io::Progress;
use decompose_formats::io::Source;
use decompose_formats::io::Table;
use decompose_formats::io::TableOptions;
use proptest::prelude::*;

fn options(modes: &[&str], value: Option<&str>) -> TableOptions {
    TableOptions {
        modes: modes.iter().map(|&mode| mode.to_owned()).collect(),
        value: value.map(str::to_owned),
        missing: Missing::None,
        max_order: 8,
        max_bytes: None,
    }
}

fn read(text: &str, options: &TableOptions) -> Result<Table<f64>, FormatError> {
    io::read_table_stream(text.as_bytes(), "memory", options, &Progress::new())
}

/// Entries as `label label value`, in the order of the list.
fn labelled(table: &Table<f64>) -> Vec<String> {
    let Table { tensor, modes, .. } = table;
    let row = |entry: usize| {
        let labels = modes.iter().enumerate();
        let labels = labels
            .map(|(mode, names)| names.labels[tensor.coords(mode).get(entry) as usize].clone());
        let fields: Vec<String> = labels.chain([tensor.values()[entry].to_string()]).collect();
        fields.join(" ")
    };
    (0..tensor.nnz()).map(row).collect()
}

const LOG: &str = "user,item,rating,hour\nbob,\"tea, green\",4,10\nann,milk,5,9\nbob,milk,-1.5,9\n";

#[test]
fn columns_become_modes_and_values() {
    let table = read(LOG, &options(&["user", "hour"], Some("rating"))).expect("a table");
    assert_eq!(labelled(&table), ["bob 10 4", "ann 9 5", "bob 9 -1.5"]);
    assert_eq!(table.modes[0].labels, ["ann", "bob"]);
    // Numbers are ordered as such.
    assert_eq!(
        (table.modes[1].name.as_str(), &table.modes[1].labels[..]),
        ("hour", &["9".to_owned(), "10".into()][..])
    );
    let counted = read(LOG, &options(&[], None)).expect("all columns");
    assert_eq!(counted.tensor.order(), 4);
    assert_eq!(counted.modes[1].labels, ["milk", "tea, green"]);
    assert_eq!(counted.tensor.values(), [1.0; 3]);
    let rest = read(LOG, &options(&[], Some("3"))).expect("a column by its number");
    assert_eq!((rest.tensor.order(), rest.tensor.values()), (3, &[4.0, 5.0, -1.5][..]));
}

#[test]
fn separators_and_unknown_values() {
    let tabs = LOG.replace("tea, green", "tea").replace(',', "\t");
    let table = read(&tabs, &options(&["item"], Some("rating"))).expect("tabs");
    assert_eq!(labelled(&table), ["tea 4", "milk 5", "milk -1.5"]);
    let semicolons = "a;b\nx;1,5\n";
    assert_eq!(read(semicolons, &options(&[], None)).expect("semicolons").tensor.order(), 2);
    let gaps = "a,v\nx,\ny,2\nz,NaN\n";
    let known = TableOptions { missing: Missing::Nan, ..options(&["a"], Some("v")) };
    let table = read(gaps, &known).expect("one is known");
    assert_eq!((labelled(&table), table.missing), (vec!["y 2".to_owned()], 2));
    let error = read(gaps, &options(&["a"], Some("v"))).expect_err("refused").to_string();
    assert!(error.contains("line 2") && error.contains("not a number"), "{error}");
}

#[test]
fn bad_tables_are_named() {
    let cases: &[(&str, &[&str], Option<&str>, &str)] = &[
        (LOG, &["usr"], None, "no column is called `usr`; there are: user, item, rating, hour"),
        (LOG, &["user", "1"], None, "the column `user` is asked for twice"),
        (LOG, &["rating"], Some("rating"), "the column `rating` is asked for twice"),
        ("v\n1\n", &[], Some("v"), "no column is left for a mode"),
        ("a,b\n1,2\n3\n", &[], None, "line 3: expected 2 columns but found 1"),
        ("a,v\nx,1\ny,two\n", &["a"], Some("v"), "line 3: the value `two` is not a number"),
        ("a,b\n", &[], None, "lists no non-zeros"),
        ("a,v\n\"x\ny\",1\n", &["a"], None, "line break"),
        ("a,b,c,d,e,f,g,h,i\n1,2,3,4,5,6,7,8,9\n", &[], None, "order 9"),
    ];
    for (text, modes, value, wanted) in cases {
        let error = read(text, &options(modes, *value)).expect_err(text).to_string();
        assert!(error.contains(wanted), "{text:?}: {error}");
    }
    let small = TableOptions { max_bytes: Some(100), ..options(&[], None) };
    assert!(matches!(read(LOG, &small), Err(FormatError::TooLarge { limit: 100, .. })));
}

#[test]
fn indices_without_labels_are_written_as_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.tsv");
    let coords = vec![vec![0u32, 4].into(), vec![1u32, 0].into()];
    let coo = Coo::new(vec![5, 2], coords, vec![0.5, -3.0]).expect("a matrix");
    let modes = [
        ModeNames { name: "row".into(), labels: Vec::new() },
        ModeNames { name: "city".into(), labels: vec!["Rome".into(), "Oslo\t1".into()] },
    ];
    io::write_table(&coo, &modes, &path, Base::One, Overwrite::Refuse).expect("written");
    let text = std::fs::read_to_string(&path).expect("text");
    assert_eq!(text, "row\tcity\tvalue\n1\t\"Oslo\t1\"\t0.5\n5\tRome\t-3\n");
    let again = io::write_table(&coo, &modes, &path, Base::Zero, Overwrite::Refuse);
    assert!(matches!(again, Err(FormatError::Exists(_))));
    io::write_table(&coo, &modes, &path, Base::Zero, Overwrite::Replace).expect("replaced");
    assert!(std::fs::read_to_string(&path).expect("text").contains("\n4\tRome\t-3\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables_round_trip(
        rows in prop::collection::vec(("[a-c\"', ;é]{0,3}", "[0-9]{1,3}", -1e6..1e6f64), 1..40),
        zipped: bool,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(if zipped { "x.csv.gz" } else { "x.csv" });
        let mut labels = [Vec::new(), Vec::new()];
        for (a, b, _) in &rows {
            labels[0].push(a.clone());
            labels[1].push(b.clone());
        }
        let distinct = labels.clone().map(|mut all| { all.sort(); all.dedup(); all });
        let index = |mode: usize| -> Vec<u32> {
            let at = |label| distinct[mode].binary_search(label).expect("listed") as u32;
            labels[mode].iter().map(at).collect()
        };
        let coords = vec![index(0).into(), index(1).into()];
        let extents = distinct.iter().map(|all| all.len() as u64).collect();
        let values: Vec<f64> = rows.iter().map(|row| row.2).collect();
        let coo = Coo::new(extents, coords, values.clone()).expect("a matrix");
        let names = [("who", 0), ("what", 1)]
            .map(|(name, mode)| ModeNames { name: name.into(), labels: distinct[mode].clone() });
        io::write_table(&coo, &names, &path, Base::One, Overwrite::Refuse).expect("written");
        let back = io::read_table::<f64>(
            &Source::new(&path),
            &options(&["who", "what"], Some("value")),
            &Progress::new(),
        )
        .expect("read");
        let want: Vec<String> =
            rows.iter().map(|(a, b, value)| format!("{a} {b} {value}")).collect();
        prop_assert_eq!(labelled(&back), want);
        prop_assert_eq!(back.tensor.extents(), coo.extents());
    }
}
