//! The pages of a report, by templates.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value};
use serde::Serialize;

use crate::experiment::report::figures::{Drawn, Sheet};
use crate::experiment::report::results::{End, Results};
use crate::experiment::report::table::Table;
use crate::experiment::report::{Format, Style};
use crate::failure::Failure;

/// The templates, by their names.
const TEMPLATES: [(&str, &str); 3] = [
    ("report.html", include_str!("templates/report.html")),
    ("report.md", include_str!("templates/report.md")),
    ("summary.tex", include_str!("templates/summary.tex")),
];

/// What the templates know.
#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    version: &'a str,
    is_paper: bool,
    tensors: Vec<String>,
    finished: usize,
    failed: usize,
    missing: usize,
    runs: &'a Table,
    summary: &'a Table,
    figures: Vec<PageFigure<'a>>,
    failures: Vec<(String, String)>,
    warnings: &'a [String],
    /// The table of all runs, as a link.
    runs_link: String,
    summary_link: String,
}

/// A figure of the page.
#[derive(Serialize)]
struct PageFigure<'a> {
    stem: &'a str,
    title: &'a str,
    caption: &'a str,
    svg: &'a str,
    /// The table that it draws, as a link.
    link: String,
}

/// The tables of a report.
pub(crate) struct Tables {
    pub(crate) runs: Table,
    pub(crate) summary: Table,
}

/// Returns the page in a format.
///
/// # Errors
///
/// If a template does not suit what it is given, which is a fault of this program.
pub(crate) fn page(
    results: &Results,
    tables: &Tables,
    sheet: &Sheet,
    (format, style): (Format, Style),
) -> Result<String, Failure> {
    let counted = |end: fn(&End) -> bool| results.runs.iter().filter(|run| end(&run.end)).count();
    let figure = |drawn: &'_ Drawn| link(&drawn.csv);
    let figures = sheet.drawn.iter().map(|drawn| PageFigure {
        stem: &drawn.stem,
        title: &drawn.title,
        caption: &drawn.caption,
        svg: &drawn.svg,
        link: figure(drawn),
    });
    let failures = results.runs.iter().filter_map(|run| match &run.end {
        End::Failed(why) => Some((run.folder.clone(), why.clone())),
        End::Finished | End::Missing => None,
    });
    let kept = ["group", "tensor", "seed", "state", "quality", "measure", "runs"];
    let (runs, summary) = (tables.runs.telling(&kept), tables.summary.telling(&kept));
    let page = Page {
        title: &results.plan.title,
        version: &results.plan.version,
        is_paper: style == Style::Paper,
        tensors: results.plan.tensors.iter().map(|tensor| tensor.name.clone()).collect(),
        finished: counted(|end| *end == End::Finished),
        failed: counted(|end| matches!(end, End::Failed(_))),
        missing: counted(|end| *end == End::Missing),
        runs: &runs,
        summary: &summary,
        figures: figures.collect(),
        failures: failures.collect(),
        warnings: &sheet.warnings,
        runs_link: link(&tables.runs.csv()),
        summary_link: link(&tables.summary.csv()),
    };
    let name = match format {
        Format::Html => "report.html",
        Format::Md => "report.md",
    };
    render(name, &page)
}

/// Returns the table of medians for LaTeX, with the lines of `booktabs`.
///
/// # Errors
///
/// As [`page`].
pub(crate) fn latex(title: &str, summary: &Table) -> Result<String, Failure> {
    #[derive(Serialize)]
    struct Tex<'a> {
        title: &'a str,
        table: &'a Table,
    }
    render("summary.tex", &Tex { title, table: &summary.telling(&["group", "tensor", "quality"]) })
}

fn render(name: &str, context: &impl Serialize) -> Result<String, Failure> {
    let fault = |error: minijinja::Error| Failure::internal(format!("the page {name}: {error:#}"));
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|name| match name.ends_with(".html") {
        true => AutoEscape::Html,
        false => AutoEscape::None,
    });
    environment.add_filter("tex", |text: String| tex(&text));
    environment.add_filter("cell", |text: String| text.replace('|', "\\|"));
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).map_err(fault)?;
    }
    environment
        .get_template(name)
        .and_then(|page| page.render(Value::from(Serde(context))))
        .map_err(fault)
}

/// Returns a text as LaTeX writes it.
fn tex(text: &str) -> String {
    let mut written = String::new();
    for letter in text.chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                written.push('\\');
                written.push(letter);
            }
            '\\' => written.push_str("\\textbackslash{}"),
            '~' => written.push_str("\\textasciitilde{}"),
            '^' => written.push_str("\\textasciicircum{}"),
            _ => written.push(letter),
        }
    }
    written
}

/// Returns a table as an address that holds it.
fn link(csv: &str) -> String {
    let mut link = "data:text/csv;charset=utf-8,".to_owned();
    for byte in csv.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b',' => {
                link.push(byte as char)
            }
            _ => link.push_str(&format!("%{byte:02X}")),
        }
    }
    link
}

#[cfg(test)]
mod tests {
    use super::{link, tex};

    #[test]
    fn texts_are_written_as_their_readers_take_them() {
        assert_eq!(
            tex("a_b & 50% {x}^2 \\"),
            "a\\_b \\& 50\\% \\{x\\}\\textasciicircum{}2 \\textbackslash{}"
        );
        assert_eq!(link("a,\"b\"\n"), "data:text/csv;charset=utf-8,a,%22b%22%0A");
    }
}
