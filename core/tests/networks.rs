//! Networks of several sparse tensors from quantum chemistry, against the values that come with them.
//!
//! The integrals of a chain of hydrogen molecules lie beside the project; where they do not, the test is skipped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use decompose_core::autoschedule::{SearchLimits, scheduler};
use decompose_core::compute::{Evaluator, Known, Operands, Steps, Tensor, Wanted, assign, run};
use decompose_core::contract::{Planned, ResultForm};
use decompose_core::cost::Machine;
use decompose_core::einsum::Assignment;
use decompose_core::error::CoreError;
use decompose_core::runtime::Toolchain;
use decompose_formats::Coo;
use decompose_formats::io::{self, Progress, ReadOptions, Source};

/// Computes each product with one kernel of the scheduler `const`, which also chooses all layouts.
struct Kernels {
    tensors: BTreeMap<&'static str, Tensor<f64>>,
    toolchain: Toolchain,
    /// The bounds on the intermediates of the products.
    bounds: Vec<usize>,
}

impl Evaluator<f64> for Kernels {
    type Error = CoreError;

    fn operand(&mut self, name: &str) -> Result<Tensor<f64>, CoreError> {
        Ok(self.tensors[name].clone())
    }

    fn product(
        &mut self,
        known: &Known,
        tensors: Vec<Tensor<f64>>,
    ) -> Result<Tensor<f64>, CoreError> {
        let operands = Operands::of(tensors);
        assert!(operands.dense.is_empty(), "lists only");
        let request = known.request().expect("sparse operands");
        let base = request.problem_on(&[]);
        let one = scheduler("const").expect("a scheduler");
        let limits = SearchLimits { max_work: 20_000, ..SearchLimits::default() };
        let found = one.search_any_storage(&base, Machine::here(), &limits)?;
        self.bounds.extend(found.report.solved.map(|solved| solved.bound));
        let best = found.candidates.into_iter().next().expect("a schedule");
        let mut contraction =
            Planned::of(&request, &base, best).build(operands.sparse, &self.toolchain)?;
        run(&mut contraction, &[], u64::MAX)
    }
}

impl Kernels {
    /// Computes `text`; returns the sum and the Frobenius norm of the result, and keeps it as `name`.
    fn compute(&mut self, name: &'static str, text: &str, form: Option<ResultForm>) -> [f64; 2] {
        let assignment: Assignment = text.parse().expect(text);
        let wanted = Wanted { form, steps: Steps::One, ..Wanted::default() };
        let result = assign(&assignment, wanted, self).expect(text);
        let values: Vec<f64> = match &result {
            Tensor::Dense(array) => array.iter().copied().collect(),
            Tensor::Sparse(list) => list.values().to_vec(),
        };
        self.tensors.insert(name, result);
        let squares: f64 = values.iter().map(|value| value * value).sum();
        [values.iter().sum(), squares.sqrt()]
    }
}

/// The folder of the networks' tensors.
fn shared() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/own");
    let there = root.join("qc-h24-check.json").exists();
    if !there {
        eprintln!("skipped: no ../shared/data/own/qc-h24-check.json");
    }
    there.then_some(root)
}

/// The tensors with their extents.
const TENSORS: [(&str, &[u64]); 5] = [
    ("Int", &[48, 48, 264]),
    ("C", &[48, 12]),
    ("Phat", &[48, 48]),
    ("L", &[264, 12]),
    ("D", &[264, 264]),
];

/// Reads a tensor, sorted; the last slices may be empty.
fn read(data: &Path, name: &str, extents: &[u64]) -> Tensor<f64> {
    let file = data.join(format!("qc-h24-{name}/qc-h24-{name}.tns.gz"));
    let options = ReadOptions::default();
    let read = io::read::<f64>(&Source::new(&file), &options, &Progress::new());
    let (_, coords, values) = read.expect("a tensor").0.into_parts();
    let mut list = Coo::new(extents.to_vec(), coords, values).expect("a list");
    list.sum_duplicates().expect("a list");
    Tensor::Sparse(list)
}

/// The number called `name` in the text of a JSON object.
fn number(text: &str, name: &str) -> f64 {
    let (_, rest) = text.split_once(&format!("\"{name}\":")).expect(name);
    let end = rest.find([',', '}']).expect("an end");
    rest[..end].trim().parse().expect("a number")
}

#[test]
fn integrals_of_quantum_chemistry_have_their_values() {
    let Some(data) = shared() else { return };
    let check = std::fs::read_to_string(data.join("qc-h24-check.json")).expect("values");
    let tensors = TENSORS.map(|(name, extents)| (name, read(&data, name, extents)));
    let tensors = tensors.into_iter().collect();
    let folder = tempfile::tempdir().expect("a folder");
    let toolchain = match Toolchain::detect().compiler() {
        Ok(compiler) => Toolchain::Native(compiler.clone().with_cache(folder.path().to_owned())),
        Err(_) => Toolchain::Interpreter("no C compiler".into()),
    };
    let mut kernels = Kernels { tensors, toolchain, bounds: Vec::new() };
    let networks = [
        ("F", "F(k,i,m) = Int(u,v,k) * C(v,i) * Phat(u,m)", Some(ResultForm::Sparse)),
        ("X", "X(k,i,m) = Int(u,v,k) * L(k,i) * C(v,i) * Phat(u,m)", Some(ResultForm::Sparse)),
        ("R", "R(i,m,j,n) = F(k,i,m) * D(k,l) * F(l,j,n)", Some(ResultForm::Dense)),
    ];
    for (name, text, form) in networks {
        let have = kernels.compute(name, text, form);
        for (kind, have) in ["sum", "fro"].into_iter().zip(have) {
            let want = number(&check, &format!("{name}_{kind}"));
            assert!((have - want).abs() <= 1e-11 * want.abs(), "{name} {kind}: {have} for {want}");
        }
    }
    assert_eq!(kernels.bounds.len(), 3);
    assert!(kernels.bounds.iter().all(|&bound| bound <= 1), "{:?}", kernels.bounds);
}
