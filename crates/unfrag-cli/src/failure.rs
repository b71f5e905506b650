//! Why a command failed, the message about it, and the exit status.
//!
//! Invariant: a message says what is wrong and, where there is one, the way out; text that comes from an input
//! cannot control the terminal.

use crate::inputs::{is_kernel_log, shell_word, without_number};
use crate::standard::{error_word, say};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;
use unfrag_lab::error::{self as lab, Asked, Remedy};
use unfrag_lab::report::screen::printable;
use unfrag_linux::error::Cause;
use unfrag_linux::input_text::escaped_path;
use unfrag_linux::no_room::{self, NoRoom};
use unfrag_machine::scenario::ScenarioError;

/// A command's result.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a command stopped.
#[derive(Debug)]
pub enum Failure {
    /// The input cannot be used.
    Input(Box<unfrag_linux::Error>),
    /// The laboratory cannot answer.
    Lab(Box<unfrag_lab::error::Error>),
    /// The scenario is wrong.
    Scenario(Box<ScenarioError>),
    /// The command line contradicts itself or the input.
    Usage {
        /// What is wrong.
        cause: String,
        /// The way out.
        help: String,
    },
    /// The output cannot be written.
    Output {
        /// Where to, such as a path.
        to: String,
        /// What the operating system says.
        error: io::Error,
    },
    /// Nobody reads the output any more.
    ReaderGone,
}

impl From<unfrag_linux::Error> for Failure {
    fn from(e: unfrag_linux::Error) -> Self {
        Failure::Input(Box::new(e))
    }
}

impl From<unfrag_lab::error::Error> for Failure {
    fn from(e: unfrag_lab::error::Error) -> Self {
        match e.cause {
            lab::Cause::Input(input) => Failure::Input(input),
            lab::Cause::Scenario(scenario) => Failure::Scenario(scenario),
            lab::Cause::NoWindow => Failure::usage(
                "--from and --to choose of what was recorded, and this host is looked at as it is now",
                remedy(&e.remedy),
            ),
            lab::Cause::Question(what) => Failure::usage(what, remedy(&e.remedy)),
            _ => Failure::Lab(Box::new(e)),
        }
    }
}

impl From<ScenarioError> for Failure {
    fn from(e: ScenarioError) -> Self {
        Failure::Scenario(Box::new(e))
    }
}

impl Failure {
    /// A command line that cannot be carried out.
    pub fn usage(cause: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::Usage {
            cause: cause.into(),
            help: help.into(),
        }
    }

    /// A file that cannot be written.
    pub fn output(to: &Path, error: io::Error) -> Failure {
        Failure::Output {
            to: escaped_path(to),
            error,
        }
    }

    /// Says of an output on a full disk how large it is.
    #[must_use]
    pub fn of_bytes(self, bytes: u64) -> Failure {
        match self {
            Failure::Output { to, error } if no_room::is_full(&error) => {
                let error = no_room::at(error, Path::new(&to), Some(bytes));
                Failure::Output { to, error }
            }
            other => other,
        }
    }

    /// Prints the message to the standard error; gives the exit status.
    pub fn report(self) -> ExitCode {
        let is_quoted = matches!(self, Failure::Scenario(_));
        let (text, help, status) = match self {
            Failure::ReaderGone => return ExitCode::SUCCESS,
            Failure::Usage { cause, help } => (cause, help.into(), 2),
            Failure::Output { to, error } => {
                let help = NoRoom::of(&error).map(|e| e.help().into());
                let help = help.unwrap_or_else(|| way_out(error.kind(), "write"));
                let said = without_number(&error);
                // An error that names its place may name this one.
                let place = format!("{to}: ");
                let said = said.strip_prefix(&place).unwrap_or(&said);
                (format!("{place}{said}"), help, 1)
            }
            Failure::Input(e) => {
                let (text, help) = input_message(*e);
                (text, help, 1)
            }
            Failure::Lab(e) => {
                let file = e.file.as_ref().map(|f| format!("{}: ", escaped_path(f)));
                let what = match &e.cause {
                    lab::Cause::Option { option, what } => match flag(*option) {
                        Some(flag) => format!("{flag}: {what}"),
                        None => what.to_string(),
                    },
                    cause => cause.to_string(),
                };
                (file.unwrap_or_default() + &what, remedy(&e.remedy), 1)
            }
            Failure::Scenario(e) => {
                let help = e.help.unwrap_or_default();
                (
                    ScenarioError { help: None, ..*e }.to_string(),
                    help.into(),
                    1,
                )
            }
        };
        // A message about a scenario quotes its line, and marks the place below it.
        let text = match is_quoted {
            true => text,
            false => printable(&text),
        };
        let mut said = error_word();
        let _ = writeln!(said, " {}", text.trim_end());
        if !help.is_empty() {
            let _ = writeln!(said, " help: {}", printable(&help));
        }
        // If this cannot be written either, only the exit status is left.
        say(said);
        ExitCode::from(status)
    }
}

/// The flag that an option of the laboratory comes from, where the sentence does not show it already.
fn flag(option: Asked) -> Option<&'static str> {
    match option {
        Asked::Memory => Some("--memory"),
        Asked::Setting => Some("--set"),
        Asked::Members => Some("--members"),
        Asked::Compaction => Some("--compaction"),
        _ => None,
    }
}

/// The laboratory's way out, as something to type.
fn remedy(remedy: &Remedy) -> Cow<'static, str> {
    match remedy {
        Remedy::Unknown => "".into(),
        Remedy::Other(Asked::Memory) => "choose another size of memory: --memory 1G".into(),
        Remedy::Without(Asked::Memory) => "replay it without --memory".into(),
        Remedy::StartFromCounts => "use --start counts".into(),
        Remedy::PageFlagsOrCounts => {
            "record with `unfrag record` as root, or use --start counts".into()
        }
        Remedy::RecordProcesses => {
            "record the command with: unfrag record --processes --slab -o FILE.unfrag -- COMMAND"
                .into()
        }
        Remedy::WithoutSnapshots => {
            "leave out --snapshots, or give the raw trace instead of the .unfrag file".into()
        }
        Remedy::RecordHost => {
            "record the whole host while the command runs: unfrag record --system -o FILE.unfrag -- COMMAND; \
             to see the replay all the same, add --any-share"
                .into()
        }
        Remedy::RecordWithoutLoss => {
            "record again with a larger --buffer, as events were lost; to see the replay all the same, add --any-share"
                .into()
        }
        Remedy::NameRecording => {
            "leave them out, or give a recording, a directory of segments, or dated copies of procfs".into()
        }
        other => other.to_string().into(),
    }
}

/// Message and way out of an error of an input.
fn input_message(e: unfrag_linux::Error) -> (String, Cow<'static, str>) {
    let mut text = String::new();
    if let Some(file) = &e.file {
        text += &format!("{}: ", escaped_path(file));
    }
    if let Some(offset) = e.offset {
        text += &format!("byte {offset}: ");
    }
    let mut help = e.help;
    match &e.cause {
        Cause::Io(io) => {
            text += &without_number(io);
            if help.is_empty() {
                help = match e.file.as_deref().and_then(|f| instead(io.kind(), f)) {
                    Some(instead) => instead.into(),
                    None => way_out(io.kind(), "read"),
                };
            }
        }
        cause => {
            text += &cause.to_string();
            if let Some(file) = e.file.as_deref().filter(|f| is_kernel_log(f)) {
                let file = shell_word(file);
                help = format!(
                    "it is a kernel log, which another command takes: unfrag explain {file}"
                )
                .into();
            }
        }
    }
    (text, help)
}

/// The way out where a path that cannot be read shows what was meant.
fn instead(kind: ErrorKind, file: &Path) -> Option<String> {
    let command = std::env::args_os().nth(1)?.into_string().ok()?;
    let number = file
        .to_str()
        .filter(|f| f.bytes().all(|b| b.is_ascii_digit()));
    match (kind, command.as_str(), number) {
        (ErrorKind::NotFound, "doctor", Some(n)) => Some(format!(
            "check the path; to ask for {n} huge pages: unfrag doctor --huge {n}"
        )),
        (ErrorKind::IsADirectory, "replay" | "blame" | "profile" | "summary" | "slab" | "redact", _) => {
            Some(
                "no recording is in it: name a file, or a directory of segments as `unfrag record --keep` writes it"
                    .into(),
            )
        }
        _ => None,
    }
}

/// The way out of an error of the operating system; `act` is what was tried, such as `read`.
fn way_out(kind: ErrorKind, act: &str) -> Cow<'static, str> {
    match kind {
        ErrorKind::NotFound => "check the path".into(),
        ErrorKind::PermissionDenied => format!("run as a user who may {act} it").into(),
        ErrorKind::IsADirectory => "name a file, not a directory".into(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, or write elsewhere".into()
        }
        _ => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_os_error_is_shown_without_its_number() {
        let e = std::fs::read("no such file").unwrap_err();
        assert_eq!(without_number(&e), "No such file or directory");
    }
}
