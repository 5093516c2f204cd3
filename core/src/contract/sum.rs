//! A sum of products by one kernel, whose products add to one workspace.

use std::sync::Arc;

use decompose_formats::{Csf, Value};

use crate::autoschedule::{OrdersFound, Scheduler, SearchLimits, storages};
use crate::contract::{Appended, Contraction, Planned, Request, preview, stored};
use crate::cost::Machine;
use crate::einsum::{Expr, Extents};
use crate::error::CoreError;
use crate::lower::{Program, lower, unite};
use crate::runtime::{Executor, Kernel, Toolchain};
use crate::schedule::{OutputForm, Problem, Workspace, resolve};

/// The most by which the predicted time of a schedule that unites may exceed that of the fastest: to merge lists takes
/// about a quarter of the time of a product.
const WORTH: f64 = 1.25;

/// Plans the sum of the products that `requests` ask for as one kernel; their results are lists.
///
/// Returns each plan with the place of its request, in the order of the kernel.  The product that is predicted to take
/// longest comes first: its leader is cut into tasks.  Returns `None` if the programs do not unite ([`unite`]), if that makes
/// a product much slower, if an index is cut or has two extents, if an operand is empty, or if rows are nearly empty.
/// Searches each request once.
///
/// # Errors
///
/// What the search refuses.
pub fn plan_sum(
    requests: &[Request],
    scheduler: &dyn Scheduler,
    machine: &Machine,
) -> Result<Option<Vec<(usize, Planned)>>, CoreError> {
    if !have_common_extents(requests) || requests.iter().any(has_empty_operand) {
        return Ok(None);
    }
    let search = |request: &Request| -> Result<(Problem, OrdersFound), CoreError> {
        let mut base = request.problem_on(&[]);
        base.output = OutputForm::Assembled;
        let limits = SearchLimits::default();
        let found = scheduler.search_storages(&base, &storages(&base), machine, &limits)?;
        Ok((base, found))
    };
    let mut found = requests.iter().map(search).collect::<Result<Vec<_>, _>>()?;
    let seconds = |at: &usize| found[*at].1.candidates.first().map_or(0.0, |best| best.total());
    let Some(first) = (0..found.len()).max_by(|a, b| seconds(a).total_cmp(&seconds(b))) else {
        return Ok(None);
    };
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.swap(0, first);
    let mut planned: Vec<(usize, Planned)> = Vec::with_capacity(found.len());
    for at in order {
        let (base, orders) = &mut found[at];
        let best = orders.candidates.first().map_or(0.0, |best| best.total());
        // A list alone would be sorted to be merged, too.
        let most = if base.expr.inputs.len() == 1 { f64::INFINITY } else { WORTH * best };
        let candidates = orders.candidates.drain(..).filter(|one| one.total() <= most);
        let plans = candidates.map(|one| Planned::of(base, one));
        let mut plans = plans.filter(|plan| plan.problem.splits.is_empty());
        let taken = match planned.first() {
            None => plans.next(),
            Some((_, first)) => plans.find_map(|plan| united_with(first, plan)),
        };
        let Some(taken) = taken else { return Ok(None) };
        planned.push((at, taken));
    }
    Ok(Some(planned).filter(|planned| scans_little(planned)))
}

/// Cells of a dense workspace that a word of its upper bitmap stands for, which is scanned for each row.
const CELLS_PER_WORD: u64 = 1 << 12;

/// Tells whether the products add to a hash table, or to a dense workspace whose bitmaps take fewer words of all rows than
/// the sum has elements.
///
/// Nearly empty rows of many columns are merged faster as lists, and a list workspace is of a size that no count foretells.
fn scans_little(planned: &[(usize, Planned)]) -> bool {
    let kind = planned.first().and_then(|(_, first)| first.schedule.workspace);
    if kind != Some(Workspace::Dense) {
        return kind == Some(Workspace::Hashed);
    }
    let (mut words, mut elements) = (0_u64, 0_u64);
    for (_, Planned { problem, schedule, .. }) in planned {
        let Ok(nest) = resolve(problem, schedule) else { return false };
        let outside = nest.last()[..nest.outside].iter().copied().collect();
        let row = problem.workspace_cells(nest.last()).div_ceil(CELLS_PER_WORD);
        // Products mostly have the same rows.
        words = words.max(problem.iterations(outside).saturating_mul(row));
        elements = elements.saturating_add(problem.assembled_elements());
    }
    words <= elements
}

/// Tells whether each index has the same extent in all products, as loops that they share need.
fn have_common_extents(requests: &[Request]) -> bool {
    let mut extents = Extents::default();
    requests.iter().all(|request| {
        request.expr.all().iter().all(|index| {
            let own = request.extents.of(index);
            extents.set(index, own).is_none_or(|before| before == own)
        })
    })
}

/// Tells whether an operand has no non-zeros, so that there would be nothing to cut into tasks.
fn has_empty_operand(request: &Request) -> bool {
    request.sparse.iter().any(|own| {
        let all = request.modes(own).iter().copied().collect();
        own.pattern.count(all, &request.extents) == 0
    })
}

/// Returns `plan` with the workspace of `first`, if their programs unite.
fn united_with(first: &Planned, mut plan: Planned) -> Option<Planned> {
    plan.schedule.workspace = first.schedule.workspace;
    let programs = [first, &plan].map(|plan| preview(&plan.problem, &plan.schedule).ok());
    let programs: Option<Vec<Program>> = programs.into_iter().collect();
    unite(programs?).ok()?.map(|_| plan)
}

impl<V: Value> Contraction<V> {
    /// Binds a sum that [`plan_sum`] planned to its trees, as [`Contraction::joining`] does a product.
    ///
    /// Dense operands are numbered in the order of `planned`.
    ///
    /// # Errors
    ///
    /// As [`Contraction::joining`]; [`CoreError::Internal`] if their programs do not unite.
    pub fn summing(
        planned: &[(usize, Planned)],
        trees: Vec<Vec<Arc<Csf<V>>>>,
        toolchain: &Toolchain,
    ) -> Result<Contraction<V>, CoreError> {
        let broken = || CoreError::Internal("a sum whose products do not unite".into());
        let mut extents = Extents::default();
        let (mut programs, mut sparse, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        for ((_, plan), trees) in planned.iter().zip(&trees) {
            let (problem, expr) = (&plan.problem, plan.problem.stored_expr());
            if trees.len() != problem.sparse.len() || !problem.splits.is_empty() {
                return Err(broken());
            }
            let levels = problem.sparse.iter().zip(trees).map(|(x, tree)| stored(problem, x, tree));
            programs.push(lower(problem, &plan.schedule, &levels.collect::<Result<Vec<_>, _>>()?)?);
            sparse.extend(problem.sparse.iter().map(|x| inputs.len() + x.input));
            for index in expr.all().iter() {
                extents.set(index, problem.extents.of(index));
            }
            inputs.extend(expr.inputs);
        }
        let (_, first) = planned.first().ok_or_else(broken)?;
        let appended = Appended::by(&first.problem, &first.schedule);
        let output = first.problem.expr.output.clone();
        let program = unite(programs)?.ok_or_else(broken)?;
        let mut trees = trees.into_iter().flatten();
        let leader = trees.next().ok_or_else(broken)?;
        let kernel = Kernel::new(program, toolchain);
        let executor = Executor::joining(kernel, leader, trees.collect())?;
        let expr = Expr { output, inputs };
        Ok(Contraction { expr, splits: Vec::new(), sparse, extents, appended, executor })
    }
}
