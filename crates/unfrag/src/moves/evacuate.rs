//! [`Evacuator`]: empties blocks, by moving what is in those that are the cheapest to empty, or in a range.
//!
//! Invariant: blocks that are set apart belong to one evacuator, which ends the setting apart at the latest when it is
//! dropped; a [`Place`] or [`Claimed`] that nobody uses is free again when it is dropped.

use super::claimed::Claimed;
use super::goal::{Goal, Limits, Outcome};
use super::place::Place;
use super::units::{Unit, Units};
use crate::frame::{MigrateType, Order, Pfn};
use crate::maps::{GiveError, LARGEST_ORDER};
use crate::memory::Memory;
use lock_api::RawMutex;

/// What an [`Evacuator`] needs, or that it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Move {
    /// What is at this frame should move. If somebody owns it who can move it, take a place for it with
    /// [`Evacuator::place`], move it, and say so with [`Evacuator::moved`]; else it stays.
    Frame(Pfn),
    /// It has ended: [`Evacuator::outcome`] says why.
    Done,
}

/// Says of a frame in use how large the block is, in one piece, that holds it and can be moved.
type Moves<'f> = Option<&'f mut dyn FnMut(Pfn) -> Option<Order>>;

/// Empties blocks while others allocate. It is a value with a [`step`](Self::step): owners are called, and frames are
/// copied, by the caller, with nothing locked.
///
/// The block with the fewest frames in use goes first; places are taken from the fullest blocks. A block with a frame in use
/// that cannot be moved is never begun. One with a frame that stayed stands apart: it is left alone for 2 rounds, and
/// twice as many each time, up to 62, or until that frame is freed. A round is what an evacuator does. Meanwhile it serves
/// what is allocated, before others.
///
/// Blocks are set apart while it works on them: nobody gets a frame of them, and what is free there counts as free for
/// nobody. When the evacuator is dropped, at whatever moment, they are used again.
///
/// ```
/// use unfrag::maps::Gigabyte;
/// use unfrag::moves::{Evacuator, Goal, Limits, Move, Outcome};
/// use unfrag::{Memory, MemoryConfig, MemoryLayout, MigrateType, Order, Pfn, Request};
///
/// let config = MemoryConfig::new(Pfn(0), 1 << 19);
/// let mut directory = [const { Gigabyte::NONE }; 2];
/// let mut words = vec![0; MemoryLayout::of(&config).words];
/// let mut words = &mut words[..];
/// let memory = Memory::<spin::Mutex<()>>::new(config);
/// memory.start(&mut directory, &mut words)?;
/// memory.add(Pfn(0), 1 << 19, &mut words)?;
/// let mut page = memory.alloc(&Request::new(Order(0), MigrateType::Movable))?;
///
/// // A device wants the first 1000 frames, where the page is.
/// let range = Goal::Range { start: Pfn(0), frames: 1000 };
/// let mut evacuator = Evacuator::new(&memory, range, Limits::NONE);
/// while let Move::Frame(from) = evacuator.step() {
///     assert_eq!(from, page);
///     let to = evacuator.place(Order(0)).ok_or("no room")?;
///     // Here the page is copied, and whatever points to it gets another frame.
///     page = to.into_pfn();
///     // SAFETY: nobody uses the old frame any more.
///     unsafe { evacuator.moved(from, Order(0))? };
/// }
/// let claimed = evacuator.into_claimed()?;
/// assert_eq!((claimed.pfn(), claimed.frames()), (Pfn(0), 1000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "it does nothing unless it is stepped"]
pub struct Evacuator<'s, 'm, R: RawMutex> {
    units: Units<'s, 'm, R>,
    /// The frame to look at next, or the one that was named.
    at: Pfn,
    /// The frame at `at` was named, and nobody has said as yet what became of it.
    is_asked: bool,
    /// The order of the block that holds it, if it is known.
    order: Order,
    /// No place was found for a block of this order since then.
    no_room: Option<Order>,
}

impl<'s, 'm, R: RawMutex> Evacuator<'s, 'm, R> {
    /// One for a goal, within limits.
    pub fn new(memory: &'s Memory<'m, R>, goal: Goal, limits: Limits) -> Evacuator<'s, 'm, R> {
        Evacuator {
            units: Units::new(memory, goal, limits),
            at: Pfn(0),
            is_asked: false,
            order: Order::ZERO,
            no_room: None,
        }
    }

    /// Continues until something should move, or until it is done. What the last step named, and [`moved`](Self::moved)
    /// was not told of, stays: nobody owns it, it is pinned, or there is no place for it.
    pub fn step(&mut self) -> Move {
        self.advance(None)
    }

    /// As [`step`](Self::step), for who can say in advance what can be moved: blocks with a frame that cannot are not begun,
    /// so that no copy is made in vain. `moves` says of a frame in use the order of the block, in one piece, that holds it,
    /// if that can be moved. It is called with nothing locked, for each piece before the first of them is named, and again before
    /// it is.
    pub fn step_if(&mut self, mut moves: impl FnMut(Pfn) -> Option<Order>) -> Move {
        self.advance(Some(&mut moves))
    }

    fn advance(&mut self, mut moves: Moves<'_>) -> Move {
        if core::mem::take(&mut self.is_asked) {
            self.settle_asked();
        }
        loop {
            let Some(unit) = self.units.unit() else {
                if self.units.outcome() != Outcome::Open {
                    return Move::Done;
                }
                if let Some(unit) = self.units.begin() {
                    self.at = unit.start;
                }
                continue;
            };
            if !unit.is_checked {
                let found = moves.as_mut().and_then(|m| self.cannot_move(unit, m));
                match found {
                    Some(frame) => self.units.refused(frame),
                    None => self.units.checked(),
                }
                continue;
            }
            let Some(at) = self.units.next_in_use(self.at) else {
                if let Some(unit) = self.units.emptied() {
                    self.at = unit.start;
                }
                continue;
            };
            (self.at, self.is_asked, self.no_room) = (at, true, None);
            self.order = moves.as_mut().and_then(|m| m(at)).unwrap_or(Order::ZERO);
            return Move::Frame(at);
        }
    }

    /// What the last step named was not moved: it stays, unless it has been freed.
    fn settle_asked(&mut self) {
        if !self.units.is_in_use(self.at) {
            return;
        }
        match self.no_room {
            Some(order) => self.units.no_room(self.at, order),
            None => self.units.stayed(self.at),
        }
        self.at = behind(self.at, self.order);
    }

    /// The first frame in use of a unit that cannot be moved.
    fn cannot_move(
        &mut self,
        unit: Unit,
        moves: &mut dyn FnMut(Pfn) -> Option<Order>,
    ) -> Option<Pfn> {
        let mut at = unit.start;
        while let Some(found) = self.units.next_in_use(at) {
            match moves(found) {
                Some(order) => at = behind(found, order),
                // It may have been freed meanwhile, or be one that a CPU keeps.
                None if self.units.is_in_use(found) => return Some(found),
                None => at = behind(found, Order::ZERO),
            }
        }
        None
    }

    /// The block of an order at `from` has a new place; the last step named it, or a frame of it. Its old place is free from
    /// now on.
    ///
    /// # Errors
    /// [`GiveError`], if the last step named none of its frames, if no block of this order begins there, or if some of it
    /// was not in use: it was freed meanwhile, which its owner should have prevented. It goes on behind the block all the
    /// same.
    ///
    /// # Safety
    /// Nobody uses the `2^order` frames from `from` on any more, and nobody will free them: the caller owned all of them.
    #[allow(unsafe_code, reason = "a promise of the caller, and no operation")]
    pub unsafe fn moved(&mut self, from: Pfn, order: Order) -> Result<(), GiveError> {
        let is_named = self.is_asked
            && order <= LARGEST_ORDER
            && from.0 <= self.at.0
            && self.at.0 - from.0 < u64::from(order.frames());
        if !is_named {
            return Err(self.units.memory.no_block(from));
        }
        self.is_asked = false;
        self.at = behind(from, order);
        self.units.count_copies(order);
        self.units
            .memory
            .give_back(from, order, MigrateType::Movable)
    }

    /// The frame that [`step`](Self::step) will name after this one, if all before it move: the next one in use of what is
    /// being emptied. So a host can prepare several moves, and flush translations once for all of them.
    pub fn after(&self, frame: Pfn) -> Option<Pfn> {
        let unit = self.units.unit().filter(|unit| frame >= unit.start)?;
        let next = Pfn(frame.0.checked_add(1)?);
        self.units.next_in_use(next).filter(|&p| p < unit.end)
    }

    /// A place for what should move: a free block of an order, for the caller to copy to. For [`Goal::Blocks`] and
    /// [`Goal::Ahead`] it is out of a block that is in use in part; `None`, if it would have to be out of a whole free one.
    pub fn place(&mut self, order: Order) -> Option<Place<'s, 'm, R>> {
        let unit = self.units.unit()?;
        let place = self.units.place(unit, order);
        if place.is_none() {
            self.no_room = Some(order);
        }
        place.map(|pfn| Place::new(self.units.memory, pfn, order))
    }

    /// Why it has ended, if it has.
    pub fn outcome(&self) -> Outcome {
        self.units.outcome()
    }

    /// The frames that [`Goal::Run`] or [`Goal::Range`] was for, once it has ended.
    ///
    /// # Errors
    /// The [`Outcome`], if they were not taken; [`Outcome::Reached`] too, for a goal that takes none.
    pub fn into_claimed(mut self) -> Result<Claimed<'s, 'm, R>, Outcome> {
        let (memory, mt) = (self.units.memory, self.units.limits.mt);
        let taken = self.units.take_claimed().ok_or(self.outcome())?;
        Ok(Claimed::new(memory, taken, mt))
    }

    /// Whole free blocks that it made, of the order that was wanted.
    pub fn gained(&self) -> u32 {
        self.units.gained
    }

    /// Frames that were copied.
    pub fn copied(&self) -> u64 {
        self.units.copied
    }

    /// Blocks, or runs of them, that it left alone, since something in them stays.
    pub fn left(&self) -> u32 {
        self.units.left
    }
}

/// The frame behind the block of an order that holds `at`.
fn behind(at: Pfn, order: Order) -> Pfn {
    let size = u64::from(order.min(LARGEST_ORDER).frames());
    Pfn((at.0 | (size - 1)).saturating_add(1))
}

impl<R: RawMutex> core::fmt::Debug for Evacuator<'_, '_, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        let mut out = f.debug_struct("Evacuator");
        out.field("goal", &self.units.goal)
            .field("outcome", &self.outcome())
            .field("gained", &self.gained())
            .field("copied", &self.copied())
            .field("left", &self.left());
        out.finish_non_exhaustive()
    }
}
