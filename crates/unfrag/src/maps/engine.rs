//! The engine, and taking blocks.

use super::bins::{Bins, chain};
use super::block::{Block, DRIFT, WAITS};
use super::gigabyte::{GigaBins, Gigabytes};
use super::sizes::{
    BLOCK_ORDER, FRAMES, LARGEST_ORDER, MOVABLE, RECLAIMABLE, TYPES, UNMOVABLE, type_index,
};
use super::tables::{Directory, Entries, Gigabyte, SKIP, WORDS};
use crate::frame::{MigrateType, Order, Pfn};

/// Blocks of a bin that are tried for a run of free frames, before a whole free block is taken instead.
const TRIED: usize = 4;

/// Blocks that are looked at for a single frame beside larger runs, before a run is broken up.
const NEAR: usize = 8;

/// Of all free frames, one in so many is kept in blocks that hold what cannot be moved, for more of it. What can be moved
/// takes the rest of these: nothing can become whole there, so it is better there than anywhere else.
const KEPT: u64 = 8;

/// What is kept at least: a block that is being filled for each type that cannot be moved.
const KEPT_LEAST: u64 = 2 * FRAMES as u64;

/// Frames of a gigabyte.
pub(super) const GIGABYTE: u32 = LARGEST_ORDER.frames();

/// Memory for the maps of some frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineLayout {
    /// 64-bit words, of any alignment and content.
    pub words: usize,
}

impl EngineLayout {
    /// Words for the tables of one gigabyte, wherever they begin: 0.175 bytes a frame.
    pub const GIGABYTE: usize = WORDS + SKIP;

    /// Whether some words have room for the tables of so many gigabytes.
    pub fn fits(words: &[u64], gigabytes: usize) -> bool {
        super::tables::fits(words, gigabytes)
    }

    /// The memory for the tables of all gigabytes that some of the frames from `start` on are in.
    pub const fn of(start: Pfn, frames: u64) -> EngineLayout {
        if frames == 0 {
            return EngineLayout { words: 0 };
        }
        let first = start.0 / GIGABYTE as u64;
        let last = start.0.saturating_add(frames - 1) / GIGABYTE as u64;
        let words = (last - first + 1).saturating_mul(WORDS as u64);
        let words = words.saturating_add(SKIP as u64);
        EngineLayout {
            words: if words > usize::MAX as u64 {
                usize::MAX
            } else {
                words as usize
            },
        }
    }
}

/// The free frames of a span of gigabytes, by maps. One caller at a time.
///
/// A gigabyte with memory has tables, in words that [`add`](Self::add) takes from its caller; one without has an empty entry
/// in the directory, of which each gigabyte of the span has one.
///
/// ```
/// use unfrag::maps::{Engine, EngineLayout, Gigabyte};
/// use unfrag::{MigrateType, Order, Pfn};
///
/// let (start, frames) = (Pfn(0), 1 << 18);
/// let mut words = vec![0; EngineLayout::of(start, frames).words];
/// let mut engine = Engine::new(start, [Gigabyte::NONE; 1]).ok_or("not at a gigabyte")?;
/// engine.add(start, frames, &mut &mut words[..])?;
///
/// let mut batch = [0; 64];
/// assert_eq!(engine.take(&mut batch, Order(0), MigrateType::Movable, true), 64);
/// engine.give(&batch[..32], Order(0), MigrateType::Movable)?;
/// assert!(engine.give(&batch[..1], Order(0), MigrateType::Movable).is_err(), "once");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What its maps show to be wrong is an error: a block that is free already, that is no memory, or that is none. They do not
/// know whose a block is. Whoever has the engine can give back what somebody else has.
pub struct Engine<'m, D = &'m mut [Gigabyte<'m>]> {
    /// The first frame of the span, at which a gigabyte begins.
    start: u64,
    pub(super) of: Directory<'m, D>,
    pub(super) bins: Bins,
    giga_bins: GigaBins,
    whole: u32,
    free: u64,
    present: u64,
    /// By type: the orders, a bit each, of which a search has found no run in blocks of this type, and none has come since.
    none: [u16; TYPES],
    /// By type: the only block in which runs have come since, and of which orders.
    only: [(u32, u16); TYPES],
}

/// Numbers of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineCounts {
    /// Frames of memory that was added.
    pub present: u64,
    /// Free frames.
    pub free: u64,
    /// Blocks of 512 frames that are free as a whole.
    pub whole: u32,
    /// Blocks that hold a frame of each type of request, in the order unmovable, movable, reclaimable.
    pub holding: [u32; TYPES],
    /// Blocks that hold a frame that cannot be moved.
    pub tainted: u32,
    /// Gigabytes that do.
    pub tainted_gigabytes: u32,
}

impl<'m, D: Entries<'m>> Engine<'m, D> {
    /// Gigabytes that an engine spans at most.
    pub const MOST: usize = (1 << 14) - 1;

    /// An engine for as many gigabytes from `start` on as there are entries, without memory as yet. `None`, if no gigabyte
    /// begins at `start`, if there are more than [`MOST`](Self::MOST), or if an entry is of a gigabyte with memory.
    pub fn new(start: Pfn, entries: D) -> Option<Engine<'m, D>> {
        let mut engine = Engine::unchecked(entries);
        engine.start = start.0;
        let frames = engine.of.len() as u64 * u64::from(GIGABYTE);
        let ends = start.0.checked_add(frames).is_some();
        let is_aligned = start.0.is_multiple_of(GIGABYTE.into());
        let fits = ends && is_aligned && engine.of.len() <= Self::MOST;
        let is_empty = engine.of.all().next().is_none();
        (fits && is_empty).then_some(engine)
    }

    #[inline]
    pub(super) fn gigabytes(&mut self) -> Gigabytes<'_, 'm, D> {
        Gigabytes {
            bins: &mut self.giga_bins,
            of: &mut self.of,
        }
    }

    /// Takes a block out of its bin.
    pub(super) fn unbin(&mut self, i: u32) {
        self.bins.unlink(&mut self.of, i);
    }

    /// Free frames.
    #[inline]
    pub fn free_frames(&self) -> u64 {
        self.free
    }

    /// Blocks of 512 frames that are free as a whole.
    #[inline]
    pub fn whole_blocks(&self) -> u32 {
        self.whole
    }

    /// The first frame of the span.
    pub fn start(&self) -> Pfn {
        Pfn(self.start)
    }

    /// Frames of the span, whether there is memory or not.
    pub fn span(&self) -> u64 {
        self.of.len() as u64 * u64::from(GIGABYTE)
    }

    /// The frame with a number in the span.
    #[inline]
    pub(super) fn frame(&self, n: u32) -> Pfn {
        Pfn(self.start + u64::from(n))
    }

    /// Where a frame is in the span; far behind it, if before it.
    #[inline]
    pub(super) fn offset(&self, frame: u64) -> u64 {
        frame.wrapping_sub(self.start)
    }

    /// The number of a frame in the span.
    #[inline]
    pub(super) fn number(&self, frame: u64) -> Option<u32> {
        let n = self.offset(frame);
        (n < self.span()).then_some(n as u32)
    }

    /// All numbers. It looks at each block.
    pub fn counts(&self) -> EngineCounts {
        let mut holding = [0; TYPES];
        let mut tainted = 0;
        for (_, b, _) in self.of.blocks() {
            for (mt, n) in holding.iter_mut().enumerate() {
                *n += u32::from(b.used(mt) > 0);
            }
            tainted += u32::from(b.is_tainted());
        }
        let is_tainted = |t: &super::tables::Tables| u32::from(t.whole.tainted > 0);
        EngineCounts {
            present: self.present,
            free: self.free,
            whole: self.whole,
            holding,
            tainted,
            tainted_gigabytes: self.of.all().map(|(_, t)| is_tainted(t)).sum(),
        }
    }

    /// Takes up to `out.len()` blocks of `2^order` frames for requests of a type, and writes the first frame of each.
    /// Returns how many there were. Types other than the three that requests ask for count as unmovable. `mixes`: they may
    /// come from blocks of other types, where nothing else is left.
    #[inline]
    pub fn take(&mut self, out: &mut [u64], order: Order, mt: MigrateType, mixes: bool) -> usize {
        let mt = type_index(mt);
        let mut got = 0;
        while got < out.len() {
            let n = if order >= BLOCK_ORDER {
                self.take_whole(&mut out[got..], order, mt)
            } else {
                self.take_from_block(&mut out[got..], order, mt, mixes)
            };
            if n == 0 {
                break;
            }
            got += n;
        }
        got
    }

    /// Takes blocks out of one block of 512 frames.
    fn take_from_block(&mut self, out: &mut [u64], order: Order, mt: usize, mixes: bool) -> usize {
        match self.block_for(order, mt, mixes) {
            Some(i) => self.take_out_of(i, out, order, mt),
            None => 0,
        }
    }

    /// Takes a block for what is moved: a single frame out of the block of 512 that serves one best, others out of the fullest
    /// that holds something that can be moved; never out of a whole free one. `None`, if no such block has room.
    pub fn take_beside(&mut self, order: Order) -> Option<Pfn> {
        let i = match order {
            Order::ZERO => self.block_for_single(MOVABLE),
            // It would be a whole free block.
            _ if order >= BLOCK_ORDER => None,
            _ => self.find_run(order, MOVABLE, usize::MAX, false),
        };
        let mut one = [0];
        (self.take_out_of(i?, &mut one, order, MOVABLE) == 1).then_some(Pfn(one[0]))
    }

    /// Takes blocks out of a block of 512 frames that has some.
    pub(super) fn take_out_of(
        &mut self,
        i: u32,
        out: &mut [u64],
        order: Order,
        mt: usize,
    ) -> usize {
        let base = self.start + u64::from(i * FRAMES);
        let map = self.of.map_mut(i);
        let mut got = 0;
        if order == Order::ZERO {
            got = map.take(base, out);
        } else {
            while got < out.len()
                && let Some(at) = map.find_run(order)
            {
                map.clear_run(at, order);
                out[got] = base + u64::from(at);
                got += 1;
            }
        }
        self.taken(i, (got as u32) << order.0, mt);
        got
    }

    /// Counts frames of a block whose bits have been cleared.
    #[inline]
    pub(super) fn taken(&mut self, i: u32, frames: u32, mt: usize) {
        let b = self.of.block_mut(i);
        let was_tainted = b.is_tainted();
        b.take(mt, frames);
        self.bins.count(b, -i64::from(frames));
        if b.is_tainted() != was_tainted {
            self.gigabytes().taint(i, true);
        }
        self.settle(i);
        self.free -= u64::from(frames);
    }

    /// The block that serves a request best: the fullest one of its type, then a whole free one, then one of another type.
    #[inline]
    fn block_for(&mut self, order: Order, mt: usize, mixes: bool) -> Option<u32> {
        if order == Order::ZERO
            && let Some(i) = self.block_for_single(mt)
        {
            return Some(i);
        }
        [TRIED, usize::MAX]
            .into_iter()
            .find_map(|tried| self.block_for_run(order, mt, (tried, mixes)))
    }

    /// The block that serves a single frame best: the fullest one of its type that has some beside its larger runs. What can
    /// be moved goes where nothing can be made whole, if most of what is free there is not needed.
    #[inline]
    fn block_for_single(&mut self, mt: usize) -> Option<u32> {
        let spills = mt == MOVABLE && self.bins.kept() > (self.free / KEPT).max(KEPT_LEAST);
        let class = if spills {
            self.bins.fuller(UNMOVABLE, RECLAIMABLE)
        } else {
            mt
        };
        let fullest = self.bins.fullest(&mut self.of, class)?;
        let has_small = |&i: &u32| self.of.map(i).has_small();
        let found = chain(&self.of, fullest).take(NEAR).find(has_small);
        let i = found.unwrap_or(fullest);
        if class != mt && self.of.block(i).in_use() == 0 {
            self.retype(i, mt);
        }
        Some(i)
    }

    #[inline(never)]
    fn block_for_run(
        &mut self,
        order: Order,
        mt: usize,
        (tried, mixes): (usize, bool),
    ) -> Option<u32> {
        let moves = mt == MOVABLE;
        if let Some(i) = self.find_run(order, mt, tried, false) {
            return Some(i);
        }
        if let Some(i) = self.gigabytes().find(Order::ZERO, moves) {
            self.take_whole_run(i, Order::ZERO);
            self.of.block_mut(i).set_mt(mt);
            self.runs_came(i);
            return Some(i);
        }
        let others = match mt {
            MOVABLE => [RECLAIMABLE, UNMOVABLE],
            UNMOVABLE => [RECLAIMABLE, MOVABLE],
            _ => [UNMOVABLE, MOVABLE],
        };
        for other in others.into_iter().filter(|_| mixes) {
            // What cannot be moved takes over the movable block that is the cheapest to purify.
            let takes_over = other == MOVABLE;
            if let Some(i) = self.find_run(order, other, tried, takes_over) {
                // One of which only a part is memory may hold nothing, and be no whole block all the same.
                if takes_over || self.of.block(i).in_use() == 0 {
                    self.retype(i, mt);
                }
                return Some(i);
            }
        }
        None
    }

    /// The fullest block of a type, or the emptiest, that has a free run of an order. Of each bin so many are tried. A
    /// search in vain is remembered, until there may be a run again.
    fn find_run(&mut self, order: Order, mt: usize, tried: usize, emptiest: bool) -> Option<u32> {
        if self.none[mt] >> order.0 & 1 == 1 {
            return None;
        }
        let is_single = order == Order::ZERO;
        let has_run = |&i: &u32| is_single || self.of.map(i).find_run(order).is_some();
        if mt == MOVABLE
            && self.bins.filled(WAITS) != 0
            && let Some(i) = self.bins.waiting(&self.of).take(tried).find(has_run)
        {
            return Some(i);
        }
        let (only, orders) = self.only[mt];
        if orders >> order.0 & 1 == 1 {
            if self.is_binned(only, mt) && self.of.map(only).find_run(order).is_some() {
                return Some(only);
            }
            self.only[mt].1 &= !(1 << order.0);
            self.none[mt] |= 1 << order.0;
            return None;
        }
        let first = Block::bin_of(order.frames()).saturating_sub(DRIFT - 1);
        let mut bins = self.bins.filled(mt) & !0 << first;
        while bins != 0 {
            let bin = if emptiest {
                bins.ilog2()
            } else {
                bins.trailing_zeros()
            } as usize;
            bins &= !(1 << bin);
            let mut of = self.bins.of(&self.of, mt, bin).take(tried);
            let found = of.find(has_run);
            if found.is_some() {
                return found;
            }
        }
        if tried == usize::MAX {
            self.none[mt] |= ORDERS & !0 << order.0;
        }
        None
    }

    fn is_binned(&self, i: u32, mt: usize) -> bool {
        let block = self.of.find(i);
        block.is_some_and(|b| b.is_binned() && b.mt() == mt)
    }

    /// There may be runs of any order in a block, for requests of its type.
    pub(super) fn runs_came(&mut self, i: u32) {
        let mt = self.of.block(i).mt();
        self.none[mt] = 0;
        self.only[mt] = (i, 0);
    }

    /// The orders of which a run that comes free in a block of a type has to be told.
    #[inline]
    pub(super) fn awaited(&self, mt: usize) -> u16 {
        self.none[mt] | self.only[mt].1
    }

    /// `2^order` frames from a place of a block on have come free: there may be a run again of which there was none.
    #[cold]
    pub(super) fn run_came(&mut self, i: u32, at: u32, order: Order) {
        let mt = self.of.block(i).mt();
        let largest = self.of.map(i).largest_at(at, order);
        let has = ORDERS >> (ORDERS.ilog2() - u32::from(largest.0).min(ORDERS.ilog2()));
        let came = self.none[mt] & has;
        self.none[mt] &= !came;
        let (only, orders) = self.only[mt];
        if orders == 0 || only == i {
            self.only[mt] = (i, orders | came);
        } else if (orders | came) & has != 0 {
            // There are two such blocks: those of both have to be searched.
            self.only[mt].1 = 0;
        }
    }

    /// Takes blocks of an order from that of a whole block on.
    fn take_whole(&mut self, out: &mut [u64], order: Order, mt: usize) -> usize {
        if order > LARGEST_ORDER {
            return 0;
        }
        let blocks = Order(order.0 - BLOCK_ORDER.0);
        if blocks == Order::ZERO && mt == MOVABLE {
            return self.take_whole_blocks(out);
        }
        let mut got = 0;
        for slot in out.iter_mut() {
            let Some(first) = self.gigabytes().find(blocks, mt == MOVABLE) else {
                break;
            };
            self.take_whole_run(first, blocks);
            self.use_whole(first, blocks, mt);
            *slot = self.frame(first * FRAMES).0;
            got += 1;
        }
        self.free -= (got as u64) << order.0;
        got
    }

    /// Takes single whole blocks for what can be moved out of the best gigabyte.
    fn take_whole_blocks(&mut self, out: &mut [u64]) -> usize {
        let Some(g) = self.gigabytes().best() else {
            return 0;
        };
        let base = self.start + u64::from(g) * u64::from(GIGABYTE);
        let (got, is_counted) = self.of.of_mut(g).take_wholes(base, out, MOVABLE);
        if !is_counted {
            self.gigabytes().count(g, -(got as i32), 0);
        }
        self.whole -= got as u32;
        self.free -= (got as u64) << BLOCK_ORDER.0;
        got
    }

    /// Blocks that were taken out of the map of whole free ones are in use as a whole.
    #[inline]
    pub(super) fn use_whole(&mut self, first: u32, blocks: Order, mt: usize) {
        for i in first..first + blocks.frames() {
            self.of.block_mut(i).use_whole(mt);
            if mt != MOVABLE {
                self.gigabytes().taint(i, true);
            }
        }
    }

    /// Counts frames as not free any more, or as free.
    #[inline]
    pub(super) fn count_free(&mut self, frames: i64) {
        self.free = self.free.wrapping_add_signed(frames);
    }

    /// Counts blocks that are free as a whole from now on.
    pub(super) fn count_whole(&mut self, blocks: u32) {
        self.whole += blocks;
    }

    /// Counts frames that are memory, and free, from now on.
    pub(super) fn count_added(&mut self, frames: u32) {
        self.free += u64::from(frames);
        self.present += u64::from(frames);
    }

    /// Counts frames, in use, that are no memory any more.
    pub(super) fn count_removed(&mut self, frames: u32) {
        self.present -= u64::from(frames);
    }

    /// Frames of memory that was added.
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Some whole free blocks are not whole and free any more.
    #[inline]
    pub(super) fn take_whole_run(&mut self, first: u32, blocks: Order) {
        self.gigabytes().remove(first, blocks);
        self.whole -= blocks.frames();
    }

    /// A block that holds nothing of its own type any more has that of what it holds.
    #[cold]
    pub(super) fn retype_by_content(&mut self, i: u32) {
        let b = self.of.block(i);
        let most = (0..TYPES).max_by_key(|&mt| b.used(mt));
        if let Some(mt) = most.filter(|&mt| b.used(mt) > 0) {
            self.retype(i, mt);
        }
    }

    pub(super) fn retype(&mut self, i: u32, mt: usize) {
        let is_binned = self.of.block(i).is_binned();
        if is_binned {
            self.bins.unlink(&mut self.of, i);
        }
        self.of.block_mut(i).set_mt(mt);
        if is_binned {
            self.bins.link(&mut self.of, i);
            self.runs_came(i);
        }
    }

    /// Puts a block, whose free frames have changed, where it belongs. It was no whole free one.
    #[inline]
    pub(super) fn settle(&mut self, i: u32) {
        let b = self.of.block(i);
        let free = b.free();
        if b.may_stay(free) || b.is_apart() {
            return;
        }
        self.bins.unlink(&mut self.of, i);
        if free == FRAMES {
            self.gigabytes().add(i, Order::ZERO);
            self.whole += 1;
        } else if free > 0 {
            self.bins.link(&mut self.of, i);
        }
    }
}

impl<D> Engine<'_, D> {
    /// An engine at frame 0, whose entries nobody has looked at.
    pub(crate) const fn unchecked(entries: D) -> Self {
        Engine {
            start: 0,
            of: Directory::new(entries),
            bins: Bins::EMPTY,
            giga_bins: GigaBins::EMPTY,
            whole: 0,
            free: 0,
            present: 0,
            none: [0; TYPES],
            only: [(0, 0); TYPES],
        }
    }
}

/// Orders of runs within a block, a bit each.
const ORDERS: u16 = (1 << BLOCK_ORDER.0) - 1;
