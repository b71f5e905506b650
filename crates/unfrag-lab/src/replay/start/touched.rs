//! What the trace before the anchor did to the frames, to walk a start back from the anchor.

use super::arrange::{Ground, Known};
use crate::replay::causes::{Action, Causes, Op};

/// What the operations before the anchor did to the frames that they touched.
pub(super) struct TouchedFrames {
    /// For each frame: nothing, or whether they left it free.
    left: Vec<Option<bool>>,
}

impl TouchedFrames {
    /// What `ops` did.
    pub(super) fn before(ops: &[Op], causes: &Causes) -> TouchedFrames {
        let mut left = vec![None; causes.first.len()];
        for op in ops {
            if let Action::Stack { index } = op.action {
                for p in causes.stacks[index.get() as usize] {
                    left[p as usize] = Some(false);
                }
            } else if let Some((block, _)) = op.allocated() {
                left[block.indices()].fill(Some(false));
            } else if let Some(block) = op.freed() {
                left[block.indices()].fill(Some(true));
            }
        }
        TouchedFrames { left }
    }

    /// Whether a frame was touched.
    pub(super) fn is(&self, pfn: u32) -> bool {
        self.left[pfn as usize].is_some()
    }

    /// From the start to the anchor.
    pub(super) fn apply(&self, ground: &mut Ground) {
        let left = &self.left[ground.lo as usize..];
        for (known, left) in ground.known.iter_mut().zip(left) {
            match left {
                Some(true) => *known = Known::Freed,
                Some(false) => *known = Known::Used,
                None => {}
            }
        }
    }

    /// From the anchor to the start, where what was touched was as `at_start` says.
    pub(super) fn undo(&self, ground: &mut Ground, at_start: &[Known]) {
        let left = &self.left[ground.lo as usize..];
        for ((known, left), start) in ground.known.iter_mut().zip(left).zip(at_start) {
            if left.is_some() {
                *known = *start;
            }
        }
    }
}
