//! No figure may panic or leave a broken file, whatever its numbers and names.

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
use crate::Curve;
use crate::CurveLook;
use crate::CurveMark;
use crate::CurvePanel;
use crate::Curves;
use crate::Figure;
use crate::Frontier;
use crate::FrontierMark;
use crate::ModeLook;
use crate::PlotError;
use crate::PlotFormat;
use crate::Race;
use crate::RaceCandidate;
use crate::Ratios;
use crate::ScaleKind;
use crate::ScoreMatrix;
use crate::Spectra;
use crate::Spectrum;
use crate::Timing;
use crate::TimingComponent;
use crate::TimingPhase;
use crate::TimingRun;
use crate::render;
use crate::svg::svg;

/// Numbers that break what is not prepared for them.
const NUMBERS: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-300,
    -1e-300,
    1e300,
    -1e300,
    f64::MAX,
    f64::MIN_POSITIVE,
    5e-324,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

/// A name with what XML forbids or reads as its own.
const NAME: &str = "<a href=\"x\">&amp;\0\u{1b}[31m\u{202e}]]>\u{ffff} '東京\n\t--";

/// Draws a figure: it may say that it has nothing to show, and nothing else.
#[track_caller]
fn check(figure: &impl Figure) -> bool {
    let mut canvas = Canvas::new(figure.size());
    match figure.draw(&mut canvas) {
        Ok(()) => {
            assert_well_formed(&svg(&canvas).unwrap());
            true
        }
        Err(PlotError::Empty { .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

/// Checks tags, attributes, entities and characters of an XML document.
#[track_caller]
fn assert_well_formed(xml: &str) {
    let allowed = |c: char| matches!(c, '\n' | '\r' | '\t' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert_eq!(xml.chars().find(|&c| !allowed(c)), None);
    let entities = |text: &str| {
        let known = ["amp;", "lt;", "gt;", "quot;", "apos;", "#"];
        text.split('&').skip(1).all(|rest| known.iter().any(|name| rest.starts_with(name)))
    };
    let (mut open, mut roots) = (Vec::new(), 0);
    let mut pieces = xml.split('<');
    assert_eq!(pieces.next().map(str::trim), Some(""));
    for piece in pieces {
        let (tag, text) = piece.split_once('>').unwrap();
        assert!(entities(text) && (!open.is_empty() || text.trim().is_empty()), "{text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(entities(attributes) && attributes.matches('"').count() % 2 == 0, "{tag}");
        roots += usize::from(open.is_empty());
        if !closed {
            open.push(name);
        }
    }
    assert!(open.is_empty() && roots == 1);
}

/// A small generator of choices: the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn number(&mut self) -> f64 {
        NUMBERS[self.below(NUMBERS.len())]
    }

    /// Returns up to `most` numbers: any, or all the same.
    fn numbers(&mut self, most: usize) -> Vec<f64> {
        let (count, same) = (self.below(most + 1), self.number());
        match self.below(3) {
            0 => vec![same; count],
            _ => (0..count).map(|_| self.number()).collect(),
        }
    }

    fn pairs(&mut self, most: usize) -> Vec<(f64, f64)> {
        let x = self.numbers(most);
        x.into_iter().map(|x| (x, self.number())).collect()
    }
}

fn curves(chance: &mut Chance) -> Curves {
    let mut panel = |look, mark, kind| CurvePanel {
        x_name: NAME.to_owned(),
        y_name: NAME.to_owned(),
        x: ScaleKind::Linear,
        y: kind,
        curves: vec![Curve {
            name: NAME.to_owned(),
            points: chance.pairs(5),
            band: Vec::new(),
            spread: chance.pairs(2).into_iter().map(|pair| (pair.0, pair)).collect(),
            look,
        }],
        places: vec![(NAME.to_owned(), chance.number())],
        x_ticks: chance.numbers(2),
        levels: chance.numbers(2).into_iter().map(|level| (NAME.to_owned(), level)).collect(),
        mark,
    };
    let panels = vec![
        panel(CurveLook::Line, CurveMark::None, ScaleKind::Log),
        panel(CurveLook::Dots, CurveMark::Diagonal, ScaleKind::Linear),
        panel(CurveLook::Bars, CurveMark::None, ScaleKind::Linear),
    ];
    Curves { title: NAME.to_owned(), note: NAME.to_owned(), panels, ..Curves::default() }
}

fn convergence(chance: &mut Chance) -> Convergence {
    let mut run = || {
        let point = |(at, (fit, seconds)): (usize, (f64, f64))| ConvergencePoint {
            iteration: if at == 3 { u64::MAX } else { at as u64 },
            seconds,
            fit,
        };
        let points = chance.pairs(6).into_iter().enumerate().map(point).collect();
        ConvergenceRun { name: NAME.to_owned(), points, stop: NAME.to_owned() }
    };
    let runs = (0..3).map(|_| run()).collect();
    Convergence { title: NAME.to_owned(), tolerance: Some(chance.number()), runs }
}

fn timing(chance: &mut Chance) -> Timing {
    let phases = chance.numbers(4).into_iter();
    let phases = phases.map(|seconds| TimingPhase { name: NAME.to_owned(), seconds }).collect();
    let component = |seconds| TimingComponent { name: NAME.to_owned(), seconds };
    let components = (0..3).map(|_| component(chance.numbers(5))).collect();
    let run = TimingRun { name: NAME.to_owned(), phases, components };
    Timing { title: NAME.to_owned(), runs: vec![run.clone(); 1 + chance.below(2)] }
}

fn bars(chance: &mut Chance) -> (Bars, Ratios) {
    let mut bar =
        || Some(Bar { value: chance.number(), low: chance.number(), high: chance.number() });
    let mut group = || BarGroup { name: NAME.to_owned(), bars: vec![bar(), None, bar()] };
    let groups = vec![group(), group()];
    let series = vec![NAME.to_owned(); 3];
    let bars = Bars {
        title: NAME.to_owned(),
        value_name: NAME.to_owned(),
        group_name: NAME.to_owned(),
        scale: if chance.below(2) == 0 { ScaleKind::Log } else { ScaleKind::Linear },
        look: if chance.below(2) == 0 { BarLook::Bars } else { BarLook::Lines },
        series: series.clone(),
        groups: groups.clone(),
        marks: None,
    };
    let name = NAME.to_owned();
    let ratios =
        Ratios { title: name.clone(), ratio_name: name.clone(), series_name: name, series, groups };
    (bars, ratios)
}

#[test]
fn numbers_of_any_size_draw_or_have_nothing_to_show() {
    let mut chance = Chance(7);
    let mut drawn = 0;
    for _ in 0..150 {
        let mut count = |drew: bool| drawn += usize::from(drew);
        count(check(&convergence(&mut chance)));
        count(check(&curves(&mut chance)));
        count(check(&timing(&mut chance)));
        let (bars, ratios) = bars(&mut chance);
        count(check(&bars));
        count(check(&ratios));
        let left_out = Some(chance.number());
        let spectrum =
            |values| Spectrum { name: NAME.to_owned(), values, kept: 2, all: 9, left_out };
        let spectra = (0..2).map(|_| spectrum(chance.numbers(5))).collect();
        let (title, value_name) = (NAME.to_owned(), NAME.to_owned());
        count(check(&Spectra { title, value_name, spectra }));
        let candidate = |(predicted_seconds, measured_seconds)| RaceCandidate {
            label: NAME.to_owned(),
            predicted_seconds,
            measured_seconds,
        };
        let candidates: Vec<_> = chance.pairs(5).into_iter().map(candidate).collect();
        let chosen = (!candidates.is_empty()).then_some(0);
        count(check(&Race { title: NAME.to_owned(), candidates, chosen }));
        let dots = |_| chance.numbers(4).into_iter().map(Some).chain([None]).collect();
        let group = BubbleGroup {
            label: NAME.to_owned(),
            name: NAME.to_owned(),
            choices: (0..3).map(dots).collect(),
        };
        let kinds = [("one", "many"); 3];
        count(check(&Bubbles { title: NAME.to_owned(), kinds, groups: vec![group] }));
        let mark = |(time, elements)| FrontierMark { label: NAME.to_owned(), elements, time };
        let marks: Vec<_> = chance.pairs(5).into_iter().map(mark).collect();
        let chosen = (!marks.is_empty()).then_some(0);
        count(check(&Frontier { title: NAME.to_owned(), marks, chosen, ..Frontier::default() }));
        let names = vec![NAME.to_owned(); 3];
        count(check(&ScoreMatrix {
            title: NAME.to_owned(),
            score_name: NAME.to_owned(),
            rows: names.clone(),
            columns: names,
            scores: (0..3).map(|_| (0..3).map(|_| chance.number()).collect()).collect(),
            range: (0.0, 1.0),
        }));
    }
    assert!(drawn > 700, "only {drawn} of 1450 figures had something to show");
}

#[test]
fn factors_of_any_numbers_are_drawn() {
    let mut chance = Chance(11);
    let label = |_: usize| NAME.to_owned();
    for extent in [0, 1, 3, 70, 1000] {
        for _ in 0..12 {
            let factor = Array2::from_shape_fn((extent, 3), |_| chance.number());
            let weights: Vec<f64> = (0..3).map(|_| chance.number()).collect();
            let labels: [Option<&dyn Fn(usize) -> String>; 2] = [None, Some(&label)];
            let looks = [ModeLook::Plain, ModeLook::Lines, ModeLook::Bars];
            let look = looks[chance.below(3)];
            let factors = labels.map(|labels| ComponentFactor {
                name: NAME,
                factor: factor.view(),
                labels,
                look,
            });
            check(&Components::from_columns(NAME, NAME, &factors, 0..9).unwrap());
            match Components::from_factors(NAME, &weights, &factors, &ComponentChoice::default()) {
                Ok(figure) => assert!(check(&figure)),
                Err(error) => assert!(matches!(error, PlotError::Empty { .. }), "{error}"),
            }
        }
    }
}

#[test]
fn pixels_follow() {
    let mut chance = Chance(3);
    for _ in 0..3 {
        for formats in [&[PlotFormat::Png][..], &PlotFormat::ALL] {
            match render(&curves(&mut chance), formats) {
                Ok(_) | Err(PlotError::Empty { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}
