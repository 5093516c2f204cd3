//! What a plan was preferred to.

use std::fmt;

/// The most alternatives that a choice remembers.
pub(super) const MOST: usize = 3;

/// An alternative that was priced and not taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// The trees, the merged modes or how factors are stored.
    pub what: String,
    /// Seconds of a sweep as they were compared, the building of trees spread over the sweeps; of sets of trees with
    /// the handicap of blocks.  Panels of factors must be better by more than a little, so they may take fewer.
    pub seconds: f64,
    /// Bytes of its trees.
    pub bytes: u64,
}

impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Alternative { what, seconds, bytes } = self;
        write!(f, "alternative {what}: {seconds:.2e} s, trees of {bytes} bytes")
    }
}

/// Returns the few of `all` that take the least seconds, the best first, each once.
pub(super) fn nearest(all: impl IntoIterator<Item = Alternative>) -> Vec<Alternative> {
    let mut all: Vec<Alternative> = all.into_iter().collect();
    all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds).then_with(|| a.what.cmp(&b.what)));
    all.dedup();
    all.truncate(MOST);
    all
}
