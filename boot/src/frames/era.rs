//! An era of Linux over all frames: a `Manager` under one lock, with zones as a PC has them.
//!
//! Invariant: the lock is held for one call of the manager, and never while somebody waits.

use crate::cpu;
use crate::frames::rights::Rights;
use crate::lock::Spin;
use crate::memory_map::MemoryMap;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use unfrag::{CpuId, Gfp, MigrateType, NodeId, Order, Pfn};
use unfrag_eras::frame::{MAX_ZONES, OwnerId};
use unfrag_eras::reclaim::PageFlags;
use unfrag_eras::restore::Restore;
use unfrag_eras::validate::Broken;
use unfrag_eras::{Builder, ConfigError, Host, Manager, Request, ZoneConfig, ZoneId, ZoneKind};

/// Zones: their kinds, and the first frame after each.
const ZONES: [(ZoneKind, u64); 3] = [
    (ZoneKind::Dma, 4096),
    (ZoneKind::Dma32, 1 << 20),
    (ZoneKind::Normal, u64::MAX),
];

/// What the manager reports: that a daemon has work.
pub struct Waker {
    /// kswapd has work.
    pub kswapd: AtomicBool,
    /// kcompactd has work.
    pub kcompactd: AtomicBool,
}

impl Host for Waker {
    const MOVES_UNLISTED: bool = false;

    fn wake_kswapd(&mut self, _node: NodeId, _order: Order) {
        self.kswapd.store(true, Relaxed);
    }

    fn wake_kcompactd(&mut self, _node: NodeId) {
        self.kcompactd.store(true, Relaxed);
    }
}

/// The frames under the rules of an era.
pub struct Era {
    manager: Spin<Manager<'static, Waker>>,
}

impl Era {
    /// Gives all frames of a map to a manager, whose tables are carved out of the map.
    ///
    /// # Errors
    /// If there is no such era.
    pub fn new(
        name: &'static str,
        map: &mut MemoryMap,
        from: u64,
        cpus: usize,
    ) -> Result<Era, ConfigError> {
        // The tables are for all frames of the map before they are carved out.
        let words = builder(name, map, cpus).layout()?.words;
        // SAFETY: Zeros are words.
        let table = unsafe { map.carve(from, words) };
        let waker = Waker {
            kswapd: AtomicBool::new(false),
            kcompactd: AtomicBool::new(false),
        };
        let builder = builder(name, map, cpus);
        let mut restore = Restore::new(&builder.config()?, waker, table)?;
        for region in map.regions() {
            let mut start = region.start;
            for end in ZONES.map(|(_, end)| end.min(region.end)) {
                if start < end {
                    restore.free_range(Pfn(start), end - start)?;
                    start = end;
                }
            }
        }
        Ok(Era {
            manager: Spin::new(restore.boot_done()),
        })
    }

    /// Calls `f` with the manager, locked.
    pub fn with<T>(&self, f: impl FnOnce(&mut Manager<'static, Waker>, CpuId) -> T) -> T {
        let mut manager = self.manager.lock();
        f(&mut manager, CpuId(cpu::id() as u32))
    }

    /// Takes a block.
    pub fn alloc(&self, order: Order, mt: MigrateType, rights: Rights) -> Option<Pfn> {
        let gfp = match (rights, mt) {
            (Rights::Interrupt, _) => Gfp::ATOMIC_MASK,
            (Rights::Task, MigrateType::Movable) => Gfp::HIGHUSER_MOVABLE,
            (Rights::Task, _) => Gfp::KERNEL,
        };
        self.with(|m, cpu| m.alloc(&Request::new(order, gfp).on(cpu)).ok())
    }

    /// Gives a block back.
    pub fn free(&self, pfn: Pfn, order: Order) {
        if let Err(why) = self.with(|m, cpu| m.free(cpu, pfn, order)) {
            panic!("frame {:#x}, order {}: {why}", pfn.0, order.0);
        }
    }

    /// A frame in use has an owner, and goes to an LRU list.
    pub fn adopt(&self, pfn: Pfn, is_file: bool) {
        self.with(|m, _| {
            let mut pages = m.pages();
            // Who it is stands in the table of owners.
            if let Some(owner) = OwnerId::new(1) {
                pages.adopt(pfn, owner, 0);
            }
            pages.lru_add_new(pfn, is_file, PageFlags::empty());
        });
    }

    /// Gives back what all CPUs keep.
    pub fn drain(&self) {
        self.with(|m, _| m.drain_all());
    }

    /// Calls `f` with each zone, and sums up.
    fn sum(&self, f: impl Fn(&Manager<'static, Waker>, ZoneId) -> u64) -> u64 {
        self.with(|m, _| m.inspect().zones().map(|z| f(m, z)).sum())
    }

    /// Free frames, those that CPUs keep among them.
    pub fn free_frames(&self) -> u64 {
        self.sum(|m, z| m.inspect().zone(z).free_pages + m.inspect().pcp_pages(z))
    }

    /// Free frames above the min marks.
    pub fn room(&self) -> u64 {
        self.sum(|m, z| {
            let zone = m.inspect().zone(z);
            let free = zone.free_pages + m.inspect().pcp_pages(z);
            free.saturating_sub(zone.marks.min)
        })
    }

    /// Whether every invariant holds.
    ///
    /// # Errors
    /// The first that does not.
    pub fn validate(&self) -> Result<(), Broken> {
        self.with(|m, _| m.inspect().validate())
    }
}

/// The zones of a map.
fn builder<'a>(name: &'a str, map: &MemoryMap, cpus: usize) -> Builder<'a> {
    let mut builder = Builder::new().era(name).cpus(cpus);
    let mut start = 0;
    for (kind, end) in ZONES {
        let parts = map
            .regions()
            .map(|r| r.start.max(start)..r.end.min(end))
            .filter(|r| !r.is_empty());
        let present: u64 = parts.clone().map(|r| r.end - r.start).sum();
        if let (Some(first), Some(last)) = (parts.clone().next(), parts.last()) {
            builder = builder.zone(ZoneConfig {
                present,
                managed: present,
                ..ZoneConfig::whole(NodeId(0), kind, Pfn(first.start), last.end - first.start)
            });
        }
        start = end;
    }
    const _: () = assert!(ZONES.len() <= MAX_ZONES);
    builder
}
