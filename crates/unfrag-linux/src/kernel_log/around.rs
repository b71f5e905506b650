//! Lines around a request: its task and release, its call trace, the task that was killed, and what others say of it.
//!
//! Invariant: a line that names a task goes to no report of another one.

use super::event::{self, Event};
use super::fields;
use super::open::{Found, Open, SAME_EVENT, TOGETHER, seconds};
use super::report::{Kind as About, Report};
use super::statement::{Kind, Statement};

/// Statements behind a beginning that are of the same task: its cpuset and its release.
const NEXT: u32 = 2;

impl Open {
    /// Takes a message of one line.
    pub fn event(&mut self, event: Event) {
        let is_told = |r: &Report| {
            event.line.abs_diff(r.line) <= SAME_EVENT
                && match (&r.time, &event.time) {
                    (Some(a), Some(b)) => seconds(a, b).is_some_and(|s| s.abs() <= TOGETHER),
                    _ => true,
                }
        };
        // What a driver says of a failure that the page allocator has told.
        if event.about == event::About::Refused && self.reports.iter().any(is_told) {
            return;
        }
        self.found.push(Found::Event(Box::new(event)));
    }

    /// A line that names the task: its release or its cpuset.
    pub(super) fn of_task(&mut self, p: &Statement) {
        let text = p.text.trim();
        let found = match p.kind {
            Kind::Cpu => fields::task_and_release(text),
            _ => fields::task(text, " cpuset=").map(|t| (t, None)),
        };
        let Some((task, release)) = found else { return };
        // A name that was wrapped may have a blank too many.
        let blankless = |t: &str| t.replace(' ', "");
        let is_theirs = |r: &Report| {
            let of = r.task.as_deref().map(blankless);
            of.is_some_and(|t| t.ends_with(&blankless(&task)))
        };
        if self.cut.as_ref().is_some_and(is_theirs)
            && let Some(cut) = self.cut.take()
        {
            self.begin(cut);
        }
        let lacks = |r: &Report| {
            if p.kind == Kind::Cpu {
                r.kernel.is_none()
            } else {
                r.mems_allowed.is_none()
            }
        };
        // A cache's report names no task, and these lines are not of it.
        let may_be = |r: &Report| r.task.is_none() && r.kind != About::Slab;
        let at = self
            .reports
            .iter()
            .position(|r| is_theirs(r) && lacks(r))
            .or_else(|| self.reports.iter().rposition(|r| may_be(r) && lacks(r)))
            // Right behind a beginning it is of that, whatever the names are.
            .or_else(|| {
                let is_next = self.reports.len() == 1 && self.behind <= NEXT;
                (is_next && lacks(&self.reports[0])).then_some(0)
            });
        self.is_mixed |= at.is_some_and(|at| at + 1 < self.reports.len());
        let Some(r) = at.map(|at| &mut self.reports[at]) else {
            // It begins the report of another task, or of the same at another time, whose first line is missing.
            let is_begun = !self.drafts.is_empty() && !self.is_over();
            let is_same = |r: &Report| is_theirs(r) && (release.is_none() || r.kernel == release);
            if p.kind == Kind::Cpu
                && !is_begun
                && !(self.drafts.is_empty() && self.reports.iter().any(is_same))
            {
                self.close();
            }
            return;
        };
        if p.kind == Kind::Cpu {
            r.kernel = release;
            r.task.get_or_insert(task);
        } else {
            r.mems_allowed = fields::nodes(text, "mems_allowed=");
        }
    }

    /// A function of a call trace.
    pub(super) fn call(&mut self, text: &str) {
        let Some(r) = self.reports.last_mut() else {
            return;
        };
        r.is_manual |= text.contains("moom_callback") || text.contains("sysrq_handle_moom");
        let mut words = text.split_whitespace().skip_while(|w| !w.contains("+0x"));
        let Some(function) = words.next().and_then(|w| w.split("+0x").next()) else {
            return;
        };
        let function = function.trim_start_matches(['.', '?', '(']);
        if r.calls.len() < Report::MOST_CALLS && !function.is_empty() && function.len() < 128 {
            let module = words
                .next()
                .filter(|w| w.starts_with('[') && w.ends_with(']'));
            r.calls
                .push(module.map_or_else(|| function.to_owned(), |m| format!("{function} {m}")));
        }
    }

    /// A line of a kill.
    pub(super) fn killed(&mut self, p: &Statement) {
        let text = p.text.trim();
        let Some(r) = self.reports.iter_mut().rev().find(|r| r.kind == About::Oom) else {
            if let Some(r) = self.reports.last_mut()
                && let Some(name) = text.strip_prefix("VM: killing process ")
            {
                r.killed = Some(name.trim().to_owned());
                r.task.get_or_insert(name.trim().to_owned());
            } else if let Some(event) = event::event(text, p.line, p.time.clone()) {
                self.killed_alone(event);
            }
            return;
        };
        const CGROUP: [&str; 4] = [
            "CONSTRAINT_MEMCG",
            "Memory cgroup out of memory",
            "as a result of limit of",
            "memory: usage",
        ];
        r.is_cgroup |= CGROUP.iter().any(|c| text.contains(c));
        r.mems_allowed = r
            .mems_allowed
            .take()
            .or_else(|| fields::nodes(text, "mems_allowed="));
        for name in ["oom_memcg=", "limit of "] {
            if let Some(at) = text.find(name) {
                let group = text[at + name.len()..].split([',', ' ']).next();
                r.cgroup = group
                    .map(str::to_owned)
                    .filter(|g| !g.is_empty())
                    .or(r.cgroup.take());
            }
        }
        if text.contains("rocess ") {
            let name = text.split_once('(').and_then(|(_, n)| n.split_once(')'));
            r.killed = name.map(|(n, _)| n.to_owned()).or(r.killed.take());
        }
    }

    /// A task was killed, by a report that is not there. Kernels to 5.0 say it in two lines.
    fn killed_alone(&mut self, event: Event) {
        match &mut self.killed {
            Some(last)
                if last.numbers.get("pid") == event.numbers.get("pid")
                    && event.line.abs_diff(last.line) <= 5 =>
            {
                last.is_cgroup |= event.is_cgroup;
                for (name, n) in event.numbers {
                    last.numbers.entry(name).or_insert(n);
                }
            }
            last => {
                let before = last.replace(event);
                self.found.extend(before.map(|e| Found::Event(Box::new(e))));
            }
        }
    }
}
