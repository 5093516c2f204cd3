//! Trimming passes for processors: CPU-1 to CPU-5 (section 2.5.2).

use crate::autoschedule::partition::mapping::{Mapping, Units};
use crate::autoschedule::partition::order_passes::{
    concordant_iteration, no_useless_partition, sparse_iteration,
};
use crate::autoschedule::partition::trimming::{Pass, Scene};

/// All passes for processors.
pub const CPU_PASSES: &[Pass] = &[
    Pass { number: "0", name: "sparse iteration", keeps: sparse_iteration },
    Pass { number: "CPU-1", name: "one parallel loop", keeps: one_parallel_loop },
    Pass { number: "CPU-2", name: "outermost parallel loop", keeps: outermost_parallel_loop },
    Pass { number: "CPU-3", name: "no useless partition", keeps: no_useless_partition },
    Pass { number: "CPU-4", name: "concordant iteration", keeps: concordant_iteration },
    Pass { number: "CPU-5", name: "contiguous vector loop", keeps: vector_loop_is_contiguous },
];

/// Pass CPU-1: threads share the iterations of one loop, not of several that are fused.
///
/// A processor has few threads, and one loop has enough iterations for them.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let rows = SplitSchedule::named(&IterationSpace::spmv(), ".split(i, x0, x1, K0)").expect("rows");
/// let parameters = Parameters::cpu();
/// let scene = Scene::new(&rows, &parameters);
/// let keeps = |text| Mapping::parse(text, &rows).map(|one| one_parallel_loop(&scene, &one));
/// assert_eq!(keeps("x0 x1 j; threads x0"), Ok(true));
/// assert_eq!(keeps("x0 x1 j; threads x0 x1"), Ok(false));
/// ```
pub fn one_parallel_loop(_: &Scene<'_>, mapping: &Mapping) -> bool {
    match mapping.units {
        Units::Cpu { threads, .. } => threads.len() == 1,
        Units::Gpu { .. } => true,
    }
}

/// Pass CPU-2: the parallel loop is the outermost one.
///
/// To start threads anew in each iteration of a loop around them takes longer than their work.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let rows = SplitSchedule::named(&IterationSpace::spmv(), ".split(i, x0, x1, K0)").expect("rows");
/// let parameters = Parameters::cpu();
/// let scene = Scene::new(&rows, &parameters);
/// let keeps = |text| Mapping::parse(text, &rows).map(|one| outermost_parallel_loop(&scene, &one));
/// assert_eq!(keeps("x1 x0 j; threads x1"), Ok(true));
/// assert_eq!(keeps("x1 x0 j; threads x0"), Ok(false));
/// ```
pub fn outermost_parallel_loop(_: &Scene<'_>, mapping: &Mapping) -> bool {
    match mapping.units {
        Units::Cpu { threads, .. } => {
            mapping.order.iter().take(threads.len()).all(|&one| threads.contains(one))
        }
        Units::Gpu { .. } => true,
    }
}

/// Pass CPU-5: the vector loop is one of the two innermost ones, and its iterations are neighbours.
///
/// The outer part of a cut loop takes long steps, and vectors with long steps load a line for each lane.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let columns = SplitSchedule::named(&IterationSpace::spmm(), ".split(k, x0, x1, K0)").expect("columns");
/// let parameters = Parameters::cpu();
/// let scene = Scene::new(&columns, &parameters);
/// let keeps = |text| Mapping::parse(text, &columns).map(|one| vector_loop_is_contiguous(&scene, &one));
/// assert_eq!(keeps("i x0 j x1; threads i; vector x1"), Ok(true));
/// assert_eq!(keeps("i x1 j x0; threads i; vector x1"), Ok(false));
/// assert_eq!(keeps("i j x1 x0; threads i; vector x0"), Ok(false));
/// ```
pub fn vector_loop_is_contiguous(scene: &Scene<'_>, mapping: &Mapping) -> bool {
    match mapping.units {
        Units::Cpu { vector: Some(vector), .. } => {
            mapping.order.iter().rev().take(VECTOR_PLACES).any(|&one| one == vector)
                && scene.part(vector).is_contiguous()
        }
        Units::Cpu { vector: None, .. } | Units::Gpu { .. } => true,
    }
}

/// The vector loop is one of this many innermost loops.
const VECTOR_PLACES: usize = 2;
