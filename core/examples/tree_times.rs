//! Measures how long trees of sorted lists take to build, in every order of the levels.
//!
//! ```text
//! cargo run --release -p decompose-core --example tree_times -- THREADS ROUNDS FILE...
//! ```
//!
//! Prints `round,program,tensor,rank,threads,precision,quantity,value,unit`; what the first round takes does not count.  The
//! program `predicted` is what a search counts for a kernel that runs once.  Ranks are the orders of the levels.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use decompose_core::contract::Request;
use decompose_core::cost::{Machine, storing_seconds};
use decompose_core::schedule::{Problem, Storing};
use decompose_core::sweep::TreeLayout;
use decompose_formats::io::{self, Progress, ReadOptions, Source};
use decompose_formats::{Coo, Csf, ModeOrder, PatternCounts};

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
    let tensor = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
    let mut out = std::io::stdout().lock();
    for round in 0..=rounds {
        let own = list.clone();
        let start = Instant::now();
        let tree = Csf::build(own, order)?;
        let seconds = start.elapsed().as_secs_f64();
        if round > 0 {
            writeln!(
                out,
                "{round},decompose,{tensor},{order},{threads},f64,build,{seconds:.3e},s"
            )?;
        }
        drop(tree);
    }
    let seconds = predicted(list, order, threads)?;
    writeln!(out, "1,predicted,{tensor},{order},{threads},f64,build,{seconds:.3e},s")?;
    Ok(())
}

/// Returns the predicted seconds of the tree of `list`.
fn predicted(list: &Coo<f64>, order: &ModeOrder, threads: usize) -> Result<f64, Box<dyn Error>> {
    let letters: String = ('i'..).take(list.order()).collect();
    let request =
        Request::new(format!("{letters}->i").parse()?, 0, &PatternCounts::of(list), &[Vec::new()])?;
    let posed = request.problem(&TreeLayout::new(order.clone(), 1));
    let problem = Problem { storing: Some(Storing::default()), ..posed };
    let machine = Machine { threads, ..Machine::here().clone() };
    Ok(storing_seconds(&problem, &machine))
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
