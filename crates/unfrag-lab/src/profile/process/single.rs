//! Recordings that do not tell processes apart: all tasks count as one process.

use super::list::{Process, Processes};
use unfrag_linux::event::{Role, Roles};
use unfrag_linux::recording::Recording;

/// One process for all tasks but kernel threads and the recorder.
pub(super) fn all_as_one(rec: &Recording) -> Processes {
    let one_command = is_one_command(rec);
    let roles = Roles::of(rec);
    let counts = |role: &Role| {
        let is_others = match role {
            Role::Idle | Role::Ksoftirqd | Role::Recorder => true,
            role => role.works_for_all(),
        };
        match one_command && is_others {
            true => vec![],
            false => vec![(0, Some(0))],
        }
    };
    let first = rec.events.time.first().copied().unwrap_or(0);
    let command = rec.meta.facts.get("command").map_or("", String::as_str);
    Processes {
        list: vec![Process {
            program: command.split(' ').next().unwrap_or_default().to_owned(),
            started: first,
            ..Process::default()
        }],
        of_task: roles.all().iter().map(counts).collect(),
        ..Processes::default()
    }
}

/// Whether the recorder followed one command.
pub(super) fn is_one_command(rec: &Recording) -> bool {
    rec.meta.facts.get("scope").is_some_and(|s| s == "command")
}
