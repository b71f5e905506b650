//! Lists of slabs, linked through their records.
//!
//! Invariant: a record is on at most one list, the one that its `place` names.

use super::records::SlabRec;

/// No slab.
pub(super) const NONE: u32 = 0;

/// A list of slabs by number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlabList {
    head: u32,
    tail: u32,
    pub len: u32,
}

impl SlabList {
    pub fn first(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub fn push_front(&mut self, slabs: &mut [SlabRec], s: u32) {
        slabs[s as usize].prev = NONE;
        slabs[s as usize].next = self.head;
        match self.head {
            NONE => self.tail = s,
            head => slabs[head as usize].prev = s,
        }
        self.head = s;
        self.len += 1;
    }

    pub fn push_back(&mut self, slabs: &mut [SlabRec], s: u32) {
        slabs[s as usize].next = NONE;
        slabs[s as usize].prev = self.tail;
        match self.tail {
            NONE => self.head = s,
            tail => slabs[tail as usize].next = s,
        }
        self.tail = s;
        self.len += 1;
    }

    pub fn unlink(&mut self, slabs: &mut [SlabRec], s: u32) {
        let (prev, next) = (slabs[s as usize].prev, slabs[s as usize].next);
        match prev {
            NONE => self.head = next,
            p => slabs[p as usize].next = next,
        }
        match next {
            NONE => self.tail = prev,
            n => slabs[n as usize].prev = prev,
        }
        self.len -= 1;
    }

    pub fn pop_front(&mut self, slabs: &mut [SlabRec]) -> Option<u32> {
        let s = self.first()?;
        self.unlink(slabs, s);
        Some(s)
    }
}
