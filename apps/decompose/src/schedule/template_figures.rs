//! The figures of a search over partition templates: the space, what trimming leaves of it, the times of its schedules.

use std::collections::BTreeMap;

use decompose_core::autoschedule::partition::{CPU_PASSES, ListedTemplate, Listing, Pass};
use decompose_core::contract::RaceTime;
use decompose_plot::{
    Bar, BarGroup, BarLook, Bars, BubbleGroup, Bubbles, Curve, CurveLook, CurvePanel, Curves,
    ScaleKind,
};

/// The times of schedules that were measured, by the place of the template and of the setting.
pub(crate) type Measured = BTreeMap<(usize, usize), RaceTime>;

/// Returns the circles of split schedules, of their templates, and a dot for each schedule.
pub(crate) fn space(title: &str, listing: &Listing, measured: &Measured) -> Bubbles {
    let mut place = 0..;
    let mut dots = |template: &ListedTemplate| {
        let place = place.next().unwrap_or_default();
        let dot = |setting| measured.get(&(place, setting)).map(|time| time.median_seconds);
        (0..template.schedules.len()).map(dot).collect()
    };
    let group = |own: &[ListedTemplate]| BubbleGroup {
        label: (own[0].split + 1).to_string(),
        name: split_name(listing, own[0].split),
        choices: own.iter().map(&mut dots).collect(),
    };
    let groups = listing.by_split().map(group).collect();
    let kinds = [
        ("split schedule", "split schedules"),
        ("template", "templates"),
        ("schedule", "schedules"),
    ];
    Bubbles { title: title.to_owned(), kinds, groups }
}

/// Returns what each trimming pass leaves of all mappings.
pub(crate) fn trimming(title: &str, listing: &Listing) -> Bars {
    let all: u64 = listing.splits.iter().map(|one| one.trimmed.all).sum();
    let group =
        |name: String, left: u64| BarGroup { name, bars: vec![Some(Bar::exact(left as f64))] };
    let mut left = all;
    let after = |(place, pass): (usize, &Pass)| {
        let removed = listing.splits.iter().filter_map(|one| one.trimmed.removed.get(place));
        left -= removed.sum::<u64>();
        group(format!("{} {}", pass.number.trim_start_matches("CPU-"), pass.name), left)
    };
    let passes: Vec<BarGroup> = CPU_PASSES.iter().enumerate().map(after).collect();
    let legal = listing.splits.iter().map(|one| one.legal as u64).sum();
    let generated = listing.templates.len() as u64;
    let last = [group("with a legal setting".into(), legal), group("generated".into(), generated)];
    Bars {
        title: title.to_owned(),
        value_name: "mappings that are left".into(),
        group_name: "after each trimming pass for processors".into(),
        scale: ScaleKind::Log,
        look: BarLook::Bars,
        series: vec!["mappings of all split schedules".into()],
        groups: std::iter::once(group("all".into(), all)).chain(passes).chain(last).collect(),
        marks: None,
    }
}

/// Returns the share of the schedules of each split schedule that are as fast as a time.
pub(crate) fn times(title: &str, listing: &Listing, measured: &Measured) -> Curves {
    let mut own: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (&(place, _), time) in measured {
        own.entry(listing.templates[place].split).or_default().push(time.median_seconds);
    }
    let curve = |(split, mut seconds): (usize, Vec<f64>)| {
        seconds.sort_by(f64::total_cmp);
        let many = seconds.len() as f64;
        let steps = seconds.iter().enumerate();
        let mut points: Vec<(f64, f64)> =
            seconds.first().map(|&first| (first, 0.0)).into_iter().collect();
        points.extend(steps.map(|(at, &seconds)| (seconds, 100.0 * (at as f64 + 1.0) / many)));
        Curve {
            name: format!("{}  {}", split + 1, split_name(listing, split)),
            points,
            look: CurveLook::Steps,
            ..Curve::default()
        }
    };
    let panel = CurvePanel {
        x_name: "time of a run (s)".into(),
        y_name: "schedules that are as fast (%)".into(),
        x: ScaleKind::Log,
        curves: own.into_iter().map(curve).collect(),
        ..CurvePanel::default()
    };
    Curves { title: title.to_owned(), panels: vec![panel], ..Curves::default() }
}

fn split_name(listing: &Listing, split: usize) -> String {
    let text = listing.splits.get(split).map(|one| one.split.to_string()).unwrap_or_default();
    if text.is_empty() { "Empty".into() } else { text }
}
