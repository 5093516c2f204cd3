//! Polynomials by number: sums are looked up, and values at a few points tell most pairs apart.

use crate::cost::symbolic::{Answer, Comparisons, Domain, Polynomial};
use crate::small_map::SmallMap;

/// Points at which polynomials are evaluated.
const POINTS: usize = 24;

/// More than the values at a point are rounded.
const ROUNDED: f64 = 1e-9;

/// The most pairs that are kept to be put to a solver.
const MOST_ASKED: usize = 1_000;

/// All polynomials of a search.
pub(super) struct Terms {
    pub(super) domain: Domain,
    points: Vec<Vec<f64>>,
    known: Vec<Polynomial>,
    values: Vec<Vec<f64>>,
    numbers: SmallMap<Polynomial, u32>,
    sums: SmallMap<(u32, u32), u32>,
    proofs: SmallMap<(u32, u32), bool>,
    /// The first [`MOST_ASKED`] pairs that the domain was asked about.
    pub(super) asked: Vec<(u32, u32)>,
    /// Pairs that could not be decided.
    pub(super) unknown: usize,
    /// The work that comparisons may do.
    pub(super) work: Comparisons,
}

/// The number of the sum of nothing.
pub(super) const ZERO: u32 = 0;

impl Terms {
    /// Compares within `max_work` products at corners.
    pub(super) fn new(domain: Domain, max_work: u64) -> Terms {
        let points = domain.points(POINTS);
        let mut terms = Terms {
            domain,
            points,
            known: Vec::new(),
            values: Vec::new(),
            numbers: SmallMap::default(),
            sums: SmallMap::default(),
            proofs: SmallMap::default(),
            asked: Vec::new(),
            unknown: 0,
            work: Comparisons::new(max_work),
        };
        terms.number(Polynomial::default());
        terms
    }

    pub(super) fn number(&mut self, polynomial: Polynomial) -> u32 {
        if let Some(&number) = self.numbers.get(&polynomial) {
            return number;
        }
        let number = self.known.len() as u32;
        let values = self.points.iter().map(|point| self.domain.value(&polynomial, point));
        self.values.push(values.collect());
        self.known.push(polynomial.clone());
        self.numbers.insert(polynomial, number);
        number
    }

    pub(super) fn get(&self, number: u32) -> &Polynomial {
        &self.known[number as usize]
    }

    pub(super) fn sum(&mut self, a: u32, b: u32) -> u32 {
        if a == ZERO || b == ZERO {
            return a.max(b);
        }
        let pair = (a.min(b), a.max(b));
        if let Some(&sum) = self.sums.get(&pair) {
            return sum;
        }
        let sum = self.get(a).plus(self.get(b));
        let sum = self.number(sum);
        self.sums.insert(pair, sum);
        sum
    }

    /// Returns a number that is no smaller for a polynomial that is at least another one everywhere.
    pub(super) fn size(&self, number: u32) -> f64 {
        self.values[number as usize].iter().map(|value| (value + 1.0).ln()).sum()
    }

    /// Tells whether `a` is known to be at least `b` for all sizes of the domain.
    pub(super) fn at_least(&mut self, a: u32, b: u32) -> bool {
        if a == b || b == ZERO {
            return true;
        }
        let (at, than) = (&self.values[a as usize], &self.values[b as usize]);
        if a == ZERO || at.iter().zip(than).any(|(a, b)| *a < *b * (1.0 - ROUNDED)) {
            return false;
        }
        if let Some(&known) = self.proofs.get(&(a, b)) {
            return known;
        }
        let (more, less) = (&self.known[a as usize], &self.known[b as usize]);
        let answer = self.domain.at_least_within(more, less, &mut self.work);
        self.unknown += usize::from(answer == Answer::Unknown);
        self.proofs.insert((a, b), answer == Answer::Always);
        if self.asked.len() < MOST_ASKED {
            self.asked.push((a, b));
        }
        answer == Answer::Always
    }
}
