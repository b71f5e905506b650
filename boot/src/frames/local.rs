//! unfrag's own engine over all frames: `Memory`, and the `Local` of each CPU.
//!
//! Invariants: a CPU uses its `Local` with interrupts off, so that a handler finds it whole. Tasks leave a reserve of free
//! frames to interrupt handlers.

use crate::frames::rights::Rights;
use crate::lock::IrqLock;
use crate::memory_map::MemoryMap;
use crate::{cpu, faults};
use core::cell::UnsafeCell;
use unfrag::maps::Gigabyte;
use unfrag::{Barrier, Local, Marks, MemoryConfig, MemoryLayout};
use unfrag::{MigrateType, Order, Pfn};

/// Free frames below which only interrupt handlers are served, for each CPU.
pub const RESERVE: u64 = 128;
/// Free frames above the reserve below which kswapd works.
pub const LOW: u64 = 512;

type Memory = unfrag::Memory<'static, IrqLock>;
type Own = Local<'static, 'static, IrqLock>;

/// The memory, and what each CPU keeps of it.
pub struct Locals {
    shared: Memory,
    locals: [UnsafeCell<Option<Own>>; cpu::MAX_CPUS],
    /// Free frames that tasks leave.
    reserve: u64,
}

// SAFETY: Each CPU uses its own local, with interrupts off.
unsafe impl Sync for Locals {}
// SAFETY: As above.
unsafe impl Send for Locals {}

impl Locals {
    /// Gives all frames of a map to unfrag, with tables that are carved out of it.
    pub fn new(map: &mut MemoryMap, from: u64, cpus: usize, barrier: Barrier) -> Locals {
        let reserve = RESERVE * cpus as u64;
        let marks = Marks {
            min: reserve,
            low: reserve + LOW,
            high: reserve + 2 * LOW,
        };
        let config = MemoryConfig {
            locals: cpus,
            marks,
            barrier: Some(barrier),
            ..MemoryConfig::new(Pfn(0), map.end())
        };
        let room = MemoryLayout::of(&config);
        let config = config.with_shards(cpus.div_ceil(2).min(room.gigabytes));
        // SAFETY: Zeros are words, and entries of no gigabyte.
        let (directory, mut words) = unsafe {
            let directory = map.carve::<Gigabyte>(from, room.gigabytes);
            (directory, map.carve(from, room.words))
        };
        let shared = Memory::new(config);
        let started = shared.start(directory, &mut words);
        started.expect("as much room as the layout says");
        for region in map.regions() {
            let frames = region.end - region.start;
            let added = shared.add(Pfn(region.start), frames, &mut words);
            added.expect("regions do not overlap");
        }
        Locals {
            shared,
            locals: [const { UnsafeCell::new(None) }; cpu::MAX_CPUS],
            reserve,
        }
    }

    /// Makes the `Local` of each CPU, once the memory has its place.
    pub fn claim(&'static self, cpus: usize) {
        for own in &self.locals[..cpus] {
            // SAFETY: No other CPU runs.
            unsafe { *own.get() = self.shared.local() };
        }
    }

    /// The memory.
    pub fn shared(&self) -> &Memory {
        &self.shared
    }

    /// Uses the calling CPU's `Local`.
    fn with<T>(&self, f: impl FnOnce(&mut Own) -> T) -> T {
        let _off = cpu::interrupts_off();
        let own = cpu::this();
        assert!(
            !own.in_local.replace(true),
            "a handler came while its CPU was in its Local"
        );
        faults::interrupt_here();
        // SAFETY: The CPU's own, with interrupts off, and not used further up this stack.
        let local = unsafe { &mut *self.locals[cpu::id()].get() };
        let done = f(local.as_mut().expect("each CPU has one"));
        own.in_local.set(false);
        done
    }

    /// Takes a block.
    pub fn alloc(&self, order: Order, mt: MigrateType, rights: Rights) -> Option<Pfn> {
        match rights {
            Rights::Task => self.with(|l| l.alloc(order, mt).ok()).or_else(|| {
                // What other CPUs keep, with interrupts on: they answer to one.
                let came = cpu::may_switch() && self.shared.drain_locals() > 0;
                came.then(|| self.with(|l| l.alloc(order, mt).ok()))?
            }),
            Rights::Interrupt => self.with(|l| l.alloc_atomic(order, mt).ok()),
        }
    }

    /// Gives a block back.
    pub fn free(&self, pfn: Pfn, order: Order, mt: MigrateType) {
        // SAFETY: Whoever frees a frame in this kernel owns it, and has unmapped it.
        let freed = self.with(|l| unsafe { l.free(pfn, order, mt) });
        if let Err(why) = freed {
            panic!("frame {:#x}, order {}: {why}", pfn.0, order.0);
        }
    }

    /// Gives back what the calling CPU keeps.
    pub fn flush(&self) {
        self.with(Own::flush)
            .expect("what a CPU keeps is in use for others");
    }

    /// Free frames above the reserve.
    pub fn room(&self) -> u64 {
        self.shared.free_frames().saturating_sub(self.reserve)
    }
}
