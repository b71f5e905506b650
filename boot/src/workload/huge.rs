//! Huge pages: taken one after another, mapped, written and compared, until no more can be had.

use super::pages::Work;
use crate::frames::{self, Rights};
use crate::report::Burst;
use crate::space::address;
use crate::{compact, pattern, task, tlb};
use unfrag::{MigrateType, Order};

/// kcompactd keeps one of so many possible huge pages ready.
pub const READY: u64 = 4;
/// Ticks that it gets to do so.
const PATIENCE: u64 = 20_000;
/// Compactions in vain before a request fails.
const TRIES: u32 = 3;
/// Pages of 4 KiB in a huge page.
const PAGES: u32 = 512;

/// Takes huge pages until there are no more.
pub fn burst(work: &Work) -> Burst {
    let mut burst = Burst {
        free: frames::room(),
        ..Burst::default()
    };
    let mut count = work.huge_pages.lock();
    loop {
        let at_once = frames::alloc(Order::HUGE, MigrateType::Movable, Rights::Task);
        let Some(pfn) = at_once.or_else(direct_compaction) else {
            break;
        };
        let page = *count * PAGES;
        if work.huge.map_huge(page, pfn).is_err() {
            frames::free(pfn, Order::HUGE, MigrateType::Movable);
            break;
        }
        *count += 1;
        burst.got += 1;
        burst.without_copying += u64::from(at_once.is_some());
        work.huge.enter();
        let words = |n| address(page + n).as_mut_ptr();
        let seed = u64::from(work.huge.id());
        // SAFETY: The pages are mapped in the space of this task, which alone uses it.
        let right = unsafe {
            (0..PAGES).for_each(|n| pattern::fill(&mut *words(n), seed, (page + n).into()));
            (0..PAGES).all(|n| pattern::is(&*words(n), seed, (page + n).into()))
        };
        burst.wrong += u64::from(!right);
    }
    task::leave_space();
    burst
}

/// A huge page for a request that found none. It waits a little, as what other CPUs keep comes back with their next free.
fn direct_compaction() -> Option<unfrag::Pfn> {
    let mut tries = 0;
    while frames::room() >= PAGES.into() && tries < TRIES {
        if !compact::make_block(1) {
            tries += 1;
            task::sleep(2);
        }
        let got = frames::alloc(Order::HUGE, MigrateType::Movable, Rights::Task);
        if got.is_some() {
            return got;
        }
    }
    None
}

/// Frees all huge pages.
pub fn free_all(work: &Work) {
    let mut count = work.huge_pages.lock();
    while let Some(n) = count.checked_sub(1) {
        *count = n;
        let pfn = work
            .huge
            .unmap_huge(n * PAGES)
            .expect("a huge page is mapped there");
        tlb::flush_all();
        frames::free(pfn, Order::HUGE, MigrateType::Movable);
    }
}

/// Waits until kcompactd has as many blocks ready as it should, or makes no more.
pub fn wait_until_ready() {
    let end = task::now() + PATIENCE;
    let mut blocks = compact::counts().0;
    while task::now() < end {
        task::sleep(100);
        let now = compact::counts().0;
        if now == blocks {
            break;
        }
        blocks = now;
    }
}
