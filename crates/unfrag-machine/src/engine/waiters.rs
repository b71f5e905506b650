//! The tasks that wait on channels: a fixed table of lists, each for the channels that hash to it.
//!
//! Invariant: a task is on the list of its channel exactly while it is `Waiting` for one; each list
//! is in order of arrival.

use super::channel::Channel;
use super::cpu::NIL;
use super::task::Task;

const BUCKETS: usize = 1024;

/// Heads and tails of the lists; the links are in the tasks.
pub(crate) struct Waiters {
    lists: Box<[(u32, u32)]>,
}

fn bucket(channel: Channel) -> usize {
    (channel.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % BUCKETS
}

impl Waiters {
    pub fn new() -> Waiters {
        Waiters {
            lists: vec![(NIL, NIL); BUCKETS].into_boxed_slice(),
        }
    }

    /// Puts a task at the end of its channel's list.
    pub fn add(&mut self, tasks: &mut [Task], channel: Channel, task: u32) {
        let (head, tail) = &mut self.lists[bucket(channel)];
        tasks[task as usize].prev = *tail;
        tasks[task as usize].next = NIL;
        match *tail {
            NIL => *head = task,
            last => tasks[last as usize].next = task,
        }
        *tail = task;
    }

    /// Takes a task off its channel's list.
    pub fn remove(&mut self, tasks: &mut [Task], channel: Channel, task: u32) {
        let (head, tail) = &mut self.lists[bucket(channel)];
        let Task { prev, next, .. } = tasks[task as usize];
        match prev {
            NIL => *head = next,
            p => tasks[p as usize].next = next,
        }
        match next {
            NIL => *tail = prev,
            n => tasks[n as usize].prev = prev,
        }
    }

    /// The first task that waits for a channel.
    #[inline]
    pub fn first(&self, tasks: &[Task], channel: Channel) -> Option<u32> {
        let mut at = self.lists[bucket(channel)].0;
        while at != NIL {
            let t = &tasks[at as usize];
            if t.wait.channel == Some(channel) {
                return Some(at);
            }
            at = t.next;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(channel: Channel) -> Task {
        let mut t = Task::vacant();
        t.wait.channel = Some(channel);
        t
    }

    #[test]
    fn lists_keep_order_of_arrival() {
        // All keys of one kind that share a bucket, so that lists mix channels.
        let home = bucket(Channel::new(1, 0));
        let same: Vec<Channel> = (0..20_000)
            .map(|k| Channel::new(1, k))
            .filter(|&c| bucket(c) == home)
            .take(2)
            .collect();
        let (a, b) = (same[0], same[1]);
        let mut tasks = vec![task(a), task(b), task(a), task(b)];
        let mut w = Waiters::new();
        for i in 0..4 {
            let c = tasks[i as usize].wait.channel.unwrap();
            w.add(&mut tasks, c, i);
        }
        assert_eq!(w.first(&tasks, b), Some(1));
        w.remove(&mut tasks, b, 1);
        assert_eq!((w.first(&tasks, a), w.first(&tasks, b)), (Some(0), Some(3)));
        w.remove(&mut tasks, a, 0);
        w.remove(&mut tasks, b, 3);
        assert_eq!((w.first(&tasks, a), w.first(&tasks, b)), (Some(2), None));
        w.remove(&mut tasks, a, 2);
        w.add(&mut tasks, b, 3);
        assert_eq!((w.first(&tasks, a), w.first(&tasks, b)), (None, Some(3)));
    }
}
