//! Where the boxes of a loop-nest forest lie.
//!
//! A loop is a header above its body, indented; terms and loops of a body stand below each other.
//! The figure is as wide as its texts want, within limits; where they want more, the labels of
//! buffers give way first, then the texts of the boxes.

use crate::axes::Area;
use crate::canvas::Anchor;
use crate::canvas::TextStyle;
use crate::nest::LoopKind;
use crate::nest::NestBuffer;
use crate::nest::NestFigure;
use crate::nest::NestNode;
use crate::style::SMALL;
use crate::style::SOFT_INK;
use crate::style::TITLE;

/// Margin of the figure.
pub(crate) const MARGIN: f64 = 14.0;
/// Height of the header of a loop, of its chip, and of a term.
pub(crate) const HEADER: f64 = 25.0;
pub(crate) const CHIP: f64 = 16.0;
const TERM: f64 = 27.0;
/// Distance of a text from the edge of its box.
pub(crate) const PADDING: f64 = 8.0;
/// Distance from box to box.
const GAP: f64 = 6.0;
/// Indent of a body at its left and right, smaller in forests deeper than eight loops.
const INDENT: f64 = 16.0;
const INSET: f64 = 6.0;
const DEEP: f64 = 8.0;
/// Distance of arrows from the forest and from each other, and of labels from the arrows.
const LANE: f64 = 13.0;
/// Distance of labels from each other.
const LABEL_PITCH: f64 = 17.0;
/// Least and most width of the figure; the legend needs the least one.
const LEAST_WIDTH: f64 = 480.0;
const MOST_WIDTH: f64 = 800.0;
/// Room that labels of buffers keep however wide the boxes are.
const LEAST_LABEL: f64 = 190.0;

/// The text of the title.
pub(crate) const TITLE_TEXT: TextStyle = TextStyle::new(TITLE).bold();
/// The text below the title.
pub(crate) const SUBTITLE: TextStyle = TextStyle::new(SMALL).color(SOFT_INK);
/// The text of notes, terms and labels.
pub(crate) const BOX_TEXT: TextStyle = TextStyle::SMALL;
/// The text of the index of a loop.
pub(crate) const CHIP_TEXT: TextStyle = TextStyle::SMALL.bold().anchor(Anchor::Middle);

/// A placed loop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopBox<'a> {
    pub(crate) frame: Area,
    pub(crate) index: &'a str,
    pub(crate) note: &'a str,
    pub(crate) kind: LoopKind,
}

/// A placed term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TermBox<'a> {
    pub(crate) frame: Area,
    pub(crate) text: &'a str,
}

/// A placed forest.
#[derive(Clone, Debug)]
pub(crate) struct NestLayout<'a> {
    /// Width of the figure.
    pub(crate) width: f64,
    /// Height of the figure.
    pub(crate) height: f64,
    /// Where the legend begins.
    pub(crate) legend_top: f64,
    /// Loops, outer ones before inner ones.
    pub(crate) loops: Vec<LoopBox<'a>>,
    /// Terms in order.
    pub(crate) terms: Vec<TermBox<'a>>,
    /// The lane of each buffer's arrow, from 0 next to the forest.
    pub(crate) lanes: Vec<usize>,
    /// The field of the forest.
    pub(crate) forest: Area,
    indent: f64,
    inset: f64,
}

impl<'a> NestLayout<'a> {
    /// Places a figure.
    pub(crate) fn of(figure: &'a NestFigure) -> NestLayout<'a> {
        let depth = depth(&figure.roots).max(1) as f64;
        let indent = INDENT.min(INDENT * DEEP / depth);
        let inset = INSET.min(INSET * DEEP / depth);
        let lanes = lanes(&figure.buffers);
        let (width, forest) = widths(figure, &lanes, indent + inset);
        let legend_top = if figure.subtitle.is_empty() { 40.0 } else { 58.0 };
        let top = legend_top + 27.0;
        let forest = Area { left: MARGIN, top, width: forest, height: 0.0 };
        let mut layout = NestLayout {
            width,
            height: 0.0,
            legend_top,
            loops: Vec::new(),
            terms: Vec::new(),
            lanes,
            forest,
            indent,
            inset,
        };
        let bottom = layout.place(&figure.roots, forest);
        layout.forest.height = (bottom - top).max(LABEL_PITCH * figure.buffers.len() as f64);
        layout.height = top + layout.forest.height + MARGIN;
        layout
    }

    /// Returns where the arrow of a lane runs.
    pub(crate) fn lane_at(&self, lane: usize) -> f64 {
        self.forest.left + self.forest.width + LANE * (lane as f64 + 1.0)
    }

    /// Returns where labels begin.
    pub(crate) fn labels_at(&self) -> f64 {
        let last = self.lanes.iter().max().copied().unwrap_or(0);
        self.lane_at(last) + LANE
    }

    /// Moves the middles of labels apart, as little below and above where they want to be as their
    /// order allows, inside the forest.
    pub(crate) fn spread_labels(&self, wanted: &[f64]) -> Vec<f64> {
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
        let mut middles = wanted.to_vec();
        let mut free = self.forest.top + LABEL_PITCH / 2.0;
        for at in &order {
            middles[*at] = wanted[*at].max(free);
            free = middles[*at] + LABEL_PITCH;
        }
        let mut free = self.forest.top + self.forest.height - LABEL_PITCH / 2.0;
        for at in order.iter().rev() {
            middles[*at] = middles[*at].min(free);
            free = middles[*at] - LABEL_PITCH;
        }
        middles
    }

    /// Places nodes below each other from the top of `field` and returns the bottom of the last.
    fn place(&mut self, nodes: &'a [NestNode], field: Area) -> f64 {
        let mut top = field.top;
        for node in nodes {
            let frame = Area { top, height: TERM, ..field };
            let bottom = match node {
                NestNode::Term(text) => {
                    self.terms.push(TermBox { frame, text });
                    top + TERM
                }
                NestNode::Loop { index, note, kind, body } => {
                    let at = self.loops.len();
                    self.loops.push(LoopBox { frame, index, note, kind: *kind });
                    let inner = Area {
                        left: field.left + self.indent,
                        top: top + HEADER,
                        width: (field.width - self.indent - self.inset).max(1.0),
                        height: 0.0,
                    };
                    let bottom = self.place(body, inner).max(inner.top) + GAP;
                    self.loops[at].frame.height = bottom - top;
                    bottom
                }
            };
            top = bottom + GAP;
        }
        top - GAP
    }
}

/// Returns the width of the chip of an index.
pub(crate) fn chip_width(index: &str) -> f64 {
    (CHIP_TEXT.width(index) + 9.0).max(CHIP)
}

/// Returns how many loops stand around the deepest node.
fn depth(nodes: &[NestNode]) -> usize {
    let below = |node: &NestNode| match node {
        NestNode::Term(_) => 0,
        NestNode::Loop { body, .. } => 1 + depth(body),
    };
    nodes.iter().map(below).max().unwrap_or(0)
}

/// Returns the widths of the figure and of its forest.
fn widths(figure: &NestFigure, lanes: &[usize], indents: f64) -> (f64, f64) {
    let arrows = lanes.iter().max().map_or(0.0, |last| LANE * (*last as f64 + 2.0));
    let labels = figure.buffers.iter().map(|buffer| BOX_TEXT.width(&buffer.label()));
    let labels = labels.fold(0.0, f64::max);
    let titles = TITLE_TEXT.width(&figure.title).max(SUBTITLE.width(&figure.subtitle));
    let forest = wanted(&figure.roots, indents);
    // A rounding error must not shorten a text that fits.
    let width = (forest + arrows + labels + 1.0).max(titles) + 2.0 * MARGIN;
    let width = width.clamp(LEAST_WIDTH, MOST_WIDTH).ceil();
    let room = width - 2.0 * MARGIN - arrows;
    (width, (room - labels).max(forest.min(room - labels.min(LEAST_LABEL))))
}

/// Returns the width in which no text of `nodes` is shortened.
fn wanted(nodes: &[NestNode], indents: f64) -> f64 {
    let width = |node: &NestNode| match node {
        NestNode::Term(text) => BOX_TEXT.width(text) + 2.0 * PADDING + 1.0,
        NestNode::Loop { index, note, body, .. } => {
            let note = BOX_TEXT.width(note);
            let header = chip_width(index) + note + 3.0 * PADDING + 1.0;
            header.max(wanted(body, indents) + indents)
        }
    };
    nodes.iter().map(width).fold(0.0, f64::max)
}

/// Returns a lane for each buffer: arrows that run beside each other get different ones, shorter
/// arrows inner ones, so that arrows of nested buffers never cross.
fn lanes(buffers: &[NestBuffer]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..buffers.len()).collect();
    let length = |at: &usize| buffers[*at].consumer.saturating_sub(buffers[*at].producer);
    order.sort_by_key(length);
    let mut lanes: Vec<Option<usize>> = vec![None; buffers.len()];
    for at in order {
        let beside = |other: usize| {
            let (a, b) = (&buffers[at], &buffers[other]);
            a.producer < b.consumer && b.producer < a.consumer
        };
        let taken = |lane: usize| {
            (0..buffers.len()).any(|other| lanes[other] == Some(lane) && beside(other))
        };
        lanes[at] = (0..buffers.len()).find(|lane| !taken(*lane));
    }
    lanes.into_iter().map(|lane| lane.unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::lanes;
    use crate::nest::NestBuffer;

    fn check(pairs: &[(usize, usize)], wanted: &[usize]) {
        let buffer = |&(producer, consumer): &(usize, usize)| NestBuffer {
            name: String::new(),
            indices: String::new(),
            extents: Vec::new(),
            bytes: 8,
            producer,
            consumer,
        };
        let buffers: Vec<_> = pairs.iter().map(buffer).collect();
        assert_eq!(lanes(&buffers), wanted, "{pairs:?}");
    }

    #[test]
    fn longer_arrows_run_outside_shorter_ones() {
        check(&[], &[]);
        check(&[(0, 1), (1, 2), (2, 3)], &[0, 0, 0]);
        check(&[(0, 2), (1, 2)], &[1, 0]);
        check(&[(0, 5), (1, 3), (2, 3), (3, 5), (4, 5)], &[2, 1, 0, 1, 0]);
    }
}
