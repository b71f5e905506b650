//! A zone made by hand from page flags, for the tests of this room.

use super::frames::{BLOCK_FRAMES, ZoneBlocks};
use super::zones::ZoneFacts;
use unfrag_linux::kpageflags::{BUDDY, PageFlags};

/// A zone whose frames have these flags. Wholly free pageblocks count as free blocks of order 9, other free frames as
/// single pages.
pub(super) fn zone(words: Vec<u64>) -> (ZoneFacts, ZoneBlocks) {
    let mut facts = ZoneFacts {
        spanned: words.len() as u64,
        ..ZoneFacts::default()
    };
    for block in words.chunks(BLOCK_FRAMES) {
        match block.iter().filter(|&&w| w == BUDDY).count() {
            BLOCK_FRAMES => facts.nr_free[9] += 1,
            n => facts.nr_free[0] += n as u64,
        }
    }
    let blocks = ZoneBlocks::read(&facts, &PageFlags { words });
    (facts, blocks)
}
