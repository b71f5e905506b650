//! Contents of pages that can be checked: each word follows from a seed, the page and the place.

/// The words of a page.
pub type Words = [u64; 512];

/// Mixes a number, so that numbers that are close give words that are not.
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x7fb5_d329_728e_a185);
    (x ^ x >> 27).wrapping_mul(0x81da_def4_bc2d_d44d)
}

/// The words of a page, in order.
fn words(seed: u64, page: u64) -> impl Iterator<Item = u64> {
    let first = mix(seed << 40 ^ page);
    core::iter::successors(Some(first), |w| {
        Some(w.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x55)
    })
}

/// Writes a page.
pub fn fill(to: &mut Words, seed: u64, page: u64) {
    to.iter_mut()
        .zip(words(seed, page))
        .for_each(|(to, w)| *to = w);
}

/// Whether a page is as it was written.
pub fn is(page: &Words, seed: u64, number: u64) -> bool {
    page.iter().zip(words(seed, number)).all(|(at, w)| *at == w)
}
