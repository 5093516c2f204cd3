//! No figure may let two texts touch or a text leave the canvas, whatever its data.

use ndarray::Array2;

use crate::Bar;
use crate::BarGroup;
use crate::BarLook;
use crate::Bars;
use crate::BubbleGroup;
use crate::Bubbles;
use crate::Canvas;
use crate::ComponentChoice;
use crate::ComponentFactor;
use crate::Components;
use crate::Convergence;
use crate::ConvergencePoint;
use crate::ConvergenceRun;
use crate::Figure;
use crate::Frontier;
use crate::FrontierMark;
use crate::FrontierTime;
use crate::LoopKind;
use crate::Marks;
use crate::ModeLook;
use crate::NestBuffer;
use crate::NestFigure;
use crate::NestNode;
use crate::NetworkFigure;
use crate::NetworkInput;
use crate::NetworkTensor;
use crate::NetworkTerm;
use crate::Race;
use crate::RaceCandidate;
use crate::Ratios;
use crate::ScaleKind;
use crate::ScoreMatrix;
use crate::Spectra;
use crate::Spectrum;
use crate::TensorForm;
use crate::Timing;
use crate::TimingComponent;
use crate::TimingPhase;
use crate::TimingRun;
use crate::canvas::Anchor;
use crate::canvas::Direction;
use crate::canvas::Point;
use crate::canvas::Shape;
use crate::canvas::Text;
use crate::style::CAP_HEIGHT;

/// A name longer than any room given to names.
const LONG: &str = "a name that nobody would choose, yet somebody will, with λ, Σ and 10⁻³ in it \
                    and so many words that it can fit no column of any of our figures at all";

/// Returns the corners of the box from the base line to the height of capitals.
fn frame(text: &Text) -> [f64; 4] {
    let length = text.style.width(&text.text);
    let before = match text.style.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => length / 2.0,
        Anchor::End => length,
    };
    let height = text.style.size * CAP_HEIGHT;
    let (x, y) = text.at;
    match text.style.direction {
        Direction::Right => [x - before, y - height, x - before + length, y],
        Direction::Up => [x - height, y + before - length, x, y + before],
    }
}

/// Returns points that a shape does not go beyond.
fn corners(shape: &Shape) -> Vec<Point> {
    match shape {
        Shape::Line(points, _) | Shape::Polygon(points, _) => points.clone(),
        Shape::Rect(from, to, _) => vec![*from, *to],
        Shape::Disc((x, y), r, _) => vec![(x - r, y - r), (x + r, y + r)],
    }
}

#[track_caller]
fn check(figure: &impl Figure) {
    let mut canvas = Canvas::new(figure.size());
    figure.draw(&mut canvas).unwrap();
    let (width, height) = (f64::from(canvas.size.0), f64::from(canvas.size.1));
    let frames: Vec<_> = canvas.texts.iter().map(|text| (frame(text), &text.text)).collect();
    assert!(frames.len() > 3, "nothing was written");
    for (x, y) in canvas.shapes.iter().flat_map(corners) {
        let inside = (0.0..=width).contains(&x) && (0.0..=height).contains(&y);
        assert!(inside, "a shape leaves the canvas of {width} x {height}: {x} {y}");
    }
    for (at, (a, text)) in frames.iter().enumerate() {
        let inside = a[0] >= 0.0 && a[1] >= 0.0 && a[2] <= width && a[3] <= height;
        assert!(inside, "`{text}` leaves the canvas of {width} x {height}: {a:?}");
        for (b, other) in &frames[at + 1..] {
            let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
            assert!(apart, "`{text}` and `{other}` touch: {a:?} and {b:?}");
        }
    }
}

fn run(name: &str, fits: &[f64], step: f64) -> ConvergenceRun {
    let point = |(at, fit): (usize, &f64)| ConvergencePoint {
        iteration: at as u64 + 1,
        seconds: step * (at as f64 + 1.0),
        fit: *fit,
    };
    let points = fits.iter().enumerate().map(point).collect();
    ConvergenceRun { name: name.to_owned(), points, stop: LONG.to_owned() }
}

#[test]
fn convergence() {
    let figure = |tolerance, runs| Convergence { title: LONG.to_owned(), tolerance, runs };
    let rise: Vec<f64> = (0..200).map(|k| 0.9 - (-0.2 * f64::from(k)).exp()).collect();
    check(&figure(Some(1e-5), vec![run(LONG, &rise, 0.031)]));
    check(&figure(Some(1e-300), (0..30).map(|_| run("restart", &rise, 1e4)).collect()));
    check(&figure(None, vec![run("one", &[0.5], 0.0)]));
    check(&figure(Some(1e-4), vec![run("flat", &[0.25, 0.25, 0.25], 1e-7)]));
    check(&figure(None, vec![run("close", &[0.123_456_789_0, 0.123_456_789_1], 1.0)]));
    check(&figure(None, vec![run("far", &[-1e9, f64::NAN, 0.5, f64::INFINITY], 1.0)]));
}

fn timing(names: &[&str], parts: usize, iterations: usize, seconds: f64) -> Timing {
    let part = |at: usize| format!("MTTKRP of mode {}", at + 1);
    let runs = names.iter().map(|name| TimingRun {
        name: (*name).to_owned(),
        phases: (0..parts)
            .map(|at| TimingPhase { name: part(at), seconds: seconds * (1 + at * at) as f64 })
            .collect(),
        components: (0..parts)
            .map(|at| TimingComponent { name: part(at), seconds: vec![seconds; iterations] })
            .collect(),
    });
    Timing { title: LONG.to_owned(), runs: runs.collect() }
}

#[test]
fn timings() {
    for order in 1..=9 {
        check(&timing(&[""], order + 3, 17, 0.123));
        check(&timing(&["decompose", LONG, "x"], order + 3, 2, 12.3));
    }
    check(&timing(&[LONG], 3, 1, 0.0));
    check(&timing(&[""], 5, 10_000, 1e-7));
    check(&timing(&[""], 5, 121, 1e5));
    check(&timing(&[""], 2, 3, f64::NAN));
}

#[test]
fn components() {
    let label = |index: usize| format!("{LONG} {index}");
    for (extents, rank) in [
        (&[1, 2, 3][..], 1),
        (&[24, 61, 400, 401], 50),
        (&[100_000, 7], 200),
        (&[5], 3),
        (&[2, 3, 4, 5, 6, 7, 8, 9, 10], 8),
    ] {
        let weights: Vec<f64> = (0..rank).map(|k| 1e-9 * 1e9_f64.powi(k % 3)).collect();
        let value = |(i, c): (usize, usize)| ((i * 7919 + c * 31) % 1009) as f64 / 504.5 - 0.9;
        let matrices: Vec<_> =
            extents.iter().map(|n| Array2::from_shape_fn((*n, weights.len()), value)).collect();
        for labels in [None, Some(&label as &dyn Fn(usize) -> String)] {
            let factors: Vec<_> = matrices
                .iter()
                .zip([ModeLook::Bars, ModeLook::Plain, ModeLook::Lines].into_iter().cycle())
                .map(|(matrix, look)| ComponentFactor {
                    name: LONG,
                    factor: matrix.view(),
                    labels,
                    look,
                })
                .collect();
            let choice = ComponentChoice::default();
            check(&Components::from_factors(LONG, &weights, &factors, &choice).unwrap());
            check(
                &Components::from_columns(LONG, LONG, &factors, 1..4).unwrap_or_else(|_| {
                    Components::from_columns(LONG, LONG, &factors, 0..1).unwrap()
                }),
            );
        }
    }
}

#[test]
fn constant_and_empty_columns() {
    let weights = [0.0, f64::NAN, -2.0];
    for value in [0.0, -3.0, 1e-300, f64::NAN] {
        let matrix = Array2::from_elem((1000, 3), value);
        let look = ModeLook::Bars;
        let factor = ComponentFactor { name: "user", factor: matrix.view(), labels: None, look };
        let choice = ComponentChoice::default();
        check(&Components::from_factors("flat", &weights, &[factor], &choice).unwrap());
    }
}

#[test]
fn bars() {
    let bar = |value: f64| Some(Bar { value, low: 0.9 * value, high: 1.3 * value });
    let group = |at: usize| BarGroup {
        name: if at.is_multiple_of(2) { LONG.to_owned() } else { "uber".to_owned() },
        bars: vec![bar(1e-3 * (at + 1) as f64), None, Some(Bar::exact(f64::NAN)), bar(0.5)],
    };
    let looks = [(BarLook::Bars, ""), (BarLook::Bars, LONG), (BarLook::Lines, "extents")];
    for (look, group_name) in looks {
        for (groups, scale) in
            [1, 6, 40].into_iter().flat_map(|n| [(n, ScaleKind::Linear), (n, ScaleKind::Log)])
        {
            check(&Bars {
                title: LONG.to_owned(),
                value_name: "time of an iteration (s)".to_owned(),
                group_name: group_name.to_owned(),
                scale,
                look,
                series: ["decompose", "bound", LONG, "c"].map(str::to_owned).to_vec(),
                groups: (0..groups).map(group).collect(),
                marks: Some(Marks { name: "bound".to_owned(), values: vec![Some(0.3); groups] }),
            });
        }
    }
}

#[test]
fn bubbles() {
    let kinds = [("group", "groups"), ("choice", "choices"), ("dot", "dots")];
    let group = |at: usize, (choices, dots): (usize, usize), name: &str| BubbleGroup {
        label: (at + 1).to_string(),
        name: name.to_owned(),
        choices: vec![vec![Some(1e-3); dots]; choices],
    };
    let figure = |sizes: &[(usize, usize)], name| Bubbles {
        title: LONG.to_owned(),
        kinds,
        groups: sizes.iter().enumerate().map(|(at, &size)| group(at, size, name)).collect(),
    };
    check(&figure(&[(1, 1)], "Empty"));
    check(&figure(&[(2, 1), (3, 5), (3, 5), (5, 5), (6, 25)], "rows and columns"));
    check(&figure(&[(3, 1), (13, 5), (900, 25), (6, 125)], LONG));
    check(&figure(&[(2, 3); 60], LONG));
}

#[test]
fn ratios() {
    let bar = |value: f64| Some(Bar { value, low: 0.9 * value, high: 1.3 * value });
    for (series, groups) in [(1, 1), (1, 8), (2, 1), (4, 8), (14, 3)] {
        for least in [1e-3, 0.8, 1.1] {
            let group = |at: usize| BarGroup {
                name: if at.is_multiple_of(2) { LONG.to_owned() } else { "registers".to_owned() },
                bars: (0..series)
                    .map(|n| match (n, at) {
                        (1, 1) => None,
                        (2, _) => Some(Bar::exact(f64::NAN)),
                        _ => bar(least * (1 + at + n) as f64),
                    })
                    .collect(),
            };
            check(&Ratios {
                title: LONG.to_owned(),
                ratio_name: "time without, over time with".to_owned(),
                series_name: LONG.to_owned(),
                series: vec![LONG.to_owned(); series],
                groups: (0..groups).map(group).collect(),
            });
        }
    }
}

#[test]
fn matrices() {
    for (rows, columns) in [(1, 1), (1, 30), (30, 1), (5, 5), (250, 250)] {
        check(&ScoreMatrix {
            title: LONG.to_owned(),
            score_name: "factor match score".to_owned(),
            rows: (1..=rows).map(|k| format!("restart {k}")).collect(),
            columns: (1..=columns).map(|k| format!("{LONG} {k}")).collect(),
            scores: vec![vec![-0.5; columns]; rows],
            range: (-1.0, 1.0),
        });
    }
}

/// Returns the figure of `terms` terms below `depth` loops each, of which the first `shared` are
/// fused, with a buffer for each pair of terms.
fn nest(terms: usize, depth: usize, shared: usize, words: &str) -> NestFigure {
    let kinds = [LoopKind::Sparse, LoopKind::Dense, LoopKind::Lanes];
    let around = |body: Vec<NestNode>, level: usize| {
        let kind = kinds[level % 3];
        vec![NestNode::Loop { index: "k+l".to_owned(), note: words.to_owned(), kind, body }]
    };
    let term = |at: usize| {
        let text = format!("T{at}(r) += X(i,j,k) * A3(k,r) {words}");
        (shared..depth).rev().fold(vec![NestNode::Term(text)], around)
    };
    let roots = (0..shared).rev().fold((0..terms).flat_map(term).collect(), around);
    let pairs = (0..terms).flat_map(|to| (0..to).map(move |from| (from, to)));
    let buffer = |(producer, consumer): (usize, usize)| NestBuffer {
        name: format!("T{producer} {words}"),
        indices: "s,r".to_owned(),
        extents: vec![16, 50 << consumer],
        bytes: 6400 << (10 * producer),
        producer,
        consumer,
    };
    let buffers = pairs.map(buffer).collect();
    NestFigure { title: format!("Nest {words}"), subtitle: words.to_owned(), roots, buffers }
}

/// Checks that no text has a line through it, be it an arrow or the line to a label.
#[track_caller]
fn check_lines(figure: &NestFigure) {
    let mut canvas = Canvas::new(figure.size());
    figure.draw(&mut canvas).unwrap();
    for text in &canvas.texts {
        let [left, top, right, bottom] = frame(text);
        for shape in &canvas.shapes {
            let Shape::Line(points, _) = shape else { continue };
            for ends in points.windows(2) {
                let apart = ends.iter().all(|end| end.0 <= left)
                    || ends.iter().all(|end| end.0 >= right)
                    || ends.iter().all(|end| end.1 <= top)
                    || ends.iter().all(|end| end.1 >= bottom);
                assert!(apart, "a line crosses `{}`: {ends:?}", text.text);
            }
        }
    }
}

#[test]
fn nests() {
    check(&nest(1, 1, 0, "rank 50"));
    for words in ["", "rank 50", LONG] {
        for terms in [2, 3, 6] {
            for depth in [0, 1, 2, 5, 8, 30] {
                for shared in [0, depth / 2, depth] {
                    let figure = nest(terms, depth, shared, words);
                    check(&figure);
                    check_lines(&figure);
                }
            }
        }
    }
}

/// A network of `tensors` tensors in a ring, with an index of all of them and one that only the result has too.
fn network(tensors: usize, words: &str) -> NetworkFigure {
    let tensor = |at: usize| NetworkTensor {
        name: format!("X{at}{words}"),
        indices: vec![
            format!("i{at}"),
            format!("i{}", (at + 1) % tensors),
            "r".to_owned(),
            format!("k{at}"),
        ],
        form: if at.is_multiple_of(2) { TensorForm::Sparse } else { TensorForm::Dense },
    };
    let term = |at: usize| NetworkTerm {
        name: format!("T{at}(i,r){words}"),
        inputs: match at {
            0 => vec![NetworkInput::Tensor(0), NetworkInput::Tensor(1)],
            _ => vec![NetworkInput::Term(at - 1), NetworkInput::Tensor(at + 1)],
        },
    };
    NetworkFigure {
        tensors: (0..tensors).map(tensor).collect(),
        kept: vec!["r".to_owned(), "k0".to_owned(), "k1".to_owned()],
        terms: (0..tensors - 1).map(term).collect(),
        nest: nest(2, 3, 1, words),
    }
}

#[test]
fn networks() {
    for words in ["", LONG] {
        for tensors in 2..=25 {
            check(&network(tensors, words));
        }
    }
}

#[test]
fn texts_of_usual_nests_are_not_shortened() {
    let mut canvas = Canvas::new((800, 800));
    nest(6, 8, 4, "").draw(&mut canvas).unwrap();
    let whole = |text: &str| !text.contains('…');
    assert!(canvas.texts().all(whole), "{:?}", canvas.texts().find(|text| !whole(text)));
}

#[test]
fn races() {
    let candidate = |(predicted, measured): (f64, f64)| RaceCandidate {
        label: LONG.to_owned(),
        predicted_seconds: predicted,
        measured_seconds: measured,
    };
    let figure = |pairs: &[(f64, f64)], chosen| Race {
        title: LONG.to_owned(),
        candidates: pairs.iter().copied().map(candidate).collect(),
        chosen,
    };
    check(&figure(&[(1.0, 1.0)], None));
    check(&figure(&[(1.0, 1.0), (f64::NAN, 2.0)], Some(1)));
    check(&figure(&[(2.0, 2.0); 20], Some(3)));
    check(&figure(&[(1e-9, 1e9), (0.0, 1.0), (1.0, 0.5)], Some(0)));
    let many = |k: i32| (f64::from(k), f64::from(k * 17 % 499 + 1));
    check(&figure(&(1..500).map(many).collect::<Vec<_>>(), Some(0)));
}

#[test]
fn frontiers() {
    let mark =
        |(time, elements): (f64, f64)| FrontierMark { label: LONG.to_owned(), elements, time };
    let figure = |costs: &[(f64, f64)], chosen| Frontier {
        title: LONG.to_owned(),
        marks: costs.iter().copied().map(mark).collect(),
        chosen,
        ..Frontier::default()
    };
    check(&figure(&[(1.0, 0.0)], None));
    check(&figure(&[(1.0, 1.0), (f64::NAN, 2.0)], Some(1)));
    check(&figure(&[(2.0, 2.0); 20], Some(3)));
    check(&figure(&[(1e3, 1e9), (1e9, 0.0), (1e15, 64.0)], Some(0)));
    let seconds = figure(&[(1e-3, 1e9), (4e-2, 0.0), (1.5, 64.0)], Some(0));
    check(&Frontier { time: FrontierTime::Seconds, ..seconds });
}

#[test]
fn spectra() {
    let line = |name: &str, count: i32, kept| Spectrum {
        name: name.to_owned(),
        values: (0..count).map(|k| 10.0_f64.powi(-k / 3)).collect(),
        kept,
        all: 70_000,
        left_out: (count % 2 == 0).then_some(0.123),
    };
    let figure = |spectra: Vec<Spectrum>| Spectra {
        title: LONG.to_owned(),
        value_name: "singular value".to_owned(),
        spectra,
    };
    check(&figure(vec![line("bond 1", 1, 1)]));
    check(&figure(vec![line("bond 1", 20, 3), line(LONG, 5, 5)]));
    check(&figure((0..12).map(|k| line("bond", 10 + 30 * k, 1 + k as usize)).collect()));
    check(&figure(vec![Spectrum { values: vec![1.0, 0.0, f64::NAN], ..line("zeros", 0, 9) }]));
}
