//! All frames of the machine: `Shared`, and the `Local` of each CPU.
//!
//! Invariants: a CPU uses its `Local` with interrupts off, so that a handler finds it whole. Tasks leave a reserve of free
//! frames to interrupt handlers.

use crate::lock::IrqLock;
use crate::memory_map::MemoryMap;
use crate::once::Once;
use crate::{cpu, faults};
use core::cell::UnsafeCell;
use unfrag::shared::{Local, Shared, SharedConfig, SharedLayout};
use unfrag::{MigrateType, Order, Pfn};

/// Free frames below which only interrupt handlers are served, for each CPU.
pub const RESERVE: u64 = 128;

/// Free frames above the reserve below which kswapd works.
pub const LOW: u64 = 512;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// A task: it leaves the reserve alone, and can wait.
    Task,
    /// An interrupt handler: it cannot wait.
    Interrupt,
}

type Memory = Shared<'static, IrqLock>;
type Own = Local<'static, 'static, IrqLock>;

struct Frames {
    shared: Memory,
    locals: [UnsafeCell<Option<Own>>; cpu::MAX_CPUS],
    /// Free frames that tasks leave.
    reserve: u64,
}

// SAFETY: Each CPU uses its own local, with interrupts off.
unsafe impl Sync for Frames {}
// SAFETY: As above.
unsafe impl Send for Frames {}

static FRAMES: Once<Frames> = Once::new();

/// Gives all frames of a map to unfrag, with tables that are carved out of it.
pub fn init(map: &mut MemoryMap, from: u64, cpus: usize) {
    let frames = u32::try_from(map.end()).expect("less than 16 TiB");
    let config = SharedConfig {
        shards: cpus.div_ceil(2),
        locals: cpus,
        low: RESERVE * cpus as u64 + LOW,
        ..SharedConfig::new(Pfn(0), frames)
    };
    let words = SharedLayout::of(&config).words;
    let table = map.carve(from, words * 8).cast::<u64>();
    // SAFETY: Carved out for this, and zeros.
    let table = unsafe { core::slice::from_raw_parts_mut(table, words) };
    let shared = Memory::new(config, table).expect("as many words as the layout says");
    let frames = FRAMES.set(Frames {
        shared,
        locals: [const { UnsafeCell::new(None) }; cpu::MAX_CPUS],
        reserve: RESERVE * cpus as u64,
    });
    for region in map.regions() {
        let added = frames
            .shared
            .add(Pfn(region.start), (region.end - region.start) as u32);
        added.expect("regions do not overlap");
    }
    for own in &frames.locals[..cpus] {
        // SAFETY: No other CPU runs.
        unsafe { *own.get() = frames.shared.local() };
    }
}

/// The memory.
pub fn memory() -> &'static Memory {
    &FRAMES.get().shared
}

/// Uses the calling CPU's `Local`.
fn with_local<T>(f: impl FnOnce(&mut Own) -> T) -> T {
    let frames = FRAMES.get();
    let _off = cpu::interrupts_off();
    let own = cpu::this();
    assert!(
        !own.in_local.replace(true),
        "a handler came while its CPU was in its Local"
    );
    faults::interrupt_here();
    // SAFETY: The CPU's own, with interrupts off, and not used further up this stack.
    let local = unsafe { &mut *frames.locals[cpu::id()].get() };
    let done = f(local.as_mut().expect("each CPU has one"));
    own.in_local.set(false);
    done
}

/// Takes a block.
pub fn alloc(order: Order, mt: MigrateType, rights: Rights) -> Option<Pfn> {
    let frames = FRAMES.get();
    if rights == Rights::Task
        && frames.shared.free_frames() < frames.reserve + u64::from(order.frames())
    {
        return None;
    }
    with_local(|l| l.alloc(order, mt).ok())
}

/// Gives a block back.
pub fn free(pfn: Pfn, order: Order, mt: MigrateType) {
    let freed = with_local(|l| l.free(pfn, order, mt));
    if let Err(why) = freed {
        panic!("frame {:#x}, order {}: {why}", pfn.0, order.0);
    }
}

/// Calls `f` with the calling CPU's `Local`, for adaptors.
pub fn with<T>(f: impl FnOnce(&mut Own) -> T) -> T {
    with_local(f)
}

/// Gives back what the calling CPU keeps.
pub fn flush() {
    with_local(Own::flush).expect("what a CPU keeps is in use for others");
}

/// Free frames above the reserve.
pub fn room() -> u64 {
    let frames = FRAMES.get();
    frames.shared.free_frames().saturating_sub(frames.reserve)
}
