//! Lines of data: markers that tell them apart without colour, thinning of very long ones.

use crate::canvas::Canvas;
use crate::canvas::Point;
use crate::canvas::Stroke;
use crate::style::Color;
use crate::style::DATA_LINE;
use crate::style::MARKER;
use crate::style::WHITE;

/// Most markers on one line.
const MOST_MARKERS: usize = 16;

/// How one series looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Colour of line and markers.
    pub(crate) color: Color,
    /// Which marker, if any: the shapes repeat after five.
    pub(crate) marker: Option<usize>,
}

/// Draws the line through `points` in order, thinned to its envelope per half point of width, with
/// markers on up to 16 of its points.
pub(crate) fn draw_series(canvas: &mut Canvas, points: &[Point], look: Look) {
    let thinned = thin(points);
    canvas.line(thinned, Stroke { width: DATA_LINE, color: look.color });
    let every = points.len().div_ceil(MOST_MARKERS).max(1);
    // Counted from the end, so that the last point always has its marker.
    let marked = if look.marker.is_none() && points.len() > 1 { &[] } else { points };
    for point in marked.iter().rev().step_by(every) {
        draw_marker(canvas, *point, look, MARKER);
    }
}

/// Draws one marker with a white rim, which keeps crowded markers apart.
pub(crate) fn draw_marker(canvas: &mut Canvas, centre: Point, look: Look, radius: f64) {
    let rim = radius + 0.8;
    match look.marker.unwrap_or(0) % 5 {
        0 => {
            canvas.disc(centre, rim, WHITE);
            canvas.disc(centre, radius, look.color);
        }
        shape => {
            canvas.polygon(corners(shape, centre, rim * 1.15), WHITE);
            canvas.polygon(corners(shape, centre, radius * 1.15), look.color);
        }
    }
}

/// Returns the corners of a square, an upward triangle, a diamond or a downward triangle.
fn corners(shape: usize, (x, y): Point, r: f64) -> Vec<Point> {
    let unit: &[(f64, f64)] = match shape {
        1 => &[(-0.82, -0.82), (0.82, -0.82), (0.82, 0.82), (-0.82, 0.82)],
        2 => &[(0.0, -1.15), (1.05, 0.7), (-1.05, 0.7)],
        3 => &[(0.0, -1.2), (1.2, 0.0), (0.0, 1.2), (-1.2, 0.0)],
        _ => &[(0.0, 1.15), (1.05, -0.7), (-1.05, -0.7)],
    };
    unit.iter().map(|(dx, dy)| (x + r * dx, y + r * dy)).collect()
}

/// Keeps of all consecutive points in one half-point column the first, lowest, highest and last.
fn thin(points: &[Point]) -> Vec<Point> {
    let column = |point: &Point| (2.0 * point.0).floor();
    let mut kept = Vec::new();
    for run in points.chunk_by(|a, b| column(a) == column(b)) {
        let by_height = |a: &usize, b: &usize| run[*a].1.total_cmp(&run[*b].1);
        let lowest = (0..run.len()).min_by(by_height).unwrap_or(0);
        let highest = (0..run.len()).max_by(by_height).unwrap_or(0);
        let mut chosen = vec![0, lowest, highest, run.len() - 1];
        chosen.sort_unstable();
        chosen.dedup();
        kept.extend(chosen.into_iter().map(|at| run[at]));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::thin;

    #[test]
    fn thinning_keeps_spikes_and_ends() {
        let mut points: Vec<_> = (0..10_000).map(|i| (f64::from(i) * 1e-3, 1.0)).collect();
        points[5003].1 = 9.0;
        let kept = thin(&points);
        assert!(kept.len() < 100);
        assert!(kept.contains(&points[5003]));
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
    }
}
