//! Where results go: the standard output, and files.
//!
//! Invariant: a file appears under its name only once it is complete, and what is no file is written to as it
//! stands ([`Target`]). What is asked for by `-` has the standard output to itself.

use crate::failure::{Failure, Result};
use crate::{standard, terminal};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use unfrag_linux::Error;
use unfrag_linux::error::Cause;
use unfrag_linux::file;
use unfrag_linux::input_text::{escaped_json, escaped_path};
use unfrag_linux::output::{self, Holds};
use unfrag_linux::recording::Recording;
use unfrag_linux::target::{self, Target};

pub use crate::progress::Progress;
pub use unfrag_lab::report::screen::{Screen, Text};

/// Writes to the standard output.
///
/// # Errors
/// If that fails; [`Failure::ReaderGone`] if its reader has stopped.
pub fn print(text: impl Into<Text>) -> Result<()> {
    let text = text.into();
    let written = standard::write(&text).map_err(stdout_failed);
    written.map_err(|failure| failure.of_bytes(text.len() as u64))
}

/// Writes a value as JSON to the standard output.
///
/// # Errors
/// As [`print`].
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print(json(value)?)
}

/// Writes a value as one line of JSON to the standard output.
///
/// # Errors
/// As [`print`](fn@print).
pub fn print_json_line(value: &impl serde::Serialize) -> Result<()> {
    print(finished(serde_json::to_string(value))?)
}

fn to_stdout(content: &[u8]) -> Result<()> {
    output::write(&Target::Stdout, content, Holds::Answer).map_err(stdout_failed)
}

fn stdout_failed(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::Output {
            to: "standard output".into(),
            error,
        },
    }
}

/// A value as JSON.
///
/// # Errors
/// If it is none that JSON has.
pub fn json(value: &impl serde::Serialize) -> Result<String> {
    finished(serde_json::to_string_pretty(value))
}

/// The line's end, and what controls a screen as escapes.
fn finished(text: serde_json::Result<String>) -> Result<String> {
    let mut text = text.map_err(|e| Failure::Output {
        to: "standard output".into(),
        error: e.into(),
    })?;
    text.push('\n');
    Ok(escaped_json(&text).into_owned())
}

/// Where a command's own text goes: the standard output, or the standard error if one of its files goes to the
/// standard output.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    to_stderr: bool,
}

impl Console {
    /// Beside the files that these options ask for. `json` tells whether the text is `--json`, as much a result as
    /// a file is.
    ///
    /// # Errors
    /// If two results would share the standard output.
    pub fn beside<'a>(
        files: impl IntoIterator<Item = (&'a str, Option<&'a Path>)>,
        json: bool,
    ) -> Result<Console> {
        let mut taken = files
            .into_iter()
            .filter(|(_, path)| path.is_some_and(is_stdout))
            .map(|(option, _)| option);
        let first = taken.next();
        let second = taken.next().or(json.then_some("--json"));
        match (first, second) {
            (Some(first), Some(second)) => Err(Failure::usage(
                format!("{first} and {second} both go to the standard output"),
                format!("give {first} the name of a file"),
            )),
            _ => Ok(Console {
                to_stderr: first.is_some(),
            }),
        }
    }

    /// What it can show.
    pub fn screen(self) -> Screen {
        let screen = terminal::screen();
        Screen {
            color: screen.color && !self.to_stderr,
            ..screen
        }
    }

    /// Writes text. The standard error may be gone, which is no failure.
    ///
    /// # Errors
    /// As [`print`](fn@print).
    pub fn print(self, text: impl Into<Text>) -> Result<()> {
        if self.to_stderr {
            standard::say(text);
            return Ok(());
        }
        print(text)
    }

    /// Writes a value as JSON.
    ///
    /// # Errors
    /// As [`print`](fn@print).
    pub fn print_json(self, value: &impl serde::Serialize) -> Result<()> {
        self.print(json(value)?)
    }
}

/// Whether a path names the standard output.
pub fn is_stdout(path: &Path) -> bool {
    matches!(Target::of(path), Ok(Target::Stdout))
}

/// The name of an output, as a message shows it.
pub fn name_of(path: &Path) -> String {
    match is_stdout(path) {
        true => "standard output".into(),
        false => escaped_path(path),
    }
}

/// Writes an answer, by the rules of [`Target`].
///
/// # Errors
/// If it cannot be written; [`Failure::ReaderGone`] if the standard output's reader has stopped.
pub fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let content = standard::for_place(path, content);
    written(path, &content).map_err(|failure| failure.of_bytes(content.len() as u64))
}

fn written(path: &Path, content: &[u8]) -> Result<()> {
    match Target::of(path).map_err(|e| Failure::output(path, e))? {
        Target::Stdout => to_stdout(content),
        to => output::write(&to, content, Holds::Answer).map_err(|e| Failure::output(path, e)),
    }
}

/// Writes a recording; gives the size of the file in bytes.
///
/// # Errors
/// As [`write_file`], and if the recording contradicts itself.
pub fn write_recording(path: &Path, recording: &Recording) -> Result<u64> {
    file::write(recording, path).map_err(|e| not_written(path, e))
}

/// The failure of an output that could not be written for this error.
pub fn not_written(path: &Path, e: Error) -> Failure {
    match e.cause {
        Cause::Io(error) if is_stdout(path) => stdout_failed(error),
        Cause::Io(error) => Failure::output(path, error),
        _ => e.in_file(path).into(),
    }
}

/// Checks that a file can be written, before the work whose result goes there.
///
/// # Errors
/// If it cannot.
pub fn check_writable(path: &Path) -> Result<()> {
    let checked = Target::of(path).and_then(|to| output::check(&to));
    checked.map_err(|e| Failure::output(path, e))
}

/// Checks that an output of many files can be a directory.
///
/// # Errors
/// If the path names the standard output, or something that is no directory.
pub fn check_directory(option: &str, path: &Path) -> Result<()> {
    let is_other = match target::directory(path) {
        Err(e) if e.kind() == ErrorKind::NotADirectory => true,
        Err(e) => return Err(Failure::output(path, e)),
        Ok(_) => path == Path::new("-"),
    };
    if is_other {
        return Err(Failure::usage(
            format!(
                "{option} {}: many files are written, so this must be a directory",
                escaped_path(path)
            ),
            "name a directory; it is made if it is not there",
        ));
    }
    Ok(())
}

/// Checks that the output is not the file that is read.
///
/// # Errors
/// If it is: the input would be lost.
pub fn check_not_input(output: &Path, input: &Path) -> Result<()> {
    if is_stdout(output) {
        return Ok(());
    }
    let file = |path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    match (file(output), file(input)) {
        (Some(to), Some(from)) if to == from => Err(Failure::usage(
            format!("{} is the file that is read", escaped_path(output)),
            "write to another one",
        )),
        _ => Ok(()),
    }
}
