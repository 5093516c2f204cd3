//! Where the tensors, the edges and the contraction tree of a network lie.
//!
//! Both panels are as high as the deeper of the two needs.  Leaves of the tree stand in the order in which the tree
//! reads them, each contraction above the middle of what it reads.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use crate::axes::Area;
use crate::canvas::Point;
use crate::canvas::TextStyle;
use crate::legend::legend_height;
use crate::nest_layout::BOX_TEXT;
use crate::nest_layout::CHIP_TEXT;
use crate::nest_layout::MARGIN;
use crate::network::NetworkFigure;
use crate::network::NetworkInput;
use crate::save::Figure;
use crate::style::LABEL;
use crate::style::SMALL;

/// Height of the box of a tensor.
pub(crate) const NODE: f64 = 22.0;
/// The name of a panel.
pub(crate) const PANEL: TextStyle = TextStyle::new(LABEL).bold();
/// Width of the figure at least, and of each of its panels for each leaf of the tree.
const LEAST_WIDTH: f64 = 640.0;
const LEAF: f64 = 58.0;
/// The most width of the figure.
const MOST_WIDTH: f64 = 1600.0;
/// The widest box of a tensor.
const MOST_NODE: f64 = 90.0;
/// What a box is wider than its text.
const AROUND: f64 = 18.0;
/// Distance of boxes of a level of the tree.
const BETWEEN: f64 = 4.0;
/// Height of a level of the tree.
const LEVEL: f64 = 46.0;
/// The least height of the panels, and what each tensor adds beyond four.
const LEAST_HEIGHT: f64 = 190.0;
const TENSOR_HEIGHT: f64 = 22.0;
/// Height of the name of a panel with the distance to what stands above.
const PANEL_HEAD: f64 = 34.0;
/// Distance of the panels from each other, and of the network from the edge of its panel.
const GAP: f64 = 28.0;
const INSET: f64 = 36.0;
/// The widest label of an edge, and what it is wider than its text.
const MOST_LABEL: f64 = 44.0;
const AROUND_LABEL: f64 = 6.0;
/// Share of the distance of neighbours on the ellipse that a box takes at most, so that boxes stay apart.
const SPACED: f64 = 0.7;
/// How far an open edge runs beyond its tensor.
const OPEN: f64 = 34.0;
/// Where a label may stand on an edge between two tensors, in order of choice.
const SHARES: [f64; 9] = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.2, 0.8];

/// An edge: the tensors that have its indices.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    /// The indices.
    pub(crate) text: String,
    /// Whether the result has them.
    pub(crate) kept: bool,
    /// Where its lines meet, and their other ends.
    pub(crate) middle: Point,
    pub(crate) ends: Vec<Point>,
    /// The middle of its label, and the size of that; `None` where there is no room.
    pub(crate) label: Option<Point>,
    pub(crate) label_size: (f64, f64),
}

/// A box of the contraction tree.
#[derive(Clone, Debug)]
pub(crate) struct TreeBox {
    pub(crate) input: NetworkInput,
    pub(crate) centre: Point,
    pub(crate) width: f64,
    /// The centre of the contraction that reads it.
    pub(crate) parent: Option<Point>,
}

/// A placed network with its tree.
#[derive(Clone, Debug)]
pub(crate) struct NetworkLayout {
    pub(crate) width: f64,
    pub(crate) legend_top: f64,
    /// The fields of the panels.
    pub(crate) network: Area,
    pub(crate) tree: Area,
    /// Where the panels end.
    pub(crate) bottom: f64,
    /// The middle of each tensor, and how wide its box is.
    pub(crate) centres: Vec<Point>,
    pub(crate) node_width: f64,
    pub(crate) edges: Vec<Edge>,
    pub(crate) boxes: Vec<TreeBox>,
}

impl NetworkLayout {
    /// Places a figure.
    pub(crate) fn of(figure: &NetworkFigure) -> NetworkLayout {
        let (nest_width, _) = figure.nest.size();
        let leaves = figure.tensors.len().max(1);
        let wanted = 2.0 * LEAF * leaves as f64 + GAP + 2.0 * MARGIN;
        let width = LEAST_WIDTH.max(f64::from(nest_width)).max(wanted.min(MOST_WIDTH));
        let legend_top = if figure.nest.subtitle.is_empty() { 40.0 } else { 58.0 };
        let top = legend_top + legend_height(width - 2.0 * MARGIN, &figure.legend()) + PANEL_HEAD;
        let levels = depth(figure, root(figure)) as f64;
        let tensors = LEAST_HEIGHT + TENSOR_HEIGHT * leaves.saturating_sub(4).min(16) as f64;
        let height = tensors.max(LEVEL * (levels + 1.0));
        let panel = (width - 2.0 * MARGIN - GAP) / 2.0;
        let network = Area { left: MARGIN, top, width: panel, height };
        let tree = Area { left: MARGIN + panel + GAP, ..network };
        let names = figure.tensors.iter().map(|tensor| CHIP_TEXT.width(&tensor.name) + AROUND);
        let node_width = names.fold(NODE * 1.5, f64::max).min(MOST_NODE);
        let across = (panel / 2.0 - node_width / 2.0 - INSET).max(node_width);
        let node_width = node_width.min((across * TAU / leaves as f64 * SPACED).max(NODE));
        let centres = centres(figure.tensors.len(), &network, across);
        let edges = edges(figure, &centres, node_width);
        let mut boxes = Vec::new();
        let mut place = Place { figure, tree, levels, next: 0, boxes: &mut boxes };
        place.put(root(figure), 0);
        let bottom = top + height;
        NetworkLayout {
            width,
            legend_top,
            network,
            tree,
            bottom,
            centres,
            node_width,
            edges,
            boxes,
        }
    }
}

fn root(figure: &NetworkFigure) -> NetworkInput {
    NetworkInput::Term(figure.terms.len().saturating_sub(1))
}

/// What a contraction reads that was made before it; of a figure that is no tree, not more.
fn inputs(figure: &NetworkFigure, input: NetworkInput) -> Vec<NetworkInput> {
    let NetworkInput::Term(at) = input else { return Vec::new() };
    let earlier = |input: &NetworkInput| match *input {
        NetworkInput::Tensor(tensor) => tensor < figure.tensors.len(),
        NetworkInput::Term(term) => term < at,
    };
    figure
        .terms
        .get(at)
        .map_or_else(Vec::new, |term| term.inputs.iter().copied().filter(earlier).collect())
}

/// The levels below a box.
fn depth(figure: &NetworkFigure, input: NetworkInput) -> usize {
    let below = inputs(figure, input).into_iter().map(|input| depth(figure, input) + 1);
    below.max().unwrap_or(0)
}

/// The leaves below a box, itself if it is one.
fn leaves(figure: &NetworkFigure, input: NetworkInput) -> usize {
    let below: usize = inputs(figure, input).into_iter().map(|one| leaves(figure, one)).sum();
    below.max(1)
}

/// Places the tensors on an ellipse that reaches `across` from its middle; two stand beside each other.
fn centres(tensors: usize, panel: &Area, across: f64) -> Vec<Point> {
    let middle = (panel.left + panel.width / 2.0, panel.top + panel.height / 2.0);
    let down = (panel.height / 2.0 - NODE / 2.0 - INSET).max(NODE);
    let at = |tensor: usize| match tensors {
        0 | 1 => middle,
        _ => {
            // One of an odd number stands at the top, two of an even number at each side.
            let start = match tensors {
                2 => TAU * 0.5,
                odd if odd % 2 == 1 => TAU * 0.75,
                even => TAU * 0.5 + TAU / (2 * even) as f64,
            };
            let angle = start + TAU * tensor as f64 / tensors as f64;
            (middle.0 + across * angle.cos(), middle.1 + down * angle.sin())
        }
    };
    (0..tensors).map(at).collect()
}

/// The edges, each for the indices of the same tensors.
fn edges(figure: &NetworkFigure, centres: &[Point], node_width: f64) -> Vec<Edge> {
    let mut of: BTreeMap<(Vec<usize>, bool), Vec<&str>> = BTreeMap::new();
    for index in figure.tensors.iter().flat_map(|tensor| &tensor.indices) {
        let has = |at: &usize| figure.tensors[*at].indices.contains(index);
        let tensors: Vec<usize> = (0..figure.tensors.len()).filter(has).collect();
        let indices = of.entry((tensors, figure.kept.contains(index))).or_default();
        if !indices.contains(&index.as_str()) {
            indices.push(index);
        }
    }
    let mut taken: Vec<(Point, (f64, f64))> =
        centres.iter().map(|&centre| (centre, (node_width, NODE))).collect();
    let mut edges = Vec::new();
    // Labels of open edges have one place, those between two tensors several.
    let mut all: Vec<_> = of.into_iter().collect();
    all.sort_by_key(|((tensors, _), _)| (tensors.len() == 2, tensors.len()));
    for ((tensors, kept), indices) in all {
        let text = indices.join(",");
        let label_size = ((BOX_TEXT.width(&text) + AROUND_LABEL).min(MOST_LABEL), SMALL + 5.0);
        let ends: Vec<Point> = tensors.iter().map(|&at| centres[at]).collect();
        let (middle, places) = match (tensors.as_slice(), ends.as_slice()) {
            (&[_], &[from]) => open_edge(from, centres, (node_width, label_size.0)),
            (_, &[from, to]) => {
                let on = |share: &f64| {
                    (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1))
                };
                (on(&SHARES[0]), SHARES.iter().map(on).collect())
            }
            _ => several(&ends, label_size),
        };
        let free =
            |place: &Point| taken.iter().all(|other| !overlaps((*place, label_size), *other));
        let label = places.iter().copied().find(free);
        taken.extend(label.map(|label| (label, label_size)));
        edges.push(Edge { text, kept, middle, ends, label, label_size });
    }
    edges
}

/// An edge that runs away from the middle of the network: its end and the place of its label.
fn open_edge(from: Point, centres: &[Point], (node, label): (f64, f64)) -> (Point, Vec<Point>) {
    let count = centres.len() as f64;
    let middle = centres.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let (x, y) = (from.0 - middle.0 / count, from.1 - middle.1 / count);
    // To the side of tensors near the middle line, else up or down.
    let end = match y.abs() < NODE {
        true => {
            let side = if x < 0.0 { -1.0 } else { 1.0 };
            (from.0 + side * (node / 2.0 + label / 2.0 + 4.0), from.1)
        }
        false => (from.0, from.1 + OPEN * y.signum()),
    };
    (end, vec![end])
}

/// An edge of several tensors: a dot amid them, with the label beside, above or below it.
fn several(ends: &[Point], (width, height): (f64, f64)) -> (Point, Vec<Point>) {
    let count = ends.len().max(1) as f64;
    let sum = ends.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let dot = (sum.0 / count, sum.1 / count);
    let (right, down) = (width / 2.0 + 6.0, height / 2.0 + 6.0);
    let around = [(right, 0.0), (-right, 0.0), (0.0, down), (0.0, -down)];
    (dot, around.iter().map(|(x, y)| (dot.0 + x, dot.1 + y)).collect())
}

/// Tells whether two boxes, each a middle with a size, have a point in common.
fn overlaps(a: (Point, (f64, f64)), b: (Point, (f64, f64))) -> bool {
    (a.0.0 - b.0.0).abs() * 2.0 < a.1.0 + b.1.0 && (a.0.1 - b.0.1).abs() * 2.0 < a.1.1 + b.1.1
}

/// Places the boxes of the tree.
struct Place<'a> {
    figure: &'a NetworkFigure,
    tree: Area,
    levels: f64,
    /// The leaves placed so far.
    next: usize,
    boxes: &'a mut Vec<TreeBox>,
}

impl Place<'_> {
    /// Places a box at a level with all below it; returns its number.
    fn put(&mut self, input: NetworkInput, level: usize) -> usize {
        let leaf = self.tree.width / leaves(self.figure, root(self.figure)) as f64;
        let own = leaves(self.figure, input) as f64;
        let left = self.tree.left + leaf * self.next as f64;
        let children = inputs(self.figure, input);
        let below: Vec<usize> = children.iter().map(|&one| self.put(one, level + 1)).collect();
        if below.is_empty() {
            self.next += 1;
        }
        let xs = below.iter().map(|&at| self.boxes[at].centre.0);
        let x = match below.len() {
            0 => left + leaf / 2.0,
            n => xs.sum::<f64>() / n as f64,
        };
        let step = (self.tree.height - NODE) / self.levels.max(1.0);
        let centre = (x, self.tree.top + NODE / 2.0 + step * level as f64);
        for &at in &below {
            self.boxes[at].parent = Some(centre);
        }
        let name = match input {
            NetworkInput::Tensor(tensor) => self.figure.tensors.get(tensor).map(|one| &one.name),
            NetworkInput::Term(term) => self.figure.terms.get(term).map(|one| &one.name),
        };
        let text = name.map_or(0.0, |name| CHIP_TEXT.width(name)) + AROUND;
        // No box leaves the room of its leaves, so that boxes of a level stand apart.
        let side = (x - left).min(left + leaf * own - x);
        let room = (2.0 * side - BETWEEN).max(NODE / 2.0);
        let width = text.min(room);
        self.boxes.push(TreeBox { input, centre, width, parent: None });
        self.boxes.len() - 1
    }
}
