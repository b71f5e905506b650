//! Recordings that do not tell processes apart: all tasks count as one process.

use super::list::{Process, Processes, reclaims_for_others};
use unfrag_linux::recording::{Recording, Task};

/// One process for all tasks but kernel threads and the recorder, which is the task that writes markers.
pub(super) fn all_as_one(rec: &Recording) -> Processes {
    let events = &rec.events;
    let marker = events.tables.iter().position(|t| t.name == "print");
    let recorder = marker.and_then(|m| events.kind.iter().position(|&k| usize::from(k) == m));
    let recorder = recorder.map(|i| events.task[i] as usize);
    let one_command = is_one_command(rec);
    let counts = |(i, t): (usize, &Task)| {
        let kernels = t.pid == 0 || reclaims_for_others(&t.comm) || t.comm.starts_with("ksoftirqd");
        match !one_command || (Some(i) != recorder && !kernels) {
            true => vec![(0, Some(0))],
            false => vec![],
        }
    };
    let first = events.time.first().copied().unwrap_or(0);
    let command = rec.meta.facts.get("command").map_or("", String::as_str);
    Processes {
        list: vec![Process {
            program: command.split(' ').next().unwrap_or_default().to_owned(),
            started: first,
            ..Process::default()
        }],
        of_task: rec.tasks.iter().enumerate().map(counts).collect(),
        ..Processes::default()
    }
}

/// Whether the recorder followed one command.
pub(super) fn is_one_command(rec: &Recording) -> bool {
    rec.meta.facts.get("scope").is_some_and(|s| s == "command")
}
