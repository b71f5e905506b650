//! Slices of a disk's time for each class of requests, in the manner of CFQ.
//!
//! In a slice of the sync class the disk is kept idle for the next sync request even if none is there yet:
//! a reader asks again soon after its request has ended, and the head would have moved away. A slice of
//! the async class ends when a sync request comes. With `low_latency` the async class gets a single
//! request after a sync one, and more only when there has been no sync request for as long as a slice. All
//! sync requests count as one process's, as they do behind the thread of an encrypting layer.
//!
//! The slices (`spec: 4.9`) are the defaults of the manual of CFQ's settings. The
//! rest follows the messages of its changes of 2006 and of October 2009: the disk is kept only briefly for
//! a seeking reader, async requests start slowly after sync ones, and the first of them is not delayed.
//! How long "briefly" is, and which distance counts as seeking, is assumed.
//!
//! Invariant: `preempted` is set only in a slice of the async class; a slice begins with a request.

use super::bio::{ASYNC, SYNC};
use crate::engine::{MS, Nanos};

/// CFQ's settings, as under `/sys/block/DISK/queue/iosched`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cfq {
    /// `slice_sync`: how long sync requests have the disk.
    pub slice_sync: Nanos,
    /// `slice_async`: how long async requests have it.
    pub slice_async: Nanos,
    /// `slice_idle`: how long the disk is kept idle for a sequential reader.
    pub slice_idle: Nanos,
    /// How long the disk is kept idle for a seeking reader, if it takes one request at a time.
    pub seek_idle: Nanos,
    /// `low_latency` (2.6.32 and later): async requests are held back after sync ones, and the disk is
    /// kept idle for a seeking reader whether it takes one request at a time or several.
    pub low_latency: bool,
}

impl Default for Cfq {
    fn default() -> Self {
        Cfq {
            slice_sync: 100 * MS,
            slice_async: 40 * MS,
            slice_idle: 8 * MS,
            seek_idle: 2 * MS,
            low_latency: false,
        }
    }
}

/// Mean distance from which a reader counts as seeking, in sectors (4 MiB).
const SEEKS: u64 = 8 << 10;

/// What the disk does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextSlice {
    /// Serve a request of this class.
    Serve(usize),
    /// Stay idle until then, or until a sync request comes.
    Wait(Nanos),
    /// Nothing: there is no request.
    Idle,
}

/// A running mean, in which each new value has a weight of one eighth.
#[derive(Clone, Copy, Debug, Default)]
struct Mean(Option<u64>);

impl Mean {
    fn add(&mut self, value: u64) {
        self.0 = Some(self.0.map_or(value, |m| (7 * m + value) / 8));
    }

    fn get(self) -> u64 {
        self.0.unwrap_or(0)
    }
}

/// The state of the slices.
#[derive(Debug)]
pub(crate) struct Slices {
    config: Cfq,
    /// Whether the disk takes several requests at once.
    ncq: bool,
    active: usize,
    slice_end: Nanos,
    /// Whether a sync request came in the slice of the async class.
    preempted: bool,
    /// When the last sync request ended.
    sync_ended: Nanos,
    /// When the last sync request ended, while no new one has come.
    answered: Option<Nanos>,
    /// End of the last sync bio that came.
    last: u64,
    /// Mean time from the end of a sync request to the next one.
    think: Mean,
    distance: Mean,
}

impl Slices {
    pub fn new(config: Cfq, ncq: bool) -> Slices {
        Slices {
            config,
            ncq,
            active: SYNC,
            slice_end: 0,
            preempted: false,
            sync_ended: 0,
            answered: None,
            last: 0,
            think: Mean::default(),
            distance: Mean::default(),
        }
    }

    /// A sync bio has come.
    pub fn came(&mut self, start: u64, sectors: u64, now: Nanos) {
        if let Some(answered) = self.answered.take() {
            // A long absence counts as twice `slice_idle` at most.
            self.think
                .add((now - answered).min(2 * self.config.slice_idle));
        }
        self.distance.add(start.abs_diff(self.last));
        self.last = start + sectors;
        self.preempted |= self.active == ASYNC;
    }

    /// A sync request has ended; whether it was the last that was there.
    pub fn ended(&mut self, last: bool, now: Nanos) {
        self.sync_ended = now;
        if last {
            self.answered = Some(now);
        }
    }

    /// How long the disk is kept idle for the next sync request.
    fn patience(&self) -> Nanos {
        let c = &self.config;
        if self.think.get() > c.slice_idle {
            0
        } else if self.distance.get() < SEEKS {
            c.slice_idle
        } else if !self.ncq || c.low_latency {
            c.seek_idle
        } else {
            0
        }
    }

    /// Until when async requests after the first are held back.
    fn held_back(&self, now: Nanos) -> Option<Nanos> {
        let from = self.sync_ended + self.config.slice_sync;
        (self.config.low_latency && now < from).then_some(from)
    }

    /// What the disk does next. `has`: which classes have requests.
    pub fn next(&mut self, has: [bool; 2], now: Nanos) -> NextSlice {
        let slice_lasts = now < self.slice_end;
        match self.active {
            SYNC if slice_lasts && has[SYNC] => return NextSlice::Serve(SYNC),
            SYNC if slice_lasts && has[ASYNC] => {
                let kept = self.answered.map_or(0, |at| at + self.patience());
                let until = kept.min(self.slice_end);
                if now < until {
                    return NextSlice::Wait(until);
                }
            }
            ASYNC if has[ASYNC] && !self.preempted => match self.held_back(now) {
                Some(until) if !has[SYNC] => return NextSlice::Wait(until),
                None if slice_lasts => return NextSlice::Serve(ASYNC),
                _ => {}
            },
            _ => {}
        }
        self.change(has, now)
    }

    /// Starts a slice of the other class if it has requests, else another slice of the same class.
    fn change(&mut self, has: [bool; 2], now: Nanos) -> NextSlice {
        let other = 1 - self.active;
        if has[other] {
            self.active = other;
        } else if !has[self.active] {
            return NextSlice::Idle;
        }
        self.preempted = false;
        let slices = [self.config.slice_async, self.config.slice_sync];
        self.slice_end = now + slices[self.active];
        NextSlice::Serve(self.active)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [bool; 2] = [true, true];
    const READS: [bool; 2] = [false, true];
    const WRITES: [bool; 2] = [true, false];

    fn slices(low_latency: bool, ncq: bool) -> Slices {
        let config = Cfq {
            low_latency,
            ..Cfq::default()
        };
        Slices::new(config, ncq)
    }

    /// A reader asks 1 ms after each answer, and has had ten; now it has been answered again.
    fn read_ten(t: &mut Slices, distance: u64) -> Nanos {
        let mut now = SEC;
        for i in 0..10 {
            t.came(i * distance, 8, now);
            assert_eq!(t.next(READS, now), NextSlice::Serve(SYNC));
            now += 5 * MS;
            t.ended(true, now);
            now += MS;
        }
        now - MS
    }

    const SEC: Nanos = 1_000 * MS;
    const FAR: u64 = 1 << 20;

    #[test]
    fn disk_is_kept_for_a_reader_within_its_slice() {
        let mut t = slices(false, true);
        let now = read_ten(&mut t, 8);
        assert_eq!(t.next(WRITES, now), NextSlice::Wait(now + 8 * MS));
        assert_eq!(t.next(WRITES, now + 8 * MS), NextSlice::Serve(ASYNC));
        // He comes late, and goes before the other writes even so; after his slice of 100 ms they
        // have a turn though he has more.
        let late = now + 9 * MS;
        t.came(0, 8, late);
        assert_eq!(t.next(BOTH, late), NextSlice::Serve(SYNC));
        assert_eq!(t.next(BOTH, late + 99 * MS), NextSlice::Serve(SYNC));
        assert_eq!(t.next(BOTH, late + 100 * MS), NextSlice::Serve(ASYNC));
        assert_eq!(t.next(BOTH, late + 139 * MS), NextSlice::Serve(ASYNC));
        assert_eq!(t.next(BOTH, late + 140 * MS), NextSlice::Serve(SYNC));
    }

    #[test]
    fn disk_is_kept_briefly_for_a_seeking_reader() {
        let after = |low_latency, ncq| {
            let mut t = slices(low_latency, ncq);
            let now = read_ten(&mut t, FAR);
            (now, t.next(WRITES, now))
        };
        let (now, plain) = after(false, false);
        assert_eq!(plain, NextSlice::Wait(now + 2 * MS));
        assert_eq!(after(false, true).1, NextSlice::Serve(ASYNC));
        assert_eq!(after(true, true).1, plain);
    }

    #[test]
    fn disk_is_not_kept_for_a_slow_reader() {
        let mut t = slices(false, false);
        let mut now = SEC;
        for _ in 0..30 {
            t.came(0, 8, now);
            assert_eq!(t.next(READS, now), NextSlice::Serve(SYNC));
            now += MS;
            t.ended(true, now);
            now += 20 * MS;
        }
        t.came(0, 8, now);
        assert_eq!(t.next(READS, now), NextSlice::Serve(SYNC));
        t.ended(true, now + MS);
        assert_eq!(t.next(WRITES, now + MS), NextSlice::Serve(ASYNC));
    }

    #[test]
    fn low_latency_holds_writes_back_after_reads() {
        for low_latency in [false, true] {
            let mut t = slices(low_latency, true);
            let answered = read_ten(&mut t, 8);
            let now = answered + 8 * MS;
            assert_eq!(t.next(WRITES, now), NextSlice::Serve(ASYNC));
            let free = answered + 100 * MS;
            let held = match low_latency {
                true => NextSlice::Wait(free),
                false => NextSlice::Serve(ASYNC),
            };
            assert_eq!(t.next(WRITES, now + MS), held);
            assert_eq!(t.next(WRITES, free), NextSlice::Serve(ASYNC));
            assert_eq!(t.next(WRITES, free + MS), NextSlice::Serve(ASYNC));
        }
    }

    #[test]
    fn idle_without_requests() {
        let mut t = slices(true, true);
        assert_eq!(t.next([false; 2], 0), NextSlice::Idle);
        read_ten(&mut t, 8);
        assert_eq!(t.next([false; 2], 2 * SEC), NextSlice::Idle);
    }
}
