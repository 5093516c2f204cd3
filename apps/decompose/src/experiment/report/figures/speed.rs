//! Where the seconds go.

use std::fmt::Write;

use decompose_plot::{Timing, TimingPhase, TimingRun};

use crate::experiment::report::configs::{Config, Shared};
use crate::experiment::report::csv_field;
use crate::experiment::report::figures::{Sheet, evenly};

/// Most bars of phases.
const MOST: usize = 16;

/// Draws the medians of the seconds by phase, of runs that had the machine for themselves.
pub(super) fn phases(configs: &[Config<'_>], sheet: &mut Sheet) {
    let timed = configs
        .iter()
        .filter(|config| config.runs.iter().any(|run| run.run.timed && !run.phases.is_empty()));
    let timed: Vec<&Config<'_>> = timed.collect();
    let shared = Shared::of(&timed);
    let shown = evenly(timed, MOST);
    if shown.is_empty() {
        return;
    }
    let runs: Vec<TimingRun> = shown.iter().map(|config| timing(config, &shared)).collect();
    let mut csv = "configuration,phase,median_seconds\n".to_owned();
    for run in &runs {
        for phase in &run.phases {
            let (name, phase_name) = (csv_field(&run.name), csv_field(&phase.name));
            // Writing to a string cannot fail.
            let _ = writeln!(csv, "{name},{phase_name},{}", phase.seconds);
        }
    }
    let title = "Time by phase";
    let caption =
        "Each bar is the sum of the medians of the phases over the runs of a configuration.";
    let figure = Timing { title: title.into(), runs };
    sheet.add("time-by-phase", title, caption, (&figure, csv));
}

fn timing(config: &Config<'_>, shared: &Shared) -> TimingRun {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in config.runs.iter().flat_map(|run| &run.phases) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let phase = |name: &&str| {
        let of = |run: &crate::experiment::report::results::RunResult| {
            let same = run.phases.iter().filter(|(other, _)| other == name);
            Some(same.map(|(_, seconds)| seconds).sum())
        };
        let seconds = config.seconds(of)?.median;
        Some(TimingPhase { name: (*name).to_owned(), seconds })
    };
    TimingRun {
        name: config.label(shared),
        phases: names.iter().filter_map(phase).collect(),
        components: Vec::new(),
    }
}
