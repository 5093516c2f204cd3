//! Measures how long products and sums of sparse operands take.
//!
//! ```text
//! cargo run --release -p decompose-core --example join_times -- THREADS ROUNDS FILE...
//! ```
//!
//! Of a matrix `A` that is the square `A A`, of every tensor the product of its elements with themselves, and the sum with
//! itself moved by one in the last mode, beside a copy of both lists.  Prints
//! `program,tensor,kernel,threads,seconds`, a line a round; what the first run takes does not count.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use decompose_core::autoschedule::{SearchLimits, default_scheduler, storages};
use decompose_core::contract::{Contraction, Request, ResultForm};
use decompose_core::cost::Machine;
use decompose_core::einsum::Expr;
use decompose_core::error::CoreError;
use decompose_core::runtime::Toolchain;
use decompose_formats::io::{self, Progress, ReadOptions, Source};
use decompose_formats::{Coo, Csf, Ints, ModeOrder, PatternCounts};
use rayon::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [threads, rounds, files @ ..] = words.as_slice() else {
        return Err("join_times THREADS ROUNDS FILE...".into());
    };
    let (threads, rounds) = (threads.parse()?, rounds.parse()?);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    for file in files {
        let read = io::read::<f64>(&Source::new(file), &ReadOptions::default(), &Progress::new());
        let mut list = read?.0;
        list.sum_duplicates()?;
        let letters: String = ('i'..).take(list.order()).collect();
        let same = format!("{letters},{letters}->{letters}");
        if list.order() == 2 {
            times((file, "square", "ij,jk->ik"), &list, (threads, rounds))?;
        }
        times((file, "elementwise", &same), &list, (threads, rounds))?;
        sum_times(file, &list, (threads, rounds))?;
    }
    Ok(())
}

/// Times `expr`, both of whose operands are `list`.
fn times(
    (file, kernel, expr): (&str, &str, &str),
    list: &Coo<f64>,
    (threads, rounds): (usize, usize),
) -> Result<(), Box<dyn Error>> {
    let expr: Expr = expr.parse()?;
    let counts = PatternCounts::of(list);
    let mut request = Request::joining(expr, &[(0, &counts), (1, &counts)], &[vec![], vec![]])?;
    request.result = ResultForm::Sparse;
    let base = request.problem_on(&[]);
    let machine = Machine { threads, ..Machine::here().clone() };
    let limits = SearchLimits::default();
    let found = default_scheduler().search_storages(&base, &storages(&base), &machine, &limits)?;
    let best = &found.candidates[0];
    let problem = best.problem(&base);
    let trees = problem.sparse.iter().map(|x| {
        let modes = &base.expr.inputs[x.input].indices;
        let order = x.levels().iter().filter_map(|level| modes.iter().position(|m| m == level));
        let order = ModeOrder::new(order.collect());
        let order = order.ok_or_else(|| CoreError::Internal("levels of other modes".into()))?;
        Ok(Arc::new(Csf::build(list.clone(), &order)?))
    });
    let trees = trees.collect::<Result<Vec<_>, CoreError>>()?;
    let schedule = &best.candidate.schedule;
    let mut kernel_of = Contraction::joining(&problem, schedule, trees, &Toolchain::detect())?;
    let mut out = std::io::stdout().lock();
    for round in 0..=rounds {
        let start = Instant::now();
        if kernel_of.is_assembled() {
            kernel_of.assemble(&[], u64::MAX)?;
        } else {
            let mut output = kernel_of.output()?;
            kernel_of.run(&[], &mut output)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        if round > 0 {
            writeln!(out, "decompose,{file},{kernel},{threads},{seconds:.5}")?;
        }
    }
    Ok(())
}

/// Times the sum of `list` and itself moved by one in the last mode, and a copy of both.
fn sum_times(
    file: &str,
    list: &Coo<f64>,
    (threads, rounds): (usize, usize),
) -> Result<(), Box<dyn Error>> {
    let (extents, mut coords, values) = list.clone().into_parts();
    if let (Some(last), Some(&extent)) = (coords.last_mut(), extents.last()) {
        *last = Ints::collect(last.iter().map(|at| (at + 1) % extent), last.width());
    }
    let mut moved = Coo::new(extents, coords, values)?;
    moved.sum_duplicates()?;
    let mut out = std::io::stdout().lock();
    for round in 0..=rounds {
        let (mut a, mut b) = (list.clone(), moved.clone());
        let kept = (a.share(), b.share());
        let start = Instant::now();
        let sum = a.plus(b)?;
        let seconds = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let copies = [copy(list), copy(&moved)];
        let copied = start.elapsed().as_secs_f64();
        if round > 0 {
            writeln!(out, "decompose,{file},sum,{threads},{seconds:.5}")?;
            writeln!(out, "copy,{file},sum,{threads},{copied:.5}")?;
        }
        drop((sum, copies, kept));
    }
    Ok(())
}

/// Copies the arrays of a list on all threads.
fn copy(list: &Coo<f64>) -> (Vec<Ints>, Vec<f64>) {
    let column = |mode: usize| match list.coords(mode) {
        Ints::U16(column) => Ints::from(column.par_iter().copied().collect::<Vec<u16>>()),
        Ints::U32(column) => Ints::from(column.par_iter().copied().collect::<Vec<u32>>()),
        Ints::U64(column) => Ints::from(column.par_iter().copied().collect::<Vec<u64>>()),
    };
    let coords = (0..list.order()).map(column).collect();
    (coords, list.values().par_iter().copied().collect())
}
