//! The series of sizes that kmalloc has caches for. `spec: 6.1, 6.2`
//!
//! Invariant: a size that is a power of two is in each series, and its objects are aligned to it, up to a page.

use crate::formulas::{PAGE, fls};
use crate::rules::Design;

/// Most sizes of a series.
pub(crate) const MOST_SIZES: usize = 61;

/// A series of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// The kernel's: powers of two, with 96 and 192 between. SLAB: from 32 bytes to 128 KiB; SLUB and SLQB: from 8 bytes
    /// to two pages.
    Kernel(Design),
    /// For programs: 8, multiples of 16 up to 128, then four sizes to each doubling up to 1 KiB, then eight up to 32 KiB.
    /// Beyond 64 bytes an object is at most a fifth smaller than its place, beyond 1 KiB at most a ninth.
    Fine,
}

/// Smallest and largest power of two of a kernel's series.
const fn row(design: Design) -> (u32, u32) {
    match design {
        Design::Slab => (32, 128 << 10),
        _ => (8, 2 * PAGE),
    }
}

/// The number of a step, if each doubling has `2^bits` of them: of the one that holds `size`.
#[inline(always)]
const fn step(size: u32, bits: u32) -> u32 {
    let last = size - 1;
    let log = last.ilog2();
    let part = (last >> (log - bits)) & ((1 << bits) - 1);
    (log << bits) + part
}

/// The size at the end of a step.
const fn at_step(step: u32, bits: u32) -> u32 {
    let (log, part) = (step >> bits, step & ((1 << bits) - 1));
    (1 << log) + (part + 1) * (1 << (log - bits))
}

impl Sizes {
    /// The largest.
    pub const fn most(self) -> u32 {
        match self {
            Sizes::Kernel(design) => row(design).1,
            Sizes::Fine => 8 * PAGE,
        }
    }

    /// The size that serves `size` bytes, or `None` if whole pages do.
    #[inline]
    pub const fn serving(self, size: usize) -> Option<u32> {
        match self.position(size) {
            Some(at) => Some(self.at(at)),
            None => None,
        }
    }

    /// Position among the sizes of the one that serves `size` bytes.
    #[inline(always)]
    pub(crate) const fn position(self, size: usize) -> Option<usize> {
        if size > self.most() as usize {
            return None;
        }
        let size = size as u32;
        Some(match self {
            // The logarithm for powers of two, 1 and 2 for 96 and 192.
            Sizes::Kernel(design) => {
                let least = row(design).0;
                if size <= least {
                    least.ilog2() as usize
                } else if size > 64 && size <= 96 {
                    1
                } else if size > 128 && size <= 192 {
                    2
                } else {
                    fls(size as u64 - 1) as usize
                }
            }
            Sizes::Fine => {
                if size <= 8 {
                    0
                } else if size <= 128 {
                    size.div_ceil(16) as usize
                } else if size <= 1024 {
                    (9 + step(size, 2) - step(129, 2)) as usize
                } else {
                    (21 + step(size, 3) - step(1025, 3)) as usize
                }
            }
        })
    }

    /// The size at a position; 0 if there is none.
    pub(crate) const fn at(self, position: usize) -> u32 {
        let p = position as u32;
        match self {
            Sizes::Kernel(design) => {
                let (least, most) = row(design);
                let size = match p {
                    1 => 96,
                    2 => 192,
                    0 | 18.. => 0,
                    p => 1 << p,
                };
                if size < least || size > most { 0 } else { size }
            }
            Sizes::Fine => match p {
                0 => 8,
                1..=8 => 16 * p,
                9..=20 => at_step(p - 9 + step(129, 2), 2),
                21..=60 => at_step(p - 21 + step(1025, 3), 3),
                _ => 0,
            },
        }
    }

    /// The alignment of objects of a size of the series: what the size is a multiple of, but 8 between the kernel's powers.
    pub(crate) const fn align(self, size: u32) -> u32 {
        match self {
            Sizes::Kernel(_) if !size.is_power_of_two() => 8,
            _ => {
                let of_size = 1 << size.trailing_zeros();
                if of_size > PAGE { PAGE } else { of_size }
            }
        }
    }
}

/// The size of the kernel's series that serves `size` bytes, or `None` if whole pages do.
pub const fn kmalloc_size(design: Design, size: usize) -> Option<u32> {
    Sizes::Kernel(design).serving(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: 6.1, 6.2`
    #[test]
    fn sizes_of_kmalloc() {
        let slub = |n| kmalloc_size(Design::Slub, n);
        let small = [0, 1, 8, 9, 64, 65, 96, 97, 128, 129, 192, 193];
        let classes = [8, 8, 8, 16, 64, 96, 96, 128, 128, 192, 192, 256].map(Some);
        assert_eq!(small.map(slub), classes);
        assert_eq!(slub(8192), Some(8192));
        assert_eq!(slub(8193), None, "more than two pages come as pages");
        let slab = |n| kmalloc_size(Design::Slab, n);
        assert_eq!(
            [slab(1), slab(33), slab(96)],
            [Some(32), Some(64), Some(96)]
        );
        assert_eq!([slab(131_072), slab(131_073)], [Some(131_072), None]);
    }

    #[test]
    fn each_size_has_a_place_of_its_own() {
        let kernels = Design::ALL.map(Sizes::Kernel);
        for sizes in kernels.into_iter().chain([Sizes::Fine]) {
            for n in (0..=200_000).step_by(if cfg!(miri) { 997 } else { 1 }) {
                if let Some(size) = sizes.serving(n) {
                    assert!(size as usize >= n);
                    let at = sizes.position(size as usize);
                    assert_eq!(at, sizes.position(n), "{n} of {sizes:?}");
                    assert!(at.is_some_and(|at| at < MOST_SIZES && sizes.at(at) == size));
                    assert!(size.is_multiple_of(sizes.align(size)));
                }
            }
        }
    }

    #[test]
    fn fine_sizes_waste_a_fifth_and_then_a_ninth_at_most() {
        let mut last = 0;
        for n in (65..=32768).step_by(if cfg!(miri) { 97 } else { 1 }) {
            let size = Sizes::Fine.serving(n).unwrap_or(0);
            let part = if n > 1024 { 9 } else { 5 };
            assert!((size as usize - n) * part <= size as usize, "{n} in {size}");
            assert!(size >= last);
            last = size;
            let power = n.next_power_of_two();
            assert_eq!(Sizes::Fine.serving(power), Some(power as u32));
        }
        assert_eq!(Sizes::Fine.serving(32769), None);
    }
}
