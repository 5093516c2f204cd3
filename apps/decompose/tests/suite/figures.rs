//! Figures beside results: they never cost a run, and can be left out.

use std::fs;
use std::path::Path;

use decompose_common::model::{self, CpModel, ModelFormat};
use decompose_formats::Matrix;

use crate::common::{cp, data, decompose, json, names};

/// Runs a command that must succeed; returns what it says on standard error.
fn run(folder: &Path, words: &str) -> String {
    let output = decompose(folder).args(words.split_whitespace()).assert().success();
    String::from_utf8(output.get_output().stderr.clone()).unwrap()
}

/// Writes a tensor of 4 x 3 x 2 cells, each `value`.
fn constant(path: &Path, value: f64) {
    let cells = (0..24).map(|cell| (cell / 6 + 1, cell / 2 % 3 + 1, cell % 2 + 1));
    let lines: Vec<String> = cells.map(|(i, j, k)| format!("{i} {j} {k} {value}\n")).collect();
    fs::write(path, lines.concat()).unwrap();
}

#[test]
fn a_figure_with_nothing_to_show_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    constant(&dir.path().join("negative.tns"), -1.0);
    // No nonnegative model is better than none: its core is zero.
    let stderr = run(dir.path(), "tucker --nonneg --ranks 1,1,1 negative.tns --out run");
    let folder = dir.path().join("run");
    let warnings = json(&folder.join("run.json"))["warnings"].clone();
    let missing = "the figure `spectra` is left out: ";
    assert!(stderr.contains(&format!("warning: {missing}")), "{stderr}");
    let mut told = warnings.as_array().unwrap().iter().filter_map(|warning| warning.as_str());
    assert!(told.any(|warning| warning.starts_with(missing)), "{warnings}");
    assert!(!folder.join("spectra.svg").exists());
    for name in ["model.npz", "spectra.csv", "convergence.svg", "timing.svg"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    constant(&dir.path().join("ones.tns"), 1.0);
    run(dir.path(), "rank --ranks 1,2 ones.tns --reg 0 --out ranks");
    assert!(dir.path().join("ranks/run.json").is_file());
}

#[test]
fn figures_are_chosen_by_format_or_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let sun = "sun-elevation.tns.gz";
    cp(dir.path(), sun, "-r 1 -i 1 --out none --no-plots");
    let results = ["components.csv", "history.csv", "model.npz", "run.json"];
    assert_eq!(names(&dir.path().join("none")), results);
    cp(dir.path(), sun, "-r 1 -i 1 --out svg --plot-format svg");
    let mut expected: Vec<String> = results.map(str::to_owned).to_vec();
    expected.extend(["components.svg", "convergence.svg", "timing.svg"].map(str::to_owned));
    expected.sort();
    assert_eq!(names(&dir.path().join("svg")), expected);
    let mut wrong = decompose(dir.path());
    wrong.args(["cp", "-r", "1", "x.tns", "--plot-format", "pdf"]).assert().code(2);
}

#[test]
fn the_figure_of_phases_has_the_writing() {
    let dir = tempfile::tempdir().unwrap();
    cp(dir.path(), "sun-elevation.tns.gz", "-r 1 -i 2 --out run");
    let figure = fs::read_to_string(dir.path().join("run/timing.svg")).unwrap();
    let phases = json(&dir.path().join("run/run.json"))["phases"].clone();
    let names: Vec<&str> =
        phases.as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names.last(), Some(&"write"));
    for name in names {
        assert!(figure.contains(&format!("\n{name}\n")), "{name}");
    }
}

#[test]
fn every_solver_draws_components() {
    let dir = tempfile::tempdir().unwrap();
    let sun = data("sun-elevation.tns.gz");
    let runs = [
        ("tucker --ranks 2,3,3 -i 2", "columns of the factors"),
        ("tt --ranks 2,2 --method als -i 2", "leading singular vectors of the train"),
        ("complete --rank 2 -i 3", "2 components, strongest first"),
        ("complete --model tt --ranks 2,2 -i 2", "leading singular vectors of the train"),
    ];
    for (at, (words, note)) in runs.iter().enumerate() {
        let out = format!("run{at}");
        run(dir.path(), &format!("{words} {} --out {out} --plot-format svg", sun.display()));
        let figure = fs::read_to_string(dir.path().join(out).join("components.svg")).unwrap();
        // Latitudes are numbers: the ends of their axis are named.
        for word in [note, "latitude", "−90", "90", "23.5 h"] {
            assert!(
                figure.contains(word) || figure.contains(&word.replace('−', "-")),
                "{words}: {word}"
            );
        }
    }
}

#[test]
fn components_of_a_model_are_drawn_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    cp(dir.path(), "tz-transitions.tns.gz", "-r 45 -i 1 --out run --no-plots");
    let plot = |options: &str| {
        let mut command = decompose(dir.path());
        command.arg("plot").args(options.split_whitespace()).arg("--overwrite");
        command
    };
    let figure =
        |stem: &str| fs::read_to_string(dir.path().join(format!("out/{stem}.svg"))).unwrap();
    plot("run --components 3 --out out").assert().success();
    assert!(figure("components").contains("the strongest 3 of 45 components"));
    // Names of zones are listed, years are not.
    assert!(figure("components").contains("1916") && figure("components").contains("zone"));
    plot("run/model.npz --components 2 --sort number --bars 2 --out out").assert().success();
    assert!(figure("components").contains("1 to 2 of 45 components"));
    plot("run --components all --plot-format svg --out pages").assert().success();
    assert_eq!(names(&dir.path().join("pages")), ["components-1.svg", "components-2.svg"]);
    let refused = plot("run --components 2 --lines 5 --out out").assert().code(2);
    let stderr = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(stderr.contains("there is no mode 5: the model has 4"), "{stderr}");
}

#[test]
fn dead_components_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let factor = || {
        let mut factor = Matrix::zeros(3, 2).unwrap();
        factor.view_mut().fill(1.0);
        factor
    };
    let factors = vec![factor(), factor()];
    let model = CpModel::<f64>::new(vec![3.0, 0.0], factors).unwrap();
    model::write(&model, dir.path(), ModelFormat::Npz).unwrap();
    run(dir.path(), "plot model.npz --components all --out out");
    let figure = fs::read_to_string(dir.path().join("out/components.svg")).unwrap();
    assert!(figure.contains("1 of weight 0 left out") && !figure.contains("λ = 0"));
}

#[test]
fn runs_that_cannot_be_compared_share_no_axis() {
    let dir = tempfile::tempdir().unwrap();
    let quick = "-i 2 --no-plots";
    cp(dir.path(), "sun-elevation.tns.gz", &format!("-r 1 {quick} --out sun"));
    cp(dir.path(), "sun-elevation.tns.gz", &format!("-r 2 {quick} --out sun2"));
    cp(dir.path(), "tz-transitions.tns.gz", &format!("-r 1 {quick} --out tz"));
    for (out, seed) in [("half", 1), ("other", 2)] {
        let sun = data("sun-elevation.tns.gz");
        let words = format!("complete --rank 1 {quick} --seed {seed} --out {out}");
        run(dir.path(), &format!("{words} {}", sun.display()));
    }
    let drawn = |words: &str| {
        run(dir.path(), &format!("plot {words} --plot-format svg --overwrite --out plot"));
        let text = |name: &String| fs::read_to_string(dir.path().join("plot").join(name)).unwrap();
        let names = names(&dir.path().join("plot"));
        let figures = names.iter().filter(|name| name.starts_with("conv")).map(text).collect();
        fs::remove_dir_all(dir.path().join("plot")).unwrap();
        let figures: Vec<String> = figures;
        figures
    };
    let figures = drawn("sun sun2 tz half other");
    // The completions differ by the seed alone: they are drawn as one, too.
    assert_eq!(figures.len(), 4);
    let with = |words: &[&str]| {
        figures.iter().filter(|figure| words.iter().all(|word| figure.contains(word))).count()
    };
    assert_eq!([with(&["\nsun\n", "\nsun2\n"]), with(&["\ntz\n", "\nsun\n"])], [1, 0]);
    assert_eq!(with(&["test RMSE", "half", "other"]), 1);
    // By an option, each of its values has a figure.
    assert_eq!(drawn("sun sun2 --by rank").len(), 2);
    assert!(drawn("half other --metric train_mae")[0].contains("train MAE"));
    let mut wrong = decompose(dir.path());
    let refused = wrong.args(["plot", "sun", "half", "--metric", "test_rmse"]).assert().code(2);
    let stderr = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    for words in ["has no column `test_rmse`", "it has restart, iteration, fit"] {
        assert!(stderr.contains(words), "{stderr}");
    }
}

#[test]
fn labels_of_any_script_and_length_are_drawn() {
    let dir = tempfile::tempdir().unwrap();
    constant(&dir.path().join("x.tns"), 1.0);
    fs::create_dir(dir.path().join("x")).unwrap();
    let long = "長い".repeat(25_000);
    let labels = format!("東京\na\u{1b}[31m\u{0}b\n{long}\nИркутск\n");
    fs::write(dir.path().join("x/mode-1-city.map"), labels).unwrap();
    run(dir.path(), "cp -r 1 -i 1 x.tns --out run");
    let figure = fs::read_to_string(dir.path().join("run/components.svg")).unwrap();
    for word in ["東京", "a[31mb", "Иркутск", "長い"] {
        assert!(figure.contains(word), "{word}");
    }
    assert!(figure.len() < 60_000 && !figure.contains(['\u{1b}', '\u{0}']));
}

#[test]
fn spectra_of_a_tucker_model_are_those_of_the_unfoldings() {
    let dir = tempfile::tempdir().unwrap();
    // A sum of two outer products of unit vectors, 3 and 2: each unfolding has these singular values.
    fs::write(dir.path().join("x.tns"), "1 1 1 3\n2 2 2 2\n3 3 3 0\n").unwrap();
    run(dir.path(), "tucker --ranks 1,1,1 x.tns --out run");
    let table = fs::read_to_string(dir.path().join("run/spectra.csv")).unwrap();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0], ["mode", "number", "singular_value", "unfolding"]);
    let unfolding: Vec<f64> = lines[1..]
        .iter()
        .filter(|line| line[0] == "2")
        .map(|line| line[3].parse().unwrap())
        .collect();
    for (found, exact) in unfolding.iter().zip([3.0, 2.0, 0.0]) {
        assert!((found - exact).abs() < 1e-7, "{table}");
    }
    let figure = fs::read_to_string(dir.path().join("run/spectra.svg")).unwrap();
    // 4 of 13 squares are beyond rank 1.
    for word in ["singular value of the unfolding", "rank 1 of 3, 31 % of squares beyond"] {
        assert!(figure.contains(word), "{word}");
    }
}

#[test]
fn predictions_of_zeros_and_ones_are_judged_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let cells = (0..400).map(|cell| (cell / 20 + 1, cell % 20 + 1));
    let lines: Vec<String> =
        cells.map(|(i, j)| format!("{i} {j} {}\n", u8::from((i * j) % 5 < 2))).collect();
    fs::write(dir.path().join("x.tns"), lines.concat()).unwrap();
    let quick = "-i 5 --plot-format svg --split 0.6,0.2,0.2";
    run(dir.path(), &format!("complete --rank 2 --loss bernoulli x.tns {quick} --out run"));
    let figure = fs::read_to_string(dir.path().join("run/predictions.svg")).unwrap();
    for word in ["RMSE", "area under the curve", "share of ones", "ones predicted above"] {
        assert!(figure.contains(word), "{word}");
    }
}

#[test]
fn runs_of_several_seeds_and_ranks_are_laid_over_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut runs = Vec::new();
    for rank in [1, 2, 3] {
        for seed in [1, 2, 3] {
            let out = format!("r{rank}s{seed}");
            let options = format!("-r {rank} -i 6 --tol 0 --seed {seed} --no-plots --out {out}");
            cp(dir.path(), "tz-transitions.tns.gz", &options);
            runs.push(out);
        }
    }
    run(dir.path(), &format!("plot {} --out all --plot-format svg", runs.join(" ")));
    let folder = dir.path().join("all");
    let expected = [
        "convergence-tz-transitions.svg",
        "convergence.svg",
        "fit-by-rank-tz-transitions.svg",
        "time-by-rank-tz-transitions.svg",
        "timing.svg",
    ];
    assert_eq!(names(&folder), expected);
    let figure = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let bands = figure("convergence-tz-transitions.svg");
    for word in ["rank 1", "rank 2", "rank 3", "lines are medians, bands lie between the quartiles"]
    {
        assert!(bands.contains(word), "{word}");
    }
    assert!(!bands.contains("seed"));
    // Of one seed there are no bands; runs that another option tells apart have figures of their own.
    run(dir.path(), "plot r1s1 r2s1 --out ranks --plot-format png");
    let ranks = names(&dir.path().join("ranks"));
    assert!(!ranks.contains(&"convergence-tz-transitions.png".to_owned()), "{ranks:?}");
    assert!(ranks.contains(&"fit-by-rank-tz-transitions.png".to_owned()), "{ranks:?}");
    run(dir.path(), "plot r1s1 r1s2 r2s1 --by rank --out by --plot-format svg");
    let by = names(&dir.path().join("by"));
    assert!(by.contains(&"convergence-tz-transitions-rank-1.svg".to_owned()), "{by:?}");
    // Another column is compared run by run.
    run(dir.path(), "plot r1s1 r1s2 --metric change --out metric --plot-format svg");
    assert_eq!(names(&dir.path().join("metric")), ["convergence.svg", "timing.svg"]);
}
