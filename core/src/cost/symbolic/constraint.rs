//! Inequalities between sums of products of variables, and what they leave of a box.

/// A product of a number and variables, by number; a variable may occur several times.
pub(super) type Product = (f64, Vec<usize>);

/// A box: the least and the largest value of each variable, both above zero.
pub(super) type Bounds = Vec<(f64, f64)>;

/// The sum of `more` is at least that of `less`.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    pub(super) more: Vec<Product>,
    pub(super) less: Vec<Product>,
}

/// More than sums of a few products of ten numbers are rounded.
const ROUNDED: f64 = 1e-13;

fn least(products: &[Product], bounds: &Bounds) -> f64 {
    let value = |(count, vars): &Product| vars.iter().fold(*count, |n, &v| n * bounds[v].0);
    products.iter().map(value).sum()
}

fn most(products: &[Product], bounds: &Bounds) -> f64 {
    let value = |(count, vars): &Product| vars.iter().fold(*count, |n, &v| n * bounds[v].1);
    products.iter().map(value).sum()
}

impl Constraint {
    /// Tells whether it holds at a point.
    pub(super) fn holds(&self, point: &[f64]) -> bool {
        let at: Bounds = point.iter().map(|&x| (x, x)).collect();
        least(&self.more, &at) >= least(&self.less, &at)
    }

    /// Tells whether all points of the box keep it.
    pub(super) fn is_implied(&self, bounds: &Bounds) -> bool {
        least(&self.more, bounds) >= most(&self.less, bounds)
    }

    /// Tells whether it bounds one variable at most, since all others have one value: a box that is tightened keeps it.
    pub(super) fn is_bound(&self, bounds: &Bounds) -> bool {
        let ([more], [less]) = (self.more.as_slice(), self.less.as_slice()) else { return false };
        let free = |v: &&usize| bounds[**v].0 < bounds[**v].1;
        more.1.iter().chain(&less.1).filter(free).count() <= 1
    }

    /// Tells whether some point of the box may keep it.
    pub(super) fn may_hold(&self, bounds: &Bounds) -> bool {
        most(&self.more, bounds) * (1.0 + ROUNDED) >= least(&self.less, bounds)
    }

    /// Cuts off ends of the box where it does not hold, if it relates two products.
    pub(super) fn tighten(&self, bounds: &mut Bounds) {
        let ([more], [less]) = (self.more.as_slice(), self.less.as_slice()) else { return };
        // An occurrence of a variable on both sides says nothing of it.
        let (mut above, mut below) = (more.1.clone(), less.1.clone());
        below.retain(|v| match above.iter().position(|other| other == v) {
            Some(at) => (above.remove(at), false).1,
            None => true,
        });
        let without = |vars: &[usize], at: usize| {
            let mut rest = vars.to_vec();
            rest.remove(at);
            rest
        };
        for at in 0..above.len() {
            let (v, rest) = (above[at], without(&above, at));
            if rest.contains(&v) {
                continue;
            }
            let need = least(&[(less.0, below.clone())], bounds);
            let have = most(&[(more.0, rest)], bounds);
            bounds[v].0 = bounds[v].0.max(need / have * (1.0 - ROUNDED));
        }
        for at in 0..below.len() {
            let (v, rest) = (below[at], without(&below, at));
            if rest.contains(&v) {
                continue;
            }
            let have = most(&[(more.0, above.clone())], bounds);
            let need = least(&[(less.0, rest)], bounds);
            bounds[v].1 = bounds[v].1.min(have / need * (1.0 + ROUNDED));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Constraint;

    #[test]
    fn a_relation_of_two_products_cuts_the_box() {
        // z >= 10 y, y <= 8.
        let constraint = Constraint { more: vec![(1.0, vec![1])], less: vec![(10.0, vec![0])] };
        let mut bounds = vec![(1.0, 8.0), (1.0, 50.0)];
        constraint.tighten(&mut bounds);
        assert!(
            (bounds[0].1 - 5.0).abs() < 1e-9 && (bounds[1].0 - 10.0).abs() < 1e-9,
            "{bounds:?}"
        );
        assert!(constraint.holds(&[5.0, 50.0]) && !constraint.holds(&[5.0, 49.0]));
        assert!(!constraint.may_hold(&vec![(6.0, 8.0), (1.0, 50.0)]));
    }
}
