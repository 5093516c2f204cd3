//! Random schedules, as text.

use decompose_core::einsum::{Expr, Index};
use decompose_core::path::Path;
use decompose_core::schedule::{
    BufferKind, Chunks, Command, Cut, LevelKind, OutputForm, Problem, Schedule, Split, SplitIndex,
    free_letter,
};

use super::draw::Draw;

/// Cuts up to two indices, in half of the cases none.
pub(super) fn splits(expr: &Expr, extents: &[u64; Index::COUNT], draw: &mut Draw) -> Vec<Split> {
    let mut taken = expr.all();
    let mut splits = Vec::new();
    for index in draw.shuffled(expr.all().iter().collect::<Vec<_>>()) {
        let extent = extents[index.number()];
        if splits.len() < 2 && extent > 2 && draw.below(4) == 0 {
            let outer = free_letter(index, taken).expect("a letter");
            taken = taken.with(outer);
            let (command, factor) = match draw.below(2) {
                0 => (Command::Split, 2 + draw.below(extent - 2)),
                _ => (Command::Divide, 2 + draw.below(extent.div_ceil(2) - 1)),
            };
            let first = Split { index, outer, command, factor, cut: Cut::Coordinates };
            splits.push(first);
            // Now and then a part is cut again.
            let (inner, pieces) = (first.size(extent), first.pieces(extent));
            let part = [(index, inner), (outer, pieces)][draw.below(2) as usize];
            let even = part.0 == outer || part.1 % 2 == 0;
            if part.1 > 2 && even && draw.below(2) == 0 {
                let again = free_letter(part.0, taken).expect("a letter");
                taken = taken.with(again);
                splits.push(Split { index: part.0, outer: again, factor: 2, ..first });
            }
        }
    }
    splits
}

/// Cuts the positions of a level of the first tree, in half of the cases none.
pub(super) fn position_cuts(problem: &Problem, draw: &mut Draw) -> Vec<Split> {
    let x = problem.leader().expect("a sparse operand");
    if x.levels().len() < 2 || x.fused() > 1 || draw.below(2) == 0 {
        return Vec::new();
    }
    let index = x.levels()[1 + draw.below(x.levels().len() as u64 - 1) as usize];
    let outer = free_letter(index, problem.expr.all()).expect("a letter");
    let command = [Command::Split, Command::Divide][draw.below(2) as usize];
    let chunks = [Chunks::Contiguous, Chunks::Strided][draw.below(2) as usize];
    let cut = Cut::Positions { input: x.input, chunks };
    vec![Split { index, outer, command, factor: 2 + draw.below(3), cut }]
}

/// Stores each buffer sparsely in half of the cases where that is legal, and each level by a kind that is drawn.
pub(super) fn with_storage(mut schedule: Schedule, problem: &Problem, draw: &mut Draw) -> Schedule {
    for tree in 0..schedule.layouts.len() {
        for level in 0..schedule.layouts[tree].format.kinds().len() {
            let mut other = schedule.clone();
            let kind = LevelKind::ALL[draw.below(LevelKind::ALL.len() as u64) as usize];
            other.layouts[tree].format.set_kind(level, kind);
            if other.verify(problem).is_ok() {
                schedule = other;
            }
        }
    }
    for buffer in 0..schedule.buffers.len() {
        let mut other = schedule.clone();
        other.buffers[buffer] = BufferKind::Sparse;
        if draw.below(2) == 0 && other.verify(problem).is_ok() {
            schedule = other;
        }
    }
    schedule
}

/// Puts the lines of splits before those of a schedule.
pub(super) fn with_splits((expr, splits): (&Expr, &[Split]), lines: &str) -> String {
    let names = expr.operand_names();
    let line = |split: &Split| split.text(&names) + "\n";
    splits.iter().map(line).collect::<String>() + lines
}

/// Draws a schedule for the sparse operands of a problem, with the loops of `global` if given.
pub(super) fn joined_lines(problem: &Problem, global: Option<&[Index]>, draw: &mut Draw) -> String {
    let (expr, form) = (&problem.expr, problem.output);
    let levels: Vec<&[Index]> = problem.sparse.iter().map(|x| x.levels()).collect();
    let all: Option<Vec<Index>> = global.map(|all| {
        let cut = |&index: &Index| problem.splits.iter().find(|own| own.split.index == index);
        let pieces = |own: &SplitIndex| own.split.cuts_positions().then_some(own.split.outer);
        all.iter().flat_map(|i| cut(i).and_then(pieces).into_iter().chain([*i])).collect()
    });
    let global = all.as_deref();
    let words = path_words(expr, draw);
    let path = Schedule::parse(&format!("path {words}"), expr).expect("a path").path;
    let loops: Vec<Vec<Index>> = match global {
        Some(all) => path
            .terms
            .iter()
            .map(|term| all.iter().copied().filter(|&i| term.indices.contains(i)).collect())
            .collect(),
        None => loop_orders(&path, expr, levels[0], draw),
    };
    let loops: Vec<&[Index]> = loops.iter().map(Vec::as_slice).collect();
    let mut lines = format!("path {words}\nnest {}", nest_text(&loops, 0, draw));
    for (x, name) in problem.sparse.iter().zip(expr.operand_names()) {
        lines += &format!("\nlayout {name}: {}", x.format);
    }
    lines += &"\nbuffer dense".repeat(path.terms.len() - 1);
    let (first, output) = (levels[0], expr.output.set());
    let kept = first.iter().filter(|level| output.contains(**level)).count();
    let conflict = match (kept == first.len(), output.contains(first[0])) {
        _ if form == OutputForm::Assembled => "assemble",
        (true, _) => "positions",
        (_, false) => "privatise",
        (_, true) if kept > 1 => ["owner", "privatise"][draw.below(2) as usize],
        (_, true) => ["owner", "boundary", "privatise"][draw.below(3) as usize],
    };
    if form == OutputForm::Assembled {
        let kind = ["dense", "hashed", "list"][draw.below(3) as usize];
        lines += &format!("\nworkspace {kind}");
    }
    lines + &parallel_line(first[0], conflict, draw)
}

/// Draws a path, a nest and the way tasks share the output, as the text of a schedule.
pub(super) fn schedule_lines(problem: &Problem, draw: &mut Draw) -> String {
    let (expr, x) = (&problem.expr, problem.leader().expect("a sparse operand"));
    let levels = x.levels();
    let words = path_words(expr, draw);
    let path = Schedule::parse(&format!("path {words}"), expr).expect("a path").path;
    let orders = loop_orders(&path, expr, levels, draw);
    let orders: Vec<&[Index]> = orders.iter().map(Vec::as_slice).collect();
    let nest = nest_text(&orders, 0, draw);
    let layout = &x.format;
    let mut lines = format!("path {words}\nnest {nest}\nlayout {layout}");
    lines += &"\nbuffer dense".repeat(path.terms.len() - 1);
    let kept = levels.iter().filter(|level| expr.output.set().contains(**level)).count();
    let conflict = match (kept == levels.len(), expr.output.set().contains(levels[0])) {
        (true, _) => "positions",
        (_, false) => "privatise",
        (_, true) if kept > 1 => ["owner", "privatise"][draw.below(2) as usize],
        (_, true) => ["owner", "boundary", "privatise"][draw.below(3) as usize],
    };
    lines + &parallel_line(levels[0], conflict, draw)
}

/// Draws how the work is cut into tasks, and now and then which loops become vector code.
fn parallel_line(root: Index, conflict: &str, draw: &mut Draw) -> String {
    let space = ["position", "coordinate"][usize::from(draw.below(4) == 0)];
    let number = 1 + draw.below(5);
    let tasks = match (draw.below(4), conflict) {
        (0, "privatise") | (1, _) => format!(" divide {number}"),
        (0, _) => format!(" split {number}"),
        _ => String::new(),
    };
    let vectors = match draw.below(8) {
        0 => "vectorize none\n".to_owned(),
        1 => format!("vectorize {root}\n"),
        _ => String::new(),
    };
    format!("\nparallel {root} {space} {conflict}{tasks}\n{vectors}")
}

/// Multiplies random operands until one is left, two at a time or more.
fn path_words(expr: &Expr, draw: &mut Draw) -> String {
    let mut left = expr.operand_names();
    let mut words = Vec::new();
    loop {
        let most = left.len() as u64;
        let count = if most < 2 || draw.below(4) == 0 { 1 + draw.below(most) } else { 2 };
        left = draw.shuffled(left);
        let factors: Vec<String> = left.drain(..count as usize).collect();
        words.push(factors.join("*"));
        if left.is_empty() {
            return words.join(" ");
        }
        left.push(format!("T{}", words.len()));
    }
}

/// Draws the loops around each term: those of the sparse operand's reader, and of the writer of an
/// output with its pattern, follow the levels.
fn loop_orders(path: &Path, expr: &Expr, levels: &[Index], draw: &mut Draw) -> Vec<Vec<Index>> {
    let pattern = levels.iter().all(|&level| expr.output.set().contains(level));
    let last = path.terms.len() - 1;
    let mut orders = Vec::new();
    for (at, term) in path.terms.iter().enumerate() {
        let mut order = draw.shuffled(term.indices.iter().collect::<Vec<_>>());
        let reads = term.inputs.contains(&decompose_core::path::Source::Input(0));
        if reads || pattern && at == last || draw.below(2) == 0 {
            let mut sorted = levels.iter().filter(|level| term.indices.contains(**level));
            for index in order.iter_mut().filter(|index| levels.contains(index)) {
                *index = *sorted.next().expect("as many levels");
            }
        }
        orders.push(order);
    }
    orders
}

/// Writes a nest in which neighbours that begin with the same loop share it, or not.
fn nest_text(orders: &[&[Index]], first: usize, draw: &mut Draw) -> String {
    let mut text = String::new();
    let mut at = 0;
    while at < orders.len() {
        let Some(&index) = orders[at].first() else {
            text += &format!("T{} ", first + at + 1);
            at += 1;
            continue;
        };
        let mut shared = 1;
        while orders.get(at + shared).is_some_and(|o| o.first() == Some(&index))
            && draw.below(5) > 0
        {
            shared += 1;
        }
        let inner: Vec<&[Index]> = orders[at..at + shared].iter().map(|o| &o[1..]).collect();
        text += &format!("{index}{{ {}}} ", nest_text(&inner, first + at, draw));
        at += shared;
    }
    text
}
