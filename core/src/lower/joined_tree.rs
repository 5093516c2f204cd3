//! A tree beside the leading one, as a kernel reads it.

use std::iter::once;
use std::sync::Arc;

use decompose_formats::{Csf, Ints, Level, Value, Width};

use crate::einsum::IndexSet;
use crate::lower::LevelParam;
use crate::schedule::{LevelKind, Problem, Schedule};

/// A tree in which coordinates are located.
///
/// A dense root has a node for every coordinate: the coordinate is the position.  Nodes without children are passed over.
///
/// ```text
///              compressed          dense
/// coordinates  1  3                0  1  2  3
/// pointers     0  2  5             0  0  2  2  5
/// ```
pub struct JoinedTree<V: Value> {
    tree: Arc<Csf<V>>,
    /// In the place of the tree's own root.
    root: Option<Level>,
}

impl<V: Value> JoinedTree<V> {
    /// Takes `tree` with the root that a kernel expects; a dense one is made in time and memory `O(extent)` unless the
    /// tree's own has every coordinate.
    pub fn new(tree: Arc<Csf<V>>, root: &LevelParam) -> JoinedTree<V> {
        let own = &tree.levels()[0];
        let lacks = (own.coords.len() as u64) < root.extent && !own.pointers.is_empty();
        let root = (lacks && root.kind == LevelKind::Dense).then(|| dense_root(own, root.extent));
        JoinedTree { tree, root }
    }

    /// Returns the tree.
    pub fn tree(&self) -> &Csf<V> {
        &self.tree
    }

    /// Returns the levels, root first.
    pub fn levels(&self) -> impl Iterator<Item = &Level> {
        once(self.level(0)).chain(&self.tree.levels()[1..])
    }

    /// Returns a level.
    pub fn level(&self, at: usize) -> &Level {
        self.root.as_ref().filter(|_| at == 0).unwrap_or(&self.tree.levels()[at])
    }
}

/// Returns the bytes of the dense roots that are made when the trees of `schedule` are joined.
pub fn dense_root_bytes(problem: &Problem, schedule: &Schedule) -> u64 {
    let operands = problem.sparse.iter().zip(&schedule.layouts);
    let made = operands.filter_map(|(x, layout)| {
        let root = layout.levels.first().filter(|root| root.kind == LevelKind::Dense)?;
        let (extent, extents) = (problem.extents.of(root.index), &problem.extents);
        let lacks = x.nodes(IndexSet::EMPTY.with(root.index), extents) < extent;
        let nnz = x.nodes(x.levels.iter().copied().collect(), extents);
        let coords = extent.saturating_mul(Width::below(extent).bytes() as u64);
        let pointer = Width::below(nnz.saturating_add(1)).bytes() as u64;
        let pointers = extent.saturating_add(1).saturating_mul(pointer);
        Some(if lacks { coords.saturating_add(pointers) } else { 0 })
    });
    made.fold(0, u64::saturating_add)
}

/// Gives every coordinate below `extent` a node.
fn dense_root(own: &Level, extent: u64) -> Level {
    let Level { coords, pointers } = own;
    let mut node = 0;
    let begins = (0..=extent).map(|coord| {
        while node < coords.len() && coords.get(node) < coord {
            node += 1;
        }
        pointers.get(node)
    });
    let pointers = Ints::collect(begins, pointers.width());
    Level { coords: Ints::collect(0..extent, coords.width()), pointers }
}

#[cfg(test)]
mod tests {
    use decompose_formats::{Coo, ModeOrder};

    use super::*;
    use crate::einsum::{Expr, Extents, Index};
    use crate::lower::LevelStorage;
    use crate::schedule::{Fusion, Pattern, SparseOperand};

    #[test]
    fn the_bytes_of_dense_roots_are_those_that_are_made() {
        let expr: Expr = "C(i,k) = X(i,j) * Z(j,k)".parse().unwrap();
        let extents: Extents = expr.all().iter().map(|index| (index, 90_000)).collect();
        for rows in [40_000, 90_000] {
            let coords: Vec<u64> = (0..rows).collect();
            let coords = vec![coords.into(), vec![7_u64; rows as usize].into()];
            let list = Coo::new(vec![90_000; 2], coords, vec![1.0; rows as usize]).unwrap();
            let operand = |input: usize| {
                let levels: Vec<Index> = expr.inputs[input].indices.clone();
                let sets = [&levels[..1], &levels[..]];
                let pattern =
                    Pattern::from_iter(sets.map(|set| (set.iter().copied().collect(), rows)));
                SparseOperand { input, levels, fused: 1, pattern }
            };
            let problem =
                Problem::joining(expr.clone(), extents.clone(), vec![operand(0), operand(1)]);
            let text = "path X*Z\nnest i{ j{ k{ T1 } } }\nlayout X: i j\nlayout Z: j:dense k";
            let schedule = Schedule::parse(text, &expr).unwrap();
            let tree = Arc::new(Csf::build(list, &ModeOrder::natural(2)).unwrap());
            let storage = LevelStorage { coords: Width::W32, pointers: Width::W32 };
            let root = LevelParam {
                index: problem.sparse[1].levels[0],
                extent: 90_000,
                storage,
                kind: LevelKind::Dense,
                fusion: Fusion::Separate,
                pieces: None,
            };
            let joined = JoinedTree::new(tree, &root);
            let made = joined.root.as_ref();
            let bytes = made.map_or(0, |root| root.coords.bytes() + root.pointers.bytes());
            assert_eq!(dense_root_bytes(&problem, &schedule), bytes, "{rows} rows");
            assert_eq!(made.is_some(), rows < 90_000);
        }
    }

    #[test]
    fn places_without_a_node_are_childless() {
        let own = Level { coords: vec![1_u16, 3].into(), pointers: vec![0_u32, 2, 5].into() };
        let want = |extent: u16, pointers: Vec<u32>| Level {
            coords: (0..extent).collect::<Vec<_>>().into(),
            pointers: pointers.into(),
        };
        assert_eq!(dense_root(&own, 4), want(4, vec![0, 0, 2, 2, 5]));
        assert_eq!(dense_root(&own, 6), want(6, vec![0, 0, 2, 2, 5, 5, 5]));
        let none = Level { coords: Vec::<u16>::new().into(), pointers: vec![0_u32].into() };
        assert_eq!(dense_root(&none, 2), want(2, vec![0, 0, 0]));
    }
}
