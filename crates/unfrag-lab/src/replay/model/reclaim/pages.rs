//! What a replay knows of the pages in use: which of them may be taken, and what is being written.
//!
//! Invariant: a page is taken only while it is cold; what was taken is told by [`unname`](Pages::unname)
//! once.

use crate::replay::causes::{HostBlock, NONE, Pace};
use crate::replay::model::ReplayHost;
use std::collections::VecDeque;
use unfrag::reclaim::{Answer, Content, Eviction, Need, Verdict, Verdicts, WRITTEN_ENOUGH};
use unfrag::{Manager, Pfn};

/// So many pages in use are spared in a row before one of them, and no more, is taken.
pub(super) const GIVES_IN: u32 = 1 << 16;

/// The owner of all pages of a replay.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    /// By frame of the model: may be taken.
    cold: Vec<bool>,
    /// By frame of the model: the recorded frame that it stands for.
    name: Vec<u32>,
    /// Frames that the model took since somebody looked.
    taken: Vec<u32>,
    /// Pages being written, and when that ends.
    writing: VecDeque<(u64, Pfn)>,
    /// When the swap device is free.
    device_free: u64,
    /// Time of the trace.
    pub now: u64,
    swap_left: u64,
    in_swap: Vec<bool>,
    ns_per_written: u64,
    /// Pages in use that were spared since one was taken.
    spared: u32,
}

impl Pages {
    /// Of so many frames, none of which has a name yet.
    pub fn new(frames: usize, pace: &Pace) -> Pages {
        Pages {
            cold: vec![false; frames],
            name: vec![NONE; frames],
            in_swap: vec![false; frames],
            swap_left: pace.swap_pages,
            ns_per_written: pace.ns_per_written,
            ..Pages::default()
        }
    }

    /// What can be met at once, whoever needs it. `None` of what takes time.
    pub fn meet(&mut self, need: &Need) -> Option<Answer> {
        match need {
            Need::Shrink { .. } => Some(Answer::Freed(0)),
            _ => None,
        }
    }

    /// What becomes of pages that reclaim wants.
    pub fn evict(&mut self, eviction: &Eviction) -> Verdicts {
        eviction.ask(|ask| self.verdict(ask.page, ask.unmap, ask.content))
    }

    /// What becomes of a page that reclaim wants.
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
        if !self.cold[at] {
            // In use: back among the active ones, unless nothing else is left.
            self.spared += 1;
            if self.spared <= GIVES_IN {
                return false;
            }
            self.spared = 0;
            self.cold[at] = true;
        }
        if !self.in_swap[at] {
            if self.swap_left == 0 {
                return false;
            }
            self.swap_left -= 1;
            self.in_swap[at] = true;
        }
        true
    }

    fn release(&mut self, page: Pfn) -> bool {
        let at = page.0 as usize;
        if self.cold[at] {
            self.spared = 0;
            self.taken.push(page.0 as u32);
            self.in_swap[at] = false;
        }
        self.cold[at]
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

    /// When so many pages more will be written as end a wait for that, if so many are being written.
    pub fn enough_written(&self) -> Option<u64> {
        let last = self.writing.get(WRITTEN_ENOUGH as usize - 1);
        last.map(|w| w.0)
    }

    /// The block at frame `at` of the model stands for one of the recorded host. `cold`: reclaim may take it.
    pub fn name_block(&mut self, at: u32, block: HostBlock, cold: bool) {
        for (at, pfn) in (at as usize..).zip(block.frames()) {
            self.cold[at] = cold;
            self.name[at] = pfn;
        }
    }

    /// The page at frame `at` of the model stands for another recorded frame, or for none.
    pub fn rename(&mut self, at: u32, name: u32) {
        self.name[at as usize] = name;
    }

    /// A page moved; what is known of it goes with it, but for its name.
    pub fn moved(&mut self, from: u32, to: u32) {
        let (from, to) = (from as usize, to as usize);
        self.cold[to] = std::mem::take(&mut self.cold[from]);
        self.in_swap[to] = std::mem::take(&mut self.in_swap[from]);
        self.name[from] = NONE;
    }

    /// What the model took has no name any more.
    pub fn unname(&mut self, names: &mut [u32]) {
        for at in self.taken.drain(..) {
            let name = std::mem::replace(&mut self.name[at as usize], NONE);
            if name != NONE && names[name as usize] == at {
                names[name as usize] = NONE;
            }
        }
    }
}
