//! The tasks that wait for one CPU.
//!
//! Realtime tasks come first, in turn. The others come by rank, least first, and equal ones in turn.
//!
//! Invariant: two tasks never compare equal, since each enqueueing has its own number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// QueueKey in the queue; least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueueKey {
    /// 0 for realtime, else 1.
    class: u8,
    rank: u64,
    seq: u64,
    task: u32,
}

/// The tasks that wait for one CPU.
#[derive(Default)]
pub(crate) struct RunQueue(BinaryHeap<Reverse<QueueKey>>);

impl RunQueue {
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Enqueues a task; `rank` does not count for a realtime task.
    pub fn push(&mut self, task: u32, realtime: bool, rank: u64, seq: u64) {
        self.0.push(Reverse(QueueKey {
            class: u8::from(!realtime),
            rank: if realtime { 0 } else { rank },
            seq,
            task,
        }));
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<u32> {
        self.0.pop().map(|r| r.0.task)
    }

    /// Least rank of those that are not realtime.
    pub fn least_rank(&self) -> Option<u64> {
        let Reverse(r) = self.0.peek()?;
        if r.class == 1 {
            return Some(r.rank);
        }
        let normal = self.0.iter().filter(|r| r.0.class == 1);
        normal.map(|r| r.0.rank).min()
    }

    /// Rank of the last one; 0 if there is none.
    pub fn greatest_rank(&self) -> u64 {
        self.0.iter().map(|r| r.0.rank).max().unwrap_or(0)
    }

    /// Whether something holds for all of them.
    pub fn all(&self, holds: impl Fn(u32) -> bool) -> bool {
        self.0.iter().all(|r| holds(r.0.task))
    }

    /// Removes the last one of those that may go elsewhere.
    pub fn steal(&mut self, movable: impl Fn(u32) -> bool) -> Option<u32> {
        let candidates = self.0.iter().map(|r| r.0).filter(|r| movable(r.task));
        let taken = candidates.max()?;
        self.0.retain(|r| r.0 != taken);
        Some(taken.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn realtime_then_least_rank_then_arrival() {
        let mut q = RunQueue::default();
        q.push(1, false, 50, 0);
        q.push(2, false, 20, 1);
        q.push(3, true, 999, 2);
        q.push(4, false, 20, 3);
        q.push(5, true, 0, 4);
        assert_eq!(q.least_rank(), Some(20));
        assert_eq!(q.greatest_rank(), 50);
        let order: Vec<_> = std::iter::from_fn(|| q.pop()).collect();
        assert_eq!(order, [3, 5, 2, 4, 1]);
    }

    #[test]
    fn last_movable_task_is_stolen() {
        let mut q = RunQueue::default();
        for (task, v) in [(1, 10), (2, 30), (3, 20)] {
            q.push(task, false, v, u64::from(task));
        }
        assert_eq!(q.steal(|t| t != 2), Some(3));
        assert_eq!(q.steal(|_| false), None);
        assert_eq!((q.pop(), q.pop(), q.pop()), (Some(1), Some(2), None));
    }
}
