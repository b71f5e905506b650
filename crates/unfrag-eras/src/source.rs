//! [`Source`]: an allocator of the host's that chooses frames in place of a zone's lists.
//!
//! The zones keep their marks, their per-CPU lists and all that reclaims; their free lists only show what is free. Which free
//! block serves a request, and which block is emptied for one that finds none, the source says.
//!
//! Invariant: between two calls, what a zone has on its free lists is what is free in the source; but for pageblocks that a run
//! empties, which neither hands out.

use crate::frame::{MigrateType, Order, Pfn, ZoneConfig, ZoneId};

/// What a run of a [`Source`] is to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Room {
    /// One block of this order, for a request that waits for it.
    Block(Order),
    /// As many blocks of this order as are missing to `blocks` that are free, ahead of demand.
    Ahead {
        /// The order, that of a pageblock or larger.
        order: Order,
        /// So many should be free.
        blocks: u32,
    },
    /// Whatever can be emptied, in blocks of this order.
    All(Order),
}

/// What a run comes to next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// What is at this frame should move. It stands in the next aligned block of the run's order that is emptied.
    Frame(Pfn),
    /// The run has ended.
    Done,
}

/// Chooses frames in place of the free lists of a manager's zones.
///
/// Called in the middle of an operation: it must neither wait nor enter the manager.
pub trait Source {
    /// The zones, before any frame of them is free. False, if there can be no such memory.
    fn start(&mut self, zones: &[ZoneConfig]) -> bool;
    /// The state before the first request is complete: what was neither given nor claimed since the start stays in use.
    fn ready(&mut self);
    /// Takes a free block of a zone for a request of a type.
    fn choose(&mut self, zone: ZoneId, order: Order, mt: MigrateType) -> Option<Pfn>;
    /// Takes a free block of a zone that somebody else has chosen, for a request of a type. False, if it cannot be had.
    fn claim(&mut self, zone: ZoneId, pfn: Pfn, order: Order, mt: MigrateType) -> bool;
    /// A block of a zone is free again: one that was taken, or an aligned part of one.
    fn give(&mut self, zone: ZoneId, pfn: Pfn, order: Order);
    /// The type of the request that took a frame.
    fn type_of(&self, zone: ZoneId, pfn: Pfn) -> MigrateType;
    /// Begins a run over a zone. Several may be under way at once.
    fn begin(&mut self, zone: ZoneId, room: Room) -> u32;
    /// Goes on with a run. `moves` says of a frame in use the order of the block that it begins, if that can be moved. What
    /// was named last and is in use still has stayed.
    fn next(&mut self, run: u32, moves: &mut dyn FnMut(Pfn) -> Option<Order>) -> Next;
    /// The frame that will be named after this one, if all before it move.
    fn after(&self, run: u32, frame: Pfn) -> Option<Pfn>;
    /// Takes a free block for what was named.
    fn place(&mut self, run: u32, order: Order) -> Option<Pfn>;
    /// Ends a run, at whatever moment. Returns how many blocks it made.
    fn end(&mut self, run: u32) -> u32;
}
