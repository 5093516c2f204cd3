//! Trees against the lists they were built from.

use decompose_formats::csf::Layout;
use decompose_formats::{Array, Blocking, Coo, Csf, Ints, Level, ModeOrder, Width};
use proptest::prelude::*;

/// All permutations of `0..order`.
fn orders(order: usize) -> Vec<ModeOrder> {
    let mut found: Vec<Vec<usize>> = vec![vec![]];
    for mode in 0..order {
        let insert = |modes: Vec<usize>| {
            (0..=modes.len()).map(move |at| {
                let mut longer = modes.clone();
                longer.insert(at, mode);
                longer
            })
        };
        found = found.into_iter().flat_map(insert).collect();
    }
    found.into_iter().map(|modes| ModeOrder::new(modes).expect("a permutation")).collect()
}

/// A list of distinct coordinates, in a scrambled order.
fn list(extents: &[u64], tries: u64) -> Coo<f64> {
    let cells: u64 = extents.iter().product();
    let mut seen = std::collections::HashSet::new();
    let mut coords = vec![Vec::new(); extents.len()];
    let mut values = Vec::new();
    for i in 0..tries {
        let cell = (i.wrapping_mul(0x9e3779b97f4a7c15) >> 11) % cells;
        if seen.insert(cell) {
            let mut rest = cell;
            for (column, extent) in coords.iter_mut().zip(extents) {
                column.push((rest % extent) as u32);
                rest /= extent;
            }
            values.push(i as f64 + 0.5);
        }
    }
    let coords = coords.into_iter().map(Ints::from).collect();
    Coo::new(extents.to_vec(), coords, values).expect("in range")
}

fn check_round_trip(coo: &Coo<f64>, order: &ModeOrder) {
    let mut sorted = coo.clone();
    sorted.sort(order).expect("sorts");
    let csf = Csf::from_sorted(&sorted, order).expect("sorted");
    csf.check().expect("a good tree");
    assert_eq!(csf, Csf::build(coo.clone(), order).expect("builds"));
    assert_eq!(csf.to_coo(), sorted, "{order}");
    let mut prefixes = std::collections::HashSet::new();
    for level in 0..order.modes().len() {
        prefixes.clear();
        let modes = &order.modes()[..=level];
        for i in 0..coo.nnz() {
            prefixes.insert(modes.iter().map(|&m| coo.coords(m).get(i)).collect::<Vec<_>>());
        }
        assert_eq!(csf.prefix_counts()[level], prefixes.len() as u64, "{order}, level {level}");
    }
}

#[test]
fn round_trips_for_all_orders_of_one_to_five_modes() {
    let extents = [7, 3, 1, 11, 4];
    for order in 1..=5 {
        let coo = list(&extents[..order], 400);
        orders(order).iter().for_each(|modes| check_round_trip(&coo, modes));
    }
}

#[test]
fn large_trees_round_trip() {
    let coo = list(&[500, 40, 300], 400_000);
    orders(3).iter().for_each(|modes| check_round_trip(&coo, modes));
}

#[test]
fn one_entry_and_none() {
    for nnz in [0, 1] {
        let column = |coord: u32| Ints::from(vec![coord; nnz]);
        let coords = vec![column(4), column(0), column(1 << 20)];
        let coo = Coo::new(vec![5, 1, 1 << 21], coords, vec![2.0; nnz]).expect("in range");
        orders(3).iter().for_each(|modes| check_round_trip(&coo, modes));
    }
}

#[test]
fn wide_coordinates_round_trip() {
    let coords = vec![vec![1u64 << 40, 3].into(), vec![0u32, 1].into()];
    let coo = Coo::new(vec![1 << 41, 2], coords, vec![1.0, 2.0]).expect("in range");
    orders(2).iter().for_each(|modes| check_round_trip(&coo, modes));
}

#[test]
fn all_trees_of_a_list_come_in_the_order_asked_for() {
    let coo = list(&[30, 20, 50, 4], 3000);
    let wanted: Vec<(ModeOrder, usize)> =
        orders(4).into_iter().enumerate().map(|(at, order)| (order, 1 + at % 3)).collect();
    let trees = Csf::build_all(coo.clone(), &wanted).expect("builds");
    assert_eq!(trees.len(), wanted.len());
    for (tree, (order, fused)) in trees.iter().zip(&wanted) {
        assert_eq!(tree, &Csf::build(coo.clone(), order).expect("builds").fuse(*fused));
    }
    for fused in [0, 4, 5] {
        assert!(Csf::build_all(coo.clone(), &[(ModeOrder::natural(4), fused)]).is_err());
    }
}

#[test]
fn trees_of_modes_and_of_blocks_come_from_one_list() {
    // Large enough to be sorted by all threads; the mode of extent 1 has no bits to sort by.
    let coo = list(&[300, 1, 500, 40], 150_000);
    let blockings = ["2.0.1.0", "1.0.0.2"].map(|text| text.parse::<Blocking>().expect("bits"));
    let order = |modes: &[usize]| ModeOrder::new(modes.to_vec()).expect("an order");
    let layout = |blocks, modes: &[usize], fused| Layout { blocks, order: order(modes), fused };
    let layouts = [
        layout(Some(&blockings[0]), &[4, 2, 0, 3, 1], 2),
        layout(None, &[3, 1, 0, 2], 2),
        layout(Some(&blockings[1]), &[4, 3, 2, 1, 0], 1),
        layout(Some(&blockings[0]), &[4, 0, 1, 2, 3], 3),
        layout(None, &[0, 2, 1, 3], 1),
    ];
    let trees = Csf::build_all(coo.clone(), layouts.iter().cloned()).expect("builds");
    assert_eq!(trees.len(), layouts.len());
    for (tree, Layout { blocks, order, fused }) in trees.iter().zip(&layouts) {
        let list = match blocks {
            Some(blocks) => coo.clone().with_blocks(blocks).expect("numbers"),
            None => coo.clone(),
        };
        assert_eq!(tree, &Csf::build(list, order).expect("builds").fuse(*fused), "{blocks:?}");
    }
    let wrong = [layout(Some(&blockings[0]), &[2, 0, 3, 1], 2)];
    assert!(Csf::build_all(coo, wrong).is_err());
}

#[test]
fn unsorted_lists_are_refused() {
    let coo = list(&[30, 20], 100);
    let error = Csf::from_sorted(&coo, &ModeOrder::natural(2)).expect_err("not sorted");
    assert!(error.to_string().contains("sort it first"), "{error}");
}

#[test]
fn broken_trees_are_refused() {
    let mut coo = list(&[6, 5], 20);
    let order = ModeOrder::natural(2);
    coo.sort(&order).expect("sorts");
    let good = Csf::from_sorted(&coo, &order).expect("sorted");
    let levels = |change: &dyn Fn(&mut Vec<Level>)| {
        let mut levels = good.levels().to_vec();
        change(&mut levels);
        let values = Array::from(good.values().to_vec());
        Csf::from_parts(vec![6, 5], order.clone(), levels, values)
    };
    assert!(levels(&|_| ()).is_ok());
    let edit = |ints: &Ints, at: usize, to: u32| {
        let mut numbers: Vec<u32> = ints.iter().map(|n| n as u32).collect();
        numbers[at] = to;
        Ints::from(numbers)
    };
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Vec<Level>));
    let broken: [Change<'_>; 5] = [
        ("extent", &|l| l[0].coords = edit(&l[0].coords, 0, 6)),
        ("ascend", &|l| l[0].coords = edit(&l[0].coords, 1, 0)),
        ("children", &|l| l[0].pointers = edit(&l[0].pointers, 1, 0)),
        ("points at", &|l| l[0].pointers = edit(&l[0].pointers, 0, 1)),
        ("levels", &|l| l.truncate(1)),
    ];
    for (word, change) in broken {
        let error = levels(change).expect_err(word).to_string();
        assert!(error.contains(word), "{word}: {error}");
    }
}

/// Extents at which the width of coordinates changes.
const EDGES: [u64; 6] = [2, 300, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, (1 << 32) + 1];

/// A list with the corners of its box and some entries more, its columns of any widths that hold
/// them.
fn cornered(extents: &[u64], seed: u64) -> Coo<f64> {
    let mut cells = std::collections::BTreeSet::new();
    for corner in 0..1u64 << extents.len() {
        let last = |(mode, &extent): (usize, &u64)| (corner >> mode & 1) * (extent - 1);
        cells.insert(extents.iter().enumerate().map(last).collect::<Vec<u64>>());
    }
    for draw in 0..200u64 {
        let number = |mode: u64| (seed + draw * 8 + mode).wrapping_mul(0x9e3779b97f4a7c15) >> 20;
        cells.insert(extents.iter().zip(0..).map(|(e, mode)| number(mode) % e).collect());
    }
    let column = |mode: usize| -> Ints {
        let any = [Width::W16, Width::W32, Width::W64][(seed as usize + mode) % 3];
        let width = any.max(Width::below(extents[mode]));
        Ints::collect(cells.iter().rev().map(|cell| cell[mode]), width)
    };
    let coords = (0..extents.len()).map(column).collect();
    let values: Vec<f64> = (0..cells.len()).map(|at| at as f64 + 0.5).collect();
    Coo::new(extents.to_vec(), coords, values).expect("in range")
}

fn widths_follow_the_extents(tree: &Csf<f64>) {
    let fused = tree.mode_order().modes().len() - tree.fused();
    for (number, (level, &mode)) in tree.levels().iter().zip(tree.mode_order().modes()).enumerate()
    {
        assert_eq!(level.coords.width(), Width::below(tree.extents()[mode]), "level {number}");
        if number < fused {
            assert_eq!(level.pointers.width(), Width::below(tree.nnz() as u64 + 1));
        }
    }
}

#[test]
fn pointers_are_as_narrow_as_the_non_zeros_allow() {
    for nnz in [(1u32 << 16) - 1, 1 << 16] {
        let column = |step: u32| Ints::from((0..nnz).map(|at| at / step).collect::<Vec<u32>>());
        let coo =
            Coo::new(vec![9, 1 << 17], vec![column(1 << 13), column(1)], vec![1.0; nnz as usize]);
        let tree = Csf::build(coo.expect("in range"), &ModeOrder::natural(2)).expect("a tree");
        let width = if nnz < 1 << 16 { Width::W16 } else { Width::W32 };
        assert_eq!(tree.levels()[0].pointers.width(), width);
        tree.check().expect("a sound tree");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn trees_of_any_width_round_trip(
        edges in prop::collection::vec(0..EDGES.len(), 1..5),
        seed in 0..1000u64,
        pick in 0usize..24,
    ) {
        let extents: Vec<u64> = edges.iter().map(|&edge| EDGES[edge]).collect();
        let all = orders(extents.len());
        let order = &all[pick % all.len()];
        let coo = cornered(&extents, seed);
        check_round_trip(&coo, order);
        let tree = Csf::build(coo, order).expect("a tree");
        widths_follow_the_extents(&tree);
        for fused in 1..extents.len() {
            let tree_fused = tree.clone().fuse(fused);
            tree_fused.check().expect("a sound tree");
            widths_follow_the_extents(&tree_fused);
            prop_assert_eq!(tree_fused.to_coo(), tree.to_coo());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_small_tensor_round_trips(
        extents in prop::collection::vec(1..6u64, 1..6),
        tries in 0..200u64,
        pick in 0usize..120,
    ) {
        let all = orders(extents.len());
        check_round_trip(&list(&extents, tries), &all[pick % all.len()]);
    }
}

#[test]
fn fused_levels_hold_the_same_entries() {
    for extents in [&[5, 4, 6][..], &[3, 1, 4, 5], &[2, 3, 2, 3, 4]] {
        for order in orders(extents.len()) {
            let plain = Csf::build(list(extents, 90), &order).expect("a tree");
            for fused in 1..extents.len() {
                let tree = plain.clone().fuse(fused);
                tree.check().expect("a sound tree");
                assert_eq!(tree.fused(), fused);
                assert_eq!(tree.to_coo(), plain.to_coo(), "{order} with {fused} fused");
            }
        }
    }
}

#[test]
fn a_broken_fused_tail_is_found() {
    let tree = Csf::build(list(&[5, 4, 6], 60), &ModeOrder::natural(3)).expect("a tree").fuse(2);
    let mut levels = tree.levels().to_vec();
    let mut swapped: Vec<u32> = levels[1].coords.iter().map(|c| c as u32).collect();
    swapped.reverse();
    levels[1].coords = swapped.into();
    let values = Array::from(tree.values().to_vec());
    let broken = Csf::from_parts(vec![5, 4, 6], ModeOrder::natural(3), levels, values);
    assert!(broken.is_err());
}
