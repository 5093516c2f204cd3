//! The canvas: a list of shapes and texts that a figure leaves for the writers of files.
//!
//! Figures draw on it once, in points with the origin at the top left; `svg` and `png` replay it.
//! Texts always lie above shapes.  A recorded list, instead of drawing right on a backend, keeps
//! figures free of type parameters and drawing errors, and lets tests look at what was drawn.

use std::borrow::Cow;
use std::f64::consts::FRAC_PI_2;

use crate::font;
use crate::style::CAP_HEIGHT;
use crate::style::Color;
use crate::style::INK;
use crate::style::SMALL;

/// Most characters of a text: narrow ones fill the widest figure.
const MOST_CHARACTERS: usize = 400;

/// A point: right and down from the top left corner, in points.
pub(crate) type Point = (f64, f64);

/// The width and colour of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke {
    /// Width in points.
    pub(crate) width: f64,
    /// Colour.
    pub(crate) color: Color,
}

/// The lengths of a line that is interrupted.
#[derive(Clone, Copy)]
struct Dash {
    /// Of each piece.
    on: f64,
    /// From the start of a piece to that of the next.
    period: f64,
}

/// One drawn thing.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// An open line through two points or more.
    Line(Vec<Point>, Stroke),
    /// A filled polygon.
    Polygon(Vec<Point>, Color),
    /// A filled rectangle from its top left to its bottom right corner.
    Rect(Point, Point, Color),
    /// A filled disc: centre and radius.
    Disc(Point, f64, Color),
}

/// Which part of a text lies at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// The left end.
    Start,
    /// The middle.
    Middle,
    /// The right end.
    End,
}

/// The weight of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Plain text.
    Regular,
    /// Titles.
    Bold,
}

/// The direction in which a text runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From left to right.
    Right,
    /// From the bottom to the top.
    Up,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextStyle {
    /// Points per em.
    pub(crate) size: f64,
    /// Colour.
    pub(crate) color: Color,
    /// Weight.
    pub(crate) weight: Weight,
    /// What lies at the position.
    pub(crate) anchor: Anchor,
    /// Direction.
    pub(crate) direction: Direction,
}

impl TextStyle {
    /// Plain dark text of some size that starts at its position.
    pub(crate) const fn new(size: f64) -> TextStyle {
        TextStyle {
            size,
            color: INK,
            weight: Weight::Regular,
            anchor: Anchor::Start,
            direction: Direction::Right,
        }
    }

    /// The text of ticks, legends and notes.
    pub(crate) const SMALL: TextStyle = TextStyle::new(SMALL);

    /// Changes the colour.
    pub(crate) const fn color(self, color: Color) -> TextStyle {
        TextStyle { color, ..self }
    }

    /// Makes the text bold.
    pub(crate) const fn bold(self) -> TextStyle {
        TextStyle { weight: Weight::Bold, ..self }
    }

    /// Changes what lies at the position.
    pub(crate) const fn anchor(self, anchor: Anchor) -> TextStyle {
        TextStyle { anchor, ..self }
    }

    /// Turns the text to run upwards.
    pub(crate) const fn up(self) -> TextStyle {
        TextStyle { direction: Direction::Up, ..self }
    }

    /// Returns the width of `text` in points, as it is drawn.
    pub(crate) fn width(self, text: &str) -> f64 {
        font::width(&drawable(text), self.weight) * self.size
    }

    /// Returns `text`, cut with an ellipsis where it is wider than `room` points.
    pub(crate) fn fit(self, text: &str, room: f64) -> String {
        let text = drawable(text);
        if font::width(&text, self.weight) * self.size <= room {
            return text.into_owned();
        }
        let (mut used, mut end) = (self.width("…"), 0);
        for (at, character) in text.char_indices() {
            let next = at + character.len_utf8();
            used += font::width(&text[at..next], self.weight) * self.size;
            if used > room {
                break;
            }
            end = next;
        }
        text[..end].trim_end().to_owned() + "…"
    }
}

/// A text on the canvas.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// The characters.
    pub(crate) text: String,
    /// The anchor, on the base line.
    pub(crate) at: Point,
    /// How it looks.
    pub(crate) style: TextStyle,
}

/// Returns `text` without what no figure may hold, cut where it is longer than any figure is wide.
///
/// White space of every kind becomes a blank.  Control characters are left out, which XML forbids, and so are
/// marks that turn the direction of the text around them.
pub(crate) fn drawable(text: &str) -> Cow<'_, str> {
    let banned = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
    };
    let is_short = text.len() <= MOST_CHARACTERS || text.chars().nth(MOST_CHARACTERS).is_none();
    if is_short && !text.contains(banned) {
        return Cow::Borrowed(text);
    }
    let blank = |c: char| if c.is_whitespace() { ' ' } else { c };
    let mut kept = text.chars().map(blank).filter(|&c| !banned(c));
    let mut short: String = kept.by_ref().take(MOST_CHARACTERS).collect();
    if kept.next().is_some() {
        short.pop();
        short.push('…');
    }
    Cow::Owned(short)
}

/// What a figure has drawn.
#[derive(Clone, Debug)]
pub struct Canvas {
    /// Width and height in points.
    pub(crate) size: (u32, u32),
    /// Shapes, from back to front.
    pub(crate) shapes: Vec<Shape>,
    /// Texts.
    pub(crate) texts: Vec<Text>,
}

impl Canvas {
    /// Returns an empty white canvas of this width and height in points.
    pub fn new(size: (u32, u32)) -> Canvas {
        Canvas { size, shapes: Vec::new(), texts: Vec::new() }
    }

    /// Returns the texts drawn so far, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| text.text.as_str())
    }

    /// Draws a line through `points`; fewer than two draw nothing.
    pub(crate) fn line(&mut self, points: Vec<Point>, stroke: Stroke) {
        if points.len() > 1 {
            self.shapes.push(Shape::Line(points, stroke));
        }
    }

    /// Draws all of another canvas, its top left corner at `corner`.
    pub(crate) fn place(&mut self, other: Canvas, corner: Point) {
        let at = |(x, y): Point| (x + corner.0, y + corner.1);
        let all = |points: Vec<Point>| points.into_iter().map(at).collect();
        self.shapes.extend(other.shapes.into_iter().map(|shape| match shape {
            Shape::Line(points, stroke) => Shape::Line(all(points), stroke),
            Shape::Polygon(points, color) => Shape::Polygon(all(points), color),
            Shape::Rect(from, to, color) => Shape::Rect(at(from), at(to), color),
            Shape::Disc(centre, radius, color) => Shape::Disc(at(centre), radius, color),
        }));
        self.texts.extend(other.texts.into_iter().map(|text| Text { at: at(text.at), ..text }));
    }

    /// Draws a dashed line between two points.
    pub(crate) fn dashes(&mut self, from: Point, to: Point, stroke: Stroke) {
        self.interrupted(from, to, Dash { on: 6.0, period: 10.0 }, stroke);
    }

    /// Draws a dotted line between two points.
    pub(crate) fn dots(&mut self, from: Point, to: Point, stroke: Stroke) {
        self.interrupted(from, to, Dash { on: 1.5, period: 5.0 }, stroke);
    }

    /// Draws a line with gaps between two points.
    fn interrupted(&mut self, from: Point, to: Point, dash: Dash, stroke: Stroke) {
        let Dash { on, period } = dash;
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let along = |t: f64| {
            let t = (t / length).min(1.0);
            (from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1))
        };
        for dash in 0..(length / period).ceil() as usize {
            let start = dash as f64 * period;
            self.line(vec![along(start), along(start + on)], stroke);
        }
    }

    /// Draws a line through `points` that ends in an arrow head, its tip the last point.
    pub(crate) fn arrow(&mut self, mut points: Vec<Point>, stroke: Stroke) {
        const HEAD: (f64, f64) = (6.5, 2.9);
        let [.., before, tip] = points[..] else { return };
        let length = (tip.0 - before.0).hypot(tip.1 - before.1).max(1e-9);
        let (x, y) = ((tip.0 - before.0) / length, (tip.1 - before.1) / length);
        let back = (tip.0 - HEAD.0 * x, tip.1 - HEAD.0 * y);
        points.pop();
        // The line ends inside the head, whose tip stays sharp.
        points.push((back.0 + x, back.1 + y));
        self.line(points, stroke);
        let side = |sign: f64| (back.0 - sign * HEAD.1 * y, back.1 + sign * HEAD.1 * x);
        self.polygon(vec![tip, side(1.0), side(-1.0)], stroke.color);
    }

    /// Fills a polygon.
    pub(crate) fn polygon(&mut self, points: Vec<Point>, color: Color) {
        self.shapes.push(Shape::Polygon(points, color));
    }

    /// Fills a rectangle given by its top left corner, width and height.
    pub(crate) fn rect(&mut self, (x, y): Point, (width, height): (f64, f64), color: Color) {
        self.shapes.push(Shape::Rect((x, y), (x + width, y + height), color));
    }

    /// Fills a rectangle with round corners, given by its top left corner, width and height.
    pub(crate) fn rounded(
        &mut self,
        (x, y): Point,
        (width, height): (f64, f64),
        radius: f64,
        color: Color,
    ) {
        const STEPS: u32 = 6;
        let radius = radius.min(width / 2.0).min(height / 2.0).max(0.0);
        let (right, bottom) = (x + width - radius, y + height - radius);
        let centres =
            [(right, bottom), (x + radius, bottom), (x + radius, y + radius), (right, y + radius)];
        let corner = |(quarter, (x, y)): (usize, Point)| {
            (0..=STEPS).map(move |step| {
                let angle = (quarter as f64 + f64::from(step) / f64::from(STEPS)) * FRAC_PI_2;
                (x + radius * angle.cos(), y + radius * angle.sin())
            })
        };
        self.polygon(centres.into_iter().enumerate().flat_map(corner).collect(), color);
    }

    /// Fills a disc.
    pub(crate) fn disc(&mut self, centre: Point, radius: f64, color: Color) {
        self.shapes.push(Shape::Disc(centre, radius, color));
    }

    /// Writes a text with its anchor on the base line at `at`.
    pub(crate) fn text(&mut self, at: Point, text: impl Into<String>, style: TextStyle) {
        let text = text.into();
        if !text.is_empty() {
            let text = drawable(&text).into_owned();
            self.texts.push(Text { text, at, style });
        }
    }

    /// Writes a text whose capitals are centred on `at`, across its direction.
    pub(crate) fn text_centred(&mut self, at: Point, text: impl Into<String>, style: TextStyle) {
        let drop = style.size * CAP_HEIGHT / 2.0;
        let at = match style.direction {
            Direction::Right => (at.0, at.1 + drop),
            Direction::Up => (at.0 + drop, at.1),
        };
        self.text(at, text, style);
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_CHARACTERS, TextStyle, drawable};

    #[test]
    fn texts_hold_what_a_figure_may_hold() {
        assert_eq!(drawable("λ = 3 <b>&"), "λ = 3 <b>&");
        assert_eq!(drawable("a\0b\u{1b}[31mc\u{7f}\u{9b}d\u{fffe}"), "ab[31mcd");
        assert_eq!(drawable("one\ttwo\nthree\u{2028}four"), "one two three four");
        assert_eq!(drawable("abc\u{202e}def\u{2066}"), "abcdef");
    }

    #[test]
    fn long_texts_are_cut_before_they_are_measured() {
        let long = "x".repeat(50_000_000);
        let cut = drawable(&long);
        assert_eq!(cut.chars().count(), MOST_CHARACTERS);
        assert!(cut.ends_with("x…"));
        let style = TextStyle::SMALL;
        assert_eq!(style.width(&long), style.width(&cut));
        assert!(style.width(&style.fit(&long, 100.0)) <= 100.0);
        let just = "x".repeat(MOST_CHARACTERS);
        assert_eq!(drawable(&just), just);
    }
}
