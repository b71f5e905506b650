//! What both grounds share: sizes, and the stamps of pages.

/// Bytes of a huge page.
pub(super) const HUGE: u64 = 2 << 20;
/// Pages of a huge page, and those of them that are given back.
pub(super) const PAGES: u32 = 512;
pub(super) const GIVEN_BACK: u32 = 384;
/// Of what has been given back, so many percent are taken as huge pages.
pub(super) const TAKEN: u64 = 90;

/// How many huge pages the driver takes.
pub(super) fn wanted(blocks: u32) -> u32 {
    let free = u64::from(blocks) * u64::from(GIVEN_BACK);
    (free * TAKEN / 100 / u64::from(PAGES)) as u32
}

/// Writes a page's stamp: words that follow from its number.
pub(super) fn stamp(page: &mut [u8], number: u32) {
    for (i, word) in (0u64..).zip(page.chunks_exact_mut(8)) {
        word.copy_from_slice(&word_of(number, i).to_le_bytes());
    }
}

/// Whether a page holds its stamp.
pub(super) fn is_stamped(page: &[u8], number: u32) -> bool {
    let mut words = (0u64..).zip(page.chunks_exact(8));
    words.all(|(i, word)| word == word_of(number, i).to_le_bytes())
}

fn word_of(number: u32, i: u64) -> u64 {
    (u64::from(number) << 10 | i).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
