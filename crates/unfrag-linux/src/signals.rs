//! Signals that end a program.
//!
//! Invariant: a signal that this process was started to ignore, as by nohup, stays ignored.

use crate::error::Result;
use crate::unfinished;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::Sender;

/// Those that are not ignored.
fn heeded() -> Result<Signals> {
    let which = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
    // A command that is started here inherits what is ignored here.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let which = which.into_iter().filter(|s| !is_ignored(&status, *s));
    Ok(Signals::new(which)?)
}

/// Whether /proc/self/status says that a signal is ignored.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok());
    mask.is_some_and(|m| m >> (signal - 1) & 1 != 0)
}

/// From here on these signals end the process as they would without this call, but outputs that are not complete are
/// removed before.
///
/// # Errors
/// If the handlers or the thread cannot be had.
pub fn end_without_leftovers() -> Result<()> {
    let mut signals = heeded()?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            if let Some(signal) = signals.forever().next() {
                unfinished::remove_all(|| {
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                });
            }
        })?;
    Ok(())
}

/// Turns these signals into events, from a thread of their own.
///
/// # Errors
/// If the handlers or the thread cannot be had.
pub(crate) fn listen<E: Send + 'static>(sender: &Sender<E>, event: fn(i32) -> E) -> Result<()> {
    let mut signals = heeded()?;
    let sender = sender.clone();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                if sender.send(event(signal)).is_err() {
                    return;
                }
            }
        })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_nohup_ignores_are_left_alone() {
        let status = "Name:\tunfrag\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000000\n";
        assert!(is_ignored(status, SIGHUP));
        assert!(!is_ignored(status, SIGINT));
        assert!(!is_ignored("", SIGHUP));
    }
}
