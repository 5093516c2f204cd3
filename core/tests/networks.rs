//! Random networks of sparse tensors, scheduled by constraints and interpreted, against the dense oracle.
//!
//! A case is a number.  `DECOMPOSE_CASES` sets how many are tried.

use decompose_core::autoschedule::constraints::explain;
use decompose_core::autoschedule::{SearchLimits, scheduler};
use decompose_core::compute::run;
use decompose_core::contract::{Planned, Request, ResultForm};
use decompose_core::cost::Family;
use decompose_core::einsum::{Expr, oracle};
use decompose_core::runtime::Toolchain;
use decompose_formats::{Coo, DenseTensor, Matrix, PatternCounts};
use ndarray::IxDyn;

/// Cases tried unless `DECOMPOSE_CASES` says otherwise.
const CASES: u64 = 500;

/// Relative to the same expression on absolute values: sums of products whose order differs.
const TOLERANCE: f64 = 1e-12;

/// Choices of a loop in a search.
const WORK: u64 = 4_000;

/// A generator of numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    /// A number between -1 and 1.
    fn real(&mut self) -> f64 {
        self.below(2_000_001) as f64 / 1e6 - 1.0
    }
}

/// A network: its operands, the first ones sparse.
struct Network {
    expr: Expr,
    lists: Vec<Coo<f64>>,
    arrays: Vec<DenseTensor<f64>>,
    result: ResultForm,
}

impl Network {
    /// Draws two to five sparse tensors, of which some are the same, and up to one dense one.
    fn new(seed: u64) -> Network {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x51ab);
        let sparse = 2 + draw.below(4);
        let letters = &"ijklm"[..2 + draw.below(if sparse == 5 { 3 } else { 4 })];
        let extent = 2 + draw.below(if letters.len() > 4 { 3 } else { 4 }) as u64;
        let mut inputs: Vec<String> = Vec::new();
        let mut lists: Vec<Coo<f64>> = Vec::new();
        for at in 0..sparse {
            let mut rest: Vec<char> = letters.chars().collect();
            let order = 1 + draw.below(letters.len().min(3));
            let own: Vec<String> =
                (0..order).map(|_| rest.remove(draw.below(rest.len())).to_string()).collect();
            // An earlier tensor once more, if it is of this order.
            let again = (0..at).find(|&earlier| lists[earlier].order() == order);
            let again = again.filter(|_| draw.below(2) == 0);
            let name = again.map_or_else(
                || format!("X{at}"),
                |earlier| inputs[earlier].split('(').next().expect("a name").to_owned(),
            );
            inputs.push(format!("{name}({})", own.join(",")));
            lists
                .push(again.map_or_else(|| list(extent, order, &mut draw), |at| lists[at].clone()));
        }
        let mut arrays = Vec::new();
        if draw.below(3) == 0 {
            let index = letters.chars().nth(draw.below(letters.len())).expect("a letter");
            inputs.push(format!("B({index},r)"));
            let shape = [extent as usize, 3];
            arrays.push(DenseTensor::from_shape_fn(IxDyn(&shape), |_| draw.real()));
        }
        let used = |letter: &char| inputs.iter().any(|input| input[1..].contains(*letter));
        let kept = letters.chars().chain(['r']).filter(used).filter(|_| draw.below(2) == 0);
        let kept: Vec<String> = kept.map(String::from).collect();
        let text = format!("R({}) = {}", kept.join(","), inputs.join(" * "));
        let result = [ResultForm::Dense, ResultForm::Sparse][draw.below(2)];
        Network { expr: text.parse().expect("an expression"), lists, arrays, result }
    }

    /// Computes it by a schedule of `const`; returns that with the result, written out.
    fn compute(&self, seed: u64) -> (String, DenseTensor<f64>) {
        let counts: Vec<PatternCounts> = self.lists.iter().map(PatternCounts::of).collect();
        let counted: Vec<(usize, &PatternCounts)> = counts.iter().enumerate().collect();
        let shapes: Vec<Vec<u64>> = self
            .lists
            .iter()
            .map(|list| list.extents().to_vec())
            .chain(self.arrays.iter().map(|x| x.shape().iter().map(|&n| n as u64).collect()))
            .collect();
        let mut request =
            Request::joining(self.expr.clone(), &counted, &shapes).expect("a request");
        request.result = self.result;
        let base = request.problem_on(&[]);
        let limits = SearchLimits { max_work: WORK, ..SearchLimits::default() };
        let one = scheduler("const").expect("a scheduler");
        let found = one.search_any_storage(&base, &Family::Zen.machine(), &limits);
        let mut found = found.unwrap_or_else(|why| panic!("case {seed}, {}: {why}", self.expr));
        // Not always the best.
        let chosen = (seed as usize / 2) % found.candidates.len();
        let planned = Planned::of(&base, found.candidates.swap_remove(chosen));
        let text = planned.schedule.text(&self.expr);
        if let Some(explained) = explain(&planned.problem, &planned.schedule) {
            assert_eq!(explained.system.check(&explained.solution), Ok(()), "case {seed}: {text}");
        }
        let lists = self.lists.iter().cloned().enumerate().collect();
        let mut contraction = planned
            .build(lists, &Toolchain::Interpreter("asked for".into()))
            .unwrap_or_else(|why| panic!("case {seed}, {why}: {text}"));
        let pack = |(at, array)| contraction.pack(at, array).expect("packed");
        let packed: Vec<Matrix<f64>> = self.arrays.iter().enumerate().map(pack).collect();
        let packed: Vec<&Matrix<f64>> = packed.iter().collect();
        let result = run(&mut contraction, &packed, u64::MAX);
        (
            text.clone(),
            result.unwrap_or_else(|why| panic!("case {seed}, {why}: {text}")).into_dense(),
        )
    }
}

/// A list of the given order, of a third of all cells or so.
fn list(extent: u64, order: usize, draw: &mut Draw) -> Coo<f64> {
    let cells = extent.pow(order as u32) as usize;
    let mut coords = vec![Vec::new(); order];
    for _ in 0..1 + draw.below(cells.div_ceil(2)) {
        coords.iter_mut().for_each(|column| column.push(draw.below(extent as usize) as u32));
    }
    let values: Vec<f64> = coords[0].iter().map(|_| draw.real()).collect();
    let coords = coords.into_iter().map(Into::into).collect();
    let mut list = Coo::new(vec![extent; order], coords, values).expect("a tensor");
    list.sum_duplicates().expect("merged");
    list
}

/// Writes a list out.
fn dense(list: &Coo<f64>) -> DenseTensor<f64> {
    let shape: Vec<usize> = list.extents().iter().map(|&extent| extent as usize).collect();
    let mut dense = DenseTensor::zeros(IxDyn(&shape));
    for (entry, &value) in list.values().iter().enumerate() {
        let at = (0..list.order()).map(|mode| list.coords(mode).get(entry) as usize);
        dense[IxDyn(&at.collect::<Vec<_>>())] = value;
    }
    dense
}

#[test]
fn random_networks_agree_with_the_oracle() {
    let cases = std::env::var("DECOMPOSE_CASES").map_or(CASES, |n| n.parse().expect("a number"));
    let (mut several, mut repeated) = (0, 0);
    for seed in 0..cases {
        let network = Network::new(seed);
        let operands: Vec<DenseTensor<f64>> =
            network.lists.iter().map(dense).chain(network.arrays.iter().cloned()).collect();
        let want = oracle::evaluate(&network.expr, &operands);
        let sizes: Vec<DenseTensor<f64>> = operands.iter().map(|x| x.mapv(f64::abs)).collect();
        let scale = oracle::evaluate(&network.expr, &sizes);
        let (text, have) = network.compute(seed);
        assert_eq!(have.shape(), want.shape(), "case {seed}: {text}");
        for ((have, want), scale) in have.iter().zip(&want).zip(&scale) {
            let close = (have - want).abs() <= TOLERANCE * scale;
            assert!(close, "case {seed}, {}: {have} for {want}\n{text}", network.expr);
        }
        several += usize::from(network.lists.len() > 3);
        let names: std::collections::BTreeSet<&str> =
            network.expr.inputs.iter().map(|access| access.tensor.as_str()).collect();
        repeated += usize::from(names.len() < network.expr.inputs.len());
    }
    let cases = cases as usize;
    assert!(several > cases / 4 && repeated > cases / 4, "{several} of four and five, {repeated}");
}
