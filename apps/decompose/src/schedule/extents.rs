//! The extents of indices: what files and options say, and what follows from it.

use std::collections::BTreeMap;

use decompose_core::einsum::{Access, Assignment, Index};

use crate::failure::Failure;

/// The extents of the indices of some assignments, each with where it is known from.
///
/// Indices that stand in the same mode of a tensor, in whatever assignment, have one extent.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    groups: Groups,
    /// By group.
    extents: BTreeMap<usize, (u64, String)>,
}

impl Known {
    /// Returns the extents that options give to indices of `assignments`, by name.
    pub(crate) fn given<'a>(
        assignments: &[Assignment],
        options: impl Iterator<Item = &'a (String, u64)>,
    ) -> Result<Known, Failure> {
        let mut known = Known { groups: Groups::of(assignments), extents: BTreeMap::new() };
        for (name, extent) in options {
            let mut found = false;
            for (at, assignment) in assignments.iter().enumerate() {
                let index = assignment.names.find(name);
                if let Some(index) = index.filter(|&index| assignment.all().contains(index)) {
                    found = true;
                    known.set_group(known.groups.of_index(at, index), *extent, "the options")?;
                }
            }
            if !found {
                let all: Vec<String> = assignments.iter().map(ToString::to_string).collect();
                let all = all.join("`, `");
                let why = format!("`{all}` has no index `{name}`, which is given extent {extent}");
                let names = known.groups.names.join(", ");
                return Err(Failure::input(why).help(format!("its indices are {names}")));
            }
        }
        Ok(known)
    }

    /// Records the extent of a mode of a tensor; it must be the one that is known already.
    pub(crate) fn set(
        &mut self,
        (tensor, mode): (&str, usize),
        extent: u64,
        from: &str,
    ) -> Result<(), Failure> {
        self.set_group(self.groups.of_mode(tensor, mode), extent, from)
    }

    /// Returns the extent of a mode of a tensor, if it is known.
    pub(crate) fn get(&self, (tensor, mode): (&str, usize)) -> Option<u64> {
        let group = self.groups.of_mode(tensor, mode)?;
        self.extents.get(&group).map(|(extent, _)| *extent)
    }

    /// Returns where the extent of a mode is known from.
    pub(crate) fn source(&self, (tensor, mode): (&str, usize)) -> &str {
        let group = self.groups.of_mode(tensor, mode);
        let known = group.and_then(|group| self.extents.get(&group));
        known.map_or("the options", |(_, source)| source)
    }

    /// Returns the name of the index of a mode.
    pub(crate) fn index(&self, (tensor, mode): (&str, usize)) -> &str {
        self.groups.of_mode(tensor, mode).map_or("", |group| &self.groups.names[group])
    }

    /// Writes `access` with the names of its indices.
    pub(crate) fn named(&self, access: &Access) -> String {
        let modes = 0..access.indices.len();
        let names: Vec<&str> = modes.map(|mode| self.index((&access.tensor, mode))).collect();
        format!("{}({})", access.tensor, names.join(","))
    }

    fn set_group(&mut self, group: Option<usize>, extent: u64, from: &str) -> Result<(), Failure> {
        let group = group.ok_or_else(|| Failure::internal("an index of no group"))?;
        let index = &self.groups.names[group];
        match self.extents.get(&group) {
            Some((before, source)) if *before != extent => Err(Failure::input(format!(
                "index `{index}` runs to {before} in {source} but to {extent} in {from}"
            ))
            .help("operands that share an index need one extent of it")),
            Some(_) => Ok(()),
            None => {
                self.extents.insert(group, (extent, from.to_owned()));
                Ok(())
            }
        }
    }
}

/// Indices that have one extent.
#[derive(Clone, Debug, Default)]
struct Groups {
    /// The group of each index of each assignment.
    indices: BTreeMap<(usize, Index), usize>,
    /// The group of each mode of each tensor.
    modes: BTreeMap<(String, usize), usize>,
    /// The name of the first index of each group.
    names: Vec<String>,
}

impl Groups {
    fn of(assignments: &[Assignment]) -> Groups {
        let mut groups = Groups::default();
        for (at, assignment) in assignments.iter().enumerate() {
            for access in assignment.inputs().chain([&assignment.output]) {
                for (mode, &index) in access.indices.iter().enumerate() {
                    let slot = (access.tensor.clone(), mode);
                    let by_index = groups.indices.get(&(at, index)).copied();
                    let by_mode = groups.modes.get(&slot).copied();
                    let group = match (by_index, by_mode) {
                        (Some(own), Some(other)) => groups.join(own, other),
                        (Some(group), None) | (None, Some(group)) => group,
                        (None, None) => {
                            groups.names.push(assignment.names.of(index));
                            groups.names.len() - 1
                        }
                    };
                    groups.indices.insert((at, index), group);
                    groups.modes.insert(slot, group);
                }
            }
        }
        groups
    }

    /// Makes one group of two.
    fn join(&mut self, a: usize, b: usize) -> usize {
        let (kept, gone) = (a.min(b), a.max(b));
        let members = self.indices.values_mut().chain(self.modes.values_mut());
        members.filter(|group| **group == gone).for_each(|group| *group = kept);
        kept
    }

    fn of_index(&self, assignment: usize, index: Index) -> Option<usize> {
        self.indices.get(&(assignment, index)).copied()
    }

    fn of_mode(&self, tensor: &str, mode: usize) -> Option<usize> {
        self.modes.get(&(tensor.to_owned(), mode)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Known;

    #[test]
    fn indices_of_one_mode_share_their_extent() {
        let program = ["T(i,k) = X(i,j) * X(k,j)", "z = T(a,b) * y(b)"];
        let program: Vec<_> = program.iter().map(|text| text.parse().unwrap()).collect();
        let options = [("b".to_owned(), 7)];
        let mut known = Known::given(&program, options.iter()).unwrap();
        assert_eq!((known.get(("X", 0)), known.get(("T", 0))), (Some(7), Some(7)));
        assert_eq!((known.get(("X", 1)), known.index(("y", 0))), (None, "i"));
        assert!(known.set(("X", 0), 8, "X.tns").is_err());
        known.set(("X", 1), 3, "X.tns").unwrap();
        assert_eq!((known.get(("X", 1)), known.source(("X", 1))), (Some(3), "X.tns"));
        assert!(Known::given(&program, [("q".to_owned(), 7)].iter()).is_err());
    }
}
