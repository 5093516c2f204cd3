//! A matrix of scores as a heat map with numbers.

use crate::canvas::Anchor;
use crate::canvas::Canvas;
use crate::canvas::TextStyle;
use crate::error::PlotError;
use crate::number::minus;
use crate::save::Figure;
use crate::scale::Scale;
use crate::style::Color;
use crate::style::GRID;
use crate::style::SMALL;
use crate::style::SOFT_INK;
use crate::style::TINY;
use crate::style::TITLE;
use crate::style::WHITE;

const FIGURE: &str = "matrix";
const MARGIN: f64 = 14.0;
/// Side of all cells together, and the largest side of one.
const FIELD: f64 = 560.0;
const MOST_CELL: f64 = 60.0;
/// Most room for a name.
const MOST_NAME: f64 = 150.0;
/// Room at the right for the scale of colours.
const SCALE: f64 = 80.0;
/// The colour of the highest score; lower ones fade to white.
const HIGH: Color = Color(0, 68, 120);

/// Scores of rows against columns, for example factor match scores between restarts.
#[derive(Clone, Debug, Default)]
pub struct ScoreMatrix {
    /// The title.
    pub title: String,
    /// What the scores are, for example `factor match score`.
    pub score_name: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Scores by row and column; those not finite are shown as missing.
    pub scores: Vec<Vec<f64>>,
    /// The scores shown as white and as the darkest colour, for example `(0.0, 1.0)`.
    pub range: (f64, f64),
}

/// Where things lie.
struct Layout {
    cell: f64,
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    /// Whether column names run upwards: they do where one is wider than a cell.
    upright: bool,
}

impl Figure for ScoreMatrix {
    fn size(&self) -> (u32, u32) {
        let layout = self.layout();
        let title = TextStyle::new(TITLE).bold().width(&self.title).min(800.0);
        let width = (layout.right + SCALE).max(title + 2.0 * MARGIN + 1.0);
        (width.ceil() as u32, (layout.bottom.max(layout.top + 100.0) + MARGIN).ceil() as u32)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        let scale = self.check()?;
        let layout = self.layout();
        let room = f64::from(canvas.size.0) - 2.0 * MARGIN;
        let title = TextStyle::new(TITLE).bold();
        canvas.text((MARGIN, 26.0), title.fit(&self.title, room), title);
        let note = TextStyle::new(SMALL).color(SOFT_INK);
        canvas.text((MARGIN, 45.0), note.fit(&self.score_name, room), note);
        self.draw_names(canvas, &layout);
        for (row, scores) in self.scores.iter().enumerate() {
            for (column, score) in scores.iter().enumerate() {
                let corner = (
                    layout.left + layout.cell * column as f64,
                    layout.top + layout.cell * row as f64,
                );
                draw_cell(canvas, corner, layout.cell, scale, *score);
            }
        }
        draw_scale(canvas, &layout, scale);
        Ok(())
    }
}

impl ScoreMatrix {
    fn check(&self) -> Result<Scale, PlotError> {
        if self.rows.is_empty() || self.columns.is_empty() {
            return Err(PlotError::empty(FIGURE, "give one row and one column or more"));
        }
        let (rows, columns) = (self.rows.len(), self.columns.len());
        let wrong = self.scores.iter().position(|scores| scores.len() != columns);
        if self.scores.len() != rows {
            let reason = format!("{} rows of scores for {rows} names", self.scores.len());
            return Err(PlotError::mismatch(FIGURE, reason));
        }
        if let Some(row) = wrong {
            let found = self.scores[row].len();
            let reason = format!("row {} has {found} scores for {columns} columns", row + 1);
            return Err(PlotError::mismatch(FIGURE, reason));
        }
        let (low, high) = self.range;
        if low.is_finite() && high.is_finite() && low < high {
            return Ok(Scale::span(low, high));
        }
        let reason =
            format!("the range from {low} to {high} is no range; give a lower number first");
        Err(PlotError::mismatch(FIGURE, reason))
    }

    fn layout(&self) -> Layout {
        let most = self.rows.len().max(self.columns.len()).max(1) as f64;
        let cell = (FIELD / most).clamp(3.0, MOST_CELL);
        let widest = |names: &[String]| {
            let widths = names.iter().map(|name| TextStyle::SMALL.width(name));
            widths.fold(0.0, f64::max).min(MOST_NAME)
        };
        let upright = widest(&self.columns) + 6.0 > cell;
        let above = if upright { widest(&self.columns) } else { SMALL };
        let left = MARGIN + widest(&self.rows) + 8.0;
        let top = 62.0 + above;
        Layout {
            cell,
            left,
            top,
            right: left + cell * self.columns.len() as f64,
            bottom: top + cell * self.rows.len() as f64,
            upright,
        }
    }

    fn draw_names(&self, canvas: &mut Canvas, layout: &Layout) {
        // Where cells are lower than text, only every so many names have room.
        let every = ((SMALL + 2.0) / layout.cell).ceil().max(1.0) as usize;
        let style = TextStyle::SMALL;
        for (at, name) in self.rows.iter().enumerate().step_by(every) {
            let middle = layout.top + layout.cell * (at as f64 + 0.5);
            let name = style.fit(name, MOST_NAME);
            canvas.text_centred((layout.left - 7.0, middle), name, style.anchor(Anchor::End));
        }
        for (at, name) in self.columns.iter().enumerate().step_by(every) {
            let at = (layout.left + layout.cell * (at as f64 + 0.5), layout.top - 7.0);
            let name = style.fit(name, MOST_NAME);
            if layout.upright {
                canvas.text_centred(at, name, style.up());
            } else {
                canvas.text(at, name, style.anchor(Anchor::Middle));
            }
        }
    }
}

fn draw_cell(canvas: &mut Canvas, (x, y): (f64, f64), cell: f64, scale: Scale, score: f64) {
    let color = if score.is_finite() { shade(scale.place(score)) } else { GRID };
    let seam = if cell > 12.0 { 1.0 } else { 0.0 };
    canvas.rect((x, y), (cell - seam, cell - seam), color);
    let text = if score.is_finite() { minus(format!("{score:.2}")) } else { "–".to_owned() };
    let size = (0.26 * cell).clamp(TINY, SMALL + 2.0);
    let style = TextStyle::new(size).color(color.text_on()).anchor(Anchor::Middle);
    if style.width(&text) + 3.0 <= cell {
        canvas.text_centred((x + (cell - seam) / 2.0, y + (cell - seam) / 2.0), text, style);
    }
}

/// Draws the colours of the range with their scores, beside the cells.
fn draw_scale(canvas: &mut Canvas, layout: &Layout, scale: Scale) {
    const STEPS: usize = 64;
    let height = (layout.bottom - layout.top).clamp(100.0, 260.0);
    let left = layout.right + 18.0;
    let step = height / STEPS as f64;
    for at in 0..STEPS {
        let place = 1.0 - (at as f64 + 0.5) / STEPS as f64;
        canvas.rect((left, layout.top + step * at as f64), (12.0, step + 0.2), shade(place));
    }
    for tick in scale.ticks(5) {
        let y = layout.top + (1.0 - scale.place(tick.value)) * height;
        canvas.text_centred((left + 18.0, y), tick.label, TextStyle::SMALL);
    }
}

/// Returns the colour of a place in the range.
fn shade(place: f64) -> Color {
    HIGH.mix(WHITE, 0.04 + 0.96 * place.clamp(0.0, 1.0))
}
