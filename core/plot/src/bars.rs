//! Grouped bars with spread: measured times or rates, beside bounds and other programs; or lines
//! through the same values, where groups have an order and trends count.

use crate::axes::Area;
use crate::axes::Axis;
use crate::axes::Panel;
use crate::canvas::Anchor;
use crate::canvas::Canvas;
use crate::canvas::Stroke;
use crate::canvas::TextStyle;
use crate::error::PlotError;
use crate::legend::Entry;
use crate::legend::Sign;
use crate::legend::draw_legend;
use crate::number::significant;
use crate::save::Figure;
use crate::scale::Scale;
use crate::scale::ScaleKind;
use crate::scale::range;
use crate::series::Look;
use crate::series::draw_marker;
use crate::style::Color;
use crate::style::DATA_LINE;
use crate::style::INK;
use crate::style::LABEL;
use crate::style::MARKER;
use crate::style::SMALL;
use crate::style::SOFT_INK;
use crate::style::TINY;
use crate::style::TITLE;
use crate::style::WHITE;
use crate::style::fill_color;

const FIGURE: &str = "bars";
const MARGIN: f64 = 14.0;
/// Least width of a bar, and of the space between two groups.
const LEAST_BAR: f64 = 11.0;
const SPACE: f64 = 22.0;
/// Widest bar.
const MOST_BAR: f64 = 46.0;
/// Most room for names of groups that run upwards.
const MOST_NAME: f64 = 165.0;
/// The text of values above bars.
const VALUE: TextStyle = TextStyle::new(TINY).anchor(Anchor::Middle);

/// Groups of bars, for example one group a tensor and one bar a program.
///
/// On a logarithmic axis the lengths of bars have no meaning, only their tops have.
#[derive(Clone, Debug)]
pub struct Bars {
    /// The title.
    pub title: String,
    /// What the bars show, with its unit, for example `time of an iteration (s)`.
    pub value_name: String,
    /// What groups differ in, for example `extents of the dense modes`; may be empty.
    pub group_name: String,
    /// The axis: logarithmic, or linear, which begins at zero.
    pub scale: ScaleKind,
    /// How values are drawn.
    pub look: BarLook,
    /// Names of the bars in each group.
    pub series: Vec<String>,
    /// The groups, from left to right.
    pub groups: Vec<BarGroup>,
    /// A value to hold each group against, such as a bound.
    pub marks: Option<Marks>,
}

/// One value a group, drawn as a line across it.
#[derive(Clone, Debug)]
pub struct Marks {
    /// What they are, for the legend.
    pub name: String,
    /// One a group, `None` where there is none.
    pub values: Vec<Option<f64>>,
}

/// How the values of groups are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BarLook {
    /// As bars, with their values above where all have room.
    #[default]
    Bars,
    /// As markers in the middle of their group, joined by a line for each series.
    Lines,
}

/// A group of bars.
#[derive(Clone, Debug, Default)]
pub struct BarGroup {
    /// Its name, below it.
    pub name: String,
    /// One bar for each series, `None` where nothing was measured.
    pub bars: Vec<Option<Bar>>,
}

/// One bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// Its height, for example a median.
    pub value: f64,
    /// The low end of its spread; its `value` for none.
    pub low: f64,
    /// The high end of its spread; its `value` for none.
    pub high: f64,
}

impl Bar {
    /// Returns a bar without spread.
    pub fn exact(value: f64) -> Bar {
        Bar { value, low: value, high: value }
    }

    fn has_spread(&self, panel: &Panel) -> bool {
        panel.y.shows(self.low) && panel.y.shows(self.high) && self.low < self.high
    }
}

impl Figure for Bars {
    fn size(&self) -> (u32, u32) {
        let group = LEAST_BAR * self.series.len() as f64 + SPACE;
        let width = (90.0 + group * self.groups.len() as f64).max(800.0);
        (width.ceil() as u32, 440)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        let scale = self.check()?;
        let (width, height) = (f64::from(canvas.size.0), f64::from(canvas.size.1));
        let room = width - 2.0 * MARGIN;
        let title = TextStyle::new(TITLE).bold();
        canvas.text((MARGIN, 26.0), title.fit(&self.title, room), title);
        let top = draw_legend(canvas, (MARGIN, 42.0), room, &self.entries()) + 10.0;

        let y = Axis::new(scale, 6, self.value_name.clone());
        let x = Axis {
            scale: Scale::span(0.0, self.groups.len() as f64),
            ticks: Vec::new(),
            name: String::new(),
            label_room: 0.0,
        };
        let turned = self.turned_names(room);
        let name_room = if self.group_name.is_empty() { 0.0 } else { LABEL + 6.0 };
        let below = MARGIN + turned.unwrap_or(0.0) + name_room;
        let area = Area { left: MARGIN, top, width: room, height: height - top - below };
        let panel = Panel::draw(canvas, area, &x, &y);
        self.draw_names(canvas, &panel, turned);
        match self.look {
            BarLook::Bars => self.draw_bars(canvas, &panel),
            BarLook::Lines => self.draw_lines(canvas, &panel),
        }
        self.draw_marks(canvas, &panel);
        Ok(())
    }
}

impl Bars {
    fn entries(&self) -> Vec<Entry> {
        let entry = |(at, name): (usize, &String)| {
            let sign = match self.look {
                BarLook::Bars => Sign::Square,
                BarLook::Lines => Sign::Marker(at),
            };
            Entry { sign, ..Entry::new(fill_color(at), name) }
        };
        let mark = |marks: &Marks| Entry { sign: Sign::Line, ..Entry::new(INK, &marks.name) };
        let marks = self.marks.iter().map(mark);
        self.series.iter().enumerate().map(entry).chain(marks).collect()
    }

    /// Returns the room for names of groups that run upwards, if they must.
    fn turned_names(&self, room: f64) -> Option<f64> {
        let names = self.groups.iter().map(|group| TextStyle::SMALL.width(&group.name));
        let widest = names.fold(0.0, f64::max);
        let each = (room - 80.0) / self.groups.len() as f64;
        (widest + 8.0 > each).then(|| widest.min(MOST_NAME))
    }

    /// Writes the names of groups, and below them what groups differ in.
    fn draw_names(&self, canvas: &mut Canvas, panel: &Panel, turned: Option<f64>) {
        let below = panel.field.top + panel.field.height + 7.0;
        for (at, group) in self.groups.iter().enumerate() {
            let middle = panel.x_at(at as f64 + 0.5);
            if turned.is_some() {
                let style = TextStyle::SMALL.anchor(Anchor::End).up();
                let name = style.fit(&group.name, MOST_NAME);
                canvas.text_centred((middle, below), name, style);
            } else {
                let style = TextStyle::SMALL.anchor(Anchor::Middle);
                canvas.text((middle, below + SMALL), group.name.clone(), style);
            }
        }
        let bottom = f64::from(canvas.size.1) - MARGIN;
        let style = TextStyle::new(LABEL).anchor(Anchor::Middle);
        let name = style.fit(&self.group_name, panel.field.width);
        canvas.text((panel.field.left + panel.field.width / 2.0, bottom), name, style);
    }

    fn draw_bars(&self, canvas: &mut Canvas, panel: &Panel) {
        let labelled = self.values_fit(panel);
        for (at, group) in self.groups.iter().enumerate() {
            let middle = panel.x_at(at as f64 + 0.5);
            draw_bars(canvas, panel, middle, &group.bars);
            if labelled {
                draw_values(canvas, panel, middle, &group.bars);
            }
        }
    }

    /// Draws the mark of each group across its bars, with a white rim to stand out from them.
    fn draw_marks(&self, canvas: &mut Canvas, panel: &Panel) {
        let values = self.marks.iter().flat_map(|marks| &marks.values);
        let (_, thick) = places(panel, 0.0, self.series.len());
        let half = (thick + 2.0) * self.series.len() as f64 / 2.0 + 3.0;
        for (at, value) in values.enumerate() {
            let Some(value) = value.filter(|&value| panel.y.shows(value)) else { continue };
            let (middle, y) = (panel.x_at(at as f64 + 0.5), panel.y_at(value));
            for (width, color) in [(4.4, WHITE), (2.2, INK)] {
                let ends = vec![(middle - half, y), (middle + half, y)];
                canvas.line(ends, Stroke { width, color });
            }
        }
    }

    /// Draws a line for each series, interrupted where a group has no value.
    fn draw_lines(&self, canvas: &mut Canvas, panel: &Panel) {
        for series in 0..self.series.len() {
            let look = Look { color: fill_color(series), marker: Some(series) };
            let bars = self.groups.iter().map(|group| group.bars.get(series).copied().flatten());
            let bars: Vec<_> =
                bars.map(|bar| bar.filter(|bar| panel.y.shows(bar.value))).enumerate().collect();
            for run in bars.chunk_by(|(_, a), (_, b)| a.is_some() && b.is_some()) {
                let place = |(at, bar): &(usize, Option<Bar>)| {
                    bar.map(|bar| (panel.x_at(*at as f64 + 0.5), bar))
                };
                let placed: Vec<_> = run.iter().filter_map(place).collect();
                for (x, bar) in &placed {
                    draw_spread(canvas, panel, *x, 4.0, bar, look.color);
                }
                let points = placed.iter().map(|(x, bar)| (*x, panel.y_at(bar.value)));
                let points: Vec<_> = points.collect();
                canvas.line(points.clone(), Stroke { width: DATA_LINE, color: look.color });
                points.iter().for_each(|point| draw_marker(canvas, *point, look, MARKER + 0.6));
            }
        }
    }

    /// Returns whether every value has room above its bar: then all are written, else none.
    fn values_fit(&self, panel: &Panel) -> bool {
        let (_, thick) = places(panel, 0.0, self.series.len());
        let bars = self.groups.iter().flat_map(|group| &group.bars).flatten();
        bars.map(|bar| VALUE.width(&significant(bar.value, 2))).all(|width| width <= thick)
    }

    /// Checks that all fits and returns the scale of values.
    fn check(&self) -> Result<Scale, PlotError> {
        for group in &self.groups {
            let (bars, series) = (group.bars.len(), self.series.len());
            if bars != series {
                let name = &group.name;
                let reason = format!("group `{name}` has {bars} bars for {series} series");
                return Err(PlotError::mismatch(FIGURE, reason));
            }
        }
        let marks = self.marks.as_ref().map_or(&[][..], |marks| &marks.values);
        if self.marks.is_some() && marks.len() != self.groups.len() {
            let reason = format!("{} marks for {} groups", marks.len(), self.groups.len());
            return Err(PlotError::mismatch(FIGURE, reason));
        }
        let bars = || self.groups.iter().flat_map(|group| &group.bars).flatten();
        let values = bars().flat_map(|bar| [bar.value, bar.low, bar.high]);
        let values = values.chain(marks.iter().flatten().copied());
        let Some((low, high)) = range(values.filter(|v| self.scale.shows(*v))) else {
            let reason = "no bar has a value that the axis can show; give finite values, \
                          above zero for a logarithmic axis";
            return Err(PlotError::empty(FIGURE, reason));
        };
        Ok(match self.scale {
            ScaleKind::Linear if low < 0.0 => Scale::exact(ScaleKind::Linear, low, high.max(0.0)),
            ScaleKind::Linear => Scale::from_zero([high]),
            // The lowest bar must not vanish, so the axis starts well below it.
            ScaleKind::Log => Scale::exact(ScaleKind::Log, low / 2.0, high * 1.5),
        })
    }
}

/// Returns the position and thickness of the bars of a group around `middle`.
fn places(panel: &Panel, middle: f64, bars: usize) -> (impl Fn(usize) -> f64, f64) {
    let group = panel.x_at(1.0) - panel.x_at(0.0);
    let pitch = ((group - SPACE) / bars.max(1) as f64).clamp(LEAST_BAR, MOST_BAR);
    let first = middle - pitch * bars as f64 / 2.0;
    (move |at| first + pitch * (at as f64 + 0.5), pitch - 2.0)
}

/// Draws the bars of one group around `middle`.
fn draw_bars(canvas: &mut Canvas, panel: &Panel, middle: f64, bars: &[Option<Bar>]) {
    let (place, thick) = places(panel, middle, bars.len());
    let base = panel.y_at(panel.y.low().max(0.0));
    for (at, bar) in bars.iter().enumerate() {
        let x = place(at);
        let Some(bar) = bar.filter(|bar| panel.y.shows(bar.value)) else {
            let style = TextStyle::SMALL.anchor(Anchor::Middle).color(SOFT_INK);
            canvas.text((x, base - 4.0), "–", style);
            continue;
        };
        let top = panel.y_at(bar.value);
        let corner = (x - thick / 2.0, top.min(base));
        canvas.rect(corner, (thick, (top - base).abs()), fill_color(at));
        draw_spread(canvas, panel, x, (thick / 4.0).min(4.0), &bar, INK);
    }
}

/// Draws the spread of a value at `x` as a line with caps of the length `cap` to either side.
fn draw_spread(canvas: &mut Canvas, panel: &Panel, x: f64, cap: f64, bar: &Bar, color: Color) {
    if bar.has_spread(panel) {
        let (low, high) = (panel.y_at(bar.low), panel.y_at(bar.high));
        let stroke = Stroke { width: 1.1, color };
        canvas.line(vec![(x, low), (x, high)], stroke);
        canvas.line(vec![(x - cap, low), (x + cap, low)], stroke);
        canvas.line(vec![(x - cap, high), (x + cap, high)], stroke);
    }
}

/// Writes the values of one group above its bars.
fn draw_values(canvas: &mut Canvas, panel: &Panel, middle: f64, bars: &[Option<Bar>]) {
    let (place, _) = places(panel, middle, bars.len());
    for (at, bar) in bars.iter().enumerate() {
        if let Some(bar) = bar.filter(|bar| panel.y.shows(bar.value)) {
            let highest = if bar.has_spread(panel) { bar.high } else { bar.value };
            let above = (place(at), panel.y_at(highest.max(panel.y.low().max(0.0))) - 3.5);
            canvas.text(above, significant(bar.value, 2), VALUE);
        }
    }
}
