//! Plans that do without some optimisations, and rest on blocks that were counted.
//!
//! | left out | the plan |
//! |---|---|
//! | constants, registers | the same; kernels are generated without |
//! | prefetch | the same, its prefetches removed |
//! | merging | no modes are merged |
//! | panels | factors are stored whole |
//! | blocks | chosen among trees without blocks |
//! | fusing | chosen among trees of plain CSF |
//! | layouts | a tree of plain CSF for each mode, rooted at it |

use std::collections::BTreeSet;

use decompose_formats::{Blocking, Coo, PatternCounts, Value};

use crate::cost::Machine;
use crate::error::CoreError;
use crate::optimisation::{Optimisation, Optimisations};
use crate::schedule::Pattern;
use crate::sweep::blocked::count_blocks;
use crate::sweep::mttkrp_merges::SweepPlan;
use crate::sweep::options::{Merging, PlanOptions, Trees};
use crate::sweep::panels::plan;

/// Plans a sweep as [`plan`] does, with these `optimisations` only; trees that the options give stay.
///
/// # Errors
///
/// As [`plan`].
pub fn plan_limited(
    extents: &[u64],
    pattern: &Pattern,
    options: &PlanOptions,
    optimisations: Optimisations,
    machine: &Machine,
) -> Result<SweepPlan, CoreError> {
    let mut options = options.clone();
    if !optimisations.has(Optimisation::Merging) {
        options.merging = Merging::Never;
    }
    if !optimisations.has(Optimisation::Panels) {
        options.panels = Some(options.rank);
    }
    if options.trees == Trees::Choose {
        options.trees = trees(optimisations);
    }
    let mut plan = plan(extents, pattern, &options, machine)?;
    let merges = plan.merges.iter_mut().flat_map(|merge| &mut merge.kernels.steps);
    for step in plan.kernels.steps.iter_mut().chain(merges) {
        step.problem.optimisations = optimisations;
        if !optimisations.has(Optimisation::Prefetch) {
            step.candidate.schedule.prefetches.clear();
        }
    }
    Ok(plan)
}

/// Plans a sweep as [`plan_limited`] does, and counts the blocks of the trees that are chosen by estimates,
/// until all that is chosen has been counted.
///
/// `counts` are those of `coo`.  Time: plans, and what [`count_blocks`] takes.
///
/// # Errors
///
/// As [`plan_limited`] and [`count_blocks`].
pub fn plan_counted<V: Value>(
    coo: &Coo<V>,
    counts: &PatternCounts,
    pattern: &mut Pattern,
    options: &PlanOptions,
    optimisations: Optimisations,
    machine: &Machine,
) -> Result<SweepPlan, CoreError> {
    loop {
        let plan = plan_limited(coo.extents(), pattern, options, optimisations, machine)?;
        let blockings = plan.kernels.trees.iter().filter_map(|tree| tree.blocks.clone());
        let unsure: BTreeSet<Blocking> = blockings.filter(|b| !pattern.is_counted(b)).collect();
        if unsure.is_empty() {
            return Ok(plan);
        }
        count_blocks(pattern, counts, coo, unsure)?;
    }
}

/// The trees from which a plan with `optimisations` chooses.
fn trees(optimisations: Optimisations) -> Trees {
    if !optimisations.has(Optimisation::Layouts) {
        Trees::Rooted
    } else if !optimisations.has(Optimisation::Fusing) {
        Trees::ChoosePlain
    } else if !optimisations.has(Optimisation::Blocks) {
        Trees::ChooseUnblocked
    } else {
        Trees::Choose
    }
}
