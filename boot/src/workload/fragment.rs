//! Fragmenting memory: three of four pages of every 2 MiB are freed, wherever their owner has them.

use super::chance::Chance;
use super::pages::Work;
use crate::owners::{self, Owner};
use crate::{cpu, frames, spaces, tlb};
use alloc::vec::Vec;
use unfrag::{MigrateType, Order, Pfn};

/// Frees three quarters of each block of 512 frames; each CPU does its part of the blocks.
pub fn run(work: &Work, cpu: usize) {
    let mut chance = Chance::new(work.seed << 16 | cpu as u64);
    for first in (0..owners::frames())
        .step_by(512)
        .skip(cpu)
        .step_by(cpu::count())
    {
        let owners = (first..first + 512).filter_map(|n| owners::of(Pfn(n)));
        let mut pages: Vec<Owner> = owners.collect();
        let keeps = pages.len() / 4;
        let mut freed = Vec::new();
        while pages.len() > keeps {
            let owner = pages.swap_remove(chance.below(pages.len() as u64) as usize);
            if let Owner::Space(id, page) = owner {
                freed.extend(spaces::with(id, |s| s.unmap(page)).flatten());
            }
        }
        tlb::flush_all();
        let free = |pfn| frames::free(pfn, Order(0), MigrateType::Movable);
        freed.into_iter().for_each(free);
    }
}
