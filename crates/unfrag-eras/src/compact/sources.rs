//! The migrate scanner: isolates pages that can be moved, from the start of a zone upwards. `spec: 5.1`

use super::control::Control;
use super::mover::put_all_back;
use super::outcome::Mode;
use super::targets::CLUSTER;
use crate::frame::{CpuId, FrameIx, FrameKind, Frames, MigrateType, Order, PageFlags, State};
use crate::host::Host;
use crate::kernel::{CompactRules, CompoundSources};
use crate::lru::{ISOLATED, ISOLATED_OTHER, Lru};
use crate::manager::Manager;
use crate::placement::List;
use crate::policy::Policy;

/// What a scan of one pageblock found.
pub(super) struct Scanned {
    /// Where it stopped.
    pub at: FrameIx,
    /// Pages that it isolated.
    pub taken: u32,
}

/// Whether a run takes pages out of the pageblock that holds `ix` (`suitable_migration_source`): a block in use that
/// is as large as the pageblock is left without a scan.
pub(super) fn is_source<H: Host>(m: &Manager<'_, H>, c: &Control, ix: FrameIx) -> bool {
    let s = m.frames.state(ix);
    if s.kind() == FrameKind::Used && s.order() >= m.frames.geometry.block_order {
        return false;
    }
    if c.any_source || !(c.direct && c.mode.is_async()) {
        return true;
    }
    let mt = m.frames.block_type(ix);
    mt == c.mt || c.mt == MigrateType::Movable && mt == MigrateType::Cma
}

/// Isolates pages from `start` on, up to `end` in the same pageblock: about 32, or all if `whole`. The last one is the
/// first of `held`.
pub(super) fn scan<H: Host>(
    m: &mut Manager<'_, H>,
    (c, rules): (&Control, &CompactRules),
    cpu: CpuId,
    (start, end): (FrameIx, FrameIx),
    whole: bool,
    held: &mut List,
) -> Scanned {
    let aligned = c.order.map(|o| o.min(m.frames.geometry.max_order));
    // A request that does not wait needs all of an aligned block; one page that stays makes the rest useless.
    let all_of = aligned.filter(|_| c.direct && c.mode.is_async());
    let mut at = start;
    let mut block_end = all_of.map(|o| next_block(at, o));
    let (mut scanned, mut taken) = (0, 0);
    while at < end {
        if let (Some(o), Some(e)) = (all_of, block_end)
            && at >= e
        {
            if taken > 0 {
                break;
            }
            block_end = Some(next_block(at, o));
        }
        scanned += 1;
        let s = m.frames.state(at);
        if s.kind() == FrameKind::Buddy {
            at = at.plus(s.order().frames());
            continue;
        }
        if may_move(m, (c, rules), at, s) {
            m.pages().hold(at);
            held.push_head(m.frames.table, at);
            taken += s.order().frames();
            at = at.plus(s.order().frames());
            if taken >= CLUSTER && !whole {
                break;
            }
            continue;
        }
        let step = if s.kind() == FrameKind::Used {
            s.order().frames()
        } else {
            1
        };
        at = at.plus(step);
        if let (Some(o), Some(e)) = (all_of, block_end) {
            put_all_back(m, cpu, held);
            taken = 0;
            at = at.max(e);
            block_end = Some(next_block(at, o));
        }
    }
    let at = at.min(end);
    m.note_isolated((start, at), scanned, taken);
    Scanned { at, taken }
}

/// Whether the block at `ix` may be moved.
pub(super) fn may_move<H: Host>(
    m: &Manager<'_, H>,
    of: (&Control, &CompactRules),
    ix: FrameIx,
    s: State,
) -> bool {
    may_move_in::<H>((&m.frames, &m.policy), of, ix, s)
}

/// The same, while the host is in use.
pub(super) fn may_move_in<H: Host>(
    (frames, policy): (&Frames, &Policy),
    (c, rules): (&Control, &CompactRules),
    ix: FrameIx,
    s: State,
) -> bool {
    if s.kind() != FrameKind::Used || !s.is_movable() {
        return false;
    }
    if s.lru() == ISOLATED || s.lru() == ISOLATED_OTHER {
        return false;
    }
    if s.lru() == 0 && !H::MOVES_UNLISTED {
        return false;
    }
    if s.lru() == Lru::Unevictable as u8 && !policy.sysctl.compact_unevictable_allowed {
        return false;
    }
    if s.order() > Order::ZERO {
        let block = frames.geometry.block_order;
        let below = c.order.map_or(block, |o| o.min(block));
        let moves = rules.compound == CompoundSources::BelowWanted && s.order() < below;
        if !moves || !ix.is_aligned(s.order()) {
            return false;
        }
    }
    // Only a run that waits for writes can move a page that is being written.
    let mut stays = PageFlags::LOCKED;
    if c.mode != Mode::Sync {
        stays |= PageFlags::WRITEBACK;
    }
    !s.flags().intersects(stays)
}

/// First frame behind the aligned block of an order that holds `ix`.
fn next_block(ix: FrameIx, order: Order) -> FrameIx {
    ix.head(order).plus(order.frames())
}
