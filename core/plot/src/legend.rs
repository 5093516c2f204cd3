//! Legends: a grid of colours and names outside the field of data.

use crate::canvas::Canvas;
use crate::canvas::Point;
use crate::canvas::Stroke;
use crate::canvas::TextStyle;
use crate::series::Look;
use crate::series::draw_marker;
use crate::style::Color;
use crate::style::MARKER;
use crate::style::SMALL;
use crate::style::SOFT_INK;

/// Height of a line of a legend.
const LINE: f64 = SMALL + 5.5;
/// Side of the square of colour.
const SQUARE: f64 = 10.0;
/// From the left edge of the square to the name.
const START: f64 = SQUARE + 6.0;

/// One line of a legend.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its colour.
    pub(crate) color: Color,
    /// Its name.
    pub(crate) name: String,
    /// Numbers after the name, in softer text; may be empty.
    pub(crate) note: String,
    /// The sign before the name.
    pub(crate) sign: Sign,
}

/// What stands before a name in a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A square of colour.
    Square,
    /// A marker, by the number of its shape.
    Marker(usize),
    /// A short arrow.
    Arrow,
    /// A short line.
    Line,
}

impl Entry {
    /// Returns a square of colour with a name.
    pub(crate) fn new(color: Color, name: impl Into<String>) -> Entry {
        Entry { color, name: name.into(), note: String::new(), sign: Sign::Square }
    }
}

/// Draws the entries row by row into as many equal columns as `width` takes, the first square at
/// `corner`, and returns the position below.
pub(crate) fn draw_legend(
    canvas: &mut Canvas,
    corner: Point,
    width: f64,
    entries: &[Entry],
) -> f64 {
    let style = TextStyle::SMALL;
    let grid = grid(width, entries);
    let mut y = corner.1;
    for row in entries.chunks(grid.columns) {
        for (entry, column) in row.iter().zip(0_u32..) {
            let x = corner.0 + grid.pitch * f64::from(column);
            draw_sign(canvas, (x, y), entry);
            for (line, below) in wrapped(&entry.name, grid.names).into_iter().zip(0_u32..) {
                let middle = y + SQUARE / 2.0 + LINE * f64::from(below);
                canvas.text_centred((x + START, middle), style.fit(&line, grid.names), style);
            }
            let note = (x + START + grid.names + grid.gap, y + SQUARE / 2.0);
            canvas.text_centred(note, entry.note.clone(), style.color(SOFT_INK));
        }
        y += LINE * grid.lines(row) as f64;
    }
    y
}

/// Returns the height of the entries in this width.
pub(crate) fn legend_height(width: f64, entries: &[Entry]) -> f64 {
    let grid = grid(width, entries);
    entries.chunks(grid.columns).map(|row| LINE * grid.lines(row) as f64).sum()
}

/// Returns a name in lines that fit `width`, broken between words; a word alone may be longer.
pub(crate) fn wrapped(name: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split(' ') {
        match lines.last_mut() {
            Some(line) if TextStyle::SMALL.width(&format!("{line} {word}")) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The columns of a legend.
struct Grid {
    /// Room for names.
    names: f64,
    /// Between a name and its note.
    gap: f64,
    /// From column to column.
    pitch: f64,
    columns: usize,
}

impl Grid {
    /// Returns the lines that a row of entries takes.
    fn lines(&self, row: &[Entry]) -> usize {
        row.iter().map(|entry| wrapped(&entry.name, self.names).len()).max().unwrap_or(1)
    }
}

fn grid(width: f64, entries: &[Entry]) -> Grid {
    let longest = |text: fn(&Entry) -> &str| {
        entries.iter().map(|entry| TextStyle::SMALL.width(text(entry))).fold(0.0, f64::max)
    };
    let notes = longest(|entry| &entry.note);
    let gap = if notes > 0.0 { 8.0 } else { 0.0 };
    let names = longest(|entry| &entry.name).min(width - START - gap - notes);
    let pitch = START + names + gap + notes + 22.0;
    let columns = (((width + 22.0) / pitch) as usize).clamp(1, entries.len().max(1));
    Grid { names, gap, pitch, columns }
}

/// Draws the sign of an entry into the square at `corner`.
fn draw_sign(canvas: &mut Canvas, (x, y): Point, entry: &Entry) {
    let middle = y + SQUARE / 2.0;
    match entry.sign {
        Sign::Square => canvas.rect((x, y), (SQUARE, SQUARE), entry.color),
        Sign::Marker(shape) => {
            let look = Look { color: entry.color, marker: Some(shape) };
            draw_marker(canvas, (x + SQUARE / 2.0, middle), look, MARKER + 0.6);
        }
        Sign::Arrow => {
            let stroke = Stroke { width: 1.3, color: entry.color };
            canvas.arrow(vec![(x - 1.0, middle), (x + SQUARE + 2.0, middle)], stroke);
        }
        Sign::Line => {
            let stroke = Stroke { width: 2.2, color: entry.color };
            canvas.line(vec![(x - 1.0, middle), (x + SQUARE + 1.0, middle)], stroke);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_take_lines_and_are_not_cut() {
        let long =
            "plain, rank 32, without blocks, merging, fusing and layouts, from singular vectors";
        let entries = [Entry::new(SOFT_INK, "cp"), Entry::new(SOFT_INK, long)];
        let width = 150.0;
        let lines = wrapped(long, width - START);
        assert!(lines.len() > 2 && lines.join(" ") == long, "{lines:?}");
        assert!(lines.iter().all(|line| TextStyle::SMALL.width(line) <= width - START));
        assert_eq!(legend_height(width, &entries), LINE * (1 + lines.len()) as f64);
        // Names that fit stand in a line each, as before.
        assert_eq!(legend_height(2000.0, &entries), LINE);
    }
}
