//! From a trace to what the workload asked for.
//!
//! A trace mixes causes (somebody wanted memory, or gave it back) with effects (what that kernel did
//! about it: pages that compaction moved, targets it isolated and did not use). [`causes`] keeps the
//! causes, says which of them were the kernel's own reclaim, and follows frames through migrations,
//! so that a later free finds the allocation that it belongs to. Rules, version [`VERSION`]:
//!
//! 1. A compacting task frees the sources of its migrations between the event that isolated them and
//!    `mm_compaction_migratepages`, and the unused targets between that and `mm_compaction_end`.
//!    Where the trace lacks these events, a free by kcompactd, or between `mm_compaction_begin` and
//!    `_end`, of a frame in use is a source; of a frame not in use, an unused target. What an
//!    interrupt frees belongs to no task.
//! 2. Where `set_migration_pte` and `remove_migration_pte` name both sides, the page goes from the
//!    one frame to the other. A source without such a pair waits; the first free of a frame not in
//!    use that no rule explains belongs to the source that waits longest.
//! 3. An allocation of a frame in use: the CPUs' buffers were merged out of order, and the free
//!    follows within [`INVERSION_NS`]; otherwise the frame was freed unseen.
//! 4. Four frames that a worker freed one after the other and nobody was seen to allocate were a
//!    kernel stack (taken in bulk, without an event). Where the start is not exact, the stack was
//!    taken with the page directory of a new process that came next, on the same CPU, after the
//!    frames' last use or that of the frame below them.
//! 5. Frees by kswapd and by tasks in direct reclaim are that kernel's reclaim.
//!
//! `spec: linux-6.1 7.6, 10`

use crate::era::Era;
use unfrag::Gfp;
use unfrag_linux::recording::{EventTable, Events, Recording};
use unfrag_linux::{Error, Result};

/// Version of the rules.
pub const VERSION: u32 = 1;

/// How late the free may come that a trace of several CPUs shows after the next allocation.
pub const INVERSION_NS: u64 = 20_000_000;

/// No frame.
pub const NONE: u32 = u32::MAX;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Do {
    /// Allocate a block; `pfn` is where the recorded kernel put it.
    Alloc,
    /// The same, where the recorded kernel's check of the watermark raced with another CPU: it took
    /// the zone that the frame is in.
    AllocRaced,
    /// An allocation that failed there.
    AllocFailed,
    /// Free the block at `pfn`.
    Free,
    /// The same, by the recorded kernel's reclaim.
    FreeGiven,
    /// Free the block at `pfn`, though nobody was seen to allocate it (a kernel stack, perhaps).
    FreeUnseen,
    /// Allocate four pages in bulk (a kernel stack); `pfn` is an index into `Causes::stacks`.
    Stack,
    /// Allocate `other` pages in bulk, which nobody was seen to do; they stay.
    Unseen,
    /// The page at `pfn` is now at `other`.
    Moved,
    /// kswapd begins to reclaim.
    ReclaimBegins,
    /// kswapd ends.
    ReclaimEnds,
    /// All per-CPU lists are drained.
    DrainAll,
}

/// One operation, in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Nanoseconds of the trace clock.
    pub time: u64,
    /// What.
    pub act: Do,
    /// Order of the block.
    pub order: u8,
    /// CPU.
    pub cpu: u16,
    /// Frame on the recorded host.
    pub pfn: u32,
    /// Request flags of an allocation; the new frame of a move.
    pub other: u32,
    /// Task, by index into the recording's.
    pub task: u32,
}

/// What was made of a trace.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    /// The operations.
    pub ops: Vec<Op>,
    /// Frames of the kernel stacks.
    pub stacks: Vec<[u32; 4]>,
    /// What each frame's first event says of the start: [`FIRST_ALLOC`], [`FIRST_FREE`] or 0.
    pub first: Vec<u8>,
    /// How events were explained, by class.
    pub classes: Classes,
    /// Allocations and frees that were walked.
    pub events: u64,
    /// Fallbacks that the trace shows (`mm_page_alloc_extfrag`), and when.
    pub extfrag: Vec<(u64, u32)>,
}

/// The frame was first seen allocated: free at the start.
pub const FIRST_ALLOC: u8 = 1;
/// The frame was first seen freed: in use at the start.
pub const FIRST_FREE: u8 = 2;

/// Numbers of events by explanation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// Pages allocated.
    pub allocated_pages: u64,
    /// Pages freed.
    pub freed_pages: u64,
    /// Huge-page faults that got a huge page.
    pub huge_faults: u64,
    /// Allocations of free frames.
    pub allocations: u64,
    /// Allocations that failed.
    pub failed: u64,
    /// Frees of blocks seen allocated, or in use at the start.
    pub frees: u64,
    /// Frees by reclaim among them, in pages.
    pub reclaimed: u64,
    /// Frees of a migration's source.
    pub migrated: u64,
    /// Those with both sides known.
    pub migrated_paired: u64,
    /// Frees of isolated targets that were not used.
    pub unused_targets: u64,
    /// Frees of frames that a migration had filled unseen.
    pub matched: u64,
    /// Allocations seen before the free that made room for them.
    pub inverted: u64,
    /// Kernel stacks found by their frees, in pages.
    pub stack_pages: u64,
    /// Allocations of a frame in use that no free explains.
    pub unexplained_allocs: u64,
    /// Frees of a frame not in use that nothing explains.
    pub unexplained_frees: u64,
}

/// Which event a table holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Alloc,
    Free,
    Extfrag,
    CompactBegin,
    CompactEnd,
    Isolated,
    Migrated,
    SetMigration,
    RemoveMigration,
    KswapdWake,
    KswapdSleep,
    WakeupKswapd,
    ReclaimBegin,
    ReclaimEnd,
    Other,
}

impl Kind {
    fn of(name: &str) -> Kind {
        match name {
            "mm_page_alloc" => Kind::Alloc,
            "mm_page_free" | "mm_page_free_direct" => Kind::Free,
            "mm_page_alloc_extfrag" => Kind::Extfrag,
            "mm_compaction_begin" => Kind::CompactBegin,
            "mm_compaction_end" => Kind::CompactEnd,
            "mm_compaction_isolate_migratepages" => Kind::Isolated,
            "mm_compaction_migratepages" => Kind::Migrated,
            "set_migration_pte" => Kind::SetMigration,
            "remove_migration_pte" => Kind::RemoveMigration,
            "mm_vmscan_kswapd_wake" => Kind::KswapdWake,
            "mm_vmscan_kswapd_sleep" => Kind::KswapdSleep,
            "mm_vmscan_wakeup_kswapd" => Kind::WakeupKswapd,
            "mm_vmscan_direct_reclaim_begin" => Kind::ReclaimBegin,
            "mm_vmscan_direct_reclaim_end" => Kind::ReclaimEnd,
            _ => Kind::Other,
        }
    }
}

fn column<'a>(table: &'a EventTable, name: &str) -> Result<&'a [u64]> {
    table.column(name).ok_or_else(|| {
        Error::malformed(format!(
            "the events `{}` have no field `{name}`; record them with their raw data",
            table.name
        ))
    })
}

/// Pages that `mm_compaction_isolate_migratepages` isolated.
const NR_TAKEN: &str = "nr_taken";

/// Whether the trace says when compaction migrates.
fn shows_migration(rec: &Recording) -> bool {
    let happened = |name: &str, field: &str| {
        let mut tables = rec.events.tables.iter().filter(|t| t.name == name);
        tables.any(|t| t.column(field).is_some_and(|c| !c.is_empty()))
    };
    happened("mm_compaction_isolate_migratepages", NR_TAKEN)
        && happened("mm_compaction_migratepages", "nr_migrated")
}

/// What the mask of a huge-page fault holds at least.
const HUGE_FAULT: Gfp = Gfp::HIGHMEM
    .union(Gfp::MOVABLE)
    .union(Gfp::COMP)
    .union(Gfp::HARDWALL);

/// Use of a frame while the trace is walked.
const UNKNOWN: u8 = 0;
const IDLE: u8 = 1;
const LIVE: u8 = 2;

/// Walks the trace.
///
/// `frames` is the number of frame numbers of the host; `free_at` says of a frame whether it was
/// free at `from` (nanoseconds of the trace clock), where that is known exactly. Operations before
/// `from` and after `until` are left out.
///
/// # Errors
/// If events lack a field that is needed, or name frames beyond `frames`.
pub fn causes(
    rec: &Recording,
    era: Era,
    frames: u32,
    from: u64,
    until: u64,
    free_at: Option<&dyn Fn(u32) -> bool>,
) -> Result<Causes> {
    let ev = &rec.events;
    let kinds: Vec<Kind> = ev.tables.iter().map(|t| Kind::of(&t.name)).collect();
    let mut w = Walk::new(rec, era, frames, from, free_at);
    let empty: &[u64] = &[];
    let mut cols = vec![[empty; 4]; ev.tables.len()];
    for (i, t) in ev.tables.iter().enumerate() {
        let names: &[&str] = match kinds[i] {
            Kind::Alloc => &["pfn", "order", "migratetype", "gfp_flags"],
            Kind::Free => &["pfn", "order"],
            Kind::Extfrag => &["pfn"],
            Kind::SetMigration | Kind::RemoveMigration => &["addr", "pte"],
            _ => &[],
        };
        for (c, n) in cols[i].iter_mut().zip(names) {
            *c = column(t, n)?;
        }
        if kinds[i] == Kind::Isolated {
            cols[i][0] = t.column(NR_TAKEN).unwrap_or_default();
        }
    }
    let mut rows = vec![0usize; ev.tables.len()];
    let start = ev.time.partition_point(|&t| t < from);
    let end = ev.time.partition_point(|&t| t <= until);
    for (i, &k) in ev.kind[..end].iter().enumerate() {
        let row = rows[k as usize];
        rows[k as usize] += 1;
        let [a, b, _, d] = &cols[k as usize];
        w.at(i, ev);
        let live = i >= start;
        match kinds[k as usize] {
            Kind::Alloc if live => w.alloc(a[row], b[row], d[row])?,
            Kind::Free if live => w.free(a[row], b[row])?,
            Kind::Extfrag if live => w.out.extfrag.push((w.time, a[row] as u32)),
            Kind::CompactBegin => w.task_state[w.task as usize] |= COMPACTING,
            Kind::CompactEnd => w.task_state[w.task as usize] &= !(COMPACTING | MIGRATING),
            Kind::Isolated if a.get(row).is_some_and(|&n| n > 0) => {
                w.task_state[w.task as usize] |= MIGRATING
            }
            Kind::Isolated | Kind::Migrated => w.task_state[w.task as usize] &= !MIGRATING,
            Kind::SetMigration => w.set_migration(a[row], b[row]),
            Kind::RemoveMigration => w.remove_migration(a[row], b[row]),
            Kind::ReclaimBegin => w.task_state[w.task as usize] |= RECLAIMING,
            Kind::ReclaimEnd => {
                w.task_state[w.task as usize] &= !RECLAIMING;
                w.push(Do::DrainAll, 0, NONE, 0);
            }
            Kind::KswapdWake => w.kswapd_wakes(),
            Kind::KswapdSleep => w.kswapd_mark(102_000_000),
            Kind::WakeupKswapd => w.wakeup_between = w.reclaiming,
            _ => {}
        }
    }
    w.finish();
    Ok(w.out)
}

const COMPACTING: u8 = 1;
const RECLAIMING: u8 = 2;
const KSWAPD: u8 = 4;
const KCOMPACTD: u8 = 8;
const KWORKER: u8 = 16;
/// Between the isolation of sources and the end of their migration.
const MIGRATING: u8 = 32;

/// `common_flags` of an event in a hard or soft interrupt.
const INTERRUPT: u8 = 0x18;

/// Pages of a kernel stack.
const STACK: usize = 4;

/// Longest pause between two frees of a stack's pages, in nanoseconds.
const STACK_PAUSE_NS: u64 = 1_000_000;

struct Walk {
    era: Era,
    out: Causes,
    state: Vec<u8>,
    /// Whether the trace says when compaction migrates.
    phases_known: bool,
    /// Until when a late free of this frame belongs to an allocation before.
    late: std::collections::HashMap<u32, u64>,
    task_state: Vec<u8>,
    task: u32,
    interrupted: bool,
    time: u64,
    cpu: u16,
    from: u64,
    /// Sources of migrations without a known target, oldest first.
    waiting: std::collections::VecDeque<u32>,
    /// Address and old frame of pages under migration.
    leaving: Vec<(u64, u32)>,
    /// New frame to old frame, for sources whose free is still to come.
    paired: std::collections::HashMap<u32, u32>,
    /// kswapd runs (between its wake and what ends it).
    reclaiming: bool,
    wakeup_between: bool,
    /// Where kswapd's last page event stands among the operations.
    kswapd_last: Option<(usize, u64)>,
    /// Task, time and length of the row of a worker's unexplained frees at hand.
    row: (u32, u64, u64),
    /// Insertions to make: before operation i.
    inserts: Vec<(usize, Op)>,
    /// Whether nothing is known of the start but counts.
    by_counts: bool,
    /// For each frame the number of operations before its last event, and the CPU of that, by counts
    /// only.
    last: Vec<(u32, u16)>,
    /// Page directories: operation, CPU and time, and whether a stack came with it.
    directories: Vec<(usize, u16, u64, bool)>,
    /// Frames that a worker freed in a row without a past, and when the last.
    batch: Vec<u32>,
    batch_task: (u32, u64),
}

impl Walk {
    fn new(
        rec: &Recording,
        era: Era,
        frames: u32,
        from: u64,
        free_at: Option<&dyn Fn(u32) -> bool>,
    ) -> Self {
        let task_state = rec
            .tasks
            .iter()
            .map(|t| match &t.comm {
                c if c.starts_with("kswapd") => KSWAPD,
                c if c.starts_with("kcompactd") => KCOMPACTD,
                c if c.starts_with("kworker") => KWORKER,
                _ => 0,
            })
            .collect();
        let state = match free_at {
            Some(free) => (0..frames)
                .map(|p| if free(p) { IDLE } else { LIVE })
                .collect(),
            None => vec![UNKNOWN; frames as usize],
        };
        Walk {
            era,
            out: Causes {
                ops: Vec::with_capacity(rec.events.len()),
                first: vec![0; frames as usize],
                ..Causes::default()
            },
            state,
            phases_known: shows_migration(rec),
            late: Default::default(),
            task_state,
            task: 0,
            interrupted: false,
            time: 0,
            cpu: 0,
            from,
            waiting: Default::default(),
            leaving: vec![],
            paired: Default::default(),
            reclaiming: false,
            wakeup_between: false,
            kswapd_last: None,
            row: (NONE, 0, 0),
            inserts: vec![],
            by_counts: free_at.is_none(),
            last: vec![
                (0, u16::MAX);
                if free_at.is_none() {
                    frames as usize
                } else {
                    0
                }
            ],
            directories: vec![],
            batch: vec![],
            batch_task: (NONE, 0),
        }
    }

    #[inline]
    fn at(&mut self, i: usize, ev: &Events) {
        self.time = ev.time[i];
        self.cpu = ev.cpu[i];
        self.task = ev.task[i];
        self.interrupted = ev.flags[i] & INTERRUPT != 0;
    }

    #[inline]
    fn push(&mut self, act: Do, order: u8, pfn: u32, other: u32) {
        if self.time < self.from {
            return;
        }
        self.out.ops.push(Op {
            time: self.time,
            act,
            order,
            cpu: self.cpu,
            pfn,
            other,
            task: self.task,
        });
    }

    #[inline]
    fn frame(&self, pfn: u64, order: u64) -> Result<(u32, u8)> {
        let bad = || {
            Error::malformed(format!(
                "an event names frame {pfn:#x} of order {order}, but the host's zones end at frame {:#x}",
                self.state.len()
            ))
            .help("the snapshots and the trace must come from the same host")
        };
        if order > 10
            || pfn
                .checked_add(1 << order)
                .is_none_or(|e| e > self.state.len() as u64)
        {
            return Err(bad());
        }
        Ok((pfn as u32, order as u8))
    }

    #[inline]
    fn alloc(&mut self, pfn: u64, order: u64, gfp: u64) -> Result<()> {
        self.out.events += 1;
        // A failed allocation has frame number -1 (text readers: 0). spec: linux-6.1 10
        let gfp = self.era.gfp(gfp).bits();
        if pfn == u64::MAX || pfn == 0 {
            self.out.classes.failed += 1;
            self.push(Do::AllocFailed, order.min(255) as u8, NONE, gfp);
            return Ok(());
        }
        let (pfn, order) = self.frame(pfn, order)?;
        self.out.classes.allocations += 1;
        self.out.classes.allocated_pages += 1 << order;
        if order == 9 && Gfp::from_bits_retain(gfp).contains(HUGE_FAULT) {
            self.out.classes.huge_faults += 1;
        }
        for p in pfn..pfn + (1 << order) {
            match std::mem::replace(&mut self.state[p as usize], LIVE) {
                UNKNOWN => self.out.first[p as usize] = FIRST_ALLOC,
                LIVE => self.alloc_of_live(p),
                _ => {}
            }
        }
        if self.by_counts {
            let n = self.out.ops.len();
            self.last[pfn as usize..(pfn + (1 << order)) as usize].fill((n as u32, self.cpu));
            if is_page_directory(order, Gfp::from_bits_retain(gfp)) {
                self.directories.push((n, self.cpu, self.time, false));
            }
        }
        self.push(Do::Alloc, order, pfn, gfp);
        Ok(())
    }

    /// Rule 3.
    #[cold]
    fn alloc_of_live(&mut self, pfn: u32) {
        self.late.insert(pfn, self.time + INVERSION_NS);
        self.out.classes.inverted += 1;
        self.push(Do::Free, 0, pfn, 0);
    }

    #[inline]
    fn free(&mut self, pfn: u64, order: u64) -> Result<()> {
        let (pfn, order) = self.frame(pfn, order)?;
        self.out.events += 1;
        self.out.classes.freed_pages += 1 << order;
        if !self.late.is_empty() && self.is_late(pfn) {
            return Ok(());
        }
        let mut t = self.task_state[self.task as usize];
        if t & KSWAPD != 0 {
            self.kswapd_last = Some((self.out.ops.len() + 1, self.time));
        }
        if self.interrupted {
            t = 0;
        }
        if t & (COMPACTING | KCOMPACTD) != 0 && self.free_by_compaction(t, pfn, order) {
            return Ok(());
        }
        if self.by_counts && t & KWORKER != 0 && order == 0 && self.state[pfn as usize] != LIVE {
            self.free_by_worker(pfn);
            return Ok(());
        }
        if self.by_counts {
            let n = self.out.ops.len();
            self.last[pfn as usize..(pfn + (1 << order)) as usize].fill((n as u32, self.cpu));
        }
        let mut all = true;
        for p in pfn..pfn + (1 << order) {
            match std::mem::replace(&mut self.state[p as usize], IDLE) {
                LIVE => {}
                UNKNOWN => self.free_of_unknown(p),
                _ => all &= self.free_of_idle(p),
            }
        }
        if !all {
            self.push(Do::FreeUnseen, order, pfn, 0);
            return Ok(());
        }
        self.out.classes.frees += 1;
        let given = t & (KSWAPD | RECLAIMING) != 0;
        if given {
            self.out.classes.reclaimed += 1 << order;
        }
        self.push(if given { Do::FreeGiven } else { Do::Free }, order, pfn, 0);
        Ok(())
    }

    #[cold]
    fn is_late(&mut self, pfn: u32) -> bool {
        let now = self.time;
        match self.late.remove(&pfn) {
            Some(until) if now <= until => true,
            Some(_) => {
                self.out.classes.inverted -= 1;
                self.out.classes.unexplained_allocs += 1;
                false
            }
            None => false,
        }
    }

    /// Rule 4, by counts.
    fn free_by_worker(&mut self, p: u32) {
        let (task, time) = self.batch_task;
        if task != self.task || self.time > time + STACK_PAUSE_NS {
            self.end_batch();
        }
        self.batch_task = (self.task, self.time);
        self.batch.push(p);
        self.push(Do::Free, 0, p, 0);
        if self.batch.len() < STACK {
            return;
        }
        let pages = [self.batch[0], self.batch[1], self.batch[2], self.batch[3]];
        self.batch.clear();
        let lowest = pages.into_iter().min().unwrap_or(0);
        let below = lowest.checked_sub(1).map(|b| self.last[b as usize]);
        let used = pages.into_iter().map(|p| self.last[p as usize]).max();
        let (after, cpu) = below.into_iter().chain(used).max().unwrap_or((0, u16::MAX));
        let after = after as usize;
        let from = self.directories.partition_point(|d| d.0 < after);
        let free = |d: &&mut (usize, u16, u64, bool)| !d.3 && (cpu == u16::MAX || d.1 == cpu);
        let with = self.directories[from..].iter_mut().find(free);
        let (at, cpu, time) = match with {
            Some(d) => {
                d.3 = true;
                (d.0, d.1, d.2)
            }
            None => {
                let cpu = if cpu == u16::MAX { self.cpu } else { cpu };
                (
                    after,
                    cpu,
                    self.out.ops.get(after).map_or(self.time, |o| o.time),
                )
            }
        };
        for p in pages {
            if std::mem::replace(&mut self.state[p as usize], IDLE) == UNKNOWN {
                self.out.first[p as usize] = FIRST_ALLOC;
            }
            self.last[p as usize] = (self.out.ops.len() as u32, self.cpu);
        }
        let pfn = self.out.stacks.len() as u32;
        self.out.stacks.push(pages);
        self.out.classes.stack_pages += 4;
        self.inserts.push((
            at,
            Op {
                time,
                act: Do::Stack,
                order: 0,
                cpu,
                pfn,
                other: 0,
                task: self.task,
            },
        ));
    }

    /// A row of fewer than four frames was no stack.
    fn end_batch(&mut self) {
        for p in std::mem::take(&mut self.batch) {
            match std::mem::replace(&mut self.state[p as usize], IDLE) {
                UNKNOWN => self.free_of_unknown(p),
                _ => {
                    self.free_of_idle(p);
                }
            }
        }
    }

    /// A frame without a past is freed: it was in use at the start, or filled by a migration.
    #[inline]
    fn free_of_unknown(&mut self, p: u32) {
        if self.waiting.is_empty() {
            self.out.first[p as usize] = FIRST_FREE;
        } else {
            self.out.first[p as usize] = FIRST_ALLOC;
            self.match_source(p);
        }
    }

    fn match_source(&mut self, p: u32) {
        if let Some(from) = self.waiting.pop_front() {
            self.out.classes.matched += 1;
            self.push(Do::Moved, 0, from, p);
        }
    }

    /// A frame that is not in use is freed. Whether somebody explains it.
    fn free_of_idle(&mut self, p: u32) -> bool {
        let worker = self.task_state[self.task as usize] & KWORKER != 0 && !self.interrupted;
        if !worker && !self.waiting.is_empty() {
            self.match_source(p);
            return true;
        }
        if worker {
            self.extend_row();
        }
        self.out.classes.unexplained_frees += 1;
        if worker && self.row.2 == STACK as u64 {
            self.row.2 = 0;
            self.out.classes.unexplained_frees -= STACK as u64;
            self.out.classes.stack_pages += STACK as u64;
        }
        false
    }

    /// Rule 4: a worker frees a frame that is not in use.
    fn extend_row(&mut self) {
        let (task, time, n) = self.row;
        let goes_on = task == self.task && self.time <= time + STACK_PAUSE_NS;
        self.row = (self.task, self.time, if goes_on { n + 1 } else { 1 });
    }

    /// Rule 1. Whether the block was a source or a target.
    fn free_by_compaction(&mut self, t: u8, pfn: u32, order: u8) -> bool {
        let migrating = t & MIGRATING != 0;
        if self.phases_known && !migrating {
            if t & COMPACTING == 0 || self.state[pfn as usize] == LIVE {
                return false;
            }
            for p in pfn..pfn + (1 << order) {
                self.unused_target(p);
            }
            return true;
        }
        for p in pfn..pfn + (1 << order) {
            match std::mem::replace(&mut self.state[p as usize], IDLE) {
                IDLE if !migrating || self.era.shows_returned_targets() => self.unused_target(p),
                was => {
                    match was {
                        UNKNOWN => self.out.first[p as usize] = FIRST_FREE,
                        // A migration before had filled it unseen.
                        IDLE => self.match_source(p),
                        _ => {}
                    }
                    self.migrated(p);
                }
            }
        }
        true
    }

    fn unused_target(&mut self, p: u32) {
        self.out.classes.unused_targets += 1;
        if std::mem::replace(&mut self.state[p as usize], IDLE) == UNKNOWN {
            self.out.first[p as usize] = FIRST_ALLOC;
        }
    }

    /// Rule 2: the source of a migration is freed.
    fn migrated(&mut self, p: u32) {
        self.out.classes.migrated += 1;
        let Some(to) = self.paired.remove(&p) else {
            self.waiting.push_back(p);
            return;
        };
        self.out.classes.migrated_paired += 1;
        if self.state[to as usize] == UNKNOWN {
            self.out.first[to as usize] = FIRST_ALLOC;
        }
        self.state[to as usize] = LIVE;
        self.push(Do::Moved, 0, p, to);
    }

    fn set_migration(&mut self, addr: u64, pte: u64) {
        // The old frame stands in the swap entry: its offset is inverted, from bit 9 on.
        let old = (!pte >> 9) & ((1 << 40) - 1);
        if let Ok((old, _)) = self.frame(old, 0) {
            self.leaving.push((addr, old));
        }
    }

    fn remove_migration(&mut self, addr: u64, pte: u64) {
        let new = pte >> 12 & ((1 << 40) - 1);
        let Some(i) = self.leaving.iter().rposition(|l| l.0 == addr) else {
            return;
        };
        let (_, old) = self.leaving.swap_remove(i);
        if let Ok((new, _)) = self.frame(new, 0)
            && new != old
        {
            self.paired.insert(old, new);
        }
    }

    fn kswapd_wakes(&mut self) {
        // A run that never said that it slept ended with its last page event.
        self.kswapd_mark(102_000_000);
        self.push(Do::ReclaimBegins, 0, NONE, 0);
        self.reclaiming = true;
        self.wakeup_between = false;
        self.kswapd_last = None;
    }

    /// The end of a run has no event: it is the later of kswapd's last page event and the next wake
    /// or sleep less 102 ms; with a `wakeup_kswapd` in between, the last page event.
    /// `spec: linux-6.1 10`
    fn kswapd_mark(&mut self, back: u64) {
        if !std::mem::take(&mut self.reclaiming) {
            return;
        }
        let by_clock = self.time.saturating_sub(back);
        let clock = self.out.ops.partition_point(|o| o.time < by_clock);
        let (i, t) = match self.kswapd_last {
            Some((i, t)) if self.wakeup_between || t >= by_clock => (i, t),
            _ => (clock, by_clock),
        };
        let end = Op {
            time: t,
            act: Do::ReclaimEnds,
            order: 0,
            cpu: 0,
            pfn: NONE,
            other: 0,
            task: 0,
        };
        self.inserts.push((i.min(self.out.ops.len()), end));
    }

    fn finish(&mut self) {
        self.kswapd_mark(0);
        self.end_batch();
        if self.inserts.is_empty() {
            return;
        }
        let mut inserts = std::mem::take(&mut self.inserts);
        inserts.sort_by_key(|(i, op)| (*i, op.time));
        let ops = std::mem::take(&mut self.out.ops);
        let mut out = Vec::with_capacity(ops.len() + inserts.len());
        let mut next = inserts.into_iter().peekable();
        for (i, op) in ops.into_iter().enumerate() {
            while let Some((_, insert)) = next.next_if(|e| e.0 <= i) {
                out.push(insert);
            }
            out.push(op);
        }
        out.extend(next.map(|(_, op)| op));
        self.out.ops = out;
    }
}

/// Whether an allocation's flags are those of a kernel stack's neighbour: the page directory of a
/// new process.
pub fn is_page_directory(order: u8, gfp: Gfp) -> bool {
    order == 1 && gfp.bits() == 0x40_0dc0
}
