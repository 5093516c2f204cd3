//! How much faster groups and other programs are than the baseline.

use decompose_plot::{Bar, BarGroup, BarLook, Bars, ScaleKind};

use crate::experiment::report::configs::{Config, Quartiles};
use crate::experiment::report::figures::Sheet;
use crate::experiment::report::peers::PeerConfig;
use crate::experiment::report::results::Results;

/// What is done on which tensor: that of a configuration.
struct Work<'a> {
    tensor: &'a str,
    settings: &'a [(String, String)],
    rank: Option<f64>,
    threads: usize,
}

/// One that did some work.
enum Contender<'c, 'a> {
    Group(&'c Config<'a>),
    Peer(&'c PeerConfig<'a>),
}

impl Contender<'_, '_> {
    fn name(&self) -> &str {
        match self {
            Contender::Group(config) => config.group,
            Contender::Peer(peer) => peer.program,
        }
    }

    /// Tells whether it did this work.  Of another program the rank is known, and no other option.
    fn did(&self, work: &Work<'_>) -> bool {
        match self {
            Contender::Group(config) => {
                config.tensor == work.tensor
                    && config.settings == work.settings
                    && threads(config) == Some(work.threads)
            }
            Contender::Peer(peer) => {
                peer.tensor == work.tensor
                    && peer.threads == work.threads
                    && peer.rank.map(|rank| rank as f64) == work.rank
            }
        }
    }

    fn seconds(&self, quantity: Quantity) -> Option<Quartiles> {
        match (self, quantity) {
            (Contender::Group(config), Quantity::Iteration) => {
                config.seconds(|run| run.per_iteration)
            }
            (Contender::Group(config), Quantity::Solve) => config.seconds(|run| run.solve),
            (Contender::Peer(peer), Quantity::Iteration) => peer.iteration,
            (Contender::Peer(peer), Quantity::Solve) => peer.solve,
        }
        .filter(|seconds| seconds.low > 0.0)
    }
}

/// What is compared.
#[derive(Clone, Copy)]
enum Quantity {
    Iteration,
    Solve,
}

/// Draws how many times as fast each group and program is as the baseline, for the same work.
pub(super) fn draw(
    results: &Results,
    configs: &[Config<'_>],
    peers: &[PeerConfig<'_>],
    sheet: &mut Sheet,
) {
    let Some(baseline) = results.plan.baseline.as_deref() else { return };
    let all = configs.iter().map(Contender::Group).chain(peers.iter().map(Contender::Peer));
    let all: Vec<Contender<'_, '_>> = all.collect();
    let mut series: Vec<String> = Vec::new();
    for contender in all.iter().filter(|contender| contender.name() != baseline) {
        if !series.iter().any(|name| name == contender.name()) {
            series.push(contender.name().to_owned());
        }
    }
    let mut groups = Vec::new();
    let mut table = csv::Writer::from_writer(Vec::new());
    // Writing to a list cannot fail.
    let _ =
        table.write_record(["tensor", "settings", "group", "baseline", "speed_up", "low", "high"]);
    let works = works(configs);
    let same = works.iter().all(|work| work.threads == works[0].threads);
    for work in &works {
        let of = |name: &str| all.iter().find(|other| other.name() == name && other.did(work));
        let Some(base) = of(baseline) else { continue };
        let settings = work.settings.iter().map(|(name, value)| format!("{name} {value}"));
        let own = (!same && !work.settings.iter().any(|(name, _)| name == "threads"))
            .then(|| format!("threads {}", work.threads));
        let settings = settings.chain(own).collect::<Vec<_>>().join(", ");
        let found: Vec<Option<Quartiles>> =
            series.iter().map(|name| speed_up(base, of(name)?)).collect();
        for (name, of) in series.iter().zip(&found) {
            if let Some(Quartiles { low, median, high }) = of {
                let numbers = [median, low, high].map(ToString::to_string);
                let [median, low, high] = &numbers;
                let _ =
                    table.write_record([work.tensor, &settings, name, baseline, median, low, high]);
            }
        }
        if found.iter().any(Option::is_some) {
            let bar = |of: &Option<Quartiles>| {
                of.map(|of| Bar { value: of.median, low: of.low, high: of.high })
            };
            let name = format!("{}, {settings}", work.tensor);
            let name = name.trim_end_matches([',', ' ']).to_owned();
            groups.push(BarGroup { name, bars: found.iter().map(bar).collect() });
        }
    }
    if groups.is_empty() {
        return;
    }
    // One that shares no work with the baseline has no bar.
    let has_bar = |at: usize| groups.iter().any(|group: &BarGroup| group.bars[at].is_some());
    let kept: Vec<bool> = (0..series.len()).map(has_bar).collect();
    let mut keep = kept.iter();
    series.retain(|_| keep.next() == Some(&true));
    for group in &mut groups {
        let mut keep = kept.iter();
        group.bars.retain(|_| keep.next() == Some(&true));
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
    let caption = "Each bar is the median time of an iteration of the baseline, over the time of the group or program; \
                   where an iteration was not timed by both, of all iterations. Lines reach from the lower to the upper \
                   quartile of the runs; of a program with one result, between its extremes.";
    let csv = String::from_utf8(table.into_inner().unwrap_or_default()).unwrap_or_default();
    sheet.add("speed-up", &title, caption, (&figure, csv));
}

/// Returns the threads of the runs of a configuration.
fn threads(config: &Config<'_>) -> Option<usize> {
    config.runs.first().map(|run| run.run.threads)
}

/// Returns what was done, each once.
fn works<'c>(configs: &'c [Config<'_>]) -> Vec<Work<'c>> {
    let mut works: Vec<Work<'c>> = Vec::new();
    for config in configs {
        let known = |work: &Work<'_>| {
            work.tensor == config.tensor
                && work.settings == config.settings
                && threads(config) == Some(work.threads)
        };
        let Some(run) = config.runs.first().filter(|_| !works.iter().any(known)) else { continue };
        works.push(Work {
            tensor: config.tensor,
            settings: config.settings,
            rank: run.rank(),
            threads: run.run.threads,
        });
    }
    works
}

/// Returns the median time of `base` over the times of `other`: of an iteration, or of all where one is not known.
fn speed_up(base: &Contender<'_, '_>, other: &Contender<'_, '_>) -> Option<Quartiles> {
    let of = |quantity| {
        let (base, other) = (base.seconds(quantity)?.median, other.seconds(quantity)?);
        Some(Quartiles {
            low: base / other.high,
            median: base / other.median,
            high: base / other.low,
        })
    };
    of(Quantity::Iteration).or_else(|| of(Quantity::Solve))
}
