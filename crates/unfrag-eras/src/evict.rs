//! Evictions: a batch of isolated pages, what their owners are asked to do, and a verdict for each page.

use crate::frame::{OwnerId, Pfn};

/// Most pages of a batch (`SWAP_CLUSTER_MAX`).
pub const BATCH: usize = 32;

/// What the owner of one page is asked.
///
/// In this order, as far as asked: no mapping names the page any more (and an anonymous one has a place
/// in swap); if it is dirty, it is written; else its owner forgets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// The page.
    pub page: Pfn,
    /// Its owner, as given when the page was [adopted](crate::lru::PagesMut::adopt) the page.
    pub owner: OwnerId,
    /// The key that the owner stored.
    pub key: u32,
    /// Take it out of all mappings first.
    pub unmap: bool,
    /// What to do with its content.
    pub content: Content,
    /// It was read more than once through a descriptor while it stood in a generation. An owner that remembers it says so if
    /// the page comes back soon ([`refaulted`](crate::lru::PagesMut::refaulted)).
    pub reread: bool,
}

/// What is asked about the content of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// It is stored elsewhere: the owner forgets the page ([`Verdict::Released`]), or does not.
    Clean,
    /// It is dirty, and may not be written for this caller: once unmapped the page stays
    /// ([`Verdict::Dirty`]).
    Dirty,
    /// It is dirty: write it.
    Write,
}

/// A batch of isolated pages whose owners are asked to let go. Their operation keeps it: it is handed out
/// by `&` alone, since it is large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eviction {
    asks: [Ask; BATCH],
    len: u8,
    /// The writes are waited for (synchronous).
    pub sync: bool,
}

impl Eviction {
    /// An empty batch.
    pub(crate) const EMPTY: Eviction = {
        let none = Ask {
            page: Pfn(0),
            owner: OwnerId::NONE,
            key: 0,
            unmap: false,
            content: Content::Clean,
            reread: false,
        };
        Eviction {
            asks: [none; BATCH],
            len: 0,
            sync: false,
        }
    };

    /// An empty batch again.
    pub(crate) fn clear(&mut self, sync: bool) {
        (self.len, self.sync) = (0, sync);
    }

    pub(crate) fn push(&mut self, ask: Ask) {
        self.asks[usize::from(self.len)] = ask;
        self.len += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What is asked, page by page, in the order in which owners are to be asked.
    pub fn asks(&self) -> &[Ask] {
        &self.asks[..usize::from(self.len)]
    }

    /// Asks `owner` about each page in turn. What it says of a page is its verdict.
    pub fn ask(&self, mut owner: impl FnMut(&Ask) -> Verdict) -> Verdicts {
        let mut all = Verdicts {
            of: [Verdict::Busy; BATCH],
        };
        for (verdict, ask) in all.of.iter_mut().zip(self.asks()) {
            *verdict = owner(ask);
        }
        all
    }
}

/// What became of a page that its owner was asked to let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Its owner has forgotten it: nothing names it any more, and it is freed.
    Released,
    /// It is mapped, and stays so for now.
    Busy,
    /// It is mapped, and swap has no place for it: it counts as in use.
    NoSpace,
    /// It is not mapped any more, and its owner does not let go of it for now.
    Keep,
    /// It is not mapped any more, and stays because it is dirty ([`Content::Dirty`]).
    Dirty,
    /// It is being written; the world says when that ends
    /// ([`end_writeback`](crate::lru::PagesMut::end_writeback)).
    Writing,
    /// It has been given a place, and stays dirty: it is to be written when reclaim meets it again, at
    /// the other end of its list.
    Later,
    /// It would have to be written, and the device has too much to write as it is.
    Congested,
    /// It cannot be written: it counts as in use.
    Failed,
}

impl Verdict {
    /// Whether the page is out of all mappings, where that was asked.
    pub(crate) const fn unmapped(self) -> bool {
        !matches!(self, Verdict::Busy | Verdict::NoSpace)
    }
}

/// A verdict for each page of an [`Eviction`], in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdicts {
    of: [Verdict; BATCH],
}

impl Verdicts {
    /// No owner lets go of anything.
    pub(crate) const NONE: Verdicts = Verdicts {
        of: [Verdict::Busy; BATCH],
    };

    pub(crate) fn get(&self, i: usize) -> Verdict {
        self.of[i]
    }
}
