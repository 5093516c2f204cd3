//! A tensor network, the tree of its contractions, and the loops that compute it, below each other.
//!
//! ```text
//!   I ──u── P ··m        F(k,i,m)
//!   │ v                   ├─ T1 ─ I, C
//!   C ··i                 └─ P
//!   loops of the nest
//! ```
//!
//! Tensors stand on an ellipse, with an edge for each index: a line between two tensors, a dot with a line to each of
//! several, an open end where only the result has it too.  Indices of the same tensors share an edge.
//!
//! Phases: `network_layout` places tensors, edges and the tree; this file draws them above the nest.

use crate::canvas::Anchor;
use crate::canvas::Canvas;
use crate::canvas::Point;
use crate::canvas::Stroke;
use crate::error::PlotError;
use crate::legend::Entry;
use crate::legend::Sign;
use crate::legend::draw_legend;
use crate::nest::NestFigure;
use crate::nest_layout::BOX_TEXT;
use crate::nest_layout::CHIP_TEXT;
use crate::nest_layout::MARGIN;
use crate::nest_layout::SUBTITLE;
use crate::nest_layout::TITLE_TEXT;
use crate::network_layout::Edge;
use crate::network_layout::NODE;
use crate::network_layout::NetworkLayout;
use crate::network_layout::PANEL;
use crate::network_layout::TreeBox;
use crate::save::Figure;
use crate::style::Color;
use crate::style::FRAME;
use crate::style::PALETTE;
use crate::style::SOFT_INK;
use crate::style::WHITE;

const FIGURE: &str = "network";
/// The line of an edge.
const EDGE: f64 = 1.5;
/// Radius of the dot where the edges of several tensors meet.
const DOT: f64 = 3.0;
/// Radius of the corners of boxes.
const ROUND: f64 = NODE / 2.0;
/// The colour of an index that only operands have, and of one that the result has too.
const SUMMED: Color = SOFT_INK;
const KEPT: Color = PALETTE[1];
/// What stands in the nest's own canvas above its legend, without a title.
const NEST_HEAD: f64 = 22.0;

/// A network of tensors with the schedule that computes it.
#[derive(Clone, Debug, Default)]
pub struct NetworkFigure {
    /// The operands.
    pub tensors: Vec<NetworkTensor>,
    /// The indices of the result.
    pub kept: Vec<String>,
    /// The contractions in order; the last is the root of the tree.
    pub terms: Vec<NetworkTerm>,
    /// The loops, with the title of the figure.
    pub nest: NestFigure,
}

/// An operand of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkTensor {
    /// Its name.
    pub name: String,
    /// Its indices.
    pub indices: Vec<String>,
    /// How it is stored.
    pub form: TensorForm,
}

/// How an operand is stored, which is the colour of its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorForm {
    /// As its non-zeros.
    Sparse,
    /// As an array.
    Dense,
}

/// A contraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkTerm {
    /// Its result, for example `T1(i,u)`.
    pub name: String,
    /// What it multiplies.
    pub inputs: Vec<NetworkInput>,
}

/// What a contraction multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkInput {
    /// An operand, by its place.
    Tensor(usize),
    /// The result of an earlier contraction, by its place.
    Term(usize),
}

impl TensorForm {
    fn color(self) -> Color {
        match self {
            TensorForm::Sparse => PALETTE[0],
            TensorForm::Dense => PALETTE[4],
        }
    }

    fn name(self) -> &'static str {
        match self {
            TensorForm::Sparse => "sparse tensor",
            TensorForm::Dense => "dense tensor",
        }
    }
}

impl Figure for NetworkFigure {
    fn size(&self) -> (u32, u32) {
        let layout = NetworkLayout::of(self);
        let (_, below) = self.loops().size();
        (layout.width.ceil() as u32, (layout.bottom - NEST_HEAD).ceil() as u32 + below)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        self.check()?;
        let layout = NetworkLayout::of(self);
        let room = layout.width - 2.0 * MARGIN;
        canvas.text((MARGIN, 26.0), TITLE_TEXT.fit(&self.nest.title, room), TITLE_TEXT);
        canvas.text((MARGIN, 45.0), SUBTITLE.fit(&self.nest.subtitle, room), SUBTITLE);
        draw_legend(canvas, (MARGIN, layout.legend_top), room, &self.legend());
        for (area, name) in [(&layout.network, "Network"), (&layout.tree, "Contraction tree")] {
            canvas.text((area.left, area.top - 8.0), PANEL.fit(name, area.width), PANEL);
        }
        layout.edges.iter().for_each(|edge| draw_edge(canvas, edge));
        layout.edges.iter().for_each(|edge| draw_label(canvas, edge));
        for (tensor, &centre) in self.tensors.iter().zip(&layout.centres) {
            draw_box(canvas, (centre, layout.node_width), &tensor.name, tensor.form.color());
        }
        layout.boxes.iter().for_each(|one| draw_branch(canvas, one));
        layout.boxes.iter().for_each(|one| self.draw_tree_box(canvas, one));
        let loops = self.loops();
        let mut below = Canvas::new(loops.size());
        loops.draw(&mut below)?;
        canvas.place(below, (0.0, layout.bottom - NEST_HEAD));
        Ok(())
    }
}

impl NetworkFigure {
    /// The nest without its title, which stands above the network.
    fn loops(&self) -> NestFigure {
        NestFigure { title: String::new(), subtitle: String::new(), ..self.nest.clone() }
    }

    /// Checks that there are tensors, and that contractions read what there is.
    fn check(&self) -> Result<(), PlotError> {
        if self.tensors.is_empty() || self.terms.is_empty() {
            let why = "the network has no tensor or no contraction; give one or more of each";
            return Err(PlotError::empty(FIGURE, why));
        }
        for (at, term) in self.terms.iter().enumerate() {
            let known = |input: &NetworkInput| match *input {
                NetworkInput::Tensor(tensor) => tensor < self.tensors.len(),
                NetworkInput::Term(earlier) => earlier < at,
            };
            if !term.inputs.iter().all(known) {
                let name = &term.name;
                let why = format!("`{name}` reads what is not there; name earlier contractions");
                return Err(PlotError::mismatch(FIGURE, why));
            }
        }
        Ok(())
    }

    /// The legend of what occurs.
    pub(crate) fn legend(&self) -> Vec<Entry> {
        let occurs = |form: &TensorForm| self.tensors.iter().any(|one| one.form == *form);
        let forms = [TensorForm::Sparse, TensorForm::Dense].into_iter().filter(occurs);
        let mut entries: Vec<Entry> =
            forms.map(|form| Entry::new(form.color(), form.name())).collect();
        let line = |color, name| Entry { sign: Sign::Line, ..Entry::new(color, name) };
        entries.push(line(SUMMED, "summed index"));
        if !self.kept.is_empty() {
            entries.push(line(KEPT, "index of the result"));
        }
        entries
    }

    fn draw_tree_box(&self, canvas: &mut Canvas, one: &TreeBox) {
        match one.input {
            NetworkInput::Tensor(tensor) => {
                let tensor = &self.tensors[tensor];
                draw_box(canvas, (one.centre, one.width), &tensor.name, tensor.form.color());
            }
            NetworkInput::Term(term) => {
                let (left, top) = (one.centre.0 - one.width / 2.0, one.centre.1 - NODE / 2.0);
                canvas.rounded((left, top), (one.width, NODE), ROUND, FRAME);
                let inner = (one.width - 2.0 * EDGE, NODE - 2.0 * EDGE);
                canvas.rounded((left + EDGE, top + EDGE), inner, ROUND - EDGE, WHITE);
                let style = BOX_TEXT.anchor(Anchor::Middle);
                let name = style.fit(&self.terms[term].name, one.width - NODE / 2.0);
                canvas.text_centred(one.centre, name, style);
            }
        }
    }
}

/// Draws the box of a tensor around a point.
fn draw_box(canvas: &mut Canvas, (centre, width): (Point, f64), name: &str, color: Color) {
    let corner = (centre.0 - width / 2.0, centre.1 - NODE / 2.0);
    canvas.rounded(corner, (width, NODE), ROUND, color);
    let style = CHIP_TEXT.color(color.text_on());
    canvas.text_centred(centre, style.fit(name, width - NODE / 2.0), style);
}

/// Draws the lines of an edge.
fn draw_edge(canvas: &mut Canvas, edge: &Edge) {
    let color = edge_color(edge);
    for &end in &edge.ends {
        canvas.line(vec![edge.middle, end], Stroke { width: EDGE, color });
    }
    if edge.ends.len() > 2 {
        canvas.disc(edge.middle, DOT, color);
    }
}

/// Writes the indices of an edge onto it, if there is room.
fn draw_label(canvas: &mut Canvas, edge: &Edge) {
    let Some(label) = edge.label else { return };
    let style = BOX_TEXT.color(edge_color(edge)).anchor(Anchor::Middle);
    let (width, height) = edge.label_size;
    let corner = (label.0 - width / 2.0, label.1 - height / 2.0);
    canvas.rect(corner, (width, height), WHITE);
    canvas.text_centred(label, style.fit(&edge.text, width), style);
}

fn edge_color(edge: &Edge) -> Color {
    if edge.kept { KEPT } else { SUMMED }
}

/// Draws the line from a box of the tree to the one that reads it.
fn draw_branch(canvas: &mut Canvas, one: &TreeBox) {
    if let Some(parent) = one.parent {
        let stroke = Stroke { width: EDGE, color: FRAME };
        canvas.line(vec![parent, one.centre], stroke);
    }
}
