//! Events whose kernel stack is still to come.
//!
//! A stack follows the event that it is of on the same CPU, in the same task and the same context; an interrupt between the
//! two has events and stacks of its own.
//!
//! Invariant: an event gets the stack that follows it at once in its context, or none.

use std::collections::HashMap;
use unfrag_linux::event::At;
use unfrag_linux::recording::IN_INTERRUPT;

/// A CPU and what it does: the task, or an interrupt of one kind.
type Context = (u16, u8);

/// Events that wait, one a context at most.
#[derive(Debug)]
pub(super) struct Pending<T> {
    waiting: HashMap<Context, (At, T)>,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Pending {
            waiting: HashMap::new(),
        }
    }
}

fn context(at: &At) -> Context {
    (at.cpu, at.flags & IN_INTERRUPT)
}

impl<T> Pending<T> {
    /// This event waits. What waited in its context was to be taken before.
    pub fn wait(&mut self, at: &At, what: T) {
        self.waiting.insert(context(at), (*at, what));
    }

    /// What waits in the context of the event that is there, and when, where and by whom it was.
    pub fn take(&mut self, at: &At) -> Option<(At, T)> {
        if self.waiting.is_empty() {
            return None;
        }
        let (of, what) = self.waiting.remove(&context(at))?;
        Some((of, what))
    }

    /// All that still waits, in the order of CPUs.
    pub fn take_all(&mut self) -> Vec<(At, T)> {
        let mut all: Vec<_> = self.waiting.drain().collect();
        all.sort_by_key(|(context, _)| *context);
        all.into_iter().map(|(_, waiting)| waiting).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_takes_no_stack_from_the_task_below_it() {
        let at = |cpu, task, flags| At {
            cpu,
            task,
            flags,
            ..At::default()
        };
        let mut p = Pending::default();
        p.wait(&at(0, 7, 1), 'a');
        p.wait(&at(1, 7, 0), 'b');
        // That interrupts are off is no context.
        assert_eq!(p.take(&at(0, 7, 0x10)), None);
        p.wait(&at(0, 7, 0x10), 'c');
        assert_eq!(p.take(&at(0, 7, 0x11)), Some((at(0, 7, 0x10), 'c')));
        assert_eq!(p.take(&at(0, 7, 0)), Some((at(0, 7, 1), 'a')));
        assert_eq!(p.take(&at(1, 8, 0)), Some((at(1, 7, 0), 'b')));
        assert!(p.take_all().is_empty());
    }
}
