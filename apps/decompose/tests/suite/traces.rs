//! What commands leave: nothing of killed ones, no kernel of refused ones, words that fit their numbers.

use std::fs;
use std::path::Path;

use decompose_common::model::TtModel;
use decompose_formats::ModeOrder;
use ndarray::Array3;
use ndarray_npy::write_npy;

use crate::common::{data, decompose, names};

/// Runs a command in `folder`; returns its exit code and both outputs.
fn run(folder: &Path, words: &str) -> (i32, String) {
    let mut command = decompose(folder);
    let output = command.args(words.split_whitespace()).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), text.concat())
}

/// Runs a command, which must succeed.
fn done(folder: &Path, words: &str) -> String {
    let (code, text) = run(folder, words);
    assert_eq!(code, 0, "{words}: {text}");
    text
}

/// Writes a tensor of four entries, a model of it and a train.
fn prepare(folder: &Path) {
    fs::write(folder.join("x.tns"), "1 1 1 1\n2 2 1 2\n3 1 2 3\n1 2 2 4\n").unwrap();
    done(folder, "cp x.tns -r 1 -q -o model --max-iters 2 --no-codegen");
    done(folder, "tt x.tns --ranks 1 -q -o train --max-iters 2 --no-codegen");
    for (name, rows) in [("b.npy", 2), ("c.npy", 2)] {
        write_npy(folder.join(name), &ndarray::Array2::<f64>::ones((rows, 3))).unwrap();
    }
}

#[test]
fn what_killed_commands_have_left_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let commands = [
        "convert x.tns OUT/y.dtb",
        "convert x.tns OUT/y.csv",
        "generate uniform --dims 3,3 --nnz 4 --out OUT/g.tns",
        "predict model x.tns --out OUT/y.tns --no-codegen",
        "predict model x.tns --out OUT/y.npy --no-codegen",
        "eval model x.tns --residuals OUT/r.tns --no-codegen",
        "einsum ijk,jr,kr->ir --tensor X=x.tns --tensor A=b.npy --tensor B=c.npy --out OUT/e.npy --no-codegen",
        "plot model --out OUT",
        "plot model --components 1 --out OUT",
        "tt train --info --out OUT",
        "tt train --round --ranks 1 --out OUT",
        "schedule mttkrp:3:1 --rank 4 --extents i=9,j=9,k=9 --nnz 20 --plot OUT/nest",
    ];
    for (number, words) in commands.iter().enumerate() {
        let out = format!("out{number}");
        let folder = dir.path().join(&out);
        fs::create_dir(&folder).unwrap();
        for name in [".decompose-dead.part", ".decompose-dead.part.png"] {
            fs::write(folder.join(name), "half").unwrap();
        }
        done(dir.path(), &words.replace("OUT", &out));
        let left = names(&folder);
        assert!(
            !left.is_empty() && left.iter().all(|name| !name.starts_with('.')),
            "{words}: {left:?}"
        );
    }
}

#[test]
fn figures_replace_figures_alone() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    let before = names(&dir.path().join("model"));
    let (code, text) = run(dir.path(), "plot model --out model");
    assert!(code == 2 && text.contains("--overwrite"), "{text}");
    let old = fs::read(dir.path().join("model/convergence.svg")).unwrap();
    let text = done(dir.path(), "plot model train --out model --overwrite");
    assert!(text.contains("model/convergence.svg"), "{text}");
    assert_eq!(names(&dir.path().join("model")), before);
    assert!(fs::read(dir.path().join("model/convergence.svg")).unwrap() != old);
    // A figure that cannot be drawn leaves those of before.
    let (code, _) = run(dir.path(), "plot model --metric nothing --out model --overwrite");
    assert_eq!((code, names(&dir.path().join("model"))), (2, before));
    assert!(names(dir.path()).iter().all(|name| !name.starts_with('.')));
}

#[test]
fn trains_of_any_size_are_told_and_rounded() {
    let dir = tempfile::tempdir().unwrap();
    let core = |shape, size: f64| {
        Array3::from_shape_fn(shape, |(a, i, b): (usize, usize, usize)| {
            size * (1.0 + a as f64 + 2.0 * (i * i) as f64 - 3.0 * (i * b) as f64)
        })
    };
    let mut told = Vec::new();
    for (name, size) in [("one", 1.0), ("large", 1e200), ("small", 1e-200)] {
        let cores = vec![core((1, 3, 2), size), core((2, 4, 2), 1.0), core((2, 3, 1), 1.0)];
        fs::create_dir(dir.path().join(name)).unwrap();
        let model = TtModel::new(cores, ModeOrder::natural(3)).unwrap();
        model.write(&dir.path().join(name)).unwrap();
        let text = done(dir.path(), &format!("tt {name} --info"));
        let numbers: Vec<f64> = text
            .lines()
            .filter(|line| line.starts_with("norm") || line.starts_with("bond"))
            .flat_map(|line| line.split_whitespace().filter(|word| word.contains('e')))
            .filter_map(|word| Some(word.parse::<f64>().ok()? / size))
            .collect();
        assert_eq!(numbers.len(), 5, "{text}");
        let rounded = done(dir.path(), &format!("tt {name} --round --eps 0.05 --out {name}-round"));
        let error = rounded.lines().find(|line| line.starts_with("error")).unwrap().to_owned();
        let ranks = rounded.lines().find(|line| line.starts_with("ranks")).unwrap().to_owned();
        let norm = done(dir.path(), &format!("tt {name}-round --info"));
        let norm = norm.lines().find(|line| line.starts_with("norm")).unwrap().to_owned();
        let norm = norm.split_whitespace().last().unwrap().parse::<f64>().unwrap() / size;
        told.push((numbers, norm, error, ranks));
    }
    let (numbers, norm, error, ranks) = &told[0];
    assert!(numbers.iter().all(|number| *number > 0.0));
    for other in &told[1..] {
        let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-3;
        assert!(other.0.iter().zip(numbers).all(|(a, b)| close(*a, *b)), "{other:?} {numbers:?}");
        assert!(close(other.1, *norm), "{other:?}");
        assert_eq!((&other.2, &other.3), (error, ranks));
    }
}

#[test]
fn one_is_singular() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("one.tns"), "1 1 1\n").unwrap();
    fs::write(dir.path().join("two.tns"), "# a table\n1 1 1\n2 2 1\n1 1 1\n").unwrap();
    fs::write(dir.path().join("log.csv"), "user,item\na,b\n").unwrap();
    fs::write(dir.path().join("val.tns"), "1 1 1\n").unwrap();
    let commands = [
        "stats one.tns",
        "convert two.tns y.tns",
        "convert log.csv z.tns",
        "cp one.tns -r 1 --max-iters 1 --no-codegen --nowrite",
        "complete two.tns --rank 1 --val val.tns --max-iters 1 --no-codegen --nowrite",
        "complete two.tns --rank 1 --val val.tns --mask val.tns --max-iters 1 --no-codegen --nowrite",
        "rank two.tns --ranks 1 --split 1,0 --max-iters 1 --no-codegen --nowrite",
        "schedule spmv --nnz 1 --extents i=1,j=1",
        "generate uniform --dims 1,1 --nnz 1 --out g.tns",
        "einsum ij,j->i --tensor X=one.tns --tensor A=v.npy --no-codegen --out e.npy -t 1",
    ];
    write_npy(dir.path().join("v.npy"), &ndarray::arr1(&[1.0])).unwrap();
    for words in commands {
        let text = done(dir.path(), words);
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            for pair in words.windows(2).filter(|pair| pair[0].trim_matches(['(', ',']) == "1") {
                let word = pair[1].trim_end_matches([',', ';', '.', ')', ':']);
                let is_word = word.chars().all(char::is_alphabetic);
                let is_plural = word.ends_with('s') && !["s", "is", "has", "modes"].contains(&word);
                assert!(!(is_word && is_plural), "{pair:?} in `{line}`");
            }
        }
    }
}

#[test]
fn other_spellings_are_taken_or_explained() {
    let dir = tempfile::tempdir().unwrap();
    let file = data("sun-elevation.tns.gz");
    let file = file.to_str().unwrap();
    let (code, text) = run(dir.path(), &format!("cp {file} -r 1 --nonneg 1,2"));
    assert!(code == 2 && text.contains("write --nonneg=1,2"), "{text}");
    done(dir.path(), &format!("cp {file} -r 1 --max-iters 1 -q --no-codegen --output there"));
    assert!(dir.path().join("there/model.npz").is_file());
}

#[test]
fn what_is_refused_is_refused_before_a_kernel_is_compiled() {
    let dir = tempfile::tempdir().unwrap();
    prepare(dir.path());
    fs::write(dir.path().join("wide.tns"), "9 9 9 1\n").unwrap();
    fs::write(dir.path().join("flat.tns"), "1 1 1\n2 2 -1\n").unwrap();
    let saving = "-q --max-iters 2 --no-codegen --checkpoint-every 1";
    done(dir.path(), &format!("cp x.tns -r 2 -o saved {saving}"));
    done(dir.path(), "tucker x.tns --ranks 1 -q -o tucker --max-iters 2 --no-codegen");
    done(dir.path(), &format!("tucker x.tns --ranks 1 -o tucker-saved {saving}"));
    done(dir.path(), &format!("tt x.tns --ranks 1 -o train-saved {saving}"));
    let commands = [
        "cp x.tns -r 2 --dimorder 1,1,2",
        "cp x.tns -r 2 --dimorder 1,2",
        "cp x.tns -r 2 --nonneg=4",
        "cp x.tns -r 2 --trees 1-2",
        "cp x.tns -r 2 --plan 1+9",
        "cp x.tns -r 2 --init train",
        "cp x.tns -r 2 --init model",
        "cp x.tns -r 3 --resume saved",
        "cp x.tns -r 2 -o model",
        "tucker x.tns --ranks 9",
        "tucker x.tns --ranks 2,2",
        "tucker x.tns --ranks 2 --init model",
        "tucker x.tns --ranks 2 --init tucker",
        "tucker x.tns --ranks 2 --resume tucker-saved",
        "tt x.tns --ranks 2 --init train",
        "tt x.tns --ranks 2 --resume train-saved",
        "tucker x.tns --ranks 2 --trees 1-2",
        "tt x.tns --ranks 2,2,2",
        "tt x.tns --ranks 2 --order 1,2",
        "tt x.tns --ranks 2 --init model",
        "complete x.tns --rank 2 --time-mode 9 --split-by time",
        "complete flat.tns --rank 1 --loss poisson --split 1,0",
        "complete flat.tns --rank 1 --loss bernoulli --split 1,0",
        "complete flat.tns --rank 1 --test wide.tns",
        "complete x.tns --rank 1 --reg 1,2,3,4,5",
        "complete x.tns --model tucker --ranks 2,2",
        "complete x.tns --rank 1 --resume saved",
        "rank x.tns --ranks 1:2 --method cp --test wide.tns",
        "rank flat.tns --ranks 1:2 --loss poisson --split 1,0",
        "predict model wide.tns --out p.tns",
        "predict model flat.tns --out p.what",
        "eval model wide.tns",
        "eval model flat.tns",
        "einsum ijk,jr,kr->ir --tensor X=x.tns --tensor A=b.npy --tensor B=v.npy --out e.npy",
        "einsum ijk,jr,kr->ir --tensor X=x.tns --tensor A=b.npy --tensor B=c.npy --out e.what",
        "einsum ijk,jr,kr->ir --tensor X=x.tns --tensor A=b.npy --tensor B=c.npy",
        "schedule ijk,jr,kr->ir --tensor X=x.tns --rank 4 --tree 1-2 --measure",
        "schedule ijk,jr,kr->ir --tensor X=x.tns --rank 4 --measure --plot nest",
        "plot model --metric nothing --out p",
        "bench x.tns --peer none.csv --out p",
        "bench none.tns --out p",
    ];
    write_npy(dir.path().join("v.npy"), &ndarray::Array2::<f64>::ones((2, 5))).unwrap();
    fs::write(dir.path().join("nest.svg"), "mine").unwrap();
    for words in commands {
        let cache = tempfile::tempdir().unwrap();
        let mut command = decompose(dir.path());
        command.env("DECOMPOSE_CACHE", cache.path()).args(words.split_whitespace());
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {text}");
        let mut built = Vec::new();
        let mut folders = vec![cache.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path if path.extension().is_some_and(|e| e == "so" || e == "c") => {
                        built.push(path)
                    }
                    _ => {}
                }
            }
        }
        assert!(built.is_empty(), "{words}: {built:?}: {text}");
    }
}
