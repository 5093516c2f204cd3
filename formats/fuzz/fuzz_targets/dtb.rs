//! Any bytes as a `.dtb` or `.npy` file: never a panic, and never a coordinate out of bounds.
#![no_main]

use decompose_formats::io;
use decompose_formats::io::Format;
use decompose_formats::io::ReadOptions;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    read(bytes, Format::Npy);
    read(bytes, Format::Dtb);
    // With a right checksum, so that the checks behind it are reached.
    let Some((data, _)) = bytes.split_last_chunk::<32>() else { return };
    read(&[data, blake3::hash(data).as_bytes()].concat(), Format::Dtb);
});

fn read(bytes: &[u8], format: Format) {
    if format == Format::Npy {
        let _ = io::read_dense::<f64>(&mut &*bytes, "memory", 1 << 30);
    }
    let options = ReadOptions {
        format: Some(format),
        max_bytes: Some(1 << 30),
        ..ReadOptions::default()
    };
    let _ = io::read_bytes::<f32>(bytes, &options);
    let Ok((coo, report)) = io::read_bytes::<f64>(bytes, &options) else { return };
    assert!(coo.nnz() > 0);
    for (mode, &extent) in coo.extents().iter().enumerate() {
        assert!(coo.coords(mode).iter().all(|index| index < extent));
    }
    assert_eq!(coo.sorted_by(), report.sorted_by.as_ref());
}
