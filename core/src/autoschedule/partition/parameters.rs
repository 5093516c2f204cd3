//! Values of the factors of a template, and which are legal (sections 2.5.3 and 3).

use crate::autoschedule::partition::mapping::{LoopId, Mapping, Units};
use crate::autoschedule::partition::space::IterationSpace;
use crate::autoschedule::partition::split_schedule::SplitSchedule;
use crate::autoschedule::partition::strategies::fixed_part;
use crate::cost::Machine;
use crate::einsum::{Extents, Index};

/// Lanes of a warp.
pub const LANES: u64 = 32;

/// The most warps of a block (section 2.5.3, pass GPU-4).
pub const MOST_WARPS: u64 = 16;

/// The values that factors may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// The values of each factor.
    pub factors: Vec<u64>,
    /// More values of the factor of the group that begins with an index.
    pub own: Vec<(Index, Vec<u64>)>,
    /// The numbers of warps in a block, where blocks and warps share one loop.
    pub warps: Vec<u64>,
    /// The extents, if they are known.
    pub extents: Option<Extents>,
}

impl Parameters {
    /// Returns the values of the source for processors: 8, 16 and 32.
    pub fn cpu() -> Parameters {
        Parameters::of(&[8, 16, 32])
    }

    /// Returns the values of the source for GPUs: 4, 16 and 64.
    pub fn gpu() -> Parameters {
        Parameters::of(&[4, 16, 64])
    }

    fn of(values: &[u64]) -> Parameters {
        let values = values.to_vec();
        Parameters { factors: values.clone(), own: Vec::new(), warps: values, extents: None }
    }

    /// Returns the values for a problem of these extents, with the sizes of [`cache_sizes`] besides.
    pub fn with_sizes(
        self,
        space: &IterationSpace,
        extents: &Extents,
        sizes: &Sizes<'_>,
    ) -> Parameters {
        let own = cache_sizes(space, extents, sizes);
        Parameters { own, extents: Some(extents.clone()), ..self }
    }

    /// Returns the values of the factor of a group of `split`, each once.
    fn values(&self, split: &SplitSchedule, group: usize) -> Vec<u64> {
        let first = split.groups[group].indices[0];
        let own = self.own.iter().filter(|(index, _)| *index == first).flat_map(|(_, own)| own);
        let mut values: Vec<u64> = self.factors.iter().chain(own).copied().collect();
        values.sort_unstable();
        values.dedup();
        values
    }
}

/// Values of all parameters of a template.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Setting {
    /// The factors, `K0` first.
    pub factors: Vec<u64>,
    /// Warps of a block, where blocks and warps share one loop.
    pub warps: Option<u64>,
}

/// Returns the legal settings of a mapping.
///
/// ```
/// use decompose_core::autoschedule::partition::{
///     IterationSpace, Mapping, Parameters, SplitSchedule, settings,
/// };
///
/// let text = ".split(i, x0, x1, K0).pos(j, x2).split(x2, x3, x4, K1)";
/// let tiles = SplitSchedule::named(&IterationSpace::spmv(), text).expect("two cuts");
/// let mapping = Mapping::parse("x0 x1 x4 x3; threads x0; vector x4", &tiles)?;
/// assert_eq!(settings(&tiles, &mapping, &Parameters::cpu()).len(), 9);
/// # Ok::<(), String>(())
/// ```
pub fn settings(split: &SplitSchedule, mapping: &Mapping, parameters: &Parameters) -> Vec<Setting> {
    let warps = match mapping.units {
        Units::Gpu { blocks, warps, .. } if blocks == warps => {
            parameters.warps.iter().copied().map(Some).collect()
        }
        _ => vec![None],
    };
    let mut factors: Vec<Vec<u64>> = vec![Vec::new()];
    for group in (0..split.groups.len()).filter(|&group| split.groups[group].command.is_some()) {
        let values = parameters.values(split, group);
        let extended = |chosen: &Vec<u64>| {
            let with = |&value: &u64| chosen.iter().copied().chain([value]).collect();
            values.iter().map(with).collect::<Vec<Vec<u64>>>()
        };
        factors = factors.iter().flat_map(extended).collect();
    }
    let all = factors
        .iter()
        .flat_map(|factors| warps.iter().map(|&warps| Setting { factors: factors.clone(), warps }));
    all.filter(|setting| is_legal(split, mapping, parameters, setting)).collect()
}

/// Tells whether a setting makes sense for a mapping.
fn is_legal(
    split: &SplitSchedule,
    mapping: &Mapping,
    parameters: &Parameters,
    setting: &Setting,
) -> bool {
    // The iterations of a loop, if a factor fixes them.
    let fixed = |one: LoopId| {
        let part = &split.loops[one.place()];
        let command = split.groups[part.group].command?;
        let factor = setting.factors.get(split.factor_of(part.group)?)?;
        (fixed_part(command) == part.part).then_some(*factor)
    };
    // 1. A factor cuts its index in several pieces of several elements.
    let cuts = |(group, one): (usize, &crate::autoschedule::partition::Group)| {
        let Some(&factor) = split.factor_of(group).and_then(|at| setting.factors.get(at)) else {
            return true;
        };
        let extent = parameters.extents.as_ref().filter(|_| !one.is_fused());
        factor > 1 && extent.is_none_or(|extents| factor < extents.of(one.indices[0]))
    };
    if !split.groups.iter().enumerate().all(cuts) {
        return false;
    }
    let Units::Gpu { blocks, warps, lanes, .. } = mapping.units else { return true };
    // 2. A block has room for its warps, whether they share its loop or have one of their own.
    let in_block = match setting.warps {
        Some(warps) => Some(warps),
        None => warps.iter().find_map(fixed),
    };
    if in_block.is_some_and(|warps| warps > MOST_WARPS) {
        return false;
    }
    // 3. There is an iteration for each warp of a block,
    let shared = setting.warps.zip(blocks.iter().find_map(fixed));
    if shared.is_some_and(|(warps, iterations)| warps > iterations) {
        return false;
    }
    // 4. and for each lane of a warp.
    fixed(lanes).is_none_or(|iterations| iterations >= LANES)
}

/// What sizes of pieces follow from.
#[derive(Clone, Copy, Debug)]
pub struct Sizes<'a> {
    /// The processor.
    pub machine: &'a Machine,
    /// Bytes of a value.
    pub value_bytes: u64,
}

/// Returns the sizes of pieces of each index that fit in a cache: one for the first level and one for the second.
///
/// ```text
/// bytes(x)   = sum over dense tensors with x of the bytes of the slice at one x
/// size(x)    = the largest power of two with size(x) * bytes(x) <= cache
/// ```
///
/// Of the first level half counts, and of the second what a table may count on ([`Machine::l2_share`]).
pub fn cache_sizes(
    space: &IterationSpace,
    extents: &Extents,
    sizes: &Sizes<'_>,
) -> Vec<(Index, Vec<u64>)> {
    let machine = sizes.machine;
    let caches = [machine.l1_bytes / 2, (machine.l2_bytes as f64 * machine.l2_share) as u64];
    let mut all = Vec::new();
    for index in space.indices() {
        let dense = space.tensors.iter().filter(|tensor| tensor.is_dense());
        let slice = |tensor: &crate::autoschedule::partition::StoredTensor| {
            let others = tensor.levels.iter().filter(|level| level.index != index);
            let has = others.clone().count() < tensor.levels.len();
            let cells = others.fold(1, |n: u64, level| n.saturating_mul(extents.of(level.index)));
            if has { cells.saturating_mul(sizes.value_bytes) } else { 0 }
        };
        let bytes = dense.map(slice).fold(0, u64::saturating_add);
        let fitting = |cache: u64| match cache.checked_div(bytes)? {
            0 | 1 => None,
            most => Some(1u64 << most.ilog2()),
        };
        let mut own: Vec<u64> = caches.into_iter().filter_map(fitting).collect();
        own.retain(|&size| size < extents.of(index));
        own.dedup();
        if !own.is_empty() {
            all.push((index, own));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{Parameters, Sizes, cache_sizes, settings};
    use crate::autoschedule::partition::{IterationSpace, Mapping, SplitSchedule};
    use crate::cost::{Family, Machine};
    use crate::einsum::{Extents, indices};

    fn extents(i: u64, j: u64, k: u64) -> Extents {
        indices("ijk").into_iter().zip([i, j, k]).collect()
    }

    fn machine() -> Machine {
        let sizes = Family::Zen.machine();
        Machine { l1_bytes: 32 << 10, l2_bytes: 1 << 20, l2_share: 0.5, ..sizes }
    }

    #[test]
    fn sizes_follow_from_the_caches() {
        let machine = machine();
        let sizes = Sizes { machine: &machine, value_bytes: 8 };
        let found = cache_sizes(&IterationSpace::spmm(), &extents(100_000, 1_000, 128), &sizes);
        let of = |letter: &str| {
            let index = indices(letter)[0];
            found.iter().find(|(own, _)| *own == index).map(|(_, sizes)| sizes.as_slice())
        };
        // A row of C is 1 KiB; 16 fit in half of 32 KiB, and 512 in half of 1 MiB.
        assert_eq!(of("i"), Some(&[16, 512][..]));
        assert_eq!(of("j"), Some(&[16, 512][..]));
        // A column of B and C is 808,000 bytes.
        assert_eq!(of("k"), None);
    }

    #[test]
    fn illegal_settings_are_dropped() {
        let text = ".split(i, x0, x1, K0).split(k, x2, x3, K1)";
        let split = SplitSchedule::named(&IterationSpace::spmm(), text).unwrap();
        let cpu = Mapping::parse("x0 x1 x2 j x3; threads x0", &split).unwrap();
        let known = |k| Parameters { extents: Some(extents(1_000, 1_000, k)), ..Parameters::cpu() };
        assert_eq!(settings(&split, &cpu, &known(128)).len(), 9);
        assert_eq!(settings(&split, &cpu, &known(16)).len(), 3);
        assert_eq!(settings(&split, &cpu, &known(8)).len(), 0);
        // Warps of one loop with blocks: 4 and 16 of 4, 16 and 64, and no more than columns of a piece.
        let gpu = |text: &str| {
            let mapping = Mapping::parse(text, &split).unwrap();
            settings(&split, &mapping, &Parameters::gpu()).len()
        };
        assert_eq!(gpu("x3 x0 x1 j x2; blocks x3; warps x3; lanes j apart"), 3 * (1 + 2 + 2));
        // Warps of their own: pieces of 4 and 16; 64 alone has an element for each lane.
        assert_eq!(gpu("x2 x3 x0 x1 j; blocks x2; warps x3; lanes j apart"), 3 * 2);
        assert_eq!(gpu("x2 x0 x1 j x3; blocks x2; warps x2; lanes x3 apart"), 3 * 2);
    }

    #[test]
    fn a_problem_adds_the_sizes_of_its_caches() {
        let machine = machine();
        let sizes = Sizes { machine: &machine, value_bytes: 8 };
        let space = IterationSpace::spmm();
        let parameters =
            Parameters::cpu().with_sizes(&space, &extents(100_000, 1_000, 128), &sizes);
        let split = SplitSchedule::named(&space, ".split(i, x0, x1, K0)").unwrap();
        let mapping = Mapping::parse("x0 x1 j k; threads x0", &split).unwrap();
        let factors = settings(&split, &mapping, &parameters);
        let factors: Vec<u64> = factors.iter().map(|setting| setting.factors[0]).collect();
        assert_eq!(factors, [8, 16, 32, 512]);
    }
}
