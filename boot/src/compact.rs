//! Compaction: makes whole free blocks, by asking the owners of what is in the way to move it.
//!
//! Invariant: owners are asked, and frames are copied, with no spin lock held and with interrupts on.

use crate::lock::Mutex;
use crate::owners::{self, Owner};
use crate::{cache, frames, spaces};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use unfrag::shared::{Evacuator, Move, Moved};
use unfrag::{Order, Pfn};

/// One evacuation at a time.
static ONE: Mutex<()> = Mutex::new(());
static BLOCKS: AtomicU64 = AtomicU64::new(0);
static COPIES: AtomicU64 = AtomicU64::new(0);

/// Most copies for a block.
const MOST: u32 = 448;

/// Makes a whole free block, unless there are `enough` already. False, if there is none to be made.
pub fn make_block(enough: u32) -> bool {
    let _one = ONE.lock();
    let memory = frames::memory();
    if memory.whole_blocks() >= enough {
        return true;
    }
    frames::flush();
    let mut evacuator = Evacuator::new(1, 4 * MOST, MOST);
    let mut answer = Moved::Go;
    loop {
        match evacuator.step(memory, answer) {
            Ok(Move::Frame(from)) => answer = relocate(&evacuator, from),
            Ok(_) => break,
            Err(why) => panic!("a frame was moved that was not in use: {why}"),
        }
    }
    BLOCKS.fetch_add(evacuator.gained().into(), Relaxed);
    COPIES.fetch_add(evacuator.copied().into(), Relaxed);
    evacuator.gained() > 0
}

/// Has the owner of a frame move it.
fn relocate(evacuator: &Evacuator, from: Pfn) -> Moved {
    let memory = frames::memory();
    let place = owners::of(from).and_then(|owner| Some((owner, evacuator.place(memory, Order(0))?)));
    let Some((owner, to)) = place else {
        // Another CPU may keep it: it gives it back with its next free.
        memory.call_home();
        return Moved::Stays;
    };
    let moved = match owner {
        Owner::Space(id, page) => spaces::with(id, |s| s.migrate(page, from, to)).unwrap_or(false),
        Owner::Cache(page) => cache::migrate(page, from, to),
    };
    if moved {
        return Moved::Away(Order(0));
    }
    let back = evacuator.put_back(memory, to, Order(0));
    back.expect("the place was taken for this");
    Moved::Stays
}

/// Whole free blocks that were made, and frames that were copied.
pub fn counts() -> (u64, u64) {
    (BLOCKS.load(Relaxed), COPIES.load(Relaxed))
}
