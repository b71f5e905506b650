//! The slots of a memory: what each `Local` keeps, in words that whoever is short of memory can drain.

use crate::frame::Order;
use crate::local::Barrier;
use crate::local::arrays::{Arrays, Lens, SINGLES, Shelf};
use crate::local::door::Door;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// What is looked at with each call: cache lines that the owner alone writes, but for the gate.
#[derive(FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Head {
    gate: AtomicU32,
    busy: AtomicU32,
    lens: Lens,
    pad: [u32; 12],
}

const _: () = assert!(
    size_of::<Head>() == 128 && size_of::<Arrays>().is_multiple_of(128),
    "two cache lines: they are fetched in pairs"
);

const HEAD_WORDS: usize = size_of::<Head>() / 8;
const ARRAYS_WORDS: usize = size_of::<Arrays>() / 8;

/// The slot of a [`Local`](crate::local::Local).
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a> {
    head: &'a Head,
    arrays: &'a Arrays,
}

impl<'a> Slot<'a> {
    #[inline(always)]
    pub fn door(self) -> Door<'a, AtomicU32> {
        Door {
            gate: &self.head.gate,
            busy: &self.head.busy,
        }
    }

    #[inline(always)]
    pub fn singles(self, t: usize) -> Shelf<'a> {
        Shelf::singles(&self.head.lens, self.arrays, t)
    }

    #[inline(always)]
    pub fn huge(self, t: usize) -> Shelf<'a> {
        Shelf::huge(&self.head.lens, self.arrays, t)
    }

    /// Single frames of other nodes, of a type.
    pub fn far(self, t: usize) -> Shelf<'a> {
        Shelf::far(&self.head.lens, self.arrays, t)
    }

    /// The array of an order and a type, if the order is kept.
    pub fn shelf(self, order: Order, t: usize) -> Option<Shelf<'a>> {
        Shelf::of(&self.head.lens, self.arrays, order, t)
    }

    /// Frames that are kept.
    pub fn held(self) -> u64 {
        self.head.lens.frames()
    }
}

/// The slots of a memory.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'m> {
    // Apart from the arrays, so that only these are touched before they are used.
    heads: &'m [Head],
    arrays: &'m [Arrays],
    /// Slots up to the last one that a `Local` ever had: one word, or none where there are no slots.
    used: &'m [AtomicU32],
    /// Single frames that an array keeps.
    pub limit: u32,
    pub barrier: Option<Barrier>,
}

impl<'m> Slots<'m> {
    /// No slots.
    pub const NONE: Slots<'m> = Slots {
        heads: &[],
        arrays: &[],
        used: &[],
        limit: 1,
        barrier: None,
    };

    /// Words for so many slots.
    pub const fn words(locals: usize) -> usize {
        // Whole cache lines, wherever the words begin; and one for the count.
        let lines = locals.saturating_mul(HEAD_WORDS + ARRAYS_WORDS);
        lines.saturating_add(2 * HEAD_WORDS)
    }

    /// So many slots in some words, whatever is there; none, if there are fewer than [`words`](Self::words) says.
    pub fn new(
        locals: usize,
        keeps: u32,
        barrier: Option<Barrier>,
        words: &'m mut [u64],
    ) -> Slots<'m> {
        Self::carve(locals, keeps, barrier, words).unwrap_or(Self::NONE)
    }

    fn carve(
        locals: usize,
        keeps: u32,
        barrier: Option<Barrier>,
        words: &'m mut [u64],
    ) -> Option<Slots<'m>> {
        let own = words.get_mut(..Self::words(locals))?;
        let skip = own.as_ptr().align_offset(size_of::<Head>()).min(HEAD_WORDS);
        let (_, own) = own.split_at_mut_checked(skip)?;
        let (count, own) = own.split_at_mut_checked(HEAD_WORDS)?;
        let (heads, own) = own.split_at_mut_checked(locals * HEAD_WORDS)?;
        let arrays = own.get_mut(..locals * ARRAYS_WORDS)?;
        count.fill(0);
        heads.fill(0);
        let count: &[AtomicU32] = <[AtomicU32]>::mut_from_bytes(count.as_mut_bytes()).ok()?;
        Some(Slots {
            heads: <[Head]>::mut_from_bytes(heads.as_mut_bytes()).ok()?,
            arrays: <[Arrays]>::mut_from_bytes(arrays.as_mut_bytes()).ok()?,
            used: &count[..1],
            limit: keeps.clamp(1, SINGLES as u32),
            barrier,
        })
    }

    /// A slot that nobody has, and its number.
    pub fn claim(self) -> Option<(usize, Slot<'m>)> {
        let mut all = (0..self.heads.len()).filter_map(|i| Some((i, self.get(i)?)));
        let (i, slot) = all.find(|(_, slot)| slot.door().claim(self.limit))?;
        // Relaxed: who misses it drains it the next time.
        self.used.first()?.fetch_max(i as u32 + 1, Relaxed);
        Some((i, slot))
    }

    /// Slots that a `Local` ever had.
    pub fn used(self) -> usize {
        // Relaxed, as in `claim`.
        self.used.first().map_or(0, |n| n.load(Relaxed) as usize)
    }

    /// The slot with a number.
    pub fn get(self, i: usize) -> Option<Slot<'m>> {
        let (head, arrays) = (self.heads.get(i)?, self.arrays.get(i)?);
        Some(Slot { head, arrays })
    }

    /// Frames that are kept: exact, if nobody works.
    pub fn held(self) -> u64 {
        let all = (0..self.used()).filter_map(|i| self.get(i));
        all.map(Slot::held).sum()
    }
}
