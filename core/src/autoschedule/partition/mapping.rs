//! Mappings: an order of the loops, and which of them run in parallel (sections 2.5 and 3).
//!
//! On a processor, threads share the iterations of some loops, and one loop may run in the lanes of vectors.  On a GPU,
//! blocks share those of some loops, warps of blocks those of the same or of other ones, and lanes of a warp those of one.
//!
//! A mapping is written as `x0 x1 j; threads x0; vector x1` or `x2 x3 k; blocks x2; warps x2; lanes x3 adjacent`.

use std::fmt;

use crate::autoschedule::partition::split_schedule::SplitSchedule;

/// The number of a loop of a split schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopId(u8);

impl LoopId {
    /// Returns the loop at `place` of [`SplitSchedule::loops`].
    pub fn at(place: usize) -> LoopId {
        // There are two loops an index, and 52 indices.
        LoopId(place as u8)
    }

    /// Returns the place of the loop in [`SplitSchedule::loops`].
    pub fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// A set of loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopSet(u128);

impl LoopSet {
    /// The set without loops.
    pub const EMPTY: LoopSet = LoopSet(0);

    /// Returns the set of one loop.
    pub fn of(one: LoopId) -> LoopSet {
        LoopSet(1 << one.0)
    }

    /// Tells whether a loop is in the set.
    pub fn contains(self, one: LoopId) -> bool {
        self.0 >> one.0 & 1 == 1
    }

    /// Returns the loops that are in either set.
    pub fn or(self, other: LoopSet) -> LoopSet {
        LoopSet(self.0 | other.0)
    }

    /// Returns the number of loops.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Tells whether every loop is in `other`.
    pub fn is_subset(self, other: LoopSet) -> bool {
        self.0 & !other.0 == 0
    }

    /// Tells whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the loops by number.
    pub fn iter(self) -> impl Iterator<Item = LoopId> {
        (0..u128::BITS as u8).map(LoopId).filter(move |&one| self.contains(one))
    }
}

/// How the lanes of a warp share a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spread {
    /// Neighbouring lanes take neighbouring iterations.
    Adjacent,
    /// Each lane takes neighbouring iterations.
    Apart,
}

/// The units that run loops in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Units {
    /// Those of a processor.
    Cpu {
        /// The loops that threads share, fused if there are several.
        threads: LoopSet,
        /// The loop that runs in the lanes of vectors.
        vector: Option<LoopId>,
    },
    /// Those of a GPU.
    Gpu {
        /// The loops that blocks share.
        blocks: LoopSet,
        /// The loops that warps share: the same ones, or others.
        warps: LoopSet,
        /// The loop that the lanes of a warp share.
        lanes: LoopId,
        /// How they share it.
        spread: Spread,
    },
}

impl Units {
    /// Returns the loops that run in parallel.
    pub fn parallel(self) -> LoopSet {
        match self {
            Units::Cpu { threads, vector } => {
                vector.map_or(threads, |vector| threads.or(LoopSet::of(vector)))
            }
            Units::Gpu { blocks, warps, lanes, .. } => blocks.or(warps).or(LoopSet::of(lanes)),
        }
    }

    /// Returns the loops that are gone where every unit has one iteration: those of blocks and warps.
    pub fn dissolved(self) -> LoopSet {
        match self {
            Units::Cpu { .. } => LoopSet::EMPTY,
            Units::Gpu { blocks, warps, .. } => blocks.or(warps),
        }
    }
}

/// An order of the loops, and which run in parallel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// All loops, outermost first.
    pub order: Vec<LoopId>,
    /// Who runs them.
    pub units: Units,
}

impl Mapping {
    /// Reads a mapping of the loops of `split`.
    ///
    /// # Errors
    ///
    /// What is wrong with the text.
    ///
    /// # Example
    ///
    /// ```
    /// use decompose_core::autoschedule::partition::{IterationSpace, Mapping, SplitSchedule};
    ///
    /// let split = SplitSchedule::named(&IterationSpace::spmv(), ".split(i, x0, x1, K0)").expect("rows");
    /// let mapping = Mapping::parse("x0 x1 j; threads x0; vector x1", &split)?;
    /// assert_eq!(mapping.text(&split), "x0 x1 j; threads x0; vector x1");
    /// # Ok::<(), String>(())
    /// ```
    pub fn parse(text: &str, split: &SplitSchedule) -> Result<Mapping, String> {
        let named = |name: &str| {
            let place = split.loops.iter().position(|one| one.name == name);
            place.map(LoopId::at).ok_or_else(|| format!("there is no loop `{name}`"))
        };
        let mut parts = text.split(';');
        let order = parts.next().unwrap_or_default().split_whitespace().map(named);
        let order = order.collect::<Result<Vec<LoopId>, String>>()?;
        let mut given: Vec<(&str, Vec<&str>)> = Vec::new();
        for part in parts {
            let mut words = part.split_whitespace();
            given.push((words.next().unwrap_or_default(), words.collect()));
        }
        let words = |key: &str| {
            let found = given.iter().find(|(own, _)| *own == key);
            found.map_or(&[][..], |(_, words)| words.as_slice())
        };
        let set = |key: &str| {
            words(key).iter().try_fold(LoopSet::EMPTY, |set, name| {
                Ok::<LoopSet, String>(set.or(LoopSet::of(named(name)?)))
            })
        };
        let units = match words("lanes") {
            [] => {
                let vector = words("vector").first().map(|name| named(name)).transpose()?;
                Units::Cpu { threads: set("threads")?, vector }
            }
            [lanes, spread] => {
                let spread = match *spread {
                    "adjacent" => Spread::Adjacent,
                    "apart" => Spread::Apart,
                    other => return Err(format!("`{other}` is neither adjacent nor apart")),
                };
                let (blocks, warps) = (set("blocks")?, set("warps")?);
                Units::Gpu { blocks, warps, lanes: named(lanes)?, spread }
            }
            _ => return Err("write: lanes LOOP adjacent|apart".into()),
        };
        let all: LoopSet = order.iter().fold(LoopSet::EMPTY, |set, &one| set.or(LoopSet::of(one)));
        if order.len() != split.loops.len() || all.len() != order.len() {
            return Err(format!("the {} loops stand once each", split.loops.len()));
        }
        Ok(Mapping { order, units })
    }

    /// Writes the mapping with the names of the loops of `split`.
    pub fn text(&self, split: &SplitSchedule) -> String {
        let name = |one: LoopId| split.loops[one.place()].name.as_str();
        let list = |loops: &mut dyn Iterator<Item = LoopId>| {
            loops.map(name).collect::<Vec<&str>>().join(" ")
        };
        let mut text = list(&mut self.order.iter().copied());
        match self.units {
            Units::Cpu { threads, vector } => {
                text += &format!("; threads {}", list(&mut threads.iter()));
                if let Some(vector) = vector {
                    text += &format!("; vector {}", name(vector));
                }
            }
            Units::Gpu { blocks, warps, lanes, spread } => {
                let (blocks, warps) = (list(&mut blocks.iter()), list(&mut warps.iter()));
                text +=
                    &format!("; blocks {blocks}; warps {warps}; lanes {} {spread}", name(lanes));
            }
        }
        text
    }

    /// Returns the loops that each unit iterates over, outermost first.
    pub fn iterated(&self) -> impl Iterator<Item = LoopId> {
        let dissolved = self.units.dissolved();
        self.order.iter().copied().filter(move |&one| !dissolved.contains(one))
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Spread::Adjacent => "adjacent",
            Spread::Apart => "apart",
        })
    }
}

/// What runs the loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A processor.
    Cpu,
    /// A GPU.
    Gpu,
}

/// Which parallel loops are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choices {
    /// Any set of loops on each level of parallelism (section 2.5).
    Sets,
    /// One loop on each level: what the source's evaluation compares with (chapter 3).
    One,
}

/// Visits all mappings of `split`, in the same order each time.
///
/// Pinned loops stay innermost, whole and in order.
pub fn for_each_mapping(
    split: &SplitSchedule,
    target: Target,
    choices: Choices,
    visit: &mut dyn FnMut(&Mapping),
) {
    let units = all_units(split.loops.len(), target, choices);
    let Some(&first) = units.first() else { return };
    let mut mapping = Mapping { order: Vec::new(), units: first };
    for_each_order(split, &mut |order| {
        mapping.order.clear();
        mapping.order.extend_from_slice(order);
        for &one in &units {
            mapping.units = one;
            visit(&mapping);
        }
    });
}

/// Visits all orders of the loops of `split` in which pinned loops are innermost.
pub(super) fn for_each_order(split: &SplitSchedule, visit: &mut dyn FnMut(&[LoopId])) {
    let ids = (0..split.loops.len() as u8).map(LoopId);
    let (pinned, mut free): (Vec<LoopId>, Vec<LoopId>) = ids.partition(|one| {
        let group = &split.groups[split.loops[one.place()].group];
        split.space.pinned.contains(&group.indices[0])
    });
    loop {
        visit(&[free.as_slice(), &pinned].concat());
        if !next_permutation(&mut free) {
            return;
        }
    }
}

/// Returns all choices of parallel loops of `loops`.
fn all_units(loops: usize, target: Target, choices: Choices) -> Vec<Units> {
    let ids = || (0..loops as u8).map(LoopId);
    let sets: Vec<LoopSet> = match choices {
        Choices::Sets => (1..1u128 << loops).map(LoopSet).collect(),
        Choices::One => ids().map(LoopSet::of).collect(),
    };
    let mut units = Vec::new();
    for &outer in &sets {
        match target {
            Target::Cpu => {
                let vectors = ids().filter(|&one| !outer.contains(one)).map(Some);
                let with = |vector| Units::Cpu { threads: outer, vector };
                units.extend([None].into_iter().chain(vectors).map(with));
            }
            Target::Gpu => {
                let apart = |warps: &&LoopSet| **warps == outer || warps.0 & outer.0 == 0;
                for &warps in sets.iter().filter(apart) {
                    let used = outer.or(warps);
                    for lanes in ids().filter(|&one| !used.contains(one)) {
                        let with = |spread| Units::Gpu { blocks: outer, warps, lanes, spread };
                        units.extend([Spread::Adjacent, Spread::Apart].map(with));
                    }
                }
            }
        }
    }
    units
}

/// Steps to the next permutation in lexicographic order; `false` after the last.
fn next_permutation(order: &mut [LoopId]) -> bool {
    let Some(at) = (1..order.len()).rev().find(|&at| order[at - 1] < order[at]) else {
        return false;
    };
    let pivot = order[at - 1];
    let swap = (at..order.len()).rev().find(|&other| order[other] > pivot).unwrap_or(at);
    order.swap(at - 1, swap);
    order[at..].reverse();
    true
}

/// Returns the number of mappings of `loops` loops that the source takes to be the naive ones (chapter 3).
///
/// On a processor that is `n^2 n!`, as many as [`Choices::One`] lists.  On a GPU it is `n! (3n - 4)`: the loops of blocks
/// and warps are outermost, and which of two is that of the blocks does not count.
///
/// ```
/// use decompose_core::autoschedule::partition::{Target, naive};
///
/// assert_eq!((naive(3, Target::Cpu), naive(3, Target::Gpu)), (54, 30));
/// ```
pub fn naive(loops: usize, target: Target) -> u64 {
    let n = loops as u64;
    let orders: u64 = (1..=n).product();
    match target {
        Target::Cpu => n * n * orders,
        Target::Gpu => orders * (3 * n).saturating_sub(4),
    }
}

#[cfg(test)]
mod tests {
    use super::{Choices, Mapping, Target, for_each_mapping, naive};
    use crate::autoschedule::partition::{IterationSpace, PartitionConfig, split_schedules};

    fn listed(split: usize, target: Target, choices: Choices) -> Vec<Mapping> {
        let all = split_schedules(&IterationSpace::spmv(), &PartitionConfig::default());
        let mut mappings = Vec::new();
        for_each_mapping(&all[split], target, choices, &mut |one| mappings.push(one.clone()));
        mappings
    }

    #[test]
    fn all_orders_and_choices_are_listed_once() {
        for (split, loops) in [(0, 2), (1, 2), (2, 3), (3, 3), (4, 4)] {
            let orders: u64 = (1..=loops).product();
            let cpu = listed(split, Target::Cpu, Choices::One);
            assert_eq!(cpu.len() as u64, naive(loops as usize, Target::Cpu));
            // Of blocks and warps in any order and at any place: n for both and n (n - 1) apart; two ways to share lanes.
            let gpu = listed(split, Target::Gpu, Choices::One);
            let choices = 2 * loops * (loops - 1) * (1 + loops - 2);
            assert_eq!(gpu.len() as u64, orders * choices);
            let sets = listed(split, Target::Cpu, Choices::Sets);
            let of_size = |s: u64| (0..s).fold(1, |c, i| c * (loops - i) / (i + 1));
            let choices: u64 = (1..=loops).map(|s| of_size(s) * (loops - s + 1)).sum();
            assert_eq!(sets.len() as u64, orders * choices);
            let distinct: std::collections::HashSet<&Mapping> = sets.iter().collect();
            assert_eq!(distinct.len(), sets.len());
        }
    }

    #[test]
    fn texts_are_read_back() {
        let all = split_schedules(&IterationSpace::spmv(), &PartitionConfig::default());
        for target in [Target::Cpu, Target::Gpu] {
            for mapping in listed(4, target, Choices::Sets) {
                let text = mapping.text(&all[4]);
                assert_eq!(Mapping::parse(&text, &all[4]), Ok(mapping), "{text}");
            }
        }
        let refused = |text: &str| Mapping::parse(text, &all[0]).unwrap_err();
        assert_eq!(refused("i k"), "there is no loop `k`");
        assert_eq!(refused("i; threads i"), "the 2 loops stand once each");
        assert_eq!(refused("i j; lanes j near"), "`near` is neither adjacent nor apart");
    }

    #[test]
    fn pinned_loops_stay_innermost() {
        let space = IterationSpace::mttkrp_precomputed();
        let split = &split_schedules(&space, &PartitionConfig::default())[0];
        let mut texts = Vec::new();
        for_each_mapping(split, Target::Cpu, Choices::One, &mut |one| texts.push(one.text(split)));
        assert_eq!(texts.len(), 2 * 16);
        assert!(texts.iter().all(|text| text.split(';').next().unwrap().ends_with("l j")));
    }
}
