//! Schedule templates: split schedules with mappings, and the settings of their factors (section 2.5).

use std::fmt;

use crate::autoschedule::partition::cpu_passes::CPU_PASSES;
use crate::autoschedule::partition::cuts::{PartitionConfig, split_schedules};
use crate::autoschedule::partition::gpu_passes::GPU_PASSES;
use crate::autoschedule::partition::mapping::{
    Choices, LoopId, LoopSet, Mapping, Spread, Target, Units, naive,
};
use crate::autoschedule::partition::parameters::{LANES, Parameters, Setting, settings};
use crate::autoschedule::partition::space::IterationSpace;
use crate::autoschedule::partition::split_schedule::SplitSchedule;
use crate::autoschedule::partition::trimming::{Pass, PositionLoops, Scene, Trimmed, trim};

/// A schedule without the values of its factors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// How indices are fused and cut.
    pub split: SplitSchedule,
    /// How the loops run.
    pub mapping: Mapping,
}

impl Template {
    /// Writes the template with its factors set.
    ///
    /// ```
    /// use decompose_core::autoschedule::partition::{Mapping, IterationSpace, Setting, SplitSchedule, Template};
    ///
    /// let split = SplitSchedule::named(&IterationSpace::spmv(), ".split(i, x0, x1, K0)").expect("rows");
    /// let mapping = Mapping::parse("x0 x1 j; threads x0", &split)?;
    /// let template = Template { split, mapping };
    /// assert_eq!(
    ///     template.with(&Setting { factors: vec![16], warps: None }),
    ///     ".split(i, x0, x1, 16).reorder({x0, x1, j}).parallelize(x0, CPUThread)",
    /// );
    /// # Ok::<(), String>(())
    /// ```
    pub fn with(&self, setting: &Setting) -> String {
        let mut text = self.to_string();
        // Larger numbers first: `K1` begins `K10`.
        for (number, factor) in setting.factors.iter().enumerate().rev() {
            text = text.replace(&format!("K{number}"), &factor.to_string());
        }
        setting.warps.map_or(text.clone(), |warps| text.replace("WARPS", &warps.to_string()))
    }

    fn names(&self, loops: LoopSet) -> Vec<&str> {
        loops.iter().map(|one| self.name(one)).collect()
    }

    fn name(&self, one: LoopId) -> &str {
        &self.split.loops[one.place()].name
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.split)?;
        let mut order: Vec<&str> = Vec::new();
        let mut units: Vec<(&str, &str)> = Vec::new();
        // Several loops of one unit are fused first.
        let fused = |f: &mut fmt::Formatter<'_>, loops: LoopSet, name: &'static str| {
            write!(f, ".fuse({}, {name})", self.names(loops).join(", "))
        };
        match self.mapping.units {
            Units::Cpu { threads, vector } => {
                let all = self.mapping.order.iter();
                if threads.len() > 1 {
                    fused(f, threads, "thread")?;
                    order.push("thread");
                    order.extend(
                        all.filter(|one| !threads.contains(**one)).map(|&one| self.name(one)),
                    );
                    units.push(("thread", "CPUThread"));
                } else {
                    order.extend(all.map(|&one| self.name(one)));
                    units.extend(self.names(threads).into_iter().map(|name| (name, "CPUThread")));
                }
                units.extend(vector.map(|vector| (self.name(vector), "CPUVector")));
            }
            Units::Gpu { blocks, warps, lanes, spread } => {
                let mut grid = |loops: LoopSet, name: &'static str| match loops.len() {
                    1 => Ok(self.names(loops)[0]),
                    _ => fused(f, loops, name).map(|()| name),
                };
                let block = grid(blocks, "grid")?;
                let warp = if warps == blocks { block } else { grid(warps, "team")? };
                let (block, warp) = match warps == blocks {
                    true => {
                        write!(f, ".split({block}, block, warp, WARPS)")?;
                        ("block", "warp")
                    }
                    false => (block, warp),
                };
                order.extend([block, warp]);
                let lane = self.name(lanes);
                let pair = match spread {
                    Spread::Adjacent => ["rest", "thread"],
                    Spread::Apart => ["thread", "rest"],
                };
                match spread {
                    Spread::Adjacent => write!(f, ".split({lane}, rest, thread, {LANES})")?,
                    Spread::Apart => write!(f, ".divide({lane}, thread, rest, {LANES})")?,
                }
                for one in self.mapping.iterated() {
                    if one == lanes {
                        order.extend(pair);
                    } else {
                        order.push(self.name(one));
                    }
                }
                units.extend([(block, "GPUBlock"), (warp, "GPUWarp"), ("thread", "GPUThread")]);
            }
        }
        write!(f, ".reorder({{{}}})", order.join(", "))?;
        units.iter().try_for_each(|(name, unit)| write!(f, ".parallelize({name}, {unit})"))
    }
}

/// Returns the passes for a target.
fn passes(target: Target) -> &'static [Pass] {
    match target {
        Target::Cpu => CPU_PASSES,
        Target::Gpu => GPU_PASSES,
    }
}

/// A template with its legal settings.
pub type WithSettings = (Template, Vec<Setting>);

/// The templates of a split schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitTemplates {
    /// The split schedule.
    pub split: SplitSchedule,
    /// What the trimming passes leave of its mappings.
    pub trimmed: Trimmed,
    /// The templates with a legal setting.
    pub templates: Vec<WithSettings>,
}

/// Returns the templates of each split schedule of `space` with their legal settings.
///
/// Templates without a legal setting are left out.
pub fn templates(
    space: &IterationSpace,
    config: &PartitionConfig,
    target: Target,
    parameters: &Parameters,
) -> Vec<SplitTemplates> {
    let of = |split: SplitSchedule| {
        let scene = Scene::new(&split, parameters);
        let trimmed = trim(&scene, target, Choices::One, passes(target));
        let with = |mapping: &Mapping| {
            let settings = settings(&split, mapping, parameters);
            (Template { split: split.clone(), mapping: mapping.clone() }, settings)
        };
        let templates = trimmed.kept.iter().map(with).filter(|(_, settings)| !settings.is_empty());
        let templates = templates.collect();
        SplitTemplates { split, trimmed, templates }
    };
    split_schedules(space, config).into_iter().map(of).collect()
}

/// What there is of one split schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The split schedule.
    pub split: SplitSchedule,
    /// Mappings without passes, as the source counts them ([`naive`]).
    pub naive: u64,
    /// What the passes leave.
    pub trimmed: Trimmed,
    /// Templates with legal settings.
    pub templates: usize,
    /// Legal settings of all templates.
    pub schedules: usize,
}

/// Counts mappings, templates and schedules of each split schedule of `space`.
///
/// Any `choices` leave the same templates.
pub fn count(
    space: &IterationSpace,
    (target, choices): (Target, Choices),
    parameters: &Parameters,
    positions: PositionLoops,
) -> Vec<Counted> {
    let of = |split: SplitSchedule| {
        let scene = Scene::with(&split, parameters, positions);
        let trimmed = trim(&scene, target, choices, passes(target));
        let legal = trimmed.kept.iter().map(|one| settings(&split, one, parameters).len());
        let legal: Vec<usize> = legal.filter(|&settings| settings > 0).collect();
        let naive = naive(split.loops.len(), target);
        let (templates, schedules) = (legal.len(), legal.iter().sum());
        Counted { split, naive, trimmed, templates, schedules }
    };
    split_schedules(space, &PartitionConfig::default()).into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::{Template, count, templates};
    use crate::autoschedule::partition::{
        Choices, Counted, IterationSpace, Mapping, Parameters, PartitionConfig, PositionLoops,
        Setting, SplitSchedule, Target,
    };

    fn counted(space: &IterationSpace, target: Target, positions: PositionLoops) -> Vec<Counted> {
        let parameters = match target {
            Target::Cpu => Parameters::cpu(),
            Target::Gpu => Parameters::gpu(),
        };
        count(space, (target, Choices::One), &parameters, positions)
    }

    fn numbers(counted: &[Counted]) -> (Vec<usize>, usize) {
        let templates = counted.iter().map(|one| one.templates).collect();
        (templates, counted.iter().map(|one| one.schedules).sum())
    }

    #[test]
    fn spmv_has_the_schedules_of_the_source() {
        // Section 3.1: 87 on processors; those without a cut are two more.
        let cpu = counted(&IterationSpace::spmv(), Target::Cpu, PositionLoops::Both);
        assert_eq!(numbers(&cpu), (vec![2, 3, 3, 5, 6], 89));
        assert_eq!(cpu[0].schedules, 2);
        let literal = counted(&IterationSpace::spmv(), Target::Cpu, PositionLoops::Bounded);
        assert_eq!(numbers(&literal), (vec![2, 3, 5, 5, 11], 140));
    }

    #[test]
    fn spmm_has_about_the_schedules_of_the_source() {
        // Section 3.2: 798 on processors without those of the tenth.
        let cpu = counted(&IterationSpace::spmm(), Target::Cpu, PositionLoops::Both);
        assert_eq!(numbers(&cpu[..9]), (vec![3, 13, 5, 19, 3, 21, 6, 31, 6], 777));
        // The tenth alone has more than all others.
        assert_eq!(cpu[9].schedules, 1_269);
    }

    #[test]
    fn on_gpus_there_are_about_as_many() {
        // Section 3.2: 1039 for SpMM without the tenth.  Section 3.1: 50 for SpMV, with more values than here are legal.
        let of = |space: &IterationSpace| counted(space, Target::Gpu, PositionLoops::Both);
        let spmm = of(&IterationSpace::spmm_by_columns());
        assert_eq!(numbers(&spmm[..9]), (vec![2, 14, 18, 80, 4, 24, 2, 26, 4], 1004));
        assert_eq!(numbers(&of(&IterationSpace::spmv())), (vec![0, 2, 0, 0, 0], 4));
    }

    #[test]
    fn sets_of_parallel_loops_leave_no_other_templates() {
        let space = IterationSpace::spmv();
        for target in [Target::Cpu, Target::Gpu] {
            let parameters = Parameters::gpu();
            let of = |choices| count(&space, (target, choices), &parameters, PositionLoops::Both);
            let (one, sets) = (of(Choices::One), of(Choices::Sets));
            for (one, sets) in one.iter().zip(&sets) {
                assert_eq!(one.trimmed.kept, sets.trimmed.kept);
                assert!(sets.trimmed.all >= one.trimmed.all);
            }
        }
    }

    #[test]
    fn precomputed_mttkrp_has_about_the_schedules_of_the_source() {
        // Section 3.3: 27 templates and about 120 schedules.
        let space = IterationSpace::mttkrp_precomputed();
        let cpu = counted(&space, Target::Cpu, PositionLoops::Both);
        assert_eq!(numbers(&cpu), (vec![3, 6, 3, 6, 6], 102));
    }

    #[test]
    fn templates_print_as_commands() {
        let space = IterationSpace::spmv();
        let parameters = Parameters::cpu();
        let all = templates(&space, &PartitionConfig::default(), Target::Cpu, &parameters);
        let texts: Vec<String> =
            all.iter().flat_map(|own| &own.templates).map(|(one, _)| one.to_string()).collect();
        assert_eq!(texts[0], ".reorder({i, j}).parallelize(i, CPUThread)");
        // The one that the source tuned by hand.
        let tuned = ".split(i, x0, x1, K0).reorder({x0, x1, j}).parallelize(x0, CPUThread)";
        assert!(texts.iter().any(|text| text == tuned));
        let fused = ".fuse(i, j, x0).pos(x0, x1).split(x1, x2, x3, K0).reorder({x2, x3})\
                     .parallelize(x2, CPUThread).parallelize(x3, CPUVector)";
        assert!(texts.iter().any(|text| text == fused));
        let distinct: std::collections::HashSet<&String> = texts.iter().collect();
        assert_eq!(distinct.len(), 19);
    }

    #[test]
    fn templates_for_gpus_print_as_commands() {
        let text = ".fuse(i, j, x0).pos(x0, x1).split(x1, x2, x3, K0)";
        let split = SplitSchedule::named(&IterationSpace::spmv(), text).unwrap();
        let printed = |text: &str| {
            let mapping = Mapping::parse(text, &split).unwrap();
            let template = Template { split: split.clone(), mapping };
            template.with(&Setting { factors: vec![64], warps: Some(4) })
        };
        assert_eq!(
            printed("x2 x3; blocks x2; warps x2; lanes x3 apart"),
            ".fuse(i, j, x0).pos(x0, x1).split(x1, x2, x3, 64).split(x2, block, warp, 4)\
             .divide(x3, thread, rest, 32).reorder({block, warp, thread, rest})\
             .parallelize(block, GPUBlock).parallelize(warp, GPUWarp).parallelize(thread, GPUThread)"
        );
    }
}
