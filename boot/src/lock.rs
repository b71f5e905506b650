//! The spin lock, for what handlers share with tasks.
//!
//! Invariant: whoever holds one neither waits nor is interrupted.

use crate::{cpu, faults};
use core::mem::ManuallyDrop;
use core::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A spin lock whose holder cannot be interrupted, for `Memory`, and for what handlers share with tasks.
pub struct IrqLock(AtomicBool);

// SAFETY: `swap` gives the lock to one CPU until `unlock`; acquire and release order what lies between.
unsafe impl lock_api::RawMutex for IrqLock {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: IrqLock = IrqLock(AtomicBool::new(false));
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        // Undone in `unlock`.
        let _off = ManuallyDrop::new(cpu::interrupts_off());
        while self.0.swap(true, Acquire) {
            while self.0.load(Relaxed) {
                core::hint::spin_loop();
            }
        }
        let own = cpu::this();
        own.holds.set(own.holds.get() + 1);
        faults::interrupt_here();
    }

    fn try_lock(&self) -> bool {
        let off = ManuallyDrop::new(cpu::interrupts_off());
        let got = !self.0.swap(true, Acquire);
        let own = cpu::this();
        if got {
            own.holds.set(own.holds.get() + 1);
        } else {
            drop(ManuallyDrop::into_inner(off));
        }
        got
    }

    unsafe fn unlock(&self) {
        let own = cpu::this();
        own.holds.set(own.holds.get() - 1);
        self.0.store(false, Release);
        // SAFETY: The lock was taken on this CPU, with this.
        unsafe { cpu::restore() };
    }
}

/// A value behind an [`IrqLock`].
pub type Spin<T> = lock_api::Mutex<IrqLock, T>;
