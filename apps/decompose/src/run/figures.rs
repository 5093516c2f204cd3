//! The figures of every solver - convergence and timing - and how figures are collected.

use std::path::{Path, PathBuf};

use decompose_common::history::{Detail, IterationRecord, Measure};
use decompose_common::restarts::RestartReport;
use decompose_plot::{
    Convergence, ConvergencePoint, ConvergenceRun, Figure, PlotError, PlotFormat, Rendered, Timing,
    TimingComponent, TimingPhase, TimingRun,
};

use crate::failure::Failure;
use crate::run::Phases;

/// The figures of a run, drawn in memory until its results are safe on disk.
///
/// A figure that cannot be drawn or written is a warning: it never costs a result.
pub(crate) struct Sketches<'a> {
    formats: &'a [PlotFormat],
    drawn: Vec<(&'static str, Rendered)>,
    /// How many figures were drawn and could not be written.
    pub(crate) unwritten: usize,
    /// Which figures are missing, and why.
    pub(crate) warnings: Vec<String>,
}

impl<'a> Sketches<'a> {
    /// Returns no figures, to be written in `formats`; without formats nothing is ever drawn.
    pub(crate) fn new(formats: &'a [PlotFormat]) -> Sketches<'a> {
        Sketches { formats, drawn: Vec::new(), unwritten: 0, warnings: Vec::new() }
    }

    /// Draws the figure that `make` makes, for the files `stem`.
    pub(crate) fn add<F: Figure>(
        &mut self,
        stem: &'static str,
        make: impl FnOnce() -> Result<F, PlotError>,
    ) {
        self.try_add(stem, || Ok(make()?));
    }

    /// Draws the figure that `make` makes, which may fail for any reason.
    pub(crate) fn try_add<F: Figure>(
        &mut self,
        stem: &'static str,
        make: impl FnOnce() -> Result<F, Failure>,
    ) {
        if self.formats.is_empty() {
            return;
        }
        match make().and_then(|figure| Ok(decompose_plot::render(&figure, self.formats)?)) {
            Ok(rendered) => {
                self.warnings.extend(rendered.missing().map(|character| {
                    format!(
                        "no font here has `{character}`: {stem}.png shows a box for it and its like; \
                         install one, as Noto Sans CJK, or look at the figure as SVG"
                    )
                }));
                self.drawn.push((stem, rendered));
            }
            Err(error) => self.warn(stem, error.message()),
        }
    }

    /// Draws two sets of figures at the same time.
    pub(crate) fn both(
        &mut self,
        one: impl FnOnce(&mut Sketches<'a>) + Send,
        other: impl FnOnce(&mut Sketches<'a>) + Send,
    ) {
        let mut beside = Sketches::new(self.formats);
        rayon::join(|| one(self), || other(&mut beside));
        self.drawn.append(&mut beside.drawn);
        self.warnings.append(&mut beside.warnings);
    }

    /// Writes what was drawn into `folder` and returns the files.
    pub(crate) fn write(&mut self, folder: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for (stem, rendered) in std::mem::take(&mut self.drawn) {
            match rendered.write(folder, stem) {
                Ok(paths) => files.extend(paths),
                Err(error) => {
                    self.unwritten += 1;
                    self.warn(stem, &error.to_string());
                }
            }
        }
        files
    }

    fn warn(&mut self, stem: &str, error: &str) {
        // Some errors begin with the name.
        let why = error.strip_prefix(&format!("figure `{stem}`")).unwrap_or(error);
        let why = why.trim_start_matches([':', ' ']);
        self.warnings.push(format!("the figure `{stem}` is left out: {why}"));
    }
}

/// Returns the figure of fits by iteration and time.  `what` names a single start: `rank 10`.
pub(crate) fn convergence(
    restarts: &[RestartReport],
    history: &[IterationRecord],
    tolerance: f64,
    title: &str,
    what: &str,
) -> Convergence {
    let runs = restarts.iter().zip(1..).map(|(start, number)| {
        let records = history.iter().filter(|record| record.restart == number);
        let name = match restarts.len() {
            1 => format!("{what}, seed {}", start.seed),
            _ => format!("start {number}, seed {}", start.seed),
        };
        ConvergenceRun { name, points: points(records), stop: start.stop.to_string() }
    });
    let tolerance = Some(tolerance).filter(|tol| *tol > 0.0);
    Convergence { title: title.to_owned(), tolerance, runs: runs.collect() }
}

/// Returns the fits of one start, timed from its own beginning.
fn points<'a>(records: impl Iterator<Item = &'a IterationRecord>) -> Vec<ConvergencePoint> {
    let mut began = None;
    let point = |record: &IterationRecord| {
        let began = *began.get_or_insert(record.total_seconds - record.seconds);
        ConvergencePoint {
            iteration: record.iteration as u64,
            seconds: record.total_seconds - began,
            fit: record.fit,
        }
    };
    records.map(point).collect()
}

/// Returns the figure of seconds by phase, and by step and iteration.
pub(crate) fn timing(history: &[IterationRecord], phases: &Phases, title: &str) -> Timing {
    let phases = phases.0.iter().map(|&(name, seconds)| TimingPhase { name: name.into(), seconds });
    let layout = history.first().map_or(&[][..], |record| &record.details);
    let steps = layout.iter().filter(|detail| !matches!(detail.value, Measure::Number(_)));
    let component = |detail: &Detail, at: usize| TimingComponent {
        name: match detail.value {
            Measure::SecondsByMode(_) => step_name(detail.name, Some(at + 1)),
            _ => step_name(detail.name, None),
        },
        seconds: history.iter().map(|record| record.detail(detail.name)[at]).collect(),
    };
    let components = steps
        .flat_map(|detail| (0..detail.numbers().len()).map(move |at| component(detail, at)))
        .collect();
    let run = TimingRun { name: String::new(), phases: phases.collect(), components };
    Timing { title: title.to_owned(), runs: vec![run] }
}

/// Returns the name for people of a step of the history, and of its mode, counted from 1.
pub(crate) fn step_name(step: &str, mode: Option<usize>) -> String {
    let known = [
        ("mttkrp", "MTTKRP"),
        ("ttmc", "TTMc"),
        ("tttp", "TTTP"),
        ("tttc", "TTTc"),
        ("dense", "dense algebra"),
        ("subspace", "leading subspace"),
    ];
    let known = known.iter().find(|(name, _)| *name == step).map(|(_, known)| (*known).to_owned());
    let name = known.unwrap_or_else(|| step.replace('_', " "));
    mode.map(|mode| format!("{name}, mode {mode}")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use decompose_plot::{Convergence, PlotFormat, Spectra, Spectrum};

    use super::Sketches;

    #[test]
    fn what_cannot_be_drawn_or_written_is_a_warning() {
        let dir = tempfile::tempdir().unwrap();
        let spectrum = Spectrum { values: vec![1.0], kept: 1, all: 1, ..Spectrum::default() };
        let spectra = || Ok(Spectra { spectra: vec![spectrum.clone()], ..Spectra::default() });
        let mut sketches = Sketches::new(&[PlotFormat::Svg]);
        sketches.add("spectra", spectra);
        sketches.add("convergence", || Ok(Convergence::default()));
        assert_eq!(sketches.write(dir.path()), [dir.path().join("spectra.svg")]);
        assert!(sketches.warnings[0].starts_with("the figure `convergence` is left out: "));
        assert_eq!(
            sketches.warnings[0].matches("convergence").count(),
            1,
            "{:?}",
            sketches.warnings
        );
        // A file is where a folder should be.
        let file = dir.path().join("spectra.svg");
        sketches.add("spectra", spectra);
        assert!(sketches.write(&file).is_empty());
        assert!(sketches.warnings[1].starts_with("the figure `spectra` is left out: cannot write"));
        assert_eq!(sketches.warnings.len(), 2);
    }
}
