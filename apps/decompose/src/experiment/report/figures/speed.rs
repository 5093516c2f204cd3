//! Where the seconds go, and how much faster a group is than the baseline.

use std::fmt::Write;

use decompose_plot::{Bar, BarGroup, BarLook, Bars, ScaleKind, Timing, TimingPhase, TimingRun};

use crate::experiment::report::configs::{Config, Quartiles, Shared};
use crate::experiment::report::csv_field;
use crate::experiment::report::figures::{Sheet, evenly};
use crate::experiment::report::results::Results;

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

/// Draws how many times as fast each group is as the baseline, on the same tensor with the same options.
pub(super) fn ratios(results: &Results, configs: &[Config<'_>], sheet: &mut Sheet) {
    let Some(baseline) = results.plan.baseline.as_deref() else { return };
    let mut series: Vec<String> = Vec::new();
    for config in configs.iter().filter(|config| config.group != baseline) {
        if !series.iter().any(|name| name == config.group) {
            series.push(config.group.to_owned());
        }
    }
    let against = |base: &Config<'_>, group: &str| {
        let other = configs.iter().find(|config| {
            config.group == group
                && config.tensor == base.tensor
                && config.settings == base.settings
        });
        speed_up(base, other?)
    };
    let mut groups = Vec::new();
    let mut csv = "tensor,settings,group,baseline,speed_up,low,high\n".to_owned();
    for base in configs.iter().filter(|config| config.group == baseline) {
        let settings = base.settings.iter().map(|(name, value)| format!("{name} {value}"));
        let settings = settings.collect::<Vec<_>>().join(", ");
        let found: Vec<Option<Quartiles>> =
            series.iter().map(|group| against(base, group)).collect();
        for (group, of) in series.iter().zip(&found) {
            if let Some(Quartiles { low, median, high }) = of {
                let names = [base.tensor, &settings, group, baseline].map(csv_field).join(",");
                // Writing to a string cannot fail.
                let _ = writeln!(csv, "{names},{median},{low},{high}");
            }
        }
        if found.iter().any(Option::is_some) {
            let bar = |of: &Option<Quartiles>| {
                of.map(|of| Bar { value: of.median, low: of.low, high: of.high })
            };
            let name = format!("{}, {settings}", base.tensor);
            let name = name.trim_end_matches([',', ' ']).to_owned();
            groups.push(BarGroup { name, bars: found.iter().map(bar).collect() });
        }
    }
    if groups.is_empty() {
        return;
    }
    let title = format!("Speed-up over {baseline}");
    let figure = Bars {
        title: title.clone(),
        value_name: "time of the baseline over time".into(),
        group_name: String::new(),
        scale: ScaleKind::Linear,
        look: BarLook::Bars,
        series,
        groups,
        marks: None,
    };
    let caption = "Each bar is the median time of an iteration of the baseline, over the time of the group; lines \
                   reach from the lower to the upper quartile of the group's runs.";
    sheet.add("speed-up", &title, caption, (&figure, csv));
}

/// Returns the median time of an iteration of `base` over the times of `other`.
fn speed_up(base: &Config<'_>, other: &Config<'_>) -> Option<Quartiles> {
    let base = base.seconds(|run| run.per_iteration)?.median;
    other.seconds(|run| run.per_iteration.filter(|seconds| *seconds > 0.0).map(|of| base / of))
}
