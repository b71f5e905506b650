//! Flushing translations on all CPUs, and barriers there.
//!
//! Invariant: when [`flush`] returns, no CPU uses a translation of these pages that was changed before the call.

use crate::mutex::Mutex;
use crate::{apic, cpu};
use core::sync::atomic::{
    AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
    Ordering::SeqCst, fence,
};
use x86_64::VirtAddr;
use x86_64::instructions::{interrupts, tlb};

/// More pages than these are flushed with all others.
pub const MOST: usize = 32;

/// One flush at a time.
static ONE: Mutex<()> = Mutex::new(());
/// The pages, or one more than there is room for.
static PAGES: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static HOW_MANY: AtomicUsize = AtomicUsize::new(0);
/// CPUs that have not answered.
static MISSING: AtomicUsize = AtomicUsize::new(0);
/// Flushes so far.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Flushes some pages of 4 KiB, or all if there are many.
pub fn flush(pages: &[VirtAddr]) {
    assert!(
        cpu::may_switch(),
        "a flush waits for other CPUs, who may wait for this one's lock"
    );
    COUNT.fetch_add(1, Relaxed);
    everywhere(pages);
}

/// Has each CPU execute a full barrier: an interrupt and the answer to it are one. False, if it would have to wait where the
/// caller must not.
pub fn barrier() -> bool {
    let may = cpu::may_switch();
    if may {
        everywhere(&[]);
    }
    may
}

fn everywhere(pages: &[VirtAddr]) {
    let _one = ONE.lock();
    for (to, page) in PAGES.iter().zip(pages) {
        to.store(page.as_u64(), Relaxed);
    }
    HOW_MANY.store(pages.len().min(MOST + 1), Relaxed);
    flush_here();
    fence(SeqCst);
    let others = cpu::count() - 1;
    if others == 0 {
        return;
    }
    MISSING.store(others, Release);
    interrupts::without_interrupts(|| apic::interrupt_others(apic::FLUSH));
    while MISSING.load(Acquire) > 0 {
        core::hint::spin_loop();
    }
}

/// Flushes all pages.
pub fn flush_all() {
    flush(&[VirtAddr::zero(); MOST + 1]);
}

/// Another CPU asks for a flush.
pub fn answer() {
    flush_here();
    fence(SeqCst);
    MISSING.fetch_sub(1, Release);
}

fn flush_here() {
    let pages = HOW_MANY.load(Relaxed);
    if pages > MOST {
        tlb::flush_all();
        return;
    }
    for page in &PAGES[..pages] {
        tlb::flush(VirtAddr::new_truncate(page.load(Relaxed)));
    }
}

/// Flushes so far.
pub fn count() -> u64 {
    COUNT.load(Relaxed)
}
