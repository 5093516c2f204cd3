//! The figure: our time beside the bound and recorded peers.

use decompose_plot::{Bar, BarGroup, BarLook, Bars, Marks, ScaleKind};

use crate::bench::names::Names;
use crate::bench::peers::{self, Peer};
use crate::bench::record::{PROGRAM, WorkKey};
use crate::bench::settings::{Settings, What};
use crate::bench::summary::Line;

/// Times that differ by more than this factor need a logarithmic axis.
const LINEAR_RANGE: f64 = 12.0;

/// Makes the figure of what matters most: iterations, else kernels, else ingest; `None` if there is
/// nothing to show.
pub(crate) fn of(settings: &Settings, lines: &[Line]) -> Option<Bars> {
    let (title, shown) = shown(settings, lines)?;
    let own: Vec<&Line> = shown.iter().copied().filter(|l| l.key.program == PROGRAM).collect();
    let mut keys: Vec<WorkKey> = own.iter().map(|line| line.key.clone()).collect();
    let quantities: Vec<&str> = own.iter().map(|line| line.key.quantity.as_str()).collect();
    let is_shown = |peer: &&Peer| quantities.contains(&peer.quantity.as_str());
    let peers: Vec<&Peer> = settings.peers.iter().filter(is_shown).collect();
    // Work that was not measured here has a group of its own.
    for peer in &peers {
        if !keys.iter().any(|key| peer.is_of(key)) {
            keys.push(peer.key(PROGRAM));
        }
    }
    let mut series: Vec<String> = Vec::new();
    let programs = shown.iter().map(|line| line.key.program.as_str());
    for program in programs.chain(peers::programs(peers)) {
        if !series.iter().any(|known| known == program) {
            series.push(program.to_owned());
        }
    }
    let names = Names::of(&keys)?;
    let group = |key: &WorkKey| BarGroup {
        name: names.name(key),
        bars: series.iter().map(|program| bar(settings, &shown, key, program)).collect(),
    };
    let groups: Vec<BarGroup> = keys.iter().map(group).collect();
    let bound = |key: &WorkKey| own.iter().find(|line| line.key == *key)?.bound.map(|b| b.seconds);
    let values: Vec<Option<f64>> = keys.iter().map(bound).collect();
    let bars = groups.iter().flat_map(|group| &group.bars).flatten();
    let heights = bars.flat_map(|bar| [bar.low, bar.value, bar.high]);
    let heights = heights.chain(values.iter().flatten().copied());
    let (low, high) = heights.fold((f64::INFINITY, 0.0_f64), |(l, h), v| (l.min(v), h.max(v)));
    let scale = if high > LINEAR_RANGE * low { ScaleKind::Log } else { ScaleKind::Linear };
    let bounded = values.iter().any(Option::is_some);
    Some(Bars {
        title: format!("{title}{}", names.common()),
        value_name: "time (s), median and extremes".to_owned(),
        group_name: names.legend(),
        scale,
        look: BarLook::Bars,
        series,
        groups,
        marks: bounded.then(|| Marks { name: "roofline bound".to_owned(), values }),
    })
}

/// Picks what is shown.
fn shown<'a>(settings: &Settings, lines: &'a [Line]) -> Option<(&'static str, Vec<&'a Line>)> {
    let with = |wanted: &dyn Fn(&str) -> bool| -> Vec<&'a Line> {
        lines.iter().filter(|line| wanted(&line.key.quantity)).collect()
    };
    let kernel = |name: &str| settings.kernels.iter().any(|k| name.starts_with(&format!("{k}:")));
    let choices = [
        (What::Sweep, "CP-ALS iteration", with(&|name| name == "iteration")),
        (What::Kernels, "kernels", with(&kernel)),
        (What::Ingest, "ingest", with(&|name| ["read", "sort", "tree"].contains(&name))),
    ];
    let mut choices = choices.into_iter().filter(|(what, _, found)| {
        settings.asks(*what) && found.iter().any(|line| line.key.program == PROGRAM)
    });
    choices.next().map(|(_, title, found)| (title, found))
}

/// The bar of `program` for the work of `key`.
fn bar(settings: &Settings, shown: &[&Line], key: &WorkKey, program: &str) -> Option<Bar> {
    let key = WorkKey { program: program.to_owned(), ..key.clone() };
    let ours = shown.iter().find(|line| line.key == key);
    let ours = ours.map(|l| Bar { value: l.median, low: l.lowest, high: l.highest });
    let peer = || {
        let found = peers::spread(&settings.peers, program, &key)?;
        Some(Bar { value: found.median, low: found.lowest, high: found.highest })
    };
    ours.or_else(peer)
}
