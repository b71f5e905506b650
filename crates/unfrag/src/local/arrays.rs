//! What a `Local` keeps: an array for each type and each frequent order.

use crate::frame::Order;
use crate::maps::{BLOCK_ORDER, TYPES};

/// Single frames that an array keeps at most.
pub const SINGLES: usize = 128;
/// Blocks of orders 1 to 3 that an array keeps at most.
const SMALL: usize = 32;
/// Blocks of order 9 that an array keeps at most.
const HUGE: usize = 16;
/// Orders 1 up to this one are kept.
const LAST_SMALL: u8 = 3;

/// Block numbers, the last one to be handed out next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Array<const N: usize> {
    len: usize,
    shown: usize,
    of: [u32; N],
}

impl<const N: usize> Array<N> {
    const EMPTY: Array<N> = Array {
        len: 0,
        shown: 0,
        of: [0; N],
    };

    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        let last = self.len.checked_sub(1)?;
        self.len = last;
        self.of.get(last).copied()
    }

    /// Puts a block on the array; false, if it has `limit` of them, or if it is there as the last one.
    #[inline]
    pub fn push(&mut self, block: u32, limit: u32) -> bool {
        let at = self.len;
        if at >= limit as usize || self.of.get(at.wrapping_sub(1)) == Some(&block) {
            return false;
        }
        let Some(slot) = self.of.get_mut(at) else {
            return false;
        };
        *slot = block;
        self.len = at + 1;
        true
    }
}

/// An array of any length.
pub(crate) struct Kept<'a> {
    pub len: &'a mut usize,
    /// What others were told that the length is.
    shown: &'a mut usize,
    pub of: &'a mut [u32],
}

impl Kept<'_> {
    /// Takes those off the rest that are among the first `goes` as well: they were freed twice. Returns one of them.
    pub fn forget_twins(&mut self, goes: usize, order: Order) -> Option<u32> {
        let (first, rest) = self.of[..*self.len].split_at_mut(goes);
        // What is not set here is not among them. The bits that all blocks of an order share tell nothing.
        let mut bits = [0u64; 64];
        let place = |n: u32| ((n >> order.0) as usize / 64 % 64, (n >> order.0) % 64);
        for &n in &*first {
            let (word, bit) = place(n);
            bits[word] |= 1 << bit;
        }
        let is_twin = |n: u32| {
            let (word, bit) = place(n);
            bits[word] >> bit & 1 == 1 && first.contains(&n)
        };
        let twin = rest.iter().copied().find(|&n| is_twin(n))?;
        let mut left = 0;
        for i in 0..rest.len() {
            if !is_twin(rest[i]) {
                rest[left] = rest[i];
                left += 1;
            }
        }
        *self.len = goes + left;
        Some(twin)
    }

    /// By how much there is more than others were told, who are told now.
    pub fn show(&mut self) -> i32 {
        let shown = core::mem::replace(self.shown, *self.len);
        *self.len as i32 - shown as i32
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

/// Blocks that are refilled or drained at a time: half of what is kept.
pub(crate) fn batch(order: Order, limit: u32) -> usize {
    (room(order, limit) / 2).max(1) as usize
}

/// All arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrays {
    pub singles: [Array<SINGLES>; TYPES],
    pub huge: [Array<HUGE>; TYPES],
    small: [[Array<SMALL>; LAST_SMALL as usize]; TYPES],
}

impl Arrays {
    pub const EMPTY: Arrays = Arrays {
        singles: [Array::EMPTY; TYPES],
        huge: [Array::EMPTY; TYPES],
        small: [[Array::EMPTY; LAST_SMALL as usize]; TYPES],
    };

    /// The orders that are kept.
    pub fn orders() -> impl Iterator<Item = Order> {
        (0..=LAST_SMALL).map(Order).chain([BLOCK_ORDER])
    }

    /// The array of an order and a type, if the order is kept.
    pub fn of(&mut self, order: Order, mt: usize) -> Option<Kept<'_>> {
        fn kept<const N: usize>(a: &mut Array<N>) -> Kept<'_> {
            Kept {
                len: &mut a.len,
                shown: &mut a.shown,
                of: &mut a.of,
            }
        }
        match order {
            Order(0) => Some(kept(&mut self.singles[mt])),
            Order(o @ 1..=LAST_SMALL) => Some(kept(&mut self.small[mt][usize::from(o) - 1])),
            BLOCK_ORDER => Some(kept(&mut self.huge[mt])),
            _ => None,
        }
    }
}
