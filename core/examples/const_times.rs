//! Measures a network of sparse tensors fused by constraints beside other ways to compute it.
//!
//! ```text
//! cargo run --release -p decompose-core --example const_times -- NAME THREADS ROUNDS EXPR X=FILE... [k=264]... [lists] [no-n-ary]
//! ```
//!
//! Operands without a file are dense and random; extents that no file tells are given.  The programs:
//!
//! - `const` and `spttn`: the whole network in one kernel, as each scheduler chooses it;
//! - `n-ary`: one loop nest around one product of all operands;
//! - `pairs`: each contraction of two operands by itself, its result stored whole, without the time to store it as the
//!   next contraction reads it; `pairs-stored` is with that;
//! - `lists` and `lists-stored`: the same with a list as each result in between.
//!
//! The last ones are the fastest of their kind: layouts, trees, lists or arrays in between are tried.  `const` is the choice of
//! the scheduler.  The result of several sparse tensors is stored as suits it, or as a list where `lists` is given.
//! `no-n-ary` leaves out what would take hours.  All run in turn; a first run of each does not count.
//! Prints `round,program,tensor,rank,threads,precision,quantity,value,unit`.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::time::Instant;

use decompose_core::autoschedule::{SearchLimits, scheduler};
use decompose_core::compute::{Tensor, run, suited_form};
use decompose_core::contract::{Contraction, Planned, Request, ResultForm, count_join};
use decompose_core::cost::Machine;
use decompose_core::einsum::{Access, Expr, Index, IndexSet};
use decompose_core::path::{Arity, Path, Source as Operand, enumerate, unfactorised};
use decompose_core::runtime::Toolchain;
use decompose_formats::io::{self, Progress, ReadOptions, Source};
use decompose_formats::{Coo, DenseTensor, Matrix, PatternCounts};
use ndarray::IxDyn;

type Failed = Box<dyn Error>;

/// Schedules of a kind that are tried, those predicted to be the fastest.
const TRIED: usize = 3;

/// Schedules of each scheduler that are tried for a contraction of two operands.
const TRIED_PAIRS: usize = 2;

/// Trees of contractions of two operands that are tried, those with the fewest flops.
const TREES: usize = 3;

/// The programs that compute the whole network in one kernel.
const WHOLES: [&str; 3] = ["const", "spttn", "n-ary"];

/// The most bytes of an array between two contractions.
const MOST_BYTES: u64 = 2 << 30;

/// Kernels that run one after the other.
struct Variant {
    program: &'static str,
    kernels: Vec<Ready>,
    /// Seconds to store what one kernel makes as the next reads it.
    stored: f64,
    /// What it is.
    note: String,
}

/// A kernel with its operands.
struct Ready {
    contraction: Contraction<f64>,
    packed: Vec<Matrix<f64>>,
}

impl Ready {
    fn run(&mut self) -> Result<(f64, Tensor<f64>), Failed> {
        let packed: Vec<&Matrix<f64>> = self.packed.iter().collect();
        let start = Instant::now();
        let result = run(&mut self.contraction, &packed, u64::MAX)?;
        Ok((start.elapsed().as_secs_f64(), result))
    }
}

impl Variant {
    /// Runs all kernels; returns their seconds and the last result.
    fn run(&mut self) -> Result<(f64, Option<Tensor<f64>>), Failed> {
        let (mut seconds, mut result) = (0.0, None);
        for kernel in &mut self.kernels {
            let (own, made) = kernel.run()?;
            seconds += own;
            result = Some(made);
        }
        Ok((seconds, result))
    }
}

/// What is measured.
struct Network {
    expr: Expr,
    operands: Vec<Tensor<f64>>,
    /// How the result is stored, if it is said.
    form: Option<ResultForm>,
    machine: Machine,
    toolchain: Toolchain,
}

fn main() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (flags, words): (Vec<String>, Vec<String>) =
        words.into_iter().partition(|word| word == "lists" || word == "no-n-ary");
    let [name, threads, rounds, expr, given @ ..] = words.as_slice() else {
        return Err(
            "const_times NAME THREADS ROUNDS EXPR X=FILE... [k=264]... [lists] [no-n-ary]".into()
        );
    };
    let (threads, rounds): (usize, usize) = (threads.parse()?, rounds.parse()?);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    let expr: Expr = expr.parse()?;
    let operands = operands(&expr, given)?;
    let machine = Machine { threads, ..Machine::here().clone() };
    let asked = |flag: &str| flags.iter().any(|own| own == flag);
    let form = asked("lists").then_some(ResultForm::Sparse);
    let wholes = if asked("no-n-ary") { &WHOLES[..2] } else { &WHOLES };
    let network = Network { expr, operands, form, machine, toolchain: Toolchain::detect() };
    let mut variants = network.variants(wholes)?;
    for one in &variants {
        eprintln!("{}: {}", one.program, one.note);
    }
    let rank = given.iter().find_map(|word| word.strip_prefix("r=")).unwrap_or("");
    let mut out = std::io::stdout().lock();
    for round in 0..rounds {
        for one in &mut variants {
            let (seconds, _) = one.run()?;
            let mut row = |program: &str, seconds: f64| {
                writeln!(out, "{round},{program},{name},{rank},{threads},f64,run,{seconds:.6},s")
            };
            row(one.program, seconds)?;
            match one.program {
                "pairs" => row("pairs-stored", seconds + one.stored)?,
                "lists" => row("lists-stored", seconds + one.stored)?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Reads the operands that have a file, and makes the others.
fn operands(expr: &Expr, given: &[String]) -> Result<Vec<Tensor<f64>>, Failed> {
    let mut files = BTreeMap::new();
    let mut extents: BTreeMap<Index, u64> = BTreeMap::new();
    for word in given {
        let (name, value) = word.split_once('=').ok_or("operands are X=FILE, extents k=264")?;
        let index = expr.all().iter().find(|index| index.to_string() == name);
        match (index, value.parse::<u64>()) {
            (Some(index), Ok(extent)) => {
                extents.insert(index, extent);
            }
            _ => {
                files.insert(name, value);
            }
        }
    }
    let mut lists: BTreeMap<&str, Coo<f64>> = BTreeMap::new();
    for access in &expr.inputs {
        let Some(file) = files.get(access.tensor.as_str()) else { continue };
        if !lists.contains_key(access.tensor.as_str()) {
            let own = access.indices.iter().map(|index| extents.get(index).copied());
            let options = ReadOptions { extents: own.collect(), ..ReadOptions::default() };
            let read = io::read::<f64>(&Source::new(*file), &options, &Progress::new());
            let mut list = read?.0;
            list.sum_duplicates()?;
            lists.insert(&access.tensor, list);
        }
        let list = &lists[access.tensor.as_str()];
        for (&index, &extent) in access.indices.iter().zip(list.extents()) {
            extents.insert(index, extent);
        }
    }
    let mut state = 1_u64;
    let mut number = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1 << 24) as f64 - 0.5
    };
    let mut operands = Vec::with_capacity(expr.inputs.len());
    for access in &expr.inputs {
        operands.push(match lists.get(access.tensor.as_str()) {
            Some(list) => Tensor::Sparse(list.clone()),
            None => {
                let shape = access.indices.iter().map(|index| {
                    extents.get(index).map(|&n| n as usize).ok_or(format!("{index} has no extent"))
                });
                let shape: Vec<usize> = shape.collect::<Result<_, _>>()?;
                Tensor::Dense(DenseTensor::from_shape_fn(IxDyn(&shape), |_| number()))
            }
        });
    }
    Ok(operands)
}

impl Network {
    /// Makes all variants, and checks that they agree.
    fn variants(&self, wholes: &[&'static str]) -> Result<Vec<Variant>, Failed> {
        let form = self.form()?;
        eprintln!("result: {form:?}");
        let mut all = Vec::new();
        for &program in wholes {
            let one = |planned: &Planned| planned.schedule.path.terms.len() == 1;
            all.push(match program {
                "n-ary" => self.whole(program, "const", (form, TRIED), &one)?,
                _ => self.whole(program, program, (form, 1), &|_| true)?,
            });
        }
        all.extend(self.pairs(form)?);
        let mut want: Option<f64> = None;
        for one in &mut all {
            let (_, result) = one.run()?;
            let norm = result.map(norm).unwrap_or_default();
            let close = |want: f64| (norm - want).abs() <= 1e-9 * want;
            if !close(*want.get_or_insert(norm)) {
                return Err(format!("{}: norm {norm}, not {want:?}", one.program).into());
            }
        }
        Ok(all)
    }

    /// How the result is stored.
    fn form(&self) -> Result<ResultForm, Failed> {
        let inputs: Vec<&Tensor<f64>> = self.operands.iter().collect();
        let several = inputs.iter().filter(|x| x.is_sparse()).count() > 1;
        let suited =
            suited_form(&self.request(&self.expr, &inputs, ResultForm::Sparse)?.problem_on(&[]));
        Ok(if several { self.form.unwrap_or(suited) } else { ResultForm::Dense })
    }

    /// The whole network in one kernel: the fastest of those candidates that suit.
    fn whole(
        &self,
        program: &'static str,
        name: &str,
        (form, tried): (ResultForm, usize),
        suits: &dyn Fn(&Planned) -> bool,
    ) -> Result<Variant, Failed> {
        let limits = match program {
            "n-ary" => SearchLimits::all(),
            _ => SearchLimits::default(),
        };
        let inputs: Vec<&Tensor<f64>> = self.operands.iter().collect();
        let (_, mut found) = self.candidates(&self.expr, &inputs, form, (name, &limits))?;
        found.retain(suits);
        let (seconds, kernel, planned) = self.fastest(found, &inputs, tried)?;
        let nest = planned
            .schedule
            .text(&planned.problem.expr)
            .lines()
            .take(2)
            .collect::<Vec<_>>()
            .join("; ");
        let note = format!("{seconds:.5} s, {nest} on {}", planned.trees_typed());
        Ok(Variant { program, kernels: vec![kernel], stored: 0.0, note })
    }

    /// Poses a product.
    fn request(
        &self,
        expr: &Expr,
        inputs: &[&Tensor<f64>],
        form: ResultForm,
    ) -> Result<Request, Failed> {
        let lists: Vec<(usize, &Coo<f64>)> = inputs
            .iter()
            .enumerate()
            .filter_map(|(at, tensor)| match tensor {
                Tensor::Sparse(list) => Some((at, list)),
                Tensor::Dense(_) => None,
            })
            .collect();
        let counts: Vec<(usize, PatternCounts)> =
            lists.iter().map(|(at, list)| (*at, PatternCounts::of(*list))).collect();
        let counted: Vec<(usize, &PatternCounts)> =
            counts.iter().map(|(at, counts)| (*at, counts)).collect();
        let shapes: Vec<Vec<u64>> = inputs.iter().map(|tensor| tensor.extents()).collect();
        let mut request = Request::joining(expr.clone(), &counted, &shapes)?;
        request.result = form;
        if let [(a, first), (b, second)] = lists.as_slice() {
            let of = |at: usize| &expr.inputs[at];
            request.join =
                Some(count_join(&[(of(*a), *first), (of(*b), *second)], expr.output.set()));
        }
        Ok(request)
    }

    /// Poses a product and searches it with a scheduler.
    fn candidates(
        &self,
        expr: &Expr,
        inputs: &[&Tensor<f64>],
        form: ResultForm,
        (name, limits): (&str, &SearchLimits),
    ) -> Result<(Request, Vec<Planned>), Failed> {
        let request = self.request(expr, inputs, form)?;
        let base = request.problem_on(&[]);
        let one = scheduler(name).ok_or("no such scheduler")?;
        let found = one.search_any_storage(&base, &self.machine, limits)?;
        let planned = found.candidates.into_iter().map(|one| Planned::of(&base, one));
        let planned = planned.collect();
        Ok((request, planned))
    }

    /// Builds and runs the first `tried` candidates, and returns the fastest.
    fn fastest(
        &self,
        found: Vec<Planned>,
        inputs: &[&Tensor<f64>],
        tried: usize,
    ) -> Result<(f64, Ready, Planned), Failed> {
        let mut best: Option<(f64, Ready, Planned)> = None;
        for planned in found.into_iter().take(tried) {
            let mut ready = self.ready(&planned, inputs)?;
            ready.run()?;
            let (seconds, _) = ready.run()?;
            if best.as_ref().is_none_or(|(least, ..)| seconds < *least) {
                best = Some((seconds, ready, planned));
            }
        }
        best.ok_or_else(|| "no candidate".into())
    }

    fn ready(&self, planned: &Planned, inputs: &[&Tensor<f64>]) -> Result<Ready, Failed> {
        let mut lists = Vec::new();
        let mut arrays = Vec::new();
        for (at, tensor) in inputs.iter().enumerate() {
            match tensor {
                Tensor::Sparse(list) => lists.push((at, list.clone())),
                Tensor::Dense(array) => arrays.push(array),
            }
        }
        let contraction = planned.build(lists, &self.toolchain)?;
        let packed = arrays.iter().enumerate().map(|(at, array)| contraction.pack(at, array));
        let packed = packed.collect::<Result<_, _>>()?;
        Ok(Ready { contraction, packed })
    }

    /// The fastest sequence of contractions of two operands: of all trees, with lists and arrays in between.
    fn pairs(&self, form: ResultForm) -> Result<Vec<Variant>, Failed> {
        let mut best: [Option<(f64, Variant)>; 2] = [None, None];
        let mut seen = std::collections::BTreeSet::new();
        let mut paths = enumerate(&self.expr, Arity::Binary).0;
        paths.sort_by_key(|path| self.flops(path));
        for path in paths {
            if path == unfactorised(&self.expr) || !self.joins(&path) || !seen.insert(tree(&path)) {
                continue;
            }
            if seen.len() > TREES {
                break;
            }
            let between = path.terms.len() - 1;
            for forms in 0..1_usize << between {
                let form = |term: usize| match term {
                    term if term == between => form,
                    term if forms >> term & 1 == 1 => ResultForm::Sparse,
                    _ => ResultForm::Dense,
                };
                let Some(mut variant) = self.sequence(&path, &form)? else { continue };
                let (seconds, _) = variant.run()?;
                let kind = usize::from(forms + 1 == 1 << between);
                let program = ["pairs", "lists"][kind];
                if best[kind].as_ref().is_none_or(|(least, _)| seconds < *least) {
                    best[kind] = Some((seconds, Variant { program, ..variant }));
                }
            }
        }
        Ok(best.into_iter().flatten().map(|(_, variant)| variant).collect())
    }

    /// The iterations of all contractions of a path, if each sparse operand thins them out by its density.
    fn flops(&self, path: &Path) -> u64 {
        let inputs: Vec<&Tensor<f64>> = self.operands.iter().collect();
        let density = |at: usize, loops: IndexSet| match inputs[at] {
            Tensor::Sparse(list) if (self.expr.inputs[at].set() - loops).is_empty() => {
                let cells: f64 = list.extents().iter().map(|&n| n as f64).product();
                list.nnz() as f64 / cells
            }
            _ => 1.0,
        };
        let of = |loops: IndexSet| -> f64 {
            let cells = loops.iter().map(|index| extent(&self.expr, &inputs, index) as f64);
            cells.product::<f64>() * (0..inputs.len()).map(|at| density(at, loops)).product::<f64>()
        };
        path.terms.iter().map(|term| of(term.indices)).sum::<f64>() as u64
    }

    /// Tells whether the operands of each contraction share an index, and one of them is or may be sparse.
    fn joins(&self, path: &Path) -> bool {
        let set = |source: &Operand| match *source {
            Operand::Input(input) => self.expr.inputs[input].set(),
            Operand::Term(term) => path.terms[term].output,
        };
        let sparse = |source: &Operand| match *source {
            Operand::Input(input) => self.operands[input].is_sparse(),
            Operand::Term(_) => true,
        };
        path.terms.iter().all(|term| {
            let shared = term.inputs.iter().map(set).reduce(|a, b| a & b);
            shared.is_some_and(|shared| !shared.is_empty()) && term.inputs.iter().any(sparse)
        })
    }

    /// The contractions of `path` one after the other; `None` if one has dense operands only, or a result that is too large.
    fn sequence(
        &self,
        path: &Path,
        form: &dyn Fn(usize) -> ResultForm,
    ) -> Result<Option<Variant>, Failed> {
        let mut made: Vec<Tensor<f64>> = Vec::new();
        let (mut kernels, mut stored, mut note) = (Vec::new(), 0.0, String::new());
        for (at, term) in path.terms.iter().enumerate() {
            let inputs: Vec<&Tensor<f64>> = term
                .inputs
                .iter()
                .map(|source| match *source {
                    Operand::Input(input) => &self.operands[input],
                    Operand::Term(term) => &made[term],
                })
                .collect();
            let last = at + 1 == path.terms.len();
            let expr = product(path, &self.expr, at);
            let extents = |access: &Access| -> u64 {
                access.indices.iter().map(|index| extent(&expr, &inputs, *index)).product()
            };
            let sparse = inputs.iter().filter(|tensor| tensor.is_sparse()).count();
            let form = if sparse > 1 || last { form(at) } else { ResultForm::Dense };
            if sparse == 0 || form == ResultForm::Dense && 8 * extents(&expr.output) > MOST_BYTES {
                return Ok(None);
            }
            let limits = SearchLimits::default();
            let mut found = Vec::new();
            for name in ["spttn", "const"] {
                let (_, own) = self.candidates(&expr, &inputs, form, (name, &limits))?;
                found.extend(own.into_iter().take(TRIED_PAIRS));
            }
            let tried = found.len();
            let (seconds, mut kernel, planned) = self.fastest(found, &inputs, tried)?;
            let start = Instant::now();
            if term.inputs.iter().any(|source| matches!(source, Operand::Term(_))) {
                self.ready(&planned, &inputs)?;
                stored += start.elapsed().as_secs_f64();
            }
            note += &format!("{expr} {form:?} {seconds:.5} s on {}; ", planned.trees_typed());
            made.push(kernel.run()?.1);
            kernels.push(kernel);
        }
        Ok(Some(Variant { program: "pairs", kernels, stored, note }))
    }
}

/// The contraction of a path as an expression of its own.
fn product(path: &Path, expr: &Expr, at: usize) -> Expr {
    let named = |term: usize| Access {
        tensor: format!("Made{term}"),
        indices: path.terms[term].output.iter().collect(),
    };
    let inputs = path.terms[at].inputs.iter().map(|source| match *source {
        Operand::Input(input) => expr.inputs[input].clone(),
        Operand::Term(term) => named(term),
    });
    let last = at + 1 == path.terms.len();
    let output = if last { expr.output.clone() } else { named(at) };
    Expr { output, inputs: inputs.collect() }
}

fn extent(expr: &Expr, inputs: &[&Tensor<f64>], index: Index) -> u64 {
    let of = expr.inputs.iter().zip(inputs).find_map(|(access, tensor)| {
        let mode = access.indices.iter().position(|own| *own == index)?;
        Some(tensor.extents()[mode])
    });
    of.unwrap_or(1)
}

/// The operands below each contraction, which tell a tree.
fn tree(path: &Path) -> Vec<Vec<usize>> {
    let mut below: Vec<Vec<usize>> = Vec::new();
    for term in &path.terms {
        let mut own: Vec<usize> = term
            .inputs
            .iter()
            .flat_map(|source| match *source {
                Operand::Input(input) => vec![input],
                Operand::Term(term) => below[term].clone(),
            })
            .collect();
        own.sort_unstable();
        below.push(own);
    }
    below.sort();
    below
}

/// The Frobenius norm.
fn norm(tensor: Tensor<f64>) -> f64 {
    let squares: f64 = match tensor {
        Tensor::Dense(array) => array.iter().map(|value| value * value).sum(),
        Tensor::Sparse(list) => list.values().iter().map(|value| value * value).sum(),
    };
    squares.sqrt()
}
