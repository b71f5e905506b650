//! The answer to needs for other programs: Nagios plugins, node-problem-detector, node feature discovery.
//!
//! Invariant: an output is a function of the answer, and holds what its program's own rules allow: names and values of
//! labels, exit statuses.

use super::answer::{Asked, Needs, Verdict};
use super::means::Means;
use std::fmt::Write as _;

/// A program that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A shell: one line.
    Line,
    /// Nagios, Icinga and those that run their plugins.
    Nagios,
    /// node-problem-detector's custom plugins.
    NodeProblemDetector,
    /// A feature file of node feature discovery.
    NodeFeatureDiscovery,
}

impl Format {
    /// The exit status for a verdict; that for what cannot be read is [`Self::unreadable`].
    pub fn status(self, verdict: Verdict) -> u8 {
        let [yes, no, unknown] = match self {
            Format::Line | Format::NodeFeatureDiscovery => [0, 1, 3],
            Format::Nagios => [0, 2, 3],
            Format::NodeProblemDetector => [0, 1, 2],
        };
        match verdict {
            Verdict::Yes => yes,
            Verdict::No => no,
            Verdict::Unknown => unknown,
        }
    }

    /// The exit status where there is no verdict: what was to be read cannot be read, or was asked for wrongly.
    pub fn unreadable(self) -> u8 {
        match self {
            Format::Nagios => 3,
            _ => 2,
        }
    }

    /// What it prints.
    pub fn print(self, n: &Needs) -> String {
        match self {
            Format::Line | Format::NodeProblemDetector => format!("{}\n", n.line),
            Format::Nagios => nagios(n),
            Format::NodeFeatureDiscovery => features(n),
        }
    }

    /// What it prints where there is no verdict; nothing where only the error is shown.
    pub fn print_unreadable(self) -> &'static str {
        match self {
            Format::Nagios => "MEMORY UNKNOWN - cannot be read\n",
            Format::NodeProblemDetector => "not known: memory cannot be read\n",
            Format::Line | Format::NodeFeatureDiscovery => "",
        }
    }

    /// What it prints where the options are wrong.
    pub fn print_misused(self) -> &'static str {
        match self {
            Format::Nagios => "MEMORY UNKNOWN - wrong options\n",
            Format::NodeProblemDetector => "not known: wrong options\n",
            Format::Line | Format::NodeFeatureDiscovery => "",
        }
    }
}

/// The means whose numbers are shown: that which gives all, or the dearest that is allowed.
fn means(n: &Needs) -> Means {
    n.means.unwrap_or(n.after.most())
}

/// One line with performance data, each number with the range that is no problem.
fn nagios(n: &Needs) -> String {
    let word = match n.verdict {
        Verdict::Yes => "OK",
        Verdict::No => "CRITICAL",
        Verdict::Unknown => "UNKNOWN",
    };
    let mut out = format!("MEMORY {word} - {} |", n.line);
    for a in &n.each {
        let at_least = a.rooms[means(n) as usize].at_least;
        let _ = write!(out, " '{}'={at_least};;{}:;0;", a.need.what(), a.need.count);
    }
    out.push('\n');
    out
}

/// A line `name=value` for each need, one for all, and one for what comes before.
fn features(n: &Needs) -> String {
    let value = |v: Verdict| match v {
        Verdict::Yes => "yes",
        Verdict::No => "no",
        Verdict::Unknown => "unknown",
    };
    let mut out = String::new();
    let one = |a: &Asked| super::answer::verdict(std::slice::from_ref(a), means(n));
    for a in &n.each {
        // A label's name has letters, digits, dots and dashes.
        let name = a.name.replace('@', "-");
        let _ = writeln!(out, "unfrag.memory.{name}={}", value(one(a)));
    }
    let _ = writeln!(out, "unfrag.memory.all={}", value(n.verdict));
    let after = match means(n) {
        Means::Now => "nothing",
        Means::Compact => "compact",
        Means::Drop => "drop",
        Means::DropCompact => "drop-compact",
    };
    let _ = writeln!(out, "unfrag.memory.after={after}");
    out
}
