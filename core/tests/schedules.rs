//! Legality: one schedule that keeps all rules, and for every rule one that breaks it.

use decompose_core::einsum::{Expr, Extents, Index, IndexSet, indices};
use decompose_core::error::CoreError;
use decompose_core::kernels;
use decompose_core::schedule::{Format, Pattern, Problem, Rule, Schedule, SparseOperand, Split};
use decompose_core::sweep::TreeLayout;
use decompose_formats::Blocking;

const LEGAL: &str = "
    path X*A3 T1*A2
    nest i{ j{ k{ r{ T1 } } r{ T2 } } }
    layout i j k
    buffer dense
    parallel i position boundary
    prefetch A3 16
";

fn problem() -> Problem {
    let expr = kernels::mttkrp(3, 0);
    let extents: Extents = expr.all().iter().map(|index| (index, 10)).collect();
    let levels = indices("ijk");
    let pattern = Pattern::from_iter([(levels.iter().copied().collect::<IndexSet>(), 100)]);
    Problem::new(expr, extents, SparseOperand { input: 0, format: Format::csf(levels), pattern })
}

fn broken_rule(text: &str, problem: &Problem) -> Option<Rule> {
    let schedule = Schedule::parse(text, &problem.expr).expect("a schedule");
    match schedule.verify(problem) {
        Err(CoreError::Illegal { rule, .. }) => Some(rule),
        Err(error) => panic!("{error}"),
        Ok(()) => None,
    }
}

#[test]
fn every_rule_refuses_what_breaks_it() {
    let problem = problem();
    assert_eq!(broken_rule(LEGAL, &problem), None);
    let cases = [
        ("X*A3 T1*A2", "X*A3 T1*A3", Rule::Path),
        ("X*A3 T1*A2", "X*A3 A2*T2", Rule::Path),
        ("i{ j{ k{ r{ T1 } } r{ T2 } } }", "i{ j{ r{ T2 } k{ r{ T1 } } } }", Rule::Nest),
        ("i{ j{ k{ r{ T1 } } r{ T2 } } }", "i{ j{ k{ r{ T1 } } T2 } }", Rule::Loops),
        ("layout i j k", "layout i j", Rule::Layout),
        ("i{ j{ k{ r{ T1 } } r{ T2 } } }", "j{ i{ k{ r{ T1 } } r{ T2 } } }", Rule::LevelOrder),
        (
            "i{ j{ k{ r{ T1 } } r{ T2 } } }",
            "i{ j{ k{ r{ T1 } } } } i{ j{ r{ T2 } } }",
            Rule::BufferBound,
        ),
        ("parallel i", "parallel j", Rule::Parallel),
        ("prefetch A3", "prefetch X", Rule::Prefetch),
        ("prefetch A3", "prefetch A1", Rule::Prefetch),
        ("buffer dense", "buffer sparse", Rule::Lowered),
        ("layout i j k", "layout i j k:singleton", Rule::Layout),
        ("layout i j k", "layout i j:singleton k:singleton", Rule::Lowered),
        ("layout i j k", "layout i k j", Rule::Layout),
        ("prefetch A3 16", "vectorize s", Rule::Lowered),
    ];
    for (from, to, rule) in cases {
        assert!(LEGAL.contains(from), "{from}");
        let text = LEGAL.replace(from, to);
        assert_eq!(broken_rule(&text, &problem), Some(rule), "{text}");
    }
}

/// A chain whose intermediate is stored over `k`, of which the producer meets what `Y` has.
const CHAIN: &str = "
    path X*Y T1*C
    nest i{ j{ k{ T1 } } k{ l{ T2 } } }
    layout X: i j
    layout Y: j k
    buffer sparse
    parallel i position boundary
";

#[test]
fn a_sparse_buffer_stores_first_what_its_producer_meets() {
    let expr: Expr = "A(i,l) = X(i,j) * Y(j,k) * C(i,k,l)".parse().expect("an expression");
    let extents: Extents = expr.all().iter().map(|index| (index, 100_000)).collect();
    let operand = |input: usize, levels: &str| {
        let levels = indices(levels);
        let pattern = Pattern::from_iter([(levels.iter().copied().collect::<IndexSet>(), 100)]);
        SparseOperand { input, format: Format::csf(levels), pattern }
    };
    let problem = Problem::joining(expr, extents, vec![operand(0, "ij"), operand(1, "jk")]);
    assert_eq!(broken_rule(CHAIN, &problem), None);
    // A dense one is larger than allowed, and a sparse one has room for a workspace's cells.
    let dense = CHAIN.replace("sparse", "dense");
    assert_eq!(broken_rule(&dense, &problem), Some(Rule::BufferBound));
    let mut wide = problem.clone();
    wide.extents = wide.expr.all().iter().map(|index| (index, 5_000_000)).collect();
    assert_eq!(broken_rule(CHAIN, &wide), Some(Rule::BufferBound));
    // Here `k` is fused, so that one number is stored.
    let mut inner = problem.clone();
    inner.sparse[1] = operand(1, "kj");
    let lines = CHAIN.replace("i{ j{ k{ T1 } } k{ l{ T2 } } }", "i{ k{ j{ T1 } l{ T2 } } }");
    let lines = lines.replace("Y: j k", "Y: k j");
    assert_eq!(broken_rule(&lines, &inner), Some(Rule::Lowered));
    // Here the producer loops over every `l`.
    let lines = CHAIN.replace("X*Y T1*C", "Y*C X*T1");
    let lines =
        lines.replace("i{ j{ k{ T1 } } k{ l{ T2 } } }", "i{ l{ j{ k{ T1 } } } j{ l{ T2 } } }");
    let mut short = problem.clone();
    short.extents = short.expr.all().iter().map(|index| (index, 100)).collect();
    assert_eq!(broken_rule(&lines.replace("sparse", "dense"), &short), None);
    assert_eq!(broken_rule(&lines, &short), Some(Rule::Lowered));
}

#[test]
fn levels_are_of_kinds_that_their_place_allows() {
    let expr: Expr = "A(i,k) = X(i,j) * Y(j,k)".parse().expect("an expression");
    let operand = |input: usize, (levels, counts): (&str, &[(&str, u64)])| {
        let set = |letters: &str| indices(letters).into_iter().collect::<IndexSet>();
        let pattern = Pattern::from_iter(counts.iter().map(|&(letters, n)| (set(letters), n)));
        SparseOperand { input, format: Format::csf(indices(levels)), pattern }
    };
    let posed = |x: &[(&str, u64)], y: &[(&str, u64)], extent: u64| {
        let extents: Extents = expr.all().iter().map(|index| (index, extent)).collect();
        Problem::joining(expr.clone(), extents, vec![operand(0, ("ij", x)), operand(1, ("jk", y))])
    };
    let lines = "path X*Y\nnest i{ j{ k{ T1 } } }\nparallel i position boundary\nlayout ";
    let rule = |problem: &Problem, x: &str, y: &str| {
        broken_rule(&format!("{lines}X: {x}\nlayout Y: {y}"), problem)
    };
    let holes = posed(&[("i", 50), ("ij", 400)], &[("j", 40), ("jk", 300)], 100);
    let lowered = Some(Rule::Lowered);
    for kinds in ["j k", "j:dense k", "j:bitmap k:hashed", "j:hashed k:bitmap", "j:dense k:bitmap"]
    {
        assert_eq!(rule(&holes, "i j", kinds), None, "{kinds}");
    }
    // Places without a value at the end; singletons beside another operand; kinds of the leader.
    for kinds in ["j k:dense", "j:dense k:dense", "j k:singleton", "j:singleton k"] {
        assert!(rule(&holes, "i j", kinds).is_some(), "{kinds}");
    }
    for kinds in ["i:dense j", "i j:dense", "i:hashed j", "i j:bitmap"] {
        assert_eq!(rule(&holes, kinds, "j k"), lowered, "{kinds}");
    }
    // Full fibres below some rows: dense unless places above are empty.
    let full = posed(&[("i", 50), ("ij", 5_000)], &[("j", 40), ("jk", 4_000)], 100);
    assert_eq!(rule(&full, "i j:dense", "j k:dense"), None);
    assert_eq!(rule(&full, "i j", "j:dense k:dense"), lowered);
    assert_eq!(rule(&full, "i:dense j:dense", "j k"), lowered);
    let all = posed(&[("i", 100), ("ij", 10_000)], &[("j", 100), ("jk", 10_000)], 100);
    assert_eq!(rule(&all, "i j:dense", "j:dense k:dense"), None);
    // Nodes of a fibre are counted in 32 bits.
    let long = posed(&[("i", 50), ("ij", 400)], &[("j", 40), ("jk", 300)], (1 << 31) + 1);
    for kind in ["bitmap", "hashed"] {
        assert_eq!(rule(&long, "i j", &format!("j:{kind} k")), lowered);
    }
    // Rows that a dense level numbers follow each other.
    let text = "path X*C\nnest i{ j{ k{ T1 } } }\nlayout i j:dense\nprefetch C 10\n";
    let expr: Expr = "A(i,k) = X(i,j) * C(j,k)".parse().expect("an expression");
    let extents: Extents = expr.all().iter().map(|index| (index, 100)).collect();
    let x = operand(0, ("ij", &[("i", 50), ("ij", 5_000)]));
    let problem = Problem::new(expr, extents, x);
    assert_eq!(broken_rule(text, &problem), Some(Rule::Prefetch));
    assert_eq!(broken_rule(&text.replace(":dense", ""), &problem), None);
}

#[test]
fn pieces_are_those_of_the_problem_and_stand_above_their_level() {
    let whole = problem();
    let lines = LEGAL.replace("k{ r{ T1 } }", "K{ k{ r{ T1 } } }").replace("i j k", "i j K k");
    for line in ["split k K 2 of X", "divide k K 4 of X strided"] {
        let text = format!("{line}\n{lines}");
        let schedule = Schedule::parse(&text, &whole.expr).expect("a schedule");
        let cut = whole.split(&schedule.splits).expect("a cut");
        schedule.verify(&cut).expect("legal");
        assert_eq!(
            Schedule::parse(&schedule.text(&cut.expr), &whole.expr).expect("read"),
            schedule
        );
        // The problem is another one without the cut.
        assert_eq!(broken_rule(&text, &whole), Some(Rule::Loops));
        // Pieces are found directly above their level.
        let apart = text.replace("i j K k", "i K j k");
        let apart = Schedule::parse(&apart, &whole.expr).expect("a schedule");
        assert!(matches!(
            apart.verify(&cut),
            Err(CoreError::Illegal { rule: Rule::Layout | Rule::LevelOrder, .. })
        ));
    }
    // Pieces of coordinates are indices of every tensor.
    let text = format!("split r R 4\n{LEGAL}").replace("nest i{", "nest R{ i{");
    let text = text.replace("r{ T2 } } }", "r{ T2 } } } }");
    let schedule = Schedule::parse(&text, &whole.expr).expect("a schedule");
    let cut = whole.split(&schedule.splits).expect("a cut");
    schedule.verify(&cut).expect("legal");
    assert_eq!(cut.expr.to_string(), "A1(i,R,r) = X(i,j,k) * A2(j,R,r) * A3(k,R,r)");
    assert_eq!((cut.extents.of(indices("R")[0]), cut.extents.of(indices("r")[0])), (3, 4));
    assert!(whole.split(&[Split { factor: 6, ..schedule.splits[0] }]).is_ok());
    assert!(whole.split(&[Split { factor: 10, ..schedule.splits[0] }]).is_err());
}

#[test]
fn rows_are_owned_only_where_the_root_is_an_index_of_the_output() {
    let mut problem = problem();
    problem.expr = kernels::mttkrp(3, 1);
    let text = LEGAL.replace("T1*A2", "T1*A1");
    assert_eq!(broken_rule(&text, &problem), Some(Rule::Conflict));
    assert_eq!(broken_rule(&text.replace("boundary", "privatise"), &problem), None);
}

/// The MTTKRP of the second mode on a tree in two blocks.
fn in_blocks(blocking: &str, levels: &str, fused: usize) -> Problem {
    let mut problem = problem();
    problem.expr = kernels::mttkrp(3, 1);
    let x = problem.leader_mut().expect("a sparse operand");
    x.format = Format::with_fused(indices(levels), fused);
    let blocking: Blocking = blocking.parse().expect("a blocking");
    x.pattern.record_blocks(blocking.clone(), [(IndexSet::EMPTY, 2)]);
    x.pattern = x.pattern.in_blocks(&blocking).expect("recorded");
    problem.expr.inputs[0].indices.insert(0, Index::BLOCK);
    problem.extents.set(Index::BLOCK, 2);
    problem
}

#[test]
fn rows_are_owned_where_the_blocks_are_ranges_of_them() {
    const OWNED: &str = "
        path A1*A3 X*T1
        nest _{ i{ k{ r{ T1 } j{ r{ T2 } } } } }
        layout _ i k j
        buffer dense
        parallel _ position owner
    ";
    let in_blocks = |blocking: &str| in_blocks(blocking, "_ikj", 1);
    assert_eq!(broken_rule(OWNED, &in_blocks("2:2")), None);
    for others in ["1:2", "3:2", "0.1.0"] {
        assert_eq!(broken_rule(OWNED, &in_blocks(others)), Some(Rule::Conflict), "{others}");
    }
    // Outside of the loops over the tree every task would write all rows.
    let outside = "
        path X*A1 T1*A3
        nest r{ _{ i{ k{ j{ T1 } } } k{ j{ T2 } } } }
        layout _ i k j
        buffer dense
        parallel _ position owner
    ";
    let mut problem = in_blocks("2:2");
    problem.max_buffer_bytes = u64::MAX;
    assert_eq!(broken_rule(outside, &problem), Some(Rule::Conflict));
    assert_eq!(broken_rule(&outside.replace("owner", "privatise"), &problem), None);
}

#[test]
fn fused_levels_repeat_coordinates_for_nobody_else() {
    let mut problem = problem();
    problem.leader_mut().expect("a sparse operand").format = Format::with_fused(indices("ijk"), 2);
    (problem.max_buffer_dims, problem.max_buffer_bytes) = (3, u64::MAX);
    let legal = LEGAL.replace("layout i j k", "layout i j k:singleton");
    assert_eq!(broken_rule(&legal, &problem), None);
    // T2 would read a buffer at j once for every non-zero there.
    let twice = legal.replace("r{ T1 } } r{ T2 } }", "r{ T1 } } } j{ r{ T2 } }");
    assert_eq!(broken_rule(&twice, &problem), Some(Rule::LevelOrder));
    // T1 without X would be added up at j once for every non-zero there, and is kept beyond j.
    problem.expr = "O(i,r) = X(i,j,k)*A1(i,r)*A2(j,r)*A3(k,r)".parse().expect("an expression");
    let without = legal
        .replace("X*A3 T1*A2", "A1*A2 X*A3 T2*T1")
        .replace(
            "i{ j{ k{ r{ T1 } } r{ T2 } } }",
            "i{ j{ r{ T1 } k{ r{ T2 } } } } j{ i{ r{ T3 } } }",
        )
        .replace("buffer dense", "buffer dense\n    buffer dense");
    assert_eq!(broken_rule(&without, &problem), Some(Rule::LevelOrder));
    problem.leader_mut().expect("a sparse operand").format = Format::csf(indices("ijk"));
    let plain = without.replace(":singleton", "");
    assert_eq!(broken_rule(&plain, &problem), None);
}

#[test]
fn the_message_quotes_the_rule_and_the_place() {
    let problem = problem();
    let text = LEGAL.replace("parallel i", "parallel j");
    let schedule = Schedule::parse(&text, &problem.expr).expect("a schedule");
    let message = schedule.verify(&problem).expect_err("illegal").to_string();
    assert!(message.contains("rule 7") && message.contains("loop j"), "{message}");
}

#[test]
fn lines_that_are_no_decisions_are_quoted() {
    let expr: Expr = kernels::mttkrp(3, 0);
    for line in [
        "path X*Q",
        "tile r x",
        "parallel i here owner",
        "fly",
        "layout ij",
        "layout i j[0:4] k",
        "layout i:sparse j k",
        "nest i{",
    ] {
        let error = Schedule::parse(line, &expr).expect_err(line).to_string();
        assert!(error.contains("line 1") && error.contains(line), "{error}");
    }
}

#[test]
fn a_buffer_of_too_many_bytes_is_refused() {
    let mut problem = problem();
    problem.max_buffer_bytes = 8 * 9;
    assert_eq!(broken_rule(LEGAL, &problem), Some(Rule::BufferBound));
    problem.max_buffer_bytes = 8 * 10;
    assert_eq!(broken_rule(LEGAL, &problem), None);
}

#[test]
fn trees_are_written_as_they_are_read() {
    for text in ["1", "1-2", "2-1-3", "2-1+3", "4-1+2+3", "3-4-1+2"] {
        assert_eq!(text.parse::<TreeLayout>().expect(text).to_string(), text);
    }
    for text in ["", "1+2", "1-1-2", "0-1", "1-2+3-4", "1+2-3", "a-b", "1-2+"] {
        let error = text.parse::<TreeLayout>().expect_err(text);
        assert!(error.contains("2-1+3"), "{error}");
    }
}
