//! Bits in a row.

/// Bits in a row, which grows and shrinks at its end.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// So many bits, all of them 0.
    pub fn zeros(len: usize) -> Bits {
        Bits {
            words: vec![0; len.div_ceil(64)],
            len,
        }
    }

    /// Appends a bit.
    #[inline]
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.words[self.len / 64] |= u64::from(bit) << (self.len % 64);
        self.len += 1;
    }

    /// Takes the last bit off; 0 if there is none.
    #[inline]
    pub fn pop(&mut self) -> bool {
        let Some(last) = self.len.checked_sub(1) else {
            return false;
        };
        self.len = last;
        let bit = self.words[last / 64] >> (last % 64) & 1 == 1;
        match last % 64 {
            0 => drop(self.words.pop()),
            at => self.words[last / 64] &= !(1 << at),
        }
        bit
    }

    /// The bit with a number; 0 beyond the last.
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        let word = self.words.get(index / 64).copied().unwrap_or(0);
        word >> (index % 64) & 1 == 1
    }

    /// Sets a bit, which has to be there, to 1.
    #[inline]
    pub fn set(&mut self, index: usize) {
        self.words[index / 64] |= 1 << (index % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_off_in_the_opposite_order() {
        let put = |i: u32| i.is_multiple_of(3) || i.is_multiple_of(7);
        let mut bits = Bits::default();
        (0..200).for_each(|i| bits.push(put(i)));
        assert!((0..200).all(|i| bits.get(i as usize) == put(i)));
        assert!(!bits.get(200) && !bits.get(10_000));
        assert!((0..200).rev().all(|i| bits.pop() == put(i)));
        assert!(!bits.pop());
        bits.push(false);
        assert!(!bits.get(0), "nothing is left of what was there");
    }
}
