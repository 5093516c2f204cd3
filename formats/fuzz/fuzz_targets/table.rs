//! Any bytes as a table of named categories: never a panic, and every index has its label.
#![no_main]

use decompose_formats::io;
use decompose_formats::io::Missing;
use decompose_formats::io::Progress;
use decompose_formats::io::TableOptions;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, text)) = input.split_last() else { return };
    let options = TableOptions {
        modes: Vec::new(),
        value: (choice & 1 != 0).then(|| "1".to_owned()),
        missing: if choice & 2 != 0 { Missing::Nan } else { Missing::None },
        max_order: 16,
        max_bytes: Some(1 << 28),
    };
    let table = io::read_table_stream::<f64>(text, "memory", &options, &Progress::new());
    let Ok(table) = table else { return };
    assert!(table.tensor.nnz() > 0);
    for (mode, names) in table.modes.iter().enumerate() {
        let extent = table.tensor.extents()[mode];
        assert_eq!(names.labels.len() as u64, extent);
        assert!(table.tensor.coords(mode).iter().all(|index| index < extent));
    }
});
