//! Costs on several trees, as polynomials of one domain.
//!
//! A tree of other levels has other prefixes, whose counts depend on each other: `nnz(B_j)` is at most `nnz(B_ij)`.  The
//! domain has the levels of the first tree, and one more for each prefix that is none of it.

use crate::cost::symbolic::domain::Domain;
use crate::cost::symbolic::polynomial::{Monomial, Polynomial};
use crate::cost::symbolic::symbols::Symbols;
use crate::einsum::{Index, IndexSet};

/// The sizes for which costs on several trees are compared.
#[derive(Clone, Debug)]
pub struct Trees {
    /// The domain of the translated polynomials.
    pub domain: Domain,
    symbols: Vec<Symbols>,
    /// The prefixes that the first tree lacks: which input, and its levels; their numbers follow those of the levels.
    prefixes: Vec<(usize, IndexSet)>,
    levels: usize,
}

/// Sets of levels are the bits of a number.
const MOST_LEVELS: usize = 64;

impl Trees {
    /// Joins the trees of `symbols`, where `domain` says what is known of the first one; `None` for too many variables.
    pub fn of(symbols: &[Symbols], domain: Domain) -> Option<Trees> {
        let first = symbols.first()?;
        let levels = first.levels().count();
        let mut prefixes: Vec<(usize, IndexSet)> = Vec::new();
        let chains: Vec<(usize, &[Index])> = first.prefixes(u64::MAX).collect();
        for (input, order) in symbols.iter().flat_map(|tree| tree.prefixes(u64::MAX)) {
            let own = chains.iter().find(|(own, _)| *own == input);
            let own: &[Index] = own.map_or(&[], |(_, levels)| levels);
            for count in 1..=order.len() {
                let (set, same) = (set(&order[..count]), set(&own[..count.min(own.len())]));
                if set != same && !prefixes.contains(&(input, set)) {
                    prefixes.push((input, set));
                }
            }
        }
        if levels + prefixes.len() > MOST_LEVELS {
            return None;
        }
        // The indices of which an operand is the first.
        let mut seen = IndexSet::EMPTY;
        let mut firsts: Vec<(usize, IndexSet)> = Vec::new();
        for (input, own) in &chains {
            firsts.push((*input, set(own) - seen));
            seen = seen | set(own);
        }
        let first_of = |input: usize| {
            firsts.iter().find(|(own, _)| *own == input).map_or(IndexSet::EMPTY, |f| f.1)
        };
        let new: Vec<(IndexSet, IndexSet)> =
            prefixes.iter().map(|&(input, all)| (all & first_of(input), all)).collect();
        let known = chains.iter().filter(|(input, own)| set(own).is_subset(first_of(*input)));
        let known = known.map(|&(input, own)| {
            let levels =
                (0..=own.len()).map(|count| (set(&own[..count]), first.first_levels(input, count)));
            let others = prefixes.iter().enumerate().filter(|(_, (other, _))| *other == input);
            levels
                .chain(others.map(|(at, (_, set))| (*set, 1u64 << (first.levels().count() + at))))
                .collect()
        });
        let known: Vec<Vec<(IndexSet, u64)>> = known.collect();
        let domain = domain.with_prefixes(&new, &known)?;
        Some(Trees { domain, symbols: symbols.to_vec(), prefixes, levels })
    }

    /// Returns a polynomial of tree number `tree` as one of the domain.
    pub fn translated(&self, tree: usize, polynomial: &Polynomial) -> Polynomial {
        let Some(symbols) = self.symbols.get(tree) else { return polynomial.clone() };
        polynomial.mapped(|product| {
            let of = |(input, order): (usize, &[Index])| {
                let walked = set(order);
                let other = self.prefixes.iter().position(|one| *one == (input, walked));
                match other {
                    Some(at) => 1u64 << (self.levels + at),
                    None => self.symbols[0].first_levels(input, order.len()),
                }
            };
            let walked = symbols.prefixes(product.walked).map(of).fold(0, |all, bits| all | bits);
            Monomial { extents: product.extents, walked }
        })
    }
}

fn set(order: &[Index]) -> IndexSet {
    order.iter().copied().collect()
}
