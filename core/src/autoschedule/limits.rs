//! How far a search looks.

use std::fmt;

/// Which contraction paths a search considers; each includes those before it.
///
/// A search that finds no schedule - because every nest of these paths needs a buffer that the
/// problem does not allow - goes on to the next.  The last always has one: the path of one term has
/// no buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Breadth {
    /// Paths of two inputs a term with the fewest loops around a term, as in SpTTN, section 5.
    LeastDepth,
    /// Paths of two inputs a term, whatever their depth: a path with one loop more is often the
    /// cheaper one, since its loops walk the tree where those of the other run over whole extents.
    AnyDepth,
    /// Paths with any number of inputs a term; SparseAuto, section 3.1, has a case where the
    /// unfactorised one is the fastest.
    All,
}

impl Breadth {
    /// Returns the next one, with more paths.
    pub(super) fn wider(self) -> Option<Breadth> {
        match self {
            Breadth::LeastDepth => Some(Breadth::AnyDepth),
            Breadth::AnyDepth => Some(Breadth::All),
            Breadth::All => None,
        }
    }
}

impl fmt::Display for Breadth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Breadth::LeastDepth => "least depth",
            Breadth::AnyDepth => "any depth",
            Breadth::All => "any number of inputs a term",
        })
    }
}

/// The limits of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchLimits {
    /// Which paths are considered.  Default: those of any depth, so that flops decide.
    pub breadth: Breadth,
    /// A path with more flops than this many times the fewest is left out; `None`: never.
    /// Default: 2, more than any reuse of caches makes up for.
    pub flops_factor: Option<f64>,
    /// The most paths that are listed.  Default: 1,024, those with the fewest flops.
    pub max_paths: usize,
    /// A search over the paths, those with the fewest flops first, ends with this many nests.
    /// Default: 32.
    pub max_nests: usize,
    /// The most choices of a loop that are priced on the paths of one breadth; a whole nest counts as
    /// [`SearchLimits::NEST_CHOICES`].  Default: 50,000, some ten milliseconds.
    pub max_work: u64,
    /// Seconds that a solver which is another program may take in all.  Default: 60.
    pub solver_seconds: f64,
    /// Whether dense loops may be cut into tiles, where the storage of the operands is searched too.  Default: yes.
    pub tiles: bool,
}

impl Default for SearchLimits {
    fn default() -> SearchLimits {
        SearchLimits {
            breadth: Breadth::AnyDepth,
            flops_factor: Some(2.0),
            max_paths: 1_024,
            max_nests: 32,
            max_work: 50_000,
            solver_seconds: 60.0,
            tiles: true,
        }
    }
}

/// Up to so many operands a search keeps the default limits.
const FEW_OPERANDS: usize = 5;

impl SearchLimits {
    /// How many choices of a loop take as long as to judge a whole nest.
    pub const NEST_CHOICES: u64 = 64;

    /// What each of many searches may do at least, such as those of all orders of a tree's levels.
    pub const LEAST_WORK: u64 = 16_384;

    /// Returns the limits of each of `searches` that together may do what one may, unless that is less than
    /// [`SearchLimits::LEAST_WORK`] each.
    pub(super) fn shared(&self, searches: usize) -> SearchLimits {
        let part = self.max_work.div_ceil(searches.max(1) as u64);
        let max_work = part.max(SearchLimits::LEAST_WORK).min(self.max_work);
        // A path takes a few choices at least.
        let max_paths = self.max_paths.min((max_work / 4).max(1) as usize);
        SearchLimits { max_work, max_paths, ..*self }
    }

    /// Returns the limits of one of many searches for kernels of `operands` operands: the default for a few; of more, the
    /// paths near the fewest flops, few enough that a search takes about a millisecond.  Without tiles: callers store
    /// operands themselves.
    pub fn one_of_many(operands: usize) -> SearchLimits {
        let all = SearchLimits { tiles: false, ..SearchLimits::default() };
        if operands <= FEW_OPERANDS {
            return all;
        }
        SearchLimits {
            flops_factor: Some(1.25),
            max_paths: 64,
            max_nests: 8,
            max_work: SearchLimits::LEAST_WORK,
            ..all
        }
    }

    /// Returns the limits that leave out no path: for ranked lists of everything.  Up to seven
    /// operands have at most 50,000 binary paths, so that only larger expressions are cut.
    pub fn all() -> SearchLimits {
        SearchLimits {
            breadth: Breadth::All,
            flops_factor: None,
            max_paths: 50_000,
            max_nests: 50_000,
            max_work: 1_000_000,
            ..SearchLimits::default()
        }
    }
}
