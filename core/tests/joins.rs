//! What is predicted of joins of sparse operands: products, elements, and which rows are prefetched.

use std::collections::BTreeSet;

use decompose_core::autoschedule::finish;
use decompose_core::contract::count_join;
use decompose_core::cost::Family;
use decompose_core::einsum::{Expr, Extents, Index, IndexSet};
use decompose_core::schedule::{Format, JoinCounts, Pattern, Problem, Schedule, SparseOperand};
use decompose_formats::Coo;
use decompose_formats::mix::mix;

fn set(indices: &[Index]) -> IndexSet {
    indices.iter().copied().collect()
}

/// A product of two sparse operands with indices of this extent, in trees in the order of their modes; of both `counts`
/// says the non-zeros by the number of leading modes.
fn product(text: &str, extent: u64, counts: &[u64]) -> Problem {
    let expr: Expr = text.parse().expect("a product");
    let extents: Extents = expr.all().iter().map(|index| (index, extent)).collect();
    let operand = |input: usize| {
        let levels = expr.inputs[input].indices.clone();
        let counted = counts.iter().enumerate().map(|(at, &n)| (set(&levels[..=at]), n));
        let pattern = Pattern::from_iter(counted);
        SparseOperand { input, format: Format::csf(levels), pattern }
    };
    let sparse = vec![operand(0), operand(1)];
    Problem::joining(expr, extents, sparse)
}

#[test]
fn a_tensor_has_its_own_coordinates_and_products_are_those_counted() {
    let problem = product("C(k,l) = X(i,j,k) * X(i,j,l)", 1000, &[50, 2000, 9000]);
    let loops = |text: &str| {
        text.chars().map(|letter| Index::new(letter).expect("a letter")).collect::<IndexSet>()
    };
    assert_eq!(problem.iterations(loops("i")), 50);
    assert_eq!(problem.iterations(loops("ij")), 2000);
    assert_eq!(problem.iterations(loops("ijk")), 9000);
    assert_eq!(problem.iterations(loops("ijkl")), 9000 * 9000 / 2000);
    let join = Some(JoinCounts { products: 123_456, elements: 1 });
    let counted = Problem { join, ..problem };
    assert_eq!(counted.iterations(loops("ijkl")), 123_456);
    assert_eq!(counted.iterations(loops("ijk")), 9000);
}

/// The first row and column are full: a sample that always had one would take the others to be like it.
#[test]
fn full_first_slices_do_not_stand_for_all() {
    const ROWS: u32 = 4000;
    let full = (0..ROWS).flat_map(|at| [(0, at), (at, 0)]);
    let few = (1..ROWS).flat_map(|row| {
        (0..40).map(move |at| (row, (mix(u64::from(row * 40 + at)) % u64::from(ROWS)) as u32))
    });
    let places: BTreeSet<(u32, u32)> = full.chain(few).collect();
    let mut of_row = vec![Vec::new(); ROWS as usize];
    places.iter().for_each(|&(row, column)| of_row[row as usize].push(column));
    let (mut products, mut elements) = (0, 0);
    for row in &of_row {
        let met = row.iter().flat_map(|&column| &of_row[column as usize]);
        products += met.clone().count() as u64;
        elements += met.collect::<BTreeSet<_>>().len();
    }
    let (rows, columns): (Vec<u32>, Vec<u32>) = places.into_iter().unzip();
    let values = vec![1.0; rows.len()];
    let x = Coo::new(vec![u64::from(ROWS); 2], vec![rows.into(), columns.into()], values)
        .expect("a list");
    let expr: Expr = "Z(i,k) = X(i,j) * X(j,k)".parse().expect("a product");
    let [first, second] = expr.inputs.as_slice() else { panic!("two inputs") };
    let counts = count_join(&[(first, &x), (second, &x)], expr.output.set());
    assert_eq!(counts.products, products);
    assert!(products > 1 << 20, "too few products for a sample: {products}");
    let ratio = counts.elements as f64 / elements as f64;
    assert!((0.9..1.1).contains(&ratio), "{} of {elements} elements", counts.elements);
}

#[test]
fn rows_in_which_another_operand_scatters_are_not_prefetched() {
    let problem = product("Z(i,k) = X(j,i) * Y(j,k)", 20_000, &[20_000, 400_000]);
    let text = "path X*Y\nnest j{ i{ k{ T1 } } }";
    let read = Schedule::parse(text, &problem.expr).expect("a schedule");
    assert!(problem.scatters());
    for machine in [Family::Zen, Family::Xeon, Family::Neutral].map(Family::machine) {
        let (path, nest) = (read.path.clone(), read.nest.clone());
        assert_eq!(finish(&problem, path, nest, &machine).prefetches, Vec::new());
    }
}
