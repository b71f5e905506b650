//! What stands in the way of huge pages: the memory that compaction does not move, by use.

use super::diagnosis::Obstacle;
use super::forecast::KernelFeatures;
use super::frames::{BLOCK_FRAMES, BlockUse, FrameUse};
use super::zone_blocks::ZoneBlocks;

/// Pageblocks in which nothing is but slab and what is free: all that freeing slab can make whole if nothing is moved.
pub(super) fn held_by_slab<'a>(zones: impl Iterator<Item = &'a ZoneBlocks>) -> u64 {
    let is_held = |b: &&BlockUse| {
        let free = b.of(FrameUse::Free) + b.of(FrameUse::PerCpu);
        let slab = b.of(FrameUse::Slab);
        slab > 0 && usize::from(free + slab) == BLOCK_FRAMES
    };
    zones.flat_map(|z| &z.blocks).filter(is_held).count() as u64
}

/// What is most in the way. Memory reserved at boot is left out: nothing but another boot changes it.
pub(super) fn worst(all: Option<&Vec<Obstacle>>) -> Option<&Obstacle> {
    all.into_iter()
        .flatten()
        .filter(|o| o.blocks > 0 && o.kind != FrameUse::Reserved)
        .max_by_key(|o| (o.blocks_alone, o.blocks))
}

/// Uses of frames that spoil pageblocks, those that alone spoil most first.
pub(super) fn obstacles<'a>(
    zones: impl Iterator<Item = &'a ZoneBlocks>,
    kernel: KernelFeatures,
) -> Vec<Obstacle> {
    let mut kinds = vec![
        FrameUse::Slab,
        FrameUse::PageTables,
        FrameUse::Kernel,
        FrameUse::Reserved,
    ];
    if !kernel.unevictable || !kernel.compacts {
        kinds.push(FrameUse::Unevictable);
    }
    if !kernel.compacts {
        kinds.push(FrameUse::User);
    }
    let mut all: Vec<Obstacle> = kinds
        .iter()
        .map(|&kind| Obstacle {
            kind,
            pages: 0,
            blocks: 0,
            blocks_alone: 0,
        })
        .collect();
    for b in zones.flat_map(|z| &z.blocks).filter(|b| !b.is_absent()) {
        // A hole in a block spoils it as memory reserved at boot does.
        let of = |k: FrameUse| match k {
            FrameUse::Reserved => b.of(FrameUse::Reserved) + b.of(FrameUse::Absent),
            k => b.of(k),
        };
        let spoilers = kinds.iter().filter(|&&k| of(k) > 0).count();
        for o in &mut all {
            if of(o.kind) > 0 {
                o.pages += u64::from(b.of(o.kind));
                o.blocks += 1;
                o.blocks_alone += u64::from(spoilers == 1);
            }
        }
    }
    all.sort_by_key(|o| std::cmp::Reverse((o.blocks_alone, o.blocks)));
    all
}
