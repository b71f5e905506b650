//! A look at all pageblocks of a zone: the emptiest and the fullest ones.
//!
//! A large zone keeps what was found for the next runs, since the look costs more than what one of them moves. So a
//! pick may be out of date, and is looked at again before it is used.

use super::super::control::Control;
use crate::frame::{FrameIx, MigrateType, Order};
use crate::host::Host;
use crate::manager::Manager;
use crate::zone::{Pick, Survey};

/// Up to so many pageblocks a zone is looked at in each run: the words of 4,096 take as long as copying five pages.
const LOOKED_AT_EACH_TIME: u32 = 4096;

/// Looks at the zone of a run, which is the zone's `run`-th.
pub(super) fn survey<H: Host>(m: &mut Manager<'_, H>, c: &Control, run: u16) -> Survey {
    let unit = m.unit_order(c);
    let span = m.zone(c.zone).span;
    let mut survey = Survey::of(run, unit);
    let mut head = span.start.head(unit);
    while head < span.end {
        look(m, c, (head, unit), &mut survey);
        head = head.plus(unit.frames());
    }
    m.compact_counters.blocks_surveyed += u64::from(blocks(m, c));
    survey
}

/// What the zone of a run keeps of an earlier survey.
pub(super) fn kept<H: Host>(m: &mut Manager<'_, H>, c: &Control) -> Survey {
    let unit = m.unit_order(c);
    let kept = &mut m.zones[c.zone.index()].compact.survey;
    // Two runs at the same time would count on the same room.
    let survey = core::mem::replace(kept, Survey::NONE);
    if survey.serves(unit) {
        survey
    } else {
        Survey::NONE
    }
}

/// Leaves what is left of a survey to the next run, if the zone is large.
pub(super) fn keep<H: Host>(m: &mut Manager<'_, H>, c: &Control, survey: &Survey) {
    if blocks(m, c) > LOOKED_AT_EACH_TIME {
        m.zones[c.zone.index()].compact.survey = *survey;
    }
}

fn blocks<H: Host>(m: &Manager<'_, H>, c: &Control) -> u32 {
    let span = m.zone(c.zone).span;
    let block = m.frames.geometry.block_order.frames();
    (span.end.0 - span.start.0).div_ceil(block)
}

fn look<H: Host>(
    m: &Manager<'_, H>,
    c: &Control,
    (head, unit): (FrameIx, Order),
    survey: &mut Survey,
) {
    let block = m.frames.geometry.block_order;
    let mut free = 0;
    let mut at = head;
    while at < head.plus(unit.frames()) {
        if is_inside(m, c, at) {
            let rank = u32::from(m.frames.room(at).free);
            free += rank;
            if takes_pages(m.frames.block_type(at)) && (1..block.frames()).contains(&rank) {
                survey.room += u64::from(rank);
                survey.targets.offer(Pick { head: at, rank });
            }
        }
        at = at.plus(block.frames());
    }
    if (1..unit.frames()).contains(&free) && is_source(m, c, (head, unit), survey.run) {
        let rank = unit.frames() - free;
        survey.sources.offer(Pick { head, rank });
    }
}

/// Whether a unit may be emptied: its pageblocks are of one type, lie in the zone, and are not left alone.
pub(super) fn is_source<H: Host>(
    m: &Manager<'_, H>,
    c: &Control,
    (head, unit): (FrameIx, Order),
    run: u16,
) -> bool {
    let block = m.frames.geometry.block_order;
    let first = m.frames.block_type(head);
    let mut at = head;
    while at < head.plus(unit.frames()) {
        let fits = is_inside(m, c, at)
            && m.frames.block_type(at) == first
            && !m.frames.room(at).is_left_alone(run, c.ignores_skips);
        if !fits {
            return false;
        }
        at = at.plus(block.frames());
    }
    may_be_emptied(c, first)
}

/// Whether a pageblock lies in the zone of a run as a whole.
fn is_inside<H: Host>(m: &Manager<'_, H>, c: &Control, head: FrameIx) -> bool {
    let z = m.zone(c.zone);
    z.free_area.holds_block(&m.frames, head) && m.frames.zone_of(head) == c.zone
}

/// Whether a run takes pages out of pageblocks of a type. Those that are not movable hold something that stays, as a
/// rule: only a run that tries hard looks at them.
fn may_be_emptied(c: &Control, mt: MigrateType) -> bool {
    takes_pages(mt) || c.ignores_skips && mt.is_ordinary()
}

/// Whether pageblocks of a type take pages.
pub(super) fn takes_pages(mt: MigrateType) -> bool {
    matches!(mt, MigrateType::Movable | MigrateType::Cma)
}
