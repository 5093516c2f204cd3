//! Small products of sparse and dense tensors, random or named, whose nests are enumerated.
#![allow(dead_code, reason = "every suite uses a part")]

use decompose_core::cost::{Family, Machine};
use decompose_core::einsum::{Access, Expr, Extents, Index, IndexSet, indices};
use decompose_core::schedule::{Format, Pattern, Problem, SparseOperand};
use decompose_formats::PatternCounts;

pub(crate) fn machine() -> Machine {
    Family::Zen.machine()
}

/// A small repeatable source of numbers (SplitMix64).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    pub(crate) fn some(&mut self, letters: &str, count: usize) -> Vec<Index> {
        let mut all = indices(letters);
        for end in (1..all.len()).rev() {
            all.swap(end, self.below(end + 1));
        }
        all.truncate(count);
        all
    }
}

/// A product of two to four tensors, the first one or two of which are sparse, over up to four indices.
pub(crate) fn problem(draw: &mut Draw) -> Problem {
    let count = 2 + draw.below(3);
    let letters = &"ijkl"[..if count == 4 { 3 } else { 2 + draw.below(3) }];
    let several = draw.below(3) == 0;
    let mut inputs = Vec::new();
    for at in 0..count {
        let sparse = at == 0 || at == 1 && several;
        let modes = if sparse { 1 + draw.below(3) } else { draw.below(3) };
        let tensor = format!("{}{at}", if sparse { "X" } else { "B" });
        inputs.push(Access { tensor, indices: draw.some(letters, modes.min(letters.len())) });
    }
    let used = inputs.iter().fold(IndexSet::EMPTY, |set, access| set | access.set());
    let most = draw.below(4);
    let kept = draw.some(letters, most).into_iter().filter(|&i| used.contains(i)).collect();
    let expr = Expr { output: Access { tensor: "Y".into(), indices: kept }, inputs };
    let extents: Extents = used.iter().map(|index| (index, 2 + draw.below(2) as u64)).collect();
    let sparse = (0..1 + usize::from(several)).map(|input| {
        let levels = expr.inputs[input].indices.clone();
        SparseOperand { input, format: Format::csf(levels), pattern: Pattern::default() }
    });
    unbounded(Problem::joining(expr.clone(), extents, sparse.collect()))
}

pub(crate) fn unbounded(problem: Problem) -> Problem {
    Problem { max_buffer_dims: usize::MAX, max_buffer_bytes: u64::MAX, ..problem }
}

/// A kernel of the paper's table 2 whose operand B is sparse.
pub(crate) fn pose(text: &str) -> Problem {
    let expr: Expr = text.parse().expect("an expression");
    let levels = expr.inputs[0].indices.clone();
    let extent = |index: Index| match levels.iter().position(|&level| level == index) {
        Some(mode) => 1_000 + 500 * mode as u64,
        None => 16 + 8 * (index.number() as u64 % 3),
    };
    let extents: Extents = expr.all().iter().map(|index| (index, extent(index))).collect();
    let shape: Vec<u64> = levels.iter().map(|&level| extents.of(level)).collect();
    let pattern = Pattern::of(&PatternCounts::uniform(&shape, 20_000), &levels);
    unbounded(Problem::new(
        expr,
        extents,
        SparseOperand { input: 0, format: Format::csf(levels), pattern },
    ))
}

pub(crate) const SDDMM_SPMM: &str = "A(i,l) = B(i,j) * C(i,k) * D(j,k) * E(j,l)";
pub(crate) const SPMM_GEMM: &str = "A(i,l) = B(i,j) * C(j,k) * D(k,l)";
pub(crate) const TTMC: &str = "A(l,m,n) = B(i,j,k) * C(i,l) * D(j,m) * E(k,n)";
