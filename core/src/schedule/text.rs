//! Schedules as text, and back.
//!
//! ```text
//! path     X*A3 T1*A2
//! nest     i{ j{ k{ r{ T1 } } r{ T2 } } }
//! layout   i j k
//! buffer   dense
//! parallel i position boundary
//! prefetch A3 16
//! ```
//!
//! Lines `split k K 32` or `divide k K 8` come first; the lines below name both parts ([`Split`]).
//!
//! `parallel` may end in `split 64` or `divide 8`, the size or the number of tasks ([`TaskCut`]).  `vectorize k` or
//! `vectorize none` limits which loops become vector code ([`Vectors`]).
//!
//! An assembled output has a line `workspace dense` or `workspace list`.
//!
//! Lines `loopfuse ...` and `reorder ...` behind `nest` restructure it, one after the other ([`Directive`]).
//!
//! One line a decision; `layout` and `buffer` once for each sparse operand and intermediate, in
//! order.  Several layouts name their operands, as `X: i j k`; the first is cut into tasks.  A level is written as in
//! [`Format`]; `_` is the level of the numbers of blocks.  Operands are named by [`Expr::operand_names`], results of terms
//! `T1`, `T2`, ...

use std::fmt::Write;

use crate::einsum::Expr;
use crate::error::CoreError;
use crate::nest::Forest;
use crate::path::{Path, Source, Term};
use crate::schedule::format::parse_index;
use crate::schedule::{
    Branched, BufferKind, Chunks, Command, Conflict, Cut, Directive, Layout, Parallel, Prefetch,
    PrefetchOf, Schedule, Space, Split, TaskCut, Vectors, Workspace,
};

impl Schedule {
    /// Writes the schedule with the names of `expr`; [`Schedule::parse`] reads it back.
    pub fn text(&self, expr: &Expr) -> String {
        let mut text = String::new();
        let mut line = |key: &str, rest: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key:<8} {rest}");
        };
        let names = expr.operand_names();
        for split in &self.splits {
            let text = split.text(&names);
            let (key, rest) = text.split_once(' ').unwrap_or((&text, ""));
            line(key, rest.to_owned());
        }
        let source = |source: &Source| match *source {
            Source::Input(input) => names[input].clone(),
            Source::Term(term) => format!("T{}", term + 1),
        };
        let product = |term: &Term| term.inputs.iter().map(source).collect::<Vec<_>>().join("*");
        let terms: Vec<String> = self.path.terms.iter().map(product).collect();
        line("path", terms.join(" "));
        line("nest", self.nest.to_string());
        for layout in &self.layouts {
            let name = layout.input.map(|input| format!("{}:", names[input]));
            let words = name.into_iter().chain([layout.format.to_string()]);
            line("layout", words.collect::<Vec<_>>().join(" "));
        }
        for buffer in &self.buffers {
            line("buffer", buffer_text(*buffer).to_owned());
        }
        if let Some(workspace) = self.workspace {
            line("workspace", workspace_text(workspace).to_owned());
        }
        if let Some(parallel) = self.parallel {
            let (space, conflict) = (space_text(parallel.space), conflict_text(parallel.conflict));
            let tasks = parallel.tasks.map(|cut| format!(" {} {}", cut.command, cut.factor));
            let tasks = tasks.unwrap_or_default();
            line("parallel", format!("{} {space} {conflict}{tasks}", parallel.index));
        }
        match self.vectors {
            Vectors::All => {}
            Vectors::None => line("vectorize", "none".into()),
            Vectors::Over(index) => line("vectorize", index.to_string()),
        }
        for prefetch in &self.prefetches {
            let name = match prefetch.of {
                PrefetchOf::Input(input) => &names[input],
                PrefetchOf::Output => &expr.output.tensor,
            };
            line("prefetch", format!("{name} {}", prefetch.distance));
        }
        text
    }

    /// Reads a schedule for `expr` from its text; lines that are blank or begin with `#` are
    /// skipped.
    ///
    /// # Errors
    ///
    /// [`CoreError::ScheduleText`] with the line and what is wrong with it.
    pub fn parse(text: &str, expr: &Expr) -> Result<Schedule, CoreError> {
        let mut schedule = Schedule {
            splits: Vec::new(),
            path: Path { terms: Vec::new() },
            nest: Forest::default(),
            layouts: Vec::new(),
            buffers: Vec::new(),
            workspace: None,
            parallel: None,
            vectors: Vectors::All,
            prefetches: Vec::new(),
        };
        // Branches keep their sides from one directive to the next.
        let mut branched = None;
        // The lines below a split name both parts of its index.
        let mut expr = expr.clone();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let decided = match key {
                "loopfuse" | "reorder" => restructure(&mut schedule, &mut branched, line, &expr),
                "split" | "divide" => cut(&mut schedule, line, &mut expr),
                _ => decide(&mut schedule, key, rest.trim(), &expr),
            };
            decided.map_err(|why| CoreError::ScheduleText {
                line: number + 1,
                text: line.to_owned(),
                why,
            })?;
        }
        Ok(schedule)
    }
}

/// Adds the split of a line, whose parts the expression has from then on.
fn cut(schedule: &mut Schedule, line: &str, expr: &mut Expr) -> Result<(), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let usage = "write: split|divide INDEX OUTER NUMBER [of OPERAND [strided]]";
    let [key, index, outer, factor, what @ ..] = words.as_slice() else {
        return Err(usage.into());
    };
    let positions = |name: &str, chunks| {
        let input = expr.operand_names().iter().position(|operand| operand == name);
        let input = input.ok_or_else(|| format!("there is no operand `{name}`"))?;
        Ok::<Cut, String>(Cut::Positions { input, chunks })
    };
    let cut = match what {
        [] => Cut::Coordinates,
        ["of", name] => positions(name, Chunks::Contiguous)?,
        ["of", name, "strided"] => positions(name, Chunks::Strided)?,
        _ => return Err(usage.into()),
    };
    if !schedule.path.terms.is_empty() {
        return Err("the path above it names whole indices; splits come first".into());
    }
    let command = if *key == "split" { Command::Split } else { Command::Divide };
    let factor = factor.parse().map_err(|_| format!("`{factor}` is no number"))?;
    let (index, outer) = (parse_index(index)?, parse_index(outer)?);
    let split = Split { index, outer, command, factor, cut };
    *expr = split.cut_all(expr);
    schedule.splits.push(split);
    Ok(())
}

/// Applies the directive of a line to the nest of the lines above.
fn restructure(
    schedule: &mut Schedule,
    branched: &mut Option<Branched>,
    line: &str,
    expr: &Expr,
) -> Result<(), String> {
    let directive: Directive = line.parse()?;
    let mut branches = match branched.take() {
        Some(branches) => branches,
        None if schedule.path.terms.is_empty() => return Err("there is no path above it".into()),
        None => Branched::of(expr, &schedule.path, &schedule.nest)
            .ok_or("the nest above it has no branches of a producer and its consumer")?,
    };
    branches.apply(&directive)?;
    (schedule.path, schedule.nest) = branches.nest();
    *branched = Some(branches);
    Ok(())
}

fn decide(schedule: &mut Schedule, key: &str, rest: &str, expr: &Expr) -> Result<(), String> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    match (key, words.as_slice()) {
        ("path", terms) => schedule.path = parse_path(terms, expr)?,
        ("nest", _) => schedule.nest = rest.parse().map_err(|e: CoreError| e.to_string())?,
        ("layout", words) => schedule.layouts.push(parse_layout(words, expr)?),
        ("buffer", ["dense"]) => schedule.buffers.push(BufferKind::Dense),
        ("buffer", ["sparse"]) => schedule.buffers.push(BufferKind::Sparse),
        ("workspace", _) if schedule.workspace.is_some() => return Err(twice(key)),
        ("workspace", ["dense"]) => schedule.workspace = Some(Workspace::Dense),
        ("workspace", ["hashed"]) => schedule.workspace = Some(Workspace::Hashed),
        ("workspace", ["list"]) => schedule.workspace = Some(Workspace::List),
        ("vectorize", _) if schedule.vectors != Vectors::All => return Err(twice(key)),
        ("parallel", _) if schedule.parallel.is_some() => return Err(twice(key)),
        ("vectorize", ["none"]) => schedule.vectors = Vectors::None,
        ("vectorize", [index]) => schedule.vectors = Vectors::Over(parse_index(index)?),
        ("parallel", [index, name, conflict, tasks @ ..]) => {
            let conflict = CONFLICTS.into_iter().find(|c| conflict_text(*c) == *conflict);
            let space = SPACES.into_iter().find(|s| space_text(*s) == *name);
            let (Some(space), Some(conflict)) = (space, conflict) else {
                return Err(parallel_usage());
            };
            let (index, tasks) = (parse_index(index)?, parse_tasks(tasks)?);
            schedule.parallel = Some(Parallel { index, space, conflict, tasks });
        }
        ("prefetch", [name, distance]) => {
            let input = expr.operand_names().iter().position(|operand| operand == name);
            let output = (expr.output.tensor == *name).then_some(PrefetchOf::Output);
            let of = input.map(PrefetchOf::Input).or(output);
            let of = of.ok_or_else(|| format!("there is no operand `{name}`"))?;
            let distance = distance.parse().map_err(|_| format!("`{distance}` is no distance"))?;
            schedule.prefetches.push(Prefetch { of, distance });
        }
        ("parallel", _) => return Err(parallel_usage()),
        ("workspace", _) => return Err("write: workspace dense|hashed|list".into()),
        _ => return Err(format!("`{key}` is not a decision that is written like this")),
    }
    Ok(())
}

fn twice(key: &str) -> String {
    format!("there is a line `{key}` above it")
}

fn parallel_usage() -> String {
    let conflicts = CONFLICTS.map(conflict_text).join("|");
    let spaces = SPACES.map(space_text).join("|");
    format!("write: parallel INDEX {spaces} {conflicts} [split|divide NUMBER]")
}

fn parse_tasks(words: &[&str]) -> Result<Option<TaskCut>, String> {
    let (command, factor) = match words {
        [] => return Ok(None),
        ["split", size] => (Command::Split, size),
        ["divide", number] => (Command::Divide, number),
        _ => return Err("tasks are cut by split SIZE or divide NUMBER".into()),
    };
    let factor = factor.parse().ok().filter(|&factor: &u64| factor > 0);
    let factor = factor.ok_or("tasks have a size or a number from 1 on")?;
    Ok(Some(TaskCut { command, factor }))
}

fn parse_path(words: &[&str], expr: &Expr) -> Result<Path, String> {
    let names = expr.operand_names();
    let mut products: Vec<Vec<Source>> = Vec::new();
    for word in words {
        let source = |name: &str| {
            if let Some(input) = names.iter().position(|operand| operand == name) {
                return Ok(Source::Input(input));
            }
            let number = name.strip_prefix('T').and_then(|n| n.parse::<usize>().ok());
            let term = number.and_then(|n| n.checked_sub(1)).filter(|&t| t < words.len());
            term.map(Source::Term).ok_or_else(|| format!("there is no operand `{name}`"))
        };
        products.push(word.split('*').map(source).collect::<Result<_, _>>()?);
    }
    Ok(Path::of_products(&products, expr))
}

fn parse_layout(words: &[&str], expr: &Expr) -> Result<Layout, String> {
    let named = words.split_first().and_then(|(word, rest)| Some((word.strip_suffix(':')?, rest)));
    let input = |name: &str| {
        let found = expr.operand_names().iter().position(|operand| operand == name);
        found.ok_or_else(|| format!("there is no operand `{name}`"))
    };
    let (input, levels) = match named {
        Some((name, rest)) => (Some(input(name)?), rest),
        None => (None, words),
    };
    Ok(Layout { input, format: levels.join(" ").parse()? })
}

fn buffer_text(kind: BufferKind) -> &'static str {
    match kind {
        BufferKind::Dense => "dense",
        BufferKind::Sparse => "sparse",
    }
}

fn workspace_text(workspace: Workspace) -> &'static str {
    match workspace {
        Workspace::Dense => "dense",
        Workspace::Hashed => "hashed",
        Workspace::List => "list",
    }
}

fn space_text(space: Space) -> &'static str {
    match space {
        Space::Coordinate => "coordinate",
        Space::Position => "position",
    }
}

const SPACES: [Space; 2] = [Space::Position, Space::Coordinate];

const CONFLICTS: [Conflict; 5] = [
    Conflict::Owner,
    Conflict::Boundary,
    Conflict::Privatise,
    Conflict::Positions,
    Conflict::Assemble,
];

fn conflict_text(conflict: Conflict) -> &'static str {
    match conflict {
        Conflict::Owner => "owner",
        Conflict::Boundary => "boundary",
        Conflict::Privatise => "privatise",
        Conflict::Positions => "positions",
        Conflict::Assemble => "assemble",
    }
}
