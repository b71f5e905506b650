//! From messages in order to reports: statements are put together, and each goes to the report that it belongs to.
//!
//! Two CPUs may print at the same time, so that several reports are open at once. A statement of a zone belongs to the
//! first memory report that lacks it; memory reports belong to the last of the open failures.
//!
//! Invariant: what is kept does not grow with the log: at most [`MOST_OPEN`] reports are open, and each is closed once
//! its end or [`MOST_QUIET`] other lines are seen.

use super::decode::Message;
use super::fields;
use super::report::{Kind as About, Memory, Report, Stamp, Zone};
use super::statement::{self, Kind};

/// Reports that are open at most.
const MOST_OPEN: usize = 8;
/// Lines that say nothing of a report, after which it is closed.
const MOST_QUIET: u32 = 400;
/// Zones of a memory report at most.
const MOST_ZONES: usize = 4096;
/// Bytes of a statement at most.
const MOST_BYTES: usize = 16 << 10;
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

/// A statement whose end was not seen yet.
struct Pending {
    kind: Kind,
    text: String,
    line: u64,
    time: Option<Stamp>,
    is_framed: bool,
    /// The same text without the blanks that were put between wrapped lines.
    tight: String,
    /// A short line that was put behind it last, and where it stands in both texts.
    last_piece: Option<(String, [usize; 2])>,
}

/// A memory report whose end was not seen yet.
#[derive(Default)]
struct Draft {
    memory: Memory,
    has_tail: bool,
    /// Of zones whose `lowmem_reserve` was wrapped: their place, and the numbers if a number was cut in two.
    reserves: Vec<(usize, Vec<u64>)>,
}

impl Draft {
    /// The memory report. All zones have as many numbers in `lowmem_reserve`: by that a number that was cut in two is
    /// told from two numbers.
    fn finish(mut self) -> Memory {
        for (at, tight) in std::mem::take(&mut self.reserves) {
            let lengths =
                |(i, z): (usize, &Zone)| z.reserve.as_ref().filter(|_| i != at).map(Vec::len);
            let least = self
                .memory
                .zones
                .iter()
                .enumerate()
                .filter_map(lengths)
                .min();
            let zone = &mut self.memory.zones[at];
            if least.is_some_and(|n| {
                n == tight.len() && zone.reserve.as_ref().is_none_or(|r| r.len() > n)
            }) {
                zone.reserve = Some(tight);
            }
        }
        self.memory
    }
}

/// Puts reports together.
pub struct Assembler<S> {
    sink: S,
    pending: Option<Pending>,
    reports: Vec<Report>,
    drafts: Vec<Draft>,
    /// Memory reports beyond one for each report that the open ones may have.
    spare: usize,
    quiet: u32,
    /// The last line that stated nothing, which may be the first half of a beginning.
    unknown: Option<(u64, String)>,
    suppressed: u64,
}

impl<S: FnMut(Found)> Assembler<S> {
    /// One that gives what it finds to `sink`.
    pub fn new(sink: S) -> Self {
        Assembler {
            sink,
            pending: None,
            reports: vec![],
            drafts: vec![],
            spare: 0,
            quiet: 0,
            unknown: None,
            suppressed: 0,
        }
    }

    /// Whether only a line with a phrase of a report matters next.
    pub fn is_idle(&self) -> bool {
        let is_complete = self.drafts.last().is_some_and(|d| d.has_tail);
        self.pending.is_none()
            && (self.reports.is_empty() && self.drafts.is_empty() || is_complete && self.quiet > 2)
    }

    /// Takes the next message.
    pub fn take(&mut self, number: u64, message: &Message) {
        let line = &message.line;
        if line.is_foreign {
            return;
        }
        if let Some(kind) = statement::kind_of(line.text) {
            // The second half of a wrapped `Node 0 DMA32 free:` reads as a zone by itself.
            if matches!(kind, Kind::Zone | Kind::Blocks)
                && !line.text.trim_start().starts_with("Node")
                && let Some((kind, text)) = self.beginning_in_two(number, line.text)
            {
                self.begin(kind, text, number, line.stamp(), false);
                return;
            }
            self.begin(
                kind,
                line.text.to_owned(),
                number,
                line.stamp(),
                line.is_framed && !message.is_further,
            );
            return;
        }
        if let Some((kind, text)) = self.beginning_in_last_piece(line.text) {
            self.begin(kind, text, number, line.stamp(), false);
            return;
        }
        if self.go_on(line.text, line.is_framed) {
            return;
        }
        self.flush();
        if let Some((kind, text)) = self.beginning_in_two(number, line.text) {
            let from = self.unknown.take().map_or(number, |(n, _)| n);
            self.begin(kind, text, from, line.stamp(), false);
            return;
        }
        self.unknown = (line.text.len() < 200 && !line.text.trim().is_empty())
            .then(|| (number, line.text.to_owned()));
        self.look_at_unknown(number, line.text);
        if !(self.reports.is_empty() && self.drafts.is_empty()) {
            self.quiet += 1;
            if self.quiet > MOST_QUIET {
                self.close();
            }
        }
    }

    /// Ends the log.
    pub fn end(&mut self) {
        self.flush();
        self.close();
    }

    fn begin(&mut self, kind: Kind, text: String, line: u64, time: Option<Stamp>, is_framed: bool) {
        self.flush();
        self.unknown = None;
        self.pending = Some(Pending {
            kind,
            tight: text.clone(),
            last_piece: None,
            text,
            line,
            time,
            is_framed,
        });
    }

    /// Puts a line without a beginning behind the statement before it, if it belongs there.
    fn go_on(&mut self, text: &str, is_framed: bool) -> bool {
        let Some(p) = &mut self.pending else {
            return false;
        };
        // Of two framed lines the second goes on with the first only where the kernel or a logger cut it.
        let is_cut = !is_framed || !p.is_framed || {
            let begun = p.text.trim_end();
            let has_open = begun.matches('(').count() > begun.matches(')').count();
            matches!(
                p.kind,
                Kind::Zone | Kind::Node | Kind::Blocks | Kind::Counts
            ) || begun.ends_with(',')
                || has_open
        };
        if !is_cut
            || p.text.len() + text.len() > MOST_BYTES
            || !statement::goes_on(p.kind, &p.text, text)
        {
            return false;
        }
        p.last_piece = (text.len() < 40).then(|| (text.to_owned(), [p.text.len(), p.tight.len()]));
        statement::join(p.kind, &mut p.text, text);
        p.tight.push_str(text.trim_end());
        true
    }

    /// A beginning whose first half was taken for a piece of the statement before it; that gives it back.
    fn beginning_in_last_piece(&mut self, text: &str) -> Option<(Kind, String)> {
        let p = self.pending.as_mut()?;
        let (piece, [at, tight_at]) = p.last_piece.take()?;
        let found = begun_in_two(&piece, text)?;
        p.text.truncate(at);
        p.tight.truncate(tight_at);
        Some(found)
    }

    /// A beginning that was wrapped in the midst of its phrase.
    fn beginning_in_two(&self, line: u64, text: &str) -> Option<(Kind, String)> {
        let (at, first) = self.unknown.as_ref()?;
        (line.saturating_sub(*at) <= 1).then(|| begun_in_two(first, text))?
    }

    /// Names a line that only reports have, if nothing was made of it.
    fn look_at_unknown(&mut self, line: u64, text: &str) {
        const SIGNS: [&str; 6] = [
            "page allocation failure",
            "invoked oom",
            "lowmem_reserve[]",
            "*4kB",
            "*4096kB",
            "gfp_mask=0x",
        ];
        if SIGNS.iter().any(|s| text.contains(s))
            || text.contains(" free:") && text.contains("kB min:")
        {
            self.skip(
                line,
                "it looks like part of a report, and belongs to no statement that is known",
            );
        }
    }

    fn skip(&mut self, line: u64, why: &str) {
        (self.sink)(Found::Skipped {
            line,
            why: why.to_owned(),
        });
    }

    fn flush(&mut self) {
        let Some(p) = self.pending.take() else { return };
        if p.kind != Kind::Call || !self.reports.is_empty() {
            self.quiet = 0;
        }
        self.apply(p);
    }

    fn apply(&mut self, p: Pending) {
        let text = p.text.trim();
        match p.kind {
            Kind::Failure
            | Kind::Oom
            | Kind::Slab
            | Kind::Vmalloc
            | Kind::Cma
            | Kind::Length
            | Kind::Show => self.headline(&p),
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
            Kind::Cpu | Kind::Cpuset => self.of_task(&p),
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
            Kind::OomKill | Kind::Killed => self.killed(text),
            _ => self.memory(p),
        }
    }

    fn headline(&mut self, p: &Pending) {
        let text = p.text.trim();
        let Some(mut r) = report_of(p.kind, text, p) else {
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
    fn of_task(&mut self, p: &Pending) {
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

    fn memory(&mut self, p: Pending) {
        let text = p.text.trim();
        match p.kind {
            Kind::MemInfo => {
                self.draft(&p, true);
            }
            Kind::Counts => {
                let name = text.split(':').next().unwrap_or("").to_ascii_lowercase();
                let lacks = |d: &&mut Draft| !d.memory.pages.contains_key(&name);
                match self.drafts.iter_mut().find(lacks) {
                    Some(d) => fields::counts(text, &mut d.memory),
                    None => fields::counts(text, &mut self.draft(&p, false).memory),
                }
            }
            Kind::Node => self.draft(&p, false).memory.has_node_lines = true,
            Kind::Zone => match fields::zone(text).filter(|z| !z.kib.is_empty()) {
                Some(zone) => self.zone(&p, zone),
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
                                name,
                                blocks: Some(blocks),
                                ..Zone::default()
                            };
                            self.zone(&p, zone);
                        }
                    }
                }
                None => self.skip(p.line, "free blocks that cannot be read"),
            },
            Kind::Tail => {
                if let Some(d) = self
                    .drafts
                    .iter_mut()
                    .find(|d| d.memory.ram_pages.is_none())
                {
                    fields::tail(text, &mut d.memory);
                    d.has_tail = true;
                }
            }
            _ => {}
        }
    }

    fn zone(&mut self, p: &Pending, zone: Zone) {
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
    fn draft(&mut self, p: &Pending, is_first: bool) -> &mut Draft {
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
    fn close(&mut self) {
        let mut drafts: Vec<Memory> = self.drafts.drain(..).map(Draft::finish).collect();
        if let [a, b] = &mut drafts[..] {
            settle(a, b);
        }
        drafts.retain(|m| !m.zones.is_empty() || !m.pages.is_empty() || m.ram_pages.is_some());
        if self.reports.is_empty() {
            for memory in drafts.drain(..) {
                let mut r = Report::new(About::ShowMemory, memory.line, memory.time.clone());
                r.memory = Some(memory);
                (self.sink)(Found::Report(Box::new(r)));
            }
        }
        // Where there are fewer memory reports than failures, the kernel left out those of the first.
        let without = self.reports.len().saturating_sub(drafts.len());
        let mut drafts = drafts.into_iter();
        for (i, mut r) in self.reports.drain(..).enumerate() {
            if i >= without {
                r.memory = drafts.next();
            }
            (self.sink)(Found::Report(Box::new(r)));
        }
        self.spare = 0;
        self.quiet = 0;
    }
}

/// Zones that two memory reports have in common and that are tried in both.
const MOST_SETTLED: usize = 10;

/// Gives each of two memory reports that were printed into one another the zones whose free memory is the sum that it
/// states.
fn settle(a: &mut Memory, b: &mut Memory) {
    let stated = |m: &Memory| m.pages.get("free").copied();
    let (Some(of_a), Some(of_b), Some(page)) =
        (stated(a), stated(b), a.page_kib().or(b.page_kib()))
    else {
        return;
    };
    let twin = |z: &Zone| {
        b.zones
            .iter()
            .position(|o| o.node == z.node && o.name == z.name)
    };
    let pairs: Vec<(usize, usize)> = a
        .zones
        .iter()
        .enumerate()
        .filter_map(|(i, z)| Some((i, twin(z)?)))
        .collect();
    if pairs.len() > MOST_SETTLED || of_a == of_b {
        return;
    }
    let sum = |m: &Memory| {
        m.zones
            .iter()
            .filter_map(|z| z.kib("free"))
            .fold(0i128, |sum, k| sum + i128::from(k))
    };
    let (sum_a, wanted) = (sum(a), i128::from(of_a) * i128::from(page));
    let gain = |&(i, j): &(usize, usize)| {
        let free = |z: &Zone| i128::from(z.kib("free").unwrap_or(0));
        free(&b.zones[j]) - free(&a.zones[i])
    };
    let gains: Vec<i128> = pairs.iter().map(gain).collect();
    let with = |set: usize| {
        (0..pairs.len())
            .filter(|p| set >> p & 1 == 1)
            .map(|p| gains[p])
            .sum::<i128>()
            + sum_a
    };
    // The counters of zones are read one after the other, so that the sum may be off by some pages.
    let Some(best) = (0..1usize << pairs.len())
        .min_by_key(|&set| ((with(set) - wanted).abs(), set.count_ones()))
    else {
        return;
    };
    for (p, &(i, j)) in pairs.iter().enumerate() {
        if best >> p & 1 == 1 {
            std::mem::swap(&mut a.zones[i], &mut b.zones[j]);
        }
    }
}

/// The statement that two halves of a wrapped line begin, and its text.
fn begun_in_two(first: &str, text: &str) -> Option<(Kind, String)> {
    const HAVE_BEGUN: [Kind; 9] = [
        Kind::Zone,
        Kind::Node,
        Kind::Blocks,
        Kind::Reserve,
        Kind::Counts,
        Kind::Failure,
        Kind::Oom,
        Kind::Vmalloc,
        Kind::Slab,
    ];
    let (first, text) = (first.trim_end(), text.trim_start());
    if text.is_empty() || text.len() > 2000 {
        return None;
    }
    let whole = [format!("{first} {text}"), format!("{first}{text}")];
    whole.into_iter().find_map(|t| {
        let kind = statement::kind_of(&t)?;
        HAVE_BEGUN.contains(&kind).then_some((kind, t))
    })
}

/// What the beginning of a report says.
fn report_of(kind: Kind, text: &str, p: &Pending) -> Option<Report> {
    let about = match kind {
        Kind::Failure if text.contains("allocation stalls") => About::Stall,
        Kind::Failure | Kind::Length => About::AllocationFailure,
        Kind::Oom => About::Oom,
        Kind::Slab => About::Slab,
        Kind::Vmalloc => About::Vmalloc,
        Kind::Cma => About::Cma,
        _ => About::ShowMemory,
    };
    let mut r = Report::new(about, p.line, p.time.clone());
    r.mask = fields::mask(text);
    r.order = fields::order(text);
    r.nodemask = fields::nodes(text, "nodemask=");
    r.mems_allowed = fields::nodes(text, "mems_allowed=");
    match about {
        About::AllocationFailure if kind == Kind::Length => {
            r.bytes = fields::after(text, "Allocation of length ");
            let name = text.rsplit_once('(').and_then(|(_, n)| n.split_once(')'));
            r.task = name.map(|(n, _)| n.to_owned());
        }
        About::AllocationFailure => {
            r.task = fields::task(text, ": page allocation")
                .filter(|_| !text.starts_with("__alloc_pages"));
            r.is_old_form = text.contains("failure.") || text.contains("-order allocation");
            r.order?;
        }
        About::Stall => {
            r.task = fields::task(text, ": page allocation");
            r.stall_ms = fields::after(text, "stalls for ");
        }
        About::Oom => {
            r.task = fields::task(text, " invoked oom-killer");
            r.is_manual = r.order == Some(-1);
        }
        About::Vmalloc => {
            r.task = fields::task(text, ": vmalloc");
            let sizes = ["allocation failure: ", "of ", "size "];
            r.bytes = sizes.iter().find_map(|s| fields::after(text, s));
            r.order = r.order.or(Some(0));
        }
        About::Cma => {
            let pages = fields::after(text, "req-size:")?;
            r.cma = Some((pages, fields::signed_after(text, "ret:")));
        }
        About::Slab | About::ShowMemory => {}
    }
    Some(r)
}
