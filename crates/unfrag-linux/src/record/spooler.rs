//! Copies the kernel's ring buffers to files while the recording runs.
//!
//! A thread waits until a CPU's buffer is filled to [`WAKE_PERCENT`], and copies that many sub-buffers.
//! It copies by read(2), a sub-buffer a call: for splice(2) the kernel would allocate a page for each, which
//! would change what is recorded.
//!
//! Invariant: a spool file holds whole sub-buffers, in the order of time, except for a tail that a full disk
//! cut off. What is not yet copied stays in the ring buffer until [`drain`] copies it at the end.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::spool::spool_file;
use super::tracefs::Instance;
use crate::error::{Error, Result};

/// A buffer is read when it is filled to this percentage.
pub const WAKE_PERCENT: usize = 25;

/// Bytes written to a spool file at a time.
const CHUNK: usize = 256 << 10;

/// Pause after a wake-up that brought little: kernels before 4.20 wake a reader at every event.
const PAUSE: Duration = Duration::from_millis(50);

/// Copies one CPU's ring buffer to its file.
struct Copier {
    from: File,
    to: File,
    path: PathBuf,
    sub_buffer: usize,
    chunk: Vec<u8>,
}

impl Copier {
    fn open(instance: &Instance, cpu: u16, sub_buffer: usize, dir: &Path) -> Result<Copier> {
        let source = instance.path(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let from = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(&source)
            .map_err(|e| Error::from(e).in_file(&source))?;
        let path = spool_file(dir, cpu);
        let to = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&path)
            .map_err(|e| Error::from(e).in_file(&path))?;
        Ok(Copier {
            from,
            to,
            path,
            sub_buffer,
            chunk: Vec::with_capacity(CHUNK + sub_buffer),
        })
    }

    /// Copies up to `most` sub-buffers; gives their number.
    fn copy(&mut self, most: usize) -> Result<usize> {
        let mut copied = 0;
        while copied < most {
            let at = self.chunk.len();
            self.chunk.resize(at + self.sub_buffer, 0);
            match self.from.read(&mut self.chunk[at..]) {
                // The head of a sub-buffer says how much of it is used.
                Ok(n) if n > 0 => copied += 1,
                Ok(_) => {
                    self.chunk.truncate(at);
                    break;
                }
                Err(e) => {
                    self.chunk.truncate(at);
                    match e.kind() {
                        ErrorKind::WouldBlock => break,
                        ErrorKind::Interrupted => continue,
                        _ => return Err(e.into()),
                    }
                }
            }
            if self.chunk.len() >= CHUNK {
                self.flush()?;
            }
        }
        self.flush()?;
        Ok(copied)
    }

    fn flush(&mut self) -> Result<()> {
        let done = self.to.write_all(&self.chunk);
        self.chunk.clear();
        done.map_err(|e| Error::from(e).in_file(&self.path))
    }
}

fn copiers(instance: &Instance, sub_buffer: usize, dir: &Path) -> Result<Vec<Copier>> {
    let copier = |cpu| Copier::open(instance, cpu, sub_buffer, dir);
    instance.cpus()?.into_iter().map(copier).collect()
}

/// Copies all that the ring buffers of a stopped instance hold.
///
/// # Errors
/// If they cannot be read, or the files not be written (then what fits is there).
pub fn drain(instance: &Instance, sub_buffer: usize, dir: &Path) -> Result<()> {
    for mut copier in copiers(instance, sub_buffer, dir)? {
        copier.copy(usize::MAX)?;
    }
    Ok(())
}

/// The thread that copies while the recording runs.
pub struct Spooler {
    thread: JoinHandle<Result<()>>,
    /// Dropping it tells the thread to stop.
    _stop: OwnedFd,
}

impl Spooler {
    /// Starts the thread. `gave_up` is called if it stops because of an error.
    ///
    /// # Errors
    /// If the buffers or the files cannot be opened.
    pub fn start(
        instance: &Instance,
        sub_buffer: usize,
        buffer_bytes: usize,
        dir: &Path,
        gave_up: impl FnOnce() + Send + 'static,
    ) -> Result<Spooler> {
        let copiers = copiers(instance, sub_buffer, dir)?;
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(std::io::Error::from)?;
        let batch = (buffer_bytes / sub_buffer * WAKE_PERCENT / 100).max(1);
        let thread = std::thread::Builder::new()
            .name("spooler".into())
            .spawn(move || {
                let done = run(copiers, &stopped, batch);
                if done.is_err() {
                    gave_up();
                }
                done
            })?;
        Ok(Spooler {
            thread,
            _stop: stop,
        })
    }

    /// Stops the thread, and waits until its files are closed.
    ///
    /// # Errors
    /// The error for which it stopped early.
    pub fn stop(self) -> Result<()> {
        let Spooler { thread, _stop } = self;
        drop(_stop);
        thread.join().unwrap_or_else(|_| {
            Err(Error::malformed(
                "the thread that copies the trace panicked",
            ))
        })
    }
}

fn run(mut copiers: Vec<Copier>, stopped: &OwnedFd, batch: usize) -> Result<()> {
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: PAUSE.as_nanos() as i64,
    };
    loop {
        let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(stopped, PollFlags::empty())];
        fds.extend(copiers.iter().map(|l| PollFd::new(&l.from, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(std::io::Error::from(e).into()),
        }
        if !fds[0].revents().is_empty() {
            return Ok(());
        }
        let ready: Vec<bool> = fds[1..].iter().map(|f| !f.revents().is_empty()).collect();
        drop(fds);
        let mut most = 0;
        for (copier, _) in copiers.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
            most = most.max(copier.copy(batch)?);
        }
        if most < batch / 2 + 1 {
            let mut only_stop = [PollFd::new(stopped, PollFlags::empty())];
            let _ = poll(&mut only_stop, Some(&pause));
        }
    }
}
