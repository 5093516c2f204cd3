//! The figures of a report, each with the table of what it draws.

mod bench;
mod components;
mod convergence;
mod ratios;
mod speed;
mod tradeoff;
mod trends;

use std::fmt::Write;
use std::path::Path;

use decompose_plot::{Curves, CurvesWidth, Figure, PlotFormat, Rendered};

use crate::experiment::report::configs::Config;
use crate::experiment::report::peers::PeerConfig;
use crate::experiment::report::results::Results;
use crate::experiment::report::{Style, csv_field};

/// Millimetres of a figure's point in a paper: two columns are 174 mm.
const POINT: f64 = 174.0 / 814.0;

/// A figure, drawn.
pub(crate) struct Drawn {
    /// The name of its files, without the ending.
    pub(crate) stem: String,
    pub(crate) title: String,
    /// What is seen, and how it is read.
    pub(crate) caption: String,
    /// For a page.
    pub(crate) svg: String,
    /// Its files; `None` of a figure that another command drew.
    pub(crate) rendered: Option<Rendered>,
    pub(crate) csv: String,
}

/// The figures drawn so far, and why others are missing.
pub(crate) struct Sheet {
    style: Style,
    formats: Vec<PlotFormat>,
    /// What is said in every figure of curves, where no caption stands beside it.
    note: &'static str,
    pub(crate) drawn: Vec<Drawn>,
    pub(crate) warnings: Vec<String>,
}

/// Draws all figures that the results have something to show for.
pub(crate) fn draw(
    results: &Results,
    (configs, peers): (&[Config<'_>], &[PeerConfig<'_>]),
    folder: &Path,
    style: Style,
) -> Sheet {
    let mut sheet = Sheet::new(style, &[PlotFormat::Svg]);
    trends::quality(configs, &mut sheet);
    convergence::draw(configs, 1, &mut sheet);
    tradeoff::pareto(configs, &mut sheet);
    trends::time_by_rank(configs, &mut sheet);
    trends::time_by_size(configs, &results.plan.tensors, &mut sheet);
    speed::phases(configs, &mut sheet);
    ratios::draw(results, configs, peers, &mut sheet);
    tradeoff::memory(configs, &mut sheet);
    components::draw(configs, folder, &mut sheet);
    bench::inline(results, folder, &mut sheet);
    sheet
}

/// Draws what runs of no study have to show together, in these formats.
pub(crate) fn overlays(configs: &[Config<'_>], formats: &[PlotFormat]) -> Sheet {
    let note = match configs.iter().any(|config| config.runs.len() > 1) {
        true => "lines are medians, bands lie between the quartiles",
        false => "",
    };
    let mut sheet = Sheet { note, ..Sheet::new(Style::Screen, formats) };
    trends::quality(configs, &mut sheet);
    // Of one run there is no band.
    convergence::draw(configs, 2, &mut sheet);
    trends::time_by_rank(configs, &mut sheet);
    // How the tensors were made is not known.
    trends::time_by_size(configs, &[], &mut sheet);
    sheet
}

impl Sheet {
    fn new(style: Style, formats: &[PlotFormat]) -> Sheet {
        let formats = formats.to_vec();
        Sheet { style, formats, note: "", drawn: Vec::new(), warnings: Vec::new() }
    }

    /// Draws panels of curves: in one figure, or for a paper a column wide each.
    fn curves(&mut self, stem: &str, figure: Curves, caption: &str) {
        let notes = [figure.note.as_str(), self.note];
        let note = notes.into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join("; ");
        let figure = Curves { note, ..figure };
        let csv = curves_csv(&figure);
        if self.style == Style::Screen || figure.panels.len() < 2 {
            let width = match self.style {
                Style::Screen => CurvesWidth::Page,
                Style::Paper => CurvesWidth::Column,
            };
            let figure = Curves { width, ..figure };
            let title = figure.title.clone();
            return self.add(stem, &title, caption, (&figure, csv));
        }
        let Curves { title, note, panels, .. } = figure;
        let first = panels.first().cloned().unwrap_or_default();
        let same_x = panels.iter().all(|panel| panel.x_name == first.x_name);
        for (panel, at) in panels.into_iter().zip('a'..='z') {
            let (title, note) = (title.clone(), note.clone());
            // Every figure stands alone: each has the names of its axis and of its curves.
            let y_name = if panel.y_name.is_empty() { first.y_name.clone() } else { panel.y_name };
            let told = match same_x {
                true => format!("{title}: {y_name}"),
                false => format!("{title}, by {}", panel.x_name),
            };
            let panels = vec![decompose_plot::CurvePanel { y_name, ..panel }];
            let part = Curves { title: title.clone(), note, panels, width: CurvesWidth::Column };
            let csv = curves_csv(&part);
            self.add(&format!("{stem}-{at}"), &told, caption, (&part, csv));
        }
    }

    /// Draws a figure; one that cannot be drawn is a warning.
    fn add(
        &mut self,
        stem: &str,
        title: &str,
        caption: &str,
        (figure, csv): (&impl Figure, String),
    ) {
        match decompose_plot::render(figure, &self.formats) {
            Ok(rendered) => {
                let title = self.free_title(title);
                self.drawn.push(Drawn {
                    stem: self.free(stem),
                    caption: caption.to_owned(),
                    svg: self.svg(&rendered, figure.size(), &title),
                    title,
                    rendered: Some(rendered),
                    csv,
                });
            }
            Err(error) => self.warnings.push(format!("the figure `{stem}` is left out: {error}")),
        }
    }

    /// Returns a name that no figure has yet.
    fn free(&self, stem: &str) -> String {
        let taken = |name: &str| self.drawn.iter().any(|drawn| drawn.stem == name);
        let numbered = (2..).map(|number| format!("{stem}-{number}"));
        let mut names = std::iter::once(stem.to_owned()).chain(numbered);
        names.find(|name| !taken(name)).unwrap_or_default()
    }

    /// Returns a title that no figure has yet: the contents of a page name each figure once.
    fn free_title(&self, title: &str) -> String {
        let taken = |title: &str| self.drawn.iter().any(|drawn| drawn.title == title);
        let numbered = (2..).map(|number| format!("{title} ({number})"));
        let mut titles = std::iter::once(title.to_owned()).chain(numbered);
        titles.find(|title| !taken(title)).unwrap_or_default()
    }

    /// Returns a figure as a part of a page, with its name for those who do not see it.
    fn svg(&self, rendered: &Rendered, (width, height): (u32, u32), title: &str) -> String {
        let svg = rendered.svg().unwrap_or_default().to_owned();
        let points = format!("width=\"{width}\" height=\"{height}\"");
        let size = match self.style {
            Style::Screen => points.clone(),
            Style::Paper => {
                let [width, height] = [width, height].map(|points| f64::from(points) * POINT);
                format!("width=\"{width:.2}mm\" height=\"{height:.2}mm\"")
            }
        };
        let label = title.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        svg.replacen(&points, &format!("{size} role=\"img\" aria-label=\"{label}\""), 1)
    }
}

/// Returns the table of what panels of curves show.
fn curves_csv(figure: &Curves) -> String {
    let mut csv = "panel,curve,x_name,y_name,x,y,low,high\n".to_owned();
    for (panel, number) in figure.panels.iter().zip(1..) {
        for curve in &panel.curves {
            for &(x, y) in &curve.points {
                let spread = curve.band.iter().chain(&curve.spread).find(|(at, _)| *at == x);
                let (low, high) = spread.map_or((y, y), |(_, ends)| *ends);
                let names = [&curve.name, &panel.x_name, &panel.y_name].map(|name| csv_field(name));
                // Writing to a string cannot fail.
                let _ = writeln!(csv, "{number},{},{x},{y},{low},{high}", names.join(","));
            }
        }
    }
    csv
}

/// Returns at most `most` of some values, spread evenly, the first and the last among them.
fn evenly<T>(values: Vec<T>, most: usize) -> Vec<T> {
    let count = values.len();
    if count <= most {
        return values;
    }
    let kept: Vec<usize> = (0..most).map(|at| at * (count - 1) / (most - 1).max(1)).collect();
    let numbered = values.into_iter().enumerate();
    numbered.filter(|(at, _)| kept.contains(at)).map(|(_, value)| value).collect()
}

/// Returns the tensors that configurations have, in their order.
fn tensors<'a>(configs: &[Config<'a>]) -> Vec<&'a str> {
    let mut tensors = Vec::new();
    for config in configs {
        if !tensors.contains(&config.tensor) {
            tensors.push(config.tensor);
        }
    }
    tensors
}
