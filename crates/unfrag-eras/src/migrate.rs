//! Migrations: a batch of isolated pages, each with a free block that it is to move to, and a verdict for each.

use crate::evict::BATCH;
use crate::frame::{MigrateType, Order, OwnerId, Pfn, State};
use crate::lru::ISOLATED_OTHER;

/// What the owner of one page is asked: to copy it to another block, and to change all references to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MoveAsk {
    /// Where the page is.
    pub from: Pfn,
    /// Where it is to be.
    pub to: Pfn,
    /// Its order.
    pub order: Order,
    /// Its owner, as given when the page was [adopted](crate::lru::PagesMut::adopt).
    pub owner: OwnerId,
    /// The key that the owner stored.
    pub key: u32,
}

/// The state of a block that a page is about to be moved to. Its owner may free it there before the move has ended:
/// that is remembered, as it is for the old frame.
pub(crate) const fn destination(order: Order) -> State {
    State::used(order, MigrateType::Movable, true).with_lru(ISOLATED_OTHER)
}

/// What became of a page that its owner was asked to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MoveVerdict {
    /// Its content is at its new place, and nothing names the old one any more. Also the verdict for a page that
    /// its owner has freed meanwhile. Until the operation goes on, the manager keeps the page's flags at the old place;
    /// a free may name either.
    Moved,
    /// It stays where it is.
    Busy,
}

/// A batch of isolated pages that are to be moved. Their operation keeps it: it is handed out by `&` alone, since it
/// is large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    asks: [MoveAsk; BATCH],
    len: u8,
    /// Owners may wait for locks; else a page that is locked is [`Busy`](MoveVerdict::Busy).
    pub may_wait: bool,
    /// Owners may also wait until a page is written.
    pub may_write: bool,
}

impl Migration {
    /// An empty batch.
    pub(crate) const EMPTY: Migration = {
        let none = MoveAsk {
            from: Pfn(0),
            to: Pfn(0),
            order: Order::ZERO,
            owner: OwnerId::NONE,
            key: 0,
        };
        Migration {
            asks: [none; BATCH],
            len: 0,
            may_wait: false,
            may_write: false,
        }
    };

    pub(crate) fn push(&mut self, ask: MoveAsk) {
        self.asks[usize::from(self.len)] = ask;
        self.len += 1;
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) fn is_full(&self) -> bool {
        usize::from(self.len) == BATCH
    }

    /// What is asked, page by page, in the order in which owners are to be asked.
    pub fn asks(&self) -> &[MoveAsk] {
        &self.asks[..usize::from(self.len)]
    }

    /// Asks `owner` about each page in turn. What it says of a page is its verdict.
    pub fn ask(&self, mut owner: impl FnMut(&MoveAsk) -> MoveVerdict) -> MoveVerdicts {
        let mut moved = 0;
        for (i, ask) in self.asks().iter().enumerate() {
            moved |= u32::from(owner(ask) == MoveVerdict::Moved) << i;
        }
        MoveVerdicts { moved }
    }
}

/// A verdict for each page of a [`Migration`], in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveVerdicts {
    moved: u32,
}

impl MoveVerdicts {
    pub(crate) fn is_moved(&self, i: usize) -> bool {
        self.moved >> i & 1 == 1
    }
}

const _: () = assert!(BATCH <= 32, "a bit for each page");
