//! Doubly linked lists of frames, threaded through the frame table.
//!
//! Invariant: a frame is on at most one list; `len` is the number of frames reachable from `head`.

use crate::frame::{FrameMeta, Ix, NIL};
use bytemuck::{Pod, Zeroable};

/// A list of blocks; the head is the next to be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct List {
    pub head: Ix,
    pub tail: Ix,
    pub len: u32,
}

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Head,
    Tail,
}

impl End {
    /// The tail, or else the head.
    #[inline]
    pub const fn tail_if(tail: bool) -> End {
        if tail { End::Tail } else { End::Head }
    }
}

impl List {
    pub const EMPTY: List = List {
        head: NIL,
        tail: NIL,
        len: 0,
    };

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn push_head(&mut self, meta: &mut [FrameMeta], ix: Ix) {
        let e = &mut meta[ix as usize];
        e.prev = NIL;
        e.next = self.head;
        if self.head == NIL {
            self.tail = ix;
        } else {
            meta[self.head as usize].prev = ix;
        }
        self.head = ix;
        self.len += 1;
    }

    #[inline]
    pub fn push_tail(&mut self, meta: &mut [FrameMeta], ix: Ix) {
        let e = &mut meta[ix as usize];
        e.next = NIL;
        e.prev = self.tail;
        if self.tail == NIL {
            self.head = ix;
        } else {
            meta[self.tail as usize].next = ix;
        }
        self.tail = ix;
        self.len += 1;
    }

    #[inline]
    pub fn push(&mut self, meta: &mut [FrameMeta], ix: Ix, end: End) {
        match end {
            End::Head => self.push_head(meta, ix),
            End::Tail => self.push_tail(meta, ix),
        }
    }

    /// Takes `ix`, which must be on this list, off it.
    #[inline]
    pub fn unlink(&mut self, meta: &mut [FrameMeta], ix: Ix) {
        let (next, prev) = (meta[ix as usize].next, meta[ix as usize].prev);
        if prev == NIL {
            self.head = next;
        } else {
            meta[prev as usize].next = next;
        }
        if next == NIL {
            self.tail = prev;
        } else {
            meta[next as usize].prev = prev;
        }
        self.len -= 1;
    }

    #[inline]
    pub fn pop_head(&mut self, meta: &mut [FrameMeta]) -> Option<Ix> {
        let ix = self.head;
        if ix == NIL {
            return None;
        }
        self.head = meta[ix as usize].next;
        match meta.get_mut(self.head as usize) {
            Some(next) => next.prev = NIL,
            None => self.tail = NIL,
        }
        self.len -= 1;
        Some(ix)
    }

    /// The block at an end.
    #[inline]
    pub fn peek(&self, end: End) -> Option<Ix> {
        let ix = match end {
            End::Head => self.head,
            End::Tail => self.tail,
        };
        (ix != NIL).then_some(ix)
    }

    #[inline]
    pub fn pop_tail(&mut self, meta: &mut [FrameMeta]) -> Option<Ix> {
        let ix = self.tail;
        if ix == NIL {
            return None;
        }
        self.unlink(meta, ix);
        Some(ix)
    }

    /// The blocks from head to tail.
    pub fn iter<'a>(&self, meta: &'a [FrameMeta]) -> impl Iterator<Item = Ix> + use<'a> {
        self.iter_from(meta, self.head)
    }

    /// The blocks from `ix`, which is on this list or [`NIL`], to the tail.
    pub fn iter_from<'a>(
        &self,
        meta: &'a [FrameMeta],
        ix: Ix,
    ) -> impl Iterator<Item = Ix> + use<'a> {
        let next = |ix: &Ix| meta[*ix as usize].next;
        walk(ix, next)
    }

    /// The blocks from tail to head.
    pub fn iter_back<'a>(&self, meta: &'a [FrameMeta]) -> impl Iterator<Item = Ix> + use<'a> {
        let prev = |ix: &Ix| meta[*ix as usize].prev;
        walk(self.tail, prev)
    }
}

fn walk(from: Ix, step: impl Fn(&Ix) -> Ix) -> impl Iterator<Item = Ix> {
    let on_list = |ix: Ix| (ix != NIL).then_some(ix);
    core::iter::successors(on_list(from), move |ix| on_list(step(ix)))
}
