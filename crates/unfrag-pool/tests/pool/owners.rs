//! Owners, who move what they have, or let go of it.

#[path = "../../examples/page_cache/cache.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
pub mod cache;

use super::{Random, check_all_free, is_stamped, stamp};
use cache::PageCache;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use unfrag_pool::{Order, Owned, Owner, Place, Pool};

const MIB: usize = 1 << 20;

/// A file without a name, of so many pages, each stamped with its number.
pub fn file_of_pages(pages: u32) -> File {
    let path = std::env::temp_dir().join(format!(
        "unfrag-pages-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path);
    let file = file.expect("a temporary file");
    std::fs::remove_file(path).expect("it is there");
    let mut page = vec![0; 4096];
    for number in 0..pages {
        stamp_page(&mut page, number, 0);
        let written = file.write_all_at(&page, u64::from(number) * 4096);
        written.expect("room on the disk");
    }
    file
}

/// The first word of a page says which version of it this is, and the rest follows from that.
pub fn stamp_page(page: &mut [u8], number: u32, version: u64) {
    page[..8].copy_from_slice(&version.to_le_bytes());
    stamp(&mut page[8..], version << 32 | u64::from(number));
}

/// The version of a page, if it is right.
pub fn version_of(page: &[u8], number: u32) -> Option<u64> {
    let version = u64::from_le_bytes(page[..8].try_into().ok()?);
    is_stamped(&page[8..], version << 32 | u64::from(number)).then_some(version)
}

/// A page cache reads on demand, writes back what it lets go of, and is moved under load; no version is lost.
#[test]
fn a_page_cache_loses_nothing() {
    const PAGES: u32 = 4096;
    let file = file_of_pages(PAGES);
    let pool = Pool::builder()
        .arena(12 * MIB)
        // Enough is always free for a huge page, so that what is missing is a whole one.
        .watermarks(0, 1024, 1536)
        .build()
        .expect("a pool");
    let cache = PageCache::new(&pool, file.try_clone().expect("a handle"));
    let cache = cache.expect("the first owner");
    let ends = AtomicBool::new(false);
    let begin = Instant::now();
    // Each thread changes pages of its own, and knows their versions.
    let versions: Vec<HashMap<u32, u64>> = std::thread::scope(|s| {
        let thread = |t: u32| {
            let (cache, ends) = (&cache, &ends);
            s.spawn(move || {
                let mut random = Random::new(u64::from(t) + 1);
                let mut versions = HashMap::new();
                while !ends.load(Relaxed) {
                    let number = random.below(PAGES as usize) as u32;
                    let page = cache.page(number).expect("a page");
                    if number % 3 == t && random.below(3) == 0 {
                        let mut page = page.write().expect("no panic");
                        let expected = versions.get(&number).copied().unwrap_or(0);
                        assert_eq!(version_of(page.bytes(), number), Some(expected));
                        stamp_page(page.bytes_mut(), number, expected + 1);
                        versions.insert(number, expected + 1);
                    } else {
                        let page = page.read().expect("no panic");
                        assert!(version_of(page.bytes(), number).is_some());
                    }
                }
                versions
            })
        };
        let threads: Vec<_> = (0..3).map(thread).collect();
        // On a busy computer it takes longer until something is in the way.
        let moved = || pool.stats().event("pgmigrate_success") > 0;
        let goes_on = |time: Duration| {
            time < Duration::from_millis(1500) || time < Duration::from_secs(20) && !moved()
        };
        while goes_on(begin.elapsed()) {
            let huge: Vec<_> = (0..2)
                .filter_map(|_| pool.alloc(Order::HUGE).ok())
                .collect();
            std::thread::sleep(Duration::from_millis(5));
            drop(huge);
            pool.flush();
            std::thread::sleep(Duration::from_millis(15));
        }
        ends.store(true, Relaxed);
        threads
            .into_iter()
            .map(|t| t.join().expect("no panic"))
            .collect()
    });
    cache.sync().expect("a disk that works");
    let stats = pool.stats();
    assert!(stats.event("pgsteal_kswapd") + stats.event("pgsteal_direct") > 1000);
    assert!(stats.event("pgmigrate_success") > 0, "{:?}", stats.events);
    assert!(versions.iter().map(HashMap::len).sum::<usize>() > 500);
    let mut page = vec![0; 4096];
    for number in 0..PAGES {
        let read = file.read_exact_at(&mut page, u64::from(number) * 4096);
        read.expect("the file");
        let expected = versions[number as usize % 3].get(&number);
        let expected = expected.copied().unwrap_or(0);
        assert_eq!(version_of(&page, number), Some(expected), "page {number}");
    }
    assert_eq!(stats.free, stats.present - cache.len() as u64);
    assert_eq!(stats.refused, 0);
}

/// An owner that answers as it likes: it refuses, or offers another block than it was asked for, or lets go of nothing.
#[derive(Default)]
pub struct Moody {
    blocks: Mutex<HashMap<u32, Owned>>,
    random: Mutex<u64>,
}

impl Moody {
    fn chance(&self, n: u64) -> bool {
        let mut x = self.random.lock().expect("no panic");
        *x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*x >> 33).is_multiple_of(n)
    }

    /// Takes a block for a tag, if there is one now.
    pub fn take(&self, pool: &Pool, id: unfrag_pool::OwnerId, tag: u32, order: Order) {
        if let Ok(mut block) = pool.try_alloc_for(id, tag, order) {
            stamp(&mut block, tag.into());
            let old = self.blocks.lock().expect("no panic").insert(tag, block);
            drop(old);
        }
    }

    /// Whether a block holds what it should, if it is there.
    pub fn is_right(&self, tag: u32) -> bool {
        let blocks = self.blocks.lock().expect("no panic");
        blocks.get(&tag).is_none_or(|b| is_stamped(b, tag.into()))
    }

    pub fn clear(&self) {
        self.blocks.lock().expect("no panic").clear();
    }
}

impl Owner for Moody {
    fn migrate(&self, tag: u32, mut place: Place<'_>) {
        let mut blocks = self.blocks.lock().expect("no panic");
        if self.chance(4) {
            return;
        }
        if self.chance(50) {
            // It writes to the place, and then does not use it.
            place.bytes().fill(3);
            return;
        }
        // Now and then, it offers whatever it has under another tag.
        let tag = if self.chance(50) { tag + 1 } else { tag };
        let Some(block) = blocks.get_mut(&tag) else {
            return;
        };
        let is_asked_for = place.is_for(block);
        if self.chance(2) {
            assert_eq!(place.carry(block), is_asked_for);
        } else if is_asked_for {
            place.bytes().copy_from_slice(block);
            assert!(place.moved(block));
        } else {
            assert!(!place.moved(block));
        }
    }

    fn reclaim(&self, frames: usize) -> usize {
        if self.chance(3) {
            return 0;
        }
        let mut blocks = self.blocks.lock().expect("no panic");
        let tags: Vec<u32> = blocks.keys().copied().take(frames).collect();
        tags.iter().filter_map(|t| blocks.remove(t)).count()
    }
}

/// Whatever an owner answers, no frame is lost, and none has two users.
#[test]
fn an_owner_may_answer_as_it_likes() {
    let pool = Pool::builder().arena(32 * MIB).build().expect("a pool");
    let moody = Arc::new(Moody::default());
    let Ok(id) = pool.register(moody.clone()) else {
        panic!("the first owner");
    };
    let mut random = Random::new(4);
    for round in 0..20 {
        for tag in 0..6000 {
            if random.below(3) == 0 {
                moody.take(&pool, id, tag, Order(random.below(3) as u8));
            }
        }
        let frames: Vec<_> = (0..500)
            .filter_map(|_| pool.try_alloc(Order(0)).ok())
            .collect();
        pool.compact(4);
        assert!((0..6000).all(|tag| moody.is_right(tag)), "round {round}");
        drop(frames);
        if round % 5 == 4 {
            moody.reclaim(3000);
        }
    }
    let stats = pool.stats();
    assert!(stats.event("pgmigrate_success") > 0 && stats.event("pgmigrate_fail") > 0);
    moody.clear();
    check_all_free(&pool);
}

/// An allocation that finds nothing has owners let go of something; kswapd does so before.
#[test]
fn owners_let_go_when_memory_is_short() {
    let pool = Pool::builder()
        .arena(8 * MIB)
        .watermarks(16, 256, 512)
        .build()
        .expect("a pool");
    let moody = Arc::new(Moody::default());
    let Ok(id) = pool.register(moody.clone()) else {
        panic!("the first owner");
    };
    for tag in 0..2048 {
        moody.take(&pool, id, tag, Order(0));
    }
    let held: Vec<_> = (0..1200)
        .map(|_| pool.alloc(Order(0)).expect("reclaimed"))
        .collect();
    let stats = pool.stats();
    assert!(stats.event("pgsteal_kswapd") + stats.event("pgsteal_direct") >= 1000);
    assert!(stats.event("kswapd_wake") > 0);
    drop(held);
}
