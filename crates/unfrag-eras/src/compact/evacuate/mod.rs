//! The evacuator: it empties the pageblock that costs the fewest copies, into the fullest ones.
//!
//! A free block of a pageblock's size costs one copy for each frame in use there, so the emptiest pageblock is the
//! cheapest, and its pages go where they stand least in the way: to the pageblocks that are nearest to full. The free
//! frames of each pageblock are counted as blocks go on and off the buddy lists, in a word of its record.
//!
//! - `survey`: the emptiest and the fullest pageblocks of a zone. One look at all their words, eight of which share a
//!   cache line: 524,288 words, about a millisecond, in 1 TiB. It finds 64 of each, so that many gains share its cost,
//!   those of later runs among them.
//! - `unit`: what is emptied at a time. It is set apart meanwhile, so that nobody allocates what has just been freed.
//! - `supply`: takes target frames. `run`: one run over one zone.
//! - `demand`: how many huge blocks are to be kept free. `ahead`: what kcompactd does for that.
//!
//! A pageblock that holds a page that cannot be moved is not begun; one whose owner refuses is left, and what it has
//! given goes back. Both are then left alone for 2 runs, and twice as many each time again, up to 64.
//!
//! Invariant: between runs no pageblock is set apart. Each gain adds one wholly free block, and no wholly free block
//! is a target, so a run ends.

mod ahead;
mod demand;
mod run;
mod state;
mod supply;
mod survey;
mod unit;

pub(crate) use demand::HugeDemand;
pub(super) use state::Evacuation;

use super::control::Control;
use crate::frame::Order;
use crate::host::Host;
use crate::kernel::Chooser;
use crate::manager::Manager;

impl<H: Host> Manager<'_, H> {
    /// Whether a run empties whole pageblocks, rather than scan for blocks.
    pub(super) fn evacuates(&self, c: &Control) -> bool {
        let chooser = self.policy.rules.compact.map(|r| r.chooser);
        let block = self.frames.geometry.block_order;
        chooser == Some(Chooser::Evacuator) && c.order.is_none_or(|o| o >= block)
    }

    /// The order of what a run empties at a time.
    pub(super) fn unit_order(&self, c: &Control) -> Order {
        let block = self.frames.geometry.block_order;
        match (c.order, c.goal) {
            (Some(order), _) => order.max(block),
            (None, Some(goal)) => goal.order,
            (None, None) => block,
        }
    }
}
