//! [`Door`]: who may touch what a CPU keeps: its owner, who pays no locked instruction for it, or one other, who drains it.
//!
//! The owner writes that it is inside, then looks at the gate; both are plain moves. Who drains shuts the gate, has each CPU
//! execute a full barrier ([`Barrier`](crate::local::Barrier)), and then looks whether the owner is inside.
//! The barrier lies either before the owner's look, which finds the gate shut then, or behind the owner's write, which is
//! seen then. So the costs of the meeting are the drainer's, who comes seldom.
//!
//! Invariants: nobody waits for the other: an owner at a shut gate goes another way, a drainer leaves an owner alone that is
//! inside. A gate is opened again by the one who shut it.

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU32, compiler_fence};

/// A word of a door. The model checkers have words of their own.
pub(crate) trait Word {
    /// Keeps the compiler from moving accesses across it. For the processor that is the drainer's affair.
    fn light_fence();
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, value: u32, order: Ordering);
    fn swap_if(&self, from: u32, to: u32, order: Ordering) -> Result<u32, u32>;
}

/// A place where another thread may go on, under shuttle.
#[inline(always)]
fn point() {
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
}

impl Word for AtomicU32 {
    #[inline(always)]
    fn light_fence() {
        compiler_fence(SeqCst);
    }
    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        point();
        AtomicU32::load(self, order)
    }
    #[inline(always)]
    fn store(&self, value: u32, order: Ordering) {
        point();
        AtomicU32::store(self, value, order);
    }
    #[inline(always)]
    fn swap_if(&self, from: u32, to: u32, order: Ordering) -> Result<u32, u32> {
        point();
        self.compare_exchange(from, to, order, Relaxed)
    }
}

// What a gate says. Open, it is the number of single frames that an array may keep: 1 to 255.
/// It is nobody's, and no one drains it.
const NOBODYS: u32 = 0;
/// Open, but the owner is to give back what it keeps.
const CALLED: u32 = 1 << 8;
/// Somebody drains it.
const SHUT: u32 = 1 << 9;
/// Beside `SHUT`: it is nobody's.
const LEFT: u32 = 1 << 10;
const LIMIT: u32 = 0xff;

/// The door of one slot: two words that lie in it.
pub(crate) struct Door<'a, W> {
    pub gate: &'a W,
    pub busy: &'a W,
}

// By hand: a word itself cannot be copied.
impl<W> Copy for Door<'_, W> {}
impl<W> Clone for Door<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

/// The owner is inside until this is dropped.
pub(crate) struct Inside<'a, W: Word> {
    door: Door<'a, W>,
    gate: u32,
}

impl<'a, W: Word> Door<'a, W> {
    /// Becomes the door of an owner; false, if it is another one's.
    pub fn claim(self, limit: u32) -> bool {
        loop {
            let gate = self.gate.load(Relaxed);
            let to = match gate {
                NOBODYS => limit,
                // It opens when it is drained.
                _ if gate == SHUT | LEFT => SHUT,
                _ => return false,
            };
            // Acquire pairs with the release in `leave` and `open`: what was written there comes before what this owner does.
            if self.gate.swap_if(gate, to, Acquire).is_ok() {
                return true;
            }
        }
    }

    /// Is the owner's no more.
    pub fn leave(self) {
        loop {
            let gate = self.gate.load(Relaxed);
            let to = if gate & SHUT == 0 {
                NOBODYS
            } else {
                SHUT | LEFT
            };
            // Pairs with the acquire in `claim` and `shut`.
            if self.gate.swap_if(gate, to, Release).is_ok() {
                return;
            }
        }
    }

    /// The owner goes in, unless the gate is shut.
    #[inline(always)]
    pub fn enter(self) -> Option<Inside<'a, W>> {
        let inside = self.look_in();
        if inside.gate & SHUT == 0 {
            Some(inside)
        } else {
            None
        }
    }

    /// The owner goes in, whatever the gate says: it may touch something only if the [limit](Inside::limit) is not 0. So one
    /// look at the limit is enough for who has to look at it anyway.
    #[inline(always)]
    pub fn look_in(self) -> Inside<'a, W> {
        // Relaxed: that it is seen before the gate is looked at, the drainer's barrier ensures.
        self.busy.store(1, Relaxed);
        W::light_fence();
        // Acquire pairs with the release in `open`: what a drainer did is seen.
        let gate = self.gate.load(Acquire);
        Inside { door: self, gate }
    }

    /// Shuts the gate, so that the caller may drain, after each CPU has executed a full barrier, what the owner is not
    /// [inside](Self::owner_inside) of; or at once, if the caller is the owner. False, if somebody drains it already.
    pub fn shut(self) -> bool {
        loop {
            let gate = self.gate.load(Relaxed);
            let to = match gate {
                NOBODYS => SHUT | LEFT,
                _ if gate & SHUT != 0 => return false,
                _ => SHUT,
            };
            // Acquire pairs with the release in `open` and `leave`: what the last one wrote who drained it, or had it, is seen.
            if self.gate.swap_if(gate, to, Acquire).is_ok() {
                return true;
            }
        }
    }

    /// Whether the owner was inside when the gate was shut.
    pub fn owner_inside(self) -> bool {
        // Acquire pairs with the release in `Inside`: all that the owner did is seen.
        self.busy.load(Acquire) != 0
    }

    /// Opens the gate that the caller has shut.
    pub fn open(self, limit: u32) {
        loop {
            let gate = self.gate.load(Relaxed);
            let to = if gate & LEFT == 0 { limit } else { NOBODYS };
            // Pairs with the acquire in `enter`, `shut` and `claim`.
            if self.gate.swap_if(gate, to, Release).is_ok() {
                return;
            }
        }
    }

    /// Opens the gate that the caller has shut, and has the owner give back what it keeps. False, and it is shut still, if the
    /// owner has left: then nobody is inside, and the caller may drain.
    pub fn open_and_call(self) -> bool {
        loop {
            // Acquire pairs with the release in `leave`: what the owner did is seen.
            let gate = self.gate.load(Acquire);
            if gate & LEFT != 0 {
                return false;
            }
            // Pairs with the acquire in `enter`, `shut` and `claim`.
            if self.gate.swap_if(gate, CALLED, Release).is_ok() {
                return true;
            }
        }
    }

    /// Has the owner give back what it keeps, at its next free.
    pub fn call(self) {
        let gate = self.gate.load(Relaxed);
        if (1..=LIMIT).contains(&gate) {
            // Relaxed, and once: a call that is lost, or heard in vain, costs nothing but a flush.
            let _ = self.gate.swap_if(gate, CALLED, Relaxed);
        }
    }
}

impl<W: Word> Inside<'_, W> {
    /// How many single frames an array may keep; none, if the owner is called home, or the gate is shut.
    #[inline(always)]
    pub fn limit(&self) -> u32 {
        self.gate & LIMIT
    }

    /// The owner has given back what it kept.
    pub fn answer(&self, limit: u32) {
        // Relaxed: it orders nothing. Who has shut the gate meanwhile opens it.
        let _ = self.door.gate.swap_if(CALLED, limit, Relaxed);
    }
}

impl<W: Word> Drop for Inside<'_, W> {
    #[inline(always)]
    fn drop(&mut self) {
        // Pairs with the acquire in `owner_inside`.
        self.door.busy.store(0, Release);
    }
}

#[cfg(all(test, loom))]
mod loom_tests;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn with(f: impl FnOnce(Door<'_, AtomicU32>)) {
        let (gate, busy) = (AtomicU32::new(0), AtomicU32::new(0));
        let (gate, busy) = (&gate, &busy);
        f(Door { gate, busy });
    }

    #[test]
    fn a_door_has_one_owner_and_one_who_drains() {
        with(|d| {
            assert!(d.claim(128) && !d.claim(64));
            assert!(d.shut() && !d.shut());
            assert!(d.enter().is_none() && !d.owner_inside());
            assert_eq!(d.look_in().limit(), 0);
            d.open(128);
            assert_eq!(d.enter().map(|i| i.limit()), Some(128));
            d.leave();
            assert!(d.claim(64));
        });
    }

    #[test]
    fn an_owner_that_is_inside_is_seen() {
        with(|d| {
            assert!(d.claim(128));
            let inside = d.enter();
            assert!(inside.is_some() && d.owner_inside() && d.shut() && d.owner_inside());
            drop(inside);
            assert!(!d.owner_inside());
        });
    }

    #[test]
    fn who_leaves_while_it_is_drained_leaves_it_to_nobody() {
        with(|d| {
            assert!(d.claim(128) && d.shut());
            d.leave();
            d.open(128);
            assert!(d.shut(), "what nobody has can be drained");
            assert!(d.claim(64), "and claimed meanwhile");
            assert!(d.enter().is_none());
            d.leave();
            assert!(
                !d.open_and_call() && !d.shut(),
                "nobody is there to be called"
            );
            assert!(d.claim(64));
            d.open(64);
            assert_eq!(d.enter().map(|i| i.limit()), Some(64));
        });
    }

    #[test]
    fn a_call_is_heard_once_and_never_opens_a_gate() {
        with(|d| {
            d.call();
            assert!(d.claim(128), "nobody was called");
            d.call();
            let inside = d.enter().expect("it is open");
            assert_eq!(inside.limit(), 0);
            assert!(d.shut());
            inside.answer(128);
            drop(inside);
            d.call();
            assert!(d.enter().is_none(), "it is shut still");
            assert!(d.open_and_call());
            let inside = d.enter().expect("it is open");
            inside.answer(128);
            drop(inside);
            assert_eq!(d.enter().map(|i| i.limit()), Some(128));
        });
    }
}
