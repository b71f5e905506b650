//! Repetitions that take no virtual time.

use crate::Cx;
use crate::engine::Nanos;

/// Rounds without time after which a repetition takes some, and more and more: the time limit of a run
/// would not end it otherwise.
const TIMELESS: u32 = 1000;

/// How many rounds of a repetition took no time, one after the other.
#[derive(Default)]
pub(super) struct IdleRounds(u32);

impl IdleRounds {
    /// After a round that began then.
    pub fn round(&mut self, cx: &mut Cx, began: Nanos) {
        if cx.now() > began {
            self.0 = 0;
        } else {
            self.spent(cx);
        }
    }

    /// After a round that took no time.
    pub fn spent(&mut self, cx: &mut Cx) {
        self.0 = self.0.saturating_add(1);
        if self.0 > TIMELESS {
            cx.spend_system(100 << (self.0 - TIMELESS).min(14));
        }
    }
}
