//! Optimisations: what makes kernels fast, and can be left out to see how much of it.
//!
//! Results without one differ by rounding only.  None of them is known to the search or the cost model:
//! what is left out is taken from a plan, or narrows what the plan may choose from, and the rest of the
//! plan stays.

use std::str::FromStr;

use serde::Serialize;

/// One optimisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimisation {
    /// Ranks, strides and sizes are literals in generated code.  Without: kernels read them when they
    /// run, the same code serves every rank, and nothing can be kept in [`Optimisation::Registers`], since
    /// the number of vectors of a row is not known.
    Constants,
    /// Sums stay in vector registers: whole rows, tiles of them, partial sums side by side, nodes taken in
    /// batches.  Without: every sum is a row in memory, read and written at each step.
    Registers,
    /// Rows that are gathered or added to are prefetched ahead of their use.  Without: none is.
    Prefetch,
    /// Trees may be stored block by block, so that rows that are gathered stay near.  Without: none is.
    Blocks,
    /// Factors may be stored as panels of columns, and a sweep take one after the other, so that more of
    /// the rows that are gathered stay near.  Without: they are stored whole.
    Panels,
    /// Modes are merged, so that kernels share partial products.  Without: every kernel runs over all
    /// non-zeros.
    Merging,
    /// The last levels of trees may be fused.  Without: all trees are plain CSF.
    Fusing,
    /// The planner chooses which trees it keeps and which kernel runs on which.  Without: a tree of plain
    /// CSF for each mode, rooted at it, the other modes from short to long, as SPLATT's `ALLMODE` keeps
    /// them (Smith, Karypis 2015).
    Layouts,
}

impl Optimisation {
    /// All of them.
    pub const ALL: [Optimisation; 8] = [
        Optimisation::Constants,
        Optimisation::Registers,
        Optimisation::Prefetch,
        Optimisation::Blocks,
        Optimisation::Panels,
        Optimisation::Merging,
        Optimisation::Fusing,
        Optimisation::Layouts,
    ];

    /// Returns its name, as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Optimisation::Constants => "constants",
            Optimisation::Registers => "registers",
            Optimisation::Prefetch => "prefetch",
            Optimisation::Blocks => "blocks",
            Optimisation::Panels => "panels",
            Optimisation::Merging => "merging",
            Optimisation::Fusing => "fusing",
            Optimisation::Layouts => "layouts",
        }
    }
}

impl FromStr for Optimisation {
    type Err = String;

    fn from_str(text: &str) -> Result<Optimisation, String> {
        let found = Optimisation::ALL.into_iter().find(|optimisation| optimisation.name() == text);
        found.ok_or_else(|| {
            let names = Optimisation::ALL.map(Optimisation::name).join(", ");
            format!("`{text}` is no optimisation; there are {names}")
        })
    }
}

/// A set of optimisations; by default all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Optimisations {
    /// A bit for each optimisation that is left out, by its place in [`Optimisation::ALL`].
    left_out: u16,
}

impl Optimisations {
    /// Returns the set of all optimisations but `left_out`.
    pub fn all_but(left_out: impl IntoIterator<Item = Optimisation>) -> Optimisations {
        left_out.into_iter().fold(Optimisations::default(), Optimisations::without)
    }

    /// Returns the set without `optimisation`.
    #[must_use]
    pub fn without(self, optimisation: Optimisation) -> Optimisations {
        Optimisations { left_out: self.left_out | 1 << optimisation as u8 }
    }

    /// Tells whether the set has `optimisation`.
    pub fn has(self, optimisation: Optimisation) -> bool {
        self.left_out >> optimisation as u8 & 1 == 0
    }

    /// Returns the optimisations that are left out.
    pub fn left_out(self) -> impl Iterator<Item = Optimisation> {
        Optimisation::ALL.into_iter().filter(move |&optimisation| !self.has(optimisation))
    }

    /// Tells whether generated code keeps sums in registers: it must know how many there are.
    pub fn keeps_registers(self) -> bool {
        self.has(Optimisation::Registers) && self.has(Optimisation::Constants)
    }
}

#[cfg(test)]
mod tests {
    use super::{Optimisation, Optimisations};

    #[test]
    fn names_are_read_back() {
        for optimisation in Optimisation::ALL {
            assert_eq!(optimisation.name().parse(), Ok(optimisation));
        }
        let error = "luck".parse::<Optimisation>().unwrap_err();
        assert!(error.contains("`luck`") && error.contains("layouts"), "{error}");
    }

    #[test]
    fn what_is_left_out_is_not_there() {
        let all = Optimisations::default();
        assert!(Optimisation::ALL.into_iter().all(|optimisation| all.has(optimisation)));
        for optimisation in Optimisation::ALL {
            let rest = all.without(optimisation);
            assert_eq!(rest.left_out().collect::<Vec<_>>(), [optimisation]);
            assert!(Optimisation::ALL.into_iter().all(|t| rest.has(t) == (t != optimisation)));
        }
        assert!(!all.without(Optimisation::Constants).keeps_registers());
    }
}
