//! The blocks in which memory is plugged and unplugged (128 MiB and more), and what keeps each of them.
//!
//! Since 5.x `removable` says only that the kernel can unplug at all, so what keeps a block is read from page flags.
//!
//! Invariant: without page flags of all of a block nothing is said of it, and what has no flag keeps its block.

use super::frames::{BLOCK_FRAMES, FrameUse};
use super::zone_blocks::ZoneBlocks;
use crate::host::files::{self, Files};
use serde::Serialize;

/// Hosts with more blocks are not looked at: each one costs a file.
const MOST: u64 = 1 << 12;

/// The blocks of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryBlocks {
    /// Bytes in one.
    pub size: u64,
    /// Numbers of those that are online.
    pub online: Vec<u64>,
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Its number: that of its directory in `/sys/devices/system/memory`.
    pub number: u64,
    /// Pages that would have to be moved, or dropped, before it is unplugged.
    pub to_move: u64,
    /// Pages that are free.
    pub free: u64,
    /// What keeps it, with the pages of each use, most first; empty if it can go.
    pub kept_by: Vec<(FrameUse, u64)>,
}

impl Block {
    /// Pages that keep it.
    pub fn kept(&self) -> u64 {
        self.kept_by.iter().map(|(_, n)| n).sum()
    }
}

/// What keeps a block, in words.
pub fn name(kind: FrameUse) -> &'static str {
    match kind {
        FrameUse::Absent => "pages without any flag (the kernel's, or holes)",
        kind => kind.name(),
    }
}

/// What was found of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unpluggable {
    /// Bytes in a block.
    pub block_bytes: u64,
    /// Blocks that are online and whose page flags were read.
    pub online: u64,
    /// Of these, blocks in which nothing is that cannot be moved or dropped.
    pub can_go: u64,
    /// What keeps the others: a use, and the blocks that it is in; most first.
    pub kept_by: Vec<(FrameUse, u64)>,
    /// The block with the least that keeps it: its number, pages and their use.
    pub least: Option<(u64, u64, FrameUse)>,
    /// Each of them, in the order of their addresses.
    pub blocks: Vec<Block>,
}

/// Reads which blocks are online, of the first `end` bytes.
pub(crate) fn read(from: &dyn Files, end: Option<u64>) -> Option<MemoryBlocks> {
    let text = |path: &str| files::text(from, &format!("sysfs/devices/system/memory/{path}"));
    let size = u64::from_str_radix(&text("block_size_bytes")?, 16).ok();
    let size = size.filter(|n| n.is_power_of_two() && *n >= (BLOCK_FRAMES as u64) << 12)?;
    let blocks = Some(end?.div_ceil(size)).filter(|n| *n <= MOST)?;
    let is_online = |n: &u64| text(&format!("memory{n}/state")).as_deref() == Some("online");
    let online: Vec<u64> = (0..blocks).filter(is_online).collect();
    (!online.is_empty()).then_some(MemoryBlocks { size, online })
}

/// What keeps each of them, by the pageblocks of all zones.
pub(crate) fn unpluggable<'a>(
    memory: &MemoryBlocks,
    page_size: u64,
    zones: impl Iterator<Item = &'a ZoneBlocks> + Clone,
) -> Option<Unpluggable> {
    let per_block = memory.size / page_size / BLOCK_FRAMES as u64;
    // Huge pages in use move to others. Frames of an online block without any flag are the kernel's as well, or a hole, and a
    // block with a hole cannot be unplugged.
    let keeps = [
        FrameUse::Slab,
        FrameUse::PageTables,
        FrameUse::Kernel,
        FrameUse::Reserved,
        FrameUse::Absent,
    ];
    let mut found = Unpluggable {
        block_bytes: memory.size,
        online: 0,
        can_go: 0,
        kept_by: keeps.map(|k| (k, 0)).to_vec(),
        least: None,
        blocks: vec![],
    };
    for &number in &memory.online {
        let first = number * per_block;
        let mut kept = keeps.map(|k| (k, 0u64));
        let mut seen = false;
        let (mut all_pages, mut free) = (0, 0);
        for zone in zones.clone() {
            let begin = zone.first_pfn / BLOCK_FRAMES as u64;
            let index = |n: u64| usize::try_from(n.saturating_sub(begin)).unwrap_or(usize::MAX);
            let range = index(first).min(zone.blocks.len())
                ..index(first + per_block).min(zone.blocks.len());
            for block in &zone.blocks[range] {
                seen = true;
                all_pages += BLOCK_FRAMES as u64;
                free += u64::from(block.of(FrameUse::Free) + block.of(FrameUse::PerCpu));
                for (kind, pages) in &mut kept {
                    *pages += u64::from(block.of(*kind));
                }
            }
        }
        if !seen {
            continue;
        }
        found.online += 1;
        let all: u64 = kept.iter().map(|(_, n)| n).sum();
        let mut kept_by: Vec<(FrameUse, u64)> = kept.into_iter().filter(|(_, n)| *n > 0).collect();
        kept_by.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        found.blocks.push(Block {
            number,
            to_move: all_pages - free - all,
            free,
            kept_by,
        });
        if all == 0 {
            found.can_go += 1;
            continue;
        }
        for (total, (_, pages)) in found.kept_by.iter_mut().zip(&kept) {
            total.1 += u64::from(*pages > 0);
        }
        let most = kept
            .iter()
            .max_by_key(|(_, n)| *n)
            .map_or(FrameUse::Kernel, |(k, _)| *k);
        if found.least.is_none_or(|(_, pages, _)| all < pages) {
            found.least = Some((number, all, most));
        }
    }
    found.kept_by.retain(|(_, n)| *n > 0);
    found.kept_by.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    (found.online > 0).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::super::test_zone::blocks;
    use super::*;
    use unfrag_linux::kpageflags::{BUDDY, SLAB};

    #[test]
    fn one_page_of_slab_keeps_its_block() {
        // Two memory blocks of two pageblocks each.
        let mut words = vec![BUDDY; 4 * BLOCK_FRAMES];
        words[700] = SLAB;
        let zone = blocks(&words, 0);
        let memory = MemoryBlocks {
            size: 2 * 512 * 4096,
            online: vec![0, 1, 7],
        };
        let found = unpluggable(&memory, 4096, std::iter::once(&zone)).unwrap();
        assert_eq!(
            (found.online, found.can_go),
            (2, 1),
            "of block 7 no flags are there"
        );
        assert_eq!(found.kept_by, [(FrameUse::Slab, 1)]);
        assert_eq!(found.least, Some((0, 1, FrameUse::Slab)));
        let [kept, free] = &found.blocks[..] else {
            panic!("{:?}", found.blocks)
        };
        assert_eq!((kept.kept(), kept.free, kept.to_move), (1, 1023, 0));
        assert_eq!((free.number, free.kept(), free.free), (1, 0, 1024));
    }
}
