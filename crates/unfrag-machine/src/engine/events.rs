//! The event queue, in order of time.
//!
//! Invariant: events of the same time come out in the order of their numbers, and no two events have
//! the same number.

use super::time::Nanos;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// An event's cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// The timeout of the task in this slot, if its wait still has the event's number.
    Timer(u32),
    /// A device interrupt.
    Interrupt(u8),
    /// A timer of a device.
    DeviceTimer(DeviceTimer),
    /// A deferred closure.
    Call(u32),
}

/// A timer of a disk, by the disk's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceTimer {
    /// The queue was plugged to gather requests; it starts to serve them.
    Unplug(u8),
    /// The disk was kept idle for a request; the time for that is over.
    IdleEnd(u8),
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub at: Nanos,
    pub seq: u64,
    pub kind: EventKind,
}

impl Ord for Event {
    // The heap gives its greatest first: the earliest event is the greatest.
    fn cmp(&self, other: &Event) -> Ordering {
        (other.at, other.seq).cmp(&(self.at, self.seq))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The events to come.
#[derive(Default)]
pub(crate) struct EventQueue(BinaryHeap<Event>);

impl EventQueue {
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.0.push(event);
    }
    #[inline]
    pub fn peek(&self) -> Option<&Event> {
        self.0.peek()
    }
    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        self.0.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_first_and_ties_by_number() {
        let mut q = EventQueue::default();
        for (at, seq) in [(5, 1), (3, 2), (5, 0), (3, 9), (4, 3)] {
            q.push(Event {
                at,
                seq,
                kind: EventKind::Call(0),
            });
        }
        let order: Vec<_> = std::iter::from_fn(|| q.pop().map(|e| (e.at, e.seq))).collect();
        assert_eq!(order, [(3, 2), (3, 9), (4, 3), (5, 0), (5, 1)]);
    }
}
