//! The loops on the page about formats and directives are those that lowering makes.

use decompose_core::contract::preview;
use decompose_core::einsum::{Expr, Extents, IndexSet};
use decompose_core::schedule::{Format, OutputForm, Pattern, Problem, Schedule, SparseOperand};

const PAGE: &str = include_str!("../docs/formats.md");

/// The schedule that the page changes.
const BASE: &str = "path X*C T1*B
nest i{ j{ k{ r{ T1 } } r{ T2 } } }
layout i j k
buffer dense
parallel i position boundary";

/// The schedule of the chain, of which the page shows some lines.
const CHAIN: &str = "layout X: i j
layout Y: j k
layout Z: k l
workspace dense
parallel i position assemble";

const LOCATED: &str = "path X*Y
nest i{ j{ k{ T1 } } }
parallel i position boundary";

/// Poses the product whose loops a block of the page shows, with the lines that the block changes.
fn posed(loops: &str) -> (Problem, &'static str) {
    let (expr, lines, sparse) = match loops {
        _ if loops.contains("T1(k) * Z(k,l)") => ("A(i,l) = X(i,j) * Y(j,k) * Z(k,l)", CHAIN, 3),
        _ if loops.contains("S(i)") => ("S(i) = X(i,j,k) * Y(j,k)", LOCATED, 2),
        _ => ("A(i,r) = X(i,j,k) * B(j,r) * C(k,r)", BASE, 1),
    };
    let expr: Expr = expr.parse().expect("an expression");
    let extent = |letter| match letter {
        'i' => 60,
        'j' => 50,
        'k' => 40,
        _ => 16,
    };
    let extents: Extents = expr.all().iter().map(|i| (i, extent(i.letter()))).collect();
    let operand = |input: usize| {
        let levels = expr.inputs[input].indices.clone();
        let all: IndexSet = levels.iter().copied().collect();
        SparseOperand {
            input,
            format: Format::csf(levels),
            pattern: Pattern::from_iter([(all, 600)]),
        }
    };
    let mut problem = Problem::joining(expr.clone(), extents, (0..sparse).map(operand).collect());
    if sparse == 3 {
        problem.output = OutputForm::Assembled;
    }
    (problem, lines)
}

/// Puts `changed` in the place of the lines of `base` that begin alike; cuts come first.
fn with_lines(base: &str, changed: &str) -> String {
    let key = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let kept = base.lines().filter(|line| !changed.lines().any(|new| key(new) == key(line)));
    let cut = |line: &&str| key(line) == "split";
    let (cuts, others): (Vec<&str>, Vec<&str>) = changed.lines().partition(cut);
    cuts.into_iter().chain(others).chain(kept).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_page_shows_the_loops_of_its_schedules() {
    let blocks: Vec<&str> = PAGE
        .split("```text\n")
        .skip(1)
        .map(|rest| rest.split("\n```").next().unwrap_or_default())
        .collect();
    let mut shown = 0;
    for pair in blocks.windows(2) {
        let [lines, loops] = *pair else { continue };
        if !loops.starts_with("for ") {
            continue;
        }
        let (mut problem, base) = posed(loops);
        // Cuts come before the path, which may be the one of the base.
        let text = with_lines(base, lines);
        let schedule = Schedule::parse(&text, &problem.expr)
            .unwrap_or_else(|error| panic!("{error} in\n{text}"));
        problem = problem.split(&schedule.splits).expect("a cut");
        for (x, layout) in problem.sparse.iter_mut().zip(&schedule.layouts) {
            x.format = layout.format.tree();
        }
        (problem.max_buffer_dims, problem.max_buffer_bytes) = (3, u64::MAX);
        let program = preview(&problem, &schedule)
            .unwrap_or_else(|error| panic!("{error} of\n{text}"))
            .to_string();
        let body: Vec<&str> =
            program.lines().skip_while(|line| !line.starts_with("for ")).collect();
        assert_eq!(loops, body.join("\n"), "loops of\n{text}");
        shown += 1;
    }
    assert_eq!(shown, 10, "blocks of loops");
}
