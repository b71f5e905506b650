//! The pages in use in a replay: which of them reclaim may take, and what is being written.
//!
//! Invariant: a page is taken only while it is cold; page cache in use gets cold when it was asked for often enough. [`rename`](Pages::rename) reports each page that was taken or moved
//! once.

use crate::replay::causes::{HostBlock, NONE, Pace};
use crate::replay::model::ReplayHost;
use std::collections::{BTreeMap, VecDeque};
use unfrag::hint::prefetch;
use unfrag_eras::migrate::{Migration, MoveVerdict, MoveVerdicts};
use unfrag_eras::reclaim::{Answer, Content, Eviction, Need, Verdict, Verdicts, WRITTEN_ENOUGH};
use unfrag_eras::{Manager, Pfn};

/// Marks the number of a recorded migration in place of a recorded frame, until the trace names the new one.
pub(super) const MIGRATING: u32 = 1 << 31;

/// Most pages in use that are spared in a row, if nothing else is said. The next one is taken.
pub(super) const MOST_SPARED: u32 = 1 << 16;

/// What reclaim may do with a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hold {
    /// It is in use.
    #[default]
    InUse,
    /// It is page cache in use, which goes when it was spared so many times more.
    Cache(u8),
    /// It may be taken.
    Cold,
}

impl Hold {
    pub fn is_cold(self) -> bool {
        self == Hold::Cold
    }
}

/// What became of a page that stands for a recorded one.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Reclaim took it from this frame of the model.
    Taken { pfn: u32, at: u32 },
    /// Compaction moved it.
    Moved { pfn: u32, to: u32 },
}

/// What is known of the page in a frame of the model.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// The recorded frame that it stands for.
    host_frame: u32,
    /// What reclaim may do with it.
    hold: Hold,
    /// Whether it has a place in swap.
    in_swap: bool,
}

impl Page {
    const NONE: Page = Page {
        host_frame: NONE,
        hold: Hold::InUse,
        in_swap: false,
    };
}

/// The owner of all pages of a replay.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    /// By frame of the model.
    pages: Vec<Page>,
    /// What became of pages since the last [`rename`](Pages::rename).
    changes: Vec<Change>,
    /// Pages being written, and when that ends.
    writing: VecDeque<(u64, Pfn)>,
    /// When the swap device is free.
    device_free: u64,
    /// Time of the trace.
    pub now: u64,
    swap_left: u64,
    ns_per_written: u64,
    /// Pages in use that were spared since one was taken.
    spared: u32,
    /// Most of them in a row.
    pub most_spared: u32,
    /// Whether reclaim has asked for a page in use: what it was told depends on how such pages are spared.
    pub asked_in_use: bool,
}

impl Pages {
    /// For so many frames, none of which stands for a recorded one yet.
    pub fn new(frames: usize, pace: &Pace) -> Pages {
        Pages {
            pages: vec![Page::NONE; frames],
            swap_left: pace.swap_pages,
            ns_per_written: pace.ns_per_written,
            most_spared: MOST_SPARED,
            ..Pages::default()
        }
    }

    /// All page cache in use is spared so often, before any of it was asked for.
    pub fn spare(&mut self, times: u8) {
        for page in &mut self.pages {
            if let Hold::Cache(left) = &mut page.hold {
                *left = times;
            }
        }
    }

    /// The answer to a need that takes no time; `None` if it takes time.
    pub fn meet(&mut self, need: &Need) -> Option<Answer> {
        match need {
            Need::Shrink { .. } => Some(Answer::Freed(0)),
            _ => None,
        }
    }

    /// The verdicts on the pages of an eviction.
    pub fn evict(&mut self, eviction: &Eviction) -> Verdicts {
        eviction.ask(|ask| self.verdict(ask.page, ask.unmap, ask.content))
    }

    /// The verdict on a page that reclaim wants to take.
    pub(super) fn verdict(&mut self, page: Pfn, unmap: bool, content: Content) -> Verdict {
        if unmap && !self.unmap(page) {
            return Verdict::NoSpace;
        }
        match content {
            Content::Clean if self.release(page) => Verdict::Released,
            Content::Clean => Verdict::Keep,
            Content::Dirty => Verdict::Dirty,
            Content::Write => {
                self.device_free = self.device_free.max(self.now) + self.ns_per_written;
                self.writing.push_back((self.device_free, page));
                Verdict::Writing
            }
        }
    }

    /// Unmaps a page, for which it needs a place in swap.
    fn unmap(&mut self, page: Pfn) -> bool {
        let at = page.0 as usize;
        self.asked_in_use |= !self.pages[at].hold.is_cold();
        if let Hold::Cache(left) = self.pages[at].hold {
            self.pages[at].hold = left.checked_sub(1).map_or(Hold::Cold, Hold::Cache);
            // Page cache needs no place in swap.
            return left == 0;
        }
        if !self.pages[at].hold.is_cold() {
            // In use: it goes back to the active list, unless nothing else is left.
            self.spared += 1;
            if self.spared <= self.most_spared {
                return false;
            }
            self.spared = 0;
            self.pages[at].hold = Hold::Cold;
        }
        if !self.pages[at].in_swap {
            if self.swap_left == 0 {
                return false;
            }
            self.swap_left -= 1;
            self.pages[at].in_swap = true;
        }
        true
    }

    fn release(&mut self, page: Pfn) -> bool {
        let at = page.0 as usize;
        if self.pages[at].hold.is_cold() {
            self.spared = 0;
            let pfn = std::mem::replace(&mut self.pages[at].host_frame, NONE);
            let at_frame = page.0 as u32;
            self.changes.push(Change::Taken { pfn, at: at_frame });
            self.pages[at].in_swap = false;
        }
        self.pages[at].hold.is_cold()
    }

    /// Places left in swap.
    pub fn swap_left(&self) -> u64 {
        self.swap_left
    }

    /// Ends the writes that are over at a time.
    pub fn end_writes(&mut self, m: &mut Manager<'_, ReplayHost>, time: u64) {
        while let Some(&(end, page)) = self.writing.front()
            && end <= time
        {
            self.writing.pop_front();
            m.pages().end_writeback(page);
        }
    }

    /// When the next write ends.
    pub fn next_written(&self) -> Option<u64> {
        self.writing.front().map(|w| w.0)
    }

    /// When so many pages more will be written as end a wait for that, if so many are being written.
    pub fn enough_written(&self) -> Option<u64> {
        let last = self.writing.get(WRITTEN_ENOUGH as usize - 1);
        last.map(|w| w.0)
    }

    /// The block at frame `at` of the model stands for one of the recorded host.
    pub fn set_block(&mut self, at: u32, block: HostBlock, hold: Hold) {
        for (at, pfn) in (at as usize..).zip(block.frames()) {
            let page = &mut self.pages[at];
            (page.hold, page.host_frame) = (hold, pfn);
        }
    }

    /// Prefetches what is known of the page in a frame.
    #[inline]
    pub fn prefetch(&self, at: u32) {
        if let Some(page) = self.pages.get(at as usize) {
            prefetch(page);
        }
    }

    /// The page at frame `at` of the model stands for another recorded frame, or for none.
    pub fn set_host_frame(&mut self, at: u32, pfn: u32) {
        self.pages[at as usize].host_frame = pfn;
    }

    /// A page moved; what is known of it goes with it, except its recorded frame.
    pub fn moved(&mut self, from: u32, to: u32) {
        let (from, to) = (from as usize, to as usize);
        let moved = std::mem::replace(&mut self.pages[from], Page::NONE);
        self.pages[to] = Page {
            host_frame: self.pages[to].host_frame,
            ..moved
        };
    }

    /// The verdicts on the pages of a migration: each moves, unless it is being written, or nothing is known of it.
    pub fn migrate(&mut self, migration: &Migration) -> MoveVerdicts {
        migration.ask(|ask| {
            let (from, to) = (ask.from.0 as u32, ask.to.0 as u32);
            let is_known = self.pages[from as usize].hold.is_cold()
                || self.pages[from as usize].host_frame != NONE;
            if !is_known || self.writing.iter().any(|w| w.1 == ask.from) {
                return MoveVerdict::Busy;
            }
            let pfn = self.pages[from as usize].host_frame;
            self.moved(from, to);
            self.pages[to as usize].host_frame = pfn;
            self.changes.push(Change::Moved { pfn, to });
            MoveVerdict::Moved
        })
    }

    /// Brings the model's frame of each recorded one up to date, after reclaim and compaction; and that of each page in a
    /// recorded migration, by its number.
    pub fn rename(&mut self, model_frames: &mut [u32], in_migration: &mut BTreeMap<u32, u32>) {
        for change in self.changes.drain(..) {
            match change {
                Change::Taken { pfn, .. } | Change::Moved { pfn, .. } if pfn == NONE => {}
                Change::Taken { pfn, .. } if pfn & MIGRATING != 0 => {
                    in_migration.insert(pfn & !MIGRATING, NONE);
                }
                Change::Moved { pfn, to } if pfn & MIGRATING != 0 => {
                    in_migration.insert(pfn & !MIGRATING, to);
                }
                Change::Taken { pfn, at } => {
                    if model_frames[pfn as usize] == at {
                        model_frames[pfn as usize] = NONE;
                    }
                }
                Change::Moved { pfn, to } => model_frames[pfn as usize] = to,
            }
        }
    }

    /// All recorded frames in use have the frames of the model that they are given.
    pub fn name_all(&mut self, model_frames: &[u32]) {
        for (pfn, &at) in model_frames.iter().enumerate() {
            if let Some(page) = self.pages.get_mut(at as usize) {
                page.host_frame = pfn as u32;
            }
        }
    }
}
