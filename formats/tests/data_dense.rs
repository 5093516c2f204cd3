//! Padded matrices, mode orders and mode sets.

use decompose_formats::dense::{matrix_bytes, padded};
use decompose_formats::{Ints, Matrix, ModeOrder, ModeSet, Width};

#[test]
fn rows_are_padded_to_registers_and_lines() {
    let wide: Vec<usize> = [1, 2, 3, 7, 8, 9, 50, 64].map(|cols| padded(cols, 8)).into();
    assert_eq!(wide, [1, 2, 4, 8, 8, 16, 56, 64]);
    let narrow: Vec<usize> = [1, 9, 16, 17, 50].map(|cols| padded(cols, 4)).into();
    assert_eq!(narrow, [1, 16, 16, 32, 64]);
}

#[test]
fn matrices_take_whole_huge_pages_from_half_a_page_on() {
    let page = 2 << 20;
    let bytes = |lines: u64| matrix_bytes(lines, 5, 8);
    assert_eq!([0, 1, page / 128 - 1].map(bytes), [0, 64, page / 2 - 64]);
    assert_eq!([page / 128, page / 64, page / 64 + 1].map(bytes), [page, page, 2 * page]);
    assert_eq!((bytes(u64::MAX), matrix_bytes(1 << 20, usize::MAX, 8)), (u64::MAX, u64::MAX));
    for rows in [page / 128, page / 64 + 1].map(|rows| rows as usize) {
        let mut matrix = Matrix::<f64>::zeros(rows, 5).expect("small");
        assert_eq!(matrix.as_slice().as_ptr().align_offset(page as usize), 0);
        matrix.row_mut(rows - 1)[4] = 1.0;
        assert_eq!(matrix.as_slice().iter().sum::<f64>(), 1.0);
    }
}

#[test]
fn matrices_are_aligned_and_zero() {
    let mut matrix = Matrix::<f64>::zeros(5, 50).expect("small");
    assert_eq!((matrix.rows(), matrix.cols(), matrix.stride()), (5, 50, 56));
    assert_eq!(matrix.as_slice().as_ptr().align_offset(4096), 0);
    assert!(matrix.as_slice().iter().all(|&value| value == 0.0));
    matrix.row_mut(3)[49] = 7.0;
    matrix.view_mut()[[4, 0]] = 8.0;
    let copy = matrix.try_clone().expect("small");
    assert_eq!(
        (copy.row(3)[49], copy.view()[[4, 0]], copy.as_slice()[3 * 56 + 49]),
        (7.0, 8.0, 7.0)
    );
    assert_eq!(copy.view().dim(), (5, 50));
}

#[test]
fn empty_and_impossible_matrices() {
    assert_eq!(Matrix::<f32>::zeros(0, 3).expect("nothing").as_slice().len(), 0);
    assert!(Matrix::<f64>::zeros(usize::MAX, 2).is_err());
    assert!(Matrix::<f64>::zeros(1 << 55, 2).is_err());
}

#[test]
fn large_matrices_take_memory_only_where_written() {
    // 64 GiB would not fit; one written page does.
    let Ok(mut matrix) = Matrix::<f64>::zeros(1 << 27, 64) else {
        eprintln!("skipped: the system grants no address space beyond its memory");
        return;
    };
    matrix.row_mut(1 << 26)[0] = 1.0;
    assert_eq!(matrix.row(1 << 26)[0], 1.0);
}

#[test]
fn orders_are_permutations() {
    assert_eq!(ModeOrder::new(vec![0, 0]), None);
    assert_eq!(ModeOrder::new(vec![1, 2]), None);
    let order = ModeOrder::rooted(2, &[50, 10, 99, 10]);
    assert_eq!(order.to_string(), "3-2-4-1");
    assert_eq!((order.level_of(3), order.level_of(4)), (Some(2), None));
}

#[test]
fn sets_of_modes() {
    let set = ModeSet::of(&[2, 0]);
    assert_eq!((set.to_string().as_str(), set.len(), set.bits()), ("1,3", 2, 5));
    assert!(set.contains(2) && !set.contains(1) && !set.contains(64) && !set.is_empty());
    assert_eq!(set.without(0).modes().collect::<Vec<_>>(), [2]);
    assert_eq!(ModeSet::all(3), ModeSet::from_bits(7));
    assert_eq!(ModeSet::all(64).len(), 64);
}

#[test]
fn integers_know_their_width() {
    let bounds = [1 << 16, (1 << 16) + 1, 1 << 32, (1 << 32) + 1];
    assert_eq!(bounds.map(Width::below), [Width::W16, Width::W32, Width::W32, Width::W64]);
    assert_eq!(bounds.map(Width::listed), [Width::W32, Width::W32, Width::W32, Width::W64]);
    let ints = Ints::from(vec![3u32, 1, 2]);
    assert_eq!((ints.max(), ints.bytes(), ints.get(2)), (Some(3), 12, 2));
    assert_eq!(Ints::from(Vec::<u64>::new()).max(), None);
    let narrow = Ints::collect([3, 1, 2], Width::W16);
    assert_eq!((narrow.max(), narrow.bytes(), narrow.get(2)), (Some(3), 6, 2));
    assert!(narrow == ints && narrow != Ints::from(vec![3u32, 1, 4]));
    assert!(narrow != Ints::from(vec![3u64, 1]));
}
