//! The four cases of SparseAuto, section 3.1, where depth alone ranks schedules wrongly.
//!
//! `A(l,m,n) = B(i,j,k) * C(i,l) * D(j,m) * E(k,n)` with the schedules of figure 2: (a) unfactorised,
//! (b) with a vector over `k`, (d) with a matrix over `j` and `k`.  Source: Dias et al., "SparseAuto",
//! OOPSLA 2024.

use decompose_core::autoschedule::finish;
use decompose_core::cost::{Family, Machine, estimate};
use decompose_core::einsum::{Expr, Extents, IndexSet, indices};
use decompose_core::schedule::{Format, Pattern, Problem, Schedule, SparseOperand};

const EXPRESSION: &str = "A(l,m,n) = B(i,j,k) * C(i,l) * D(j,m) * E(k,n)";

/// Path and nests of a schedule; the paper measures several loop orders and reports the fastest.
struct Variant {
    name: char,
    path: &'static str,
    nests: &'static [&'static str],
}

const VARIANTS: [Variant; 3] = [
    Variant {
        name: 'a',
        path: "B*C*D*E",
        nests: &["l{ m{ i{ j{ k{ n{ T1 } } } } } }", "i{ j{ k{ l{ m{ n{ T1 } } } } } }"],
    },
    Variant {
        name: 'b',
        path: "B*C*D T1*E",
        nests: &[
            "l{ m{ i{ j{ k{ T1 } } } n{ k{ T2 } } } }",
            "l{ m{ i{ j{ k{ T1 } } } k{ n{ T2 } } } }",
            "m{ l{ i{ j{ k{ T1 } } } n{ k{ T2 } } } }",
            "m{ l{ i{ j{ k{ T1 } } } k{ n{ T2 } } } }",
        ],
    },
    Variant {
        name: 'd',
        path: "B*C T1*D T2*E",
        nests: &[
            "l{ i{ j{ k{ T1 } } } m{ k{ j{ T2 } n{ T3 } } } }",
            "l{ i{ j{ k{ T1 } } } k{ m{ j{ T2 } n{ T3 } } } }",
        ],
    },
];

/// Extents of `ijklmn`, density of `B`, and the schedules from the fastest to the slowest.
///
/// Two densities are misprinted, by a factor of ten: the ratios of iterations that are printed beside
/// them follow from these.
const CASES: [([u64; 6], f64, &str); 4] = [
    ([1800, 800, 1000, 64, 16, 32], 0.008, "dba"),
    ([1800, 1600, 2000, 64, 16, 32], 0.002, "bda"),
    ([1, 200, 4000, 256, 200, 196], 0.002, "abd"),
    ([265, 1207, 479, 251, 234, 42], 0.0033, "bda"),
];

/// The paper's machine: eight cores that share a last-level cache.
///
/// Times are those of all cores together, fitted to the six that the paper prints for its first two
/// cases; the orders of the other two follow.  (The times printed for case 4 would be more than a
/// hundred operations a cycle and are taken for their order only.)
fn machine() -> Machine {
    Machine {
        name: "eight cores, 24 MiB".into(),
        family: Family::Neutral,
        l1_bytes: 48 << 10,
        l2_bytes: 256 << 10,
        l3_bytes: 24 << 20,
        l2_share: 0.8,
        l3_share: 0.8,
        l2_together: None,
        quick_bytes: None,
        prefetched_bytes: 16_384.0,
        threads: 8,
        l1_line: 0.1e-9,
        buffer_line: 0.2e-9,
        l2_line: 0.2e-9,
        l3_line: 0.7e-9,
        memory_line: 3.0e-9,
        beyond_line: 3.0e-9,
        write_back_line: None,
        l3_wait: 0.0,
        memory_wait: 0.0,
        stream_line: 1.6e-9,
        flop_pair: 0.02e-9,
        scalar_pair: 0.1e-9,
        gathered_sum: None,
        lane_sum: 0.0,
        scatter_line: 10.0e-9,
        loop_overhead: 1.4e-9,
        loop_end: 0.0,
        find_row: 0.0,
        greedy: Family::Neutral.machine().greedy,
    }
}

fn problem(extents: [u64; 6], density: f64) -> Problem {
    let expr: Expr = EXPRESSION.parse().expect("an expression");
    let extents: Extents = indices("ijklmn").into_iter().zip(extents).collect();
    let levels = indices("ijk");
    let cells = |letters: &str| -> f64 {
        indices(letters).into_iter().map(|index| extents.of(index) as f64).product()
    };
    // Of uniform non-zeros: a tuple of coordinates occurs unless all cells below it are empty.
    let count = |letters: &str| {
        let below = cells("ijk") / cells(letters);
        let nodes = cells(letters) * (1.0 - (1.0 - density).powf(below));
        (indices(letters).into_iter().collect::<IndexSet>(), nodes.round() as u64)
    };
    let pattern: Pattern =
        ["i", "j", "k", "ij", "ik", "jk", "ijk"].into_iter().map(count).collect();
    let sparse = SparseOperand { input: 0, format: Format::csf(levels), pattern };
    let mut problem = Problem::new(expr, extents, sparse);
    problem.value_bytes = 4;
    problem.max_buffer_bytes = 1 << 30;
    problem
}

/// The least predicted seconds of the loop orders of a schedule.
fn seconds(problem: &Problem, variant: &Variant) -> f64 {
    let one = |nest: &&str| {
        let text = format!("path {}\nnest {nest}", variant.path);
        let schedule = Schedule::parse(&text, &problem.expr).expect("a schedule");
        let schedule = finish(problem, schedule.path, schedule.nest, &machine());
        schedule.verify(problem).expect("a legal schedule");
        estimate(problem, &schedule, &machine()).seconds
    };
    variant.nests.iter().map(one).fold(f64::INFINITY, f64::min)
}

#[test]
fn the_four_cases_of_sparseauto_are_ranked_as_measured() {
    for (number, (extents, density, wanted)) in CASES.into_iter().enumerate() {
        let problem = problem(extents, density);
        let mut ranked: Vec<(f64, char)> =
            VARIANTS.iter().map(|variant| (seconds(&problem, variant), variant.name)).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let order: String = ranked.iter().map(|(_, name)| name).collect();
        assert_eq!(order, wanted, "case {}: {ranked:?}", number + 1);
    }
}

#[test]
fn printed_times_are_met_within_a_factor_of_two() {
    // Cases 1 and 2, of the schedules (a), (b) and (d).
    for (case, printed) in [(0, [32.40, 6.26, 2.48]), (1, [33.51, 8.60, 10.20])] {
        let problem = problem(CASES[case].0, CASES[case].1);
        for (variant, printed) in VARIANTS.iter().zip(printed) {
            let ratio = seconds(&problem, variant) / printed;
            assert!((0.5..2.0).contains(&ratio), "case {}, {}: {ratio}", case + 1, variant.name);
        }
    }
}
