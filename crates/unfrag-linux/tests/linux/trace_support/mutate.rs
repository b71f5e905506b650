//! Damaged inputs, the same ones in every run.

/// A small generator (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Cut lengths: all up to 64, then denser at the start, up to one byte less.
pub fn truncations(len: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = (0..len.min(64)).collect();
    let mut at = 64;
    while at < len {
        cuts.push(at);
        at += (at / 16).max(1);
    }
    cuts.extend(len.checked_sub(1));
    cuts
}

/// `data` with one to four places changed: a bit, a byte, or a word to an extreme value.
pub fn damage(data: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = data.to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(out.len());
        match random.below(5) {
            0 | 1 => out[at] ^= 1 << random.below(8),
            2 => out[at] = random.next() as u8,
            3 => {
                let extremes = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, u32::MAX];
                let word = extremes[random.below(extremes.len())].to_le_bytes();
                for (o, w) in out[at..].iter_mut().zip(word) {
                    *o = w;
                }
            }
            _ => {
                let from = random.below(out.len());
                let n = random.below(64).min(out.len() - at).min(out.len() - from);
                out.copy_within(from..from + n, at);
            }
        }
    }
    out
}
