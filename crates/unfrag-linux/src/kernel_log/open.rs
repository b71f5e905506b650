//! The reports that are being read, and which of them a statement belongs to.
//!
//! Two CPUs may print at the same time, so that several reports are open at once. A statement of a zone belongs to the
//! first memory report that lacks it; memory reports belong to the last of the open failures.
//!
//! Invariant: at most [`MOST_OPEN`] reports are open.

use super::draft::{Draft, settle};
use super::event::Event;
use super::fields;
use super::headline::report_of;
use super::holders::Tables;
use super::pairs::Pairs;
use super::report::{Kind as About, Memory, Report, Stamp, Zone};
use super::statement::{Kind, Statement};

/// Reports that are open at most.
const MOST_OPEN: usize = 8;
/// Zones of a memory report at most.
const MOST_ZONES: usize = 4096;
/// Seconds between failures that may be printed into one another, and between two messages of one event.
pub(super) const TOGETHER: f64 = 2.0;
/// Lines behind a failure within which a driver tells of it.
pub(super) const SAME_EVENT: u64 = 300;
/// Seconds between two statements of one report; consoles may be slow.
const PRINTED_WITHIN: f64 = 120.0;
/// Seconds by which the times of one report may go back.
const STAMPS_WITHIN: f64 = 1.0;

/// What was found in a log.
#[derive(Debug)]
pub enum Found {
    /// A report.
    Report(Box<Report>),
    /// A message that says by itself that memory was short.
    Event(Box<Event>),
    /// A line that looks like part of one and was not understood.
    Skipped {
        /// Its number, from 1.
        line: u64,
        /// Why.
        why: String,
    },
}

/// The reports that are open.
#[derive(Default)]
pub struct Open {
    pub(super) found: Vec<Found>,
    pub(super) reports: Vec<Report>,
    pub(super) drafts: Vec<Draft>,
    /// Memory reports beyond one for each report that the open ones may have.
    pub(super) spare: usize,
    pub(super) suppressed: u64,
    /// A beginning without its mask: prose, a subject, or a line that was cut off.
    pub(super) cut: Option<Report>,
    /// When the last statement was printed.
    pub(super) last_time: Option<Stamp>,
    /// A task that was killed, of which the next line may say more.
    pub(super) killed: Option<Event>,
    /// Tables of who holds memory; they are the last report's.
    pub(super) tables: Tables,
    /// Whether the open reports were printed into one another.
    pub(super) is_mixed: bool,
    pub(super) pairs: Pairs,
    /// Statements since the last beginning.
    pub(super) behind: u32,
}

impl Open {
    /// What was found since this was asked last.
    pub fn found(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.reports.is_empty()
            && self.drafts.is_empty()
            && self.cut.is_none()
            && self.killed.is_none()
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
        self.found.push(Found::Skipped {
            line,
            why: why.to_owned(),
        });
    }

    /// Takes a statement that is complete.
    pub fn apply(&mut self, p: &Statement) {
        let text = p.text.trim();
        self.part(p);
        self.pairs.take(p.kind);
        self.behind = self.behind.saturating_add(1);
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
                self.killed(p);
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

    /// Closes what was printed at another moment than a statement, or by another clock.
    fn part(&mut self, p: &Statement) {
        let Some(now) = &p.time else { return };
        let begins = matches!(
            p.kind,
            Kind::Failure | Kind::Oom | Kind::Slab | Kind::Vmalloc | Kind::Cpu | Kind::MemInfo
        );
        let is_apart = self
            .last_time
            .as_ref()
            .is_some_and(|last| match seconds(last, now) {
                Some(s) => !(-STAMPS_WITHIN..=PRINTED_WITHIN).contains(&s),
                None => begins,
            });
        if is_apart {
            self.close();
        }
        self.last_time = Some(now.clone());
    }

    fn headline(&mut self, p: &Statement) {
        let Some(r) = report_of(p) else {
            let has_mask = fields::mask(&p.text).raw.is_some();
            if has_mask || !matches!(p.kind, Kind::Failure | Kind::Oom) {
                self.skip(p.line, "the request cannot be read");
            }
            return;
        };
        // Prose and subjects have no mask; a line that was cut off is known by the lines behind it.
        let has_mask = r.mask.raw.is_some() || r.mask.names.is_some();
        if matches!(r.kind, About::AllocationFailure | About::Oom)
            && p.kind != Kind::Length
            && !has_mask
        {
            self.close();
            self.cut = Some(r);
            return;
        }
        self.cut = None;
        if p.kind == Kind::Length && self.is_told_again(&r) {
            return;
        }
        self.begin(r);
    }

    /// Whether a kernel without an MMU tells the length of the last failure; if so, that takes it.
    fn is_told_again(&mut self, r: &Report) -> bool {
        let lacks = |of: &&mut Report| of.bytes.is_none() && of.kind == About::AllocationFailure;
        let Some(last) = self.reports.iter_mut().rev().find(lacks) else {
            return false;
        };
        last.bytes = r.bytes;
        self.spare += 1;
        true
    }

    /// Opens a report, beside those that may be printed at the same time.
    pub(super) fn begin(&mut self, mut r: Report) {
        let is_apart = |last: &Report| match (&last.time, &r.time) {
            (Some(a), Some(b)) => seconds(a, b).is_none_or(|s| s.abs() > TOGETHER),
            (None, None) => r.line.saturating_sub(last.line) > 100,
            _ => true,
        };
        if self.is_over()
            || self.reports.last().is_some_and(is_apart)
            // A cache's report has no memory report of its own.
            || r.kind == About::Slab
            || self.reports.iter().any(|r| r.kind == About::Slab)
            || self.reports.len() >= MOST_OPEN
            || self.reports.is_empty()
        {
            self.close();
        }
        self.last_time = r.time.clone().or(self.last_time.take());
        r.suppressed = std::mem::take(&mut self.suppressed);
        self.is_mixed |= !self.drafts.is_empty();
        if self.reports.is_empty() {
            self.pairs = Pairs::default();
            self.pairs.take(Kind::Failure);
        }
        self.behind = 0;
        self.reports.push(r);
    }

    /// Whether the memory reports are there to their ends. The last lines may be missing; free blocks of all zones are
    /// the end of what matters.
    pub(super) fn is_over(&self) -> bool {
        !self.drafts.is_empty()
            && self.drafts.iter().all(|d| {
                let zones = &d.memory.zones;
                d.memory.ram_pages.is_some()
                    || !zones.is_empty() && zones.iter().all(|z| z.blocks.is_some())
            })
    }

    fn memory(&mut self, p: &Statement) {
        let text = p.text.trim();
        // A memory report begins with its numbers.
        if let Some(d) = self.drafts.last_mut()
            && d.memory.zones.is_empty()
            && d.memory.pages.is_empty()
            && !matches!(p.kind, Kind::Tail)
        {
            d.memory.line = p.line;
        }
        if self.reports.iter().any(|r| r.kind == About::Slab) {
            self.close();
        }
        match p.kind {
            Kind::MemInfo => {
                if let Some(cut) = self.cut.take() {
                    self.skip(cut.line, "the request cannot be read");
                }
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

    /// Takes from reports that were printed into one another what cannot be told apart: all memory, unless their lines
    /// came in pairs and their sums are right.
    fn part_mixed(&mut self, drafts: &mut Vec<Memory>, is_settled: bool) {
        let is_mixed = std::mem::take(&mut self.is_mixed) || drafts.len() > 1;
        if self.reports.len() < 2 || !is_mixed {
            return;
        }
        self.reports.iter_mut().for_each(|r| r.calls.clear());
        if self.reports.len() == 2 && is_settled && self.pairs.are_whole() {
            return;
        }
        if let Some(memory) = drafts.first() {
            self.skip(
                memory.line,
                "reports were printed into one another, and which memory is whose cannot be told",
            );
        }
        drafts.clear();
    }

    /// Gives the open reports, each with its memory report.
    pub fn close(&mut self) {
        self.cut = None;
        self.last_time = None;
        if let Some(event) = self.killed.take() {
            self.found.push(Found::Event(Box::new(event)));
        }
        let mut drafts: Vec<Memory> = self.drafts.drain(..).map(Draft::finish).collect();
        let is_settled = match &mut drafts[..] {
            [a, b] => settle(a, b),
            _ => false,
        };
        self.part_mixed(&mut drafts, is_settled);
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
                self.found.push(Found::Report(Box::new(r)));
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
            self.found.push(Found::Report(Box::new(r)));
        }
        self.spare = 0;
    }
}

/// Seconds from one time to a later one; those of a day go on beyond midnight. `None` if their clocks differ.
pub(super) fn seconds(from: &Stamp, to: &Stamp) -> Option<f64> {
    const DAY: f64 = 86_400.0;
    let s = to.since(from)?;
    Some(match from.since_boot {
        false if s < -DAY / 2.0 => s + DAY,
        false if s > DAY / 2.0 => s - DAY,
        _ => s,
    })
}
