//! `decompose bench`: how fast ingest, kernels and iterations are, beside what the machine could do.

mod ablation;
mod args;
mod figure;
mod files;
mod ingest;
mod kernels;
mod names;
pub(crate) mod peers;
mod record;
mod roofline;
mod settings;
mod summary;
mod sweep;
mod table;
mod tensors;
mod turns;

use std::path::PathBuf;

use decompose_common::interrupt;
use decompose_common::memory;
use decompose_common::progress::{Screen, Verbosity};
use decompose_core::cost::Machine;
use decompose_formats::{Value, counted};

use crate::bench::record::BenchRecord;
use crate::bench::roofline::Limits;
use crate::bench::settings::{Settings, What};
use crate::bench::tensors::Subject;
use crate::cli::Done;
use crate::failure::Failure;
use crate::run::args::Precision;
use crate::run::memory::tell_peak;
use crate::stdout;

pub(crate) use crate::bench::args::BenchArgs;

/// Runs the command.
///
/// # Errors
///
/// Bad options, a tensor that cannot be read, an output that exists or cannot be written.
pub(crate) fn run(args: BenchArgs) -> Result<Done, Failure> {
    let settings = Settings::new(args)?;
    memory::set_limit(memory::limit(None));
    match settings.precision {
        Precision::F64 => run_in::<f64>(settings),
        Precision::F32 => run_in::<f32>(settings),
    }
}

fn run_in<V: Value>(settings: Settings) -> Result<Done, Failure> {
    let mut screen = Screen::new(Verbosity::Normal);
    let mut record = BenchRecord::default();
    interrupt::install();
    let measured = measure_all::<V>(&settings, &mut record, &mut screen);
    screen.stop();
    if record.samples.is_empty() {
        if measured.is_ok() {
            screen.warn("not one round has ended; nothing is written");
        }
        return measured;
    }
    let lines = summary::lines(&record);
    let alone = settings.peers.iter().filter(|peer| !lines.iter().any(|l| peer.is_of(&l.key)));
    let alone = alone.count();
    if alone > 0 {
        let rows = counted(alone, "row of --peer is", "rows of --peer are");
        screen.warn(format!("{rows} of work that was not measured here: nothing is beside it"));
    }
    let ablation = ablation::of(&settings, &record);
    // What was measured before a failure is kept.
    let done = *measured.as_ref().unwrap_or(&Done::Interrupted);
    let written = files::write(&settings, &record, &lines, &ablation, done)?;
    stdout::line(table::of(&settings, &lines))?;
    if let Some(text) = table::disturbances(&record.disturbances) {
        stdout::line(text)?;
    }
    if let Some(table) = ablation::table(&ablation) {
        stdout::line(table)?;
    }
    let written: Vec<PathBuf> = written.iter().map(|path| settings.folder.will_be(path)).collect();
    settings.folder.publish()?;
    for path in written {
        screen.line(format!("write    {}", path.display()));
    }
    tell_peak(&screen);
    measured
}

/// Measures all tensors, one after the other.
fn measure_all<V: Value>(
    settings: &Settings,
    record: &mut BenchRecord,
    screen: &mut Screen,
) -> Result<Done, Failure> {
    for source in &settings.sources {
        let subject = source.load::<V>(settings, screen)?;
        record.tensors.push(subject.facts());
        if measure(settings, &subject, record, screen)? == Done::Interrupted {
            return Ok(Done::Interrupted);
        }
    }
    Ok(Done::Complete)
}

/// Measures everything that was asked for on one tensor.
fn measure<V: Value>(
    settings: &Settings,
    subject: &Subject<V>,
    record: &mut BenchRecord,
    screen: &mut Screen,
) -> Result<Done, Failure> {
    if settings.asks(What::Ingest)
        && ingest::measure(settings, subject, record, screen)? == Done::Interrupted
    {
        return Ok(Done::Interrupted);
    }
    for &rank in &settings.ranks {
        if settings.asks(What::Kernels) || settings.asks(What::Sweep) {
            limits::<V>(settings, rank, record, screen)?;
        }
        if settings.asks(What::Kernels)
            && kernels::measure(settings, subject, rank, record, screen)? == Done::Interrupted
        {
            return Ok(Done::Interrupted);
        }
        if settings.asks(What::Sweep)
            && sweep::measure(settings, subject, rank, record, screen)? == Done::Interrupted
        {
            return Ok(Done::Interrupted);
        }
    }
    Ok(Done::Complete)
}

/// Measures the limits of the machine for rows of this rank, once a process, under the same guard as runs.
fn limits<V: Value>(
    settings: &Settings,
    rank: usize,
    record: &mut BenchRecord,
    screen: &mut Screen,
) -> Result<(), Failure> {
    for (threads, pool) in &settings.pools {
        if record.limits(rank, *threads).is_some() {
            continue;
        }
        let guarded = || {
            turns::undisturbed(settings, *threads, &mut record.disturbances, || {
                pool.install(|| Limits::measure::<V>(rank, Machine::here(), &settings.toolchain))
            })
        };
        match screen.phase("limits", guarded).0 {
            // Stopped by the user, as what follows will be.
            Ok(None) => {}
            Ok(Some(limits)) => {
                screen.line(table::limits(rank, &limits));
                record.limits.push((rank, limits));
            }
            Err(error) => screen.warn(format!("{error}; nothing is held against a bound")),
        }
    }
    Ok(())
}
