//! Interrupts at the worst moments: while a CPU holds a lock, or is in its `Local`.
//!
//! Every now and then a CPU interrupts itself just there. The interrupt has to wait until interrupts are on again, and its
//! handler, which allocates, must then find nothing half done.

use crate::{apic, cpu};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// One moment of so many.
const EVERY: u64 = 512;

/// Off until the machine is up.
static ON: AtomicBool = AtomicBool::new(false);
static MOMENTS: AtomicU64 = AtomicU64::new(0);
/// Interrupts that were asked for at such a moment, and waited.
static TRIED: AtomicU64 = AtomicU64::new(0);
/// Interrupts that came at such a moment.
static LET_IN: AtomicU64 = AtomicU64::new(0);

/// Starts.
pub fn start() {
    ON.store(true, Relaxed);
}

/// A moment at which no interrupt may come: every now and then, one is asked for.
#[inline]
pub fn interrupt_here() {
    if !ON.load(Relaxed) || !MOMENTS.fetch_add(1, Relaxed).is_multiple_of(EVERY) {
        return;
    }
    apic::interrupt_self(apic::FAULT);
    // It waits already, or will: it is counted only where it is seen to wait.
    if apic::is_pending(apic::FAULT) {
        TRIED.fetch_add(1, Relaxed);
    }
}

/// Counts an interrupt that came where none may.
pub fn check() {
    let own = cpu::this();
    if own.holds.get() > 0 || own.in_local.get() || !cpu::may_switch() {
        LET_IN.fetch_add(1, Relaxed);
    }
}

/// Interrupts that were asked for where none may come, and those that came there.
pub fn counts() -> (u64, u64) {
    (TRIED.load(Relaxed), LET_IN.load(Relaxed))
}
