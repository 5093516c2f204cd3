//! The names of files that a folder may have: what is replaced is told from what is not ours.

/// Names of files that runs write, whatever the command.
const RESULTS: &[&str] = &[
    "model.npz", "model.ktensor", "lambda.mat", "weights.csv", "checkpoint.npz", "history.csv",
    "run.json", "restarts.csv", "spectra.csv", "predictions.csv", "components.csv", "rank.csv",
];
/// Names of figures, each an `.svg` and a `.png`.
const FIGURES: &[&str] =
    &["convergence", "timing", "components", "restarts", "spectra", "predictions", "rank"];

/// Names of files that measurements write.
const MEASURES: &[&str] = &[
    "raw.csv", "summary.csv", "bench.json", "bench.svg", "bench.png", "ablation.svg",
    "ablation.png",
];

/// What a folder is claimed for: which files in it are those of an earlier result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A run.
    Run,
    /// Measurements.
    Measures,
    /// Figures, and the numbers in them.  They replace files of the same names alone: they may stand beside a run.
    Figures,
}

impl Contents {
    pub(super) const ALL: [Contents; 3] = [Contents::Run, Contents::Measures, Contents::Figures];

    /// Its name in a list of files that are being moved.
    pub(super) fn name(self) -> &'static str {
        match self {
            Contents::Run => "run",
            Contents::Measures => "measures",
            Contents::Figures => "figures",
        }
    }

    /// The record: without it a folder holds no finished result.
    pub(super) fn record(self) -> Option<&'static str> {
        match self {
            Contents::Run => Some("run.json"),
            Contents::Measures => Some("bench.json"),
            Contents::Figures => None,
        }
    }

    /// Tells whether it may have a file of this name.
    pub(super) fn has(self, name: &str) -> bool {
        match self {
            Contents::Run => is_result(name),
            Contents::Measures => MEASURES.contains(&name),
            Contents::Figures => {
                name == "spectra.csv" || name.ends_with(".svg") || name.ends_with(".png")
            }
        }
    }

    /// Tells whether a file of this name, of an earlier result, goes though the new one has none.
    pub(super) fn outdates(self, name: &str) -> bool {
        self != Contents::Figures && self.has(name)
    }
}

/// Tells whether runs write files of this name into their folder.
pub fn is_result(name: &str) -> bool {
    let numbered = |prefix: &str, suffix: &str| {
        let number = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let figure = name.strip_suffix(".svg").or(name.strip_suffix(".png"));
    RESULTS.contains(&name)
        || figure.is_some_and(|stem| FIGURES.contains(&stem))
        || numbered("mode", ".mat")
        || numbered("factor_", ".csv")
        || is_restart(name)
}

pub(super) fn is_restart(name: &str) -> bool {
    let number = name.strip_prefix("restart-");
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
}
