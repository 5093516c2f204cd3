//! The figure: our time beside the bound and recorded peers.

use decompose_core::plot::{Bar, BarGroup, BarLook, Bars, Marks, ScaleKind};

use crate::bench::names::Names;
use crate::bench::record::{Key, PROGRAM};
use crate::bench::settings::{Settings, What};
use crate::bench::summary::Line;

/// Times that differ by more than this factor need a logarithmic axis.
const LINEAR_RANGE: f64 = 12.0;

/// Makes the figure of what matters most: iterations, else kernels, else ingest; `None` if there is
/// nothing to show.
pub(crate) fn of(settings: &Settings, lines: &[Line]) -> Option<Bars> {
    let (title, shown) = shown(settings, lines)?;
    let own: Vec<&Line> = shown.iter().copied().filter(|l| l.key.program == PROGRAM).collect();
    let mut series: Vec<String> = Vec::new();
    let peers = settings.peers.iter().filter(|peer| own.iter().any(|l| peer.is_of(&l.key)));
    let programs = shown.iter().map(|line| &line.key.program);
    for program in programs.chain(peers.map(|peer| &peer.program)) {
        if !series.contains(program) {
            series.push(program.clone());
        }
    }
    let names = Names::of(own.iter().map(|line| &line.key))?;
    let groups: Vec<BarGroup> = own
        .iter()
        .map(|line| BarGroup {
            name: names.name(&line.key),
            bars: series.iter().map(|program| bar(settings, &shown, line, program)).collect(),
        })
        .collect();
    let values: Vec<Option<f64>> = own.iter().map(|line| line.bound.map(|b| b.seconds)).collect();
    let heights = groups.iter().flat_map(|group| &group.bars).flatten().map(|bar| bar.value);
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

/// The bar of `program` for the work of `line`.
fn bar(settings: &Settings, shown: &[&Line], line: &Line, program: &str) -> Option<Bar> {
    let key = Key { program: program.to_owned(), ..line.key.clone() };
    let ours = shown.iter().find(|line| line.key == key);
    let ours = ours.map(|l| Bar { value: l.median, low: l.lowest, high: l.highest });
    let peer =
        || settings.peers.iter().find(|peer| peer.program == program && peer.is_of(&line.key));
    ours.or_else(|| peer().map(|peer| Bar::exact(peer.value)))
}
