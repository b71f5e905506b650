//! The way of an allocation that finds nothing: reclaim, compaction, waiting.

use crate::calls;
use crate::events::Counter;
use crate::inner::Inner;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use unfrag::owners::{Reclaim, Turn, Want};
use unfrag::{AllocError, MigrateType, Order};

/// Frames that a direct reclaim asks for in addition to those that are missing.
const RECLAIM_BATCH: u64 = 32;
/// Rounds of reclaim and compaction with progress, before an allocation waits all the same.
const ROUNDS: u32 = 16;

impl Inner {
    /// Takes a block. If there is none, it reclaims and compacts, and waits for others to give frames back; but not for an
    /// owner that is being called.
    pub fn alloc(&self, order: Order, mt: MigrateType) -> Result<u32, AllocError> {
        match self.try_alloc(order, mt) {
            Err(AllocError::Short | AllocError::Fragmented) if !calls::is_inside() => {
                self.alloc_slow(order, mt)
            }
            done => done,
        }
    }

    #[cold]
    fn alloc_slow(&self, order: Order, mt: MigrateType) -> Result<u32, AllocError> {
        self.events.allocstall.add(1);
        let begin = Instant::now();
        let got = self.alloc_until(order, mt, begin.checked_add(self.settings.patience));
        self.events.stalls.add(begin.elapsed());
        got
    }

    /// Without a deadline it waits for ever.
    fn alloc_until(
        &self,
        order: Order,
        mt: MigrateType,
        deadline: Option<Instant>,
    ) -> Result<u32, AllocError> {
        let mut rounds: u32 = 0;
        loop {
            let why = match self.try_alloc(order, mt) {
                Err(why @ (AllocError::Short | AllocError::Fragmented)) => why,
                done => return done,
            };
            let progress = if why == AllocError::Fragmented {
                self.compact_direct(order)
            } else {
                let wanted = u64::from(order.frames()) + RECLAIM_BATCH;
                self.reclaim(Want::Frames(wanted), &self.events.pgsteal_direct) > 0
            };
            rounds = rounds.wrapping_add(1);
            if progress && !rounds.is_multiple_of(ROUNDS) {
                continue;
            }
            // Whatever others give back, there are not so many frames.
            let cannot_come = !self.base.memory.could_hold(order.frames().into());
            if cannot_come || deadline.is_some_and(|d| Instant::now() >= d) {
                return Err(why);
            }
            self.base.wait_for_frames();
        }
    }

    fn compact_direct(&self, order: Order) -> bool {
        self.events.compact_stall.add(1);
        let gained = self.compact_for(order);
        let outcome = if gained {
            &self.events.compact_success
        } else {
            &self.events.compact_fail
        };
        outcome.add(1);
        gained
    }

    /// Has owners let go of frames, until there is as much as is wanted, or nobody gives any, or the pool ends. Returns how
    /// many they say they gave back.
    pub fn reclaim(&self, want: Want, counter: &Counter) -> u64 {
        let mut reclaim = Reclaim::new(&self.base.memory.shared, &self.base.roster, want);
        while !self.stops.load(Relaxed)
            && let Turn::Ask { owner, frames } = reclaim.step()
        {
            // One that has been removed meanwhile gives nothing.
            let Some((owner, _calling)) = self.owners.begin(owner) else {
                continue;
            };
            let before = reclaim.got();
            // The owner is dropped within, as the pool may have ended meanwhile and this be the last of it.
            let ask = move || owner.reclaim(usize::try_from(frames).unwrap_or(usize::MAX));
            let gave = calls::call(&self.events.owner_panic, ask).unwrap_or(0);
            reclaim.answer(gave as u64);
            counter.add(reclaim.got() - before);
        }
        reclaim.got()
    }
}
