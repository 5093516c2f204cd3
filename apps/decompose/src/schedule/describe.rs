//! A schedule in words: its path, its loops, its buffers, its cost.

use std::fmt::{self, Write};

use decompose_common::machine::size;
use decompose_core::contract::Request;
use decompose_core::einsum::IndexSet;
use decompose_core::path::{Source, term_text, unfactorised};
use decompose_core::schedule::{
    BufferKind, Chunks, Command, Conflict, Cut, InferredLevel, LoopNest, OutputForm, Problem,
    Split, SplitIndex, Workspace, infer, resolve,
};
use decompose_formats::counted;
use decompose_formats::stats::grouped;
use decompose_plot::{LoopKind, NestFigure, NestNode};

use crate::failure::Failure;
use crate::schedule::choose::{How, Pick, Selection};
use crate::schedule::outline::nest_figure;

/// What is expected of a result before it is computed.
pub(crate) struct Expected {
    /// Its elements, from the counts of the operands alone.
    pub(crate) estimated: u64,
    /// Its elements as the join of two operands was counted.
    pub(crate) counted: Option<u64>,
    /// How its levels are best stored.
    pub(crate) levels: Vec<InferredLevel>,
    /// How it is stored.
    pub(crate) form: OutputForm,
}

/// Returns what is expected of the result; nothing of a single number.
pub(crate) fn expected(request: &Request) -> Option<Expected> {
    let counted = request.problem_on(&[]);
    let form = counted.output;
    if counted.expr.output.indices.is_empty() {
        return None;
    }
    let inferred = infer(&counted);
    let known = counted.join.map(|_| inferred.elements as u64);
    let estimated = infer(&Problem { join: None, ..counted }).elements.ceil() as u64;
    Some(Expected { estimated, counted: known, levels: inferred.levels, form })
}

/// Returns the line that tells what is expected of the result; an empty one of a single number.
pub(crate) fn result_line(request: &Request) -> String {
    let Some(Expected { estimated, counted, levels, form }) = expected(request) else {
        return String::new();
    };
    let counted = counted.map(|counted| format!(", {} counted", grouped(counted)));
    let level = |level: &InferredLevel| format!("{} {}", level.index, level.kind);
    let levels: Vec<String> = levels.iter().map(level).collect();
    let elements = if estimated == 1 { "element" } else { "elements" };
    format!(
        "{:<22}{}: {} {elements} estimated{}; suited levels {}; stored as {}\n",
        "result",
        request.expr.output,
        grouped(estimated),
        counted.unwrap_or_default(),
        levels.join(", "),
        form.word()
    )
}

/// Returns how indices are cut into pieces, a line each.
pub(crate) fn pieces(problem: &Problem) -> String {
    let names = problem.expr.operand_names();
    let line = |own: &SplitIndex| {
        let Split { index, outer, command, factor, cut } = own.split;
        let (size, count) = (own.size(), own.split.pieces(own.extent));
        let how = match cut {
            Cut::Coordinates => format!("{index} in {count} pieces of {size}"),
            Cut::Positions { input, chunks } => {
                let (of, strided) = (&names[input], chunks == Chunks::Strided);
                let strided = if strided { ", strided" } else { "" };
                match command {
                    Command::Split => {
                        format!("nodes of {index} in {of} in pieces of {factor}{strided}")
                    }
                    Command::Divide => {
                        format!("nodes of {index} in {of} in {factor} pieces{strided}")
                    }
                }
            }
        };
        format!("{:<22}{how}, numbered by {outer}\n", "pieces")
    };
    problem.splits.iter().map(line).collect()
}

/// Returns the path of `pick` as a table, in the manner of `opt_einsum`.
pub(crate) fn path_table(pick: &Pick) -> String {
    let Pick { problem, schedule, cost, .. } = pick;
    let path = &schedule.path;
    let naive = &unfactorised(&problem.expr).terms[0];
    let naive_flops = problem.iterations(naive.indices) as f64 * naive.inputs.len() as f64;
    let largest = path.terms[..path.terms.len() - 1].iter();
    let largest = largest.map(|term| problem.iterations(term.output)).max();
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<22}{value}");
    };
    let outer: IndexSet = problem.splits.iter().map(|own| own.split.outer).collect();
    let whole = naive.indices - outer;
    line("naive loops", format!("{} ({whole})", whole.len()));
    line("naive flops", format!("{naive_flops:.3e}"));
    line("loops", path.depth().to_string());
    line("flops", format!("{:.3e}", cost.flops));
    line("fewer by", format!("{:.2}x", naive_flops / cost.flops.max(1.0)));
    if let Some(largest) = largest {
        let stored = grouped(cost.buffer_elements);
        line("largest intermediate", format!("{} elements; {stored} stored", grouped(largest)));
    }
    let _ = writeln!(
        text,
        "{:>5}  {:>15}  {:>9}  {:<44}  remaining",
        "loops", "iterations", "flops", "term"
    );
    for at in 0..path.terms.len() {
        let term = &path.terms[at];
        let iterations = problem.iterations(term.indices);
        let flops = iterations as f64 * term.inputs.len() as f64;
        let (loops, what) = (term.indices.len(), term_text(path, &problem.expr, at));
        let (iterations, rest) = (grouped(iterations), remaining(problem, pick, at));
        let _ = writeln!(text, "{loops:>5}  {iterations:>15}  {flops:>9.3e}  {what:<44}  {rest}");
    }
    text
}

/// What is left to multiply after the term `at`.
fn remaining(problem: &Problem, pick: &Pick, at: usize) -> String {
    let path = &pick.schedule.path;
    let names = problem.expr.operand_names();
    let read = |source: Source| path.terms[..=at].iter().any(|t| t.inputs.contains(&source));
    let inputs = (0..names.len()).filter(|&input| !read(Source::Input(input)));
    let inputs = inputs.map(|input| names[input].clone());
    let made = (0..=at).filter(|&term| !read(Source::Term(term)));
    let made = made.map(|term| path.name(&problem.expr, term));
    made.chain(inputs).collect::<Vec<_>>().join(" ")
}

/// Returns the loops of `pick` as indented text, and its buffers.
pub(crate) fn nest(pick: &Pick) -> Result<String, Failure> {
    let figure = nest_figure(&pick.problem, &pick.schedule)?;
    let mut text = String::new();
    write_nodes(&figure.roots, 0, &mut text);
    write_buffers(&figure, pick, &mut text);
    Ok(text)
}

fn write_nodes(nodes: &[NestNode], depth: usize, text: &mut String) {
    let pad = "  ".repeat(depth);
    for node in nodes {
        let _ = match node {
            NestNode::Term(term) => writeln!(text, "{pad}{term}"),
            NestNode::Loop { index, note, kind, body } => {
                let kind = match kind {
                    LoopKind::Sparse => "sparse",
                    LoopKind::Dense => "dense",
                    LoopKind::Lanes => "lanes",
                };
                let head = format!("{pad}{index}");
                let _ = writeln!(text, "{head:<20} {kind:<6} {note}");
                write_nodes(body, depth + 1, text);
                Ok(())
            }
        };
    }
}

fn write_buffers(figure: &NestFigure, pick: &Pick, text: &mut String) {
    for buffer in &figure.buffers {
        let sparse = pick.schedule.buffers.get(buffer.producer) == Some(&BufferKind::Sparse);
        let sparse = if sparse { ", sparse" } else { "" };
        let _ = writeln!(text, "buffer {}{sparse}", buffer.label());
    }
    if figure.buffers.is_empty() {
        let _ = writeln!(text, "buffer none");
    }
    if let Some(workspace) = workspace(pick) {
        let _ = writeln!(text, "workspace {workspace}");
    }
    let tasks = pick.schedule.parallel.map(|parallel| match parallel.conflict {
        Conflict::Owner => "tasks own rows of the output",
        Conflict::Boundary => "tasks own rows of the output; shared ones are added at last",
        Conflict::Privatise => "each thread has a copy of the output",
        Conflict::Positions => "tasks own positions of the output",
        Conflict::Assemble => "each task assembles its part of the output",
    });
    let copies = match pick.side_bytes {
        0 => String::new(),
        bytes => format!("; private copies {}", size(bytes)),
    };
    let _ = writeln!(text, "output {}{copies}", tasks.unwrap_or("one task"));
}

/// Returns how the elements of an assembled result are summed up before they are appended: the size of its array, or
/// about how many elements its hash table or list has at a time.
pub(crate) fn workspace(pick: &Pick) -> Option<String> {
    let Pick { problem, schedule, .. } = pick;
    let nest = resolve(problem, schedule).ok()?;
    match schedule.workspace? {
        Workspace::Dense => {
            let cells = problem.workspace_cells(nest.last());
            let bytes = size(cells.saturating_mul(problem.value_bytes as u64));
            Some(format!(
                "array: {} of {bytes} for each thread",
                counted(cells as usize, "cell", "cells")
            ))
        }
        kind => {
            let elements = met_together(pick, &nest);
            let name = if kind == Workspace::Hashed { "hash table" } else { "list" };
            let elements = counted(elements as usize, "element", "elements");
            Some(format!("{name}: about {elements} at a time"))
        }
    }
}

/// Returns about how many elements of an assembled result are summed up together.
pub(crate) fn met_together(Pick { problem, .. }: &Pick, nest: &LoopNest) -> u64 {
    let outside = nest.last()[..nest.outside].iter().copied().collect();
    problem.assembled_elements().div_ceil(problem.iterations(outside).max(1))
}

/// What is known of a cost, a line a column.
pub(crate) struct CostLines<'a>(pub(crate) &'a Pick, pub(crate) usize);

impl fmt::Display for CostLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CostLines(pick, threads) = self;
        let cost = &pick.cost;
        let threads = counted(*threads, "thread", "threads");
        writeln!(f, "{:<22}{:.3e} s on {threads}", "predicted", pick.seconds)?;
        writeln!(f, "{:<22}{:.3e} s on one core", "", cost.seconds)?;
        if pick.storing > 0.0 {
            writeln!(f, "{:<22}{:.3e} s to build the trees", "", pick.storing)?;
        }
        writeln!(f, "{:<22}{:.3e}", "flops", cost.flops)?;
        writeln!(f, "{:<22}{:.3e} B", "gathered", cost.gathered_bytes)?;
        writeln!(f, "{:<22}{:.3e} B", "streamed", cost.streamed_bytes)?;
        let elements = grouped(cost.buffer_elements);
        let elements = if cost.buffer_elements == 1 {
            "1 element".to_owned()
        } else {
            format!("{elements} elements")
        };
        let dims = counted(cost.buffer_dims, "index", "indices");
        writeln!(f, "{:<22}{elements} in all, up to {dims} each", "buffers")
    }
}

/// Where the choice comes from, and what the search saw, in a line or two.
pub(crate) fn how(plan: &Selection) -> String {
    let search = plan.report.as_ref().map(|report| {
        let trees = match plan.choice().trees.len() {
            // The constraints choose among all layouts.
            _ if report.solved.is_some() => return format!("search   {report}"),
            1 => counted(plan.trees, "tree", "trees"),
            _ => counted(plan.trees, "set of trees", "sets of trees"),
        };
        format!("search   {report}; {trees}")
    });
    let choice = match &plan.how {
        How::Predicted => None,
        How::Measured(race) => Some(format!("measure  {}", race.halving)),
        How::Kept(file, seconds) => {
            let file = file.display();
            Some(format!("choice   measured earlier: {seconds:.3e} s; kept in {file}"))
        }
        How::Given(file) => Some(format!("choice   given in {}", file.display())),
    };
    search.into_iter().chain(choice).collect::<Vec<_>>().join("\n")
}
