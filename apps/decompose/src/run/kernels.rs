//! The kernels of a run: where their C lies, how long they ran, what `run.json` says of them.

use std::path::PathBuf;

use decompose_core::runtime::Kernel;
use decompose_core::sweep::{BuildReport, Step};
use serde::Serialize;

use crate::run::record::median;

/// Says where the generated C of the kernel called `name` lies, or why there is none.
pub(crate) fn origin(kernel: &Kernel, name: &str) -> String {
    match (kernel.origin(), kernel.interpreted()) {
        (Some(origin), _) => {
            let how = match origin.compiled_in {
                Some(seconds) => format!("compiled in {seconds:.2} s"),
                None => "from the cache".to_owned(),
            };
            format!("generated C of {name}: {} ({how})", origin.source.display())
        }
        (None, why) => format!("{name} is interpreted: {}", why.unwrap_or("no compiler")),
    }
}

/// What is left of a kernel when its run has ended.
pub(crate) struct KernelRuns {
    /// Its file; `None` where it was interpreted.
    source: Option<PathBuf>,
    /// The seconds of every run.
    seconds: Vec<f64>,
}

/// Keeps the files and the seconds of `kernels`.
pub(crate) fn runs<'a>(
    kernels: impl Iterator<Item = &'a Kernel>,
    seconds: impl Iterator<Item = &'a [f64]>,
) -> Vec<KernelRuns> {
    let source = |kernel: &Kernel| kernel.origin().map(|origin| origin.source.clone());
    let runs = kernels.zip(seconds);
    runs.map(|(kernel, s)| KernelRuns { source: source(kernel), seconds: s.to_vec() }).collect()
}

/// A step of a plan that has run, as `run.json` has it behind its name and tree.
#[derive(Serialize)]
pub(crate) struct KernelRecord {
    expression: String,
    schedule: String,
    flops: f64,
    predicted_seconds: f64,
    measured_seconds: Option<f64>,
    source: Option<PathBuf>,
}

impl KernelRecord {
    /// Records a step of a plan and the runs of its kernel.
    pub(crate) fn new(step: &Step, runs: &KernelRuns) -> KernelRecord {
        KernelRecord {
            expression: step.problem.expr.to_string(),
            schedule: step.candidate.schedule.text(&step.problem.expr),
            flops: step.candidate.cost.flops,
            predicted_seconds: step.seconds,
            measured_seconds: median(runs.seconds.iter().copied()),
            source: runs.source.clone(),
        }
    }
}

/// How the trees and kernels of a plan came about.
#[derive(Serialize)]
pub(crate) struct BuildRecord {
    tree_bytes: u64,
    /// Of private copies.
    private_bytes: u64,
    kernels_compiled: usize,
    kernels_cached: usize,
    /// Those that were not worth compiling.
    kernels_unneeded: usize,
    kernels_interpreted: Option<String>,
}

impl BuildRecord {
    /// Records how they were built.
    pub(crate) fn new(build: &BuildReport) -> BuildRecord {
        BuildRecord {
            tree_bytes: build.tree_bytes,
            private_bytes: build.side_bytes,
            kernels_compiled: build.compiled,
            kernels_cached: build.cached,
            kernels_unneeded: build.unneeded,
            kernels_interpreted: build.interpreted.clone(),
        }
    }
}
