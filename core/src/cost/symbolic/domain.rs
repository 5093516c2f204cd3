//! What is known of the sizes of a problem.

use crate::cost::symbolic::constraint::{Bounds, Constraint, Product};
use crate::cost::symbolic::polynomial::{Monomial, Polynomial};
use crate::cost::symbolic::range::{Assumption, Factors, Range, Relation, Size};
use crate::cost::symbolic::symbols::Symbols;
use crate::einsum::Index;

/// The largest extent.
pub(super) const MOST: f64 = 4_294_967_296.0;

/// The sizes for which costs are compared.
///
/// The index of a level that a tree is walked over has two variables: the mean number of children of a node, and how many
/// times more the extent is.  Both are at least one, so that `nnz(B_i) <= nnz(B_ij) <= nnz(B_i)*j` holds in the whole
/// box (the inferred constraints of SparseAuto, section 5.2).  Every other index has its extent.  A level of a later
/// operand over the index of an earlier one has its share.  No product has a variable twice.
#[derive(Clone, Debug)]
pub struct Domain {
    /// The variables of each index, by its number: the extent, or children and their multiple.
    indices: Vec<(Option<usize>, Option<usize>)>,
    /// The variable of each level: that of the multiple, or of the share.
    levels: Vec<LevelVariable>,
    pub(super) bounds: Bounds,
    pub(super) constraints: Vec<Constraint>,
    /// For which variables a larger value makes products larger: all but shares have values of one or more.
    pub(super) above_one: u64,
}

/// How a level that is walked changes a product.
#[derive(Clone, Copy, Debug)]
enum LevelVariable {
    /// It takes away the multiple.
    Multiple(usize),
    /// It multiplies by a share.
    Share(usize),
}

/// Sets of variables are the bits of a number.
const MOST_VARIABLES: usize = 64;

impl Domain {
    /// Returns all sizes: extents from 1 to 2^32, any sparsity; `None` for more than 64 variables.
    pub fn all(symbols: &Symbols) -> Option<Domain> {
        let mut domain = Domain {
            indices: vec![(None, None); Index::COUNT],
            levels: Vec::new(),
            bounds: Vec::new(),
            constraints: Vec::new(),
            above_one: 0,
        };
        for index in symbols.indices().iter() {
            let variable = domain.variable((1.0, MOST));
            domain.indices[index.number()].0 = Some(variable);
        }
        for level in symbols.levels() {
            let variable = if level.first {
                let multiple = domain.variable((1.0, MOST));
                domain.indices[level.index.number()].1 = Some(multiple);
                LevelVariable::Multiple(multiple)
            } else {
                LevelVariable::Share(domain.variable((1.0 / MOST, 1.0)))
            };
            domain.levels.push(variable);
        }
        let above = |(v, &(low, _)): (usize, &(f64, f64))| u64::from(low >= 1.0) << v.min(63);
        domain.above_one =
            domain.bounds.iter().enumerate().map(above).fold(0, |all, bit| all | bit);
        (domain.bounds.len() <= MOST_VARIABLES).then_some(domain)
    }

    fn variable(&mut self, bounds: (f64, f64)) -> usize {
        self.bounds.push(bounds);
        self.bounds.len() - 1
    }

    /// Returns the sizes that keep `ranges` and `assumptions`; `None` for more than 64 variables.
    ///
    /// # Errors
    ///
    /// A size that `symbols` lack, or ranges that contradict each other.
    pub fn of(
        symbols: &Symbols,
        ranges: &[Range],
        assumptions: &[Assumption],
    ) -> Result<Option<Domain>, String> {
        let Some(mut domain) = Domain::all(symbols) else { return Ok(None) };
        for range in ranges {
            domain.restrict(symbols, range)?;
        }
        for assumption in assumptions {
            domain.assume(symbols, assumption)?;
        }
        // Bounds follow from bounds a few times in a row.
        for _ in 0..8 {
            let Domain { bounds, constraints, .. } = &mut domain;
            constraints.iter().for_each(|constraint| constraint.tighten(bounds));
        }
        let empty = domain.bounds.iter().any(|(low, high)| *low > *high * (1.0 + 1e-9));
        if empty || !domain.constraints.iter().all(|one| one.may_hold(&domain.bounds)) {
            return Err("no sizes keep all ranges and assumptions".into());
        }
        for (low, high) in &mut domain.bounds {
            *high = high.max(*low);
        }
        Ok(Some(domain))
    }

    fn restrict(&mut self, symbols: &Symbols, range: &Range) -> Result<(), String> {
        let Range { size, low, high } = range;
        if let Size::Sparsity(name) = size {
            let (above, below) = self.sparsity(symbols, name.as_deref())?;
            // share*... >= low*multiple*...
            self.constraints.push(Constraint {
                more: vec![(1.0, above.clone())],
                less: vec![(*low, below.clone())],
            });
            self.constraints
                .push(Constraint { more: vec![(*high, below)], less: vec![(1.0, above)] });
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
        if assumption.relation != Relation::AtMost {
            self.constraints.push(Constraint { more: left.clone(), less: right.clone() });
        }
        if assumption.relation != Relation::AtLeast {
            self.constraints.push(Constraint { more: right, less: left });
        }
        Ok(())
    }

    /// The variables whose product is a size.
    fn factors(&self, symbols: &Symbols, size: &Size) -> Result<Vec<usize>, String> {
        match size {
            Size::Extent(letter) => {
                let index =
                    Index::named(*letter).filter(|&index| symbols.indices().contains(index));
                let index = index.ok_or_else(|| {
                    let have: String =
                        symbols.indices().iter().map(|index| index.letter()).collect();
                    format!("there is no index `{letter}`; the indices are {have}")
                })?;
                let (base, multiple) = self.indices[index.number()];
                Ok(base.into_iter().chain(multiple).collect())
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
                let set = self.variables(&monomial);
                Ok((0..MOST_VARIABLES).filter(|v| set >> v & 1 == 1).collect())
            }
            Size::Sparsity(_) => Err("a sparsity has a range only".into()),
        }
    }

    /// The variables whose product, divided by that of the second ones, is the sparsity of an operand.
    fn sparsity(
        &self,
        symbols: &Symbols,
        name: Option<&str>,
    ) -> Result<(Vec<usize>, Vec<usize>), String> {
        let operand = operand(symbols, name)?;
        let (mut above, mut below) = (Vec::new(), Vec::new());
        for level in symbols.levels().filter(|level| level.operand == operand) {
            match self.levels[level.number as usize] {
                LevelVariable::Multiple(v) => below.push(v),
                LevelVariable::Share(v) => above.push(v),
            }
        }
        Ok((above, below))
    }

    /// Returns the set of the variables whose product is `monomial`.
    pub(super) fn variables(&self, monomial: &Monomial) -> u64 {
        let mut set = 0u64;
        for index in monomial.extents.iter() {
            let (base, multiple) = self.indices[index.number()];
            set = base.into_iter().chain(multiple).fold(set, |set, v| set | 1 << v);
        }
        for (number, level) in self.levels.iter().enumerate() {
            if monomial.walked >> number & 1 == 1 {
                match *level {
                    LevelVariable::Multiple(v) => set &= !(1 << v),
                    LevelVariable::Share(v) => set |= 1 << v,
                }
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

/// The place of a sparse operand; of the first one without a name.
fn operand(symbols: &Symbols, name: Option<&str>) -> Result<usize, String> {
    let Some(name) = name else {
        return (symbols.operands() > 0).then_some(0).ok_or_else(|| "no operand is sparse".into());
    };
    symbols.operand(name).ok_or_else(|| {
        let have = symbols.names().collect::<Vec<_>>().join(", ");
        format!("there is no sparse operand `{name}`; the sparse operands are {have}")
    })
}
