//! All contraction paths of an expression.

use crate::einsum::{Expr, IndexSet};
use crate::path::{Path, Source, Term};

/// The longest list of paths that [`enumerate`] returns: all of those of 6 operands.
const MAX_PATHS: usize = 50_000;

/// Returns the path of one term that multiplies all inputs at once.
pub fn unfactorised(expr: &Expr) -> Path {
    let inputs = (0..expr.inputs.len()).map(Source::Input).collect();
    let indices = expr.inputs.iter().fold(IndexSet::EMPTY, |set, access| set | access.set());
    Path { terms: vec![Term { inputs, output: expr.output.set(), indices }] }
}

/// Returns every binary path: every tree of pairwise contractions, in every depth-first
/// postorder.
///
/// An expression of one input has the path of one term.  Past 50,000 paths the list is cut, and the
/// second value says so.
///
/// Postorders matter because only neighbouring terms can share loops.
pub fn enumerate(expr: &Expr) -> (Vec<Path>, bool) {
    if expr.inputs.len() == 1 {
        return (vec![unfactorised(expr)], false);
    }
    let leaves: Vec<Tree> = (0..expr.inputs.len()).map(Tree::Leaf).collect();
    let mut trees = Vec::new();
    let full = (1u64 << expr.inputs.len()) - 1;
    grow(&leaves, full, &mut trees);
    let mut paths = Vec::new();
    for tree in &trees {
        for order in postorders(tree) {
            if paths.len() == MAX_PATHS {
                return (paths, true);
            }
            paths.push(path_of(expr, &order));
        }
    }
    (paths, trees.len() >= MAX_PATHS)
}

#[derive(Clone)]
enum Tree {
    Leaf(usize),
    Pair(Box<Tree>, Box<Tree>),
}

impl Tree {
    fn operands(&self) -> u64 {
        match self {
            Tree::Leaf(input) => 1 << input,
            Tree::Pair(left, right) => left.operands() | right.operands(),
        }
    }
}

/// Collects every binary tree over the operands in the bit set `members`.
///
/// Each unordered split is taken once: the half that holds the lowest member is the left one.
fn grow(leaves: &[Tree], members: u64, trees: &mut Vec<Tree>) {
    if members.count_ones() == 1 {
        trees.push(leaves[members.trailing_zeros() as usize].clone());
        return;
    }
    let lowest = members & members.wrapping_neg();
    let rest = members & !lowest;
    let mut right = rest;
    while right != 0 {
        let (mut lefts, mut rights) = (Vec::new(), Vec::new());
        grow(leaves, members & !right, &mut lefts);
        grow(leaves, right, &mut rights);
        for left in &lefts {
            for right in &rights {
                if trees.len() == MAX_PATHS {
                    return;
                }
                trees.push(Tree::Pair(Box::new(left.clone()), Box::new(right.clone())));
            }
        }
        right = (right - 1) & rest;
    }
}

/// One contraction as the operand sets of its two sides.
type Contraction = (u64, u64);

/// Returns every order of the contractions in which each subtree's are contiguous.
fn postorders(tree: &Tree) -> Vec<Vec<Contraction>> {
    let Tree::Pair(left, right) = tree else { return vec![Vec::new()] };
    let this = (left.operands(), right.operands());
    let (lefts, rights) = (postorders(left), postorders(right));
    let both = !lefts[0].is_empty() && !rights[0].is_empty();
    let mut orders = Vec::new();
    for l in &lefts {
        for r in &rights {
            orders.push([l.as_slice(), r, &[this]].concat());
            if both {
                orders.push([r.as_slice(), l, &[this]].concat());
            }
        }
    }
    orders
}

fn path_of(expr: &Expr, order: &[Contraction]) -> Path {
    let full = (1u64 << expr.inputs.len()) - 1;
    let indices_of = |operands: u64| {
        let inputs = (0..expr.inputs.len()).filter(|input| operands >> input & 1 == 1);
        inputs.fold(IndexSet::EMPTY, |set, input| set | expr.inputs[input].set())
    };
    // What a subtree hands on: its indices that something outside still needs.
    let kept =
        |operands: u64| indices_of(operands) & (indices_of(full & !operands) | expr.output.set());
    let result = |operands: u64| {
        if operands.count_ones() == 1 {
            return (Source::Input(operands.trailing_zeros() as usize), indices_of(operands));
        }
        let term = order.iter().position(|&(left, right)| left | right == operands);
        (Source::Term(term.unwrap_or_default()), kept(operands))
    };
    let terms = order.iter().map(|&(left, right)| {
        let ((left_source, left_set), (right_source, right_set)) = (result(left), result(right));
        Term {
            inputs: vec![left_source, right_source],
            output: kept(left | right),
            indices: left_set | right_set,
        }
    });
    Path { terms: terms.collect() }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::enumerate;
    use crate::kernels;

    #[test]
    fn trees_are_counted_by_the_double_factorial() {
        for (order, trees) in [(2, 1), (3, 3), (4, 15), (5, 105)] {
            let (paths, cut) = enumerate(&kernels::mttkrp(order, 0));
            assert!(!cut);
            let sets: HashSet<Vec<Vec<_>>> = paths
                .iter()
                .map(|path| {
                    let mut terms: Vec<_> = path.terms.iter().map(|t| vec![t.indices]).collect();
                    terms.sort();
                    terms
                })
                .collect();
            assert!(sets.len() <= trees && paths.len() >= trees, "order {order}");
            let distinct: HashSet<_> = paths.iter().collect();
            assert_eq!(distinct.len(), paths.len(), "order {order}");
        }
    }

    #[test]
    fn terms_sum_away_what_nobody_needs() {
        let expr = kernels::mttkrp(3, 0);
        let (paths, _) = enumerate(&expr);
        let texts: Vec<String> = paths.iter().map(|p| p.display(&expr).to_string()).collect();
        let wanted = "T1(i,j,r) = X(i,j,k) * A3(k,r)\nA1(i,r) = T1(i,j,r) * A2(j,r)";
        assert!(texts.iter().any(|text| text == wanted), "{texts:#?}");
        for path in &paths {
            assert_eq!(path.terms.last().unwrap().output, expr.output.set());
        }
    }
}
