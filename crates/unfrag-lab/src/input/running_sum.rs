//! The running sum of changes along a trace.

use super::store::{Room, Store};
use crate::error::Result;
use std::sync::Arc;

/// Entries of a block, at most.
const BLOCK_ENTRIES: usize = 4096;
/// Bytes of an entry: the time and the sum, as differences to those of the block's first.
const ENTRY_BYTES: usize = 8;

/// The running sum of changes: for each change its time, and the sum up to and with it.
#[derive(Debug, Default)]
pub(crate) struct RunningSum {
    blocks: Vec<Block>,
    store: Store,
    open: Vec<u8>,
    /// Time and sum of the first change that is not stored yet.
    base: (u64, i64),
    last: Option<(u64, i64)>,
}

/// A block in the store.
#[derive(Debug)]
struct Block {
    /// Time and sum of its first change.
    base: (u64, i64),
    number: usize,
}

impl RunningSum {
    /// No changes; blocks are kept in this room.
    pub(crate) fn new(room: &Arc<Room>) -> RunningSum {
        RunningSum {
            store: Store::new(room),
            ..RunningSum::default()
        }
    }

    /// Adds a change. Times ascend.
    ///
    /// # Errors
    /// If it cannot be stored.
    #[inline]
    pub(crate) fn add(&mut self, time: u64, change: i64) -> Result<()> {
        let sum = self.last.map_or(0, |(_, sum)| sum) + change;
        self.last = Some((time, sum));
        let since = u32::try_from(time.wrapping_sub(self.base.0));
        let difference = i32::try_from(sum - self.base.1);
        let is_full = self.open.len() == BLOCK_ENTRIES * ENTRY_BYTES;
        let (since, difference) = match (since, difference) {
            (Ok(since), Ok(difference)) if !self.open.is_empty() && !is_full => (since, difference),
            _ => {
                self.seal()?;
                self.base = (time, sum);
                (0, 0)
            }
        };
        self.open.extend_from_slice(&since.to_le_bytes());
        self.open.extend_from_slice(&difference.to_le_bytes());
        Ok(())
    }

    /// Stores what was added.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub(crate) fn finish(mut self) -> Result<RunningSum> {
        self.seal()?;
        self.open = vec![];
        Ok(self)
    }

    fn seal(&mut self) -> Result<()> {
        if !self.open.is_empty() {
            let number = self.store.push(&self.open)?;
            self.blocks.push(Block {
                base: self.base,
                number,
            });
            self.open.clear();
        }
        Ok(())
    }

    /// Times of the first and last change.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        Some((self.blocks.first()?.base.0, self.last?.0))
    }

    /// The sum up to a time.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn at(&self, time: u64) -> Result<i64> {
        let last = self.last_where(|t, _| t <= time)?;
        Ok(last.map_or(0, |l| l.sum))
    }

    /// Between the times of which two changes a sum that only rises stood at `sum`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn times_at(&self, sum: i64) -> Result<Option<(u64, u64)>> {
        let last = self.last_where(|_, s| s <= sum)?;
        Ok(last.and_then(|l| Some((l.time, l.next?))))
    }

    /// The last change for which `is` holds, which it does for all before it and none after it.
    fn last_where(&self, is: impl Fn(u64, i64) -> bool) -> Result<Option<Change>> {
        let after = self.blocks.partition_point(|b| is(b.base.0, b.base.1));
        let Some(block) = after.checked_sub(1).map(|i| &self.blocks[i]) else {
            return Ok(None);
        };
        let mut buffer = vec![];
        let bytes = self.store.get(block.number, &mut buffer)?;
        let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
        let change = |&[a, b, c, d, e, f, g, h]: &[u8; ENTRY_BYTES]| {
            let since = u32::from_le_bytes([a, b, c, d]);
            let difference = i32::from_le_bytes([e, f, g, h]);
            (
                block.base.0 + u64::from(since),
                block.base.1 + i64::from(difference),
            )
        };
        let end = entries.partition_point(|entry| {
            let (time, sum) = change(entry);
            is(time, sum)
        });
        let Some(last) = end.checked_sub(1).and_then(|i| entries.get(i)).map(change) else {
            return Ok(None);
        };
        let in_block = entries.get(end).map(|entry| change(entry).0);
        Ok(Some(Change {
            time: last.0,
            sum: last.1,
            next: in_block.or_else(|| self.blocks.get(after).map(|b| b.base.0)),
        }))
    }
}

/// A change.
struct Change {
    time: u64,
    /// The sum up to and with it.
    sum: i64,
    /// Time of the next change.
    next: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_a_table_wherever_blocks_lie() {
        // Now and then hours without a change, and large changes.
        let changes: Vec<(u64, i64)> = (0..10_000u64)
            .map(|i| {
                (
                    i / 2 * 100 + i / 777 * 20_000_000_000,
                    (i % 9) as i64 * (1 << (i % 25)),
                )
            })
            .collect();
        let mut sum = 0;
        let table: Vec<(u64, i64)> = changes
            .iter()
            .map(|&(time, change)| {
                sum += change;
                (time, sum)
            })
            .collect();
        for budget in [0, 40_000, u64::MAX] {
            let mut sums = RunningSum::new(&Arc::new(Room::new(budget)));
            changes.iter().for_each(|&(t, c)| sums.add(t, c).unwrap());
            let sums = sums.finish().unwrap();
            assert_eq!(sums.span(), Some((table[0].0, table[9_999].0)));
            for i in (0..table.len()).step_by(13) {
                let (time, sum) = table[i];
                for t in [time.saturating_sub(1), time, time + 1] {
                    let n = table.partition_point(|e| e.0 <= t);
                    let wanted = n.checked_sub(1).map_or(0, |n| table[n].1);
                    assert_eq!(sums.at(t).unwrap(), wanted);
                }
                for s in [sum - 1, sum, sum + 1] {
                    let n = table.partition_point(|e| e.1 <= s);
                    let at = |n: usize| table.get(n).map(|e| e.0);
                    let wanted = n.checked_sub(1).and_then(at).zip(at(n));
                    assert_eq!(sums.times_at(s).unwrap(), wanted);
                }
            }
        }
        let none = RunningSum::default();
        assert_eq!((none.span(), none.at(5).unwrap()), (None, 0));
        assert_eq!(none.times_at(5).unwrap(), None);
    }
}
