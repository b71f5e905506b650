//! What recorders say at their end.

use serde::Serialize;
use unfrag_linux::event::{Role, Roles};
use unfrag_linux::record::{Options, Untaken};
use unfrag_linux::recording::{FieldKind, Recording};

/// What in a recording names somebody.
const PROGRAMS: &str = "the names of programs";
/// The same.
const PATHS: &str = "their paths";

/// A file that no snapshot has.
#[derive(Debug, Serialize)]
pub(super) struct NotTaken {
    /// Its name.
    pub file: String,
    /// The reason.
    pub why: String,
}

/// The files that no snapshot has.
pub(super) fn not_taken(untaken: &[Untaken]) -> Vec<NotTaken> {
    let one = |u: &Untaken| NotTaken {
        file: u.file.clone(),
        why: u.why.clone(),
    };
    untaken.iter().map(one).collect()
}

/// What in a recording names somebody, in words.
pub(super) fn names(recording: &Recording) -> Vec<&'static str> {
    let mut roles = Roles::of(recording).all().to_vec();
    roles.retain(|role| *role == Role::Program);
    let tables = recording.events.tables.iter();
    let has_paths = tables
        .filter(|t| t.columns.first().is_some_and(|c| !c.is_empty()))
        .flat_map(|t| &t.fields)
        .any(|f| f.name == "filename" && f.kind == FieldKind::String);
    [
        (!roles.is_empty(), PROGRAMS),
        (has_paths, PATHS),
        (
            recording.meta.facts.contains_key("command"),
            "the words of the command",
        ),
    ]
    .into_iter()
    .filter_map(|(is_there, what)| is_there.then_some(what))
    .collect()
}

/// The same of the whole host's segments, by what was asked for: to read gigabytes once more would take minutes, and on a host
/// there is always a program.
pub(super) fn names_of_the_host(options: &Options) -> Vec<&'static str> {
    match (options.anonymous, options.processes) {
        (true, _) => vec![],
        (false, false) => vec![PROGRAMS],
        (false, true) => vec![PROGRAMS, PATHS],
    }
}

/// The line that says it.
pub(super) fn of_names(names: &[&str]) -> String {
    match names {
        [] => {
            "it names no program; `unfrag redact` takes numbers of files and addresses out, too\n"
                .into()
        }
        names => format!(
            "it holds {}: `unfrag redact` makes a file of it that can be given away\n",
            names.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_linux::record::Scope;

    #[test]
    fn of_the_whole_host_it_is_said_what_was_asked_for() {
        let line = |processes, anonymous| {
            of_names(&names_of_the_host(&Options {
                scope: Scope::System(None),
                output: "days".into(),
                slab: false,
                processes,
                stacks: false,
                events: vec![],
                anonymous,
                command_line: false,
                buffer: None,
            }))
        };
        let usual = line(false, false);
        assert!(usual.starts_with("it holds the names of programs: `unfrag redact`"));
        let with_paths = line(true, false);
        assert!(with_paths.starts_with("it holds the names of programs, their paths: "));
        assert!(line(false, true).starts_with("it names no program; "));
    }
}
