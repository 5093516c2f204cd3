//! The strongest components of a model: one row each, one panel for each mode.

use ndarray::ArrayView2;

use crate::plot::axes::Area;
use crate::plot::canvas::Anchor;
use crate::plot::canvas::Canvas;
use crate::plot::canvas::TextStyle;
use crate::plot::error::PlotError;
use crate::plot::number::count;
use crate::plot::number::percent;
use crate::plot::number::significant;
use crate::plot::profile::MOST_POINTS;
use crate::plot::profile::Profile;
use crate::plot::profile::profiles;
use crate::plot::profile_panel::ProfilePanel;
use crate::plot::profile_panel::label_room;
use crate::plot::save::Figure;
use crate::plot::style::GRID;
use crate::plot::style::LABEL;
use crate::plot::style::PALETTE;
use crate::plot::style::SMALL;
use crate::plot::style::SOFT_INK;
use crate::plot::style::TINY;
use crate::plot::style::TITLE;

const FIGURE: &str = "components";
/// Most components that a figure shows legibly.
const MOST_ROWS: usize = 8;
const MARGIN: f64 = 14.0;
/// Width of the column of weights.
const WEIGHTS: f64 = 92.0;
/// Height of a row's panel, and of what separates it from the next.
const ROW: f64 = 66.0;
const GAP: f64 = 13.0;
/// Position of the first row.
const FIRST_ROW: f64 = 86.0;
/// Least width of a mode's column without and with a list of labels.
const PLAIN: f64 = 120.0;
const LABELLED: f64 = 290.0;
/// Width of the list of labels inside its column.
const LIST: f64 = 150.0;

/// The strongest components of a model, with the profile of each in every mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Components {
    /// What was decomposed and how, for example `nell-2, CP-ALS, rank 16`.
    pub title: String,
    /// Number of components of the model, shown or not.
    pub rank: usize,
    /// The modes, from left to right.
    pub modes: Vec<ComponentMode>,
    /// The components shown, from top to bottom.
    pub rows: Vec<ComponentRow>,
}

/// One mode of the tensor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComponentMode {
    /// Its name, for example `user`.
    pub name: String,
    /// Its extent.
    pub extent: usize,
}

/// One component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComponentRow {
    /// Its number in the model, from 0.
    pub component: usize,
    /// Its weight λ.
    pub weight: f64,
    /// Its share of the sum of all |λ|, shown or not.
    pub share: f64,
    /// Its column in each factor.
    pub profiles: Vec<Profile>,
}

/// A factor matrix to be shown.
#[derive(Clone, Copy)]
pub struct ComponentFactor<'a, V> {
    /// Name of the mode.
    pub name: &'a str,
    /// The factor, of shape `extent x rank`.
    pub factor: ArrayView2<'a, V>,
    /// What each index, from 0, stands for; where given, the largest entries are listed by it.
    pub labels: Option<&'a dyn Fn(usize) -> String>,
}

impl Components {
    /// Takes the eight components of largest |weight|, or all of fewer, from a model.
    ///
    /// Reads each factor once: time `O(8 * sum of extents)`, memory `O(8 * 400)` per mode.
    ///
    /// # Errors
    ///
    /// [`PlotError::Empty`] without modes or components, [`PlotError::Mismatch`] where a factor
    /// has another number of columns than there are weights.
    pub fn from_factors<V: Copy + Into<f64>>(
        title: impl Into<String>,
        weights: &[f64],
        factors: &[ComponentFactor<'_, V>],
    ) -> Result<Components, PlotError> {
        let rank = weights.len();
        for factor in factors {
            let columns = factor.factor.ncols();
            if columns != rank {
                let name = factor.name;
                let reason = format!("mode `{name}` has {columns} columns for {rank} weights");
                return Err(PlotError::mismatch(FIGURE, reason));
            }
        }
        let size = |component: &usize| finite(weights[*component]).abs();
        let mut order: Vec<usize> = (0..rank).collect();
        order.sort_by(|a, b| size(b).total_cmp(&size(a)));
        order.truncate(MOST_ROWS);
        let total: f64 = (0..rank).map(|component| size(&component)).sum();
        let mut rows: Vec<ComponentRow> = order
            .iter()
            .map(|component| ComponentRow {
                component: *component,
                weight: weights[*component],
                share: if total > 0.0 { size(component) / total } else { 0.0 },
                profiles: Vec::with_capacity(factors.len()),
            })
            .collect();
        for factor in factors {
            let mut columns = profiles(factor.factor, &order);
            if let Some(label) = factor.labels {
                let entries = columns.iter_mut().flat_map(|profile| &mut profile.largest);
                entries.for_each(|entry| entry.label = Some(label(entry.index)));
            }
            for (row, profile) in rows.iter_mut().zip(columns) {
                row.profiles.push(profile);
            }
        }
        let modes = factors.iter().map(|factor| ComponentMode {
            name: factor.name.to_owned(),
            extent: factor.factor.nrows(),
        });
        let figure = Components { title: title.into(), rank, modes: modes.collect(), rows };
        figure.check()?;
        Ok(figure)
    }

    fn check(&self) -> Result<(), PlotError> {
        if self.modes.is_empty() || self.rows.is_empty() {
            let reason = "the model has no modes or no components; give one of each or more";
            return Err(PlotError::empty(FIGURE, reason));
        }
        for row in &self.rows {
            let (profiles, modes) = (row.profiles.len(), self.modes.len());
            if profiles != modes {
                let number = row.component + 1;
                let reason = format!("component {number} has {profiles} profiles, not {modes}");
                return Err(PlotError::mismatch(FIGURE, reason));
            }
        }
        Ok(())
    }

    /// Returns whether any entry of a mode has a label.
    fn has_labels(&self, mode: usize) -> bool {
        let profiles = self.rows.iter().filter_map(|row| row.profiles.get(mode));
        profiles.flat_map(|profile| &profile.largest).any(|entry| entry.label.is_some())
    }

    /// Returns the room that the labels of all panels of a mode need.
    fn label_room(&self, mode: usize) -> f64 {
        self.rows.iter().map(|row| label_room(&row.profiles[mode])).fold(0.0, f64::max)
    }

    /// Returns the left edge and the width of each mode's column, and the right edge of all.
    fn columns(&self) -> (Vec<(f64, f64)>, f64) {
        let least: Vec<f64> = (0..self.modes.len())
            .map(|mode| if self.has_labels(mode) { LABELLED } else { PLAIN })
            .collect();
        let spare = 800.0 - 2.0 * MARGIN - WEIGHTS - least.iter().sum::<f64>();
        let extra = spare.max(0.0) / least.len().max(1) as f64;
        let mut right = MARGIN + WEIGHTS;
        let columns = least.iter().map(|width| {
            let left = right;
            right += width + extra;
            (left, width + extra)
        });
        (columns.collect(), right)
    }
}

impl Figure for Components {
    fn size(&self) -> (u32, u32) {
        let (_, right) = self.columns();
        let rows = (ROW + GAP) * self.rows.len() as f64;
        ((right + MARGIN).round() as u32, (FIRST_ROW + rows + 30.0).round() as u32)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        self.check()?;
        let (columns, right) = self.columns();
        let style = TextStyle::new(TITLE).bold();
        canvas.text((MARGIN, 26.0), style.fit(&self.title, right - MARGIN), style);
        self.draw_subtitle(canvas);
        canvas.text((MARGIN, FIRST_ROW - 14.0), "component", TextStyle::new(LABEL).bold());
        for (mode, (left, width)) in self.modes.iter().zip(&columns) {
            let style = TextStyle::new(LABEL).bold();
            let note = format!("1 to {}", count(mode.extent as f64));
            let note_width = TextStyle::SMALL.width(&note) + 22.0;
            let name = style.fit(&mode.name, width - note_width - 14.0);
            let after = left + 14.0 + style.width(&name) + 8.0;
            canvas.text((left + 14.0, FIRST_ROW - 14.0), name, style);
            canvas.text((after, FIRST_ROW - 14.0), note, TextStyle::SMALL.color(SOFT_INK));
        }
        let rooms: Vec<f64> = (0..columns.len()).map(|mode| self.label_room(mode)).collect();
        let strongest = self.rows.iter().map(|row| row.share).fold(0.0, f64::max);
        for (at, row) in self.rows.iter().enumerate() {
            let top = FIRST_ROW + (ROW + GAP) * at as f64;
            draw_weight(canvas, top, row, strongest);
            for (mode, (left, width)) in columns.iter().enumerate() {
                let list = if self.has_labels(mode) { LIST } else { 0.0 };
                let area = Area { left: left + 14.0, top, width: width - 24.0 - list, height: ROW };
                let field = ProfilePanel::draw(canvas, area, &row.profiles[mode], rooms[mode]);
                if at + 1 == self.rows.len() {
                    field.draw_ends(canvas, self.modes[mode].extent);
                }
                if list > 0.0 {
                    let area =
                        Area { left: area.left + area.width + 8.0, width: LIST - 4.0, ..area };
                    draw_entries(canvas, area, &row.profiles[mode]);
                }
            }
        }
        Ok(())
    }
}

impl Components {
    fn draw_subtitle(&self, canvas: &mut Canvas) {
        let shown = self.rows.len();
        let which = match self.rank {
            1 => "1 component".to_owned(),
            rank if rank == shown => format!("{rank} components, strongest first"),
            rank => format!("the strongest {shown} of {rank} components"),
        };
        let mut text = format!("{which}; λ with its share of Σ|λ|");
        if self.modes.iter().any(|mode| mode.extent > MOST_POINTS) {
            text += "; long modes as the range of values along them, with the largest dotted";
        }
        canvas.text((MARGIN, 45.0), text, TextStyle::new(SMALL).color(SOFT_INK));
    }
}

/// Writes the number and weight of a component, and a bar as long as its share.
fn draw_weight(canvas: &mut Canvas, top: f64, row: &ComponentRow, strongest: f64) {
    let width = WEIGHTS - 18.0;
    let bold = TextStyle::new(LABEL).bold();
    canvas.text((MARGIN, top + 14.0), format!("{}", row.component + 1), bold);
    let weight = format!("λ = {}", significant(row.weight, 3));
    canvas.text((MARGIN, top + 31.0), weight, TextStyle::SMALL);
    canvas.rect((MARGIN, top + 38.0), (width, 5.0), GRID);
    if strongest > 0.0 {
        canvas.rect((MARGIN, top + 38.0), (width * row.share / strongest, 5.0), PALETTE[0]);
    }
    let share = TextStyle::SMALL.color(SOFT_INK);
    canvas.text((MARGIN, top + 57.0), percent(row.share), share);
}

/// Lists the largest entries by label.
fn draw_entries(canvas: &mut Canvas, area: Area, profile: &Profile) {
    let style = TextStyle::new(TINY);
    for (at, entry) in profile.largest.iter().enumerate() {
        let y = area.top + TINY + (TINY + 3.6) * at as f64;
        let value = significant(entry.value, 2);
        let room = area.width - style.width(&value) - 6.0;
        let unnamed = || format!("{}", entry.index + 1);
        let label = entry.label.clone().unwrap_or_else(unnamed);
        canvas.text((area.left, y), style.fit(&label, room), style);
        let right = style.color(SOFT_INK).anchor(Anchor::End);
        canvas.text((area.left + area.width, y), value, right);
    }
}

fn finite(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}
