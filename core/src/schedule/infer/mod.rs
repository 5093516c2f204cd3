//! The form of a result, inferred before it is computed (Scorch, section V, algorithm 3).
//!
//! Operands are *factors*: sets of coordinate tuples of which numbers are known.  Each index that is summed up is
//! eliminated: the factors with it are joined (equation 6), and their join is projected (equation 5).  What is left
//! tells how many elements the result has, and which of its levels are best stored as arrays (equations 7 and 8).
//!
//! The paper knows the kinds of the levels only, and sets the numbers by priors.  Here the number of non-zeros is known,
//! and counts of coordinate tuples where an operand is at hand: a prior stands in for those that were not
//! counted (equation 4).
//!
//! Patterns are taken to be independent of each other.  Of a band, or of communities, the products fall on fewer elements than
//! estimated: a product of two bands of width `w` has about `w/2` times fewer.  Different operands with the same pattern
//! meet more often than estimated.
//!
//! Source: Yan et al., "Fast Autoscheduling for Sparse ML Frameworks" (Scorch), section V.

mod factor;
#[cfg(test)]
mod tests;

use crate::einsum::{Extents, Index, IndexSet};
use crate::schedule::{LevelKind, Problem};

use factor::{Factor, cells, eliminated, joined};

/// What is expected of the result of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Inferred {
    /// Its elements that may be other than zero: the join after all eliminations (equations 5 and 6).
    pub elements: f64,
    /// Its levels, in the order in which the expression names them.
    pub levels: Vec<InferredLevel>,
}

/// What is expected of a level of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct InferredLevel {
    /// The index of the level.
    pub index: Index,
    /// The coordinates below each node of the level above.
    pub degree: f64,
    /// How it is best stored.
    pub kind: LevelKind,
}

/// Infers the result of `problem` from the extents and what the patterns of its sparse operands have recorded.
///
/// Elements that were counted ([`Problem::join`]) replace the estimate.
pub fn infer(problem: &Problem) -> Inferred {
    let output = problem.expr.output.set();
    let mut result = eliminate_all(factors(problem), output, &problem.extents);
    let walked = problem.sparse.iter().flat_map(|x| x.levels()).copied().collect();
    if let Some(join) = problem.join {
        let dense = cells(output - walked, &problem.extents);
        let counted = join.elements as f64 * dense;
        result = Factor::made_of(output, counted, &[&result], &problem.extents);
    }
    let levels = levels(&result, &problem.expr.output.indices, &problem.extents);
    Inferred { elements: result.nonzeros, levels }
}

/// The factors of the operands (algorithm 3, line 2).
fn factors(problem: &Problem) -> Vec<Factor> {
    let factor = |input: usize| match problem.sparse_place(input) {
        Some(place) => Factor::sparse(&problem.sparse[place], &problem.extents),
        None => Factor::dense(problem.expr.inputs[input].set(), &problem.extents),
    };
    // A tensor that is multiplied with itself is one factor.
    let is_again = |input: usize| {
        let earlier = &problem.expr.inputs[..input];
        problem.sparse_place(input).is_some() && earlier.contains(&problem.expr.inputs[input])
    };
    (0..problem.expr.inputs.len()).filter(|&input| !is_again(input)).map(factor).collect()
}

/// Eliminates all indices but those of `output` (lines 3 to 11).
///
/// The paper leaves the order open.  Here the index goes first whose elimination leaves the fewest non-zeros, as the
/// estimates are best where little was estimated before.
fn eliminate_all(mut factors: Vec<Factor>, output: IndexSet, extents: &Extents) -> Factor {
    let having = |factors: &[Factor], index: Index| -> Vec<usize> {
        (0..factors.len()).filter(|&at| factors[at].scope.contains(index)).collect()
    };
    loop {
        let all = factors.iter().fold(IndexSet::EMPTY, |set, factor| set | factor.scope);
        let without = |index: Index| {
            let having = having(&factors, index);
            let parts: Vec<&Factor> = having.iter().map(|&at| &factors[at]).collect();
            (index, eliminated(&parts, index, extents))
        };
        let fewest = (all - output)
            .iter()
            .map(without)
            .min_by(|(_, a), (_, b)| a.nonzeros.total_cmp(&b.nonzeros));
        let Some((index, made)) = fewest else { break };
        factors.retain(|factor| !factor.scope.contains(index));
        factors.push(made);
    }
    joined(&factors.iter().collect::<Vec<_>>(), extents)
}

/// Chooses the kind of each level (line 12).
///
/// A dense level costs a place for every coordinate (equation 7).  A compressed one costs a place and a coordinate for
/// every child, and a pointer for every node above: these are the `meta` of equation 8.
fn levels(result: &Factor, order: &[Index], extents: &Extents) -> Vec<InferredLevel> {
    let mut above = IndexSet::EMPTY;
    let mut parents = result.nonzeros.clamp(f64::MIN_POSITIVE, 1.0);
    let level = |&index: &Index| {
        above = above.with(index);
        let nodes = result.distinct(above, extents).max(parents.min(result.nonzeros));
        let extent = extents.of(index) as f64;
        let degree = (nodes / parents).min(extent);
        let dense = parents * extent;
        let compressed = parents * degree + parents * (degree + 1.0);
        parents = nodes.max(f64::MIN_POSITIVE);
        let kind = if dense <= compressed { LevelKind::Dense } else { LevelKind::Compressed };
        InferredLevel { index, degree, kind }
    };
    order.iter().map(level).collect()
}
