//! What a task is to memory management: a daemon of the kernel, the recorder, or a program.
//!
//! A question names the roles that it counts. A kernel thread is known by its name: a recorder keeps those even where it
//! leaves out the names of programs.
//!
//! Invariant: a task whose name is not known is no program: it is never named as one.

use crate::recording::{IN_INTERRUPT, Recording, Task, UNKNOWN_COMM};
use std::collections::HashSet;
use unfrag_eras::NodeId;

/// What a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A CPU without work.
    Idle,
    /// Whatever the interrupted task was: an interrupt is nobody's.
    Interrupt,
    /// The daemon that reclaims for a node.
    Kswapd(NodeId),
    /// The daemon that compacts.
    Kcompactd,
    /// The daemon that makes huge pages of small ones.
    Khugepaged,
    /// The daemon that watches accesses, and may reclaim.
    Kdamond,
    /// A thread of the kernel that runs soft interrupts.
    Ksoftirqd,
    /// A thread of the kernel that does what others put off.
    Kworker,
    /// A thread of the kernel that waits for grace periods.
    Rcu,
    /// The recorder itself, with its threads; a tracer.
    Recorder,
    /// A task whose name is not known.
    Unnamed,
    /// Any other.
    Program,
}

impl Role {
    /// That of a kernel thread, by its name.
    fn of_kernel(comm: &str) -> Option<Role> {
        let named = |name: &str| comm.starts_with(name);
        Some(match () {
            () if named("kswapd") => Role::Kswapd(node(comm)),
            () if named("kcompactd") => Role::Kcompactd,
            () if named("khugepaged") => Role::Khugepaged,
            () if named("kdamond") => Role::Kdamond,
            () if named("ksoftirqd/") => Role::Ksoftirqd,
            () if named("kworker") => Role::Kworker,
            () if named("rcu_") => Role::Rcu,
            () => return None,
        })
    }

    /// That of a task, as far as its number and its name tell.
    pub fn of(task: &Task) -> Role {
        match Role::of_kernel(&task.comm) {
            Some(role) => role,
            None if task.pid == 0 => Role::Idle,
            None if task.comm.is_empty() || task.comm == UNKNOWN_COMM => Role::Unnamed,
            None => Role::Program,
        }
    }

    /// Whether it reclaims, compacts or collapses memory for all tasks.
    pub fn works_for_all(self) -> bool {
        matches!(
            self,
            Role::Kswapd(_) | Role::Kcompactd | Role::Khugepaged | Role::Kdamond
        )
    }

    /// Whether it is the kernel's: its daemons, its threads, and CPUs without work.
    pub fn is_kernel(self) -> bool {
        self.works_for_all()
            || matches!(
                self,
                Role::Idle | Role::Ksoftirqd | Role::Kworker | Role::Rcu
            )
    }
}

/// The node of a kswapd: `kswapd1` is that of node 1.
fn node(comm: &str) -> NodeId {
    let number = comm.trim_start_matches(|c: char| !c.is_ascii_digit());
    let digits = number.find(|c: char| !c.is_ascii_digit());
    let number = &number[..digits.unwrap_or(number.len())];
    NodeId(number.parse().unwrap_or(0))
}

/// The role of a kernel thread of this name; `None` for those that are only the kernel's own affair.
pub fn of_kernel_thread(name: &str) -> Option<Role> {
    Role::of_kernel(name)
}

/// The fact that lists the numbers of the recorder's own tasks, among those of the file.
pub const RECORDER_TASKS: &str = "recorder_tasks";

/// Names of the recorder and its threads.
const RECORDER: [&str; 4] = ["unfrag", "spooler", "starter", "signals"];

/// The roles of a recording's tasks.
#[derive(Clone, Debug, Default)]
pub struct Roles(Vec<Role>);

impl Roles {
    /// Of a recording's tasks. The recorder is told by the numbers that it noted of its tasks; where it noted none, by
    /// its name; and by the markers that it writes, where the recording has its events with it.
    pub fn of(rec: &Recording) -> Roles {
        let mut roles: Vec<Role> = rec.tasks.iter().map(Role::of).collect();
        let fact = |name: &str| rec.meta.facts.get(name).map_or("", String::as_str);
        let program = fact("command").split(' ').next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        let tracers: &[&str] = match rec.meta.source.as_str() {
            // Only this recorder says which tasks it follows.
            _ if !fact("scope").is_empty() => &RECORDER,
            source if source.starts_with("trace.dat") => &["trace-cmd"],
            source if source.starts_with("perf.data") => &["perf"],
            _ => &[],
        };
        let own: HashSet<i32> = fact(RECORDER_TASKS)
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .filter(|&pid| pid != 0)
            .collect();
        for (role, task) in roles.iter_mut().zip(&rec.tasks) {
            let comm = task.comm.as_str();
            // A number may be another's, once its task has ended: the kernel's threads are told by their names.
            let is_own = match own.is_empty() {
                false => own.contains(&task.pid),
                true => comm != program && tracers.contains(&comm),
            };
            if matches!(role, Role::Program | Role::Unnamed) && is_own {
                *role = Role::Recorder;
            }
        }
        if !fact("scope").is_empty()
            && let Some(writer) = marker_writer(rec).and_then(|t| roles.get_mut(t))
        {
            *writer = Role::Recorder;
        }
        Roles(roles)
    }

    /// The role of a task, by index; one that the recording does not list has no name.
    #[inline]
    pub fn of_task(&self, task: u32) -> Role {
        self.0.get(task as usize).copied().unwrap_or(Role::Unnamed)
    }

    /// The role of whoever did an event of this task with these flags.
    #[inline]
    pub fn of_event(&self, task: u32, flags: u8) -> Role {
        match flags & IN_INTERRUPT {
            0 => self.of_task(task),
            _ => Role::Interrupt,
        }
    }

    /// The roles of all tasks, by index.
    pub fn all(&self) -> &[Role] {
        &self.0
    }
}

/// The task that writes markers, if the events are here.
fn marker_writer(rec: &Recording) -> Option<usize> {
    let events = &rec.events;
    let marker = events.tables.iter().position(|t| t.name == "print")?;
    let at = events.kind.iter().position(|&k| usize::from(k) == marker)?;
    events.task.get(at).map(|&t| t as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(pid: i32, comm: &str) -> Task {
        Task {
            pid,
            comm: comm.into(),
        }
    }

    #[test]
    fn tasks_are_told_by_their_names() {
        for (pid, comm, role) in [
            (0, "<idle>", Role::Idle),
            (0, "swapper", Role::Idle),
            (9, "kswapd1", Role::Kswapd(NodeId(1))),
            (9, "kswapd0:0", Role::Kswapd(NodeId(0))),
            (9, "kcompactd0", Role::Kcompactd),
            (9, "khugepaged", Role::Khugepaged),
            (9, "kdamond.0", Role::Kdamond),
            (9, "ksoftirqd/3", Role::Ksoftirqd),
            (9, "kworker/u8:2-events", Role::Kworker),
            (9, "rcu_sched", Role::Rcu),
            (9, "<...>", Role::Unnamed),
            (9, "", Role::Unnamed),
            (9, "cc1", Role::Program),
            (9, "unfrag", Role::Program),
        ] {
            assert_eq!(Role::of(&task(pid, comm)), role, "{comm}");
        }
    }

    #[test]
    fn the_recorder_and_its_threads_are_no_programs_unless_it_records_itself() {
        let mut rec = Recording {
            tasks: ["unfrag", "spooler", "du", "trace-cmd"]
                .map(|c| task(1, c))
                .into(),
            ..Recording::default()
        };
        assert_eq!(Roles::of(&rec).all(), [Role::Program; 4]);
        rec.meta.facts.insert("scope".into(), "command".into());
        rec.meta.facts.insert("command".into(), "du -s /usr".into());
        let [recorder, program] = [Role::Recorder, Role::Program];
        assert_eq!(
            Roles::of(&rec).all(),
            [recorder, recorder, program, program]
        );
        let own = "/usr/bin/unfrag simulate x";
        rec.meta.facts.insert("command".into(), own.into());
        assert_eq!(Roles::of(&rec).all(), [program, recorder, program, program]);
        // Numbers say it better than names.
        rec.tasks = [
            (7, "unfrag"),
            (8, "unfrag"),
            (9, "<...>"),
            (4, "kswapd0"),
            (0, "<idle>"),
        ]
        .map(|(pid, comm)| task(pid, comm))
        .into();
        rec.meta
            .facts
            .insert(RECORDER_TASKS.into(), "0 4 x 8 9".into());
        let [swapper, idle] = [Role::Kswapd(NodeId(0)), Role::Idle];
        assert_eq!(
            Roles::of(&rec).all(),
            [program, recorder, recorder, swapper, idle]
        );
        rec.tasks[3] = task(1, "trace-cmd");
        rec.meta.facts.clear();
        rec.meta.source = "trace.dat v7".into();
        assert_eq!(Roles::of(&rec).of_task(3), recorder);
        assert_eq!(Roles::of(&rec).of_event(0, 0x10), Role::Interrupt);
        assert_eq!(Roles::of(&rec).of_task(9), Role::Unnamed);
    }
}
