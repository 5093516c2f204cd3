//! The binary form and NumPy arrays: damage is found, arrays are used in place.

use std::path::Path;

use decompose_formats::Coo;
use decompose_formats::FormatError;
use decompose_formats::Ints;
use decompose_formats::ModeOrder;
use decompose_formats::Value;
use decompose_formats::Width;
use decompose_formats::io;
use decompose_formats::io::Progress;
use decompose_formats::io::ReadOptions;
use decompose_formats::io::Source;
use decompose_formats::io::WriteOptions;

fn read<V: Value>(path: &Path) -> Result<(Coo<V>, io::ReadReport), FormatError> {
    io::read(&Source::new(path), &ReadOptions::default(), &Progress::new())
}

fn sample() -> Coo<f64> {
    let text: String =
        (1..400).map(|i| format!("{} {} {} {i}.5\n", i % 9 + 1, i, i % 5 + 1)).collect();
    io::read_bytes(text.as_bytes(), &ReadOptions::default()).expect("a tensor").0
}

fn bytes_of<V: Value>(coo: &Coo<V>) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.dtb");
    io::write(coo, &path, &WriteOptions::default()).expect("written");
    std::fs::read(&path).expect("read")
}

/// Puts a right checksum under damaged bytes.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 32;
    let hash = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(hash.as_bytes());
    bytes
}

fn refused(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.dtb");
    std::fs::write(&path, bytes).expect("written");
    let mapped = read::<f64>(&path).expect_err("damage");
    let options = ReadOptions { format: Some(io::Format::Dtb), ..ReadOptions::default() };
    let copied = io::read_bytes::<f64>(bytes, &options).expect_err("damage");
    let name = path.display().to_string();
    assert_eq!(mapped.to_string().replace(&name, "memory"), copied.to_string());
    copied.to_string()
}

#[test]
fn narrow_columns_are_written_with_four_bytes() {
    let columns = |width| {
        let column = |step: u64| Ints::collect((0..9).map(|at| at * step), width);
        Coo::new(vec![9, 1 << 16], vec![column(1), column(8000)], vec![1.5; 9]).expect("in range")
    };
    let bytes = bytes_of(&columns(Width::W16));
    assert_eq!(bytes, bytes_of(&columns(Width::W32)));
    let (again, _) = io::read_bytes::<f64>(&bytes, &ReadOptions::default()).expect("read");
    assert_eq!(again, columns(Width::W16));
    assert_eq!(again.coords(1).width(), Width::W32);
}

#[test]
fn the_order_of_sorting_is_kept_and_checked() {
    let mut coo = sample();
    let order = ModeOrder::new(vec![2, 0, 1]).expect("an order");
    coo.sort(&order).expect("sorted");
    let bytes = bytes_of(&coo);
    let (again, report) = io::read_bytes::<f64>(&bytes, &ReadOptions::default()).expect("read");
    assert_eq!(again, coo);
    assert_eq!(again.sorted_by(), Some(&order));
    assert_eq!(report.sorted_by, Some(order));
    // The levels of modes 1 and 2 exchanged: a claim that the entries do not bear out.
    let mut lying = bytes.clone();
    (lying[40 + 12], lying[56 + 12], lying[72 + 12]) = (1, 0, 2);
    assert!(refused(&signed(lying)).contains("not sorted by modes 2-1-3"));
    let mut no_order = bytes;
    no_order[40 + 12] = 7;
    assert!(refused(&signed(no_order)).contains("mode order"));
}

#[test]
fn damage_is_found() {
    let bytes = bytes_of(&sample());
    for cut in [1, 8, 11, 30, 39, 50, 64, bytes.len() / 2, bytes.len() - 1] {
        let message = refused(&bytes[..cut]);
        assert!(message.contains("damaged .dtb"), "cut to {cut}: {message}");
    }
    assert!(refused(&[bytes.as_slice(), b"x"].concat()).contains("bytes but has"));
    for at in (0..bytes.len()).step_by(97) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x40;
        refused(&flipped);
    }
    let edit = |at: usize, to: u8| {
        let mut edited = bytes.clone();
        edited[at] = to;
        signed(edited)
    };
    assert!(refused(&edit(0, b'D')).contains("does not begin as a .dtb file"));
    assert!(refused(&edit(8, 2)).contains(".dtb version 2, but this program knows up to 1"));
    assert!(refused(&edit(8, 0)).contains("makes no sense"));
    assert!(refused(&edit(12, 0)).contains("makes no sense"));
    assert!(refused(&edit(15, 0xff)).contains("ends within the header"));
    assert!(refused(&edit(16, 5)).contains("makes no sense"));
    assert!(refused(&edit(20, 2)).contains("makes no sense"));
    assert!(refused(&edit(24, 1)).contains("do not fit its size"));
    assert!(refused(&edit(31, 0xff)).contains("do not fit its size"));
    assert!(refused(&edit(40, 3)).contains("index 9 in mode 1 of extent 3"));
    assert!(refused(&edit(47, 0xff)).contains("beyond 2^63"));
    assert!(refused(&edit(48, 3)).contains("neither 4 nor 8"));
}

#[test]
fn values_must_be_finite() {
    let values = vec![1.0, f64::NAN];
    let coo = Coo::new(vec![2, 2], vec![vec![0u32, 1].into(), vec![1u32, 1].into()], values);
    let message = refused(&bytes_of(&coo.expect("a tensor")));
    assert!(message.contains("the value at (2, 2) is NaN"), "{message}");
}

#[test]
fn values_convert_between_precisions() {
    let wide = sample();
    let (narrow, _) =
        io::read_bytes::<f32>(&bytes_of(&wide), &ReadOptions::default()).expect("as f32");
    assert_eq!(narrow.values()[7], wide.values()[7] as f32);
    let (again, _) =
        io::read_bytes::<f64>(&bytes_of(&narrow), &ReadOptions::default()).expect("as f64");
    assert_eq!(again, wide);
}

#[test]
fn the_hash_of_a_file_names_its_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    std::fs::write(&path, "abc").expect("written");
    let hash = io::file_hash(&path).expect("a hash");
    assert_eq!(hash, blake3::hash(b"abc").to_hex().to_string());
    assert!(io::file_hash(&folder.path().join("none")).is_err());
}

/// Makes a `.npy` file of format version 1.
fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

/// Coordinates and value of each entry.
type Entries = Vec<(Vec<u64>, f64)>;

fn entries(coo: &Coo<f64>) -> Entries {
    let at = |entry| (0..coo.order()).map(|mode| coo.coords(mode).get(entry)).collect();
    (0..coo.nnz()).map(|entry| (at(entry), coo.values()[entry])).collect()
}

#[test]
fn dense_arrays_lose_their_zeros() {
    let doubles: Vec<u8> =
        [0.0f64, 1.5, 0.0, -2.0, 0.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let rows = npy("<f8", "False", "(2, 3)", &doubles);
    let columns = npy("<f8", "True", "(3, 2)", &doubles);
    let bytes = npy("|u1", "False", "(4,)", &[0, 7, 0, 9]);
    // 1, -2, 0 and 65504 in half precision.
    let halves: Vec<u8> =
        [0x3c00u16, 0xc000, 0, 0x7bff].iter().flat_map(|x| x.to_le_bytes()).collect();
    let halves = npy("<f2", "False", "(4,)", &halves);
    let big: Vec<u8> = [0i32, -7].iter().flat_map(|x| x.to_be_bytes()).collect();
    let big = npy(">i4", "False", "(2L,)", &big);
    let truths = npy("|b1", "False", "(3, 1)", &[0, 1, 1]);
    let cases: [(Vec<u8>, &[u64], Entries); 6] = [
        (halves, &[4], vec![(vec![0], 1.0), (vec![1], -2.0), (vec![3], 65504.0)]),
        (big, &[2], vec![(vec![1], -7.0)]),
        (truths, &[3, 1], vec![(vec![1, 0], 1.0), (vec![2, 0], 1.0)]),
        (rows, &[2, 3], vec![(vec![0, 1], 1.5), (vec![1, 0], -2.0), (vec![1, 2], 3.0)]),
        (columns, &[3, 2], vec![(vec![0, 1], -2.0), (vec![1, 0], 1.5), (vec![2, 1], 3.0)]),
        (bytes, &[4], vec![(vec![1], 7.0), (vec![3], 9.0)]),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for (file, extents, want) in cases {
        let path = folder.path().join("x.npy");
        std::fs::write(&path, &file).expect("written");
        let (mapped, _) = read::<f64>(&path).expect("read");
        assert_eq!((mapped.extents(), entries(&mapped)), (extents, want.clone()));
        // One byte further on, nothing is aligned.
        let shifted = [b"x".as_slice(), &file].concat();
        let (copied, _) =
            io::read_bytes::<f64>(&shifted[1..], &ReadOptions::default()).expect("read");
        assert_eq!(entries(&copied), want);
    }
}

#[test]
fn a_nan_of_an_array_may_stand_for_what_is_unknown() {
    let numbers = [0.0f64, 1.5, f64::NAN, -2.0, f64::NAN, 3.0];
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let options = ReadOptions { missing: io::Missing::Nan, ..ReadOptions::default() };
    let rows = npy("<f8", "False", "(2, 3)", &bytes);
    let (coo, report) = io::read_bytes::<f64>(&rows, &options).expect("four are known");
    let want = vec![(vec![0, 0], 0.0), (vec![0, 1], 1.5), (vec![1, 0], -2.0), (vec![1, 2], 3.0)];
    assert_eq!((entries(&coo), report.missing), (want, 2));
    let columns = npy("<f8", "True", "(2, 3)", &bytes);
    let (coo, _) = io::read_bytes::<f64>(&columns, &options).expect("four are known");
    let want = vec![(vec![0, 0], 0.0), (vec![1, 0], 1.5), (vec![1, 1], -2.0), (vec![1, 2], 3.0)];
    assert_eq!(entries(&coo), want);
    let infinite = npy("<f4", "False", "(1,)", &f32::INFINITY.to_le_bytes());
    assert!(io::read_bytes::<f64>(&infinite, &options).is_err());
}

#[test]
fn dense_arrays_are_read_within_a_limit() {
    let bytes: Vec<u8> = [1i16, -2, 3, 4, 5, 6].iter().flat_map(|x| x.to_le_bytes()).collect();
    let read = |file: &[u8], limit| io::read_dense::<f64>(&mut &*file, "x.npy", limit);
    let rows = read(&npy("<i2", "False", "(2, 3)", &bytes), 48).expect("48 bytes");
    assert_eq!((rows.shape(), rows[[0, 1]], rows[[1, 0]]), (&[2, 3][..], -2.0, 4.0));
    let columns = read(&npy("<i2", "True", "(2, 3)", &bytes), 48).expect("48 bytes");
    assert_eq!((columns[[0, 1]], columns[[1, 0]]), (3.0, -2.0));
    let message = |file: &[u8], limit| read(file, limit).expect_err("refused").to_string();
    let whole = npy("<i2", "False", "(2, 3)", &bytes);
    assert!(message(&whole, 47).contains("would take 48 B of memory but 47 B may be used"));
    assert!(message(&whole[..whole.len() - 1], 48).contains("ends too early"));
    assert!(message(&[&whole[..], b"x"].concat(), 48).contains("more behind its last element"));
    assert!(message(&npy("<i2", "False", "(17179869184, 9)", &bytes), u64::MAX).contains("early"));
}

#[test]
fn arrays_that_are_no_tensors_are_refused() {
    let options = ReadOptions { format: Some(io::Format::Npy), ..ReadOptions::default() };
    let message =
        |bytes: &[u8]| io::read_bytes::<f64>(bytes, &options).expect_err("refused").to_string();
    let nan = f64::NAN.to_le_bytes();
    assert!(message(&npy("<f8", "False", "(1, 1)", &nan)).contains("value at (1, 1) is NaN"));
    assert!(message(&npy("<f8", "False", "(2,)", &[0; 16])).contains("lists no non-zeros"));
    assert!(message(&npy("<f8", "False", "(2,)", &[0; 12])).contains("damaged .npy"));
    assert!(message(&npy("<f8", "False", "(99999999999999,)", &[])).contains("damaged .npy"));
    assert!(message(&npy("<c16", "False", "(1,)", &[0; 16])).contains("not real numbers"));
    assert!(message(&npy("|S8", "False", "(1,)", &[0; 8])).contains("not real numbers"));
    let claims = ["(17179869184, 8)", "(4294967296, 4294967296, 4294967296)", "(0, 5)"];
    for claim in claims {
        let text = message(&npy("<f8", "False", claim, &[1; 16]));
        assert!(text.contains("elements"), "{claim}: {text}");
    }
    let wide = npy("|b1", "False", &format!("({})", "1,".repeat(65)), &[1]);
    assert!(message(&wide).contains("order 65"));
    assert!(message(&npy("<f8", "False", "()", &nan)).contains("a single number"));
    assert!(message(b"1 2 3\n").contains("damaged .npy"));
}
