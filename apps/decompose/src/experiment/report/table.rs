//! The tables of a report: all runs, and medians by configuration.

use serde::Serialize;

use crate::experiment::report::configs::{Config, Quartiles};
use crate::experiment::report::csv_field;
use crate::experiment::report::peers::PeerConfig;
use crate::experiment::report::results::{End, Measure, Results, RunResult};

/// A table whose cells are shown short and kept whole.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// The head of a column.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Column {
    /// Its name in files.
    pub(crate) key: String,
    /// Its name for people.
    pub(crate) name: String,
    pub(crate) is_number: bool,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Cell {
    /// With all digits.
    pub(crate) value: String,
    pub(crate) shown: String,
}

impl Cell {
    fn text(text: impl Into<String>) -> Cell {
        let value = text.into();
        Cell { shown: value.clone(), value }
    }

    fn number(value: Option<f64>) -> Cell {
        value
            .map(|value| Cell { value: value.to_string(), shown: short(value) })
            .unwrap_or_default()
    }

    fn count(value: Option<u64>) -> Cell {
        value.map(|value| Cell::text(value.to_string())).unwrap_or_default()
    }

    fn bytes(value: Option<u64>) -> Cell {
        value
            .map(|value| Cell {
                value: value.to_string(),
                shown: short(value as f64 / f64::from(1 << 20)),
            })
            .unwrap_or_default()
    }
}

/// Returns the table of all runs.
pub(crate) fn runs(results: &Results) -> Table {
    let settings = settings(results.runs.iter().map(|run| run.run.settings.as_slice()));
    let mut columns = vec![text("group"), text("command"), text("tensor")];
    columns.extend(settings.iter().map(|name| varied(name, results)));
    columns.extend([number("seed", "seed"), number("repeat", "repeat"), text("state")]);
    columns.extend([text("measure"), number("quality", "quality"), number("error", "error")]);
    columns.extend([number("iterations", "iterations"), text("stop")]);
    columns.extend([
        number("solve_seconds", "solve (s)"),
        number("iteration_seconds", "iteration (s)"),
        number("wall_seconds", "wall (s)"),
        number("predicted_seconds", "predicted (s)"),
        number("peak_bytes", "peak (MiB)"),
        number("foreseen_bytes", "foreseen (MiB)"),
        number("model_bytes", "model (MiB)"),
        text("folder"),
    ]);
    let row = |run: &RunResult| {
        let planned = &run.run;
        let mut cells =
            [&planned.group, &planned.command, &planned.tensor].map(Cell::text).to_vec();
        cells.extend(settings.iter().map(|name| value_of(&planned.settings, name)));
        cells.push(Cell::count(planned.seed));
        cells.push(Cell::count(Some(planned.repeat as u64)));
        let (state, quality) = (state(&run.end), run.quality);
        cells.extend([
            Cell::text(state),
            Cell::text(quality.map(|quality| quality.measure.name()).unwrap_or_default()),
            Cell::number(quality.map(|quality| quality.value)),
            Cell::number(quality.map(|quality| quality.error)),
            Cell::count(run.iterations),
            Cell::text(run.stop.clone().unwrap_or_default()),
        ]);
        // Seconds of runs that shared the machine say nothing.
        let seconds = |value: Option<f64>| Cell::number(value.filter(|_| planned.timed));
        cells.extend([seconds(run.solve), seconds(run.per_iteration), seconds(run.wall)]);
        cells.push(Cell::number(run.predicted));
        cells.extend([run.peak, run.foreseen, run.model_bytes].map(Cell::bytes));
        cells.push(Cell::text(run.folder.clone()));
        cells
    };
    Table { columns, rows: results.runs.iter().map(row).collect() }
}

/// Returns the table of medians and quartiles over the runs of each configuration.
pub(crate) fn summary(
    results: &Results,
    configs: &[Config<'_>],
    peers: &[PeerConfig<'_>],
) -> Table {
    let settings = settings(configs.iter().map(|config| config.settings));
    let mut columns = vec![text("group"), text("tensor")];
    columns.extend(settings.iter().map(|name| varied(name, results)));
    columns.extend([number("runs", "runs"), text("measure")]);
    for (key, name) in [
        ("quality", "quality"),
        ("iterations", "iterations"),
        ("iteration_seconds", "iteration (s)"),
        ("solve_seconds", "solve (s)"),
        ("peak_bytes", "peak (MiB)"),
        ("wall_seconds", "wall (s)"),
        ("predicted_seconds", "predicted (s)"),
    ] {
        columns.push(number(key, name));
        columns.push(number(&format!("{key}_low"), "lower quartile"));
        columns.push(number(&format!("{key}_high"), "upper quartile"));
    }
    let row = |config: &Config<'_>| {
        let mut cells = [config.group, config.tensor].map(Cell::text).to_vec();
        cells.extend(settings.iter().map(|name| value_of(config.settings, name)));
        cells.push(Cell::count(Some(config.runs.len() as u64)));
        let measure = config.measure();
        cells.push(Cell::text(measure.map(|measure| measure.name()).unwrap_or_default()));
        let mut spread = |of: Option<Quartiles>, cell: fn(Option<f64>) -> Cell| {
            let numbers = of.map_or([None; 3], |of| [of.median, of.low, of.high].map(Some));
            cells.extend(numbers.map(cell));
        };
        spread(config.spread(|run| Some(run.quality?.value)), Cell::number);
        spread(config.spread(|run| run.iterations.map(|count| count as f64)), Cell::number);
        spread(config.seconds(|run| run.per_iteration), Cell::number);
        spread(config.seconds(|run| run.solve), Cell::number);
        spread(config.spread(|run| run.peak.map(|bytes| bytes as f64)), |bytes| {
            Cell::bytes(bytes.map(|bytes| bytes as u64))
        });
        // Of commands that do not iterate this is all that is known.
        let whole = |run: &RunResult| run.wall.filter(|_| run.solve.is_none());
        spread(config.seconds(whole), Cell::number);
        spread(config.spread(|run| run.predicted), Cell::number);
        cells
    };
    let width = columns.len();
    let of_peers = peers.iter().map(|peer| peer_row(peer, &settings, width));
    let rows = configs.iter().map(row).chain(of_peers).collect();
    Table { columns, rows }
}

/// Returns the row of another program's results in the table of medians, which is `width` cells wide.
fn peer_row(peer: &PeerConfig<'_>, settings: &[String], width: usize) -> Vec<Cell> {
    let of_setting = |name: &String| match name.as_str() {
        "rank" => Cell::count(peer.rank.map(|rank| rank as u64)),
        "threads" => Cell::count(Some(peer.threads as u64)),
        _ => Cell::default(),
    };
    let mut cells = [peer.program, peer.tensor].map(Cell::text).to_vec();
    cells.extend(settings.iter().map(of_setting));
    cells.push(Cell::count(Some(peer.rows as u64)));
    cells.push(Cell::text(peer.fit.map(|_| Measure::Fit.name()).unwrap_or_default()));
    for of in [peer.fit, None, peer.iteration, peer.solve] {
        let numbers = of.map_or([None; 3], |of| [of.median, of.low, of.high].map(Some));
        cells.extend(numbers.map(Cell::number));
    }
    cells.resize(width, Cell::default());
    cells
}

impl Table {
    /// Returns it with all digits, for programs.
    pub(crate) fn csv(&self) -> String {
        let line = |cells: Vec<String>| cells.join(",") + "\n";
        let heads = line(self.columns.iter().map(|column| csv_field(&column.key)).collect());
        let row = |row: &Vec<Cell>| line(row.iter().map(|cell| csv_field(&cell.value)).collect());
        heads + &self.rows.iter().map(row).collect::<String>()
    }

    /// Returns it without columns in which every row says the same or nothing; `kept` stay, and the numbers of a single row
    /// but for its quartiles.
    pub(crate) fn telling(&self, kept: &[&str]) -> Table {
        let single = |column: &Column| {
            let spread = column.key.ends_with("_low") || column.key.ends_with("_high");
            self.rows.len() == 1 && column.is_number && !spread
        };
        let tells = |at: usize| {
            let filled = self.rows.iter().any(|row| !row[at].value.is_empty());
            let differs = self.rows.windows(2).any(|pair| pair[0][at] != pair[1][at]);
            let column = &self.columns[at];
            filled && (differs || single(column) || kept.contains(&column.key.as_str()))
        };
        let telling: Vec<usize> = (0..self.columns.len()).filter(|&at| tells(at)).collect();
        let of = |row: &Vec<Cell>| telling.iter().map(|&at| row[at].clone()).collect();
        Table {
            columns: telling.iter().map(|&at| self.columns[at].clone()).collect(),
            rows: self.rows.iter().map(of).collect(),
        }
    }
}

fn state(end: &End) -> &'static str {
    match end {
        End::Finished => "finished",
        End::Failed(_) => "failed",
        End::Missing => "not run",
    }
}

fn text(name: &str) -> Column {
    Column { key: name.to_owned(), name: name.to_owned(), is_number: false }
}

fn number(key: &str, name: &str) -> Column {
    Column { key: key.to_owned(), name: name.to_owned(), is_number: true }
}

/// Returns the column of an option that changes: of numbers, if all of its values are.
fn varied(name: &str, results: &Results) -> Column {
    let mut values = results.runs.iter().flat_map(|run| &run.run.settings);
    let is_number = values.all(|(other, value)| other != name || value.parse::<f64>().is_ok());
    Column { is_number, ..text(name) }
}

/// Returns the names of the options that change, in the order in which they are met.
fn settings<'s>(lists: impl Iterator<Item = &'s [(String, String)]>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in lists.flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn value_of(settings: &[(String, String)], name: &str) -> Cell {
    let found = settings.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| Cell::text(value.clone())).unwrap_or_default()
}

/// Returns a number with six digits that count at most.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    if !(1e-4..1e7).contains(&size) {
        return format!("{value:.3e}");
    }
    let before = size.log10().floor() as i32 + 1;
    let after = (6 - before.max(0)).clamp(0, 6) as usize;
    let text = format!("{value:.after$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn short_numbers_keep_six_digits() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (0.123_456_789, "0.123457"),
            (123.456_789, "123.457"),
            (1_234_567.8, "1234568"),
            (1e-5, "1.000e-5"),
            (0.25, "0.25"),
            (-3.5, "-3.5"),
            (1.5e9, "1.500e9"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }
}
