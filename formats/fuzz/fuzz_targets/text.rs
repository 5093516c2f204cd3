//! Any bytes as a text file: never a panic, and the same result through windows and streams.
#![no_main]

use decompose_formats::Coo;
use decompose_formats::FormatError;
use decompose_formats::io;
use decompose_formats::io::Base;
use decompose_formats::io::Format;
use decompose_formats::io::Missing;
use decompose_formats::io::Progress;
use decompose_formats::io::ReadOptions;
use decompose_formats::io::ReadReport;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, text)) = input.split_last() else { return };
    let options = ReadOptions {
        format: Some(Format::Tns),
        base: [None, Some(Base::Zero), Some(Base::One), None][usize::from(choice & 3)],
        extents: (choice & 4 != 0).then(|| vec![5; usize::from(choice >> 5) + 1]),
        window: [1, 7, 64, 1 << 16][usize::from(choice >> 3 & 3)],
        missing: if choice & 3 == 3 { Missing::Nan } else { Missing::None },
        max_bytes: Some(1 << 30),
        ..ReadOptions::default()
    };
    let windows = io::read_bytes::<f64>(text, &options);
    let stream = io::read_stream::<f64>(text, "memory", &options, &Progress::new());
    assert_eq!(outcome(&windows), outcome(&stream));
    if let Ok((coo, _)) = &windows {
        check(coo);
    }
    let _ = io::read_bytes::<f32>(text, &options);
});

fn outcome(result: &Result<(Coo<f64>, ReadReport), FormatError>) -> String {
    match result {
        Ok((coo, report)) => format!("{coo:?} {:?}", report.text),
        Err(error) => error.to_string(),
    }
}

fn check(coo: &Coo<f64>) {
    assert!(coo.nnz() > 0);
    for (mode, &extent) in coo.extents().iter().enumerate() {
        assert!(coo.coords(mode).iter().all(|index| index < extent));
    }
    assert!(coo.values().iter().all(|value| value.is_finite()));
}
