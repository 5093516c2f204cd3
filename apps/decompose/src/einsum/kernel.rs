//! One product by one kernel, told on the screen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use decompose_common::memory::{self, left};
use decompose_common::progress::Screen;
use decompose_core::autoschedule::SearchLimits;
use decompose_core::compute::{
    Evaluator, Known, LargeStep, Operands, Tensor, Term, contract_dense, dense_bytes, run,
};
use decompose_core::contract::{Contraction, StoredTrees};
use decompose_core::error::CoreError;
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::Format;
use decompose_formats::stats::grouped;
use decompose_formats::{Coo, DenseTensor, Matrix, Value};

use crate::einsum::args::EinsumArgs;
use crate::einsum::memory::{EinsumForecast, REMEDY_STEP};
use crate::einsum::sum::sum;
use crate::failure::Failure;
use crate::run::memory::{cut_tree_of, tree_of};
use crate::schedule::choose::{Chooser, Pick, Selection};
use crate::schedule::decide::{self, Effort, When};
use crate::schedule::table;

/// The tensors of a program, and how its products are computed.
pub(crate) struct Kernels<'a, V: Value> {
    pub(crate) args: &'a EinsumArgs,
    /// The formats that the user gave operands.
    pub(crate) formats: Vec<(String, Format)>,
    pub(crate) threads: usize,
    pub(crate) screen: &'a mut Screen,
    pub(crate) tensors: BTreeMap<String, Tensor<V>>,
    /// The tensors that are lists by what they are, whatever their form is now.
    pub(crate) lists: BTreeSet<String>,
    /// How often each tensor is still read; what is not is given up.
    pub(crate) reads: BTreeMap<String, usize>,
    /// The assignment that is being computed.
    pub(crate) computing: String,
    /// The products of the assignment in the text, which need not be told again.
    pub(crate) written: Vec<String>,
}

impl<V: Value> Evaluator<V> for Kernels<'_, V> {
    type Error = Failure;

    fn operand(&mut self, name: &str) -> Result<Tensor<V>, Failure> {
        let missing = || Failure::internal("an operand that was not read");
        let left = self.reads.get_mut(name).ok_or_else(missing)?;
        *left = left.saturating_sub(1);
        if *left == 0 {
            return self.tensors.remove(name).ok_or_else(missing);
        }
        let tensor = self.tensors.get_mut(name).ok_or_else(missing)?;
        memory::foresee(tensor.bytes_to_share(), || format!("a copy of {name}"), REMEDY_STEP)?;
        Ok(tensor.share())
    }

    fn is_list(&self, name: &str) -> bool {
        self.lists.contains(name)
    }

    fn large_step<T>(
        &mut self,
        step: LargeStep,
        bytes: u64,
        work: impl FnOnce() -> T,
    ) -> Result<T, Failure> {
        memory::foresee(bytes, || format!("{step} in {}", self.computing), REMEDY_STEP)?;
        Ok(self.screen.phase(step.verb(), work).0)
    }

    fn is_read_later(&self, name: &str) -> bool {
        self.reads.get(name).is_some_and(|&reads| reads > 0)
    }

    fn product(
        &mut self,
        known: &Known,
        tensors: Vec<Tensor<V>>,
        stored: &mut StoredTrees<V>,
    ) -> Result<Tensor<V>, Failure> {
        let text = known.expr.to_string();
        if !self.written.contains(&text) {
            self.screen.line(format!("step     {text}"));
        }
        let operands = Operands::of(tensors);
        let Some(request) = known.request() else {
            let arrays: Vec<&DenseTensor<V>> = operands.dense.iter().collect();
            let bytes = dense_bytes(&known.expr, &known.extents);
            memory::foresee(bytes, || format!("the product {text}"), "compute a part of it")?;
            let multiply = || contract_dense(&known.expr, &arrays);
            let (product, seconds) = self.screen.phase("run", multiply);
            self.screen.line(format!("run      {seconds:.3e} s, dense operands only"));
            return Ok(Tensor::Dense(product?));
        };
        let chooser = Chooser::new(&request, (&self.args.search, &self.formats), self.threads)?;
        let effort = Effort {
            limits: SearchLimits::default(),
            measure: When::Asked,
            top: decide::MEASURED,
            budget_seconds: decide::BUDGET_SECONDS,
        };
        let plan = decide::plan(&chooser, &operands.sparse, &effort, self.screen)?;
        self.tell_plan(&plan);
        let (pick, limit) = (plan.choice(), self.args.output.max_memory);
        let given_up = operands.dense.iter().map(|array| (array.len() * V::BYTES) as u64).sum();
        let foreseen = |stored: &StoredTrees<V>| {
            let list = |input| {
                let own = operands.sparse.iter().find(|(own, _)| *own == input);
                own.map(|(_, list)| list)
            };
            let tree = self.tree_bytes((pick, known), list, stored);
            EinsumForecast::new::<V>(pick, (tree, given_up), self.threads, limit)
        };
        let mut forecast = foreseen(stored);
        if !forecast.fits() && !stored.is_empty() {
            stored.give_up_all();
            forecast = foreseen(stored);
        }
        forecast.check()?;
        self.compute((pick, known), operands, stored, forecast)
    }

    fn sum(
        &mut self,
        terms: &mut Vec<Term<V>>,
        stored: &mut StoredTrees<V>,
    ) -> Result<Option<Tensor<V>>, Failure> {
        sum(self, terms, stored)
    }
}

impl<V: Value> Kernels<'_, V> {
    /// Keeps a result while it is read.
    pub(crate) fn keep(&mut self, name: &str, result: Tensor<V>) {
        if self.reads.get(name).is_some_and(|&reads| reads > 0) {
            self.tensors.insert(name.to_owned(), result);
        }
    }

    fn tell_plan(&self, plan: &Selection) {
        let pick = plan.choice();
        let tree = if pick.trees.len() == 1 { "tree" } else { "trees" };
        let (label, trees) = (table::label(pick), pick.trees_typed());
        self.screen.line(format!("schedule {label} on {tree} {trees}"));
        let how = crate::schedule::how(plan).replace('\n', "\n         ");
        let trees = match pick.storing {
            0.0 => String::new(),
            seconds => format!(", {seconds:.2e} s to build the {tree}"),
        };
        self.screen.line(format!("         {:.2e} s predicted{trees}\n{how}", pick.seconds));
    }

    /// Returns the bytes that the trees take which are built of the lists that `list` gives by input.
    pub(super) fn tree_bytes<'b>(
        &self,
        (pick, known): (&Pick, &Known),
        list: impl Fn(usize) -> Option<&'b Coo<V>>,
        stored: &StoredTrees<V>,
    ) -> u64 {
        let trees = pick.problem.sparse.iter().zip(&pick.trees).map(|(x, layout)| {
            let operand = known.operands.get(x.input).and_then(Option::as_ref);
            if operand.is_some_and(|operand| stored.get(operand, layout).is_some()) {
                return 0;
            }
            // A list that is read again stays mapped from its file.
            let again = self.tensors.contains_key(&known.expr.inputs[x.input].tensor);
            let released = |list: &Coo<V>| if again { 0 } else { list.bytes() };
            // A list with more columns is made of one whose indices are cut.
            let cut = layout.order.modes().len() > known.expr.inputs[x.input].indices.len();
            match list(x.input) {
                Some(list) if cut => cut_tree_of(list, &pick.problem, x),
                Some(list) => tree_of(list, &layout.order, layout.fused, released(list)),
                None => 0,
            }
        });
        trees.fold(0, u64::saturating_add)
    }

    /// Returns what makes kernels.
    pub(super) fn toolchain(&self) -> Toolchain {
        match self.args.output.no_codegen {
            true => Toolchain::Interpreter("--no-codegen was given".into()),
            false => Toolchain::detect(),
        }
    }

    /// Builds the trees and the kernel and runs it.
    fn compute(
        &mut self,
        (pick, known): (&Pick, &Known),
        operands: Operands<V>,
        stored: &mut StoredTrees<V>,
        forecast: EinsumForecast,
    ) -> Result<Tensor<V>, Failure> {
        let toolchain = self.toolchain();
        let Operands { sparse, dense } = operands;
        forecast.build()?;
        let (built, seconds) = self.screen.phase("build", || -> Result<_, CoreError> {
            let trees = pick.build_trees(sparse, &known.operands, stored)?;
            let start = Instant::now();
            let made = Contraction::joining(&pick.problem, &pick.schedule, trees, &toolchain)?;
            Ok((made, start.elapsed().as_secs_f64()))
        });
        let (mut contraction, kernel_seconds) = built?;
        forecast.run()?;
        let packed = pack(&contraction, dense)?;
        let packed: Vec<&Matrix<V>> = packed.iter().collect();
        let tree = if pick.trees.len() == 1 { "tree" } else { "trees" };
        let result = self.run(&mut contraction, &packed, (tree, seconds, kernel_seconds))?;
        self.tell_result(&result, pick, pick.problem.assembled_elements());
        Ok(result)
    }

    /// Runs a kernel, for which `tree` and it were built in `seconds`, of which the kernel took `kernel_seconds`.
    pub(super) fn run(
        &mut self,
        contraction: &mut Contraction<V>,
        packed: &[&Matrix<V>],
        (tree, seconds, kernel_seconds): (&str, f64, f64),
    ) -> Result<Tensor<V>, Failure> {
        if let Some(why) = contraction.kernel().interpreted() {
            let text = format!("the kernel runs in the interpreter, many times slower: {why}");
            self.screen.warn(text);
        }
        let tree_seconds = seconds - kernel_seconds;
        self.screen
            .line(format!("build    {tree} {tree_seconds:.2} s, kernel {kernel_seconds:.2} s"));
        let most = left().unwrap_or(u64::MAX);
        let (result, seconds) = self.screen.phase("run", || run(contraction, packed, most));
        let result = result?;
        self.screen.line(format!("run      {seconds:.3e} s"));
        Ok(result)
    }

    /// Tells how many elements an assembled result has, of which `predicted` were expected.
    pub(super) fn tell_result(&self, result: &Tensor<V>, pick: &Pick, predicted: u64) {
        let workspace = crate::schedule::workspace(pick);
        if let (Tensor::Sparse(list), Some(workspace)) = (result, workspace) {
            let name = &pick.problem.expr.output;
            let (have, predicted) = (grouped(list.nnz() as u64), grouped(predicted));
            let line =
                format!("result   {name}: {have} elements, {predicted} predicted; {workspace}");
            self.screen.line(line);
        }
    }
}

/// Packs the dense operands, each given up as soon as it is copied.
fn pack<V: Value>(
    contraction: &Contraction<V>,
    dense: Vec<DenseTensor<V>>,
) -> Result<Vec<Matrix<V>>, Failure> {
    let packed = dense.into_iter().enumerate().map(|(at, array)| contraction.pack(at, &array));
    Ok(packed.collect::<Result<_, _>>()?)
}
