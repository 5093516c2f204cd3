//! All ways of parsing rows agree, on lines good, odd and bad.

use proptest::prelude::*;

use crate::io::options::Missing;
use crate::io::text::row::Layout;
use crate::io::text::row::Rows;
use crate::io::text::row::ValueColumn;
use crate::io::text::row::Way;
use crate::io::text::row::parse_by;
use crate::value::Value;

/// Everything that `parse_by` yields, with values as their bits.
fn outcome<V: Value>(way: Way, text: &str, order: usize) -> String {
    let (values, missing) = (ValueColumn::Present, Missing::None);
    let layout = Layout { order, values, comment: b'#', missing };
    let rows = text.lines().count();
    let (mut columns, mut values) = (vec![vec![0u32; rows]; order], vec![V::default(); rows]);
    let slices = columns.iter_mut().map(Vec::as_mut_slice).collect();
    let mut out = Rows { columns: slices, values: &mut values };
    let (counts, stop) = parse_by(way, text.as_bytes(), layout, &mut out);
    columns.iter_mut().for_each(|column| column.truncate(counts.rows));
    let bits = |value: &V| value.to_f64().to_bits();
    let values: Vec<u64> = values[..counts.rows].iter().map(bits).collect();
    format!("{counts:?} {stop:?} {columns:?} {values:?}")
}

fn index() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => (0u32..30_000).prop_map(|index| index.to_string()),
        3 => "[0-9]{1,8}",
        1 => "[0-9]{9,11}|[+]7|-1|2[.]0|[.]|x|3e0",
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "-?[0-9]{1,4}[.][0-9]{1,6}",
        4 => "-?[0-9]{1,8}([.][0-9]{1,8})?",
        1 => "[+-]?[0-9]{0,9}[.]?[0-9]{0,12}([eE][+-]?[0-9]{1,2})?",
        1 => "nan|-inf|--1|1-|1[.]2[.]3|#",
    ]
}

fn line(order: usize) -> impl Strategy<Value = String> {
    let gap = || prop_oneof![9 => Just(" "), 1 => Just("\t"), 1 => Just("   ")];
    let fields = proptest::collection::vec((index(), gap()), order);
    let end = prop_oneof![12 => Just("\n"), 1 => Just("\r\n"), 1 => Just(" \n"), 1 => Just("\n\n")];
    let odd = prop_oneof![40 => Just(""), 1 => Just("# c\n"), 1 => Just(" "), 1 => Just("9 ")];
    (odd, fields, value(), end).prop_map(|(odd, fields, value, end)| {
        let fields: String = fields.into_iter().flat_map(|(i, g)| [i, g.to_owned()]).collect();
        format!("{odd}{fields}{value}{end}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn all_ways_agree(
        (order, lines) in (1usize..8).prop_flat_map(|order| {
            (Just(order), proptest::collection::vec(line(order), 0..24))
        }),
        cut in 0usize..80,
    ) {
        // Texts that end inside a line, and many lines behind bad ones.
        let text = lines.concat();
        let texts = [&text[..text.len().saturating_sub(cut)], &text[text.len().min(cut)..]];
        for text in texts.into_iter().chain(lines.iter().map(String::as_str)) {
            let careful = outcome::<f64>(Way::Careful, text, order);
            prop_assert_eq!(&outcome::<f64>(Way::Words, text, order), &careful);
            prop_assert_eq!(&outcome::<f64>(Way::Vector, text, order), &careful);
            let careful = outcome::<f32>(Way::Careful, text, order);
            prop_assert_eq!(&outcome::<f32>(Way::Vector, text, order), &careful);
        }
    }

    #[test]
    fn plain_lines_in_a_long_text_agree(
        lines in proptest::collection::vec(line(3), 1..4),
        odd_at in 0usize..100,
    ) {
        let mut text: String = (1..100).map(|k| format!("{k} {} 7 -{k}.25\n", k * k)).collect();
        let at = text.match_indices('\n').nth(odd_at.min(98)).map_or(0, |(at, _)| at + 1);
        text.insert_str(at, &lines.concat());
        let careful = outcome::<f64>(Way::Careful, &text, 3);
        prop_assert_eq!(&outcome::<f64>(Way::Vector, &text, 3), &careful);
    }
}
