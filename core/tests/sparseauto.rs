//! The nests of SparseAuto: their number, each of them, and what they compute.

mod products;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use decompose_core::autoschedule::finish;
use decompose_core::autoschedule::sparseauto::{Nests, Space};
use decompose_core::contract::Contraction;
use decompose_core::einsum::{Access, Expr, Index, oracle};
use decompose_core::nest::{Forest, Node};
use decompose_core::path::{Arity, Path, Source, Term, enumerate};
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::{Branched, Directive, Problem, Schedule};
use decompose_formats::{Coo, Csf, DenseTensor, Matrix, ModeOrder};
use ndarray::IxDyn;

use products::{Draw, TTMC, machine, pose, problem};

/// What a nest is: for each term the operands that it contracts, the operands of each source, its loops, and how many of
/// them it shares with the term that reads it.
type Key = BTreeSet<(u64, Vec<u64>, String, usize)>;

fn key(path: &Path, nest: &Forest) -> Key {
    let places = nest.places(path.terms.len()).expect("a nest of all terms");
    let mut below: Vec<u64> = Vec::new();
    let mut key = Key::new();
    for (term, one) in path.terms.iter().enumerate() {
        let mut sources: Vec<u64> = one
            .inputs
            .iter()
            .map(|source| match *source {
                Source::Input(input) => 1 << input,
                Source::Term(t) => below[t],
            })
            .collect();
        sources.sort_unstable();
        below.push(sources.iter().sum());
        let shared = path.consumer(term).map_or(0, |consumer| {
            let pairs = places[term].iter().zip(&places[consumer]);
            pairs.take_while(|(a, b)| a.0 == b.0).count()
        });
        let loops = places[term].iter().map(|place| place.1.letter()).collect();
        key.insert((below[term], sources, loops, shared));
    }
    key
}

/// Every nest, by brute force: each tree of contractions, each order of the loops of each term, each number of shared loops
/// between a term and the one that reads it; what the rules of schedules refuse is left out.
fn brute_force(problem: &Problem) -> HashSet<Key> {
    let mut found = HashSet::new();
    let mut trees = HashSet::new();
    for path in enumerate(&problem.expr, Arity::Any).0 {
        let all = Forest::fused(
            &path.terms.iter().map(|t| t.indices.iter().collect()).collect::<Vec<_>>(),
        );
        let tree: Vec<Vec<u64>> = key(&path, &all).into_iter().map(|term| term.1).collect();
        if !trees.insert(tree) {
            continue;
        }
        let mut choices: Vec<Vec<Vec<Index>>> = vec![Vec::new()];
        for term in &path.terms {
            let orders = permutations(&term.indices.iter().collect::<Vec<_>>());
            let longer = |before: &Vec<Vec<Index>>| {
                orders
                    .iter()
                    .map(|order| [before.as_slice(), std::slice::from_ref(order)].concat())
                    .collect::<Vec<_>>()
            };
            choices = choices.iter().flat_map(longer).collect();
        }
        for orders in choices {
            // Fully fused, a nest that is refused for its orders is refused whatever is shared.
            let most: Vec<usize> =
                (0..path.terms.len()).map(|t| common(&path, &orders, t)).collect();
            for shared in numbers(&most) {
                let mut emitter =
                    Emitter { path: &path, orders: &orders, shared: &shared, order: Vec::new() };
                let roots = emitter.nodes((0..path.terms.len()).collect(), 0);
                let (path, nest) = (emitter.renumbered(), Forest { roots });
                let schedule = finish(problem, path, nest, &machine());
                if schedule.verify(problem).is_err() {
                    break;
                }
                found.insert(key(&schedule.path, &schedule.nest));
            }
        }
    }
    found
}

fn common(path: &Path, orders: &[Vec<Index>], term: usize) -> usize {
    let Some(consumer) = path.consumer(term) else { return 0 };
    orders[term].iter().zip(&orders[consumer]).take_while(|(a, b)| a == b).count()
}

fn permutations(items: &[Index]) -> Vec<Vec<Index>> {
    let Some((&first, rest)) = items.split_first() else { return vec![Vec::new()] };
    let insert = |order: Vec<Index>| {
        (0..=order.len())
            .map(|at| [&order[..at], &[first], &order[at..]].concat())
            .collect::<Vec<_>>()
    };
    permutations(rest).into_iter().flat_map(insert).collect()
}

/// All lists of numbers up to `most`.
fn numbers(most: &[usize]) -> Vec<Vec<usize>> {
    most.iter().fold(vec![Vec::new()], |lists, &most| {
        let longer = |list: &Vec<usize>| {
            (0..=most).map(|n| [list.as_slice(), &[n]].concat()).collect::<Vec<_>>()
        };
        lists.iter().flat_map(longer).collect()
    })
}

/// Writes a nest from the numbers of shared loops: terms share loops until the first edge between them ends.
struct Emitter<'a> {
    path: &'a Path,
    orders: &'a [Vec<Index>],
    shared: &'a [usize],
    order: Vec<usize>,
}

impl Emitter<'_> {
    fn nodes(&mut self, terms: Vec<usize>, depth: usize) -> Vec<Node> {
        let consumer = |term: usize| self.path.consumer(term).filter(|c| terms.contains(c));
        let ends = terms.iter().any(|&t| consumer(t).is_some() && self.shared[t] == depth);
        if ends {
            // What is left connected, by its last term.
            let mut root: Vec<usize> = (0..self.path.terms.len()).collect();
            for &term in terms.iter().rev() {
                if let Some(consumer) = consumer(term).filter(|_| self.shared[term] > depth) {
                    root[term] = root[consumer];
                }
            }
            let mut nodes = Vec::new();
            for &last in terms.iter().filter(|&&term| root[term] == term) {
                let part = terms.iter().copied().filter(|&term| root[term] == last).collect();
                nodes.extend(self.nodes(part, depth));
            }
            return nodes;
        }
        match self.orders[terms[0]].get(depth) {
            Some(&index) => vec![Node::Loop { index, body: self.nodes(terms, depth + 1) }],
            None => {
                self.order.push(terms[0]);
                vec![Node::Term(self.order.len() - 1)]
            }
        }
    }

    fn renumbered(&self) -> Path {
        let place = |term: usize| self.order.iter().position(|&t| t == term).expect("a term");
        let source = |source: &Source| match *source {
            Source::Input(input) => Source::Input(input),
            Source::Term(term) => Source::Term(place(term)),
        };
        let term = |&term: &usize| {
            let term = &self.path.terms[term];
            Term { inputs: term.inputs.iter().map(source).collect(), ..term.clone() }
        };
        Path { terms: self.order.iter().map(term).collect() }
    }
}

#[test]
fn the_space_is_what_brute_force_finds() {
    let mut draw = Draw(43);
    let (mut nests, mut branched) = (0, 0);
    for case in 0..200 {
        let problem = problem(&mut draw);
        let space = Space::new(&problem).expect("few operands");
        let mut found = Nests::of(&space);
        let count = found.total();
        let keys: Vec<Key> = found.by_ref().map(|(path, nest)| key(&path, &nest)).collect();
        let distinct: HashSet<Key> = keys.iter().cloned().collect();
        assert_eq!(keys.len() as u128, count, "case {case}: {}", problem.expr);
        assert_eq!(distinct.len(), keys.len(), "case {case}: {} lists a nest twice", problem.expr);
        let wanted = brute_force(&problem);
        let missing: Vec<&Key> = wanted.difference(&distinct).take(1).collect();
        let wrong: Vec<&Key> = distinct.difference(&wanted).take(1).collect();
        assert!(
            missing.is_empty() && wrong.is_empty(),
            "case {case}: {}: lacks {missing:?}, has {wrong:?}",
            problem.expr
        );
        nests += keys.len();
        branched += keys.iter().filter(|key| key.len() > 2).count();
    }
    assert!(nests > 20_000 && branched > 5_000, "{nests} nests, {branched} of three terms or more");
}

#[test]
fn every_nest_computes_the_product() {
    let interpreter = Toolchain::Interpreter("asked for".into());
    let mut draw = Draw(7);
    let mut checked = 0;
    for case in 0..60 {
        let problem = problem(&mut draw);
        let shape = |access: &Access| -> Vec<u64> {
            access.indices.iter().map(|&index| problem.extents.of(index)).collect()
        };
        let sparse: Vec<Coo<f64>> = problem
            .sparse
            .iter()
            .map(|x| list(&shape(&problem.expr.inputs[x.input]), &mut draw))
            .collect();
        let dense = problem.dense_inputs().map(|input| {
            let shape: Vec<usize> =
                shape(&problem.expr.inputs[input]).iter().map(|&n| n as usize).collect();
            DenseTensor::from_shape_fn(IxDyn(&shape), |_| 1.0 + draw.below(9) as f64)
        });
        let dense: Vec<DenseTensor<f64>> = dense.collect();
        let operands: Vec<DenseTensor<f64>> =
            sparse.iter().map(written).chain(dense.iter().cloned()).collect();
        let want = oracle::evaluate(&problem.expr, &operands);
        let trees: Vec<Arc<Csf<f64>>> = sparse
            .iter()
            .map(|list| {
                let order = ModeOrder::new((0..list.order()).collect()).expect("an order");
                Arc::new(Csf::build(list.clone(), &order).expect("a tree"))
            })
            .collect();
        let space = Space::new(&problem).expect("few operands");
        let mut nests = Nests::of(&space);
        // All of a few, and some of many.
        let step = nests.total().div_ceil(60).max(1);
        let numbers = (0..nests.total()).step_by(step as usize);
        for number in numbers {
            let (path, nest) = nests.nth(number).expect("a nest");
            let text = format!("case {case}: {} as {nest}", problem.expr);
            let schedule = finish(&problem, path, nest, &machine());
            let mut contraction =
                Contraction::joining(&problem, &schedule, trees.clone(), &interpreter)
                    .expect(&text);
            let packed: Vec<Matrix<f64>> = dense
                .iter()
                .enumerate()
                .map(|(at, x)| contraction.pack(at, x).expect("packed"))
                .collect();
            let packed: Vec<&Matrix<f64>> = packed.iter().collect();
            let mut output = contraction.output().expect("memory");
            contraction.run(&packed, &mut output).expect(&text);
            let got = match contraction.dense(&output) {
                Some(dense) => dense,
                None => written(&contraction.pattern(&output).expect("a list").expect("a tensor")),
            };
            // Small whole numbers are summed up without rounding.
            assert_eq!(got, want, "{text}");
            checked += 1;
        }
    }
    assert!(checked > 1_500, "{checked} nests");
}

fn list(shape: &[u64], draw: &mut Draw) -> Coo<f64> {
    let cells: u64 = shape.iter().product();
    let met: Vec<u64> = (0..cells).filter(|_| draw.below(3) > 0).collect();
    let coords = (0..shape.len()).map(|mode| {
        let below: u64 = shape[mode + 1..].iter().product();
        met.iter().map(|cell| (cell / below % shape[mode]) as u32).collect::<Vec<u32>>().into()
    });
    let values: Vec<f64> = met.iter().map(|_| 1.0 + draw.below(9) as f64).collect();
    Coo::new(shape.to_vec(), coords.collect(), values).expect("a tensor")
}

fn written(list: &Coo<f64>) -> DenseTensor<f64> {
    let shape: Vec<usize> = list.extents().iter().map(|&extent| extent as usize).collect();
    let mut dense = DenseTensor::zeros(IxDyn(&shape));
    for (entry, &value) in list.values().iter().enumerate() {
        let at: Vec<usize> =
            (0..list.order()).map(|mode| list.coords(mode).get(entry) as usize).collect();
        dense[IxDyn(&at)] = value;
    }
    dense
}

/// The running example of the paper, figures 5a to 5e.  Its figure 6 has the two values of `loc` the other way round.
#[test]
fn directives_lead_through_the_running_example() {
    let expr: Expr = TTMC.parse().expect("an expression");
    let start = "path B*C*D*E\nnest l{ m{ n{ i{ j{ k{ T1 } } } } } }\n";
    let steps = [
        (
            "loopfuse path={} loc=3 pol=true",
            "B*C*D T1*E",
            "l{ m{ i{ j{ k{ T1 } } } n{ k{ T2 } } } }",
            "l, m <T_k; i, j', k' : T_k += B_ijk*C_il*D_jm, n, k : A_lmn += T_k*E_kn>",
        ),
        (
            "loopfuse path={} loc=2 pol=true",
            "B*C T1*D*E",
            "l{ i{ j{ k{ T1 } } } m{ n{ j{ k{ T2 } } } } }",
            "l <T_jk; i, j', k' : T_jk += B_ijk*C_il, m, n, j, k : A_lmn += T_jk*D_jm*E_kn>",
        ),
        (
            "reorder path={1} order={m,k,n,j}",
            "B*C T1*D*E",
            "l{ i{ j{ k{ T1 } } } m{ k{ n{ j{ T2 } } } } }",
            "l <T_jk; i, j', k' : T_jk += B_ijk*C_il, m, k, n, j : A_lmn += T_jk*D_jm*E_kn>",
        ),
        (
            "loopfuse path={1} loc=2 pol=true",
            "B*C T1*D T2*E",
            "l{ i{ j{ k{ T1 } } } m{ k{ j{ T2 } n{ T3 } } } }",
            "l <T1_jk; i, j', k' : T1_jk += B_ijk*C_il, m, k <t2; j : t2 += T1_jk*D_jm, n : A_lmn += t2*E_kn>>",
        ),
    ];
    let problem = pose(TTMC);
    let mut text = start.to_owned();
    for (number, (line, path, nest, notation)) in steps.into_iter().enumerate() {
        let directive: Directive = line.parse().expect("a directive");
        assert_eq!(directive.to_string(), line);
        // 5a to 5b stands alone; 5c, 5d and 5e follow each other from 5a.
        text = if number < 2 { format!("{start}{line}\n") } else { format!("{text}{line}\n") };
        let schedule = Schedule::parse(&text, &expr).expect("a schedule");
        let printed = schedule.text(&expr);
        assert_eq!(printed, format!("path     {path}\nnest     {nest}\n"), "{line}");
        let branched = Branched::of(&expr, &schedule.path, &schedule.nest).expect("branches");
        assert_eq!(branched.notation(&problem), notation, "{line}");
        finish(&problem, schedule.path, schedule.nest, &machine()).verify(&problem).expect("legal");
    }
    let unfused = format!("{start}loopfuse loc=2 pol=true fuse=0\n");
    let nest = Schedule::parse(&unfused, &expr).expect("a schedule").nest.to_string();
    assert_eq!(nest, "l{ i{ j{ k{ T1 } } } } l{ m{ n{ j{ k{ T2 } } } } }");
    let right = format!("{start}loopfuse loc=2 pol=false\n");
    let text = Schedule::parse(&right, &expr).expect("a schedule").text(&expr);
    assert!(text.starts_with("path     D*E B*C*T1"), "{text}");
}

#[test]
fn wrong_directives_are_named() {
    let expr: Expr = TTMC.parse().expect("an expression");
    for (line, why) in [
        ("loopfuse loc=4 pol=true", "split behind factor 1 to 3"),
        ("loopfuse loc=0 pol=true", "split behind factor 1 to 3"),
        ("loopfuse path={1} loc=2 pol=true", "{1} leads to no linear section"),
        ("loopfuse path={2} loc=2 pol=true", "`2` is no side"),
        ("loopfuse loc=2", "loopfuse needs pol"),
        ("loopfuse loc=2 pol=yes", "neither true nor false"),
        ("loopfuse loc=2 pol=true fuze=1", "no setting `fuze`"),
        ("reorder order={i,j}", "the loops to be reordered are lmnijk"),
        ("reorder order=ij", "`ij` is no list"),
    ] {
        let text =
            format!("path B*C*D*E\nnest l{{ m{{ n{{ i{{ j{{ k{{ T1 }} }} }} }} }} }}\n{line}");
        let error = Schedule::parse(&text, &expr).expect_err(line).to_string();
        assert!(error.contains(why) && error.contains("line 3"), "{line}: {error}");
    }
    let error = Schedule::parse("loopfuse loc=2 pol=true", &expr).expect_err("no path").to_string();
    assert!(error.contains("there is no path above it"), "{error}");
}

/// Every nest has branches, which give it back.
#[test]
fn nests_are_branches_of_producers_and_consumers() {
    let mut draw = Draw(3);
    for _ in 0..40 {
        let problem = problem(&mut draw);
        let space = Space::new(&problem).expect("few operands");
        let mut nests = Nests::of(&space);
        let step = nests.total().div_ceil(200).max(1);
        for number in (0..nests.total()).step_by(step as usize) {
            let (path, nest) = nests.nth(number).expect("a nest");
            let branched = Branched::of(&problem.expr, &path, &nest).expect("branches");
            let (path_back, back) = branched.nest();
            assert_eq!(key(&path_back, &back), key(&path, &nest), "{nest}");
        }
    }
}

#[test]
fn the_largest_kernels_are_counted_without_a_list() {
    let problem = pose(TTMC);
    let space = Space::new(&problem).expect("few operands");
    let mut nests = Nests::of(&space);
    let count = nests.total();
    assert!(count > 1_000_000, "{count}");
    for number in [0, count / 3, count - 1] {
        let (path, nest) = nests.nth(number).expect("a nest");
        finish(&problem, path, nest, &machine()).verify(&problem).expect("a legal nest");
    }
    assert!(nests.nth(count).is_none());
}
