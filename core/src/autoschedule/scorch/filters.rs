//! The ranking of indices by the sparsity of what their loops visit (Scorch, section III-B).
//!
//! The loop over an index visits a set: an expression of unions and intersections of the sets of coordinates that
//! the operands have at it.  Sparse sets are taken to be equally sparse and independent, whatever the data.  The
//! share of the Venn diagram inside a set then tells how sparse it is.

use crate::einsum::Index;
use crate::schedule::Problem;

/// The set of coordinates that the loop over an index visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Visited {
    /// All coordinates.
    Dense,
    /// Those of a sparse level; levels of different numbers are independent.
    Sparse(u32),
    /// Those in each of these sets.
    Intersection(Vec<Visited>),
    /// Those in any of these sets.
    #[cfg_attr(not(test), expect(dead_code, reason = "products have intersections only"))]
    Union(Vec<Visited>),
}

/// The share of the coordinates that a sparse level is taken to have: any below a half gives the same ranking of
/// intersections.
const SPARSE_SHARE: f64 = 0.01;

impl Visited {
    /// Returns the set that the loop over `index` visits: the intersection over all inputs that have it.
    ///
    /// As in CSR, the root of a tree is a dense set: nearly every slice of a tensor has an entry.
    pub(super) fn of(problem: &Problem, index: Index) -> Visited {
        let having =
            problem.expr.inputs.iter().enumerate().filter(|(_, x)| x.set().contains(index));
        let set = |(input, _)| {
            let sparse = problem.sparse.iter().find(|x| x.input == input);
            match sparse.is_some_and(|x| x.levels().first() != Some(&index)) {
                true => Visited::Sparse(input as u32),
                false => Visited::Dense,
            }
        };
        Visited::Intersection(having.map(set).collect())
    }

    /// Returns the share of the coordinates that is in the set: the sum over the regions of the Venn diagram.
    pub(super) fn share(&self) -> f64 {
        let mut levels = Vec::new();
        self.collect(&mut levels);
        if let Visited::Intersection(sets) = self
            && sets.iter().all(|set| matches!(set, Visited::Dense | Visited::Sparse(_)))
        {
            return SPARSE_SHARE.powi(levels.len() as i32);
        }
        let region = |inside: u32| {
            let share = |at| if inside >> at & 1 == 1 { SPARSE_SHARE } else { 1.0 - SPARSE_SHARE };
            (0..levels.len()).map(share).product::<f64>()
        };
        let has = |inside: u32| {
            self.contains(&|level| {
                levels.iter().position(|&one| one == level).is_some_and(|at| inside >> at & 1 == 1)
            })
        };
        (0..1u32 << levels.len()).filter(|&inside| has(inside)).map(region).sum()
    }

    /// Tells whether a coordinate is in the set that is in those sparse levels of which `inside` says so.
    fn contains(&self, inside: &impl Fn(u32) -> bool) -> bool {
        match self {
            Visited::Dense => true,
            Visited::Sparse(level) => inside(*level),
            Visited::Intersection(sets) => sets.iter().all(|set| set.contains(inside)),
            Visited::Union(sets) => sets.iter().any(|set| set.contains(inside)),
        }
    }

    fn collect(&self, levels: &mut Vec<u32>) {
        match self {
            Visited::Dense => {}
            Visited::Sparse(level) if levels.contains(level) => {}
            Visited::Sparse(level) => levels.push(*level),
            Visited::Intersection(sets) | Visited::Union(sets) => {
                sets.iter().for_each(|set| set.collect(levels));
            }
        }
    }

    /// Tells whether the set is a filter: what one operand has there leaves out coordinates of another one.
    fn is_filter(&self) -> bool {
        matches!(self, Visited::Intersection(sets) if sets.len() > 1 && self.share() < 1.0)
    }
}

/// Returns all indices with the sparsest filters first; `fallback` orders those that are equal.
///
/// Indices of one operand filter nothing that another one visits, so they are equal whatever their sparsity.  This
/// gives the two initial orders that the paper names: `j,i,k` for SpMM and for SpMSpM.
pub(super) fn by_sparsity(problem: &Problem, fallback: &[Index]) -> Vec<Index> {
    let share = |index| {
        let set = Visited::of(problem, index);
        if set.is_filter() { set.share() } else { 1.0 }
    };
    let mut ranked: Vec<(f64, Index)> =
        fallback.iter().map(|&index| (share(index), index)).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    ranked.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::Visited::{Dense, Intersection, Sparse, Union};

    #[test]
    fn the_regions_of_the_venn_diagram_tell_which_set_is_sparser() {
        // Figure 4 of the paper: (A ∩ B) ∪ C is a superset of (A ∪ B) ∩ C.
        let (a, b, c) = (|| Sparse(0), || Sparse(1), || Sparse(2));
        let union = Union(vec![Intersection(vec![a(), b()]), c()]);
        let intersection = Intersection(vec![Union(vec![a(), b()]), c()]);
        assert!(intersection.share() < union.share());
        assert!((union.share() - (0.01 + 0.99 * 0.000_1)).abs() < 1e-12);
        assert!((intersection.share() - 0.01 * (1.0 - 0.99 * 0.99)).abs() < 1e-12);
        // An intersection with a dense set is the sparse one, and a union with one is dense.
        assert!((Intersection(vec![a(), Dense]).share() - a().share()).abs() < 1e-15);
        assert!((Union(vec![a(), Dense]).share() - 1.0).abs() < 1e-12);
        assert!((Intersection(vec![a(), a()]).share() - 0.01).abs() < 1e-15);
    }
}
