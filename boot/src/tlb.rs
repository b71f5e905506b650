//! Flushing translations on all CPUs.
//!
//! Invariant: when [`flush`] returns, no CPU uses a translation of these pages that was changed before the call.

use crate::lock::Mutex;
use crate::{apic, cpu};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use x86_64::VirtAddr;
use x86_64::instructions::{interrupts, tlb};

/// More pages than these are flushed with all others.
const MOST: u64 = 32;

/// One flush at a time.
static ONE: Mutex<()> = Mutex::new(());
static FIRST: AtomicU64 = AtomicU64::new(0);
static PAGES: AtomicU64 = AtomicU64::new(0);
/// CPUs that have not answered.
static MISSING: AtomicUsize = AtomicUsize::new(0);
/// Flushes so far.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Flushes `pages` pages of 4 KiB from an address on.
pub fn flush(first: VirtAddr, pages: u64) {
    assert!(cpu::may_switch(), "a flush waits for other CPUs, who may wait for this one's lock");
    let _one = ONE.lock();
    COUNT.fetch_add(1, Relaxed);
    flush_here(first.as_u64(), pages);
    let others = cpu::count() - 1;
    if others == 0 {
        return;
    }
    FIRST.store(first.as_u64(), Relaxed);
    PAGES.store(pages, Relaxed);
    MISSING.store(others, Release);
    interrupts::without_interrupts(|| apic::interrupt_others(apic::FLUSH));
    while MISSING.load(Acquire) > 0 {
        core::hint::spin_loop();
    }
}

/// Flushes all pages.
pub fn flush_all() {
    flush(VirtAddr::zero(), u64::MAX);
}

/// Another CPU asks for a flush.
pub fn answer() {
    flush_here(FIRST.load(Relaxed), PAGES.load(Relaxed));
    MISSING.fetch_sub(1, Release);
}

fn flush_here(first: u64, pages: u64) {
    if pages > MOST {
        tlb::flush_all();
        return;
    }
    for i in 0..pages {
        tlb::flush(VirtAddr::new_truncate(first + i * 4096));
    }
}

/// Flushes so far.
pub fn count() -> u64 {
    COUNT.load(Relaxed)
}
