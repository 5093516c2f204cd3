//! From a file, which the system has in its cache, to a tree.

use std::marker::PhantomData;
use std::path::Path;
use std::time::Instant;

use decompose_common::memory;
use decompose_common::progress::Screen;
use decompose_formats::io::{self, Progress, ReadOptions};
use decompose_formats::{Coo, Csf, ModeOrder, Value};
use rayon::ThreadPool;

use crate::bench::record::{BenchRecord, PROGRAM, WorkKey};
use crate::bench::settings::Settings;
use crate::bench::tensors::Subject;
use crate::bench::turns::{self, Runner};
use crate::cli::Done;
use crate::failure::Failure;
use crate::run::memory::tree_of;
use crate::run::reading;

/// Reading, sorting (with duplicates summed) and building the tree of the natural order.
struct Ingest<'a, V> {
    file: &'a Path,
    pool: &'a ThreadPool,
    key: WorkKey,
    value: PhantomData<V>,
}

/// Measures ingest for each number of threads.
///
/// # Errors
///
/// Those of reading.
pub(crate) fn measure<V: Value>(
    settings: &Settings,
    subject: &Subject<V>,
    record: &mut BenchRecord,
    screen: &mut Screen,
) -> Result<Done, Failure> {
    let Some(file) = &subject.file else { return Ok(Done::Complete) };
    let mut runners: Vec<Box<dyn Runner + '_>> = Vec::new();
    for (threads, pool) in &settings.pools {
        let key = WorkKey {
            program: PROGRAM.to_owned(),
            tensor: subject.name.clone(),
            rank: None,
            threads: *threads,
            quantity: String::new(),
        };
        runners.push(Box::new(Ingest::<V> { file, pool, key, value: PhantomData }));
    }
    turns::take(&mut runners, settings, record, screen)
}

/// Foresees the sort of a list and the upper levels of its tree.
fn foresee_tree<V: Value>(tensor: &Coo<V>) -> Result<(), Failure> {
    let bytes = tree_of(tensor, &ModeOrder::natural(tensor.order()), 1, 0);
    Ok(memory::foresee(bytes, || "the sort and the tree".into(), "measure a smaller tensor")?)
}

impl<V: Value> Runner for Ingest<'_, V> {
    fn threads(&self) -> usize {
        self.key.threads
    }

    fn run(&mut self) -> Result<Vec<(WorkKey, f64)>, Failure> {
        let (source, options) = (io::Source::new(self.file), ReadOptions::default());
        let progress = Progress::new();
        let seconds = self.pool.install(|| -> Result<[f64; 3], Failure> {
            reading::foresee(self.file, None, V::BYTES)?;
            let start = Instant::now();
            let (mut tensor, _) = io::read::<V>(&source, &options, &progress)?;
            let read = start.elapsed().as_secs_f64();
            let natural = ModeOrder::natural(tensor.order());
            foresee_tree(&tensor)?;
            let start = Instant::now();
            tensor.sort(&natural)?;
            tensor.sum_duplicates()?;
            let sort = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let tree = Csf::build(tensor, &natural)?;
            let build = start.elapsed().as_secs_f64();
            drop(std::hint::black_box(tree));
            Ok([read, sort, build])
        })?;
        let names = ["read", "sort", "tree"];
        Ok(names.into_iter().zip(seconds).map(|(name, s)| (self.key.with(name), s)).collect())
    }
}
