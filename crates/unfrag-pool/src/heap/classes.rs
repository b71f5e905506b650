//! The sizes of the heap that are kept free in magazines, by number.
//!
//! Multiples of 16 bytes up to 128, four sizes to each doubling up to 1 KiB, then eight up to 2 MiB. Up to [`MOST_OBJECT`] they are
//! objects of slabs ([`Sizes::Fine`](unfrag_slab::Sizes), without its smallest), beyond it runs of frames.
//!
//! Invariant: class 0 is none; it holds nothing, and no memory is of it.

use crate::space::FRAME_BYTES;

/// Classes, with the one that is none.
pub(super) const CLASSES: usize = 109;

/// The first class of runs.
pub(super) const FIRST_RUN: usize = 61;

/// The largest object of a slab, in bytes.
pub(super) const MOST_OBJECT: usize = 32 << 10;

/// The largest size that has a class, in bytes.
pub(super) const MOST: usize = 2 << 20;

/// Objects that move between a thread and what all share at a time, at most.
pub(super) const MOST_BATCH: usize = 32;

/// The largest size that is found in a table.
const SMALL: usize = 1024;

/// The class of a size, by its number of 16 bytes.
static OF_SMALL: [u8; SMALL / 16 + 1] = {
    let mut of = [1; SMALL / 16 + 1];
    let mut n = 1;
    while n < of.len() {
        of[n] = computed(16 * n) as u8;
        n += 1;
    }
    of
};

/// The number of a step, if each doubling has `2^bits` of them: of the one that holds `size`.
#[inline(always)]
const fn step(size: usize, bits: u32) -> usize {
    let last = size - 1;
    let log = last.ilog2();
    ((log as usize) << bits) + ((last >> (log - bits)) & ((1 << bits) - 1))
}

/// The size at the end of a step.
const fn at_step(step: usize, bits: u32) -> usize {
    let (log, part) = (step >> bits, step & ((1 << bits) - 1));
    (1 << log) + ((part + 1) << (log - bits as usize))
}

#[inline(always)]
const fn computed(size: usize) -> usize {
    if size <= 128 {
        size.div_ceil(16)
    } else if size <= SMALL {
        9 + step(size, 2) - step(129, 2)
    } else {
        21 + step(size, 3) - step(SMALL + 1, 3)
    }
}

/// The class that serves some bytes, [`MOST`] at the most.
#[inline(always)]
pub(super) fn class_of(size: usize) -> usize {
    if size <= SMALL {
        OF_SMALL[size.div_ceil(16)].into()
    } else {
        computed(size)
    }
}

/// Bytes of a class; 0 if it is none.
pub(super) const fn bytes_of(class: usize) -> usize {
    match class {
        0 => 0,
        1..=8 => 16 * class,
        9..=20 => at_step(class - 9 + step(129, 2), 2),
        _ => at_step(class - 21 + step(SMALL + 1, 3), 3),
    }
}

/// Whether a class is one of runs.
#[inline(always)]
pub(super) const fn is_run(class: usize) -> bool {
    class >= FIRST_RUN
}

/// Frames of a run of a class.
pub(super) const fn frames_of(class: usize) -> u32 {
    (bytes_of(class) / FRAME_BYTES) as u32
}

const fn clamp(of: usize, least: usize, most: usize) -> usize {
    if of < least {
        least
    } else if of > most {
        most
    } else {
        of
    }
}

/// How many of a class a thread keeps at the most: 64, and fewer where they are large.
pub(super) const fn limit_of(class: usize) -> usize {
    match bytes_of(class) {
        0 => 0,
        bytes if is_run(class) => clamp((512 << 10) / bytes, 1, 8),
        bytes => clamp((128 << 10) / bytes, 8, 2 * MOST_BATCH),
    }
}

/// How many of a class move at a time.
pub(super) const fn batch_of(class: usize) -> usize {
    limit_of(class).div_ceil(2)
}

/// How many batches of a class all threads share at the most.
pub(super) const fn shared_of(class: usize) -> usize {
    let most = match bytes_of(class) {
        0 => return 0,
        bytes if is_run(class) => clamp((4 << 20) / bytes, 2, 64),
        bytes => clamp((4 << 20) / bytes, 16, 8192),
    };
    most / batch_of(class)
}

/// A number by which it is seen whether some bytes, fewer than 64 KiB (of a run fewer than a frame), are a multiple of the size of a
/// class; 0 for class 0.
pub(super) const fn divisor_of(class: usize) -> u32 {
    match bytes_of(class) {
        0 => 0,
        bytes => (1_u64 << 32).div_ceil(bytes as u64) as u32,
    }
}

/// Whether some bytes are a multiple of the size of the class whose [divisor](divisor_of) it is; never for class 0.
///
/// The product is the remainder of the division, as a fraction of 32 bits, with an error below that of one part
/// (Lemire, Kaser, Kurz: Faster remainder by direct computation, 2019).
#[inline(always)]
pub(super) const fn is_multiple(bytes: u32, divisor: u32) -> bool {
    bytes.wrapping_mul(divisor) < divisor
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_slab::Sizes;

    #[test]
    fn objects_have_the_sizes_of_slabs() {
        for size in 0..=MOST_OBJECT {
            let class = class_of(size);
            assert!((1..FIRST_RUN).contains(&class), "{size}");
            let of_slab = Sizes::Fine.serving(size.max(9));
            assert_eq!(Some(bytes_of(class) as u32), of_slab, "{size}");
        }
    }

    #[test]
    fn runs_are_whole_frames_and_a_ninth_larger_at_most() {
        let mut class = FIRST_RUN;
        for size in MOST_OBJECT + 1..=MOST {
            let of = class_of(size);
            assert!(of == class || of == class + 1, "{size}");
            class = of;
            let bytes = bytes_of(class);
            assert!(is_run(class) && bytes.is_multiple_of(FRAME_BYTES));
            assert!(bytes >= size && (bytes - size) * 9 <= bytes, "{size}");
        }
        assert_eq!((class, bytes_of(class)), (CLASSES - 1, MOST));
    }

    #[test]
    fn multiples_of_a_size_are_told_from_all_others() {
        for class in 1..CLASSES {
            let (bytes, divisor) = (bytes_of(class) as u32, divisor_of(class));
            let below = if is_run(class) { 4096 } else { 1 << 16 };
            for n in 0..below {
                assert_eq!(is_multiple(n, divisor), n % bytes == 0, "{n} of {bytes}");
            }
        }
        assert!((0..1 << 16).all(|n| !is_multiple(n, divisor_of(0))));
    }

    #[test]
    fn what_moves_at_a_time_fits() {
        for class in 1..CLASSES {
            let (limit, batch) = (limit_of(class), batch_of(class));
            assert!(batch >= 1 && batch <= limit && batch <= MOST_BATCH);
            assert!(shared_of(class) >= 1, "class {class}");
        }
        assert_eq!((limit_of(0), shared_of(0)), (0, 0));
    }
}
