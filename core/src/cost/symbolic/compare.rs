//! Whether one cost is at least another one for all sizes of a domain.
//!
//! 1. Each product of the smaller cost may have a larger one of its own in the other cost; then nothing is to be computed.
//! 2. The difference is linear in each variable, since no product has one twice.  Its least value over a box stands at a
//!    corner.  Corners are computed in floating point, and exactly where the sign is in doubt.
//! 3. A constraint between two products bounds products that have one of them as factors: with `m <= l`, `k*m` is at most
//!    `k*l`.  The difference with such bounds may have no negative corner.
//! 4. A corner with a negative difference that breaks a constraint says nothing.  Then the box is cut in two, and its
//!    parts are cut down to where the constraints may hold, until each part is settled or there are too many.

use std::cmp::Ordering;

use crate::cost::symbolic::constraint::{Bounds, Constraint};
use crate::cost::symbolic::domain::Domain;
use crate::cost::symbolic::exact::compare_sums;
use crate::cost::symbolic::polynomial::Polynomial;

/// Whether one cost is at least another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// For all sizes of the domain.
    Always,
    /// Not for some.
    NotAlways,
    /// It takes too many boxes to tell.
    Unknown,
}

/// Boxes that are looked at.
const MOST_BOXES: usize = 512;

/// The work that comparisons may do: products that are evaluated at corners.
///
/// It is counted and not timed, so that the same comparisons end at the same place on any machine.
#[derive(Clone, Debug)]
pub struct Comparisons {
    left: u64,
    /// Whether a comparison was left open for want of work.
    pub cut: bool,
}

impl Comparisons {
    /// Allows `most` products to be evaluated.
    pub fn new(most: u64) -> Comparisons {
        Comparisons { left: most, cut: false }
    }

    /// Takes off `products`; `false` where fewer are left.
    fn spend(&mut self, products: u64) -> bool {
        match self.left.checked_sub(products) {
            Some(left) => self.left = left,
            None => self.cut = true,
        }
        !self.cut
    }

    /// Returns the work of a single comparison.
    fn one(&self) -> Comparisons {
        Comparisons::new(self.left.min(MOST_PRODUCTS))
    }
}

/// The most products that one comparison evaluates.
const MOST_PRODUCTS: u64 = 1 << 20;

/// Boxes have two corners to the power of this many variables at most.
const MOST_CORNERS: u32 = 14;

/// Constraints that are used one after the other to bound products.
const MOST_BOUNDS: usize = 2;

/// Relative to the sums: more than they are rounded.
const ROUNDED: f64 = 1e-12;

/// A polynomial over variables: counts with sets of them.
type Sum = Vec<(u64, u64)>;

/// A difference with the variables that occur in it.
struct Difference {
    more: Sum,
    less: Sum,
    variables: Vec<usize>,
}

impl Domain {
    /// Tells whether `a` is at least `b` wherever the domain's ranges and constraints hold.
    ///
    /// Time: `O(2^v t)` a box for `v` variables and `t` products that differ, and one box without constraints.
    pub fn at_least(&self, a: &Polynomial, b: &Polynomial) -> Answer {
        self.at_least_within(a, b, &mut Comparisons::new(u64::MAX))
    }

    /// Tells the same within `work`; [`Answer::Unknown`] where that ends.
    pub fn at_least_within(
        &self,
        a: &Polynomial,
        b: &Polynomial,
        work: &mut Comparisons,
    ) -> Answer {
        let (more, less) = a.difference(b);
        let sum = |p: &Polynomial| -> Sum {
            p.terms().iter().map(|(monomial, count)| (*count, self.variables(monomial))).collect()
        };
        let (more, less) = (sum(&more), sum(&less));
        if self.is_covered(&less, &more) {
            return Answer::Always;
        }
        let mut one = work.one();
        let (all, answer) = (one.left, self.decided(Difference::of(more, less), &mut one));
        let used = all - one.left;
        // A comparison that ends for want of its own work is open; the others go on.
        if !work.spend(used) || one.cut && all < MOST_PRODUCTS {
            work.cut = true;
        }
        answer
    }

    fn decided(&self, difference: Difference, work: &mut Comparisons) -> Answer {
        let free = |v: &&usize| self.bounds[**v].0 < self.bounds[**v].1;
        if difference.variables.iter().filter(free).count() as u32 > MOST_CORNERS {
            return Answer::Unknown;
        }
        if !self.constraints.is_empty()
            && difference.negative_corner(&self.bounds, work).is_some()
            && self.is_bounded(&difference, MOST_BOUNDS, work)
        {
            return Answer::Always;
        }
        self.settle(&difference, work)
    }

    /// Tells whether the difference is nowhere below zero with products replaced by bounds, by so many constraints at most.
    fn is_bounded(&self, difference: &Difference, most: usize, work: &mut Comparisons) -> bool {
        let bounded = self.constraints.iter().flat_map(|one| difference.bounded(one));
        bounded.into_iter().any(|difference| {
            let few = difference.variables.len() as u32 <= MOST_CORNERS && !work.cut;
            let never =
                few && difference.negative_corner(&self.bounds, work).is_none() && !work.cut;
            never || most > 1 && few && self.is_bounded(&difference, most - 1, work)
        })
    }

    /// Tells whether each product of `less` has one of `more` to itself that is at least as large.
    fn is_covered(&self, less: &Sum, more: &Sum) -> bool {
        let mut left: Vec<u64> = more.iter().map(|(count, _)| *count).collect();
        less.iter().all(|&(mut count, set)| {
            for (left, &(_, other)) in left.iter_mut().zip(more) {
                let (added, gone) = (other & !set, set & !other);
                if added & !self.above_one == 0 && gone & self.above_one == 0 {
                    let used = count.min(*left);
                    (count, *left) = (count - used, *left - used);
                }
            }
            count == 0
        })
    }

    fn settle(&self, difference: &Difference, work: &mut Comparisons) -> Answer {
        let mut open = vec![self.bounds.clone()];
        let mut boxes = 0;
        let mut doubt = false;
        while let Some(bounds) = open.pop() {
            boxes += 1;
            if boxes > MOST_BOXES {
                return Answer::Unknown;
            }
            let corner = difference.negative_corner(&bounds, work);
            if work.cut {
                return Answer::Unknown;
            }
            let Some(corner) = corner else { continue };
            if self.constraints.iter().all(|constraint| constraint.holds(&corner)) {
                return Answer::NotAlways;
            }
            let centre: Vec<f64> =
                bounds.iter().map(|&(low, high)| (low * high).sqrt().clamp(low, high)).collect();
            if difference.sign(&centre) == Ordering::Less
                && self.constraints.iter().all(|constraint| constraint.holds(&centre))
            {
                return Answer::NotAlways;
            }
            match cut(&bounds) {
                Some(halves) => {
                    open.extend(halves.into_iter().filter_map(|half| self.narrowed(half)))
                }
                None => doubt = true,
            }
        }
        if doubt { Answer::Unknown } else { Answer::Always }
    }

    /// Returns what the constraints leave of a box; `None` if that is nothing.
    fn narrowed(&self, mut bounds: Bounds) -> Option<Bounds> {
        for _ in 0..2 {
            self.constraints.iter().for_each(|constraint| constraint.tighten(&mut bounds));
        }
        let empty = bounds.iter().any(|(low, high)| low > high);
        let may = !empty && self.constraints.iter().all(|constraint| constraint.may_hold(&bounds));
        may.then_some(bounds)
    }
}

/// Cuts a box in two along its widest variable, as ratios go; `None` if it is a point.
fn cut(bounds: &Bounds) -> Option<[Bounds; 2]> {
    let ratio = |&(low, high): &(f64, f64)| high / low;
    let (at, widest) =
        bounds.iter().enumerate().max_by(|a, b| ratio(a.1).total_cmp(&ratio(b.1)))?;
    let middle = (widest.0 * widest.1).sqrt();
    if !(middle > widest.0 && middle < widest.1) {
        return None;
    }
    let (mut lower, mut upper) = (bounds.clone(), bounds.clone());
    (lower[at].1, upper[at].0) = (middle, middle);
    Some([lower, upper])
}

impl Difference {
    fn of(more: Sum, less: Sum) -> Difference {
        let used = more.iter().chain(&less).fold(0, |all: u64, (_, set)| all | set);
        let variables = (0..64).filter(|v| used >> v & 1 == 1).collect();
        Difference { more, less, variables }
    }

    /// Returns differences that are no larger where `constraint` holds: products that have one of its two products as
    /// factors are replaced, those that are added or those that are taken away.
    fn bounded(&self, constraint: &Constraint) -> Vec<Difference> {
        let ([more], [less]) = (constraint.more.as_slice(), constraint.less.as_slice()) else {
            return Vec::new();
        };
        let sets = set_of(&more.1).zip(set_of(&less.1));
        let Some(((large, small), (above, below))) = sets.zip(whole(more.0, less.0)) else {
            return Vec::new();
        };
        let added = replaced(&self.more, (above, large), (below, small));
        let taken = replaced(&self.less, (below, small), (above, large));
        let added = added.map(|more| Difference::of(more, scaled(&self.less, above)));
        let taken = taken.map(|less| Difference::of(scaled(&self.more, below), less));
        added.into_iter().chain(taken).collect()
    }

    /// Returns a corner of the box at which the difference is below zero, if there is one and `work` does not end before.
    fn negative_corner(&self, bounds: &Bounds, work: &mut Comparisons) -> Option<Vec<f64>> {
        let mut point: Vec<f64> = bounds.iter().map(|&(low, _)| low).collect();
        let free = |v: &usize| bounds[*v].0 < bounds[*v].1;
        let free: Vec<usize> = self.variables.iter().copied().filter(free).collect();
        let products = (self.more.len() + self.less.len()) as u64;
        for corner in 0..1u64 << free.len() {
            if !work.spend(products) {
                return None;
            }
            for (at, &v) in free.iter().enumerate() {
                point[v] = if corner >> at & 1 == 1 { bounds[v].1 } else { bounds[v].0 };
            }
            if self.sign(&point) == Ordering::Less {
                return Some(point);
            }
        }
        None
    }

    /// Compares the difference with zero, exactly.
    fn sign(&self, point: &[f64]) -> Ordering {
        let product = |&(count, set): &(u64, u64)| {
            let used = self.variables.iter().filter(|&v| set >> v & 1 == 1);
            used.fold(count as f64, |n, &v| n * point[v])
        };
        let (more, less): (f64, f64) =
            (self.more.iter().map(product).sum(), self.less.iter().map(product).sum());
        if (more - less).abs() > (more + less) * ROUNDED {
            return more.total_cmp(&less);
        }
        let factors = |sum: &Sum| -> Vec<(u64, Vec<f64>)> {
            let one = |&(count, set): &(u64, u64)| {
                let used = self.variables.iter().filter(|&v| set >> v & 1 == 1);
                (count, used.map(|&v| point[v]).collect())
            };
            sum.iter().map(one).collect()
        };
        compare_sums(&factors(&self.more), &factors(&self.less))
    }
}

/// A product of variables that occur once as a set; `None` if one occurs twice.
fn set_of(variables: &[usize]) -> Option<u64> {
    let set = variables.iter().fold(0u64, |set, &v| set | 1 << v);
    (set.count_ones() as usize == variables.len()).then_some(set)
}

/// Returns whole numbers in the ratio of two decimal fractions of up to six places.
fn whole(a: f64, b: f64) -> Option<(u64, u64)> {
    let is_whole = |x: f64| (x - x.round()).abs() <= x * 1e-12 && (1.0..1e9).contains(&x);
    let factor = (0..7).map(|n| 10f64.powi(n)).find(|f| is_whole(a * f) && is_whole(b * f))?;
    Some(((a * factor).round() as u64, (b * factor).round() as u64))
}

fn scaled(sum: &Sum, factor: u64) -> Sum {
    sum.iter().map(|&(count, set)| (count.saturating_mul(factor), set)).collect()
}

/// Returns `a.0` times `sum`, with `a` replaced by `b` in products that have its set as factors; `None` if none has.
fn replaced(sum: &Sum, a: (u64, u64), b: (u64, u64)) -> Option<Sum> {
    let mut changed = false;
    let one = |&(count, set): &(u64, u64)| {
        let rest = set & !a.1;
        if set & a.1 == a.1 && a.1 != 0 && rest & b.1 == 0 {
            changed = true;
            return (count.saturating_mul(b.0), rest | b.1);
        }
        (count.saturating_mul(a.0), set)
    };
    let sum: Sum = sum.iter().map(one).collect();
    changed.then_some(sum)
}
