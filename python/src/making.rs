//! Recordings that are made: of this host, and of a trace with the snapshots beside it.

use crate::errors;
use crate::work::run;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use unfrag_lab::era::settings::Setting;
use unfrag_lab::error::{Asked, Error as LabError};
use unfrag_lab::find::recordings;
use unfrag_linux::{Error, file};

/// Puts a trace and the snapshots beside it into one file; gives its size in bytes.
#[pyfunction]
#[pyo3(signature = (trace, output, snapshots, release, settings))]
pub fn import_trace(
    py: Python<'_>,
    trace: PathBuf,
    output: PathBuf,
    snapshots: Vec<PathBuf>,
    release: Option<String>,
    settings: Vec<(String, String)>,
) -> PyResult<u64> {
    run(py, None, move |_| {
        let known = settings
            .iter()
            .map(|(name, value)| Setting::new(name, value));
        let known: std::result::Result<Vec<Setting>, String> = known.collect();
        let known = known.map_err(|e| LabError::option(Asked::Setting, e))?;
        if recordings::is_unfrag(&trace)? {
            let error = Error::unsupported("it is an .unfrag file already");
            let error = error.help("import takes the trace as a tracer wrote it");
            return Err(error.in_file(&trace).into());
        }
        let mut recording = recordings::raw(&trace, &snapshots, release.as_deref())?;
        let facts = known.iter().map(Setting::fact);
        recording.meta.facts.extend(facts);
        Ok(file::write(&recording, &output)?)
    })
}

/// What is recorded of this host.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Wanted {
    command: Vec<String>,
    is_system: bool,
    seconds: Option<f64>,
    output: PathBuf,
    slab: bool,
    processes: bool,
    stacks: bool,
    events: Vec<String>,
    anonymous: bool,
    command_line: bool,
    buffer: Option<u64>,
}

/// What a recorder says at its end: the status of the command, events that were lost, why it ended early, and what could not
/// be read.
type Said = (Option<i32>, u64, Option<String>, Vec<(String, String)>);

/// Records, on the calling thread: it is the process of the recorder alone. `guardian` is the command of its guardian.
#[cfg(target_os = "linux")]
#[pyfunction]
#[pyo3(signature = (wanted, guardian))]
pub fn record(py: Python<'_>, wanted: Wanted, guardian: Vec<String>) -> PyResult<Said> {
    use std::ffi::OsString;
    use std::process::Command;
    use std::time::Duration;
    use unfrag_linux::record::{self as recorder, Options, Scope, command};
    let [program, words @ ..] = guardian.as_slice() else {
        return Err(PyValueError::new_err("guardian: a command"));
    };
    let time = wanted.seconds.map(Duration::try_from_secs_f64);
    let time = time
        .transpose()
        .map_err(|e| PyValueError::new_err(format!("seconds: {e}")))?;
    let words_of =
        |all: Vec<String>| -> Vec<OsString> { all.into_iter().map(Into::into).collect() };
    let options = Options {
        scope: match (wanted.is_system, wanted.command.is_empty()) {
            (true, true) => Scope::System(time),
            (true, false) => Scope::SystemWhile(words_of(wanted.command)),
            (false, _) => Scope::Command(words_of(wanted.command)),
        },
        output: wanted.output,
        slab: wanted.slab,
        processes: wanted.processes,
        stacks: wanted.stacks,
        events: wanted.events,
        anonymous: wanted.anonymous,
        command_line: wanted.command_line,
        buffer: wanted.buffer.map(|b| b as usize),
    };
    let mut watches = Command::new(program);
    watches.args(words);
    let done = py.detach(|| recorder::record(&options, watches));
    let done = done.map_err(errors::lab)?;
    let untaken = done.untaken.into_iter().map(|u| (u.file, u.why));
    Ok((
        done.status.map(|s| command::status_of(s).into()),
        done.recording.meta.lost_events(),
        done.cut_short.map(|e| e.to_string()),
        untaken.collect(),
    ))
}

/// Stands by a recorder, as the last words of the guardian's command say.
#[cfg(target_os = "linux")]
#[pyfunction]
#[pyo3(signature = (spool, output, instance))]
pub fn guard(py: Python<'_>, spool: PathBuf, output: PathBuf, instance: PathBuf) -> PyResult<()> {
    use unfrag_linux::record::{Watched, watch};
    let watched = Watched {
        spool,
        output,
        instance,
        in_segments: false,
    };
    let done = py.detach(|| watch(&watched, &mut |_| {}));
    done.map(drop).map_err(errors::lab)
}
