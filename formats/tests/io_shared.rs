//! Reads the shared collection of tensors and compares extents and counts with its records.

use std::path::Path;
use std::path::PathBuf;

use decompose_formats::io;
use decompose_formats::io::Progress;
use decompose_formats::io::ReadOptions;
use decompose_formats::io::Source;

fn folders(set: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(set);
    let Ok(entries) = std::fs::read_dir(&root) else {
        eprintln!("skipped: {} is absent", root.display());
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("readable entry").path());
    let mut folders: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// Returns the number behind `"key":` in a flat JSON file.
fn number(json: &str, key: &str) -> f64 {
    let (_, rest) = json.split_once(&format!("\"{key}\":")).expect("the key");
    let end = rest.find([',', '\n', '}']).expect("an end");
    rest[..end].trim().parse().expect("a number")
}

fn check(folder: &Path) {
    let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
    let path = folder.join(format!("{name}.tns.gz"));
    let text = std::fs::read_to_string(folder.join(format!("{name}.dims"))).expect("extents");
    let extents: Vec<u64> =
        text.split_whitespace().map(|field| field.parse().expect("an extent")).collect();
    let json = std::fs::read_to_string(folder.join(format!("{name}.json"))).expect("a record");

    let options = ReadOptions { extents: Some(extents.clone()), ..ReadOptions::default() };
    let progress = Progress::new();
    let (coo, report) = io::read::<f64>(&Source::new(&path), &options, &progress).expect(&name);
    assert_eq!(coo.extents(), extents, "{name}");
    assert_eq!(coo.nnz() as f64, number(&json, "stored"), "{name}");
    assert_eq!(report.bytes as f64, number(&json, "tns_bytes"), "{name}");
    assert_eq!(progress.done(), progress.total(), "{name}");
    let norm = coo.values().iter().map(|value| value * value).sum::<f64>().sqrt();
    let want = number(&json, "frobenius_norm");
    assert!((norm - want).abs() <= 1e-12 * want, "{name}: norm {norm}, recorded {want}");
}

#[test]
fn the_tensors_made_for_this_project_read_as_recorded() {
    folders("own").iter().for_each(|folder| check(folder));
}

#[test]
fn the_public_tensors_read_as_recorded() {
    folders("real").iter().for_each(|folder| check(folder));
}
