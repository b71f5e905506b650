//! From the events about processes to [`Processes`].
//!
//! Invariant: at any moment a task's number belongs to one process or to none. A task whose switch off a CPU was not
//! recorded counts as running there until its last event there.

use super::events::{ProcessEvent, ProcessTables, Tracepoint};
use super::list::{Process, Processes};
use super::single::{all_as_one, is_one_command};
use crate::error::Result;
use std::collections::{HashMap, HashSet};
use unfrag_linux::event::{Role, Roles};
use unfrag_linux::recording::Recording;

/// Flags of clone(2).
const CLONE_VM: u64 = 0x100;
const CLONE_VFORK: u64 = 0x4000;
const CLONE_THREAD: u64 = 0x1_0000;
/// `TASK_UNINTERRUPTIBLE` in the field `prev_state`, printed as `D`.
const UNINTERRUPTIBLE: u64 = 2;

/// What the recorder and its threads are called, whatever the names of their tasks.
const RECORDER: &str = "(the recorder)";

/// Suffix of the program's name of a process that ran none of its own.
const FORK: &str = " (fork)";

/// What a CPU runs: the task's number, since when, and the time of its last event there.
type Running = Option<(u64, u64, u64)>;

/// A thread of a process.
#[derive(Clone, Copy)]
struct Thread {
    /// Index of the process.
    process: usize,
    /// Whether it is the process's first thread.
    is_leader: bool,
}

/// Builds [`Processes`].
struct Builder<'a> {
    rec: &'a Recording,
    out: Processes,
    /// Whether only descendants of the first process count.
    one_command: bool,
    /// The thread that each task number names now.
    threads: HashMap<u64, Thread>,
    running: Vec<Running>,
    /// When a task, by number, went into uninterruptible sleep.
    blocked: HashMap<u64, u64>,
    tasks_of_pid: HashMap<u64, Vec<usize>>,
}

impl Processes {
    /// The processes of a recording.
    ///
    /// # Errors
    /// If an event about them lacks a field.
    pub fn of(rec: &Recording) -> Result<Processes> {
        let tables = ProcessTables::of(rec)?;
        if !tables.has(Tracepoint::NewTask) {
            return Ok(all_as_one(rec));
        }
        let mut builder = Builder::new(rec);
        builder.out.known = true;
        builder.out.timed = tables.has(Tracepoint::Switch);
        if !builder.one_command {
            builder.add_earlier(tables.created());
        }
        tables.visit(|i, event| builder.event(i, event));
        Ok(builder.finish())
    }
}

impl<'a> Builder<'a> {
    fn new(rec: &'a Recording) -> Self {
        let mut tasks_of_pid: HashMap<u64, Vec<usize>> = HashMap::new();
        for (i, t) in rec.tasks.iter().enumerate() {
            tasks_of_pid.entry(number(t.pid)).or_default().push(i);
        }
        let cpus = rec.events.cpu.iter().max();
        Builder {
            rec,
            out: Processes {
                of_task: vec![vec![]; rec.tasks.len()],
                ..Processes::default()
            },
            one_command: is_one_command(rec),
            threads: HashMap::new(),
            running: vec![None; cpus.map_or(0, |&c| usize::from(c) + 1)],
            blocked: HashMap::new(),
            tasks_of_pid,
        }
    }

    /// Adds the tasks of a host from before the recording: all but those that it shows `created`.
    fn add_earlier(&mut self, created: &[u64]) {
        let created: HashSet<u64> = created.iter().copied().collect();
        let started = self.rec.events.time.first().copied().unwrap_or(0);
        let roles = Roles::of(self.rec);
        for (task, role) in self.rec.tasks.iter().zip(roles.all()) {
            let pid = number(task.pid);
            if !created.contains(&pid) && !self.threads.contains_key(&pid) {
                self.out.list.push(Process {
                    program: match role {
                        Role::Recorder => RECORDER.to_owned(),
                        _ => task.comm.clone(),
                    },
                    started,
                    ..Process::default()
                });
                let process = self.out.list.len() - 1;
                self.assign(
                    pid,
                    0,
                    Some(Thread {
                        process,
                        is_leader: true,
                    }),
                );
            }
        }
    }

    fn event(&mut self, i: usize, event: Option<ProcessEvent<'_>>) {
        let events = &self.rec.events;
        let (time, cpu) = (events.time[i], usize::from(events.cpu[i]));
        let task = self.rec.tasks.get(events.task[i] as usize);
        let pid = task.map_or(0, |t| number(t.pid));
        if let Some((running, _, seen)) = &mut self.running[cpu]
            && *running == pid
        {
            *seen = time;
        }
        match event {
            Some(ProcessEvent::NewTask {
                pid: child,
                clone_flags,
            }) => self.new_task(time, pid, child, clone_flags),
            Some(ProcessEvent::Exec { pid, path }) => {
                if let Some(thread) = self.threads.get(&pid) {
                    let name = path.rsplit('/').next().unwrap_or(path);
                    self.out.list[thread.process].program = name.to_owned();
                }
            }
            Some(ProcessEvent::Exit { pid }) => {
                if let Some(thread) = self.threads.get(&pid)
                    && thread.is_leader
                {
                    self.out.list[thread.process].ended.get_or_insert(time);
                }
            }
            Some(ProcessEvent::Switch { from, state, to }) => {
                self.switch(time, cpu, from, state, to)
            }
            None => {}
        }
    }

    /// From this time on the number belongs to this thread, or to none.
    fn assign(&mut self, pid: u64, time: u64, thread: Option<Thread>) {
        match thread {
            Some(thread) => self.threads.insert(pid, thread),
            None => self.threads.remove(&pid),
        };
        for &task in self.tasks_of_pid.get(&pid).into_iter().flatten() {
            self.out.of_task[task].push((time, thread.map(|p| p.process)));
        }
    }

    fn new_task(&mut self, time: u64, parent: u64, child: u64, flags: u64) {
        let parent = self.threads.get(&parent).map(|p| p.process);
        if flags & CLONE_THREAD != 0 {
            let thread = parent.map(|process| {
                self.out.list[process].threads += 1;
                Thread {
                    process,
                    is_leader: false,
                }
            });
            return self.assign(child, time, thread);
        }
        if self.one_command && parent.is_none() && !self.out.list.is_empty() {
            return self.assign(child, time, None);
        }
        let of_parent = parent.map_or("", |p| &self.out.list[p].program);
        let program = match of_parent.ends_with(FORK) {
            true => of_parent.to_owned(),
            false => format!("{of_parent}{FORK}"),
        };
        self.out.list.push(Process {
            program,
            parent,
            started: time,
            vforked: flags & (CLONE_VM | CLONE_VFORK) == CLONE_VM | CLONE_VFORK,
            ..Process::default()
        });
        let process = self.out.list.len() - 1;
        self.assign(
            child,
            time,
            Some(Thread {
                process,
                is_leader: true,
            }),
        );
    }

    fn switch(&mut self, time: u64, cpu: usize, from: u64, state: u64, to: u64) {
        self.stop_running(cpu, Some((from, time)));
        if state & UNINTERRUPTIBLE != 0 && self.threads.contains_key(&from) {
            self.blocked.insert(from, time);
        }
        if let (Some(since), Some(thread)) = (self.blocked.remove(&to), self.threads.get(&to)) {
            self.out.list[thread.process].blocked_ns += time - since;
        }
        self.running[cpu] = Some((to, time, time));
    }

    /// Ends the time on CPU of what runs there: at the switch `out`, if that is of the running task, else at its last event.
    fn stop_running(&mut self, cpu: usize, out: Option<(u64, u64)>) {
        if let Some((pid, since, seen)) = self.running[cpu].take()
            && let Some(thread) = self.threads.get(&pid)
        {
            let until = out.filter(|o| o.0 == pid).map_or(seen, |o| o.1);
            self.out.list[thread.process].cpu_ns += until - since;
        }
    }

    fn finish(mut self) -> Processes {
        for cpu in 0..self.running.len() {
            self.stop_running(cpu, None);
        }
        self.out
    }
}

/// A task's number as events have it.
fn number(pid: i32) -> u64 {
    i64::from(pid) as u64
}
