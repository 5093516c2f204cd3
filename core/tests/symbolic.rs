//! Costs as polynomials: their values, and which is at least another one for all sizes.

use std::time::Instant;

use decompose_core::autoschedule::smt::{Answer as Said, solver};
use decompose_core::cost::symbolic::{
    Answer, Assumption, Domain, Monomial, Polynomial, Range, Symbols, Trees,
};
use decompose_core::einsum::{Expr, Extents, Index, IndexSet, indices};
use decompose_core::schedule::{Format, Pattern, Problem, SparseOperand};
use decompose_formats::PatternCounts;

/// A small repeatable source of numbers (SplitMix64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }
}

fn problem() -> Problem {
    let expr: Expr = "A(l,m) = B(i,j,k) * C(i,l) * D(j,m) * E(k,l)".parse().expect("an expression");
    let levels = expr.inputs[0].indices.clone();
    let extents: Extents = indices("ijklm").into_iter().zip([40, 50, 60, 8, 9]).collect();
    let pattern = Pattern::of(&PatternCounts::uniform(&[40, 50, 60], 700), &levels);
    Problem::new(expr, extents, SparseOperand { input: 0, format: Format::csf(levels), pattern })
}

fn symbols() -> Symbols {
    Symbols::of(&problem()).expect("few levels")
}

/// The iterations of loops over these letters, in this order.
fn loops(order: &str) -> Polynomial {
    symbols().iterations(&indices(order)).into()
}

fn domain(ranges: &[&str], assumptions: &[&str]) -> Domain {
    let ranges: Vec<Range> = ranges.iter().map(|text| text.parse().expect("a range")).collect();
    let assumed: Vec<Assumption> =
        assumptions.iter().map(|text| text.parse().expect("an assumption")).collect();
    Domain::of(&symbols(), &ranges, &assumed).expect("sizes").expect("few variables")
}

#[test]
fn values_are_the_iterations_of_the_problem() {
    let problem = problem();
    for order in ["ijk", "ijkl", "lijm", "mkl", "ikl", "kj", "l"] {
        let set: IndexSet = indices(order).into_iter().collect();
        let (want, got) =
            (problem.iterations(set) as f64, symbols().value(&loops(order), &problem));
        assert!((got / want - 1.0).abs() < 1e-12, "{order}: {got} for {want}");
    }
    // Walked against its levels, `j` runs over its extent.
    let got = symbols().value(&loops("ji"), &problem);
    assert_eq!(
        got,
        50.0 * problem.iterations(IndexSet::EMPTY.with(Index::new('i').expect("a letter"))) as f64
    );
}

#[test]
fn costs_print_as_in_the_paper() {
    let sum = loops("ijkl").plus(&loops("lmk")).plus(&loops("lmk"));
    assert_eq!(symbols().text(&sum), "l*nnz(B_ijk) + 2*k*l*m");
    assert_eq!(symbols().text(&Polynomial::default()), "0");
    assert_eq!(symbols().text(&Monomial::default().into()), "1");
    assert_eq!(symbols().text(&loops("ik")), "k*nnz(B_i)");
}

#[test]
fn orders_that_hold_for_all_sizes_are_found() {
    let all = domain(&[], &[]);
    let at_least = |a: &Polynomial, b: &Polynomial| all.at_least(a, b);
    assert_eq!(at_least(&loops("ijkl"), &loops("ijl")), Answer::Always);
    assert_eq!(at_least(&loops("ijl"), &loops("ijkl")), Answer::NotAlways);
    assert_eq!(at_least(&loops("jkl"), &loops("ijl")), Answer::NotAlways);
    // The tree has at most as many nodes as cells.
    assert_eq!(at_least(&loops("jikl"), &loops("ijkl")), Answer::Always);
    // (x - 1)(y - 1) >= 0.
    let (left, right) =
        (loops("lm").plus(&Monomial::default().into()), loops("l").plus(&loops("m")));
    assert_eq!(at_least(&left, &right), Answer::Always);
    assert_eq!(at_least(&right, &left), Answer::NotAlways);
}

#[test]
fn ranges_and_assumptions_decide_what_is_open_without_them() {
    let (a, b) = (loops("lk"), loops("mk"));
    assert_eq!(domain(&[], &[]).at_least(&a, &b), Answer::NotAlways);
    assert_eq!(domain(&["l=20:30", "m=5:10"], &[]).at_least(&a, &b), Answer::Always);
    assert_eq!(domain(&[], &["m <= l"]).at_least(&a, &b), Answer::Always);
    assert_eq!(domain(&[], &["10*m < l"]).at_least(&a, &b.plus(&b)), Answer::Always);
    assert_eq!(domain(&[], &["m = 2*l"]).at_least(&a, &b), Answer::NotAlways);
    // Of so few non-zeros a loop over all cells takes more than twice as long.
    let twice = loops("ijk").plus(&loops("ijk"));
    assert_eq!(
        domain(&["sparsity=0.001:0.4"], &[]).at_least(&loops("kji"), &twice),
        Answer::NotAlways
    );
    let dense: Polynomial =
        Monomial { extents: indices("ijk").into_iter().collect(), walked: 0 }.into();
    assert_eq!(domain(&["sparsity=0.001:0.4"], &[]).at_least(&dense, &twice), Answer::Always);
    assert_eq!(domain(&["sparsity=0.001:0.6"], &[]).at_least(&dense, &twice), Answer::NotAlways);
    assert_eq!(
        domain(&["nnz(B)=10:20", "l=30:40"], &[]).at_least(&loops("l"), &loops("ijk")),
        Answer::Always
    );
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let refused = |ranges: &[&str], assumed: &[&str]| {
        let ranges: Vec<Range> = ranges.iter().map(|text| text.parse().expect("a range")).collect();
        let assumed: Vec<Assumption> =
            assumed.iter().map(|text| text.parse().expect("an assumption")).collect();
        Domain::of(&symbols(), &ranges, &assumed).expect_err("refused")
    };
    assert!(refused(&["z=1:2"], &[]).contains("no index `z`; the indices are i, j, k, l, m"));
    assert!(
        refused(&["nnz(C)=1:2"], &[]).contains("no sparse operand `C`; the sparse operands are B")
    );
    assert!(refused(&["l=1:2", "m=5:6"], &["m < l"]).contains("no sizes keep"));
    assert!(refused(&["i=2:4", "nnz(B)=1000", "j=2:4", "k=2:4"], &[]).contains("no sizes keep"));
}

/// Random sums of loops.
fn sum(draw: &mut Draw) -> Polynomial {
    let orders = [
        "ijk", "ijkl", "ijklm", "ij", "ijm", "ijlm", "il", "ilm", "klm", "jkl", "lm", "l", "m",
        "kjl", "i",
    ];
    let count = 1 + draw.below(3);
    let mut drawn = || loops(orders[draw.below(orders.len() as u64) as usize]);
    (1..count).fold(drawn(), |all, _| all.plus(&drawn()))
}

#[test]
fn answers_agree_with_sampled_points() {
    let mut draw = Draw(5);
    let domains = [
        domain(&[], &[]),
        domain(&["l=2:64", "m=4:8"], &[]),
        domain(&["i=10:100", "sparsity=0.001:0.1"], &["10*l < k"]),
    ];
    let mut answers = [0; 3];
    for case in 0..900 {
        let domain = &domains[case % 3];
        let (a, b) = (sum(&mut draw), sum(&mut draw));
        let answer = domain.at_least(&a, &b);
        answers[answer as usize] += 1;
        let points = domain.points(200);
        assert!(points.len() > 50);
        let below = points.iter().any(|p| domain.value(&a, p) < domain.value(&b, p) * (1.0 - 1e-9));
        assert!(!(below && answer == Answer::Always), "case {case}");
    }
    assert!(answers[0] > 100 && answers[1] > 300 && answers[2] < 50, "{answers:?}");
}

/// The same question in other words: the variables and constraints as the paper states them.
fn as_in_the_paper(a: &Polynomial, b: &Polynomial) -> String {
    let product = |(monomial, count): &(Monomial, u64)| {
        let walked = |n: u32| monomial.walked >> n & 1 == 1;
        let level = |index: Index| "ijk".find(index.letter()).map(|n| n as u32);
        let factor = |index: Index| match level(index) {
            Some(n) if walked(n) => format!("{index}_pos"),
            _ => index.to_string(),
        };
        let factors: Vec<String> = monomial.extents.iter().map(factor).collect();
        format!("(* {count} 1 {})", factors.join(" "))
    };
    let sum = |p: &Polynomial| {
        format!("(+ 0 {})", p.terms().iter().map(product).collect::<Vec<_>>().join(" "))
    };
    let mut text = String::new();
    for name in ["l", "m", "i_pos", "j_pos", "k_pos"] {
        text += &format!("(declare-const {name} Real)(assert (<= 1.0 {name} 4294967296.0))\n");
    }
    for name in ["i", "j", "k"] {
        text += &format!("(declare-const {name} Real)(assert (<= {name}_pos {name}))\n");
    }
    text + &format!("(assert (< {} {}))\n", sum(a), sum(b))
}

/// `DECOMPOSE_CASES` says how many pairs are compared.
#[test]
fn answers_agree_with_z3() {
    let Some(z3) = solver() else {
        eprintln!("skipped: there is no program z3");
        return;
    };
    let cases = std::env::var("DECOMPOSE_CASES").map_or(60, |n| n.parse().expect("a number"));
    let mut draw = Draw(17);
    let domains =
        [domain(&[], &[]), domain(&["i=10:100", "l=2:64", "sparsity=0.001:0.1"], &["10*l < k"])];
    for (number, domain) in domains.iter().enumerate() {
        let pairs: Vec<_> = (0..cases).map(|_| (sum(&mut draw), sum(&mut draw))).collect();
        let start = Instant::now();
        let own: Vec<Answer> = pairs.iter().map(|(a, b)| domain.at_least(a, b)).collect();
        let ours = start.elapsed();
        let mut scripts: Vec<String> = pairs.iter().map(|(a, b)| domain.question(a, b)).collect();
        let start = Instant::now();
        let mut said = z3.ask_all(&scripts, 600.0).expect("answers");
        let theirs = start.elapsed();
        // Without ranges the paper's words ask the same.
        if number == 0 {
            scripts = pairs.iter().map(|(a, b)| as_in_the_paper(a, b)).collect();
            said.extend(z3.ask_all(&scripts, 600.0).expect("answers"));
        }
        let mut told = 0;
        for (case, said) in said.iter().enumerate() {
            let want = match said {
                Said::Unsat => Answer::Always,
                Said::Sat(_) => Answer::NotAlways,
                Said::Unknown => continue,
            };
            told += 1;
            let ((a, b), own) = (&pairs[case % pairs.len()], own[case % pairs.len()]);
            let open = own == Answer::Unknown && number > 0;
            let texts = [a, b].map(|p| symbols().text(p));
            assert!(own == want || open, "domain {number}, case {case}: {texts:?}: {own:?}");
        }
        assert!(told * 10 >= said.len() * 9, "z3 told {told} of {}", said.len());
        let open = own.iter().filter(|&&answer| answer == Answer::Unknown).count();
        eprintln!(
            "domain {number}: z3 told {told} of {}; of {cases} pairs {open} open here",
            said.len()
        );
        eprintln!("domain {number}: {theirs:?} by z3, {ours:?} here");
    }
}

#[test]
fn a_range_of_one_value_is_that_value() {
    let decided = |range: &str, a: &Polynomial, b: &Polynomial| {
        let domain = domain(&[range], &[]);
        (domain.at_least(a, b), domain.at_least(b, a))
    };
    // j = 1: a loop over it is none.
    let (with, without) = (loops("kjl"), loops("kl"));
    assert_eq!(decided("j=1:1", &with, &without), (Answer::Always, Answer::Always));
    // nnz(B_i) is at most i.
    let (some, all) = (loops("ik"), loops("k"));
    assert_eq!(decided("i=1", &some, &all), (Answer::Always, Answer::Always));
    assert_eq!(decided("i=5:5", &some, &all), (Answer::Always, Answer::NotAlways));
    // So many non-zeros are more than those of two levels, and at most those cells.
    let (whole, two) = (loops("ijk"), loops("ij"));
    assert_eq!(decided("nnz(B)=700:700", &whole, &two), (Answer::Always, Answer::NotAlways));
    let cells: Polynomial =
        Monomial { extents: indices("ijk").into_iter().collect(), walked: 0 }.into();
    assert_eq!(decided("nnz(B)=700", &cells, &whole), (Answer::Always, Answer::NotAlways));
    let twice = whole.plus(&whole);
    assert_eq!(decided("sparsity=0.5", &cells, &twice), (Answer::Always, Answer::Always));
    assert_eq!(decided("sparsity=0.6", &cells, &twice), (Answer::NotAlways, Answer::Always));
    // Extents of one value leave no doubt.
    let domain = domain(&["i=40", "j=50:50", "k=60:60"], &[]);
    assert_eq!(domain.at_least(&whole, &twice), Answer::NotAlways);
    let orders = ["i", "ij", "ijk", "ji", "kj", "ijl", "jkl", "il", "kl", "jl"].map(loops);
    for (a, b) in orders.iter().flat_map(|a| orders.iter().map(move |b| (a, b))) {
        assert_ne!(domain.at_least(a, b), Answer::Unknown);
    }
}

#[test]
fn contradictions_are_found() {
    let of = |ranges: &[&str], assumptions: &[&str]| {
        let ranges: Vec<Range> = ranges.iter().map(|text| text.parse().expect("a range")).collect();
        let assumed = assumptions.iter().map(|text| text.parse().expect("an assumption"));
        let assumed: Vec<Assumption> = assumed.collect();
        Domain::of(&symbols(), &ranges, &assumed).map(|domain| domain.is_some())
    };
    for assumptions in [
        &["l<m", "m<l"][..],
        &["l<l"],
        &["l<=m", "m<l"],
        &["10*l<m", "m<5*l"],
        &["l<m", "m<j", "j<l"],
        &["l=2*m", "m=l"],
        &["l + m <= l"],
        &["nnz(B) < k", "k < l", "l*m < nnz(B)"],
    ] {
        let why = of(&[], assumptions).expect_err(&format!("{assumptions:?}"));
        assert!(why.contains("no sizes keep all"), "{why}");
    }
    assert!(of(&["l=5", "m=5"], &["l<m"]).is_err() && of(&["l=5", "m=5"], &["l<=m"]).is_ok());
    for assumptions in [&["l<=m", "m<=l"][..], &["l<m", "m<j", "l<j"], &["l + m < j"]] {
        assert_eq!(of(&[], assumptions), Ok(true), "{assumptions:?}");
    }
}

#[test]
fn costs_on_several_trees_are_compared() {
    let letters = ["ijk", "jik", "kji"];
    let trees: Vec<Symbols> = letters
        .iter()
        .map(|order| {
            let mut problem = problem();
            problem.leader_mut().expect("a sparse operand").format = Format::csf(indices(order));
            Symbols::of(&problem).expect("few levels")
        })
        .collect();
    let trees_of = |ranges: &[&str]| Trees::of(&trees, domain(ranges, &[])).expect("few variables");
    let all = trees_of(&[]);
    let loops = |tree: usize, order: &str| {
        all.translated(tree, &trees[tree].iterations(&indices(order)).into())
    };
    // The non-zeros are the same on all trees; the first two levels are those of both orders.
    assert_eq!(loops(0, "ijkl"), loops(1, "jikl"));
    assert_eq!(loops(0, "ijk"), loops(2, "kji"));
    assert_eq!(loops(0, "ijl"), loops(1, "jil"));
    let at_least = |a: &Polynomial, b: &Polynomial| all.domain.at_least(a, b);
    // nnz(B_j) <= nnz(B_ij) <= i*nnz(B_j), nnz(B_kj) <= nnz(B_ijk).
    assert_eq!(at_least(&loops(0, "ijl"), &loops(1, "jl")), Answer::Always);
    assert_eq!(at_least(&loops(1, "jil"), &loops(0, "ijl")), Answer::Always);
    assert_eq!(at_least(&loops(0, "ijk"), &loops(2, "kj")), Answer::Always);
    assert_eq!(at_least(&loops(2, "kj"), &loops(1, "j")), Answer::Always);
    assert_eq!(at_least(&loops(0, "il"), &loops(1, "jl")), Answer::NotAlways);
    assert_eq!(at_least(&loops(1, "jl"), &loops(0, "il")), Answer::NotAlways);
}

#[test]
fn a_tensor_that_is_multiplied_with_itself_is_counted_once() {
    let pose = |text: &str| {
        let expr: Expr = text.parse().expect("an expression");
        let extents: Extents = expr.all().iter().map(|index| (index, 40)).collect();
        let sparse = (0..2).map(|input| {
            let levels = expr.inputs[input].indices.clone();
            let pattern = Pattern::of(&PatternCounts::uniform(&[40, 40], 200), &levels);
            SparseOperand { input, format: Format::csf(levels), pattern }
        });
        let sparse = sparse.collect();
        Problem::joining(expr, extents, sparse)
    };
    let all = |problem: &Problem| problem.iterations(problem.expr.all());
    let same = pose("Y(i) = X(i,j) * X(i,j) * u(j)");
    assert_eq!((all(&same), same.assembled_elements() > 30), (200, true));
    // Two tensors, or one with its modes exchanged, share few coordinates.
    assert!(all(&pose("Y(i) = X(i,j) * Z(i,j) * u(j)")) < 50);
    assert!(all(&pose("Y(i) = X(i,j) * X(j,i) * u(j)")) < 50);
    let symbols = Symbols::of(&same).expect("few levels");
    let time: Polynomial = symbols.iterations(&indices("ij")).into();
    assert_eq!(symbols.text(&time), "nnz(X_ij)");
    assert_eq!(symbols.value(&time, &same), 200.0);
    // The order of the references, and of their levels, changes no count of all coordinates.
    let of = |inputs: [usize; 2], orders: [&str; 2]| {
        let mut problem = same.clone();
        problem.sparse = inputs.map(|input| same.sparse[input].clone()).into();
        problem
            .sparse
            .iter_mut()
            .zip(orders)
            .for_each(|(x, order)| x.format = Format::csf(indices(order)));
        Symbols::of(&problem).expect("few levels")
    };
    let all = [of([0, 1], ["ij", "ij"]), of([1, 0], ["ji", "ji"]), of([0, 1], ["ij", "ji"])];
    let trees = Trees::of(&all, Domain::all(&symbols).expect("few")).expect("few variables");
    let time = |tree: usize, order: &str| {
        trees.translated(tree, &all[tree].iterations(&indices(order)).into())
    };
    assert_eq!(time(0, "ij"), time(1, "ji"));
    assert_eq!(trees.domain.at_least(&time(0, "ij"), &time(2, "ij")), Answer::Always);
}
