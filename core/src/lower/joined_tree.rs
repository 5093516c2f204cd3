//! The tree of a sparse operand other than the leader, with what its kinds of levels add.

use std::ops::Range;
use std::sync::Arc;

use decompose_formats::{Csf, Ints, Level, Value, Width};

use crate::einsum::IndexSet;
use crate::lower::LevelParam;
use crate::lower::locator::{Locator, locator_bytes};
use crate::schedule::{LevelKind, Problem, Schedule};

/// A tree in which coordinates are located.
///
/// A dense level has a node for every coordinate below every node above: the number of the node above, times the extent,
/// plus the coordinate.  Nodes without children are passed over.
///
/// ```text
///              compressed          dense
/// coordinates  1  3                0  1  2  3
/// pointers     0  2  5             0  0  2  2  5
/// ```
///
/// A bitmap or a table is added to the coordinates of a level that has one.
pub struct JoinedTree<V: Value> {
    tree: Arc<Csf<V>>,
    levels: Vec<JoinedLevel>,
}

/// What a level has beside what the tree stores.
struct JoinedLevel {
    /// Pointers in the place of the tree's own.
    pointers: Option<Ints>,
    /// By what coordinates are located.
    locator: Option<Locator>,
    /// How many nodes there are, those without children included.
    nodes: u64,
}

impl<V: Value> JoinedTree<V> {
    /// Takes `tree` with the levels that a kernel expects, root first.
    ///
    /// Dense levels are made in time and memory `O(nodes above * extent)` unless the tree's own are full; bitmaps in
    /// `O(nodes above * extent / 64 + nodes)`; tables in `O(nodes)`.
    pub fn new(tree: Arc<Csf<V>>, params: &[LevelParam]) -> JoinedTree<V> {
        let mut levels: Vec<JoinedLevel> = Vec::with_capacity(params.len());
        for (at, (own, param)) in tree.levels().iter().zip(params).enumerate() {
            let above = at.checked_sub(1).map(|up| (&levels[up], &tree.levels()[up]));
            let above = above.map(|(made, own)| made.pointers.as_ref().unwrap_or(&own.pointers));
            levels.push(joined_level(own, above, param));
        }
        JoinedTree { tree, levels }
    }

    /// Returns the tree.
    pub fn tree(&self) -> &Csf<V> {
        &self.tree
    }

    /// Returns the coordinates that a level lists: of its compressed nodes.
    pub fn coords(&self, at: usize) -> &Ints {
        &self.tree.levels()[at].coords
    }

    /// Returns the pointers of a level, one more than it has nodes; none of the last.
    pub fn pointers(&self, at: usize) -> &Ints {
        self.levels[at].pointers.as_ref().unwrap_or(&self.tree.levels()[at].pointers)
    }

    /// Returns by what coordinates of a level are located, if by no search.
    pub fn locator(&self, at: usize) -> Option<&Locator> {
        self.levels[at].locator.as_ref()
    }

    /// Returns how many nodes a level has.
    pub fn nodes(&self, at: usize) -> u64 {
        self.levels[at].nodes
    }

    /// Returns the roots whose coordinates are among `coords`.
    pub fn roots(&self, coords: &Range<u64>, param: &LevelParam) -> Range<u64> {
        let first = |coord: u64| match param.kind {
            LevelKind::Dense => coord.min(self.nodes(0)),
            _ => self.coords(0).first_from(coord) as u64,
        };
        first(coords.start)..first(coords.end)
    }

    /// Returns the nodes of level `at` below node `above` of the level above, or the roots.
    pub fn children(&self, at: usize, above: usize, param: &LevelParam) -> Range<u64> {
        match (at.checked_sub(1), param.kind) {
            (None, _) => 0..self.nodes(0),
            (_, LevelKind::Dense) => above as u64 * param.extent..(above as u64 + 1) * param.extent,
            (Some(up), _) => {
                let pointers = self.pointers(up);
                pointers.get(above)..pointers.get(above + 1)
            }
        }
    }

    /// Tells whether levels have the nodes, pointers and locators that a kernel with `params` reads.
    pub(crate) fn fits(&self, params: &[LevelParam]) -> bool {
        let leaf = self.levels.len().saturating_sub(1);
        let each = params.iter().zip(&self.levels).enumerate();
        let mut fitting = each.map(|(at, (param, made))| {
            // Values are not moved: the last level has a node for each.
            let moved = at == leaf && made.nodes != self.tree.values().len() as u64;
            let pointed = at == leaf || self.pointers(at).len() as u64 == made.nodes + 1;
            pointed && !moved && Locator::fits(made.locator.as_ref(), param.kind)
        });
        self.levels.len() == params.len() && fitting.all(|fits| fits)
    }
}

/// Makes what a level has beside its own, where `above` are the pointers of the level above.
fn joined_level(own: &Level, above: Option<&Ints>, param: &LevelParam) -> JoinedLevel {
    let have = own.coords.len() as u64;
    let parents = above.map_or(1, |pointers| pointers.len().saturating_sub(1) as u64);
    let locator = Locator::of(param.kind, own, above, param.extent);
    if param.kind != LevelKind::Dense {
        return JoinedLevel { pointers: None, locator, nodes: have };
    }
    let nodes = parents * param.extent;
    let lacks = have < nodes && !own.pointers.is_empty();
    let pointers = lacks.then(|| dense_pointers(own, above, param.extent));
    JoinedLevel { pointers, locator, nodes }
}

/// Gives every coordinate below `extent` a node below each node above.
fn dense_pointers(own: &Level, above: Option<&Ints>, extent: u64) -> Ints {
    let Level { coords, pointers } = own;
    let whole = [0, coords.len() as u64];
    let parents = above.map_or(1, |above| above.len() - 1);
    let end_of = |parent: usize| above.map_or(whole[1], |above| above.get(parent + 1)) as usize;
    let mut node = 0;
    let places = (0..parents).flat_map(|parent| (0..extent).map(move |coord| (parent, coord)));
    let begins = places.map(|(parent, coord)| {
        while node < end_of(parent) && coords.get(node) < coord {
            node += 1;
        }
        let begin = pointers.get(node);
        // The next one's begins are behind all of this one's nodes.
        if coord + 1 == extent {
            node = end_of(parent);
        }
        begin
    });
    let last = std::iter::once(pointers.get(coords.len()));
    Ints::collect(begins.chain(last), pointers.width())
}

/// Returns the bytes of what is made of levels when the trees of `schedule` are joined: dense levels, bitmaps, tables.
pub fn joined_bytes(problem: &Problem, schedule: &Schedule) -> u64 {
    let extents = &problem.extents;
    let operands = problem.sparse.iter().zip(&schedule.layouts).skip(1);
    let made = operands.flat_map(|(x, layout)| {
        let nnz = x.nodes(x.levels().iter().copied().collect(), extents);
        let pointer = Width::below(nnz.saturating_add(1)).bytes() as u64;
        let (mut prefix, mut parents) = (IndexSet::EMPTY, 1_u64);
        layout.format.pairs().enumerate().map(move |(at, (index, kind))| {
            let extent = extents.of(index);
            prefix = prefix.with(index);
            let (above, nodes) = (parents, x.nodes(prefix, extents));
            parents = nodes;
            if kind != LevelKind::Dense {
                return locator_bytes(kind, (above, extent), nodes);
            }
            parents = above.saturating_mul(extent);
            let lacks = nodes < parents && at + 1 < x.levels().len();
            if lacks { parents.saturating_add(1).saturating_mul(pointer) } else { 0 }
        })
    });
    made.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use decompose_formats::{Coo, ModeOrder};

    use super::*;
    use crate::einsum::{Expr, Extents, Index};
    use crate::lower::LevelStorage;
    use crate::schedule::{Format, Pattern, SparseOperand};

    #[test]
    fn the_bytes_that_are_foreseen_are_those_that_are_made() {
        let expr: Expr = "C(i,k) = X(i,j) * Z(j,k)".parse().unwrap();
        let extents: Extents = expr.all().iter().map(|index| (index, 90_000)).collect();
        let layouts =
            ["j:dense k", "j k", "j:bitmap k:hashed", "j:hashed k:bitmap", "j:dense k:hashed"];
        for (layout, rows) in layouts.iter().flat_map(|text| [(text, 40_000), (text, 90_000)]) {
            let coords: Vec<u64> = (0..rows).collect();
            let coords = vec![coords.into(), vec![7_u64; rows as usize].into()];
            let list = Coo::new(vec![90_000; 2], coords, vec![1.0; rows as usize]).unwrap();
            let operand = |input: usize| {
                let levels: Vec<Index> = expr.inputs[input].indices.clone();
                let sets = [&levels[..1], &levels[..]];
                let pattern =
                    Pattern::from_iter(sets.map(|set| (set.iter().copied().collect(), rows)));
                SparseOperand { input, format: Format::csf(levels), pattern }
            };
            let problem =
                Problem::joining(expr.clone(), extents.clone(), vec![operand(0), operand(1)]);
            let text = format!(
                "path X*Z\nnest i{{ j{{ k{{ T1 }} }} }}\nlayout X: i j\nlayout Z: {layout}"
            );
            let schedule = Schedule::parse(&text, &expr).unwrap();
            let tree = Arc::new(Csf::build(list, &ModeOrder::natural(2)).unwrap());
            let storage = LevelStorage { coords: Width::W32, pointers: Width::W32 };
            let params: Vec<LevelParam> = schedule.layouts[1]
                .format
                .pairs()
                .map(|(index, kind)| LevelParam {
                    index,
                    extent: 90_000,
                    storage,
                    kind,
                    pieces: None,
                })
                .collect();
            let joined = JoinedTree::new(tree, &params);
            let made = joined.levels.iter().map(|level| {
                level.pointers.as_ref().map_or(0, Ints::bytes)
                    + level.locator.as_ref().map_or(0, Locator::bytes)
            });
            assert_eq!(joined_bytes(&problem, &schedule), made.sum(), "{layout}, {rows} rows");
        }
    }

    #[test]
    fn places_without_a_node_are_childless() {
        let own = Level { coords: vec![1_u16, 3].into(), pointers: vec![0_u32, 2, 5].into() };
        let want = |pointers: Vec<u32>| Ints::from(pointers);
        assert_eq!(dense_pointers(&own, None, 4), want(vec![0, 0, 2, 2, 5]));
        assert_eq!(dense_pointers(&own, None, 6), want(vec![0, 0, 2, 2, 5, 5, 5]));
        let none = Level { coords: Vec::<u16>::new().into(), pointers: vec![0_u32].into() };
        assert_eq!(dense_pointers(&none, None, 2), want(vec![0, 0, 0]));
        // Below three nodes, of which the second has no children.
        let above = want(vec![0, 1, 1, 2]);
        let below = dense_pointers(&own, Some(&above), 4);
        assert_eq!(below, want(vec![0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 5]));
    }
}
