//! Progress on the standard error.
//!
//! Invariant: nothing is shown unless the standard error is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use unfrag_lab::report::screen::printable;

/// A spinner or a bar, removed when it is dropped.
pub struct Progress(ProgressBar);

impl Progress {
    /// A spinner with a message: how long the work takes is not known.
    pub fn new(message: &'static str) -> Progress {
        let bar = if io::stderr().is_terminal() {
            ProgressBar::new_spinner()
        } else {
            ProgressBar::hidden()
        };
        bar.set_message(message);
        bar.enable_steady_tick(std::time::Duration::from_millis(100));
        Progress(bar)
    }

    /// Changes the message.
    pub fn message(&self, message: String) {
        self.0.set_message(printable(&message));
    }

    /// Shows a bar at `done` of `total`.
    pub fn at(&self, done: u64, total: u64) {
        if self.0.length() != Some(total) {
            let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %");
            self.0
                .set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            self.0.disable_steady_tick();
            self.0.set_length(total);
        }
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
