//! No figure may let two texts touch or a text leave the canvas, whatever its data.

use ndarray::Array2;

use crate::plot::Bar;
use crate::plot::BarGroup;
use crate::plot::Bars;
use crate::plot::Canvas;
use crate::plot::ComponentFactor;
use crate::plot::Components;
use crate::plot::Convergence;
use crate::plot::ConvergencePoint;
use crate::plot::ConvergenceRun;
use crate::plot::Figure;
use crate::plot::ScaleKind;
use crate::plot::Scatter;
use crate::plot::ScatterPoint;
use crate::plot::ScatterSeries;
use crate::plot::ScoreMatrix;
use crate::plot::Timing;
use crate::plot::TimingComponent;
use crate::plot::TimingPhase;
use crate::plot::TimingRun;
use crate::plot::canvas::Anchor;
use crate::plot::canvas::Direction;
use crate::plot::canvas::Text;
use crate::plot::style::CAP_HEIGHT;

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

#[track_caller]
fn check(figure: &impl Figure) {
    let mut canvas = Canvas::new(figure.size());
    figure.draw(&mut canvas).unwrap();
    let (width, height) = (f64::from(canvas.size.0), f64::from(canvas.size.1));
    let frames: Vec<_> = canvas.texts.iter().map(|text| (frame(text), &text.text)).collect();
    assert!(frames.len() > 3, "nothing was written");
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
                .map(|matrix| ComponentFactor { name: LONG, factor: matrix.view(), labels })
                .collect();
            check(&Components::from_factors(LONG, &weights, &factors).unwrap());
        }
    }
}

#[test]
fn constant_and_empty_columns() {
    let weights = [0.0, f64::NAN, -2.0];
    for value in [0.0, -3.0, 1e-300, f64::NAN] {
        let matrix = Array2::from_elem((1000, 3), value);
        let factor = ComponentFactor { name: "user", factor: matrix.view(), labels: None };
        check(&Components::from_factors("flat", &weights, &[factor]).unwrap());
    }
}

#[test]
fn bars() {
    let bar = |value: f64| Some(Bar { value, low: 0.9 * value, high: 1.3 * value });
    for scale in [ScaleKind::Linear, ScaleKind::Log] {
        for groups in [1, 6, 40] {
            let group = |at: usize| BarGroup {
                name: if at.is_multiple_of(2) { LONG.to_owned() } else { "uber".to_owned() },
                bars: vec![bar(1e-3 * (at + 1) as f64), None, Some(Bar::exact(f64::NAN)), bar(0.5)],
            };
            check(&Bars {
                title: LONG.to_owned(),
                value_name: "time of an iteration (s)".to_owned(),
                scale,
                series: ["decompose", "bound", LONG, "c"].map(str::to_owned).to_vec(),
                groups: (0..groups).map(group).collect(),
            });
        }
    }
}

#[test]
fn scatters() {
    let figure = |points: Vec<ScatterPoint>| Scatter {
        title: LONG.to_owned(),
        x_name: "predicted time (s)".to_owned(),
        y_name: "measured time (s)".to_owned(),
        series: vec![ScatterSeries { name: LONG.to_owned(), points }],
    };
    let point = |x: f64, y: f64| ScatterPoint { x, y, label: Some(format!("{x:.3}")) };
    check(&figure(vec![point(1.0, 1.0)]));
    check(&figure(vec![point(2.0, 2.0); 20]));
    check(&figure(vec![point(1e-9, 1e9), point(0.0, 1.0), point(1.0, f64::NAN)]));
    check(&figure((1..500).map(|k| point(f64::from(k), f64::from(k * 17 % 499 + 1))).collect()));
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
