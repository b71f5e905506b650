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

mod kswapd;
mod migration;
mod stack;
mod walk;

use crate::era::Era;
use stack::STACK;
use unfrag::{Gfp, NodeId};
use unfrag_linux::recording::{EventTable, Recording};
use unfrag_linux::{Error, Result};
use walk::Walk;

pub(crate) use kswapd::kswapd_of;
pub use stack::is_page_directory;

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
    /// The page at `pfn` left for a place that is not known yet; `other` numbers the move.
    Left,
    /// The page of move `other` turns out to be at `pfn`.
    Arrived,
    /// kswapd of node `other` begins to reclaim.
    ReclaimBegins,
    /// It ends.
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
    /// Order of the block; of a page that moves, that for which memory is compacted, 0 if for none
    /// (ahead of demand).
    pub order: u8,
    /// CPU.
    pub cpu: u16,
    /// Frame on the recorded host.
    pub pfn: u32,
    /// Request flags of an allocation; the new frame of a move; the node of a kswapd.
    pub other: u32,
    /// Task, by index into the recording's.
    pub task: u32,
}

impl Op {
    /// Pages that it takes from the free ones; negative if it gives some back.
    pub fn pages_taken(&self) -> i64 {
        match self.act {
            Do::Alloc | Do::AllocRaced => 1 << self.order,
            Do::Free | Do::FreeGiven => -(1 << self.order),
            Do::Stack => STACK as i64,
            _ => 0,
        }
    }

    /// The node whose kswapd begins or ends.
    pub fn node(&self) -> NodeId {
        NodeId(self.other as u8)
    }

    /// A frame that it is about.
    pub fn frame(&self, causes: &Causes) -> u32 {
        match self.act {
            Do::Stack => causes.stacks[self.pfn as usize][0],
            _ => self.pfn,
        }
    }
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
    CompactFor,
    KcompactdSleep,
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
            "mm_compaction_try_to_compact_pages" | "mm_compaction_kcompactd_wake" => {
                Kind::CompactFor
            }
            "mm_compaction_kcompactd_sleep" => Kind::KcompactdSleep,
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
        match kinds[i] {
            Kind::Isolated => cols[i][0] = t.column(NR_TAKEN).unwrap_or_default(),
            Kind::CompactFor => cols[i][0] = t.column("order").unwrap_or_default(),
            Kind::KswapdWake | Kind::KswapdSleep | Kind::WakeupKswapd => {
                cols[i][0] = t.column("nid").unwrap_or_default();
            }
            _ => {}
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
            Kind::CompactFor => {
                let order = a.get(row).map_or(0, |&o| o.min(10) as u8);
                w.compacts_for.insert(w.task, order);
            }
            Kind::KcompactdSleep => {
                w.compacts_for.remove(&w.task);
            }
            Kind::SetMigration => w.set_migration(a[row], b[row]),
            Kind::RemoveMigration => w.remove_migration(a[row], b[row]),
            Kind::ReclaimBegin => w.task_state[w.task as usize] |= RECLAIMING,
            Kind::ReclaimEnd => {
                w.task_state[w.task as usize] &= !RECLAIMING;
                w.push(Do::DrainAll, 0, NONE, 0);
            }
            Kind::KswapdWake => w.kswapd_wakes(a.get(row)),
            Kind::KswapdSleep => w.kswapd_sleeps(a.get(row)),
            Kind::WakeupKswapd => w.kswapd_is_asked(a.get(row)),
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
