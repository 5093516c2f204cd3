//! Paths of an expression without a choice: all of them, all at once, or one after the other.

use crate::einsum::{Expr, IndexSet};
use crate::path::{Arity, Path, PathSpace, Source, Term, Wanted, live_indices};

/// The longest list of paths that [`enumerate`] returns: all of those of 6 operands.
const MAX_PATHS: usize = 50_000;

/// Returns the path of one term that multiplies all inputs at once.
pub fn unfactorised(expr: &Expr) -> Path {
    let inputs = (0..expr.inputs.len()).map(Source::Input).collect();
    let indices = expr.inputs.iter().fold(IndexSet::EMPTY, |set, access| set | access.set());
    Path { terms: vec![Term { inputs, output: expr.output.set(), indices }] }
}

/// Returns every path of `arity`: every tree of contractions, in every depth-first postorder.
///
/// An expression of one input has the path of one term.  Past 50,000 paths, or more operands than
/// [`Arity::max_operands`], the list is cut, and the second value says so.
///
/// Postorders matter because only neighbouring terms can share loops.
pub fn enumerate(expr: &Expr, arity: Arity) -> (Vec<Path>, bool) {
    let Some(space) = PathSpace::new(expr, arity) else {
        return (vec![unfactorised(expr)], expr.inputs.len() > 1);
    };
    let listing = space.list(&Wanted {
        max_depth: usize::MAX,
        iterations: &|_| 0,
        links: &|_| true,
        flops_factor: None,
        max_paths: MAX_PATHS,
    });
    (listing.paths, listing.cut)
}

/// Up to so many operands or results every pair of them is looked at; of more, the pairs with the first.
const ALL_PAIRS: usize = 64;

/// Returns the path that contracts at each step the two operands or results for which `price`, given
/// the indices of their result and those of the loops, is least.
///
/// For expressions of too many operands to tabulate; `O(T^3)` questions for `T` operands, and no more than
/// `O(T)` a step above 64 of them.
pub fn greedy<P: Ord>(expr: &Expr, price: &dyn Fn(IndexSet, IndexSet) -> P) -> Path {
    let mut open: Vec<(Source, IndexSet)> =
        (0..expr.inputs.len()).map(|at| (Source::Input(at), expr.looped(at))).collect();
    let mut terms = Vec::new();
    while open.len() > 1 {
        let holders = Holders::of(expr, &open);
        let price = |&(a, b): &(usize, usize)| {
            let (a, b) = (open[a].1, open[b].1);
            price(holders.kept(a, b), a | b)
        };
        let firsts = if open.len() > ALL_PAIRS { 1 } else { open.len() };
        let pairs = (0..firsts).flat_map(|a| (a + 1..open.len()).map(move |b| (a, b)));
        let Some((a, b)) = pairs.min_by_key(price) else { break };
        let (left, right) = (open[a], open[b]);
        let output = holders.kept(left.1, right.1);
        open.remove(b);
        open[a] = (Source::Term(terms.len()), output);
        terms.push(Term { inputs: vec![left.0, right.0], output, indices: left.1 | right.1 });
    }
    if terms.is_empty() { unfactorised(expr) } else { in_postorder(&terms) }
}

/// Who needs each index.
struct Holders {
    /// What the output needs.
    output: IndexSet,
    /// What two or more of the operands and results that are left have.
    two: IndexSet,
    /// What three or more have.
    three: IndexSet,
    /// Whether only two are left.
    last: bool,
}

impl Holders {
    fn of(expr: &Expr, open: &[(Source, IndexSet)]) -> Holders {
        let (mut one, mut two, mut three) = (IndexSet::EMPTY, IndexSet::EMPTY, IndexSet::EMPTY);
        for &(_, set) in open {
            three = three | (two & set);
            two = two | (one & set);
            one = one | set;
        }
        Holders { output: expr.output.set(), two, three, last: open.len() == 2 }
    }

    /// Returns what the product of two of them, over `a` and `b`, hands on: what another one or the output needs.
    fn kept(&self, a: IndexSet, b: IndexSet) -> IndexSet {
        let (own, both) = (a | b, a & b);
        let needed = self.output | (self.two - both) | (self.three & both);
        if self.last { own & needed } else { live_indices(own, needed) }
    }
}

/// Reorders terms so that each stands right behind the subtrees that it reads.
fn in_postorder(terms: &[Term]) -> Path {
    fn visit(terms: &[Term], at: usize, order: &mut Vec<Term>) -> usize {
        let mut term = terms[at].clone();
        for source in &mut term.inputs {
            if let Source::Term(earlier) = *source {
                *source = Source::Term(visit(terms, earlier, order));
            }
        }
        order.push(term);
        order.len() - 1
    }
    let mut order = Vec::new();
    visit(terms, terms.len() - 1, &mut order);
    Path { terms: order }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{enumerate, greedy};
    use crate::einsum::Expr;
    use crate::kernels;
    use crate::path::{Arity, PathSpace, Source};

    /// The numbers of trees whose inner nodes have two children, and two or more: the double
    /// factorials and Schroeder's fourth problem (OEIS A001147, A000311).
    #[test]
    fn trees_are_counted_as_in_the_literature() {
        let tree = |path: &crate::path::Path| {
            let mut below: Vec<u64> = Vec::new();
            for term in &path.terms {
                let inputs = term.inputs.iter().map(|source| match *source {
                    Source::Input(input) => 1 << input,
                    Source::Term(t) => below[t],
                });
                below.push(inputs.sum());
            }
            below.sort_unstable();
            below
        };
        let known = [(2, 1, 1), (3, 3, 4), (4, 15, 26), (5, 105, 236), (6, 945, 2752)];
        for (operands, binary, any) in known {
            let expr = kernels::mttkrp(operands, 0);
            for (arity, trees) in [(Arity::Binary, binary), (Arity::Any, any)] {
                let (paths, cut) = enumerate(&expr, arity);
                assert!(!cut);
                let distinct: HashSet<_> = paths.iter().map(tree).collect();
                assert_eq!(distinct.len(), trees, "{operands} operands");
                let distinct: HashSet<_> = paths.iter().collect();
                assert_eq!(distinct.len(), paths.len(), "{operands} operands");
                let space = PathSpace::new(&expr, arity).unwrap();
                assert_eq!(space.count(), paths.len() as u64);
                let depth = paths.iter().map(super::Path::depth).min();
                assert_eq!(Some(space.least_depth()), depth);
            }
        }
    }

    #[test]
    fn terms_sum_away_what_nobody_needs() {
        let expr = kernels::mttkrp(3, 0);
        let (paths, _) = enumerate(&expr, Arity::Any);
        let texts: Vec<String> = paths.iter().map(|p| p.display(&expr).to_string()).collect();
        for wanted in [
            "T1(i,j,r) = X(i,j,k) * A3(k,r)\nA1(i,r) = T1(i,j,r) * A2(j,r)",
            "A1(i,r) = X(i,j,k) * A2(j,r) * A3(k,r)",
        ] {
            assert!(texts.iter().any(|text| text == wanted), "{texts:#?}");
        }
        for path in &paths {
            assert_eq!(path.terms.last().unwrap().output, expr.output.set());
        }
    }

    #[test]
    fn the_greedy_path_takes_the_smallest_results_first() {
        let expr: Expr = "A(i,r) = X(i,j,k,l) * B(j,r) * C(k,r) * D(l,r)".parse().unwrap();
        // As if every prefix of `ijkl` had few nodes and every other set many.
        let few = ["", "i", "ij", "ijk", "ijkl"];
        let count = |set: crate::einsum::IndexSet| {
            let text = set.to_string();
            let sparse = text.trim_end_matches('r');
            let nodes = few.iter().position(|&prefix| prefix == sparse).unwrap_or(10);
            nodes as u64 * if text.ends_with('r') { 16 } else { 1 }
        };
        let text = greedy(&expr, &|result, _| count(result)).display(&expr).to_string();
        let wanted = "T1(i,j,k,r) = X(i,j,k,l) * D(l,r)\nT2(i,j,r) = T1(i,j,k,r) * C(k,r)\n\
                      A(i,r) = T2(i,j,r) * B(j,r)";
        assert_eq!(text, wanted);
    }
}
