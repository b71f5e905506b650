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
use crate::error::{Error, Result};
use crate::input::{Cpus, Input};
use std::ops::Range;
use unfrag_eras::pcp::{NR_LISTS, list_index};
use unfrag_eras::{Geometry, MigrateType, Order};
use unfrag_linux::event::{At, Block, Kind, Page, Tracker, Unreadable};
use unfrag_linux::file::Common;

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

/// The walk over the trace.
struct Walk<'w> {
    era: Era,
    cpus: &'w Cpus,
    from: u64,
    /// Frames that an event touched.
    seen: Vec<bool>,
    found: PcpTrace,
}

/// What an event does with a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListEvent {
    Alloc,
    Free,
    Refill,
    Drain,
}

impl Tracker for Walk<'_> {
    type Error = Error;

    fn takes(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Alloc | Kind::Free | Kind::Refill | Kind::Drain)
    }

    #[inline]
    fn event(&mut self, at: &At, page: Option<Page<'_>>) -> Result<()> {
        if at.time < self.from {
            return Ok(());
        }
        let (event, block, migratetype) = match page {
            Some(Page::Alloc(a)) => (ListEvent::Alloc, a.block(), a.migratetype),
            Some(Page::Free(block)) => (ListEvent::Free, Some(block), None),
            Some(Page::Refill(l)) => (ListEvent::Refill, l.block, l.migratetype),
            Some(Page::Drain(l)) => (ListEvent::Drain, l.block, l.migratetype),
            _ => return Ok(()),
        };
        if let Some(block) = block {
            let mt = migratetype.and_then(|t| self.era.migratetype(t));
            self.note(event, block, mt, at.cpu);
        }
        Ok(())
    }

    /// What the walk over the causes refuses says nothing of the lists meanwhile.
    fn unreadable(&mut self, _: &At, _: Kind, _: Unreadable) -> Result<()> {
        Ok(())
    }
}

impl Walk<'_> {
    fn note(&mut self, event: ListEvent, block: Block, mt: Option<MigrateType>, cpu: u16) {
        let (pfn, order) = (block.pfn.0, block.order);
        let Range { start, end } = block.frames();
        let Some(frames) = self.seen.get_mut(start as usize..end as usize) else {
            return;
        };
        let w = &mut self.found;
        let first = frames.iter().all(|s| !*s);
        frames.fill(true);
        if let ListEvent::Refill | ListEvent::Drain = event {
            let listed = &mut w.listed[(pfn as u32 >> w.geometry.block_order.0) as usize];
            *listed = listed.or(mt);
        }
        if !is_cached(order, w.geometry) {
            return;
        }
        // Reserved types are on the movable list.
        let mt = mt.filter(|t| t.is_ordinary());
        let list = list_index(Order(order), mt.unwrap_or(MigrateType::Movable));
        let cpu = usize::from(self.cpus.of_event(cpu));
        match event {
            ListEvent::Alloc if first => w.taken[cpu][list].push((pfn as u32, order)),
            ListEvent::Drain if first => w.drained[cpu][list].push((pfn as u32, order)),
            ListEvent::Refill => w.refilled[cpu][list] = true,
            _ => {}
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
        let shows = |kind| {
            let has = |field| input.happened(kind, field);
            has("pfn") && has("order")
        };
        if !shows(Kind::Refill) || !shows(Kind::Drain) {
            return Ok(None);
        }
        let cpus = input.cpus()?;
        let geometry = input.geometry()?;
        let blocks = frames.div_ceil(geometry.block_order.frames());
        let empty = vec![vec![vec![]; NR_LISTS]; cpus.len()];
        let mut w = Walk {
            era,
            cpus: &cpus,
            from,
            seen: vec![false; frames as usize],
            found: PcpTrace {
                taken: empty.clone(),
                drained: empty,
                refilled: vec![[false; NR_LISTS]; cpus.len()],
                listed: vec![None; blocks as usize],
                geometry,
            },
        };
        input.walk(from..=u64::MAX, &[Common::Cpu], &mut w)?;
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
