//! A daemon of a node beside the program, with a clock of its own.

use super::memory::{Memory, Spent, Stepped};
use crate::engine::Nanos;
use std::convert::Infallible;
use unfrag_eras::CpuId;
use unfrag_eras::NodeId;
use unfrag_eras::drive::Operation;
use unfrag_eras::need::Answer;

const MS: Nanos = 1_000_000;

/// A wake of a daemon in which it compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When it began.
    pub began: Nanos,
    /// When the daemon slept again.
    pub ended: Nanos,
    /// Frames that it looked at.
    pub looks: u64,
    /// Pages that it moved.
    pub moved: u64,
    /// The node's fragmentation score at its begin, 0 to 100.
    pub score_before: u64,
    /// The score at its end.
    pub score_after: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Asleep {
        since: Nanos,
        until: Option<Nanos>,
    },
    /// Its next step is at this time.
    Ready {
        at: Nanos,
        answer: Answer,
    },
}

/// A daemon.
pub(super) struct Daemon<O> {
    operation: O,
    cpu: CpuId,
    state: State,
    /// What the wake at hand began with.
    wake: Option<Attempt>,
    pub spent: Spent,
    pub attempts: Vec<Attempt>,
}

impl<O: Operation<Output = Infallible>> Daemon<O> {
    pub fn new(operation: O, cpu: CpuId) -> Daemon<O> {
        Daemon {
            operation,
            cpu,
            state: State::Ready {
                at: 0,
                answer: Answer::Go,
            },
            wake: None,
            spent: Spent::default(),
            attempts: vec![],
        }
    }

    /// When it goes on by itself.
    pub fn next(&self) -> Option<Nanos> {
        match self.state {
            State::Asleep { until, .. } => until,
            State::Ready { at, .. } => Some(at),
        }
    }

    pub fn is_asleep(&self) -> bool {
        matches!(self.state, State::Asleep { .. })
    }

    /// Wakes it, if it sleeps.
    pub fn wake(&mut self, now: Nanos) {
        if let State::Asleep { since, until } = self.state {
            let at = now.max(since);
            let left = until.map_or(0, |u| u.saturating_sub(at).div_ceil(MS));
            let answer = Answer::Left(left.max(1) as u32);
            self.state = State::Ready { at, answer };
        }
    }

    /// Its next step; returns the time after it.
    pub fn step(&mut self, memory: &mut Memory) -> Nanos {
        let (at, answer) = match self.state {
            State::Ready { at, answer } => (at, answer),
            State::Asleep { since, until } => (until.unwrap_or(since), Answer::Left(0)),
        };
        let moved = |m: &Memory| m.manager.inspect().compact_counters().pgmigrate_success;
        if self.wake.is_none() {
            self.wake = Some(Attempt {
                began: at,
                ended: at,
                looks: memory.looks,
                moved: moved(memory),
                score_before: memory.manager.fragmentation_score(NodeId(0)),
                score_after: 0,
            });
        }
        let (stepped, spent) = memory.step(&mut self.operation, self.cpu, answer);
        self.spent.add(spent);
        let ended = at + spent.total();
        match stepped {
            Stepped::Done(never) => match never {},
            Stepped::Goes(answer) => self.state = State::Ready { at: ended, answer },
            Stepped::Sleeps(ms) => {
                let until = ms.map(|ms| ended + Nanos::from(ms) * MS);
                self.state = State::Asleep {
                    since: ended,
                    until,
                };
                if let Some(mut a) = self.wake.take()
                    && self.spent_looks(memory, &a) > 0
                {
                    (a.looks, a.moved) = (memory.looks - a.looks, moved(memory) - a.moved);
                    a.ended = ended;
                    a.score_after = memory.manager.fragmentation_score(NodeId(0));
                    self.attempts.push(a);
                }
            }
        }
        ended
    }

    fn spent_looks(&self, memory: &Memory, begun: &Attempt) -> u64 {
        memory.looks - begun.looks
    }
}
