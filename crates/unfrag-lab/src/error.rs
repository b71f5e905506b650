//! Why a question cannot be answered.
//!
//! Invariant: an error names an option by what it is ([`Asked`]), never by the flag of a command. Whoever took
//! the option from somewhere, such as a command line, says where.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use unfrag_linux::event::Unreadable;
use unfrag_linux::input_text::{escaped_lines, escaped_path};
use unfrag_machine::scenario::ScenarioError;

/// The laboratory's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a question cannot be answered, and what to do about it.
#[derive(Debug)]
pub struct Error {
    /// The file that the question is about, if known.
    pub file: Option<PathBuf>,
    /// What is wrong.
    pub cause: Cause,
    /// The way out.
    pub remedy: Remedy,
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// An input cannot be read, or contradicts its format.
    #[error(transparent)]
    Input(Box<unfrag_linux::Error>),
    /// A scenario is wrong.
    #[error(transparent)]
    Scenario(Box<ScenarioError>),
    /// The recording, or the host, does not hold what the question needs.
    #[error("{0}")]
    Lacking(Cow<'static, str>),
    /// What was recorded contradicts itself, or is beyond what can be modelled.
    #[error("{0}")]
    Contradiction(Cow<'static, str>),
    /// The question contradicts itself, or the input that it is about.
    #[error("{0}")]
    Question(Cow<'static, str>),
    /// A window of time was asked for of this host as it is now.
    #[error(
        "a window of time is chosen of what was recorded, and this host is looked at as it is now"
    )]
    NoWindow,
    /// An option asks for what does not exist or cannot be.
    #[error("{what}")]
    Option {
        /// Which.
        option: Asked,
        /// What is wrong with it.
        what: Cow<'static, str>,
    },
}

/// An option of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asked {
    /// A kernel by name.
    Kernel,
    /// A sysctl.
    Setting,
    /// The size of memory.
    Memory,
    /// The number of replays in an ensemble.
    Members,
    /// A machine by name.
    Machine,
    /// The first seed.
    Seed,
    /// Whose compaction moves pages.
    Compaction,
}

/// The way out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// None is known.
    #[default]
    Unknown,
    /// A sentence.
    Sentence(Cow<'static, str>),
    /// Another value of an option.
    Other(Asked),
    /// The question without that option.
    Without(Asked),
    /// A start from counts.
    StartFromCounts,
    /// A recording with page flags, or a start from counts.
    PageFlagsOrCounts,
    /// A recording of the command's processes and slab events.
    RecordProcesses,
    /// The recording alone, or a raw trace beside the snapshots.
    WithoutSnapshots,
    /// A recording, or dated copies of procfs.
    NameRecording,
    /// A recording of the whole host; or the answer all the same.
    RecordHost,
    /// A recording that loses no events; or the answer all the same.
    RecordWithoutLoss,
}

impl Error {
    fn new(cause: Cause) -> Error {
        Error {
            file: None,
            cause,
            remedy: Remedy::Unknown,
        }
    }

    /// The recording, or the host, does not hold what the question needs.
    pub fn lacking(what: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Cause::Lacking(what.into()))
    }

    /// What was recorded contradicts itself, or is beyond what can be modelled.
    pub fn contradiction(what: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Cause::Contradiction(what.into()))
    }

    /// The question contradicts itself, or the input that it is about.
    pub fn question(what: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Cause::Question(what.into()))
    }

    /// A window of time was asked for of this host as it is now.
    pub fn no_window() -> Error {
        Error::new(Cause::NoWindow).remedy(Remedy::NameRecording)
    }

    /// An option asks for what does not exist or cannot be.
    pub fn option(option: Asked, what: impl Into<Cow<'static, str>>) -> Error {
        Error::new(Cause::Option {
            option,
            what: what.into(),
        })
    }

    /// Adds the file, unless it is known already.
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Error {
        match self.cause {
            Cause::Input(e) => self.cause = Cause::Input(Box::new(e.in_file(file))),
            _ => {
                self.file.get_or_insert_with(|| file.to_path_buf());
            }
        }
        self
    }

    /// Adds the file that was asked about, unless it is an option, or the question, that is wrong.
    #[must_use]
    pub fn about(self, file: &Path) -> Error {
        match self.cause {
            Cause::Option { .. } | Cause::Question(_) | Cause::NoWindow => self,
            _ => self.in_file(file),
        }
    }

    /// Names the file together with the directory, or the input, that holds it.
    #[must_use]
    pub fn inside(mut self, place: &Path) -> Error {
        let file = match &mut self.cause {
            Cause::Input(input) => &mut input.file,
            _ => &mut self.file,
        };
        *file = Some(
            file.take()
                .map_or_else(|| place.to_owned(), |f| place.join(f)),
        );
        self
    }

    /// Adds the way out as a sentence.
    #[must_use]
    pub fn help(self, sentence: impl Into<Cow<'static, str>>) -> Error {
        self.remedy(Remedy::Sentence(sentence.into()))
    }

    /// Adds the way out.
    #[must_use]
    pub fn remedy(self, remedy: Remedy) -> Error {
        Error { remedy, ..self }
    }
}

impl Asked {
    /// Its name in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Asked::Kernel => "kernel",
            Asked::Setting => "setting",
            Asked::Memory => "size of memory",
            Asked::Members => "number of members",
            Asked::Machine => "machine",
            Asked::Seed => "seed",
            Asked::Compaction => "compaction",
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remedy::Unknown => Ok(()),
            Remedy::Sentence(s) => f.write_str(s),
            Remedy::Other(option) => write!(f, "choose another {}", option.name()),
            Remedy::Without(option) => write!(f, "ask without a {}", option.name()),
            Remedy::StartFromCounts => f.write_str("begin from counts"),
            Remedy::PageFlagsOrCounts => {
                f.write_str("record page flags, which takes root, or begin from counts")
            }
            Remedy::RecordProcesses => {
                f.write_str("record the command with its processes and slab events")
            }
            Remedy::WithoutSnapshots => f.write_str(
                "leave the snapshots out, or give the raw trace instead of the .unfrag file",
            ),
            Remedy::NameRecording => {
                f.write_str("leave the window out, or give a recording or dated copies of procfs")
            }
            Remedy::RecordHost => {
                f.write_str("record the whole host, or ask for the answer whatever the share")
            }
            Remedy::RecordWithoutLoss => {
                f.write_str("record with a larger buffer, or ask for the answer whatever the share")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", escaped_path(file))?;
        }
        f.write_str(&escaped_lines(&self.cause.to_string()))?;
        match self.remedy {
            Remedy::Unknown => Ok(()),
            ref remedy => write!(f, " ({})", escaped_lines(&remedy.to_string())),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Input(e) => std::error::Error::source(e.as_ref()),
            _ => None,
        }
    }
}

impl From<ScenarioError> for Error {
    fn from(e: ScenarioError) -> Error {
        Error::new(Cause::Scenario(Box::new(e)))
    }
}

impl From<Unreadable> for Error {
    fn from(why: Unreadable) -> Error {
        match why {
            Unreadable::Lacks { .. } => Error::lacking(why.to_string()),
            _ => Error::contradiction(why.to_string())
                .help("the recording is damaged: record the host again"),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Error {
        unfrag_linux::Error::from(e).into()
    }
}

impl From<unfrag_pool::PoolError> for Error {
    fn from(e: unfrag_pool::PoolError) -> Error {
        Error::lacking(e.to_string())
    }
}

impl From<unfrag_linux::Error> for Error {
    fn from(e: unfrag_linux::Error) -> Error {
        Error::new(Cause::Input(Box::new(e)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_is_wrong_and_the_way_out_without_a_flag() {
        let e =
            Error::option(Asked::Memory, "1 MiB is too small").remedy(Remedy::Other(Asked::Memory));
        assert_eq!(
            e.to_string(),
            "1 MiB is too small (choose another size of memory)"
        );
        let e = Error::lacking("no free lists").remedy(Remedy::StartFromCounts);
        assert_eq!(e.to_string(), "no free lists (begin from counts)");
    }
}
