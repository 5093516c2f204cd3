//! Panels of curves side by side: errors by epoch and time, observed against predicted, counts.

use crate::axes::Area;
use crate::axes::Axis;
use crate::axes::Panel;
use crate::canvas::Canvas;
use crate::canvas::Stroke;
use crate::canvas::TextStyle;
use crate::error::PlotError;
use crate::legend::Entry;
use crate::legend::Sign;
use crate::legend::draw_legend;
use crate::legend::legend_height;
use crate::save::Figure;
use crate::scale::Scale;
use crate::scale::ScaleKind;
use crate::series::Look;
use crate::series::draw_marker;
use crate::series::draw_series;
use crate::style::Color;
use crate::style::FRAME;
use crate::style::INK;
use crate::style::MARKER;
use crate::style::MUTED;
use crate::style::SMALL;
use crate::style::SOFT_INK;
use crate::style::TITLE;
use crate::style::fill_color;

const FIGURE: &str = "curves";
const MARGIN: f64 = 14.0;
/// Width and height of a panel.
const PANEL: (f64, f64) = (386.0, 300.0);

/// Panels from left to right, with one legend for the curves of the first one.
///
/// Points that have no place on the axes - not finite, or not above zero on a logarithmic one - are
/// left out.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    /// The title.
    pub title: String,
    /// A line below it; may be empty.
    pub note: String,
    /// The panels; two are as wide as other figures.
    pub panels: Vec<CurvePanel>,
    /// How wide the figure is.
    pub width: CurvesWidth,
}

/// How wide a figure of panels is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CurvesWidth {
    /// That of its panels, and never less than a page suits.
    #[default]
    Page,
    /// That of its panels: of one, a column of a paper.
    Column,
}

/// A panel.
#[derive(Clone, Debug, Default)]
pub struct CurvePanel {
    /// Name of the horizontal axis with its unit.
    pub x_name: String,
    /// Name of the vertical axis with its unit.
    pub y_name: String,
    /// How the horizontal axis spaces values.
    pub x: ScaleKind,
    /// How the vertical axis spaces values.
    pub y: ScaleKind,
    /// The curves; those of the same place have the same colour in all panels.
    pub curves: Vec<Curve>,
    /// Heights marked across the panel, dashed, with their names.
    pub levels: Vec<(String, f64)>,
    /// Places marked across the panel, dotted, with what they are.
    pub places: Vec<(String, f64)>,
    /// The ticks of the horizontal axis; round numbers where none are given.
    pub x_ticks: Vec<f64>,
    /// What else is drawn.
    pub mark: CurveMark,
}

/// What a panel shows besides its curves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CurveMark {
    /// Nothing.
    #[default]
    None,
    /// The diagonal, where both axes have the same range.
    Diagonal,
}

/// Points and how they are drawn.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Its name; one without a name is not in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
    /// Spreads: from and to which height at a place.
    pub spread: Vec<(f64, (f64, f64))>,
    /// A band behind the line: from and to which height at each place, from left to right.
    pub band: Vec<(f64, (f64, f64))>,
    /// How they are drawn.
    pub look: CurveLook,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CurveLook {
    /// Joined by a line, with markers.
    #[default]
    Line,
    /// Small discs.
    Dots,
    /// Markers alone.
    Points,
    /// A line through the points without markers, level up to each: what is reached from there on.
    Steps,
    /// A bar from zero to each point, as wide as the distance to the next.
    Bars,
}

impl Figure for Curves {
    fn size(&self) -> (u32, u32) {
        (self.width() as u32, (PANEL.1 + 60.0 + self.legend_room() + MARGIN) as u32)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        let width = f64::from(canvas.size.0) - 2.0 * MARGIN;
        let title = TextStyle::new(TITLE).bold();
        canvas.text((MARGIN, 26.0), title.fit(&self.title, width), title);
        let note = TextStyle::new(SMALL).color(SOFT_INK);
        canvas.text((MARGIN, 44.0), note.fit(&self.note, width), note);
        let entries = self.entries();
        if !entries.is_empty() {
            draw_legend(canvas, (MARGIN, 54.0), width, &entries);
        }
        let top = 58.0 + self.legend_room();
        let each = (width + MARGIN) / self.panels.len().max(1) as f64 - MARGIN;
        for (at, panel) in self.panels.iter().enumerate() {
            let left = MARGIN + at as f64 * (each + MARGIN);
            panel.draw(canvas, Area { left, top, width: each, height: PANEL.1 })?;
        }
        Ok(())
    }
}

impl Curves {
    /// The width of the figure.
    fn width(&self) -> f64 {
        let panels = self.panels.len().max(1) as f64;
        let width = panels * PANEL.0 + (panels + 1.0) * MARGIN;
        match self.width {
            CurvesWidth::Page => width.max(600.0).floor(),
            CurvesWidth::Column => width.floor(),
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let Some(first) = self.panels.first() else { return Vec::new() };
        let named = first.curves.iter().enumerate().filter(|(_, curve)| !curve.name.is_empty());
        let curve = |(at, curve): (usize, &Curve)| Entry {
            sign: if curve.look == CurveLook::Steps { Sign::Line } else { Sign::Marker(at) },
            ..Entry::new(fill_color(at), &curve.name)
        };
        let level = |(at, (name, _)): (usize, &(String, f64))| {
            Entry::new(level_color(at), format!("{name} (dashed)"))
        };
        let levels = first.levels.iter().enumerate().map(level);
        let place = |(name, _): &(String, f64)| Entry {
            sign: Sign::Line,
            ..Entry::new(INK, format!("{name} (dotted)"))
        };
        named.map(curve).chain(levels).chain(first.places.iter().map(place)).collect()
    }

    fn legend_room(&self) -> f64 {
        legend_height(self.width() - 2.0 * MARGIN, &self.entries()) + 4.0
    }
}

fn level_color(at: usize) -> crate::style::Color {
    if at == 0 { MUTED } else { fill_color(2 + at).tint(0.6) }
}

impl CurvePanel {
    fn draw(&self, canvas: &mut Canvas, area: Area) -> Result<(), PlotError> {
        let empty = || PlotError::empty(FIGURE, "no point has two numbers that the axes can show");
        let (x, y) = self.scales().ok_or_else(empty)?;
        let mut numbers = self.curves.iter().flat_map(|curve| self.shown(curve)).map(|(x, _)| x);
        let mut x = match numbers.all(|x| x.fract() == 0.0) {
            true => Axis::whole(x, 6, self.x_name.clone()),
            false => Axis::new(x, 6, self.x_name.clone()),
        };
        if !self.x_ticks.is_empty() {
            x.ticks = x.scale.ticks_at(&self.x_ticks);
        }
        let panel = Panel::draw(canvas, area, &x, &Axis::new(y, 6, self.y_name.clone()));
        for (at, (_, level)) in self.levels.iter().enumerate().filter(|(_, l)| self.y.shows(l.1)) {
            let (left, y) = (panel.field.left, panel.y_at(*level));
            let stroke = Stroke { width: 1.4, color: level_color(at) };
            canvas.dashes((left, y), (left + panel.field.width, y), stroke);
        }
        for (_, place) in self.places.iter().filter(|(_, place)| self.x.shows(*place)) {
            let (x, top) = (panel.x_at(*place), panel.field.top);
            canvas.dots((x, top), (x, top + panel.field.height), Stroke { width: 1.4, color: INK });
        }
        if self.mark == CurveMark::Diagonal {
            let corners = [0.0, 1.0].map(|place| x.scale.value(place));
            let [from, to] = corners.map(|value| panel.point(value, value));
            canvas.dashes(from, to, Stroke { width: 1.1, color: FRAME });
        }
        for (at, curve) in self.curves.iter().enumerate() {
            self.fill_band(canvas, &panel, curve, fill_color(at));
        }
        // What is reached lies behind the points that reach it.
        let steps = |curve: &Curve| curve.look == CurveLook::Steps;
        let (behind, before): (Vec<_>, Vec<_>) =
            self.curves.iter().enumerate().partition(|(_, curve)| steps(curve));
        for (at, curve) in behind.into_iter().chain(before) {
            let look = Look { color: fill_color(at), marker: Some(at) };
            let shown = self.shown(curve).map(|(x, y)| panel.point(x, y));
            let points: Vec<(f64, f64)> = shown.collect();
            self.draw_spread(canvas, &panel, curve, look);
            match curve.look {
                CurveLook::Line => draw_series(canvas, &points, look),
                CurveLook::Dots => {
                    points.iter().for_each(|p| draw_marker(canvas, *p, look, 0.5 * MARKER));
                }
                CurveLook::Points => {
                    points.iter().for_each(|p| draw_marker(canvas, *p, look, MARKER));
                }
                CurveLook::Steps => draw_steps(canvas, &points, &panel, look),
                CurveLook::Bars => draw_bars(canvas, &points, &panel, look),
            }
        }
        Ok(())
    }

    /// Fills the band of a curve, with its edges, which show where another band covers it.
    fn fill_band(&self, canvas: &mut Canvas, panel: &Panel, curve: &Curve, color: Color) {
        let shown = curve.band.iter().filter(|(x, (low, high))| {
            self.x.shows(*x) && self.y.shows(*low) && self.y.shows(*high)
        });
        let shown: Vec<_> = shown.collect();
        if shown.len() < 2 || shown.iter().all(|(_, (low, high))| low == high) {
            return;
        }
        let low = shown.iter().map(|(x, (low, _))| panel.point(*x, *low));
        let high = shown.iter().map(|(x, (_, high))| panel.point(*x, *high));
        canvas.polygon(low.clone().chain(high.clone().rev()).collect(), color.tint(0.2));
        let stroke = Stroke { width: 0.8, color: color.tint(0.55) };
        canvas.line(low.collect(), stroke);
        canvas.line(high.collect(), stroke);
    }

    /// Draws the spreads of a curve as lines with caps.
    fn draw_spread(&self, canvas: &mut Canvas, panel: &Panel, curve: &Curve, look: Look) {
        const CAP: f64 = 4.0;
        let stroke = Stroke { width: 1.1, color: look.color };
        for &(x, (low, high)) in &curve.spread {
            if !(self.x.shows(x) && self.y.shows(low) && self.y.shows(high)) {
                continue;
            }
            let (x, low, high) = (panel.x_at(x), panel.y_at(low), panel.y_at(high));
            canvas.line(vec![(x, low), (x, high)], stroke);
            for y in [low, high] {
                canvas.line(vec![(x - CAP, y), (x + CAP, y)], stroke);
            }
        }
    }

    fn shown<'a>(&'a self, curve: &'a Curve) -> impl Iterator<Item = (f64, f64)> + 'a {
        let points = curve.points.iter().copied();
        points.filter(|(x, y)| self.x.shows(*x) && self.y.shows(*y))
    }

    fn scales(&self) -> Option<(Scale, Scale)> {
        let all = || self.curves.iter().flat_map(|curve| self.shown(curve));
        if self.mark == CurveMark::Diagonal {
            let spreads = self.curves.iter().flat_map(|curve| &curve.spread);
            let spreads = spreads.flat_map(|(x, (low, high))| [*x, *low, *high]);
            let both = Scale::around(self.x, all().flat_map(|(x, y)| [x, y]).chain(spreads))?;
            return Some((both, both));
        }
        let bars = self.curves.iter().any(|curve| curve.look == CurveLook::Bars);
        let y = match bars {
            true => Scale::from_zero(all().map(|(_, y)| y)),
            false => {
                let levels = self.levels.iter().map(|(_, level)| *level);
                let spreads =
                    self.curves.iter().flat_map(|curve| curve.spread.iter().chain(&curve.band));
                let spreads = spreads.flat_map(|(_, (low, high))| [*low, *high]);
                Scale::around(self.y, all().map(|(_, y)| y).chain(levels).chain(spreads))?
            }
        };
        Some((Scale::around(self.x, all().map(|(x, _)| x))?, y))
    }
}

/// Draws a line that is level up to each point, and from the last one to the right edge.
fn draw_steps(canvas: &mut Canvas, points: &[(f64, f64)], panel: &Panel, look: Look) {
    let mut line = Vec::new();
    for &(x, y) in points {
        if let Some(&(_, before)) = line.last() {
            line.push((x, before));
        }
        line.push((x, y));
    }
    if let Some(&(_, last)) = line.last() {
        line.push((panel.field.left + panel.field.width, last));
    }
    canvas.line(line, Stroke { width: 1.2, color: look.color });
}

fn draw_bars(canvas: &mut Canvas, points: &[(f64, f64)], panel: &Panel, look: Look) {
    let pitch = points.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(f64::INFINITY, f64::min);
    let width = if pitch.is_finite() { (0.92 * pitch).max(0.5) } else { 20.0 };
    let bottom = panel.field.top + panel.field.height;
    for &(x, y) in points {
        canvas.rect((x - width / 2.0, y), (width, (bottom - y).max(0.0)), look.color);
    }
}
