//! Normal equations of slices against plain sums.

use decompose_core::runtime::{SliceEntries, SliceList, Slices, Toolchain};
use decompose_formats::mix::mix;
use decompose_formats::{Coo, Ints, Matrix};

fn draw(key: u64) -> f64 {
    (mix(key) >> 11) as f64 / (1_u64 << 53) as f64 - 0.4
}

fn tensor(extents: &[u64], nnz: u64) -> Coo<f64> {
    let column = |(mode, &extent): (usize, &u64)| -> Ints {
        let draws = (0..nnz).map(|k| (mix(31 * k + mode as u64) % extent) as u32);
        draws.collect::<Vec<u32>>().into()
    };
    let columns = extents.iter().enumerate().map(column).collect();
    Coo::new(extents.to_vec(), columns, (0..nnz).map(draw).collect::<Vec<f64>>()).expect("a tensor")
}

fn factors(extents: &[u64], rank: usize) -> Vec<Matrix<f64>> {
    let factor = |(mode, &extent): (u64, &u64)| {
        let mut factor = Matrix::zeros(extent as usize, rank).expect("memory");
        for row in 0..extent as usize {
            let row_mut = factor.row_mut(row).iter_mut().enumerate();
            row_mut.for_each(|(r, x)| *x = draw(1000 * mode + (row * rank + r) as u64));
        }
        factor
    };
    (0..).zip(extents).map(factor).collect()
}

#[test]
fn sums_of_every_slice_are_the_plain_ones() {
    let toolchains = [Toolchain::detect(), Toolchain::Interpreter("a test".into())];
    let cases: [(&[u64], usize); 8] = [
        (&[5, 9], 1),
        (&[7, 5, 6], 3),
        (&[7, 5, 6], 8),
        (&[3, 4, 5, 6], 16),
        (&[3, 4, 5], 17),
        (&[3, 2, 3, 2, 3], 24),
        (&[4, 5, 6], 50),
        // Factors that outgrow the second-level cache.
        (&[3, 4, 200_000], 10),
    ];
    for (extents, rank) in cases {
        let x = tensor(extents, 150);
        let all = factors(extents, rank);
        for (toolchain, mode) in
            toolchains.iter().flat_map(|t| (0..extents.len()).map(move |mode| (t, mode)))
        {
            let list = SliceList::new(&x, mode).expect("a list");
            assert_eq!(list.len() as u64, extents[mode]);
            let kernel = Slices::new(rank, extents, toolchain);
            let others: Vec<&Matrix<f64>> =
                all.iter().enumerate().filter(|(m, _)| *m != mode).map(|(_, f)| f).collect();
            let mut right = Matrix::zeros(1, rank).expect("memory");
            let mut normal = Matrix::zeros(right.stride(), rank).expect("memory");
            for row in 0..list.len() {
                let (values, entries) = (list.values(), list.slice(row));
                let slice = SliceEntries { list: &list, values, entries };
                kernel.run(slice, &others, &mut normal, &mut right).expect("sums");
                let own: Vec<usize> = (0..x.nnz())
                    .filter(|&entry| x.coords(mode).get(entry) as usize == row)
                    .collect();
                assert!(list.slice(row).map(|at| list.places()[at] as usize).eq(own.clone()));
                let w = |entry: usize, r: usize| -> f64 {
                    let modes = (0..extents.len()).filter(|&m| m != mode);
                    modes.map(|m| all[m].row(x.coords(m).get(entry) as usize)[r]).product()
                };
                // Sums of at most 150 products below 1 in doubles: rounding is below 1e-13.
                for r in 0..rank {
                    let h: f64 = own.iter().map(|&e| x.values()[e] * w(e, r)).sum();
                    assert!((right.row(0)[r] - h).abs() < 1e-13, "{extents:?} {rank} {mode} {row}");
                    for s in 0..rank {
                        let n: f64 = own.iter().map(|&e| w(e, r) * w(e, s)).sum();
                        let have = normal.row(r)[s];
                        assert!((have - n).abs() < 1e-13, "{extents:?} {rank} {mode} ({r}, {s})");
                    }
                }
            }
        }
    }
}

#[test]
fn other_shapes_are_refused() {
    let x = tensor(&[4, 5, 6], 20);
    let list = SliceList::new(&x, 0).expect("a list");
    let kernel = Slices::new(4, &[4, 5, 6], &Toolchain::detect());
    let mut right = Matrix::zeros(1, 4).expect("memory");
    let mut normal = Matrix::zeros(4, 4).expect("memory");
    let mut run = |extents: &[u64], rank: usize, entries: std::ops::Range<usize>| {
        let factors = factors(extents, rank);
        let others: Vec<&Matrix<f64>> = factors.iter().collect();
        let slice = SliceEntries { list: &list, values: list.values(), entries };
        kernel.run(slice, &others, &mut normal, &mut right).is_ok()
    };
    assert!(run(&[5, 6], 4, 0..20));
    assert!(!run(&[5, 6], 5, 0..20), "another rank");
    assert!(!run(&[5, 5], 4, 0..20), "a factor with too few rows");
    assert!(!run(&[5], 4, 0..20), "a factor too few");
    assert!(!run(&[5, 6], 4, 0..21), "entries beyond the list");
}
