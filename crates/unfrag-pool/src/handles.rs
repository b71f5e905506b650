//! Where all movable blocks are, by the numbers of their handles.

use crate::word::Place;
use parking_lot::Mutex;
use std::sync::OnceLock;
use unfrag::owners::OwnerId;

/// The owner number of all handles.
pub(crate) const HANDLES: OwnerId = OwnerId(u16::MAX);

/// Places of a part of the table.
const PART: usize = 4096;
/// Parts of the table.
const PARTS: usize = 1 << 16;

/// Where all movable blocks are. A handle's tag is its number here.
pub(crate) struct Handles {
    parts: Box<[OnceLock<Box<[Place]>>]>,
    numbers: Mutex<Numbers>,
}

#[derive(Default)]
struct Numbers {
    free: Vec<u32>,
    next: u32,
}

impl Handles {
    pub fn new() -> Handles {
        Handles {
            parts: (0..PARTS).map(|_| OnceLock::new()).collect(),
            numbers: Mutex::default(),
        }
    }

    pub fn place(&self, tag: u32) -> &Place {
        let part = self.parts[tag as usize / PART]
            .get_or_init(|| (0..PART).map(|_| Place::new(0)).collect());
        &part[tag as usize % PART]
    }

    /// A number for a block at a frame; `None`, if there are no more.
    pub fn add(&self, frame: u32) -> Option<u32> {
        let tag = {
            let mut numbers = self.numbers.lock();
            match numbers.free.pop() {
                Some(tag) => tag,
                None if (numbers.next as usize) < PARTS * PART => {
                    numbers.next += 1;
                    numbers.next - 1
                }
                None => return None,
            }
        };
        self.place(tag).reset(frame);
        Some(tag)
    }

    /// Its block is no more: another one may have the number.
    pub fn remove(&self, tag: u32) {
        self.numbers.lock().free.push(tag);
    }

    /// Moves a block to another place, where `copy` copies it, unless it is held or elsewhere, or `copy` says no.
    pub fn migrate(&self, tag: u32, from: u32, to: u32, copy: impl FnOnce() -> bool) -> bool {
        let place = self.place(tag);
        if !place.begin_move(from) {
            return false;
        }
        let moved = copy();
        place.end_move(from, if moved { to } else { from });
        moved
    }
}
