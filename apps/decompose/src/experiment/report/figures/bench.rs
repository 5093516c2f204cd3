//! The figures of `decompose bench`, as it drew them.

use std::fs;
use std::path::Path;

use crate::experiment::report::figures::{Drawn, Sheet};
use crate::experiment::report::results::Results;

/// Takes the figures of all runs of `bench` into the report, each with the summary that it draws.
pub(super) fn inline(results: &Results, folder: &Path, sheet: &mut Sheet) {
    for run in results.finished().filter(|run| run.run.command == "bench") {
        let place = folder.join("runs").join(&run.folder);
        let read = |name: &str| fs::read_to_string(place.join(name));
        let (Ok(svg), Ok(csv)) = (read("bench.svg"), read("summary.csv")) else {
            let why = format!("runs/{} has no figure of its measurements", run.folder);
            sheet.warnings.push(why);
            continue;
        };
        // The page is one document: what begins another is left out.
        let start = svg.find("<svg").unwrap_or(0);
        let stem = sheet.free(&format!("bench-{}-{}", run.run.group, run.run.tensor));
        let settings = run.run.settings.iter().map(|(option, value)| format!(", {option} {value}"));
        let what = format!("{}{}", run.run.group, settings.collect::<String>());
        let title = sheet.free_title(&format!("{}: measurements, {what}", run.run.tensor));
        let caption = format!(
            "Times of `decompose bench` beside the bound of the machine; runs/{}.",
            run.folder
        );
        let (svg, rendered) = (svg[start..].to_owned(), None);
        sheet.drawn.push(Drawn { stem, title, caption, svg, rendered, csv });
    }
}
