//! Plans that do without some techniques, and rest on blocks that were counted.
//!
//! | left out | the plan |
//! |---|---|
//! | constants, registers | the same; kernels are generated without |
//! | prefetch | the same, its requests removed |
//! | merging | no modes are merged |
//! | panels | factors are stored whole |
//! | blocks | chosen among trees without blocks |
//! | fusing | chosen among trees of plain CSF |
//! | layouts | a tree of plain CSF for each mode, rooted at it |
//! | huge pages | the same; [`Techniques::pages`] is for whoever makes memory |

use std::collections::BTreeSet;

use decompose_formats::{Blocking, Coo, PatternCounts, Value};

use crate::cost::Machine;
use crate::error::CoreError;
use crate::schedule::Pattern;
use crate::sweep::blocked::count_blocks;
use crate::sweep::plan::{SweepPlan, plan};
use crate::sweep::trees::{Merging, PlanOptions, Trees};
use crate::technique::{Technique, Techniques};

/// Plans a sweep as [`plan`] does, with these `techniques` only; trees that the options give stay.
///
/// # Errors
///
/// As [`plan`].
pub fn plan_limited(
    (extents, pattern): (&[u64], &Pattern),
    options: &PlanOptions,
    techniques: Techniques,
    machine: &Machine,
) -> Result<SweepPlan, CoreError> {
    let mut options = options.clone();
    if !techniques.has(Technique::Merging) {
        options.merging = Merging::Never;
    }
    if !techniques.has(Technique::Panels) {
        options.panels = Some(options.rank);
    }
    if options.trees == Trees::Choose {
        options.trees = trees(techniques);
    }
    let mut plan = plan(extents, pattern, &options, machine)?;
    let merges = plan.merges.iter_mut().flat_map(|merge| &mut merge.kernels.steps);
    for step in plan.kernels.steps.iter_mut().chain(merges) {
        step.problem.techniques = techniques;
        if !techniques.has(Technique::Prefetch) {
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
    (coo, counts): (&Coo<V>, &PatternCounts),
    pattern: &mut Pattern,
    options: &PlanOptions,
    techniques: Techniques,
    machine: &Machine,
) -> Result<SweepPlan, CoreError> {
    loop {
        let plan = plan_limited((coo.extents(), pattern), options, techniques, machine)?;
        let blockings = plan.kernels.trees.iter().filter_map(|tree| tree.blocks.clone());
        let unsure: BTreeSet<Blocking> = blockings.filter(|b| !pattern.is_counted(b)).collect();
        if unsure.is_empty() {
            return Ok(plan);
        }
        count_blocks(pattern, counts, coo, unsure)?;
    }
}

/// The trees from which a plan with `techniques` chooses.
fn trees(techniques: Techniques) -> Trees {
    if !techniques.has(Technique::Layouts) {
        Trees::Rooted
    } else if !techniques.has(Technique::Fusing) {
        Trees::ChoosePlain
    } else if !techniques.has(Technique::Blocks) {
        Trees::ChooseUnblocked
    } else {
        Trees::Choose
    }
}
