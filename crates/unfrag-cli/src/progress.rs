//! Progress on the standard error: one line that is drawn over and over, by a thread of its own.
//!
//! Invariant: nothing is shown unless the standard error is a terminal; the line is as narrow as the terminal, and gone when
//! its [`Progress`] is dropped. Whoever works never waits for the terminal.

use crate::standard::redraw_line;
use crate::terminal;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use unfrag_lab::report::screen::printable;

/// Time between two drawings; work that takes less shows nothing.
const PAUSE: Duration = Duration::from_millis(100);
/// What turns while it is not known how long the work takes.
const TURNING: [char; 4] = ['|', '/', '-', '\\'];

/// A spinner or a bar, removed when it is dropped.
pub struct Progress(Option<Drawn>);

struct Drawn {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    message: String,
    /// Done, of all.
    part: Option<(u64, u64)>,
    has_ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// A spinner with a message: how long the work takes is not known.
    pub fn new(message: &'static str) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress(None);
        }
        let shared = Arc::new(Shared::default());
        shared.state().message = message.into();
        let drawing = Arc::clone(&shared);
        let thread = thread::Builder::new().spawn(move || draw(&drawing));
        // Without a thread there is no line, and the work goes on.
        Progress(thread.ok().map(|thread| Drawn {
            shared,
            thread: Some(thread),
        }))
    }

    /// Changes the message.
    pub fn message(&self, message: String) {
        if let Some(drawn) = &self.0 {
            drawn.shared.state().message = printable(&message);
        }
    }

    /// Shows a bar at `done` of `total`.
    pub fn at(&self, done: u64, total: u64) {
        if let Some(drawn) = &self.0 {
            drawn.shared.state().part = Some((done, total));
        }
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        self.shared.state().has_ended = true;
        self.shared.ended.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Draws until the work has ended.
fn draw(shared: &Shared) {
    let mut is_drawn = false;
    for turn in 0.. {
        let state = shared.state();
        let waited = shared
            .ended
            .wait_timeout_while(state, PAUSE, |s| !s.has_ended);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.has_ended {
            break;
        }
        let text = line(&state, turn, terminal::columns_of_stderr());
        drop(state);
        redraw_line(text);
        is_drawn = true;
    }
    if is_drawn {
        redraw_line("");
    }
}

/// The line in so many columns; the last one stays free, as some terminals go on to the next line there.
fn line(state: &State, turn: usize, columns: usize) -> String {
    let room = columns.saturating_sub(1);
    let text = match state.part {
        None => format!("{} {}", TURNING[turn % TURNING.len()], state.message),
        Some((done, total)) => {
            let percent = (u128::from(done.min(total)) * 100)
                .checked_div(u128::from(total))
                .unwrap_or(100);
            let head = format!("{} ", state.message);
            let tail = format!(" {percent:>3} %");
            let bar = room.saturating_sub(head.chars().count() + tail.chars().count());
            let full = usize::try_from(percent).map_or(bar, |p| bar * p / 100);
            format!("{head}{}{}{tail}", "#".repeat(full), "-".repeat(bar - full))
        }
    };
    text.chars().take(room).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(part: Option<(u64, u64)>) -> State {
        State {
            message: "replaying".into(),
            part,
            has_ended: false,
        }
    }

    #[test]
    fn a_bar_fills_the_line_and_no_more() {
        assert_eq!(
            line(&state(Some((1, 4))), 0, 26),
            "replaying ##-------  25 %"
        );
        assert_eq!(
            line(&state(Some((9, 4))), 0, 26),
            "replaying ######### 100 %"
        );
        assert_eq!(
            line(&state(Some((0, 0))), 0, 26),
            "replaying ######### 100 %"
        );
        assert_eq!(line(&state(None), 5, 80), "/ replaying");
    }

    #[test]
    fn a_narrow_terminal_gets_one_line_all_the_same() {
        for columns in 0..30 {
            for part in [None, Some((u64::MAX - 1, u64::MAX))] {
                assert!(line(&state(part), 0, columns).chars().count() < columns.max(1));
            }
        }
    }
}
