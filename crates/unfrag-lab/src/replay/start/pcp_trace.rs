//! What was on the per-CPU lists at a moment, from the trace events of these lists.
//!
//! A trace may show what goes from a zone to a per-CPU list (`mm_page_alloc_zone_locked`) and back
//! (`mm_page_pcpu_drain`). Then a block that is allocated, and came neither from the zone nor from a
//! free since that moment, had been waiting on the list of that CPU, order and type; so had one that is
//! given back without having been put there.
//!
//! Invariant: only the trace is read here, and of each frame only its first event from the moment on.
//!
//! `spec: 7.6`

use super::arrange::is_cached;
use crate::era::Era;
use crate::error::Result;
use crate::input::{Cpus, Input};
use unfrag::frame::MAX_MAX_ORDER;
use unfrag::pcp::{NR_LISTS, list_index};
use unfrag::{Geometry, MigrateType, Order};
use unfrag_linux::file::{Common, Wanted};
use unfrag_linux::recording::{EventTable, Events};

/// A block on a per-CPU list: first frame and order.
pub(super) type PcpBlock = (u32, u8);

/// What a CPU's lists held: for each list, blocks in turn.
pub(super) type Lists = Vec<Vec<PcpBlock>>;

/// What was on the lists of each CPU at a moment, in all zones.
#[derive(Clone, Debug)]
pub struct PcpTrace {
    /// What was allocated from them since: from the head on.
    pub(super) taken: Vec<Lists>,
    /// What went back to the zone since: from the tail on.
    pub(super) drained: Vec<Lists>,
    /// For each CPU, whether a list was refilled since: it had been empty, so that nothing else waited
    /// there.
    refilled: Vec<[bool; NR_LISTS]>,
    /// Of each pageblock, by number, the type of the buddy list that a block of it first came from or
    /// went to.
    listed: Vec<Option<MigrateType>>,
    geometry: Geometry,
}

/// What an event does with a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListEvent {
    Alloc,
    Free,
    Refill,
    Drain,
}

/// Columns of an event that is about a block.
struct Columns<'a> {
    event: ListEvent,
    pfn: &'a [u64],
    order: &'a [u64],
    migratetype: &'a [u64],
}

impl ListEvent {
    fn of(name: &str) -> Option<ListEvent> {
        Some(match name {
            "mm_page_alloc" => ListEvent::Alloc,
            "mm_page_free" => ListEvent::Free,
            "mm_page_alloc_zone_locked" => ListEvent::Refill,
            "mm_page_pcpu_drain" => ListEvent::Drain,
            _ => return None,
        })
    }
}

impl<'a> Columns<'a> {
    fn of(table: &'a EventTable) -> Option<Columns<'a>> {
        Some(Columns {
            event: ListEvent::of(&table.name)?,
            pfn: table.column("pfn")?,
            order: table.column("order")?,
            migratetype: table.column("migratetype").unwrap_or_default(),
        })
    }
}

/// The walk over the trace.
struct Walk {
    /// Frames that an event touched.
    seen: Vec<bool>,
    found: PcpTrace,
}

impl Walk {
    fn batch(&mut self, ev: &Events, era: Era, cpus: &Cpus, from: u64) {
        let Walk { seen, found: w } = self;
        let columns: Vec<_> = ev.tables.iter().map(Columns::of).collect();
        let mut rows = vec![0usize; ev.tables.len()];
        let events = ev.kind.iter().zip(&ev.time).zip(&ev.cpu);
        for ((&kind, &time), &cpu) in events {
            let row = rows[kind as usize];
            rows[kind as usize] += 1;
            let Some(c) = &columns[kind as usize] else {
                continue;
            };
            if time < from {
                continue;
            }
            let (pfn, order) = (c.pfn[row], c.order[row] as u8);
            // A failed allocation has no frame.
            let block =
                pfn as usize..(pfn as usize).saturating_add(1 << order.min(MAX_MAX_ORDER.0));
            let Some(block) = seen.get_mut(block).filter(|_| pfn > 0) else {
                continue;
            };
            let first = block.iter().all(|s| !*s);
            block.fill(true);
            let mt = c.migratetype.get(row);
            let mt = mt.and_then(|&t| era.migratetype(t));
            if let ListEvent::Refill | ListEvent::Drain = c.event {
                let listed = &mut w.listed[(pfn as u32 >> w.geometry.block_order.0) as usize];
                *listed = listed.or(mt);
            }
            // Reserved types are on the movable list.
            let mt = mt.filter(|t| t.is_ordinary());
            if !is_cached(order, w.geometry) {
                continue;
            }
            let list = list_index(Order(order), mt.unwrap_or(MigrateType::Movable));
            let cpu = usize::from(cpus.of_event(cpu));
            match c.event {
                ListEvent::Alloc if first => w.taken[cpu][list].push((pfn as u32, order)),
                ListEvent::Drain if first => w.drained[cpu][list].push((pfn as u32, order)),
                ListEvent::Refill => w.refilled[cpu][list] = true,
                _ => {}
            }
        }
    }
}

impl PcpTrace {
    /// Walks a recording of a host with so many frame numbers from a moment on (nanoseconds of
    /// the trace clock). `None` if the trace does not show the lists.
    ///
    /// # Errors
    /// If its events cannot be read.
    pub fn of(input: &Input<'_>, era: Era, frames: u32, from: u64) -> Result<Option<PcpTrace>> {
        let shows = |event: ListEvent| {
            let is = |t: &&EventTable| ListEvent::of(&t.name) == Some(event);
            let mut tables = input.recording.events.tables.iter().filter(is);
            tables.any(|t| ["pfn", "order"].iter().all(|f| input.happened(&t.name, f)))
        };
        if !shows(ListEvent::Refill) || !shows(ListEvent::Drain) {
            return Ok(None);
        }
        let cpus = input.cpus()?;
        let geometry = input.geometry()?;
        let blocks = frames.div_ceil(geometry.block_order.frames());
        let empty = vec![vec![vec![]; NR_LISTS]; cpus.len()];
        let mut w = Walk {
            seen: vec![false; frames as usize],
            found: PcpTrace {
                taken: empty.clone(),
                drained: empty,
                refilled: vec![[false; NR_LISTS]; cpus.len()],
                listed: vec![None; blocks as usize],
                geometry,
            },
        };
        let wanted = Wanted {
            common: &[Common::Cpu],
            field: &|event, field| {
                ListEvent::of(event).is_some() && matches!(field, "pfn" | "order" | "migratetype")
            },
        };
        input.events.each(from..=u64::MAX, wanted, &mut |batch| {
            w.batch(batch, era, &cpus, from);
            Ok(())
        })?;
        Ok(Some(w.found))
    }

    /// Type of the pageblock that holds a frame, where a list showed it.
    pub(super) fn block_type(&self, pfn: u32) -> Option<MigrateType> {
        let block = pfn >> self.geometry.block_order.0;
        self.listed.get(block as usize).copied().flatten()
    }

    /// Whether more may have waited on a list than its events show.
    pub(super) fn has_depth(&self, cpu: usize, order: u8, mt: MigrateType) -> bool {
        let refilled = self.refilled.get(cpu);
        refilled.is_none_or(|lists| !lists[list_index(Order(order), mt)])
    }
}
