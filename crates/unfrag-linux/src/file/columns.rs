//! The numbers of a column: how to store them in little space.
//!
//! Invariant: for any numbers, storing them as [`plan`] says and undoing it gives the same numbers.

use super::manifest::{ReadAs, Stored, Transform};

/// The numbers of a column, in their own type.
#[derive(Clone, Copy)]
pub enum Numbers<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    I32(&'a [i32]),
}

impl Numbers<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(x) => x.len(),
            Self::U16(x) => x.len(),
            Self::U32(x) => x.len(),
            Self::U64(x) => x.len(),
            Self::I32(x) => x.len(),
        }
    }

    /// Puts `range` of them, widened to 64 bits, into `out`; signed ones are sign-extended.
    pub fn widen(&self, range: std::ops::Range<usize>, out: &mut Vec<u64>) {
        out.clear();
        match self {
            Self::U8(x) => out.extend(x[range].iter().map(|&v| u64::from(v))),
            Self::U16(x) => out.extend(x[range].iter().map(|&v| u64::from(v))),
            Self::U32(x) => out.extend(x[range].iter().map(|&v| u64::from(v))),
            Self::U64(x) => out.extend_from_slice(&x[range]),
            Self::I32(x) => out.extend(x[range].iter().map(|&v| i64::from(v) as u64)),
        }
    }
}

/// A number that a column can be read into.
pub trait Number: Copy {
    /// Appends values in this type to `to`; gives whether all of them fit. Signed numbers come sign-extended.
    fn append(to: &mut Vec<Self>, values: impl ExactSizeIterator<Item = u64>) -> bool;
}

macro_rules! number {
    ($($t:ty: $widened:ty),*) => {$(
        impl Number for $t {
            #[inline]
            fn append(to: &mut Vec<Self>, values: impl ExactSizeIterator<Item = u64>) -> bool {
                // Without a branch for each value.
                let mut lost = 0;
                to.extend(values.map(|value| {
                    let narrow = value as $t;
                    lost |= value ^ (<$widened>::from(narrow) as u64);
                    narrow
                }));
                lost == 0
            }
        }
    )*};
}
number!(u8: u64, u16: u64, u32: u64, u64: u64, i32: i64);

impl Transform {
    /// Applies it to values, of which `before` is the one before them.
    pub fn apply(self, values: &mut [u64], before: &mut u64) {
        if self == Self::None {
            return;
        }
        for value in values {
            let delta = value.wrapping_sub(std::mem::replace(before, *value));
            *value = if self == Self::Delta {
                delta
            } else {
                zigzag(delta)
            };
        }
    }

    /// Undoes it for one value; `before` is the one before it.
    #[inline]
    pub fn undo(self, stored: u64, before: &mut u64) -> u64 {
        *before = match self {
            Self::None => stored,
            Self::Delta => before.wrapping_add(stored),
            Self::ZigzagDelta => before.wrapping_add((stored >> 1) ^ (stored & 1).wrapping_neg()),
        };
        *before
    }
}

fn zigzag(delta: u64) -> u64 {
    (delta << 1) ^ ((delta as i64 >> 63) as u64)
}

/// How to store a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub stored: Stored,
    pub transform: Transform,
    /// Whether to use a dictionary, because there are few distinct values.
    pub dictionary: bool,
}

/// Most distinct values that a dictionary is used for.
const DICTIONARY: usize = 128;
/// Values widened at a time.
const BATCH: usize = 1 << 16;

/// The best way to store `numbers`.
pub fn plan(numbers: &Numbers, read_as: ReadAs) -> Plan {
    let signed = read_as == ReadAs::Signed;
    let mut distinct = Distinct::default();
    let mut batch = vec![];
    // A value fits 32 bits if the bits above are all the same as they would be if it was extended.
    let (mut plain_fits, mut delta_fits, mut zigzag_fits, mut rises) = (true, true, true, true);
    let mut before = 0u64;
    for start in (0..numbers.len()).step_by(BATCH) {
        numbers.widen(start..(start + BATCH).min(numbers.len()), &mut batch);
        for &value in &batch {
            let delta = value.wrapping_sub(before);
            plain_fits &= if signed {
                value as i64 == i64::from(value as i32)
            } else {
                value >> 32 == 0
            };
            delta_fits &= delta >> 32 == 0;
            zigzag_fits &= zigzag(delta) >> 32 == 0;
            rises &= value >= before;
            before = value;
        }
        distinct.add(&batch);
    }
    let int = |fits| if fits { Stored::Int32 } else { Stored::Int64 };
    let plain = Plan {
        stored: int(plain_fits),
        transform: Transform::None,
        dictionary: false,
    };
    if distinct.count() <= DICTIONARY {
        return Plan {
            dictionary: true,
            ..plain
        };
    }
    let (transform, fits) = if rises {
        (Transform::Delta, delta_fits)
    } else {
        (Transform::ZigzagDelta, zigzag_fits)
    };
    let delta = Plan {
        stored: int(fits),
        transform,
        dictionary: false,
    };
    // A stretch from the middle tells which way is smaller.
    let sample = numbers.len().min(BATCH);
    let start = (numbers.len() - sample) / 2;
    numbers.widen(start..start + sample, &mut batch);
    let plain_size = packed_size(&batch);
    let mut before = batch[0];
    transform.apply(&mut batch, &mut before);
    if packed_size(&batch) < plain_size {
        delta
    } else {
        plain
    }
}

/// Estimate of the stored size: the bytes of the values, grouped by significance and compressed.
fn packed_size(values: &[u64]) -> usize {
    let bytes: Vec<u8> = (0..8)
        .flat_map(|i| values.iter().map(move |v| (v >> (8 * i)) as u8))
        .collect();
    zstd::bulk::compress(&bytes, 1).map_or(usize::MAX, |packed| packed.len())
}

/// Counts distinct values, up to a few more than a dictionary is used for.
struct Distinct {
    slots: [Option<u64>; 4 * DICTIONARY],
    count: usize,
    last: Option<u64>,
}

impl Default for Distinct {
    fn default() -> Self {
        Self {
            slots: [None; 4 * DICTIONARY],
            count: 0,
            last: None,
        }
    }
}

impl Distinct {
    fn add(&mut self, values: &[u64]) {
        for &value in values {
            if self.count > DICTIONARY {
                return;
            }
            if self.last == Some(value) {
                continue;
            }
            self.last = Some(value);
            let mut slot = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize;
            while self.slots[slot].is_some_and(|v| v != value) {
                slot = (slot + 1) % self.slots.len();
            }
            if self.slots[slot].is_none() {
                self.slots[slot] = Some(value);
                self.count += 1;
            }
        }
    }

    fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transforms_are_undone_for_any_values() {
        let values = [0, u64::MAX, 0, 1 << 63, (1 << 63) - 1, 7, 5, u64::MAX - 1];
        for transform in [Transform::None, Transform::Delta, Transform::ZigzagDelta] {
            let mut stored = values;
            let (mut a, mut b) = (0, 0);
            transform.apply(&mut stored[..3], &mut a);
            transform.apply(&mut stored[3..], &mut a);
            let back: Vec<_> = stored.iter().map(|&s| transform.undo(s, &mut b)).collect();
            assert_eq!(back, values, "{transform:?}");
        }
    }

    #[test]
    fn a_time_is_stored_as_small_steps_and_an_order_in_a_dictionary() {
        let time: Vec<u64> = (0..10_000u64)
            .map(|i| (5 << 40) + i * 2000 + i * i % 97)
            .collect();
        let plan_of = |numbers: &[u64], read_as| plan(&Numbers::U64(numbers), read_as);
        let p = plan_of(&time, ReadAs::Unsigned);
        assert_eq!((p.transform, p.dictionary), (Transform::Delta, false));
        let order: Vec<u64> = (0..10_000).map(|i| i % 11).collect();
        let p = plan_of(&order, ReadAs::Unsigned);
        assert_eq!((p.stored, p.dictionary), (Stored::Int32, true));
        assert_eq!(plan_of(&[u64::MAX], ReadAs::Signed).stored, Stored::Int32);
        assert_eq!(plan_of(&[u64::MAX], ReadAs::Unsigned).stored, Stored::Int64);
        // A step across half of all numbers is small only as a negative one.
        let step: Vec<u64> = (0..200u64)
            .chain((1..200).map(|i| u64::MAX - 200 + i))
            .collect();
        assert_eq!(plan_of(&step, ReadAs::Unsigned).stored, Stored::Int64);
    }
}
