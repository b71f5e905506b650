//! The frame table, 16 bytes for each frame, and the table of pageblocks, 4 bytes for each.
//!
//! Both are reached by `&`: their words are atomic, with relaxed loads and stores (plain moves). A free
//! frame's record belongs to its zone (and so to the holder of the zone); that of a frame in use belongs to its holder.
//! Relaxed suffices for each of them: a zone, and a frame with it, passes from one CPU to another through the lock around the
//! manager, whose release and acquire order these words.
//!
//! Invariant: only the first frame of a block carries its state; the others say [`FrameKind::Tail`]. A
//! frame says [`FrameKind::Buddy`] or [`FrameKind::Pcp`] exactly as long as it is on a list. A page that is
//! isolated says so in one way: it is [`FrameKind::Used`], on the LRU list `ISOLATED`.

use super::ids::{LruId, Pageblock, ZoneId};
#[cfg(doc)]
use super::state::FrameKind;
use super::state::{OwnerId, State};
#[cfg(feature = "lab")]
use super::uses::UseTable;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use unfrag::frame::{FrameIx, Geometry, MigrateType, Order};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Most zones of a manager.
pub const MAX_ZONES: usize = 16;

/// One entry of the frame table.
#[derive(FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct FrameMeta {
    /// Next on its list.
    next: AtomicU32,
    /// Previous on its list.
    prev: AtomicU32,
    /// The key that its owner stored.
    key: AtomicU32,
    state: AtomicU32,
}

const _: () = assert!(size_of::<FrameMeta>() == 16);

/// One entry of the table of pageblocks: type (3 bits), zone (8, from bit 8), and the zone's LRU lists (8,
/// from bit 16). Bit 3 is for compaction (skip), bit 7 says that it is a hole. While the type is `Isolate`, bits 4 to 6 keep the type that it had.
#[derive(FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct BlockMeta(AtomicU32);

impl BlockMeta {
    const TYPE: u32 = 7;
    const SKIP: u32 = 1 << 3;
    const KEPT: u32 = 4;
    const HOLE: u32 = 1 << 7;
    const ZONE: u32 = 8;
    const LRU: u32 = 16;
    /// It holds frames of several zones.
    const SHARED: u32 = 0xfe << Self::ZONE;
    /// It holds frames of no zone.
    const NO_ZONE: u32 = 0xff << Self::ZONE;
    const ZONE_MASK: u32 = 0xff << Self::ZONE;
    const LRU_MASK: u32 = 0xff << Self::LRU;
}

/// Frames of one zone, by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Span {
    pub start: FrameIx,
    pub end: FrameIx,
}

impl Span {
    #[inline]
    pub const fn holds(&self, ix: FrameIx) -> bool {
        ix.0 >= self.start.0 && ix.0 < self.end.0
    }
}

/// The frame table alone. It is passed by value, so that the compiler keeps its address in a register across
/// stores through it.
#[derive(Clone, Copy)]
pub(crate) struct Table<'m>(&'m [FrameMeta]);

impl<'m> Table<'m> {
    #[inline]
    pub fn meta(self, ix: FrameIx) -> &'m FrameMeta {
        &self.0[ix.index()]
    }
    /// The same, if there is such a frame.
    #[inline]
    pub fn get(self, ix: FrameIx) -> Option<&'m FrameMeta> {
        self.0.get(ix.index())
    }
    #[inline]
    pub fn state(self, ix: FrameIx) -> State {
        State(self.0[ix.index()].state.load(Relaxed))
    }
    #[inline]
    pub fn set_state(self, ix: FrameIx, state: State) {
        self.0[ix.index()].state.store(state.0, Relaxed);
    }
    #[inline]
    pub fn next(self, ix: FrameIx) -> FrameIx {
        FrameIx(self.0[ix.index()].next.load(Relaxed))
    }
    #[inline]
    pub fn set_next(self, ix: FrameIx, next: FrameIx) {
        self.0[ix.index()].next.store(next.0, Relaxed);
    }
    #[inline]
    pub fn prev(self, ix: FrameIx) -> FrameIx {
        FrameIx(self.0[ix.index()].prev.load(Relaxed))
    }
    #[inline]
    pub fn set_prev(self, ix: FrameIx, prev: FrameIx) {
        self.0[ix.index()].prev.store(prev.0, Relaxed);
    }
}

/// The frame table and the table of pageblocks.
pub(crate) struct Frames<'m> {
    pub table: Table<'m>,
    blocks: &'m [BlockMeta],
    pub geometry: Geometry,
    /// The frames of each zone, for pageblocks that two zones share.
    spans: [Span; MAX_ZONES],
    /// The LRU lists of each zone, for these pageblocks.
    lrus: [LruId; MAX_ZONES],
    /// Frames in use by pageblock, if they are counted.
    #[cfg(feature = "lab")]
    pub uses: Option<UseTable<'m>>,
}

impl<'m> Frames<'m> {
    /// Tables in which no frame exists and no pageblock belongs to a zone.
    pub fn new(
        meta: &'m [FrameMeta],
        blocks: &'m [BlockMeta],
        geometry: Geometry,
        initial: MigrateType,
    ) -> Frames<'m> {
        for b in blocks {
            b.0.store(initial as u32 | BlockMeta::NO_ZONE, Relaxed);
        }
        let none = Span {
            start: FrameIx::NIL,
            end: FrameIx::NIL,
        };
        Frames {
            table: Table(meta),
            blocks,
            geometry,
            spans: [none; MAX_ZONES],
            lrus: [LruId(0); MAX_ZONES],
            #[cfg(feature = "lab")]
            uses: None,
        }
    }

    /// The same in other tables of the same sizes; what is in use is not counted there.
    #[cfg(feature = "lab")]
    pub fn copied<'n>(&self, meta: &'n [FrameMeta], blocks: &'n [BlockMeta]) -> Frames<'n> {
        let copy = |to: &AtomicU32, from: &AtomicU32| to.store(from.load(Relaxed), Relaxed);
        for (to, from) in meta.iter().zip(self.table.0) {
            copy(&to.next, &from.next);
            copy(&to.prev, &from.prev);
            copy(&to.key, &from.key);
            copy(&to.state, &from.state);
        }
        for (to, from) in blocks.iter().zip(self.blocks) {
            copy(&to.0, &from.0);
        }
        Frames {
            table: Table(meta),
            blocks,
            geometry: self.geometry,
            spans: self.spans,
            lrus: self.lrus,
            uses: None,
        }
    }

    /// Adds the frames of a zone, all of them in the state `reserved`. `lru` is the set of LRU lists for its
    /// pages.
    pub fn add_zone(&mut self, zone: ZoneId, span: Span, lru: LruId, reserved: State) {
        self.spans[zone.index()] = span;
        self.lrus[zone.index()] = lru;
        for ix in span.start.until(span.end) {
            let e = self.table.meta(ix);
            e.next.store(FrameIx::NIL.0, Relaxed);
            e.prev.store(FrameIx::NIL.0, Relaxed);
            e.state.store(reserved.0, Relaxed);
        }
        if span.start >= span.end {
            return;
        }
        let first = Pageblock::of(span.start, &self.geometry).0;
        let last = Pageblock::of(FrameIx(span.end.0 - 1), &self.geometry).0;
        for b in &self.blocks[first as usize..=last as usize] {
            let word = b.0.load(Relaxed);
            let of = match word & BlockMeta::ZONE_MASK {
                BlockMeta::NO_ZONE => u32::from(zone.0) << BlockMeta::ZONE,
                _ => BlockMeta::SHARED,
            };
            let of = of | u32::from(lru.0) << BlockMeta::LRU;
            let kept = word & !(BlockMeta::ZONE_MASK | BlockMeta::LRU_MASK);
            b.0.store(kept | of, Relaxed);
        }
    }

    /// Entries of the table of pageblocks.
    #[cfg(feature = "lab")]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Address of the frame table.
    pub fn address(&self) -> usize {
        self.table.0.as_ptr().addr()
    }

    #[inline]
    pub fn state(&self, ix: FrameIx) -> State {
        self.table.state(ix)
    }
    #[inline]
    pub fn set_state(&self, ix: FrameIx, state: State) {
        #[cfg(feature = "lab")]
        if let Some(uses) = self.uses {
            uses.change(ix, self.state(ix), state);
        }
        self.table.set_state(ix, state);
    }
    /// Owner of a frame, and the key that it stored; key 0 without an owner.
    #[inline]
    pub fn owner(&self, ix: FrameIx) -> (OwnerId, u32) {
        match self.state(ix).owner() {
            OwnerId::NONE => (OwnerId::NONE, 0),
            owner => (owner, self.key(ix)),
        }
    }
    /// What the last owner of a frame stored.
    #[inline]
    pub fn key(&self, ix: FrameIx) -> u32 {
        self.table.meta(ix).key.load(Relaxed)
    }
    #[inline]
    pub fn set_key(&self, ix: FrameIx, key: u32) {
        self.table.meta(ix).key.store(key, Relaxed);
    }

    #[inline]
    fn block(&self, ix: FrameIx) -> &AtomicU32 {
        &self.blocks[Pageblock::of(ix, &self.geometry).0 as usize].0
    }
    /// Type of the pageblock that holds `ix`.
    #[inline]
    pub fn block_type(&self, ix: FrameIx) -> MigrateType {
        MigrateType::from_bits(self.block(ix).load(Relaxed) as u8)
    }
    /// Zone that a frame belongs to.
    #[inline]
    pub fn zone_of(&self, ix: FrameIx) -> ZoneId {
        self.zone_in(self.block(ix).load(Relaxed), ix)
    }
    /// Zone that a frame belongs to, and the type of its pageblock.
    #[inline]
    pub fn zone_and_type(&self, ix: FrameIx) -> (ZoneId, MigrateType) {
        let word = self.block(ix).load(Relaxed);
        (self.zone_in(word, ix), MigrateType::from_bits(word as u8))
    }
    #[inline]
    fn zone_in(&self, word: u32, ix: FrameIx) -> ZoneId {
        match word & BlockMeta::ZONE_MASK {
            BlockMeta::SHARED => self.zone_by_span(ix),
            of => ZoneId((of >> BlockMeta::ZONE) as u8),
        }
    }
    /// The set of LRU lists for the page in a frame.
    #[inline]
    pub fn lru_of(&self, ix: FrameIx) -> LruId {
        let word = self.block(ix).load(Relaxed);
        match word & BlockMeta::ZONE_MASK {
            BlockMeta::SHARED => self.lrus[self.zone_by_span(ix).index()],
            _ => LruId((word >> BlockMeta::LRU) as u8),
        }
    }
    #[cold]
    fn zone_by_span(&self, ix: FrameIx) -> ZoneId {
        let found = self.spans.iter().position(|s| s.holds(ix));
        ZoneId(found.map_or(u8::MAX, |z| z as u8))
    }
    /// Whether the pageblock that holds `ix` holds frames of several zones.
    #[inline]
    pub fn is_shared(&self, ix: FrameIx) -> bool {
        self.block(ix).load(Relaxed) & BlockMeta::ZONE_MASK == BlockMeta::SHARED
    }
    /// Whether compaction skips the pageblock that holds `ix`.
    #[inline]
    pub fn is_skipped(&self, ix: FrameIx) -> bool {
        self.block(ix).load(Relaxed) & BlockMeta::SKIP != 0
    }
    /// Says whether compaction is to skip the pageblock that holds `ix`.
    #[inline]
    pub fn set_skipped(&self, ix: FrameIx, skipped: bool) {
        let b = self.block(ix);
        let bit = if skipped { BlockMeta::SKIP } else { 0 };
        b.store(b.load(Relaxed) & !BlockMeta::SKIP | bit, Relaxed);
    }
    /// Whether the pageblock that holds `ix` is a hole: nothing of it is memory.
    #[inline]
    pub fn is_hole(&self, ix: FrameIx) -> bool {
        self.block(ix).load(Relaxed) & BlockMeta::HOLE != 0
    }
    /// Says that the pageblock that holds `ix` is a hole.
    pub fn set_hole(&self, ix: FrameIx) {
        let b = self.block(ix);
        b.store(b.load(Relaxed) | BlockMeta::HOLE, Relaxed);
    }
    /// Gives the pageblock that holds `ix` a type.
    #[inline]
    pub fn set_block_type(&self, ix: FrameIx, mt: MigrateType) {
        let b = self.block(ix);
        b.store(b.load(Relaxed) & !BlockMeta::TYPE | mt as u32, Relaxed);
    }
    /// Sets the pageblock that holds `ix` apart: it becomes `Isolate`, and keeps in mind what it was.
    pub fn set_apart(&self, ix: FrameIx) {
        let b = self.block(ix);
        let word = b.load(Relaxed);
        let kept = (word & BlockMeta::TYPE) << BlockMeta::KEPT;
        let rest = word & !(BlockMeta::TYPE | BlockMeta::TYPE << BlockMeta::KEPT);
        b.store(rest | kept | MigrateType::Isolate as u32, Relaxed);
    }
    /// Gives the pageblock that holds `ix`, which was set apart, its type back.
    pub fn rejoin(&self, ix: FrameIx) -> MigrateType {
        let word = self.block(ix).load(Relaxed);
        let mt = MigrateType::from_bits((word >> BlockMeta::KEPT) as u8);
        self.set_block_type(ix, mt);
        mt
    }
    /// Gives every pageblock within a block of order `order` at `ix` a type.
    pub fn set_block_types(&self, ix: FrameIx, order: Order, mt: MigrateType) {
        let mut at = ix;
        while at < ix.plus(order.frames()) {
            self.set_block_type(at, mt);
            at = at.plus(self.geometry.block_order.frames());
        }
    }

    /// The block, in use or free, that holds a frame: its first frame.
    pub fn block_at(&self, ix: FrameIx) -> Option<FrameIx> {
        self.geometry
            .orders()
            .map(|order| (ix.head(order), order))
            .find(|&(head, order)| {
                let s = self.state(head);
                s.kind().heads_block() && s.order() >= order
            })
            .map(|(head, _)| head)
    }

    /// The block on the buddy lists that holds a frame: its first frame.
    pub fn buddy_of(&self, ix: FrameIx) -> Option<FrameIx> {
        self.block_at(ix).filter(|&ix| self.state(ix).is_buddy())
    }

    /// The block larger than a pageblock that began before `ix`, the first frame of a pageblock, and
    /// reaches into it.
    pub fn larger_block(&self, ix: FrameIx) -> Option<State> {
        let from = Order(self.geometry.block_order.0 + 1);
        from.up_to(self.geometry.max_order)
            .map(|order| (order, ix.head(order)))
            .filter(|&(_, head)| head < ix)
            .map(|(order, head)| (order, self.state(head)))
            .find(|(order, s)| s.kind().heads_block() && s.order() >= *order)
            .map(|(_, s)| s)
    }
}
