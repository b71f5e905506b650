//! What goes back to the system, and when: whole free blocks, and pieces of blocks that stayed free for long.
//!
//! All is done in steps of a bounded length by whoever frees memory, and by threads from time to time ([`HeapPages::step`]).
//!
//! Invariant: no system call that takes memory back is made with the lock of the stock held.

use super::pages::HeapPages;
use super::stock::{PIECES, Piece, RUN, Stock};
use super::window::BLOCK;
use crate::space::FRAME_BYTES;
use std::sync::{MutexGuard, TryLockError};
use unfrag::maps::BLOCK_ORDER;

/// Whole free blocks that are kept at least.
const KEPT: u32 = 16;

/// Milliseconds for which a block must have been free before it is given back.
const IDLE: u64 = 100;

/// Milliseconds for which a step of looking for pieces is meant; after a longer time it is as many steps, up to some.
const PACE: (u64, u64) = (4, 8);

/// Whole free blocks that a step gives back of those that were free for so long.
const STEP: u32 = 64;

/// Whole free blocks that are kept for [`IDLE`] at least; beyond, as many as are in use.
const MOST_KEPT: u32 = 32;

/// Whole free blocks that are taken to be given back at a time.
const BATCH: usize = 16;

impl HeapPages {
    /// Gives whole free blocks back to the system: under a limit of addresses those beyond what may be kept, without one those
    /// beyond what is in use. So a program that makes no call any more has kept about as much as it uses, at the most.
    pub fn release_surplus(&self, stock: MutexGuard<'_, Stock>) {
        let whole = stock.whole_blocks();
        let most = stock.most_kept(whole);
        let used = stock.used_blocks();
        drop(stock);
        if let Some(most) = most
            && whole > most
        {
            // Half as many, so that not each free comes here.
            self.release_unless_busy(most / 2);
        } else if whole > MOST_KEPT.max(used) {
            self.release_unless_busy(whole - BATCH as u32);
        }
    }

    /// Gives back a part of what nobody needed for [`IDLE`] milliseconds. To be called from time to time, with the time.
    pub fn step(&self, now: u64) {
        let Ok(mut stock) = self.stock.try_lock() else {
            return;
        };
        let since = now.wrapping_sub(std::mem::replace(&mut stock.stepped, now));
        let may_look = stock.may_look(now);
        if now.wrapping_sub(stock.since) >= IDLE {
            self.step_of_blocks(stock, now);
        } else {
            drop(stock);
        }
        if since > 0 && may_look {
            for _ in 0..(since / PACE.0).clamp(1, PACE.1) {
                if !self.release_pieces(now) {
                    break;
                }
            }
        }
    }

    fn step_of_blocks(&self, mut stock: MutexGuard<'_, Stock>, now: u64) {
        let (whole, used) = (stock.whole_blocks(), stock.used_blocks());
        let idle = stock.fewest.min(whole);
        (stock.fewest, stock.since) = (whole, now);
        drop(stock);
        let surplus = idle.saturating_sub(KEPT.max(used / 8)).min(STEP);
        if surplus > 0 {
            self.release_unless_busy(whole - surplus);
        }
    }

    /// Gives back pieces of blocks that are in use otherwise, and stayed free from one look to the next. False, if there is nothing
    /// more to look at now.
    fn release_pieces(&self, now: u64) -> bool {
        let Ok(_alone) = self.releasing.try_lock() else {
            return false;
        };
        let mut pieces = [Piece::default(); PIECES];
        let (count, goes_on) = {
            let mut stock = self.lock();
            let count = stock.take_idle_pieces(&mut pieces, now);
            (count, stock.may_look(now))
        };
        let mut are_empty = [false; PIECES];
        for (piece, is_empty) in pieces[..count].iter().zip(&mut are_empty) {
            *is_empty = self.window.release(piece.first, piece.frames);
        }
        if count == 0 {
            return goes_on;
        }
        let mut stock = self.lock();
        for (piece, is_empty) in pieces[..count].iter().zip(are_empty) {
            if is_empty {
                stock.touched.clear(piece.first, piece.frames);
            }
            stock.give(piece.first, piece.frames, RUN);
        }
        goes_on
    }

    /// As [`release`](HeapPages::release), unless another thread is at it.
    fn release_unless_busy(&self, keep: u32) {
        match self.releasing.try_lock() {
            Ok(_alone) => self.release_alone(keep),
            Err(TryLockError::Poisoned(_)) => self.release(keep),
            Err(TryLockError::WouldBlock) => 0,
        };
    }

    /// Gives whole free blocks back to the system but for some. Returns the bytes.
    pub fn release(&self, keep: u32) -> u64 {
        let _alone = self.lock_releasing();
        self.release_alone(keep)
    }

    /// Whether the process has a limit of addresses, and it may have so many bytes.
    pub fn is_within_limit(&self, bytes: usize) -> bool {
        let limit = self.lock().look_at_limit();
        limit.is_some_and(|limit| bytes as u64 <= limit)
    }

    /// Gives whole free blocks back, and their addresses where there is a limit. The caller holds the lock for it.
    fn release_alone(&self, keep: u32) -> u64 {
        let limited = self.lock().look_at_limit().is_some();
        let mut bytes = 0;
        loop {
            let mut blocks = [0; BATCH];
            let mut stock = self.lock();
            let surplus = stock.whole_blocks().saturating_sub(keep) as usize;
            let wanted = &mut blocks[..surplus.min(BATCH)];
            let mut count = 0;
            for block in wanted {
                let Some(first) = stock.take_open(BLOCK_ORDER, RUN, false) else {
                    break;
                };
                *block = first;
                count += 1;
            }
            drop(stock);
            if count == 0 {
                break;
            }
            self.give_back(&blocks[..count], limited);
            bytes += count as u64 * u64::from(BLOCK) * FRAME_BYTES as u64;
        }
        if limited {
            self.close_released();
        }
        bytes
    }

    /// Closes the blocks that the system has back and that are mapped still, from before there was a limit.
    fn close_released(&self) {
        let mut below = usize::MAX;
        loop {
            let mut blocks = [0; BATCH];
            let mut count = 0;
            let mut stock = self.lock();
            while count < BATCH
                && let Some(first) = stock.released.take_mapped(&mut below)
            {
                blocks[count] = first;
                count += 1;
            }
            drop(stock);
            // Where one cannot be closed, others hardly can.
            if count == 0 || !self.give_back(&blocks[..count], true) {
                return;
            }
        }
    }

    /// Gives blocks that the caller took back to the system, with their addresses or without. False, if addresses are left.
    fn give_back(&self, blocks: &[u32], addresses: bool) -> bool {
        // Closed, and without memory.
        let mut are = [(false, false); BATCH];
        for (&first, (closed, empty)) in blocks.iter().zip(&mut are) {
            *closed = addresses && self.window.close(first, BLOCK);
            *empty = *closed || self.window.release(first, BLOCK);
        }
        let mut stock = self.lock();
        for (&first, &(closed, empty)) in blocks.iter().zip(&are) {
            stock.released.put(first, closed);
            if empty {
                stock.touched.clear(first, BLOCK);
            }
        }
        are[..blocks.len()].iter().all(|(closed, _)| *closed)
    }
}
