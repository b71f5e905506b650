//! The guardian: a second process that finishes the recording if the recorder dies.
//!
//! The recorder starts it before the trace begins, and holds a pipe to it. At the end the recorder writes
//! `DONE`. If the pipe closes without that, the recorder is dead: the guardian removes the instance of the
//! tracer and makes the file.
//!
//! What it works on it is told on its command line, by the recorder alone: nothing that lies in a directory directs it.
//!
//! Invariant: exactly one of the two removes the instance and makes the file. Both hold the instance's
//! shared lock, so no other recorder takes it for abandoned while either lives.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::finish::{Ending, finish};
use super::names;
use super::recovery::{Found, recover_all, spools};
use super::rotation;
use super::spool::Spool;
use super::spool_name;
use super::spooler::drain;
use super::tracefs::Instance;
use crate::error::{Error, Result};
use crate::input_text::escaped_lines;
use crate::recording::Recording;
use crate::target::Target;
use crate::trace::tracedat::raw;

const DONE: &[u8] = b"done";

/// What a guardian works on.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Directory of the spool, of the first one of a recording in segments.
    pub spool: PathBuf,
    /// Where the recording goes: a file, or the directory of the segments.
    pub output: PathBuf,
    /// The tracer's instance.
    pub instance: PathBuf,
    /// Whether it is a recording in segments.
    pub in_segments: bool,
}

/// The word in front of the others of a recording in segments.
pub const IN_SEGMENTS: &str = "--in-segments";

impl Watched {
    /// The words of a command line that say it: [`IN_SEGMENTS`] or none, spool, output, instance.
    fn words(&self) -> Vec<OsString> {
        let first = self.in_segments.then(|| IN_SEGMENTS.into());
        let rest = ["--".into()]
            .into_iter()
            .chain([&self.spool, &self.output, &self.instance].map(|p| p.clone().into_os_string()));
        first.into_iter().chain(rest).collect()
    }
}

/// The recorder's side.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
}

impl Guardian {
    /// Starts `command`, which must call [`watch`] with what its last words say. It has the
    /// standard output only if the file goes there.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(mut command: Command, watched: &Watched, output: &Target) -> Result<Guardian> {
        use std::os::unix::process::CommandExt;
        let stdout = match output {
            Target::Stdout => Stdio::inherit(),
            _ => Stdio::null(),
        };
        let child = command
            .args(watched.words())
            .stdin(Stdio::piped())
            .stdout(stdout)
            // In a group of its own it gets no signals of the terminal.
            .process_group(0)
            .spawn()
            .map_err(|e| Error::from(e).in_file(Path::new(command.get_program())))?;
        Ok(Guardian { child })
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Tells the guardian that the recording is done, and waits for its end.
    pub fn dismiss(mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            let _ = pipe.write_all(DONE);
        }
        let _ = self.child.wait();
    }
}

/// The guardian's side: waits for the recorder's end. If the recorder died, finishes its recording and
/// returns it. `tell` hears what becomes of the spools of a recording in segments.
///
/// # Errors
/// If it cannot be finished.
pub fn watch(watched: &Watched, tell: &mut dyn FnMut(Found)) -> Result<Option<Recording>> {
    let spool = Spool::at(&watched.spool)?;
    let header_page = spool.job()?.header_page;
    let instance = Instance::open(&watched.instance);
    let mut said = vec![];
    let _ = std::io::stdin().lock().read_to_end(&mut said);
    if said == DONE {
        return Ok(None);
    }
    if watched.in_segments {
        return finish_segments(watched, &header_page, instance, tell).map(|()| None);
    }
    // The recorder may have died between removing the instance and making the file.
    let mut ending = Ending::died();
    if let Ok(instance) = instance
        && instance.dir().exists()
    {
        ending.counts = rescue(instance, &spool, &header_page)?;
    }
    finish(spool, &ending, &watched.output).map(|made| Some(made.recording))
}

/// Finishes the segments of a recorder that died. Another recorder that begins there does the same, and comes first if it
/// has the directory already.
fn finish_segments(
    watched: &Watched,
    header_page: &str,
    instance: Result<Instance>,
    tell: &mut dyn FnMut(Found),
) -> Result<()> {
    let dir = &watched.output;
    let process = spool_name::process_of(&watched.spool).unwrap_or_default();
    let all = spools(dir);
    let newest = all.iter().rfind(|p| spool_name::is_of(p, &process));
    if let Ok(instance) = instance
        && instance.dir().exists()
    {
        match newest.and_then(|newest| Spool::own(newest).ok()) {
            Some(newest) => drop(rescue(instance, &newest, header_page)?),
            None => instance.remove()?,
        }
    }
    if let Ok(_lock) = rotation::lock(dir) {
        recover_all(dir, tell);
    }
    Ok(())
}

/// Makes the file from a spool that recorder and guardian both left behind: `output`, or the one that the spool's name
/// says, if there is none yet.
///
/// # Errors
/// If it is no spool, or the file cannot be written.
pub fn recover(dir: &Path, output: Option<&Path>) -> Result<Recording> {
    let dir = &std::path::absolute(dir)?;
    let spool = Spool::at(dir)?;
    let told = match output {
        Some(output) => output.to_owned(),
        None => {
            let told = spool_name::output_of(dir).ok_or_else(|| {
                Error::malformed("does not bear the name of a spool, NAME.unfrag.spool-PID-NUMBER")
                    .in_file(dir)
                    .help("say where the recording goes: -o FILE")
            })?;
            if std::fs::symlink_metadata(&told).is_ok() {
                return Err(Error::unsupported("is there already")
                    .in_file(&told)
                    .help("say where the recording goes: -o FILE"));
            }
            told
        }
    };
    finish(spool, &Ending::died(), &told).map(|made| made.recording)
}

/// Copies what the ring buffers still hold, and removes the instance in any case; gives what the tracer
/// counted.
fn rescue(instance: Instance, spool: &Spool, header_page: &str) -> Result<String> {
    let copied = (|| {
        instance.set("tracing_on", "0")?;
        let size = raw::sub_buffer(header_page)?;
        spool.cut_to(size.into(), &instance.cpus()?)?;
        drain(&instance, size as usize, spool)?;
        names::note_kernel_threads(spool)
    })();
    let counts = instance.counts();
    instance.remove()?;
    // A file is made even if the disk is full: the spool holds most of the trace.
    if let Err(e) = copied {
        eprintln!(
            "warning: the end of the trace is missing: {}",
            escaped_lines(&e.to_string())
        );
    }
    counts
}
