//! The state of memory at which a replay begins.
//!
//! - [`exact`]: from the kernel's own free lists, where a mark of the recording holds them.
//! - [`counts`]: from what any host shows: numbers of free blocks by order and type, and what the
//!   trace itself says of the frames that it touches.
//!
//! Both give a [`Start`]: zones as recorded, each frame free or in use, and lists in order. From it
//! [`Start::manager`] builds the model.

pub mod anew;
mod arrange;
mod block_types;
pub mod counts;
pub mod evidence;
pub mod exact;
mod percpu;
pub mod waited;
mod zones;

pub(crate) use arrange::is_cached;
pub(crate) use zones::holds;
pub use zones::{ZoneFacts, highest_frame, zone_facts};

use crate::replay::ReplayHost;
use unfrag::kernel::{Pcp, Rules, Sysctl};
use unfrag::restore::{Restore, RestoreError, SetSizes};
use unfrag::zone::Marks;
use unfrag::{Config, CpuId, Gfp, Manager, MigrateType, Order, Pfn, ZoneConfig, ZoneId, layout};
use unfrag_linux::{Error, Result};

/// A free block at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeBlock {
    /// First frame.
    pub pfn: u32,
    /// Its order.
    pub order: u8,
    /// Its list.
    pub mt: MigrateType,
}

/// A CPU's lists of a zone at the start.
#[derive(Clone, Debug, Default)]
pub struct SetStart {
    /// Zone, by index.
    pub zone: usize,
    /// CPU.
    pub cpu: usize,
    /// high, batch and factor, if recorded.
    pub tuning: Option<(i32, i32, i32)>,
    /// Blocks by list, each from its head.
    pub lists: Vec<(usize, Vec<FreeBlock>)>,
}

impl SetStart {
    /// All frames on the lists.
    fn frames(&self) -> impl Iterator<Item = u32> {
        let blocks = self.lists.iter().flat_map(|l| &l.1);
        blocks.flat_map(|b| b.pfn..b.pfn + (1 << b.order))
    }
}

/// Where a replay begins.
#[derive(Clone, Debug)]
pub struct Start {
    /// The populated zones, ascending.
    pub zones: Vec<ZoneFacts>,
    /// CPUs.
    pub cpus: usize,
    /// Time of the state in nanoseconds of the trace clock; events before it belong to it.
    pub time: u64,
    /// Free blocks: for each list from its head.
    pub free: Vec<FreeBlock>,
    /// Per-CPU lists.
    pub sets: Vec<SetStart>,
    /// Type of each pageblock that is not movable: first frame and type.
    pub block_types: Vec<(u32, MigrateType)>,
    /// Frames in use at the start whose end the trace shows.
    pub freed_later: Vec<bool>,
    /// For each frame number: not part of a zone's managed memory, free, or in use.
    pub frames: Vec<Frame>,
}

/// A frame at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Frame {
    /// No memory of the allocator.
    #[default]
    None,
    /// On a list.
    Free,
    /// In use by the kernel, where it stays.
    Pinned,
    /// In use, and movable.
    Movable,
}

impl Start {
    /// Configuration of the machine under some rules.
    pub fn zone_configs(&self) -> Vec<ZoneConfig> {
        self.zones.iter().map(|z| z.config).collect()
    }

    /// The model at this state, under the given rules, in `memory` (see [`words`](Self::words)).
    ///
    /// # Errors
    /// If the state contradicts itself.
    pub fn manager<'m>(
        &self,
        rules: Rules,
        sysctl: Sysctl,
        recorded_marks: bool,
        memory: &'m mut [u64],
    ) -> Result<Manager<'m, ReplayHost>> {
        let zones = self.zone_configs();
        let config = self.config(&zones, rules, sysctl);
        let mut restore = Restore::new(&config, ReplayHost::default(), memory)
            .map_err(|e| Error::malformed(format!("the recorded zones cannot be: {e}")))?;
        let bad = |e: RestoreError| {
            Error::malformed(format!("the recorded state contradicts itself: {e}"))
        };
        let mut edit = restore.edit();
        for &(pfn, mt) in &self.block_types {
            edit.block_type(Pfn(pfn.into()), mt).map_err(bad)?;
        }
        let mut free = vec![0; self.zones.len()];
        for b in &self.free {
            let pfn = Pfn(b.pfn.into());
            edit.free(pfn, Order(b.order), b.mt).map_err(bad)?;
            if let Some(zone) = zones.iter().position(|z| holds(z, pfn)) {
                free[zone] += 1 << b.order;
            }
        }
        for (id, (z, free)) in (0..).map(ZoneId).zip(self.zones.iter().zip(free)) {
            if recorded_marks {
                edit.marks(id, z.marks, z.protection).map_err(bad)?;
            }
            edit.counters(id, z.highatomic, free, z.stat_threshold)
                .map_err(bad)?;
        }
        for set in &self.sets {
            if let Some((high, batch, factor)) = set.tuning
                && recorded_marks
            {
                let sizes = SetSizes {
                    high,
                    batch,
                    factor,
                };
                edit.set(ZoneId(set.zone as u8), CpuId(set.cpu as u32), sizes)
                    .map_err(bad)?;
            }
            for (list, blocks) in &set.lists {
                for b in blocks {
                    let (pfn, order) = (Pfn(b.pfn.into()), Order(b.order));
                    if matches!(rules.pcp, Pcp::Orders { .. }) {
                        let cpu = CpuId(set.cpu as u32);
                        edit.pcp(cpu, *list, pfn, order, b.mt).map_err(bad)?;
                    } else {
                        edit.merged(pfn, order).map_err(bad)?;
                    }
                }
            }
        }
        for (pfn, f) in self.frames.iter().enumerate() {
            let gfp = match f {
                Frame::None | Frame::Free => continue,
                Frame::Pinned => Gfp::KERNEL,
                Frame::Movable => Gfp::HIGHUSER_MOVABLE,
            };
            edit.used(Pfn(pfn as u64), Order::ZERO, gfp).map_err(bad)?;
        }
        Ok(restore.finish())
    }

    /// A machine with these zones under some rules.
    fn config<'z>(&self, zones: &'z [ZoneConfig], rules: Rules, sysctl: Sysctl) -> Config<'z> {
        Config {
            cpus: self.cpus,
            sysctl,
            ..Config::new(zones, rules)
        }
    }

    /// Words of metadata that [`manager`](Self::manager) needs.
    ///
    /// # Errors
    /// If the zones cannot be.
    pub fn words(&self, rules: Rules, sysctl: Sysctl) -> Result<usize> {
        let zones = self.zone_configs();
        layout(&self.config(&zones, rules, sysctl))
            .map(|l| l.words)
            .map_err(|e| Error::malformed(format!("the recorded zones cannot be: {e}")))
    }

    /// Whether a frame was free.
    pub fn is_free(&self, pfn: u32) -> bool {
        self.frames.get(pfn as usize) == Some(&Frame::Free)
    }
}

/// Marks as a kernel shows them (with the boost) and the boost.
pub(crate) fn marks(min: u64, low: u64, high: u64, promo: u64, boost: u64) -> Marks {
    Marks {
        min,
        low,
        high,
        promo,
        boost,
    }
}
