//! What prevents large blocks: which uses hold frames in how many pageblocks.
//!
//! Pageblocks here are blocks of the largest order, whatever an era groups by. The report only reads.

use crate::kernel::Sim;
use crate::mm::frames::Owner;
use serde::Serialize;
use std::collections::BTreeMap;
use unfrag_eras::frame::FrameKind;
use unfrag_eras::{MAX_ORDER, Pfn};

/// Frames of a block.
const BLOCK: usize = 1 << MAX_ORDER;

/// What one use of memory holds in a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Pages.
    pub pages: u64,
    /// Blocks of the largest order with such a page.
    pub blocks: u64,
    /// Blocks that hold, beside this use, only page cache, anonymous memory and free pages.
    pub alone: u64,
}

/// What prevents large blocks in a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Obstacles {
    /// Name of the zone.
    pub zone: &'static str,
    /// Blocks of the largest order, including those that begin or end outside of the zone.
    pub blocks: u64,
    /// Free blocks.
    pub free: u64,
    /// Blocks that hold only page cache, anonymous memory and free pages.
    pub easy: u64,
    /// By what holds them: `file`, `anon`, `per-CPU lists`, the kernel's uses, and slabs by cache.
    pub held: BTreeMap<String, Held>,
}

/// Whether reclaim or migration can move it.
fn is_easy(what: &str) -> bool {
    matches!(what, "file" | "anon")
}

impl Sim {
    /// What prevents large blocks, for each zone.
    pub fn obstacles(&self) -> Vec<Obstacles> {
        let (m, kernel) = (self.manager_ref().inspect(), self.kernel_ref());
        let mut what: Vec<Option<&'static str>> = vec![None; kernel.frames.len()];
        let mut set = |pfn: u64, order: u8, name| {
            what[pfn as usize..][..1 << order].fill(Some(name));
        };
        for (pfn, info) in kernel.frames.owned() {
            match info.owner() {
                Owner::None => {}
                Owner::File(_) => set(pfn.0, 0, "file"),
                Owner::Anon(_) | Owner::Swap => set(pfn.0, 0, "anon"),
                Owner::Orphan => set(pfn.0, 0, "in flight"),
                Owner::Kernel(u) => set(pfn.0, info.index as u8, u.name()),
            }
        }
        for (pfn, order, cache) in kernel.kmem.blocks() {
            set(pfn.into(), order, cache);
        }
        for z in m.zones() {
            let c = m.zone_config(z);
            for pfn in c.start.0..c.start.0 + c.spanned {
                if let Some(f) = m.frame(Pfn(pfn))
                    && f.kind == FrameKind::Pcp
                {
                    set(pfn, f.order.0, "per-CPU lists");
                }
            }
        }
        let zone = |z| {
            let c = m.zone_config(z);
            let mut o = Obstacles {
                zone: c.kind.name(),
                blocks: 0,
                free: 0,
                easy: 0,
                held: BTreeMap::new(),
            };
            let end = (c.start.0 + c.spanned) as usize;
            let mut at = c.start.0 as usize;
            while at < end {
                let next = end.min((at / BLOCK + 1) * BLOCK);
                let managed = |p: &usize| m.is_managed(Pfn(*p as u64));
                let whole = (at..next).all(|p| managed(&p));
                o.add(whole, what.get(at..next).unwrap_or(&[]));
                at = next;
            }
            o
        };
        m.zones().map(zone).collect()
    }
}

impl Obstacles {
    /// What spoils blocks: all that neither reclaim nor migration can deal with, the one that is in most
    /// blocks first.
    pub fn spoilers(&self) -> Vec<(&str, Held)> {
        let held = self.held.iter().filter(|(name, _)| !is_easy(name));
        let mut found: Vec<_> = held.map(|(name, h)| (name.as_str(), *h)).collect();
        // Stable, so that equals stay in the order of their names.
        found.sort_by_key(|(_, h)| std::cmp::Reverse((h.blocks, h.alone)));
        found
    }

    fn add(&mut self, whole: bool, frames: &[Option<&'static str>]) {
        let mut here: BTreeMap<&str, u64> = BTreeMap::new();
        if !whole {
            here.insert("boot", 0);
        }
        for name in frames.iter().flatten() {
            *here.entry(name).or_default() += 1;
        }
        let hard = here.keys().filter(|n| !is_easy(n)).count();
        self.blocks += 1;
        self.free += u64::from(here.is_empty());
        self.easy += u64::from(hard == 0);
        for (name, pages) in here {
            let held = self.held.entry(name.to_owned()).or_default();
            held.pages += pages;
            held.blocks += 1;
            held.alone += u64::from(hard == 1 && !is_easy(name));
        }
    }
}
