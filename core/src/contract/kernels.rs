//! All kernels of a plan.

use decompose_formats::{Coo, Csf, Merged, ModeOrder, Value};

use crate::contract::{Appended, Contraction, no_sparse};
use crate::einsum::Index;
use crate::error::CoreError;
use crate::runtime::{Toolchain, Workload};
use crate::sweep::{self, BuildReport, TreePlan, TtmcMerge};

/// Builds the trees of `plan` from `coo`, which must be sorted without duplicates, and meanwhile
/// the kernels: one contraction a step, in the order of the steps.  The list is freed on the way.
///
/// # Errors
///
/// If the plan was made for another tensor, or memory runs out.
pub fn build_all<V: Value>(
    coo: Coo<V>,
    plan: &TreePlan,
    toolchain: &Toolchain,
) -> Result<(Vec<Contraction<V>>, BuildReport), CoreError> {
    let (executors, report) = sweep::executors(coo, plan, toolchain)?;
    let steps = plan.steps.iter().zip(executors);
    let contractions = steps.map(|(step, executor)| {
        let x = step.problem.leader().ok_or_else(|| no_sparse(&step.problem.expr))?;
        let (expr, splits) = (step.problem.stored_expr(), step.problem.stored_splits());
        let extents = step.problem.extents.clone();
        let appended = Appended::by(&step.problem, &step.candidate.schedule);
        Ok(Contraction { expr, splits, sparse: vec![x.input], extents, appended, executor })
    });
    Ok((contractions.collect::<Result<_, CoreError>>()?, report))
}

/// As [`build_all`], with merges: after the contractions of `direct` come, for each merge, the one that
/// makes the partial product and those of its updates, in the order of their steps.
///
/// Each merge sorts the list and holds a tree and two lists beside it for a while.
///
/// # Errors
///
/// As [`build_all`], and if a partial product would be stored in another order than planned.
pub fn build_merged<V: Value>(
    mut coo: Coo<V>,
    direct: &TreePlan,
    merges: &[TtmcMerge],
    toolchain: &Toolchain,
) -> Result<(Vec<Contraction<V>>, BuildReport), CoreError> {
    let parts = || merges.iter().flat_map(|merge| [&merge.partial, &merge.updates]).chain([direct]);
    let work = Workload {
        kernels: parts().map(|plan| plan.steps.len()).sum(),
        order: coo.order(),
        seconds: parts().map(TreePlan::seconds).sum(),
    };
    let toolchain = &toolchain.for_kernels(work);
    let mut inner = Vec::new();
    let mut report = BuildReport::default();
    for merge in merges {
        let (parts, build_seconds) = sweep::timed(|| split(&mut coo, &merge.modes));
        let parts = parts?;
        report = report.and(BuildReport { build_seconds, ..BuildReport::default() });
        for (list, plan) in [(parts.rest, &merge.partial), (parts.tuples, &merge.updates)] {
            let (built, one) = build_all(list, plan, toolchain)?;
            inner.extend(built);
            report = report.and(one);
        }
        check_partial(&inner[inner.len() - merge.modes.len() - 1..])?;
    }
    if direct.steps.is_empty() {
        return Ok((inner, report));
    }
    let (mut all, one) = build_all(coo, direct, toolchain)?;
    all.extend(inner);
    Ok((all, one.and(report)))
}

/// Splits the tensor into the tuples of `modes` and the rest.
fn split<V: Value>(coo: &mut Coo<V>, modes: &[usize]) -> Result<Merged<V>, CoreError> {
    let others = (0..coo.order()).filter(|mode| !modes.contains(mode));
    let order = ModeOrder::new(modes.iter().copied().chain(others).collect());
    let order = order.ok_or_else(|| CoreError::Internal("modes that cannot merge".into()))?;
    coo.sort(&order)?;
    Ok(Csf::from_sorted(coo, &order)?.merge(modes.len())?)
}

/// Checks that the updates, which follow it, read a partial product as it is stored.
fn check_partial<V: Value>(kernels: &[Contraction<V>]) -> Result<(), CoreError> {
    let Some((partial, updates)) = kernels.split_first() else { return Ok(()) };
    let columns: Vec<Index> = partial.stored().iter().skip(1).map(|&(index, _)| index).collect();
    let reads = |update: &Contraction<V>| {
        let access = update.expr.inputs.last();
        access.is_some_and(|access| access.indices.get(1..) == Some(&columns))
    };
    match updates.iter().all(reads) {
        true => Ok(()),
        false => Err(CoreError::Internal("a partial product in another order than planned".into())),
    }
}
