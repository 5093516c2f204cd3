//! A panel with axes: frame, grid, ticks and names around a field of data.

use crate::canvas::Anchor;
use crate::canvas::Canvas;
use crate::canvas::Point;
use crate::canvas::Stroke;
use crate::canvas::TextStyle;
use crate::scale::Scale;
use crate::scale::Tick;
use crate::style::FRAME;
use crate::style::GRID;
use crate::style::LABEL;
use crate::style::SMALL;
use crate::style::THIN_LINE;

/// Length of a tick mark and distance of its label from it.
const TICK: f64 = 4.0;

/// A rectangle of the figure, in points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    /// Left edge.
    pub(crate) left: f64,
    /// Top edge.
    pub(crate) top: f64,
    /// Width.
    pub(crate) width: f64,
    /// Height.
    pub(crate) height: f64,
}

/// One axis of a panel.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// Where values lie.
    pub(crate) scale: Scale,
    /// What is marked.
    pub(crate) ticks: Vec<Tick>,
    /// What the axis shows, with its unit; nothing is written for an empty name.
    pub(crate) name: String,
    /// Least width kept for the labels of a vertical axis, to align panels above each other.
    pub(crate) label_room: f64,
}

impl Axis {
    /// Returns an axis with about `wanted` ticks.
    pub(crate) fn new(scale: Scale, wanted: usize, name: impl Into<String>) -> Axis {
        Axis { scale, ticks: scale.ticks(wanted), name: name.into(), label_room: 0.0 }
    }

    /// Returns an axis of whole numbers with about `wanted` ticks.
    pub(crate) fn whole(scale: Scale, wanted: usize, name: impl Into<String>) -> Axis {
        Axis { scale, ticks: scale.whole_ticks(wanted), name: name.into(), label_room: 0.0 }
    }

    /// Returns the width of the widest label.
    pub(crate) fn labels_width(&self) -> f64 {
        let widths = self.ticks.iter().map(|tick| TextStyle::SMALL.width(&tick.label));
        widths.fold(0.0, f64::max)
    }
}

/// The field of data inside its axes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    /// The field.
    pub(crate) field: Area,
    /// Horizontal scale.
    pub(crate) x: Scale,
    /// Vertical scale.
    pub(crate) y: Scale,
}

impl Panel {
    /// Draws axes that, with their labels, fill `outer`, and returns the field they leave.
    pub(crate) fn draw(canvas: &mut Canvas, outer: Area, x: &Axis, y: &Axis) -> Panel {
        let style = TextStyle::SMALL;
        let named = |name: &str| if name.is_empty() { 0.0 } else { LABEL + 8.0 };
        let left = named(&y.name) + y.labels_width().max(y.label_room) + 2.0 * TICK;
        let below = named(&x.name) + SMALL + 2.0 * TICK;
        let half_last = x.ticks.last().map_or(0.0, |t| style.width(&t.label) / 2.0);
        let half_top = SMALL / 2.0;
        let field = Area {
            left: outer.left + left,
            top: outer.top + half_top,
            width: (outer.width - left - half_last).max(1.0),
            height: (outer.height - below - half_top).max(1.0),
        };
        let panel = Panel { field, x: x.scale, y: y.scale };
        panel.draw_x(canvas, x);
        panel.draw_y(canvas, y, outer.left);
        let (bottom, right) = (field.top + field.height, field.left + field.width);
        let frame = vec![(field.left, field.top), (field.left, bottom), (right, bottom)];
        canvas.line(frame, Stroke { width: THIN_LINE, color: FRAME });
        panel
    }

    /// Returns the point of the values `x` and `y`.
    pub(crate) fn point(&self, x: f64, y: f64) -> Point {
        (self.x_at(x), self.y_at(y))
    }

    /// Returns the horizontal position of the value `x`, at most at the field's edges.
    pub(crate) fn x_at(&self, x: f64) -> f64 {
        self.field.left + self.x.place(x).clamp(0.0, 1.0) * self.field.width
    }

    /// Returns the vertical position of the value `y`, at most at the field's edges.
    pub(crate) fn y_at(&self, y: f64) -> f64 {
        self.field.top + (1.0 - self.y.place(y).clamp(0.0, 1.0)) * self.field.height
    }

    fn draw_x(&self, canvas: &mut Canvas, axis: &Axis) {
        let (top, bottom) = (self.field.top, self.field.top + self.field.height);
        let mut free = f64::NEG_INFINITY;
        for tick in &axis.ticks {
            let x = self.x_at(tick.value);
            canvas.line(vec![(x, top), (x, bottom)], Stroke { width: THIN_LINE, color: GRID });
            canvas.line(
                vec![(x, bottom), (x, bottom + TICK)],
                Stroke { width: THIN_LINE, color: FRAME },
            );
            let half = TextStyle::SMALL.width(&tick.label) / 2.0;
            // A label that would touch the one before it is left out; its grid line remains.
            if x - half >= free {
                let style = TextStyle::SMALL.anchor(Anchor::Middle);
                canvas.text((x, bottom + TICK + SMALL + 1.0), tick.label.clone(), style);
                free = x + half + 6.0;
            }
        }
        let middle = self.field.left + self.field.width / 2.0;
        let style = TextStyle::new(LABEL).anchor(Anchor::Middle);
        canvas.text((middle, bottom + TICK + SMALL + LABEL + 7.0), axis.name.clone(), style);
    }

    fn draw_y(&self, canvas: &mut Canvas, axis: &Axis, outer_left: f64) {
        let (left, right) = (self.field.left, self.field.left + self.field.width);
        for tick in &axis.ticks {
            let y = self.y_at(tick.value);
            canvas.line(vec![(left, y), (right, y)], Stroke { width: THIN_LINE, color: GRID });
            canvas
                .line(vec![(left - TICK, y), (left, y)], Stroke { width: THIN_LINE, color: FRAME });
            let style = TextStyle::SMALL.anchor(Anchor::End);
            canvas.text_centred((left - 1.75 * TICK, y), tick.label.clone(), style);
        }
        let middle = self.field.top + self.field.height / 2.0;
        let style = TextStyle::new(LABEL).anchor(Anchor::Middle).up();
        canvas.text_centred((outer_left + LABEL / 2.0, middle), axis.name.clone(), style);
    }
}
