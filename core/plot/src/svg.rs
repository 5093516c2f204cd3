//! A canvas as an SVG file: text stays text, so that it can be searched and edited.

use std::fmt::Display;

use plotters::backend::DrawingBackend;
use plotters::backend::SVGBackend;
use plotters::style::FontStyle;
use plotters::style::FontTransform;
use plotters::style::IntoFont;
use plotters::style::RGBColor;
use plotters::style::ShapeStyle;
use plotters::style::TextStyle;
use plotters::style::text_anchor::HPos;
use plotters::style::text_anchor::Pos;
use plotters::style::text_anchor::VPos;

use crate::canvas::Anchor;
use crate::canvas::Canvas;
use crate::canvas::Direction;
use crate::canvas::Point;
use crate::canvas::Shape;
use crate::canvas::Text;
use crate::canvas::Weight;
use crate::error::PlotError;
use crate::style::Color;

/// Units per point: the backend counts in integers, so a point is made of many units.
const UNITS: u32 = 20;
/// The backend divides every text size by this.
const FONT_DIVISOR: f64 = 1.24;
/// How far the backend lowers a text anchored at its top, in em.
const TOP_DROP: f64 = 0.76;

/// The fonts of texts: of the same widths as the embedded one, then those that have what it lacks.
const FONTS: &str =
    "DejaVu Sans, Verdana, Noto Sans CJK SC, Microsoft YaHei, PingFang SC, sans-serif";

/// Returns the canvas as an SVG document.
///
/// # Errors
///
/// [`PlotError::Render`] if the drawing library refuses.
pub(crate) fn svg(canvas: &Canvas) -> Result<String, PlotError> {
    let (width, height) = canvas.size;
    let inner = (width * UNITS, height * UNITS);
    let mut document = String::new();
    {
        let mut backend = SVGBackend::with_string(&mut document, inner);
        let corner = (inner.0 as i32, inner.1 as i32);
        backend.draw_rect((0, 0), corner, &fill(Color(255, 255, 255)), true).map_err(refused)?;
        for shape in &canvas.shapes {
            draw_shape(&mut backend, shape)?;
        }
        for text in &canvas.texts {
            draw_text(&mut backend, text)?;
        }
        backend.present().map_err(refused)?;
    }
    let counted = format!("width=\"{}\" height=\"{}\"", inner.0, inner.1);
    let shown = format!("width=\"{width}\" height=\"{height}\"");
    Ok(document.replacen(&counted, &shown, 1))
}

fn draw_shape(backend: &mut SVGBackend<'_>, shape: &Shape) -> Result<(), PlotError> {
    match shape {
        Shape::Line(points, stroke) => {
            let style = ShapeStyle {
                stroke_width: (stroke.width * f64::from(UNITS)).round() as u32,
                ..fill(stroke.color)
            };
            backend.draw_path(points.iter().copied().map(units), &style)
        }
        Shape::Polygon(points, color) => {
            backend.fill_polygon(points.iter().copied().map(units), &fill(*color))
        }
        Shape::Rect(from, to, color) => {
            backend.draw_rect(units(*from), units(*to), &fill(*color), true)
        }
        Shape::Disc(centre, radius, color) => {
            let radius = (radius * f64::from(UNITS)).round() as u32;
            backend.draw_circle(units(*centre), radius, &fill(*color), true)
        }
    }
    .map_err(refused)
}

fn draw_text(backend: &mut SVGBackend<'_>, text: &Text) -> Result<(), PlotError> {
    let style = text.style;
    let weight = match style.weight {
        Weight::Regular => FontStyle::Normal,
        Weight::Bold => FontStyle::Bold,
    };
    let lift = TOP_DROP * style.size;
    let (at, transform) = match style.direction {
        Direction::Right => ((text.at.0, text.at.1 - lift), FontTransform::None),
        Direction::Up => ((text.at.0 - lift, text.at.1), FontTransform::Rotate270),
    };
    let anchor = match style.anchor {
        Anchor::Start => HPos::Left,
        Anchor::Middle => HPos::Center,
        Anchor::End => HPos::Right,
    };
    let size = style.size * f64::from(UNITS) * FONT_DIVISOR;
    let font = (FONTS, size).into_font().style(weight).transform(transform);
    let color = RGBColor(style.color.0, style.color.1, style.color.2);
    let style = TextStyle::from(font).color(&color).pos(Pos::new(anchor, VPos::Top));
    backend.draw_text(&text.text, &style, units(at)).map_err(refused)
}

/// Returns the backend's coordinates of a point.
fn units((x, y): Point) -> (i32, i32) {
    ((x * f64::from(UNITS)).round() as i32, (y * f64::from(UNITS)).round() as i32)
}

fn fill(color: Color) -> ShapeStyle {
    ShapeStyle::from(&RGBColor(color.0, color.1, color.2)).filled()
}

fn refused(error: impl Display) -> PlotError {
    PlotError::Render { format: "SVG", reason: error.to_string() }
}
