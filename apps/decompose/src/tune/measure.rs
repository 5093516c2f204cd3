//! Loop orders of kernels, and how long each takes.

use std::sync::Arc;
use std::time::Instant;

use decompose_common::interrupt;
use decompose_core::autoschedule::{
    SCHEDULERS, SearchLimits, Storage, default_scheduler, finish, storages,
};
use decompose_core::contract::{Contraction, random_operands, split_list, trees};
use decompose_core::cost::{Machine, estimate};
use decompose_core::einsum::Index;
use decompose_core::error::CoreError;
use decompose_core::nest::Forest;
use decompose_core::path::unfactorised;
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::{Format, Problem, Schedule};
use decompose_formats::{Coo, Csf, Matrix};

use crate::failure::Failure;
use crate::tune::cases::Case;

/// Candidates of the default scheduler that are measured, where the loop orders are too many.
const CANDIDATES: usize = 16;

/// An order that takes so many times the seconds of the best runs once.
const HOPELESS: f64 = 20.0;

/// An order that is predicted to take so many times the seconds of the best does not run: it could take minutes.
const NOT_RUN: f64 = 100.0;

/// The most indices of which all loop orders are measured.
const ALL_ORDERS: usize = 3;

/// All runs.
pub(super) struct Measured {
    pub(super) cases: Vec<MeasuredCase>,
    /// By which it is decided what runs.
    machine: Machine,
    toolchain: Toolchain,
    rounds: usize,
}

/// The loop orders of a kernel on one operand.
pub(super) struct MeasuredCase {
    pub(super) kernel: &'static str,
    pub(super) operand: String,
    /// The problem, its operand stored by its modes.
    pub(super) base: Problem,
    pub(super) list: Arc<Coo<f64>>,
    /// The ways to store the operand.
    pub(super) storages: Vec<Storage>,
    pub(super) variants: Vec<Variant>,
    /// What each scheduler chooses.
    pub(super) choices: Vec<Choice>,
}

/// A schedule with its time.
pub(super) struct Variant {
    pub(super) problem: Problem,
    pub(super) schedule: Schedule,
    pub(super) seconds: f64,
    /// Whether it ran; otherwise the seconds are predicted.
    pub(super) ran: bool,
}

/// What a scheduler chooses.
pub(super) struct Choice {
    pub(super) scheduler: &'static str,
    /// The number of the variant.
    pub(super) variant: usize,
    /// Seconds of the search.
    pub(super) search_seconds: f64,
}

impl Measured {
    pub(super) fn new(machine: Machine, toolchain: Toolchain, rounds: usize) -> Measured {
        Measured { cases: Vec::new(), machine, toolchain, rounds }
    }

    /// Measures the loop orders of a case, and what the schedulers choose; nothing once the user has interrupted.
    pub(super) fn add(&mut self, case: Case) -> Result<(), Failure> {
        let Measured { machine, .. } = self;
        if interrupt::requested() {
            return Ok(());
        }
        let base = case.request.problem_on(&[]);
        let storages = storages(&base);
        let Case { kernel, operand, list, .. } = case;
        let (variants, choices) = (Vec::new(), Vec::new());
        let mut measured =
            MeasuredCase { kernel, operand, base, list, storages, variants, choices };
        for (problem, schedule) in measured.schedules(machine)? {
            measured.variant(problem, &schedule, (machine, &self.toolchain), self.rounds)?;
        }
        for scheduler in SCHEDULERS {
            let start = Instant::now();
            let (stored, limits) = (&measured.storages, SearchLimits::default());
            let found = scheduler.search_storages(&measured.base, stored, machine, &limits)?;
            let search_seconds = start.elapsed().as_secs_f64();
            let best = &found.candidates[0];
            let problem = best.problem(&measured.base);
            let schedule = &best.candidate.schedule;
            let tools = (&*machine, &self.toolchain);
            let variant = measured.variant(problem, schedule, tools, self.rounds)?;
            let scheduler = scheduler.name();
            measured.choices.push(Choice { scheduler, variant, search_seconds });
        }
        self.cases.push(measured);
        Ok(())
    }

    /// Returns the seconds of a schedule of case number `case`, which is measured if it was not.
    pub(super) fn seconds(
        &mut self,
        case: usize,
        problem: Problem,
        schedule: &Schedule,
    ) -> Result<f64, Failure> {
        let Measured { cases, machine, toolchain, rounds } = self;
        let variant = cases[case].variant(problem, schedule, (machine, toolchain), *rounds)?;
        Ok(cases[case].variants[variant].seconds)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Returns the numbers of cases and of runs.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.cases.len(), self.cases.iter().map(|case| case.runs().count()).sum())
    }
}

impl MeasuredCase {
    /// Returns the seconds of the fastest variant.
    pub(super) fn best(&self) -> f64 {
        self.variants.iter().map(|variant| variant.seconds).fold(f64::INFINITY, f64::min)
    }

    /// Returns the variants that ran.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Variant> {
        self.variants.iter().filter(|variant| variant.ran)
    }

    /// Returns the number of the variant of `schedule`, which is measured if it was not.
    fn variant(
        &mut self,
        problem: Problem,
        schedule: &Schedule,
        (machine, toolchain): (&Machine, &Toolchain),
        rounds: usize,
    ) -> Result<usize, Failure> {
        let same = |variant: &Variant| {
            let mut levels = variant.problem.sparse.iter().zip(&problem.sparse);
            let stored = levels.all(|(a, b)| {
                (a.input, &a.levels(), a.fused()) == (b.input, &b.levels(), b.fused())
            });
            stored && variant.schedule == *schedule
        };
        if let Some(at) = self.variants.iter().position(same) {
            return Ok(at);
        }
        let (best, predicted) = (self.best(), estimate(&problem, schedule, machine).seconds);
        let ran = predicted <= NOT_RUN * best;
        let seconds = match ran {
            true => {
                let hopeless = HOPELESS * best;
                seconds(&self.list, &problem, schedule, toolchain, rounds, hopeless)?
            }
            false => predicted,
        };
        self.variants.push(Variant { problem, schedule: schedule.clone(), seconds, ran });
        Ok(self.variants.len() - 1)
    }

    /// Returns every legal loop order around one term, all levels following it; of kernels with more indices some candidates of the
    /// default scheduler.  What is predicted to be fast comes first.
    fn schedules(&self, machine: &Machine) -> Result<Vec<(Problem, Schedule)>, CoreError> {
        let all: Vec<Index> = self.base.expr.all().iter().collect();
        if all.len() <= ALL_ORDERS {
            let orders = permutations(&all).into_iter();
            let mut orders: Vec<(Problem, Schedule)> =
                orders.filter_map(|order| around_one_term(&self.base, order, machine)).collect();
            let predicted = |(problem, schedule): &(Problem, Schedule)| {
                estimate(problem, schedule, machine).seconds
            };
            orders.sort_by(|a, b| predicted(a).total_cmp(&predicted(b)));
            return Ok(orders);
        }
        let limits = SearchLimits::default();
        let found =
            default_scheduler().search_storages(&self.base, &self.storages, machine, &limits)?;
        let step = found.candidates.len().div_ceil(CANDIDATES).max(1);
        let some = found.candidates.into_iter().step_by(step);
        Ok(some.map(|one| (one.problem(&self.base), one.candidate.schedule)).collect())
    }
}

/// Returns the schedule of `order` around one term, if it is legal.
fn around_one_term(
    base: &Problem,
    order: Vec<Index>,
    machine: &Machine,
) -> Option<(Problem, Schedule)> {
    let operand = |input: usize| {
        let own = &base.expr.inputs[input].indices;
        let levels = order.iter().copied().filter(|index| own.contains(index)).collect();
        (input, Format::csf(levels))
    };
    let operands = base.sparse.iter().map(|x| operand(x.input)).collect();
    let problem = Storage { operands }.problem(base);
    let nest = Forest::fused(std::slice::from_ref(&order));
    let schedule = finish(&problem, unfactorised(&problem.expr), nest, machine);
    schedule.verify(&problem).is_ok().then_some((problem, schedule))
}

/// Returns all orders of `indices`.
fn permutations(indices: &[Index]) -> Vec<Vec<Index>> {
    let mut orders = vec![Vec::new()];
    for _ in 0..indices.len() {
        let longer = |order: Vec<Index>| {
            let rest = indices.iter().filter(|index| !order.contains(index)).copied();
            let rest: Vec<Index> = rest.collect();
            rest.into_iter().map(move |index| [order.as_slice(), &[index]].concat())
        };
        orders = orders.into_iter().flat_map(longer).collect();
    }
    orders
}

/// Returns the median seconds of `rounds` runs after one that does not count; those of one run if it takes over `hopeless`.
fn seconds(
    list: &Coo<f64>,
    problem: &Problem,
    schedule: &Schedule,
    toolchain: &Toolchain,
    rounds: usize,
    hopeless: f64,
) -> Result<f64, Failure> {
    let expr = problem.stored_expr();
    let mut built = Vec::new();
    for (x, layout) in problem.sparse.iter().zip(trees(problem)) {
        let list = split_list(list.clone(), &expr.inputs[x.input], problem)?;
        built.push(Arc::new(Csf::build(list, &layout.order)?.fuse(layout.fused)));
    }
    let mut contraction = Contraction::joining(problem, schedule, built, toolchain)?;
    let dense = random_operands::<f64>(contraction.kernel().program())?;
    let dense: Vec<&Matrix<f64>> = dense.iter().collect();
    let mut output =
        if contraction.is_assembled() { Matrix::zeros(0, 1)? } else { contraction.output()? };
    let mut times = Vec::new();
    for _ in 0..=rounds {
        let start = Instant::now();
        if contraction.is_assembled() {
            drop(contraction.assemble(&dense, u64::MAX)?);
        } else {
            contraction.run(&dense, &mut output)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        if seconds > hopeless {
            return Ok(seconds);
        }
        times.push(seconds);
    }
    let mut times = times.split_off(1);
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
