//! What is expected of the coordinates of an operand or an intermediate.

use crate::einsum::{Extents, Index, IndexSet};
use crate::schedule::SparseOperand;
use crate::small_map::SmallMap;

/// The support of a tensor: how many coordinate tuples it has, in all its indices and in some of them.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    /// Its indices.
    pub(super) scope: IndexSet,
    /// The coordinate tuples in all of them.
    pub(super) nonzeros: f64,
    /// What is known of some of them.
    known: SmallMap<IndexSet, f64>,
}

/// Returns the number of combinations of `indices`.
pub(super) fn cells(indices: IndexSet, extents: &Extents) -> f64 {
    indices.iter().map(|index| extents.of(index) as f64).product()
}

/// Returns how many of `cells` are met by `entries` that fall into them at random (equation 4).
pub(super) fn covered(cells: f64, entries: f64) -> f64 {
    let covered = -cells * (-entries / cells.max(1.0)).exp_m1();
    covered.min(cells).max(0.0)
}

impl Factor {
    /// A dense tensor over `scope`.
    pub(super) fn dense(scope: IndexSet, extents: &Extents) -> Factor {
        let known = scope.iter().map(|index| {
            let index = IndexSet::EMPTY.with(index);
            (index, cells(index, extents))
        });
        Factor { scope, nonzeros: cells(scope, extents), known: known.collect() }
    }

    /// A sparse operand with the counts that its pattern has recorded.
    pub(super) fn sparse(x: &SparseOperand, extents: &Extents) -> Factor {
        let scope: IndexSet = x.levels().iter().copied().collect();
        let counts = x.pattern.counts().filter(|(set, _)| set.is_subset(scope));
        let known: SmallMap<IndexSet, f64> =
            counts.map(|(set, count)| (set, count as f64)).collect();
        Factor { scope, nonzeros: x.pattern.count(scope, extents) as f64, known }
    }

    /// A result over `scope` with so many `nonzeros`, made of `parts`: it has no more coordinates of an index than
    /// each of these.
    pub(super) fn made_of(
        scope: IndexSet,
        nonzeros: f64,
        parts: &[&Factor],
        extents: &Extents,
    ) -> Factor {
        let known = scope.iter().map(|index| {
            let one = IndexSet::EMPTY.with(index);
            let having = parts.iter().filter(|part| part.scope.contains(index));
            let most = having.map(|part| part.distinct(one, extents));
            let most = most.fold(cells(one, extents), f64::min);
            (one, covered(most, nonzeros))
        });
        Factor { scope, nonzeros, known: known.collect() }
    }

    /// Returns the different coordinate tuples in `indices`, as far as the factor has them: what was counted, and otherwise
    /// the coverage of equation 4 of the coordinates that each index has.
    pub(super) fn distinct(&self, indices: IndexSet, extents: &Extents) -> f64 {
        let own = indices & self.scope;
        if own == self.scope {
            return self.nonzeros;
        }
        if let Some(&known) = self.known.get(&own) {
            return known;
        }
        if own.is_empty() {
            return self.nonzeros.min(1.0);
        }
        let one = |index: Index| {
            let set = IndexSet::EMPTY.with(index);
            self.known.get(&set).copied().unwrap_or_else(|| cells(set, extents))
        };
        covered(own.iter().map(one).product(), self.nonzeros)
    }

    /// Returns the share of the combinations of its indices that it has.
    pub(super) fn density(&self, extents: &Extents) -> f64 {
        (self.nonzeros / cells(self.scope, extents).max(1.0)).min(1.0)
    }
}

/// Returns the non-zeros of the join of `factors` (equation 6).
///
/// The divisor `D[K]` of the paper is the number of different key tuples.  Keys of independent operands meet as often as
/// any: then it is the number of all key tuples, to which equation 4 tends where nearly all occur.
pub(super) fn joined(factors: &[&Factor], extents: &Extents) -> Factor {
    let scope = factors.iter().fold(IndexSet::EMPTY, |set, factor| set | factor.scope);
    let density: f64 = factors.iter().map(|factor| factor.density(extents)).product();
    Factor::made_of(scope, cells(scope, extents) * density, factors, extents)
}

/// Returns the join of `factors` without index `gone` (equation 5).
///
/// One factor is asked how many coordinates of `gone` go with each tuple `u` of its other indices.  Each of these gives
/// a tuple `v` of the indices of all others with the probability that these have it.  No factor is special: the
/// least that any of them gives counts.
pub(super) fn eliminated(factors: &[&Factor], gone: Index, extents: &Extents) -> Factor {
    let whole = joined(factors, extents);
    let scope = whole.scope - IndexSet::EMPTY.with(gone);
    let by = |(at, first): (usize, &&Factor)| {
        let above = first.scope - IndexSet::EMPTY.with(gone);
        let tuples = first.distinct(above, extents);
        let degree = first.nonzeros / tuples.max(f64::MIN_POSITIVE);
        let others = factors.iter().enumerate().filter(|(other, _)| *other != at);
        let probability: f64 = others.map(|(_, factor)| factor.density(extents)).product();
        let induced = -(degree * (-probability).ln_1p()).exp_m1();
        tuples * cells(scope - above, extents) * if probability < 1.0 { induced } else { 1.0 }
    };
    // No more than the products, and than tuples of the factors go together.
    let rest: f64 = factors.iter().map(|factor| factor.distinct(scope, extents)).product();
    let most = whole.nonzeros.min(rest);
    let nonzeros = factors.iter().enumerate().map(by).fold(most, f64::min);
    Factor::made_of(scope, nonzeros, factors, extents)
}
