//! Sorting and merging of coordinate lists against the standard library.

use decompose_formats::{
    Coo, Duplicates, FormatError, Ints, ModeOrder, ModeSet, PatternCounts, Width,
};
use proptest::prelude::*;

type Entry = (Vec<u64>, f64);

/// All permutations of `0..order`.
fn orders(order: usize) -> Vec<ModeOrder> {
    let mut found = vec![vec![]];
    for mode in 0..order {
        found = found
            .into_iter()
            .flat_map(|modes: Vec<usize>| {
                (0..=modes.len()).map(move |at| {
                    let mut longer = modes.clone();
                    longer.insert(at, mode);
                    longer
                })
            })
            .collect();
    }
    found.into_iter().map(|modes| ModeOrder::new(modes).expect("a permutation")).collect()
}

fn coo(extents: &[u64], entries: &[Entry]) -> Coo<f64> {
    let column = |mode: usize| -> Ints {
        let coords = entries.iter().map(|(coords, _)| coords[mode]);
        // Alternate the width, so that all are met whatever the extent.
        let width = [Width::W16, Width::W32, Width::W64][mode % 3];
        Ints::collect(coords, width.max(Width::below(extents[mode])))
    };
    let values: Vec<f64> = entries.iter().map(|entry| entry.1).collect();
    Coo::new(extents.to_vec(), (0..extents.len()).map(column).collect(), values).expect("in range")
}

fn entries(coo: &Coo<f64>) -> Vec<Entry> {
    let coords = |i| (0..coo.order()).map(|mode| coo.coords(mode).get(i)).collect();
    (0..coo.nnz()).map(|i| (coords(i), coo.values()[i])).collect()
}

fn key(order: &ModeOrder, coords: &[u64]) -> Vec<u64> {
    order.modes().iter().map(|&mode| coords[mode]).collect()
}

/// A reproducible stream of numbers for tests.
fn stream(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mixed = (state ^ (state >> 33)).wrapping_mul(0xff51afd7ed558ccd);
        mixed ^ (mixed >> 33)
    }
}

fn random(extents: &[u64], nnz: usize, seed: u64) -> Vec<Entry> {
    let mut next = stream(seed);
    let mut coords = || extents.iter().map(|&extent| next() % extent).collect::<Vec<_>>();
    (0..nnz).map(|i| (coords(), i as f64)).collect()
}

/// Checks lists with values as decimals of few digits, which sorts carry in keys, and as other numbers.
fn check_sort(extents: &[u64], list: Vec<Entry>, order: &ModeOrder) {
    let with = |value: fn(f64) -> f64| list.iter().map(move |(at, v)| (at.clone(), value(*v)));
    check_sorted(extents, with(|v| (v * 8.0).round() / 100.0).collect(), order);
    check_sorted(extents, with(|v| (v + 1.0) / 3.0).collect(), order);
    check_sorted(extents, list, order);
}

fn check_sorted(extents: &[u64], list: Vec<Entry>, order: &ModeOrder) {
    let mut sorted = coo(extents, &list);
    sorted.sort(order).expect("sorts");
    let mut expected = list;
    expected.sort_by_key(|(coords, _)| key(order, coords));
    assert_eq!(entries(&sorted), expected, "{extents:?} by {order}");
    assert!(sorted.is_sorted_by(order));
    assert_eq!(sorted.sorted_by(), Some(order));
}

fn extents_and_entries() -> impl Strategy<Value = (Vec<u64>, Vec<Entry>)> {
    prop::collection::vec(prop_oneof![1..4u64, 1..1000u64, Just(1 << 40)], 1..6).prop_flat_map(
        |extents| {
            let coords: Vec<_> = extents.iter().map(|&extent| 0..extent).collect();
            let entries = prop::collection::vec((coords, -4.0..4.0f64), 0..400);
            (Just(extents), entries)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sorts_like_the_standard_library((extents, list) in extents_and_entries(), pick in 0usize..120) {
        let all = orders(extents.len());
        check_sort(&extents, list, &all[pick % all.len()]);
    }

    #[test]
    fn sums_like_a_map((extents, list) in extents_and_entries()) {
        let mut sums = std::collections::BTreeMap::<Vec<u64>, f64>::new();
        for (coords, value) in &list {
            *sums.entry(coords.clone()).or_default() += value;
        }
        let mut merged = coo(&extents, &list);
        let removed = merged.sum_duplicates().expect("sorts");
        prop_assert_eq!(removed as usize, list.len() - sums.len());
        for ((coords, value), (want_coords, want)) in entries(&merged).iter().zip(&sums) {
            prop_assert_eq!(coords, want_coords);
            prop_assert!((value - want).abs() < 1e-12);
        }
    }
}

#[test]
fn large_lists_sort_by_every_order() {
    let extents = [300, 700, 90];
    for order in orders(3) {
        check_sort(&extents, random(&extents, 300_000, 1), &order);
    }
}

#[test]
fn heavy_slices_are_partitioned_again() {
    // Nine of ten entries share the leading coordinate, and most of those the second one.
    let extents = [1 << 12, 1 << 12, 1 << 12];
    let mut next = stream(5);
    let mut list = random(&extents, 400_000, 2);
    for (coords, _) in &mut list {
        if !next().is_multiple_of(10) {
            coords[0] = 7;
            coords[1] = if next() % 10 < 9 { 9 } else { coords[1] };
        }
    }
    check_sort(&extents, list, &ModeOrder::natural(3));
}

#[test]
fn keys_beyond_64_and_128_bits_sort() {
    for extents in [vec![1 << 30, 1 << 28, 1 << 20], vec![1 << 40; 4]] {
        let mut list = random(&extents, 150_000, 3);
        list.iter_mut().for_each(|(coords, _)| coords[0] %= 50);
        check_sort(&extents, list, &ModeOrder::natural(extents.len()));
    }
}

#[test]
fn memory_of_sorts_is_less_with_few_decimals() {
    let bytes = |extents: &[u64], value: fn(f64) -> f64| {
        let list = random(extents, 1000, 6).into_iter().map(|(at, v)| (at, value(v)));
        let tensor = coo(extents, &list.collect::<Vec<_>>());
        tensor.sort_bytes(None) / 1000
    };
    // Up to 999 needs 10 bits; 22 and 12 are left beside the first indices, 4 beside the last.
    for (extents, few, others) in
        [([1 << 20, 1 << 22], 8, 16), ([1 << 26, 1 << 26], 8, 16), ([1 << 30, 1 << 30], 16, 16)]
    {
        assert_eq!(bytes(&extents, |v| v), few, "{extents:?}");
        assert_eq!(bytes(&extents, |v| v / 7.0), others, "{extents:?}");
    }
    let long = [1 << 30, 1 << 28, 1 << 20];
    assert_eq!((bytes(&long, |v| v / 100.0), bytes(&long, |v| v / 7.0)), (16, 24));
}

#[test]
fn sums_of_duplicates_have_codes_of_their_own() {
    let list = vec![(vec![1, 1], 200.0), (vec![1, 1], 100.0), (vec![0, 2], 1.0), (vec![0, 3], 0.5)];
    let mut tensor = coo(&[2, 4], &list);
    tensor.sum_duplicates().expect("sorts");
    tensor.sort(&ModeOrder::new(vec![1, 0]).expect("an order")).expect("sorts");
    assert_eq!(tensor.values(), [300.0, 1.0, 0.5]);
}

#[test]
fn resorting_uses_the_known_order() {
    let extents = [40, 300, 70, 5];
    let list = random(&extents, 200_000, 4);
    let all = orders(4);
    for (from, to) in all.iter().zip(all.iter().rev()).chain(all.iter().zip(all.iter().skip(1))) {
        let mut resorted = coo(&extents, &list);
        resorted.sort(from).expect("sorts");
        resorted.sort(to).expect("sorts");
        let mut fresh = coo(&extents, &list);
        fresh.sort(to).expect("sorts");
        // Values tell duplicates apart, whose order depends on the way.
        let coords =
            |coo: &Coo<f64>| (0..4).map(|mode| coo.coords(mode).clone()).collect::<Vec<_>>();
        assert_eq!(coords(&resorted), coords(&fresh), "{from} to {to}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let extents = [300, 700, 90];
    let list = random(&extents, 300_000, 6);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            let mut coo = coo(&extents, &list);
            let merged = coo.sum_duplicates().expect("sorts");
            (coo.norm_squared().to_bits(), merged, entries(&coo))
        })
    };
    let one = run(1);
    assert!(one.1 > 0);
    assert!([2, 3, 8].into_iter().all(|threads| run(threads) == one));
}

#[test]
fn policies_keep_the_first_or_refuse() {
    let list = [(vec![1, 2], 1.0), (vec![0, 0], 2.0), (vec![1, 2], 4.0)];
    let mut first = coo(&[2, 3], &list);
    assert_eq!(first.merge_duplicates(Duplicates::First).expect("merges"), 1);
    assert_eq!(entries(&first), [(vec![0, 0], 2.0), (vec![1, 2], 1.0)]);
    let mut refused = coo(&[2, 3], &list);
    let error = refused.merge_duplicates(Duplicates::Error).expect_err("has a duplicate");
    assert!(matches!(error, FormatError::Duplicate(ref at) if at == "2 3"), "{error}");
}

#[test]
fn policies_choose_one_value_of_equal_indices() {
    use Duplicates::{First, Last, Max, Mean, Min, Sum};
    // The entries at (2, 3) are 1, 8, -3 in the order of the list.
    let list = [
        (vec![1, 2], 1.0),
        (vec![0, 0], 2.0),
        (vec![1, 2], 8.0),
        (vec![3, 0], 0.5),
        (vec![1, 2], -3.0),
    ];
    for (policy, want) in
        [(Sum, 6.0), (Mean, 2.0), (First, 1.0), (Last, -3.0), (Min, -3.0), (Max, 8.0)]
    {
        let mut merged = coo(&[4, 3], &list);
        assert_eq!(merged.merge_duplicates(policy).expect("merges"), 2, "{policy}");
        let want = [(vec![0, 0], 2.0), (vec![1, 2], want), (vec![3, 0], 0.5)];
        assert_eq!(entries(&merged), want, "{policy}");
    }
}

#[test]
fn zeros_of_both_signs_are_counted() {
    let list = [(vec![0, 0], 0.0), (vec![0, 1], 3.0), (vec![1, 1], -0.0)];
    assert_eq!(coo(&[2, 2], &list).zeros(), 2);
    assert_eq!(coo(&[2, 2], &list[1..2]).zeros(), 0);
}

#[test]
fn parts_of_a_list_keep_their_order() {
    let list = [(vec![0, 2], 1.0), (vec![1, 0], 2.0), (vec![3, 1], 3.0), (vec![2, 2], 4.0)];
    let coo = coo(&[4, 3], &list);
    let odd = coo.filtered(|entry| entry % 2 == 1);
    assert_eq!(entries(&odd), [(vec![1, 0], 2.0), (vec![2, 2], 4.0)]);
    assert_eq!(odd.extents(), [4, 3]);
}

#[test]
fn values_are_summed_up() {
    let list: Vec<Entry> = (0..50_000).map(|i| (vec![i], i as f64 - 100.0)).collect();
    let coo = coo(&[50_000], &list);
    let norm: f64 = list.iter().map(|(_, v)| v * v).sum();
    assert!((coo.norm_squared() - norm).abs() < 1e-12 * norm);
    assert_eq!(coo.value_range(), Some((-100.0, 49_899.0)));
    assert_eq!(coo.sum(), list.iter().map(|(_, v)| v).sum::<f64>());
}

#[test]
fn an_order_of_other_modes_is_refused() {
    let mut coo = coo(&[2, 2], &[(vec![0, 1], 1.0)]);
    assert!(coo.sort(&ModeOrder::natural(3)).is_err());
}

#[test]
fn modes_are_renumbered_in_place() {
    let list = random(&[5, 7, 3], 60, 4);
    let mut sorted = coo(&[5, 7, 3], &list);
    sorted.sort(&ModeOrder::new(vec![1, 0, 2]).unwrap()).unwrap();
    let before = entries(&sorted);
    let order = ModeOrder::new(vec![2, 0, 1]).unwrap();
    let after = sorted.permute_modes(&order).unwrap();
    assert_eq!(after.extents(), [3, 5, 7]);
    let moved: Vec<Entry> =
        before.iter().map(|(at, value)| (vec![at[2], at[0], at[1]], *value)).collect();
    assert_eq!(entries(&after), moved);
    // Mode 1 was the first to sort by; it is mode 2 now.
    assert_eq!(after.sorted_by(), ModeOrder::new(vec![2, 1, 0]).as_ref());
    assert!(after.is_sorted_by(&ModeOrder::new(vec![2, 1, 0]).unwrap()));
    // Sets of several modes are estimated by hashes that know the order of the modes.
    let moved = PatternCounts::of(&coo(&[5, 7, 3], &list)).permute_modes(&order);
    let counted = PatternCounts::of(&after);
    for set in [&[0][..], &[1], &[2], &[0, 1, 2]].map(ModeSet::of) {
        assert_eq!(moved.count(set), counted.count(set), "{set:?}");
    }
    assert_eq!((moved.extents(), moved.nnz()), (after.extents(), after.nnz() as u64));
    assert!(after.permute_modes(&ModeOrder::natural(2)).is_err());
}
