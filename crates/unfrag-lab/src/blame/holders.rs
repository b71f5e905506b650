//! Who takes frames, and what for.

use crate::names::{NameId, Names};
use crate::profile::class::Class;
use std::collections::HashMap;
use unfrag_linux::event::{Role, Roles};
use unfrag_linux::recording::{IN_INTERRUPT, Recording};

/// What took frames before the recording, and what an interrupt took.
pub(super) const BEFORE: &str = "(before the recording)";
const INTERRUPT: &str = "(interrupt)";
/// What the recorder and its threads took.
const RECORDER: &str = "(the recorder)";
/// What tasks took whose names are not in the recording: together they are no program.
pub(super) const UNNAMED: &str = "(not named)";

/// A holder, by number.
pub(super) type HolderId = u32;

/// The holders of a recording.
pub(super) struct Holders {
    /// Number of the name of each task's program.
    of_task: Vec<NameId>,
    names: Names,
    holders: HashMap<(NameId, NameId), HolderId>,
    all: Vec<(NameId, NameId)>,
}

/// The program of a process's name. The kernel's threads of all CPUs are one: `ksoftirqd/3` is `ksoftirqd`, and
/// `kworker/u8:2-events` is `kworker`.
pub(crate) fn program(comm: &str) -> &str {
    let is_number = |rest: &str| {
        let rest = rest.trim_start_matches('u');
        rest.starts_with(|c: char| c.is_ascii_digit())
    };
    match comm.split_once('/') {
        Some((name, rest)) if is_number(rest) => name,
        _ => comm,
    }
}

impl Holders {
    pub(super) fn of(rec: &Recording) -> Holders {
        let mut names = Names::default();
        let roles = Roles::of(rec);
        let of_task = rec.tasks.iter().zip(roles.all());
        let of_task = of_task.map(|(task, role)| {
            names.number(match role {
                Role::Unnamed => UNNAMED,
                Role::Recorder => RECORDER,
                _ => program(&task.comm),
            })
        });
        Holders {
            of_task: of_task.collect(),
            names,
            holders: HashMap::new(),
            all: vec![],
        }
    }

    /// The holder of what a task takes for a purpose; `flags` are those of the event.
    pub(super) fn of_event(&mut self, task: u32, flags: u8, purpose: &str) -> HolderId {
        let program = match flags & IN_INTERRUPT {
            0 => self.of_task[task as usize],
            _ => self.names.number(INTERRUPT),
        };
        self.number(program, purpose)
    }

    /// The holder of what was in use before the recording.
    pub(super) fn before(&mut self, purpose: &str) -> HolderId {
        let program = self.names.number(BEFORE);
        self.number(program, purpose)
    }

    /// The same holder, who takes for another purpose.
    pub(super) fn with_purpose(&mut self, holder: HolderId, purpose: &str) -> HolderId {
        let (program, _) = self.all[holder as usize];
        self.number(program, purpose)
    }

    fn number(&mut self, program: NameId, purpose: &str) -> HolderId {
        let key = (program, self.names.number(purpose));
        let next = self.all.len() as HolderId;
        let number = *self.holders.entry(key).or_insert(next);
        if number == next {
            self.all.push(key);
        }
        number
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The program; `None` if its name is not in the recording.
    pub(super) fn program(&self, holder: HolderId) -> Option<&str> {
        let (program, _) = self.name(holder);
        (program != UNNAMED).then_some(program)
    }

    /// Program and purpose.
    pub(super) fn name(&self, holder: HolderId) -> (&str, &str) {
        let (program, purpose) = self.all[holder as usize];
        let name = |n: NameId| self.names.all[n as usize].as_str();
        (name(program), name(purpose))
    }
}

/// What pages are for, in words.
pub(super) fn purpose(class: Class) -> &'static str {
    match class {
        Class::Anonymous | Class::FileRead | Class::FileWritten => "movable",
        Class::Metadata => "file-system metadata",
        Class::PageTables => "page tables",
        Class::KernelStacks => "kernel stacks",
        Class::SlabReclaimable => "reclaimable slab",
        Class::SlabUnmovable => "slab",
        Class::Other => "other kernel memory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_all_cpus_are_one_program() {
        for (comm, wanted) in [
            ("kworker/u8:2-events", "kworker"),
            ("kworker/0:1", "kworker"),
            ("ksoftirqd/11", "ksoftirqd"),
            ("irq/24-ahci", "irq"),
            ("cc1", "cc1"),
            ("/usr/bin/cc", "/usr/bin/cc"),
            ("a/b", "a/b"),
        ] {
            assert_eq!(program(comm), wanted, "{comm}");
        }
    }
}
