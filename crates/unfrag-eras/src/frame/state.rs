//! The state of a frame, packed in one word.

use super::page_flags::PageFlags;
use unfrag::frame::{MAX_MAX_ORDER, MigrateType, Order};

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// There is no memory at this frame number.
    Absent = 0,
    /// Memory reserved at boot; never handed out.
    Reserved = 1,
    /// Not the first frame of its block.
    Tail = 2,
    /// First frame of a block in use.
    Used = 3,
    /// First frame of a free block on a buddy list.
    Buddy = 4,
    /// First frame of a free block on a per-CPU list.
    Pcp = 5,
}

impl FrameKind {
    #[inline]
    const fn from_bits(bits: u32) -> FrameKind {
        match bits {
            0 => FrameKind::Absent,
            1 => FrameKind::Reserved,
            2 => FrameKind::Tail,
            3 => FrameKind::Used,
            4 => FrameKind::Buddy,
            _ => FrameKind::Pcp,
        }
    }
    /// Whether frames after the first belong to it.
    #[inline]
    pub(crate) const fn heads_block(self) -> bool {
        matches!(self, FrameKind::Used | FrameKind::Buddy | FrameKind::Pcp)
    }
}

/// Owner of a frame in use: a number from 1 to 127 that the host gives to each of its owners. 0 is no owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OwnerId(u8);

impl OwnerId {
    /// No owner.
    pub const NONE: OwnerId = OwnerId(0);

    /// The owner with this number; `None` above 127.
    pub const fn new(number: u8) -> Option<OwnerId> {
        if number < 1 << OWNER.bits {
            Some(OwnerId(number))
        } else {
            None
        }
    }
    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// A bit field of a word.
#[derive(Clone, Copy)]
struct Field {
    shift: u32,
    bits: u32,
}

impl Field {
    /// The field of `bits` bits above another one.
    const fn after(before: Field, bits: u32) -> Field {
        Field {
            shift: before.shift + before.bits,
            bits,
        }
    }
    const fn mask(self) -> u32 {
        ((1 << self.bits) - 1) << self.shift
    }
    #[inline]
    const fn get(self, word: u32) -> u32 {
        (word >> self.shift) & ((1 << self.bits) - 1)
    }
    #[inline]
    const fn put(self, word: u32, value: u32) -> u32 {
        word & !self.mask() | self.of(value)
    }
    #[inline]
    const fn of(self, value: u32) -> u32 {
        value << self.shift & self.mask()
    }
}

const KIND: Field = Field { shift: 0, bits: 3 };
const ORDER: Field = Field::after(KIND, 4);
const TYPE: Field = Field::after(ORDER, 3);
const MOVABLE: Field = Field::after(TYPE, 1);
const LRU: Field = Field::after(MOVABLE, 3);
const FLAGS: Field = Field::after(LRU, 11);
const OWNER: Field = Field::after(FLAGS, 7);

const _: () = assert!(OWNER.shift + OWNER.bits <= 32, "the fields fit a word");
const _: () = assert!(PageFlags::all().bits() < 1 << FLAGS.bits);
const _: () = assert!(MAX_MAX_ORDER.0 < 1 << ORDER.bits);

/// State of a frame: kind, order, migrate type, whether it can be moved, LRU list, flags, owner.
///
/// The migrate type is that of the list while the block is free, and that of the request while it
/// is in use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct State(pub(super) u32);

impl State {
    /// Not the head of anything.
    pub const TAIL: State = State::new(FrameKind::Tail, Order::ZERO, MigrateType::Unmovable);

    /// A state without flags and owner.
    #[inline]
    pub const fn new(kind: FrameKind, order: Order, mt: MigrateType) -> State {
        State(KIND.of(kind as u32) | ORDER.of(order.0 as u32) | TYPE.of(mt as u32))
    }
    /// A block that a request of this type has, and can move or not.
    #[inline]
    pub const fn used(order: Order, mt: MigrateType, movable: bool) -> State {
        State(State::new(FrameKind::Used, order, mt).0 | MOVABLE.of(movable as u32))
    }
    /// What it is.
    #[inline]
    pub const fn kind(self) -> FrameKind {
        FrameKind::from_bits(KIND.get(self.0))
    }
    /// Whether it heads a block in use.
    #[cfg(feature = "lab")]
    #[inline]
    pub const fn heads_use(self) -> bool {
        KIND.get(self.0) == FrameKind::Used as u32
    }
    /// Whether as many frames are in use by it as by another, for requests of the same type.
    #[cfg(feature = "lab")]
    #[inline]
    pub const fn has_same_use(self, other: State) -> bool {
        let decides = KIND.mask() | ORDER.mask() | TYPE.mask();
        (self.0 ^ other.0) & decides == 0
    }
    /// Whether it heads a block on a buddy list.
    #[inline]
    pub const fn is_buddy(self) -> bool {
        KIND.get(self.0) == FrameKind::Buddy as u32
    }
    /// Whether it heads a free block of this order on a buddy list.
    #[inline]
    pub const fn is_buddy_of(self, order: Order) -> bool {
        let mask = KIND.mask() | ORDER.mask();
        self.0 & mask == KIND.of(FrameKind::Buddy as u32) | ORDER.of(order.0 as u32)
    }
    /// Whether it heads a block of this order in use that is on no LRU list.
    #[inline]
    pub const fn is_used(self, order: Order) -> bool {
        let mask = KIND.mask() | ORDER.mask() | LRU.mask();
        self.0 & mask == KIND.of(FrameKind::Used as u32) | ORDER.of(order.0 as u32)
    }
    /// Order of the block.
    #[inline]
    pub const fn order(self) -> Order {
        Order(ORDER.get(self.0) as u8)
    }
    /// Frames from here, where a block begins or none is, to the next such frame.
    #[inline]
    pub const fn extent(self) -> u32 {
        if self.kind().heads_block() {
            self.order().frames()
        } else {
            1
        }
    }
    /// Type of its list, or of its request.
    #[inline]
    pub const fn mt(self) -> MigrateType {
        MigrateType::from_bits(TYPE.get(self.0) as u8)
    }
    /// Whether its user can move it (on an LRU list or with movable operations).
    #[inline]
    pub const fn is_movable(self) -> bool {
        self.0 & MOVABLE.mask() != 0
    }
    /// Code of the LRU list that it is on; 0 for none.
    #[inline]
    pub const fn lru(self) -> u8 {
        LRU.get(self.0) as u8
    }
    /// The state on another LRU list.
    #[inline]
    #[must_use]
    pub const fn with_lru(self, code: u8) -> State {
        State(LRU.put(self.0, code as u32))
    }
    /// Flags of the page.
    #[inline]
    pub const fn flags(self) -> PageFlags {
        PageFlags::from_bits_retain(FLAGS.get(self.0) as u16)
    }
    /// The state with other flags.
    #[inline]
    #[must_use]
    pub const fn with_flags(self, flags: PageFlags) -> State {
        State(FLAGS.put(self.0, flags.bits() as u32))
    }
    /// Of a page on the list of a generation: the higher bit of the generation's number.
    #[inline]
    pub const fn has_high_slot(self) -> bool {
        self.flags().contains(PageFlags::FREED)
    }
    /// The state of a page on the list of a generation, with the higher bit of that generation's number.
    #[inline]
    #[must_use]
    pub const fn with_high_slot(self, high: bool) -> State {
        let bit = FLAGS.of(PageFlags::FREED.bits() as u32);
        State(if high { self.0 | bit } else { self.0 & !bit })
    }
    /// Of a page on the list of a generation: how often it was read, 0 to 5.
    #[inline]
    pub const fn reads(self) -> u8 {
        let flags = self.flags();
        flags.contains(PageFlags::REFERENCED) as u8
            | (flags.contains(PageFlags::ACTIVE) as u8) << 1
            | (flags.contains(PageFlags::SWAPBACKED) as u8) << 2
    }
    /// The state of a page on the list of a generation that was read so often.
    #[inline]
    #[must_use]
    pub const fn with_reads(self, reads: u8) -> State {
        let all = PageFlags::REFERENCED
            .union(PageFlags::ACTIVE)
            .union(PageFlags::SWAPBACKED);
        let mut flags = self.flags().difference(all);
        if reads & 1 != 0 {
            flags = flags.union(PageFlags::REFERENCED);
        }
        if reads & 2 != 0 {
            flags = flags.union(PageFlags::ACTIVE);
        }
        if reads & 4 != 0 {
            flags = flags.union(PageFlags::SWAPBACKED);
        }
        self.with_flags(flags)
    }
    /// Who uses it.
    #[inline]
    pub const fn owner(self) -> OwnerId {
        OwnerId(OWNER.get(self.0) as u8)
    }
    /// The state with another owner.
    #[inline]
    #[must_use]
    pub const fn with_owner(self, owner: OwnerId) -> State {
        State(OWNER.put(self.0, owner.0 as u32))
    }
    /// A piece of this block in use: no LRU list, no flags, no owner.
    #[inline]
    #[must_use]
    pub const fn piece(self, order: Order) -> State {
        State::used(order, self.mt(), self.is_movable())
    }
}
