//! The shared corpus of tensors (`data/corpus`), built as its README defines.
#![allow(dead_code, reason = "every suite uses a part")]

use std::collections::BTreeMap;

use decompose_core::einsum::IndexSet;
use decompose_core::error::CoreError;
use decompose_core::kernels::mode_index;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::MttkrpSweep;
use decompose_formats::{Coo, Ints, Matrix, Panels, Value};

#[derive(serde::Deserialize)]
pub(crate) struct Corpus {
    pub(crate) ranks: Vec<usize>,
    pub(crate) tensor: Vec<Case>,
}

#[derive(serde::Deserialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) extents: Vec<u64>,
    pub(crate) draws: u64,
    pub(crate) seed: u64,
    pub(crate) stride: Option<Vec<u64>>,
    pub(crate) heavy: Option<Heavy>,
    pub(crate) nonzeros: usize,
    pub(crate) sum: i64,
    pub(crate) checks: Vec<i64>,
}

#[derive(serde::Deserialize)]
pub(crate) struct Heavy {
    pub(crate) mode: usize,
    pub(crate) index: u64,
    pub(crate) percent: u64,
}

/// Runs an MTTKRP of `sweep` on `factors`, stored as it wants them where they can be.
pub(crate) fn multiply<V: Value>(
    sweep: &mut impl MttkrpSweep<V>,
    mode: usize,
    factors: &mut Vec<Matrix<V>>,
) -> Result<(), CoreError> {
    let rank = factors[0].cols();
    let widths = sweep.panels(rank);
    let widths = if widths.iter().sum::<usize>() == rank { widths } else { vec![rank] };
    let split = |factor| Panels::split(factor, &widths).expect("memory");
    let mut panels: Vec<Panels<V>> = std::mem::take(factors).into_iter().map(split).collect();
    let done = sweep.mttkrp(mode, &mut panels);
    *factors = panels.into_iter().map(|panels| panels.join().expect("memory")).collect();
    done
}

/// Checks that a sweep gives back the tensor, sorted.
pub(crate) fn check_entries<V: Value>(case: &Case, sweep: &impl MttkrpSweep<V>) {
    let list = sweep.entries().expect("memory");
    let at = |entry: usize| (0..list.order()).map(|m| list.coords(m).get(entry)).collect();
    let have: Vec<(Vec<u64>, f64)> =
        (0..list.nnz()).map(|entry| (at(entry), list.values()[entry].to_f64())).collect();
    let want: Vec<(Vec<u64>, f64)> = case.entries().into_iter().collect();
    assert_eq!((list.extents(), have), (&case.extents[..], want), "{}", case.name);
}

/// Reads the corpus.
pub(crate) fn corpus() -> Corpus {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/corpus/mttkrp.toml");
    toml::from_str(&std::fs::read_to_string(path).expect("the corpus")).expect("valid TOML")
}

fn hash(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Case {
    pub(crate) fn entries(&self) -> BTreeMap<Vec<u64>, f64> {
        let mut entries = BTreeMap::new();
        let cells: u64 = self.extents.iter().product();
        let draws = if self.draws == 0 { cells } else { self.draws };
        for t in 0..draws {
            let key = |c: u64| 1_000_000 * self.seed + 16 * t + c;
            let at = if self.draws == 0 { self.cell(t) } else { self.draw(&key) };
            let value = [-4., -3., -2., -1., 1., 2., 3., 4.][(hash(key(15)) % 8) as usize];
            entries.entry(at).or_insert(value);
        }
        entries
    }

    fn cell(&self, mut flat: u64) -> Vec<u64> {
        let mut at = vec![0; self.extents.len()];
        for (m, &extent) in self.extents.iter().enumerate().rev() {
            at[m] = flat % extent;
            flat /= extent;
        }
        at
    }

    fn draw(&self, key: &dyn Fn(u64) -> u64) -> Vec<u64> {
        let index = |(m, &extent): (usize, &u64)| {
            let stride = self.stride.as_ref().map_or(1, |strides| strides[m]);
            stride * (hash(key(m as u64)) % extent.div_ceil(stride))
        };
        let mut at: Vec<u64> = self.extents.iter().enumerate().map(index).collect();
        if let Some(heavy) = self.heavy.as_ref().filter(|h| hash(key(14)) % 100 < h.percent) {
            at[heavy.mode] = heavy.index;
        }
        at
    }

    pub(crate) fn coo<V: Value>(&self) -> Coo<V> {
        let entries = self.entries();
        let coords = (0..self.extents.len())
            .map(|m| Ints::from(entries.keys().map(|at| at[m] as u32).collect::<Vec<u32>>()));
        let values: Vec<V> = entries.values().map(|&v| V::from_f64(v)).collect();
        Coo::new(self.extents.clone(), coords.collect(), values).expect("a tensor")
    }

    pub(crate) fn factor_entry(&self, mode: usize, i: u64, r: u64) -> f64 {
        let key = 1_000_000 * self.seed + 500_000 + 10_007 * mode as u64 + 211 * i + r;
        (hash(key) % 5) as f64 - 2.0
    }

    pub(crate) fn factors<V: Value>(&self, rank: usize) -> Vec<Matrix<V>> {
        let factor = |(mode, &extent): (usize, &u64)| {
            let mut factor = Matrix::zeros(extent as usize, rank).expect("memory");
            for i in 0..extent as usize {
                let entry = |r: usize| V::from_f64(self.factor_entry(mode, i as u64, r as u64));
                (0..rank).for_each(|r| factor.row_mut(i)[r] = entry(r));
            }
            factor
        };
        self.extents.iter().enumerate().map(factor).collect()
    }

    /// The MTTKRP of `mode` by its definition, row-major.
    pub(crate) fn mttkrp(&self, mode: usize, rank: usize) -> Vec<f64> {
        let mut result = vec![0.0; self.extents[mode] as usize * rank];
        for (at, value) in self.entries() {
            for r in 0..rank {
                let others = (0..at.len()).filter(|&m| m != mode);
                let product: f64 = others.map(|m| self.factor_entry(m, at[m], r as u64)).product();
                result[at[mode] as usize * rank + r] += value * product;
            }
        }
        result
    }

    /// Exact counts of distinct coordinates for every set of modes.
    pub(crate) fn pattern(&self) -> Pattern {
        let entries = self.entries();
        let order = self.extents.len();
        let count = |set: usize| {
            let modes: Vec<usize> = (0..order).filter(|m| set >> m & 1 == 1).collect();
            let tuples = entries.keys().map(|at| modes.iter().map(|&m| at[m]).collect());
            let distinct: std::collections::BTreeSet<Vec<u64>> = tuples.collect();
            let indices: IndexSet = modes.iter().map(|&m| mode_index(m)).collect();
            (indices, distinct.len() as u64)
        };
        (1..1usize << order).map(count).collect()
    }
}
