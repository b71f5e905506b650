//! Memory for requests that cannot wait: high-atomic pageblocks, made on demand, and
//! `MIGRATE_RESERVE` pageblocks, made at boot. `spec: linux-mm 4.7; linux-6.1 4`

use super::Zone;
use crate::frame::{Frames, Ix, Kind, MigrateType};
use crate::kernel::{HighAtomicLimit, Rules};
use MigrateType::{HighAtomic, Movable, Reserve};

/// Most pages that may be reserved in a zone; `None`: the zone is too small.
pub(crate) const fn limit(rule: HighAtomicLimit, managed: u64, block: u64) -> Option<u64> {
    match rule {
        HighAtomicLimit::PercentPlusBlock => Some(managed / 100 + block),
        HighAtomicLimit::PercentRoundedUp if managed / 100 < block => None,
        HighAtomicLimit::PercentRoundedUp => Some((managed / 100).next_multiple_of(block)),
    }
}

impl Zone {
    /// After a high-order atomic request got the frame `ix`: its pageblock joins the reserve.
    pub(crate) fn reserve_highatomic(
        &mut self,
        frames: &mut Frames,
        sw: &Rules,
        rule: HighAtomicLimit,
        ix: Ix,
    ) -> bool {
        let block = 1u64 << frames.block_order;
        let Some(limit) = limit(rule, self.config.managed, block) else {
            return false;
        };
        if self.highatomic >= limit || !frames.block_type(ix).is_ordinary() {
            return false;
        }
        // A pageblock that the zone shares with another cannot change hands as a whole.
        if sw.lists_follow_blocks() && !self.place.lists.holds_block(frames, ix) {
            return false;
        }
        self.highatomic += block;
        frames.set_block_type(ix, HighAtomic);
        self.place.lists.move_block(frames, ix, HighAtomic, true);
        true
    }

    /// Gives one pageblock of the reserve back to type `mt`; the last one only if `force`.
    pub(crate) fn unreserve_highatomic(
        &mut self,
        frames: &mut Frames,
        sw: &Rules,
        mt: MigrateType,
        force: bool,
    ) -> bool {
        let block = 1u64 << frames.block_order;
        if !force && self.highatomic <= block {
            return false;
        }
        let mut fits = self.place.lists.fits(HighAtomic);
        while fits != 0 {
            let order = fits.trailing_zeros() as u8;
            fits &= fits - 1;
            let ix = self.place.lists.list(order, HighAtomic).head;
            if frames.block_type(ix) != HighAtomic {
                continue;
            }
            // Of a free block of two pageblocks, both go where lists and blocks agree.
            let whole = if sw.lists_follow_blocks() {
                order.max(frames.block_order)
            } else {
                frames.block_order
            };
            self.highatomic -= self.highatomic.min(1 << whole);
            frames.set_block_types(ix & !((1 << whole) - 1), whole, mt);
            self.place.lists.move_block(frames, ix, mt, true);
            return true;
        }
        false
    }

    /// Sets the `MIGRATE_RESERVE` pageblocks: enough for the min mark, at most two if `capped`, from
    /// the zone's start among movable blocks without a reserved frame. `spec: linux-mm 4.7`
    pub(crate) fn setup_reserve_blocks(&mut self, frames: &mut Frames, capped: bool) {
        let size = 1u32 << frames.block_order;
        let mut wanted = self.marks.min.div_ceil(u64::from(size));
        if capped {
            wanted = wanted.min(2);
        }
        let mut at = self.start.next_multiple_of(size);
        while at + size <= self.end {
            let reserved = (at..at + size)
                .any(|i| matches!(frames.state(i).kind(), Kind::Reserved | Kind::Absent));
            let mt = frames.block_type(at);
            if wanted > 0 && !reserved && matches!(mt, Movable | Reserve) {
                wanted -= 1;
                frames.set_block_type(at, Reserve);
                self.place.lists.move_block(frames, at, Reserve, false);
            } else if mt == Reserve {
                frames.set_block_type(at, Movable);
                self.place.lists.move_block(frames, at, Movable, false);
            }
            at += size;
        }
    }
}
