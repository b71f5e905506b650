//! All frames of the machine, and who manages them: unfrag's own engine (`local`), or an era of Linux (`era`).
//!
//! Invariant: no call waits, but for other CPUs to answer an interrupt, where they may. What waits stands in `compact` and `daemons`.

mod era;
mod local;
mod rights;

pub use era::{Era, Waker};
pub use local::{LOW, Locals, RESERVE};
pub use rights::Rights;

use crate::memory_map::MemoryMap;
use crate::once::Once;
use unfrag::{Barrier, MigrateType, Order, Pfn};

/// Who manages the frames.
pub enum Engine {
    /// unfrag's own engine: `Memory`, and a `Local` for each CPU.
    Own(&'static Locals),
    /// An era: a `Manager` under one lock.
    Era(&'static Era),
}

static ENGINE: Once<Engine> = Once::new();

/// Gives all frames of a map to unfrag, with tables that are carved out of it. `name` is `unfrag` or an era; `barrier` is what
/// a CPU that finds no frame has others execute.
///
/// # Errors
/// If there is no such era.
pub fn init(
    name: &'static str,
    map: &mut MemoryMap,
    from: u64,
    cpus: usize,
    barrier: Barrier,
) -> Result<(), unfrag_eras::ConfigError> {
    static OWN: Once<Locals> = Once::new();
    static ERA: Once<Era> = Once::new();
    ENGINE.set(if name == "unfrag" {
        let own = OWN.set(Locals::new(map, from, cpus, barrier));
        own.claim(cpus);
        Engine::Own(own)
    } else {
        Engine::Era(ERA.set(Era::new(name, map, from, cpus)?))
    });
    Ok(())
}

/// Who manages the frames.
pub fn engine() -> &'static Engine {
    ENGINE.get()
}

/// Takes a block.
pub fn alloc(order: Order, mt: MigrateType, rights: Rights) -> Option<Pfn> {
    match engine() {
        Engine::Own(own) => own.alloc(order, mt, rights),
        Engine::Era(era) => era.alloc(order, mt, rights),
    }
}

/// Gives a block back.
pub fn free(pfn: Pfn, order: Order, mt: MigrateType) {
    match engine() {
        Engine::Own(own) => own.free(pfn, order, mt),
        Engine::Era(era) => era.free(pfn, order),
    }
}

/// A frame in use has an owner from now on, who can move it; the page of a file can also be dropped.
pub fn adopt(pfn: Pfn, is_file: bool) {
    if let Engine::Era(era) = engine() {
        era.adopt(pfn, is_file);
    }
}

/// Gives back what the calling CPU keeps.
pub fn flush() {
    match engine() {
        Engine::Own(own) => own.flush(),
        Engine::Era(era) => era.drain(),
    }
}

/// Free frames.
pub fn free_frames() -> u64 {
    match engine() {
        Engine::Own(own) => own.shared().free_frames(),
        Engine::Era(era) => era.free_frames(),
    }
}

/// Free frames that tasks may have.
pub fn room() -> u64 {
    match engine() {
        Engine::Own(own) => own.room(),
        Engine::Era(era) => era.room(),
    }
}

/// Whether every invariant holds; if not, it is printed.
pub fn validate() -> bool {
    match engine() {
        Engine::Own(own) => is_ok(own.shared().validate()),
        Engine::Era(era) => is_ok(era.validate()),
    }
}

fn is_ok<E: core::fmt::Debug>(result: Result<(), E>) -> bool {
    if let Err(why) = &result {
        println!("validate: {why:?}");
    }
    result.is_ok()
}
