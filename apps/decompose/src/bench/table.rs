//! Results for the terminal.

use decompose_formats::counted;

use crate::bench::peers::{self, Spread};
use crate::bench::record::Disturbances;
use crate::bench::roofline::{Limits, TablePlace};
use crate::bench::settings::Settings;
use crate::bench::summary::Line;
use crate::bench::turns;

/// Describes the limits of the machine.
pub(crate) fn limits(rank: usize, limits: &Limits) -> String {
    let gb = |rate: f64| rate / 1e9;
    let mut text = format!(
        "limits   {}, f{}: {:.1} GFLOP/s; memory: read {:.1} GB/s, triad {:.1} GB/s\n         rows of rank {rank}:",
        counted(limits.threads, "thread", "threads"),
        limits.value_bytes * 8,
        gb(limits.flops),
        gb(limits.read),
        gb(limits.triad)
    );
    for (at, gather) in limits.gathers.iter().enumerate() {
        let place = match gather.place {
            TablePlace::Memory => "memory".to_owned(),
            place => format!("{place:?}"),
        };
        let (line, rate) = (gather.nanoseconds_a_line(), gb(gather.bytes_per_second));
        let comma = if at == 0 { "" } else { "," };
        text += &format!("{comma} {place} {line:.2} ns a line ({rate:.1} GB/s)");
    }
    text
}

/// Says how often others disturbed, if they did.
pub(crate) fn disturbances(found: &Disturbances) -> Option<String> {
    let least = turns::UNDISTURBED;
    let Disturbances { runs, repeated, counted } = found;
    let again = format!(
        "{repeated} of {runs} runs were made again, since others slowed the cores down to less than \
         {least} of their best speed"
    );
    match (repeated, counted) {
        (0, 0) => None,
        (_, 0) => Some(again),
        _ => Some(format!(
            "{again}; {counted} slowed down runs count, for lack of better ones: try a longer --patience"
        )),
    }
}

/// The columns of the table and whether their texts stand at the left.
const COLUMNS: [(&str, bool); 13] = [
    ("tensor", true),
    ("quantity", true),
    ("rank", false),
    ("threads", false),
    ("program", true),
    ("median", false),
    ("lowest", false),
    ("highest", false),
    ("GFLOP/s", false),
    ("GB/s", false),
    ("bound", false),
    ("ratio", false),
    ("limited by", true),
];

/// Makes the table of all results, and below it how they compare with those of peers.
pub(crate) fn of(settings: &Settings, lines: &[Line]) -> String {
    let mut rows = vec![COLUMNS.map(|(name, _)| name.to_owned())];
    rows.extend(lines.iter().map(row));
    let mut widths = [0; COLUMNS.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).zip(COLUMNS).map(|((cell, width), (_, left))| {
            if left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
    }
    text += "medians, seconds; GB/s: rows and trees loaded, from whatever cache; \
             ratio: median over bound";
    for line in lines {
        for program in peers::programs(&settings.peers) {
            let key = &line.key;
            let Some(Spread { median, lowest, highest }) =
                peers::spread(&settings.peers, program, key)
            else {
                continue;
            };
            let spread = match lowest < highest {
                true => format!(" ({lowest:.3e} to {highest:.3e})"),
                false => String::new(),
            };
            let rank = key.rank.map(|rank| format!(" rank {rank}")).unwrap_or_default();
            text += &format!(
                "\n{program} {} of {}{rank} on {}: {median:.3e} s{spread}, {:.2} times that of {}",
                key.quantity,
                key.tensor,
                key.threads,
                median / line.median,
                key.program
            );
        }
    }
    text
}

fn row(line: &Line) -> [String; COLUMNS.len()] {
    let optional = |value: Option<f64>, digits: usize| {
        value.map_or_else(String::new, |value| format!("{value:.digits$}"))
    };
    let key = &line.key;
    [
        key.tensor.clone(),
        key.quantity.clone(),
        key.rank.map_or_else(String::new, |rank| rank.to_string()),
        key.threads.to_string(),
        key.program.clone(),
        format!("{:.3e}", line.median),
        format!("{:.3e}", line.lowest),
        format!("{:.3e}", line.highest),
        optional(line.gflops(), 2),
        optional(line.gigabytes(), 2),
        line.bound.map_or_else(String::new, |bound| format!("{:.3e}", bound.seconds)),
        optional(line.ratio(), 2),
        line.bound.map_or_else(String::new, |bound| bound.part.name().to_owned()),
    ]
}
