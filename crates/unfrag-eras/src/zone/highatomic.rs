//! Reserves for requests that cannot wait: high-atomic pageblocks, made on demand, and `MIGRATE_RESERVE`
//! pageblocks, made at boot. `spec: 4, 4.7`

use super::memory_zone::Zone;
use crate::frame::{FrameIx, FrameKind, Frames, MigrateType, Order};
use crate::kernel::{HighAtomicLimit, Rules};
use crate::placement::End;
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
        frames: &Frames,
        rules: &Rules,
        rule: HighAtomicLimit,
        ix: FrameIx,
    ) -> bool {
        let block = u64::from(frames.geometry.block_order.frames());
        let Some(limit) = limit(rule, self.managed, block) else {
            return false;
        };
        if self.highatomic >= limit || !frames.block_type(ix).is_ordinary() {
            return false;
        }
        // A pageblock shared by two zones cannot change its type as a whole.
        if rules.lists_follow_blocks() && !self.free_area.holds_block(frames, ix) {
            return false;
        }
        self.highatomic += block;
        frames.set_block_type(ix, HighAtomic);
        self.free_area.retype(frames, ix, HighAtomic, End::Tail);
        true
    }

    /// Gives one pageblock of the reserve back to type `mt`; the last one only if `force`.
    pub(crate) fn unreserve_highatomic(
        &mut self,
        frames: &Frames,
        rules: &Rules,
        mt: MigrateType,
        force: bool,
    ) -> bool {
        let block = u64::from(frames.geometry.block_order.frames());
        if !force && self.highatomic <= block {
            return false;
        }
        let mut fits = self.free_area.fits(HighAtomic);
        while fits != 0 {
            let order = Order(fits.trailing_zeros() as u8);
            fits &= fits - 1;
            let ix = self.free_area.list(order, HighAtomic).head;
            if frames.block_type(ix) != HighAtomic {
                continue;
            }
            // Of a free block of two pageblocks, both go where lists and blocks agree.
            let whole = if rules.lists_follow_blocks() {
                order.max(frames.geometry.block_order)
            } else {
                frames.geometry.block_order
            };
            self.highatomic -= self.highatomic.min(whole.frames().into());
            frames.set_block_types(ix.head(whole), whole, mt);
            self.free_area.retype(frames, ix, mt, End::Tail);
            return true;
        }
        false
    }

    /// Sets the `MIGRATE_RESERVE` pageblocks: enough for the min mark, at most two if `capped`, from
    /// the zone's start among movable blocks without a reserved frame. `spec: 4.7`
    pub(crate) fn setup_reserve_blocks(&mut self, frames: &Frames, capped: bool) {
        let size = frames.geometry.block_order.frames();
        let mut wanted = self.marks.min.div_ceil(u64::from(size));
        if capped {
            wanted = wanted.min(2);
        }
        let mut at = FrameIx(self.span.start.0.next_multiple_of(size));
        while at.plus(size) <= self.span.end {
            let reserved = at.until(at.plus(size)).any(|i| {
                matches!(
                    frames.state(i).kind(),
                    FrameKind::Reserved | FrameKind::Absent
                )
            });
            let mt = frames.block_type(at);
            if wanted > 0 && !reserved && matches!(mt, Movable | Reserve) {
                wanted -= 1;
                frames.set_block_type(at, Reserve);
                self.free_area.retype(frames, at, Reserve, End::Head);
            } else if mt == Reserve {
                frames.set_block_type(at, Movable);
                self.free_area.retype(frames, at, Movable, End::Head);
            }
            at = at.plus(size);
        }
    }
}
