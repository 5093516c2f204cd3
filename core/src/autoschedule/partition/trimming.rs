//! Trimming: which mappings are worth a schedule (section 2.5.1).
//!
//! A pass is a function that keeps a mapping or not.  It looks at one mapping, so passes can stand in any order; what
//! each removes is counted among those that the passes before it kept.

use crate::autoschedule::partition::mapping::{
    Choices, LoopId, LoopSet, Mapping, Target, for_each_mapping, for_each_order,
};
use crate::autoschedule::partition::parameters::Parameters;
use crate::autoschedule::partition::split_schedule::SplitSchedule;
use crate::autoschedule::partition::strategies::{Part, fixed_part};
use crate::schedule::Space;

/// A trimming pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its number in the source, such as `CPU-3`.
    pub number: &'static str,
    /// What it asks for.
    pub name: &'static str,
    /// Tells whether it keeps a mapping.
    pub keeps: fn(&Scene<'_>, &Mapping) -> bool,
}

/// Which loops over positions need the place in the levels above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PositionLoops {
    /// Both loops of a cut level: positions are counted from where the level above is.
    Both,
    /// The one whose number of iterations follows from the data, as the text of pass 0 says.
    Bounded,
}

/// What passes know of a split schedule.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// The split schedule.
    pub split: &'a SplitSchedule,
    /// The values of its factors.
    pub parameters: &'a Parameters,
    /// For each loop the loops that must run around it.
    around: Vec<LoopSet>,
    /// The loops of each group.
    loops_of: Vec<LoopSet>,
    /// Pairs of groups of which a dense tensor stores the first one further outside.
    preferences: Vec<(usize, usize)>,
    /// The most preferences that an order keeps.
    best: usize,
}

impl<'a> Scene<'a> {
    /// Returns what passes know of `split` whose loops over positions are [`PositionLoops::Both`] inside those above.
    pub fn new(split: &'a SplitSchedule, parameters: &'a Parameters) -> Scene<'a> {
        Scene::with(split, parameters, PositionLoops::Both)
    }

    /// Returns what passes know of `split`.
    pub fn with(
        split: &'a SplitSchedule,
        parameters: &'a Parameters,
        positions: PositionLoops,
    ) -> Scene<'a> {
        let loops_of: Vec<LoopSet> = (0..split.groups.len())
            .map(|group| {
                let own = split.loops.iter().enumerate().filter(|(_, one)| one.group == group);
                own.fold(LoopSet::EMPTY, |set, (place, _)| set.or(LoopSet::of(LoopId::at(place))))
            })
            .collect();
        let around = (0..split.loops.len()).map(|place| around(split, &loops_of, place, positions));
        let around = around.collect();
        let pairs = split.space.preferences();
        let group = |index| split.group_of(index);
        let preferences =
            pairs.into_iter().filter_map(|(a, b)| Some((group(a)?, group(b)?))).collect();
        let mut scene = Scene { split, parameters, around, loops_of, preferences, best: 0 };
        let mut best = 0;
        for_each_order(split, &mut |order| {
            if scene.is_possible(order) {
                best = best.max(scene.kept_preferences(order));
            }
        });
        scene.best = best;
        scene
    }

    /// Tells whether every loop runs inside those that it needs.
    pub fn is_possible(&self, order: &[LoopId]) -> bool {
        let mut seen = LoopSet::EMPTY;
        order.iter().all(|&one| {
            let possible = self.around[one.place()].is_subset(seen);
            seen = seen.or(LoopSet::of(one));
            possible
        })
    }

    /// Returns how many preferences of dense tensors an order keeps.
    ///
    /// An index is known once all loops of its group have begun.  Indices that are fused are known at once, in order.
    pub fn kept_preferences(&self, order: &[LoopId]) -> usize {
        let known =
            |group: usize| order.iter().rposition(|&one| self.loops_of[group].contains(one));
        let kept = |(a, b): &&(usize, usize)| a == b || known(*a) < known(*b);
        self.preferences.iter().filter(kept).count()
    }

    /// Returns the most preferences that a possible order keeps.
    pub fn most_preferences(&self) -> usize {
        self.best
    }

    /// Returns which part of its group a loop is.
    pub fn part(&self, one: LoopId) -> Part {
        self.split.loops[one.place()].part
    }

    /// Returns the group of a loop.
    pub fn group(&self, one: LoopId) -> usize {
        self.split.loops[one.place()].group
    }

    /// Tells whether the number of iterations of a loop is a factor.
    pub fn is_fixed(&self, one: LoopId) -> bool {
        let command = self.split.groups[self.group(one)].command;
        command.is_some_and(|command| fixed_part(command) == self.part(one))
    }
}

/// Returns the loops that must run around the loop at `place`: those of the levels above, if it needs the place in them.
fn around(
    split: &SplitSchedule,
    loops_of: &[LoopSet],
    place: usize,
    positions: PositionLoops,
) -> LoopSet {
    let one = &split.loops[place];
    let group = &split.groups[one.group];
    let needs = match (group.command, group.space) {
        (None, _) => true,
        (Some(_), Space::Position) if positions == PositionLoops::Both => true,
        (Some(command), Space::Position) => one.part != fixed_part(command),
        // Chunks of coordinates are known before; the positions inside them are searched for.
        (Some(_), Space::Coordinate) => one.part == Part::Inner,
    };
    if !needs {
        return LoopSet::EMPTY;
    }
    let parents = split.parents_of(one.group).into_iter();
    parents.fold(LoopSet::EMPTY, |set, parent| set.or(loops_of[parent]))
}

/// What is left of the mappings of a split schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// Mappings before the first pass.
    pub all: u64,
    /// Mappings that each pass removed.
    pub removed: Vec<u64>,
    /// The mappings that all passes keep.
    pub kept: Vec<Mapping>,
}

/// Applies `passes` to all mappings of a split schedule.
///
/// ```
/// use decompose_core::autoschedule::partition::{
///     CPU_PASSES, Choices, IterationSpace, Parameters, Scene, SplitSchedule, Target, trim,
/// };
///
/// let rows = SplitSchedule::named(&IterationSpace::spmv(), ".split(i, x0, x1, K0)").expect("rows");
/// let parameters = Parameters::cpu();
/// let left = trim(&Scene::new(&rows, &parameters), Target::Cpu, Choices::One, CPU_PASSES);
/// assert_eq!(left.all, 54);
/// assert_eq!(left.kept.len(), 5);
/// assert_eq!(left.removed.iter().sum::<u64>(), 49);
/// ```
pub fn trim(scene: &Scene<'_>, target: Target, choices: Choices, passes: &[Pass]) -> Trimmed {
    let mut trimmed = Trimmed { all: 0, removed: vec![0; passes.len()], kept: Vec::new() };
    for_each_mapping(scene.split, target, choices, &mut |mapping| {
        trimmed.all += 1;
        match passes.iter().position(|pass| !(pass.keeps)(scene, mapping)) {
            Some(pass) => trimmed.removed[pass] += 1,
            None => trimmed.kept.push(mapping.clone()),
        }
    });
    trimmed
}

#[cfg(test)]
mod tests {
    use super::{PositionLoops, Scene, trim};
    use crate::autoschedule::partition::{
        CPU_PASSES, Choices, GPU_PASSES, IterationSpace, Mapping, Parameters, PartitionConfig,
        SplitSchedule, Target, split_schedules,
    };

    #[test]
    fn passes_may_stand_in_any_order() {
        let parameters = Parameters::gpu();
        let spaces = [IterationSpace::spmv(), IterationSpace::spmm()];
        for space in &spaces {
            for split in split_schedules(space, &PartitionConfig::default()).iter().take(9) {
                let scene = Scene::new(split, &parameters);
                for (target, passes) in [(Target::Cpu, CPU_PASSES), (Target::Gpu, GPU_PASSES)] {
                    let one = trim(&scene, target, Choices::One, passes);
                    let back: Vec<_> = passes.iter().rev().copied().collect();
                    let other = trim(&scene, target, Choices::One, &back);
                    assert_eq!(one.kept, other.kept, "{split}");
                    for trimmed in [&one, &other] {
                        let removed: u64 = trimmed.removed.iter().sum();
                        assert_eq!(trimmed.all, removed + trimmed.kept.len() as u64);
                    }
                }
            }
        }
    }

    #[test]
    fn of_loops_over_positions_the_fixed_one_may_be_free() {
        let text = ".pos(j, x0).split(x0, x1, x2, K0)";
        let split = SplitSchedule::named(&IterationSpace::spmv(), text).unwrap();
        let parameters = Parameters::cpu();
        let order = Mapping::parse("x2 i x1; threads x2", &split).unwrap().order;
        let possible = |positions| Scene::with(&split, &parameters, positions).is_possible(&order);
        assert!(possible(PositionLoops::Bounded));
        assert!(!possible(PositionLoops::Both));
    }

    #[test]
    fn the_order_in_which_indices_are_known_is_that_of_the_source() {
        // Section 2.5.2: after x11 x32 x31 x12 x21 x22, X3 is known before X1 and X1 before X2.
        let expr = "A(i,j,k) = B(i,j,k) * C(i,j,k)".parse().unwrap();
        let space = IterationSpace::new(&expr, &[]);
        let text = ".split(i, x0, x1, K0).split(j, x2, x3, K1).split(k, x4, x5, K2)";
        let split = SplitSchedule::named(&space, text).unwrap();
        let parameters = Parameters::cpu();
        let scene = Scene::new(&split, &parameters);
        let kept =
            |text: &str| scene.kept_preferences(&Mapping::parse(text, &split).unwrap().order);
        assert_eq!(kept("x0 x1 x2 x3 x4 x5"), 9);
        // Of ij, ik and jk, each preferred by three tensors, the first alone is kept.
        assert_eq!(kept("x0 x5 x4 x1 x2 x3"), 3);
        assert_eq!(scene.most_preferences(), 9);
    }
}
