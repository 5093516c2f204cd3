//! What optimisations bring: iterations without them over iterations with all, in the same round.

use decompose_core::optimisation::{Optimisation, Optimisations};
use decompose_plot::{Bar, BarGroup, Ratios};

use crate::bench::names::Names;
use crate::bench::record::{BenchRecord, PROGRAM, Sample, WorkKey};
use crate::bench::settings::{Settings, Without};
use crate::bench::summary::median;

/// How many times longer iterations take without some optimisations.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Ablation {
    /// What is left out.
    pub(crate) without: Vec<Optimisation>,
    /// Which work, with all optimisations.
    pub(crate) key: WorkKey,
    /// The median of the rounds' ratios.
    pub(crate) ratio: f64,
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
    pub(crate) rounds: usize,
}

/// Compares the iterations of every configuration that leaves something out with those that do not.
pub(crate) fn of(settings: &Settings, record: &BenchRecord) -> Vec<Ablation> {
    let mut found = Vec::new();
    for optimisations in settings.configurations() {
        let (program, without) =
            (WorkKey::program(optimisations), optimisations.left_out().collect());
        let without: Vec<Optimisation> = without;
        if without.is_empty() {
            continue;
        }
        for key in full(record) {
            let own = WorkKey { program: program.clone(), ..key.clone() };
            let ratio = |sample: &Sample| Some(sample.seconds / at(record, sample.round, &key)?);
            let samples = record.samples.iter().filter(|sample| sample.key == own);
            let mut ratios: Vec<f64> = samples.filter_map(ratio).collect();
            ratios.sort_by(f64::total_cmp);
            if let (Some(&lowest), Some(&highest)) = (ratios.first(), ratios.last()) {
                let (without, ratio) = (without.clone(), median(&ratios));
                found.push(Ablation { without, key, ratio, lowest, highest, rounds: ratios.len() });
            }
        }
    }
    found
}

/// The iterations with all optimisations, in the order in which they were measured.
fn full(record: &BenchRecord) -> Vec<WorkKey> {
    let mut keys: Vec<WorkKey> = Vec::new();
    for Sample { key, .. } in record.counted() {
        if key.program == PROGRAM && key.quantity == "iteration" && !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// The seconds of `key` in a round.
fn at(record: &BenchRecord, round: usize, key: &WorkKey) -> Option<f64> {
    let found = record.samples.iter().find(|sample| sample.round == round && sample.key == *key);
    found.map(|sample| sample.seconds)
}

/// The results of one configuration, by key.
struct Row<'a> {
    name: String,
    cells: Vec<Option<&'a Ablation>>,
    /// The geometric mean of the ratios.
    mean: f64,
}

/// Sorts the results into rows, what brings most first, and returns the keys of the columns too.
fn rows(found: &[Ablation]) -> (Vec<Row<'_>>, Vec<&WorkKey>) {
    let mut keys: Vec<&WorkKey> = Vec::new();
    let mut sets: Vec<&[Optimisation]> = Vec::new();
    for one in found {
        if !keys.contains(&&one.key) {
            keys.push(&one.key);
        }
        if !sets.contains(&one.without.as_slice()) {
            sets.push(&one.without);
        }
    }
    let row = |without: &[Optimisation]| {
        let cell =
            |key: &&WorkKey| found.iter().find(|one| one.without == without && one.key == **key);
        let cells: Vec<Option<&Ablation>> = keys.iter().map(cell).collect();
        let logs: Vec<f64> = cells.iter().flatten().map(|one| one.ratio.ln()).collect();
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        Row { name: name(without), cells, mean }
    };
    let mut rows: Vec<Row<'_>> = sets.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    (rows, keys)
}

fn name(without: &[Optimisation]) -> String {
    if *without == Optimisation::ALL {
        return "all of them".to_owned();
    }
    without.iter().map(|optimisation| optimisation.name()).collect::<Vec<_>>().join(" + ")
}

/// Makes the table for the terminal; `None` if nothing was left out.
pub(crate) fn table(found: &[Ablation]) -> Option<String> {
    let (rows, keys) = rows(found);
    let names = Names::of(keys.iter().copied())?;
    let head = keys.iter().map(|key| names.name(key)).chain(["mean".to_owned()]);
    let mut table = vec![std::iter::once("without".to_owned()).chain(head).collect::<Vec<_>>()];
    for row in &rows {
        let cell =
            |cell: &Option<&Ablation>| cell.map_or("-".into(), |a| format!("{:.3}", a.ratio));
        let cells = row.cells.iter().map(cell).chain([format!("{:.3}", row.mean)]);
        table.push(std::iter::once(row.name.clone()).chain(cells).collect());
    }
    let widths: Vec<usize> = (0..keys.len() + 2)
        .map(|at| table.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text =
        format!("iterations without, over iterations with all optimisations{}", names.common());
    for row in &table {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text += &format!("\n{}", cells.collect::<Vec<_>>().join("  "));
    }
    Some(text)
}

/// Makes the figure; `None` if nothing was left out.
pub(crate) fn figure(found: &[Ablation]) -> Option<Ratios> {
    let (rows, keys) = rows(found);
    let names = Names::of(keys.iter().copied())?;
    let bar = |cell: &Option<&Ablation>| {
        cell.map(|one| Bar { value: one.ratio, low: one.lowest, high: one.highest })
    };
    let groups = rows
        .iter()
        .map(|row| BarGroup { name: row.name.clone(), bars: row.cells.iter().map(bar).collect() });
    let what = if rows.len() > 1 { "each optimisation" } else { "an optimisation" };
    Some(Ratios {
        title: format!("CP-ALS iteration without {what}{}", names.common()),
        ratio_name:
            "time without it, over time with all: median and extremes of rounds, geometric means"
                .into(),
        series_name: names.legend(),
        series: keys.iter().map(|key| names.name(key)).collect(),
        groups: groups.collect(),
    })
}

impl Settings {
    /// Returns the configurations of sweeps: with everything, without each optimisation that is to be left
    /// out, and for an ablation without all of them.
    pub(crate) fn configurations(&self) -> Vec<Optimisations> {
        let each = self.without.each().iter();
        let each = each.map(|&optimisation| Optimisations::all_but([optimisation]));
        let none = Optimisations::all_but(Optimisation::ALL);
        let none = (self.without == Without::EachAndAll).then_some(none);
        std::iter::once(Optimisations::default()).chain(each).chain(none).collect()
    }
}
