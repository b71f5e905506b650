//! From the events about processes to [`Processes`].
//!
//! Invariant: at any moment a task's number means one process or nobody's. A task whose switch off a CPU was not recorded
//! counts as running there until it was last seen.

use super::{Process, Processes, is_one_command};
use std::collections::{HashMap, HashSet};
use unfrag_linux::recording::{EventTable, FieldKind, Recording};
use unfrag_linux::{Error, Result};

/// `CLONE_VM`, `CLONE_VFORK` and `CLONE_THREAD` of clone(2).
const VM: u64 = 0x100;
const VFORK: u64 = 0x4000;
const THREAD: u64 = 0x1_0000;
/// `TASK_UNINTERRUPTIBLE` in the field `prev_state`, printed as `D`.
const UNINTERRUPTIBLE: u64 = 2;

/// What stands behind the program of a process that ran none of its own.
const FORK: &str = " (fork)";

/// An event about processes.
enum What<'a> {
    New { pid: u64, flags: u64 },
    Exec { pid: u64, path: &'a str },
    Exit { pid: u64 },
    Switch { from: u64, state: u64, to: u64 },
}

/// The columns of a kind of event.
struct Columns<'a> {
    what: u8,
    columns: [&'a [u64]; 3],
}

impl Columns<'_> {
    fn of(table: &EventTable) -> Result<Option<Columns<'_>>> {
        let (what, names): (u8, &[&str]) = match table.name.as_str() {
            "task_newtask" => (0, &["pid", "clone_flags"]),
            "sched_process_exec" => (1, &["pid", "filename"]),
            "sched_process_exit" => (2, &["pid"]),
            "sched_switch" => (3, &["prev_pid", "prev_state", "next_pid"]),
            _ => return Ok(None),
        };
        let mut columns: [&[u64]; 3] = [&[]; 3];
        for (column, name) in columns.iter_mut().zip(names) {
            let lacking =
                || Error::malformed(format!("the event {} has no field {name}", table.name));
            *column = table.column(name).ok_or_else(lacking)?;
        }
        let path = table.fields.iter().find(|f| f.name == "filename");
        if path.is_some_and(|f| f.kind != FieldKind::String) {
            return Err(Error::malformed(
                "the field filename of sched_process_exec is no text",
            ));
        }
        Ok(Some(Columns { what, columns }))
    }
}

/// What a CPU runs: the task's number, since when, and when it was last seen there.
type Running = Option<(u64, u64, u64)>;

/// A task's place among the processes.
#[derive(Clone, Copy)]
struct Place {
    process: usize,
    /// Whether it is the process's first thread.
    first: bool,
}

/// Builds [`Processes`].
struct Builder<'a> {
    rec: &'a Recording,
    out: Processes,
    /// Whether only descendants of the first process count.
    one_command: bool,
    /// By number, at this moment.
    places: HashMap<u64, Place>,
    running: Vec<Running>,
    /// Since when a task has been in uninterruptible sleep.
    blocked: HashMap<u64, u64>,
    tasks_of_pid: HashMap<u64, Vec<usize>>,
}

/// The processes of a recording; `None` if it does not tell them apart.
///
/// # Errors
/// If an event about them lacks a field.
pub fn build(rec: &Recording) -> Result<Option<Processes>> {
    let columns = rec
        .events
        .tables
        .iter()
        .map(Columns::of)
        .collect::<Result<Vec<_>>>()?;
    let has = |what: u8| {
        columns
            .iter()
            .flatten()
            .any(|c| c.what == what && !c.columns[0].is_empty())
    };
    if !has(0) {
        return Ok(None);
    }
    let mut builder = Builder::new(rec);
    builder.out.known = true;
    builder.out.timed = has(3);
    if !builder.one_command {
        let created = columns.iter().flatten().find(|c| c.what == 0);
        builder.add_those_before(created.map_or(&[], |c| c.columns[0]));
    }
    let mut rows = vec![0; columns.len()];
    for (i, &kind) in rec.events.kind.iter().enumerate() {
        let kind = usize::from(kind);
        let row = rows[kind];
        rows[kind] += 1;
        let what = columns[kind].as_ref().map(|c| {
            let field = |n: usize| c.columns[n].get(row).copied().unwrap_or(0);
            match c.what {
                0 => What::New {
                    pid: field(0),
                    flags: field(1),
                },
                1 => {
                    let path = rec
                        .strings
                        .get(field(1) as usize)
                        .map_or("", String::as_str);
                    What::Exec {
                        pid: field(0),
                        path,
                    }
                }
                2 => What::Exit { pid: field(0) },
                _ => What::Switch {
                    from: field(0),
                    state: field(1),
                    to: field(2),
                },
            }
        });
        builder.event(i, what);
    }
    Ok(Some(builder.finish()))
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
            places: HashMap::new(),
            running: vec![None; cpus.map_or(0, |&c| usize::from(c) + 1)],
            blocked: HashMap::new(),
            tasks_of_pid,
        }
    }

    /// The tasks of a host that were there before the recording: all but those that it shows `created`.
    fn add_those_before(&mut self, created: &[u64]) {
        let created: HashSet<u64> = created.iter().copied().collect();
        let started = self.rec.events.time.first().copied().unwrap_or(0);
        for task in &self.rec.tasks {
            let pid = number(task.pid);
            if !created.contains(&pid) && !self.places.contains_key(&pid) {
                self.out.list.push(Process {
                    program: task.comm.clone(),
                    started,
                    ..Process::default()
                });
                let process = self.out.list.len() - 1;
                self.put(
                    pid,
                    0,
                    Some(Place {
                        process,
                        first: true,
                    }),
                );
            }
        }
    }

    fn event(&mut self, i: usize, what: Option<What<'_>>) {
        let events = &self.rec.events;
        let (time, cpu) = (events.time[i], usize::from(events.cpu[i]));
        let task = self.rec.tasks.get(events.task[i] as usize);
        let pid = task.map_or(0, |t| number(t.pid));
        if let Some((running, _, seen)) = &mut self.running[cpu]
            && *running == pid
        {
            *seen = time;
        }
        match what {
            Some(What::New { pid: child, flags }) => self.new_task(time, pid, child, flags),
            Some(What::Exec { pid, path }) => {
                if let Some(place) = self.places.get(&pid) {
                    let name = path.rsplit('/').next().unwrap_or(path);
                    self.out.list[place.process].program = name.to_owned();
                }
            }
            Some(What::Exit { pid }) => {
                if let Some(place) = self.places.get(&pid)
                    && place.first
                {
                    self.out.list[place.process].ended.get_or_insert(time);
                }
            }
            Some(What::Switch { from, state, to }) => self.switch(time, cpu, from, state, to),
            None => {}
        }
    }

    /// From now on the tasks of this number are this process, or nobody's.
    fn put(&mut self, pid: u64, time: u64, place: Option<Place>) {
        match place {
            Some(place) => self.places.insert(pid, place),
            None => self.places.remove(&pid),
        };
        for &task in self.tasks_of_pid.get(&pid).into_iter().flatten() {
            self.out.of_task[task].push((time, place.map(|p| p.process)));
        }
    }

    fn new_task(&mut self, time: u64, parent: u64, child: u64, flags: u64) {
        let parent = self.places.get(&parent).map(|p| p.process);
        if flags & THREAD != 0 {
            let place = parent.map(|process| {
                self.out.list[process].threads += 1;
                Place {
                    process,
                    first: false,
                }
            });
            return self.put(child, time, place);
        }
        if self.one_command && parent.is_none() && !self.out.list.is_empty() {
            return self.put(child, time, None);
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
            vforked: flags & (VM | VFORK) == VM | VFORK,
            ..Process::default()
        });
        let process = self.out.list.len() - 1;
        self.put(
            child,
            time,
            Some(Place {
                process,
                first: true,
            }),
        );
    }

    fn switch(&mut self, time: u64, cpu: usize, from: u64, state: u64, to: u64) {
        self.stops(cpu, Some((from, time)));
        if state & UNINTERRUPTIBLE != 0 && self.places.contains_key(&from) {
            self.blocked.insert(from, time);
        }
        if let (Some(since), Some(place)) = (self.blocked.remove(&to), self.places.get(&to)) {
            self.out.list[place.process].blocked_ns += time - since;
        }
        self.running[cpu] = Some((to, time, time));
    }

    /// What ran on a CPU does so no longer: since `out`, where that names it, else since it was last seen.
    fn stops(&mut self, cpu: usize, out: Option<(u64, u64)>) {
        if let Some((pid, since, seen)) = self.running[cpu].take()
            && let Some(place) = self.places.get(&pid)
        {
            let until = out.filter(|o| o.0 == pid).map_or(seen, |o| o.1);
            self.out.list[place.process].cpu_ns += until - since;
        }
    }

    fn finish(mut self) -> Processes {
        for cpu in 0..self.running.len() {
            self.stops(cpu, None);
        }
        self.out
    }
}

/// A task's number as events have it.
fn number(pid: i32) -> u64 {
    i64::from(pid) as u64
}
