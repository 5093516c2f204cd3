//! How nests of the same cost differ: what their innermost loops step over (stage 5 of SparseAuto, section 5.3).

use crate::einsum::{Index, IndexSet};
use crate::nest::{Forest, buffers};
use crate::path::{Path, Source};
use crate::schedule::Problem;

/// What a nest costs in accesses; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Accesses {
    /// The elements between those that neighbouring iterations of the innermost loops meet, over all terms and tensors
    /// in which the loop's index is not the last one.
    pub strides: u64,
    /// Pairs of neighbouring indices of a tensor that are looped the other way round.
    pub swapped: usize,
}

/// Returns what `nest` costs in accesses if tensors store their indices in the order in which they name them, sparse ones
/// in that of their levels, and results between terms as they are looped; `None` if `nest` does not hold the terms.
pub fn accesses(problem: &Problem, path: &Path, nest: &Forest) -> Option<Accesses> {
    let orders = nest.orders(path.terms.len())?;
    let stored = buffers(path, nest)?;
    let mut all = Accesses { strides: 0, swapped: 0 };
    for (term, loops) in orders.iter().enumerate() {
        let result = |term: usize| match stored.get(term) {
            Some(buffer) => looped(&orders[term], buffer.stored),
            None => problem.expr.output.indices.clone(),
        };
        let input = |source: &Source| match *source {
            Source::Input(input) => match problem.sparse_place(input) {
                Some(place) => problem.sparse[place].levels().to_vec(),
                None => problem.expr.inputs[input].indices.clone(),
            },
            Source::Term(earlier) => result(earlier),
        };
        let tensors = path.terms[term].inputs.iter().map(input).chain([result(term)]);
        for indices in tensors {
            all.strides = all.strides.saturating_add(stride(problem, &indices, loops.last()));
            all.swapped += swapped(&indices, loops);
        }
    }
    Some(all)
}

fn looped(order: &[Index], stored: IndexSet) -> Vec<Index> {
    order.iter().copied().filter(|&index| stored.contains(index)).collect()
}

/// The elements that one step of the loop over `last` skips: none if its index stands last or nowhere.
fn stride(problem: &Problem, indices: &[Index], last: Option<&Index>) -> u64 {
    let at = last.and_then(|last| indices.iter().position(|index| index == last));
    match at {
        Some(at) if at + 1 < indices.len() => {
            let inner = indices[at + 1..].iter().map(|&index| problem.extents.of(index));
            inner.fold(1, u64::saturating_mul)
        }
        _ => 0,
    }
}

fn swapped(indices: &[Index], loops: &[Index]) -> usize {
    let place = |index: &Index| loops.iter().position(|other| other == index);
    indices.windows(2).filter(|pair| place(&pair[0]) > place(&pair[1])).count()
}
