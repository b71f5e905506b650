//! A buffer pool as a database would have it: a file of 64 MiB behind 16 MiB of memory.
//!
//! `cargo run --release -p unfrag-pool --example page_cache`
//!
//! Four threads read and change pages, each with a checksum, while huge pages are taken and given back, for which pages are
//! moved. Then everything is written back, and the file is checked.

mod cache;

use cache::PageCache;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use unfrag_pool::{Order, Pool};

const MIB: usize = 1 << 20;
const PAGES: u32 = (64 * MIB / 4096) as u32;
const THREADS: u64 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("page_cache-{}", std::process::id()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    let result = run(&file);
    std::fs::remove_file(&path)?;
    result
}

fn run(file: &File) -> Result<(), Box<dyn Error>> {
    let mut page = vec![0; 4096];
    for number in 0..PAGES {
        write_page(&mut page, number.into());
        std::os::unix::fs::FileExt::write_all_at(file, &page, u64::from(number) * 4096)?;
    }
    let pool = Pool::builder()
        .arena(16 * MIB)
        .watermarks(0, 1024, 1536)
        .keep_huge(1)
        .build()?;
    let cache = PageCache::new(&pool, file.try_clone()?).ok_or("too many owners")?;
    let (ends, reads, writes) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let begin = Instant::now();
    let mut huge_pages = 0;
    std::thread::scope(|s| {
        for t in 0..THREADS {
            let (cache, ends, reads, writes) = (&cache, &ends, &reads, &writes);
            s.spawn(move || {
                let mut x = t + 1;
                while !ends.load(Relaxed) {
                    x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // Half of all go to a tenth of the pages.
                    let number =
                        (x >> 33) as u32 % if x >> 32 & 1 == 0 { PAGES / 10 } else { PAGES };
                    let page = cache.page(number).expect("a page");
                    if x >> 60 == 0 {
                        write_page(page.write().expect("no panic").bytes_mut(), x);
                        writes.fetch_add(1, Relaxed);
                    } else {
                        assert!(is_right(page.read().expect("no panic").bytes()));
                        reads.fetch_add(1, Relaxed);
                    }
                }
            });
        }
        // For a while they are somebody else's, for a while the cache's.
        while begin.elapsed() < Duration::from_secs(2) {
            let mut huge: Vec<_> = (0..3)
                .filter_map(|_| pool.alloc(Order::HUGE).ok())
                .collect();
            huge_pages += huge.len();
            huge.iter_mut().for_each(|h| h.fill(0xEE));
            std::thread::sleep(Duration::from_millis(10));
            drop(huge);
            pool.flush();
            std::thread::sleep(Duration::from_millis(30));
        }
        ends.store(true, Relaxed);
    });
    cache.sync()?;
    let mut wrong = 0;
    for number in 0..PAGES {
        std::os::unix::fs::FileExt::read_exact_at(file, &mut page, u64::from(number) * 4096)?;
        wrong += u32::from(!is_right(&page));
    }
    let stats = pool.stats();
    println!("pages read          {:>9}", reads.load(Relaxed));
    println!("pages changed       {:>9}", writes.load(Relaxed));
    println!("pages in memory     {:>9} of {PAGES}", cache.len());
    println!("huge pages taken    {huge_pages:>9}");
    println!(
        "pages moved         {:>9}",
        stats.event("pgmigrate_success")
    );
    println!(
        "pages reclaimed     {:>9} by kswapd, {} by allocations",
        stats.event("pgsteal_kswapd"),
        stats.event("pgsteal_direct")
    );
    println!("wrong checksums     {wrong:>9}");
    if wrong > 0 {
        return Err("pages were lost".into());
    }
    Ok(())
}

/// Words that follow from a number, and their sum.
fn write_page(page: &mut [u8], number: u64) {
    let mut sum = 0_u64;
    for (i, word) in page[8..].chunks_exact_mut(8).enumerate() {
        let w = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i as u64;
        sum = sum.rotate_left(1) ^ w;
        word.copy_from_slice(&w.to_le_bytes());
    }
    page[..8].copy_from_slice(&sum.to_le_bytes());
}

fn is_right(page: &[u8]) -> bool {
    let word = |w: &[u8]| w.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
    let words = page[8..].chunks_exact(8).map(word);
    words.fold(0, |sum: u64, w| sum.rotate_left(1) ^ w) == word(&page[..8])
}
