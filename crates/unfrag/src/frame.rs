//! The vocabulary of memory, and the frame table: 16 bytes for each 4 KiB frame.
//!
//! A *frame* is a page of physical memory, named by its number ([`Pfn`]). A *block* of order `o` is
//! `2^o` frames whose first frame number is a multiple of `2^o`. Inside the core a frame is named by
//! its position in the frame table ([`Ix`]), which is congruent to its number modulo the largest
//! block, so that buddy arithmetic works on either.
//!
//! Invariant: only the first frame of a block carries its state; the others say [`Kind::Tail`]. A
//! frame says [`Kind::Buddy`] or [`Kind::Pcp`] exactly as long as it is on a list.

use bytemuck::{Pod, Zeroable};

/// Number of a physical frame (physical address / page size).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pfn(pub u64);

/// Position in the frame table.
pub type Ix = u32;

/// No frame.
pub const NIL: Ix = u32::MAX;

/// Largest order of a block: 2^10 frames, 4 MiB.
pub const MAX_ORDER: u8 = 10;

/// Number of orders.
pub const NR_ORDERS: usize = MAX_ORDER as usize + 1;

/// Frames in the largest block.
pub const MAX_BLOCK: u32 = 1 << MAX_ORDER;

/// Largest order that is cheap to get (`PAGE_ALLOC_COSTLY_ORDER`).
pub const COSTLY_ORDER: u8 = 3;

/// Order of a 2 MiB huge page.
pub const HUGE_ORDER: u8 = 9;

/// What a request or a pageblock is good for. One set of names for all eras: V19's `KernNoRclm`,
/// `EasyRclm` and `KernRclm` are [`Unmovable`](MigrateType::Unmovable),
/// [`Movable`](MigrateType::Movable) and [`Reclaimable`](MigrateType::Reclaimable). The numbers
/// that a kernel prints differ by era; they are ours here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MigrateType {
    /// Kernel memory that stays where it is.
    Unmovable = 0,
    /// Memory of users: it can be moved or swapped.
    Movable = 1,
    /// Kernel memory that a shrinker gives back.
    Reclaimable = 2,
    /// Reserve for high-order atomic requests (4.4 and later).
    HighAtomic = 3,
    /// `MIGRATE_RESERVE` of 2.6.24 to 4.3.
    Reserve = 4,
    /// V19's reserve for fallbacks.
    Fallback = 5,
    /// Contiguous memory areas.
    Cma = 6,
    /// Taken out of use for the time being.
    Isolate = 7,
}

/// Number of migrate types.
pub const NR_TYPES: usize = 8;

impl MigrateType {
    /// All types, in the order of their numbers here.
    pub const ALL: [MigrateType; NR_TYPES] = [
        MigrateType::Unmovable,
        MigrateType::Movable,
        MigrateType::Reclaimable,
        MigrateType::HighAtomic,
        MigrateType::Reserve,
        MigrateType::Fallback,
        MigrateType::Cma,
        MigrateType::Isolate,
    ];

    /// The type with this number.
    #[inline]
    pub const fn from_bits(bits: u8) -> MigrateType {
        Self::ALL[(bits & 7) as usize]
    }

    /// Its name, as `/proc/pagetypeinfo` has it; V19 had [others](crate::v19_type_name). `spec: linux-mm 7.1`
    pub const fn name(self) -> &'static str {
        match self {
            MigrateType::Unmovable => "Unmovable",
            MigrateType::Movable => "Movable",
            MigrateType::Reclaimable => "Reclaimable",
            MigrateType::HighAtomic => "HighAtomic",
            MigrateType::Reserve => "Reserve",
            MigrateType::Fallback => "Fallback",
            MigrateType::Cma => "CMA",
            MigrateType::Isolate => "Isolate",
        }
    }

    /// Whether requests ask for it: the first three.
    #[inline]
    pub const fn is_ordinary(self) -> bool {
        (self as u8) < 3
    }
}

/// What a frame is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// No memory here.
    Absent = 0,
    /// Memory that the boot kept; never handed out.
    Reserved = 1,
    /// Not the first frame of its block.
    Tail = 2,
    /// First frame of a block in use.
    Used = 3,
    /// First frame of a free block on a buddy list.
    Buddy = 4,
    /// First frame of a free block on a per-CPU list.
    Pcp = 5,
    /// First frame of a free block that somebody holds apart.
    Isolated = 6,
}

impl Kind {
    #[inline]
    const fn from_bits(bits: u32) -> Kind {
        match bits & 7 {
            0 => Kind::Absent,
            1 => Kind::Reserved,
            2 => Kind::Tail,
            3 => Kind::Used,
            4 => Kind::Buddy,
            5 => Kind::Pcp,
            _ => Kind::Isolated,
        }
    }
}

/// State of a frame in one word: kind (3 bits), order (4), migrate type (3), zone (4), movable (1),
/// LRU list (3), flags of reclaim (12).
///
/// The migrate type is that of the list while the block is free, and that of the request while it
/// is in use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State(u32);

impl State {
    const ORDER: u32 = 3;
    const TYPE: u32 = 7;
    const ZONE: u32 = 10;
    const MOVABLE: u32 = 1 << 14;
    const LRU: u32 = 15;
    const FLAGS: u32 = 18;

    /// A state without flags.
    #[inline]
    pub const fn new(kind: Kind, order: u8, mt: MigrateType, zone: u8) -> State {
        State(
            kind as u32
                | (order as u32) << Self::ORDER
                | (mt as u32) << Self::TYPE
                | (zone as u32 & 15) << Self::ZONE,
        )
    }
    /// What it is.
    #[inline]
    pub const fn kind(self) -> Kind {
        Kind::from_bits(self.0)
    }
    /// Whether it heads a block on a buddy list.
    #[inline]
    pub const fn is_buddy(self) -> bool {
        self.0 & 7 == Kind::Buddy as u32
    }
    /// Whether it heads a block of this order in use that is on no LRU list.
    #[inline]
    pub const fn is_used(self, order: u8) -> bool {
        let mask = 7 | 15 << Self::ORDER | 7 << Self::LRU;
        self.0 & mask == Kind::Used as u32 | (order as u32) << Self::ORDER
    }
    /// Order of the block.
    #[inline]
    pub const fn order(self) -> u8 {
        (self.0 >> Self::ORDER & 15) as u8
    }
    /// Type of its list, or of its request.
    #[inline]
    pub const fn mt(self) -> MigrateType {
        MigrateType::from_bits((self.0 >> Self::TYPE) as u8)
    }
    /// Zone it belongs to.
    #[inline]
    pub const fn zone(self) -> u8 {
        (self.0 >> Self::ZONE & 15) as u8
    }
    /// Whether its user can move it (on an LRU list or with movable operations).
    #[inline]
    pub const fn is_movable(self) -> bool {
        self.0 & Self::MOVABLE != 0
    }
    /// Code of the LRU list that it is on; 0 for none.
    #[inline]
    pub(crate) const fn lru(self) -> u8 {
        (self.0 >> Self::LRU & 7) as u8
    }
    /// The same on another LRU list.
    #[inline]
    #[must_use]
    pub(crate) const fn with_lru(self, code: u8) -> State {
        State(self.0 & !(7 << Self::LRU) | (code as u32) << Self::LRU)
    }
    /// Flags of reclaim.
    #[inline]
    pub(crate) const fn flags(self) -> u16 {
        (self.0 >> Self::FLAGS) as u16
    }
    /// The same with other flags.
    #[inline]
    #[must_use]
    pub(crate) const fn with_flags(self, flags: u16) -> State {
        State(self.0 & ((1 << Self::FLAGS) - 1) | (flags as u32) << Self::FLAGS)
    }
    /// Another state of the same frame: its zone stays.
    #[inline]
    #[must_use]
    pub const fn turned(self, kind: Kind, order: u8, mt: MigrateType) -> State {
        let zone = self.0 & 15 << Self::ZONE;
        State(zone | kind as u32 | (order as u32) << Self::ORDER | (mt as u32) << Self::TYPE)
    }
    /// The same with the movable flag set or cleared.
    #[inline]
    #[must_use]
    pub const fn with_movable(self, movable: bool) -> State {
        State(if movable {
            self.0 | Self::MOVABLE
        } else {
            self.0 & !Self::MOVABLE
        })
    }
}

/// One entry of the frame table.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct FrameMeta {
    /// Next on its list; [`NIL`] at the end.
    pub(crate) next: Ix,
    /// Previous on its list; [`NIL`] at the head.
    pub(crate) prev: Ix,
    /// What the user stored.
    pub(crate) key: u32,
    state: u32,
}

const _: () = assert!(core::mem::size_of::<FrameMeta>() == 16);

impl FrameMeta {
    /// Its state.
    #[inline]
    pub(crate) fn state(&self) -> State {
        State(self.state)
    }
    #[inline]
    pub(crate) fn set_state(&mut self, state: State) {
        self.state = state.0;
    }
}

/// A stretch of physical memory, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRange {
    /// First frame.
    pub start: Pfn,
    /// Number of frames.
    pub frames: u64,
}

/// Most stretches of the frame table (memory on either side of a large hole).
pub const MAX_SEGMENTS: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Segment {
    pfn: u64,
    ix: Ix,
    frames: u32,
}

/// Which frame numbers the frame table covers. Stretches that touch or lie within one largest block
/// share a segment; larger holes cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameMap {
    segments: [Segment; MAX_SEGMENTS],
    count: usize,
    len: u32,
}

impl FrameMap {
    /// The map for `ranges`, which must ascend; `None` if they do not, if there are more than
    /// [`MAX_SEGMENTS`] stretches, or more than 2^32 - 1 frames.
    pub fn new(ranges: &[FrameRange]) -> Option<FrameMap> {
        let mut map = FrameMap {
            segments: [Segment::default(); MAX_SEGMENTS],
            count: 0,
            len: 0,
        };
        let block = u64::from(MAX_BLOCK);
        let mut last_end = 0;
        for r in ranges.iter().filter(|r| r.frames > 0) {
            let end = r
                .start
                .0
                .checked_add(r.frames)?
                .checked_next_multiple_of(block)?;
            let start = r.start.0 / block * block;
            if map.count > 0 && r.start.0 < last_end {
                return None;
            }
            last_end = r.start.0 + r.frames;
            let open = map.count.checked_sub(1).map(|i| &mut map.segments[i]);
            match open {
                Some(s) if start <= s.pfn + u64::from(s.frames) => {
                    let frames = u32::try_from(end - s.pfn).ok()?;
                    map.len = map.len.checked_add(frames.saturating_sub(s.frames))?;
                    s.frames = frames.max(s.frames);
                }
                _ => {
                    let frames = u32::try_from(end - start).ok()?;
                    *map.segments.get_mut(map.count)? = Segment {
                        pfn: start,
                        ix: map.len,
                        frames,
                    };
                    map.count += 1;
                    map.len = map.len.checked_add(frames)?;
                }
            }
        }
        (map.len < NIL).then_some(map)
    }

    /// Entries that the frame table needs.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether it covers nothing.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Position of a frame, if the table covers it.
    #[inline]
    pub fn ix(&self, pfn: Pfn) -> Option<Ix> {
        for s in &self.segments[..self.count] {
            let d = pfn.0.wrapping_sub(s.pfn);
            if d < u64::from(s.frames) {
                return Some(s.ix + d as u32);
            }
        }
        None
    }

    /// Number of the frame at a position.
    #[inline]
    pub fn pfn(&self, ix: Ix) -> Pfn {
        for s in &self.segments[..self.count] {
            let d = ix.wrapping_sub(s.ix);
            if d < s.frames {
                return Pfn(s.pfn + u64::from(d));
            }
        }
        Pfn(u64::MAX)
    }
}

/// The frame table and the types of the pageblocks.
pub(crate) struct Frames<'m> {
    /// One entry a frame.
    pub meta: &'m mut [FrameMeta],
    /// One byte a pageblock: type (3 bits), skip (bit 3).
    pub blocks: &'m mut [u8],
    /// Order of a pageblock.
    pub block_order: u8,
}

impl Frames<'_> {
    #[inline]
    pub fn state(&self, ix: Ix) -> State {
        self.meta[ix as usize].state()
    }
    #[inline]
    pub fn set_state(&mut self, ix: Ix, state: State) {
        self.meta[ix as usize].set_state(state);
    }
    /// Type of the pageblock that holds `ix`.
    #[inline]
    pub fn block_type(&self, ix: Ix) -> MigrateType {
        MigrateType::from_bits(self.blocks[(ix >> self.block_order) as usize])
    }
    /// Gives the pageblock that holds `ix` a type.
    #[inline]
    pub fn set_block_type(&mut self, ix: Ix, mt: MigrateType) {
        let b = &mut self.blocks[(ix >> self.block_order) as usize];
        *b = *b & !7 | mt as u8;
    }
    /// Gives every pageblock within a block of order `order` at `ix` a type.
    pub fn set_block_types(&mut self, ix: Ix, order: u8, mt: MigrateType) {
        let mut at = ix;
        while at < ix + (1 << order) {
            self.set_block_type(at, mt);
            at += 1 << self.block_order;
        }
    }
}
