//! Hot kernels at rank 16 on a million non-zeros with nell-2's extents, skewed as it is.

use std::sync::{Arc, LazyLock};

use decompose_core::contract::{Contraction, Request, random_operands};
use decompose_core::cost::Machine;
use decompose_core::kernels::parse;
use decompose_core::runtime::Toolchain;
use decompose_core::sweep::{Merging, PlanOptions, TreeLayout, Trees, plan_kernels};
use decompose_formats::synth::{Pattern, SynthConfig, Values, generate};
use decompose_formats::{Coo, Csf, Matrix, PatternCounts};
use divan::Bencher;

const EXTENTS: [u64; 3] = [12_092, 9_184, 28_818];
const NNZ: u64 = 1_000_000;
const RANK: u64 = 16;

static TENSOR: LazyLock<Coo<f64>> = LazyLock::new(|| {
    let config = SynthConfig {
        extents: EXTENTS.to_vec(),
        nnz: NNZ,
        pattern: Pattern::PowerLaw(vec![1.0, 1.1, 0.9]),
        values: Values::Uniform { low: 0.05, high: 3.05 },
        seed: 101,
    };
    generate(&config).expect("fits")
});

fn main() {
    divan::main();
}

/// Runs the named kernel on the given tree.
fn kernel(bencher: Bencher, name: &str, tree: &str) {
    let tree: TreeLayout = tree.parse().expect("a tree");
    let named = parse(name).expect("a named kernel");
    let counts = PatternCounts::of(&*TENSOR);
    let shape = |access: &decompose_core::einsum::Access| -> Vec<u64> {
        let extent = |index: &_| {
            let mode = (0..3).find(|&mode| decompose_core::kernels::mode_index(mode) == *index);
            mode.map_or(RANK, |mode| EXTENTS[mode])
        };
        access.indices.iter().map(extent).collect()
    };
    let shapes: Vec<Vec<u64>> = named.inputs.iter().map(shape).collect();
    let request = Request::new(named, 0, &counts, &shapes).expect("fits");
    let options = PlanOptions {
        rank: RANK as usize,
        value_bytes: 8,
        threads: rayon::current_num_threads(),
        memory: None,
        sweeps: 50,
        trees: Trees::Given(vec![tree.clone()]),
        merging: Merging::Never,
        panels: None,
        updates: Vec::new(),
    };
    let problem = request.problem(&tree);
    let plan = plan_kernels(&EXTENTS, &[problem], &options, Machine::here()).expect("a plan");
    let step = &plan.steps[0];
    let csf = Csf::build(TENSOR.clone(), &tree.order).expect("fits").fuse(tree.fused);
    let built = Contraction::build(
        &step.problem,
        &step.candidate.schedule,
        Arc::new(csf),
        &Toolchain::detect(),
    );
    let mut contraction = built.expect("a kernel");
    let dense = random_operands::<f64>(contraction.kernel().program()).expect("fits");
    let dense: Vec<&Matrix<f64>> = dense.iter().collect();
    let mut output = contraction.output().expect("fits");
    bencher.bench_local(|| contraction.run(&dense, &mut output));
}

#[divan::bench]
fn mttkrp_root(bencher: Bencher) {
    kernel(bencher, "mttkrp:3:1", "1-2-3");
}

#[divan::bench]
fn mttkrp_root_fused(bencher: Bencher) {
    kernel(bencher, "mttkrp:3:1", "1-2+3");
}

#[divan::bench]
fn mttkrp_leaf(bencher: Bencher) {
    kernel(bencher, "mttkrp:3:3", "1-2-3");
}

#[divan::bench]
fn ttmc(bencher: Bencher) {
    kernel(bencher, "ttmc:3:1", "1-2-3");
}

#[divan::bench]
fn tttp(bencher: Bencher) {
    kernel(bencher, "tttp:3", "1-2-3");
}
