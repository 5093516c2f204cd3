//! Figures as users get them: two files, complete or absent, with every word in the SVG.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use decompose_plot::Bar;
use decompose_plot::BarGroup;
use decompose_plot::BarLook;
use decompose_plot::Bars;
use decompose_plot::Canvas;
use decompose_plot::ComponentChoice;
use decompose_plot::ComponentFactor;
use decompose_plot::ComponentOrder;
use decompose_plot::Components;
use decompose_plot::Convergence;
use decompose_plot::ConvergencePoint;
use decompose_plot::ConvergenceRun;
use decompose_plot::Curve;
use decompose_plot::CurveLook;
use decompose_plot::CurveMark;
use decompose_plot::CurvePanel;
use decompose_plot::Curves;
use decompose_plot::Figure;
use decompose_plot::Frontier;
use decompose_plot::FrontierMark;
use decompose_plot::FrontierTime;
use decompose_plot::LoopKind;
use decompose_plot::Marks;
use decompose_plot::ModeLook;
use decompose_plot::NestBuffer;
use decompose_plot::NestFigure;
use decompose_plot::NestNode;
use decompose_plot::NetworkFigure;
use decompose_plot::NetworkInput;
use decompose_plot::NetworkTensor;
use decompose_plot::NetworkTerm;
use decompose_plot::PlotError;
use decompose_plot::PlotFormat;
use decompose_plot::Race;
use decompose_plot::RaceCandidate;
use decompose_plot::Ratios;
use decompose_plot::ScaleKind;
use decompose_plot::ScoreMatrix;
use decompose_plot::Spectra;
use decompose_plot::Spectrum;
use decompose_plot::TensorForm;
use decompose_plot::Timing;
use decompose_plot::TimingComponent;
use decompose_plot::TimingPhase;
use decompose_plot::TimingRun;
use decompose_plot::render;
use decompose_plot::save;
use ndarray::Array2;
use tempfile::tempdir;

/// Saves a figure, checks both files, and that the SVG has all of `words`.
#[track_caller]
fn check(figure: &impl Figure, words: &[&str]) {
    let dir = tempdir().unwrap();
    let [svg, png] = saved(figure, dir.path(), "figure");
    let svg = fs::read_to_string(svg).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    for word in words {
        assert!(svg.contains(word), "the SVG lacks `{word}`");
    }
    let (width, height) = figure.size();
    assert_eq!(png_size(&fs::read(png).unwrap()), (2 * width, 2 * height));
    assert_eq!(names(dir.path()), ["figure.png", "figure.svg"]);
}

/// Returns the texts of a figure.
fn svg_words(figure: &impl Figure) -> Vec<String> {
    let rendered = render(figure, &[PlotFormat::Svg]).unwrap();
    let texts = rendered.svg().unwrap().split('>').filter_map(|part| part.split('<').next());
    texts.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
}

/// Saves a figure and returns the paths of its SVG and its PNG file.
fn saved(figure: &impl Figure, dir: &Path, stem: &str) -> [PathBuf; 2] {
    save(figure, dir, stem).unwrap().try_into().unwrap()
}

/// Returns width and height of a PNG file, whose chunks must lead from its first to its last byte.
fn png_size(file: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&file[12..16], b"IHDR");
    let mut at = 8;
    let mut last = [0; 4];
    while at < file.len() {
        last.copy_from_slice(&file[at + 4..at + 8]);
        at += 12 + number(at) as usize;
    }
    assert_eq!((at, &last), (file.len(), b"IEND"));
    (number(16), number(20))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

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

/// Returns a loop over a sparse level.
fn sparse(index: &str, body: Vec<NestNode>) -> NestNode {
    let (index, note) = (index.to_owned(), "183 nodes".to_owned());
    NestNode::Loop { index, note, kind: LoopKind::Sparse, body }
}

/// Returns MTTKRP in two terms with the first mode's loop fused.
fn mttkrp() -> NestFigure {
    let first = NestNode::Term("T1(r) += X(i,j,k) * C(k,r)".to_owned());
    let last = NestNode::Term("Y(i,r) += T1(r) * B(j,r)".to_owned());
    let buffer = NestBuffer {
        name: "T1".to_owned(),
        indices: "r".to_owned(),
        extents: vec![50],
        bytes: 400,
        producer: 0,
        consumer: 1,
    };
    NestFigure {
        title: "MTTKRP".to_owned(),
        subtitle: "rank 50".to_owned(),
        roots: vec![sparse("i", vec![sparse("j", vec![sparse("k", vec![first]), last])])],
        buffers: vec![buffer],
    }
}

#[test]
fn nests_show_loops_terms_and_buffers() {
    let words = [
        "MTTKRP",
        "rank 50",
        "sparse loop",
        "183 nodes",
        "T1(r) += X(i,j,k) * C(k,r)",
        "Y(i,r) += T1(r) * B(j,r)",
        "T1: r, 50 elements, 400 B",
    ];
    check(&mttkrp(), &words);
}

/// The network of a transformed integral, with the loops of an MTTKRP.
fn network() -> NetworkFigure {
    let tensor = |name: &str, indices: &str, form| NetworkTensor {
        name: name.to_owned(),
        indices: indices.chars().map(String::from).collect(),
        form,
    };
    let term = |name: &str, inputs: [NetworkInput; 2]| NetworkTerm {
        name: name.to_owned(),
        inputs: inputs.to_vec(),
    };
    let (of, made) = (NetworkInput::Tensor, NetworkInput::Term);
    NetworkFigure {
        tensors: vec![
            tensor("Int", "uvK", TensorForm::Sparse),
            tensor("C", "vi", TensorForm::Dense),
            tensor("P", "um", TensorForm::Sparse),
        ],
        kept: ["K", "i", "m"].map(String::from).to_vec(),
        terms: vec![term("T1(K,i,u)", [of(0), of(1)]), term("F(K,i,m)", [made(0), of(2)])],
        nest: mttkrp(),
    }
}

#[test]
fn networks_show_tensors_indices_and_the_tree_above_the_nest() {
    let words =
        ["Network", "Contraction tree", "Int", "C", "P", "u", "v", "K", "T1(K,i,u)", "F(K,i,m)"];
    check(&network(), &words);
    check(
        &network(),
        &["MTTKRP", "sparse tensor", "dense tensor", "index of the result", "buffer"],
    );
}

#[test]
fn broken_networks_are_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let refuse = |figure: &NetworkFigure, words: &str| {
        let error = save(figure, dir.path(), "network").unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refuse(&NetworkFigure::default(), "give one or more of each");
    for broken in [NetworkInput::Tensor(3), NetworkInput::Term(1)] {
        let mut figure = network();
        figure.terms[1].inputs[0] = broken;
        refuse(&figure, "`F(K,i,m)` reads what is not there");
    }
}

#[test]
fn labels_of_buffers_give_indices_extents_and_bytes() {
    #[track_caller]
    fn check(indices: &str, extents: &[u64], bytes: u64, label: &str) {
        let (name, indices, extents) = ("T1".to_owned(), indices.to_owned(), extents.to_vec());
        let buffer = NestBuffer { name, indices, extents, bytes, producer: 0, consumer: 1 };
        assert_eq!(buffer.label(), label);
    }
    check("", &[], 8, "T1: scalar, 1 element, 8 B");
    check("r", &[1], 4, "T1: r, 1 element, 4 B");
    check("s,r", &[16, 50], 6400, "T1: s,r, 16 × 50 elements, 6.25 KiB");
}

#[test]
fn broken_nests_are_refused_with_a_remedy() {
    #[track_caller]
    fn refuse(figure: &NestFigure, words: &str) {
        let error = save(figure, tempdir().unwrap().path(), "nest").unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    refuse(&NestFigure::default(), "no term; give one or more");
    let mut figure = mttkrp();
    figure.roots.push(sparse("m", Vec::new()));
    refuse(&figure, "loop `m` repeats nothing");
    for (producer, consumer) in [(1, 1), (1, 0), (0, 2), (0, usize::MAX)] {
        let mut figure = mttkrp();
        figure.buffers[0] = NestBuffer { producer, consumer, ..figure.buffers[0].clone() };
        refuse(&figure, "buffer `T1` runs from term");
    }
}

/// Returns the race of these pairs of predicted and measured seconds.
fn race(seconds: &[(f64, f64)], chosen: Option<usize>) -> Race {
    let candidate = |(at, pair): (usize, &(f64, f64))| RaceCandidate {
        label: format!("nest {at}"),
        predicted_seconds: pair.0,
        measured_seconds: pair.1,
    };
    let candidates = seconds.iter().enumerate().map(candidate).collect();
    Race { title: "uber".to_owned(), candidates, chosen }
}

#[test]
fn races_name_the_chosen_and_the_fastest() {
    let seconds = [(0.02, 0.010), (0.01, 0.012), (0.04, 0.050), (0.03, f64::NAN)];
    let words = [
        "3 candidates, 1 left out",
        "chosen: nest 1",
        "10.0 ms predicted, 12.0 ms measured, 1.20 × the fastest",
        "fastest measured: nest 0",
        "other candidates",
        "rank correlation ρ = 0.50",
    ];
    check(&race(&seconds, Some(1)), &words);
    check(&race(&seconds, Some(0)), &["chosen and fastest: nest 0"]);
    check(&race(&seconds, Some(3)), &["chosen: nest 3", "30.0 ms predicted, – measured"]);
    let error = save(&race(&seconds, Some(4)), tempdir().unwrap().path(), "race").unwrap_err();
    assert!(error.to_string().contains("candidate 5 of 4 is chosen"), "{error}");
    let error = save(&race(&[], None), tempdir().unwrap().path(), "race").unwrap_err();
    assert!(error.to_string().contains("give one or more"), "{error}");
}

#[test]
fn frontiers_name_the_chosen_cost() {
    let figure = |costs: &[(f64, f64)], chosen| {
        let mark = |(at, &(time, elements)): (usize, &(f64, f64))| FrontierMark {
            label: format!("nest {at}"),
            elements,
            time,
        };
        let marks = costs.iter().enumerate().map(mark).collect();
        Frontier { title: "A(i,l)".to_owned(), marks, chosen, ..Frontier::default() }
    };
    let costs = [(1e6, 64.0), (4e6, 1.0), (9e6, 0.0), (f64::INFINITY, 2.0), (5.0, f64::NAN)];
    let words = [
        "3 pairs of time and memory, 2 left out without numbers; no buffer is drawn at 0.5",
        "chosen: nest 1",
        "1.00 elements",
        "other nests",
    ];
    check(&figure(&costs, Some(1)), &words);
    check(&figure(&costs[..1], Some(0)), &["1 pair of time and memory"]);
    // A single number of elements stands on an axis of whole numbers.
    let alone = svg_words(&figure(&[(1e6, 1.0), (2e6, 1.0)], Some(0)));
    assert!(alone.contains(&"10".to_owned()), "{alone:?}");
    assert!(!alone.iter().any(|word| word.starts_with("0.")), "{alone:?}");
    // A point has the number of its place, whatever is left out before it.
    let places = [(9e6, 64.0), (f64::NAN, 1.0), (1e6, 300.0)];
    let numbers = svg_words(&figure(&places, Some(0)));
    assert!(numbers.contains(&"3".to_owned()), "{numbers:?}");
    let measured = Frontier { time: FrontierTime::Seconds, ..figure(&costs, Some(1)) };
    check(&measured, &["3 loop nests, 2 left out", "measured time (s)", "other nests"]);
    let folder = tempdir().unwrap();
    let error = save(&figure(&costs, Some(5)), folder.path(), "frontier").unwrap_err();
    assert!(error.to_string().contains("cost 6 of 5 is chosen"), "{error}");
    let error = save(&figure(&costs[3..], None), folder.path(), "frontier").unwrap_err();
    assert!(error.to_string().contains("give one or more"), "{error}");
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
