//! A program that breaks each rule of the verifier.

use decompose_formats::narrow_ints::Width;

use crate::einsum::{Expr, Extents, Index, IndexSet};
use crate::lower::check::check;
use crate::lower::{Addressing, LevelStorage, Place, Program, Stmt, Together, Update, lower};
use crate::schedule::{Format, Pattern, Problem, Schedule, SparseOperand, TreeLevel, Visited};

/// Lowers an MTTKRP of order 3.
fn mttkrp() -> Program {
    let expr: Expr = "A(i,r) = X(i,j,k) * B(j,r) * C(k,r)".parse().unwrap();
    let extents: Extents = expr.all().iter().map(|index| (index, 16)).collect();
    let levels = expr.inputs[0].indices.clone();
    let all: IndexSet = levels.iter().copied().collect();
    let (format, pattern) = (Format::csf(levels), Pattern::from_iter([(all, 100)]));
    let problem = Problem::new(expr, extents, SparseOperand { input: 0, format, pattern });
    let text = "path X*C T1*B\nnest i{ j{ k{ r{ T1 } } r{ T2 } } }\nlayout i j k\nbuffer dense\n\
                parallel i position owner\n";
    let schedule = Schedule::parse(text, &problem.expr).unwrap();
    let storage = LevelStorage { coords: Width::W16, pointers: Width::W16 };
    lower(&problem, &schedule, &[vec![storage; 3]]).unwrap()
}

/// Says why the program is refused after `change`.
fn refused(change: impl FnOnce(&mut Program)) -> String {
    let mut program = mttkrp();
    check(&program).unwrap();
    change(&mut program);
    check(&program).unwrap_err().to_string()
}

fn product(target: Place, factor: Place) -> Stmt {
    Stmt::Product { target, factors: vec![factor], update: Update::Add, lanes: None }
}

#[test]
fn every_rule_of_programs_refuses_one() {
    let root = TreeLevel { tree: 0, level: 0 };
    let i = Index::new('i').unwrap();
    let cases: [(&str, String); 11] = [
        (
            "a loop over level 1 stands inside loops over 0",
            refused(|program| {
                let Stmt::LevelLoop { lead, .. } = &mut program.body[0] else { panic!() };
                *lead = Visited::Level(TreeLevel { tree: 0, level: 1 });
            }),
        ),
        (
            "a value is read outside",
            refused(|program| {
                program.body.push(product(Place::Buffer(0), Place::Value(0)));
            }),
        ),
        (
            "unbound",
            refused(|program| {
                program.body.push(product(Place::Output, Place::Dense(0)));
            }),
        ),
        (
            "i is bound twice",
            refused(|program| {
                let body = std::mem::take(&mut program.body);
                program.body =
                    vec![Stmt::DenseLoop { index: i, extent: 16, together: Together::One, body }];
            }),
        ),
        (
            "there is no buffer 99",
            refused(|program| {
                program.body.push(Stmt::Clear { buffer: 99 });
            }),
        ),
        (
            "a position is written outside",
            refused(|program| {
                program.addressing = Addressing::Positions;
            }),
        ),
        (
            "a cell of buffer 0 is marked",
            refused(|program| {
                program.body.push(Stmt::Mark { buffer: 0 });
            }),
        ),
        (
            "tree 0 is not united around",
            refused(|program| {
                program.body.push(Stmt::Within { lead: root, body: Vec::new() });
            }),
        ),
        (
            "A is appended",
            refused(|program| {
                program.body.push(Stmt::Append { outside: Vec::new() });
            }),
        ),
        ("buffer 0 is no row, and in registers", refused(|program| program.marked.push(0))),
        (
            "takes iterations together as Batch",
            refused(|program| {
                let Stmt::LevelLoop { together, .. } = &mut program.body[0] else { panic!() };
                *together = Together::Batch { nodes: 4 };
            }),
        ),
    ];
    for (want, why) in cases {
        assert!(why.contains(want), "{why}, not {want}");
    }
}
