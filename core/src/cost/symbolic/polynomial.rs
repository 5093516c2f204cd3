//! Sums of products of extents and shares.

use crate::einsum::IndexSet;

/// A product of extents, and of shares of levels; each occurs once at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Monomial {
    /// The indices whose extents are multiplied.
    pub extents: IndexSet,
    /// The levels whose shares are multiplied: bit `n` stands for level number `n` of the symbols.
    pub walked: u64,
}

/// A sum of products with positive coefficients, in ascending order, without equal products.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Polynomial(Vec<(Monomial, u64)>);

impl Polynomial {
    /// Returns the sum of two polynomials.
    pub fn plus(&self, other: &Polynomial) -> Polynomial {
        let mut sum = Vec::with_capacity(self.0.len() + other.0.len());
        let (mut a, mut b) = (self.0.as_slice(), other.0.as_slice());
        while let (Some((first, rest_a)), Some((second, rest_b))) =
            (a.split_first(), b.split_first())
        {
            match first.0.cmp(&second.0) {
                std::cmp::Ordering::Less => (sum.push(*first), a = rest_a).1,
                std::cmp::Ordering::Greater => (sum.push(*second), b = rest_b).1,
                std::cmp::Ordering::Equal => {
                    sum.push((first.0, first.1.saturating_add(second.1)));
                    (a, b) = (rest_a, rest_b);
                }
            }
        }
        sum.extend_from_slice(a);
        sum.extend_from_slice(b);
        Polynomial(sum)
    }

    /// Returns the sum of other products in the places of these.
    pub(super) fn mapped(&self, map: impl Fn(&Monomial) -> Monomial) -> Polynomial {
        let one = |(product, count): &(Monomial, u64)| Polynomial(vec![(map(product), *count)]);
        self.0.iter().map(one).fold(Polynomial::default(), |sum, product| sum.plus(&product))
    }

    /// Returns the products with their coefficients.
    pub fn terms(&self) -> &[(Monomial, u64)] {
        &self.0
    }

    /// Returns what each of two polynomials has more than the other one.
    pub fn difference(&self, other: &Polynomial) -> (Polynomial, Polynomial) {
        let more = |a: &Polynomial, b: &Polynomial| {
            let of =
                |m: &Monomial| b.0.binary_search_by(|(n, _)| n.cmp(m)).map_or(0, |at| b.0[at].1);
            let rest = a.0.iter().map(|(m, count)| (*m, count.saturating_sub(of(m))));
            Polynomial(rest.filter(|&(_, count)| count > 0).collect())
        };
        (more(self, other), more(other, self))
    }
}

impl From<Monomial> for Polynomial {
    fn from(product: Monomial) -> Polynomial {
        Polynomial(vec![(product, 1)])
    }
}
