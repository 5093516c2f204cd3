//! What it costs to locate coordinates in a level of another operand, by the kind of the level.
//!
//! Between two coordinates that are located in a fibre lie `g` of its nodes on average.
//!
//! | kind | branches that no processor foresees | lines of memory beside the node's |
//! |---|---|---|
//! | compressed | `1 + 2 log2 g`: steps that double, then halve | `log2(g c / 64)`, at least 0, with `c` bytes a coordinate: the steps that leave a line |
//! | dense | the share of coordinates without a node | |
//! | bitmap | the share of coordinates without a node | one of the bitmap |
//! | hashed | three: is the slot taken, is it this coordinate, how many slots follow | one of the table, and half a line of coordinates |
//!
//! Bitmaps and tables are made when a kernel is bound to its trees, which counts where it runs once.  Sources of the
//! constants: `data/records/current/located-levels/xeon`.

use decompose_formats::narrow_ints::Width;

use crate::cost::Machine;
use crate::cost::caches::{GatheredTable, L1_BYTES, LINE_BYTES, gather_seconds};
use crate::einsum::Index;
use crate::lower::locator_bytes;
use crate::schedule::{
    Layout, LevelKind, Loop, LoopNest, MOST_LOCATED, Over, Problem, TreeLevel, Visited,
};

/// The cells that are marked of the buffer of a term in an iteration of its fused loops.
pub(super) fn cells(nest: &LoopNest, term: usize) -> f64 {
    nest.buffers[term].marks.map_or(0.0, |marks| marks.cells)
}

/// Returns the lookups of a loop over `index` that opens `loops` times, each time over a fibre of `lead`, whose coordinates
/// are located in each of `located`; `visits` of them, in all, occur in all.
pub(super) fn lookups<'a>(
    problem: &'a Problem,
    nest: &'a LoopNest,
    (index, lead, located): (Index, Visited, &'a [Visited]),
    (loops, visits): (f64, f64),
) -> impl Iterator<Item = (Visited, Lookups)> + 'a {
    let extent = problem.extents.of(index).max(1) as f64;
    let fibre = move |at: Visited| match at {
        Visited::Level(at) => problem.sparse[at.tree].children(at.level, &problem.extents),
        Visited::Buffer(term) => cells(nest, term),
    };
    let share = move |at: Visited| (fibre(at) / extent).clamp(f64::MIN_POSITIVE, 1.0);
    let count = (loops.max(1.0) * fibre(lead)).max(visits);
    let of = move |&at: &Visited| {
        let (above, nodes) = match at {
            Visited::Level(TreeLevel { tree, level }) => {
                let x = &problem.sparse[tree];
                let nodes = |depth: usize| {
                    x.nodes(x.levels()[..depth].iter().copied().collect(), &problem.extents)
                };
                (if level == 0 { 1 } else { nodes(level) }, nodes(level + 1))
            }
            Visited::Buffer(_) => (1, 1),
        };
        let lookups = Lookups {
            count,
            loops: loops.max(1.0),
            share: share(at),
            fibre: fibre(at),
            coordinate: Width::below(extent as u64).bytes() as f64,
            nodes: nodes as f64,
            above: above as f64,
            extent,
        };
        (at, lookups)
    };
    located.iter().map(of)
}

/// Returns the kinds that compressed levels of `layouts` had better be of, where coordinates are located in them.
///
/// What a level then has beside its nodes takes no more than [`MOST_BYTES`] for each of them.
pub(crate) fn suited_kinds(
    problem: &Problem,
    (layouts, nest): (&[Layout], &LoopNest),
    machine: &Machine,
) -> Vec<(TreeLevel, LevelKind)> {
    let mut found: Vec<(TreeLevel, Vec<Lookups>)> = Vec::new();
    let mut runs = vec![1.0];
    for Loop { index, depth, over, iterations, .. } in &nest.loops {
        runs.truncate(depth + 1);
        if let Over::Coordinates { lead, located } = over {
            let counts = (runs[*depth], *iterations);
            for (at, one) in lookups(problem, nest, (*index, *lead, located), counts) {
                let Visited::Level(at) = at else { continue };
                match found.iter_mut().find(|(level, _)| *level == at) {
                    Some((_, all)) => all.push(one),
                    None => found.push((at, vec![one])),
                }
            }
        }
        runs.push(*iterations);
    }
    let open = found.into_iter().filter(|(at, lookups)| {
        at.tree > 0
            && layouts[at.tree].format.kinds()[at.level] == LevelKind::Compressed
            && lookups[0].extent <= MOST_LOCATED as f64
    });
    let better = |(at, lookups): (TreeLevel, Vec<Lookups>)| {
        let once = problem.storing.is_some();
        let seconds = |kind: LevelKind| {
            let making = if once { lookups[0].making(kind, machine) } else { 0.0 };
            making + lookups.iter().map(|one| one.seconds(kind, machine)).sum::<f64>()
        };
        let sought = seconds(LevelKind::Compressed);
        let kinds = [LevelKind::Bitmap, LevelKind::Hashed].into_iter();
        let kinds = kinds.filter(|&kind| lookups[0].bytes(kind) <= MOST_BYTES * lookups[0].nodes);
        let best = kinds.map(|kind| (seconds(kind), kind)).min_by(|a, b| a.0.total_cmp(&b.0))?;
        (best.0 < WORTH * sought).then_some((at, best.1))
    };
    open.filter_map(better).collect()
}

/// The most bytes of a bitmap or a table for each node of its level.
const MOST_BYTES: f64 = 64.0;

/// The share of the seconds of searches below which something else is taken: predictions of both are not that exact.
const WORTH: f64 = 0.7;

/// Coordinates that are located in a level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookups {
    /// How many, in all.
    pub(super) count: f64,
    /// In how many fibres, one after the other.
    pub(super) loops: f64,
    /// The share of them that occur.
    pub(super) share: f64,
    /// The nodes of a fibre.
    pub(super) fibre: f64,
    /// The bytes of a coordinate.
    pub(super) coordinate: f64,
    /// The nodes of the level, and those above.
    pub(super) nodes: f64,
    pub(super) above: f64,
    pub(super) extent: f64,
}

/// Seconds to enter a node into a table, and into a bitmap.
const TABLE_NODE: f64 = 13e-9;
const BITMAP_NODE: f64 = 4e-9;

impl Lookups {
    /// Returns the seconds of all lookups in a level of `kind`, beside what its nodes take.
    pub(super) fn seconds(&self, kind: LevelKind, machine: &Machine) -> f64 {
        let (branches, lines) = match kind {
            LevelKind::Dense => (1.0 - self.share, 0.0),
            LevelKind::Bitmap => {
                let bytes = self.bytes(kind);
                (1.0 - self.share, self.line(machine, bytes, bytes / self.above.max(1.0)))
            }
            LevelKind::Hashed => {
                let bytes = self.bytes(kind);
                let place = self.line(machine, bytes, bytes / self.above.max(1.0));
                (3.0, place + 0.5 * self.coordinate_line(machine))
            }
            LevelKind::Compressed | LevelKind::Singleton => {
                let gap = (self.fibre * self.loops / self.count).max(1.0);
                let steps = (gap * self.coordinate / LINE_BYTES).log2().max(0.0);
                (1.0 + 2.0 * gap.log2(), steps * self.coordinate_line(machine))
            }
        };
        self.count * (branches * machine.loop_end + lines)
    }

    /// Returns the seconds to make what a level of `kind` has beside its nodes.
    pub(super) fn making(&self, kind: LevelKind, machine: &Machine) -> f64 {
        let node = match kind {
            LevelKind::Bitmap => BITMAP_NODE,
            LevelKind::Hashed => TABLE_NODE,
            LevelKind::Dense | LevelKind::Compressed | LevelKind::Singleton => return 0.0,
        };
        self.nodes * node + self.bytes(kind) / LINE_BYTES * machine.stream_line
    }

    /// Returns the bytes of what a level of `kind` has beside its nodes.
    pub(super) fn bytes(&self, kind: LevelKind) -> f64 {
        locator_bytes(kind, (self.above as u64, self.extent as u64), self.nodes as u64) as f64
    }

    /// Seconds for the line of a coordinate.
    fn coordinate_line(&self, machine: &Machine) -> f64 {
        self.line(machine, self.nodes * self.coordinate, self.fibre * self.coordinate)
    }

    /// Seconds for the line of a lookup in an array of `bytes`, of which `fibre` belong to a fibre: lookups of one fibre
    /// share its lines.
    fn line(&self, machine: &Machine, bytes: f64, fibre: f64) -> f64 {
        if bytes <= L1_BYTES {
            return 0.0;
        }
        let lookups = (self.count / self.loops.max(1.0)).max(1.0);
        let different = (fibre / LINE_BYTES / lookups).min(1.0);
        let table =
            GatheredTable { bytes, coverage: None, slices: 1.0, l2: machine.l2_share, parts: 1.0 };
        different * gather_seconds(machine, &table, LINE_BYTES)
    }
}
