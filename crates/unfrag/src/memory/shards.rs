//! [`Memory`]: memory in shards, each under its own lock.

use crate::frame::{MigrateType, Order, Pfn};
use crate::local::slot::Slots;
use crate::maps::{
    BLOCK_ORDER, BlockView, Engine, EngineCounts, EngineLayout, FreeBlocks, FreeRun, GiveError,
    LARGEST_ORDER,
};
use crate::memory::config::{GIGABYTE, MAX_SHARDS, MemoryConfig, MemoryLayout};
use crate::memory::totals::{Floor, Totals};
use crate::request::AllocError;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lock_api::{Mutex, RawMutex};

/// A shard, alone on its cache lines.
#[repr(align(128))]
struct Shard<'m, R> {
    start: u32,
    frames: u32,
    engine: Option<Mutex<R, Engine<'m>>>,
}

impl<R> Shard<'_, R> {
    /// Brings the blocks of this shard to the front; returns how many there are.
    #[inline]
    fn gather(&self, blocks: &mut [u32]) -> usize {
        let own = |n: u32| n.wrapping_sub(self.start) < self.frames;
        let in_front = blocks.iter().take_while(|&&n| own(n)).count();
        let mut count = in_front;
        for i in in_front..blocks.len() {
            if own(blocks[i]) {
                blocks.swap(i, count);
                count += 1;
            }
        }
        count
    }
}

/// A block that is set apart to be emptied.
#[derive(Debug)]
pub(crate) struct Apart {
    pub shard: usize,
    block: u32,
}

impl Apart {
    /// The frame at a place of the block.
    pub fn frame<R: RawMutex>(&self, at: u32, shared: &Memory<'_, R>) -> Pfn {
        let start = shared.shards[self.shard].start;
        shared.frame(start + self.block * BLOCK_ORDER.frames() + at)
    }
}

/// Memory that many CPUs allocate from. Each has a [`Local`](crate::local::Local).
///
/// ```
/// use unfrag::{Memory, MemoryConfig, MemoryLayout};
/// use unfrag::{MigrateType, Order, Pfn};
///
/// let config = MemoryConfig { locals: 2, ..MemoryConfig::new(Pfn(0), 1 << 18) };
/// let mut words = vec![0; MemoryLayout::of(&config).words];
/// let shared = Memory::<spin::Mutex<()>>::new(config, &mut words).ok_or("no such memory")?;
/// shared.add(Pfn(0), 1 << 18)?;
///
/// std::thread::scope(|threads| {
///     for _ in 0..2 {
///         threads.spawn(|| {
///             let mut local = shared.local().expect("two of them");
///             let frame = local.alloc(Order(0), MigrateType::Movable).expect("memory");
///             // SAFETY: the frame is this thread's, which uses it no more.
///             let freed = unsafe { local.free(frame, Order(0), MigrateType::Movable) };
///             freed.expect("in use");
///         });
///     }
/// });
/// assert_eq!(shared.free_frames(), 1 << 18);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Memory<'m, R> {
    shards: [Shard<'m, R>; MAX_SHARDS],
    count: usize,
    shard_frames: u32,
    slots: Slots<'m>,
    totals: Totals,
    base: Pfn,
    frames: u32,
    refused: AtomicU64,
}

impl<'m, R: RawMutex> Memory<'m, R> {
    /// A memory without frames as yet: [`add`](Self::add) adds them. `None`, if `words` has fewer than
    /// [`MemoryLayout::of`] says, if there are no shards or more than [`MAX_SHARDS`], no frames, if the base is no multiple of
    /// 2^18, or if frames would have numbers beyond 2^64.
    pub fn new(config: MemoryConfig, words: &'m mut [u64]) -> Option<Memory<'m, R>> {
        let fits = (1..=MAX_SHARDS).contains(&config.shards) && config.frames > 0;
        let aligned = config.base.0.is_multiple_of(GIGABYTE.into());
        let ends = config.base.0.checked_add(config.frames.into()).is_some();
        let words = words.get_mut(..MemoryLayout::of(&config).words)?;
        if !fits || !aligned || !ends {
            return None;
        }
        let (locals, keeps) = (config.locals, config.keeps);
        let (slots, mut rest) = Slots::new(locals, keeps, config.barrier, words)?;
        let mut shards = core::array::from_fn(|_| Shard {
            start: 0,
            frames: 0,
            engine: None,
        });
        let mut count = 0;
        for (shard, (start, frames)) in shards.iter_mut().zip(config.parts()) {
            let (own, others) = rest.split_at_mut(EngineLayout::of(frames).words);
            rest = others;
            let engine = Engine::new(frames, own)?;
            *shard = Shard {
                start,
                frames,
                engine: Some(Mutex::new(engine)),
            };
            count += 1;
        }
        Some(Memory {
            shards,
            count,
            shard_frames: config.shard_frames(),
            slots,
            totals: Totals::new(&config),
            base: config.base,
            frames: config.frames,
            refused: AtomicU64::new(0),
        })
    }

    /// Adds memory, all of it free: the `frames` frames from `start` on, which were not added before.
    ///
    /// # Errors
    /// [`GiveError`], if there are none, if some of them are out of range, or were added before, or if too many blocks would
    /// be partly memory. Nothing has changed then, unless somebody else has added some of them meanwhile.
    pub fn add(&self, start: Pfn, frames: u32) -> Result<(), GiveError> {
        let first = self.number(start).ok_or(GiveError::NoMemory(start))?;
        let end = first.checked_add(frames).filter(|&end| end <= self.frames);
        let end = end.ok_or(GiveError::NoMemory(self.end()))?;
        if frames == 0 {
            return Err(GiveError::NoFrames(start));
        }
        let parts = self.shards[..self.count].iter().filter_map(|shard| {
            let from = first.max(shard.start);
            let to = end.min(shard.start + shard.frames);
            let own = shard.engine.as_ref().filter(|_| from < to)?;
            Some((own, shard.start, from - shard.start, to.wrapping_sub(from)))
        });
        for (engine, shard, from, frames) in parts.clone() {
            let fits = engine.lock().can_add(from, frames);
            fits.map_err(|why| why.shifted(self.frame(shard)))?;
        }
        for (engine, shard, from, frames) in parts {
            let added = engine.lock().add(from, frames);
            added.map_err(|why| why.shifted(self.frame(shard)))?;
            self.totals.add_frames(frames.into());
        }
        Ok(())
    }

    /// The frame behind the last one that there may be.
    fn end(&self) -> Pfn {
        Pfn(self.base.0 + u64::from(self.frames))
    }

    /// What each `Local` keeps.
    #[inline(always)]
    pub(crate) fn slots(&self) -> &Slots<'m> {
        &self.slots
    }

    /// The first frame of a shard.
    pub(crate) fn start_of(&self, shard: usize) -> Pfn {
        self.frame(self.shards[shard].start)
    }

    /// Calls `f` with an engine, locked.
    fn with<T>(&self, shard: usize, f: impl FnOnce(&mut Engine<'m>) -> T) -> Option<T> {
        let engine = self.shards.get(shard)?.engine.as_ref()?;
        Some(f(&mut engine.lock()))
    }

    /// Calls `f` with each engine in turn, locked.
    fn each<T>(&self, f: impl Fn(&mut Engine<'m>) -> T) -> impl Iterator<Item = T> {
        (0..self.count).filter_map(move |shard| self.with(shard, &f))
    }

    /// Sets the block apart that is the cheapest to empty of all shards.
    pub(crate) fn set_apart(&self, most: u32) -> Option<Apart> {
        let cost = |s: &usize| {
            let cheapest = self.with(*s, |e| e.cheapest(most)).flatten();
            cheapest.map_or(u32::MAX, |(used, _)| used)
        };
        let shard = (0..self.count).min_by_key(cost)?;
        let block = self.with(shard, |e| e.set_apart(most)).flatten()?;
        Some(Apart { shard, block })
    }

    /// The first place from `at` on that is in use.
    pub(crate) fn next_in_use(&self, apart: &Apart, at: u32) -> Option<u32> {
        self.with(apart.shard, |e| e.next_in_use(apart.block, at))
            .flatten()
    }

    pub(crate) fn end_apart(&self, apart: &Apart) -> bool {
        let whole = self.with(apart.shard, |e| e.end_apart(apart.block));
        whole.unwrap_or(false)
    }

    /// Takes a block beside others that can be moved, from any shard, `first` before the others.
    pub(crate) fn take_beside(&self, order: Order, first: usize) -> Option<Pfn> {
        if order >= BLOCK_ORDER || self.totals.reserve(1, order, Floor::Min) == 0 {
            return None;
        }
        let shards = (0..self.count).map(|i| (first + i) % self.count);
        let mut got = shards.filter_map(|s| {
            let n = self.with(s, |e| e.take_beside(order)).flatten()?;
            Some(n + self.shards[s].start)
        });
        let n = got.next();
        if n.is_none() {
            self.totals.add(1, order);
        }
        n.map(|n| self.frame(n))
    }

    /// Takes a free run of which something has not been reported, and its shard.
    pub(crate) fn take_unreported(&self, order: Order) -> Option<(usize, FreeRun)> {
        (0..self.count).find_map(|shard| {
            let run = self.with(shard, |e| {
                // What would be reserved in vain would be missing meanwhile.
                let is_there = e.has_unreported(order);
                let may = is_there && self.totals.reserve(1, order, Floor::Min) == 1;
                may.then(|| e.take_unreported(order)).flatten()
            });
            Some((shard, run.flatten()?))
        })
    }

    /// Takes one block without a `Local`, down to the min watermark.
    ///
    /// # Errors
    /// As [`Local::alloc`](crate::local::Local::alloc).
    pub fn take_one(&self, order: Order, mt: MigrateType) -> Result<Pfn, AllocError> {
        let from = (0, Floor::Min);
        let got = self.take_frame(order, mt, from);
        got.or_else(|why| self.take_drained(order, mt, from, why))
    }

    /// Gives one block back without a `Local`.
    ///
    /// # Errors
    /// [`GiveError`], if no such block begins there, or if it is not in use as a whole: it stays as it is.
    ///
    /// # Safety
    /// The block is the caller's, and nobody uses it any more: it was taken from this memory, as it is or as a part of a
    /// larger one, and not given back since. What is free already is refused, but the maps do not know whose a frame is: one
    /// that somebody else has would be handed out once more.
    #[allow(unsafe_code, reason = "a promise of the caller, and no operation")]
    pub unsafe fn give_one(
        &self,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        self.give_back(pfn, order, mt)
    }

    /// The same for a block that is known to be the caller's.
    pub(crate) fn give_back(
        &self,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let n = self.block(pfn, order).ok_or(self.no_block(pfn))?;
        self.give(&mut [n], order, mt)
    }

    /// Why no block that could be given back begins at a frame.
    #[cold]
    pub(crate) fn no_block(&self, pfn: Pfn) -> GiveError {
        match self.number(pfn) {
            Some(_) => GiveError::NotABlock(pfn),
            None => GiveError::NoMemory(pfn),
        }
    }

    /// The shard that the `Local` with a number takes from first.
    pub(crate) fn home_of(&self, local: usize) -> usize {
        local % self.count
    }

    /// Free frames, those that `Local`s keep among them: exact, if nobody takes or gives any.
    pub fn free_frames(&self) -> u64 {
        self.totals.free() + self.slots.held()
    }

    /// What the maps of all shards say. Frames that `Local`s keep are in use for them.
    pub fn counts(&self) -> EngineCounts {
        let mut sum = EngineCounts::default();
        for c in self.each(|e| e.counts()) {
            sum.present += c.present;
            sum.free += c.free;
            sum.whole += c.whole;
            sum.tainted += c.tainted;
            sum.tainted_gigabytes += c.tainted_gigabytes;
            for (sum, n) in sum.holding.iter_mut().zip(c.holding) {
                *sum += n;
            }
        }
        sum
    }

    /// Free blocks by type and order, in the maps of all shards.
    pub fn free_blocks(&self) -> FreeBlocks {
        let mut sum = FreeBlocks::default();
        for own in self.each(|e| e.free_blocks()) {
            let all = sum.of.iter_mut().zip(own.of);
            for (sum, n) in all.flat_map(|(s, n)| s.iter_mut().zip(n)) {
                *sum += n;
            }
            for (sum, n) in sum.blocks.iter_mut().zip(own.blocks) {
                *sum += n;
            }
        }
        sum
    }

    /// Calls `f` with the first frame of each block of 512 frames, and with what it holds. A shard is locked meanwhile, so `f`
    /// must neither take nor give frames.
    pub fn each_block(&self, mut f: impl FnMut(Pfn, BlockView)) {
        for (shard, part) in self.shards[..self.count].iter().enumerate() {
            self.with(shard, |e| {
                let starts = (part.start..).step_by(BLOCK_ORDER.frames() as usize);
                starts
                    .zip(e.blocks())
                    .for_each(|(n, b)| f(self.frame(n), b));
            });
        }
    }

    /// Blocks of 512 frames that are free as a whole.
    pub fn whole_blocks(&self) -> u32 {
        self.each(|e| e.whole_blocks()).sum()
    }

    /// What [`take_short`](Self::take_short) would say; it may be asked often.
    #[inline]
    pub fn is_short(&self) -> bool {
        self.totals.is_short()
    }

    /// Whether memory fell below the low watermark since the last call: then somebody should reclaim.
    pub fn take_short(&self) -> bool {
        self.totals.take_short()
    }

    /// Blocks that were refused when a `Local` gave its frames back at its end: they had been freed twice.
    pub fn refused(&self) -> u64 {
        // A count that stands for itself.
        self.refused.load(Relaxed)
    }

    /// Checks the invariants of each shard.
    ///
    /// # Errors
    /// [`Broken`](crate::maps::Broken), for the first shard that breaks one.
    pub fn validate(&self) -> Result<(), crate::maps::Broken> {
        self.each(Engine::validate).collect()
    }

    pub(crate) fn count_refused(&self) {
        // A count that stands for itself.
        self.refused.fetch_add(1, Relaxed);
    }

    /// The number of a frame in the maps.
    #[inline]
    pub(crate) fn number(&self, pfn: Pfn) -> Option<u32> {
        let n = pfn.0.wrapping_sub(self.base.0);
        (n < u64::from(self.frames)).then_some(n as u32)
    }

    /// The number of the first frame of a block, if there is room for one of this order there: it is aligned, and ends with
    /// the memory at the latest.
    #[inline]
    pub(crate) fn block(&self, pfn: Pfn, order: Order) -> Option<u32> {
        // The bits that a multiple of the size has not become the highest: no number of blocks is as large.
        let blocks = pfn.0.wrapping_sub(self.base.0).rotate_right(order.0.into());
        let is_block = order <= LARGEST_ORDER && blocks < u64::from(self.frames >> order.0);
        is_block.then(|| (blocks << order.0) as u32)
    }

    /// The number of a frame that is within the memory.
    #[inline]
    pub(crate) fn number_of(&self, pfn: Pfn) -> u32 {
        pfn.0.wrapping_sub(self.base.0) as u32
    }

    /// The frame with a number.
    #[inline]
    pub(crate) fn frame(&self, number: u32) -> Pfn {
        Pfn(self.base.0 + u64::from(number))
    }

    /// Takes up to `out.len()` blocks, as many as leave the floor. Returns how many, at least one.
    ///
    /// # Errors
    /// As [`Local::alloc`](crate::local::Local::alloc).
    pub(crate) fn take(
        &self,
        out: &mut [u32],
        order: Order,
        mt: MigrateType,
        (home, floor): (usize, Floor),
    ) -> Result<usize, AllocError> {
        if order > LARGEST_ORDER {
            return Err(AllocError::OrderTooLarge);
        }
        let granted = self.totals.reserve(out.len(), order, floor);
        if granted == 0 {
            return Err(AllocError::Short);
        }
        let got = self.take_reserved(&mut out[..granted], order, mt, home);
        self.totals.add(granted - got, order);
        if got == 0 {
            return Err(AllocError::Fragmented);
        }
        Ok(got)
    }

    /// Takes blocks from the first shard that has some, beginning at `home`. Types mix only if each shard would have to
    /// mix them. What cannot be moved is taken from the same shard by all.
    fn take_reserved(&self, out: &mut [u32], order: Order, mt: MigrateType, home: usize) -> usize {
        for mixes in [false, true] {
            for i in 0..self.count {
                // Down from the last shard, for what cannot be moved; up from home, for what can.
                let i = if mt == MigrateType::Movable {
                    home + i
                } else {
                    self.count - 1 - i
                };
                let shard = &self.shards[i % self.count];
                let Some(engine) = &shard.engine else {
                    continue;
                };
                let got = engine.lock().take(out, order, mt, mixes);
                if got > 0 {
                    out[..got].iter_mut().for_each(|n| *n += shard.start);
                    return got;
                }
            }
        }
        0
    }

    /// Gives blocks back, each to its shard. A block that is refused stays out.
    pub(crate) fn give(
        &self,
        blocks: &mut [u32],
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        if blocks.is_empty() {
            return Ok(());
        }
        if let [shard, ..] = &self.shards
            && self.count == 1
        {
            // Its frames have the numbers of all.
            return self.give_to(shard, blocks, order, mt);
        }
        let mut result = Ok(());
        let mut rest = blocks;
        while let Some(&first) = rest.first() {
            let shard = &self.shards[(first / self.shard_frames) as usize % MAX_SHARDS];
            let n = shard.gather(rest);
            let (of_shard, others) = core::mem::take(&mut rest).split_at_mut(n.max(1));
            rest = others;
            if n == 0 {
                result = result.and(Err(GiveError::NoMemory(self.frame(first))));
                continue;
            }
            of_shard.iter_mut().for_each(|n| *n -= shard.start);
            result = result.and(self.give_to(shard, of_shard, order, mt));
        }
        result
    }

    /// Gives blocks back to their shard, which has its own numbers for them.
    #[inline]
    fn give_to(
        &self,
        shard: &Shard<'m, R>,
        blocks: &[u32],
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let Some(engine) = &shard.engine else {
            return Err(GiveError::NoMemory(self.frame(shard.start)));
        };
        let given = self.counted(engine, |e| e.give(blocks, order, mt));
        given.map_err(|why| why.shifted(self.frame(shard.start)))
    }

    /// Calls `f` with an engine, locked, and counts the frames that it gives back.
    #[inline]
    fn counted<T>(&self, engine: &Mutex<R, Engine<'m>>, f: impl FnOnce(&mut Engine<'m>) -> T) -> T {
        let (done, freed) = {
            let mut engine = engine.lock();
            let before = engine.free_frames();
            let done = f(&mut engine);
            (done, engine.free_frames().wrapping_sub(before))
        };
        self.totals.add_frames(freed);
        done
    }

    /// Gives a run back that was taken to be reported.
    pub(crate) fn give_reported(
        &self,
        shard: usize,
        run: FreeRun,
        done: bool,
    ) -> Result<(), GiveError> {
        let Some(engine) = self.shards.get(shard).and_then(|s| s.engine.as_ref()) else {
            return Ok(());
        };
        let given = self.counted(engine, |e| e.give_reported(run, done));
        given.map_err(|why| why.shifted(self.start_of(shard)))
    }
}
