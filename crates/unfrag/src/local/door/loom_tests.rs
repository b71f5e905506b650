//! Every order in which an owner and those who drain can meet. The barrier that a drainer brings to all CPUs is a fence on
//! both sides here.

use super::*;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32 as Checked, fence};
use std::vec::Vec;

impl Word for Checked {
    fn light_fence() {
        fence(SeqCst);
    }
    fn load(&self, order: Ordering) -> u32 {
        Checked::load(self, order)
    }
    fn store(&self, value: u32, order: Ordering) {
        Checked::store(self, value, order);
    }
    fn swap_if(&self, from: u32, to: u32, order: Ordering) -> Result<u32, u32> {
        self.compare_exchange(from, to, order, Relaxed)
    }
}

const LIMIT: u32 = 128;

/// A slot with an array of two frames, numbered from 1; and who has each frame.
struct Slot {
    gate: Checked,
    busy: Checked,
    len: Checked,
    of: [Checked; 2],
    had: [Checked; 3],
}

impl Slot {
    fn new(kept: u32) -> Arc<Slot> {
        let slot = Slot {
            gate: Checked::new(0),
            busy: Checked::new(0),
            len: Checked::new(kept),
            of: [Checked::new(1), Checked::new(2)],
            had: Default::default(),
        };
        assert!(slot.door().claim(LIMIT));
        Arc::new(slot)
    }

    fn door(&self) -> Door<'_, Checked> {
        Door {
            gate: &self.gate,
            busy: &self.busy,
        }
    }

    /// Somebody has a frame, whom nobody else may have it beside.
    fn have(&self, frame: u32) {
        let had = self.had[frame as usize - 1].swap(1, Relaxed);
        assert_eq!(had, 0, "frame {frame} has two owners");
    }

    fn pop(&self) -> Option<u32> {
        let last = self.len.load(Relaxed).checked_sub(1)?;
        let frame = self.of[last as usize].load(Relaxed);
        self.len.store(last, Relaxed);
        Some(frame)
    }

    fn push(&self, frame: u32) {
        let len = self.len.load(Relaxed);
        self.of[len as usize].store(frame, Relaxed);
        self.len.store(len + 1, Relaxed);
    }

    fn take(&self) -> Option<u32> {
        let _inside = self.door().enter()?;
        self.pop()
    }

    fn drain(&self) {
        if !self.door().shut() {
            return;
        }
        fence(SeqCst);
        if !self.door().owner_inside() {
            while let Some(frame) = self.pop() {
                self.have(frame);
            }
        }
        self.door().open(LIMIT);
    }

    /// Frames that somebody has, or that are kept.
    fn all(&self) -> u32 {
        let had = self.had.iter().map(|h| h.load(Relaxed));
        had.sum::<u32>() + self.len.load(Relaxed)
    }
}

fn run(own: fn(&Slot), other: fn(&Slot), others: usize, frames: u32) {
    loom::model(move || {
        let slot = Slot::new(2);
        let others: Vec<_> = (0..others)
            .map(|_| {
                let slot = slot.clone();
                loom::thread::spawn(move || other(&slot))
            })
            .collect();
        own(&slot);
        for t in others {
            t.join().expect("no panic");
        }
        assert_eq!(slot.all(), frames);
        // Whatever happened, the slot is nobody's, or open and empty of people.
        assert!(!slot.door().owner_inside());
        assert!(slot.door().shut(), "no gate stays shut");
    });
}

/// Takes one and gives another one back.
fn takes_and_gives(slot: &Slot) {
    if let Some(frame) = slot.take() {
        slot.have(frame);
    }
    match slot.door().enter() {
        Some(_inside) if slot.len.load(Relaxed) < 2 => slot.push(3),
        _ => slot.have(3),
    }
}

#[test]
fn a_frame_is_taken_by_the_owner_or_drained() {
    run(takes_and_gives, Slot::drain, 1, 3);
}

/// The same, where the limit says whether it may give.
#[test]
fn a_frame_is_given_within_the_limit_or_elsewhere() {
    let gives = |slot: &Slot| {
        if let Some(frame) = slot.take() {
            slot.have(frame);
        }
        let inside = slot.door().look_in();
        if slot.len.load(Relaxed) < inside.limit().min(2) {
            slot.push(3);
        } else {
            slot.have(3);
        }
    };
    run(gives, Slot::drain, 1, 3);
}

#[test]
fn two_drain_what_the_owner_takes_from() {
    let takes = |slot: &Slot| {
        if let Some(frame) = slot.take() {
            slot.have(frame);
        }
    };
    run(takes, Slot::drain, 2, 2);
}

#[test]
fn the_owner_flushes_and_leaves_while_it_is_drained() {
    let ends = |slot: &Slot| {
        if slot.door().shut() {
            while let Some(frame) = slot.pop() {
                slot.have(frame);
            }
            slot.door().open(LIMIT);
        }
        slot.door().leave();
    };
    run(ends, Slot::drain, 1, 2);
}

#[test]
fn the_next_owner_finds_what_the_last_one_and_a_drainer_left() {
    let ends = |slot: &Slot| {
        slot.door().leave();
        assert!(slot.door().claim(LIMIT));
        if let Some(frame) = slot.take() {
            slot.have(frame);
        }
    };
    run(ends, Slot::drain, 1, 2);
}

#[test]
fn a_call_opens_no_gate() {
    let answers = |slot: &Slot| {
        if let Some(inside) = slot.door().enter() {
            if inside.limit() == 0 {
                inside.answer(LIMIT);
            }
            if let Some(frame) = slot.pop() {
                slot.have(frame);
            }
        }
    };
    let calls = |slot: &Slot| {
        slot.door().call();
        slot.drain();
    };
    run(answers, calls, 1, 2);
}
