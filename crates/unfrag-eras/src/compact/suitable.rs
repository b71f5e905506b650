//! Whether a zone is worth a run. `spec: 5.2`

use super::control::Control;
use super::outcome::Outcome;
use crate::frame::{Order, ZoneId, ZoneKind};
use crate::gfp::AllocFlags;
use crate::host::Host;
use crate::kernel::{CompactRoom, CompactRules};
use crate::manager::Manager;
use crate::stat::fragmentation_index;
use crate::zone::Zone;

/// Pages that must be free beyond the mark for a run to have targets (`compact_gap`).
pub(crate) const fn compact_gap(order: Order) -> u64 {
    2 << order.0
}

impl<H: Host> Manager<'_, H> {
    /// Whether a run should begin: [`Outcome::Continue`] if so; else [`Outcome::Success`] if a block of the order can be
    /// had without, or why it would be in vain (`compaction_suitable`).
    pub(crate) fn compaction_suitable(&self, c: &Control) -> Outcome {
        let Some(order) = c.order else {
            return Outcome::Continue;
        };
        let rules = &self.policy.rules;
        let z = self.zone(c.zone);
        let passes = if c.in_blocks {
            z.blocks_pass(rules, self.frames.geometry, order, c.highest)
        } else {
            z.passes(rules, order, z.marks.of(c.flags), c.highest, c.flags)
        };
        if passes {
            return Outcome::Success;
        }
        if !self.has_room(c.zone, order, c.flags, c.highest, z.counter) {
            return Outcome::Skipped;
        }
        if order > Order::COSTLY {
            let index = fragmentation_index(&z.free_area.nr_free().map(u64::from), order);
            if (0..=i64::from(self.policy.sysctl.extfrag_threshold)).contains(&index) {
                return Outcome::NotSuitableZone;
            }
        }
        Outcome::Continue
    }

    /// Whether `free` pages of a zone leave room to move pages (`__compaction_suitable`).
    pub(crate) fn has_room(
        &self,
        zone: ZoneId,
        order: Order,
        flags: AllocFlags,
        highest: ZoneKind,
        free: i64,
    ) -> bool {
        let z = self.zone(zone);
        let Some(rules) = &self.policy.rules.compact else {
            return false;
        };
        let mark = room_mark(z, rules, order, flags) + compact_gap(order);
        z.passes_with(&self.policy.rules, free, mark, highest, AllocFlags::CMA)
    }

    /// Whether reclaim could make some zone worth a run (`compaction_zonelist_suitable`).
    pub(crate) fn compaction_could_help(
        &self,
        zones: impl IntoIterator<Item = ZoneId>,
        order: Order,
        flags: AllocFlags,
        highest: ZoneKind,
    ) -> bool {
        zones.into_iter().any(|zone| {
            let z = self.zone(zone);
            let could = self.reclaimable_pages(z.lru) / u64::from(order.0.max(1));
            let free = z.counter + could as i64;
            self.has_room(zone, order, flags, highest, free)
        })
    }
}

fn room_mark(z: &Zone, rules: &CompactRules, order: Order, flags: AllocFlags) -> u64 {
    let (min, low) = (
        z.marks.of(AllocFlags::empty()),
        z.marks.of(AllocFlags::WMARK_LOW),
    );
    let costly = order > Order::COSTLY;
    match rules.room {
        CompactRoom::Low => low,
        CompactRoom::LowIfCostly if costly => low,
        CompactRoom::LowIfCostly => min,
        CompactRoom::Callers => z.marks.of(flags) + if costly { low - min } else { 0 },
    }
}
