//! The work over the non-zeros: environments of cores, as scheduled kernels.
//!
//! ```text
//! Z(a,j,b) = sum X(i,j,l) G_1(i,a) G_3(b,l)        all cores but one: TTTc
//! Z(a,j,l) = sum X(i,j,l) G_1(i,a)                 all but two neighbours
//! ```
//!
//! Which trees of the tensor are kept is planned once, for the kernels that a method runs
//! ([`crate::plan`]); a kernel is scheduled and compiled when it is first asked for, on the kept tree that
//! suits it best, and again when ranks change.  Where ranks change often (`dmrg`) cores are padded
//! with zeros to a few sizes, so that kernels are met again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use decompose_core::autoschedule::{SearchLimits, Storage, default_scheduler};
use decompose_core::contract::{Contraction, Request};
use decompose_core::cost::Machine;
use decompose_core::error::CoreError;
use decompose_core::kernels;
use decompose_core::runtime::{Toolchain, Workload};
use decompose_core::schedule::{Problem, Schedule};
use decompose_core::sweep::TreeLayout;
use decompose_formats::dense::padded as padded_to;
use decompose_formats::{Coo, Csf, Matrix, ModeOrder, PatternCounts, Value};
use ndarray::{Array3, ArrayD, Axis, s};
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::config::Method;
use crate::train::Train;

/// The cores that a kernel leaves out: the tensor is multiplied by all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct LeftOut {
    /// The first.
    pub from: usize,
    /// The one behind the last.
    pub to: usize,
}

impl LeftOut {
    /// Leaves out core `k`.
    pub fn core(k: usize) -> LeftOut {
        LeftOut { from: k, to: k + 1 }
    }

    /// Leaves out core `k` and the next.
    pub fn pair(k: usize) -> LeftOut {
        LeftOut { from: k, to: k + 2 }
    }

    fn contains(self, k: usize) -> bool {
        (self.from..self.to).contains(&k)
    }
}

/// Which sizes of bonds kernels are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BondSizes {
    /// Those that the cores have.
    Exact,
    /// The next power of two up to 8, the next multiple of 8 above.
    Coarse,
}

impl BondSizes {
    /// Returns the size of a bond in the kernels where cores have `rank`.
    pub fn of(self, rank: usize) -> usize {
        match self {
            BondSizes::Exact => rank,
            BondSizes::Coarse if rank <= 8 => rank.next_power_of_two(),
            BondSizes::Coarse => rank.next_multiple_of(8),
        }
    }
}

/// A kernel as it was scheduled.
#[derive(Clone, Debug, serde::Serialize)]
pub struct KernelNote {
    /// What it leaves out.
    pub left_out: LeftOut,
    /// The sizes of the bonds.
    pub ranks: Vec<usize>,
    /// Its expression.
    pub expression: String,
    /// The tree it runs on.
    pub tree: String,
    /// Its schedule.
    pub schedule: String,
    /// What the search saw.
    pub search: String,
    /// Its predicted cost on one core.
    pub cost: String,
    /// The file of its C code; `None` where it is interpreted.
    pub source: Option<PathBuf>,
    /// Predicted seconds on all threads.
    pub predicted_seconds: f64,
    /// Seconds measured, of all runs.
    pub measured_seconds: f64,
    /// Runs.
    pub runs: usize,
    /// Whether it was compiled now, found in the cache, or is interpreted.
    pub origin: &'static str,
}

/// The tensor as trees, and the kernels made so far.
pub struct Kernels<V: Value> {
    extents: Vec<u64>,
    counts: PatternCounts,
    norm_squared: f64,
    trees: Vec<(TreeLayout, Arc<Csf<V>>)>,
    sizes: BondSizes,
    toolchain: Toolchain,
    built: BTreeMap<Key, Built<V>>,
    /// The tensor as a list, once an error had to be measured at its cells.
    entries: Option<Coo<V>>,
}

/// What a kernel leaves out, and the sizes of its bonds.
type Key = (LeftOut, Vec<usize>);

/// A kernel that is scheduled and not made.
struct Scheduled {
    problem: Problem,
    schedule: Schedule,
    /// The number of its tree.
    tree: usize,
    note: KernelNote,
}

struct Built<V: Value> {
    contraction: Contraction<V>,
    note: KernelNote,
}

/// Returns the kernels that a sweep of `method` runs on a train of `order` cores.
pub fn of_sweep(method: Method, order: usize) -> Vec<LeftOut> {
    match method {
        Method::Als => (0..order).map(LeftOut::core).collect(),
        Method::Dmrg => (0..order.saturating_sub(1)).map(LeftOut::pair).collect(),
        // The decomposition walks a tree by itself; one environment verifies it.
        Method::Svd => order.checked_sub(1).map(LeftOut::core).into_iter().collect(),
    }
}

impl<V: Value> Kernels<V> {
    /// Builds the trees of `plan` from `coo`, sorted or not, without duplicates; the list is given
    /// up.  `counts` are its pattern's.
    ///
    /// # Errors
    ///
    /// [`CoreError::Format`] if memory runs out.
    pub fn build(
        coo: Coo<V>,
        trees: &[TreeLayout],
        counts: PatternCounts,
        toolchain: Toolchain,
    ) -> Result<Kernels<V>, CoreError> {
        let norm_squared = coo.norm_squared();
        let layouts: Vec<_> = trees.iter().map(|tree| (tree.order.clone(), tree.fused)).collect();
        let built = Csf::build_all(coo, &layouts)?.into_iter().map(Arc::new);
        let trees = trees.iter().cloned().zip(built);
        Ok(Kernels::of_trees(trees.collect(), norm_squared, counts, toolchain))
    }

    /// Takes trees of one tensor whose values have the squared norm `norm_squared`.
    pub fn of_trees(
        trees: Vec<(TreeLayout, Arc<Csf<V>>)>,
        norm_squared: f64,
        counts: PatternCounts,
        toolchain: Toolchain,
    ) -> Kernels<V> {
        let (extents, sizes) = (counts.extents().to_vec(), BondSizes::Exact);
        let (built, entries) = (BTreeMap::new(), None);
        Kernels { extents, counts, norm_squared, trees, sizes, toolchain, built, entries }
    }

    /// Chooses the sizes of bonds that kernels are made for; exact ones by default.
    pub fn set_sizes(&mut self, sizes: BondSizes) {
        self.sizes = sizes;
    }

    /// Returns the extents, in train order.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Returns the squared norm of the tensor.
    pub fn norm_squared(&self) -> f64 {
        self.norm_squared
    }

    /// Returns the trees.
    pub fn trees(&self) -> &[(TreeLayout, Arc<Csf<V>>)] {
        &self.trees
    }

    /// Returns the tensor as a list, sorted by its natural order.  Time and memory of the list, and of a sort, the
    /// first time.
    ///
    /// # Errors
    ///
    /// [`CoreError::Format`] if there is no memory.
    pub(crate) fn entries(&mut self) -> Result<&Coo<V>, CoreError> {
        let list = match self.entries.take() {
            Some(list) => list,
            None => {
                let (_, tree) = self.trees.first().ok_or_else(no_tree)?;
                let mut list = tree.to_coo();
                list.sort(&ModeOrder::natural(self.extents.len()))?;
                list
            }
        };
        Ok(self.entries.insert(list))
    }

    /// Returns the kernels made so far.
    pub fn notes(&self) -> Vec<KernelNote> {
        self.built.values().map(|built| built.note.clone()).collect()
    }

    /// Returns why kernels are interpreted that should have been compiled, if there are any.
    pub fn interpreted(&self) -> Option<&str> {
        self.built.values().find_map(|built| built.contraction.kernel().failed())
    }

    /// Makes kernels ready for bonds of `ranks`, several at a time, so that their first runs do not
    /// wait for the compiler.
    ///
    /// # Errors
    ///
    /// If there is no schedule, or no memory for private copies.
    pub fn prepare(&mut self, kernels: &[LeftOut], ranks: &[usize]) -> Result<(), CoreError> {
        let sized: Vec<usize> = ranks.iter().map(|&rank| self.sizes.of(rank)).collect();
        let missing = kernels.iter().map(|&left_out| (left_out, sized.clone()));
        let missing: Vec<_> = missing.filter(|key| !self.built.contains_key(key)).collect();
        let schedule = |key: Key| Ok((self.schedule(key.0, &key.1)?, key));
        let scheduled: Result<Vec<_>, CoreError> = missing.into_par_iter().map(schedule).collect();
        let scheduled = scheduled?;
        let seconds = scheduled.iter().map(|(scheduled, _)| scheduled.note.predicted_seconds);
        let (order, seconds) = (self.extents.len(), seconds.sum());
        let toolchain =
            self.toolchain.for_kernels(Workload { kernels: scheduled.len(), order, seconds });
        let make =
            |(scheduled, key): (Scheduled, Key)| Ok((self.make(scheduled, &toolchain)?, key));
        let made: Result<Vec<_>, CoreError> = scheduled.into_par_iter().map(make).collect();
        self.built.extend(made?.into_iter().map(|(built, key)| (key, built)));
        Ok(())
    }

    /// Returns the environment of the cores `left_out`: the tensor times all other cores, with the
    /// bond before them, their modes, and the bond behind them as its axes (of 1 at the ends); with the
    /// seconds of the kernel, packing of its operands and unpacking of its result left out.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if the train does not fit the tensor.
    pub fn environment(
        &mut self,
        left_out: LeftOut,
        train: &Train,
    ) -> Result<(ArrayD<f64>, f64), CoreError> {
        let ranks = [&[1], train.ranks().as_slice(), &[1]].concat();
        let (output, key, seconds) = self.run(left_out, train)?;
        let contraction = &self.built[&key].contraction;
        let dense = contraction.dense(&output);
        let dense =
            dense.ok_or_else(|| CoreError::Internal("an environment of positions".into()))?;
        drop(output);
        // The kernel knows no bonds at the ends.
        let mut stored = dense.view();
        if left_out.from == 0 {
            stored = stored.insert_axis(Axis(0));
        }
        if left_out.to == train.order() {
            let last = stored.ndim();
            stored = stored.insert_axis(Axis(last));
        }
        let modes = train.cores()[left_out.from..left_out.to].iter().map(|core| core.shape()[1]);
        let real = [ranks[left_out.from]].into_iter().chain(modes).chain([ranks[left_out.to]]);
        // Bonds are padded to the sizes of the kernel.
        for (axis, extent) in real.enumerate() {
            stored.slice_axis_inplace(Axis(axis), (..extent).into());
        }
        let mut real = ArrayD::zeros(stored.raw_dim());
        real.zip_mut_with(&stored, |to: &mut f64, x| *to = x.to_f64());
        Ok((real, seconds))
    }

    /// Makes the kernel of [`Kernels::environment`] and returns the bytes that it takes: its result as the kernel
    /// stores it, unpacked, and without padding; the first time also its private copies.
    ///
    /// # Errors
    ///
    /// As [`Kernels::prepare`].
    pub(crate) fn environment_bytes(
        &mut self,
        left_out: LeftOut,
        train: &Train,
    ) -> Result<u64, CoreError> {
        let key = self.key(left_out, &train.ranks())?;
        let built = self.built.get(&key).filter(|built| built.note.runs == 0);
        let copies = built.map_or(0, |built| built.contraction.side_bytes());
        let ranks = [&[1], train.ranks().as_slice(), &[1]].concat();
        let modes = train.cores()[left_out.from..left_out.to].iter();
        let cells = modes.fold(1_u64, |n, core| n.saturating_mul(core.shape()[1] as u64));
        let ends = [ranks[left_out.from], ranks[left_out.to]];
        let times = |ends: [usize; 2]| {
            ends.into_iter().fold(cells, |n, bond| n.saturating_mul(bond as u64))
        };
        let sized = |bond: usize| if bond == 1 { 1 } else { self.sizes.of(bond) };
        let stored = times([sized(ends[0]), padded_to(sized(ends[1]), V::BYTES)]);
        let unpacked = times(ends.map(sized));
        let kernel = stored.saturating_add(unpacked).saturating_mul(V::BYTES as u64);
        let real = unpacked.saturating_mul(V::BYTES as u64);
        let kernel = kernel.max(real.saturating_add(times(ends).saturating_mul(8)));
        Ok(kernel.saturating_add(copies))
    }

    /// Runs a kernel: its output, which one it is, and its seconds.
    fn run(
        &mut self,
        left_out: LeftOut,
        train: &Train,
    ) -> Result<(Matrix<V>, Key, f64), CoreError> {
        if train.extents() != self.extents {
            let why = format!("a train of {:?} for extents {:?}", train.extents(), self.extents);
            return Err(CoreError::Operand { operand: "train".into(), why });
        }
        let key = self.key(left_out, &train.ranks())?;
        let missing = || CoreError::Internal("no kernel was made".into());
        let built = self.built.get_mut(&key).ok_or_else(missing)?;
        let ends = [&[1], key.1.as_slice(), &[1]].concat();
        let kept = (0..train.order()).filter(|&k| !left_out.contains(k));
        let cores = kept.enumerate().map(|(operand, k)| {
            let core = padded::<V>(&train.cores()[k], ends[k], ends[k + 1]);
            // The kernel knows no bonds at the ends.
            let core = match k {
                0 => core.index_axis_move(Axis(0), 0).into_dyn(),
                _ if k + 1 == train.order() => core.index_axis_move(Axis(2), 0).into_dyn(),
                _ => core.into_dyn(),
            };
            built.contraction.pack(operand, &core)
        });
        let cores = cores.collect::<Result<Vec<_>, _>>()?;
        let mut output = built.contraction.output()?;
        let operands = cores.iter().collect::<Vec<_>>();
        let start = std::time::Instant::now();
        built.contraction.run(&operands, &mut output)?;
        let seconds = start.elapsed().as_secs_f64();
        built.note.measured_seconds += seconds;
        built.note.runs += 1;
        Ok((output, key, seconds))
    }

    /// Finds or makes the kernel for bonds of `ranks`.
    fn key(&mut self, left_out: LeftOut, ranks: &[usize]) -> Result<Key, CoreError> {
        self.prepare(&[left_out], ranks)?;
        Ok((left_out, ranks.iter().map(|&rank| self.sizes.of(rank)).collect()))
    }

    /// Finds the schedule of a kernel, on the tree on which it takes least.
    fn schedule(&self, left_out: LeftOut, ranks: &[usize]) -> Result<Scheduled, CoreError> {
        let (problem, request) = problem(left_out, &self.counts, ranks, V::BYTES)?;
        let modes = &request.expr.inputs[0].indices;
        let stored = self.trees.iter().map(|(tree, _)| Storage::of(0, tree.format(modes)));
        let stored: Vec<Storage> = stored.collect();
        let limits = SearchLimits::one_of_many(problem.expr.inputs.len());
        let machine = Machine::here();
        let found = default_scheduler().search_storages(&problem, &stored, machine, &limits)?;
        let best = &found.candidates[0];
        let at = stored.iter().position(|one| *one == best.storage).ok_or_else(no_tree)?;
        let schedule = best.candidate.schedule.clone();
        let note = KernelNote {
            left_out,
            ranks: ranks.to_vec(),
            expression: request.expr.to_string(),
            tree: self.trees[at].0.to_string(),
            schedule: schedule.text(&request.expr),
            search: found.report.to_string(),
            cost: best.candidate.cost.to_string(),
            source: None,
            predicted_seconds: best.seconds,
            measured_seconds: 0.0,
            runs: 0,
            origin: "interpreted",
        };
        Ok(Scheduled { problem: best.problem(&problem), schedule, tree: at, note })
    }

    /// Makes a kernel as it was scheduled.
    fn make(&self, scheduled: Scheduled, toolchain: &Toolchain) -> Result<Built<V>, CoreError> {
        let Scheduled { problem, schedule, tree, mut note } = scheduled;
        let tree = Arc::clone(&self.trees[tree].1);
        let contraction = Contraction::build(&problem, &schedule, tree, toolchain)?;
        if let Some(origin) = contraction.kernel().origin() {
            note.source = Some(origin.source.clone());
            note.origin = if origin.compiled_in.is_some() { "compiled" } else { "cached" };
        }
        Ok(Built { contraction, note })
    }
}

fn no_tree() -> CoreError {
    CoreError::Internal("no tree of the tensor is kept".into())
}

/// Poses a kernel for bonds of `ranks`, with the tensor stored in its natural order.
pub(crate) fn problem(
    left_out: LeftOut,
    counts: &PatternCounts,
    ranks: &[usize],
    value_bytes: usize,
) -> Result<(Problem, Request), CoreError> {
    let order = counts.extents().len();
    let expr = kernels::tttc_without(order, left_out.from..left_out.to);
    let mut shapes = vec![Vec::new()];
    for k in (0..order).filter(|&k| !left_out.contains(k)) {
        let left = k.checked_sub(1).map(|bond| ranks[bond] as u64);
        let right = ranks.get(k).map(|&rank| rank as u64);
        let mode = counts.extents()[k];
        shapes.push(left.into_iter().chain([mode]).chain(right).collect());
    }
    let mut request = Request::new(expr, 0, counts, &shapes)?;
    request.value_bytes = value_bytes;
    let natural = TreeLayout::new(ModeOrder::natural(order), 1);
    Ok((request.problem(&natural), request))
}

/// Pads a core with zeros to bonds of `left` and `right`.
fn padded<V: Value>(core: &Array3<f64>, left: usize, right: usize) -> Array3<V> {
    let (rows, extent, cols) = core.dim();
    let mut padded = Array3::from_elem((left, extent, right), V::default());
    padded.slice_mut(s![..rows, .., ..cols]).zip_mut_with(core, |to, &x| *to = V::from_f64(x));
    padded
}
