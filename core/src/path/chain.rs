//! Paths along the levels of a tree.
//!
//! From the leaves up, the sparse operand is multiplied by the dense ones of each level, whose index is summed away; from
//! the root down, dense ones are multiplied by each other.  The two meet at the deepest level that the output keeps:
//! below it every index can be summed as soon as its level is done, and above it nothing can before the end.
//!
//! ```text
//! Z(a,j,b) = X(i,j,k) G1(i,a) G3(b,k)      up: T1(i,j,b) = X G3    down: G1    meet: Z = G1 T1
//! ```
//!
//! What is handed on has the levels above and the dense indices of the operands that are done, so each term can share the
//! loops over these levels with the next.

use crate::einsum::{Expr, Index, IndexSet};
use crate::path::{Path, Source};

/// Returns the paths along `levels`, those of the sparse input `sparse`: operands without any level come last, or, as
/// the core of a Tucker model, first.
pub(crate) fn chains(expr: &Expr, sparse: usize, levels: &[Index]) -> Vec<Path> {
    let deepest =
        |set: IndexSet| levels.iter().rposition(|&l| set.contains(l)).map_or(0, |l| l + 1);
    let meet = deepest(expr.output.set());
    let dense = (0..expr.inputs.len()).filter(|&input| input != sparse);
    let mut placed: Vec<(usize, usize)> =
        dense.map(|input| (deepest(expr.inputs[input].set()), input)).collect();
    placed.sort_unstable();
    let at = |wanted: &dyn Fn(usize) -> bool| -> Vec<Source> {
        let those = placed.iter().filter(|(depth, _)| wanted(*depth));
        those.map(|&(_, input)| Source::Input(input)).collect()
    };
    let (free, above) = (at(&|depth| depth == 0), at(&|depth| depth > 0 && depth <= meet));
    let mut below = at(&|depth| depth > meet && depth > 0);
    below.reverse();
    let mut paths = Vec::new();
    for (first, last) in [(&[][..], &free[..]), (&free[..], &[][..])] {
        let mut products = Vec::new();
        let down = product(first.iter().chain(&above).copied(), &mut products);
        let up = product([Source::Input(sparse)].iter().chain(&below).copied(), &mut products);
        let whole = down.into_iter().chain(up).chain(last.iter().copied());
        product(whole, &mut products);
        if products.is_empty() {
            products.push(vec![Source::Input(sparse)]);
        }
        let path = Path::of_products(&products, expr);
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Multiplies `sources` one after the other; returns the result.
fn product(
    mut sources: impl Iterator<Item = Source>,
    products: &mut Vec<Vec<Source>>,
) -> Option<Source> {
    let first = sources.next()?;
    Some(sources.fold(first, |before, next| {
        products.push(vec![before, next]);
        Source::Term(products.len() - 1)
    }))
}

#[cfg(test)]
mod tests {
    use super::chains;
    use crate::einsum::{Expr, indices};

    fn texts(expr: &str, levels: &str) -> Vec<String> {
        let expr: Expr = expr.parse().unwrap();
        let paths = chains(&expr, 0, &indices(levels));
        paths.iter().map(|path| path.display(&expr).to_string()).collect()
    }

    #[test]
    fn both_ends_meet_where_the_output_keeps_a_level() {
        assert_eq!(
            texts("A(k,r) = X(i,j,k,l) * B(i,r) * C(j,r) * D(l,r)", "ijkl"),
            ["T1(i,j,r) = B(i,r) * C(j,r)\nT2(i,j,k,r) = X(i,j,k,l) * D(l,r)\n\
              A(k,r) = T1(i,j,r) * T2(i,j,k,r)"]
        );
        assert_eq!(
            texts("A(i,r) = X(i,j,k) * C(k,r) * B(j,r)", "ijk"),
            ["T1(i,j,r) = X(i,j,k) * C(k,r)\nA(i,r) = T1(i,j,r) * B(j,r)"]
        );
        assert_eq!(
            texts("S(i,j) = X(i,j) * G(r,s) * U(i,r) * V(j,s)", "ij"),
            [
                "T1(i,j,r,s) = U(i,r) * V(j,s)\nT2(i,j,r,s) = T1(i,j,r,s) * X(i,j)\n\
                 S(i,j) = T2(i,j,r,s) * G(r,s)",
                "T1(i,s) = G(r,s) * U(i,r)\nT2(i,j) = T1(i,s) * V(j,s)\n\
                 S(i,j) = T2(i,j) * X(i,j)",
            ]
        );
        assert_eq!(texts("y(i) = X(i,j)", "ij"), ["y(i) = X(i,j)"]);
    }
}
