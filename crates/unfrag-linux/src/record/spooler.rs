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
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::spool::Spool;
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
    cpu: u16,
    from: File,
    to: File,
    path: PathBuf,
    sub_buffer: usize,
    chunk: Vec<u8>,
}

impl Copier {
    fn open(instance: &Instance, cpu: u16, sub_buffer: usize, spool: &Spool) -> Result<Copier> {
        let source = instance.path(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let from = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(&source)
            .map_err(|e| Error::from(e).in_file(&source))?;
        let (path, to) = spool.append_to(cpu)?;
        Ok(Copier {
            cpu,
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

fn copiers(instance: &Instance, sub_buffer: usize, spool: &Spool) -> Result<Vec<Copier>> {
    let copier = |cpu| Copier::open(instance, cpu, sub_buffer, spool);
    instance.cpus()?.into_iter().map(copier).collect()
}

/// Copies all that the ring buffers of a stopped instance hold.
///
/// # Errors
/// If they cannot be read, or the files not be written (then what fits is there).
pub fn drain(instance: &Instance, sub_buffer: usize, spool: &Spool) -> Result<()> {
    for mut copier in copiers(instance, sub_buffer, spool)? {
        copier.copy(usize::MAX)?;
    }
    Ok(())
}

/// The thread that copies while the recording runs.
pub struct Spooler {
    thread: JoinHandle<Result<()>>,
    cpus: Vec<u16>,
    /// A byte tells the thread that a spool waits; dropping it tells it to stop.
    wake: OwnedFd,
    switches: Sender<Switch>,
}

/// The files to go on in, a CPU each, and whom to tell what the tracer had counted before.
type Switch = (Vec<(PathBuf, File)>, Sender<Result<String>>);

impl Spooler {
    /// Starts the thread. `gave_up` is called if it stops because of an error.
    ///
    /// # Errors
    /// If the buffers or the files cannot be opened.
    pub fn start(
        instance: &Instance,
        sub_buffer: usize,
        buffer_bytes: usize,
        spool: &Spool,
        gave_up: impl FnOnce() + Send + 'static,
    ) -> Result<Spooler> {
        let copiers = copiers(instance, sub_buffer, spool)?;
        let cpus = copiers.iter().map(|c| c.cpu).collect();
        let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(std::io::Error::from)?;
        let batch = (buffer_bytes / sub_buffer * WAKE_PERCENT / 100).max(1);
        let (switches, received) = channel();
        let own = Instance::open(instance.dir())?;
        let thread = std::thread::Builder::new()
            .name("spooler".into())
            .spawn(move || {
                let mut copying = Copying {
                    copiers,
                    batch,
                    instance: own,
                    switches: received,
                };
                let done = copying.run(&stopped);
                if done.is_err() {
                    gave_up();
                }
                done
            })?;
        Ok(Spooler {
            thread,
            cpus,
            wake: stop,
            switches,
        })
    }

    /// Copies what the ring buffers hold, and goes on in the files of another spool. Gives what the tracer counted
    /// in between.
    ///
    /// # Errors
    /// If the new files cannot be made; the thread may have ended then.
    pub fn switch(&self, spool: &Spool) -> Result<String> {
        let files = self.cpus.iter().map(|cpu| spool.append_to(*cpu));
        let files = files.collect::<Result<Vec<_>>>()?;
        let ended = || Error::malformed("the thread that copies the trace has ended");
        let (tell, told) = channel();
        let sent = self.switches.send((files, tell));
        sent.map_err(|_| ended())?;
        rustix::io::write(&self.wake, b"s").map_err(std::io::Error::from)?;
        told.recv().map_err(|_| ended())?
    }

    /// Stops the thread, and waits until its files are closed.
    ///
    /// # Errors
    /// The error for which it stopped early.
    pub fn stop(self) -> Result<()> {
        let Spooler { thread, wake, .. } = self;
        drop(wake);
        thread.join().unwrap_or_else(|_| {
            Err(Error::malformed(
                "the thread that copies the trace panicked",
            ))
        })
    }
}

/// What the thread works with.
struct Copying {
    copiers: Vec<Copier>,
    batch: usize,
    instance: Instance,
    switches: Receiver<Switch>,
}

impl Copying {
    fn run(&mut self, stopped: &OwnedFd) -> Result<()> {
        let pause = Timespec {
            tv_sec: 0,
            tv_nsec: PAUSE.as_nanos() as i64,
        };
        loop {
            let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(stopped, PollFlags::IN)];
            fds.extend(
                self.copiers
                    .iter()
                    .map(|l| PollFd::new(&l.from, PollFlags::IN)),
            );
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(std::io::Error::from(e).into()),
            }
            let is_woken = !fds[0].revents().is_empty();
            let ready: Vec<bool> = fds[1..].iter().map(|f| !f.revents().is_empty()).collect();
            drop(fds);
            if is_woken {
                let mut word = [0];
                match rustix::io::read(stopped, &mut word) {
                    Ok(1..) => self.switch()?,
                    _ => return Ok(()),
                }
                continue;
            }
            let mut most = 0;
            let batch = self.batch;
            for (copier, _) in self
                .copiers
                .iter_mut()
                .zip(ready)
                .filter(|(_, ready)| *ready)
            {
                most = most.max(copier.copy(batch)?);
            }
            if most < batch / 2 + 1 {
                let mut only_stop = [PollFd::new(stopped, PollFlags::IN)];
                let _ = poll(&mut only_stop, Some(&pause));
            }
        }
    }

    /// Goes on in the next spool.
    fn switch(&mut self) -> Result<()> {
        let Ok((files, tell)) = self.switches.try_recv() else {
            return Ok(());
        };
        // A busy CPU may fill its buffer as fast as it is emptied; a few times its size is enough.
        let most = 8 * self.batch * 100 / WAKE_PERCENT;
        for copier in &mut self.copiers {
            copier.copy(most)?;
        }
        let counts = self.instance.counts();
        for (copier, (path, to)) in self.copiers.iter_mut().zip(files) {
            (copier.path, copier.to) = (path, to);
        }
        let failed = counts.is_err();
        let _ = tell.send(counts);
        match failed {
            true => Err(Error::malformed("the tracer's counts cannot be read")),
            false => Ok(()),
        }
    }
}
