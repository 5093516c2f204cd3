//! Products in several steps: which intermediate tensors are worth storing.
//!
//! One kernel computes a product with buffers no larger than a row.  An intermediate that many of its loops would
//! compute again, as `T(j,r) = H(j,f) * W(f,r)` inside the non-zeros of `Y(i,r) = X(i,j) * T(j,r)`, is stored whole
//! instead: it becomes a step of its own, and its result an operand of what is left.

use std::collections::BTreeMap;

use decompose_formats::PatternCounts;

use crate::autoschedule::{OrderedCandidate, SearchLimits, default_scheduler, storages};
use crate::contract::{Appended, Operand, Request, ResultForm, SparseInput, element_bytes};
use crate::cost::Machine;
use crate::einsum::{Access, Expr, Extents, Index, IndexSet};
use crate::schedule::{JoinCounts, OutputForm, Pattern, Problem, StoredTree, Storing};
use crate::sweep::TreeLayout;

/// A product whose result becomes an operand.
#[derive(Clone, Debug)]
pub struct Step {
    /// The inputs that it multiplies, ascending.
    pub inputs: Vec<usize>,
    /// What is known of their product.
    pub known: Known,
}

/// What is known of the operands of a product.
#[derive(Clone, Debug)]
pub struct Known {
    /// The product.
    pub expr: Expr,
    /// The extents of its indices.
    pub extents: Extents,
    /// The pattern of each input; `None` for a dense one.
    pub patterns: Vec<Option<Pattern>>,
    /// What each input is; `None` for the result of an earlier step.
    pub operands: Vec<Option<Operand>>,
    /// The trees of each input that there are.
    pub trees: Vec<Vec<TreeLayout>>,
    /// Joins of sparse inputs, ascending, that were counted, over the indices that all else has: see [`Known::kept`].
    pub joins: BTreeMap<Vec<usize>, JoinCounts>,
    /// Size of a value in bytes.
    pub value_bytes: usize,
    /// How the result is wanted.
    pub form: ResultForm,
    /// The most memory of a result that is stored in between, in bytes.
    pub most_bytes: u64,
}

/// The most inputs of which all ways in steps are compared; of more, those that are best step by step.
const ALL_WAYS: usize = 4;

/// The most kernels that are searched for one decision.
const MOST_SEARCHES: usize = 64;

/// The share of the time of one kernel below which a way in steps is taken: predictions of both are not that exact.
const WORTH: f64 = 0.7;

/// Returns the step that comes first, or `None` if one kernel is predicted to be the best.
///
/// The steps compared multiply two operands each.  Every kernel is searched within the usual limits, at most 64 of
/// them; of two operands there is nothing to decide.
pub fn first_step(known: &Known) -> Option<Step> {
    let mut left = MOST_SEARCHES;
    if known.expr.inputs.len() < 3 {
        return None;
    }
    let whole = known.kernel_seconds(&mut left).unwrap_or(f64::INFINITY);
    let (seconds, step) = known.best(whole, &mut left);
    step.filter(|_| seconds < WORTH * whole)
}

impl Known {
    /// Returns the predicted seconds of the best way, of which one kernel takes `whole`, and its first step if it has several.
    fn best(&self, whole: f64, left: &mut usize) -> (f64, Option<Step>) {
        let inputs = self.expr.inputs.len();
        let mut best = (whole, None);
        if inputs < 3 {
            return best;
        }
        // A step is worth nothing without a search for what is left after it.
        let most = left.saturating_sub(1);
        let pairs = (1..inputs).flat_map(|b| (0..b).map(move |a| vec![a, b]));
        let parts = pairs.filter_map(|pair| {
            let part = self.part(&pair).filter(|part| part.result_bytes() <= self.most_bytes)?;
            Some(Step { inputs: pair, known: part })
        });
        let parts: Vec<Step> = parts.take(most + 1).collect();
        if parts.len() > most {
            *left = 0;
            return best;
        }
        let priced = parts.into_iter().filter_map(|step| {
            let seconds = step.known.kernel_seconds(left)?;
            Some((seconds, step))
        });
        let mut priced: Vec<(f64, Step)> = priced.collect();
        priced.sort_by(|a, b| a.0.total_cmp(&b.0));
        if inputs > ALL_WAYS {
            priced.truncate(1);
        }
        for (seconds, step) in priced {
            if seconds >= best.0 {
                break;
            }
            let rest = self.after(&step);
            let whole = rest.kernel_seconds(left).unwrap_or(f64::INFINITY);
            let rest = rest.best(whole, left).0;
            if seconds + rest < best.0 {
                best = (seconds + rest, Some(step));
            }
        }
        best
    }

    /// Returns the product of some inputs over the indices that all else has; `None` if they share none, of which
    /// the result would be larger than both.
    fn part(&self, inputs: &[usize]) -> Option<Known> {
        let own = |input: &usize| self.expr.inputs[*input].set();
        let shared = inputs.iter().map(own).reduce(|a, b| a & b)?;
        if shared.is_empty() {
            return None;
        }
        let kept = self.kept(inputs);
        let order = inputs.iter().flat_map(|&input| &self.expr.inputs[input].indices);
        let mut indices: Vec<Index> = Vec::new();
        for &index in order.filter(|index| kept.contains(**index)) {
            if !indices.contains(&index) {
                indices.push(index);
            }
        }
        let output = Access { tensor: self.name(), indices };
        let factors = inputs.iter().map(|&input| self.expr.inputs[input].clone()).collect();
        let patterns = inputs.iter().map(|&input| self.patterns[input].clone()).collect();
        let operands = inputs.iter().map(|&input| self.operands[input].clone()).collect();
        let trees = inputs.iter().map(|&input| self.trees[input].clone()).collect();
        let expr = Expr { output, inputs: factors };
        let joins = self.joins_of(|input| inputs.iter().position(|&own| own == input));
        let form = ResultForm::Dense;
        let mut part = Known { expr, patterns, operands, trees, joins, form, ..self.clone() };
        part.form = part.suited_form();
        Some(part)
    }

    /// Returns what was counted of inputs that `place` keeps, by their new places.
    fn joins_of(&self, place: impl Fn(usize) -> Option<usize>) -> BTreeMap<Vec<usize>, JoinCounts> {
        let kept = self.joins.iter().filter_map(|(inputs, &counts)| {
            let mut inputs: Vec<usize> =
                inputs.iter().map(|&input| place(input)).collect::<Option<_>>()?;
            inputs.sort_unstable();
            Some((inputs, counts))
        });
        kept.collect()
    }

    /// Returns the indices of some inputs that the output or another input has: those of their product.
    pub fn kept(&self, inputs: &[usize]) -> IndexSet {
        let own = |input: usize| self.expr.inputs[input].set();
        let all = inputs.iter().fold(IndexSet::EMPTY, |set, &input| set | own(input));
        let others = (0..self.expr.inputs.len()).filter(|input| !inputs.contains(input));
        all & others.fold(self.expr.output.set(), |set, input| set | own(input))
    }

    /// Returns a name that no operand has.
    fn name(&self) -> String {
        let taken = |name: &String| {
            self.expr.inputs.iter().chain([&self.expr.output]).any(|own| own.tensor == *name)
        };
        let mut names = (1..).map(|number| format!("P{number}"));
        names.find(|name| !taken(name)).unwrap_or_default()
    }

    /// Returns what is left after `step`, whose result is the last operand.
    pub fn after(&self, step: &Step) -> Known {
        let mut rest = self.clone();
        let kept: Vec<usize> =
            (0..self.expr.inputs.len()).filter(|input| !step.inputs.contains(input)).collect();
        rest.joins = self.joins_of(|input| kept.iter().position(|&own| own == input));
        for &input in step.inputs.iter().rev() {
            rest.expr.inputs.remove(input);
            rest.patterns.remove(input);
            rest.operands.remove(input);
            rest.trees.remove(input);
        }
        rest.expr.inputs.push(step.known.expr.output.clone());
        rest.patterns.push(step.known.result_pattern());
        rest.operands.push(None);
        rest.trees.push(Vec::new());
        rest
    }

    /// Returns the pattern that the result is expected to have, spread evenly; `None` if it is dense.
    fn result_pattern(&self) -> Option<Pattern> {
        let problem = self.problem()?;
        let indices = &self.expr.output.indices;
        if problem.has_pattern_output() {
            let pattern = problem.leader()?.pattern.clone();
            return Some(pattern);
        }
        if problem.output == OutputForm::Dense {
            return None;
        }
        let extents: Vec<u64> = indices.iter().map(|&index| self.extents.of(index)).collect();
        let elements = problem.assembled_elements();
        Some(Pattern::of(&PatternCounts::uniform(&extents, elements), indices))
    }

    /// Asks for one kernel; `None` if no operand is sparse.
    pub fn request(&self) -> Option<Request> {
        let patterns = self.patterns.iter().enumerate();
        let sparse: Vec<SparseInput> = patterns
            .filter_map(|(input, pattern)| Some(SparseInput { input, pattern: pattern.clone()? }))
            .collect();
        if sparse.is_empty() {
            return None;
        }
        let inputs: Vec<usize> = sparse.iter().map(|own| own.input).collect();
        // Where a dense operand has more of their indices, other elements were counted.
        let same = self.kept(&inputs).is_subset(self.expr.output.set());
        let join = self.joins.get(&inputs).copied().filter(|_| same);
        Some(Request {
            expr: self.expr.clone(),
            extents: self.extents.clone(),
            sparse,
            value_bytes: self.value_bytes,
            result: self.form,
            join,
            storing: Some(self.storing()),
        })
    }

    /// Returns the trees that there are, by the indices of their levels.
    fn storing(&self) -> Storing {
        let of = |(input, layouts): (usize, &Vec<TreeLayout>)| {
            let indices = &self.expr.inputs[input].indices;
            let tree = |layout: &TreeLayout| StoredTree { input, format: layout.format(indices) };
            layouts.iter().map(tree).collect::<Vec<_>>()
        };
        Storing { trees: self.trees.iter().enumerate().flat_map(of).collect() }
    }

    fn problem(&self) -> Option<Problem> {
        self.request().map(|request| request.problem_on(&[]))
    }

    /// Returns the predicted seconds of one kernel and of the trees that it needs; `None` if no more are to be searched,
    /// or there is none.
    fn kernel_seconds(&self, left: &mut usize) -> Option<f64> {
        *left = left.checked_sub(1)?;
        let machine = Machine::here();
        let Some(problem) = self.problem() else {
            let all = self.expr.all().iter().map(|index| self.extents.of(index) as f64);
            let cells = all.product::<f64>();
            // A step of a matrix product multiplies as many pairs as fit a register.
            return Some(cells * machine.flop_pair);
        };
        let limits = SearchLimits::default();
        let found = default_scheduler()
            .search_storages(&problem, &storages(&problem), machine, &limits)
            .ok()?;
        found.candidates.first().map(OrderedCandidate::total)
    }

    /// Returns the bytes of the result while the next step is built from it: twice, as it is made and as it is read.
    fn result_bytes(&self) -> u64 {
        let problem = self.problem();
        let once = match problem.filter(|problem| problem.output != OutputForm::Dense) {
            Some(problem) => {
                let element =
                    element_bytes(&self.expr, &self.extents, self.value_bytes, Appended::InOrder);
                problem.assembled_elements().saturating_mul(element)
            }
            None => {
                let extents = self.expr.output.indices.iter().map(|&index| self.extents.of(index));
                extents.fold(self.value_bytes as u64, u64::saturating_mul)
            }
        };
        once.saturating_mul(2)
    }

    /// Tells whether the result is a list: as is wanted, or since it has the pattern of an operand.
    pub(super) fn is_list(&self) -> bool {
        let has_pattern = |problem: Problem| problem.has_pattern_output();
        self.form == ResultForm::Sparse || self.problem().is_some_and(has_pattern)
    }

    /// Returns the form that suits the result: see [`suited_form`].
    pub fn suited_form(&self) -> ResultForm {
        self.problem().map_or(ResultForm::Dense, |problem| suited_form(&problem))
    }
}

/// Cells of a result for each of its elements from which on a list takes less time and memory than an array.
const SPARSE_CELLS: u64 = 8;

/// Returns the form in which a result is best kept: a list if few of its cells are expected to be met.
pub fn suited_form(problem: &Problem) -> ResultForm {
    let output = problem.expr.output.set();
    let cells = problem.buffer_bytes(output) / problem.value_bytes as u64;
    let few = problem.assembled_elements().saturating_mul(SPARSE_CELLS) < cells;
    match !output.is_empty() && !problem.has_pattern_output() && few {
        true => ResultForm::Sparse,
        false => ResultForm::Dense,
    }
}
