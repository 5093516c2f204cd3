//! Random expressions with tensors and legal schedules.
#![allow(dead_code, reason = "every suite uses a part")]

mod draw;
mod schedules;

use std::fmt;

use decompose_core::autoschedule::{Scheduler, Storage, default_scheduler};
use decompose_core::contract::ResultForm;
use decompose_core::cost::Family;
use decompose_core::einsum::{Access, Expr, Index, IndexSet};
use decompose_core::schedule::{
    Format, OutputForm, Pattern, Problem, Schedule, SparseOperand, Split,
};
use decompose_core::sweep::TreeLayout;
use decompose_formats::{Coo, DenseTensor, ModeOrder, PatternCounts};
use ndarray::IxDyn;

use draw::Draw;
use schedules::{joined_lines, position_cuts, schedule_lines, splits, with_splits, with_storage};

/// The indices of the sparse operand, and those that only dense ones have.
const SPARSE: [char; 4] = ['i', 'j', 'k', 'l'];
const DENSE: [char; 3] = ['r', 's', 't'];

/// The dense oracle runs through every combination of indices; no more than these.
const MOST_COMBINATIONS: u64 = 40_000;

/// The most indices of a long expression with an extent of 2.
const LONG_INDICES: usize = 9;

/// An expression with its operands and a schedule.
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) expr: Expr,
    /// How indices are cut; trees and the schedule are over the parts.
    pub(crate) splits: Vec<Split>,
    /// How positions of the first tree are cut.
    pub(crate) pieces: Vec<Split>,
    pub(crate) sparse: Coo<f64>,
    /// The other sparse operands, which follow the first among the inputs, with the orders of their levels.
    pub(crate) beside: Vec<(Coo<f64>, ModeOrder)>,
    pub(crate) dense: Vec<DenseTensor<f64>>,
    pub(crate) tree: TreeLayout,
    pub(crate) schedule: Schedule,
    /// How the output is wanted.
    pub(crate) result: ResultForm,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents = self.sparse.extents();
        writeln!(f, "case {}: {} with X {extents:?} as {}", self.seed, self.expr, self.tree)?;
        f.write_str(&self.schedule.text(&self.expr))
    }
}

impl Case {
    /// Makes case number `seed`.
    pub(crate) fn new(seed: u64) -> Case {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        loop {
            let (expr, extents) = expression(&mut draw);
            let combinations: u64 = expr.all().iter().map(|i| extents[i.number()]).product();
            if combinations <= MOST_COMBINATIONS {
                return Case::of(seed, expr, &extents, &mut draw);
            }
        }
    }

    /// Makes case number `seed` of an expression of 9 to 25 operands, with the schedule that is searched for it.
    pub(crate) fn of_many_operands(seed: u64) -> Case {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xabcd);
        let (expr, extents) = long_expression(&mut draw);
        let shape = |access: &Access| {
            access.indices.iter().map(|i| extents[i.number()]).collect::<Vec<_>>()
        };
        let sparse = sparse_tensor(&shape(&expr.inputs[0]), &mut draw);
        let dense = dense_operands(&expr.inputs[1..], &extents, &mut draw);
        let order = expr.inputs[0].indices.len();
        let order = ModeOrder::new(draw.shuffled((0..order).collect())).expect("an order");
        let fused = 1 + draw.below(2) as usize * usize::from(order.modes().len() > 2);
        let mut bounded = problem(&expr, &extents, &order, fused);
        (bounded.max_buffer_dims, bounded.max_buffer_bytes) = (1 + draw.below(3) as usize, 64);
        let found = default_scheduler().search(&bounded, &Family::Zen.machine());
        let found = found.unwrap_or_else(|error| panic!("case {seed}: {error}"));
        for candidate in &found.candidates {
            candidate.schedule.verify(&bounded).expect("a legal schedule");
        }
        let chosen = draw.below(found.candidates.len() as u64) as usize;
        let schedule = found.candidates[chosen].schedule.clone();
        Case {
            seed,
            expr,
            splits: Vec::new(),
            pieces: Vec::new(),
            sparse,
            beside: Vec::new(),
            dense,
            tree: TreeLayout::new(order, fused),
            schedule,
            result: ResultForm::Dense,
        }
    }

    /// Makes case number `seed` with one to four sparse operands.
    pub(crate) fn of_several_sparse(seed: u64) -> Case {
        Case::of_sparse(seed, None)
    }

    /// Makes case number `seed` with a schedule that `scheduler` finds.
    pub(crate) fn searched(seed: u64, scheduler: &dyn Scheduler) -> Case {
        Case::of_sparse(seed, Some(scheduler))
    }

    fn of_sparse(seed: u64, scheduler: Option<&dyn Scheduler>) -> Case {
        let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5ba5);
        loop {
            let count = 1 + draw.below(4) as usize;
            let (expr, extents) = joined_expression(count, &mut draw);
            let combinations: u64 = expr.all().iter().map(|i| extents[i.number()]).product();
            if combinations <= MOST_COMBINATIONS {
                return Case::joined((seed, count, scheduler), expr, &extents, &mut draw);
            }
        }
    }

    fn joined(
        (seed, count, scheduler): (u64, usize, Option<&dyn Scheduler>),
        expr: Expr,
        extents: &[u64; Index::COUNT],
        draw: &mut Draw,
    ) -> Case {
        let shape = |access: &Access| {
            access.indices.iter().map(|i| extents[i.number()]).collect::<Vec<_>>()
        };
        let mut lists: Vec<Coo<f64>> =
            expr.inputs[..count].iter().map(|access| sparse_tensor(&shape(access), draw)).collect();
        let dense = dense_operands(&expr.inputs[count..], extents, draw);
        let splits = splits(&expr, extents, draw);
        let whole = expr;
        let natural: Vec<ModeOrder> =
            whole.inputs[..count].iter().map(|x| ModeOrder::natural(x.indices.len())).collect();
        let base = joined_problem(&whole, extents, &natural);
        let base = counted(base, &lists).split(&splits).expect("legal splits");
        let expr = &base.expr;
        // After a few tries all levels and loops follow one order of the indices.
        for attempt in 0..400 {
            let all = draw.shuffled(expr.all().iter().collect::<Vec<_>>());
            let orders: Vec<ModeOrder> = expr.inputs[..count]
                .iter()
                .map(|access| {
                    let modes = draw.shuffled((0..access.indices.len()).collect::<Vec<_>>());
                    let mut modes = modes;
                    if attempt % 2 == 1 {
                        let place =
                            |mode: &usize| all.iter().position(|i| *i == access.indices[*mode]);
                        modes.sort_by_key(place);
                    }
                    ModeOrder::new(modes).expect("an order")
                })
                .collect();
            let global = if attempt > 20 { Some(&all[..]) } else { None };
            let mut problem = stored_as(&base, &orders);
            let assembles = draw.below(2) == 0 && !expr.output.indices.is_empty();
            let result = if assembles { ResultForm::Sparse } else { ResultForm::Dense };
            if assembles && !problem.has_pattern_output() {
                problem.output = OutputForm::Assembled;
            }
            let mut pieces = Vec::new();
            let drawn = match scheduler {
                Some(scheduler) => searched(scheduler, &problem, draw),
                None => {
                    pieces = position_cuts(&problem, draw);
                    problem = problem.split(&pieces).expect("legal pieces");
                    let lines = joined_lines(&problem, global, draw);
                    let all = [&splits[..], &pieces].concat();
                    let lines = with_splits((&whole, &all), &lines);
                    let schedule = Schedule::parse(&lines, &whole).expect("a schedule");
                    let legal = schedule.verify(&problem).is_ok();
                    legal.then(|| with_storage(schedule, &problem, draw))
                }
            };
            if let Some(schedule) = drawn {
                let sparse = lists.remove(0);
                let tree = TreeLayout::new(orders[0].clone(), 1);
                let beside = lists.into_iter().zip(orders.into_iter().skip(1)).collect();
                let expr = whole;
                return Case {
                    seed,
                    expr,
                    splits,
                    pieces,
                    sparse,
                    beside,
                    dense,
                    tree,
                    schedule,
                    result,
                };
            }
        }
        panic!("case {seed}: no legal schedule for {expr}");
    }

    fn of(seed: u64, expr: Expr, extents: &[u64; Index::COUNT], draw: &mut Draw) -> Case {
        let shape = |access: &Access| {
            access.indices.iter().map(|i| extents[i.number()]).collect::<Vec<_>>()
        };
        let sparse = sparse_tensor(&shape(&expr.inputs[0]), draw);
        let dense = dense_operands(&expr.inputs[1..], extents, draw);
        let natural = ModeOrder::natural(expr.inputs[0].indices.len());
        let splits = splits(&expr, extents, draw);
        let whole = expr;
        let base = problem(&whole, extents, &natural, 1);
        let base = counted(base, std::slice::from_ref(&sparse)).split(&splits);
        let base = base.expect("legal splits");
        let expr = &base.expr;
        let order = expr.inputs[0].indices.len();
        let modes = draw.shuffled((0..order).collect());
        let fused = if order > 2 { 1 + draw.below(order as u64 - 1) as usize } else { 1 };
        let order = ModeOrder::new(modes).expect("an order");
        // Fused levels forbid many nests: after a few tries the tree is plain.
        for fused in [fused; 8].into_iter().chain([1; 8]) {
            let stored = TreeLayout::new(order.clone(), fused);
            let problem = stored_as_trees(&base, &[stored]);
            let pieces = position_cuts(&problem, draw);
            let problem = problem.split(&pieces).expect("legal pieces");
            let all = [&splits[..], &pieces].concat();
            let lines = with_splits((&whole, &all), &schedule_lines(&problem, draw));
            let schedule = Schedule::parse(&lines, &whole).expect("a schedule");
            if schedule.verify(&problem).is_ok() {
                let schedule = with_storage(schedule, &problem, draw);
                let tree = TreeLayout::new(order, fused);
                let beside = Vec::new();
                let result = ResultForm::Dense;
                let expr = whole;
                return Case {
                    seed,
                    expr,
                    splits,
                    pieces,
                    sparse,
                    beside,
                    dense,
                    tree,
                    schedule,
                    result,
                };
            }
        }
        panic!("case {seed}: no legal schedule for {expr}");
    }
}

/// Returns `problem` with what is counted of its sparse operands.
fn counted(mut problem: Problem, lists: &[Coo<f64>]) -> Problem {
    for (x, list) in problem.sparse.iter_mut().zip(lists) {
        let indices = &problem.expr.inputs[x.input].indices;
        x.pattern = Pattern::of(&PatternCounts::of(list), indices);
    }
    problem
}

/// Draws dense operands.
fn dense_operands(
    accesses: &[Access],
    extents: &[u64; Index::COUNT],
    draw: &mut Draw,
) -> Vec<DenseTensor<f64>> {
    let one = |access: &Access| {
        let shape: Vec<usize> =
            access.indices.iter().map(|i| extents[i.number()] as usize).collect();
        DenseTensor::from_shape_fn(IxDyn(&shape), |_| draw.real())
    };
    accesses.iter().map(one).collect()
}

/// Returns one of the schedules that `scheduler` finds, if there is any on these levels.
fn searched(scheduler: &dyn Scheduler, problem: &Problem, draw: &mut Draw) -> Option<Schedule> {
    let found = scheduler.search(problem, &Family::Zen.machine()).ok()?;
    for candidate in &found.candidates {
        candidate.schedule.verify(problem).expect("a legal schedule");
    }
    let chosen = draw.below(found.candidates.len() as u64) as usize;
    Some(found.candidates[chosen].schedule.clone())
}

fn problem(expr: &Expr, extents: &[u64; Index::COUNT], order: &ModeOrder, fused: usize) -> Problem {
    let levels = order.modes().iter().map(|&mode| expr.inputs[0].indices[mode]).collect();
    let extents = expr.all().iter().map(|index| (index, extents[index.number()])).collect();
    let sparse = SparseOperand {
        input: 0,
        format: Format::with_fused(levels, fused),
        pattern: Pattern::default(),
    };
    unbounded(Problem::new(expr.clone(), extents, sparse))
}

/// Poses `expr` with its first inputs sparse, stored in `orders`.
fn joined_problem(expr: &Expr, extents: &[u64; Index::COUNT], orders: &[ModeOrder]) -> Problem {
    let extents = expr.all().iter().map(|index| (index, extents[index.number()])).collect();
    let sparse = orders.iter().enumerate().map(|(input, order)| {
        let indices = &expr.inputs[input].indices;
        let levels = order.modes().iter().map(|&mode| indices[mode]).collect();
        SparseOperand { input, format: Format::csf(levels), pattern: Pattern::default() }
    });
    unbounded(Problem::joining(expr.clone(), extents, sparse.collect()))
}

/// Returns `base` with its sparse operands stored in `orders`.
fn stored_as(base: &Problem, orders: &[ModeOrder]) -> Problem {
    let trees: Vec<TreeLayout> =
        orders.iter().map(|order| TreeLayout::new(order.clone(), 1)).collect();
    stored_as_trees(base, &trees)
}

/// Returns `base` with its sparse operands stored as `trees`.
pub(crate) fn stored_as_trees(base: &Problem, trees: &[TreeLayout]) -> Problem {
    let operands = base.sparse.iter().zip(trees).map(|(x, tree)| {
        let indices = &base.expr.inputs[x.input].indices;
        (x.input, tree.format(indices))
    });
    unbounded(Storage { operands: operands.collect() }.problem(base))
}

/// Lifts the bounds on buffers.
pub(crate) fn unbounded(problem: Problem) -> Problem {
    Problem { max_buffer_dims: usize::MAX, max_buffer_bytes: u64::MAX, ..problem }
}

/// Writes a list out as a dense tensor.
pub(crate) fn dense(coo: &Coo<f64>) -> DenseTensor<f64> {
    let shape: Vec<usize> = coo.extents().iter().map(|&extent| extent as usize).collect();
    let mut dense = DenseTensor::zeros(IxDyn(&shape));
    for (entry, &value) in coo.values().iter().enumerate() {
        let at = (0..coo.order()).map(|mode| coo.coords(mode).get(entry) as usize);
        dense[IxDyn(&at.collect::<Vec<_>>())] = value;
    }
    dense
}

fn expression(draw: &mut Draw) -> (Expr, [u64; Index::COUNT]) {
    let order = 1 + draw.below(4) as usize;
    let sparse = &SPARSE[..order];
    let dense = &DENSE[..draw.below(4) as usize];
    let mut extents = [0; Index::COUNT];
    for &letter in sparse {
        extents[index(letter).number()] = 1 + draw.below(6);
    }
    for &letter in dense {
        extents[index(letter).number()] = [1, 2, 3, 5, 8, 9, 17][draw.below(7) as usize];
    }
    let all: Vec<char> = sparse.iter().chain(dense).copied().collect();
    let names = ["A", "B", "r", "A", "T1", "for"];
    let access = |tensor: &str, letters: &[char]| Access {
        tensor: tensor.to_owned(),
        indices: letters.iter().map(|&letter| index(letter)).collect(),
    };
    let letters = draw.shuffled(sparse.to_vec());
    let mut inputs = vec![access("X", &letters)];
    for _ in 0..draw.below(5) {
        let name = names[draw.below(6) as usize];
        let count = draw.below(1 + all.len().min(3) as u64) as usize;
        inputs.push(access(name, &draw.shuffled(all.clone())[..count]));
    }
    let used = inputs.iter().fold(IndexSet::EMPTY, |set, access| set | access.set());
    let kept: Vec<char> = used.iter().map(Index::letter).filter(|_| draw.below(2) == 0).collect();
    let kept = if draw.below(6) == 0 { [&kept[..], sparse].concat() } else { kept };
    let mut kept = draw.shuffled(kept);
    kept.sort_by_key(|letter| !sparse.contains(letter));
    kept.dedup();
    let mut once = Vec::new();
    for letter in if draw.below(2) == 0 { draw.shuffled(kept.clone()) } else { kept } {
        if !once.contains(&letter) {
            once.push(letter);
        }
    }
    (Expr { output: access("Y", &once), inputs }, extents)
}

/// An expression whose first `count` operands are sparse.
fn joined_expression(count: usize, draw: &mut Draw) -> (Expr, [u64; Index::COUNT]) {
    let mut extents = [0; Index::COUNT];
    let all: Vec<char> = ['i', 'j', 'k', 'l', 'm'][..1 + draw.below(5) as usize].to_vec();
    for &letter in &all {
        extents[index(letter).number()] = 1 + draw.below(7);
    }
    extents[index('r').number()] = [1, 3, 8, 17][draw.below(4) as usize];
    let access = |tensor: String, letters: &[char]| Access {
        tensor,
        indices: letters.iter().map(|&letter| index(letter)).collect(),
    };
    let mut inputs = Vec::new();
    for at in 0..count {
        let modes = 1 + draw.below(all.len().min(4) as u64) as usize;
        inputs.push(access(format!("X{at}"), &draw.shuffled(all.clone())[..modes]));
    }
    let letters: Vec<char> = all.iter().copied().chain(['r']).collect();
    for at in 0..draw.below(3) {
        let modes = draw.below(3) as usize;
        inputs.push(access(
            format!("B{at}"),
            &draw.shuffled(letters.clone())[..modes.min(letters.len())],
        ));
    }
    let used = inputs.iter().fold(IndexSet::EMPTY, |set, access| set | access.set());
    let kept: Vec<char> = used.iter().map(Index::letter).filter(|_| draw.below(2) == 0).collect();
    (Expr { output: access("Y".into(), &draw.shuffled(kept)), inputs }, extents)
}

/// An expression of 9 to 25 operands over up to 24 indices, most of extent 1.
fn long_expression(draw: &mut Draw) -> (Expr, [u64; Index::COUNT]) {
    let sparse: Vec<char> = ('a'..='l').take(2 + draw.below(11) as usize).collect();
    let dense: Vec<char> = ('A'..='L').take(draw.below(13) as usize).collect();
    let all: Vec<char> = sparse.iter().chain(&dense).copied().collect();
    let mut extents = [1; Index::COUNT];
    for &letter in draw.shuffled(all.clone()).iter().take(LONG_INDICES) {
        extents[index(letter).number()] = 2;
    }
    let access = |tensor: String, letters: &[char]| Access {
        tensor,
        indices: letters.iter().map(|&letter| index(letter)).collect(),
    };
    let mut inputs = vec![access("X".into(), &draw.shuffled(sparse))];
    for at in 0..8 + draw.below(17) {
        let count = draw.below(4) as usize;
        inputs.push(access(format!("B{at}"), &draw.shuffled(all.clone())[..count.min(all.len())]));
    }
    let used = inputs.iter().fold(IndexSet::EMPTY, |set, access| set | access.set());
    let share = 1 + draw.below(4);
    let kept: Vec<char> =
        used.iter().map(Index::letter).filter(|_| draw.below(4) < share).collect();
    (Expr { output: access("Y".into(), &draw.shuffled(kept)), inputs }, extents)
}

fn sparse_tensor(extents: &[u64], draw: &mut Draw) -> Coo<f64> {
    let cells: u64 = extents.iter().product();
    let nnz = 1 + draw.below(cells.min(40));
    let mut coords = vec![Vec::new(); extents.len()];
    // In every fourth tensor the fibres of one mode are full.
    let full = draw.below(extents.len() as u64) as usize;
    let copies = if draw.below(4) == 0 { extents[full] } else { 1 };
    for _ in 0..nnz {
        let one: Vec<u64> = extents.iter().map(|&extent| draw.below(extent)).collect();
        for copy in 0..copies {
            for (mode, (column, &coord)) in coords.iter_mut().zip(&one).enumerate() {
                let filled = copies > 1 && mode == full;
                column.push(if filled { copy } else { coord } as u32);
            }
        }
    }
    let values: Vec<f64> = (0..nnz * copies).map(|_| draw.real()).collect();
    let coords = coords.into_iter().map(Into::into).collect();
    let mut coo = Coo::new(extents.to_vec(), coords, values).expect("a tensor");
    coo.sum_duplicates().expect("merged");
    coo
}

fn index(letter: char) -> Index {
    Index::new(letter).expect("a letter")
}
