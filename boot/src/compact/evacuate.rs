//! Compaction by unfrag's own engine: an [`Evacuator`] says which frames should move.
//!
//! Invariant: one evacuation at a time.

use super::moves::Batch;
use crate::frames::Locals;
use crate::lock::IrqLock;
use crate::mutex::Mutex;
use crate::owners;
use unfrag::moves::{Evacuator, Move};
use unfrag::{Order, Pfn};

type Own<'s> = Evacuator<'s, 'static, IrqLock>;

static ONE: Mutex<()> = Mutex::new(());

/// Most copies for a block.
const MOST: u32 = 448;

/// Frames that have been moved ahead of the question: all of a block, up to this one.
struct Ahead {
    last: Option<Pfn>,
}

/// Makes a whole free block, unless there are `enough` already. False, if there is none to be made.
pub fn make_block(own: &Locals, enough: u32) -> bool {
    let _one = ONE.lock();
    let memory = own.shared();
    if memory.whole_blocks() >= enough {
        return true;
    }
    own.flush();
    let mut evacuator = Evacuator::new(memory, 1, 4 * MOST, MOST);
    let mut ahead = Ahead { last: None };
    while let Move::Frame(from) = evacuator.step() {
        if ahead.moves(own, &evacuator, from) {
            // SAFETY: No page is mapped to the frame any more, and its owner has the new one.
            let moved = unsafe { evacuator.moved(from, Order(0)) };
            moved.expect("what was moved was in use");
        }
    }
    evacuator.gained() > 0
}

impl Ahead {
    /// Moves a frame, with those that will be asked for after it, unless it has been. False, if it stays.
    fn moves(&mut self, own: &Locals, evacuator: &Own<'_>, from: Pfn) -> bool {
        let is_moved = self.last.is_some_and(|last| from <= last);
        if !is_moved {
            self.last = relocate(evacuator, from);
            if self.last.is_none() {
                // Another CPU may keep it.
                own.shared().drain_locals();
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
fn relocate(evacuator: &Own<'_>, from: Pfn) -> Option<Pfn> {
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
