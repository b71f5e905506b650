//! Compaction: makes whole free blocks, by asking the owners of what is in the way to move it.
//!
//! Pages are moved in batches, so that translations are flushed once for up to 32 of them.
//!
//! Invariant: owners are asked, and frames are copied, with no spin lock held and with interrupts on.

use crate::memory_map::frame;
use crate::mutex::Mutex;
use crate::owners::{self, Owner};
use crate::pattern::Words;
use crate::space::address;
use crate::{cache, frames, spaces, tlb};
use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use unfrag::shared::{Evacuator, Move, Moved};
use unfrag::{Order, Pfn};

/// One evacuation at a time.
static ONE: Mutex<()> = Mutex::new(());
static BLOCKS: AtomicU64 = AtomicU64::new(0);
static COPIES: AtomicU64 = AtomicU64::new(0);

/// Most copies for a block.
const MOST: u32 = 448;

/// A page that is being moved.
#[derive(Clone, Copy)]
struct Moving {
    from: Pfn,
    to: Pfn,
    space: u16,
    page: u32,
}

/// Frames that have been moved ahead of the question: up to the last one, all of their block.
struct Batch {
    last: Option<Pfn>,
}

/// Makes a whole free block, unless there are `enough` already. False, if there is none to be made.
pub fn make_block(enough: u32) -> bool {
    let _one = ONE.lock();
    let memory = frames::memory();
    if memory.whole_blocks() >= enough {
        return true;
    }
    frames::flush();
    let mut evacuator = Evacuator::new(1, 4 * MOST, MOST);
    let mut batch = Batch { last: None };
    let mut answer = Moved::Go;
    loop {
        match evacuator.step(memory, answer) {
            Ok(Move::Frame(from)) => answer = batch.answer(&evacuator, from),
            Ok(_) => break,
            Err(why) => panic!("a frame was moved that was not in use: {why}"),
        }
    }
    BLOCKS.fetch_add(evacuator.gained().into(), Relaxed);
    COPIES.fetch_add(evacuator.copied().into(), Relaxed);
    evacuator.gained() > 0
}

impl Batch {
    /// What becomes of a frame: it is moved, with those that will be asked for after it, unless it has been.
    fn answer(&mut self, evacuator: &Evacuator, from: Pfn) -> Moved {
        let is_moved = self
            .last
            .is_some_and(|last| from <= last && last.0 - from.0 < 512);
        if !is_moved {
            self.last = relocate(evacuator, from);
            if self.last.is_none() {
                // Another CPU may keep it: it gives it back with its next free.
                frames::memory().call_home();
                return Moved::Stays;
            }
        }
        if self.last == Some(from) {
            self.last = None;
        }
        Moved::Away(Order(0))
    }
}

/// Moves the pages from a frame on, as far as they have owners who move them, with one flush for all. Returns the last one.
fn relocate(evacuator: &Evacuator, from: Pfn) -> Option<Pfn> {
    let memory = frames::memory();
    let mut moving = ArrayVec::<Moving, { tlb::MOST }>::new();
    let mut last = None;
    let mut next = Some(from);
    while let Some(from) = next
        && !moving.is_full()
        && let Some(owner) = owners::of(from)
        && let Some(to) = evacuator.place(memory, Order(0))
    {
        let moves = match owner {
            Owner::Space(id, page) => {
                let begun = spaces::with(id, |s| s.begin_move(page, from)) == Some(true);
                if begun {
                    moving.push(Moving {
                        from,
                        to,
                        space: id,
                        page,
                    });
                }
                begun
            }
            Owner::Cache(page) => cache::migrate(page, from, to),
        };
        if !moves {
            let back = evacuator.put_back(memory, to, Order(0));
            back.expect("the place was taken for this");
            break;
        }
        last = Some(from);
        next = evacuator.after(memory, from);
    }
    let pages: ArrayVec<_, { tlb::MOST }> = moving.iter().map(|m| address(m.page)).collect();
    tlb::flush(&pages);
    for m in moving {
        // SAFETY: No CPU reaches the old frame by its page any more, and the new one is ours.
        unsafe { frame::<Words>(m.to).copy_from_nonoverlapping(frame(m.from), 1) };
        spaces::with(m.space, |s| s.end_move(m.page, m.from, m.to)).expect("it has a page");
    }
    last
}

/// Whole free blocks that were made, and frames that were copied.
pub fn counts() -> (u64, u64) {
    (BLOCKS.load(Relaxed), COPIES.load(Relaxed))
}
