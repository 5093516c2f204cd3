//! Measures how good the choices of the schedulers are: each kernel on matrices of several kinds, with every loop order.
//!
//! ```text
//! cargo run --release -p decompose-core --example schedule_choices -- THREADS ROWS ROUNDS [KERNEL...]
//! ```
//!
//! Kernels are spmv, spmm, sddmm and spmspm, the product of two sparse matrices with a sparse result; all unless some
//! are named.  The matrices have up to `ROWS` rows.  Prints `kernel,matrix,nonzeros,order,seconds,schedulers,search_us`: the median seconds of a loop order and
//! which schedulers choose it.  An order that takes over a hundred times the seconds of the best is run once.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use decompose_core::autoschedule::{
    LevelOrder, SCHEDULERS, SearchLimits, Storage, finish, storages,
};
use decompose_core::contract::{Contraction, Request, ResultForm, count_join};
use decompose_core::cost::Machine;
use decompose_core::einsum::{Expr, Index};
use decompose_core::nest::Forest;
use decompose_core::path::unfactorised;
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::{Problem, Schedule};
use decompose_formats::mix::mix;
use decompose_formats::{Coo, Csf, Matrix, ModeOrder, PatternCounts};

/// Extent of the index of dense operands.
const COLUMNS: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [threads, rows, rounds, kernels @ ..] = words.as_slice() else {
        return Err("schedule_choices THREADS ROWS ROUNDS [KERNEL...]".into());
    };
    let (threads, rows, rounds) = (threads.parse()?, rows.parse()?, rounds.parse()?);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    writeln!(std::io::stdout(), "kernel,matrix,nonzeros,order,seconds,schedulers,search_us")?;
    for (name, matrix) in matrices(rows)? {
        for (kernel, expr, sparse) in [
            ("spmv", "ij,j->i", 1),
            ("spmm", "ij,jr->ir", 1),
            ("sddmm", "ij,ir,rj->ij", 1),
            ("spmspm", "ij,jk->ik", 2),
        ] {
            if !kernels.is_empty() && !kernels.iter().any(|name| name == kernel) {
                continue;
            }
            let case = Case::new(expr, &matrix, sparse)?;
            case.measure((kernel, &name), (threads, rounds))?;
        }
    }
    Ok(())
}

/// A matrix with its name.
type Named = (String, Coo<f64>);

/// The column of a non-zero, by row and number in it.
type Column<'a> = &'a dyn Fn(u64, u64) -> u64;

/// Makes four matrices each of five kinds.
fn matrices(rows: u64) -> Result<Vec<Named>, Box<dyn Error>> {
    let mut all = Vec::new();
    for (size, each) in [(rows / 8, 4), (rows / 4, 8), (rows / 2, 16), (rows, 8)] {
        let even = |row: u64, at: u64| mix(row * 1024 + at) % size;
        // The square of an even number has its mass at the low columns.
        let skewed = |row: u64, at: u64| even(row, at) * even(row, at) / size;
        let kinds: [(&str, Column<'_>); 5] = [
            ("even", &even),
            ("skewed", &skewed),
            ("band", &|row, at| (row + at) % size),
            ("blocks", &|row, at| row / 32 * 32 % size.saturating_sub(32).max(1) + at),
            ("columns", &|row, at| even(row, at) % 64 * (size / 64)),
        ];
        for (kind, column) in kinds {
            let mut places: Vec<(u32, u32)> = (0..size)
                .flat_map(|row| (0..each).map(move |at| (row, at)))
                .map(|(row, at)| (row as u32, (column(row, at) % size) as u32))
                .collect();
            places.sort_unstable();
            places.dedup();
            let (a, b): (Vec<u32>, Vec<u32>) = places.into_iter().unzip();
            let values: Vec<f64> = (0..a.len()).map(|at| 1.0 + (at % 7) as f64).collect();
            let mut list = Coo::new(vec![size, size], vec![a.into(), b.into()], values)?;
            list.sum_duplicates()?;
            all.push((format!("{kind}-{size}-{each}"), list));
        }
    }
    Ok(all)
}

/// A kernel on one matrix, which all its sparse operands are.
struct Case<'a> {
    matrix: &'a Coo<f64>,
    request: Request,
}

/// A loop order with the problem that it is a schedule of.
struct Variant {
    order: Vec<Index>,
    problem: Problem,
    schedule: Schedule,
}

impl<'a> Case<'a> {
    fn new(expr: &str, matrix: &'a Coo<f64>, sparse: usize) -> Result<Case<'a>, Box<dyn Error>> {
        let expr: Expr = expr.parse()?;
        let counts = PatternCounts::of(matrix);
        let counted: Vec<(usize, &PatternCounts)> = (0..sparse).map(|at| (at, &counts)).collect();
        let size = matrix.extents()[0];
        let extent = |index: &Index| if index.letter() == 'r' { COLUMNS } else { size };
        let shape = |input: usize| expr.inputs[input].indices.iter().map(extent).collect();
        let shapes: Vec<Vec<u64>> = (0..expr.inputs.len()).map(shape).collect();
        let mut request = Request::joining(expr, &counted, &shapes)?;
        if let [first, second] = request.expr.inputs.as_slice()
            && sparse == 2
        {
            request.result = ResultForm::Sparse;
            let output = request.expr.output.set();
            request.join = Some(count_join((first, matrix), (second, matrix), output));
        }
        Ok(Case { matrix, request })
    }

    fn measure(
        &self,
        (kernel, name): (&str, &str),
        (threads, rounds): (usize, usize),
    ) -> Result<(), Box<dyn Error>> {
        let base = self.request.problem_on(&[]);
        let machine = Machine { threads, ..Machine::here().clone() };
        let mut chosen = Vec::new();
        for scheduler in SCHEDULERS {
            let start = Instant::now();
            let (stored, limits) = (storages(&base), SearchLimits::default());
            let found = scheduler.search_storages(&base, &stored, &machine, &limits)?;
            let micros = start.elapsed().as_secs_f64() * 1e6;
            let best = &found.candidates[0];
            let orders =
                best.candidate.schedule.nest.orders(best.candidate.schedule.path.terms.len());
            let order = orders.and_then(|orders| orders.last().cloned()).unwrap_or_default();
            let schedule = best.candidate.schedule.clone();
            chosen.push((scheduler.name(), micros, order, best.storage.problem(&base), schedule));
        }
        let mut variants = self.variants(&base, &machine);
        for (_, _, order, problem, schedule) in &chosen {
            if !variants.iter().any(|variant| variant.schedule == *schedule) {
                let (order, problem) = (order.clone(), problem.clone());
                variants.push(Variant { order, problem, schedule: schedule.clone() });
            }
        }
        let mut best = f64::INFINITY;
        for variant in &variants {
            let seconds = self.seconds(variant, rounds, best)?;
            best = best.min(seconds);
            let by: Vec<(&str, f64)> = chosen
                .iter()
                .filter(|(_, _, _, _, schedule)| *schedule == variant.schedule)
                .map(|(name, micros, ..)| (*name, *micros))
                .collect();
            let names: Vec<&str> = by.iter().map(|(name, _)| *name).collect();
            let micros: Vec<String> = by.iter().map(|(_, micros)| format!("{micros:.0}")).collect();
            let order: String = variant.order.iter().map(|index| index.letter()).collect();
            let nnz = self.matrix.nnz();
            writeln!(
                std::io::stdout(),
                "{kernel},{name},{nnz},{order},{seconds:.3e},{},{}",
                names.join("+"),
                micros.join("+")
            )?;
        }
        Ok(())
    }

    /// Returns every loop order that is legal with all levels following it.
    fn variants(&self, base: &Problem, machine: &Machine) -> Vec<Variant> {
        let all: Vec<Index> = base.expr.all().iter().collect();
        let mut orders = vec![Vec::new()];
        for _ in 0..all.len() {
            let longer = |order: Vec<Index>| {
                let rest: Vec<Index> =
                    all.iter().copied().filter(|index| !order.contains(index)).collect();
                rest.into_iter().map(move |index| [order.as_slice(), &[index]].concat())
            };
            orders = orders.into_iter().flat_map(longer).collect();
        }
        let variant = |order: Vec<Index>| {
            let operand = |input: usize| {
                let own = &base.expr.inputs[input].indices;
                let levels = order.iter().copied().filter(|index| own.contains(index)).collect();
                (input, LevelOrder { levels, fused: 1 })
            };
            let operands = base.sparse.iter().map(|x| operand(x.input)).collect();
            let problem = Storage { operands }.problem(base);
            let nest = Forest::fused(std::slice::from_ref(&order));
            let schedule = finish(&problem, unfactorised(&problem.expr), nest, machine);
            schedule.verify(&problem).is_ok().then_some(Variant { order, problem, schedule })
        };
        orders.into_iter().filter_map(variant).collect()
    }

    /// Returns the median seconds of `rounds` runs; of an order that is a hundred times slower than `best`, those of one.
    fn seconds(&self, variant: &Variant, rounds: usize, best: f64) -> Result<f64, Box<dyn Error>> {
        let mut trees = Vec::new();
        for x in &variant.problem.sparse {
            let indices = &variant.problem.expr.inputs[x.input].indices;
            let mode = |level| indices.iter().position(|index| index == level);
            let modes: Option<Vec<usize>> = x.levels.iter().map(mode).collect();
            let order = modes.and_then(ModeOrder::new).ok_or("an order of modes")?;
            trees.push(Arc::new(Csf::build(self.matrix.clone(), &order)?.fuse(x.fused)));
        }
        let toolchain = Toolchain::detect();
        let (problem, schedule) = (&variant.problem, &variant.schedule);
        let mut contraction = Contraction::joining(problem, schedule, trees, &toolchain)?;
        let program = contraction.kernel().program();
        let dense: Vec<Matrix<f64>> = program
            .dense
            .iter()
            .map(|array| {
                let cols = array.extents.last().copied().unwrap_or(1) as usize;
                let rows = array.extents.iter().product::<u64>() as usize / cols.max(1);
                let mut matrix = Matrix::zeros(rows, cols)?;
                (0..rows).for_each(|row| matrix.row_mut(row).fill(1.0 + (row % 5) as f64));
                Ok(matrix)
            })
            .collect::<Result<_, decompose_formats::FormatError>>()?;
        let dense: Vec<&Matrix<f64>> = dense.iter().collect();
        let mut times = Vec::new();
        for _ in 0..=rounds {
            let start = Instant::now();
            if contraction.is_assembled() {
                drop(contraction.assemble(&dense, u64::MAX)?);
            } else {
                let mut output = contraction.output()?;
                contraction.run(&dense, &mut output)?;
            }
            let seconds = start.elapsed().as_secs_f64();
            times.push(seconds);
            if seconds > 100.0 * best {
                return Ok(seconds);
            }
        }
        // What the first run takes does not count.
        let mut times = times.split_off(1);
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }
}
