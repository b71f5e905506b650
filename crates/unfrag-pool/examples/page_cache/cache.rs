//! A page cache over a file: pages are read on demand, kept as long as there is room, moved so that huge pages can be had,
//! and written back before they go.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use unfrag_pool::{AllocError, FRAME_BYTES, Order, Owned, Owner, OwnerId, Place, Pool};

/// A page in memory. Whoever holds its lock keeps it there.
pub struct Page {
    frame: Owned,
    dirty: bool,
}

impl Page {
    /// What it holds.
    pub fn bytes(&self) -> &[u8] {
        &self.frame
    }

    /// What it holds, to change it: it is written back before it goes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.dirty = true;
        &mut self.frame
    }
}

/// A page, and whether it was used since the clock's hand passed it.
struct Slot {
    page: Arc<RwLock<Page>>,
    used: AtomicBool,
}

/// A part of the pages, under a lock of its own.
#[derive(Default)]
struct Shard {
    slots: HashMap<u32, Slot>,
    /// Page numbers in the order in which the clock's hand passes them.
    clock: VecDeque<u32>,
}

const SHARDS: usize = 64;

/// The pages of a file that are in memory: the owner of their frames.
pub struct Pages {
    file: File,
    shards: [Mutex<Shard>; SHARDS],
    hand: AtomicU64,
    /// Errors of writing back. A page that cannot be written stays in memory.
    failed: Mutex<Option<io::Error>>,
}

impl Pages {
    fn shard(&self, page: u32) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[page as usize % SHARDS];
        shard.lock().expect("nobody panics under it")
    }

    fn write_back(&self, number: u32, page: &mut Page) -> io::Result<()> {
        if page.dirty {
            self.file
                .write_all_at(&page.frame, u64::from(number) * FRAME_BYTES as u64)?;
            page.dirty = false;
        }
        Ok(())
    }

    /// Lets go of pages of a shard that nobody uses. Returns how many.
    fn shrink(&self, shard: &mut Shard, wanted: usize) -> usize {
        let mut gone = 0;
        for _ in 0..shard.clock.len() * 2 {
            let Some(number) = shard.clock.pop_front().filter(|_| gone < wanted) else {
                break;
            };
            let goes = shard.slots.get(&number).is_some_and(|slot| {
                let is_ours_alone = Arc::strong_count(&slot.page) == 1;
                !slot.used.swap(false, Relaxed) && is_ours_alone && self.is_clean(number, slot)
            });
            if goes {
                shard.slots.remove(&number);
                gone += 1;
            } else {
                shard.clock.push_back(number);
            }
        }
        gone
    }

    /// Whether a page is clean now.
    fn is_clean(&self, number: u32, slot: &Slot) -> bool {
        let Ok(mut page) = slot.page.try_write() else {
            return false;
        };
        match self.write_back(number, &mut page) {
            Ok(()) => true,
            Err(e) => {
                *self.failed.lock().expect("nobody panics under it") = Some(e);
                false
            }
        }
    }
}

impl Owner for Pages {
    fn migrate(&self, number: u32, place: Place<'_>) {
        let shard = self.shard(number);
        // A page that somebody uses stays where it is.
        if let Some(slot) = shard.slots.get(&number)
            && let Ok(mut page) = slot.page.try_write()
        {
            place.carry(&mut page.frame);
        }
    }

    fn reclaim(&self, frames: usize) -> usize {
        let mut gone = 0;
        for _ in 0..SHARDS {
            let i = self.hand.fetch_add(1, Relaxed) as usize % SHARDS;
            let mut shard = self.shards[i].lock().expect("nobody panics under it");
            let fair = (frames - gone).div_ceil(4);
            gone += self.shrink(&mut shard, fair);
            if gone >= frames {
                break;
            }
        }
        gone
    }
}

/// A page cache.
pub struct PageCache<'p> {
    pool: &'p Pool,
    pages: Arc<Pages>,
    owner: OwnerId,
}

/// Why there is no page.
#[derive(Debug)]
pub enum PageError {
    /// No memory.
    Memory(AllocError),
    /// The file could not be read.
    File(io::Error),
}

impl std::fmt::Display for PageError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            PageError::Memory(e) => write!(f, "no memory for a page: {e}"),
            PageError::File(e) => write!(f, "a page cannot be read: {e}"),
        }
    }
}

impl std::error::Error for PageError {}

impl<'p> PageCache<'p> {
    /// A cache of a file with memory of a pool; `None`, if the pool has too many owners.
    pub fn new(pool: &'p Pool, file: File) -> Option<PageCache<'p>> {
        let pages = Arc::new(Pages {
            file,
            shards: std::array::from_fn(|_| Mutex::default()),
            hand: AtomicU64::new(0),
            failed: Mutex::new(None),
        });
        let owner = pool.register(pages.clone()).ok()?;
        Some(PageCache { pool, pages, owner })
    }

    /// A page of the file.
    ///
    /// # Errors
    /// [`PageError`].
    pub fn page(&self, number: u32) -> Result<Arc<RwLock<Page>>, PageError> {
        if let Some(page) = self.find(number) {
            return Ok(page);
        }
        // With no shard locked: to make room, the pool may have this very cache let go of pages.
        let frame = self.pool.alloc_for(self.owner, number, Order(0));
        let mut frame = frame.map_err(PageError::Memory)?;
        let mut shard = self.pages.shard(number);
        // Somebody may have been faster.
        if let Some(slot) = shard.slots.get(&number) {
            slot.used.store(true, Relaxed);
            return Ok(slot.page.clone());
        }
        // Under the lock: what was read before could be older than what has been changed, written back and let go of since.
        let at = u64::from(number) * FRAME_BYTES as u64;
        let read = self.pages.file.read_exact_at(&mut frame, at);
        read.map_err(PageError::File)?;
        let page = Arc::new(RwLock::new(Page {
            frame,
            dirty: false,
        }));
        let slot = Slot {
            page: page.clone(),
            used: AtomicBool::new(true),
        };
        shard.slots.insert(number, slot);
        shard.clock.push_back(number);
        Ok(page)
    }

    fn find(&self, number: u32) -> Option<Arc<RwLock<Page>>> {
        let shard = self.pages.shard(number);
        let slot = shard.slots.get(&number)?;
        slot.used.store(true, Relaxed);
        Some(slot.page.clone())
    }

    /// Pages in memory.
    pub fn len(&self) -> usize {
        let shards = self.pages.shards.iter();
        let lens = shards.map(|s| s.lock().expect("nobody panics under it").slots.len());
        lens.sum()
    }

    /// Writes back all that is dirty.
    ///
    /// # Errors
    /// The first error of writing, now or before.
    pub fn sync(&self) -> io::Result<()> {
        if let Some(e) = self
            .pages
            .failed
            .lock()
            .expect("nobody panics under it")
            .take()
        {
            return Err(e);
        }
        for shard in &self.pages.shards {
            let shard = shard.lock().expect("nobody panics under it");
            for (&number, slot) in &shard.slots {
                let mut page = slot.page.write().expect("nobody panics under it");
                self.pages.write_back(number, &mut page)?;
            }
        }
        self.pages.file.sync_data()
    }
}
