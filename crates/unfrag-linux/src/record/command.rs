//! The recorded command, started so that its first page is traced.
//!
//! The tracer follows a task and its children. A thread that only starts the command is followed before it
//! does so; when that thread ends, the kernel takes it off the list.
//!
//! Invariant: the command has the standard streams, the process group and the signals that it would have
//! without a recorder; only if the recording goes to the standard output, the command's goes to the standard error.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};

use crate::error::{Error, Result};

/// A thread that waits to start the command.
pub struct Starter {
    /// Number of its task.
    pub task: i32,
    go: Sender<()>,
    thread: JoinHandle<std::io::Result<Child>>,
    program: OsString,
}

impl Starter {
    /// Makes the thread. `stdout_taken` sends the command's standard output to the standard error.
    ///
    /// # Errors
    /// If there is no command, or no thread to be had.
    pub fn new(command: &[OsString], stdout_taken: bool) -> Result<Starter> {
        let Some((program, words)) = command.split_first() else {
            return Err(Error::malformed("no command to record"));
        };
        let mut command = Command::new(program);
        command.args(words);
        if stdout_taken {
            command.stdout(std::io::stderr());
        }
        let name = Path::new(program).file_name().unwrap_or(program);
        let named = CString::new(name.as_bytes()).unwrap_or_default();
        let (go, wait): (_, Receiver<()>) = channel();
        let (say, task) = channel();
        let thread = std::thread::Builder::new()
            .name("starter".into())
            .spawn(move || {
                let _ = say.send(rustix::thread::gettid().as_raw_nonzero().get());
                wait.recv()
                    .map_err(|_| std::io::Error::other("the recorder stopped first"))?;
                // What is done for the command before it is executed bears its name, which is inherited.
                let _ = rustix::thread::set_name(&named);
                command.spawn()
            })?;
        let task = task
            .recv()
            .map_err(|_| Error::malformed("the thread that starts the command is gone"))?;
        Ok(Starter {
            task,
            go,
            thread,
            program: program.clone(),
        })
    }

    /// Starts the command.
    ///
    /// # Errors
    /// As the system says; names the program.
    pub fn start(self) -> Result<Child> {
        let _ = self.go.send(());
        self.thread
            .join()
            .unwrap_or_else(|_| Err(std::io::Error::other("the starting thread panicked")))
            .map_err(|e| {
                let help = "name a program that can be run; the recording was not made";
                Error::from(e).in_file(self.program.as_ref()).help(help)
            })
    }
}

/// Forwards a signal to the command, unless a terminal sent it: a terminal signals the command too.
pub fn forward(signal: i32, child: i32) {
    let by_terminal = matches!(signal, SIGINT | SIGQUIT | SIGHUP) && is_in_foreground();
    if !by_terminal
        && let (Some(pid), Some(signal)) = (Pid::from_raw(child), Signal::from_named_raw(signal))
    {
        // The command may have ended.
        let _ = kill_process(pid, signal);
    }
}

/// Whether this process belongs to the foreground group of its terminal, which gets the terminal's signals.
fn is_in_foreground() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else {
        return false;
    };
    rustix::termios::tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp())
}

/// The exit status that a shell shows: that of the command, or 128 and the number of the signal that ended it.
pub fn status_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let number = status
        .code()
        .or_else(|| status.signal().map(|s| 128 + s))
        .unwrap_or(1);
    u8::try_from(number).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_signal_shows_as_in_a_shell() {
        assert_eq!(status_of(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(status_of(ExitStatus::from_raw(9)), 137);
    }

    #[test]
    fn a_command_that_is_not_there_is_named() {
        let starter = Starter::new(&["/no/such/program".into()], false).unwrap();
        assert!(starter.task > 0);
        let e = starter.start().unwrap_err();
        assert!(e.to_string().starts_with("/no/such/program"), "{e}");
    }
}
