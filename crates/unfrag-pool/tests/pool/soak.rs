//! All of it at once: more threads than CPUs, allocation, freeing, moving, reclaim, owners that refuse. It runs for
//! `UNFRAG_SOAK_SECONDS` seconds.

use super::owners::cache::PageCache;
use super::owners::{Moody, file_of_pages, stamp_page, version_of};
use super::{Random, is_stamped, setting, stamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use unfrag_pool::{Order, Pool};

const MIB: usize = 1 << 20;
const PAGES: u32 = 16 << 10;
const THREADS: usize = 8;

/// Resident memory of this process, in MiB.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages = statm
        .split_whitespace()
        .nth(1)
        .and_then(|s| s.parse::<u64>().ok());
    pages.expect("a number") / 256
}

/// Nothing is lost, nothing is shared, and nothing grows. The seed is printed.
#[test]
fn soak() {
    let seconds = setting("UNFRAG_SOAK_SECONDS", 3);
    let seed = setting("UNFRAG_SEED", 1);
    println!("seed {seed}");
    let file = file_of_pages(PAGES);
    let pool = Pool::builder()
        .arena(32 * MIB)
        .arena(32 * MIB)
        .watermarks(64, 1024, 2048)
        .keep_huge(4)
        .patience(Duration::from_millis(200))
        .build()
        .expect("a pool");
    let cache = PageCache::new(&pool, file.try_clone().expect("a handle"));
    let cache = cache.expect("an owner");
    let moody = Arc::new(Moody::default());
    let Ok(id) = pool.register(moody.clone()) else {
        panic!("the second owner");
    };
    let (ends, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let begin = Instant::now();
    let mut resident_early = 0;
    std::thread::scope(|s| {
        let thread = |t: usize| {
            let (pool, cache, moody, ends, done) = (&pool, &cache, &moody, &ends, &done);
            s.spawn(move || {
                let mut random = Random::new(seed * 1000 + t as u64);
                let mut frames = Vec::new();
                let mut movable = Vec::new();
                while !ends.load(Relaxed) {
                    done.fetch_add(1, Relaxed);
                    let number = random.next();
                    match random.below(16) {
                        0 | 1 if frames.len() < 200 => {
                            let order = Order(random.below(5) as u8);
                            if let Ok(mut f) = pool.alloc(order) {
                                stamp(&mut f, number);
                                frames.push((f, number));
                            }
                        }
                        2 | 3 if !frames.is_empty() => {
                            let (f, n) = frames.swap_remove(random.below(frames.len()));
                            assert!(is_stamped(&f, n));
                        }
                        4 | 5 if movable.len() < 500 => {
                            let order = Order(random.below(3) as u8);
                            if let Ok(mut m) = pool.alloc_movable(order) {
                                stamp(&mut m.pin_mut(), number);
                                movable.push((m, number));
                            }
                        }
                        6 if !movable.is_empty() => {
                            let (m, n) = movable.swap_remove(random.below(movable.len()));
                            assert!(is_stamped(&m.pin(), n));
                        }
                        7 if !movable.is_empty() => {
                            let i = random.below(movable.len());
                            let (m, n) = &mut movable[i];
                            assert!(is_stamped(&m.pin(), *n));
                            stamp(&mut m.pin_mut(), number);
                            *n = number;
                        }
                        8 => {
                            let tag = random.below(3000) as u32;
                            moody.take(pool, id, tag, Order(random.below(3) as u8));
                        }
                        9 => assert!(moody.is_right(random.below(3000) as u32)),
                        10 if random.below(20) == 0 => {
                            if let Ok(mut e) = pool.alloc_bytes(3 * MIB) {
                                e.pieces_mut().iter_mut().for_each(|p| p.fill(7));
                            }
                        }
                        11 if random.below(200) == 0 => {
                            pool.compact(2);
                            pool.release(2).expect("the system agrees");
                        }
                        12 => std::thread::yield_now(),
                        _ => {
                            let number = random.below(PAGES as usize) as u32;
                            let Ok(page) = cache.page(number) else {
                                continue;
                            };
                            if random.below(4) == 0 {
                                let mut page = page.write().expect("no panic");
                                let v = version_of(page.bytes(), number).expect("a right page");
                                stamp_page(page.bytes_mut(), number, v + 1);
                            } else {
                                let page = page.read().expect("no panic");
                                assert!(version_of(page.bytes(), number).is_some());
                            }
                        }
                    }
                }
                assert!(frames.iter().all(|(f, n)| is_stamped(f, *n)));
                assert!(movable.iter().all(|(m, n)| is_stamped(&m.pin(), *n)));
            })
        };
        let threads: Vec<_> = (0..THREADS).map(thread).collect();
        while begin.elapsed() < Duration::from_secs(seconds) {
            std::thread::sleep(Duration::from_millis(100));
            if resident_early == 0 && begin.elapsed() > Duration::from_secs(seconds) / 3 {
                resident_early = resident();
            }
            pool.validate().expect("every invariant");
        }
        ends.store(true, Relaxed);
        for t in threads {
            t.join().expect("no panic");
        }
    });
    let resident = resident();
    let stats = pool.stats();
    println!(
        "{} operations, {} moved, {} reclaimed, {resident} MiB resident ({resident_early} after a third)",
        done.load(Relaxed),
        stats.event("pgmigrate_success"),
        stats.event("pgsteal_kswapd") + stats.event("pgsteal_direct"),
    );
    assert!(stats.event("pgmigrate_success") > 0);
    assert!(
        resident <= resident_early + 32,
        "{resident_early} MiB, then {resident}"
    );
    cache.sync().expect("a disk that works");
    moody.clear();
    pool.flush();
    pool.validate().expect("every invariant");
    let stats = pool.stats();
    assert_eq!(stats.free, stats.present - cache.len() as u64);
    assert_eq!(stats.refused, 0);
}
