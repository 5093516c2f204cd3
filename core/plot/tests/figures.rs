//! Figures as users get them: two files, complete or absent, with every word in the SVG.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::fs;

use decompose_plot::{
    Bar, BarGroup, BarLook, Bars, Canvas, ComponentChoice, ComponentFactor, ComponentOrder,
    Components, Convergence, ConvergencePoint, ConvergenceRun, Curve, CurveLook, CurveMark,
    CurvePanel, Curves, Figure, Marks, ModeLook, PlotError, PlotFormat, Ratios, ScaleKind,
    ScoreMatrix, Spectra, Spectrum, Timing, TimingComponent, TimingPhase, TimingRun, render, save,
};
use ndarray::Array2;
use tempfile::tempdir;

use common::{check, names, saved};

fn convergence(fits: &[f64]) -> Convergence {
    let point = |(at, fit): (usize, &f64)| ConvergencePoint {
        iteration: at as u64 + 1,
        seconds: 0.25 * (at + 1) as f64,
        fit: *fit,
    };
    Convergence {
        title: "uber, CP-ALS, rank 4".to_owned(),
        tolerance: Some(1e-4),
        runs: vec![ConvergenceRun {
            name: "restart 1 <&>".to_owned(),
            points: fits.iter().enumerate().map(point).collect(),
            stop: "change of fit below tolerance".to_owned(),
        }],
    }
}

fn matrix(scores: Vec<Vec<f64>>) -> ScoreMatrix {
    ScoreMatrix {
        title: "Similarity of restarts".to_owned(),
        score_name: "factor match score".to_owned(),
        rows: vec!["restart 1".to_owned(), "restart 2".to_owned()],
        columns: vec!["restart 1".to_owned(), "restart 2".to_owned()],
        scores,
        range: (0.0, 1.0),
    }
}

#[test]
fn convergence_names_fit_and_reason() {
    let fits: Vec<f64> = (0..40).map(|k| 0.75 - 0.5 * 0.8_f64.powi(k)).collect();
    let words = [
        "uber, CP-ALS, rank 4",
        "restart 1 &lt;&amp;&gt;",
        "fit 0.749917",
        "40 iterations, 10.0 s: change of fit below tolerance",
        "tolerance 10⁻⁴",
        "time (s)",
    ];
    check(&convergence(&fits), &words);
    check(&convergence(&[0.5]), &["1 iteration, 250 ms", "does not change"]);
    check(&convergence(&[0.5, f64::NAN, 0.625]), &["fit 0.625000"]);
}

#[test]
fn timing_names_seconds_and_shares() {
    let figure = Timing {
        title: "nips".to_owned(),
        runs: vec![TimingRun {
            name: String::new(),
            phases: vec![
                TimingPhase { name: "read".to_owned(), seconds: 1.0 },
                TimingPhase { name: "iterate".to_owned(), seconds: 3.0 },
                TimingPhase { name: "write".to_owned(), seconds: f64::NAN },
            ],
            components: vec![
                TimingComponent { name: "MTTKRP mode 1".to_owned(), seconds: vec![0.01, 0.03] },
                TimingComponent { name: "solve".to_owned(), seconds: vec![0.005, 0.005] },
            ],
        }],
    };
    let words = ["1.00 s, 25 %", "3.00 s, 75 %", "0 s, 0 %", "20.0 ms, 80 %", "MTTKRP mode 1"];
    check(&figure, &words);
}

#[test]
fn components_list_labels_of_the_largest_entries() {
    let mut user = Array2::<f32>::zeros((5000, 12));
    user[[4321, 3]] = 0.5;
    let hour = Array2::<f32>::ones((24, 12));
    let weights: Vec<f64> = (0..12).map(|k| if k == 3 { 9.0 } else { 1.0 }).collect();
    let label = |index: usize| format!("user {index}");
    let figure = Components::from_factors(
        "uber, rank 12",
        &weights,
        &[
            ComponentFactor {
                name: "user",
                factor: user.view(),
                labels: Some(&label),
                look: ModeLook::Bars,
            },
            ComponentFactor {
                name: "hour",
                factor: hour.view(),
                labels: None,
                look: ModeLook::Plain,
            },
        ],
        &ComponentChoice::default(),
    )
    .unwrap();
    assert_eq!(figure.rows.len(), 8);
    assert_eq!((figure.rows[0].component, figure.rows[0].share), (3, 0.45));
    check(&figure, &["the strongest 8 of 12", "λ = 9.00", "45 %", "user 4321", "1 to 5000"]);
}

/// Returns the factor whose entry `(i, r)` is `i + r`.
fn ramp(extent: usize, rank: usize) -> Array2<f64> {
    Array2::from_shape_fn((extent, rank), |(i, r)| (i + r) as f64)
}

#[test]
fn components_are_chosen_by_weight_or_number_without_dead_ones() {
    let factor = ramp(4, 5);
    let factor =
        ComponentFactor { name: "user", factor: factor.view(), labels: None, look: ModeLook::Bars };
    let choose = |places, order| {
        let choice = ComponentChoice { places, order };
        Components::from_factors("x", &[0.0, 1.0, 3.0, -0.0, 2.0], &[factor], &choice).unwrap()
    };
    let numbers =
        |figure: &Components| figure.rows.iter().map(|row| row.component).collect::<Vec<_>>();
    let all = choose(0..9, ComponentOrder::Weight);
    assert_eq!(numbers(&all), [2, 4, 1]);
    assert_eq!(all.rows[0].share, 0.5);
    check(&all, &["3 components, strongest first; 2 of weight 0 left out"]);
    let first = choose(0..2, ComponentOrder::Number);
    assert_eq!(numbers(&first), [1, 2]);
    check(&first, &["1 to 2 of 3 components"]);
    let page = choose(2..4, ComponentOrder::Weight);
    assert_eq!(numbers(&page), [1]);
    check(&page, &["3 to 3 of 3 components, strongest first"]);
    let dead = Components::from_factors("x", &[0.0; 5], &[factor], &ComponentChoice::default());
    assert!(matches!(dead, Err(PlotError::Empty { .. })), "{dead:?}");
}

#[test]
fn columns_of_factors_of_different_ranks_are_shown() {
    let (wide, narrow) = (ramp(6, 3), ramp(5, 1));
    let label = |index: usize| format!("day {index}");
    let factors = [
        ComponentFactor {
            name: "day",
            factor: wide.view(),
            labels: Some(&label),
            look: ModeLook::Lines,
        },
        ComponentFactor {
            name: "user",
            factor: narrow.view(),
            labels: None,
            look: ModeLook::Plain,
        },
    ];
    let figure = Components::from_columns("x", "columns of the factors", &factors, 0..8).unwrap();
    let has: Vec<Vec<bool>> =
        figure.rows.iter().map(|row| row.profiles.iter().map(Option::is_some).collect()).collect();
    assert_eq!(has, [[true, true], [true, false], [true, false]]);
    // Of a mode with an order the ends are named, and no entries are listed.
    let words = ["columns of the factors: up to 3 of each mode", "day 0", "day 5"];
    check(&figure, &words);
    let mut canvas = Canvas::new(figure.size());
    figure.draw(&mut canvas).unwrap();
    assert!(canvas.texts().all(|text| text != "day 4"));
}

#[test]
fn modes_that_fit_no_page_side_by_side_stand_below_each_other() {
    let factor = ramp(5, 2);
    let label = |index: usize| format!("label {index}");
    let modes: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"]
        .map(|name| ComponentFactor {
            name,
            factor: factor.view(),
            labels: Some(&label),
            look: ModeLook::Bars,
        })
        .to_vec();
    let figure =
        Components::from_factors("x", &[2.0, 1.0], &modes, &ComponentChoice::default()).unwrap();
    let four = Components::from_factors("x", &[2.0, 1.0], &modes[..4], &ComponentChoice::default());
    let (wide, four) = (figure.size(), four.unwrap().size());
    assert!(wide.0 == four.0 && wide.1 > four.1 + 150, "{wide:?} {four:?}");
    check(&figure, &["a", "g", "label 4"]);
}

#[test]
fn characters_without_a_font_are_told() {
    let strange = Convergence { title: "a\u{10fffd}".to_owned(), ..convergence(&[0.5, 0.75]) };
    let missing = |formats: &[PlotFormat]| render(&strange, formats).unwrap().missing();
    assert_eq!(missing(&PlotFormat::ALL), Some('\u{10fffd}'));
    assert_eq!(missing(&[PlotFormat::Svg]), None);
    assert_eq!(render(&convergence(&[0.5]), &PlotFormat::ALL).unwrap().missing(), None);
}

#[test]
fn other_figures_have_their_words() {
    let bars = Bars {
        title: "Iteration".to_owned(),
        value_name: "time (ms)".to_owned(),
        group_name: "tensor".to_owned(),
        scale: ScaleKind::Log,
        look: BarLook::Bars,
        series: vec!["decompose".to_owned(), "bound".to_owned()],
        groups: vec![BarGroup {
            name: "nell-2".to_owned(),
            bars: vec![Some(Bar { value: 12.0, low: 11.0, high: 14.0 }), Some(Bar::exact(8.0))],
        }],
        marks: Some(Marks { name: "roofline".to_owned(), values: vec![Some(7.0)] }),
    };
    check(&bars, &["nell-2", "decompose", "bound", "roofline", "time (ms)"]);
    let marks = Some(Marks { name: String::new(), values: Vec::new() });
    let error = save(&Bars { marks, ..bars }, tempdir().unwrap().path(), "bars").unwrap_err();
    assert!(error.to_string().contains("0 marks for 1 groups"), "{error}");
    check_ratios();
    let scores = matrix(vec![vec![1.0, 0.25], vec![f64::NAN, 1.0]]);
    check(&scores, &["0.25", "–", "restart 2", "factor match score"]);
}

/// Two tensors without two optimisations, and what they cost in the mean: the root of 1.5 times 6.
fn check_ratios() {
    let group = |name: &str, values: [f64; 2]| BarGroup {
        name: name.to_owned(),
        bars: values.map(|value| Some(Bar { value, low: 0.9 * value, high: value })).to_vec(),
    };
    let ratios = Ratios {
        title: "Ablation".to_owned(),
        ratio_name: "time without, over time with".to_owned(),
        series_name: "tensor".to_owned(),
        series: vec!["nell-2".to_owned(), "uber".to_owned()],
        groups: vec![group("registers", [1.5, 6.0]), group("prefetch", [0.97, 1.0])],
    };
    let words = ["registers", "uber", "1.50×", "6.00×", "mean 3.00×", "0.97×", "1.00×"];
    check(&ratios, &words);
    let one = Ratios { series: vec!["uber".to_owned()], ..ratios.clone() };
    let error = save(&one, tempdir().unwrap().path(), "ratios").unwrap_err();
    assert!(error.to_string().contains("`registers` has 2 bars for 1 series"), "{error}");
    let none = Ratios { groups: Vec::new(), ..ratios };
    let error = save(&none, tempdir().unwrap().path(), "ratios").unwrap_err();
    assert!(error.to_string().contains("no bar has a ratio"), "{error}");
}

fn curves(points: &[(f64, f64)]) -> Curves {
    let panel = |look, mark| CurvePanel {
        x_name: "epoch".into(),
        y_name: "RMSE".into(),
        x: ScaleKind::Linear,
        y: if look == CurveLook::Line { ScaleKind::Log } else { ScaleKind::Linear },
        curves: vec![Curve {
            name: "training".into(),
            points: points.to_vec(),
            spread: vec![(1.0, (0.5, 1.5))],
            band: vec![(1.0, (0.4, 1.6)), (2.0, (0.5, 1.2))],
            look,
        }],
        levels: vec![("mean of all".into(), 2.0)],
        places: vec![("recommended".into(), 3.0)],
        x_ticks: vec![0.25, 2.75],
        mark,
    };
    let panels = vec![
        panel(CurveLook::Line, CurveMark::None),
        panel(CurveLook::Dots, CurveMark::Diagonal),
        panel(CurveLook::Bars, CurveMark::None),
    ];
    Curves {
        title: "completion".into(),
        note: "best at epoch 2".into(),
        panels,
        ..Curves::default()
    }
}

#[test]
fn curves_name_levels_and_leave_out_what_has_no_place() {
    let points = [(0.0, 3.0), (1.0, 1.0), (2.0, f64::NAN), (3.0, 0.5)];
    let words = [
        "completion",
        "best at epoch 2",
        "training",
        "mean of all (dashed)",
        "recommended (dotted)",
    ];
    check(&curves(&points), &words);
    let mut canvas = Canvas::new(curves(&points).size());
    curves(&points).draw(&mut canvas).unwrap();
    // Ticks are where they were asked for.
    assert!(canvas.texts().any(|text| text == "2.75"));
    let error = save(&curves(&[(f64::NAN, 1.0)]), tempdir().unwrap().path(), "f").unwrap_err();
    assert!(error.to_string().contains("no point has two numbers"), "{error}");
}

#[test]
fn empty_figures_are_refused_with_a_remedy() {
    #[track_caller]
    fn refuse(figure: &impl Figure, words: &str) {
        let dir = tempdir().unwrap();
        let error = save(figure, dir.path(), "figure").unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(names(dir.path()).is_empty());
    }
    refuse(&convergence(&[]), "no run has a finite fit; give");
    refuse(&convergence(&[f64::NAN]), "no run has a finite fit; give");
    refuse(&Timing::default(), "give one run");
    refuse(&Components::default(), "give one of each");
    refuse(&matrix(vec![vec![1.0]]), "1 rows of scores for 2 names");
    refuse(&matrix(vec![vec![1.0, 1.0], vec![1.0]]), "row 2 has 1 scores for 2 columns");
    refuse(&ScoreMatrix { range: (1.0, 1.0), ..matrix(vec![vec![1.0; 2]; 2]) }, "no range");
    let factor = Array2::<f64>::ones((3, 2));
    let factor = ComponentFactor {
        name: "user",
        factor: factor.view(),
        labels: None,
        look: ModeLook::Plain,
    };
    let error =
        Components::from_factors("wrong", &[1.0; 5], &[factor], &ComponentChoice::default())
            .unwrap_err();
    assert!(error.to_string().contains("mode `user` has 2 columns for 5 weights"), "{error}");
}

#[test]
fn a_failed_figure_leaves_older_files_alone() {
    let dir = tempdir().unwrap();
    let [svg, png] = saved(&convergence(&[0.25, 0.5]), dir.path(), "fit");
    let before = (fs::read(&svg).unwrap(), fs::read(&png).unwrap());
    save(&convergence(&[]), dir.path(), "fit").unwrap_err();
    assert_eq!(before, (fs::read(&svg).unwrap(), fs::read(&png).unwrap()));
    assert_eq!(names(dir.path()), ["fit.png", "fit.svg"]);
    save(&convergence(&[0.25, 0.75]), dir.path(), "fit").unwrap();
    assert_ne!(before.0, fs::read(&svg).unwrap());
}

#[test]
fn names_and_folders_are_checked() {
    let dir = tempdir().unwrap();
    for stem in ["", ".", "..", "a/b"] {
        let error = save(&convergence(&[0.5]), dir.path(), stem).unwrap_err();
        assert!(matches!(error, PlotError::Stem { .. }), "{error}");
    }
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = save(&convergence(&[0.5]), &file, "fit").unwrap_err();
    assert!(matches!(error, PlotError::Write { .. }), "{error}");
    let deep = dir.path().join("made/on/demand");
    save(&convergence(&[0.5]), &deep, "fit").unwrap();
    assert_eq!(names(&deep), ["fit.png", "fit.svg"]);
}

#[test]
fn figures_are_the_same_each_time() {
    let dir = tempdir().unwrap();
    let figure = convergence(&[0.1, 0.2, 0.25]);
    let [svg, png] = saved(&figure, dir.path(), "first");
    let [again_svg, again_png] = saved(&figure, dir.path(), "second");
    assert_eq!(fs::read(svg).unwrap(), fs::read(again_svg).unwrap());
    assert_eq!(fs::read(png).unwrap(), fs::read(again_png).unwrap());
}

#[test]
fn lines_show_values_over_extents() {
    let group = |name: &str, seconds: [f64; 2]| BarGroup {
        name: name.to_owned(),
        bars: seconds.iter().map(|value| Some(Bar::exact(*value))).collect(),
    };
    let figure = Bars {
        title: "TTTc".to_owned(),
        value_name: "time (s)".to_owned(),
        group_name: "extents of the dense modes".to_owned(),
        scale: ScaleKind::Log,
        look: BarLook::Lines,
        series: vec!["fused".to_owned(), "unfused".to_owned()],
        groups: vec![group("16,16,16", [1e-3, 2e-3]), group("32,32,32", [9e-3, 7e-3])],
        marks: None,
    };
    check(&figure, &["16,16,16", "32,32,32", "extents of the dense modes", "unfused"]);
}

#[test]
fn spectra_tell_how_many_values_were_kept() {
    let line = |name: &str, kept| Spectrum {
        all: 20_000,
        left_out: (kept == 2).then_some(0.25),
        name: name.to_owned(),
        values: vec![9.0, 3.0, 1.0, 1e-30, 0.0],
        kept,
    };
    let figure = Spectra {
        title: "sun".to_owned(),
        value_name: "singular value".to_owned(),
        spectra: vec![line("bond 1", 2), line("bond 2", 5)],
    };
    let words =
        ["bond 1", "rank 2 of 20 k, 25 % of squares beyond", "rank 5 of 20 k", "singular value"];
    check(&figure, &words);
    let empty = Spectra { spectra: vec![Spectrum::default()], ..figure };
    let error = save(&empty, tempdir().unwrap().path(), "spectra").unwrap_err();
    assert!(error.to_string().contains("no value is above zero"), "{error}");
}
