//! [`Sourced`]: what a run that the host's source leads knows between two steps.

use super::targets::Targets;
use crate::frame::Span;

/// What such a run knows between two steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sourced {
    pub phase: Phase,
    /// The source's number for it.
    pub run: u32,
    /// What is emptied.
    pub unit: Option<Span>,
    /// Where its pages go.
    pub targets: Targets,
    pub gained: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Begin,
    Ask,
    Move,
    Over,
}

impl Sourced {
    pub const NEW: Sourced = Sourced {
        phase: Phase::Begin,
        run: 0,
        unit: None,
        targets: Targets::NONE,
        gained: 0,
    };

    /// Blocks that it made.
    pub fn gained(&self) -> u32 {
        self.gained
    }

    /// Whether the source knows of it.
    pub fn is_under_way(&self) -> bool {
        matches!(self.phase, Phase::Ask | Phase::Move)
    }
}
