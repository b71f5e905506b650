//! What a gigabyte's frames need to be known by: [`Tables`], in words that whoever adds the memory hands in; and the
//! [`Directory`], which leads to the tables of each gigabyte of a span.
//!
//! Invariant: a block that is in a bin, and a gigabyte that is, have tables.

use super::block::Block;
use super::credit::Credit;
use super::map::{Map, set};
use super::sizes::{ABSENT, BLOCK_ORDER, FRAMES, LARGEST_ORDER};
use super::whole::Whole;
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Blocks of a gigabyte.
const BLOCKS: usize = FRAMES as usize;

/// The tables of a gigabyte, of which some or all is memory: 0.175 bytes a frame.
#[derive(FromBytes, IntoBytes, KnownLayout)]
#[repr(C, align(64))]
pub(super) struct Tables {
    maps: [Map; BLOCKS],
    /// Maps of absent frames, for the blocks that are partly memory.
    pub absent: [Map; ABSENT],
    pub whole: Whole,
    credits: [Credit; BLOCKS],
    blocks: [Block; BLOCKS],
}

/// Words of a gigabyte's tables, which begin at a cache line.
pub(super) const WORDS: usize = size_of::<Tables>() / 8;

/// Words that may have to be left out before the first tables.
pub(super) const SKIP: usize = align_of::<Tables>() / 8 - 1;

/// Whether some words have room for the tables of so many gigabytes.
pub(super) fn fits(supply: &[u64], gigabytes: usize) -> bool {
    let words = gigabytes.checked_mul(WORDS);
    let words = words.and_then(|words| words.checked_add(skip(supply)));
    gigabytes == 0 || words.is_some_and(|words| words <= supply.len())
}

/// Words before the first cache line.
fn skip(supply: &[u64]) -> usize {
    supply.as_ptr().align_offset(align_of::<Tables>()).min(SKIP)
}

impl Tables {
    /// Tables in the first words of `supply`, if there are enough: of a gigabyte whose blocks are all alike, and none of which
    /// is known to be free as a whole.
    fn new<'m>(supply: &mut &'m mut [u64], map: Map, block: Block) -> Option<&'m mut Tables> {
        if !fits(supply, 1) {
            return None;
        }
        let words = core::mem::take(supply);
        let (_, words) = words.split_at_mut(skip(words));
        let (own, rest) = words.split_at_mut(WORDS);
        *supply = rest;
        let tables = Tables::mut_from_bytes(own.as_mut_bytes()).ok()?;
        tables.maps.fill(map);
        tables.absent.fill(Map::EMPTY);
        tables.whole = Whole::EMPTY;
        tables.credits.fill(Credit::NONE);
        tables.blocks.fill(block);
        Some(tables)
    }

    /// Whether some of the gigabyte is memory.
    pub fn has_memory(&self) -> bool {
        self.blocks.iter().any(|b| b.absent() < FRAMES)
    }

    /// Its blocks and their maps.
    pub fn blocks(&self) -> impl Iterator<Item = (Block, &Map)> {
        self.records(0, FRAMES).zip(&self.maps)
    }

    /// So many blocks of it.
    pub fn records(&self, first: u32, blocks: u32) -> impl Iterator<Item = Block> + Clone {
        let own = self.blocks.iter().zip(&self.credits);
        let own = own.skip(first as usize).take(blocks as usize);
        own.map(|(block, credit)| credit.settled(*block))
    }

    /// A block, by the last bits of its number.
    #[inline]
    pub fn block(&self, i: u32) -> Block {
        let at = (i % FRAMES) as usize;
        self.credits[at].settled(self.blocks[at])
    }

    /// The same, to change it.
    #[inline]
    pub fn block_mut(&mut self, i: u32) -> &mut Block {
        self.parts_mut((i % FRAMES) as usize).0
    }

    /// Takes whole free blocks, as many as there is room in `out`, the lowest first, and writes where they begin there:
    /// `base` is where the gigabyte does. Returns how many, and whether they have been [counted](Whole::count).
    #[inline]
    pub fn take_wholes(&mut self, base: u64, out: &mut [u64], mt: usize) -> (usize, bool) {
        let (blocks, whole) = (&mut self.blocks, &mut self.whole);
        let mut slots = out.iter_mut();
        whole.whole.take_each(&mut whole.reported, |i| {
            let Some(slot) = slots.next() else {
                return false;
            };
            // It is in no bin, and so has no credit.
            blocks[(i % FRAMES) as usize].use_whole(mt);
            *slot = base + u64::from(i) * u64::from(FRAMES);
            true
        });
        let left = slots.len();
        let got = out.len() - left;
        (got, whole.count(-(got as i32), 0))
    }

    /// A block, to change it, and its map.
    #[inline]
    fn parts_mut(&mut self, at: usize) -> (&mut Block, &mut Map) {
        let (block, credit) = (&mut self.blocks[at], &mut self.credits[at]);
        if *credit != Credit::NONE {
            *block = credit.settled(*block);
            *credit = Credit::NONE;
        }
        (block, &mut self.maps[at])
    }

    /// Whether the credits of its blocks are as their records allow.
    pub fn has_right_credits(&self) -> bool {
        let mut all = self.credits.iter().zip(&self.blocks);
        all.all(|(credit, block)| credit.is_right(block))
    }

    fn words_mut(&mut self) -> Option<&mut [u64]> {
        <[u64]>::mut_from_bytes(self.as_mut_bytes()).ok()
    }
}

/// An entry of a directory: a gigabyte with memory, or without.
#[derive(Default)]
pub struct Gigabyte<'m>(Option<&'m mut Tables>);

impl Gigabyte<'_> {
    /// A gigabyte without memory.
    pub const NONE: Self = Gigabyte(None);

    /// Whether it has no tables.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl core::fmt::Debug for Gigabyte<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let has = if self.0.is_some() { "memory" } else { "none" };
        f.debug_tuple("Gigabyte").field(&has).finish()
    }
}

/// What holds the entries of a directory: an array, or a slice.
pub trait Entries<'m>: AsRef<[Gigabyte<'m>]> + AsMut<[Gigabyte<'m>]> {}
impl<'m, D: AsRef<[Gigabyte<'m>]> + AsMut<[Gigabyte<'m>]>> Entries<'m> for D {}

/// The gigabytes of a span. Blocks are numbered from its first one.
pub(super) struct Directory<'m, D> {
    of: D,
    tables: core::marker::PhantomData<Gigabyte<'m>>,
}

impl<'m, D> Directory<'m, D> {
    pub const fn new(of: D) -> Self {
        Directory {
            of,
            tables: core::marker::PhantomData,
        }
    }
}

impl<'m, D: Entries<'m>> Directory<'m, D> {
    /// Entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.of.as_ref().len()
    }

    /// The tables of a gigabyte, if some of it is memory.
    #[inline]
    pub fn get(&self, g: u32) -> Option<&Tables> {
        self.of.as_ref().get(g as usize)?.0.as_deref()
    }

    /// The same, to change them.
    #[inline]
    pub fn get_mut(&mut self, g: u32) -> Option<&mut Tables> {
        self.of.as_mut().get_mut(g as usize)?.0.as_deref_mut()
    }

    /// The tables of a gigabyte that has some.
    #[inline]
    pub fn of(&self, g: u32) -> &Tables {
        match self.get(g) {
            Some(tables) => tables,
            None => unreachable!("what is in a bin has tables"),
        }
    }

    /// The same, to change them.
    #[inline]
    pub fn of_mut(&mut self, g: u32) -> &mut Tables {
        match self.get_mut(g) {
            Some(tables) => tables,
            None => unreachable!("what is in a bin has tables"),
        }
    }

    /// The gigabytes with tables, and their numbers.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Tables)> {
        let all = (0..).zip(self.of.as_ref());
        all.filter_map(|(g, own)| Some((g, own.0.as_deref()?)))
    }

    /// The tables of the gigabyte of a frame, by its number in the span, and the place of its block there. Any number will
    /// do: what is before the span is far behind it.
    #[inline(always)]
    fn at(&mut self, frame: u64) -> Option<(&mut Tables, usize)> {
        let g = usize::try_from(frame >> LARGEST_ORDER.0).ok()?;
        let tables = self.of.as_mut().get_mut(g)?.0.as_deref_mut()?;
        Some((tables, (frame >> BLOCK_ORDER.0) as usize % BLOCKS))
    }

    /// Gives single frames of a span that begins at `start` back, that were asked for as `mt`, as long as the block of each has
    /// a credit for it, and so is of that type. Returns how many.
    ///
    /// It calls nothing, so all that it needs stays in registers.
    #[inline(never)]
    pub fn give_on_credit(&mut self, start: u64, frames: &[u64], mt: usize) -> usize {
        let mut all = frames.iter();
        let refused = all.position(|frame| !self.give_one_on_credit(frame.wrapping_sub(start), mt));
        refused.unwrap_or(frames.len())
    }

    /// The same for as many frames as there are that come `later`, whose lines are fetched.
    #[inline(never)]
    pub fn give_on_credit_and_fetch(
        &mut self,
        start: u64,
        frames: &[u64],
        later: &[u64],
        mt: usize,
    ) -> usize {
        let mut all = frames.iter().zip(later);
        let refused = all.position(|(frame, later)| {
            self.fetch(later.wrapping_sub(start));
            !self.give_one_on_credit(frame.wrapping_sub(start), mt)
        });
        refused.unwrap_or(frames.len().min(later.len()))
    }

    /// The same for frames in a row: a word of a map is written once for all of its frames that come one after the other.
    #[inline(never)]
    pub fn give_row_on_credit(&mut self, start: u64, frames: &[u64], mt: usize) -> usize {
        let mut done = 0;
        while let Some(&first) = frames.get(done) {
            let first = first.wrapping_sub(start);
            let Some((tables, at)) = self.at(first) else {
                break;
            };
            let word = Map::word_of(&mut tables.maps, first);
            let (mut credit, mut bits) = (tables.credits[at], *word);
            let before = done;
            while let Some(&frame) = frames.get(done)
                && let frame = frame.wrapping_sub(start)
                && Map::is_same_word(frame, first)
                && let Some(less) = credit.less_one(mt)
                && set(&mut bits, frame)
            {
                credit = less;
                done += 1;
            }
            (tables.credits[at], *word) = (credit, bits);
            if done == before {
                break;
            }
        }
        done
    }

    /// Gives a single frame back, by its number in the span, if its block has a credit for it. False, and nothing has changed,
    /// otherwise.
    #[inline(always)]
    fn give_one_on_credit(&mut self, frame: u64, mt: usize) -> bool {
        let Some((tables, at)) = self.at(frame) else {
            return false;
        };
        let credit = &mut tables.credits[at];
        match credit.less_one(mt) {
            Some(less) if Map::set_of(&mut tables.maps, frame) => {
                *credit = less;
                true
            }
            _ => false,
        }
    }

    /// Gives a single frame back, by its number in the span, that was asked for as `mt`, if that only counts: whether its
    /// block, which is granted a credit, is of another type than movable. `None`, and nothing has changed, if it is to do more, or
    /// cannot be given back.
    pub fn count(&mut self, frame: u64, mt: usize) -> Option<bool> {
        let (tables, at) = self.at(frame)?;
        let (block, _) = tables.parts_mut(at);
        let counts = block.only_counts(mt) && Map::set_of(&mut tables.maps, frame);
        counts.then(|| {
            let block = &mut tables.blocks[at];
            block.give(mt, 1);
            tables.credits[at] = Credit::of(block, mt);
            block.is_kept()
        })
    }

    /// The tables of the gigabyte of a frame, by its number in the span: any number will do.
    #[inline(always)]
    fn around(&self, frame: u64) -> Option<&Tables> {
        let g = usize::try_from(frame >> LARGEST_ORDER.0).ok()?;
        self.of.as_ref().get(g)?.0.as_deref()
    }

    /// Whether the bit of a frame is set in its map, by its number in the span.
    #[inline(always)]
    pub fn has_bit(&self, frame: u64) -> bool {
        let tables = self.around(frame);
        tables.is_some_and(|tables| Map::has(&tables.maps, frame))
    }

    /// Whether the block of a frame is free as a whole, by its number in the span.
    #[inline(always)]
    pub fn is_whole(&self, frame: u64) -> bool {
        let at = (frame >> BLOCK_ORDER.0) as u32 % FRAMES;
        let tables = self.around(frame);
        tables.is_some_and(|tables| tables.whole.whole.is_free(at))
    }

    /// The block of a frame, by its number in the span, if it is [in use as a whole](Block::is_intact_of), so that it has no
    /// credit; and the whole free ones of its gigabyte.
    #[inline(always)]
    pub fn intact_of(&mut self, frame: u64, mt: usize) -> Option<(&mut Block, &mut Whole)> {
        let (tables, at) = self.at(frame)?;
        let block = &mut tables.blocks[at];
        block.is_intact_of(mt).then_some((block, &mut tables.whole))
    }

    /// Has what [`give_on_credit`](Self::give_on_credit) needs of a frame in the cache soon.
    #[inline(always)]
    pub fn fetch(&self, frame: u64) {
        if let Some(tables) = self.around(frame) {
            Map::fetch_of(&tables.maps, frame);
        }
    }

    /// Grants the block of a frame, by its number in the span, what it may be granted.
    #[inline]
    pub fn grant(&mut self, frame: u64, mt: usize) {
        if let Some((tables, at)) = self.at(frame) {
            let (block, _) = tables.parts_mut(at);
            tables.credits[at] = Credit::of(block, mt);
        }
    }

    /// A block and its map, if it has some.
    #[inline]
    pub fn block_and_map(&mut self, i: u32) -> Option<(&mut Block, &mut Map)> {
        let tables = self.get_mut(i / FRAMES)?;
        Some(tables.parts_mut((i % FRAMES) as usize))
    }

    /// A block, if its gigabyte has tables.
    #[inline]
    pub fn find(&self, i: u32) -> Option<Block> {
        Some(self.get(i / FRAMES)?.block(i))
    }

    /// A block whose gigabyte has tables.
    #[inline]
    pub fn block(&self, i: u32) -> Block {
        self.of(i / FRAMES).block(i)
    }

    /// The same, to change it.
    #[inline]
    pub fn block_mut(&mut self, i: u32) -> &mut Block {
        self.of_mut(i / FRAMES).block_mut(i)
    }

    /// The next one of such a block's bin.
    #[inline]
    pub fn next(&self, i: u32) -> u32 {
        self.of(i / FRAMES).blocks[(i % FRAMES) as usize].next
    }

    /// Changes the links of such a block, which are no part of what a credit relies on.
    #[inline]
    pub fn link(&mut self, i: u32, change: impl FnOnce(&mut u32, &mut u32)) {
        let block = &mut self.of_mut(i / FRAMES).blocks[(i % FRAMES) as usize];
        change(&mut block.next, &mut block.prev);
    }

    /// The map of such a block.
    #[inline]
    pub fn map(&self, i: u32) -> &Map {
        &self.of(i / FRAMES).maps[(i % FRAMES) as usize]
    }

    /// The same, to change it.
    #[inline]
    pub fn map_mut(&mut self, i: u32) -> &mut Map {
        &mut self.of_mut(i / FRAMES).maps[(i % FRAMES) as usize]
    }

    /// All blocks of the gigabytes with tables: their numbers, records and maps.
    pub fn blocks(&self) -> impl Iterator<Item = (u32, Block, &Map)> {
        self.all().flat_map(|(g, tables)| {
            let own = (g * FRAMES..).zip(tables.blocks());
            own.map(|(i, (block, map))| (i, block, map))
        })
    }

    /// Gives a gigabyte without tables some out of `supply`: then all of it is free memory. False, if it has some, or if there
    /// are too few words.
    pub fn make_free(&mut self, g: u32, supply: &mut &'m mut [u64]) -> bool {
        let Some(entry) = self.of.as_mut().get_mut(g as usize) else {
            return false;
        };
        if entry.0.is_some() {
            return false;
        }
        entry.0 = Tables::new(supply, Map::FULL, Block::FREE);
        entry.0.is_some()
    }

    /// Gives a gigabyte tables out of `supply`, if it has none. False, if there are too few words.
    pub fn make(&mut self, g: u32, supply: &mut &'m mut [u64]) -> bool {
        let Some(entry) = self.of.as_mut().get_mut(g as usize) else {
            return false;
        };
        if entry.0.is_none() {
            entry.0 = Tables::new(supply, Map::EMPTY, Block::NO_MEMORY);
        }
        entry.0.is_some()
    }

    /// Takes the tables of a gigabyte away, none of which is memory: their words.
    pub fn unmake(&mut self, g: u32) -> Option<&'m mut [u64]> {
        let entry = self.of.as_mut().get_mut(g as usize)?;
        let is_empty = entry.0.as_deref().is_some_and(|t| !t.has_memory());
        entry.0.take_if(|_| is_empty)?.words_mut()
    }
}
