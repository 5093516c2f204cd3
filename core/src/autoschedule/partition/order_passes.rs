//! Trimming passes that processors and GPUs share: 0, CPU-3 or GPU-1, and CPU-4 or GPU-6.

use crate::autoschedule::partition::mapping::Mapping;
use crate::autoschedule::partition::strategies::Part;
use crate::autoschedule::partition::trimming::Scene;

/// Pass 0, sparse iteration: loops over the positions of a level run inside the loops over the levels above.
///
/// The program must know where it is in those to find the positions.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let rows = SplitSchedule::named(&IterationSpace::spmv(), ".split(i, x0, x1, K0)").expect("rows");
/// let parameters = Parameters::cpu();
/// let scene = Scene::new(&rows, &parameters);
/// let keeps = |text| Mapping::parse(text, &rows).map(|one| sparse_iteration(&scene, &one));
/// assert_eq!(keeps("x1 x0 j; threads x1"), Ok(true));
/// assert_eq!(keeps("x0 j x1; threads x0"), Ok(false));
/// ```
pub fn sparse_iteration(scene: &Scene<'_>, mapping: &Mapping) -> bool {
    scene.is_possible(&mapping.order)
}

/// Passes CPU-3 and GPU-1, no useless partition: an inner loop directly inside its outer one is there for parallel units.
///
/// If neither runs in parallel, the two are as good as the loop that was cut.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let text = ".pos(j, x0).split(x0, x1, x2, K0)";
/// let fibres = SplitSchedule::named(&IterationSpace::spmv(), text).expect("positions");
/// let parameters = Parameters::cpu();
/// let scene = Scene::new(&fibres, &parameters);
/// let keeps = |text| Mapping::parse(text, &fibres).map(|one| no_useless_partition(&scene, &one));
/// assert_eq!(keeps("i x1 x2; threads i; vector x2"), Ok(true));
/// assert_eq!(keeps("i x2 x1; threads i"), Ok(true));
/// assert_eq!(keeps("i x1 x2; threads i"), Ok(false));
/// ```
pub fn no_useless_partition(scene: &Scene<'_>, mapping: &Mapping) -> bool {
    let parallel = mapping.units.parallel();
    let mut loops = mapping.iterated();
    let Some(mut outer) = loops.next() else { return true };
    loops.all(|inner| {
        let pair = scene.group(outer) == scene.group(inner)
            && (scene.part(outer), scene.part(inner)) == (Part::Outer, Part::Inner);
        let useful = !pair || parallel.contains(outer) || parallel.contains(inner);
        outer = inner;
        useful
    })
}

/// Passes CPU-4 and GPU-6, concordant iteration: the order keeps as many preferences of dense tensors as any can.
///
/// A dense tensor prefers that its indices become known in the order in which it stores them.
///
/// ```
/// # use decompose_core::autoschedule::partition::*;
/// let columns = SplitSchedule::named(&IterationSpace::spmm(), ".split(k, x0, x1, K0)").expect("columns");
/// let parameters = Parameters::cpu();
/// let scene = Scene::new(&columns, &parameters);
/// let keeps = |text| Mapping::parse(text, &columns).map(|one| concordant_iteration(&scene, &one));
/// assert_eq!(keeps("x0 i j x1; threads x0"), Ok(true));
/// assert_eq!(keeps("i x0 x1 j; threads i"), Ok(false));
/// ```
pub fn concordant_iteration(scene: &Scene<'_>, mapping: &Mapping) -> bool {
    scene.kept_preferences(&mapping.order) >= scene.most_preferences()
}
