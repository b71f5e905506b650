//! Long work: on a thread of its own, without the interpreter lock.
//!
//! The caller's thread looks every 50 ms whether Ctrl-C was pressed, and tells a callback how far the work is. Work that
//! should stop is unwound at its next report of progress; work that reports none for half a second is left to end by itself.
//!
//! Invariant: the work touches no Python object.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

/// Whether the interpreter ends, and how many threads do work meanwhile that may want it.
static ENDS: AtomicBool = AtomicBool::new(false);
static WORKING: AtomicUsize = AtomicUsize::new(0);
/// The thread that ends the interpreter. It alone goes on until then.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// Called when the interpreter is about to end: waits until no other thread of this module comes back to it.
///
/// To one that comes back afterwards, the interpreter would answer by unwinding it, which aborts the process.
#[pyfunction]
pub fn ends(py: Python<'_>) {
    ENDING.get_or_init(|| thread::current().id());
    ENDS.store(true, Relaxed);
    let end = Instant::now() + PATIENCE;
    py.detach(|| {
        while WORKING.load(Relaxed) > 0 && Instant::now() < end {
            thread::sleep(Duration::from_millis(2));
        }
    });
}

/// Work that a thread waits for.
struct Working;

impl Working {
    fn begin() -> Working {
        WORKING.fetch_add(1, Relaxed);
        Working
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        WORKING.fetch_sub(1, Relaxed);
    }
}

/// Stays for ever, if the interpreter ends and this is another thread than the one that ends it.
fn stay_if_it_ends() {
    let is_other = || ENDING.get() != Some(&thread::current().id());
    if ENDS.load(Relaxed) && is_other() {
        WORKING.fetch_sub(1, Relaxed);
        loop {
            thread::park();
        }
    }
}

/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// How long work is waited for that should stop.
const PATIENCE: Duration = Duration::from_millis(500);

/// The payload of the unwinding of work that should stop.
struct Stopped;

/// Where work says how far it is.
#[derive(Clone, Default)]
pub struct Reporter(Arc<Shared>);

#[derive(Default)]
struct Shared {
    done: AtomicU64,
    total: AtomicU64,
    stops: AtomicBool,
}

impl Reporter {
    /// So much of it all is done.
    pub fn at(&self, done: u64, total: u64) {
        if self.0.stops.load(Relaxed) {
            resume_unwind(Box::new(Stopped));
        }
        self.0.total.store(total, Relaxed);
        self.0.done.store(done, Relaxed);
    }
}

/// Does work. `progress` is called with what is done, and of how much.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Reporter) -> unfrag_lab::error::Result<T> + Send + 'static,
) -> PyResult<T> {
    let reporter = Reporter::default();
    let shared = reporter.0.clone();
    let worker = thread::Builder::new()
        .name("unfrag".into())
        .spawn(move || work(&reporter))
        .map_err(|e| PyRuntimeError::new_err(format!("no thread for the work: {e}")))?;
    let mut told = (0, 0);
    let _working = Working::begin();
    loop {
        let ended = py.detach(|| wait(&worker, LOOK));
        let now = (shared.done.load(Relaxed), shared.total.load(Relaxed));
        let heard = match &progress {
            Some(f) if now != told && now.1 > 0 => f.call1(py, now).map(drop),
            _ => Ok(()),
        };
        told = now;
        if let Err(e) = heard.and_then(|()| py.check_signals()) {
            shared.stops.store(true, Relaxed);
            py.detach(|| wait(&worker, PATIENCE));
            return Err(e);
        }
        if ended {
            break;
        }
    }
    let ended = py.detach(|| {
        let ended = worker.join();
        stay_if_it_ends();
        ended
    });
    match ended {
        Ok(Ok(value)) => {
            // Work does not report its last step, and short work none at all: a bar would stand for ever.
            let all = shared.total.load(Relaxed).max(1);
            if let Some(f) = progress.filter(|_| told != (all, all)) {
                f.call1(py, (all, all))?;
            }
            Ok(value)
        }
        Ok(Err(e)) => Err(crate::errors::lab(e)),
        Err(_) => Err(PyRuntimeError::new_err(
            "unfrag has a bug: the work panicked; the message is on the standard error",
        )),
    }
}

/// Waits for the end of a thread, at most so long. Whether it has ended.
fn wait<T>(worker: &JoinHandle<T>, most: Duration) -> bool {
    let end = Instant::now() + most;
    while !worker.is_finished() {
        let Some(left) = end.checked_duration_since(Instant::now()) else {
            stay_if_it_ends();
            return false;
        };
        thread::sleep(left.min(Duration::from_millis(2)));
        stay_if_it_ends();
    }
    stay_if_it_ends();
    true
}
