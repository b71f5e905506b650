//! What a `Local` keeps: an array for each type and each frequent order, in words that others can read.
//!
//! Invariant: whoever calls a method of [`Shelf`] is the one who may touch it, by the [`Door`](crate::local::door::Door) of
//! its slot. So all accesses are relaxed: plain moves.

use crate::frame::{Order, Pfn};
use crate::maps::{BLOCK_ORDER, TYPES};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Single frames that an array keeps at most.
pub const SINGLES: usize = 128;
/// Blocks that are given at a time, at most.
pub(crate) const DRAIN: usize = SINGLES / 4 * 3;
/// Blocks of orders 1 to 3 that an array keeps at most.
pub(crate) const SMALL: usize = 32;
/// Blocks of order 9 that an array keeps at most.
pub(crate) const HUGE: usize = 16;
/// Single frames of other nodes that are kept until they go back.
const FAR: usize = 32;
/// Orders 1 up to this one are kept.
const LAST_SMALL: u8 = 3;
const SMALL_ORDERS: usize = LAST_SMALL as usize;

/// First frames of blocks. Content beyond the lengths means nothing.
#[derive(FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Arrays {
    singles: [[AtomicU64; SINGLES]; TYPES],
    huge: [[AtomicU64; HUGE]; TYPES],
    small: [[[AtomicU64; SMALL]; SMALL_ORDERS]; TYPES],
    /// Single frames of other nodes, on their way back.
    far: [[AtomicU64; FAR]; TYPES],
}

/// How many there are in each array.
#[derive(FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Lens {
    singles: [AtomicU32; TYPES],
    huge: [AtomicU32; TYPES],
    small: [[AtomicU32; SMALL_ORDERS]; TYPES],
    far: [AtomicU32; TYPES],
}

impl Lens {
    /// Frames that are kept; for others a number that is out of date if the owner works.
    pub fn frames(&self) -> u64 {
        let sum = |lens: &[AtomicU32], order: Order| {
            let blocks = lens.iter().map(|n| u64::from(n.load(Relaxed)));
            blocks.sum::<u64>() << order.0
        };
        let small = self.small.iter().flat_map(|of_type| (1..).zip(of_type));
        let small = small.map(|(order, n)| sum(core::slice::from_ref(n), Order(order)));
        let singles = sum(&self.singles, Order::ZERO) + sum(&self.far, Order::ZERO);
        singles + sum(&self.huge, BLOCK_ORDER) + small.sum::<u64>()
    }
}

/// Blocks of an order that are kept, where single frames are kept up to `limit`.
#[inline]
pub(crate) fn room(order: Order, limit: u32) -> u32 {
    match order {
        Order::ZERO => limit,
        BLOCK_ORDER => limit / (SINGLES / HUGE) as u32,
        _ => limit / (SINGLES / SMALL) as u32,
    }
}

/// Blocks that an empty array is refilled with: half of what is kept. Of order 9, as few are kept, it is all that leaves room
/// for some that come back before they have to be given back.
pub(crate) fn batch(order: Order, limit: u32) -> usize {
    match order {
        BLOCK_ORDER => surplus(order, limit),
        _ => (room(order, limit) / 2).max(1) as usize,
    }
}

/// Blocks that a full array is drained of: three quarters. A quarter, which came last and may be in the CPU's cache, stays. Of
/// order 9, which is larger than that, an eighth is enough.
pub(crate) fn surplus(order: Order, limit: u32) -> usize {
    let room = room(order, limit);
    let stay = if order == BLOCK_ORDER { 8 } else { 4 };
    (room - room / stay).max(1) as usize
}

/// An array of any length: the last one in is the first one out.
#[derive(Clone, Copy)]
pub(crate) struct Shelf<'a> {
    len: &'a AtomicU32,
    of: &'a [AtomicU64],
}

impl<'a> Shelf<'a> {
    /// The orders that are kept.
    pub fn orders() -> impl Iterator<Item = Order> {
        (0..=LAST_SMALL).map(Order).chain([BLOCK_ORDER])
    }

    #[inline(always)]
    pub fn singles(lens: &'a Lens, arrays: &'a Arrays, t: usize) -> Shelf<'a> {
        let (len, of) = (&lens.singles[t], &arrays.singles[t]);
        Shelf { len, of }
    }

    #[inline(always)]
    pub fn huge(lens: &'a Lens, arrays: &'a Arrays, t: usize) -> Shelf<'a> {
        let (len, of) = (&lens.huge[t], &arrays.huge[t]);
        Shelf { len, of }
    }

    /// Single frames of other nodes.
    pub fn far(lens: &'a Lens, arrays: &'a Arrays, t: usize) -> Shelf<'a> {
        let (len, of) = (&lens.far[t], &arrays.far[t]);
        Shelf { len, of }
    }

    /// The array of an order and a type, if the order is kept.
    pub fn of(lens: &'a Lens, arrays: &'a Arrays, order: Order, t: usize) -> Option<Shelf<'a>> {
        match order {
            Order::ZERO => Some(Self::singles(lens, arrays, t)),
            Order(o @ 1..=LAST_SMALL) => {
                let o = usize::from(o) - 1;
                let (len, of) = (&lens.small[t][o], &arrays.small[t][o]);
                Some(Shelf { len, of })
            }
            BLOCK_ORDER => Some(Self::huge(lens, arrays, t)),
            _ => None,
        }
    }

    /// How many there are.
    pub fn len(self) -> usize {
        // No word that anybody else wrote can lead beyond the array.
        (self.len.load(Relaxed) as usize).min(self.of.len())
    }

    fn set_len(self, len: usize) {
        self.len.store(len as u32, Relaxed);
    }

    #[inline(always)]
    pub fn pop(self) -> Option<Pfn> {
        let last = self.len.load(Relaxed).wrapping_sub(1);
        let word = self.of.get(last as usize)?;
        self.len.store(last, Relaxed);
        Some(Pfn(word.load(Relaxed)))
    }

    /// Puts a block on the array; false, if it has `limit` of them, if it is there as the last one, or, now and then, without a
    /// reason.
    #[inline(always)]
    pub fn push_quick(self, block: Pfn, limit: u32) -> bool {
        let at = self.len.load(Relaxed);
        if at >= limit {
            return false;
        }
        let Some(word) = self.of.get(at as usize) else {
            return false;
        };
        // No branch: where nothing is kept, it is compared with the last place of the array, whatever is there.
        let last = at.wrapping_sub(1) as usize % self.of.len();
        if self.of[last].load(Relaxed) == block.0 {
            return false;
        }
        word.store(block.0, Relaxed);
        self.len.store(at + 1, Relaxed);
        true
    }

    /// Puts a block on the array; false, if it has `limit` of them, or if it is there as the last one.
    pub fn push(self, block: Pfn, limit: u32) -> bool {
        let at = self.len.load(Relaxed);
        if at >= limit || self.is_last(block) {
            return false;
        }
        let Some(word) = self.of.get(at as usize) else {
            return false;
        };
        word.store(block.0, Relaxed);
        self.len.store(at + 1, Relaxed);
        true
    }

    /// Whether a block is there as the last one.
    pub fn is_last(self, block: Pfn) -> bool {
        let last = self.len.load(Relaxed).wrapping_sub(1);
        let word = self.of.get(last as usize);
        word.is_some_and(|w| w.load(Relaxed) == block.0)
    }

    pub fn contains(self, block: Pfn) -> bool {
        let mut all = self.of[..self.len()].iter();
        all.any(|w| w.load(Relaxed) == block.0)
    }

    /// Puts blocks on an array that is empty, as many as there is room for; the first one is handed out next.
    #[inline(always)]
    pub fn fill(self, blocks: &[u64]) {
        let len = blocks.len().min(self.of.len());
        self.set_len(len);
        let (of, blocks) = (&self.of[..len], &blocks[..len]);
        // By numbers, so that several are moved at a time.
        for i in 0..len {
            of[len - 1 - i].store(blocks[i], Relaxed);
        }
    }

    /// Takes up to [`DRAIN`] of those off that came last.
    pub fn take_last(self, out: &mut [u64; DRAIN]) -> &mut [u64] {
        let len = self.len();
        let left = len.saturating_sub(DRAIN);
        let out = &mut out[..len - left];
        for (to, word) in out.iter_mut().zip(&self.of[left..]) {
            *to = word.load(Relaxed);
        }
        self.set_len(left);
        out
    }

    /// Takes `goes` of those off that came first. Returns them, and copies of the rest, in `out`, which has room for all.
    pub fn take_first<const N: usize>(
        self,
        goes: usize,
        out: &mut [u64; N],
    ) -> (&mut [u64], &mut [u64]) {
        let out = &mut out[..self.len()];
        for (to, word) in out.iter_mut().zip(self.of) {
            *to = word.load(Relaxed);
        }
        let (first, rest) = out.split_at_mut(goes.min(out.len()));
        for (to, &mut n) in self.of.iter().zip(&mut *rest) {
            to.store(n, Relaxed);
        }
        self.set_len(rest.len());
        (first, rest)
    }

    /// Takes those off that are among some others. Returns one of them.
    #[cold]
    pub fn forget(self, others: &[u64]) -> Option<Pfn> {
        let (mut left, mut twin) = (0, None);
        for word in &self.of[..self.len()] {
            let n = word.load(Relaxed);
            if others.contains(&n) {
                twin = twin.or(Some(Pfn(n)));
            } else {
                self.of[left].store(n, Relaxed);
                left += 1;
            }
        }
        self.set_len(left);
        twin
    }
}
