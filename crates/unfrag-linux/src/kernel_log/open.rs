//! The reports that are being read, and which of them a statement belongs to.
//!
//! Two CPUs may print at the same time, so that several reports are open at once. A statement of a zone belongs to the
//! first memory report that lacks it; memory reports belong to the last of the open failures.
//!
//! Invariant: at most [`MOST_OPEN`] reports are open.

use super::draft::{Draft, settle};
use super::fields;
use super::headline::report_of;
use super::holders::Tables;
use super::report::{Kind as About, Memory, Report, Stamp, Zone};
use super::statement::{Kind, Statement};

/// Reports that are open at most.
const MOST_OPEN: usize = 8;
/// Zones of a memory report at most.
const MOST_ZONES: usize = 4096;
/// Seconds between failures that may be printed into one another.
const TOGETHER: f64 = 2.0;

/// What was found in a log.
#[derive(Debug)]
pub enum Found {
    /// A report.
    Report(Box<Report>),
    /// A line that looks like part of one and was not understood.
    Skipped {
        /// Its number, from 1.
        line: u64,
        /// Why.
        why: String,
    },
}

/// The reports that are open.
pub struct Open<S> {
    sink: S,
    reports: Vec<Report>,
    drafts: Vec<Draft>,
    /// Memory reports beyond one for each report that the open ones may have.
    spare: usize,
    suppressed: u64,
    /// Tables of who holds memory; they are the last report's.
    tables: Tables,
}

impl<S: FnMut(Found)> Open<S> {
    /// None; what is found later goes to `sink`.
    pub fn new(sink: S) -> Self {
        Open {
            sink,
            reports: vec![],
            drafts: vec![],
            spare: 0,
            suppressed: 0,
            tables: Tables::default(),
        }
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.reports.is_empty() && self.drafts.is_empty()
    }

    /// Whether a failure is open.
    pub fn has_report(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Whether the last memory report has its end.
    pub fn is_complete(&self) -> bool {
        self.drafts.last().is_some_and(|d| d.has_tail)
    }

    /// Names a line of which nothing was made.
    pub fn skip(&mut self, line: u64, why: &str) {
        (self.sink)(Found::Skipped {
            line,
            why: why.to_owned(),
        });
    }

    /// Takes a statement that is complete.
    pub fn apply(&mut self, p: &Statement) {
        let text = p.text.trim();
        match p.kind {
            Kind::Failure
            | Kind::Oom
            | Kind::Slab
            | Kind::Vmalloc
            | Kind::Cma
            | Kind::Length
            | Kind::Show => self.headline(p),
            Kind::Suppressed => {
                let n = fields::after(text, "warn_alloc:")
                    .or_else(|| fields::after(text, "failure:"))
                    .or_else(|| fields::after(text, ":"));
                match (self.reports.last_mut(), n) {
                    (Some(last), Some(n)) => last.suppressed = last.suppressed.saturating_add(n),
                    (None, Some(n)) if text.contains("alloc") => {
                        self.suppressed = self.suppressed.saturating_add(n)
                    }
                    _ => {}
                }
            }
            Kind::NoCompaction => self.reports.iter_mut().for_each(|r| r.no_compaction = true),
            Kind::Cpu | Kind::Cpuset => self.of_task(p),
            Kind::Call => self.call(text),
            Kind::Cache => {
                if let Some(r) = self
                    .reports
                    .iter_mut()
                    .rev()
                    .find(|r| r.kind == About::Slab)
                {
                    r.cache = fields::cache(text);
                    r.order = r
                        .order
                        .or_else(|| r.cache.as_ref().and_then(|c| c.min_order.or(c.order)));
                }
            }
            Kind::OomKill | Kind::Killed => {
                self.tables.end();
                self.killed(text);
            }
            Kind::Holder => self.tables.take(text),
            Kind::CmaPages => {
                if let Some(r) = self.reports.last_mut().filter(|r| r.kind == About::Cma) {
                    r.cma_pages = fields::cma_pages(text);
                }
            }
            _ => self.memory(p),
        }
    }

    fn headline(&mut self, p: &Statement) {
        let Some(mut r) = report_of(p) else {
            return self.skip(p.line, "the request cannot be read");
        };
        // The same failure, told once more by a kernel without an MMU.
        if p.kind == Kind::Length
            && let Some(last) = self.reports.last_mut()
            && last.bytes.is_none()
            && last.kind == About::AllocationFailure
        {
            last.bytes = r.bytes;
            self.spare += 1;
            return;
        }
        let has_begun = !self.drafts.is_empty();
        // Its last lines may be missing; free blocks of all zones are the end of what matters.
        let is_over = self.drafts.iter().all(|d| {
            let zones = &d.memory.zones;
            d.memory.ram_pages.is_some()
                || !zones.is_empty() && zones.iter().all(|z| z.blocks.is_some())
        });
        let is_apart = |last: &Report| {
            let apart = |a: &Stamp, b: &Stamp| b.since(a).is_none_or(|s| s.abs() > TOGETHER);
            match (&last.time, &r.time) {
                (Some(a), Some(b)) => apart(a, b),
                _ => r.line.saturating_sub(last.line) > 100,
            }
        };
        if has_begun && is_over
            || self.reports.last().is_some_and(is_apart)
            || self.reports.len() >= MOST_OPEN
            || self.reports.is_empty()
        {
            self.close();
        }
        r.suppressed = std::mem::take(&mut self.suppressed);
        self.reports.push(r);
    }

    /// A line that names the task: its release or its cpuset.
    fn of_task(&mut self, p: &Statement) {
        let text = p.text.trim();
        let found = match p.kind {
            Kind::Cpu => fields::task_and_release(text),
            _ => fields::task(text, " cpuset=").map(|t| (t, None)),
        };
        let Some((task, release)) = found else { return };
        let is_theirs = |r: &Report| r.task.as_deref() == Some(task.as_str());
        let lacks = |r: &Report| {
            if p.kind == Kind::Cpu {
                r.kernel.is_none()
            } else {
                r.mems_allowed.is_none()
            }
        };
        let at = self
            .reports
            .iter()
            .position(|r| is_theirs(r) && lacks(r))
            .or_else(|| self.reports.iter().rposition(lacks));
        let Some(r) = at.map(|at| &mut self.reports[at]) else {
            return;
        };
        if p.kind == Kind::Cpu {
            r.kernel = release;
            r.task.get_or_insert(task);
        } else {
            r.mems_allowed = fields::nodes(text, "mems_allowed=");
        }
    }

    fn call(&mut self, text: &str) {
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

    fn killed(&mut self, text: &str) {
        let Some(r) = self.reports.iter_mut().rev().find(|r| r.kind == About::Oom) else {
            if let Some(r) = self.reports.last_mut()
                && let Some(name) = text.strip_prefix("VM: killing process ")
            {
                r.killed = Some(name.trim().to_owned());
                r.task.get_or_insert(name.trim().to_owned());
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

    fn memory(&mut self, p: &Statement) {
        let text = p.text.trim();
        match p.kind {
            Kind::MemInfo => {
                self.draft(p, true);
            }
            Kind::Counts => {
                let name = text.split(':').next().unwrap_or("").to_ascii_lowercase();
                let lacks = |d: &&mut Draft| !d.memory.pages.contains_key(&name);
                match self.drafts.iter_mut().find(lacks) {
                    Some(d) => fields::counts(text, &mut d.memory),
                    None => fields::counts(text, &mut self.draft(p, false).memory),
                }
            }
            Kind::Node => fields::node(text, &mut self.draft(p, false).memory),
            Kind::Hugepages => {
                if let Some(d) = self.drafts.last_mut() {
                    fields::hugepages(text, &mut d.memory);
                }
            }
            Kind::Zone => match fields::zone(text).filter(|z| !z.kib.is_empty()) {
                Some(zone) => self.zone(p, zone),
                None => self.skip(p.line, "a zone without a number that can be read"),
            },
            Kind::Reserve => {
                let pages = fields::reserve(text);
                let last_lacks =
                    |d: &&mut Draft| d.memory.zones.last().is_some_and(|z| z.reserve.is_none());
                let cut = (p.tight.trim() != text).then(|| fields::reserve(p.tight.trim()));
                match self.drafts.iter_mut().find(last_lacks) {
                    Some(d) => {
                        let at = d.memory.zones.len() - 1;
                        d.memory.zones[at].reserve = pages;
                        d.reserves.extend(cut.flatten().map(|pages| (at, pages)));
                    }
                    None => self.skip(p.line, "a lowmem_reserve of no zone"),
                }
            }
            Kind::Blocks => match fields::blocks(text) {
                Some((node, name, blocks)) => {
                    // Of two reports printed into one another the zone is that whose free memory is the sum.
                    let zones = self.drafts.iter_mut().flat_map(|d| &mut d.memory.zones);
                    let lacking =
                        zones.filter(|z| z.node == node && z.name == name && z.blocks.is_none());
                    let sum = blocks.total_kib.unwrap_or(0);
                    match lacking.min_by_key(|z| z.kib("free").unwrap_or(u64::MAX).abs_diff(sum)) {
                        Some(z) => z.blocks = Some(blocks),
                        // Old kernels call a zone empty that they print nothing else of.
                        None if blocks.orders.is_empty() => {}
                        // The zone's own line is missing; its blocks are known all the same.
                        None => {
                            let zone = Zone {
                                node,
                                is_node_named: text.starts_with("Node"),
                                name,
                                blocks: Some(blocks),
                                ..Zone::default()
                            };
                            self.zone(p, zone);
                        }
                    }
                }
                None => self.skip(p.line, "free blocks that cannot be read"),
            },
            Kind::Tail => {
                if let Some(d) = self
                    .drafts
                    .iter_mut()
                    .find(|d| fields::is_new_tail(text, &d.memory))
                {
                    fields::tail(text, &mut d.memory);
                    d.has_tail = true;
                }
            }
            _ => {}
        }
    }

    fn zone(&mut self, p: &Statement, zone: Zone) {
        let lacks = |d: &&mut Draft| {
            !d.memory
                .zones
                .iter()
                .any(|z| z.node == zone.node && z.name == zone.name)
        };
        match self.drafts.iter_mut().find(lacks) {
            Some(d) if d.memory.zones.len() < MOST_ZONES => d.memory.zones.push(zone),
            Some(_) => self.skip(
                p.line,
                "a memory report with more zones than any kernel has",
            ),
            None => self.draft(p, true).memory.zones.push(zone),
        }
    }

    /// The memory report that a statement goes to: a new one if `is_first`, else the last one.
    fn draft(&mut self, p: &Statement, is_first: bool) -> &mut Draft {
        let last_is_empty = self
            .drafts
            .last()
            .is_some_and(|d| d.memory.zones.is_empty() && !d.has_tail);
        let is_new = self.drafts.is_empty()
            || is_first && !(last_is_empty && self.drafts.len() > self.reports.len());
        if is_new {
            if !self.drafts.is_empty() && self.drafts.len() >= self.reports.len() + self.spare {
                self.close();
            }
            self.drafts.push(Draft {
                memory: Memory {
                    line: p.line,
                    time: p.time.clone(),
                    ..Memory::default()
                },
                ..Draft::default()
            });
        }
        self.drafts.last_mut().expect("one was made")
    }

    /// Gives the open reports, each with its memory report.
    pub fn close(&mut self) {
        let mut drafts: Vec<Memory> = self.drafts.drain(..).map(Draft::finish).collect();
        if let [a, b] = &mut drafts[..] {
            settle(a, b);
        }
        let holders = std::mem::take(&mut self.tables).finish();
        drafts.retain(|m| !m.zones.is_empty() || !m.pages.is_empty() || m.ram_pages.is_some());
        if self.reports.is_empty() {
            let last = drafts.len().saturating_sub(1);
            for (i, memory) in drafts.drain(..).enumerate() {
                let mut r = Report::new(About::ShowMemory, memory.line, memory.time.clone());
                r.memory = Some(memory);
                if i == last {
                    r.holders = holders.clone();
                }
                (self.sink)(Found::Report(Box::new(r)));
            }
        }
        // Where there are fewer memory reports than failures, the kernel left out those of the first.
        let without = self.reports.len().saturating_sub(drafts.len());
        if let Some(r) = self.reports.last_mut() {
            r.holders = holders;
        }
        let mut drafts = drafts.into_iter();
        for (i, mut r) in self.reports.drain(..).enumerate() {
            if i >= without {
                r.memory = drafts.next();
            }
            (self.sink)(Found::Report(Box::new(r)));
        }
        self.spare = 0;
    }
}
