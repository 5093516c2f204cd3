//! Sums of products of binary fractions, compared exactly.

use std::cmp::Ordering;

/// A natural number of any size, its least significant word first, without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Natural(Vec<u64>);

impl Natural {
    fn of(number: u64) -> Natural {
        Natural(if number == 0 { Vec::new() } else { vec![number] })
    }

    fn times(&mut self, factor: u64) {
        let mut carry = 0u128;
        for word in &mut self.0 {
            let product = u128::from(*word) * u128::from(factor) + carry;
            *word = product as u64;
            carry = product >> 64;
        }
        if carry > 0 {
            self.0.push(carry as u64);
        }
        if factor == 0 {
            self.0.clear();
        }
    }

    fn shifted(mut self, bits: u32) -> Natural {
        self.times(1 << (bits % 64));
        if !self.0.is_empty() {
            self.0.splice(0..0, std::iter::repeat_n(0, (bits / 64) as usize));
        }
        self
    }

    fn plus(&mut self, other: &Natural) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        let mut carry = false;
        for (at, word) in self.0.iter_mut().enumerate() {
            let (sum, first) = word.overflowing_add(other.0.get(at).copied().unwrap_or(0));
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*word, carry) = (sum, first || second);
        }
        if carry {
            self.0.push(1);
        }
    }
}

impl Ord for Natural {
    fn cmp(&self, other: &Natural) -> Ordering {
        let words = |n: &Natural| n.0.len();
        words(self).cmp(&words(other)).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

impl PartialOrd for Natural {
    fn partial_cmp(&self, other: &Natural) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A product of positive floating-point numbers: a natural number times a power of two.
struct Product {
    mantissa: Natural,
    exponent: i32,
}

impl Product {
    fn of(count: u64, factors: impl Iterator<Item = f64>) -> Product {
        let mut product = Product { mantissa: Natural::of(count), exponent: 0 };
        for factor in factors {
            let bits = factor.to_bits();
            let exponent = (bits >> 52 & 0x7ff) as i32;
            let fraction = bits & ((1 << 52) - 1);
            // Subnormal numbers have no leading one.
            let (mantissa, exponent) = match exponent {
                0 => (fraction, -1074),
                _ => (fraction | 1 << 52, exponent - 1075),
            };
            let even = if mantissa == 0 { 0 } else { mantissa.trailing_zeros() };
            product.mantissa.times(mantissa >> even);
            product.exponent += exponent + even as i32;
        }
        product
    }
}

/// Compares two sums of products of positive finite numbers, each a count with its factors, without any rounding.
pub(super) fn compare_sums(a: &[(u64, Vec<f64>)], b: &[(u64, Vec<f64>)]) -> Ordering {
    let products = |terms: &[(u64, Vec<f64>)]| -> Vec<Product> {
        terms.iter().map(|(count, factors)| Product::of(*count, factors.iter().copied())).collect()
    };
    let (a, b) = (products(a), products(b));
    let least = a.iter().chain(&b).map(|product| product.exponent).min().unwrap_or(0);
    let sum = |products: Vec<Product>| {
        products.into_iter().fold(Natural::default(), |mut sum, product| {
            sum.plus(&product.mantissa.shifted((product.exponent - least) as u32));
            sum
        })
    };
    sum(a).cmp(&sum(b))
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::compare_sums;

    #[test]
    fn sums_compare_without_rounding() {
        let large = 2f64.powi(200);
        // Rounded, 2^200 + 1 is 2^200.
        let a = [(1, vec![large]), (1, vec![1.0])];
        assert_eq!(compare_sums(&a, &[(1, vec![large])]), Ordering::Greater);
        assert_eq!(compare_sums(&[(1, vec![large])], &a), Ordering::Less);
        let halves = [(3, vec![0.5, 0.5, 4.0]), (1, vec![1.0])];
        assert_eq!(compare_sums(&halves, &[(4, vec![])]), Ordering::Equal);
        assert_eq!(compare_sums(&[], &[(0, vec![large])]), Ordering::Equal);
        let wide = [(u64::MAX, vec![f64::from(u32::MAX), f64::from(u32::MAX)])];
        assert_eq!(compare_sums(&wide, &[(1, vec![2f64.powi(128)])]), Ordering::Less);
    }
}
