//! Compaction by unfrag's own engine: an [`Evacuator`] says which frames should move.
//!
//! Invariant: one evacuation at a time.

use super::moves::Batch;
use crate::frames::Locals;
use crate::mutex::Mutex;
use crate::owners;
use unfrag::shared::{Evacuator, Move, Moved};
use unfrag::{Order, Pfn};

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
    let mut evacuator = Evacuator::new(1, 4 * MOST, MOST);
    let mut ahead = Ahead { last: None };
    let mut answer = Moved::Go;
    loop {
        match evacuator.step(memory, answer) {
            Ok(Move::Frame(from)) => answer = ahead.answer(own, &evacuator, from),
            Ok(_) => break,
            Err(why) => panic!("a frame was moved that was not in use: {why}"),
        }
    }
    evacuator.gained() > 0
}

impl Ahead {
    /// What becomes of a frame: it is moved, with those that will be asked for after it, unless it has been.
    fn answer(&mut self, own: &Locals, evacuator: &Evacuator, from: Pfn) -> Moved {
        let is_moved = self.last.is_some_and(|last| from <= last);
        if !is_moved {
            self.last = relocate(own, evacuator, from);
            if self.last.is_none() {
                // Another CPU may keep it: it gives it back with its next free.
                own.shared().call_home();
                return Moved::Stays;
            }
        }
        if self.last == Some(from) {
            self.last = None;
        }
        Moved::Away(Order(0))
    }
}

/// Moves the pages from a frame on, as far as somebody moves them. Returns the last one.
fn relocate(own: &Locals, evacuator: &Evacuator, from: Pfn) -> Option<Pfn> {
    let memory = own.shared();
    let mut batch = Batch::new();
    let mut last = None;
    let mut next = Some(from);
    while let Some(from) = next
        && !batch.is_full()
        && owners::of(from).is_some()
        && let Some(to) = evacuator.place(memory, Order(0))
    {
        if !batch.add(from, to) {
            let back = evacuator.put_back(memory, to, Order(0));
            back.expect("the place was taken for this");
            break;
        }
        last = Some(from);
        next = evacuator.after(memory, from);
    }
    batch.finish();
    last
}
