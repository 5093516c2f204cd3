//! Candidates measured on the tensor itself.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use decompose_formats::mix::mix;
use decompose_formats::{Coo, Csf, Matrix, Value};
use rayon::prelude::*;

use crate::autoschedule::partition::{
    BanditConfig, BanditReport, Generated, Listing, Point, exhaustive, thompson,
};
use crate::autoschedule::{HalvingConfig, HalvingReport, successive_halving_until};
use crate::contract::planned::trees as trees_of;
use crate::contract::split::split_list;
use crate::contract::{Contraction, preview};
use crate::error::CoreError;
use crate::lower::{Array, Program};
use crate::runtime::{Kernel, Toolchain, with_spin_wait};
use crate::schedule::{Problem, Schedule, SparseOperand, SplitIndex};
use crate::sweep::TreeLayout;

/// A candidate that is to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Entrant<'a> {
    /// The problem on the candidate's trees.
    pub problem: &'a Problem,
    /// The tree of each sparse operand of the problem.
    pub trees: &'a [TreeLayout],
    /// The schedule.
    pub schedule: &'a Schedule,
}

/// The times of one candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RaceTime {
    /// The median of the seconds of all runs.
    pub median_seconds: f64,
    /// Runs.
    pub runs: usize,
}

/// What measuring found.
#[derive(Clone, Debug)]
pub struct RaceReport {
    /// The times, in the order of the candidates; `None` for one that never ran.
    pub times: Vec<Option<RaceTime>>,
    /// The fastest candidate.
    pub winner: usize,
    /// How the runs were shared out.
    pub halving: HalvingReport,
}

/// Runs candidates, given in the order of their prediction, on `tensors`, the sparse operands with their inputs, and
/// random dense operands, always the same, and finds the fastest by successive halving, on the threads of the current
/// pool: that with the least median of those in the last round.
///
/// No other run begins once `stopped` says so; what was timed before stays.  Trees of all orders that occur are built
/// first, so they must fit memory together.  Each timing is preceded by a run that does not count.  A candidate that finds
/// no memory is out.
///
/// # Errors
///
/// If a tree cannot be built, a schedule is illegal, or there is no candidate.
pub fn race<V: Value>(
    tensors: Vec<(usize, Coo<V>)>,
    entrants: &[Entrant<'_>],
    toolchain: &Toolchain,
    config: &HalvingConfig,
    stopped: &(dyn Fn() -> bool + Sync),
) -> Result<RaceReport, CoreError> {
    let none = || CoreError::Internal("a race without candidates".into());
    let trees = RaceTrees::build(tensors, entrants)?;
    let mut runs: Vec<Vec<f64>> = vec![Vec::new(); entrants.len()];
    let halving =
        successive_halving_until(entrants.len(), config, stopped, |candidate, repetitions| {
            let Entrant { problem, schedule, .. } = entrants[candidate];
            let own = trees.of(&entrants[candidate])?;
            let built = || Contraction::joining(problem, schedule, own, toolchain);
            timed(built, repetitions, stopped, &mut runs[candidate])
        })?;
    let halving = halving.ok_or_else(none)?;
    let times: Vec<Option<RaceTime>> = runs.into_iter().map(time).collect();
    Ok(RaceReport { winner: winner(&times, &halving).ok_or_else(none)?, times, halving })
}

/// Builds a kernel and runs it on random dense operands: once without counting, then `repetitions` times, whose seconds are
/// added to `runs`.  Returns the seconds of all; infinity where there is no memory for it, or a stop is asked for.
fn timed<V: Value>(
    build: impl FnOnce() -> Result<Contraction<V>, CoreError>,
    repetitions: usize,
    stopped: &(dyn Fn() -> bool + Sync),
    runs: &mut Vec<f64>,
) -> Result<f64, CoreError> {
    let ready = build().and_then(|built| {
        let dense = random_operands::<V>(built.kernel().program())?;
        let output = if built.is_assembled() { Matrix::zeros(0, 1)? } else { built.output()? };
        Ok((output, dense, built))
    });
    let (mut output, dense, mut contraction) = match ready {
        Err(CoreError::Format(_)) => return Ok(f64::INFINITY),
        // The signal that asks to stop ends compilers too.
        Err(_) if stopped() => return Ok(f64::INFINITY),
        other => other?,
    };
    let dense: Vec<&Matrix<V>> = dense.iter().collect();
    let mut run = || match contraction.is_assembled() {
        true => contraction.assemble(&dense, u64::MAX).map(|_| ()),
        false => contraction.run(&dense, &mut output),
    };
    // A thread that is no worker waits for one in each run.
    with_spin_wait(&mut run)?;
    let (mut all, mut done) = (0.0, 0);
    while done < repetitions {
        if done > 0 && stopped() {
            return Ok(all * repetitions as f64 / done as f64);
        }
        // Workers that fell asleep, since another process took a core, are woken again.
        with_spin_wait(|| {
            let begun = Instant::now();
            while done < repetitions && begun.elapsed() < TOGETHER {
                let start = Instant::now();
                run()?;
                let seconds = start.elapsed().as_secs_f64();
                runs.push(seconds);
                all += seconds;
                done += 1;
            }
            Ok::<(), CoreError>(())
        })?;
    }
    Ok(all)
}

/// How long runs follow each other before workers that sleep are woken.
const TOGETHER: Duration = Duration::from_millis(1);

/// What a search over the templates of a listing measured.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// The search.
    pub report: BanditReport,
    /// All seconds of each schedule that ran.
    pub runs: BTreeMap<Point, Vec<f64>>,
}

impl Sampled {
    /// Returns the median of the seconds of a schedule; `None` if it never ran.
    pub fn time(&self, point: Point) -> Option<RaceTime> {
        time(self.runs.get(&point)?.clone())
    }
}

/// Which schedules of a listing are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Those of which something is to be hoped for ([`thompson`]).
    Thompson,
    /// All ([`exhaustive`]).
    Exhaustive,
}

/// Runs schedules of `listing` on `tensors`, the sparse operands with their inputs, and random dense operands, always the
/// same, and finds the fastest, on the threads of the current pool.
///
/// A tree is built when the first schedule needs it, and stays.  What is measured last once `stopped` says so is the end.
///
/// # Errors
///
/// If a tree cannot be built, or a kernel cannot run.
pub fn sample<V: Value>(
    tensors: &[(usize, Coo<V>)],
    listing: &Listing,
    toolchain: &Toolchain,
    (config, sampling): (&BanditConfig, Sampling),
    stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Sampled, CoreError> {
    let (arms, listed) = listing.arms();
    let mut trees = RaceTrees(BTreeMap::new());
    let mut runs: BTreeMap<Point, Vec<f64>> = BTreeMap::new();
    let mut measure = |point: Point, repetitions: usize| -> Result<f64, CoreError> {
        if stopped() {
            return Ok(f64::INFINITY);
        }
        let Generated { problem, schedule } = &listed(point).generated;
        let layouts = trees_of(problem);
        let entrant = Entrant { problem, trees: &layouts, schedule };
        trees.add(tensors, &entrant)?;
        let own = trees.of(&entrant)?;
        let built = || Contraction::joining(problem, schedule, own, toolchain);
        timed(built, repetitions, stopped, runs.entry(point).or_default())
    };
    let report = match sampling {
        Sampling::Thompson => thompson(&arms, config, &mut measure)?,
        Sampling::Exhaustive => {
            compile_all(listing, toolchain, stopped);
            exhaustive(&arms, config, &mut measure)?
        }
    };
    Ok(Sampled { report, runs })
}

/// Compiles all schedules on all threads, so that they are found compiled when they are measured.
///
/// Those that fail here fail again, and are told of, there.
fn compile_all(listing: &Listing, toolchain: &Toolchain, stopped: &(dyn Fn() -> bool + Sync)) {
    let all: Vec<&Generated> = listing.schedules().map(|one| &one.generated).collect();
    all.into_par_iter().filter(|_| !stopped()).for_each(|Generated { problem, schedule }| {
        if let Ok(program) = preview(problem, schedule) {
            drop(Kernel::new(program, toolchain));
        }
    });
}

/// The least median of those that reached the last round.
fn winner(times: &[Option<RaceTime>], halving: &HalvingReport) -> Option<usize> {
    let rounds = halving.ranking.iter().map(|timing| timing.rounds).max();
    let last = halving.ranking.iter().filter(|timing| Some(timing.rounds) == rounds);
    let seconds = |at: usize| times[at].map_or(f64::INFINITY, |time| time.median_seconds);
    let finalists = last.map(|timing| timing.candidate);
    finalists.min_by(|&a, &b| seconds(a).total_cmp(&seconds(b)))
}

fn time(mut runs: Vec<f64>) -> Option<RaceTime> {
    runs.sort_by(f64::total_cmp);
    let median_seconds = runs.get(runs.len() / 2).copied()?;
    Some(RaceTime { median_seconds, runs: runs.len() })
}

/// The trees of a race, by input and layout.
struct RaceTrees<V: Value>(BTreeMap<(usize, Vec<SplitIndex>, TreeLayout), Arc<Csf<V>>>);

/// The splits of indices of a sparse operand.
fn own_splits(problem: &Problem, x: &SparseOperand) -> Vec<SplitIndex> {
    let own = |cut: &SplitIndex| x.levels().contains(&cut.split.outer);
    problem.stored_splits().into_iter().filter(own).collect()
}

impl<V: Value> RaceTrees<V> {
    fn build(
        tensors: Vec<(usize, Coo<V>)>,
        entrants: &[Entrant<'_>],
    ) -> Result<RaceTrees<V>, CoreError> {
        // The trees of each input, by the splits of its indices.
        type Wanted<'a> = (&'a Problem, BTreeSet<TreeLayout>);
        let mut wanted: BTreeMap<(usize, Vec<SplitIndex>), Wanted<'_>> = BTreeMap::new();
        for entrant in entrants {
            for (x, tree) in entrant.problem.sparse.iter().zip(entrant.trees) {
                let splits = own_splits(entrant.problem, x);
                let none = || (entrant.problem, BTreeSet::new());
                wanted.entry((x.input, splits)).or_insert_with(none).1.insert(tree.clone());
            }
        }
        let mut trees = BTreeMap::new();
        let mut tensors: BTreeMap<usize, Coo<V>> = tensors.into_iter().collect();
        while let Some(((input, splits), (problem, layouts))) = wanted.pop_first() {
            let again = wanted.keys().any(|(other, _)| *other == input);
            let list = if again { tensors.get(&input).cloned() } else { tensors.remove(&input) };
            let Some(list) = list else { continue };
            let list = split_list(list, &problem.stored_expr().inputs[input], problem)?;
            let stored: Vec<_> =
                layouts.iter().map(|tree| (tree.order.clone(), tree.fused)).collect();
            let built = Csf::build_all(list, &stored)?.into_iter().map(Arc::new);
            let keys = layouts.into_iter().map(|layout| (input, splits.clone(), layout));
            trees.extend(keys.zip(built));
        }
        Ok(RaceTrees(trees))
    }

    /// Builds those trees of `entrant` that are not there.
    fn add(&mut self, tensors: &[(usize, Coo<V>)], entrant: &Entrant<'_>) -> Result<(), CoreError> {
        for (x, layout) in entrant.problem.sparse.iter().zip(entrant.trees) {
            let key = (x.input, own_splits(entrant.problem, x), layout.clone());
            let Some((_, list)) = tensors.iter().find(|(input, _)| *input == x.input) else {
                continue;
            };
            if let Entry::Vacant(place) = self.0.entry(key) {
                let access = &entrant.problem.stored_expr().inputs[x.input];
                let list = split_list(list.clone(), access, entrant.problem)?;
                place.insert(Arc::new(Csf::build(list, &layout.order)?.fuse(layout.fused)));
            }
        }
        Ok(())
    }

    fn of(&self, entrant: &Entrant<'_>) -> Result<Vec<Arc<Csf<V>>>, CoreError> {
        let operands = entrant.problem.sparse.iter().zip(entrant.trees);
        let tree = |(x, layout): (&SparseOperand, &TreeLayout)| {
            let found = self.0.get(&(x.input, own_splits(entrant.problem, x), layout.clone()));
            let missing = || CoreError::Internal(format!("no tree {layout} was built"));
            found.map(Arc::clone).ok_or_else(missing)
        };
        operands.map(tree).collect()
    }
}

/// Makes dense operands, packed as `program` stores them, with numbers between 0 and 1 that depend on
/// their place only.
///
/// # Errors
///
/// If there is no memory.
pub fn random_operands<V: Value>(program: &Program) -> Result<Vec<Matrix<V>>, CoreError> {
    let one = |(operand, array): (usize, &Array)| {
        let cols = array.extents.last().map_or(1, |&extent| extent as usize);
        let rows = (array.len / array.row()) as usize;
        let mut matrix = Matrix::zeros(rows, cols)?;
        for row in 0..rows {
            let first = (operand as u64) << 48 | (row * cols) as u64;
            let elements = matrix.row_mut(row).iter_mut().zip(first..);
            elements.for_each(|(element, place)| *element = V::from_f64(random(place)));
        }
        Ok(matrix)
    };
    program.dense.iter().enumerate().map(one).collect()
}

/// A number in [0, 1) that depends on `place` only.
fn random(place: u64) -> f64 {
    (mix(place.wrapping_add(1)) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use decompose_formats::PatternCounts;
    use decompose_formats::synth::{Pattern, SynthConfig, Values, generate};

    use super::{Entrant, race};
    use crate::autoschedule::{HalvingConfig, SearchLimits, default_scheduler};
    use crate::contract::Request;
    use crate::cost::Machine;
    use crate::kernels;
    use crate::runtime::Toolchain;
    use crate::sweep::TreeLayout;

    #[test]
    fn candidates_on_different_trees_are_measured() {
        let config = SynthConfig {
            extents: vec![30, 20, 10],
            nnz: 900,
            pattern: Pattern::Uniform,
            values: Values::Ones,
            seed: 0,
        };
        let tensor = generate::<f64>(&config).unwrap();
        let shapes = [vec![], vec![20, 4], vec![10, 4]];
        let counts = PatternCounts::of(&tensor);
        let request = Request::new(kernels::mttkrp(3, 0), 0, &counts, &shapes).unwrap();
        let trees: Vec<TreeLayout> = ["1-2-3", "3-1+2"].map(|t| t.parse().unwrap()).to_vec();
        let problems: Vec<_> = trees.iter().map(|tree| request.problem(tree)).collect();
        let found: Vec<_> = problems
            .iter()
            .map(|p| {
                default_scheduler().search_within(p, Machine::here(), &SearchLimits::all()).unwrap()
            })
            .collect();
        let mut entrants = Vec::new();
        for (at, found) in found.iter().enumerate() {
            entrants.extend(found.candidates.iter().take(2).map(|candidate| Entrant {
                problem: &problems[at],
                trees: std::slice::from_ref(&trees[at]),
                schedule: &candidate.schedule,
            }));
        }
        let toolchain = Toolchain::Interpreter("a test".into());
        let config = HalvingConfig { budget_seconds: 0.05, ..HalvingConfig::default() };
        let tensors = vec![(0, tensor)];
        let report = race(tensors, &entrants, &toolchain, &config, &|| false).unwrap();
        assert_eq!(report.times.len(), entrants.len());
        assert!(report.times[report.winner].is_some_and(|time| time.median_seconds > 0.0));
    }
}
