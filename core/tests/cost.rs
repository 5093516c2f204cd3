//! The cost model: families of processors, and what it must say about single kernels.

use decompose_core::autoschedule::finish;
use decompose_core::cost::{Family, Machine, estimate, storing_seconds};
use decompose_core::einsum::{Expr, Extents, Index, IndexSet, indices};
use decompose_core::kernels;
use decompose_core::schedule::{
    Format, LevelKind, Pattern, Prefetch, PrefetchOf, Problem, Schedule, SparseOperand, StoredTree,
    Storing,
};
use decompose_formats::Blocking;

/// A kernel on a tensor of order 3 with these extents and these counts of `nnz(X_S)`.
fn problem(name: &str, extents: [u64; 3], counts: &[(&str, u64)], rank: u64) -> Problem {
    let expr = kernels::parse(name).expect("a kernel");
    let levels = indices("ijk");
    let extent =
        |index: Index| levels.iter().position(|&l| l == index).map_or(rank, |m| extents[m]);
    let all: Extents = expr.all().iter().map(|index| (index, extent(index))).collect();
    let set = |letters: &str| indices(letters).into_iter().collect::<IndexSet>();
    let pattern = Pattern::from_iter(counts.iter().map(|&(letters, n)| (set(letters), n)));
    Problem::new(expr, all, SparseOperand { input: 0, format: Format::csf(levels), pattern })
}

fn schedule(problem: &Problem, text: &str, machine: &Machine) -> Schedule {
    let read = Schedule::parse(text, &problem.expr).expect("a schedule");
    let schedule = finish(problem, read.path, read.nest, machine);
    schedule.verify(problem).expect("a legal schedule");
    schedule
}

const TTTP: &str = "path A1*A2 T1*A3 X*T2\nnest i{ j{ r{ T1 } k{ r{ T2 } T3 } } }";

const EVERY_FAMILY: [Family; 3] = [Family::Zen, Family::Xeon, Family::Neutral];

#[test]
fn the_vendor_tells_the_family_and_an_unknown_one_is_served() {
    assert_eq!(Family::of_vendor("GenuineIntel"), Family::Xeon);
    for vendor in ["AuthenticAMD", "HygonGenuine"] {
        assert_eq!(Family::of_vendor(vendor), Family::Zen, "{vendor}");
    }
    for vendor in ["", "no such vendor"] {
        assert_eq!(Family::of_vendor(vendor), Family::Neutral, "{vendor}");
    }
}

#[test]
fn this_machine_is_described_the_same_every_time() {
    let here = Machine::here();
    assert_eq!(here, Machine::here());
    assert!(here.l1_bytes <= here.l2_bytes && here.l2_bytes <= here.l3_bytes, "{here:?}");
    let families = EVERY_FAMILY.map(Family::machine);
    assert!(families.iter().any(|family| family.l3_line == here.l3_line), "{here:?}");
}

#[test]
fn farther_is_slower_in_every_family() {
    for machine in EVERY_FAMILY.map(Family::machine) {
        let lines = [machine.l1_line, machine.l2_line, machine.l3_line, machine.memory_line];
        assert!(lines.is_sorted(), "{machine:?}");
        assert!(machine.l3_wait <= machine.memory_wait, "{machine:?}");
        assert!(machine.l2_share <= 1.0 && machine.l3_share <= 1.0, "{machine:?}");
    }
}

#[test]
fn rows_that_come_late_are_prefetched_earlier() {
    let counts = [("i", 1000), ("ij", 1_000_000), ("k", 200_000), ("ijk", 4_000_000)];
    let distance = |machine: &Machine, rank: u64| {
        let problem = problem("tttp:3", [1000, 1000, 200_000], &counts, rank);
        let schedule = schedule(&problem, TTTP, machine);
        let of_rows = |p: &&Prefetch| p.of == PrefetchOf::Input(3);
        schedule.prefetches.iter().find(of_rows).map(|prefetch| prefetch.distance)
    };
    let slow = Family::Xeon.machine();
    let quick = Machine { quick_bytes: None, ..slow.clone() };
    // A row of one line is left to the processor unless it comes late.
    assert_eq!(distance(&quick, 8), None);
    assert_eq!(distance(&slow, 8), Some(128));
    assert_eq!(distance(&quick, 16), Some(10));
    assert_eq!(distance(&slow, 16), Some(64));
    assert_eq!(distance(&slow, 64), Some(16));
    assert_eq!(distance(&Family::Zen.machine(), 16), Some(128));
}

#[test]
fn every_row_that_a_node_names_is_found_anew() {
    let counts = [("i", 1000), ("ij", 100_000), ("k", 2000), ("ijk", 1_000_000)];
    let problem = problem("mttkrp:3:1", [1000, 1000, 2000], &counts, 16);
    let text = "path X*A3 T1*A2\nnest i{ j{ k{ r{ T1 } } r{ T2 } } }";
    let free = Machine { find_row: 0.0, ..Family::Xeon.machine() };
    let machine = Machine { find_row: 1e-9, ..free.clone() };
    let schedule = schedule(&problem, text, &machine);
    let seconds = |machine| estimate(&problem, &schedule, machine).seconds;
    // A row of A3 for each non-zero, one of A2 for each fibre, one of the output for each slice.
    let rows = 1_000_000.0 + 100_000.0 + 1000.0;
    let more = seconds(&machine) - seconds(&free);
    assert!((more - rows * 1e-9).abs() < 1e-12, "{more}");
}

#[test]
fn tables_that_the_same_loops_gather_from_share_the_second_level() {
    let together = Family::Xeon.machine();
    let apart = Machine { l2_together: None, ..together.clone() };
    let more = |others: u64| {
        let counts =
            [("i", 5000), ("ij", 3_000_000), ("j", others), ("k", 5000), ("ijk", 4_000_000)];
        let problem = problem("mttkrp:3:1", [5000, others, 5000], &counts, 32);
        let text = "path X*A3 T1*A2\nnest i{ j{ k{ r{ T1 } } r{ T2 } } }";
        let schedule = schedule(&problem, text, &together);
        let seconds = |machine| estimate(&problem, &schedule, machine).seconds;
        seconds(&together) / seconds(&apart)
    };
    // Of 2 MB a table of 1.28 MB has all that it needs beside one of 26 kB, and a half beside another of 1.28 MB.
    assert!((more(100) - 1.0).abs() < 1e-9, "{}", more(100));
    assert!(more(5000) > 1.1, "{}", more(5000));
}

#[test]
fn a_line_that_is_added_to_goes_back_sooner_than_it_came_from_afar() {
    let zen = Family::Zen.machine();
    let more = |rows: u64| {
        let counts = [("i", 5000), ("ij", 400_000), ("ijk", 4_000_000), ("j", 5000), ("k", rows)];
        let problem = problem("mttkrp:3:3", [5000, 5000, rows], &counts, 32);
        let text = "path X*A1*A2\nnest i{ j{ k{ r{ T1 } } } }";
        let schedule = schedule(&problem, text, &zen);
        let seconds = |write_back_line| {
            estimate(&problem, &schedule, &Machine { write_back_line, ..zen.clone() }).seconds
        };
        seconds(None) / seconds(zen.write_back_line)
    };
    // Tables of 0.26 MB, in the second level, and of 6.4 MB.
    assert!((more(1000) - 1.0).abs() < 1e-9, "{}", more(1000));
    assert!(more(25_000) > 1.1, "{}", more(25_000));
    assert_eq!(Family::Xeon.machine().write_back_line, None);
}

#[test]
fn values_of_a_buffer_that_are_broadcast_cost() {
    let counts = [("i", 1000), ("ij", 100_000), ("j", 1000), ("k", 2000), ("ijk", 1_000_000)];
    let problem = problem("ttmc:3:1", [1000, 1000, 2000], &counts, 8);
    let free = Machine { l1_line: 0.0, ..Family::Zen.machine() };
    let machine = Machine { l1_line: 1e-9, ..free.clone() };
    let loads = |loops: &str| {
        let text = format!("path X*U3 T1*U2\nnest i{{ j{{ k{{ t{{ T1 }} }} {loops} }} }}");
        let schedule = schedule(&problem, &text, &machine);
        estimate(&problem, &schedule, &machine).seconds
            - estimate(&problem, &schedule, &free).seconds
    };
    // T1 in the lanes, and T1 whose eight values are broadcast to others in every fibre.
    let more = loads("t{ s{ T2 } }") - loads("s{ t{ T2 } }");
    assert!((more - 0.125 * 8.0 * 100_000.0 * 1e-9).abs() < 1e-12, "{more}");
}

#[test]
fn a_block_that_is_added_to_costs_again_unless_it_is_small() {
    let counts = [("i", 1000), ("ij", 100_000), ("j", 1000), ("k", 2000), ("ijk", 1_000_000)];
    let free = Machine { l1_line: 0.0, ..Family::Zen.machine() };
    let machine = Machine { l1_line: 1e-9, ..free.clone() };
    // What the lines of Y take again whose rows, `columns` by eight, every fibre adds to.
    let again = |columns: u64, loops: &str| {
        let mut problem = problem("ttmc:3:1", [1000, 1000, 2000], &counts, 8);
        problem.extents.set(indices("s")[0], columns);
        let text = format!("path X*U3 T1*U2\nnest i{{ j{{ k{{ t{{ T1 }} }} {loops} }} }}");
        let schedule = schedule(&problem, &text, &machine);
        let seconds = |machine| estimate(&problem, &schedule, machine).seconds;
        (seconds(&machine) - seconds(&free)) / 1e-9
    };
    let more = |loops: &str, few, many| again(many, loops) - again(few, loops);
    let fibres = 100_000.0 - 1000.0;
    // Four fibres together add to 8, 16 and 32 rows of a line.
    assert!(more("s{ t{ T2 } }", 8, 16) < 4.0 * fibres);
    assert!(more("s{ t{ T2 } }", 16, 32) > 0.999 * 0.5 * 32.0 * fibres);
    // Each by itself adds to eight rows, of one line and of two.
    assert!(more("t{ s{ T2 } }", 8, 16) > 0.999 * 2.0 * 16.0 * fibres);
}

#[test]
fn what_is_walked_again_costs_less_while_it_is_near() {
    let zen = Family::Zen.machine();
    let more = |problem: &Problem, text: &str, of: fn(f64, Machine) -> Machine| {
        let schedule = schedule(problem, text, &zen);
        let seconds = |each| estimate(problem, &schedule, &of(each, zen.clone())).seconds;
        (seconds(1e-9) - seconds(0.0)) / 1e-9
    };
    let loops = |each, machine| Machine { loop_overhead: each, ..machine };
    let sums = |each, machine| Machine { scalar_pair: each, ..machine };
    let close =
        |found: f64, want: f64| assert!((found / want - 1.0).abs() < 1e-6, "{found} {want}");

    // Each of eight columns walks 12 KB or 1.2 MB below a root again.
    let rows = |roots| {
        let counts = [("i", roots), ("ij", 100_000), ("j", 1000), ("k", 2000), ("ijk", 1_000_000)];
        problem("ttmc:3:1", [1000, 1000, 2000], &counts, 8)
    };
    let text = "path X*U3 T1*U2\nnest i{ t{ j{ k{ T1 } s{ T2 } } } }";
    close(more(&rows(1000), text, loops), 101_000.0 + 0.1 * 7.0 * 101_000.0);
    close(more(&rows(10), text, loops), 8.0 * 100_010.0);
    // Sums of ten products overlap but for the first time; where rows have one index, none is known to.
    close(more(&rows(1000), text, sums), 1e6 + 7e6 * 10.0 / 32.0);
    let counts = [("i", 1000), ("ij", 100_000), ("j", 1000), ("k", 2000), ("ijk", 1_000_000)];
    let matrix = problem("mttkrp:3:1", [1000, 1000, 2000], &counts, 8);
    let text = "path X*A3 T1*A2\nnest i{ r{ j{ k{ T1 } T2 } } }";
    close(more(&matrix, text, sums), 8e6 + 8e5);
}

#[test]
fn rows_of_a_mode_that_changes_with_every_block_cost_more() {
    // Blocks of 16 by 4 or of 4 by 16 slices, with as many rows in either mode.
    let blocked = |bits: [u8; 3]| {
        let blocking = Blocking::new(bits.to_vec()).expect("bits");
        let every = ["i", "j", "k", "ij", "ik", "jk", "ijk"].map(|s| (s, 4_000_000));
        let mut problem = problem("mttkrp:3:1", [1 << 20; 3], &every, 32);
        let x = problem.leader_mut().expect("a sparse operand");
        let inside = |letters: &str| match letters {
            "" => 64,
            _ if letters.len() == 1 => 640_000,
            _ => 4_000_000,
        };
        let sets = ["", "i", "j", "k", "ij", "ik", "jk", "ijk"];
        let counts = sets.map(|s| (indices(s).into_iter().collect(), inside(s)));
        x.pattern.record_blocks(blocking.clone(), counts);
        x.pattern = x.pattern.in_blocks(&blocking).expect("recorded");
        let levels = [Index::BLOCK].into_iter().chain(x.levels().iter().copied()).collect();
        x.format = Format::with_fused(levels, 3);
        problem.extents.set(Index::BLOCK, blocking.extent());
        problem.expr.inputs[0].indices.insert(0, Index::BLOCK);
        let machine = Family::Xeon.machine();
        let text = "path X*A2*A3\nnest _{ i{ j{ k{ r{ T1 } } } } }";
        let schedule = schedule(&problem, text, &machine);
        estimate(&problem, &schedule, &machine).seconds
    };
    // The mode with the lowest bit of the numbers is the last of those with most bits.
    assert!(blocked([2, 2, 2]) > blocked([0, 0, 6]), "all of three modes change, or one");
}

#[test]
fn nothing_is_sought_in_a_dense_root() {
    let expr: Expr = "Z(i,k) = X(i,j) * W(j,k)".parse().expect("a product");
    let extents: Extents = expr.all().iter().map(|index| (index, 1_000)).collect();
    let operand = |input: usize, counts: &[(&str, u64)]| {
        let set = |letters: &str| indices(letters).into_iter().collect::<IndexSet>();
        let pattern = Pattern::from_iter(counts.iter().map(|&(letters, n)| (set(letters), n)));
        SparseOperand { input, format: Format::csf(expr.inputs[input].indices.clone()), pattern }
    };
    // The rows of W that have elements; the larger part of a branch is foreseen.
    for (rows, foreseen) in [(1_000_u32, 1.0), (900, 0.9), (250, 0.25)] {
        let x = operand(0, &[("i", 1_000), ("j", 1_000), ("ij", 100_000)]);
        let w = operand(1, &[("j", u64::from(rows)), ("jk", 5_000)]);
        let problem = Problem::joining(expr.clone(), extents.clone(), vec![x, w]);
        for machine in EVERY_FAMILY.map(Family::machine) {
            let dense = schedule(&problem, "path X*W\nnest i{ j{ k{ T1 } } }", &machine);
            assert_eq!(dense.layouts[1].format.kinds()[0], LevelKind::Dense);
            let mut sought = dense.clone();
            sought.layouts[1].format.set_kind(0, LevelKind::Compressed);
            let seconds = |one: &Schedule| estimate(&problem, one, &machine).seconds;
            let (more, visits) = (seconds(&sought) - seconds(&dense), 100_000.0);
            // A row of X looks up 100 coordinates: steps double and halve over the rows between two of them.
            let steps = 2.0 * (f64::from(rows) / 100.0).log2();
            let want = (foreseen + steps) * visits * machine.loop_end;
            assert!((more - want).abs() < 0.01 * want, "{rows} rows: {more} s, not {want} s");
        }
    }
    // Of fewer rows the places would be mostly empty; bits take less.
    let few = operand(1, &[("j", 249), ("jk", 5_000)]);
    let x = operand(0, &[("i", 1_000), ("j", 1_000), ("ij", 100_000)]);
    let problem = Problem::joining(expr.clone(), extents.clone(), vec![x, few]);
    let machine = Family::Xeon.machine();
    let one = schedule(&problem, "path X*W\nnest i{ j{ k{ T1 } } }", &machine);
    assert_eq!(one.layouts[1].format.kinds()[0], LevelKind::Bitmap);
}

/// Each fibre of X has one coordinate, which is looked up in a row of W.
#[test]
fn levels_have_bitmaps_or_tables_where_searches_are_long() {
    let expr: Expr = "Z(i) = X(i,j,k) * W(j,k)".parse().expect("a product");
    let kind = |k: u64, row: u64, fibres: u64, storing: Option<Storing>| {
        let extent = |letter| match letter {
            'i' => 1_000_000,
            'j' => 1_000,
            _ => k,
        };
        let extents: Extents = expr.all().iter().map(|i| (i, extent(i.letter()))).collect();
        let operand = |input: usize, counts: &[(&str, u64)]| {
            let set = |letters: &str| indices(letters).into_iter().collect::<IndexSet>();
            let pattern = Pattern::from_iter(counts.iter().map(|&(letters, n)| (set(letters), n)));
            SparseOperand {
                input,
                format: Format::csf(expr.inputs[input].indices.clone()),
                pattern,
            }
        };
        let x = operand(0, &[("i", fibres.min(1_000_000)), ("ij", fibres), ("ijk", fibres)]);
        let w = operand(1, &[("j", 1_000), ("jk", 1_000 * row)]);
        let problem = Problem::joining(expr.clone(), extents, vec![x, w]);
        let problem = Problem { storing, ..problem };
        let one = schedule(&problem, "path X*W\nnest i{ j{ k{ T1 } } }", &Family::Xeon.machine());
        one.layouts[1].format.kinds()[1]
    };
    assert_eq!(kind(20_000, 2_000, 2_000_000, None), LevelKind::Bitmap);
    // A row of bits would be mostly zeros.
    assert_eq!(kind(2_000_000_000, 2_000, 2_000_000, None), LevelKind::Hashed);
    // One run pays for what many lookups need, and not for few.
    let once = || Some(Storing::default());
    assert_eq!(kind(20_000, 2_000, 2_000_000, once()), LevelKind::Bitmap);
    assert_eq!(kind(20_000, 2_000, 2_000, once()), LevelKind::Compressed);
    // A row of one element is not searched.
    assert_eq!(kind(20_000, 1, 2_000_000, None), LevelKind::Compressed);
}

#[test]
fn trees_are_priced_where_they_are_built_for_one_run() {
    let machine = Family::Xeon.machine();
    let expr: Expr = "Z(i,k) = X(i,j) * X(k,j)".parse().expect("a product");
    let extents: Extents = expr.all().iter().map(|index| (index, 1_000)).collect();
    let problem = |layouts: [&str; 2], trees: Vec<StoredTree>| {
        let operand = |input: usize| {
            let levels = indices(layouts[input]);
            let set = |n: usize| levels[..n].iter().copied().collect::<IndexSet>();
            let pattern = Pattern::from_iter([(set(1), 1_000), (set(2), 50_000)]);
            SparseOperand { input, format: Format::csf(levels), pattern }
        };
        let posed = Problem::joining(expr.clone(), extents.clone(), vec![operand(0), operand(1)]);
        Problem { storing: Some(Storing { trees }), ..posed }
    };
    let of = |layouts, trees| storing_seconds(&problem(layouts, trees), &machine);
    let (list, sorted) = (of(["ij", "kj"], vec![]), of(["ji", "jk"], vec![]));
    assert!(
        0.0 < list && list < 0.2 * sorted,
        "{list} {sorted}: one tree, of a sorted list or not"
    );
    let both = of(["ij", "jk"], vec![]);
    assert!((both - list - sorted).abs() < 1e-12, "{both}: two trees");
    let tree = |input, levels| StoredTree { input, format: Format::csf(indices(levels)) };
    let there = of(["ij", "jk"], vec![tree(1, "jk")]);
    assert!((there - list).abs() < 1e-12, "{there}: the tree that is there costs nothing");
    let never = Problem { storing: None, ..problem(["ji", "jk"], vec![]) };
    assert!(storing_seconds(&never, &machine) == 0.0, "a kernel that runs often");
}
