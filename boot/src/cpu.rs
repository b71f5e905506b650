//! What belongs to one CPU, and turning its interrupts off.
//!
//! A CPU finds its record through the register GS. Tasks never change their CPU, so a record that was found stays the right
//! one.
//!
//! Invariant: only its own CPU uses a record, and only with interrupts off where a handler uses the same part.

use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use x86_64::VirtAddr;
use x86_64::instructions::interrupts;
use x86_64::registers::model_specific::GsBase;

/// Most CPUs.
pub const MAX_CPUS: usize = 8;

/// A CPU's record.
#[repr(C)]
pub struct Cpu {
    /// Its own address, at offset 0 of GS.
    this: Cell<*const Cpu>,
    id: Cell<usize>,
    /// How many [`Off`] there are.
    off: Cell<u32>,
    /// Whether interrupts were on before the first of them.
    was_on: Cell<bool>,
    /// Locks that it holds, and whether it is in its `Local`.
    pub holds: Cell<u32>,
    pub in_local: Cell<bool>,
}

// SAFETY: Each record is used by its own CPU alone.
unsafe impl Sync for Cpu {}

static CPUS: [Cpu; MAX_CPUS] = [const {
    Cpu {
        this: Cell::new(core::ptr::null()),
        id: Cell::new(0),
        off: Cell::new(0),
        was_on: Cell::new(false),
        holds: Cell::new(0),
        in_local: Cell::new(false),
    }
}; MAX_CPUS];

/// CPUs that are used.
static COUNT: AtomicUsize = AtomicUsize::new(1);

/// How many CPUs there are.
pub fn count() -> usize {
    COUNT.load(Relaxed)
}

/// Says how many CPUs there are. Called once, before the second one starts.
pub fn set_count(cpus: usize) {
    COUNT.store(cpus, Relaxed);
}

/// Gives the calling CPU its number. Called once on each.
pub fn init(id: usize) {
    let own = &CPUS[id];
    own.this.set(own);
    own.id.set(id);
    GsBase::write(VirtAddr::from_ptr(own));
}

/// The calling CPU's record.
#[inline]
pub fn this() -> &'static Cpu {
    let at: *const Cpu;
    // SAFETY: GS leads to the record since `init`, which is the first thing that a CPU does.
    unsafe {
        core::arch::asm!("mov {}, gs:[0]", out(reg) at, options(nostack, preserves_flags, readonly));
        &*at
    }
}

/// The calling CPU's number.
#[inline]
pub fn id() -> usize {
    this().id.get()
}

/// Interrupts are off on this CPU as long as one of these exists.
pub struct Off {
    not_send: core::marker::PhantomData<*const ()>,
}

/// Turns interrupts off.
#[inline]
pub fn interrupts_off() -> Off {
    let on = interrupts::are_enabled();
    interrupts::disable();
    let own = this();
    if own.off.get() == 0 {
        own.was_on.set(on);
    }
    own.off.set(own.off.get() + 1);
    Off {
        not_send: core::marker::PhantomData,
    }
}

impl Drop for Off {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: It ends what made it.
        unsafe { restore() };
    }
}

/// Ends an [`Off`] that was forgotten.
///
/// # Safety
/// There is one, made on this CPU.
#[inline]
pub unsafe fn restore() {
    let own = this();
    own.off.set(own.off.get() - 1);
    if own.off.get() == 0 && own.was_on.get() {
        interrupts::enable();
    }
}

/// Whether another task may run here now: nothing on this CPU needs its interrupts off.
pub fn may_switch() -> bool {
    this().off.get() == 0
}
