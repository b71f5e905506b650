//! The free blocks of 2 MiB that the system has back: a stack.
//!
//! Most stay mapped, and take memory again as they are used. Where the process has a limit of addresses they are closed:
//! unmapped, so that what the program maps by itself has the room, and opened when they are taken.
//!
//! Invariant: whoever puts a block has it alone, and so has whoever takes it; a block that is taken is mapped.

use super::ground::system_memory;
use super::window::{BLOCK, HUGE_FROM, Refused, Window};

/// Marks a block that is closed. Blocks begin at multiples of [`BLOCK`].
const CLOSED: u32 = 1;

/// The stack.
pub(super) struct Released {
    blocks: &'static mut [u32],
    count: usize,
    closed: u32,
    left_out: u32,
}

impl Released {
    /// A stack for so many blocks.
    pub fn new(blocks: usize) -> Option<Released> {
        let at = system_memory(blocks * size_of::<u32>())?.cast::<u32>();
        Some(Released {
            // SAFETY: new memory of the system, that long, for as long as the process lives.
            blocks: unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), blocks) },
            count: 0,
            closed: 0,
            left_out: 0,
        })
    }

    /// Blocks on the stack.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Those of them that are closed.
    pub fn closed(&self) -> u32 {
        self.closed
    }

    /// Blocks that were closed and are nobody's for ever, since something else is mapped there.
    pub fn left_out(&self) -> u32 {
        self.left_out
    }

    /// The system has a block back.
    pub fn put(&mut self, block: u32, closed: bool) {
        self.blocks[self.count] = if closed { block | CLOSED } else { block };
        self.count += 1;
        self.closed += u32::from(closed);
    }

    /// Takes the last block before the frame `limit` that can be had.
    pub fn take(&mut self, window: &Window, limit: u32) -> Option<u32> {
        let is_mapped = |b: &u32| b & CLOSED == 0;
        while let Some(at) = self.last(self.count, |b| b & !CLOSED < limit) {
            match self.open(window, at) {
                Ok(()) => return Some(self.remove(at)),
                Err(Refused::InUse) => {}
                // One that is mapped needs nothing of the system.
                Err(Refused::NoMemory) => {
                    let at = self.last(self.count, |b| is_mapped(b) && *b < limit)?;
                    return Some(self.remove(at));
                }
            }
        }
        None
    }

    /// The place of the last block like this, before another place.
    fn last(&self, before: usize, is_like_this: impl Fn(&u32) -> bool) -> Option<usize> {
        self.blocks[..before].iter().rposition(is_like_this)
    }

    /// Takes the block at a place, where the last one goes.
    fn remove(&mut self, at: usize) -> u32 {
        self.count -= 1;
        self.blocks.swap(at, self.count);
        self.blocks[self.count]
    }

    /// Takes neighbours, so many as a power of two says, the first at a multiple of them all. Returns the first.
    pub fn take_neighbours(&mut self, window: &Window, blocks: u32) -> Option<u32> {
        let wanted = blocks as usize;
        'again: loop {
            let all = &mut self.blocks[..self.count];
            all.sort_unstable();
            let is_group = |group: &[u32]| {
                let (first, last) = (group[0] & !CLOSED, group[wanted - 1] & !CLOSED);
                first.is_multiple_of(blocks * BLOCK) && last == first + (blocks - 1) * BLOCK
            };
            let at = all.windows(wanted).position(is_group)?;
            for i in at..at + wanted {
                match self.open(window, i) {
                    Ok(()) => {}
                    Err(Refused::InUse) => continue 'again,
                    // Those that are open by now stay on the stack as they are.
                    Err(Refused::NoMemory) => return None,
                }
            }
            let first = self.blocks[at];
            self.blocks.copy_within(at + wanted..self.count, at);
            self.count -= wanted;
            return Some(first);
        }
    }

    /// Takes a block that is mapped, the last one below a place, which becomes that of the block.
    pub fn take_mapped(&mut self, below: &mut usize) -> Option<u32> {
        let at = self.last(self.count.min(*below), |b| b & CLOSED == 0)?;
        *below = at;
        Some(self.remove(at))
    }

    /// Opens the block at a place of the stack if it is closed. One where something else is mapped leaves the stack.
    fn open(&mut self, window: &Window, at: usize) -> Result<(), Refused> {
        if self.blocks[at] & CLOSED == 0 {
            return Ok(());
        }
        let block = self.blocks[at] & !CLOSED;
        let opened = window.open(block, BLOCK, block >= HUGE_FROM);
        match opened {
            Ok(()) => self.blocks[at] = block,
            Err(Refused::NoMemory) => return opened,
            Err(Refused::InUse) => {
                self.blocks.copy_within(at + 1..self.count, at);
                self.count -= 1;
                self.left_out += 1;
            }
        }
        self.closed -= 1;
        opened
    }
}

#[cfg(test)]
mod tests {
    use super::super::window::only::Only;
    use super::*;
    use crate::memory::GIGABYTE;

    /// A stack of so many blocks from the start of a window, all of them closed.
    fn closed(blocks: u32) -> (Only<Window>, Released) {
        let make = || Window::below(system_memory(1)?, GIGABYTE);
        let window = Only::new(make, |window| *window);
        let mut released = Released::new((GIGABYTE / BLOCK) as usize).expect("memory");
        window.open(0, blocks * BLOCK, false).expect("addresses");
        // In an order that is none.
        for i in 0..blocks {
            let block = (i * 3 % blocks) * BLOCK;
            assert!(window.close(block, BLOCK));
            released.put(block, true);
        }
        (window, released)
    }

    #[test]
    fn neighbours_are_taken_together_and_others_one_by_one_until_none_is_left() {
        let (window, mut released) = closed(10);
        assert_eq!(released.take_neighbours(&window, 8), Some(0));
        assert_eq!(released.take_neighbours(&window, 4), None);
        assert_eq!(released.take_neighbours(&window, 2), Some(8 * BLOCK));
        assert_eq!((released.count(), released.closed()), (0, 0));
        assert_eq!(released.take(&window, GIGABYTE), None);
        // What was taken is mapped.
        assert!(window.close(0, 10 * BLOCK));
    }

    #[test]
    fn a_block_where_something_else_is_mapped_is_left_out_for_good() {
        let (window, mut released) = closed(8);
        let theirs = 5 * BLOCK + 100;
        window.open(theirs, 1, false).expect("addresses");
        assert_eq!(released.take_neighbours(&window, 8), None);
        assert_eq!((released.left_out(), released.count()), (1, 7));
        assert_eq!(released.take_neighbours(&window, 4), Some(0));
        let rest: Vec<u32> = std::iter::from_fn(|| released.take(&window, GIGABYTE)).collect();
        assert_eq!(rest, [7, 6, 4].map(|block| block * BLOCK));
        assert_eq!((released.count(), released.closed()), (0, 0));
        assert!(window.close(0, 8 * BLOCK));
    }

    #[test]
    fn blocks_before_a_limit_are_taken_from_among_others() {
        let (window, mut released) = closed(8);
        let taken = |released: &mut Released, limit: u32| {
            let next = || released.take(&window, limit * BLOCK);
            let mut all: Vec<u32> = std::iter::from_fn(next).map(|b| b / BLOCK).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(taken(&mut released, 0), []);
        assert_eq!(taken(&mut released, 3), [0, 1, 2]);
        assert_eq!(taken(&mut released, 3), []);
        assert_eq!((released.count(), released.closed()), (5, 5));
        assert_eq!(taken(&mut released, 8), [3, 4, 5, 6, 7]);
    }

    #[test]
    fn blocks_that_are_mapped_still_are_found_among_closed_ones() {
        let (window, mut released) = closed(2);
        for block in 2..5 {
            released.put(block * BLOCK, false);
            released.put((block + 10) * BLOCK, true);
        }
        let mut below = usize::MAX;
        let found = std::iter::from_fn(|| released.take_mapped(&mut below));
        assert_eq!(found.collect::<Vec<_>>(), [4, 3, 2].map(|b| b * BLOCK));
        assert_eq!((released.count(), released.closed()), (5, 5));
        assert!((0..5).all(|_| released.take(&window, GIGABYTE).is_some()));
    }
}
