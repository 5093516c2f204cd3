//! Work without the interpreter's lock, which signals can stop and which tells its progress.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use decompose_common::history::IterationRecord;
use decompose_core::runtime::Toolchain;
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;

use crate::fault::Fault;
use crate::options::check_process;

/// What is said of a panic; its place is on standard error.
const PANIC: &str =
    "a fault of decompose itself, whose place is told above; please report it with the call";

/// How often signals are looked at while nothing is told.
const POLL: Duration = Duration::from_millis(50);

/// What an iteration tells.
pub(crate) struct Told {
    restart: usize,
    iteration: usize,
    /// The fit; of a completion the deciding error.
    value: f64,
}

/// The end of the work from where it tells of itself.
pub(crate) struct Watch<'a> {
    stop: &'a AtomicBool,
    /// None for work that is not told of.
    sender: Option<Sender<Told>>,
}

impl Watch<'_> {
    /// Tells of an iteration, and whether to go on.
    pub(crate) fn see(&self, restart: usize, iteration: usize, value: f64) -> ControlFlow<()> {
        // Nobody listens any more after a callback has failed.
        let _ = self.sender.as_ref().map(|to| to.send(Told { restart, iteration, value }));
        match self.is_stopped() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Tells whether the work is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the end of a part of the work that tells nothing and ends with the whole.
    pub(crate) fn silent(&self) -> Watch<'_> {
        Watch { stop: self.stop, sender: None }
    }

    /// As [`Watch::see`], of a record of the shared history.
    pub(crate) fn record(&self, record: &IterationRecord) -> ControlFlow<()> {
        self.see(record.restart, record.iteration, record.fit)
    }
}

/// Runs `work` on `threads` threads, all of the machine if there is no number, and calls `callback` with restart,
/// iteration and fit of every iteration.
///
/// # Errors
///
/// What `work` fails with; what the callback raises and `KeyboardInterrupt`, after the iteration in which they arrive.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    callback: Option<&Py<PyAny>>,
    threads: Option<usize>,
    work: impl FnOnce(&Watch<'_>) -> Result<T, Fault> + Send,
) -> PyResult<T> {
    check_process()?;
    py.detach(|| {
        let stop = &AtomicBool::new(false);
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let watch = Watch { stop, sender: Some(sender) };
                match threads {
                    None => work(&watch),
                    Some(threads) => pool(threads)?.install(move || work(&watch)),
                }
            });
            let raised = listen(&receiver, callback, stop);
            let ended = worker.join();
            match raised {
                Some(error) => Err(error),
                None => Ok(ended.map_err(|_| Fault::Internal(PANIC.into()))??),
            }
        })
    })
}

fn pool(threads: usize) -> Result<rayon::ThreadPool, Fault> {
    if threads == 0 {
        return Err(Fault::Input("threads is 0; use at least 1, or None for all".into()));
    }
    let built = ThreadPoolBuilder::new().num_threads(threads).build();
    built.map_err(|error| Fault::Internal(format!("cannot start the threads: {error}")))
}

/// Hands on what is told until the work ends; returns what a callback or a signal raised.
fn listen(
    receiver: &Receiver<Told>,
    callback: Option<&Py<PyAny>>,
    stop: &AtomicBool,
) -> Option<PyErr> {
    let mut raised = None;
    loop {
        let told = match receiver.recv_timeout(POLL) {
            Ok(told) => Some(told),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return raised,
        };
        if raised.is_some() {
            continue;
        }
        let served = Python::attach(|py| {
            if let (Some(told), Some(callback)) = (told, callback) {
                callback.call1(py, (told.restart, told.iteration, told.value))?;
            }
            py.check_signals()
        });
        if let Err(error) = served {
            stop.store(true, Ordering::Relaxed);
            raised = Some(error);
        }
    }
}

/// Returns why kernels are interpreted, many times slower, where there is no C compiler.
#[pyfunction]
pub(crate) fn interpreted() -> Option<String> {
    Toolchain::detect().compiler().err().map(ToOwned::to_owned)
}
