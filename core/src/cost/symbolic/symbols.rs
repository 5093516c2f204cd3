//! The variables of the costs of a problem: their names, their values, and how loops walk levels.

use crate::cost::symbolic::polynomial::{Monomial, Polynomial};
use crate::einsum::{Index, IndexSet};
use crate::schedule::Problem;

/// The extents of a problem, and the share of the coordinates of each level of its sparse operands that occurs below a node
/// of the level above.
#[derive(Clone, Debug)]
pub struct Symbols {
    indices: IndexSet,
    operands: Vec<Operand>,
}

/// The levels of a sparse operand.
#[derive(Clone, Debug)]
struct Operand {
    input: usize,
    name: String,
    levels: Vec<Index>,
    /// The number of the first level.
    first: u32,
    /// Whether an earlier operand is the same tensor on the same tree, whose levels these are.
    again: bool,
    /// The input that it is, in whatever order a tensor that is multiplied with itself is listed.
    stands_for: usize,
}

/// A level by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// The operand, by place in the problem's list.
    pub(super) operand: usize,
    pub(super) number: u32,
    pub(super) index: Index,
    /// Whether no earlier operand has a level of this index.
    pub(super) first: bool,
}

/// Sets of levels are the bits of a number.
const MOST_LEVELS: usize = 64;

impl Symbols {
    /// Names the variables of `problem`; `None` if its sparse operands have more than 64 levels together.
    pub fn of(problem: &Problem) -> Option<Symbols> {
        let names = problem.expr.operand_names();
        let mut first = 0;
        let mut operands = Vec::new();
        for (at, x) in problem.sparse.iter().enumerate() {
            let (name, levels) = (names[x.input].clone(), x.levels().to_vec());
            let mut earlier = problem.sparse[..at].iter().zip(&operands);
            let twin = earlier.find(|(y, _)| problem.is_again(x, y) && x.levels() == y.levels());
            let twin = twin.map(|(_, y): (_, &Operand)| y.first);
            let (own, again) = (twin.unwrap_or(first), twin.is_some());
            let same = |input: &usize| problem.expr.inputs[*input] == problem.expr.inputs[x.input];
            let inputs: Vec<usize> =
                (0..problem.expr.inputs.len()).filter(|input| same(input)).collect();
            let before = operands.iter().filter(|y: &&Operand| !y.again && same(&y.input)).count();
            let stands_for = inputs.get(before).copied().unwrap_or(x.input);
            let input = x.input;
            operands.push(Operand { input, name, levels, first: own, again, stands_for });
            first += if again { 0 } else { x.levels().len() as u32 };
        }
        let all = problem.expr.all();
        let indices =
            problem.sparse.iter().flat_map(|x| x.levels()).copied().collect::<IndexSet>() | all;
        (first as usize <= MOST_LEVELS).then_some(Symbols { indices, operands })
    }

    /// Returns all indices.
    pub fn indices(&self) -> IndexSet {
        self.indices
    }

    /// Returns the place of the sparse operand called `name`.
    pub(super) fn operand(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|operand| operand.name == name && !operand.again)
    }

    pub(super) fn operands(&self) -> usize {
        self.operands.len()
    }

    /// Returns the names of the sparse operands.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.operands.iter().filter(|operand| !operand.again).map(|operand| operand.name.as_str())
    }

    /// Returns all levels of all sparse operands.
    pub(super) fn levels(&self) -> impl Iterator<Item = Level> + '_ {
        let mut seen = IndexSet::EMPTY;
        let of = |(operand, x): (usize, &Operand)| {
            let (first, levels) = (x.first, x.levels.clone());
            levels.into_iter().zip(first..).map(move |(index, number)| (operand, index, number))
        };
        let own = self.operands.iter().enumerate().filter(|(_, x)| !x.again);
        own.flat_map(of).map(move |(operand, index, number)| {
            let first = !seen.contains(index);
            seen = seen.with(index);
            Level { operand, number, index, first }
        })
    }

    /// Returns what is walked of each sparse operand: which input it is, and its first levels.
    pub(super) fn prefixes(&self, walked: u64) -> impl Iterator<Item = (usize, &[Index])> {
        let own = self.operands.iter().filter(|x| !x.again);
        own.map(move |x| (x.stands_for, &x.levels[..x.walked(walked)]))
    }

    /// Returns the bits of the first `count` levels of an operand that is input `input`.
    pub(super) fn first_levels(&self, input: usize, count: usize) -> u64 {
        let x = self.operands.iter().find(|x| !x.again && x.stands_for == input);
        x.map_or(0, |x| ((1u64 << count) - 1) << x.first)
    }

    /// Returns the index of the next level of a sparse operand, of which `walked` are walked; `None` behind the last.
    pub fn next_level(&self, operand: usize, walked: u64) -> Option<Index> {
        let x = &self.operands[operand];
        x.levels.get(x.walked(walked)).copied()
    }

    /// Returns the levels walked inside one more loop, over `index`.
    pub fn walk(&self, walked: u64, index: Index) -> u64 {
        let step = |all: u64, x: &Operand| {
            let level = x.walked(walked);
            match x.levels.get(level) {
                Some(&next) if next == index => all | 1 << (x.first as usize + level),
                _ => all,
            }
        };
        self.operands.iter().fold(walked, step)
    }

    /// Returns how often what stands inside loops over `order`, outermost first, runs.
    pub fn iterations(&self, order: &[Index]) -> Monomial {
        let walked = order.iter().fold(0, |walked, &index| self.walk(walked, index));
        Monomial { extents: order.iter().copied().collect(), walked }
    }

    /// Returns the value of the polynomial for the extents and counts of `problem`.
    pub fn value(&self, polynomial: &Polynomial, problem: &Problem) -> f64 {
        let shares = self.shares(problem);
        let product = |(monomial, count): &(Monomial, u64)| {
            let extents = monomial.extents.iter().map(|index| extent(problem, index));
            let walked = (0..MOST_LEVELS).filter(|n| monomial.walked >> n & 1 == 1);
            *count as f64 * extents.product::<f64>() * walked.map(|n| shares[n]).product::<f64>()
        };
        // The sum of no numbers is -0.
        polynomial.terms().iter().map(product).fold(0.0, |sum, product| sum + product)
    }

    /// Returns the share of each level, by number.
    fn shares(&self, problem: &Problem) -> Vec<f64> {
        let mut shares = Vec::new();
        for (x, operand) in problem.sparse.iter().zip(&self.operands).filter(|(_, x)| !x.again) {
            let mut above = 1.0;
            for (level, &index) in operand.levels.iter().enumerate() {
                // Of a level inside a fused one too: the polynomials say how often each part of a nest runs.
                let prefix = x.levels()[..=level].iter().copied().collect();
                let nodes = x.pattern.count(prefix, &problem.extents);
                shares.push(nodes as f64 / (above * extent(problem, index).max(1.0)));
                above = (nodes as f64).max(1.0);
            }
        }
        shares
    }

    /// Writes a polynomial in the manner of the paper: `l*nnz(B_ij) + k*m`; no term is `0`.
    pub fn text(&self, polynomial: &Polynomial) -> String {
        let product = |(monomial, count): &(Monomial, u64)| {
            let factors = self.factors(monomial);
            match (*count, factors.is_empty()) {
                (count, true) => count.to_string(),
                (1, false) => factors.join("*"),
                (count, false) => format!("{count}*{}", factors.join("*")),
            }
        };
        let products: Vec<String> = polynomial.terms().iter().map(product).collect();
        if products.is_empty() { "0".to_owned() } else { products.join(" + ") }
    }

    fn factors(&self, monomial: &Monomial) -> Vec<String> {
        let mut open = monomial.extents;
        let mut counts = Vec::new();
        for x in self.operands.iter().filter(|x| !x.again) {
            let walked = &x.levels[..x.walked(monomial.walked)];
            let set: IndexSet = walked.iter().copied().collect();
            let letters: String = walked.iter().map(|index| index.letter()).collect();
            if walked.is_empty() {
                continue;
            }
            let what = if set.is_subset(open) { "nnz" } else { "density" };
            counts.push(format!("{what}({}_{letters})", x.name));
            if what == "nnz" {
                open = open - set;
            }
        }
        open.iter().map(|index| index.to_string()).chain(counts).collect()
    }

    /// Tells whether a loop over `index` inside `walked` walks a level below a root: a loop over whatever a node has.
    pub fn is_below_root(&self, walked: u64, index: Index) -> bool {
        self.operands.iter().any(|x| {
            let level = x.walked(walked);
            level > 0 && x.levels.get(level) == Some(&index)
        })
    }

    /// Returns which input of the expression a sparse operand is.
    pub fn input(&self, operand: usize) -> usize {
        self.operands[operand].input
    }
}

/// Numbers of blocks are counted by the nodes of their level alone.
fn extent(problem: &Problem, index: Index) -> f64 {
    if index == Index::BLOCK { 1.0 } else { problem.extents.of(index) as f64 }
}

impl Operand {
    /// Returns how many levels are walked.
    fn walked(&self, walked: u64) -> usize {
        let own = walked.checked_shr(self.first).unwrap_or(0);
        (own.trailing_ones() as usize).min(self.levels.len())
    }
}
