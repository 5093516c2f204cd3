//! From text to a tree: a million non-zeros with nell-2's extents, skewed as it is.

use std::io::Write;
use std::sync::LazyLock;

use decompose_formats::io::{
    self, Base, Dialect, Overwrite, Progress, ReadOptions, Source, WriteOptions,
};
use decompose_formats::synth::{Pattern, SynthConfig, Values, generate};
use decompose_formats::{Coo, Csf, Ints, ModeOrder};
use divan::Bencher;
use divan::counter::BytesCount;

static TENSOR: LazyLock<Coo<f64>> = LazyLock::new(|| {
    let config = SynthConfig {
        extents: vec![12_092, 9_184, 28_818],
        nnz: 1_000_000,
        pattern: Pattern::PowerLaw(vec![1.0, 1.1, 0.9]),
        values: Values::Uniform { low: 0.05, high: 3.05 },
        seed: 101,
    };
    generate(&config).expect("fits")
});

fn main() {
    divan::main();
}

/// Reads the tensor from a file with this ending; the file stays in the system's cache.
#[divan::bench(args = [".tns", ".tns.gz", ".dtb"])]
fn read(bencher: Bencher, ending: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("x{ending}"));
    let dialect = Dialect::ExtendedFrostt;
    let options = WriteOptions { overwrite: Overwrite::Refuse, dialect, base: Base::One };
    io::write(&*TENSOR, &path, &options).expect("written");
    let bytes = std::fs::metadata(&path).expect("there").len();
    let source = Source::new(&path);
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        io::read::<f64>(&source, &ReadOptions::default(), &Progress::new()).expect("a tensor")
    });
}

/// Parses text that is not sorted.
#[divan::bench]
fn read_shuffled(bencher: Bencher) {
    let coo = shuffled();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.tns");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).expect("made"));
    for at in 0..coo.nnz() {
        for column in 0..3 {
            write!(file, "{} ", coo.coords(column).get(at) + 1).expect("written");
        }
        writeln!(file, "{}", coo.values()[at]).expect("written");
    }
    drop(file);
    let bytes = std::fs::metadata(&path).expect("there").len();
    let source = Source::new(&path);
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        io::read::<f64>(&source, &ReadOptions::default(), &Progress::new()).expect("a tensor")
    });
}

#[divan::bench]
fn sort(bencher: Bencher) {
    let coo = shuffled();
    let inputs = bencher.with_inputs(|| coo.clone());
    inputs.bench_values(|mut coo| coo.sort(&ModeOrder::natural(3)).map(|()| coo));
}

/// Turns a sorted list into a tree with 1 to 2 fused levels.
#[divan::bench(args = [1, 2])]
fn tree(bencher: Bencher, fused: usize) {
    let inputs = bencher.with_inputs(|| TENSOR.clone());
    inputs.bench_values(|coo| Csf::build(coo, &ModeOrder::natural(3)).map(|csf| csf.fuse(fused)));
}

/// The entries in random order.
fn shuffled() -> Coo<f64> {
    let (extents, coords, values) = TENSOR.clone().into_parts();
    let mut positions: Vec<usize> = (0..values.len()).collect();
    positions.sort_by_key(|&at| decompose_formats::mix::mix(at as u64));
    let take = |ints: &Ints| -> Ints {
        positions.iter().map(|&at| ints.get(at) as u32).collect::<Vec<_>>().into()
    };
    let values: Vec<f64> = positions.iter().map(|&at| values[at]).collect();
    Coo::new(extents, coords.iter().map(take).collect(), values).expect("in range")
}
