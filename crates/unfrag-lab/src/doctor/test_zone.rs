//! A zone made by hand from page flags, for the tests of this room.

use super::frames::BLOCK_FRAMES;
use super::zone_blocks::{ZoneBlocks, ZoneReader};
use crate::host::Zone;
use unfrag_linux::kpageflags::BUDDY;

/// A zone whose frames have these flags. Wholly free pageblocks count as free blocks of order 9, other free frames as
/// single pages.
pub(super) fn zone(words: Vec<u64>) -> (Zone, ZoneBlocks) {
    let mut free = vec![0; 11];
    for block in words.chunks(BLOCK_FRAMES) {
        match block.iter().filter(|&&w| w == BUDDY).count() {
            BLOCK_FRAMES => free[9] += 1,
            n => free[0] += n as u64,
        }
    }
    let facts = Zone {
        huge_order: 9,
        free_pages: Some(free[0] + (free[9] << 9)),
        blocks: Some(free),
        pcp: Some(0),
        marks: Some([0; 3]),
        protection: Some(0),
        has_all_types: true,
        ..Zone::default()
    };
    let blocks = blocks(&words, 0);
    (facts, blocks)
}

/// The pageblocks of a zone whose frames have these flags, so many of them on per-CPU lists.
pub(super) fn blocks(words: &[u64], pcp: u64) -> ZoneBlocks {
    let mut reader = ZoneReader::new(0..words.len() as u64);
    reader.read(0, words);
    reader.finish(pcp)
}
