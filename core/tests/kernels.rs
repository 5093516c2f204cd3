//! The named kernels as they are scheduled by default, on every tree, against the dense oracle.

mod random;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use decompose_core::autoschedule::default_scheduler;
use decompose_core::contract::{Contraction, Request};
use decompose_core::cost::Machine;
use decompose_core::einsum::{Expr, Index, oracle};
use decompose_core::kernels;
use decompose_core::runtime::{Toolchain, share_slices};
use decompose_core::sweep::TreeLayout;
use decompose_formats::{Coo, Csf, DenseTensor, Matrix, ModeOrder, PatternCounts};
use ndarray::IxDyn;

/// Relative to the same expression on absolute values, as every product and sum is rounded.
const TOLERANCE: f64 = 1e-12;

/// Extents of the modes; long enough that loops have whole batches and a rest.
const EXTENTS: [u64; 5] = [5, 7, 4, 3, 2];

fn sparse(order: usize) -> Coo<f64> {
    let extents = EXTENTS[..order].to_vec();
    let cells: u64 = extents.iter().product();
    let mut entries: Vec<u64> = (0..cells).filter(|cell| cell * 2_654_435_761 % 7 < 4).collect();
    entries.push(cells - 1);
    let column = |mode: usize| {
        let below: u64 = extents[mode + 1..].iter().product();
        entries.iter().map(|cell| (cell / below % extents[mode]) as u32).collect::<Vec<u32>>()
    };
    let coords = (0..order).map(|mode| column(mode).into()).collect();
    let values: Vec<f64> = (0..entries.len()).map(|n| (n as f64 * 0.7).sin()).collect();
    let mut coo = Coo::new(extents, coords, values).expect("a tensor");
    coo.sum_duplicates().expect("merged");
    coo
}

fn trees(order: usize) -> Vec<TreeLayout> {
    let forward: Vec<usize> = (0..order).collect();
    let backward: Vec<usize> = (0..order).rev().collect();
    let turned: Vec<usize> = (0..order).map(|mode| (mode + 1) % order).collect();
    let fusings = if order > 2 { 1..=2 } else { 1..=1 };
    let orders = [forward, backward, turned].into_iter().flat_map(|modes| {
        fusings.clone().map(move |fused| {
            let order = ModeOrder::new(modes.clone()).expect("an order");
            TreeLayout::new(order, fused)
        })
    });
    orders.collect()
}

fn check(expr: &Expr, order: usize, rank: u64) {
    check_on(&sparse(order), expr, rank);
}

fn check_on(x: &Coo<f64>, expr: &Expr, rank: u64) {
    let order = x.order();
    let modes = &expr.inputs[0].indices;
    let extent = |index: &Index| {
        modes.iter().position(|mode| mode == index).map_or(rank, |mode| x.extents()[mode])
    };
    let shapes: Vec<Vec<u64>> =
        expr.inputs.iter().map(|access| access.indices.iter().map(extent).collect()).collect();
    let dense: Vec<DenseTensor<f64>> = shapes[1..]
        .iter()
        .map(|shape| {
            let shape: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
            let mut count = 0.0;
            DenseTensor::from_shape_simple_fn(IxDyn(&shape), || {
                count += 1.0;
                f64::cos(count)
            })
        })
        .collect();
    let operands: Vec<DenseTensor<f64>> =
        std::iter::once(random::dense(x)).chain(dense.iter().cloned()).collect();
    let want = oracle::evaluate(expr, &operands);
    let sizes: Vec<DenseTensor<f64>> = operands.iter().map(|x| x.mapv(f64::abs)).collect();
    let scale = oracle::evaluate(expr, &sizes);
    let request = Request::new(expr.clone(), 0, &PatternCounts::of(x), &shapes).expect("asked");
    for tree in trees(order) {
        let problem = request.problem(&tree);
        let found = default_scheduler().search(&problem, Machine::here()).expect("a schedule");
        let schedule = &found.candidates[0].schedule;
        let csf = Csf::build(x.clone(), &tree.order).expect("a tree").fuse(tree.fused);
        let mut contraction =
            Contraction::build(&problem, schedule, Arc::new(csf), &Toolchain::detect())
                .expect("a kernel");
        let interpreted = contraction.kernel().interpreted();
        assert!(interpreted.is_none(), "{expr} on {tree}: {interpreted:?}");
        let packed: Vec<Matrix<f64>> =
            (0..).zip(&dense).map(|(at, x)| contraction.pack(at, x).expect("packed")).collect();
        let mut output = contraction.output().expect("memory");
        contraction.run(&packed.iter().collect::<Vec<_>>(), &mut output).expect("run");
        // Powers of two scale every product and sum exactly.
        let doubled: Vec<f64> = contraction.tree().values().iter().map(|v| 2.0 * v).collect();
        let mut twice = contraction.output().expect("memory");
        let operands: Vec<&Matrix<f64>> = packed.iter().collect();
        contraction.run_on(&doubled, &operands, &mut twice).expect("run");
        let pairs = output.as_slice().iter().zip(twice.as_slice());
        assert!(pairs.clone().all(|(one, two)| 2.0 * one == *two), "{expr} on other values");
        assert!(contraction.run_on(&doubled[1..], &operands, &mut twice).is_err());
        let got = match contraction.dense(&output) {
            Some(dense) => dense,
            None => random::dense(&contraction.pattern(&output).expect("a list").expect("list")),
        };
        let text = schedule.text(expr);
        for ((got, want), scale) in got.iter().zip(&want).zip(&scale) {
            let close = (got - want).abs() <= TOLERANCE * scale;
            assert!(close, "{expr}, rank {rank}, tree {tree}: {got} for {want}\n{text}");
        }
        check_windows(&mut contraction, expr, &packed, &output);
    }
}

/// Rows of a result, shown a few at a time, are those of the whole.
fn check_windows(
    contraction: &mut Contraction<f64>,
    expr: &Expr,
    packed: &[Matrix<f64>],
    whole: &Matrix<f64>,
) {
    let Some(len) = contraction.row_len() else { return };
    let dense: Vec<&Matrix<f64>> = packed.iter().collect();
    let coords = contraction.shared_tree().levels()[0].coords.iter().collect::<Vec<u64>>();
    for parts in [1, 3] {
        let ranges = share_slices(contraction.tree(), parts, 2.5);
        assert_eq!((ranges[0].start, ranges[parts - 1].end), (0, coords.len() as u64));
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start), "{ranges:?}");
        let seen = AtomicU64::new(0);
        let shares = ranges.into_iter().map(|range| (range.clone(), range.start)).collect();
        let ran = contraction.run_windows(&dense, 2, shares, &|next: &mut u64, slices, values| {
            assert!(*next == slices.start && slices.end - slices.start <= 2, "in order");
            *next = slices.end;
            for (slice, row) in slices.zip(values.chunks_exact(len as usize)) {
                seen.fetch_add(1, Ordering::Relaxed);
                let want =
                    &whole.as_slice()[(coords[slice as usize] * len) as usize..][..row.len()];
                // Tasks of the whole may share a slice, which is then summed in another order.
                let size = want.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
                let close = row.iter().zip(want).all(|(x, y)| (x - y).abs() <= TOLERANCE * size);
                assert!(close, "{expr}: slice {slice}");
            }
        });
        match ran {
            Ok(_) => assert_eq!(seen.into_inner(), coords.len() as u64),
            // The row's index is also one of a dense operand.
            Err(error) => assert!(error.to_string().contains("windows"), "{error}"),
        }
    }
}

#[test]
fn ttmc_of_every_mode() {
    for (order, ranks) in [(2, [7, 50]), (3, [5, 16]), (4, [1, 8]), (5, [2, 3])] {
        for rank in ranks {
            (0..order).for_each(|mode| check(&kernels::ttmc(order, Some(mode)), order, rank));
            check(&kernels::ttmc(order, None), order, rank.min(8));
        }
    }
}

/// Slice `i` has `1 + i % 9` nodes: batches of every size, alone and after whole ones.
#[test]
fn ttmc_of_rows_of_few_nodes() {
    let cells: Vec<[u32; 3]> = (0..36)
        .flat_map(|i| (0..=i % 9).map(move |j| [i, j, (i + j) % 4]))
        .flat_map(|[i, j, k]| [[i, j, k], [i, j, (k + 1 + j % 2) % 4]])
        .collect();
    let column = |mode: usize| cells.iter().map(|cell| cell[mode]).collect::<Vec<u32>>().into();
    let values: Vec<f64> = (0..cells.len()).map(|n| (n as f64 * 0.7).sin()).collect();
    let coords = (0..3).map(column).collect();
    let mut x = Coo::new(vec![36, 9, 4], coords, values).expect("a tensor");
    x.sum_duplicates().expect("merged");
    for rank in [5, 16] {
        (0..3).for_each(|mode| check_on(&x, &kernels::ttmc(3, Some(mode)), rank));
    }
}

#[test]
fn normal_equations_of_every_mode() {
    for (order, ranks) in [(2, [5, 17]), (3, [3, 8]), (4, [2, 5])] {
        for rank in ranks {
            (0..order).for_each(|mode| check(&kernels::normal(order, mode), order, rank));
        }
    }
}

#[test]
fn tttp_of_every_order() {
    for order in 1..=5 {
        for rank in [1, 7, 8, 9, 50] {
            check(&kernels::tttp(order), order, rank);
        }
    }
}

#[test]
fn tttc_of_every_mode() {
    for (order, ranks) in [(2, [8, 17]), (3, [1, 9]), (4, [4, 8]), (5, [2, 3])] {
        for rank in ranks {
            (0..order).for_each(|mode| check(&kernels::tttc(order, Some(mode)), order, rank));
            check(&kernels::tttc(order, None), order, rank);
        }
    }
}

#[test]
fn an_outer_product_at_every_position() {
    let expr = "S(i,j,k,r,s) = X(i,j,k) * A(j,r) * B(k,s)".parse().expect("an expression");
    check(&expr, 3, 9);
}

#[test]
fn matrix_kernels() {
    for name in ["spmv", "spmm"] {
        check(&kernels::parse(name).expect("a kernel"), 2, 33);
    }
}
