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
/// Ticks without a move after which it has nothing to do: longer than between two looks of kcompactd.
const IDLE: u64 = 600;
/// Pages of 4 KiB in a huge page.
const PAGES: u32 = 512;

/// Takes huge pages until there are no more.
pub fn burst(work: &Work) -> Burst {
    let mut burst = Burst {
        free: frames::room(),
        ..Burst::default()
    };
    let copies = compact::copies();
    let mut count = work.huge_pages.lock();
    loop {
        let at_once = frames::alloc(Order::HUGE, MigrateType::Movable, Rights::Task);
        let Some(pfn) = at_once.or_else(compact::huge_page) else {
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
    burst.copies = compact::copies() - copies;
    burst
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

/// Waits until kcompactd has nothing to move for a while.
pub fn wait_until_ready() {
    let end = task::now() + PATIENCE;
    let mut copies = compact::copies();
    while task::now() < end {
        task::sleep(IDLE);
        let now = compact::copies();
        if now == copies {
            break;
        }
        copies = now;
    }
}
