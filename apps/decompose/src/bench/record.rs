//! What was measured and what it is held against.

use decompose_core::optimisation::{Optimisation, Optimisations};

use crate::bench::roofline::{Bound, Limits, Work};

/// The name of this program in records.
pub(crate) const PROGRAM: &str = "decompose";

/// Which work by whom.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct WorkKey {
    pub(crate) program: String,
    pub(crate) tensor: String,
    /// `None` where the rank does not matter.
    pub(crate) rank: Option<usize>,
    pub(crate) threads: usize,
    pub(crate) quantity: String,
}

impl WorkKey {
    /// Returns the same with another quantity.
    pub(crate) fn with(&self, quantity: impl Into<String>) -> WorkKey {
        WorkKey { quantity: quantity.into(), ..self.clone() }
    }

    /// Returns the name of this program with these `optimisations` only.
    pub(crate) fn program(optimisations: Optimisations) -> String {
        let names: Vec<&str> = optimisations.left_out().map(Optimisation::name).collect();
        match names.len() {
            0 => PROGRAM.to_owned(),
            count if count == Optimisation::ALL.len() => format!("{PROGRAM}-without-all"),
            _ => format!("{PROGRAM}-without-{}", names.join("+")),
        }
    }
}

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The round, from 1.
    pub(crate) round: usize,
    pub(crate) key: WorkKey,
    pub(crate) seconds: f64,
    /// The part of their speed that the threads had before and after; 1 where it is not known.
    pub(crate) share: f64,
    /// Whether it is the run of its round that counts.
    pub(crate) counts: bool,
}

/// What some work must do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BenchTask {
    pub(crate) key: WorkKey,
    pub(crate) work: Work,
    /// `None` where the machine could not be measured.
    pub(crate) bound: Option<Bound>,
}

/// A tensor that was measured.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct MeasuredTensor {
    pub(crate) name: String,
    /// The file, or how it was generated.
    pub(crate) source: String,
    pub(crate) extents: Vec<u64>,
    pub(crate) nnz: usize,
}

/// A plan that was run.
#[derive(Clone, Debug, serde::Serialize)]
pub(crate) struct PlanText {
    pub(crate) program: String,
    pub(crate) tensor: String,
    pub(crate) rank: usize,
    pub(crate) threads: usize,
    pub(crate) predicted_seconds: f64,
    pub(crate) text: String,
}

/// Everything that a run found out.
#[derive(Default)]
pub(crate) struct BenchRecord {
    pub(crate) tensors: Vec<MeasuredTensor>,
    /// By rank.
    pub(crate) limits: Vec<(usize, Limits)>,
    pub(crate) plans: Vec<PlanText>,
    pub(crate) tasks: Vec<BenchTask>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) disturbances: Disturbances,
}

/// Runs on threads that others slowed down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Disturbances {
    /// All runs, but those that warm up.
    pub(crate) runs: usize,
    /// Runs that do not count, since another of the same configuration and round was disturbed less.
    pub(crate) repeated: usize,
    /// Runs that count although they were disturbed, since all of their configuration and round were.
    pub(crate) counted: usize,
}

impl BenchRecord {
    /// Returns the samples that count.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(|sample| sample.counts)
    }

    /// Returns the limits for rows of `rank` on `threads` threads, if they are known.
    pub(crate) fn limits(&self, rank: usize, threads: usize) -> Option<&Limits> {
        let found = self.limits.iter().find(|(r, limits)| *r == rank && limits.threads == threads);
        found.map(|(_, limits)| limits)
    }
}
