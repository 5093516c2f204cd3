//! Sums of products of lists: by one kernel, or product by product.

use std::sync::Arc;

use decompose_formats::{Csf, Value};

use crate::autoschedule::Scheduler;
use crate::compute::tensor::Tensor;
use crate::compute::{
    Evaluator, Known, LargeStep, Operands, Product, Wanted, known, large_steps, operand,
    permutation, planning_bytes, read_again,
};
use crate::contract::{Operand, Planned, Request, ResultForm, StoredTrees, plan_sum};
use crate::cost::Machine;
use crate::einsum::{Assignment, Summand};
use crate::error::CoreError;

/// A product of a sum that one kernel can compute, and its operands.
#[derive(Debug)]
pub struct Term<V: Value> {
    /// The number before it.
    pub factor: f64,
    /// What is known of it.
    pub known: Known,
    /// The operands, one an input.
    pub tensors: Vec<Tensor<V>>,
}

/// Tells whether one kernel may compute `assignment`: a sum of products of at most two lists, at least one of two.
pub(super) fn may_be_one_kernel<V: Value, E: Evaluator<V>>(
    assignment: &Assignment,
    evaluator: &E,
) -> bool {
    let of_lists = |summand: &Summand| {
        summand.inputs.len() <= 2 && summand.inputs.iter().all(|x| evaluator.is_list(&x.tensor))
    };
    let summands = &assignment.summands;
    summands.len() > 1
        && summands.iter().all(of_lists)
        && summands.iter().any(|summand| summand.inputs.len() > 1)
}

/// Computes the sum of an assignment for which [`may_be_one_kernel`] holds.
///
/// # Errors
///
/// As [`assign`](super::assign).
pub(super) fn sum<V: Value, E: Evaluator<V>>(
    assignment: &Assignment,
    wanted: Wanted,
    stored: &mut StoredTrees<V>,
    evaluator: &mut E,
) -> Result<Tensor<V>, E::Error> {
    stored.want(read_again(assignment, (0, 1), evaluator));
    let mut terms = Vec::with_capacity(assignment.summands.len());
    for at in 0..assignment.summands.len() {
        terms.push(term(assignment, at, (wanted, &*stored), evaluator)?);
    }
    let lists = wanted.form != Some(ResultForm::Dense) && terms.iter().all(Term::is_list);
    let united = if lists { evaluator.sum(&mut terms, stored)? } else { None };
    let sum = match united {
        Some(sum) => sum,
        None => by_products(assignment, terms, stored, evaluator)?,
    };
    stored.want(read_again(assignment, (assignment.summands.len(), 0), evaluator));
    stored.give_up_unwanted();
    Ok(sum)
}

/// Takes the operands of summand number `at`, and counts their patterns.
fn term<V: Value, E: Evaluator<V>>(
    assignment: &Assignment,
    at: usize,
    (wanted, stored): (Wanted, &StoredTrees<V>),
    evaluator: &mut E,
) -> Result<Term<V>, E::Error> {
    let Summand { inputs, factor } = &assignment.summands[at];
    let mut tensors = Vec::with_capacity(inputs.len());
    for access in inputs {
        let tensor = evaluator.operand(&access.tensor)?;
        tensors.push(operand(access, tensor, evaluator)?);
    }
    let operands = inputs.iter().map(|access| Some(Operand::of(access))).collect();
    let product = Product { expr: assignment.product(at), operands, tensors };
    let bytes = planning_bytes(&product.expr, &product.tensors, wanted);
    let count = || known(&product, wanted, stored);
    let known = evaluator.large_step(LargeStep::Count, bytes, count)??;
    Ok(Term { factor: *factor, known, tensors: product.tensors })
}

impl<V: Value> Term<V> {
    /// Tells whether operands and result are lists.
    fn is_list(&self) -> bool {
        let of_lists = self.tensors.iter().all(Tensor::is_sparse);
        of_lists && self.known.is_list()
    }
}

/// Plans the sum of `terms` as one kernel: see [`plan_sum`].
///
/// # Errors
///
/// What the search refuses.
pub fn plan_terms<V: Value>(
    terms: &[Term<V>],
    scheduler: &dyn Scheduler,
    machine: &Machine,
) -> Result<Option<Vec<(usize, Planned)>>, CoreError> {
    let list = |request| Request { result: ResultForm::Sparse, ..request };
    let requests: Option<Vec<Request>> =
        terms.iter().map(|term| term.known.request().map(list)).collect();
    requests.map_or(Ok(None), |requests| plan_sum(&requests, scheduler, machine))
}

/// Multiplies the shorter operand of each of `terms` by the number before the product, which becomes one.
///
/// # Errors
///
/// As [`Evaluator::large_step`].
pub fn scale_terms<V: Value, E: Evaluator<V>>(
    terms: &mut [Term<V>],
    evaluator: &mut E,
) -> Result<(), E::Error> {
    for Term { factor, known, tensors } in terms.iter_mut().filter(|term| term.factor != 1.0) {
        let short = (0..tensors.len()).min_by_key(|&at| tensors[at].stored_elements());
        let short = short.ok_or_else(|| CoreError::Internal("a product of nothing".into()))?;
        let whole = tensors.remove(short);
        tensors.insert(short, large_steps::scaled(whole, *factor, evaluator)?);
        // Trees of the operand have other values.
        known.operands[short] = None;
        *factor = 1.0;
    }
    Ok(())
}

/// Builds the trees of a sum that [`plan_terms`] planned, and uses up `terms`.
///
/// Stored trees are not built again, unless they are of an operand that was multiplied by a factor.
///
/// # Errors
///
/// As [`Planned::build_trees`].
pub fn trees_of_terms<V: Value>(
    planned: &[(usize, Planned)],
    terms: &mut Vec<Term<V>>,
    stored: &mut StoredTrees<V>,
) -> Result<Vec<Vec<Arc<Csf<V>>>>, CoreError> {
    let parted = |term: Term<V>| (term.known.operands, Operands::of(term.tensors).sparse);
    let mut lists: Vec<_> = terms.drain(..).map(parted).collect();
    let build = |(at, plan): &(usize, Planned)| {
        let (operands, own) = &mut lists[*at];
        plan.build_trees(std::mem::take(own), operands, stored)
    };
    planned.iter().map(build).collect()
}

/// Computes each product by a kernel of its own, and adds the results.
fn by_products<V: Value, E: Evaluator<V>>(
    assignment: &Assignment,
    terms: Vec<Term<V>>,
    stored: &mut StoredTrees<V>,
    evaluator: &mut E,
) -> Result<Tensor<V>, E::Error> {
    let mut sum: Option<Tensor<V>> = None;
    for (at, Term { factor, known, mut tensors }) in terms.into_iter().enumerate() {
        let copied = match known.expr.inputs.as_slice() {
            [access] => permutation(access, &known.expr.output),
            _ => None,
        };
        let term = match copied {
            Some(modes) => large_steps::permuted(tensors.remove(0), &modes, evaluator)?,
            None => evaluator.product(&known, tensors, stored)?,
        };
        stored.want(read_again(assignment, (at + 1, 0), evaluator));
        stored.give_up_unwanted();
        let term = large_steps::scaled(term, factor, evaluator)?;
        sum = Some(match sum {
            Some(sum) => large_steps::sum(sum, term, evaluator)?,
            None => term,
        });
    }
    Ok(sum.ok_or_else(|| CoreError::Internal("a sum of nothing".into()))?)
}
