//! The walk over a recording's events.

use super::daemon::{CauseId, Daemon, Give, Time, Whose};
use super::known::Known;
use super::pending::Pending;
use super::sums::{Key, Sums, Work};
use crate::blame::program;
use crate::error::{Error, Result};
use crate::input::Input;
use crate::names::{NameId, Names};
use std::collections::{HashMap, HashSet};
use unfrag_linux::event::page::{Compaction, Reclaim, STACK_ORDER};
use unfrag_linux::event::{At, Kind, Page, Role, Roles, Tracker, Unreadable};
use unfrag_linux::file::Common;
use unfrag_linux::recording::{IN_INTERRUPT, Recording};

/// The common columns that are read.
pub(super) const COMMON: &[Common] = &[Common::Cpu, Common::Task, Common::Flags];

/// What waits for its stack.
#[derive(Debug)]
enum Waiting {
    /// A cause of work.
    Cause {
        cause: CauseId,
        order: Option<u64>,
        gfp: Option<u64>,
    },
    /// A request of large order; in the window that is asked about, or before it.
    Request {
        order: u64,
        gfp: Option<u64>,
        failed: bool,
        is_counted: bool,
    },
    /// What is not counted by its stack: that of a daemon.
    Nothing,
}

/// Kind of daemon and node.
type Place = (Work, u64);

/// The walk so far.
pub(super) struct Walk {
    /// From when on events count, and whether they do; since when what happens is recorded, and the time of the last event.
    from: u64,
    has_begun: bool,
    begin: u64,
    last: u64,
    roles: Roles,
    /// Of each task, its program; and of an interrupt.
    programs: Vec<NameId>,
    interrupt: NameId,
    daemons: HashMap<Place, Daemon>,
    /// Daemons by number of their task.
    by_pid: HashMap<u64, Place>,
    /// By task, the daemon that it is.
    by_task: Vec<Option<Place>>,
    pending: Pending<Waiting>,
    /// What a task is about to compact for.
    tries: HashMap<u32, (Option<u64>, Option<u64>)>,
    /// Runs of compaction by tasks themselves, and since when.
    runs: HashMap<u32, (CauseId, u64)>,
    /// Tasks of which a run has begun or ended.
    runners: HashSet<u32>,
    /// Whether only a command and the daemons were recorded.
    of_command: bool,
    /// Where the window ends, if that was asked for.
    until: Option<u64>,
    pub sums: Sums,
    pub names: Names,
    pub stacks: Names,
    /// Switches of each kind of daemon, and what it says of its waking and sleeping.
    pub switches: [u64; 3],
    pub wakings: [u64; 3],
    /// Nanoseconds at the beginning in which a daemon may have been awake.
    pub unsure: [u64; 3],
    /// Daemons of each kind that are at work at the end.
    pub at_work: [u64; 3],
}

impl Tracker for Walk {
    type Error = Error;

    fn takes(&self, kind: Kind) -> bool {
        Known::KINDS.contains(&kind)
    }

    #[inline]
    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<()> {
        self.last = at.time;
        if !self.has_begun && at.time >= self.from {
            self.settle(self.from);
            self.has_begun = true;
        }
        // Who says something of itself has a CPU; that it got it is not in each recording.
        if let (Some(Some(place)), false) = (
            self.by_task.get(at.task as usize),
            matches!(page, Some(Page::Switch { .. })),
        ) {
            let now = at.time.max(self.begin);
            self.daemons.entry(*place).or_default().runs(now);
        }
        if let Some((of, waiting)) = self.pending.take(at) {
            let stack = match page {
                Some(Page::Stack(stack)) if of.task == at.task => stack,
                _ => None,
            };
            self.place(&of, waiting, stack);
        }
        match page {
            Some(Page::Alloc(request)) => {
                let order = u64::from(request.order);
                if at.flags & IN_INTERRUPT == 0
                    && self.tries.get(&at.task).is_some_and(|t| t.0 == Some(order))
                {
                    self.tries.remove(&at.task);
                }
                if request.order >= STACK_ORDER {
                    let request = Waiting::Request {
                        order,
                        gfp: request.gfp.map(|g| g.0),
                        failed: request.pfn.is_none(),
                        is_counted: at.time >= self.from,
                    };
                    self.pending.wait(at, request);
                }
            }
            Some(Page::Reclaim(event)) => self.reclaim(at, &event),
            Some(Page::Compaction(event)) => self.compaction(at, &event),
            Some(Page::Switch { from, to }) => self.switch(at.time, from, to),
            _ => {}
        }
        Ok(())
    }

    /// What an event does not say is not known of it alone.
    fn unreadable(&mut self, _: &At, _: Kind, _: Unreadable) -> Result<()> {
        Ok(())
    }
}

impl Walk {
    pub fn of(input: &Input) -> Walk {
        let rec = input.recording;
        let mut names = Names::default();
        let roles = Roles::of(rec);
        let (first, last) = input.events.span().unwrap_or_default();
        let tasks = rec.tasks.iter().zip(roles.all());
        let programs = tasks.map(|(task, role)| {
            names.number(match role {
                Role::Unnamed => "(not named)",
                Role::Recorder => "(the recorder)",
                _ => program(&task.comm),
            })
        });
        let programs = programs.collect();
        let (by_pid, by_task) = daemons(rec, &roles);
        Walk {
            from: input.from.max(first),
            has_begun: false,
            begin: input.window.0.unwrap_or(input.from.max(first)),
            last,
            roles,
            programs,
            interrupt: names.number("(interrupt)"),
            daemons: HashMap::new(),
            by_pid,
            by_task,
            pending: Pending::default(),
            tries: HashMap::new(),
            runs: HashMap::new(),
            runners: HashSet::new(),
            of_command: rec.meta.facts.get("scope").is_some_and(|s| s == "command"),
            until: input.window.1,
            sums: Sums::default(),
            names,
            stacks: Names::default(),
            switches: [0; 3],
            wakings: [0; 3],
            unsure: [0; 3],
            at_work: [0; 3],
        }
    }

    /// An event has its stack, or will have none.
    fn place(&mut self, at: &At, waiting: Waiting, stack: Option<&str>) {
        let stack = stack.filter(|s| !s.is_empty());
        let stack = stack.map(|s| self.stacks.number(s));
        let program = match at.flags & IN_INTERRUPT {
            0 => self.programs.get(at.task as usize).copied(),
            _ => Some(self.interrupt),
        };
        let Some(program) = program else {
            return;
        };
        let (order, gfp) = match waiting {
            Waiting::Cause { order, gfp, .. } => (order.map(|o| o as i64), gfp),
            Waiting::Request { order, gfp, .. } => (Some(order as i64), gfp),
            Waiting::Nothing => return,
        };
        let row = self.sums.row(Key {
            stack,
            program,
            order,
            gfp,
        });
        match waiting {
            Waiting::Cause { cause, .. } => self.sums.is_of(cause, row),
            Waiting::Request {
                failed, is_counted, ..
            } => {
                let row = &mut self.sums.rows[row as usize];
                row.requests += u64::from(is_counted);
                row.failed += u64::from(is_counted && failed);
            }
            Waiting::Nothing => {}
        }
    }

    fn cause(&mut self, at: &At, work: Work, order: Option<u64>, gfp: Option<u64>) -> CauseId {
        let cause = self.sums.cause(work, at.time >= self.from);
        let daemon = match at.flags & IN_INTERRUPT {
            0 => self.by_task.get(at.task as usize).copied().flatten(),
            _ => None,
        };
        match daemon {
            Some(place) => {
                let before = self.daemons.get(&place).and_then(Daemon::owner);
                self.sums.is_for(cause, before);
                self.pending.wait(at, Waiting::Nothing);
            }
            None => self.pending.wait(at, Waiting::Cause { cause, order, gfp }),
        }
        cause
    }

    fn reclaim(&mut self, at: &At, event: &Reclaim) {
        match *event {
            Reclaim::Asked {
                node: Some(node),
                order,
                gfp,
            } => {
                let cause = self.cause(at, Work::Kswapd, order, gfp.map(|g| g.0));
                self.change((Work::Kswapd, node), |d, give| {
                    d.is_asked(at.time, cause, give);
                });
            }
            Reclaim::Wakes { node, .. } => self.wakes(at, Work::Kswapd, node),
            Reclaim::Sleeps { node } => self.sleeps(at, Work::Kswapd, node),
            _ => {}
        }
    }

    fn compaction(&mut self, at: &At, event: &Compaction<'_>) {
        match *event {
            Compaction::Asked {
                node: Some(node),
                order,
            } => {
                let cause = self.cause(at, Work::Kcompactd, order, None);
                self.change((Work::Kcompactd, node), |d, give| {
                    d.is_asked(at.time, cause, give);
                });
            }
            Compaction::KcompactdWake { node, .. } => self.wakes(at, Work::Kcompactd, node),
            Compaction::KcompactdSleep { node } => self.sleeps(at, Work::Kcompactd, node),
            Compaction::Try { order, gfp } => {
                self.tries.insert(at.task, (order, gfp.map(|g| g.0)));
            }
            Compaction::Begin { .. } if self.is_daemon(at.task) => {
                self.pending.wait(at, Waiting::Nothing);
            }
            Compaction::Begin { .. } => {
                // Without a request it is all of memory that is compacted, as `vm.compact_memory` does.
                let all = (Some(u64::MAX), None);
                let (order, gfp) = self.tries.get(&at.task).copied().unwrap_or(all);
                let cause = self.cause(at, Work::Direct, order, gfp);
                self.runners.insert(at.task);
                self.runs.insert(at.task, (cause, at.time.max(self.from)));
            }
            Compaction::End { .. } => {
                let is_first = !self.is_daemon(at.task) && self.runners.insert(at.task);
                let run = self.runs.remove(&at.task);
                match run {
                    Some((cause, since)) => self.ran(Whose::Cause(cause), since, at.time),
                    // It began before what is recorded does.
                    None if is_first && self.has_begun => {
                        self.ran(Whose::Unseen, self.begin, at.time);
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }

    fn is_daemon(&self, task: u32) -> bool {
        let role = self.roles.of_task(task);
        matches!(role, Role::Kswapd(_) | Role::Kcompactd)
    }

    /// A task compacted itself. What it waited for meanwhile is in it, as its switches are not recorded.
    fn ran(&mut self, whose: Whose, since: u64, until: u64) {
        let time = until.saturating_sub(since);
        let time = Time {
            cpu: time,
            awake: time,
        };
        self.sums.add(Work::Direct, whose, time);
    }

    fn wakes(&mut self, at: &At, work: Work, node: Option<u64>) {
        self.wakings[work as usize] += 1;
        if let Some(place) = self.place_of(at.task, work, node) {
            self.change(place, |d, give| d.wakes(at.time, give));
        }
    }

    fn sleeps(&mut self, at: &At, work: Work, node: Option<u64>) {
        self.wakings[work as usize] += 1;
        let Some(place) = self.place_of(at.task, work, node) else {
            return;
        };
        let is_known = self.daemons.get(&place).is_some_and(Daemon::is_known);
        // kswapd wakes when it is woken alone; kcompactd by its timer too, and then does not say that it did.
        let since = (work == Work::Kswapd).then_some(self.begin);
        if !is_known && since.is_none() {
            self.unsure[work as usize] += at.time.saturating_sub(self.begin);
        }
        self.change(place, |d, give| d.sleeps(at.time, since, give));
    }

    /// The daemon that says something of itself; its task is known by it from then on.
    fn place_of(&mut self, task: u32, work: Work, node: Option<u64>) -> Option<Place> {
        let known = self.by_task.get_mut(task as usize)?;
        match node {
            Some(node) => *known.get_or_insert((work, node)),
            None => (*known)?,
        }
        .into()
    }

    fn switch(&mut self, now: u64, from: u64, to: u64) {
        if let Some(&place) = self.by_pid.get(&from) {
            self.switches[place.0 as usize] += 1;
            // Of a command's recording many switches are not there, so that nothing tells since when it had its CPU.
            let begin = (!self.of_command).then_some(self.begin);
            self.change(place, |d, give| d.switched_out(now, begin, give));
        }
        if let Some(&place) = self.by_pid.get(&to) {
            self.switches[place.0 as usize] += 1;
            self.change(place, |d, _| d.switched_in(now));
        }
    }

    /// Changes a daemon, and counts the time that it gives away, unless that is from before the window.
    fn change(&mut self, place: Place, change: impl FnOnce(&mut Daemon, Give<'_>)) {
        let (has_begun, sums) = (self.has_begun, &mut self.sums);
        let daemon = self.daemons.entry(place).or_default();
        change(daemon, &mut |whose, time| {
            if has_begun {
                sums.add(place.0, whose, time);
            }
        });
    }

    /// Has all daemons give away their time until now.
    fn settle(&mut self, now: u64) {
        let mut places: Vec<Place> = self.daemons.keys().copied().collect();
        places.sort_unstable();
        for place in places {
            self.change(place, |d, give| d.settle(now, give));
        }
    }

    /// The recording is over: what still runs has run until here.
    pub fn end(&mut self) {
        let last = self.until.unwrap_or(self.last).max(self.last);
        self.settle(last);
        for (place, daemon) in &self.daemons {
            self.at_work[place.0 as usize] += u64::from(daemon.is_at_work());
        }
        let mut runs: Vec<_> = self.runs.drain().collect();
        runs.sort_unstable();
        for (_, (cause, since)) in runs {
            self.ran(Whose::Cause(cause), since, last);
            self.at_work[Work::Direct as usize] += 1;
        }
        // Their stacks were cut off.
        for (at, waiting) in self.pending.take_all() {
            self.place(&at, waiting, None);
        }
        self.sums.finish();
    }
}

/// The daemons by number and by index of their tasks. Those that bear their node in their name are known by it. Any program can
/// call itself so: of several the daemon is the oldest, as the kernel starts it before there is a program.
fn daemons(rec: &Recording, roles: &Roles) -> (HashMap<u64, Place>, Vec<Option<Place>>) {
    let node = |comm: &str| {
        let digits: String = comm
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().ok()
    };
    let place = |(task, role): (&unfrag_linux::recording::Task, &Role)| match role {
        Role::Kswapd(_) => Some((Work::Kswapd, node(&task.comm)?)),
        Role::Kcompactd => Some((Work::Kcompactd, node(&task.comm)?)),
        _ => None,
    };
    let mut by_task: Vec<_> = rec.tasks.iter().zip(roles.all()).map(place).collect();
    let mut oldest: HashMap<Place, i64> = HashMap::new();
    for (task, place) in rec.tasks.iter().zip(&by_task) {
        if let Some(place) = place {
            let pid = oldest.entry(*place).or_insert(i64::MAX);
            *pid = (*pid).min(task.pid.into());
        }
    }
    for (task, place) in rec.tasks.iter().zip(&mut by_task) {
        *place = place.filter(|p| oldest.get(p) == Some(&task.pid.into()));
    }
    let by_pid = rec.tasks.iter().zip(&by_task);
    let by_pid =
        by_pid.filter_map(|(task, place)| Some((u64::try_from(task.pid).ok()?, (*place)?)));
    (by_pid.collect(), by_task)
}
