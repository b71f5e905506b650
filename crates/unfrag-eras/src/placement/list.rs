//! Doubly linked lists of frames, threaded through the frame table.
//!
//! Invariant: a frame is on at most one list; `len` is the number of frames reachable from `head`.

use crate::frame::{FrameIx, Table};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// A list of blocks; the head is the next to be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct List {
    pub head: FrameIx,
    pub tail: FrameIx,
    pub len: u32,
}

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Head,
    Tail,
}

impl End {
    /// The tail if `tail`, else the head.
    #[inline]
    pub const fn tail_if(tail: bool) -> End {
        if tail { End::Tail } else { End::Head }
    }
}

/// Links that do not agree, by the frame at which that was found.
pub(crate) struct BadLink(pub FrameIx);

impl List {
    pub const EMPTY: List = List {
        head: FrameIx::NIL,
        tail: FrameIx::NIL,
        len: 0,
    };

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn push_head(&mut self, table: Table, ix: FrameIx) {
        table.set_prev(ix, FrameIx::NIL);
        table.set_next(ix, self.head);
        if self.head == FrameIx::NIL {
            self.tail = ix;
        } else {
            table.set_prev(self.head, ix);
        }
        self.head = ix;
        self.len += 1;
    }

    #[inline]
    pub fn push_tail(&mut self, table: Table, ix: FrameIx) {
        table.set_next(ix, FrameIx::NIL);
        table.set_prev(ix, self.tail);
        if self.tail == FrameIx::NIL {
            self.head = ix;
        } else {
            table.set_next(self.tail, ix);
        }
        self.tail = ix;
        self.len += 1;
    }

    #[inline]
    pub fn push(&mut self, table: Table, ix: FrameIx, end: End) {
        match end {
            End::Head => self.push_head(table, ix),
            End::Tail => self.push_tail(table, ix),
        }
    }

    /// Takes `ix`, which must be on this list, off it.
    #[inline]
    pub fn unlink(&mut self, table: Table, ix: FrameIx) {
        let (next, prev) = (table.next(ix), table.prev(ix));
        if prev == FrameIx::NIL {
            self.head = next;
        } else {
            table.set_next(prev, next);
        }
        if next == FrameIx::NIL {
            self.tail = prev;
        } else {
            table.set_prev(next, prev);
        }
        self.len -= 1;
    }

    #[inline]
    pub fn pop_head(&mut self, table: Table) -> Option<FrameIx> {
        let ix = self.head;
        if ix == FrameIx::NIL {
            return None;
        }
        self.head = table.next(ix);
        if self.head == FrameIx::NIL {
            self.tail = FrameIx::NIL;
        } else {
            table.set_prev(self.head, FrameIx::NIL);
        }
        self.len -= 1;
        Some(ix)
    }

    /// The block at an end.
    #[inline]
    pub fn peek(&self, end: End) -> Option<FrameIx> {
        let ix = match end {
            End::Head => self.head,
            End::Tail => self.tail,
        };
        (ix != FrameIx::NIL).then_some(ix)
    }

    #[inline]
    pub fn pop_tail(&mut self, table: Table) -> Option<FrameIx> {
        let ix = self.tail;
        if ix == FrameIx::NIL {
            return None;
        }
        self.unlink(table, ix);
        Some(ix)
    }

    /// Puts the blocks of another list behind those of this one, in their order.
    pub fn append(&mut self, table: Table, other: List) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other;
            return;
        }
        table.set_next(self.tail, other.head);
        table.set_prev(other.head, self.tail);
        self.tail = other.tail;
        self.len += other.len;
    }

    /// Moves the blocks up to and with `ix`, which must be on this list, to its end, in their order.
    pub fn rotate_behind(&mut self, table: Table, ix: FrameIx) {
        let next = table.next(ix);
        if next == FrameIx::NIL {
            return;
        }
        table.set_next(self.tail, self.head);
        table.set_prev(self.head, self.tail);
        table.set_next(ix, FrameIx::NIL);
        table.set_prev(next, FrameIx::NIL);
        (self.head, self.tail) = (next, ix);
    }

    /// Moves the blocks before `ix`, which must be on this list, to its end, in their order.
    pub fn rotate_to(&mut self, table: Table, ix: FrameIx) {
        let prev = table.prev(ix);
        if prev != FrameIx::NIL {
            self.rotate_behind(table, prev);
        }
    }

    /// The blocks from head to tail.
    pub fn iter<'a>(&self, table: Table<'a>) -> impl Iterator<Item = FrameIx> + use<'a> {
        let on_list = |ix: FrameIx| (ix != FrameIx::NIL).then_some(ix);
        core::iter::successors(on_list(self.head), move |&ix| on_list(table.next(ix)))
    }

    /// The blocks from tail to head.
    pub fn iter_back<'a>(&self, table: Table<'a>) -> impl Iterator<Item = FrameIx> + use<'a> {
        let on_list = |ix: FrameIx| (ix != FrameIx::NIL).then_some(ix);
        core::iter::successors(on_list(self.tail), move |&ix| on_list(table.prev(ix)))
    }

    /// Checks links, ends and length; `visit` is asked about each block.
    pub fn validate<E: From<BadLink>>(
        &self,
        table: Table,
        mut visit: impl FnMut(FrameIx) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut n, mut prev, mut at) = (0, FrameIx::NIL, self.head);
        while at != FrameIx::NIL {
            if table.prev(at) != prev || n >= self.len {
                return Err(BadLink(at).into());
            }
            visit(at)?;
            n += 1;
            (prev, at) = (at, table.next(at));
        }
        if n != self.len || prev != self.tail {
            return Err(BadLink(self.head).into());
        }
        Ok(())
    }
}
