//! The steps in a pool.

use super::outcome::Outcome;
use super::steps::{GIVEN_BACK, HUGE, PAGES, is_stamped, stamp, wanted};
use crate::error::Result;
use std::time::{Duration, Instant};
use unfrag_pool::{Movable, Order, Pool};

/// Huge pages that kcompactd keeps ready.
const READY: u32 = 64;

pub(super) fn run(blocks: u32, progress: &dyn Fn(u64)) -> Result<Outcome> {
    let pool = Pool::builder()
        .arena(blocks as usize * HUGE as usize)
        .keep_huge(READY)
        .patience(Duration::from_millis(100))
        .build()?;
    let mut pages: Vec<(u32, Movable)> = Vec::new();
    let mut given_back = Vec::new();
    let all = u64::from(blocks * PAGES);
    while let Ok(mut page) = pool.try_alloc_movable(Order(0)) {
        let number = pages.len() as u32 + given_back.len() as u32;
        let at = {
            let mut bytes = page.pin_mut();
            stamp(&mut bytes, number);
            bytes.as_ptr().addr() / 4096
        };
        // Arenas are aligned, so the address says where in its 2 MiB a page is.
        if (at as u32) % PAGES < GIVEN_BACK {
            given_back.push(page);
        } else {
            pages.push((number, page));
        }
        if number.is_multiple_of(4096) {
            progress(u64::from(number) * 500 / all);
        }
    }
    drop(given_back);
    pool.flush();
    let wanted = wanted(blocks);
    let mut latencies = Vec::new();
    let mut held = Vec::new();
    let copied_before = pool.stats().event("pgmigrate_success");
    for i in 0..wanted {
        let start = Instant::now();
        let Ok(huge) = pool.alloc(Order::HUGE) else {
            continue;
        };
        held.push(huge.zero());
        latencies.push(start.elapsed().as_nanos() as u64);
        progress(500 + u64::from(i) * 400 / u64::from(wanted));
    }
    let copied = pool.stats().event("pgmigrate_success") - copied_before;
    let wrong = pages
        .iter()
        .filter(|(n, p)| !is_stamped(&p.pin(), *n))
        .count();
    progress(1000);
    Ok(Outcome {
        frames_copied: copied,
        pages_kept: pages.len() as u32,
        pages_wrong: wrong as u32,
        ..Outcome::new("pool", wanted, latencies)
    })
}
