//! Repetitions that take no virtual time.

use crate::Cx;
use crate::engine::Nanos;

/// Rounds without time after which a repetition is charged CPU time, increasing with each round. Without it
/// the time limit of a run would not end the repetition.
const TIMELESS: u32 = 1000;

/// Counts the consecutive rounds of a repetition that took no time.
#[derive(Default)]
pub(super) struct IdleRounds(u32);

impl IdleRounds {
    /// To be called after a round that began at `began`.
    pub fn round(&mut self, cx: &mut Cx, began: Nanos) {
        if cx.now() > began {
            self.0 = 0;
        } else {
            self.spent(cx);
        }
    }

    /// To be called after a round that took no time.
    pub fn spent(&mut self, cx: &mut Cx) {
        self.0 = self.0.saturating_add(1);
        if self.0 > TIMELESS {
            cx.spend_system(100 << (self.0 - TIMELESS).min(14));
        }
    }
}
