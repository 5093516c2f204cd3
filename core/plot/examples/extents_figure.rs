//! Draws measured seconds against the extents of the dense modes, a line a schedule.
//!
//! ```text
//! cargo run --release --example extents_figure -- summary.csv FOLDER STEM TITLE
//! ```
//!
//! The table has a line of names, the first column naming the extents, the others a schedule each with
//! its seconds.  The figure is written as STEM.svg and STEM.png.

use std::path::Path;
use std::process::ExitCode;

use decompose_plot::{Bar, BarGroup, BarLook, Bars, ScaleKind, save};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [table, folder, stem, title] = args.as_slice() else {
        eprintln!("usage: extents_figure TABLE.csv FOLDER STEM TITLE");
        return ExitCode::from(2);
    };
    let drawn = std::fs::read_to_string(table)
        .map_err(|error| format!("{table}: {error}"))
        .and_then(|text| figure(&text, title).ok_or(format!("{table}: not a table of seconds")))
        .and_then(|bars| save(&bars, Path::new(folder), stem).map_err(|error| error.to_string()));
    match drawn {
        Ok(_) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn figure(table: &str, title: &str) -> Option<Bars> {
    let mut lines = table.lines();
    let series = lines.next()?.split(',').skip(1).map(str::to_owned).collect();
    let group = |line: &str| {
        let (name, seconds) = line.split_once(',')?;
        let bars = seconds.split(',').map(|word| Some(Some(Bar::exact(word.parse().ok()?))));
        Some(BarGroup { name: name.to_owned(), bars: bars.collect::<Option<_>>()? })
    };
    Some(Bars {
        title: title.to_owned(),
        value_name: "time (s)".to_owned(),
        group_name: "extents of the dense modes".to_owned(),
        scale: ScaleKind::Log,
        look: BarLook::Lines,
        series,
        groups: lines.map(group).collect::<Option<_>>()?,
        marks: None,
    })
}
