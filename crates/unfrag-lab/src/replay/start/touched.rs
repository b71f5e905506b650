//! The effect of the trace before the anchor on the frames, with which a start is walked back from the anchor.

use super::arrange::{FrameState, ZoneFrames};
use crate::error::Result;
use crate::replay::causes::{Action, Causes};

/// What the operations before the anchor did to the frames that they touched.
pub(super) struct TouchedFrames {
    /// For each frame: nothing, or whether they left it free.
    left: Vec<Option<bool>>,
}

impl TouchedFrames {
    /// What the first `number` operations did.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn before(number: usize, causes: &Causes) -> Result<TouchedFrames> {
        let mut left = vec![None; causes.first.len()];
        causes.ops.each(0..number, |_, op| {
            if let Action::Stack { index } = op.action {
                for p in causes.stacks[index.get() as usize] {
                    left[p as usize] = Some(false);
                }
            } else if let Some((block, _)) = op.allocated() {
                left[block.indices()].fill(Some(false));
            } else if let Some(block) = op.freed() {
                left[block.indices()].fill(Some(true));
            }
        })?;
        Ok(TouchedFrames { left })
    }

    /// Whether a frame was touched.
    pub(super) fn is(&self, pfn: u32) -> bool {
        self.left[pfn as usize].is_some()
    }

    /// Changes the states from those at the start to those at the anchor.
    pub(super) fn apply(&self, zone_frames: &mut ZoneFrames) {
        let left = &self.left[zone_frames.lo as usize..];
        for (states, left) in zone_frames.states.iter_mut().zip(left) {
            match left {
                Some(true) => *states = FrameState::Freed,
                Some(false) => *states = FrameState::Used,
                None => {}
            }
        }
    }

    /// Changes the states from those at the anchor to those at the start, which `at_start` has.
    pub(super) fn undo(&self, zone_frames: &mut ZoneFrames, at_start: &[FrameState]) {
        let left = &self.left[zone_frames.lo as usize..];
        for ((states, left), start) in zone_frames.states.iter_mut().zip(left).zip(at_start) {
            if left.is_some() {
                *states = *start;
            }
        }
    }
}
