//! The generations of the pages of a zone or of a node, and what is known of what came back. `spec: 4.10`
//!
//! Generations are numbered upward. Both kinds of pages have the same youngest one, and each an oldest one of its own. A
//! page knows the lowest two bits of its generation's number, which is enough for [`MOST`] generations.
//!
//! Invariant: `LEAST - 1 <= youngest - oldest < MOST` for each kind; no page is in a generation outside these bounds.

use crate::frame::{FrameIx, Frames, Order, PageFlags, State};
use crate::placement::{End, List};
use zerocopy::{FromBytes, IntoBytes, KnownLayout};

/// Most generations of a kind.
pub(crate) const MOST: u64 = 4;

/// Least generations of a kind: these are in use, and not evicted.
pub(crate) const LEAST: u64 = 2;

/// Reads through a descriptor that are counted of a page.
const MOST_READS: u8 = 5;

/// What is known of the pages of a kind that were to be evicted: those read at most once, and those read more often.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Refaults {
    /// Pages that were evicted, or spared because they were read.
    pub tried: [u64; 2],
    /// Pages that came back after they were evicted.
    pub came_back: [u64; 2],
}

impl Refaults {
    /// Whether pages that were read more than once come back more often than others.
    fn spares_reread(&self) -> bool {
        let [once, again] = self.tried.map(|n| u128::from(n) + 1);
        let [came_once, came_again] = self.came_back.map(u128::from);
        came_again * once > came_once * again
    }

    /// What is known of older generations counts half.
    fn age(&mut self) {
        for n in self.tried.iter_mut().chain(&mut self.came_back) {
            *n /= 2;
        }
    }
}

/// The generations of a zone or of a node, in the order anonymous pages, page cache. They live in the caller's memory, so
/// their layout has no gaps.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Generations {
    /// Number of the youngest generation.
    pub youngest: u64,
    /// Number of each kind's oldest one.
    pub oldest: [u64; 2],
    /// When each of them, by the lowest bits of its number, became the youngest, in milliseconds.
    pub born: [u64; MOST as usize],
    /// What came back, by kind.
    pub refaults: [Refaults; 2],
    /// Pages of the large blocks of each generation beyond their first ones.
    more: [[u64; MOST as usize]; 2],
    lists: [[List; MOST as usize]; 2],
}

/// Where a page stands: its kind, and the lowest bits of its generation's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub file: bool,
    slot: usize,
}

impl Place {
    fn new(file: bool, number: u64) -> Place {
        let slot = (number % MOST) as usize;
        Place { file, slot }
    }

    /// Where a page with this state stands, if it is on the list of a generation.
    pub fn of(s: State) -> Place {
        Place {
            file: s.lru() > 2,
            slot: usize::from((s.lru() + 1) & 1) | usize::from(s.has_high_slot()) << 1,
        }
    }

    /// The state of a page that stands there, whose state without a list is `s`.
    fn state(self, s: State) -> State {
        let code = 1 + 2 * u8::from(self.file) + (self.slot & 1) as u8;
        s.with_lru(code).with_high_slot(self.slot > 1)
    }
}

impl Generations {
    /// Four that are empty, as at boot.
    pub fn new() -> Generations {
        Generations {
            youngest: MOST - 1,
            oldest: [0; 2],
            born: [0; MOST as usize],
            refaults: [Refaults::default(); 2],
            more: [[0; MOST as usize]; 2],
            lists: [[List::EMPTY; MOST as usize]; 2],
        }
    }

    /// Number of generations of a kind.
    pub fn count(&self, file: bool) -> u64 {
        self.youngest - self.oldest[usize::from(file)] + 1
    }

    /// Pages of a kind in the generation with a number.
    fn len(&self, file: bool, number: u64) -> u64 {
        let Place { slot, .. } = Place::new(file, number);
        let kind = usize::from(file);
        u64::from(self.lists[kind][slot].len) + self.more[kind][slot]
    }

    /// Pages of a kind: of the generations in use, or of the others.
    pub fn pages(&self, file: bool, in_use: bool) -> u64 {
        let oldest = self.oldest[usize::from(file)];
        let split = self.youngest + 1 - LEAST;
        let numbers = match in_use {
            true => split..self.youngest + 1,
            false => oldest..split.max(oldest),
        };
        numbers.map(|n| self.len(file, n)).sum()
    }

    /// The lists of a kind from the newest on: of the generations in use, or of the others.
    pub fn lists(&self, file: bool, in_use: bool) -> impl Iterator<Item = List> + use<> {
        let behind = if in_use { 0..LEAST } else { LEAST..MOST };
        let youngest = self.youngest;
        let of = self.lists[usize::from(file)];
        behind.filter_map(move |n| Some(of[Place::new(file, youngest.checked_sub(n)?).slot]))
    }

    /// The list of the generation where a page stands.
    pub fn list(&self, at: Place) -> &List {
        &self.lists[usize::from(at.file)][at.slot]
    }

    /// Every place.
    pub fn places() -> impl Iterator<Item = Place> {
        (0..2 * MOST).map(|i| Place::new(i >= MOST, i))
    }

    /// Pages of large blocks at a place beyond their first ones.
    pub fn more(&self, at: Place) -> u64 {
        self.more[usize::from(at.file)][at.slot]
    }

    /// Whether the pages of a place are in use.
    pub fn is_in_use(&self, at: Place) -> bool {
        let behind = (self.youngest + MOST - at.slot as u64) % MOST;
        behind < LEAST
    }

    /// Takes a block off the list of its generation. Its state still names that.
    #[inline]
    pub fn unlink(&mut self, frames: &Frames, ix: FrameIx) {
        let s = frames.state(ix);
        let at = Place::of(s);
        self.lists[usize::from(at.file)][at.slot].unlink(frames.table, ix);
        self.more[usize::from(at.file)][at.slot] -= beyond(s);
    }

    /// Puts a block, whose state without a list is `s`, into a generation of its kind: so many behind the youngest, as far as
    /// there are as many.
    pub fn join(
        &mut self,
        frames: &Frames,
        ix: FrameIx,
        s: State,
        file: bool,
        (behind, end): (u64, End),
    ) {
        let number = self.youngest.saturating_sub(behind);
        let number = number.max(self.oldest[usize::from(file)]);
        self.put(frames, ix, s, Place::new(file, number), end);
    }

    /// Puts a block into the generation behind the oldest one of its kind, as its newest: it could not be evicted.
    pub fn spare(&mut self, frames: &Frames, ix: FrameIx, s: State, file: bool) {
        let next = (self.oldest[usize::from(file)] + 1).min(self.youngest);
        self.put(frames, ix, s, Place::new(file, next), End::Head);
    }

    /// Puts a block at the old end of the oldest generation of its kind.
    pub fn put_last(&mut self, frames: &Frames, ix: FrameIx, s: State, file: bool) {
        let oldest = self.oldest[usize::from(file)];
        self.put(frames, ix, s, Place::new(file, oldest), End::Tail);
    }

    fn put(&mut self, frames: &Frames, ix: FrameIx, s: State, at: Place, end: End) {
        frames.set_state(ix, at.state(s));
        self.lists[usize::from(at.file)][at.slot].push(frames.table, ix, end);
        self.more[usize::from(at.file)][at.slot] += beyond(s);
    }

    /// The oldest page of a kind's oldest generation.
    pub fn oldest_page(&self, file: bool) -> Option<FrameIx> {
        let oldest = self.oldest[usize::from(file)];
        self.list(Place::new(file, oldest)).peek(End::Tail)
    }

    /// The oldest page of a kind in the generation that is so many behind the youngest.
    pub fn last_behind(&self, file: bool, behind: u64) -> Option<FrameIx> {
        let number = self.youngest.checked_sub(behind)?;
        self.list(Place::new(file, number)).peek(End::Tail)
    }

    /// When the oldest generation of a kind was the youngest, in milliseconds.
    pub fn born(&self, file: bool) -> u64 {
        self.born[Place::new(file, self.oldest[usize::from(file)]).slot]
    }

    /// Whether a kind's oldest generation is not in use.
    pub fn can_be_evicted(&self, file: bool) -> bool {
        self.count(file) > LEAST
    }

    /// Whether more than half of the pages of some kinds are in the youngest generation.
    pub fn most_are_young(&self, kinds: &[bool]) -> bool {
        let of = |kind: &bool| {
            (
                self.len(*kind, self.youngest),
                self.pages(*kind, true) + self.pages(*kind, false),
            )
        };
        let (young, all) = kinds
            .iter()
            .map(of)
            .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        young * 2 > all
    }

    /// The oldest generations that are empty are over, as long as two are left.
    pub fn drop_empty(&mut self, file: bool) {
        while self.can_be_evicted(file) && self.oldest_page(file).is_none() {
            self.oldest[usize::from(file)] += 1;
            self.refaults[usize::from(file)].age();
        }
    }

    /// Whether a page that was read so often is not evicted now.
    pub fn spares(&self, file: bool, reads: u8) -> bool {
        match tier(reads) {
            0 => false,
            3 => true,
            _ => self.refaults[usize::from(file)].spares_reread(),
        }
    }

    /// The generations grow older: a new one begins at a time in milliseconds. A kind that has as many as can be loses its
    /// oldest one to the next.
    pub fn age(&mut self, frames: &Frames, now: u64) {
        for file in [false, true] {
            if self.count(file) == MOST {
                self.merge_oldest(frames, file);
            }
        }
        self.youngest += 1;
        self.born[Place::new(false, self.youngest).slot] = now;
    }

    /// The pages of a kind's oldest generation go behind those of the next one, in their order.
    fn merge_oldest(&mut self, frames: &Frames, file: bool) {
        let kind = usize::from(file);
        let oldest = Place::new(file, self.oldest[kind]);
        let next = Place::new(file, self.oldest[kind] + 1);
        let pages = core::mem::replace(&mut self.lists[kind][oldest.slot], List::EMPTY);
        let table = frames.table;
        for ix in pages.iter(table) {
            // Whose it is and what for does not change, so that nobody else need know of it.
            table.set_state(ix, next.state(table.state(ix)));
        }
        self.lists[kind][next.slot].append(table, pages);
        self.more[kind][next.slot] += core::mem::take(&mut self.more[kind][oldest.slot]);
        self.oldest[kind] += 1;
    }
}

/// Frames of a block beyond its first.
fn beyond(s: State) -> u64 {
    match s.order() {
        Order::ZERO => 0,
        order => u64::from(order.frames() - 1),
    }
}

/// The tier of a page that was read so often through a descriptor: the logarithm, rounded up.
pub(crate) const fn tier(reads: u8) -> u8 {
    match reads {
        0 | 1 => 0,
        2 => 1,
        3 | 4 => 2,
        _ => 3,
    }
}

/// The state of a page in a generation after one more read.
pub(crate) fn read_once_more(s: State) -> State {
    s.with_reads((s.reads() + 1).min(MOST_READS))
}

/// The flags of a page in a generation as its owner knows them.
pub(crate) fn shown(s: State) -> PageFlags {
    let mut flags = s.flags() - PageFlags::OF_ISOLATED;
    flags.set(PageFlags::REFERENCED, s.reads() > 0);
    flags
}

/// The priority at which kswapd begins, so that its first pass frees about its goal. `spec: 4.10`
pub(crate) fn first_priority(pages: u64, goal: u64) -> u8 {
    let size = i64::from(u64::BITS - pages.leading_zeros());
    let most = i64::from(goal.max(1).next_power_of_two().ilog2());
    (size - most - 1).clamp(6, 12) as u8
}

/// Pages of a batch.
pub(crate) const GENERATION_BATCH: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: 4.10`: where kswapd of 6.12 began, by pages and goal.
    #[test]
    fn first_priorities_as_measured() {
        for (pages, goal, priority) in [
            (58_346, 64, 9),
            (58_339, 67, 8),
            (58_084, 172, 7),
            (57_697, 387, 6),
            (56_900, 777, 6),
            (45_700, 14_997, 6),
            (327_637, 113, 11),
            (325_702, 1_076, 7),
            (325_837, 1_694, 7),
            (316_819, 7_497, 6),
        ] {
            assert_eq!(first_priority(pages, goal), priority, "{pages}, {goal}");
        }
    }

    #[test]
    fn first_priorities_of_nothing_and_of_all_there_can_be() {
        assert_eq!(first_priority(0, 0), 6);
        assert_eq!(first_priority(0, u64::MAX >> 1), 6);
        assert_eq!(first_priority(u64::MAX, 1), 12);
    }

    /// `spec: 4.10`
    #[test]
    fn tiers_are_the_logarithm_of_reads() {
        assert_eq!([0, 1, 2, 3, 4, 5, 6].map(tier), [0, 0, 1, 2, 2, 3, 3]);
    }
}
