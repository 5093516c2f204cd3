//! Sums of products, with diagonals, factors and functions, against their definition on dense arrays.
//!
//! `DECOMPOSE_CASES` sets how many random products are tried.

use std::collections::BTreeMap;

use decompose_core::autoschedule::{SCHEDULERS, Scheduler};
use decompose_core::compute::{
    Evaluator, Known, Tensor, Term, Wanted, assign, compute, compute_seen, plan_terms, product,
    scale_terms, trees_of_terms,
};
use decompose_core::contract::{Contraction, Planned, ResultForm, StoredTrees};
use decompose_core::cost::Machine;
use decompose_core::einsum::{Assignment, Index, oracle};
use decompose_core::error::CoreError;
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, DenseTensor, Ints, Width};
use ndarray::IxDyn;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A generator of numbers: a linear congruence, of which the upper bits are taken.
struct Numbers(u64);

impl Numbers {
    /// Returns a number between 0 and 1.
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// An array of which about this share of the cells is not zero.
fn array(numbers: &mut Numbers, shape: &[usize], share: f64) -> DenseTensor<f64> {
    DenseTensor::from_shape_fn(IxDyn(shape), |_| {
        let value = numbers.next() - 0.4;
        if numbers.next() < share { value } else { 0.0 }
    })
}

/// The non-zeros of `array`, in no order.
fn list(array: &DenseTensor<f64>) -> Coo<f64> {
    let mut entries: Vec<(Vec<usize>, f64)> = array
        .indexed_iter()
        .filter(|(_, value)| **value != 0.0)
        .map(|(place, &value)| ((0..array.ndim()).map(|mode| place[mode]).collect(), value))
        .collect();
    entries.reverse();
    let extents: Vec<u64> = array.shape().iter().map(|&n| n as u64).collect();
    let column = |mode: usize| {
        Ints::collect(entries.iter().map(|(place, _)| place[mode] as u64), Width::W32)
    };
    let coords = (0..array.ndim()).map(column).collect();
    let values: Vec<f64> = entries.iter().map(|(_, value)| *value).collect();
    Coo::new(extents, coords, values).expect("a list")
}

/// Tensors by name; their products are scheduled by one scheduler, and interpreted.
struct Interpreter<'a> {
    tensors: BTreeMap<&'a str, Tensor<f64>>,
    scheduler: &'static dyn Scheduler,
    /// How many sums were computed by one kernel.
    united: usize,
    toolchain: Toolchain,
}

impl<'a> Interpreter<'a> {
    fn new(tensors: BTreeMap<&'a str, Tensor<f64>>, scheduler: &'static dyn Scheduler) -> Self {
        let toolchain = Toolchain::Interpreter("asked for".into());
        Interpreter { tensors, scheduler, united: 0, toolchain }
    }
}

impl Evaluator<f64> for Interpreter<'_> {
    type Error = CoreError;

    fn operand(&mut self, name: &str) -> Result<Tensor<f64>, CoreError> {
        match &self.tensors[name] {
            Tensor::Dense(array) => Ok(Tensor::Dense(array.clone())),
            Tensor::Sparse(list) => {
                let mut list = list.clone();
                list.sum_duplicates()?;
                Ok(Tensor::Sparse(list))
            }
        }
    }

    fn is_list(&self, name: &str) -> bool {
        self.tensors[name].is_sparse()
    }

    fn product(
        &mut self,
        known: &Known,
        tensors: Vec<Tensor<f64>>,
        stored: &mut StoredTrees<f64>,
    ) -> Result<Tensor<f64>, CoreError> {
        product(known, tensors, stored, self.scheduler, &self.toolchain)
    }

    fn sum(
        &mut self,
        terms: &mut Vec<Term<f64>>,
        stored: &mut StoredTrees<f64>,
    ) -> Result<Option<Tensor<f64>>, CoreError> {
        let Some(planned) = plan_terms(terms, self.scheduler, Machine::here())? else {
            return Ok(None);
        };
        self.united += 1;
        scale_terms(terms, self)?;
        let trees = trees_of_terms(&planned, terms, stored)?;
        let mut kernel = Contraction::summing(&planned, trees, &self.toolchain)?;
        kernel.assemble(&[], u64::MAX).map(|list| Some(Tensor::Sparse(list)))
    }
}

/// Computes `text` with the tensors of `sparse` as lists of about this share of their cells and all others dense; returns how
/// many sums were computed by one kernel.
fn check(text: &str, sparse: &[(&str, f64)], seed: u64) -> usize {
    let assignment: Assignment = text.parse().expect(text);
    let mut numbers = Numbers(seed);
    let mut extents: BTreeMap<Index, usize> = BTreeMap::new();
    for index in assignment.all().iter() {
        extents.insert(index, 2 + (numbers.next() * 6.0) as usize);
    }
    check_extents(text, sparse, (numbers, extents))
}

/// As [`check`] with indices of these extents.
fn check_extents(
    text: &str,
    sparse: &[(&str, f64)],
    (mut numbers, extents): (Numbers, BTreeMap<Index, usize>),
) -> usize {
    let mut united = 0;
    let assignment: Assignment = text.parse().expect(text);
    let mut arrays: BTreeMap<String, DenseTensor<f64>> = BTreeMap::new();
    for access in assignment.inputs() {
        let shape: Vec<usize> = access.indices.iter().map(|index| extents[index]).collect();
        let share = sparse.iter().find(|(name, _)| *name == access.tensor).map_or(1.0, |own| own.1);
        arrays.entry(access.tensor.clone()).or_insert_with(|| array(&mut numbers, &shape, share));
    }
    let operands: Vec<(&str, Tensor<f64>)> = arrays
        .iter()
        .map(|(name, array)| {
            let is_list = sparse.iter().any(|(own, _)| own == name);
            let tensor = match is_list {
                true => Tensor::Sparse(list(array)),
                false => Tensor::Dense(array.clone()),
            };
            (name.as_str(), tensor)
        })
        .collect();
    let inputs: Vec<DenseTensor<f64>> =
        assignment.inputs().map(|access| arrays[&access.tensor].clone()).collect();
    let want = oracle::assign(&assignment, &inputs);
    let tensors: BTreeMap<&str, Tensor<f64>> = operands.into_iter().collect();
    for &scheduler in SCHEDULERS {
        let mut interpreter = Interpreter::new(tensors.clone(), scheduler);
        for form in [None, Some(ResultForm::Dense), Some(ResultForm::Sparse)] {
            let wanted = Wanted { form, ..Wanted::default() };
            let have = assign(&assignment, wanted, &mut StoredTrees::default(), &mut interpreter);
            let name = scheduler.name();
            let have = have.unwrap_or_else(|error| panic!("{text}, {name}: {error}")).into_dense();
            assert_eq!(have.shape(), want.shape(), "{text}");
            for (have, want) in have.iter().zip(&want) {
                let close = (have - want).abs() <= 1e-12 * want.abs().max(1.0);
                assert!(close, "{text}, {name}, {form:?}: {have} for {want}");
            }
        }
        united += interpreter.united;
    }
    united
}

#[test]
fn assignments_are_computed_by_their_definition() {
    let x = [("X", 0.3)];
    let xyz = [("X", 0.3), ("Y", 0.3), ("Z", 0.3)];
    for seed in 0..3 {
        check("R(i,k) = X(i,j) * A(j,k) + 2 * B(i,k)", &x, seed);
        check("R(i,k) = X(i,j) * Y(j,k) - 0.5 * Z(i,k)", &xyz, seed);
        check("R(i,k) = X(i,k) + Y(i,k) - Z(i,k)", &xyz, seed);
        check("R(i,j) = A(i,k) * B(k,j)", &[], seed);
        check("R(b,i,j) = A(i,k,b) * B(k,b,j) * C(b) * D(l)", &[], seed);
        check("R(i) = X(i,j) * A(j,f) * B(f,i)", &x, seed);
        check("r = X(i,i)", &x, seed);
        check("r = A(i,i) * B(i,j,i)", &[], seed);
        check("R(i,j) = X(i,j,i) * A(j,j)", &x, seed);
        check("R(i,j) = relu(X(i,j) * A(i,j) - 0.2 * Y(i,j))", &xyz, seed);
        check("R(i,f) = tanh(X(i,j) * H(j,g) * W(g,f))", &x, seed);
        check("R(i,f) = sigmoid(s * X(i,j) * W(j,f))", &x, seed);
        check("R(row,l) = X(row,j1) * Y(j1,k) * Z(k,l)", &xyz, seed);
        check("R(i,l) = X(i,j) * Y(j,k) * Z(k,l) * W(i,l)", &xyz, seed);
    }
}

#[test]
fn sums_of_products_of_lists_are_computed_by_one_kernel() {
    let all = ["A", "B", "C", "D", "E", "F", "T", "U", "V", "W", "X", "Y"];
    let matrices = ["X(i,j) * Y(j,k)", "W(i,k)", "A(i,j) * Y(j,k)", "V(k,i)", "B(i,k) * W(i,k)"];
    let cubes =
        ["X(i,j) * T(j,k,l)", "U(i,k,l)", "C(i,k,m) * D(m,l)", "E(l,k,i)", "W(i,k) * F(k,l)"];
    let sums = |result: &str, terms: &[&str], cases: u64, united: &mut usize| {
        for seed in 0..cases {
            let mut numbers = Numbers(seed);
            let mut draw = |below: usize| (numbers.next() * below as f64) as usize;
            let drawn: Vec<&str> = (0..2 + draw(2)).map(|_| terms[draw(terms.len())]).collect();
            let text = format!("{result} = {} * {}", 1 + draw(3), drawn.join(" - 0.5 * "));
            let share = [0.02, 0.2, 0.6][draw(3)];
            *united += check(&text, &all.map(|name| (name, share)), seed);
        }
    };
    let (mut of_matrices, mut of_cubes) = (0, 0);
    sums("R(i,k)", &matrices, 60, &mut of_matrices);
    sums("R(i,k,l)", &cubes, 40, &mut of_cubes);
    assert!(of_matrices > 60, "{of_matrices} sums of matrices");
    assert!(of_cubes > 10, "{of_cubes} sums of order 3");
}

#[test]
fn sums_are_the_same_compiled_and_on_several_threads() {
    let texts = [
        "R(i,k) = X(i,j) * Y(j,k) - 2 * W(i,k)",
        "R(i,k) = 3 * W(i,k) + X(i,j) * Y(j,k) + V(k,i)",
        "R(i,k) = X(i,j) * Y(j,k) + A(i,l) * Y(l,k) + W(i,k)",
        "R(i,k,l) = T(i,k,m) * Y(m,l) - U(i,k,l)",
    ];
    for (seed, text) in texts.iter().enumerate() {
        let assignment: Assignment = text.parse().expect(text);
        let mut numbers = Numbers(seed as u64);
        let extent = if assignment.output.indices.len() == 3 { 40 } else { 150 };
        let mut arrays: BTreeMap<String, DenseTensor<f64>> = BTreeMap::new();
        for access in assignment.inputs() {
            let shape = vec![extent; access.indices.len()];
            // Many rows of one tensor or the other are empty.
            let mut own = array(&mut numbers, &shape, 0.03);
            let empty = |row: usize| (row / 7 + shape.len()).is_multiple_of(3);
            own.outer_iter_mut().enumerate().for_each(|(row, mut values)| {
                if empty(row) && access.tensor != "Y" {
                    values.fill(0.0);
                }
            });
            arrays.entry(access.tensor.clone()).or_insert(own);
        }
        let inputs: Vec<DenseTensor<f64>> =
            assignment.inputs().map(|access| arrays[&access.tensor].clone()).collect();
        let want = oracle::assign(&assignment, &inputs);
        let lists = arrays.iter().map(|(name, own)| (name.as_str(), Tensor::Sparse(list(own))));
        let tensors: BTreeMap<&str, Tensor<f64>> = lists.collect();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for toolchain in [Toolchain::detect(), Toolchain::Interpreter("asked for".into())] {
                let mut kernels = Interpreter::new(tensors.clone(), SCHEDULERS[0]);
                kernels.toolchain = toolchain;
                let wanted = Wanted { form: Some(ResultForm::Sparse), ..Wanted::default() };
                let mut stored = StoredTrees::default();
                let have = pool.install(|| assign(&assignment, wanted, &mut stored, &mut kernels));
                let have = have.expect(text);
                assert_eq!(kernels.united, 1, "{text} takes several kernels");
                let Tensor::Sparse(have) = have else { panic!("{text}: an array") };
                assert!(have.clone().sum_duplicates().unwrap() == 0, "{text}: listed twice");
                for (have, want) in Tensor::Sparse(have).into_dense().iter().zip(&want) {
                    let close = (have - want).abs() <= 1e-12 * want.abs().max(1.0);
                    assert!(close, "{text}, {threads} threads: {have} for {want}");
                }
            }
        }
    }
}

#[test]
fn a_function_of_a_list_is_that_of_its_entries() {
    let coords = vec![vec![1u32, 0, 0].into(), vec![2u32, 3, 1].into()];
    let x = Coo::new(vec![2, 4], coords, vec![-1.0, 2.0, 2.0]).unwrap();
    let operands = [("X", Tensor::Sparse(x))];
    let of = |function: &str| {
        compute(&format!("R(i,j) = {function}(1 * X(i,j))"), &operands).unwrap().into_dense()
    };
    let rows = [0.0, 0.5, 0.0, 0.5, 0.0, 0.0, 1.0, 0.0];
    assert_eq!(of("softmax").iter().copied().collect::<Vec<_>>(), rows);
    assert_eq!(of("relu").sum(), 4.0);
    assert_eq!(of("exp")[[0, 0]], 0.0);
}

#[test]
fn a_function_does_not_depend_on_the_order_or_the_form_of_operands() {
    let list = |entries: &[(u32, f64)]| {
        let (places, values): (Vec<u32>, Vec<f64>) = entries.iter().copied().unzip();
        Tensor::Sparse(Coo::new(vec![4], vec![places.into()], values).unwrap())
    };
    let ones = Tensor::Dense(DenseTensor::from_elem(IxDyn(&[3]), 1.0));
    // Both have an element at 1; a zero is listed at 3.
    let (a, b) = (list(&[(0, 2.0), (1, 3.0), (3, 0.0)]), list(&[(1, 0.5), (2, 4.0), (3, 1.0)]));
    let operands = [("A", a), ("B", b), ("D", ones)];
    let of = |text: &str| -> Vec<f64> {
        compute(text, &operands).unwrap().into_dense().iter().copied().collect()
    };
    let at_one = [0.0, 1.5f64.exp(), 0.0, 0.0];
    for product in ["A(i) * B(i)", "B(i) * A(i)", "A(i) * B(i) + A(i) - A(i)"] {
        assert_eq!(of(&format!("R(i) = exp({product})")), at_one, "{product}");
    }
    // The index of an array has no pattern: all elements count, though the product is zero in most rows.
    let all: Vec<f64> =
        (0..12).map(|cell| if cell / 3 == 1 { 1.5f64.exp() } else { 1.0 }).collect();
    for product in ["A(i) * B(i) * D(k)", "D(k) * B(i) * A(i)"] {
        assert_eq!(of(&format!("R(i,k) = exp({product})")), all, "{product}");
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let matrix = |rows: usize, cols: usize| {
        Tensor::Dense(DenseTensor::<f64>::from_elem(IxDyn(&[rows, cols]), 1.0))
    };
    let cases = [
        ("R(i,k) = X(i,j) * Y(j,k)", "operand Y: j runs to 2 here, to 3 before"),
        ("R(i) = X(i)", "operand X: X(i) has 1 indices, the tensor has 2"),
        ("R(i,j) = X(i,j) + Q(i,j)", "operand Q: it is not among the operands"),
        ("R(i,j) = X(i,j) + Y(i,j)", "a sum of tensors"),
        ("r = X(i,i)", "a diagonal of an array of [2, 3]"),
    ];
    let operands = [("X", matrix(2, 3)), ("Y", matrix(2, 2))];
    for (text, message) in cases {
        let error = compute(text, &operands).expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

/// A random product of two to four tensors, most of them sparse.
fn random_product() -> impl Strategy<Value = (String, Vec<bool>, u64)> {
    let access = prop::collection::vec(0..5usize, 1..=3);
    let inputs = prop::collection::vec(access, 2..=4);
    (
        inputs,
        prop::collection::vec(any::<bool>(), 5),
        prop::collection::vec(0..4u8, 4),
        any::<u64>(),
    )
        .prop_map(|(inputs, kept, sparse, seed)| {
            let letter = |index: usize| char::from(b'i' + index as u8).to_string();
            let text = |(at, indices): (usize, &Vec<usize>)| {
                let list: Vec<String> = indices.iter().map(|&index| letter(index)).collect();
                format!("A{at}({})", list.join(","))
            };
            let product: Vec<String> = inputs.iter().enumerate().map(text).collect();
            let used = |index: &usize| inputs.iter().any(|indices| indices.contains(index));
            let output: Vec<String> =
                (0..5).filter(used).filter(|&index| kept[index]).map(letter).collect();
            let text = format!("R({}) = {}", output.join(","), product.join(" * "));
            (text, sparse.into_iter().map(|choice| choice > 0).collect(), seed)
        })
}

#[test]
fn random_products_are_computed_by_their_definition() {
    let cases = std::env::var("DECOMPOSE_CASES").map_or(100, |n| n.parse().expect("a number"));
    let mut runner = TestRunner::new(Config { cases, ..Config::default() });
    let run = runner.run(&random_product(), |(text, sparse, seed)| {
        let names: Vec<String> = (0..4).map(|at| format!("A{at}")).collect();
        let lists: Vec<(&str, f64)> = names
            .iter()
            .zip(&sparse)
            .filter(|(_, sparse)| **sparse)
            .map(|(name, _)| (name.as_str(), 0.4))
            .collect();
        check(&text, &lists, seed);
        Ok(())
    });
    run.expect("every case");
}

#[test]
fn results_in_between_keep_a_limit() {
    // The product of two narrow bands is a narrow band: few elements of many products, worth their memory.
    let matrix = |rows: u32, cols: u32, column: &dyn Fn(u32) -> Vec<u32>| {
        let places: Vec<(u32, u32)> =
            (0..rows).flat_map(|row| column(row).into_iter().map(move |col| (row, col))).collect();
        let (a, b): (Vec<u32>, Vec<u32>) = places.into_iter().unzip();
        let values = vec![1.0; a.len()];
        let extents = vec![u64::from(rows), u64::from(cols)];
        Tensor::Sparse(Coo::new(extents, vec![a.into(), b.into()], values).unwrap())
    };
    let spread = |row: u32| (0..8).map(|at| (row + at) % 4000).collect();
    let tensors = || {
        BTreeMap::from([
            ("X", matrix(4000, 4000, &spread)),
            ("Y", matrix(4000, 4000, &spread)),
            ("Z", matrix(4000, 4000, &spread)),
        ])
    };
    let assignment: Assignment = "R(i,l) = X(i,j) * Y(j,k) * Z(k,l)".parse().unwrap();
    let steps = |most_bytes: u64| {
        let inner = Interpreter::new(tensors(), SCHEDULERS[0]);
        let mut counted = Counted { inner, products: 0, trees_there: 0, later: &[] };
        let wanted = Wanted { most_bytes, form: Some(ResultForm::Sparse), ..Wanted::default() };
        assign(&assignment, wanted, &mut StoredTrees::default(), &mut counted).expect("a result");
        counted.products
    };
    assert_eq!((steps(u64::MAX), steps(1000)), (2, 1));
}

#[test]
fn every_kernel_is_told() {
    let mut numbers = Numbers(5);
    let dense = array(&mut numbers, &[6, 6], 1.0);
    let x = Tensor::Sparse(list(&array(&mut numbers, &[6, 6], 0.3)));
    let operands = [("X", x), ("A", Tensor::Dense(dense.clone())), ("B", Tensor::Dense(dense))];
    let text = "R(i,k) = X(i,j) * A(j,k) - 2 * A(i,j) * B(j,k)";
    let mut told = Vec::new();
    let see = |known: &Known, planned: Option<&Planned>| {
        told.push((known.expr.inputs.len(), planned.is_some()));
    };
    let have = compute_seen(text, &operands, see).unwrap().into_dense();
    assert_eq!(told, [(2, true), (2, false)]);
    assert_eq!(have, compute(text, &operands).unwrap().into_dense());
}

#[test]
fn diagonals_of_a_tensor_are_operands_of_their_own() {
    let text =
        "R(i,j) = X(i,j,i) * A(j,j) + X(i,i,j) * A(i,j) + X(j,j,i) * A(j,i) - X(i,j,j) * A(i,i)";
    let assignment: Assignment = text.parse().expect(text);
    let extents = assignment.all().iter().map(|index| (index, 6)).collect();
    check_extents(text, &[("X", 0.3)], (Numbers(5), extents));
}

#[test]
fn trees_are_built_once() {
    let matrix = |n: usize| {
        Tensor::Sparse(list(&DenseTensor::from_shape_fn(IxDyn(&[n, n]), |at| {
            if (at[0] * 7 + at[1] * 3) % 5 == 0 { (at[0] + 2 * at[1]) as f64 } else { 0.0 }
        })))
    };
    let dense =
        |n: usize| Tensor::Dense(DenseTensor::from_shape_fn(IxDyn(&[n, 3]), |at| at[0] as f64));
    let run = |text: &str, later: &'static [&'static str]| {
        let assignment: Assignment = text.parse().unwrap();
        let tensors = BTreeMap::from([("X", matrix(9)), ("B", dense(9)), ("C", dense(9))]);
        let inner = Interpreter::new(tensors, SCHEDULERS[0]);
        let mut counted = Counted { inner, products: 0, trees_there: 0, later };
        let mut stored = StoredTrees::default();
        for _ in 0..2 {
            assign(&assignment, Wanted::default(), &mut stored, &mut counted).expect("a result");
        }
        (counted.products, counted.trees_there, stored.is_empty())
    };
    let sum = "Y(i,r) = X(i,j) * B(j,r) + X(i,j) * C(j,r)";
    assert_eq!(run(sum, &[]), (4, 2, true));
    assert_eq!(run(sum, &["X"]), (4, 3, false));
    assert_eq!(run("Y(i,r) = X(i,j) * B(j,r)", &[]), (2, 0, true));
    // A diagonal is not the tensor.
    assert_eq!(run("Y(i,r) = X(i,j) * B(j,r) + X(i,i) * C(i,r)", &[]), (4, 0, true));
}

/// Counts the products that are asked for, and the trees that are there already.
struct Counted<'a> {
    inner: Interpreter<'a>,
    products: usize,
    trees_there: usize,
    later: &'static [&'static str],
}

impl Evaluator<f64> for Counted<'_> {
    type Error = CoreError;

    fn operand(&mut self, name: &str) -> Result<Tensor<f64>, CoreError> {
        self.inner.operand(name)
    }

    fn is_list(&self, name: &str) -> bool {
        self.inner.is_list(name)
    }

    fn is_read_later(&self, name: &str) -> bool {
        self.later.contains(&name)
    }

    fn product(
        &mut self,
        known: &Known,
        tensors: Vec<Tensor<f64>>,
        stored: &mut StoredTrees<f64>,
    ) -> Result<Tensor<f64>, CoreError> {
        self.products += 1;
        self.trees_there += known.trees.iter().map(Vec::len).sum::<usize>();
        // Only which products are asked for counts: a kernel of all three takes the interpreter a while.
        match tensors.len() {
            2 => self.inner.product(known, tensors, stored),
            _ => Ok(tensors.into_iter().next().expect("a tensor")),
        }
    }

    fn sum(
        &mut self,
        _: &mut Vec<Term<f64>>,
        _: &mut StoredTrees<f64>,
    ) -> Result<Option<Tensor<f64>>, CoreError> {
        Ok(None)
    }
}
