//! Statistics against counting by sets, and the catalogue.

use std::collections::HashSet;

use decompose_formats::stats::{Certainty, ValueKind, cp_bytes, csf_bytes, tucker_bytes};
use decompose_formats::{
    Blocking, Coo, Csf, ModeOrder, ModeSet, PatternCounts, TensorStats, catalog,
};

/// Clustered coordinates: mode `m` follows mode 0, with more noise the larger `m` is.
fn clustered(extents: &[u64], nnz: u64) -> Coo<f64> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) ^ (state >> 50)
    };
    let mut columns: Vec<Vec<u32>> = vec![Vec::new(); extents.len()];
    for _ in 0..nnz {
        let center = next() % 997;
        for (mode, (column, extent)) in columns.iter_mut().zip(extents).enumerate() {
            column.push(((center * 31 + next() % (1 << (2 * mode))) % extent) as u32);
        }
    }
    let coords = columns.into_iter().map(|column| column.into()).collect();
    let mut coo = Coo::new(extents.to_vec(), coords, vec![1.0; nnz as usize]).expect("in range");
    coo.sum_duplicates().expect("sorts");
    coo
}

fn exact(coo: &Coo<f64>, set: ModeSet) -> u64 {
    let tuple = |i| set.modes().map(|mode| coo.coords(mode).get(i)).collect::<Vec<_>>();
    (0..coo.nnz()).map(tuple).collect::<HashSet<_>>().len() as u64
}

#[test]
fn estimates_of_all_sets_are_within_five_percent() {
    let coo = clustered(&[5000, 300, 2000, 77, 900], 60_000);
    let (extents, coords, values) = coo.clone().into_parts();
    let unsorted = Coo::new(extents, coords, values).expect("in range");
    for (coo, wanted) in [(&coo, 5 + 4), (&unsorted, 5 + 1)] {
        let patterns = PatternCounts::of(coo);
        let mut exactly = 0;
        for (set, count) in patterns.iter() {
            let truth = exact(coo, set);
            let error = (count.value as f64 - truth as f64).abs() / truth as f64;
            assert!(error < 0.05, "{set}: {} for {truth}", count.value);
            if count.certainty == Certainty::Exact {
                assert_eq!(count.value, truth, "{set}");
                exactly += 1;
            }
        }
        assert_eq!(patterns.iter().count(), 31);
        assert_eq!(exactly, wanted);
    }
}

#[test]
fn pairs_of_blocks_and_tuples_are_within_five_percent() {
    let coo = clustered(&[5000, 300, 2000, 77], 60_000);
    let patterns = PatternCounts::of(&coo);
    for bits in ["1.0.2.0", "2.1.2.1", "0.0.0.3"] {
        let blocking: Blocking = bits.parse().expect("bits");
        let numbered = coo.clone().with_blocks(&blocking).expect("numbers");
        let inside = patterns.in_blocks(&coo, &[blocking]).expect("counts").remove(0);
        assert_eq!(inside.len(), 16);
        for (set, count) in inside {
            let truth = exact(&numbered, ModeSet::from_bits(set.bits() | 1 << 4)) as f64;
            let error = (count as f64 - truth).abs() / truth;
            assert!(error < 0.05, "{set} in blocks by {bits}: {count} for {truth}");
        }
    }
}

#[test]
fn counts_never_shrink_with_the_set() {
    let patterns = PatternCounts::of(&clustered(&[50, 30, 20, 70], 20_000));
    for (set, count) in patterns.iter() {
        for mode in set.modes().filter(|_| set.len() > 1) {
            assert!(patterns.count(set.without(mode)).value <= count.value, "{set}");
        }
    }
}

#[test]
fn patterns_do_not_depend_on_the_number_of_threads() {
    let coo = clustered(&[500, 300, 200], 600_000);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| PatternCounts::of(&coo))
    };
    assert!([2, 5].into_iter().all(|threads| run(threads) == run(1)));
}

#[test]
fn high_orders_count_prefixes_and_bound_the_rest() {
    let extents = [9, 8, 7, 6, 5, 4, 3, 2];
    let coo = clustered(&extents, 4000);
    let patterns = PatternCounts::of(&coo);
    for root in 0..extents.len() {
        let order = ModeOrder::rooted(root, &extents);
        let prefix = |len: usize| patterns.count(ModeSet::of(&order.modes()[..len])).value;
        let counts: Vec<u64> = (1..=extents.len()).map(prefix).collect();
        assert!(counts.is_sorted() && counts[7] == coo.nnz() as u64, "{counts:?}");
    }
    let odd = ModeSet::of(&[0, 3, 5, 6]);
    let count = patterns.count(odd);
    assert_eq!(count.certainty, Certainty::Bound);
    assert!(count.value >= exact(&coo, odd));
}

#[test]
fn expected_counts_of_evenly_spread_entries() {
    let patterns = PatternCounts::uniform(&[10, 1000, 1_000_000], 5000);
    assert_eq!(patterns.count(ModeSet::of(&[0])).value, 10);
    assert_eq!(patterns.count(ModeSet::of(&[1])).value, 993);
    assert_eq!(patterns.count(ModeSet::of(&[0, 1])).value, 3935);
    assert_eq!(patterns.count(ModeSet::all(3)).value, 5000);
}

#[test]
fn the_forecast_of_a_tree_is_its_size() {
    let mut coo = clustered(&[500, 300, 200], 9000);
    let order = ModeOrder::new(vec![2, 0, 1]).expect("a permutation");
    coo.sort(&order).expect("sorts");
    let tree = Csf::from_sorted(&coo, &order).expect("sorted");
    assert_eq!(csf_bytes(&[200, 500, 300], &tree.prefix_counts(), 8), tree.bytes());
}

#[test]
fn slices_are_counted_whatever_the_extent() {
    let coords = || -> Vec<u64> { (0..300_000).map(|i| i % 1000 * (i % 3).min(1)).collect() };
    for extent in [1000, 1 << 21, 1 << 40] {
        let coo = Coo::new(vec![extent], vec![coords().into()], vec![1.0f32; 300_000]);
        let slices = TensorStats::of(&coo.expect("in range"), 0).slices[0];
        let mut counts = std::collections::BTreeMap::<u64, u64>::new();
        coords().into_iter().for_each(|coord| *counts.entry(coord).or_default() += 1);
        let largest = counts.values().copied().max().expect("some");
        assert_eq!((slices.used, slices.largest), (counts.len() as u64, largest), "{extent}");
        assert_eq!(slices.empty(), extent - counts.len() as u64);
    }
}

#[test]
fn statistics_of_a_small_tensor() {
    let coords = vec![vec![0u32, 0, 2].into(), vec![1u32, 3, 1].into()];
    let mut coo = Coo::new(vec![4, 4], coords, vec![3.0, 0.0, 4.0]).expect("in range");
    coo.sort(&ModeOrder::natural(2)).expect("sorts");
    let stats = TensorStats::of(&coo, 2);
    let values = stats.values.expect("some");
    assert_eq!((values.min, values.max, values.norm, values.zeros), (0.0, 4.0, 5.0, 1));
    assert_eq!(values.kind, ValueKind::Count);
    assert_eq!((stats.density, stats.duplicates, stats.frostt_name), (3.0 / 16.0, 2, None));
    assert_eq!(stats.coo_bytes, 48);
    let shown = stats.to_string();
    for line in ["extents       4 x 4", "values        counts, 0 to 4", "nodes 2 > 3"] {
        assert!(shown.contains(line), "{line} in\n{shown}");
    }
}

#[test]
fn kinds_of_values() {
    let kind = |values: &[f64]| {
        let coords: Vec<u32> = (0..values.len() as u32).collect();
        let coo = Coo::new(vec![9], vec![coords.into()], values.to_vec()).expect("in range");
        TensorStats::of(&coo, 0).values.map(|values| values.kind)
    };
    assert_eq!(kind(&[1.0, 0.0]), Some(ValueKind::Binary));
    assert_eq!(kind(&[1.0, 7.0]), Some(ValueKind::Count));
    assert_eq!(kind(&[1.0, -7.0]), Some(ValueKind::Integer));
    assert_eq!(kind(&[1.5, 7.0]), Some(ValueKind::NonNegative));
    assert_eq!(kind(&[1.5, -7.0]), Some(ValueKind::Real));
    assert_eq!(kind(&[]), None);
}

#[test]
fn forecasts_count_padded_rows() {
    assert_eq!(cp_bytes(&[10, 20], 10, 8), (10 + 20 + 20) * 16 * 8);
    assert_eq!(tucker_bytes(&[10, 20], &[2, 3], 8), (10 * 2 + 20 * 4 + 20 * 2 + 6) * 8);
    assert_eq!(cp_bytes(&[u64::MAX, 2], 50, 8), u64::MAX);
}

#[test]
fn the_catalogue_is_whole() {
    assert_eq!(catalog::presets().len(), 27);
    let nell = catalog::find("NELL_2").expect("listed");
    assert_eq!((nell.name, nell.nnz), ("nell-2", 76_879_419));
    assert_eq!(nell.extents, [12_092, 9_184, 28_818]);
    let matched = |extents: &[u64], nnz| catalog::matches(extents, nnz).map(|preset| preset.name);
    assert_eq!(matched(&[12_092, 9_184, 28_818], 76_879_419), Some("nell-2"));
    assert_eq!(matched(&[12_092, 9_183, 28_818], 76_879_419), None);
    assert_eq!(matched(&[12_092, 9_184], 76_879_419), None);
    assert_eq!(matched(&[12_092, 9_184, 28_818], 76_879_418), None);
}

#[test]
fn near_misses_are_suggested() {
    for (asked, meant) in
        [("nel-2", "nell-2"), ("delicious", "delicious-4d"), ("amazon", "amazon-reviews")]
    {
        let error = catalog::find(asked).expect_err("no such name").to_string();
        assert!(error.contains(asked) && error.contains(meant), "{error}");
    }
}

#[test]
fn scaled_shapes_keep_fibres_and_short_modes() {
    let uber = catalog::like("uber", 0.1).expect("listed");
    assert_eq!(uber.extents, [100, 24, 114, 172]);
    assert_eq!(uber.nnz, 330_949);
    let same = catalog::like("nell-2", 1.0).expect("listed");
    assert_eq!((same.extents, same.nnz), (vec![12_092, 9_184, 28_818], 76_879_419));
    assert_eq!(catalog::like("matmul_2-2-2", 3.0).expect("listed").nnz, 16);
    assert!(catalog::like("uber", 0.0).is_err() && catalog::like("uber", f64::NAN).is_err());
}
