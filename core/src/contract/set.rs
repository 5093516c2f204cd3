//! All kernels of a plan.

use decompose_formats::{Coo, Value};

use crate::contract::Contraction;
use crate::error::CoreError;
use crate::runtime::Toolchain;
use crate::sweep::{self, BuildReport, TreePlan};

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
        let sparse = step.problem.sparse.first().map_or(0, |x| x.input);
        Contraction { expr: step.problem.expr.clone(), sparse, executor }
    });
    Ok((contractions.collect(), report))
}
