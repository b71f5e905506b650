//! The model at the state where a replay begins.

use super::host::ReplayHost;
use crate::error::{Error, Result};
use crate::replay::start::holds;
use crate::replay::start::{Frame, Start};
use unfrag_eras::kernel::{Pcp, Reserve, Rules, Sysctl};
use unfrag_eras::restore::{Restore, RestoreError, SetSizes};
use unfrag_eras::{Config, CpuId, Geometry, Gfp, Manager, Order, Pfn, ZoneConfig, ZoneId, layout};

/// What of the recorded kernel's own sizes a model keeps.
#[derive(Clone, Copy)]
struct Keep {
    /// Watermarks.
    marks: bool,
    /// Sizes of per-CPU lists.
    sets: bool,
}

impl Start {
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
        let keep = Keep {
            marks: recorded_marks,
            sets: recorded_marks,
        };
        self.restored(rules, sysctl, keep, memory)
    }

    /// The model of another kernel at this state: what is free and in use, the types of pageblocks and the order of
    /// lists are the host's, which its history made. How long per-CPU lists get is the kernel's own matter.
    ///
    /// # Errors
    /// As of [`manager`](Self::manager).
    pub fn inherited<'m>(
        &self,
        rules: Rules,
        sysctl: Sysctl,
        recorded_marks: bool,
        memory: &'m mut [u64],
    ) -> Result<Manager<'m, ReplayHost>> {
        let keep = Keep {
            marks: recorded_marks,
            sets: false,
        };
        self.restored(rules, sysctl, keep, memory)
    }

    /// Whether a kernel with these rules can begin at this state: it groups pages by mobility in pageblocks of the same
    /// size, and keeps no reserve that is made at boot.
    pub fn can_be_inherited(&self, rules: &Rules) -> bool {
        let grouped = rules.pageblocks().is_some() && self.geometry_under(rules) == self.geometry;
        grouped && !matches!(rules.reserve(), Reserve::Blocks { .. })
    }

    fn restored<'m>(
        &self,
        rules: Rules,
        sysctl: Sysctl,
        keep: Keep,
        memory: &'m mut [u64],
    ) -> Result<Manager<'m, ReplayHost>> {
        let zones = self.zone_configs();
        let config = self.config(&zones, rules, sysctl);
        let mut restore = Restore::new(&config, ReplayHost::on(&self.cpus, &rules), memory)
            .map_err(|e| Error::contradiction(format!("the recorded zones cannot be: {e}")))?;
        let bad = |e: RestoreError| {
            Error::contradiction(format!("the recorded state contradicts itself: {e}"))
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
            if keep.marks {
                edit.marks(id, z.marks, z.protection).map_err(bad)?;
            }
            edit.counters(id, z.highatomic, free, z.stat_threshold)
                .map_err(bad)?;
        }
        for set in &self.sets {
            if let Some((high, batch, factor)) = set.tuning
                && keep.sets
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
        for &(zone, at) in &self.compact {
            edit.compaction(ZoneId(zone as u8), at).map_err(bad)?;
        }
        for &pfn in &self.skipped {
            // A pageblock outside all zones has none to skip.
            if zones.iter().any(|z| holds(z, Pfn(pfn.into()))) {
                edit.skipped(Pfn(pfn.into()), true).map_err(bad)?;
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
        for &pfn in &self.holes {
            // One that shares its pageblock with another zone is counted there.
            let _ = edit.hole(Pfn(pfn.into()));
        }
        Ok(restore.finish())
    }

    /// The host's sizes under some rules: the eras whose pageblocks are the largest blocks keep them so.
    fn geometry_under(&self, rules: &Rules) -> Geometry {
        let are_largest = Order(rules.block_order) == Geometry::PAGES_4K.max_order;
        match are_largest {
            true => self.geometry.with_block_order(self.geometry.max_order),
            false => self.geometry,
        }
    }

    /// A machine with these zones under some rules.
    pub(super) fn config<'z>(
        &self,
        zones: &'z [ZoneConfig],
        rules: Rules,
        sysctl: Sysctl,
    ) -> Config<'z> {
        Config {
            cpus: self.cpus.len(),
            geometry: self.geometry_under(&rules),
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
            .map_err(|e| Error::contradiction(format!("the recorded zones cannot be: {e}")))
    }
}
