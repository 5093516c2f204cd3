//! Labels beside points, where they have room.

use crate::axes::Area;
use crate::canvas::Canvas;
use crate::canvas::Point;
use crate::canvas::TextStyle;
use crate::style::TINY;

/// The text of labels.
const LABEL: TextStyle = TextStyle::new(TINY);

/// What labels keep out of: points and labels already written.
pub(crate) struct PointLabels {
    field: Area,
    taken: Vec<Frame>,
}

/// A rectangle by two corners.
#[derive(Clone, Copy)]
struct Frame {
    from: Point,
    to: Point,
}

impl Frame {
    fn touches(&self, other: &Frame) -> bool {
        self.from.0 < other.to.0
            && other.from.0 < self.to.0
            && self.from.1 < other.to.1
            && other.from.1 < self.to.1
    }
}

impl PointLabels {
    /// Returns an empty field.
    pub(crate) fn new(field: Area) -> PointLabels {
        PointLabels { field, taken: Vec::new() }
    }

    /// Keeps labels out of a point.
    pub(crate) fn keep_clear(&mut self, (x, y): Point, radius: f64) {
        self.taken.push(Frame { from: (x - radius, y - radius), to: (x + radius, y + radius) });
    }

    /// Keeps labels out of a line.
    pub(crate) fn keep_line_clear(&mut self, from: Point, to: Point) {
        const STEP: f64 = 2.0;
        let steps = ((to.0 - from.0).hypot(to.1 - from.1) / STEP).ceil().max(1.0);
        for step in 0..=steps as usize {
            let t = step as f64 / steps;
            self.keep_clear((from.0 + t * (to.0 - from.0), from.1 + t * (to.1 - from.1)), 1.0);
        }
    }

    /// Writes a label right, left, above or below a point of some radius, where it first meets
    /// nothing; leaves it out where it has no room.
    pub(crate) fn write(
        &mut self,
        canvas: &mut Canvas,
        ((x, y), radius): (Point, f64),
        label: &str,
    ) {
        let width = LABEL.width(label);
        let gap = radius + 4.0;
        let starts = [
            (x + gap, y + 3.5),
            (x - gap - width, y + 3.5),
            (x - width / 2.0, y - gap - 2.0),
            (x - width / 2.0, y + gap + TINY),
        ];
        for start in starts {
            let (from, to) = ((start.0, start.1 - TINY), (start.0 + width, start.1 + 2.0));
            let frame = Frame { from, to };
            if self.has(&frame) && !self.taken.iter().any(|other| other.touches(&frame)) {
                canvas.text(start, label, LABEL);
                self.taken.push(frame);
                return;
            }
        }
    }

    /// Returns whether a frame lies inside the field.
    fn has(&self, frame: &Frame) -> bool {
        let field = self.field;
        frame.from.0 > field.left
            && frame.to.0 < field.left + field.width
            && frame.from.1 > field.top
            && frame.to.1 < field.top + field.height
    }
}
