//! The guardian: a second process that finishes the recording if the recorder dies.
//!
//! The recorder starts it before the trace begins, and holds a pipe to it. At the end the recorder writes
//! `DONE`. If the pipe closes without that, the recorder is dead: the guardian removes the instance of the
//! tracer and makes the file.
//!
//! Invariant: exactly one of the two removes the instance and makes the file. Both hold the instance's
//! shared lock, so no other recorder takes it for abandoned while either lives.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::finish::{Ending, finish};
use super::names;
use super::rotation;
use super::spool::{Job, Spool};
use super::spooler::drain;
use super::tracefs::Instance;
use crate::error::{Error, Result};
use crate::input_text::escaped_lines;
use crate::recording::Recording;
use crate::target::Target;
use crate::trace::tracedat::raw;

const DONE: &[u8] = b"done";

/// The recorder's side.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
}

impl Guardian {
    /// Starts `command`, which must call [`watch`] with the spool's directory, its last word. It has the
    /// standard output only if the file goes there.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(mut command: Command, spool: &Spool, output: &Target) -> Result<Guardian> {
        use std::os::unix::process::CommandExt;
        let stdout = match output {
            Target::Stdout => Stdio::inherit(),
            _ => Stdio::null(),
        };
        let child = command
            .arg(spool.dir())
            .stdin(Stdio::piped())
            .stdout(stdout)
            // In a group of its own it gets no signals of the terminal.
            .process_group(0)
            .spawn()
            .map_err(|e| Error::from(e).in_file(Path::new(command.get_program())))?;
        Ok(Guardian { child })
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
/// returns it.
///
/// # Errors
/// If it cannot be finished.
pub fn watch(dir: &Path) -> Result<Option<Recording>> {
    let spool = Spool::at(dir);
    let job = spool.job()?;
    let instance = Instance::open(&job.instance);
    let mut said = vec![];
    let _ = std::io::stdin().lock().read_to_end(&mut said);
    if said == DONE {
        return Ok(None);
    }
    if job.in_segments {
        return finish_segments(&spool, &job, instance).map(|()| None);
    }
    // The recorder may have died between removing the instance and making the file.
    let mut ending = Ending::died();
    if let Ok(instance) = instance
        && instance.dir().exists()
    {
        ending.counts = rescue(instance, &spool, &job.header_page)?;
    }
    finish(spool, &ending, None).map(|made| Some(made.recording))
}

/// Finishes the segments of a recorder that died. Another recorder that begins there does the same, and comes first if it
/// has the directory already.
fn finish_segments(spool: &Spool, job: &Job, instance: Result<Instance>) -> Result<()> {
    let dir = job.output.parent().unwrap_or(Path::new("."));
    let mut name = spool.dir().as_os_str().to_string_lossy().into_owned();
    let of_recorder = name.split_off(name.rfind('-').unwrap_or(0));
    let mine = |path: &Path| path.to_string_lossy().ends_with(&of_recorder);
    let all = rotation::spools(dir);
    let newest = all.iter().rfind(|p| mine(p));
    if let Ok(instance) = instance
        && instance.dir().exists()
    {
        match newest {
            Some(newest) => drop(rescue(instance, &Spool::at(newest), &job.header_page)?),
            None => instance.remove()?,
        }
    }
    let Ok(_lock) = rotation::lock(dir) else {
        return Ok(());
    };
    rotation::recover_all(dir).map(drop)
}

/// Makes the file from a spool that recorder and guardian both left behind: `output`, or the one that was
/// asked for then.
///
/// # Errors
/// If it is no spool, or the file cannot be written.
pub fn recover(dir: &Path, output: Option<&Path>) -> Result<Recording> {
    finish(Spool::at(dir), &Ending::died(), output).map(|made| made.recording)
}

/// Copies what the ring buffers still hold, and removes the instance in any case; gives what the tracer
/// counted.
fn rescue(instance: Instance, spool: &Spool, header_page: &str) -> Result<String> {
    let copied = (|| {
        instance.set("tracing_on", "0")?;
        let size = raw::sub_buffer(header_page)?;
        spool.cut_to(size.into(), &instance.cpus()?)?;
        drain(&instance, size as usize, spool.dir())?;
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
