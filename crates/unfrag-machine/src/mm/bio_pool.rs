//! The objects that a transfer holds, and the pools that keep some in reserve.
//!
//! Invariant: a token is given when a transfer begins and given back once, when it ends.

use crate::block::Dir;
use crate::engine::TaskId;
use crate::kmem::Obj;
use crate::kmem::caches::CacheKind;
use std::collections::VecDeque;
use unfrag_eras::Gfp;

/// Pages that a bio has room for in itself.
const INLINE: usize = 4;

/// The objects that a transfer needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BioDemand {
    /// Pages that its bio has room for.
    room: usize,
    /// Whether it may use a part of the reserves (`__GFP_HIGH`).
    high: bool,
    /// Whether it passes through an encrypting layer.
    encrypted: bool,
}

impl BioDemand {
    /// The demand of a transfer of `pages` pages. A file system that writes a file in one go asks for `room`
    /// for as many pages as the queue takes at a time, and may use a part of the reserves. Others write page
    /// by page.
    pub fn of(dir: Dir, pages: usize, room: u8, encrypted: bool) -> BioDemand {
        BioDemand {
            room: match dir {
                Dir::Read => pages,
                Dir::Write => room.into(),
            },
            high: room > 0,
            encrypted,
        }
    }

    pub fn kinds(self) -> [Option<CacheKind>; 4] {
        let vector = match self.room {
            0..=INLINE => None,
            5..=16 => Some(CacheKind::BioVec16),
            _ => Some(CacheKind::BioVec64),
        };
        let layer = |kind| self.encrypted.then_some(kind);
        [
            Some(CacheKind::Bio),
            vector,
            layer(CacheKind::Bio),
            layer(CacheKind::CryptIo),
        ]
    }

    pub fn gfp(self) -> Gfp {
        let polite =
            (Gfp::KERNEL - Gfp::IO - Gfp::FS) | Gfp::NOMEMALLOC | Gfp::NORETRY | Gfp::NOWARN;
        if self.high {
            polite | Gfp::HIGH
        } else {
            polite
        }
    }
}

/// Objects that the pools keep, for each of [`BioDemand::kinds`].
pub(crate) const POOL: [u32; 4] = [2, 2, 16, 16];

/// The objects that a transfer holds.
#[derive(Clone, Copy, Default)]
pub(crate) struct HeldObjects {
    pub demand: Option<BioDemand>,
    pub objects: [Option<Obj>; 4],
    /// Which of them the pool has lent.
    pub pooled: [bool; 4],
}

/// The objects of all transfers under way.
#[derive(Default)]
pub(crate) struct Bios {
    pub held: Vec<HeldObjects>,
    pub vacant: Vec<u32>,
    /// Transfers that have begun and hold no objects yet.
    pub begun: Vec<(u32, BioDemand, Option<TaskId>)>,
    /// How many the pools have lent.
    pub lent: [u32; 4],
    /// Tasks that wait until a pool has an object, in order, and for which transfer.
    pub waiting: VecDeque<(TaskId, u32)>,
}

impl Bios {
    /// By how much the pools have lent more than they keep.
    pub fn over(&self) -> usize {
        let over = std::iter::zip(self.lent, POOL).map(|(lent, pool)| lent.saturating_sub(pool));
        over.max().unwrap_or(0) as usize
    }

    /// Begins a transfer. Its objects are allocated at the end of the present access to the machine. Returns
    /// its token.
    pub fn begin(&mut self, demand: BioDemand, submitter: Option<TaskId>) -> u32 {
        let token = self.vacant.pop().unwrap_or_else(|| {
            self.held.push(HeldObjects::default());
            self.held.len() as u32 - 1
        });
        self.begun.push((token, demand, submitter));
        token
    }
}
