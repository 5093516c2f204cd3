//! Measures how long trees of sorted lists take to build, in every order of the levels.
//!
//! ```text
//! cargo run --release -p decompose-core --example tree_times -- THREADS ROUNDS FILE...
//! ```
//!
//! Prints `program,tensor,nnz,tree,threads,quantity,seconds`, a line a round; what the first round takes does not count.
//! `predicted` is what a search over storages counts.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use decompose_formats::io::{self, Progress, ReadOptions, Source};
use decompose_formats::{Coo, Csf, ModeOrder};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [threads, rounds, files @ ..] = words.as_slice() else {
        return Err("tree_times THREADS ROUNDS FILE...".into());
    };
    let (threads, rounds) = (threads.parse()?, rounds.parse()?);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    for file in files {
        let read = io::read::<f64>(&Source::new(file), &ReadOptions::default(), &Progress::new());
        let mut list = read?.0;
        list.sum_duplicates()?;
        for order in orders(list.order()) {
            times(file, &list, &order, (threads, rounds))?;
        }
    }
    Ok(())
}

/// Times the tree of `list` in one order of its modes.
fn times(
    file: &str,
    list: &Coo<f64>,
    order: &ModeOrder,
    (threads, rounds): (usize, usize),
) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let nnz = list.nnz();
    for round in 0..=rounds {
        let own = list.clone();
        let start = Instant::now();
        let tree = Csf::build(own, order)?;
        let seconds = start.elapsed().as_secs_f64();
        if round > 0 {
            writeln!(out, "decompose,{file},{nnz},{order},{threads},build,{seconds:.6}")?;
        }
        drop(tree);
    }
    Ok(())
}

/// Returns all orders of the modes of a tensor.
fn orders(order: usize) -> Vec<ModeOrder> {
    let mut found = vec![Vec::new()];
    for _ in 0..order {
        let longer = |before: Vec<usize>| {
            let rest: Vec<usize> = (0..order).filter(|mode| !before.contains(mode)).collect();
            rest.into_iter()
                .map(move |mode| before.iter().copied().chain([mode]).collect::<Vec<_>>())
        };
        found = found.into_iter().flat_map(longer).collect();
    }
    found.into_iter().filter_map(ModeOrder::new).collect()
}
