//! The strongest components of a model: one row each, one panel for each mode.

use std::ops::Range;

use ndarray::ArrayView2;

use crate::axes::Area;
use crate::canvas::Anchor;
use crate::canvas::Canvas;
use crate::canvas::TextStyle;
use crate::error::PlotError;
use crate::number::count;
use crate::number::percent;
use crate::number::significant;
use crate::profile::MOST_POINTS;
use crate::profile::Profile;
use crate::profile::profiles;
use crate::profile_panel::ProfilePanel;
use crate::profile_panel::label_room;
use crate::save::Figure;
use crate::scale::is_drawable;
use crate::style::GRID;
use crate::style::LABEL;
use crate::style::PALETTE;
use crate::style::SMALL;
use crate::style::SOFT_INK;
use crate::style::TINY;
use crate::style::TITLE;

const FIGURE: &str = "components";
const MARGIN: f64 = 14.0;
/// Width of the column of weights, and of numbers alone.
const WEIGHTS: f64 = 92.0;
const NUMBERS: f64 = 72.0;
/// Height of a row's panel, and of what separates it from the next.
const ROW: f64 = 66.0;
const GAP: f64 = 13.0;
/// Position of the first row.
const FIRST_ROW: f64 = 86.0;
/// From the last row of a block of modes to the first of the next.
const BETWEEN_BLOCKS: f64 = 62.0;
/// Least width of a mode's column without labels, with labels at the ends of its axis, and with a list of labels.
const PLAIN: f64 = 120.0;
const NAMED_ENDS: f64 = 190.0;
const LABELLED: f64 = 290.0;
/// Width of the list of labels inside its column.
const LIST: f64 = 150.0;
/// Width that columns are stretched to, and beyond which modes continue in a block below.
const USUAL_WIDTH: f64 = 800.0;
const MOST_WIDTH: f64 = 1320.0;

/// The strongest components of a model, with the profile of each in every mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Components {
    /// What was decomposed and how, for example `nell-2, CP-ALS, rank 16`.
    pub title: String,
    /// Which components are shown, and what their weights are.
    pub note: String,
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
    /// How its profiles are drawn.
    pub look: ModeLook,
    /// What the first and the last index stand for, where that is known.
    pub ends: Option<(String, String)>,
}

/// How the profiles of a mode are drawn; longer ones than 400 entries are always bands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModeLook {
    /// As stems up to 60 entries, as lines beyond: nothing is known of the order of indices.
    #[default]
    Plain,
    /// As lines, since indices have an order.
    Lines,
    /// As bars, since they have none.
    Bars,
}

/// One component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComponentRow {
    /// Its number in the model, from 0.
    pub component: usize,
    /// Its weight λ; models whose modes have ranks of their own have none.
    pub weight: Option<f64>,
    /// Its share of the sum of all |λ|, shown or not.
    pub share: f64,
    /// Its column in each factor; none where a factor has fewer columns.
    pub profiles: Vec<Option<Profile>>,
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
    /// How its columns are drawn.
    pub look: ModeLook,
}

/// Which components are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentChoice {
    /// Their places in the order.
    pub places: Range<usize>,
    /// The order.
    pub order: ComponentOrder,
}

/// How components are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComponentOrder {
    /// By falling |weight|.
    #[default]
    Weight,
    /// By number.
    Number,
}

impl Default for ComponentChoice {
    /// Returns the eight of largest |weight|, as many as a page shows legibly.
    fn default() -> ComponentChoice {
        ComponentChoice { places: 0..8, order: ComponentOrder::Weight }
    }
}

impl Components {
    /// Takes components from a model of weights and factors; those of weight 0 are left out.
    ///
    /// Reads each factor once: time `O(n * sum of extents)` for `n` of them, memory `O(400 n)` a mode.
    ///
    /// # Errors
    ///
    /// [`PlotError::Empty`] without modes, or components with a weight at these places;
    /// [`PlotError::Mismatch`] where a factor has another number of columns than there are weights.
    pub fn from_factors<V: Copy + Into<f64>>(
        title: impl Into<String>,
        weights: &[f64],
        factors: &[ComponentFactor<'_, V>],
        choice: &ComponentChoice,
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
        let alive = alive_components(weights);
        let order = chosen(alive.clone(), weights, choice);
        let size = |component: usize| finite(weights[component]).abs();
        let total: f64 = alive.iter().map(|&component| size(component)).sum();
        let row = |component| ComponentRow {
            component,
            weight: Some(weights[component]),
            share: size(component) / total,
            profiles: Vec::with_capacity(factors.len()),
        };
        let rows = order.into_iter().map(row).collect();
        let note = weighted_note(rank, alive.len(), choice) + long_note(factors);
        Components { title: title.into(), note, modes: modes(factors), rows }.filled(factors)
    }

    /// Takes columns from factors that have columns of their own, as those of a Tucker model: row
    /// `k` shows column `k` of each factor that has one.  `what` says what the columns are.
    ///
    /// # Errors
    ///
    /// [`PlotError::Empty`] without modes, or columns at these places.
    pub fn from_columns<V: Copy + Into<f64>>(
        title: impl Into<String>,
        what: &str,
        factors: &[ComponentFactor<'_, V>],
        places: Range<usize>,
    ) -> Result<Components, PlotError> {
        let most = factors.iter().map(|factor| factor.factor.ncols()).max().unwrap_or(0);
        let shown = places.start.min(most)..places.end.min(most);
        let which = match (shown.start, shown.end) {
            (0, end) if end == most => format!("up to {most}"),
            (0, end) => format!("the first {end} of up to {most}"),
            (start, end) => format!("{} to {end} of up to {most}", start + 1),
        };
        let note = format!("{what}: {which} of each mode{}", long_note(factors));
        let rows = shown.map(|component| ComponentRow { component, ..ComponentRow::default() });
        let rows = rows.collect();
        Components { title: title.into(), note, modes: modes(factors), rows }.filled(factors)
    }

    /// Adds the profiles of all rows.
    fn filled<V: Copy + Into<f64>>(
        mut self,
        factors: &[ComponentFactor<'_, V>],
    ) -> Result<Components, PlotError> {
        let order: Vec<usize> = self.rows.iter().map(|row| row.component).collect();
        for factor in factors {
            let has = |component: &&usize| **component < factor.factor.ncols();
            let columns: Vec<usize> = order.iter().filter(has).copied().collect();
            let mut columns = profiles(factor.factor, &columns);
            if let Some(label) = factor.labels {
                let entries = columns.iter_mut().flat_map(|profile| &mut profile.largest);
                entries.for_each(|entry| entry.label = Some(label(entry.index)));
            }
            let mut columns = columns.into_iter();
            for row in &mut self.rows {
                let has = row.component < factor.factor.ncols();
                row.profiles.push(if has { columns.next() } else { None });
            }
        }
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), PlotError> {
        if self.modes.is_empty() || self.rows.is_empty() {
            let reason = "the model has no modes, or no component with a weight; \
                          give one of each or more";
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

    /// Returns the profiles of a mode, from top to bottom.
    fn profiles(&self, mode: usize) -> impl Iterator<Item = &Profile> {
        self.rows.iter().filter_map(move |row| row.profiles.get(mode)?.as_ref())
    }

    /// Returns whether the largest entries of a mode are listed: where they have labels and no order.
    fn is_listed(&self, mode: usize) -> bool {
        let mut entries = self.profiles(mode).flat_map(|profile| &profile.largest);
        self.modes[mode].look != ModeLook::Lines && entries.any(|entry| entry.label.is_some())
    }

    /// Returns the room that the labels of all panels of a mode need.
    fn label_room(&self, mode: usize) -> f64 {
        self.profiles(mode).map(label_room).fold(0.0, f64::max)
    }

    /// Returns the width of the column of weights or numbers.
    fn first_column(&self) -> f64 {
        let weighted = self.rows.iter().any(|row| row.weight.is_some());
        if weighted { WEIGHTS } else { NUMBERS }
    }

    /// Returns the blocks of modes, and the right edge of all.
    fn blocks(&self) -> (Vec<Block>, f64) {
        let left = MARGIN + self.first_column();
        let least = |mode: usize| match self.ends(mode).ends {
            _ if self.is_listed(mode) => LABELLED,
            Some(_) => NAMED_ENDS,
            None => PLAIN,
        };
        let all: Vec<f64> = (0..self.modes.len()).map(least).collect();
        let total: f64 = all.iter().sum();
        let count = (total / (MOST_WIDTH - left - MARGIN)).ceil().max(1.0) as usize;
        let each = self.modes.len().div_ceil(count).max(1);
        let widest = all.chunks(each).map(|block| block.iter().sum()).fold(0.0, f64::max);
        let room = f64::max(widest, USUAL_WIDTH - left - MARGIN);
        let height = (ROW + GAP) * self.rows.len() as f64 + BETWEEN_BLOCKS;
        let blocks = all.chunks(each).enumerate().map(|(at, widths)| {
            let extra = (room - widths.iter().sum::<f64>()) / widths.len() as f64;
            let mut right = left;
            let columns = widths.iter().map(|width| {
                let from = right;
                right += width + extra;
                (from, width + extra)
            });
            let top = FIRST_ROW + height * at as f64;
            Block { first: at * each, columns: columns.collect(), top }
        });
        (blocks.collect(), left + room)
    }

    fn draw_block(&self, canvas: &mut Canvas, block: &Block) {
        let style = TextStyle::new(LABEL).bold();
        let heading = if self.rows[0].weight.is_some() { "component" } else { "column" };
        canvas.text((MARGIN, block.top - 14.0), heading, style);
        let strongest = self.rows.iter().map(|row| row.share).fold(0.0, f64::max);
        for (at, row) in self.rows.iter().enumerate() {
            draw_weight(canvas, block.row(at), row, strongest);
        }
        for (mode, &column) in (block.first..).zip(&block.columns) {
            self.draw_heading(canvas, block.top - 14.0, mode, column);
            self.draw_mode(canvas, block, mode, column);
        }
    }

    /// Writes the name of a mode and how long it is, above a column given by its left end and width.
    fn draw_heading(&self, canvas: &mut Canvas, y: f64, mode: usize, (left, width): (f64, f64)) {
        let style = TextStyle::new(LABEL).bold();
        let mode = &self.modes[mode];
        let note = format!("1 to {}", count(mode.extent as f64));
        let note_width = TextStyle::SMALL.width(&note) + 22.0;
        let name = style.fit(&mode.name, width - note_width - 14.0);
        let after = left + 14.0 + style.width(&name) + 8.0;
        canvas.text((left + 14.0, y), name, style);
        canvas.text((after, y), note, TextStyle::SMALL.color(SOFT_INK));
    }

    /// Draws the profiles of a mode below each other, and the ends of its axis below the last.
    fn draw_mode(
        &self,
        canvas: &mut Canvas,
        block: &Block,
        mode: usize,
        (left, width): (f64, f64),
    ) {
        let (room, listed) = (self.label_room(mode), self.is_listed(mode));
        let list = if listed { LIST } else { 0.0 };
        let mut last = None;
        for (at, row) in self.rows.iter().enumerate() {
            let Some(profile) = &row.profiles[mode] else { continue };
            let top = block.row(at);
            let area = Area { left: left + 14.0, top, width: width - 24.0 - list, height: ROW };
            last = Some(ProfilePanel::draw(canvas, area, profile, self.modes[mode].look, room));
            if listed {
                let left = area.left + area.width + 8.0;
                draw_entries(canvas, Area { left, width: LIST - 4.0, ..area }, profile);
            }
        }
        if let Some(panel) = last {
            let ModeEnds { extent, ends } = self.ends(mode);
            panel.draw_ends(canvas, extent, ends);
        }
    }

    fn ends(&self, mode: usize) -> ModeEnds<'_> {
        let mode = &self.modes[mode];
        let ordered = mode.look == ModeLook::Lines;
        ModeEnds { extent: mode.extent, ends: mode.ends.as_ref().filter(|_| ordered) }
    }
}

/// What stands at the ends of a mode's axis.
struct ModeEnds<'a> {
    extent: usize,
    ends: Option<&'a (String, String)>,
}

/// Modes side by side, with all rows.
struct Block {
    /// Its first mode.
    first: usize,
    /// Left edge and width of each mode's column.
    columns: Vec<(f64, f64)>,
    /// The top of its first row.
    top: f64,
}

impl Block {
    /// Returns the top of a row.
    fn row(&self, at: usize) -> f64 {
        self.top + (ROW + GAP) * at as f64
    }
}

impl Figure for Components {
    fn size(&self) -> (u32, u32) {
        let (blocks, right) = self.blocks();
        let last = blocks.last().map_or(FIRST_ROW, |block| block.row(self.rows.len()));
        ((right + MARGIN).round() as u32, (last + 30.0).round() as u32)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        self.check()?;
        let (blocks, right) = self.blocks();
        let style = TextStyle::new(TITLE).bold();
        canvas.text((MARGIN, 26.0), style.fit(&self.title, right - MARGIN), style);
        let soft = TextStyle::new(SMALL).color(SOFT_INK);
        canvas.text((MARGIN, 45.0), soft.fit(&self.note, right - MARGIN), soft);
        blocks.iter().for_each(|block| self.draw_block(canvas, block));
        Ok(())
    }
}

/// Returns the components with a weight, by number: the others are dead and show nothing.
pub fn alive_components(weights: &[f64]) -> Vec<usize> {
    (0..weights.len()).filter(|&component| finite(weights[component]) != 0.0).collect()
}

/// Returns the components that are shown, in order.
fn chosen(mut alive: Vec<usize>, weights: &[f64], choice: &ComponentChoice) -> Vec<usize> {
    let size = |component: &usize| finite(weights[*component]).abs();
    if choice.order == ComponentOrder::Weight {
        alive.sort_by(|a, b| size(b).total_cmp(&size(a)));
    }
    let Range { start, end } = choice.places;
    let end = end.min(alive.len());
    alive.get(start..end).map(<[usize]>::to_vec).unwrap_or_default()
}

fn modes<V>(factors: &[ComponentFactor<'_, V>]) -> Vec<ComponentMode> {
    let mode = |factor: &ComponentFactor<'_, V>| {
        let extent = factor.factor.nrows();
        let ends = |label: &dyn Fn(usize) -> String| (label(0), label(extent.saturating_sub(1)));
        ComponentMode {
            name: factor.name.to_owned(),
            extent,
            look: factor.look,
            ends: factor.labels.filter(|_| extent > 0).map(ends),
        }
    };
    factors.iter().map(mode).collect()
}

/// Says which of `rank` components, `alive` of which have a weight, are shown.
fn weighted_note(rank: usize, alive: usize, choice: &ComponentChoice) -> String {
    let Range { start, end } = choice.places;
    let (end, dead) = (end.min(alive), rank - alive);
    let which = match (choice.order, start) {
        (_, 0) if alive == 1 && dead == 0 => "1 component".to_owned(),
        (ComponentOrder::Weight, 0) if end == alive => {
            format!("{alive} components, strongest first")
        }
        (ComponentOrder::Weight, 0) => format!("the strongest {end} of {alive} components"),
        (ComponentOrder::Weight, _) => {
            format!("{} to {end} of {alive} components, strongest first", start + 1)
        }
        (ComponentOrder::Number, 0) if end == alive => format!("{alive} components"),
        (ComponentOrder::Number, _) => format!("{} to {end} of {alive} components", start + 1),
    };
    let dead = if dead > 0 { format!("; {dead} of weight 0 left out") } else { String::new() };
    format!("{which}{dead}; λ with its share of Σ|λ|")
}

fn long_note<V>(factors: &[ComponentFactor<'_, V>]) -> &'static str {
    match factors.iter().any(|factor| factor.factor.nrows() > MOST_POINTS) {
        true => "; long modes as the range of values along them, with the largest dotted",
        false => "",
    }
}

/// Writes the number and weight of a component, and a bar as long as its share.
fn draw_weight(canvas: &mut Canvas, top: f64, row: &ComponentRow, strongest: f64) {
    let width = WEIGHTS - 18.0;
    let bold = TextStyle::new(LABEL).bold();
    canvas.text((MARGIN, top + 14.0), format!("{}", row.component + 1), bold);
    let Some(weight) = row.weight else { return };
    let weight = format!("λ = {}", significant(weight, 3));
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
    if is_drawable(value) { value } else { 0.0 }
}
