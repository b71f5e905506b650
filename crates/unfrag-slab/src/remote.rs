//! SLQB's queue of objects that other CPUs freed: they splice whole lists onto it, its CPU takes
//! everything at once. `spec: 6.3`
//!
//! Head and count share one word, so the count is exact. Single objects are never taken, so an old value that
//! comes back (ABA) is harmless. Checked under loom by the tests below.

use crate::sync::Ordering;
use crate::sync::model::AtomicU64;

/// Place of an object in the direct map, in units of 8 bytes, from 1; 0 is none.
pub(crate) type Place = u64;

/// The queue.
pub(crate) struct RemoteQueue(AtomicU64);

const COUNT: u32 = 40;
const HEAD: u64 = (1 << COUNT) - 1;

impl RemoteQueue {
    pub fn new() -> RemoteQueue {
        RemoteQueue(AtomicU64::new(0))
    }

    /// Splices a list of `n` objects that begins at `first`; `link` writes the place that follows
    /// its last object, and may run several times. Returns the count after it, or `None`, with
    /// nothing changed, if the queue cannot count so many.
    #[inline]
    pub fn splice(&self, first: Place, n: u32, mut link: impl FnMut(Place)) -> Option<u32> {
        // Relaxed: the head is only linked to; whoever takes all follows the links.
        let mut old = self.0.load(Ordering::Relaxed);
        loop {
            let count = (old >> COUNT) + u64::from(n);
            if count >> (64 - COUNT) != 0 {
                return None;
            }
            link(old & HEAD);
            let new = first | count << COUNT;
            // Release: pairs with the acquire in `take`, also for lists that were spliced before (a chain of releases).
            match self
                .0
                .compare_exchange_weak(old, new, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return Some(count as u32),
                Err(now) => old = now,
            }
        }
    }

    /// Takes everything: the first object and how many there are.
    #[inline]
    pub fn take(&self) -> Option<(Place, u32)> {
        // Relaxed: an early look, that misses what comes right now.
        if self.0.load(Ordering::Relaxed) == 0 {
            return None;
        }
        // Pairs with the release in `splice`.
        let all = self.0.swap(0, Ordering::Acquire);
        (all != 0).then_some((all & HEAD, (all >> COUNT) as u32))
    }

    /// Objects that wait.
    #[inline]
    pub fn len(&self) -> u32 {
        // Relaxed: a count that may have grown already.
        (self.0.load(Ordering::Relaxed) >> COUNT) as u32
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_spliced_is_taken_at_once_and_counted() {
        let q = RemoteQueue::new();
        assert_eq!(q.take(), None);
        let mut below = 9;
        assert_eq!(q.splice(5, 3, |p| below = p), Some(3));
        assert_eq!(below, 0);
        assert_eq!(q.splice(HEAD, 1, |p| below = p), Some(4));
        assert_eq!((below, q.len()), (5, 4));
        assert_eq!(q.take(), Some((HEAD, 4)));
        assert_eq!((q.take(), q.len()), (None, 0));
    }

    #[test]
    fn a_queue_that_cannot_count_more_refuses() {
        let q = RemoteQueue::new();
        assert_eq!(q.splice(1, (1 << 24) - 1, |_| {}), Some((1 << 24) - 1));
        assert_eq!(q.splice(2, 1, |_| {}), None);
        assert_eq!(q.take(), Some((1, (1 << 24) - 1)));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as Cell;
    use loom::thread;
    use std::vec;
    use std::vec::Vec;

    struct Objects {
        queue: RemoteQueue,
        next: [Cell; 6],
    }

    impl Objects {
        fn put(&self, first: u64, last: u64, n: u32) {
            let last = &self.next[last as usize];
            self.queue
                .splice(first, n, |p| last.store(p, Ordering::Relaxed))
                .expect("room");
        }
        fn take(&self, into: &mut Vec<u64>) {
            let Some((mut at, n)) = self.queue.take() else {
                return;
            };
            let before = into.len();
            while at != 0 {
                into.push(at);
                at = self.next[at as usize].load(Ordering::Relaxed);
            }
            assert_eq!(
                into.len() - before,
                n as usize,
                "the count is that of the list"
            );
        }
    }

    #[test]
    fn loom_each_spliced_object_is_taken_once() {
        loom::model(|| {
            let o = Arc::new(Objects {
                queue: RemoteQueue::new(),
                next: std::array::from_fn(|_| Cell::new(0)),
            });
            o.next[1].store(2, Ordering::Relaxed);
            let a = o.clone();
            let a = thread::spawn(move || a.put(1, 2, 2));
            let b = o.clone();
            let b = thread::spawn(move || {
                b.put(3, 3, 1);
                b.put(4, 4, 1);
            });
            let mut got = vec![];
            o.take(&mut got);
            a.join().expect("no panic");
            b.join().expect("no panic");
            o.take(&mut got);
            got.sort_unstable();
            assert_eq!(got, [1, 2, 3, 4]);
        });
    }
}
