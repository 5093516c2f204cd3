//! Techniques: what makes kernels fast, and can be left out to see how much of it.
//!
//! Results without one differ by rounding only.  None of them is known to the search or the cost model:
//! what is left out is taken from a plan, or narrows what the plan may choose from, and the rest of the
//! plan stays.

use std::str::FromStr;

use decompose_formats::Pages;
use serde::Serialize;

/// One technique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Technique {
    /// Ranks, strides and sizes are literals in generated code.  Without: kernels read them when they
    /// run, the same code serves every rank, and nothing can be kept in [`Technique::Registers`], since
    /// the number of vectors of a row is not known.
    Constants,
    /// Sums stay in vector registers: whole rows, tiles of them, partial sums side by side, nodes taken in
    /// batches.  Without: every sum is a row in memory, read and written at each step.
    Registers,
    /// Rows that are gathered or added to are requested ahead of their use.  Without: none is.
    Prefetch,
    /// Trees may be stored block by block, so that rows that are gathered stay near.  Without: none is.
    Blocks,
    /// Factors may be stored as panels of columns, and a sweep take one after the other, so that more of
    /// the rows that are gathered stay near.  Without: they are stored whole.
    Panels,
    /// Factors, values and coordinates ask for huge pages.  Without: they refuse them.
    HugePages,
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

impl Technique {
    /// All of them.
    pub const ALL: [Technique; 9] = [
        Technique::Constants,
        Technique::Registers,
        Technique::Prefetch,
        Technique::Blocks,
        Technique::Panels,
        Technique::HugePages,
        Technique::Merging,
        Technique::Fusing,
        Technique::Layouts,
    ];

    /// Returns its name, as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Technique::Constants => "constants",
            Technique::Registers => "registers",
            Technique::Prefetch => "prefetch",
            Technique::Blocks => "blocks",
            Technique::Panels => "panels",
            Technique::HugePages => "huge-pages",
            Technique::Merging => "merging",
            Technique::Fusing => "fusing",
            Technique::Layouts => "layouts",
        }
    }
}

impl FromStr for Technique {
    type Err = String;

    fn from_str(text: &str) -> Result<Technique, String> {
        let found = Technique::ALL.into_iter().find(|technique| technique.name() == text);
        found.ok_or_else(|| {
            let names = Technique::ALL.map(Technique::name).join(", ");
            format!("`{text}` is no technique; there are {names}")
        })
    }
}

/// A set of techniques; by default all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Techniques {
    /// A bit for each technique that is left out, by its place in [`Technique::ALL`].
    left_out: u16,
}

impl Techniques {
    /// Returns the set of all techniques but `left_out`.
    pub fn all_but(left_out: impl IntoIterator<Item = Technique>) -> Techniques {
        left_out.into_iter().fold(Techniques::default(), Techniques::without)
    }

    /// Returns the set without `technique`.
    #[must_use]
    pub fn without(self, technique: Technique) -> Techniques {
        Techniques { left_out: self.left_out | 1 << technique as u8 }
    }

    /// Tells whether the set has `technique`.
    pub fn has(self, technique: Technique) -> bool {
        self.left_out >> technique as u8 & 1 == 0
    }

    /// Returns the techniques that are left out.
    pub fn left_out(self) -> impl Iterator<Item = Technique> {
        Technique::ALL.into_iter().filter(move |&technique| !self.has(technique))
    }

    /// Tells whether generated code keeps sums in registers: it must know how many there are.
    pub fn keeps_registers(self) -> bool {
        self.has(Technique::Registers) && self.has(Technique::Constants)
    }

    /// Returns the pages that memory asks for.
    pub fn pages(self) -> Pages {
        if self.has(Technique::HugePages) { Pages::Huge } else { Pages::Small }
    }
}

#[cfg(test)]
mod tests {
    use super::{Technique, Techniques};

    #[test]
    fn names_are_read_back() {
        for technique in Technique::ALL {
            assert_eq!(technique.name().parse(), Ok(technique));
        }
        let error = "luck".parse::<Technique>().unwrap_err();
        assert!(error.contains("`luck`") && error.contains("huge-pages"), "{error}");
    }

    #[test]
    fn what_is_left_out_is_not_there() {
        let all = Techniques::default();
        assert!(Technique::ALL.into_iter().all(|technique| all.has(technique)));
        for technique in Technique::ALL {
            let rest = all.without(technique);
            assert_eq!(rest.left_out().collect::<Vec<_>>(), [technique]);
            assert!(Technique::ALL.into_iter().all(|t| rest.has(t) == (t != technique)));
        }
        assert!(!all.without(Technique::Constants).keeps_registers());
    }
}
