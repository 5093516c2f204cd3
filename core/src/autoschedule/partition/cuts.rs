//! The partition stage: which indices may be fused, and how groups may be cut (sections 2.3 and 2.4).
//!
//! 1. Dense indices are cut one by one.  Theorem 1 says that to fuse them reaches no other partition.
//! 2. A compressed level may be fused into the level above it, as table 2.1 allows.
//! 3. A fused group is cut, since fusing alone makes code slower and nothing else.
//! 4. A compressed level is cut in positions, so that chunks are equal; [`CompressedCuts::Both`] adds coordinates.
//!
//! A list begins with what leaves out most, in the order of tables 3.1 and 3.2.

use crate::autoschedule::partition::space::{IterationSpace, LevelFormat, StoredTensor};
use crate::autoschedule::partition::split_schedule::{Group, SplitSchedule};
use crate::autoschedule::partition::strategies::Command;
use crate::einsum::{Index, IndexSet};
use crate::schedule::Space;

/// Which cuts are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionConfig {
    /// The commands.  Default: `split` alone, as in the source's evaluation.
    pub commands: Vec<Command>,
    /// How compressed levels are cut.  Default: in positions.
    pub compressed: CompressedCuts,
    /// The most loops that are not pinned; split schedules with more are left out.  Default: any number.
    pub most_loops: usize,
}

impl Default for PartitionConfig {
    fn default() -> PartitionConfig {
        PartitionConfig {
            commands: vec![Command::Split],
            compressed: CompressedCuts::Positions,
            most_loops: usize::MAX,
        }
    }
}

impl PartitionConfig {
    /// Returns the one that lists all cuts: both commands, positions and coordinates.
    pub fn all() -> PartitionConfig {
        PartitionConfig {
            commands: vec![Command::Split, Command::Divide],
            compressed: CompressedCuts::Both,
            most_loops: usize::MAX,
        }
    }
}

/// How compressed levels are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompressedCuts {
    /// In positions.
    Positions,
    /// In positions and in coordinates.
    Both,
}

impl SplitSchedule {
    /// Returns the split schedule of `space` that is written `text`, of those with all cuts.
    ///
    /// ```
    /// use decompose_core::autoschedule::partition::{IterationSpace, SplitSchedule};
    ///
    /// let spmv = IterationSpace::spmv();
    /// let found = SplitSchedule::named(&spmv, ".divide(i, x0, x1, K0)").expect("a cut of rows");
    /// assert_eq!(found.loops.len(), 3);
    /// ```
    pub fn named(space: &IterationSpace, text: &str) -> Option<SplitSchedule> {
        let all = split_schedules(space, &PartitionConfig::all());
        all.into_iter().find(|split| split.to_string() == text)
    }
}

/// Returns all split schedules of `space`.
///
/// ```
/// use decompose_core::autoschedule::partition::{IterationSpace, PartitionConfig, split_schedules};
///
/// let all = split_schedules(&IterationSpace::spmv(), &PartitionConfig::default());
/// assert_eq!(all.len(), 5);
/// assert_eq!(all[1].to_string(), ".fuse(i, j, x0).pos(x0, x1).split(x1, x2, x3, K0)");
/// ```
pub fn split_schedules(space: &IterationSpace, config: &PartitionConfig) -> Vec<SplitSchedule> {
    let walked: IndexSet =
        space.sparse().flat_map(|tensor| &tensor.levels).map(|level| level.index).collect();
    let (inside, beside): (Vec<Index>, Vec<Index>) =
        space.indices().into_iter().partition(|&index| walked.contains(index));
    let mut heads = Vec::new();
    for fused in fusions(space) {
        heads.extend(cut(space, config, &grouped(&inside, &fused)));
    }
    // The first is without any command; those with fused indices follow it.
    heads[1..].sort_by_key(|groups| !groups.iter().any(Group::is_fused));
    let tails = cut(space, config, &grouped(&beside, &[]));
    let joined = |head: &Vec<Group>| {
        let with = |tail: &Vec<Group>| SplitSchedule::new(space, [head.as_slice(), tail].concat());
        tails.iter().map(with).collect::<Vec<SplitSchedule>>()
    };
    let all = heads.iter().flat_map(joined);
    all.filter(|split| split.loops.len() - space.pinned.len() <= config.most_loops).collect()
}

/// Returns the sets of groups that may be fused; the first is empty.
fn fusions(space: &IterationSpace) -> Vec<Vec<Vec<Index>>> {
    let mut sets: Vec<Vec<Vec<Index>>> = vec![Vec::new()];
    for tensor in space.sparse() {
        for run in runs(space, tensor) {
            let apart = |set: &&Vec<Vec<Index>>| {
                set.iter().all(|other| other.iter().all(|index| !run.contains(index)))
            };
            let with =
                |set: &Vec<Vec<Index>>| [set.as_slice(), std::slice::from_ref(&run)].concat();
            let more: Vec<_> = sets.iter().filter(apart).map(with).collect();
            sets.extend(more);
        }
    }
    sets
}

/// Returns the runs of levels that may be fused: all levels but the first are compressed (table 2.1).
///
/// So a run ends in a compressed level.
fn runs(space: &IterationSpace, tensor: &StoredTensor) -> Vec<Vec<Index>> {
    let levels = &tensor.levels;
    let mut runs = Vec::new();
    for first in 0..levels.len() {
        for last in first + 1..levels.len() {
            let run = &levels[first..=last];
            let fits = run[1..].iter().all(|level| level.format == LevelFormat::Compressed);
            let free = run.iter().all(|level| !space.pinned.contains(&level.index));
            if fits && free {
                runs.push(run.iter().map(|level| level.index).collect());
            }
        }
    }
    runs
}

/// Returns `indices` with those of a fused group as one, at the place of its first.
fn grouped(indices: &[Index], fused: &[Vec<Index>]) -> Vec<Vec<Index>> {
    let mut groups: Vec<Vec<Index>> = Vec::new();
    for &index in indices {
        let group = fused.iter().find(|group| group.contains(&index));
        match group {
            Some(group) if group[0] == index => groups.push(group.clone()),
            Some(_) => {}
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// Returns all ways to cut the groups, those that cut the last ones first.
fn cut(space: &IterationSpace, config: &PartitionConfig, groups: &[Vec<Index>]) -> Vec<Vec<Group>> {
    let mut ways: Vec<Vec<Group>> = vec![Vec::new()];
    for indices in groups {
        let cuts = cuts(space, config, indices);
        let extended = |way: &Vec<Group>| {
            let with = |cut: &Group| [way.as_slice(), std::slice::from_ref(cut)].concat();
            cuts.iter().map(with).collect::<Vec<Vec<Group>>>()
        };
        ways = ways.iter().flat_map(extended).collect();
    }
    ways
}

/// Returns the ways to cut one group.
fn cuts(space: &IterationSpace, config: &PartitionConfig, indices: &[Index]) -> Vec<Group> {
    let compressed = indices.last().is_some_and(|&last| space.is_compressed(last));
    let natural = if compressed { Space::Position } else { Space::Coordinate };
    let group = |space, command| Group { indices: indices.to_vec(), space, command };
    let mut cuts = Vec::new();
    if indices.len() == 1 {
        cuts.push(group(natural, None));
    }
    if space.pinned.contains(&indices[0]) {
        return cuts;
    }
    cuts.extend(config.commands.iter().map(|&command| group(natural, Some(command))));
    if compressed && indices.len() == 1 && config.compressed == CompressedCuts::Both {
        let coordinates = |&command| group(Space::Coordinate, Some(command));
        cuts.extend(config.commands.iter().map(coordinates));
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::{CompressedCuts, PartitionConfig, fusions, split_schedules};
    use crate::autoschedule::partition::space::LevelFormat::{self, Compressed, Dense};
    use crate::autoschedule::partition::{IterationSpace, Notation, SplitSchedule};

    fn listed(space: &IterationSpace, notation: Notation) -> Vec<String> {
        let all = split_schedules(space, &PartitionConfig::default());
        all.iter().map(|split| split.notation(notation)).collect()
    }

    #[test]
    fn the_split_schedules_of_spmv_are_those_of_table_3_1() {
        let table = [
            "",
            ".fuse(i, j, x0).pos(x0).split(x0, x1, x2, K0)",
            ".pos(j).split(j, x0, x1, K0)",
            ".split(i, x0, x1, K0)",
            ".split(i, x0, x1, K0).pos(j).split(j, x2, x3, K1)",
        ];
        assert_eq!(listed(&IterationSpace::spmv(), Notation::InPlace), table);
    }

    #[test]
    fn the_split_schedules_of_spmm_are_those_of_table_3_2() {
        let table = [
            "",
            ".split(k, x0, x1, K0)",
            ".fuse(i, j, x0).pos(x0, x1).split(x1, x2, x3, K0)",
            ".fuse(i, j, x0).pos(x0, x1).split(x1, x2, x3, K0).split(k, x4, x5, K1)",
            ".pos(j, x0).split(x0, x1, x2, K0)",
            ".pos(j, x0).split(x0, x1, x2, K0).split(k, x3, x4, K1)",
            ".split(i, x0, x1, K0)",
            ".split(i, x0, x1, K0).split(k, x2, x3, K1)",
            ".split(i, x0, x1, K0).pos(j, x2).split(x2, x3, x4, K1)",
            // The table names the tensor in this line alone: `pos(j, x2, A(i, j))`.
            ".split(i, x0, x1, K0).pos(j, x2).split(x2, x3, x4, K1).split(k, x5, x6, K2)",
        ];
        assert_eq!(listed(&IterationSpace::spmm(), Notation::Renamed), table);
        assert_eq!(listed(&IterationSpace::spmm_by_columns(), Notation::Renamed), table);
    }

    fn fused(formats: &[LevelFormat]) -> Vec<String> {
        let expr = match formats.len() {
            2 => "y(i) = A(i,j) * x(j)",
            _ => "A(i,j) = B(i,k,l) * C(k,j) * D(l,j)",
        };
        let space = IterationSpace::new(&expr.parse().unwrap(), &[(0, formats)]);
        let text = |set: &Vec<Vec<crate::einsum::Index>>| {
            let group =
                |group: &Vec<crate::einsum::Index>| group.iter().map(|x| x.letter()).collect();
            set.iter().map(group).collect::<Vec<String>>().join(" ")
        };
        fusions(&space)[1..].iter().map(text).collect()
    }

    #[test]
    fn levels_are_fused_as_table_2_1_allows() {
        assert_eq!(fused(&[Dense, Dense]), [""; 0]);
        assert_eq!(fused(&[Dense, Compressed]), ["ij"]);
        assert_eq!(fused(&[Compressed, Dense]), [""; 0]);
        assert_eq!(fused(&[Compressed, Compressed]), ["ij"]);
        // The source names two of these, and its rule allows a third.
        assert_eq!(fused(&[Dense, Compressed, Compressed]), ["ik", "ikl", "kl"]);
        assert_eq!(fused(&[Dense, Dense, Compressed]), ["kl"]);
        assert_eq!(fused(&[Dense, Compressed, Dense]), ["ik"]);
    }

    #[test]
    fn indices_of_different_tensors_are_not_fused() {
        let expr = "y(i) = A(i,j) * B(j,k) * x(k)".parse().unwrap();
        let formats: &[LevelFormat] = &[Dense, Compressed];
        let space = IterationSpace::new(&expr, &[(0, formats), (1, formats)]);
        let all = split_schedules(&space, &PartitionConfig::default());
        let has = |text: &str| all.iter().any(|split| split.to_string().contains(text));
        assert!(has("fuse(i, j,") && has("fuse(j, k,"));
        assert!(!has("fuse(i, k,") && !has("fuse(i, j, k,"));
    }

    #[test]
    fn all_strategies_and_both_spaces_are_listed_where_they_are_asked_for() {
        let all = split_schedules(&IterationSpace::spmv(), &PartitionConfig::all());
        // Of `i` three commands and of `j` five; fused, two.
        assert_eq!(all.len(), 3 * 5 + 2);
        let config =
            PartitionConfig { compressed: CompressedCuts::Both, ..PartitionConfig::default() };
        let both = split_schedules(&IterationSpace::spmv(), &config);
        assert!(both.iter().any(|split| split.to_string() == ".split(j, x0, x1, K0)"));
        let named = SplitSchedule::named(&IterationSpace::spmv(), &all[7].to_string());
        assert_eq!(named.as_ref(), Some(&all[7]));
    }

    #[test]
    fn pinned_indices_are_neither_fused_nor_cut() {
        let all =
            split_schedules(&IterationSpace::mttkrp_precomputed(), &PartitionConfig::default());
        assert_eq!(all.len(), 5);
        assert!(all.iter().all(|split| split.loops.iter().any(|x| x.name == "l")));
    }
}
