//! The table, the figure and the record of a scan.

use std::fmt;
use std::io::Write;
use std::ops::ControlFlow;

use decompose_common::files;
use decompose_common::stopping::StopReason;
use decompose_complete::{RankRow, Recommendation, recommend};
use decompose_plot::{Curve, CurveLook, CurvePanel, Curves, ScaleKind};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::cli::Done;
use crate::complete::data::Loaded;
use crate::complete::figures::number;
use crate::complete::record;
use crate::complete::settings::Settings;
use crate::failure::Failure;
use crate::rank::args::ScanMethod;
use crate::rank::scan::Scan;
use crate::run::figures::Sketches;
use crate::run::record::Parts;
use crate::run::{Desk, Ended, Phases, RunFacts, Written};

/// A scan that has ended.
pub(crate) struct Report {
    rows: Vec<RankRow>,
    recommended: Recommendation,
    done: Done,
    method: ScanMethod,
    error_name: &'static str,
    name: String,
}

/// A scan that has ended, with what it scanned.
pub(crate) struct Ending<'a> {
    pub(crate) report: &'a Report,
    pub(crate) settings: &'a Settings,
    pub(crate) loaded: &'a Loaded,
}

impl Ended for Ending<'_> {
    fn facts(&self) -> RunFacts<'_> {
        let Loaded { tensor, forecast, .. } = self.loaded;
        let (settings, done) = (&self.settings.run, self.report.done);
        RunFacts { settings, tensor, forecast: *forecast, done }
    }

    fn parts(&self) -> Parts<impl Serialize + Sync, impl Serialize + Sync, impl Serialize + Sync> {
        let options = record::options(self.settings, self.loaded.parts.train.order());
        Parts { command: "rank", options, plan: (), result: self.report.record() }
    }

    fn write(&self, desk: &Desk<'_>) -> Result<Written, Failure> {
        self.report.write(desk)
    }

    fn draw(&self, sketches: &mut Sketches<'_>) {
        sketches.add("rank", || Ok(self.report.figure()));
    }

    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report.summary(f)
    }

    fn told(&self, result: &impl Serialize, _: &Phases) -> Json {
        json!(result)
    }
}

/// What is recorded.
#[derive(Serialize)]
pub(crate) struct RankRecord<'a> {
    method: ScanMethod,
    error: &'static str,
    /// Why the scan stopped; each fit stops for reasons of its own.
    stop: StopReason,
    /// `None` if no rank can be told from another.
    recommended_rank: Option<usize>,
    /// The rank with good predictions, whatever its components are.
    rank_for_prediction: Option<usize>,
    why: &'a [String],
    ranks: &'a [RankRow],
}

impl Report {
    /// Chooses among the rows of a scan that has at least one.
    pub(crate) fn new(scan: Scan, method: ScanMethod, name: String) -> Report {
        let done = match scan.flow {
            ControlFlow::Continue(()) => Done::Complete,
            ControlFlow::Break(()) => Done::Interrupted,
        };
        let recommended = recommend(&scan.rows);
        let error_name = scan.error_name;
        Report { rows: scan.rows, recommended, done, method, error_name, name }
    }

    /// Says that the entries, which have one value, tell no rank from another.
    pub(crate) fn tell_none_apart(&mut self) {
        self.recommended = Recommendation::none();
    }

    /// Returns what is recorded.
    fn record(&self) -> RankRecord<'_> {
        RankRecord {
            method: self.method,
            error: self.error_name,
            stop: match self.done {
                Done::Interrupted => StopReason::Interrupted,
                Done::Complete | Done::Partly => StopReason::Complete,
            },
            recommended_rank: told(self.recommended.rank),
            rank_for_prediction: told(self.recommended.for_prediction),
            why: &self.recommended.why,
            ranks: &self.rows,
        }
    }

    /// Writes rank.csv.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    fn write(&self, desk: &Desk<'_>) -> Result<Written, Failure> {
        let table = desk.folder.join("rank.csv");
        let done = files::replace(&table, |out| {
            writeln!(out, "rank,train,val,test,worst,fit,match,reached,agreement,seconds")?;
            let optional = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
            for row in &self.rows {
                let RankRow { rank, train, worst, fit, reached, seconds, .. } = row;
                let (val, test) = (optional(row.val), optional(row.test));
                let (matched, agreement) = (optional(row.matched), optional(row.agreement));
                write!(out, "{rank},{train},{val},{test},{worst},{fit},{matched},{reached},")?;
                writeln!(out, "{agreement},{seconds:.6}")?;
            }
            Ok(())
        });
        desk.first(done.map(|()| vec![table]))
    }

    /// Returns the figure of errors, fits and matches by rank.
    fn figure(&self) -> Curves {
        let curve = |name: &str, of: &dyn Fn(&RankRow) -> Option<f64>| {
            let points = self.rows.iter().filter_map(|row| Some((row.rank as f64, of(row)?)));
            let points = points.collect();
            Curve { name: name.into(), points, look: CurveLook::Line, ..Curve::default() }
        };
        let panel = |y_name: &str, curves: Vec<Curve>| CurvePanel {
            x_name: "rank".into(),
            y_name: y_name.into(),
            curves: curves.into_iter().filter(|curve| !curve.points.is_empty()).collect(),
            places: match self.recommended.rank {
                0 => Vec::new(),
                rank => vec![("recommended rank".into(), rank as f64)],
            },
            x_ticks: self.rows.iter().map(|row| row.rank as f64).collect(),
            ..CurvePanel::default()
        };
        let mut errors = panel(
            self.error_name,
            vec![
                curve("training", &|row| Some(row.train)),
                curve("validation", &|row| row.val),
                curve("test", &|row| row.test),
            ],
        );
        // An error of zero has no place on a logarithmic axis.
        let mut all = errors.curves.iter().flat_map(|curve| &curve.points);
        errors.y = if all.all(|point| point.1 > 0.0) { ScaleKind::Log } else { ScaleKind::Linear };
        let decides = if self.rows.iter().any(|row| row.val.is_some()) { 1 } else { 0 };
        if let Some(deciding) = errors.curves.get_mut(decides) {
            let spread = self.rows.iter().map(|row| (row.rank as f64, (row.deciding(), row.worst)));
            deciding.spread = spread.filter(|(_, (best, worst))| best < worst).collect();
        }
        let fit = panel("fit", vec![curve("", &|row| Some(row.fit))]);
        let matched = panel("match between starts", vec![curve("", &|row| row.agreement)]);
        let panels = [errors, fit, matched].into_iter().filter(|panel| !panel.curves.is_empty());
        Curves {
            title: format!("{}: CP models by rank", self.name),
            note: match self.recommended.rank {
                0 => "no rank can be told from another".into(),
                rank => format!(
                    "recommended: rank {rank}; lines with caps: from the best to the worst start"
                ),
            },
            panels: panels.collect(),
            ..Curves::default()
        }
    }

    /// Writes the table for people.
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = |name: &str| format!("{name:>12}");
        let heads = ["training", "validation", "test", "worst start", "fit", "reached", "match"];
        let heads = heads.map(column);
        writeln!(f, "rank {}   ({})", heads.join(""), self.error_name)?;
        let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        for row in &self.rows {
            let sign = if row.rank == self.recommended.rank { "*" } else { " " };
            let numbers = [
                number(row.train),
                optional(row.val),
                optional(row.test),
                number(row.worst),
                format!("{:.6}", row.fit),
                row.reached.to_string(),
                row.agreement.map_or_else(|| "-".to_owned(), |score| format!("{score:.4}")),
            ];
            let numbers = numbers.map(|number| column(&number));
            writeln!(f, "{:>4}{sign}{}", row.rank, numbers.join(""))?;
        }
        let rank = self.recommended.rank;
        for (line, at) in self.recommended.why.iter().zip(0..) {
            let head = match (at, rank) {
                (0, 0) => "recommended ".into(),
                (0, _) => format!("recommended {rank} (*): "),
                _ => "            ".into(),
            };
            writeln!(f, "{head}{line}")?;
        }
        Ok(())
    }
}

/// A rank, unless it stands for none.
fn told(rank: usize) -> Option<usize> {
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use decompose_complete::RankRow;
    use decompose_plot::{PlotFormat, render};

    use super::Report;
    use crate::rank::args::ScanMethod;
    use crate::rank::scan::Scan;

    #[test]
    fn ranks_without_errors_are_drawn() {
        let row = |rank| RankRow {
            rank,
            train: 0.0,
            val: Some(0.0),
            test: None,
            worst: 0.0,
            mean_of_all: 0.0,
            fit: 1.0,
            matched: Some(1.0),
            reached: 2,
            agreement: Some(1.0),
            seconds: 0.0,
        };
        let report = |rows: Vec<RankRow>| {
            let flow = ControlFlow::Continue(());
            let scan = Scan { rows, flow, error_name: "RMSE" };
            Report::new(scan, ScanMethod::Complete, "ones".to_owned())
        };
        for rows in [vec![row(1)], vec![row(2), row(5), row(40)]] {
            let figure = report(rows.clone()).figure();
            render(&figure, &PlotFormat::ALL).unwrap();
            assert_eq!(figure.panels.len(), 3);
            let ranks: Vec<f64> = rows.iter().map(|row| row.rank as f64).collect();
            assert_eq!(figure.panels[0].x_ticks, ranks);
        }
    }
}
