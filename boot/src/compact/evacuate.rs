//! Compaction by unfrag's own engine: an [`Evacuator`] says which frames should move.
//!
//! Invariant: one evacuation at a time.

use super::moves::Batch;
use crate::frames::Locals;
use crate::lock::IrqLock;
use crate::mutex::Mutex;
use crate::owners;
use unfrag::moves::{Evacuator, Goal, Limits, Move};
use unfrag::{Order, Pfn};

type Own<'s> = Evacuator<'s, 'static, IrqLock>;

static ONE: Mutex<()> = Mutex::new(());

/// Blocks with more frames in use are not worth it.
const MOST: u32 = 448;
const LIMITS: Limits = Limits::NONE.copies(4 * MOST as u64).most(MOST);

/// Frames that have been moved ahead of the question: all of a block, up to this one.
struct Ahead {
    last: Option<Pfn>,
}

/// Makes a whole free block, unless there is one already. False, if there is none to be made.
pub fn make_block(own: &Locals) -> bool {
    let _one = ONE.lock();
    own.shared().whole_blocks() > 0 || evacuate(own, Goal::Blocks(1))
}

/// Makes whole free blocks ahead of demand, if some are missing to `blocks` and it is worth a try. False, if it made none.
pub fn make_ahead(own: &Locals, blocks: u32) -> bool {
    if !own.shared().wants_blocks(blocks, Order::HUGE) {
        return false;
    }
    let _one = ONE.lock();
    evacuate(own, Goal::Ahead { blocks })
}

/// Empties blocks; whether it made some whole.
fn evacuate(own: &Locals, goal: Goal) -> bool {
    own.flush();
    let mut evacuator = Evacuator::new(own.shared(), goal, LIMITS);
    let mut ahead = Ahead { last: None };
    // What nobody owns cannot be moved.
    let order_of = |p| owners::of(p).map(|_| Order(0));
    while let Move::Frame(from) = evacuator.step_if(order_of) {
        if ahead.moves(&mut evacuator, from) {
            // SAFETY: No page is mapped to the frame any more, and its owner has the new one.
            let moved = unsafe { evacuator.moved(from, Order(0)) };
            moved.expect("what was moved was in use");
        }
    }
    evacuator.gained() > 0
}

impl Ahead {
    /// Moves a frame, with those that will be asked for after it, unless it has been. False, if it stays.
    fn moves(&mut self, evacuator: &mut Own<'_>, from: Pfn) -> bool {
        let is_moved = self.last.is_some_and(|last| from <= last);
        if !is_moved {
            self.last = relocate(evacuator, from);
            if self.last.is_none() {
                return false;
            }
        }
        if self.last == Some(from) {
            self.last = None;
        }
        true
    }
}

/// Moves the pages from a frame on, as far as somebody moves them. Returns the last one.
fn relocate(evacuator: &mut Own<'_>, from: Pfn) -> Option<Pfn> {
    let mut batch = Batch::new();
    let mut last = None;
    let mut next = Some(from);
    while let Some(from) = next
        && !batch.is_full()
        && owners::of(from).is_some()
        && let Some(to) = evacuator.place(Order(0))
    {
        if !batch.add(from, to.pfn()) {
            break;
        }
        to.into_pfn();
        last = Some(from);
        next = evacuator.after(from);
    }
    batch.finish();
    last
}
