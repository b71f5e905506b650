//! Sums by who asked: by kernel stack, program, order and flags.
//!
//! Invariant: a cause has its number before its stack is known; its time is that of its row once that is. What kswapd
//! caused is that of whoever woke kswapd.

use super::daemon::{CauseId, Time, Whose};
use crate::names::NameId;
use std::collections::HashMap;

/// Number of a row.
pub(super) type RowId = u32;

/// What work a cause has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Work {
    /// kswapd is woken.
    Kswapd,
    /// kcompactd is woken.
    Kcompactd,
    /// The task compacts itself.
    Direct,
}

/// All kinds of work.
pub(super) const WORKS: [Work; 3] = [Work::Kswapd, Work::Kcompactd, Work::Direct];

/// Who asked, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub stack: Option<NameId>,
    pub program: NameId,
    /// As the kernel has it: -1 for compaction of everything.
    pub order: Option<i64>,
    pub gfp: Option<u64>,
}

/// Sums of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    /// Time of each kind of work.
    pub time: [Time; 3],
    /// How often each was caused.
    pub count: [u64; 3],
    /// Requests of large order, and of these, those that failed.
    pub requests: u64,
    pub failed: u64,
}

/// A cause.
#[derive(Clone, Copy, Debug)]
struct Cause {
    work: Work,
    row: Option<RowId>,
    /// What had kswapd work, where kswapd is the cause.
    before: Option<CauseId>,
    time: Time,
    is_counted: bool,
}

/// All sums.
#[derive(Debug, Default)]
pub(super) struct Sums {
    causes: Vec<Cause>,
    known: HashMap<Key, RowId>,
    pub keys: Vec<Key>,
    pub rows: Vec<Row>,
    /// Time of each kind of work of which the wake-up was not recorded, and of a daemon's own timer.
    pub unseen: [Time; 3],
    pub own: [Time; 3],
}

impl Sums {
    /// A new cause.
    pub fn cause(&mut self, work: Work, is_counted: bool) -> CauseId {
        self.causes.push(Cause {
            work,
            row: None,
            before: None,
            time: Time::default(),
            is_counted,
        });
        (self.causes.len() - 1) as CauseId
    }

    /// The row of a key.
    pub fn row(&mut self, key: Key) -> RowId {
        let next = self.rows.len() as RowId;
        let id = *self.known.entry(key).or_insert(next);
        if id == next {
            self.keys.push(key);
            self.rows.push(Row::default());
        }
        id
    }

    /// Who a cause is.
    pub fn is_of(&mut self, cause: CauseId, row: RowId) {
        self.causes[cause as usize].row = Some(row);
    }

    /// It is kswapd, which works for another cause.
    pub fn is_for(&mut self, cause: CauseId, before: Option<CauseId>) {
        self.causes[cause as usize].before = before;
    }

    /// Adds time of a kind of work.
    pub fn add(&mut self, work: Work, whose: Whose, time: Time) {
        match whose {
            Whose::Cause(cause) => self.causes[cause as usize].time += time,
            Whose::Unseen => self.unseen[work as usize] += time,
            Whose::Own => self.own[work as usize] += time,
        }
    }

    /// Puts the causes' time and number into their rows.
    pub fn finish(&mut self) {
        for i in 0..self.causes.len() {
            let Cause {
                work,
                time,
                is_counted,
                ..
            } = self.causes[i];
            let row = self.row_of(i as CauseId);
            let at = work as usize;
            match row {
                Some(row) => {
                    let row = &mut self.rows[row as usize];
                    row.time[at] += time;
                    row.count[at] += u64::from(is_counted);
                }
                None => self.unseen[at] += time,
            }
        }
        self.causes.clear();
    }

    /// The row of a cause, or of what it was caused by: always an earlier one.
    fn row_of(&self, cause: CauseId) -> Option<RowId> {
        let mut cause = cause;
        loop {
            let Cause { row, before, .. } = self.causes[cause as usize];
            match (row, before) {
                (Some(row), _) => return Some(row),
                (None, Some(before)) if before < cause => cause = before,
                (None, _) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kswapd_causes_is_that_of_whoever_woke_it() {
        let time = |cpu| Time { cpu, awake: 0 };
        let mut s = Sums::default();
        let key = Key {
            stack: None,
            program: 1,
            order: Some(9),
            gfp: None,
        };
        let asked = s.cause(Work::Kswapd, true);
        let through = s.cause(Work::Kcompactd, true);
        let of_nobody = s.cause(Work::Kcompactd, true);
        s.is_for(through, Some(asked));
        s.is_for(of_nobody, None);
        let row = s.row(key);
        s.is_of(asked, row);
        s.add(Work::Kswapd, Whose::Cause(asked), time(5));
        s.add(Work::Kcompactd, Whose::Cause(through), time(7));
        s.add(Work::Kcompactd, Whose::Cause(of_nobody), time(2));
        s.add(Work::Kcompactd, Whose::Own, time(1));
        s.finish();
        assert_eq!(s.rows[0].time, [time(5), time(7), time(0)]);
        assert_eq!(s.rows[0].count, [1, 1, 0]);
        assert_eq!((s.unseen[1], s.own[1]), (time(2), time(1)));
        assert_eq!(s.row(key), row);
    }
}
