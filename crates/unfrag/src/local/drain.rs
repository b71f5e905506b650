//! Getting back what CPUs keep: for whoever finds nothing else.

use crate::error::AllocError;
use crate::frame::{MigrateType, Order, Pfn};
use crate::local::arrays::{DRAIN, Shelf};
use crate::local::slot::{Slot, Slots};
use crate::maps::{GiveError, TYPES};
use crate::memory::Memory;
use crate::memory::request::From;
use lock_api::RawMutex;

/// Slots that are drained with one barrier.
const GROUP: usize = 64;
/// How often it is looked whether an owner is inside still: a call that finds what it needs is over much sooner.
const LOOKS: u32 = 64;
/// How often a request drains, if others were inside of what they keep, before it fails.
const TRIES: u32 = 4;

/// What a drain came to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Drained {
    frames: u64,
    /// Somebody was inside of what he keeps, or drained it.
    missed: bool,
}

/// The gates of a group that this drain has shut, by their bits: however it ends, they are opened.
struct Gates<'m> {
    slots: Slots<'m>,
    first: usize,
    shut: u64,
}

impl<'m> Gates<'m> {
    /// One of the slots that are shut.
    fn next(&self) -> Option<(u32, Slot<'m>)> {
        let bit = (self.shut != 0).then(|| self.shut.trailing_zeros())?;
        Some((bit, self.slots.get(self.first + bit as usize)?))
    }

    fn open(&mut self, bit: u32, slot: Slot<'m>) {
        self.shut &= !(1 << bit);
        slot.door().open(self.slots.limit);
    }

    /// Opens one, and has its owner give back what it keeps. False, and it is shut still, if he has left it.
    fn call(&mut self, bit: u32, slot: Slot<'m>) -> bool {
        let is_called = slot.door().open_and_call();
        if is_called {
            self.shut &= !(1 << bit);
        }
        is_called
    }
}

impl Drop for Gates<'_> {
    fn drop(&mut self) {
        while let Some((bit, slot)) = self.next() {
            self.open(bit, slot);
        }
    }
}

impl<R: RawMutex> Memory<'_, R> {
    /// Gives back to the maps what all [`Local`](crate::local::Local)s keep, but for those whose CPUs are taking or giving at
    /// this moment. A request that finds nothing does so by itself; call it before something else looks for what is free,
    /// such as a whole block. Returns how many frames they kept.
    ///
    /// Without a [`barrier`](crate::MemoryConfig::barrier), or where it cannot be had now, nobody else can touch what a CPU
    /// keeps: each is told to give it back itself, at its next free.
    pub fn drain_locals(&self) -> u64 {
        self.drain().frames
    }

    pub(crate) fn drain(&self) -> Drained {
        let slots = self.slots();
        let mut sum = Drained::default();
        for first in (0..slots.used()).step_by(GROUP) {
            let group = self.drain_group(first);
            sum.frames += group.frames;
            sum.missed |= group.missed;
        }
        sum
    }

    fn drain_group(&self, first: usize) -> Drained {
        let slots = self.slots();
        let mut sum = Drained::default();
        let group = (0..GROUP).filter_map(|bit| Some((bit, slots.get(first + bit)?)));
        // Who is inside may be about to keep what he has just taken.
        let keeping = group.filter(|(_, slot)| slot.held() > 0 || slot.door().owner_inside());
        let Some(barrier) = slots.barrier else {
            keeping.for_each(|(_, slot)| slot.door().call());
            return sum;
        };
        let mut gates = Gates {
            slots,
            first,
            shut: 0,
        };
        for (bit, slot) in keeping {
            if slot.door().shut() {
                gates.shut |= 1 << bit;
            } else {
                sum.missed = true;
            }
        }
        if gates.shut == 0 {
            return sum;
        }
        // Pairs with the write of each owner that it is inside, which comes before its look at the gate.
        if !barrier.execute() {
            while let Some((bit, slot)) = gates.next() {
                if !gates.call(bit, slot) {
                    // Nobody is left to be called; and nobody is inside.
                    sum.frames += self.drain_slot(slot);
                    gates.open(bit, slot);
                }
            }
            return sum;
        }
        while let Some((bit, slot)) = gates.next() {
            if (0..LOOKS).all(|_| slot.door().owner_inside()) {
                sum.missed = true;
            } else {
                sum.frames += self.drain_slot(slot);
            }
            gates.open(bit, slot);
        }
        sum
    }

    /// Gives back all that is kept in a slot, whose gate the caller has shut, where nobody hears of an error. Returns how many
    /// frames it kept.
    fn drain_slot(&self, slot: Slot<'_>) -> u64 {
        let held = slot.held();
        if self.empty(slot).is_err() {
            self.count_refused();
        }
        held
    }

    /// Gives back all that is kept in a slot, whose gate the caller has shut.
    pub(crate) fn empty(&self, slot: Slot<'_>) -> Result<(), GiveError> {
        let mut result = Ok(());
        for (t, &mt) in MigrateType::ALL[..TYPES].iter().enumerate() {
            let kept = Shelf::orders().filter_map(|o| Some((o, slot.shelf(o, t)?)));
            for (order, shelf) in kept.chain([(Order::ZERO, slot.far(t))]) {
                let mut batch = [0; DRAIN];
                loop {
                    let some = shelf.take_last(&mut batch);
                    if some.is_empty() {
                        break;
                    }
                    result = result.and(self.give(some, order, mt));
                }
            }
        }
        result
    }

    /// Takes a block that was not there, once others have given back what they keep.
    ///
    /// # Errors
    /// `why`, or a later one, if there is none even so.
    pub(crate) fn take_drained(
        &self,
        order: Order,
        mt: MigrateType,
        from: From,
        why: AllocError,
    ) -> Result<Pfn, AllocError> {
        let mut got = Err(why);
        for n in 0..TRIES {
            if !matches!(got, Err(AllocError::Short | AllocError::Fragmented)) {
                break;
            }
            let drained = self.drain();
            got = self.take_frame(order, mt, from);
            if !drained.missed {
                break;
            }
            // What others carry comes soon.
            (0..LOOKS << n).for_each(|_| core::hint::spin_loop());
        }
        got
    }
}
