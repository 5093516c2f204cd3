use std::collections::HashSet;
use std::ops::ControlFlow;

use super::{Constraint, End, Layouts, Part, Solution, System, Variable};
use crate::einsum::{Expr, Index, IndexSet, indices};
use crate::path::{Path, Source};
use crate::schedule::{Format, Pattern, Problem, SparseOperand};

/// A problem in which the first inputs are sparse, `levels` those of each, and all extents are 9.
fn pose(expr: &str, levels: &[&str]) -> Problem {
    let expr: Expr = expr.parse().unwrap();
    let extents = expr.all().iter().map(|index| (index, 9)).collect();
    let sparse = levels.iter().enumerate().map(|(input, levels)| SparseOperand {
        input,
        format: Format::csf(indices(levels)),
        pattern: Pattern::from_iter([(indices(levels).into_iter().collect::<IndexSet>(), 40)]),
    });
    Problem::joining(expr, extents, sparse.collect())
}

/// The path that multiplies the inputs one after the other.
fn in_turn(expr: &Expr) -> Path {
    let next = |at: usize| match at {
        0 => vec![Source::Input(0), Source::Input(1)],
        _ => vec![Source::Term(at - 1), Source::Input(at + 1)],
    };
    let products: Vec<Vec<Source>> = (0..expr.inputs.len() - 1).map(next).collect();
    Path::of_products(&products, expr)
}

/// The system of section 3 of the paper: `R = A B C D`.
fn worked_example(bound: usize) -> (Problem, Path, System) {
    let text = "R(i,j,k) = A(i,p,q) * B(j,p,r) * C(k,q,r) * D(j,k,r)";
    let problem = pose(text, &["ipq", "jpr", "kqr", "jkr"]);
    let path = in_turn(&problem.expr);
    let system = System::new(&problem, &path, Layouts::Shared, bound);
    (problem, path, system)
}

#[test]
fn the_worked_example_is_the_papers_system() {
    let (_, _, system) = worked_example(2);
    let of = |part: Part| -> Vec<String> {
        let own = system.constraints().into_iter().filter(|(own, _)| *own == part);
        own.map(|(_, one)| system.line(&one)).collect()
    };
    // Three assignments, four inputs and a result of three modes each, loops over 5, 5 and 4 indices.
    assert_eq!(system.variables().len(), 3 + 5 * 3 + 5 + 5 + 4);
    assert!(of(Part::Assignments).contains(&"ap0 < ap1".to_owned()));
    let consistent = of(Part::Consistency);
    assert!(consistent.contains(&"dp_A_0 < dp_A_2 => lp0_i < lp0_q".to_owned()));
    assert!(consistent.contains(&"dp_A_2 < dp_A_0 => lp0_q < lp0_i".to_owned()));
    assert_eq!(
        of(Part::Producers)[..2],
        [
            "lp0_i = 0 or lp0_j = 0 or lp0_q = 0 or lp0_r = 0",
            "lp0_i = 1 or lp0_j = 1 or lp0_q = 1 or lp0_r = 1"
        ]
    );
    assert!(of(Part::Consumers).contains(&"lp0_r = 1 => lp1_r = 1".to_owned()));
    let between = of(Part::Between);
    assert!(between.contains(&"ap0 < ap2 < ap1 and lp0_i = 0 => lp2_i = 0".to_owned()));
    assert!(between.contains(&"ap0 < ap2 < ap1 => lp0_q != 0".to_owned()));
    let text = system.to_string();
    assert!(text.starts_with("C0: T1(i,j,q,r) = A(i,p,q) * B(j,p,r)\n"), "{text}");
    assert!(text.contains(&format!("{} constraints, l = 2", system.constraints().len())));
}

/// The loops of figure 5 and the layouts beside them.
#[test]
fn the_papers_solution_of_the_worked_example_gives_its_code() {
    let (_, path, system) = worked_example(2);
    let loops = ["rjpqi", "rjqki", "rjki"].map(indices).to_vec();
    let solution = Solution::new(&system, vec![0, 1, 2], loops);
    assert_eq!(system.check(&solution), Ok(()));
    // A[p,q,i], B[r,j,p], C[r,q,k], D[r,j,k], R[j,k,i].
    let layouts = [vec![1, 2, 0], vec![2, 0, 1], vec![2, 1, 0], vec![2, 0, 1], vec![1, 2, 0]];
    assert_eq!(solution.layouts, layouts);
    assert_eq!(solution.value(&system, Variable::Loop(0, indices("i")[0])), Some(4));
    assert_eq!(solution.value(&system, Variable::Mode(0, 0)), Some(2));
    assert_eq!(
        solution.nest().to_string(),
        "r{ j{ p{ q{ i{ T1 } } } q{ k{ i{ T2 } } } k{ i{ T3 } } } }"
    );
    assert_eq!(solution.path(&path), path);
    let mut found = false;
    let end = system.solutions(u64::MAX, |one| {
        found |= *one == solution;
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!((found, end), (true, End::Stopped));
    // With scalars and vectors only, three loops are shared by all.
    assert!(matches!(system.bounded(1).check(&solution), Err(Constraint::Producer(_, 2))));
    let (one, _) = system.bounded(1).solve(1_000);
    let one = one.expect("a solution");
    assert_eq!(system.bounded(1).check(&one), Ok(()));
}

#[test]
fn a_wider_bound_is_needed_where_layouts_disagree() {
    // Both assignments walk `X` and `Y` from their roots, and these have nothing in common.
    let problem = pose("Z(j,k) = X(i,j) * Y(k,i)", &["ij", "ki"]);
    let path = in_turn(&problem.expr);
    let free = System::new(&problem, &path, Layouts::Shared, 1);
    assert!(free.solve(1_000).0.is_some());
    let problem = pose("Z(i,l) = X(i,j) * Y(j,k) * W(l,k)", &["ji", "jk", "lk"]);
    let path = in_turn(&problem.expr);
    let least = |layouts| {
        let system = |bound| System::new(&problem, &path, layouts, bound);
        (0..4).find(|&bound| system(bound).solve(10_000).0.is_some())
    };
    assert_eq!((least(Layouts::Shared), least(Layouts::Given)), (Some(0), Some(2)));
    // One layout of a tensor for two references: j is its root and its last level.
    let problem = pose("Z(i,j,k,l) = X(i,j) * X(j,k) * X(k,l) * X(l,i)", &["ij", "jk", "kl", "li"]);
    let path = in_turn(&problem.expr);
    let shared = System::new(&problem, &path, Layouts::Shared, 1);
    assert_eq!(shared.tensors.len(), 2);
    let (found, end) = shared.solve(u64::MAX);
    assert_eq!((found, end), (None, End::All));
    assert!(System::new(&problem, &path, Layouts::Own, 1).solve(1_000).0.is_some());
}

/// A generator of numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn shuffled<T>(&mut self, mut all: Vec<T>) -> Vec<T> {
        (1..all.len()).rev().for_each(|at| all.swap(at, self.below(at + 1)));
        all
    }
}

/// A random system of two or three contractions with up to four loops.
fn random_system(seed: u64) -> System {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let operands = 2 + draw.below(3);
    let letters = if operands == 4 { "ijk" } else { "ijkl" };
    let mut inputs: Vec<String> = Vec::new();
    let mut levels: Vec<String> = Vec::new();
    for at in 0..operands {
        let order = 1 + draw.below(if operands == 4 { 2 } else { 3 });
        let own: String =
            draw.shuffled(letters.chars().collect()).into_iter().take(order).collect();
        // Tensors of the same name and order are one.
        let name = ["A", "B", "C", "D"][if draw.below(2) == 0 { 0 } else { at }];
        let list: Vec<String> = own.chars().map(String::from).collect();
        inputs.push(format!("{name}{order}({})", list.join(",")));
        levels.push(draw.shuffled(own.chars().collect()).into_iter().collect());
    }
    let used = |letter: &char| levels.iter().any(|own| own.contains(*letter));
    let kept: Vec<String> =
        letters.chars().filter(used).filter(|_| draw.below(2) == 0).map(String::from).collect();
    let expr = format!("R({}) = {}", kept.join(","), inputs.join(" * "));
    let levels: Vec<&str> = levels.iter().map(String::as_str).collect();
    let problem = pose(&expr, &levels);
    let mut open: Vec<Source> = (0..operands).map(Source::Input).collect();
    let mut products = Vec::new();
    while open.len() > 1 {
        let a = open.remove(draw.below(open.len()));
        let b = open.remove(draw.below(open.len()));
        open.push(Source::Term(products.len()));
        products.push(vec![a, b]);
    }
    let path = Path::of_products(&products, &problem.expr);
    let layouts = [Layouts::Given, Layouts::Shared, Layouts::Shared, Layouts::Own][draw.below(4)];
    System::new(&problem, &path, layouts, draw.below(3))
}

fn permutations<T: Copy>(of: &[T]) -> Vec<Vec<T>> {
    let Some((&first, rest)) = of.split_first() else { return vec![Vec::new()] };
    let insert = |shorter: Vec<T>| {
        (0..=shorter.len()).map(move |at| {
            let mut longer = shorter.clone();
            longer.insert(at, first);
            longer
        })
    };
    permutations(rest).into_iter().flat_map(insert).collect()
}

/// All solutions of a small system: every value of every variable is tried.
fn by_force(system: &System) -> HashSet<Solution> {
    let constraints = system.constraints();
    let keeps = |parts: &[Part], solution: &Solution| {
        let own = constraints.iter().filter(|(part, _)| parts.contains(part));
        own.into_iter().all(|(_, one)| one.holds(system, solution))
    };
    let all: Vec<usize> = (0..system.contractions.len()).collect();
    let empty = Solution {
        sequence: Vec::new(),
        loops: vec![Vec::new(); all.len()],
        layouts: vec![Vec::new(); system.tensors.len()],
    };
    let sequences =
        permutations(&all).into_iter().map(|sequence| Solution { sequence, ..empty.clone() });
    let mut open: Vec<Solution> =
        sequences.filter(|one| keeps(&[Part::Assignments], one)).collect();
    for (at, one) in system.contractions.iter().enumerate() {
        let orders = permutations(&one.indices.iter().collect::<Vec<Index>>());
        open = longer(open, |solution| &mut solution.loops[at], &orders);
    }
    open.retain(|one| keeps(&[Part::Loops, Part::Producers, Part::Consumers, Part::Between], one));
    for (at, tensor) in system.tensors.iter().enumerate() {
        let orders = permutations(&(0..tensor.order).collect::<Vec<usize>>());
        open = longer(open, |solution| &mut solution.layouts[at], &orders);
        let own =
            |variable: &Variable| matches!(variable, Variable::Mode(tensor, _) if *tensor == at);
        let about: Vec<&Constraint> = constraints
            .iter()
            .map(|(_, one)| one)
            .filter(|one| match one {
                Constraint::Range(variable, _) | Constraint::Given(variable, _) => own(variable),
                Constraint::Distinct(variables) => own(&variables[0]),
                Constraint::Consistent { modes, .. } => own(&modes.0),
                _ => false,
            })
            .collect();
        open.retain(|solution| about.iter().all(|one| one.holds(system, solution)));
    }
    let held = open.iter().all(|one| system.check(one) == Ok(()));
    assert!(held, "{system}");
    open.into_iter().collect()
}

fn longer<T: Clone>(
    before: Vec<Solution>,
    part: impl Fn(&mut Solution) -> &mut Vec<T>,
    orders: &[Vec<T>],
) -> Vec<Solution> {
    let with = |solution: Solution| {
        let part = &part;
        orders.iter().map(move |order| {
            let mut longer = solution.clone();
            part(&mut longer).clone_from(order);
            longer
        })
    };
    before.into_iter().flat_map(with).collect()
}

#[test]
fn the_solver_finds_what_trying_all_values_finds() {
    let cases = std::env::var("DECOMPOSE_CASES").map_or(2_000, |n| n.parse().expect("a number"));
    let (mut satisfiable, mut unsatisfiable, mut several) = (0, 0, 0);
    for seed in 0..cases {
        let system = random_system(seed);
        let mut found = HashSet::new();
        let end = system.solutions(u64::MAX, |solution| {
            assert_eq!(system.check(solution), Ok(()), "case {seed}:\n{system}");
            assert!(found.insert(solution.clone()), "case {seed}, twice:\n{system}");
            ControlFlow::Continue(())
        });
        assert_eq!(end, End::All);
        let (first, end) = system.solve(u64::MAX);
        assert_eq!(first.is_some(), !found.is_empty(), "case {seed}:\n{system}");
        assert_eq!(end == End::All, first.is_none());
        assert_eq!(found, by_force(&system), "case {seed}:\n{system}");
        match found.len() {
            0 => unsatisfiable += 1,
            _ => satisfiable += 1,
        }
        several += usize::from(system.tensors.len() < system.contractions.len() + 2);
    }
    assert!(satisfiable > cases / 4 && unsatisfiable > cases / 20, "{satisfiable} {unsatisfiable}");
    assert!(several > cases as usize / 20, "{several} with a tensor that is read twice");
}
