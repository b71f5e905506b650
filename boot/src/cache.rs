//! The page cache: clean pages of one imagined file, which can be read again. What kswapd gives back.
//!
//! Invariant: a page's contents follow from its number, so that dropping one loses nothing.

use crate::frames::{self, Rights};
use crate::memory_map::frame;
use crate::mutex::Mutex;
use crate::owners::{self, Owner};
use crate::pattern;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use unfrag::{MigrateType, Order, Pfn};

/// The seed of the file's contents.
const FILE: u64 = 0xf11e;

/// The cached pages.
struct Pages {
    /// The frame of each page of the file.
    of: Vec<Option<NonZeroU32>>,
    /// Cached pages, the one that was read first in front.
    oldest: VecDeque<u32>,
}

impl Pages {
    /// Forgets a page that is cached, once it has been compared, and gives up its frame.
    fn drop_page(&mut self, page: u32) -> Pfn {
        let pfn = pfn(self.of[page as usize].take().expect("it is cached"));
        check(page, pfn);
        owners::clear(pfn);
        RECLAIMED.fetch_add(1, Relaxed);
        pfn
    }
}

static PAGES: Mutex<Pages> = Mutex::new(Pages {
    of: Vec::new(),
    oldest: VecDeque::new(),
});
static WRONG: AtomicU64 = AtomicU64::new(0);
static CHECKED: AtomicU64 = AtomicU64::new(0);
static RECLAIMED: AtomicU64 = AtomicU64::new(0);

/// A frame in four bytes: frame 0 is nobody's.
fn number(pfn: Pfn) -> Option<NonZeroU32> {
    NonZeroU32::new(pfn.0 as u32)
}

fn pfn(number: NonZeroU32) -> Pfn {
    Pfn(number.get().into())
}

/// Makes room for a file of so many pages.
pub fn init(pages: u32) {
    let mut cache = PAGES.lock();
    cache.of = alloc::vec![None; pages as usize];
    cache.oldest = VecDeque::with_capacity(pages as usize);
}

/// Pages of the file.
pub fn pages() -> u32 {
    PAGES.lock().of.len() as u32
}

/// Reads a page of the file, from the cache or anew. False, if there is no frame for it.
pub fn read(page: u32) -> bool {
    let cache = PAGES.lock();
    if let Some(at) = cache.of[page as usize] {
        check(page, pfn(at));
        return true;
    }
    drop(cache);
    let Some(pfn) = frames::alloc(Order(0), MigrateType::Movable, Rights::Task) else {
        return false;
    };
    // SAFETY: The frame is ours.
    pattern::fill(unsafe { &mut *frame(pfn) }, FILE, page.into());
    let mut cache = PAGES.lock();
    if cache.of[page as usize].is_some() {
        frames::free(pfn, Order(0), MigrateType::Movable);
        return true;
    }
    cache.of[page as usize] = number(pfn);
    cache.oldest.push_back(page);
    owners::set(pfn, Owner::Cache(page));
    frames::adopt(pfn, true);
    true
}

/// Forgets a page, whose frame is then its caller's. False, if it is not there.
pub fn forget(page: u32, from: Pfn) -> bool {
    let mut cache = PAGES.lock();
    if cache.of[page as usize] != number(from) {
        return false;
    }
    cache.drop_page(page);
    // Near the front: an era, too, drops what was read first.
    if let Some(at) = cache.oldest.iter().position(|&p| p == page) {
        cache.oldest.remove(at);
    }
    true
}

fn check(page: u32, pfn: Pfn) {
    CHECKED.fetch_add(1, Relaxed);
    // SAFETY: The cache's frame, under its lock.
    if !pattern::is(unsafe { &*frame(pfn) }, FILE, page.into()) {
        WRONG.fetch_add(1, Relaxed);
    }
}

/// Drops so many pages, or all if there are fewer, those first that were read first. Returns how many frames came free.
pub fn reclaim(frames: usize) -> usize {
    for got in 0..frames {
        let mut cache = PAGES.lock();
        let Some(page) = cache.oldest.pop_front() else {
            return got;
        };
        let pfn = cache.drop_page(page);
        drop(cache);
        frames::free(pfn, Order(0), MigrateType::Movable);
    }
    frames
}

/// Moves a page from one frame to another. False, if it is not there.
pub fn migrate(page: u32, from: Pfn, to: Pfn) -> bool {
    let mut cache = PAGES.lock();
    if cache.of[page as usize] != number(from) {
        return false;
    }
    // SAFETY: The cache's frame, under its lock, and the caller's.
    unsafe { frame::<pattern::Words>(to).copy_from_nonoverlapping(frame(from), 1) };
    cache.of[page as usize] = number(to);
    owners::moved(from, to, Owner::Cache(page));
    true
}

/// Gives back the room of the cache.
pub fn destroy() {
    reclaim(usize::MAX);
    let mut cache = PAGES.lock();
    cache.of = Vec::new();
    cache.oldest = VecDeque::new();
}

/// Pages that were checked, those that were wrong, and those that were dropped.
pub fn counts() -> (u64, u64, u64) {
    (
        CHECKED.load(Relaxed),
        WRONG.load(Relaxed),
        RECLAIMED.load(Relaxed),
    )
}
