//! [`Shared`]: memory in shards, each under its own lock.

use super::arrays::SINGLES;
use super::slot::Slot;
use crate::frame::{MigrateType, Order, Pfn};
use crate::maps::{
    BLOCK_ORDER, BlockView, Engine, EngineCounts, EngineLayout, FreeBlocks, GiveError,
    LARGEST_ORDER,
};
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use lock_api::{Mutex, RawMutex};
use zerocopy::FromBytes;

/// Most shards.
pub const MAX_SHARDS: usize = 16;

/// Frames of a gigabyte, at which shards and the memory begin.
const GIGABYTE: u32 = LARGEST_ORDER.frames();

/// What a [`Shared`] is made for.
#[derive(Clone, Copy, Debug)]
pub struct SharedConfig {
    /// The first frame, a multiple of 2^18: the frame table begins there, whether there is memory or not.
    pub base: Pfn,
    /// Frames that there may ever be.
    pub frames: u32,
    /// Shards of at least a gigabyte; 1 to [`MAX_SHARDS`]. One for each two CPUs is enough.
    pub shards: usize,
    /// CPUs or threads that have a [`Local`](super::Local) at the same time.
    pub locals: usize,
    /// A request fails that would leave fewer free frames than these, what [`Local`](super::Local)s keep not counted; but
    /// for [`alloc_atomic`](super::Local::alloc_atomic).
    pub min: u64,
    /// Below so many free frames, or the min watermark, somebody should reclaim; see [`Shared::take_short`].
    pub low: u64,
    /// Single frames of each type that a `Local` keeps at most, and fewer blocks of the other orders that it keeps: 1 to
    /// [`SINGLES`].
    pub keeps: u32,
}

impl SharedConfig {
    /// One shard and one local, without watermarks. A local keeps the less, the less memory there is.
    pub const fn new(base: Pfn, frames: u32) -> SharedConfig {
        let part = frames / 512;
        let keeps = if part < 8 {
            8
        } else if part > SINGLES as u32 {
            SINGLES as u32
        } else {
            part
        };
        SharedConfig {
            keeps,
            base,
            frames,
            shards: 1,
            locals: 1,
            min: 0,
            low: 0,
        }
    }

    /// Frames of each shard but the last.
    const fn shard_frames(&self) -> u32 {
        let shards = if self.shards == 0 { 1 } else { self.shards } as u32;
        let each = self.frames.div_ceil(shards).div_ceil(GIGABYTE);
        // Less than 2^32 frames in all: the last gigabyte may be cut short.
        each.saturating_mul(GIGABYTE)
    }

    /// Where each shard begins, and how many frames it has.
    fn parts(self) -> impl Iterator<Item = (u32, u32)> {
        let each = self.shard_frames().max(1);
        let starts = (0..self.frames).step_by(each as usize);
        starts.map(move |start| (start, (self.frames - start).min(each)))
    }
}

/// Memory for a [`Shared`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedLayout {
    /// 64-bit words, of any alignment and content.
    pub words: usize,
}

const SLOT_WORDS: usize = size_of::<Slot>() / 8;

impl SharedLayout {
    /// The memory for a configuration: about 0.16 bytes a frame, and 128 bytes a `Local`.
    pub fn of(config: &SharedConfig) -> SharedLayout {
        let engines = config.parts().map(|(_, n)| EngineLayout::of(n).words);
        SharedLayout {
            words: (config.locals + 1) * SLOT_WORDS + engines.sum::<usize>(),
        }
    }
}

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
pub(super) struct Apart {
    pub shard: usize,
    block: u32,
}

impl Apart {
    /// The frame at a place of the block.
    pub fn frame<R: RawMutex>(&self, at: u32, shared: &Shared<'_, R>) -> Pfn {
        let start = shared.shards[self.shard].start;
        shared.frame(start + self.block * BLOCK_ORDER.frames() + at)
    }
}

/// Counts that all CPUs write, alone on their cache line.
#[repr(align(128))]
struct Totals {
    /// Free frames of all shards.
    free: AtomicI64,
}

/// Memory that many CPUs allocate from. Each has a [`Local`](super::Local).
///
/// ```
/// use unfrag::shared::{Shared, SharedConfig, SharedLayout};
/// use unfrag::{MigrateType, Order, Pfn};
///
/// let config = SharedConfig { locals: 2, ..SharedConfig::new(Pfn(0), 1 << 18) };
/// let mut words = vec![0; SharedLayout::of(&config).words];
/// let shared = Shared::<spin::Mutex<()>>::new(config, &mut words).ok_or("no such memory")?;
/// shared.add(Pfn(0), 1 << 18)?;
///
/// std::thread::scope(|threads| {
///     for _ in 0..2 {
///         threads.spawn(|| {
///             let mut local = shared.local().expect("two of them");
///             let frame = local.alloc(Order(0), MigrateType::Movable).expect("memory");
///             local.free(frame, Order(0), MigrateType::Movable).expect("in use");
///         });
///     }
/// });
/// assert_eq!(shared.free_frames(), 1 << 18);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Shared<'m, R> {
    shards: [Shard<'m, R>; MAX_SHARDS],
    count: usize,
    shard_frames: u32,
    slots: &'m [Slot],
    totals: Totals,
    base: Pfn,
    frames: u32,
    min: i64,
    low: i64,
    keeps: u32,
    short: AtomicBool,
    refused: AtomicU64,
}

impl<'m, R: RawMutex> Shared<'m, R> {
    /// A memory without frames as yet: [`add`](Self::add) adds them. `None`, if `words` has fewer than
    /// [`SharedLayout::of`] says, if there are more shards than [`MAX_SHARDS`], or if the base is no multiple of 2^18.
    pub fn new(config: SharedConfig, words: &'m mut [u64]) -> Option<Shared<'m, R>> {
        let fits = (1..=MAX_SHARDS).contains(&config.shards) && config.frames > 0;
        let aligned = config.base.0.is_multiple_of(GIGABYTE.into());
        let words = words.get_mut(..SharedLayout::of(&config).words)?;
        if !fits || !aligned {
            return None;
        }
        // Slots are whole cache lines.
        let skip = words
            .as_ptr()
            .align_offset(size_of::<Slot>())
            .min(SLOT_WORDS);
        let (_, words) = words.split_at_mut(skip);
        let (slots, mut rest) = words.split_at_mut(config.locals * SLOT_WORDS);
        slots.fill(0);
        let bytes = zerocopy::IntoBytes::as_mut_bytes(slots);
        let slots: &[Slot] = <[Slot]>::mut_from_bytes(bytes).ok()?;
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
        Some(Shared {
            shards,
            count,
            shard_frames: config.shard_frames(),
            slots,
            totals: Totals {
                free: AtomicI64::new(0),
            },
            base: config.base,
            frames: config.frames,
            min: config.min as i64,
            low: config.low.max(config.min) as i64,
            keeps: config.keeps.clamp(1, SINGLES as u32),
            short: AtomicBool::new(false),
            refused: AtomicU64::new(0),
        })
    }

    /// Adds memory, all of it free: the `frames` frames from `start` on, which were not added before.
    ///
    /// # Errors
    /// [`GiveError`], if some of it is out of range, or free; what lies before it has been added.
    pub fn add(&self, start: Pfn, frames: u32) -> Result<(), GiveError> {
        let bad = GiveError::NotABlock(0);
        let first = self.number(start).ok_or(bad)?;
        let end = first.checked_add(frames).ok_or(bad)?;
        if end > self.frames {
            return Err(GiveError::NotABlock(self.frames));
        }
        for shard in &self.shards[..self.count] {
            let from = first.max(shard.start);
            let to = end.min(shard.start + shard.frames);
            if from < to
                && let Some(engine) = &shard.engine
            {
                engine.lock().add(from - shard.start, to - from)?;
                self.totals.free.fetch_add((to - from).into(), Relaxed);
            }
        }
        Ok(())
    }

    /// A slot that nobody has, and its number.
    pub(super) fn claim_slot(&self, limit: u32) -> Option<(usize, &Slot)> {
        let mut slots = self.slots.iter().enumerate();
        slots.find(|(_, slot)| slot.claim(limit))
    }

    /// How many shards there are.
    pub(super) fn shards(&self) -> usize {
        self.count
    }

    /// The first frame of a shard.
    pub(super) fn start_of(&self, shard: usize) -> Pfn {
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
    pub(super) fn set_apart(&self, most: u32) -> Option<Apart> {
        let cost = |s: &usize| {
            let cheapest = self.with(*s, |e| e.cheapest(most)).flatten();
            cheapest.map_or(u32::MAX, |(used, _)| used)
        };
        let shard = (0..self.count).min_by_key(cost)?;
        let block = self.with(shard, |e| e.set_apart(most)).flatten()?;
        Some(Apart { shard, block })
    }

    /// The first place from `at` on that is in use.
    pub(super) fn next_in_use(&self, apart: &Apart, at: u32) -> Option<u32> {
        self.with(apart.shard, |e| e.next_in_use(apart.block, at))
            .flatten()
    }

    pub(super) fn end_apart(&self, apart: &Apart) -> bool {
        let whole = self.with(apart.shard, |e| e.end_apart(apart.block));
        whole.unwrap_or(false)
    }

    /// Takes a block beside others that can be moved, from any shard, `first` before the others.
    pub(super) fn take_beside(&self, order: Order, first: usize) -> Option<Pfn> {
        let shards = (0..self.count).map(|i| (first + i) % self.count);
        let mut got = shards.filter_map(|s| {
            let n = self.with(s, |e| e.take_beside(order)).flatten()?;
            Some(n + self.shards[s].start)
        });
        let n = got.next()?;
        let frames = i64::from(order.frames());
        self.totals.free.fetch_sub(frames, Relaxed);
        Some(self.frame(n))
    }

    /// Takes one block without a `Local`, down to the min watermark.
    pub fn take_one(&self, order: Order, mt: MigrateType) -> Option<Pfn> {
        let allowed = order <= LARGEST_ORDER && self.allowed(1, order) == 1;
        allowed.then(|| self.take_below_min(order, mt, 0)).flatten()
    }

    /// Gives one block back without a `Local`.
    ///
    /// # Errors
    /// [`GiveError`], if it is not in use as a whole, or of another memory.
    pub fn give_one(&self, pfn: Pfn, order: Order, mt: MigrateType) -> Result<(), GiveError> {
        self.give_back(pfn, order, mt)
    }

    /// The same for what is known to be in use.
    pub(super) fn give_back(
        &self,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
        let n = self.number(pfn).ok_or(self.no_block(pfn))?;
        self.give(&mut [n], order, mt)
    }

    /// That no block begins at a frame.
    #[cold]
    pub(super) fn no_block(&self, pfn: Pfn) -> GiveError {
        GiveError::NotABlock(self.number(pfn).unwrap_or(u32::MAX))
    }

    /// Single frames that an array of a `Local` keeps.
    pub(super) fn keeps(&self) -> u32 {
        self.keeps
    }

    /// The shard that the `Local` with a number takes from first.
    pub(super) fn home_of(&self, local: usize) -> usize {
        local % self.count
    }

    /// Free frames, those that `Local`s keep among them, as of their last batches.
    pub fn free_frames(&self) -> u64 {
        let kept: u64 = self.slots.iter().map(|s| u64::from(s.held())).sum();
        self.totals.free.load(Relaxed).max(0) as u64 + kept
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
        self.short.load(Relaxed)
    }

    /// Whether memory fell below the low watermark since the last call: then somebody should reclaim.
    pub fn take_short(&self) -> bool {
        self.short.swap(false, Relaxed)
    }

    /// Blocks that were refused when a `Local` gave its frames back at its end: they had been freed twice.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Has each `Local` give back what it keeps, at its next free.
    pub fn call_home(&self) {
        self.slots.iter().for_each(Slot::call_home);
    }

    /// Checks the invariants of each shard.
    ///
    /// # Errors
    /// [`Broken`](crate::maps::Broken), for the first shard that breaks one.
    pub fn validate(&self) -> Result<(), crate::maps::Broken> {
        self.each(Engine::validate).collect()
    }

    pub(super) fn count_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// The number of a frame in the maps.
    #[inline]
    pub(super) fn number(&self, pfn: Pfn) -> Option<u32> {
        let n = pfn.0.wrapping_sub(self.base.0);
        (n < u64::from(self.frames)).then_some(n as u32)
    }

    /// The frame with a number.
    #[inline]
    pub(super) fn frame(&self, number: u32) -> Pfn {
        Pfn(self.base.0 + u64::from(number))
    }

    /// How many blocks a batch of `wanted` may take, so that the min watermark holds.
    pub(super) fn allowed(&self, wanted: usize, order: Order) -> usize {
        let free = self.totals.free.load(Relaxed);
        let after = free - ((wanted as i64) << order.0);
        if after >= self.low {
            return wanted;
        }
        self.short.store(true, Relaxed);
        let room = (free - self.min).max(0) >> order.0;
        wanted.min(room as usize)
    }

    /// Takes one block, whatever the min watermark says.
    pub(super) fn take_below_min(&self, order: Order, mt: MigrateType, home: usize) -> Option<Pfn> {
        let mut one = [0];
        (self.take(&mut one, order, mt, home) == 1).then(|| self.frame(one[0]))
    }

    /// Takes blocks from the first shard that has some, beginning at `home`. Types mix only if each shard would have to
    /// mix them. What cannot be moved is taken from the same shard by all.
    pub(super) fn take(
        &self,
        out: &mut [u32],
        order: Order,
        mt: MigrateType,
        home: usize,
    ) -> usize {
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
                    self.totals.free.fetch_sub((got as i64) << order.0, Relaxed);
                    return got;
                }
            }
        }
        0
    }

    /// Gives blocks back, each to its shard. A block that is refused stays out.
    pub(super) fn give(
        &self,
        blocks: &mut [u32],
        order: Order,
        mt: MigrateType,
    ) -> Result<(), GiveError> {
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
                result = result.and(Err(GiveError::NotABlock(first)));
                continue;
            }
            of_shard.iter_mut().for_each(|n| *n -= shard.start);
            let given = self.give_to(shard, of_shard, order, mt);
            result = result.and(given.map_err(|why| why.shifted(shard.start)));
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
            return Err(GiveError::NotABlock(shard.start));
        };
        self.counted(engine, |e| e.give(blocks, order, mt))
    }

    /// Calls `f` with an engine, locked, and counts the frames that it takes or gives.
    #[inline]
    fn counted<T>(&self, engine: &Mutex<R, Engine<'m>>, f: impl FnOnce(&mut Engine<'m>) -> T) -> T {
        let (done, freed) = {
            let mut engine = engine.lock();
            let before = engine.free_frames();
            let done = f(&mut engine);
            (done, engine.free_frames().wrapping_sub(before))
        };
        self.totals.free.fetch_add(freed as i64, Relaxed);
        done
    }

    /// The same with the engine of a shard.
    pub(super) fn with_counted<T>(
        &self,
        shard: usize,
        f: impl FnOnce(&mut Engine<'m>) -> T,
    ) -> Option<T> {
        let engine = self.shards.get(shard)?.engine.as_ref()?;
        Some(self.counted(engine, f))
    }
}
