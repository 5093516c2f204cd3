//! Trimming passes for GPUs: GPU-1 to GPU-8 (section 2.5.3).
//!
//! The passes look at mappings only and need no GPU.

use crate::autoschedule::partition::mapping::{LoopId, Mapping, Units};
use crate::autoschedule::partition::order_passes::{
    concordant_iteration, no_useless_partition, sparse_iteration,
};
use crate::autoschedule::partition::parameters::settings;
use crate::autoschedule::partition::trimming::{Pass, Scene};
use crate::schedule::Space;

/// All passes for GPUs.
pub const GPU_PASSES: &[Pass] = &[
    Pass { number: "0", name: "sparse iteration", keeps: sparse_iteration },
    Pass { number: "GPU-1", name: "no useless partition", keeps: no_useless_partition },
    Pass { number: "GPU-2", name: "no hierarchical tiling", keeps: no_tiled_units },
    Pass { number: "GPU-3", name: "one loop at each level", keeps: one_loop_at_each_level },
    Pass { number: "GPU-4", name: "no indeterminate warps", keeps: fixed_warps },
    Pass { number: "GPU-5", name: "balanced loads", keeps: balanced_loads },
    Pass { number: "GPU-6", name: "concordant iteration", keeps: concordant_iteration },
    Pass { number: "GPU-7", name: "contiguous lanes", keeps: contiguous_lanes },
    Pass { number: "GPU-8", name: "legal parameters", keeps: some_setting_is_legal },
];

/// Pass GPU-2: each unit has one iteration of the loops of blocks and warps.
///
/// Such loops are gone from the program, so their place in the order does not count; here they are outermost.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let text = ".fuse(i, j, x0).pos(x0, x1).split(x1, x2, x3, K0)";
/// let fused = SplitSchedule::named(&IterationSpace::spmv(), text).expect("positions");
/// let parameters = Parameters::gpu();
/// let scene = Scene::new(&fused, &parameters);
/// let keeps = |text| Mapping::parse(text, &fused).map(|one| no_tiled_units(&scene, &one));
/// assert_eq!(keeps("x2 x3; blocks x2; warps x2; lanes x3 adjacent"), Ok(true));
/// assert_eq!(keeps("x3 x2; blocks x2; warps x2; lanes x3 adjacent"), Ok(false));
/// ```
pub fn no_tiled_units(_: &Scene<'_>, mapping: &Mapping) -> bool {
    let Units::Gpu { blocks, warps, .. } = mapping.units else { return true };
    let own = warps.iter().filter(|&one| !blocks.contains(one));
    let outermost: Vec<LoopId> = blocks.iter().chain(own).collect();
    mapping.order.starts_with(&outermost)
}

/// Pass GPU-3: blocks share one loop, and warps share the same one or another.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let rows = SplitSchedule::named(&IterationSpace::spmv(), ".split(i, x0, x1, K0)").expect("rows");
/// let parameters = Parameters::gpu();
/// let scene = Scene::new(&rows, &parameters);
/// let keeps = |text| Mapping::parse(text, &rows).map(|one| one_loop_at_each_level(&scene, &one));
/// assert_eq!(keeps("x0 x1 j; blocks x0; warps x1; lanes j adjacent"), Ok(true));
/// assert_eq!(keeps("x0 x1 j; blocks x0 x1; warps x0 x1; lanes j adjacent"), Ok(false));
/// ```
pub fn one_loop_at_each_level(_: &Scene<'_>, mapping: &Mapping) -> bool {
    match mapping.units {
        Units::Cpu { .. } => true,
        Units::Gpu { blocks, warps, .. } => blocks.len() == 1 && warps.len() == 1,
    }
}

/// Pass GPU-4: warps that have a loop of their own have one with a fixed number of iterations.
///
/// The number of warps in a block is limited, so data must not decide it.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let columns = SplitSchedule::named(&IterationSpace::spmm(), ".split(k, x0, x1, K0)").expect("columns");
/// let parameters = Parameters::gpu();
/// let scene = Scene::new(&columns, &parameters);
/// let keeps = |text| Mapping::parse(text, &columns).map(|one| fixed_warps(&scene, &one));
/// assert_eq!(keeps("x0 x1 i j; blocks x0; warps x1; lanes j adjacent"), Ok(true));
/// assert_eq!(keeps("x1 x0 i j; blocks x1; warps x0; lanes j adjacent"), Ok(false));
/// ```
pub fn fixed_warps(scene: &Scene<'_>, mapping: &Mapping) -> bool {
    match mapping.units {
        Units::Gpu { blocks, warps, .. } if blocks != warps => {
            warps.iter().all(|one| scene.is_fixed(one))
        }
        _ => true,
    }
}

/// Pass GPU-5: units have equally many non-zeros.
///
/// No compressed level is cut in coordinates.  No unit shares a loop over a level above a compressed one that is not
/// fused with it, because slices differ in their non-zeros.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let parameters = Parameters::gpu();
/// let keeps = |split: &str, text: &str| {
///     let split = SplitSchedule::named(&IterationSpace::spmv(), split).ok_or("no such split")?;
///     let mapping = Mapping::parse(text, &split)?;
///     Ok::<bool, String>(balanced_loads(&Scene::new(&split, &parameters), &mapping))
/// };
/// let fused = ".fuse(i, j, x0).pos(x0, x1).split(x1, x2, x3, K0)";
/// assert_eq!(keeps(fused, "x2 x3; blocks x2; warps x2; lanes x3 adjacent"), Ok(true));
/// let rows = ".split(i, x0, x1, K0)";
/// assert_eq!(keeps(rows, "x0 x1 j; blocks x0; warps x0; lanes j adjacent"), Ok(false));
/// ```
pub fn balanced_loads(scene: &Scene<'_>, mapping: &Mapping) -> bool {
    let Units::Gpu { .. } = mapping.units else { return true };
    let split = scene.split;
    let coordinates = |group: &crate::autoschedule::partition::Group| {
        group.space == Space::Coordinate
            && group.indices.iter().any(|&index| split.space.is_compressed(index))
    };
    if split.groups.iter().any(coordinates) {
        return false;
    }
    let is_parent = |group: usize| {
        (0..split.groups.len()).any(|inner| split.parents_of(inner).contains(&group))
    };
    mapping.units.parallel().iter().all(|one| !is_parent(scene.group(one)))
}

/// Pass GPU-7: the iterations that the lanes of a warp share are neighbours.
///
/// Lanes that read one line together read it once.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let columns = SplitSchedule::named(&IterationSpace::spmm(), ".split(k, x0, x1, K0)").expect("columns");
/// let parameters = Parameters::gpu();
/// let scene = Scene::new(&columns, &parameters);
/// let keeps = |text| Mapping::parse(text, &columns).map(|one| contiguous_lanes(&scene, &one));
/// assert_eq!(keeps("x0 i j x1; blocks x0; warps x0; lanes x1 apart"), Ok(true));
/// assert_eq!(keeps("x1 i j x0; blocks x1; warps x1; lanes x0 apart"), Ok(false));
/// ```
pub fn contiguous_lanes(scene: &Scene<'_>, mapping: &Mapping) -> bool {
    match mapping.units {
        Units::Cpu { .. } => true,
        Units::Gpu { lanes, .. } => scene.part(lanes).is_contiguous(),
    }
}

/// Pass GPU-8: some values of the factors are legal.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let text = ".fuse(i, j, x0).pos(x0, x1).split(x1, x2, x3, K0)";
/// let fused = SplitSchedule::named(&IterationSpace::spmv(), text).expect("positions");
/// let text = "x2 x3; blocks x2; warps x2; lanes x3 adjacent";
/// let mapping = Mapping::parse(text, &fused)?;
/// let parameters = Parameters::gpu();
/// assert!(some_setting_is_legal(&Scene::new(&fused, &parameters), &mapping));
/// // Pieces of 16 positions are too few for the 32 lanes of a warp.
/// let small = Parameters { factors: vec![4, 16], ..parameters };
/// assert!(!some_setting_is_legal(&Scene::new(&fused, &small), &mapping));
/// # Ok::<(), String>(())
/// ```
pub fn some_setting_is_legal(scene: &Scene<'_>, mapping: &Mapping) -> bool {
    !settings(scene.split, mapping, scene.parameters).is_empty()
}
