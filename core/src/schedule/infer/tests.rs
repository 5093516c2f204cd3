//! Estimates beside exact counts.

use std::collections::BTreeSet;

use decompose_formats::{Coo, PatternCounts};

use crate::einsum::{Expr, Extents, IndexSet};
use crate::schedule::{Format, LevelKind, Pattern, Problem, SparseOperand, infer};

/// Numbers that look random, the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn unit(&mut self) -> f64 {
        self.below(1 << 30) as f64 / (1u64 << 30) as f64
    }
}

type Entries = BTreeSet<(u64, u64)>;

fn uniform(n: u64, count: usize, draw: &mut Draw) -> Entries {
    let mut entries = Entries::new();
    while entries.len() < count {
        entries.insert((draw.below(n), draw.below(n)));
    }
    entries
}

/// Rows and columns by a power law: the coordinate `c` occurs in proportion to `1/(c+1)^0.5`.
fn skewed(n: u64, count: usize, draw: &mut Draw) -> Entries {
    let mut entries = Entries::new();
    while entries.len() < count {
        let (a, b) = (draw.unit(), draw.unit());
        entries.insert(((a * a * n as f64) as u64, (b * b * n as f64) as u64));
    }
    entries
}

fn banded(n: u64, width: u64) -> Entries {
    (0..n).flat_map(|row| (row..n.min(row + width)).map(move |column| (row, column))).collect()
}

fn list(n: u64, entries: &Entries) -> Coo<f64> {
    let rows: Vec<u32> = entries.iter().map(|entry| entry.0 as u32).collect();
    let columns: Vec<u32> = entries.iter().map(|entry| entry.1 as u32).collect();
    Coo::new(vec![n, n], vec![rows.into(), columns.into()], vec![1.0; entries.len()]).unwrap()
}

/// What is known of the operands.
#[derive(Clone, Copy)]
enum Known {
    NonZeros,
    Counts,
}

/// Poses `expr` with its first inputs sparse, of which the counts are known, or the non-zeros alone.
fn pose(expr: &str, n: u64, matrices: &[&Entries], known: Known) -> Problem {
    let expr: Expr = expr.parse().unwrap();
    let extents: Extents = expr.all().iter().map(|index| (index, n)).collect();
    let operand = |(input, entries): (usize, &&Entries)| {
        let levels = expr.inputs[input].indices.clone();
        let all: IndexSet = levels.iter().copied().collect();
        let pattern = match known {
            Known::Counts => Pattern::of(&PatternCounts::of(&list(n, entries)), &levels),
            Known::NonZeros => Pattern::from_iter([(all, entries.len() as u64)]),
        };
        SparseOperand { input, format: Format::csf(levels), pattern }
    };
    let sparse = matrices.iter().enumerate().map(operand).collect();
    Problem::joining(expr, extents, sparse)
}

/// The coordinates of a product of two matrices.
fn product(a: &Entries, b: &Entries) -> Entries {
    let pairs = a.iter().flat_map(|&(i, j)| b.range((j, 0)..(j + 1, 0)).map(move |&(_, k)| (i, k)));
    pairs.collect()
}

#[test]
fn estimates_are_near_exact_counts() {
    let n = 600;
    let mut draw = Draw(7);
    let mut matrices = Vec::new();
    for degree in [1, 3, 8, 20] {
        let count = n as usize * degree;
        matrices.push((uniform(n, count, &mut draw), uniform(n, count, &mut draw)));
        matrices.push((skewed(n, count, &mut draw), skewed(n, count, &mut draw)));
    }
    // A chain of three bands of width `w` is overestimated by `w²/3`.
    for width in [1, 2, 4, 5] {
        matrices.push((banded(n, width), banded(n, width)));
    }
    for known in [Known::NonZeros, Known::Counts] {
        let mut factors = Vec::new();
        for (a, b) in &matrices {
            let ab = product(a, b);
            let abc = product(&ab, a);
            let rows: BTreeSet<u64> = ab.iter().map(|entry| entry.0).collect();
            for (expr, operands, exact) in [
                ("C(i,k) = A(i,j) * B(j,k)", &[a, b][..], ab.len()),
                ("D(i,l) = A(i,j) * B(j,k) * C(k,l)", &[a, b, a], abc.len()),
                ("y(i) = A(i,j) * B(j,k)", &[a, b], rows.len()),
            ] {
                let inferred = infer(&pose(expr, n, operands, known)).elements;
                let ratio = inferred.max(1.0) / (exact as f64).max(1.0);
                factors.push((ratio.max(1.0 / ratio), expr, exact, inferred));
            }
        }
        factors.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (median, worst) = (&factors[factors.len() / 2], &factors[factors.len() - 1]);
        assert!(median.0 <= 2.0, "{median:?}");
        assert!(worst.0 <= 10.0, "{:?}", &factors[factors.len() - 8..]);
    }
}

#[test]
fn independent_patterns_meet_as_often_as_any() {
    let n = 600;
    let mut draw = Draw(11);
    let [a, b, mask] = [3_000, 6_000, 20_000].map(|count| uniform(n, count, &mut draw));
    let exact = product(&a, &b).intersection(&mask).count() as f64;
    let problem = pose("S(i,k) = A(i,j) * B(j,k) * C(i,k)", n, &[&a, &b, &mask], Known::NonZeros);
    let ratio = infer(&problem).elements / exact;
    assert!((0.8..1.25).contains(&ratio), "{ratio} of {exact}");
}

#[test]
fn a_fill_in_is_the_degree_of_the_paper() {
    // Equation 5 with deg(r|u) = 4 and deg(v|r) = 5 of 100: 100 (1 - 0.95^4).
    let n = 100;
    let rows = |degree: u64| -> Entries {
        (0..n).flat_map(|row| (0..degree).map(move |at| (row, (row + 17 * at) % n))).collect()
    };
    let problem = pose("C(i,k) = A(i,j) * B(j,k)", n, &[&rows(4), &rows(5)], Known::Counts);
    let from_a = 100.0 * (1.0 - 0.95_f64.powi(4));
    let from_b = 100.0 * (1.0 - 0.96_f64.powi(5));
    let inferred = infer(&problem).elements;
    assert!((inferred - 100.0 * from_a.min(from_b)).abs() < 1e-6, "{inferred}");
}

#[test]
fn levels_are_dense_where_most_coordinates_occur() {
    use LevelKind::{Compressed, Dense};
    let n = 600;
    let mut draw = Draw(3);
    let kinds = |problem: &Problem| -> Vec<LevelKind> {
        infer(problem).levels.iter().map(|level| level.kind).collect()
    };
    let (few, many) = (uniform(n, 1_800, &mut draw), uniform(n, 30_000, &mut draw));
    let product = "C(i,k) = A(i,j) * B(j,k)";
    // Rows as an array and columns as lists: CSR.
    assert_eq!(kinds(&pose(product, n, &[&few, &few], Known::NonZeros)), [Dense, Compressed]);
    assert_eq!(kinds(&pose(product, n, &[&many, &many], Known::NonZeros)), [Dense, Dense]);
    // A dense operand makes rows of its result dense.
    assert_eq!(
        kinds(&pose("C(i,r) = A(i,j) * B(j,r)", n, &[&few], Known::NonZeros)),
        [Dense, Dense]
    );
    // Few rows are left of a matrix with few entries.
    let handful = uniform(n, 20, &mut draw);
    assert_eq!(
        kinds(&pose(product, n, &[&handful, &few], Known::Counts)),
        [Compressed, Compressed]
    );
    assert!(infer(&pose("s() = A(i,j) * B(j,i)", n, &[&few, &few], Known::Counts)).elements <= 1.0);
}
