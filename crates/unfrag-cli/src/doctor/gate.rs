//! The doctor as a gate: needs on the command line, an answer in one line, and exit statuses for scripts.
//!
//! Invariant: a status is given only where one is asked for, by `--check` or the format of a program that reads it; then
//! nothing but an answer that is *yes* ends with 0, labels aside.

use crate::failure::{Failure, Result};
use crate::output::print;
use clap::ValueEnum;
use std::process::ExitCode;
use unfrag_lab::doctor::gate::formats::Format as Printed;
use unfrag_lab::doctor::gate::{After, Need, Needs, judge};
use unfrag_lab::doctor::{Evidence, Examined};
use unfrag_lab::geometry::{Geometry, PageSizeFrom};
use unfrag_lab::report::number::bytes;

#[derive(Debug, clap::Args)]
pub struct Gate {
    /// Can so many pieces of memory be had, such as 200x32M or 512x2M@node1? Several are judged together, and no page is
    /// counted twice. Sizes are powers of two from 4K to 16G
    #[arg(long, value_name = "COUNTxSIZE[@nodeN]", conflicts_with = "map")]
    need: Vec<Need>,
    /// What you are willing to do before you take it: drop, compact, or drop,compact; nothing if not given
    #[arg(long, value_name = "MEANS")]
    after: Option<After>,
    /// Answer --need or --huge in one line of at most 80 signs; exit status 0 yes, 1 no, 3 not known, 2 cannot be read
    #[arg(long, conflicts_with = "map")]
    check: bool,
    /// For other programs: nagios and npd (node-problem-detector) have one line and their own exit statuses, nfd (node
    /// feature discovery) has labels, json is --json. Without --check, text, json and nfd end with 0, whatever the answer;
    /// with it JSON is one line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text, conflicts_with_all = ["json", "map"])]
    format: Format,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The exit status where the options themselves are wrong: for Nagios a 2 would be *critical*, which is an answer. A
/// program that reads a line gets one.
pub fn status_of_wrong_options(status: u8) -> u8 {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let is_asked = |name: &str| {
        let joined = format!("--format={name}");
        words.iter().any(|w| *w == *joined)
            || words
                .windows(2)
                .any(|w| w[0] == "--format" && w[1] == *name)
    };
    let formats = [
        ("nagios", Printed::Nagios),
        ("npd", Printed::NodeProblemDetector),
    ];
    let format = formats.iter().find(|(name, _)| is_asked(name));
    match format {
        Some((_, format)) if status == 2 && words.first().is_some_and(|w| w == "doctor") => {
            let _ = print(format.print_misused());
            format.unreadable()
        }
        _ => status,
    }
}

/// Who reads the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Nagios,
    Npd,
    Nfd,
}

impl Gate {
    /// Checks that what needs a need has one.
    pub fn check(&self, huge: Option<u64>) -> Result<()> {
        let needing = [
            (self.check, "--check"),
            (self.after.is_some(), "--after"),
            (self.format == Format::Nagios, "--format nagios"),
            (self.format == Format::Npd, "--format npd"),
            (self.format == Format::Nfd, "--format nfd"),
        ];
        let lacking = needing.iter().find(|(is, _)| *is);
        match lacking.filter(|_| self.need.is_empty() && huge.is_none()) {
            None => Ok(()),
            Some((_, option)) => Err(Failure::usage(
                format!("{option} is about a need, and none is given"),
                "add one, such as --need 200x32M, or --huge 64",
            )),
        }
    }

    /// Whether all is printed as JSON.
    pub fn is_json(&self) -> bool {
        self.json || self.format == Format::Json
    }

    /// Whether all of it is to be one line.
    pub fn is_one_line(&self) -> bool {
        self.check
    }

    /// The short answer that is asked for; `None` where all is shown.
    pub fn line(&self) -> Option<Printed> {
        match self.format {
            _ if self.is_json() => None,
            Format::Nagios => Some(Printed::Nagios),
            Format::Npd => Some(Printed::NodeProblemDetector),
            Format::Nfd => Some(Printed::NodeFeatureDiscovery),
            Format::Text => self.check.then_some(Printed::Line),
            Format::Json => None,
        }
    }

    /// The format whose statuses are asked for.
    fn statuses(&self) -> Option<Printed> {
        match self.format {
            Format::Nagios => Some(Printed::Nagios),
            Format::Npd => Some(Printed::NodeProblemDetector),
            _ => self.check.then_some(Printed::Line),
        }
    }

    /// The answer to the needs. Huge pages are a need as well where a need is what is asked about.
    pub fn judge(&self, e: &Evidence, x: &Examined, huge: Option<u64>) -> Result<Option<Needs>> {
        let mut needs = self.need.clone();
        let is_gate = self.check || self.after.is_some() || self.line().is_some();
        if let Some(count) = huge.filter(|_| is_gate || !needs.is_empty()) {
            needs.push(Need::new(count, x.diagnosis.huge_page_bytes));
        }
        if needs.is_empty() {
            return Ok(None);
        }
        Ok(Some(judge(e, x, &needs, self.after.unwrap_or_default())?))
    }

    /// The exit status for an answer.
    pub fn status(&self, needs: Option<&Needs>) -> ExitCode {
        let status = self.statuses().zip(needs);
        ExitCode::from(status.map_or(0, |(format, n)| format.status(n.verdict)))
    }

    /// Whether the page size that was given is not another one than the files tell: an answer by it would be of no host.
    ///
    /// # Errors
    /// If it is, and something is asked for.
    pub fn agrees(&self, told: Geometry, given: Option<u64>, huge: Option<u64>) -> Result<()> {
        let is_told = told.page_size_from == PageSizeFrom::Derived;
        let other = given.filter(|&given| is_told && given != told.page_size);
        match other {
            Some(given) if huge.is_some() || !self.need.is_empty() => Err(Failure::usage(
                format!(
                    "pages are of {} there, by its files, not of {}",
                    bytes(told.page_size),
                    bytes(given)
                ),
                "leave --page-size out",
            )),
            _ => Ok(()),
        }
    }

    /// The exit status of a command that came to its end, or failed.
    ///
    /// # Errors
    /// The failure, where no status is asked for.
    pub fn settled(&self, done: Result<ExitCode>) -> Result<ExitCode> {
        match (done, self.statuses()) {
            (Err(failure), Some(format)) => {
                let line = match failure {
                    Failure::Usage { .. } => format.print_misused(),
                    _ => format.print_unreadable(),
                };
                failure.report();
                // Who reads the line reads it here as well; the status stays if nobody does.
                let _ = print(line);
                Ok(ExitCode::from(format.unreadable()))
            }
            (done, _) => done,
        }
    }
}
