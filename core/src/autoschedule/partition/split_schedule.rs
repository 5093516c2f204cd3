//! Split schedules: groups of fused indices, how each is cut, and the loops that are left (sections 2.3 and 2.4).
//!
//! They print as the source prints them (tables 3.1 and 3.2).

use std::fmt;

use crate::autoschedule::partition::space::IterationSpace;
use crate::autoschedule::partition::strategies::{Command, Part};
use crate::einsum::{Index, IndexSet};
use crate::schedule::Space;

/// An index, or several that one loop walks, and how it is cut.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// The indices, outermost level first.
    pub indices: Vec<Index>,
    /// What its loop counts: positions of a compressed level, or coordinates.
    pub space: Space,
    /// How it is cut.
    pub command: Option<Command>,
}

impl Group {
    /// Tells whether several indices are fused.
    pub fn is_fused(&self) -> bool {
        self.indices.len() > 1
    }
}

/// A loop that is left after fusing and cutting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Loop {
    /// Its name: the letter of an index, or `x` with a number.
    pub name: String,
    /// The group, by place.
    pub group: usize,
    /// Which part of the group.
    pub part: Part,
}

/// All decisions of the partition stage.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SplitSchedule {
    /// What is cut.
    pub space: IterationSpace,
    /// The groups, in the order of their first indices.
    pub groups: Vec<Group>,
    /// The loops, group by group.
    pub loops: Vec<Loop>,
}

impl SplitSchedule {
    pub(super) fn new(space: &IterationSpace, groups: Vec<Group>) -> SplitSchedule {
        let (_, loops) = written(space, &groups, Notation::Renamed);
        SplitSchedule { space: space.clone(), groups, loops }
    }

    /// Returns how many groups are cut: the number of factors.
    pub fn factors(&self) -> usize {
        self.groups.iter().filter(|group| group.command.is_some()).count()
    }

    /// Returns the place of the factor of a group.
    pub fn factor_of(&self, group: usize) -> Option<usize> {
        self.groups[group].command?;
        Some(self.groups[..group].iter().filter(|group| group.command.is_some()).count())
    }

    /// Returns the group that has `index`.
    pub fn group_of(&self, index: Index) -> Option<usize> {
        self.groups.iter().position(|group| group.indices.contains(&index))
    }

    /// Returns the groups with indices above a compressed level that is in another group.
    pub fn parents_of(&self, group: usize) -> Vec<usize> {
        let own: IndexSet = self.groups[group].indices.iter().copied().collect();
        let above = self.groups[group].indices.iter();
        let above = above.fold(IndexSet::EMPTY, |set, &index| set | self.space.parents(index));
        let mut parents: Vec<usize> =
            (above - own).iter().filter_map(|index| self.group_of(index)).collect();
        parents.dedup();
        parents
    }
}

/// How the command `pos` is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notation {
    /// The loop keeps its name: `.pos(j).split(j, x0, x1, K0)`, as in table 3.1.
    InPlace,
    /// The loop has a new name: `.pos(j, x0).split(x0, x1, x2, K0)`, as in table 3.2.
    Renamed,
}

impl SplitSchedule {
    /// Writes the commands; [`fmt::Display`] writes them with new names.
    pub fn notation(&self, notation: Notation) -> String {
        written(&self.space, &self.groups, notation).0
    }
}

impl fmt::Display for SplitSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.notation(Notation::Renamed))
    }
}

/// Returns the commands that make `groups`, and the loops that are left.
fn written(space: &IterationSpace, groups: &[Group], notation: Notation) -> (String, Vec<Loop>) {
    let (mut text, mut loops) = (String::new(), Vec::new());
    let (mut names, mut factors) = (0, 0);
    let mut fresh = || {
        names += 1;
        format!("x{}", names - 1)
    };
    for (at, group) in groups.iter().enumerate() {
        let letters: Vec<String> = group.indices.iter().map(Index::to_string).collect();
        let mut name = letters.join(", ");
        if group.is_fused() {
            let fused = fresh();
            text += &format!(".fuse({name}, {fused})");
            name = fused;
        }
        let one = |name, part| Loop { name, group: at, part };
        let Some(command) = group.command else {
            loops.push(one(name, Part::Whole));
            continue;
        };
        let compressed = group.indices.iter().any(|&index| space.is_compressed(index));
        if compressed && group.space == Space::Position {
            match notation {
                Notation::InPlace => text += &format!(".pos({name})"),
                Notation::Renamed => {
                    let positions = fresh();
                    text += &format!(".pos({name}, {positions})");
                    name = positions;
                }
            }
        }
        let (outer, inner) = (fresh(), fresh());
        text += &format!(".{command}({name}, {outer}, {inner}, K{factors})");
        factors += 1;
        loops.extend([one(outer, Part::Outer), one(inner, Part::Inner)]);
    }
    (text, loops)
}
