//! What a run of the evacuator knows between two steps.

use super::super::outcome::Outcome;
use super::super::targets::Targets;
use super::unit::Unit;
use crate::frame::FrameIx;
use crate::zone::Survey;

/// What a run of the evacuator knows.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Evacuation {
    pub(super) phase: Phase,
    pub(super) survey: Survey,
    pub(super) targets: Targets,
    /// What is emptied, and the next frame there to be looked at.
    pub(super) unit: Option<Unit>,
    pub(super) at: FrameIx,
    /// Number of the run in its zone.
    pub(super) run: u16,
    /// Pages that it may still move; `None`: as many as it takes.
    pub(super) budget: Option<u64>,
    pub(super) gained: u32,
    pub(super) surveys: u32,
    /// Others had a turn since the last survey.
    pub(super) has_yielded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Begin,
    Choose,
    Take,
    Move,
    Over(Outcome),
}

impl Evacuation {
    pub const NEW: Evacuation = Evacuation {
        phase: Phase::Begin,
        survey: Survey::NONE,
        targets: Targets::NONE,
        unit: None,
        at: FrameIx(0),
        run: 0,
        budget: None,
        gained: 0,
        surveys: 0,
        has_yielded: false,
    };

    /// Whether owners are being asked.
    pub fn is_moving(&self) -> bool {
        self.phase == Phase::Move
    }

    /// Units that were emptied.
    pub fn gained(&self) -> u32 {
        self.gained
    }

    /// Where pages go.
    pub fn targets(&mut self) -> &mut Targets {
        &mut self.targets
    }
}
