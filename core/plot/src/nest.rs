//! A loop-nest forest as nested boxes: which loops run around which terms, and what is stored
//! between the terms.
//!
//! ```text
//! i  sparse loop ────────────────┐
//! │ j  sparse loop ─────────────┐│
//! │ │ T1(r) += X(i,j,k) * C(k,r)││─┐ T1: r, 50 elements, 400 B
//! │ └───────────────────────────┘│ │
//! │ Y(i,r) += T1(r) * B(j,r)     │←┘
//! └──────────────────────────────┘
//! ```
//!
//! Boxes stand below each other in the order of execution, so that a figure reads like the program
//! it shows, and nothing but loops lies between a term and the arrows at its right.  A tree with
//! loops as circles was not chosen: six terms with their products do not fit beside each other.
//!
//! Phases: `nest_layout` places boxes, arrows and labels; this file draws them.

use crate::canvas::Canvas;
use crate::canvas::Stroke;
use crate::error::PlotError;
use crate::legend::Entry;
use crate::legend::Sign;
use crate::legend::draw_legend;
use crate::nest_arrows::draw_arrows;
use crate::nest_layout::BOX_TEXT;
use crate::nest_layout::CHIP;
use crate::nest_layout::CHIP_TEXT;
use crate::nest_layout::HEADER;
use crate::nest_layout::LoopBox;
use crate::nest_layout::MARGIN;
use crate::nest_layout::NestLayout;
use crate::nest_layout::PADDING;
use crate::nest_layout::SUBTITLE;
use crate::nest_layout::TITLE_TEXT;
use crate::nest_layout::TermBox;
use crate::nest_layout::chip_width;
use crate::number::bytes;
use crate::save::Figure;
use crate::style::Color;
use crate::style::FRAME;
use crate::style::PALETTE;
use crate::style::SOFT_INK;
use crate::style::WHITE;

const FIGURE: &str = "nest";
/// Radius of the corners of boxes.
const ROUND: f64 = 4.5;
/// Width of the rims of boxes.
const RIM: f64 = 1.0;

/// A loop-nest forest with the buffers between its terms.
///
/// # Example
///
/// ```
/// use decompose_plot::{LoopKind, NestBuffer, NestFigure, NestNode};
///
/// let term = NestNode::Term("T1(r) += X(i,j) * B(j,r)".to_owned());
/// let last = NestNode::Term("Y(i,r) += T1(r) * A(i,r)".to_owned());
/// let inner = NestNode::Loop {
///     index: "j".to_owned(),
///     note: String::new(),
///     kind: LoopKind::Sparse,
///     body: vec![term],
/// };
/// let figure = NestFigure {
///     title: "Two terms".to_owned(),
///     subtitle: String::new(),
///     roots: vec![inner, last],
///     buffers: vec![NestBuffer {
///         name: "T1".to_owned(),
///         indices: "r".to_owned(),
///         extents: vec![50],
///         bytes: 400,
///         producer: 0,
///         consumer: 1,
///     }],
/// };
/// assert_eq!(figure.buffers[0].label(), "T1: r, 50 elements, 400 B");
/// ```
#[derive(Clone, Debug, Default)]
pub struct NestFigure {
    /// The title, for example the expression.
    pub title: String,
    /// A line below the title; may be empty.
    pub subtitle: String,
    /// The roots of the forest, in the order in which they run.
    pub roots: Vec<NestNode>,
    /// What is stored between terms.
    pub buffers: Vec<NestBuffer>,
}

/// A loop or a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NestNode {
    /// A loop.
    Loop {
        /// What it iterates, for example `i`, or `k+l` for fused levels.
        index: String,
        /// Some words on it, for example its iterations; may be empty.
        note: String,
        /// How it runs.
        kind: LoopKind,
        /// What it repeats, in order; never empty.
        body: Vec<NestNode>,
    },
    /// A term by its product, for example `T1(r) += X(i,j,k) * C(k,r)`.
    Term(String),
}

/// How a loop runs, which is the colour of its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopKind {
    /// Over the nodes of a level of a sparse operand.
    Sparse,
    /// Over all coordinates of an index.
    Dense,
    /// Over all coordinates of an index, as the lanes of a vector statement.
    Lanes,
}

/// What is stored of an intermediate between the term that makes it and the term that reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestBuffer {
    /// Its name, for example `T1`.
    pub name: String,
    /// The stored indices, for example `s,r`; empty for a scalar.
    pub indices: String,
    /// Their extents, in the same order.
    pub extents: Vec<u64>,
    /// Bytes in all.
    pub bytes: u64,
    /// The term that makes it, counted from 0 in the order of the figure.
    pub producer: usize,
    /// The term that reads it, later than its producer.
    pub consumer: usize,
}

impl NestBuffer {
    /// Returns the text beside its arrow: `T1: s,r, 16 × 50 elements, 6.25 KiB`.
    pub fn label(&self) -> String {
        let extents: Vec<String> = self.extents.iter().map(u64::to_string).collect();
        let elements = match self.extents.as_slice() {
            [] | [1] => "1 element".to_owned(),
            _ => format!("{} elements", extents.join(" × ")),
        };
        format!("{}, {elements}, {}", self.stored(), bytes(self.bytes))
    }

    /// Returns the text that takes at most `room` points: without the elements where it must be.
    pub(crate) fn label_within(&self, room: f64) -> String {
        let label = self.label();
        if BOX_TEXT.width(&label) <= room {
            return label;
        }
        BOX_TEXT.fit(&format!("{}, {}", self.stored(), bytes(self.bytes)), room)
    }

    /// Returns its name and what it stores.
    fn stored(&self) -> String {
        let indices = if self.indices.is_empty() { "scalar" } else { &self.indices };
        format!("{}: {indices}", self.name)
    }
}

impl LoopKind {
    /// All kinds, in the order of the legend.
    const ALL: [LoopKind; 3] = [LoopKind::Sparse, LoopKind::Dense, LoopKind::Lanes];

    fn name(self) -> &'static str {
        match self {
            LoopKind::Sparse => "sparse loop",
            LoopKind::Dense => "dense loop",
            LoopKind::Lanes => "vector lanes",
        }
    }

    fn color(self) -> Color {
        match self {
            LoopKind::Sparse => PALETTE[0],
            LoopKind::Dense => PALETTE[4],
            LoopKind::Lanes => PALETTE[2],
        }
    }
}

impl Figure for NestFigure {
    fn size(&self) -> (u32, u32) {
        let layout = NestLayout::of(self);
        (layout.width.ceil() as u32, layout.height.ceil() as u32)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        let layout = NestLayout::of(self);
        self.check(&layout)?;
        let room = layout.width - 2.0 * MARGIN;
        canvas.text((MARGIN, 26.0), TITLE_TEXT.fit(&self.title, room), TITLE_TEXT);
        canvas.text((MARGIN, 45.0), SUBTITLE.fit(&self.subtitle, room), SUBTITLE);
        self.draw_kinds(canvas, &layout);
        layout.loops.iter().for_each(|one| draw_loop(canvas, one));
        layout.terms.iter().for_each(|one| draw_term(canvas, one));
        draw_arrows(canvas, &layout, &self.buffers);
        Ok(())
    }
}

impl NestFigure {
    /// Checks that the forest has terms, every loop a body, and every buffer its two terms.
    fn check(&self, layout: &NestLayout<'_>) -> Result<(), PlotError> {
        let terms = layout.terms.len();
        if terms == 0 {
            return Err(PlotError::empty(FIGURE, "the forest has no term; give one or more"));
        }
        if let Some(index) = empty_loop(&self.roots) {
            let reason = format!("loop `{index}` repeats nothing; give it a loop or a term");
            return Err(PlotError::mismatch(FIGURE, reason));
        }
        for buffer in &self.buffers {
            let (from, to) = (buffer.producer, buffer.consumer);
            if from >= to || to >= terms {
                let reason = format!(
                    "buffer `{}` runs from term {} to term {} of {terms}; give an earlier and a \
                     later term",
                    buffer.name,
                    from.saturating_add(1),
                    to.saturating_add(1)
                );
                return Err(PlotError::mismatch(FIGURE, reason));
            }
        }
        Ok(())
    }

    /// Draws the legend of the kinds of loops that occur.
    fn draw_kinds(&self, canvas: &mut Canvas, layout: &NestLayout<'_>) {
        let occurs = |kind: &LoopKind| layout.loops.iter().any(|one| one.kind == *kind);
        let mut entries: Vec<Entry> = LoopKind::ALL
            .into_iter()
            .filter(occurs)
            .map(|kind| Entry::new(kind.color(), kind.name()))
            .collect();
        if !self.buffers.is_empty() {
            entries.push(Entry { sign: Sign::Arrow, ..Entry::new(SOFT_INK, "buffer") });
        }
        let corner = (MARGIN, layout.legend_top);
        draw_legend(canvas, corner, layout.width - 2.0 * MARGIN, &entries);
    }
}

/// Returns the index of a loop without a body, if there is one.
fn empty_loop(nodes: &[NestNode]) -> Option<&str> {
    nodes.iter().find_map(|node| match node {
        NestNode::Term(_) => None,
        NestNode::Loop { index, body, .. } if body.is_empty() => Some(index.as_str()),
        NestNode::Loop { body, .. } => empty_loop(body),
    })
}

/// Draws the box of a loop with its index as a chip and its note beside it.
fn draw_loop(canvas: &mut Canvas, one: &LoopBox<'_>) {
    let color = one.kind.color();
    let (left, top) = (one.frame.left, one.frame.top);
    let size = (one.frame.width, one.frame.height);
    canvas.rounded((left, top), size, ROUND, color.tint(0.55));
    let inner = (size.0 - 2.0 * RIM, size.1 - 2.0 * RIM);
    canvas.rounded((left + RIM, top + RIM), inner, ROUND - RIM, color.tint(0.13));

    let index = CHIP_TEXT.fit(one.index, size.0 / 2.0);
    let width = chip_width(&index);
    let middle = top + HEADER / 2.0 + RIM;
    let chip = (left + PADDING, middle - CHIP / 2.0);
    canvas.rounded(chip, (width, CHIP), 2.0, color);
    let style = CHIP_TEXT.color(color.text_on());
    canvas.text_centred((chip.0 + width / 2.0, middle), index, style);
    let note = (chip.0 + width + PADDING, middle);
    let room = left + size.0 - PADDING - note.0;
    canvas.text_centred(note, BOX_TEXT.fit(one.note, room), BOX_TEXT.color(SOFT_INK));
}

/// Draws the box of a term.
fn draw_term(canvas: &mut Canvas, one: &TermBox<'_>) {
    let (left, top) = (one.frame.left, one.frame.top);
    let size = (one.frame.width, one.frame.height);
    let stroke = Stroke { width: 0.8, color: FRAME };
    canvas.rounded((left, top), size, ROUND, stroke.color);
    let inner = (size.0 - 2.0 * stroke.width, size.1 - 2.0 * stroke.width);
    let corner = (left + stroke.width, top + stroke.width);
    canvas.rounded(corner, inner, ROUND - stroke.width, WHITE);
    let text = BOX_TEXT.fit(one.text, size.0 - 2.0 * PADDING);
    canvas.text_centred((left + PADDING, top + size.1 / 2.0), text, BOX_TEXT);
}
