//! Compaction: on demand for a request, and ahead of demand.
//!
//! - `moves`: batches of pages, and their owners. `evacuate`: unfrag's own engine. `world`: the operations of an era.

mod evacuate;
mod moves;
mod world;

pub use evacuate::{make_ahead, make_block};
pub use moves::copies;
pub use world::Kernel;

use crate::frames::{self, Engine, Era, Locals, Rights};
use crate::task;
use unfrag::{Gfp, MigrateType, Order, Pfn};
use unfrag_eras::drive::drive;
use unfrag_eras::{Begun, Request};

/// Compactions in vain before a request fails.
const TRIES: u32 = 3;

/// A huge page for a request that found none, and may wait.
pub fn huge_page() -> Option<Pfn> {
    let attempt = || match frames::engine() {
        Engine::Own(own) => own_huge_page(own),
        Engine::Era(era) => era_huge_page(era),
    };
    (0..TRIES).find_map(|n| {
        if n > 0 {
            // What other CPUs keep comes back with their next free.
            task::sleep(2);
        }
        attempt()
    })
}

fn own_huge_page(own: &Locals) -> Option<Pfn> {
    while own.room() >= Order::HUGE.frames().into() && make_block(own) {
        // Another task may have been faster.
        let got = frames::alloc(Order::HUGE, MigrateType::Movable, Rights::Task);
        if got.is_some() {
            return got;
        }
    }
    None
}

fn era_huge_page(era: &Era) -> Option<Pfn> {
    let gfp = Gfp::HIGHUSER_MOVABLE | Gfp::COMP | Gfp::NOWARN | Gfp::NORETRY;
    let begun = era.with(|m, cpu| m.begin(&Request::new(Order::HUGE, gfp).on(cpu)));
    match begun.ok()? {
        Begun::Got(pfn) => Some(pfn),
        Begun::Allocation(mut allocation) => drive(&mut Kernel(era), &mut allocation).ok(),
    }
}
