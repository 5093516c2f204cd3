//! Assignments of tensors: sums of products, from operands to the result.
//!
//! ```text
//! assignment -> products -> steps, each one kernel      X(i,j) * Y(j,k) * Z(k,l) in one step or two
//!            -> sum of their results -> function of each element
//! ```
//!
//! [`compute`] is the front door for one expression, [`compute_seen`] tells of its kernels too; [`assign`] lets the
//! caller run the kernels.

mod dense;
mod large_steps;
mod product;
mod steps;
mod sum;
mod tensor;

use std::collections::{BTreeMap, BTreeSet};

use decompose_formats::{Coo, PatternCounts, Value};

use crate::autoschedule::default_scheduler;
use crate::contract::{
    Contraction, Operand, Planned, ResultForm, StoredTrees, count_join, join_bytes,
};
use crate::cost::Machine;
use crate::einsum::{Access, Assignment, Expr, Extents};
use crate::error::CoreError;
use crate::runtime::Toolchain;
use crate::schedule::{JoinCounts, Pattern};

pub use dense::{contract_dense, dense_bytes};
use product::{plan_product, run_product};
use sum::{may_be_one_kernel, sum as sum_of_lists};
use tensor::Elements;

pub use large_steps::LargeStep;
pub use product::{Operands, product, run};
pub use steps::{Known, Step, first_step, suited_form};
pub use sum::{Term, plan_terms, scale_terms, trees_of_terms};
pub use tensor::Tensor;

/// Computes an expression of tensors, given by name.
///
/// The result is a list where it has the pattern of an operand, or where few of its cells are expected to be met, and
/// an array otherwise.  Kernels are searched, compiled with the C compiler of the machine, and kept for later runs.
///
/// # Errors
///
/// A text that is no expression, an operand that is missing or does not fit, too little memory.
///
/// # Example
///
/// ```
/// use decompose_core::compute::{Tensor, compute};
/// use decompose_formats::{Coo, DenseTensor};
/// use ndarray::arr2;
///
/// let coords = vec![vec![0u32, 1].into(), vec![1u32, 0].into()];
/// let x = Coo::new(vec![2, 2], coords, vec![2.0, 3.0])?;
/// let y: DenseTensor<f64> = arr2(&[[1.0, 4.0], [5.0, 6.0]]).into_dyn();
/// let operands = [("X", Tensor::Sparse(x)), ("Y", Tensor::Dense(y.clone()))];
/// let z = compute("Z(i,k) = X(i,j) * Y(j,k) - 2 * Y(i,k)", &operands)?.into_dense();
/// assert_eq!(z, arr2(&[[8.0, 4.0], [-7.0, 0.0]]).into_dyn());
/// # Ok::<(), decompose_core::error::CoreError>(())
/// ```
pub fn compute<V: Value>(
    text: &str,
    operands: &[(&str, Tensor<V>)],
) -> Result<Tensor<V>, CoreError> {
    compute_seen(text, operands, |_, _| ())
}

/// As [`compute`]; `see` hears of each product before it is computed: what is known of it, and its schedule unless it is one of
/// dense matrices.
///
/// # Errors
///
/// As [`compute`].
pub fn compute_seen<V: Value>(
    text: &str,
    operands: &[(&str, Tensor<V>)],
    see: impl FnMut(&Known, Option<&Planned>),
) -> Result<Tensor<V>, CoreError> {
    let assignment: Assignment = text.parse()?;
    let mut kernels = Kernels { operands, see, toolchain: Toolchain::detect() };
    assign(&assignment, Wanted::default(), &mut StoredTrees::default(), &mut kernels)
}

/// Operands by name, and kernels of the fastest schedules.
struct Kernels<'a, V: Value, See> {
    operands: &'a [(&'a str, Tensor<V>)],
    /// Hears of each kernel.
    see: See,
    toolchain: Toolchain,
}

impl<V: Value, See: FnMut(&Known, Option<&Planned>)> Evaluator<V> for Kernels<'_, V, See> {
    type Error = CoreError;

    fn operand(&mut self, name: &str) -> Result<Tensor<V>, CoreError> {
        let found = self.operands.iter().find(|(own, _)| *own == name);
        let why = "it is not among the operands".to_owned();
        let (_, tensor) =
            found.ok_or_else(|| CoreError::Operand { operand: name.to_owned(), why })?;
        sorted(tensor.clone())
    }

    fn is_list(&self, name: &str) -> bool {
        self.operands.iter().any(|(own, tensor)| *own == name && tensor.is_sparse())
    }

    fn product(
        &mut self,
        known: &Known,
        tensors: Vec<Tensor<V>>,
        stored: &mut StoredTrees<V>,
    ) -> Result<Tensor<V>, CoreError> {
        let planned = plan_product(known, default_scheduler())?;
        (self.see)(known, planned.as_ref());
        run_product(known, planned.as_ref(), tensors, stored, &self.toolchain)
    }

    fn sum(
        &mut self,
        terms: &mut Vec<Term<V>>,
        stored: &mut StoredTrees<V>,
    ) -> Result<Option<Tensor<V>>, CoreError> {
        let planned = plan_terms(terms, default_scheduler(), Machine::here())?;
        let Some(planned) = planned else { return Ok(None) };
        for (at, plan) in &planned {
            (self.see)(&terms[*at].known, Some(plan));
        }
        scale_terms(terms, self)?;
        let trees = trees_of_terms(&planned, terms, stored)?;
        let mut kernel = Contraction::summing(&planned, trees, &self.toolchain)?;
        kernel.assemble(&[], u64::MAX).map(|list| Some(Tensor::Sparse(list)))
    }
}

/// Sorts a list, and sums up its duplicates.
fn sorted<V: Value>(tensor: Tensor<V>) -> Result<Tensor<V>, CoreError> {
    match tensor {
        Tensor::Sparse(mut list) => {
            list.sum_duplicates()?;
            Ok(Tensor::Sparse(list))
        }
        Tensor::Dense(array) => Ok(Tensor::Dense(array)),
    }
}

/// What [`assign`] needs from its caller.
pub trait Evaluator<V: Value> {
    /// What goes wrong.
    type Error: From<CoreError>;

    /// Returns the tensor called `name`; a list is sorted and without duplicates.  It is asked for once for each
    /// time that the tensor stands in the text.
    ///
    /// # Errors
    ///
    /// If there is none.
    fn operand(&mut self, name: &str) -> Result<Tensor<V>, Self::Error>;

    /// Tells whether the tensor called `name` is a list by what it is, whatever its form is now: an operand that was given
    /// as one, or a result that [`Assignment::is_list`].
    fn is_list(&self, name: &str) -> bool;

    /// Tells whether the tensor called `name` is read by an assignment after this one: its trees are kept for that.
    fn is_read_later(&self, _name: &str) -> bool {
        false
    }

    /// Computes a product of `tensors`, of which all is `known`, with one kernel; trees that are `stored` need not be built.
    ///
    /// # Errors
    ///
    /// If there is no schedule, or no memory.
    fn product(
        &mut self,
        known: &Known,
        tensors: Vec<Tensor<V>>,
        stored: &mut StoredTrees<V>,
    ) -> Result<Tensor<V>, Self::Error>;

    /// Computes the sum of `terms` by one kernel, for which these are used up; `None`, with all of them left, where each product
    /// takes a kernel of its own.
    ///
    /// # Errors
    ///
    /// As [`Evaluator::product`].
    fn sum(
        &mut self,
        terms: &mut Vec<Term<V>>,
        stored: &mut StoredTrees<V>,
    ) -> Result<Option<Tensor<V>>, Self::Error>;

    /// Does `work`, a step that is no kernel and holds about `_bytes` more at its peak than is held now; by default whatever
    /// it holds.
    ///
    /// # Errors
    ///
    /// If there is no memory.
    fn large_step<T>(
        &mut self,
        _step: LargeStep,
        _bytes: u64,
        work: impl FnOnce() -> T,
    ) -> Result<T, Self::Error> {
        Ok(work())
    }
}

/// How a result is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its form, where a kernel has the choice; `None`: what suits it.
    pub form: Option<ResultForm>,
    /// Whether a list is made of one sparse operand and dense ones too: mostly it is as long as the array.
    pub lists_of_one: bool,
    /// In how many steps products are computed.
    pub steps: Steps,
    /// The most memory of a result that is stored in between, in bytes.
    pub most_bytes: u64,
}

impl Default for Wanted {
    /// What suits the operands, in whatever memory.
    fn default() -> Wanted {
        Wanted { form: None, lists_of_one: false, steps: Steps::default(), most_bytes: u64::MAX }
    }
}

/// In how many steps a product is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steps {
    /// As many as are predicted to be the fastest.
    #[default]
    Fastest,
    /// One.
    One,
}

/// Computes an assignment: each product in steps of one kernel, their sum, the function of it.
///
/// The trees of tensors that are read again, here or later, are kept in `stored`.
///
/// # Errors
///
/// Operands that do not fit the expression or each other, and what `evaluator` fails with.
pub fn assign<V: Value, E: Evaluator<V>>(
    assignment: &Assignment,
    wanted: Wanted,
    stored: &mut StoredTrees<V>,
    evaluator: &mut E,
) -> Result<Tensor<V>, E::Error> {
    let is_list = assignment.is_list(|name| evaluator.is_list(name));
    let sum = match may_be_one_kernel(assignment, evaluator) {
        true => sum_of_lists(assignment, wanted, stored, evaluator)?,
        false => sum_in_steps(assignment, wanted, stored, evaluator)?,
    };
    match assignment.function {
        Some(function) => {
            let elements = if is_list { Elements::NonZeros } else { Elements::All };
            large_steps::mapped(sum, function, elements, evaluator)
        }
        None => Ok(sum),
    }
}

/// Computes each product of an assignment, in steps of one kernel, and adds it to those before it.
fn sum_in_steps<V: Value, E: Evaluator<V>>(
    assignment: &Assignment,
    wanted: Wanted,
    stored: &mut StoredTrees<V>,
    evaluator: &mut E,
) -> Result<Tensor<V>, E::Error> {
    let mut sum: Option<Tensor<V>> = None;
    for (at, summand) in assignment.summands.iter().enumerate() {
        let mut tensors = Vec::with_capacity(summand.inputs.len());
        for access in &summand.inputs {
            let tensor = evaluator.operand(&access.tensor)?;
            tensors.push(operand(access, tensor, evaluator)?);
        }
        stored.want(read_again(assignment, (at, 1), evaluator));
        let operands = summand.inputs.iter().map(|access| Some(Operand::of(access))).collect();
        let product = Product { expr: assignment.product(at), operands, tensors };
        let term = in_steps(product, wanted, stored, evaluator)?;
        stored.want(read_again(assignment, (at + 1, 0), evaluator));
        stored.give_up_unwanted();
        let term = large_steps::scaled(term, summand.factor, evaluator)?;
        sum = Some(match sum {
            Some(sum) => large_steps::sum(sum, term, evaluator)?,
            None => term,
        });
    }
    Ok(sum.ok_or_else(|| CoreError::Internal("a sum of nothing".into()))?)
}

/// Returns the tensors that the summands from the one at `from` on read more than `times` times, or a later assignment
/// reads.
fn read_again<V: Value, E: Evaluator<V>>(
    assignment: &Assignment,
    (from, times): (usize, usize),
    evaluator: &E,
) -> Vec<String> {
    let reads = |name: &str| {
        let rest = assignment.summands[from..].iter().flat_map(|summand| &summand.inputs);
        rest.filter(|access| access.tensor == name).count()
    };
    let again = |name: &&str| reads(name) > times || evaluator.is_read_later(name);
    let names: BTreeSet<&str> = assignment.inputs().map(|access| access.tensor.as_str()).collect();
    names.into_iter().filter(again).map(str::to_owned).collect()
}

/// A product and its tensors.
struct Product<V: Value> {
    expr: Expr,
    /// What each input is; `None` for the result of a step.
    operands: Vec<Option<Operand>>,
    tensors: Vec<Tensor<V>>,
}

/// Checks an operand's order, and takes its diagonals.
fn operand<V: Value, E: Evaluator<V>>(
    access: &Access,
    tensor: Tensor<V>,
    evaluator: &mut E,
) -> Result<Tensor<V>, E::Error> {
    let (order, have) = (access.indices.len(), tensor.extents().len());
    if have != order {
        let why = format!("{access} has {order} indices, the tensor has {have}");
        return Err(CoreError::Operand { operand: access.tensor.clone(), why }.into());
    }
    match access.is_diagonal() {
        true => large_steps::diagonal(access, tensor, evaluator),
        false => Ok(tensor),
    }
}

/// Computes a product, in several steps where that is predicted to be faster.
fn in_steps<V: Value, E: Evaluator<V>>(
    mut product: Product<V>,
    wanted: Wanted,
    stored: &mut StoredTrees<V>,
    evaluator: &mut E,
) -> Result<Tensor<V>, E::Error> {
    if let ([access], Steps::Fastest) = (product.expr.inputs.as_slice(), wanted.steps)
        && let Some(modes) = permutation(access, &product.expr.output)
    {
        return large_steps::permuted(product.tensors.remove(0), &modes, evaluator);
    }
    loop {
        let bytes = planning_bytes(&product.expr, &product.tensors, wanted);
        let (known, step) =
            evaluator.large_step(LargeStep::Count, bytes, || -> Result<_, CoreError> {
                let known = known(&product, wanted, stored)?;
                let step = match wanted.steps {
                    Steps::Fastest => first_step(&known),
                    Steps::One => None,
                };
                Ok((known, step))
            })??;
        let Some(step) = step else {
            return evaluator.product(&known, product.tensors, stored);
        };
        let mut factors = Vec::with_capacity(step.inputs.len());
        for &input in step.inputs.iter().rev() {
            factors.insert(0, product.tensors.remove(input));
        }
        let rest = known.after(&step);
        (product.expr, product.operands) = (rest.expr, rest.operands);
        product.tensors.push(evaluator.product(&step.known, factors, stored)?);
    }
}

/// Returns the mode of `input` of each index of `output`, if both have the same indices.
fn permutation(input: &Access, output: &Access) -> Option<Vec<usize>> {
    let mode = |index| input.indices.iter().position(|own| own == index);
    let modes: Option<Vec<usize>> = output.indices.iter().map(mode).collect();
    modes.filter(|modes| modes.len() == input.indices.len())
}

/// Counts what is to be known of the operands.
fn known<V: Value>(
    product: &Product<V>,
    wanted: Wanted,
    stored: &StoredTrees<V>,
) -> Result<Known, CoreError> {
    let Product { expr, operands, tensors } = product;
    let mut extents = Extents::default();
    for (access, tensor) in expr.inputs.iter().zip(tensors) {
        for (&index, extent) in access.indices.iter().zip(tensor.extents()) {
            if let Some(before) = extents.set(index, extent).filter(|&before| before != extent) {
                let why = format!("{index} runs to {extent} here, to {before} before");
                return Err(CoreError::Operand { operand: access.tensor.clone(), why });
            }
        }
    }
    let pattern = |(access, tensor): (&Access, &Tensor<V>)| match tensor {
        Tensor::Sparse(list) => Some(pattern_of(list, access)),
        Tensor::Dense(_) => None,
    };
    let patterns = expr.inputs.iter().zip(tensors).map(pattern).collect();
    let (expr, joins, form) = (expr.clone(), BTreeMap::new(), ResultForm::Dense);
    let (value_bytes, most_bytes) = (V::BYTES, wanted.most_bytes);
    let layouts = |operand: &Option<Operand>| {
        operand.as_ref().map_or_else(Vec::new, |operand| stored.layouts(operand))
    };
    let (trees, operands) = (operands.iter().map(layouts).collect(), operands.clone());
    let mut known =
        Known { expr, extents, patterns, operands, trees, joins, value_bytes, form, most_bytes };
    if asks_for_joins(&known.expr, wanted) {
        known.joins = joins_of(&known, tensors);
    }
    let several = known.patterns.iter().flatten().count() > 1;
    known.form = match wanted.form {
        Some(ResultForm::Dense) => ResultForm::Dense,
        Some(ResultForm::Sparse) if several || wanted.lists_of_one => ResultForm::Sparse,
        _ => known.suited_form(),
    };
    Ok(known)
}

/// Counts the joins of each pair of lists that share an index, and that of all lists.
fn joins_of<V: Value>(known: &Known, tensors: &[Tensor<V>]) -> BTreeMap<Vec<usize>, JoinCounts> {
    let count = |lists: Vec<Listed<'_, V>>| {
        let inputs: Vec<usize> = lists.iter().map(|own| own.input).collect();
        let counts = count_join(&operands(&lists), known.kept(&inputs));
        (inputs, counts)
    };
    joins(&known.expr, tensors).map(count).collect()
}

/// Tells whether the elements of joins decide anything: the form of the result, or its steps.
fn asks_for_joins(expr: &Expr, wanted: Wanted) -> bool {
    let is_dense = wanted.form == Some(ResultForm::Dense) || expr.output.indices.is_empty();
    !is_dense || expr.inputs.len() > 2 && wanted.steps == Steps::Fastest
}

/// Returns about how many bytes the counting of the joins holds at its peak.
fn planning_bytes<V: Value>(expr: &Expr, tensors: &[Tensor<V>], wanted: Wanted) -> u64 {
    if !asks_for_joins(expr, wanted) {
        return 0;
    }
    joins(expr, tensors).map(|lists| join_bytes(&operands(&lists))).max().unwrap_or(0)
}

/// An input that is a list.
#[derive(Clone, Copy)]
struct Listed<'a, V: Value> {
    input: usize,
    access: &'a Access,
    list: &'a Coo<V>,
}

/// Returns the inputs that are lists.
fn listed<'a, V: Value>(
    expr: &'a Expr,
    tensors: &'a [Tensor<V>],
) -> impl Iterator<Item = Listed<'a, V>> {
    expr.inputs.iter().zip(tensors).enumerate().filter_map(|(input, (access, tensor))| match tensor
    {
        Tensor::Sparse(list) => Some(Listed { input, access, list }),
        Tensor::Dense(_) => None,
    })
}

/// Returns lists as [`count_join`] takes them.
fn operands<'a, V: Value>(lists: &[Listed<'a, V>]) -> Vec<(&'a Access, &'a Coo<V>)> {
    lists.iter().map(|own| (own.access, own.list)).collect()
}

/// Returns each pair of lists that share an index, and all lists if they are more.
fn joins<'a, V: Value>(
    expr: &'a Expr,
    tensors: &'a [Tensor<V>],
) -> impl Iterator<Item = Vec<Listed<'a, V>>> {
    let pairs = listed(expr, tensors).flat_map(move |a| {
        let later = listed(expr, tensors).filter(move |b| b.input > a.input);
        later.map(move |b| (a, b))
    });
    let pairs = pairs.filter(|(a, b)| !(a.access.set() & b.access.set()).is_empty());
    let all: Vec<Listed<'a, V>> = listed(expr, tensors).collect();
    pairs.map(|(a, b)| vec![a, b]).chain(Some(all).filter(|all| all.len() > 2))
}

fn pattern_of<V: Value>(list: &Coo<V>, access: &Access) -> Pattern {
    Pattern::of(&PatternCounts::of(list), &access.indices)
}
