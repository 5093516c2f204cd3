//! Horizontal stacked bars of seconds with their axis and legend.

use crate::axes::Area;
use crate::axes::Axis;
use crate::axes::Panel;
use crate::canvas::Anchor;
use crate::canvas::Canvas;
use crate::canvas::Point;
use crate::canvas::TextStyle;
use crate::legend::Entry;
use crate::legend::draw_legend;
use crate::legend::wrapped;
use crate::number::TimeUnit;
use crate::number::percent;
use crate::number::time;
use crate::scale::Scale;
use crate::style::SMALL;
use crate::style::WHITE;
use crate::style::fill_color;

/// Height of one bar.
const BAR: f64 = 27.0;
/// Distance from bar to bar.
const PITCH: f64 = 36.0;
/// Room for names of bars at most.
const MOST_NAME: f64 = 190.0;
/// Lines that a name may take, and their distance.
const NAME_LINES: usize = 2;
const LINE: f64 = SMALL + 2.5;

/// One bar: its name and the seconds of each part.
#[derive(Clone, Debug)]
pub(crate) struct Stack {
    /// The name at its left.
    pub(crate) name: String,
    /// Seconds by part, none below zero.
    pub(crate) seconds: Vec<f64>,
}

impl Stack {
    /// Returns the length of the whole bar.
    pub(crate) fn total(&self) -> f64 {
        self.seconds.iter().sum()
    }
}

/// Draws the bars from `area.top` down, as high as they need, and returns the position below.
///
/// A single bar has its numbers in the legend; of several, each bar carries its own.
pub(crate) fn draw_stacks(
    canvas: &mut Canvas,
    area: Area,
    axis_name: &str,
    parts: &[String],
    stacks: &[Stack],
) -> f64 {
    let longest = stacks.iter().map(Stack::total).fold(0.0, f64::max);
    let unit = TimeUnit::suiting(longest);
    let style = TextStyle::SMALL;
    let widths = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
    let names = widths(&mut stacks.iter().map(|s| style.width(&s.name))).min(MOST_NAME);
    let totals = widths(&mut stacks.iter().map(|s| style.width(&time(s.total())))) + 14.0;

    let outer = Area {
        left: area.left + names,
        width: area.width - names - totals,
        height: PITCH * stacks.len() as f64 + 42.0,
        ..area
    };
    let x = Axis::new(
        Scale::span(0.0, if longest > 1e-290 { longest / unit.seconds } else { 1.0 }),
        8,
        format!("{axis_name} ({})", unit.symbol),
    );
    let y = Axis {
        scale: Scale::span(0.0, stacks.len().max(1) as f64),
        ticks: Vec::new(),
        name: String::new(),
        label_room: 0.0,
    };
    let panel = Panel::draw(canvas, outer, &x, &y);
    let pitch = panel.field.height / stacks.len().max(1) as f64;
    for (row, stack) in stacks.iter().enumerate() {
        let middle = panel.field.top + pitch * (row as f64 + 0.5);
        draw_name(canvas, (panel.field.left - 8.0, middle), &stack.name, names + 0.01);
        let end = draw_stack(canvas, &panel, middle, unit, stack);
        canvas.text_centred((end + 6.0, middle), time(stack.total()), style);
    }

    let note = |part: usize| match stacks {
        [only] => {
            let seconds = only.seconds[part];
            format!("{}, {}", time(seconds), percent(seconds / only.total()))
        }
        _ => String::new(),
    };
    let entries: Vec<_> = parts
        .iter()
        .enumerate()
        .map(|(at, name)| Entry { note: note(at), ..Entry::new(fill_color(at), name) })
        .collect();
    let corner = (panel.field.left, outer.top + outer.height + 10.0);
    draw_legend(canvas, corner, area.left + area.width - corner.0, &entries)
}

/// Draws a name of a bar in up to [`NAME_LINES`] lines, which end at `place`.
fn draw_name(canvas: &mut Canvas, place: Point, name: &str, room: f64) {
    let style = TextStyle::SMALL.anchor(Anchor::End);
    let mut lines = wrapped(name, room);
    if lines.len() > NAME_LINES {
        let rest = lines.split_off(NAME_LINES - 1).join(" ");
        lines.push(rest);
    }
    let first = place.1 - LINE * (lines.len() - 1) as f64 / 2.0;
    for (at, line) in lines.iter().enumerate() {
        let middle = first + LINE * at as f64;
        canvas.text_centred((place.0, middle), style.fit(line, room), style);
    }
}

/// Draws one bar with the numbers that fit inside its parts, and returns its right end.
fn draw_stack(
    canvas: &mut Canvas,
    panel: &Panel,
    middle: f64,
    unit: TimeUnit,
    stack: &Stack,
) -> f64 {
    let total = stack.total();
    let mut done = 0.0;
    for (part, seconds) in stack.seconds.iter().enumerate() {
        let (from, to) =
            (panel.x_at(done / unit.seconds), panel.x_at((done + seconds) / unit.seconds));
        done += seconds;
        let color = fill_color(part);
        canvas.rect((from, middle - BAR / 2.0), (to - from, BAR), color);
        if to - from > 4.0 {
            // A white seam keeps neighbours of similar lightness apart.
            canvas.rect((to - 0.7, middle - BAR / 2.0), (0.7, BAR), WHITE);
        }
        let short = percent(seconds / total);
        let full = format!("{}, {short}", time(*seconds));
        let style = TextStyle::SMALL.color(color.text_on()).anchor(Anchor::Middle);
        let fits = [full, short].into_iter().find(|text| style.width(text) + 8.0 <= to - from);
        canvas.text_centred(((from + to) / 2.0, middle), fits.unwrap_or_default(), style);
    }
    panel.x_at(done / unit.seconds)
}
