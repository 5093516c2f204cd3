//! Ratios to one configuration: horizontal bars from one to the right where more, to the left where less.

use crate::axes::Area;
use crate::axes::Axis;
use crate::axes::Panel;
use crate::bars::Bar;
use crate::bars::BarGroup;
use crate::canvas::Anchor;
use crate::canvas::Canvas;
use crate::canvas::Stroke;
use crate::canvas::TextStyle;
use crate::error::PlotError;
use crate::legend::Entry;
use crate::legend::draw_legend;
use crate::legend::legend_height;
use crate::number::significant;
use crate::save::Figure;
use crate::scale::Scale;
use crate::scale::ScaleKind;
use crate::scale::range;
use crate::style::INK;
use crate::style::SOFT_INK;
use crate::style::TINY;
use crate::style::TITLE;
use crate::style::fill_color;

const FIGURE: &str = "ratios";
const WIDTH: u32 = 800;
const MARGIN: f64 = 14.0;
/// Where the legend begins.
const LEGEND: f64 = 42.0;
/// Axis, its name and the margin.
const BELOW: f64 = 65.0;
/// Space between two groups.
const SPACE: f64 = 18.0;
/// Heights of bars in groups of one, two, three and more.
const BARS: [f64; 4] = [22.0, 16.0, 13.0, 11.0];
/// Most room for the names of groups.
const MOST_NAME: f64 = 190.0;
/// Room for the values behind the longest bars.
const VALUE_ROOM: f64 = 40.0;
/// Room for the mean below a name.
const MEAN_WIDTH: f64 = 60.0;
/// Least height of a group whose name has its mean below it.
const MEAN_HEIGHT: f64 = 26.0;

/// Groups of ratios, for example one group for each optimisation that is left out and one bar a tensor.
///
/// The axis is logarithmic: twice and half are as far from one.
#[derive(Clone, Debug)]
pub struct Ratios {
    /// The title.
    pub title: String,
    /// What the bars show, for example `time without, over time with`.
    pub ratio_name: String,
    /// What the bars of a group differ in, for example `tensor · rank`; may be empty.
    pub series_name: String,
    /// Names of the bars in each group.
    pub series: Vec<String>,
    /// The groups, from top to bottom; where there are several bars, their
    /// geometric mean stands below the name.
    pub groups: Vec<BarGroup>,
}

impl Figure for Ratios {
    fn size(&self) -> (u32, u32) {
        let group = self.thickness() * self.series.len() as f64 + SPACE;
        let height = self.top() + group * self.groups.len() as f64 + BELOW;
        (WIDTH, height.ceil() as u32)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        let scale = self.check()?;
        let (room, height) = (f64::from(WIDTH) - 2.0 * MARGIN, f64::from(canvas.size.1));
        let title = TextStyle::new(TITLE).bold();
        let note = TextStyle::SMALL.anchor(Anchor::End).color(SOFT_INK);
        let series_name = note.fit(&self.series_name, room / 3.0);
        let free = room - note.width(&series_name) - 12.0;
        canvas.text((MARGIN, 26.0), title.fit(&self.title, free), title);
        canvas.text((MARGIN + room, 26.0), series_name, note);
        if self.series.len() > 1 {
            draw_legend(canvas, (MARGIN, LEGEND), room, &self.entries());
        }
        let top = self.top();
        let x = Axis::new(scale, 7, self.ratio_name.clone());
        let names = self.groups.iter().map(|group| TextStyle::SMALL.width(&group.name));
        let y = Axis {
            scale: Scale::span(0.0, self.groups.len() as f64),
            ticks: Vec::new(),
            name: String::new(),
            label_room: names.fold(MEAN_WIDTH, f64::max).min(MOST_NAME),
        };
        let area =
            Area { left: MARGIN, top, width: room - VALUE_ROOM, height: height - top - MARGIN };
        let panel = Panel::draw(canvas, area, &x, &y);
        for (at, group) in self.groups.iter().enumerate() {
            let middle = panel.y_at((self.groups.len() - at) as f64 - 0.5);
            self.draw_name(canvas, &panel, middle, group);
            self.draw_bars(canvas, &panel, middle, group);
        }
        let (one, bottom) = (panel.x_at(1.0), panel.field.top + panel.field.height);
        canvas.line(vec![(one, panel.field.top), (one, bottom)], Stroke { width: 1.4, color: INK });
        Ok(())
    }
}

impl Ratios {
    fn thickness(&self) -> f64 {
        BARS[self.series.len().clamp(1, BARS.len()) - 1]
    }

    /// Where the field begins.
    fn top(&self) -> f64 {
        match self.series.len() {
            1 => LEGEND,
            _ => LEGEND + legend_height(f64::from(WIDTH) - 2.0 * MARGIN, &self.entries()) + 10.0,
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let series = self.series.iter().enumerate();
        series.map(|(at, name)| Entry::new(fill_color(at), name)).collect()
    }

    /// Writes the name of a group, and below it the mean of its bars.
    fn draw_name(&self, canvas: &mut Canvas, panel: &Panel, middle: f64, group: &BarGroup) {
        let right = panel.field.left - 8.0;
        let style = TextStyle::SMALL.anchor(Anchor::End);
        let name = style.fit(&group.name, MOST_NAME);
        let each = panel.field.height / self.groups.len() as f64;
        match mean(group).filter(|_| each >= MEAN_HEIGHT) {
            Some(mean) => {
                canvas.text_centred((right, middle - 6.5), name, style);
                let style = TextStyle::new(TINY).anchor(Anchor::End).color(SOFT_INK);
                let text = format!("mean {}", times(mean));
                canvas.text_centred((right, middle + 7.0), text, style);
            }
            None => canvas.text_centred((right, middle), name, style),
        }
    }

    /// Draws the bars of a group around `middle`, with spreads and values.
    fn draw_bars(&self, canvas: &mut Canvas, panel: &Panel, middle: f64, group: &BarGroup) {
        let each = panel.field.height / self.groups.len() as f64;
        let pitch = (each - SPACE).max(each / 2.0) / self.series.len() as f64;
        let half = pitch * self.series.len() as f64 / 2.0;
        let style = TextStyle::new(TINY);
        let one = panel.x_at(1.0);
        for (at, bar) in group.bars.iter().enumerate() {
            let y = middle - half + pitch * (at as f64 + 0.5);
            let Some(bar) = bar.filter(|bar| ScaleKind::Log.shows(bar.value)) else {
                let style = style.color(SOFT_INK);
                canvas.text_centred((one + 4.0, y), "–", style);
                continue;
            };
            let end = panel.x_at(bar.value);
            let thick = (pitch - 2.0).max(1.0);
            let corner = (one.min(end), y - thick / 2.0);
            canvas.rect(corner, ((end - one).abs(), thick), fill_color(at));
            let farthest = draw_spread(canvas, panel, y, thick / 4.0, &bar).max(one);
            if pitch >= 9.0 {
                canvas.text_centred((farthest + 5.0, y), times(bar.value), style);
            }
        }
    }

    /// Checks that all fits and returns the scale of ratios.
    fn check(&self) -> Result<Scale, PlotError> {
        let uneven = self.groups.iter().find(|group| group.bars.len() != self.series.len());
        if let Some(group) = uneven {
            let (name, bars, series) = (&group.name, group.bars.len(), self.series.len());
            let reason = format!("group `{name}` has {bars} bars for {series} series");
            return Err(PlotError::mismatch(FIGURE, reason));
        }
        let bars = self.groups.iter().flat_map(|group| &group.bars).flatten();
        let values = bars.flat_map(|bar| [bar.value, bar.low, bar.high]);
        let Some((low, high)) = range(values.filter(|&value| ScaleKind::Log.shows(value))) else {
            let reason = "no bar has a ratio; give finite values above zero";
            return Err(PlotError::empty(FIGURE, reason));
        };
        let (low, high) = (low.min(1.0), high.max(1.0));
        // One is at the edge only where nothing is below.
        let free = |share: f64| (share * (high.ln() - low.ln())).exp();
        let low_end = if low < 1.0 { low / free(0.03) } else { low };
        Ok(Scale::exact(ScaleKind::Log, low_end, high * free(0.02)))
    }
}

/// Draws the spread of a bar at the height `y` with caps of the length `cap` to either side; returns where the
/// bar or its spread ends at the right.
fn draw_spread(canvas: &mut Canvas, panel: &Panel, y: f64, cap: f64, bar: &Bar) -> f64 {
    let shown = ScaleKind::Log.shows(bar.low) && ScaleKind::Log.shows(bar.high);
    if !shown || bar.low >= bar.high {
        return panel.x_at(bar.value);
    }
    let (low, high) = (panel.x_at(bar.low), panel.x_at(bar.high));
    let stroke = Stroke { width: 0.9, color: INK };
    canvas.line(vec![(low, y), (high, y)], stroke);
    for x in [low, high] {
        canvas.line(vec![(x, y - cap), (x, y + cap)], stroke);
    }
    high.max(panel.x_at(bar.value))
}

/// Writes a ratio.
fn times(ratio: f64) -> String {
    match (0.1..100.0).contains(&ratio) {
        true => format!("{ratio:.2}×"),
        false => format!("{}×", significant(ratio, 3)),
    }
}

/// The geometric mean of a group of several bars.
fn mean(group: &BarGroup) -> Option<f64> {
    let bars = group.bars.iter().flatten().map(|bar| bar.value);
    let logs: Vec<f64> = bars.filter(|&v| ScaleKind::Log.shows(v)).map(f64::ln).collect();
    (logs.len() > 1).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}
