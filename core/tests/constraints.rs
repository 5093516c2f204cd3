//! The constraint systems of sparse networks: those of the literature, and what `z3` says to random ones.

use std::ops::ControlFlow;

use decompose_core::autoschedule::constraints::{End, Layouts, System, explain};
use decompose_core::autoschedule::smt::{self, Answer, Smt};
use decompose_core::autoschedule::{SearchLimits, scheduler, storages};
use decompose_core::cost::Family;
use decompose_core::einsum::{Expr, IndexSet};
use decompose_core::path::{Arity, PathSpace, Wanted, enumerate};
use decompose_core::schedule::{Format, OutputForm, Pattern, Problem, SparseOperand};

/// Seconds for all questions of a test, of which they take a few.
const Z3_SECONDS: f64 = 600.0;

/// A problem whose first inputs are sparse, each with its levels as named, and with extents of 40.
fn pose(text: &str, sparse: usize) -> Problem {
    let expr: Expr = text.parse().expect(text);
    let extents = expr.all().iter().map(|index| (index, 40)).collect();
    let operands = expr.inputs.iter().take(sparse).enumerate().map(|(input, access)| {
        let all: IndexSet = access.set();
        let pattern = Pattern::from_iter([(all, 40_u64.pow(all.len() as u32) / 10)]);
        SparseOperand { input, format: Format::csf(access.indices.clone()), pattern }
    });
    Problem::joining(expr.clone(), extents, operands.collect())
}

/// The networks of table 2, with the number of their sparse operands.
const NETWORKS: [(&str, &str, usize); 5] = [
    ("3-index unrestricted", "F(K,i,m) = I(u,v,K) * C(v,i) * P(u,m)", 3),
    ("3-index restricted", "X(K,i,m) = I(u,v,K) * L(K,i) * C(v,i) * P(u,m)", 4),
    ("4-index", "R(i,m,j,n) = F(K,i,m) * D(K,M) * F(M,j,n)", 3),
    ("MTTKRP", "A(i,r) = T(i,j,k) * B(j,r) * C(k,r)", 1),
    ("TTMc", "A(i,y,z) = T(i,j,k) * B(j,y) * C(k,z)", 1),
];

#[test]
fn the_networks_of_the_literature_are_fused_to_vectors() {
    for (name, text, sparse) in NETWORKS {
        let problem = pose(text, sparse);
        let (paths, _) = enumerate(&problem.expr, Arity::Binary);
        let solved = paths.iter().any(|path| {
            let layouts = [Layouts::Shared, Layouts::Own];
            layouts.into_iter().any(|layouts| {
                let system = System::new(&problem, path, layouts, 1);
                let (solution, end) = system.solve(100_000);
                assert!(solution.is_some() || end == End::All, "{name}");
                solution.is_some_and(|found| system.check(&found) == Ok(()))
            })
        });
        assert!(solved, "{name}");
    }
}

#[test]
fn the_search_finds_fused_nests_of_the_networks() {
    let one = scheduler("const").expect("a scheduler");
    for (name, text, sparse) in NETWORKS {
        let mut problem = pose(text, sparse);
        if sparse > 1 && !problem.has_pattern_output() {
            problem.output = OutputForm::Assembled;
        }
        let limits = SearchLimits { max_work: 20_000, ..SearchLimits::default() };
        let found = one.search_any_storage(&problem, &Family::Zen.machine(), &limits);
        let found = found.expect("a schedule");
        let solved = found.report.solved.expect("a solution");
        assert!(solved.bound <= 1 && solved.gain >= 1.0 && solved.solutions > 10, "{name}");
        assert!(found.candidates.is_sorted_by(|a, b| a.seconds <= b.seconds), "{name}");
        for best in &found.candidates {
            let posed = best.problem(&problem);
            best.candidate.schedule.verify(&posed).expect("a legal schedule");
        }
        let best = &found.candidates[0];
        let posed = best.problem(&problem);
        let explained = explain(&posed, &best.candidate.schedule).expect("a solution");
        assert_eq!(explained.system.check(&explained.solution), Ok(()), "{name}");
        // Every operand is laid out as its loops run.
        for (input, order) in &best.storage.operands {
            let names = posed.expr.operand_names();
            let shared = &posed.expr.inputs[*input].tensor;
            let tensor = explained
                .system
                .tensors
                .iter()
                .position(|own| own.name == names[*input] || own.name == *shared);
            let layout = &explained.solution.layouts[tensor.expect("a tensor")];
            let modes = &posed.expr.inputs[*input].indices;
            let levels: Vec<_> = layout.iter().map(|&mode| modes[mode]).collect();
            assert_eq!(levels, order.levels(), "{name}");
        }
    }
}

#[test]
fn triangles_need_an_intermediate_of_two_indices() {
    let problem = pose("R = X(i,j) * X(j,k) * X(k,i)", 3);
    for path in &enumerate(&problem.expr, Arity::Binary).0 {
        let one = System::new(&problem, path, Layouts::Shared, 1);
        assert_eq!(one.solve(u64::MAX), (None, End::All), "{one}");
        let two = one.bounded(2);
        let (found, _) = two.solve(u64::MAX);
        assert_eq!(two.check(&found.expect("a solution")), Ok(()));
        let Some(smt) = solver("about triangles") else { continue };
        assert_eq!(smt.ask(&one.smt(), Z3_SECONDS).expect("an answer"), Answer::Unsat);
    }
}

#[test]
fn seven_tensors_over_twelve_indices_are_solved() {
    let text =
        "R(a,d,l) = A(a,b,c) * B(b,d,e) * C(c,e,f) * D(f,g,h) * E(g,i,j) * F(h,i,k) * G(j,k,l)";
    let problem = pose(text, 7);
    let space = PathSpace::new(&problem.expr, Arity::Binary).expect("a space");
    let listed = space.list(&Wanted {
        max_depth: usize::MAX,
        iterations: &|loops| 40_u64.saturating_pow(loops.len() as u32),
        links: &|_| true,
        flops_factor: Some(1.0),
        max_paths: 10,
    });
    for path in listed.paths {
        let system = System::new(&problem, &path, Layouts::Shared, 1);
        let least = (1..=system.largest()).find(|&bound| {
            let system = system.bounded(bound);
            let (found, end) = system.solve(100_000);
            assert_ne!(end, End::Cut);
            found.is_some_and(|one| system.check(&one) == Ok(()))
        });
        assert!(least.is_some(), "{system}");
    }
}

#[test]
fn given_layouts_are_kept_and_no_storage_beyond_those_allowed_is_chosen() {
    let one = scheduler("const").expect("a scheduler");
    let problem = pose("Z(i,l) = X(i,j) * Y(j,k) * W(k,l)", 3);
    let (machine, limits) = (Family::Zen.machine(), SearchLimits::default());
    let ways = storages(&problem);
    let found = one.search_storages(&problem, &ways[3..4], &machine, &limits).expect("a schedule");
    assert!(found.candidates.iter().all(|found| found.storage == ways[3]));
    // All 8 layouts of three matrices are known: the system chooses among them.
    let found = one.search_storages(&problem, &ways, &machine, &limits).expect("a schedule");
    assert!(found.report.solved.is_some());
    assert!(found.candidates.iter().all(|found| ways.contains(&found.storage)));
}

#[test]
fn an_operand_whose_pattern_the_result_has_is_referred_to_once() {
    let problem = pose("Z(i,j) = S(i,j) * A(i,k) * B(k,j)", 1);
    assert!(problem.has_pattern_output());
    for path in &enumerate(&problem.expr, Arity::Binary).0 {
        let system = System::new(&problem, path, Layouts::Shared, 1);
        let last = system.contractions.last().expect("a contraction");
        let names = last.references.iter().map(|one| system.tensors[one.tensor].name.as_str());
        assert_eq!(names.filter(|name| *name == "S").count(), 1, "{system}");
    }
}

/// A generator of numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// A random system of one to four contractions over up to six indices.
fn random_system(seed: u64) -> System {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let operands = 2 + draw.below(4);
    let mut all = Vec::new();
    let mut levels: Vec<Vec<char>> = Vec::new();
    for at in 0..operands {
        let mut letters: Vec<char> = "ijklmn".chars().collect();
        let order = 1 + draw.below(3);
        let mut draws = |letters: &mut Vec<char>| letters.remove(draw.below(letters.len()));
        let own: Vec<char> = (0..order).map(|_| draws(&mut letters)).collect();
        let mut rest = own.clone();
        levels.push((0..order).map(|_| draws(&mut rest)).collect());
        let name = ["A", "B", "C", "D", "E"][if draw.below(2) == 0 { 0 } else { at }];
        let list: Vec<String> = own.iter().map(char::to_string).collect();
        all.push(format!("{name}{order}({})", list.join(",")));
    }
    let kept = "ijklmn".chars().filter(|letter| levels.iter().flatten().any(|own| own == letter));
    let kept: Vec<String> =
        kept.filter(|_| draw.below(2) == 0).map(|letter| letter.to_string()).collect();
    let mut problem = pose(&format!("R({}) = {}", kept.join(","), all.join(" * ")), operands);
    for (x, levels) in problem.sparse.iter_mut().zip(&levels) {
        let levels = decompose_core::einsum::indices(&levels.iter().collect::<String>());
        x.format = Format::csf(levels);
    }
    let (paths, _) = enumerate(&problem.expr, Arity::Binary);
    let layouts = [Layouts::Given, Layouts::Shared, Layouts::Shared, Layouts::Own][draw.below(4)];
    System::new(&problem, &paths[draw.below(paths.len())], layouts, draw.below(3))
}

/// Returns the solver that is another program; says that `what` is skipped where there is none.
fn solver(what: &str) -> Option<Smt> {
    let found = smt::solver();
    if found.is_none() {
        eprintln!("skipped: no z3, which would be asked {what}");
    }
    found
}

#[test]
fn z3_agrees_on_random_systems() {
    let cases = std::env::var("DECOMPOSE_CASES").map_or(2_000, |n| n.parse().expect("a number"));
    let systems: Vec<System> = (0..cases).map(random_system).collect();
    let mut satisfiable = 0;
    let found: Vec<bool> = systems
        .iter()
        .map(|system| {
            let (solution, end) = system.solve(1_000_000);
            assert_ne!(end, End::Cut, "{system}");
            let found = solution.map(|one| assert_eq!(system.check(&one), Ok(()), "{system}"));
            satisfiable += usize::from(found.is_some());
            found.is_some()
        })
        .collect();
    assert!(
        satisfiable > systems.len() / 4 && satisfiable < systems.len() * 9 / 10,
        "{satisfiable}"
    );
    let Some(smt) = solver("about random systems") else { return };
    let scripts: Vec<String> = systems.iter().map(System::smt).collect();
    let answers = smt.ask_all(&scripts, Z3_SECONDS).expect("answers");
    for ((system, ours), theirs) in systems.iter().zip(found).zip(answers) {
        match theirs {
            Answer::Sat(model) => {
                assert!(ours, "{system}");
                system.solution_of(&model).unwrap_or_else(|why| panic!("{why}: {system}"));
            }
            Answer::Unsat => assert!(!ours, "{system}"),
            Answer::Unknown => panic!("no answer to {system}"),
        }
    }
}

#[test]
fn z3_finds_schedules_with_the_least_bound() {
    if solver("for schedules").is_none() {
        return;
    }
    let [own, asking] = ["const", "const-z3"].map(|name| scheduler(name).expect("a scheduler"));
    for (name, text, sparse) in NETWORKS {
        let mut problem = pose(text, sparse);
        if sparse > 1 && !problem.has_pattern_output() {
            problem.output = OutputForm::Assembled;
        }
        let limits =
            SearchLimits { max_work: 5_000, solver_seconds: Z3_SECONDS, ..SearchLimits::default() };
        let [ours, theirs] = [own, asking].map(|one| {
            let found = one.search_any_storage(&problem, &Family::Zen.machine(), &limits);
            found.unwrap_or_else(|why| panic!("{name}: {why}"))
        });
        for found in &theirs.candidates {
            let posed = found.problem(&problem);
            found.candidate.schedule.verify(&posed).expect("a legal schedule");
        }
        assert_eq!(theirs.report.scheduler, "const-z3");
        assert_eq!(theirs.report.solved.expect("a solution").bound, 1, "{name}");
        // All solutions of the same systems have none that is worse.
        assert!(ours.candidates[0].seconds <= theirs.candidates[0].seconds * 1.001, "{name}");
    }
    let problem = pose(NETWORKS[0].1, 3);
    let limits = SearchLimits { solver_seconds: 0.0, ..SearchLimits::default() };
    let found = asking.search_any_storage(&problem, &Family::Zen.machine(), &limits);
    let why = found.expect_err("no time").to_string();
    assert!(why.contains("allow it more seconds"), "{why}");
}

#[test]
fn solutions_end_when_the_visitor_has_enough_or_the_work_is_done() {
    let problem = pose(NETWORKS[0].1, 3);
    let path = &enumerate(&problem.expr, Arity::Binary).0[0];
    let system = System::new(&problem, path, Layouts::Shared, 3);
    let mut seen = 0;
    let end = system.solutions(u64::MAX, |_| {
        seen += 1;
        if seen == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((end, seen), (End::Stopped, 5));
    assert_eq!(system.solutions(10, |_| ControlFlow::Continue(())), End::Cut);
}
