//! What is known of the sizes of a problem.

use crate::cost::symbolic::constraint::{Bounds, Constraint, Product};
use crate::cost::symbolic::polynomial::{Monomial, Polynomial};
use crate::cost::symbolic::range::{Assumption, Factors, Range, Relation, Size};
use crate::cost::symbolic::symbols::Symbols;
use crate::einsum::{Index, IndexSet};

/// The largest extent.
pub(super) const MOST: f64 = 4_294_967_296.0;

/// The sizes for which costs are compared.
///
/// The index of a level that a tree is walked over has two variables: the mean number of children of a node, and how many
/// times more the extent is.  Both are at least one, so that `nnz(B_i) <= nnz(B_ij) <= nnz(B_i)*j` holds in the whole
/// box (the inferred constraints of SparseAuto, section 5.2).  Every other index has its extent.  A level of a later
/// operand over the index of an earlier one has its share.  No product has a variable twice.
///
/// A size whose range is one value is a variable of that value alone: the extent, the non-zeros or the sparsity takes
/// the place of the product that it is.
#[derive(Clone, Debug)]
pub struct Domain {
    /// The variables of each index, by its number.
    indices: Vec<Sizes>,
    /// What each level that is walked puts in the place of extents, by number.
    levels: Vec<Walk>,
    /// The levels of operands whose non-zeros are given, and the variables of these.
    totals: Vec<(u64, u64)>,
    pub(super) bounds: Bounds,
    pub(super) constraints: Vec<Constraint>,
    /// The constraints whose sides are never equal.
    pub(super) strict: Vec<Constraint>,
    /// For which variables a larger value makes products larger: all but shares have values of one or more.
    pub(super) above_one: u64,
}

/// The sets of variables whose products an index stands for.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    /// In a loop over its extent.
    whole: u64,
    /// In a loop over a level.
    walked: u64,
}

/// How levels that are walked change a product.
#[derive(Clone, Copy, Debug)]
enum Walk {
    /// The children of a node take the place of the extent.
    Children(Index),
    /// A share is multiplied.
    Share(usize),
    /// A count takes the place of these extents, or a share is multiplied.
    Count(IndexSet, u64),
}

/// Sets of variables are the bits of a number.
const MOST_VARIABLES: usize = 64;

impl Domain {
    /// Returns all sizes: extents from 1 to 2^32, any sparsity; `None` for more than 64 variables.
    pub fn all(symbols: &Symbols) -> Option<Domain> {
        let mut domain = Domain {
            indices: vec![Sizes::default(); Index::COUNT],
            levels: Vec::new(),
            totals: Vec::new(),
            bounds: Vec::new(),
            constraints: Vec::new(),
            strict: Vec::new(),
            above_one: 0,
        };
        for index in symbols.indices().iter() {
            let variable = domain.variable((1.0, MOST))?;
            domain.indices[index.number()] = Sizes { whole: 1 << variable, walked: 1 << variable };
        }
        for level in symbols.levels() {
            let walk = if level.first {
                let multiple = domain.variable((1.0, MOST))?;
                domain.indices[level.index.number()].whole |= 1 << multiple;
                Walk::Children(level.index)
            } else {
                Walk::Share(domain.variable((1.0 / MOST, 1.0))?)
            };
            domain.levels.push(walk);
        }
        domain.sort_out();
        Some(domain)
    }

    fn variable(&mut self, bounds: (f64, f64)) -> Option<usize> {
        self.bounds.push(bounds);
        (self.bounds.len() <= MOST_VARIABLES).then(|| self.bounds.len() - 1)
    }

    /// Finds the variables whose values are one or more.
    fn sort_out(&mut self) {
        let above = |(v, &(low, _)): (usize, &(f64, f64))| u64::from(low >= 1.0) << v;
        self.above_one = self.bounds.iter().enumerate().map(above).fold(0, |all, bit| all | bit);
    }

    /// Returns the sizes that keep `ranges` and `assumptions`; `None` for more than 64 variables.
    ///
    /// # Errors
    ///
    /// A size that `symbols` lack, or ranges and assumptions that contradict each other.
    pub fn of(
        symbols: &Symbols,
        ranges: &[Range],
        assumptions: &[Assumption],
    ) -> Result<Option<Domain>, String> {
        let Some(mut domain) = Domain::all(symbols) else { return Ok(None) };
        // Extents that are given come before the counts that depend on them.
        let (given, open): (Vec<&Range>, Vec<&Range>) =
            ranges.iter().partition(|range| range.low == range.high);
        let (extents, counts): (Vec<&Range>, Vec<&Range>) =
            given.into_iter().partition(|range| matches!(range.size, Size::Extent(_)));
        for range in extents {
            domain.give_extent(symbols, range)?;
        }
        for range in counts {
            let known = domain.give_total(symbols, range)?;
            if known.is_none() {
                return Ok(None);
            }
        }
        for range in open {
            domain.restrict(symbols, range)?;
        }
        for assumption in assumptions {
            domain.assume(symbols, assumption)?;
        }
        domain.narrow();
        let empty = domain.bounds.iter().any(|(low, high)| *low > *high * (1.0 + 1e-9));
        let broken = |one: &Constraint| !one.may_hold(&domain.bounds);
        if empty || domain.constraints.iter().any(broken) || domain.is_contradicted() {
            return Err("no sizes keep all ranges and assumptions; leave out one of them".into());
        }
        for (low, high) in &mut domain.bounds {
            *high = high.max(*low);
        }
        let Domain { bounds, constraints, .. } = &mut domain;
        constraints.retain(|constraint| !constraint.is_bound(bounds));
        domain.sort_out();
        Ok(Some(domain))
    }

    /// Cuts the box down to where constraints may hold: bounds follow from bounds a few times in a row.
    fn narrow(&mut self) {
        for _ in 0..8 {
            let Domain { bounds, constraints, .. } = self;
            constraints.iter().for_each(|constraint| constraint.tighten(bounds));
        }
    }

    /// Makes the extent of an index a variable of one value.
    fn give_extent(&mut self, symbols: &Symbols, range: &Range) -> Result<(), String> {
        let Size::Extent(name) = &range.size else { return Ok(()) };
        let index = index(symbols, name)?;
        let whole = self.own_extent(index);
        let Sizes { walked, .. } = self.indices[index.number()];
        for v in members(walked | whole) {
            self.bounds[v].1 = self.bounds[v].1.min(range.high);
        }
        for v in members(whole) {
            self.bounds[v].0 = self.bounds[v].0.max(range.low);
        }
        Ok(())
    }

    /// Gives the extent of an index a variable of its own, which is no product with the children of a node.
    fn own_extent(&mut self, index: Index) -> u64 {
        let sizes = &mut self.indices[index.number()];
        if sizes.whole != sizes.walked {
            sizes.whole &= !sizes.walked;
        }
        sizes.whole
    }

    /// Makes the non-zeros of an operand, or their share, a variable of one value; `None` for too many variables.
    fn give_total(&mut self, symbols: &Symbols, range: &Range) -> Result<Option<()>, String> {
        let place = operand(symbols, range.size.operand())?;
        let levels: Vec<_> = symbols.levels().filter(|level| level.operand == place).collect();
        let bits = levels.iter().fold(0u64, |bits, level| bits | 1 << level.number);
        let again = self.totals.iter().any(|(known, _)| *known == bits);
        let Some(last) = levels.last().filter(|_| !again && levels.iter().all(|l| l.first)) else {
            return self.restrict(symbols, range).map(Some);
        };
        let above = levels.iter().filter(|level| level.number != last.number);
        let (extents, walked) = above.fold((IndexSet::EMPTY, 0u64), |(extents, walked), level| {
            (extents.with(level.index), walked | 1 << level.number)
        });
        let parents = self.variables(&Monomial { extents, walked });
        let whole = self.own_extent(last.index);
        let Some(value) = self.variable((range.low, range.high)) else { return Ok(None) };
        let mut total = 1u64 << value;
        if matches!(range.size, Size::Sparsity(_)) {
            let all = levels.iter().map(|level| self.indices[level.index.number()].whole);
            total = all.fold(total, |all, whole| all | whole);
        }
        self.totals.push((bits, total));
        // parents <= total <= parents*extent
        self.constrain((1.0, total), (1.0, parents));
        self.constrain((1.0, parents | whole), (1.0, total));
        Ok(Some(()))
    }

    /// Adds a constraint between two products, without the factors that both have.
    fn constrain(&mut self, more: (f64, u64), less: (f64, u64)) {
        let side =
            |(count, set): (f64, u64), other: u64| vec![(count, members(set & !other).collect())];
        self.constraints.push(Constraint { more: side(more, less.1), less: side(less, more.1) });
    }

    fn restrict(&mut self, symbols: &Symbols, range: &Range) -> Result<(), String> {
        let Range { size, low, high, .. } = range;
        if let Size::Sparsity(name) = size {
            let place = operand(symbols, name.as_deref())?;
            let levels = symbols.levels().filter(|level| level.operand == place);
            let (extents, walked) = levels
                .fold((IndexSet::EMPTY, 0u64), |(extents, walked), level| {
                    (extents.with(level.index), walked | 1 << level.number)
                });
            let cells = self.variables(&Monomial { extents, walked: 0 });
            let total = self.variables(&Monomial { extents, walked });
            self.constrain((1.0, total), (*low, cells));
            self.constrain((*high, cells), (1.0, total));
            return Ok(());
        }
        let vars = self.factors(symbols, size)?;
        if let [v] = vars[..] {
            let bounds = &mut self.bounds[v];
            *bounds = (bounds.0.max(*low), bounds.1.min(*high));
            return Ok(());
        }
        self.constraints
            .push(Constraint { more: vec![(1.0, vars.clone())], less: vec![(*low, vec![])] });
        self.constraints.push(Constraint { more: vec![(*high, vec![])], less: vec![(1.0, vars)] });
        Ok(())
    }

    fn assume(&mut self, symbols: &Symbols, assumption: &Assumption) -> Result<(), String> {
        let side = |factors: &[Factors]| -> Result<Vec<Product>, String> {
            let one = |factors: &Factors| {
                let vars = factors.sizes.iter().map(|size| self.factors(symbols, size));
                Ok((factors.count, vars.collect::<Result<Vec<_>, String>>()?.concat()))
            };
            factors.iter().map(one).collect()
        };
        let (left, right) = (side(&assumption.left)?, side(&assumption.right)?);
        let at_least = Constraint { more: left.clone(), less: right.clone() };
        let at_most = Constraint { more: right, less: left };
        match assumption.relation {
            Relation::Below => self.strict.push(at_most.clone()),
            Relation::Above => self.strict.push(at_least.clone()),
            Relation::AtMost | Relation::AtLeast | Relation::Equal => {}
        }
        if matches!(assumption.relation, Relation::Above | Relation::AtLeast | Relation::Equal) {
            self.constraints.push(at_least);
        }
        if matches!(assumption.relation, Relation::Below | Relation::AtMost | Relation::Equal) {
            self.constraints.push(at_most);
        }
        Ok(())
    }

    /// The variables whose product is a size.
    fn factors(&self, symbols: &Symbols, size: &Size) -> Result<Vec<usize>, String> {
        match size {
            Size::Extent(name) => {
                let whole = self.indices[index(symbols, name)?.number()].whole;
                Ok(members(whole).collect())
            }
            Size::Nonzeros(name) => {
                let operand = operand(symbols, name.as_deref())?;
                let walked = symbols.levels().filter(|level| level.operand == operand);
                let (mut extents, mut bits) = (Vec::new(), 0);
                for level in walked {
                    extents.push(level.index);
                    bits |= 1u64 << level.number;
                }
                let monomial = Monomial { extents: extents.into_iter().collect(), walked: bits };
                Ok(members(self.variables(&monomial)).collect())
            }
            Size::Sparsity(_) => Err("a sparsity has a range only".into()),
        }
    }

    /// Adds levels that stand for prefixes of other trees; `None` for too many variables.
    ///
    /// `new` has the indices of each prefix of which the operand is the first, and all of them.  `known` has the prefixes
    /// of each operand with their levels.  The bounds between these follow from one coordinate more or less:
    /// `nnz(B_i) <= nnz(B_ij) <= nnz(B_i)*j`.
    pub(super) fn with_prefixes(
        mut self,
        new: &[(IndexSet, IndexSet)],
        known: &[Vec<(IndexSet, u64)>],
    ) -> Option<Domain> {
        for &(own, all) in new {
            let mut count = 0;
            if own != IndexSet::EMPTY {
                let most = MOST.powi(own.iter().count() as i32);
                count |= 1 << self.variable((1.0, most))?;
            }
            if own != all {
                count |= 1 << self.variable((1.0 / MOST, 1.0))?;
            }
            self.levels.push(Walk::Count(own, count));
        }
        for prefixes in known {
            for (small, bits) in prefixes {
                for (large, more) in prefixes {
                    let between = |(set, _): &(IndexSet, u64)| {
                        small.is_subset(*set)
                            && set.is_subset(*large)
                            && set != small
                            && set != large
                    };
                    if small == large || !small.is_subset(*large) || prefixes.iter().any(between) {
                        continue;
                    }
                    let inner = self.variables(&Monomial { extents: *small, walked: *bits });
                    let outer = self.variables(&Monomial { extents: *large, walked: *more });
                    let open = Monomial { extents: *large, walked: *bits };
                    let open = self.variables(&open);
                    self.constrain((1.0, outer), (1.0, inner));
                    self.constrain((1.0, open), (1.0, outer));
                }
            }
        }
        self.constraints.retain(|one| one.more != one.less && !one.is_implied(&self.bounds));
        self.narrow();
        for (low, high) in &mut self.bounds {
            *high = high.max(*low);
        }
        self.sort_out();
        Some(self)
    }

    /// Returns the set of the variables whose product is `monomial`.
    pub(super) fn variables(&self, monomial: &Monomial) -> u64 {
        let whole = |set: IndexSet| {
            set.iter().fold(0, |all, index| all | self.indices[index.number()].whole)
        };
        let mut set = whole(monomial.extents);
        let mut walked = monomial.walked;
        for &(bits, total) in &self.totals {
            if walked & bits == bits {
                let levels = members(bits).filter_map(|number| match self.levels.get(number) {
                    Some(Walk::Children(index)) => Some(*index),
                    _ => None,
                });
                set = set & !whole(levels.collect()) | total;
                walked &= !bits;
            }
        }
        for number in members(walked) {
            match self.levels.get(number) {
                Some(Walk::Children(index)) => {
                    let Sizes { whole, walked } = self.indices[index.number()];
                    set = set & !whole | walked;
                }
                Some(Walk::Share(v)) => set |= 1 << v,
                Some(Walk::Count(prefix, count)) => set = set & !whole(*prefix) | count,
                None => {}
            }
        }
        set
    }

    /// Returns the value at a point: a value of each variable.
    pub fn value(&self, polynomial: &Polynomial, point: &[f64]) -> f64 {
        let product = |(monomial, count): &(Monomial, u64)| {
            let set = self.variables(monomial);
            (0..point.len()).filter(|v| set >> v & 1 == 1).fold(*count as f64, |n, v| n * point[v])
        };
        polynomial.terms().iter().map(product).sum()
    }

    /// Returns `count` points of the domain, the same for the same domain: corners and points inside.
    pub fn points(&self, count: usize) -> Vec<Vec<f64>> {
        let mut state = 0x5eed_u64;
        let mut below = |end: u64| {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ z >> 31) % end
        };
        let mut points: Vec<Vec<f64>> = Vec::new();
        for at in 0..16 * count {
            if points.len() >= count {
                break;
            }
            let inside = at % 4 == 3;
            let mut bounds = self.bounds.clone();
            // What is chosen for one variable narrows the others.
            for offset in 0..bounds.len() {
                let v = (offset + at) % bounds.len();
                let (low, high) = (bounds[v].0, bounds[v].1.max(bounds[v].0));
                let x = match (inside, below(2)) {
                    (true, _) => low * (high / low).powf(below(1 << 20) as f64 / (1 << 20) as f64),
                    (false, 0) => low,
                    (false, _) => high,
                };
                bounds[v] = (x.clamp(low, high), x.clamp(low, high));
                self.constraints.iter().for_each(|constraint| constraint.tighten(&mut bounds));
            }
            let point: Vec<f64> = bounds.iter().map(|&(low, high)| (low + high) / 2.0).collect();
            let in_box =
                point.iter().zip(&self.bounds).all(|(x, (low, high))| low <= x && x <= high);
            if in_box && self.constraints.iter().all(|constraint| constraint.holds(&point)) {
                points.push(point);
            }
        }
        points
    }
}

/// The numbers in a set.
fn members(set: u64) -> impl Iterator<Item = usize> {
    (0..MOST_VARIABLES).filter(move |v| set >> v & 1 == 1)
}

/// The index called `name`.
pub(super) fn index(symbols: &Symbols, name: &str) -> Result<Index, String> {
    let mut letters = name.chars();
    let letter = letters.next().filter(|_| letters.next().is_none());
    let index = letter.and_then(Index::named).filter(|&index| symbols.indices().contains(index));
    index.ok_or_else(|| {
        let have: Vec<String> = symbols.indices().iter().map(|index| index.to_string()).collect();
        let have = have.join(", ");
        format!("there is no index `{name}`; the indices are {have}")
    })
}

/// The place of a sparse operand; of the first one without a name.
pub(super) fn operand(symbols: &Symbols, name: Option<&str>) -> Result<usize, String> {
    let Some(name) = name else {
        return (symbols.operands() > 0).then_some(0).ok_or_else(|| "no operand is sparse".into());
    };
    symbols.operand(name).ok_or_else(|| {
        let have = symbols.names().collect::<Vec<_>>().join(", ");
        format!("there is no sparse operand `{name}`; the sparse operands are {have}")
    })
}
