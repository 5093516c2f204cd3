//! Names for results in tables and figures: what tells them apart, and what they have in common.
use decompose_formats::counted;

use crate::bench::record::WorkKey;

/// Between the words of a name.
const SEPARATOR: &str = " · ";

/// Which parts of keys differ: tensor, quantity, rank, threads.
pub(crate) struct Names {
    differ: [bool; 4],
    first: WorkKey,
}

impl Names {
    /// Compares `keys`; `None` without one.
    pub(crate) fn of<'a>(keys: impl IntoIterator<Item = &'a WorkKey>) -> Option<Names> {
        let mut keys = keys.into_iter();
        let first = keys.next()?.clone();
        let mut differ = [false; 4];
        for key in keys {
            for (differ, (a, b)) in differ.iter_mut().zip(words(key).iter().zip(words(&first))) {
                *differ |= *a != b;
            }
        }
        Some(Names { differ, first })
    }

    /// Returns the name of `key` among the others.
    pub(crate) fn name(&self, key: &WorkKey) -> String {
        let told = words(key).into_iter().zip(self.differ).filter(|(_, told)| *told);
        match self.differ {
            [false, false, false, _] => count(key.threads),
            [false, false, true, false] => told.map(|(rank, _)| format!("rank {rank}")).collect(),
            _ => told.map(|(word, _)| word).collect::<Vec<_>>().join(SEPARATOR),
        }
    }

    /// Returns what the words of names are, where there are several.
    pub(crate) fn legend(&self) -> String {
        let words = ["tensor", "quantity", "rank", "threads"].into_iter().zip(self.differ);
        let told: Vec<&str> = words.filter(|(_, told)| *told).map(|(word, _)| word).collect();
        if told.len() > 1 { told.join(SEPARATOR) } else { String::new() }
    }

    /// Returns what all have in common, to follow a title.
    pub(crate) fn common(&self) -> String {
        let ([tensor, quantity, rank, threads], key) = (self.differ, &self.first);
        let mut words = Vec::new();
        if !tensor {
            words.push(key.tensor.clone());
        }
        if !quantity && key.quantity != "iteration" {
            words.push(key.quantity.clone());
        }
        if let Some(r) = key.rank.filter(|_| !rank) {
            words.push(format!("rank {r}"));
        }
        if !threads {
            words.push(count(key.threads));
        }
        words.iter().map(|word| format!(", {word}")).collect()
    }
}

/// The parts of a key as words.
fn words(key: &WorkKey) -> [String; 4] {
    [
        key.tensor.clone(),
        key.quantity.clone(),
        key.rank.map_or_else(String::new, |rank| rank.to_string()),
        key.threads.to_string(),
    ]
}

fn count(threads: usize) -> String {
    counted(threads, "thread", "threads")
}
