//! Taking and giving blocks. Frames are numbered from 0; whoever has the memory knows where that is.

use super::bins::Bins;
use super::block::{Block, DRIFT, WAITS, maps_of_absent};
use super::error::GiveError;
use super::gigabyte::{GigaBins, Gigabyte, Gigabytes};
use super::map::Map;
use super::sizes::{
    BLOCK_ORDER, FRAMES, LARGEST_ORDER, MOVABLE, RECLAIMABLE, TYPES, UNMOVABLE, type_index,
};
use crate::arena::{Arena, LINE, room};
use crate::frame::{FrameIx, MigrateType, Order, Pfn};
use crate::hint::prefetch;
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Blocks of a bin that are tried for a run of free frames, before a whole free block is taken instead.
const TRIED: usize = 4;

/// Blocks of a batch whose lines are fetched ahead of use: as many misses as a CPU has under way at a time.
const AHEAD: usize = 16;

/// Heads of bins, and counts.
#[derive(FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
struct State {
    bins: Bins,
    giga_bins: GigaBins,
    whole: u32,
    free: u64,
    present: u64,
}

/// Memory for the maps of some frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineLayout {
    /// 64-bit words, of any alignment and content.
    pub words: usize,
}

impl EngineLayout {
    /// The memory for so many frames: about 0.17 bytes each, and 0.28 for the first gigabyte.
    pub const fn of(frames: u32) -> EngineLayout {
        let (blocks, gigabytes) = tables(frames);
        let bytes = LINE
            + room::<State>(1)
            + room::<Map>(blocks)
            + room::<Map>(maps_of_absent(blocks))
            + room::<Block>(blocks)
            + room::<Gigabyte>(gigabytes);
        EngineLayout { words: bytes / 8 }
    }
}

/// Blocks and gigabytes of so many frames.
const fn tables(frames: u32) -> (usize, usize) {
    let blocks = frames.div_ceil(FRAMES) as usize;
    (blocks, blocks.div_ceil(FRAMES as usize))
}

/// The free frames of some memory, by maps. One caller at a time.
///
/// ```
/// use unfrag::maps::{Engine, EngineLayout};
/// use unfrag::{MigrateType, Order};
///
/// let frames = 1 << 18;
/// let mut memory = vec![0; EngineLayout::of(frames).words];
/// let mut engine = Engine::new(frames, &mut memory).ok_or("too little memory")?;
/// engine.add(0, frames)?;
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
pub struct Engine<'m> {
    state: &'m mut State,
    pub(super) maps: &'m mut [Map],
    pub(super) blocks: &'m mut [Block],
    pub(super) gigas: &'m mut [Gigabyte],
    /// Maps of absent frames, for the blocks that are partly memory.
    pub(super) absent: &'m mut [Map],
    frames: u32,
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

impl<'m> Engine<'m> {
    /// An engine for the frames from 0 up to `frames`, without memory as yet. `None`, if `memory` has fewer than
    /// [`EngineLayout::of`]`(frames).words` words.
    pub fn new(frames: u32, memory: &'m mut [u64]) -> Option<Engine<'m>> {
        let memory = memory.get_mut(..EngineLayout::of(frames).words)?;
        let mut arena = Arena::new(memory);
        let (blocks, gigabytes) = tables(frames);
        let state = arena.table::<State>(1).first_mut()?;
        let mut engine = Engine {
            state,
            maps: arena.table(blocks),
            blocks: arena.table(blocks),
            gigas: arena.table(gigabytes),
            absent: arena.table(maps_of_absent(blocks)),
            frames,
        };
        engine.state.bins.clear();
        engine.gigabytes().clear();
        engine.blocks.fill(Block::NO_MEMORY);
        Some(engine)
    }

    #[inline]
    pub(super) fn gigabytes(&mut self) -> Gigabytes<'_> {
        Gigabytes {
            bins: &mut self.state.giga_bins,
            of: self.gigas,
        }
    }

    #[inline]
    pub(super) fn bins(&self) -> &Bins {
        &self.state.bins
    }

    #[inline]
    pub(super) fn bins_of(&mut self) -> (&mut Bins, &mut [Block]) {
        (&mut self.state.bins, self.blocks)
    }

    /// Takes a block out of its bin.
    pub(super) fn unbin(&mut self, i: u32) {
        self.state.bins.unlink(self.blocks, i);
    }

    /// Free frames.
    #[inline]
    pub fn free_frames(&self) -> u64 {
        self.state.free
    }

    /// Blocks of 512 frames that are free as a whole.
    #[inline]
    pub fn whole_blocks(&self) -> u32 {
        self.state.whole
    }

    /// All numbers. It looks at each block.
    pub fn counts(&self) -> EngineCounts {
        let mut holding = [0; TYPES];
        for b in self.blocks.iter() {
            for (mt, n) in holding.iter_mut().enumerate() {
                *n += u32::from(b.used(mt) > 0);
            }
        }
        EngineCounts {
            present: self.state.present,
            free: self.state.free,
            whole: self.state.whole,
            holding,
            tainted: self.blocks.iter().map(|b| u32::from(b.is_tainted())).sum(),
            tainted_gigabytes: self.gigas.iter().map(|g| u32::from(g.tainted > 0)).sum(),
        }
    }

    /// Takes up to `out.len()` blocks of `2^order` frames for requests of a type, and writes the first frame of each.
    /// Returns how many there were. Types other than the three that requests ask for count as unmovable. `mixes`: they may
    /// come from blocks of other types, where nothing else is left.
    #[inline]
    pub fn take(&mut self, out: &mut [u32], order: Order, mt: MigrateType, mixes: bool) -> usize {
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
    fn take_from_block(&mut self, out: &mut [u32], order: Order, mt: usize, mixes: bool) -> usize {
        match self.block_for(order, mt, mixes) {
            Some(i) => self.take_out_of(i, out, order, mt),
            None => 0,
        }
    }

    /// Takes a block for what is moved: out of the fullest block of 512 that holds something that can be moved, and never
    /// out of a whole free one. `None`, if no such block has room.
    pub fn take_beside(&mut self, order: Order) -> Option<u32> {
        let i = match order {
            Order::ZERO => self.state.bins.fullest(self.blocks, MOVABLE),
            // It would be a whole free block.
            _ if order >= BLOCK_ORDER => None,
            _ => self.find_run(order, MOVABLE, usize::MAX, false),
        };
        let mut one = [0];
        (self.take_out_of(i?, &mut one, order, MOVABLE) == 1).then_some(one[0])
    }

    /// Takes blocks out of a block of 512 frames that has some.
    pub(super) fn take_out_of(
        &mut self,
        i: u32,
        out: &mut [u32],
        order: Order,
        mt: usize,
    ) -> usize {
        let map = &mut self.maps[i as usize];
        let base = i * FRAMES;
        let mut got = 0;
        if order == Order::ZERO {
            got = map.take(base, out);
        } else {
            while got < out.len()
                && let Some(at) = map.find_run(order)
            {
                map.clear_run(at, order);
                out[got] = base + at;
                got += 1;
            }
        }
        self.taken(i, (got as u32) << order.0, mt);
        got
    }

    /// Counts frames of a block whose bits have been cleared.
    #[inline]
    pub(super) fn taken(&mut self, i: u32, frames: u32, mt: usize) {
        let b = &mut self.blocks[i as usize];
        let was_tainted = b.is_tainted();
        b.take(mt, frames);
        if b.is_tainted() != was_tainted {
            self.gigabytes().taint(i, true);
        }
        self.settle(i);
        self.state.free -= u64::from(frames);
    }

    /// The block that serves a request best: the fullest one of its type, then a whole free one, then one of another type.
    #[inline]
    fn block_for(&mut self, order: Order, mt: usize, mixes: bool) -> Option<u32> {
        if order == Order::ZERO
            && let Some(i) = self.state.bins.fullest(self.blocks, mt)
        {
            return Some(i);
        }
        [TRIED, usize::MAX]
            .into_iter()
            .find_map(|tried| self.block_for_run(order, mt, (tried, mixes)))
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
            self.blocks[i as usize].set_mt(mt);
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
                // A block of which only a part is memory may hold nothing, and be no whole block all the same.
                if takes_over || self.blocks[i as usize].in_use() == 0 {
                    self.retype(i, mt);
                }
                return Some(i);
            }
        }
        None
    }

    /// The fullest block of a type, or the emptiest, that has a free run of an order. Of each bin so many are tried.
    fn find_run(&self, order: Order, mt: usize, tried: usize, emptiest: bool) -> Option<u32> {
        let has_run =
            |&i: &u32| order == Order::ZERO || self.maps[i as usize].find_run(order).is_some();
        if mt == MOVABLE
            && self.bins().filled(WAITS) != 0
            && let Some(i) = self.bins().waiting(self.blocks).take(tried).find(has_run)
        {
            return Some(i);
        }
        let first = Block::bin_of(order.frames()).saturating_sub(DRIFT - 1);
        let mut bins = self.state.bins.filled(mt) & !0 << first;
        while bins != 0 {
            let bin = if emptiest {
                bins.ilog2()
            } else {
                bins.trailing_zeros()
            } as usize;
            bins &= !(1 << bin);
            let mut of = self.state.bins.of(self.blocks, mt, bin).take(tried);
            let found = of.find(has_run);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Takes blocks of an order from that of a whole block on.
    fn take_whole(&mut self, out: &mut [u32], order: Order, mt: usize) -> usize {
        if order > LARGEST_ORDER {
            return 0;
        }
        let blocks = Order(order.0 - BLOCK_ORDER.0);
        let mut got = 0;
        if blocks == Order::ZERO && mt == MOVABLE {
            got = self.gigabytes().take(out);
            self.state.whole -= got as u32;
        } else {
            for slot in out.iter_mut() {
                let Some(first) = self.gigabytes().find(blocks, mt == MOVABLE) else {
                    break;
                };
                self.take_whole_run(first, blocks);
                *slot = first;
                got += 1;
            }
        }
        for slot in &mut out[..got] {
            let first = *slot;
            self.use_whole(first, blocks, mt);
            *slot = first * FRAMES;
        }
        self.state.free -= (got as u64) << order.0;
        got
    }

    /// Blocks that were taken out of the map of whole free ones are in use as a whole.
    #[inline]
    pub(super) fn use_whole(&mut self, first: u32, blocks: Order, mt: usize) {
        for i in first..first + blocks.frames() {
            let b = &mut self.blocks[i as usize];
            b.set_mt(mt);
            b.set_intact(true);
            b.take(mt, FRAMES);
            if mt != MOVABLE {
                self.gigabytes().taint(i, true);
            }
        }
    }

    /// Counts frames as not free any more, or as free.
    #[inline]
    pub(super) fn count_free(&mut self, frames: i64) {
        self.state.free = self.state.free.wrapping_add_signed(frames);
    }

    /// Counts frames that are memory, and free, from now on.
    pub(super) fn count_added(&mut self, frames: u32) {
        self.state.free += u64::from(frames);
        self.state.present += u64::from(frames);
    }

    /// Frames of memory that was added.
    pub(super) fn present(&self) -> u64 {
        self.state.present
    }

    /// Some whole free blocks are not whole and free any more.
    #[inline]
    pub(super) fn take_whole_run(&mut self, first: u32, blocks: Order) {
        self.gigabytes().remove(first, blocks);
        self.state.whole -= blocks.frames();
    }

    /// Gives blocks of `2^order` frames back that requests of a type had. They may be parts of blocks that were taken. A
    /// block that is not in use as a whole is refused; all others are free then.
    ///
    /// # Errors
    /// [`GiveError`], for the first block that was refused.
    #[inline]
    pub fn give(&mut self, blocks: &[u32], order: Order, mt: MigrateType) -> Result<(), GiveError> {
        let mt = type_index(mt);
        if order == Order::ZERO {
            return self.give_singles(blocks, mt);
        }
        if order == BLOCK_ORDER {
            return self.give_wholes(blocks, mt);
        }
        let mut result = Ok(());
        for &frame in blocks {
            result = result.and(self.give_block(frame, order, mt));
        }
        result
    }

    /// Gives back `frames` frames from `start` on, which are parts of what was taken.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, or if some are beyond the frames of the engine: nothing has changed then; or for the
    /// first aligned part that is not in use as a whole: all others are free then.
    pub fn give_range(
        &mut self,
        start: u32,
        frames: u32,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let end = self.end_of(start, frames)?;
        let mut result = Ok(());
        for (ix, order) in FrameIx(start).blocks_until(FrameIx(end), LARGEST_ORDER) {
            result = result.and(self.give(&[ix.0], order, mt));
        }
        result
    }

    /// Has the lines of a frame's block in the cache soon.
    #[inline]
    fn fetch(&self, frame: u32) {
        let i = (frame / FRAMES) as usize;
        if let (Some(map), Some(block)) = (self.maps.get(i), self.blocks.get(i)) {
            prefetch(map);
            prefetch(block);
        }
    }

    /// Gives whole blocks back. The map of one that was never broken up is not touched.
    fn give_wholes(&mut self, frames: &[u32], mt: usize) -> Result<(), GiveError> {
        for &frame in frames {
            if let Some(block) = self.blocks.get((frame / FRAMES) as usize) {
                prefetch(block);
            }
        }
        let mut result = Ok(());
        let mut given = 0;
        for &frame in frames {
            let i = frame / FRAMES;
            let block = self.blocks.get_mut(i as usize);
            let Some(b) = block.filter(|b| frame.is_multiple_of(FRAMES) && b.is_intact_of(mt))
            else {
                result = result.and(self.give_block(frame, BLOCK_ORDER, mt));
                continue;
            };
            b.set_intact(false);
            b.give(mt, FRAMES);
            given += 1;
            self.gigabytes().add_block(i, mt != MOVABLE);
        }
        self.state.whole += given;
        self.state.free += u64::from(given) * u64::from(FRAMES);
        result
    }

    /// Gives single frames back. Most only count.
    fn give_singles(&mut self, frames: &[u32], mt: usize) -> Result<(), GiveError> {
        for &frame in frames.iter().take(AHEAD) {
            self.fetch(frame);
        }
        let mut result = Ok(());
        let mut only_counted = 0;
        for (at, &frame) in frames.iter().enumerate() {
            if let Some(&next) = frames.get(at + AHEAD) {
                self.fetch(next);
            }
            let i = (frame / FRAMES) as usize;
            if let (Some(map), Some(b)) = (self.maps.get_mut(i), self.blocks.get_mut(i))
                && b.only_counts(mt)
                && map.set(frame % FRAMES)
            {
                b.give(mt, 1);
                only_counted += 1;
            } else {
                result = result.and(self.give_block(frame, Order::ZERO, mt));
            }
        }
        self.state.free += only_counted;
        result
    }

    #[inline(never)]
    fn give_block(&mut self, frame: u32, order: Order, mt: usize) -> Result<(), GiveError> {
        let at = Pfn(frame.into());
        if order > LARGEST_ORDER || !FrameIx(frame).is_aligned(order) {
            return Err(GiveError::NotABlock(at));
        }
        let end = frame.checked_add(order.frames());
        if end.is_none_or(|end| end > self.frames) {
            return Err(GiveError::NoMemory(at));
        }
        let i = frame / FRAMES;
        if order < BLOCK_ORDER {
            if self.has_absent(i, frame % FRAMES, order) {
                return Err(GiveError::NoMemory(at));
            }
            let b = &mut self.blocks[i as usize];
            if b.is_intact() {
                break_up(&mut self.maps[i as usize], b);
            }
            if !self.maps[i as usize].set_run(frame % FRAMES, order) {
                return Err(GiveError::NotTaken(at));
            }
            self.given(i, order.frames(), mt);
            return Ok(());
        }
        let last = i + Order(order.0 - BLOCK_ORDER.0).frames();
        let own = &self.blocks[i as usize..last as usize];
        if own.iter().any(|b| b.absent() > 0) {
            return Err(GiveError::NoMemory(at));
        }
        if own.iter().any(|b| b.in_use() < FRAMES) {
            return Err(GiveError::NotTaken(at));
        }
        for i in i..last {
            let b = &mut self.blocks[i as usize];
            if !b.is_intact() {
                self.maps[i as usize] = Map::FULL;
            }
            b.set_intact(false);
            self.given(i, FRAMES, mt);
        }
        Ok(())
    }

    /// Counts frames of a block whose bits have been set. All of them were in use.
    #[inline]
    fn given(&mut self, i: u32, frames: u32, mt: usize) {
        let b = &mut self.blocks[i as usize];
        let was_tainted = b.is_tainted();
        b.give_back(mt, frames);
        let (free, own) = (b.free(), b.used(b.mt()));
        let (is_tried, to_be_had) = (b.is_tried(), if b.is_apart() { 0 } else { frames });
        if was_tainted && !b.is_tainted() {
            self.gigabytes().taint(i, false);
            self.unbin_if_waits(i);
        }
        if is_tried {
            self.forget_if_freed(i);
        }
        self.settle(i);
        self.state.free += u64::from(to_be_had);
        if own == 0 && free < FRAMES {
            self.retype_by_content(i);
        }
    }

    /// A block that holds nothing of its own type any more has that of what it holds.
    #[cold]
    fn retype_by_content(&mut self, i: u32) {
        let b = &self.blocks[i as usize];
        let most = (0..TYPES).max_by_key(|&mt| b.used(mt));
        if let Some(mt) = most.filter(|&mt| b.used(mt) > 0) {
            self.retype(i, mt);
        }
    }

    pub(super) fn retype(&mut self, i: u32, mt: usize) {
        let is_binned = self.blocks[i as usize].is_binned();
        if is_binned {
            self.state.bins.unlink(self.blocks, i);
        }
        self.blocks[i as usize].set_mt(mt);
        if is_binned {
            self.state.bins.link(self.blocks, i);
        }
    }

    /// Puts a block, whose free frames have changed, where it belongs. It was no whole free one.
    #[inline]
    pub(super) fn settle(&mut self, i: u32) {
        let b = &self.blocks[i as usize];
        let free = b.free();
        if b.may_stay(free) || b.is_apart() {
            return;
        }
        self.state.bins.unlink(self.blocks, i);
        if free == FRAMES {
            self.gigabytes().add(i, Order::ZERO);
            self.state.whole += 1;
        } else if free > 0 {
            self.state.bins.link(self.blocks, i);
        }
    }

    /// Frames that the engine has maps for.
    pub fn frames(&self) -> u32 {
        self.frames
    }
}

/// A block that is in use as a whole is about to be given back in parts.
#[cold]
fn break_up(map: &mut Map, block: &mut Block) {
    *map = Map::EMPTY;
    block.set_intact(false);
}
