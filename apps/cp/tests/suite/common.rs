//! What the tests share: a plain sweep over a coordinate list, made tensors, files of data.

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use decompose_core::error::CoreError;
use decompose_core::runtime::Toolchain;
use decompose_core::sweep::{Engine, MttkrpSweep};
use decompose_cp::{CpConfig, CpOutcome, Start, plan, solve};
use decompose_formats::{Coo, Ints, Matrix, ModeOrder, Panels, Value, panels};

/// MTTKRP by one loop over the non-zeros, summed in `f64`.
#[derive(Clone)]
pub(crate) struct NaiveSweep {
    pub(crate) extents: Vec<u64>,
    pub(crate) entries: Vec<(Vec<usize>, f64)>,
}

impl<V: Value> MttkrpSweep<V> for NaiveSweep {
    fn extents(&self) -> &[u64] {
        &self.extents
    }

    fn norm_squared(&self) -> f64 {
        self.entries.iter().map(|(_, value)| value * value).sum()
    }

    fn entries(&self) -> Result<Coo<V>, CoreError> {
        Ok(self.list())
    }

    fn mttkrp(&mut self, mode: usize, factors: &mut [Panels<V>]) -> Result<(), CoreError> {
        for panel in 0..factors[mode].parts().len() {
            let parts = factors.iter_mut().map(|factor| &mut factor.parts_mut()[panel]);
            self.multiply(mode, &mut parts.collect::<Vec<_>>());
        }
        Ok(())
    }
}

impl NaiveSweep {
    /// The tensor as a sorted list without duplicates.
    pub(crate) fn list<V: Value>(&self) -> Coo<V> {
        let column = |m: usize| -> Ints {
            self.entries.iter().map(|(at, _)| at[m] as u32).collect::<Vec<u32>>().into()
        };
        let coords = (0..self.extents.len()).map(column).collect();
        let values: Vec<V> = self.entries.iter().map(|(_, value)| V::from_f64(*value)).collect();
        let mut list = Coo::new(self.extents.clone(), coords, values).unwrap();
        list.sort(&ModeOrder::natural(self.extents.len())).unwrap();
        list.sum_duplicates().unwrap();
        list
    }

    fn multiply<V: Value>(&self, mode: usize, factors: &mut [&mut Matrix<V>]) {
        let rank = factors[mode].cols();
        let mut sums = vec![0.0; factors[mode].rows() * rank];
        let mut product = vec![0.0; rank];
        for (at, value) in &self.entries {
            product.fill(*value);
            for (m, factor) in factors.iter().enumerate().filter(|(m, _)| *m != mode) {
                for (p, x) in product.iter_mut().zip(factor.row(at[m])) {
                    *p *= x.to_f64();
                }
            }
            let row = &mut sums[at[mode] * rank..][..rank];
            row.iter_mut().zip(&product).for_each(|(sum, p)| *sum += p);
        }
        for i in 0..factors[mode].rows() {
            let row = factors[mode].row_mut(i).iter_mut();
            row.zip(&sums[i * rank..]).for_each(|(to, sum)| *to = V::from_f64(*sum));
        }
    }
}

/// The same over factors in panels of one line.
#[derive(Clone)]
pub(crate) struct InPanels(pub(crate) NaiveSweep);

impl<V: Value> MttkrpSweep<V> for InPanels {
    fn extents(&self) -> &[u64] {
        &self.0.extents
    }

    fn norm_squared(&self) -> f64 {
        MttkrpSweep::<V>::norm_squared(&self.0)
    }

    fn panels(&self, rank: usize) -> Vec<usize> {
        panels::widths(rank, V::BYTES, 1)
    }

    fn entries(&self) -> Result<Coo<V>, CoreError> {
        Ok(self.0.list())
    }

    fn mttkrp(&mut self, mode: usize, factors: &mut [Panels<V>]) -> Result<(), CoreError> {
        self.0.mttkrp(mode, factors)
    }
}

/// Decomposes `tensor` with the planned, compiled kernels.
pub(crate) fn run_compiled(
    tensor: &NaiveSweep,
    start: Start<f64>,
    config: &CpConfig,
) -> CpOutcome<f64> {
    run_kernels(tensor, start, config, &Toolchain::detect())
}

/// Decomposes `tensor` with the planned kernels.
pub(crate) fn run_kernels<V: Value>(
    tensor: &NaiveSweep,
    start: Start<V>,
    config: &CpConfig,
    toolchain: &Toolchain,
) -> CpOutcome<V> {
    let coo = tensor.list::<V>();
    let plan = plan(&coo, config).unwrap();
    let (mut engine, _) = Engine::build(coo, &plan, toolchain).unwrap();
    solve(&mut engine, start, config, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// Makes the dense tensor whose value at each cell is `value(cell)`.
pub(crate) fn dense(extents: &[u64], value: impl Fn(&[usize]) -> f64) -> NaiveSweep {
    let cells: u64 = extents.iter().product();
    let entries = (0..cells).map(|mut cell| {
        let mut at = vec![0; extents.len()];
        for (index, extent) in at.iter_mut().zip(extents).rev() {
            *index = (cell % extent) as usize;
            cell /= extent;
        }
        let value = value(&at);
        (at, value)
    });
    let entries = entries.filter(|(_, value)| *value != 0.0).collect();
    NaiveSweep { extents: extents.to_vec(), entries }
}

/// Makes a dense tensor of exact rank `rank` with factors uniform in [0, 1).
pub(crate) fn planted(extents: &[u64], rank: usize, seed: u64) -> NaiveSweep {
    let factors: Vec<Matrix<f64>> =
        decompose_common::init::random(extents, rank, seed).expect("small matrices");
    dense(extents, |at| {
        let term = |r: usize| -> f64 {
            at.iter().zip(&factors).map(|(&i, factor)| factor.row(i)[r]).product()
        };
        (0..rank).map(term).sum()
    })
}

/// Solves with an observer that does nothing.
pub(crate) fn run<V: Value>(
    sweep: &NaiveSweep,
    start: Start<V>,
    config: &CpConfig,
) -> CpOutcome<V> {
    let mut sweep = sweep.clone();
    solve(&mut sweep, start, config, &mut |_| ControlFlow::Continue(())).expect("a solution")
}

/// Reads `NAME.tns.gz` and `NAME.dims` of the data beside the project; `None`, with a line that
/// says so, where they are absent.
pub(crate) fn shared(set: &str, name: &str) -> Option<NaiveSweep> {
    let shipped = root().join("data");
    let beside = root().join("../shared/data").join(set).join(name);
    let folder = [shipped, beside]
        .into_iter()
        .find(|folder| folder.join(format!("{name}.tns.gz")).is_file());
    let Some(folder) = folder else {
        eprintln!("skipped: no {name}.tns.gz in data/ or ../shared/data/{set}/{name}/");
        return None;
    };
    let file = std::fs::File::open(folder.join(format!("{name}.tns.gz"))).expect("readable");
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).expect("gzip of text");
    let mut entries: Vec<(Vec<usize>, f64)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let value = words.pop().expect("a value").parse().expect("a number");
        let index = |word: &str| word.parse::<usize>().expect("an index") - 1;
        entries.push((words.into_iter().map(index).collect(), value));
    }
    let dims = std::fs::read_to_string(folder.join(format!("{name}.dims")));
    let extents = match dims {
        Ok(dims) => dims.split_whitespace().map(|w| w.parse().expect("an extent")).collect(),
        Err(_) => largest(&entries),
    };
    Some(NaiveSweep { extents, entries })
}

fn largest(entries: &[(Vec<usize>, f64)]) -> Vec<u64> {
    let order = entries[0].0.len();
    (0..order)
        .map(|m| entries.iter().map(|(at, _)| at[m] as u64 + 1).max().expect("some"))
        .collect()
}

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_owned()
}
