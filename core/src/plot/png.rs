//! A canvas as pixels: two per point, each the mean of four drawn ones, which smooths all edges.

use std::fmt::Display;
use std::path::Path;

use plotters::backend::BitMapBackend;
use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::ShapeStyle;

use crate::plot::canvas::Anchor;
use crate::plot::canvas::Canvas;
use crate::plot::canvas::Direction;
use crate::plot::canvas::Point;
use crate::plot::canvas::Shape;
use crate::plot::canvas::Stroke;
use crate::plot::canvas::Text;
use crate::plot::error::PlotError;
use crate::plot::font;
use crate::plot::style::Color;

/// Pixels of the file per point.
const PIXELS: u32 = 2;
/// Drawn pixels per pixel of the file, in each direction.
const SAMPLES: u32 = 2;

/// Writes the canvas as a PNG file to `path`, whose name must end in `.png`.
///
/// Holds `12 * 4 + 12` bytes per square point, about 30 MB for a figure of 800 times 600.
///
/// # Errors
///
/// [`PlotError::Render`] if the drawing library refuses or the file cannot be written.
pub(crate) fn write_png(canvas: &Canvas, path: &Path) -> Result<(), PlotError> {
    let (width, height) = canvas.size;
    let drawn = (width * PIXELS * SAMPLES, height * PIXELS * SAMPLES);
    let mut pixels = vec![255; 3 * drawn.0 as usize * drawn.1 as usize];
    {
        let mut backend = BitMapBackend::with_buffer(&mut pixels, drawn);
        for shape in &canvas.shapes {
            draw_shape(&mut backend, shape)?;
        }
        backend.present().map_err(refused)?;
    }
    for text in &canvas.texts {
        draw_text(&mut pixels, drawn, text);
    }
    let shown = (width * PIXELS, height * PIXELS);
    let mut file = BitMapBackend::new(path, shown);
    file.blit_bitmap((0, 0), shown, &shrink(&pixels, drawn)).map_err(refused)?;
    file.present().map_err(refused)
}

fn draw_shape(backend: &mut BitMapBackend<'_>, shape: &Shape) -> Result<(), PlotError> {
    match shape {
        Shape::Line(points, stroke) => draw_line(backend, points, *stroke),
        Shape::Polygon(points, color) => backend
            .fill_polygon(points.iter().copied().map(samples), &fill(*color))
            .map_err(refused),
        Shape::Rect(from, to, color) => {
            backend.draw_rect(samples(*from), samples(*to), &fill(*color), true).map_err(refused)
        }
        Shape::Disc(centre, radius, color) => {
            let radius = (radius * f64::from(PIXELS * SAMPLES)).round() as u32;
            backend.draw_circle(samples(*centre), radius, &fill(*color), true).map_err(refused)
        }
    }
}

/// Draws segment by segment with round joints: the backend's own wide paths grow spikes where they
/// turn sharply.
fn draw_line(
    backend: &mut BitMapBackend<'_>,
    points: &[Point],
    stroke: Stroke,
) -> Result<(), PlotError> {
    let width = (stroke.width * f64::from(PIXELS * SAMPLES)).round().max(1.0) as u32;
    let style = ShapeStyle { stroke_width: width, ..fill(stroke.color) };
    for pair in points.windows(2) {
        backend.draw_line(samples(pair[0]), samples(pair[1]), &style).map_err(refused)?;
    }
    if width > 3 {
        for joint in &points[1..points.len() - 1] {
            backend.draw_circle(samples(*joint), width / 2, &style, true).map_err(refused)?;
        }
    }
    Ok(())
}

/// Blends a text over the drawn pixels.
fn draw_text(pixels: &mut [u8], (width, height): (u32, u32), text: &Text) {
    let style = text.style;
    let scale = f64::from(PIXELS * SAMPLES);
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
    font::cover(&text.text, style.weight, style.size * scale, |along, across, coverage| {
        let (x, y) = match style.direction {
            Direction::Right => (start.0 + along, start.1 + across),
            Direction::Up => (start.0 + across, start.1 - along),
        };
        let inside = 0..width as i32;
        if inside.contains(&x) && (0..height as i32).contains(&y) {
            let at = 3 * (y as usize * width as usize + x as usize);
            for (old, new) in pixels[at..at + 3].iter_mut().zip(ink) {
                let mixed = f32::from(*old) * (1.0 - coverage) + f32::from(new) * coverage;
                *old = mixed.round() as u8;
            }
        }
    });
}

/// Returns the image with each square of `SAMPLES` by `SAMPLES` pixels replaced by its mean.
fn shrink(pixels: &[u8], (width, _): (u32, u32)) -> Vec<u8> {
    let side = SAMPLES as usize;
    let (row, squares) = (3 * width as usize, (side * side) as u16);
    let mut small = Vec::with_capacity(pixels.len() / (side * side));
    let mut sums = vec![0_u16; row];
    for rows in pixels.chunks_exact(row * side) {
        sums.fill(0);
        for row in rows.chunks_exact(row) {
            sums.iter_mut().zip(row).for_each(|(sum, &sample)| *sum += u16::from(sample));
        }
        for square in sums.chunks_exact(3 * side) {
            let mean = |channel: usize| {
                let sum: u16 = square.iter().skip(channel).step_by(3).sum();
                ((sum + squares / 2) / squares) as u8
            };
            small.extend([mean(0), mean(1), mean(2)]);
        }
    }
    small
}

/// Returns the drawn pixel of a point.
fn samples((x, y): Point) -> (i32, i32) {
    let scale = f64::from(PIXELS * SAMPLES);
    ((x * scale).round() as i32, (y * scale).round() as i32)
}

fn fill(color: Color) -> ShapeStyle {
    ShapeStyle::from(&RGBColor(color.0, color.1, color.2)).filled()
}

fn refused(error: impl Display) -> PlotError {
    PlotError::Render { format: "PNG", reason: error.to_string() }
}
