//! A canvas as pixels: two per point, each the mean of four drawn ones, which smooths all edges.
//!
//! A few rows are drawn at a time, so that a figure takes little memory and stays in the cache.

use std::fmt::Display;
use std::ops::Range;

use plotters::backend::BitMapBackend;
use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::ShapeStyle;

use crate::canvas::Anchor;
use crate::canvas::Canvas;
use crate::canvas::Direction;
use crate::canvas::Point;
use crate::canvas::Shape;
use crate::canvas::Stroke;
use crate::canvas::Text;
use crate::error::PlotError;
use crate::font;
use crate::style::Color;

/// Pixels of the file per point.
pub(crate) const PIXELS: u32 = 2;
/// Drawn pixels per pixel of the file, in each direction.
const SAMPLES: u32 = 2;
/// Drawn pixels per point.
const SCALE: f64 = (PIXELS * SAMPLES) as f64;

/// Some rows of the figure, as drawn.
pub(crate) struct Band {
    /// Drawn pixels of a row.
    width: u32,
    /// The drawn rows.
    rows: Range<i32>,
    /// Their pixels.
    pixels: Vec<u8>,
    /// The pixels of the file.
    small: Vec<u8>,
}

impl Band {
    /// Makes room for rows of `width` pixels of the file.
    pub(crate) fn new(width: u32) -> Band {
        Band { width: width * SAMPLES, rows: 0..0, pixels: Vec::new(), small: Vec::new() }
    }

    /// Draws what of the canvas lies in `rows` of the file.
    ///
    /// # Errors
    ///
    /// [`PlotError::Render`] if the drawing library refuses.
    pub(crate) fn draw(&mut self, canvas: &Canvas, rows: Range<usize>) -> Result<(), PlotError> {
        let drawn = |row: usize| row as i32 * SAMPLES as i32;
        self.rows = drawn(rows.start)..drawn(rows.end);
        self.pixels.clear();
        self.pixels.resize(3 * self.width as usize * self.rows.len(), 255);
        let size = (self.width, self.rows.len() as u32);
        let mut pen = Pen {
            first: self.rows.start,
            backend: BitMapBackend::with_buffer(&mut self.pixels, size),
        };
        for shape in canvas.shapes.iter().filter(|shape| meets(&self.rows, reach(shape))) {
            pen.shape(shape)?;
        }
        pen.backend.present().map_err(refused)?;
        drop(pen);
        let rows = self.rows.clone();
        for text in canvas.texts.iter().filter(|text| meets(&rows, text_reach(text))) {
            self.text(text);
        }
        Ok(())
    }

    /// Blends a text over the drawn pixels.
    fn text(&mut self, text: &Text) {
        let style = text.style;
        let back = match style.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => style.width(&text.text) / 2.0,
            Anchor::End => style.width(&text.text),
        };
        let start = match style.direction {
            Direction::Right => samples((text.at.0 - back, text.at.1)),
            Direction::Up => samples((text.at.0, text.at.1 + back)),
        };
        let ink = [style.color.0, style.color.1, style.color.2];
        font::cover(&text.text, style.weight, style.size * SCALE, |along, across, coverage| {
            let (x, y) = match style.direction {
                Direction::Right => (start.0 + along, start.1 + across),
                Direction::Up => (start.0 + across, start.1 - along),
            };
            let inside = (0..self.width as i32).contains(&x) && self.rows.contains(&y);
            if inside && coverage > 0.0 {
                let row = (y - self.rows.start) as usize;
                let at = 3 * (row * self.width as usize + x as usize);
                for (old, new) in self.pixels[at..at + 3].iter_mut().zip(ink) {
                    let mixed = f32::from(*old) * (1.0 - coverage) + f32::from(new) * coverage;
                    *old = (mixed + 0.5) as u8;
                }
            }
        });
    }

    /// Returns the pixels of the file: each square of `SAMPLES` by `SAMPLES` drawn ones replaced by its
    /// mean.
    pub(crate) fn shrink(&mut self) -> &[u8] {
        const SIDE: usize = SAMPLES as usize;
        let row = 3 * self.width as usize;
        self.small.resize(self.pixels.len() / (SIDE * SIDE), 0);
        let mut sums = vec![0_u16; row];
        let smalls = self.small.chunks_exact_mut(row / SIDE);
        for (rows, small) in self.pixels.chunks_exact(row * SIDE).zip(smalls) {
            sums.fill(0);
            for row in rows.chunks_exact(row) {
                sums.iter_mut().zip(row).for_each(|(sum, &sample)| *sum += u16::from(sample));
            }
            // Of known length, squares become straight code.
            let (squares, _) = sums.as_chunks::<{ 3 * SIDE }>();
            let (pixels, _) = small.as_chunks_mut::<3>();
            for (pixel, square) in pixels.iter_mut().zip(squares) {
                *pixel = [0, 1, 2].map(|channel| mean::<SIDE>(square, channel));
            }
        }
        &self.small
    }
}

/// Returns the rounded mean of a channel of a square, of which `sums` has the sums of the columns.
fn mean<const SIDE: usize>(sums: &[u16], channel: usize) -> u8 {
    let sum: u16 = (0..SIDE).map(|column| sums[3 * column + channel]).sum();
    let squares = (SIDE * SIDE) as u16;
    ((sum + squares / 2) / squares) as u8
}

/// Draws shapes on rows from the drawn row `first` on; what lies outside is cut off.
struct Pen<'a> {
    first: i32,
    backend: BitMapBackend<'a>,
}

impl Pen<'_> {
    fn shape(&mut self, shape: &Shape) -> Result<(), PlotError> {
        match shape {
            Shape::Line(points, stroke) => self.line(points, *stroke),
            Shape::Polygon(points, color) => {
                let corners: Vec<_> = points.iter().map(|&point| self.place(point)).collect();
                self.backend.fill_polygon(corners, &fill(*color)).map_err(refused)
            }
            Shape::Rect(from, to, color) => {
                self.rect(self.place(*from), self.place(*to), &fill(*color))
            }
            Shape::Disc(centre, radius, color) => {
                let radius = (radius * SCALE).round() as u32;
                let centre = self.place(*centre);
                self.backend.draw_circle(centre, radius, &fill(*color), true).map_err(refused)
            }
        }
    }

    /// Draws segment by segment with round joints: the backend's own wide paths grow spikes where they
    /// turn sharply.
    fn line(&mut self, points: &[Point], stroke: Stroke) -> Result<(), PlotError> {
        let (width, style) = (drawn_width(stroke), fill(stroke.color));
        for pair in points.windows(2) {
            let ends = (self.place(pair[0]), self.place(pair[1]));
            self.segment(ends, f64::from(width) / 2.0, &style)?;
        }
        if width > 3 {
            for joint in &points[1..points.len() - 1] {
                let joint = self.place(*joint);
                self.backend.draw_circle(joint, width / 2, &style, true).map_err(refused)?;
            }
        }
        Ok(())
    }

    /// Draws what is no farther than `half` a width from the straight line between two pixels.
    fn segment(
        &mut self,
        (from, to): ((i32, i32), (i32, i32)),
        half: f64,
        style: &ShapeStyle,
    ) -> Result<(), PlotError> {
        let beside = |at: i32, distance: f64| (f64::from(at) + distance).floor() as i32;
        // Most lines are those of grids and frames, which a rectangle draws much faster.
        if from.1 == to.1 {
            let (top, bottom) = (beside(from.1, -half), beside(from.1, half) + 1);
            return self.rect((from.0.min(to.0), top), (from.0.max(to.0), bottom), style);
        }
        if from.0 == to.0 {
            let (left, right) = (beside(from.0, -half), beside(from.0, half) + 1);
            return self.rect((left, from.1.min(to.1)), (right, from.1.max(to.1)), style);
        }
        let (across, down) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
        let side = half / across.hypot(down);
        let corner =
            |at: (i32, i32), side: f64| (beside(at.0, side * down), beside(at.1, -side * across));
        let corners =
            [corner(from, side), corner(from, -side), corner(to, -side), corner(to, side)];
        self.backend.fill_polygon(corners, style).map_err(refused)
    }

    /// Fills a rectangle up to, without, the row and the column of `end`.
    fn rect(
        &mut self,
        start: (i32, i32),
        end: (i32, i32),
        style: &ShapeStyle,
    ) -> Result<(), PlotError> {
        self.backend.draw_rect(start, end, style, true).map_err(refused)
    }

    /// Returns the drawn pixel of a point.
    fn place(&self, point: Point) -> (i32, i32) {
        let (x, y) = samples(point);
        (x, y - self.first)
    }
}

/// Returns the least and the greatest height at which a shape has ink, in points.
fn reach(shape: &Shape) -> (f64, f64) {
    let span = |points: &[Point], margin: f64| {
        let ys = || points.iter().map(|point| point.1);
        (ys().fold(f64::MAX, f64::min) - margin, ys().fold(f64::MIN, f64::max) + margin)
    };
    match shape {
        Shape::Line(points, stroke) => span(points, stroke.width),
        Shape::Polygon(points, _) => span(points, 0.0),
        Shape::Rect(from, to, _) => span(&[*from, *to], 0.0),
        Shape::Disc(centre, radius, _) => span(&[*centre], *radius),
    }
}

/// Returns as [`reach`] for a text: no letter is higher than its em, nor does it go deeper.
fn text_reach(text: &Text) -> (f64, f64) {
    let style = text.style;
    let along = match style.direction {
        Direction::Right => 0.0,
        Direction::Up => style.width(&text.text),
    };
    (text.at.1 - along - style.size, text.at.1 + along + style.size)
}

/// Tells whether something that has ink from one height to another, in points, may meet drawn `rows`.
fn meets(rows: &Range<i32>, (least, most): (f64, f64)) -> bool {
    // A point around it for what is rounded.
    least - 1.0 < f64::from(rows.end) / SCALE && most + 1.0 > f64::from(rows.start) / SCALE
}

/// Returns the drawn pixels of a stroke's width.
fn drawn_width(stroke: Stroke) -> u32 {
    (stroke.width * SCALE).round().max(1.0) as u32
}

/// Returns the drawn pixel of a point.
fn samples((x, y): Point) -> (i32, i32) {
    ((x * SCALE).round() as i32, (y * SCALE).round() as i32)
}

fn fill(color: Color) -> ShapeStyle {
    ShapeStyle::from(&RGBColor(color.0, color.1, color.2)).filled()
}

/// Returns the error that `error` is to a figure's user.
pub(crate) fn refused(error: impl Display) -> PlotError {
    PlotError::Render { format: "PNG", reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::{Band, PIXELS};
    use crate::canvas::{Canvas, Stroke, TextStyle};
    use crate::style::Color;

    /// Returns the pixels of a canvas drawn `rows` rows of the file at a time.
    fn drawn(canvas: &Canvas, rows: usize) -> Vec<u8> {
        let (width, height) = (canvas.size.0 * PIXELS, (canvas.size.1 * PIXELS) as usize);
        let mut band = Band::new(width);
        let starts = (0..height).step_by(rows);
        let bands = starts.flat_map(|first| {
            band.draw(canvas, first..height.min(first + rows)).unwrap();
            band.shrink().to_vec()
        });
        bands.collect()
    }

    #[test]
    fn bands_leave_no_seams() {
        let mut canvas = Canvas::new((90, 80));
        let ink = Color(20, 90, 160);
        for (at, width) in [0.3, 0.8, 1.4, 5.0].into_iter().enumerate() {
            let (x, stroke) = (20.0 * at as f64 + 3.0, Stroke { width, color: ink });
            canvas.line(vec![(x, 2.0), (x, 75.0)], stroke);
            canvas.line(vec![(2.0, x), (85.0, x)], stroke);
            canvas.line(vec![(x, 3.0), (x + 11.3, 40.6), (x - 2.2, 77.0)], stroke);
            canvas.disc((x + 5.0, x), 3.7, Color(180, 40, 0));
            canvas.polygon(vec![(x, 9.0), (x + 9.0, 33.3), (x + 2.0, 70.0)], Color(0, 120, 60));
            canvas.rect((x, 30.5), (4.0, 21.0), ink);
            canvas.text((x, 18.0 * at as f64 + 9.0), "gpÅ", TextStyle::new(11.0));
            canvas.text((x, 60.0), "Figure", TextStyle::new(9.0).up());
        }
        let whole = drawn(&canvas, 160);
        assert!(whole.iter().any(|&sample| sample < 255));
        for rows in [1, 7, 64] {
            assert!(drawn(&canvas, rows) == whole, "seams between bands of {rows} rows");
        }
    }
}
