//! How many huge blocks are to be kept free: learnt from what was asked for.

use crate::frame::Order;
use zerocopy::{IntoBytes, KnownLayout, TryFromBytes};

/// Requests for huge blocks of a node, and how many blocks these make wanted.
///
/// As many as one period asked for are wanted at once. After that, a sixteenth fewer each period: half of them after
/// 11 periods. Invariant: nothing is wanted that was never asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct HugeDemand {
    /// Pageblocks asked for in this period.
    asked: u32,
    /// Pageblocks wanted, in 256ths.
    wanted: u32,
    /// The largest order of the requests that these came from.
    order: u8,
    pad: [u8; 7],
}

/// 256ths of a block.
const ONE: u32 = 256;
/// Of what is wanted, the part that is not any more after a period.
const DECAY: u32 = 16;

impl HugeDemand {
    pub const NONE: HugeDemand = HugeDemand {
        asked: 0,
        wanted: 0,
        order: 0,
        pad: [0; 7],
    };

    /// A request for a block of `order`, which is as much as `blocks` pageblocks.
    pub fn note(&mut self, order: Order, blocks: u32) {
        self.asked = self.asked.saturating_add(blocks);
        self.order = self.order.max(order.0);
    }

    /// Ends `periods` periods, of which all requests since the last end are.
    pub fn tick(&mut self, periods: u32) {
        let decay = |w: u32| w - w.div_ceil(DECAY);
        let wanted = (0..periods.min(1 << 9)).fold(self.wanted, |w, _| decay(w));
        let rate = core::mem::take(&mut self.asked) / periods.max(1);
        self.wanted = wanted.max(rate.saturating_mul(ONE));
        if self.wanted == 0 {
            self.order = 0;
        }
    }

    /// Pageblocks that are to be free.
    pub fn wanted(&self) -> u32 {
        self.wanted.div_ceil(ONE)
    }

    /// The order of the blocks in which they are to lie.
    pub fn order(&self) -> Order {
        Order(self.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_period_asked_for_is_wanted_and_is_forgotten() {
        let mut d = HugeDemand::NONE;
        d.tick(1);
        assert_eq!(d.wanted(), 0);
        d.note(Order::HUGE, 60);
        d.note(Order::HUGE, 40);
        assert_eq!(d.wanted(), 0, "the period is not over");
        d.tick(1);
        assert_eq!(d.wanted(), 100);
        d.tick(11);
        assert!((45..=50).contains(&d.wanted()), "{}", d.wanted());
        d.note(Order::HUGE, 10);
        d.tick(1);
        assert!(d.wanted() > 40, "a smaller rate does not lower it at once");
        assert_eq!(d.order(), Order::HUGE);
        d.tick(500);
        assert_eq!((d.wanted(), d.order()), (0, Order::ZERO));
    }

    #[test]
    fn a_rate_is_that_of_one_period() {
        let mut d = HugeDemand::NONE;
        d.note(Order::HUGE, 64);
        d.tick(32);
        assert_eq!(d.wanted(), 2);
        d.note(Order::HUGE, u32::MAX);
        d.note(Order::HUGE, u32::MAX);
        d.tick(1);
        assert!(d.wanted() > 1 << 23, "as much as the word holds");
    }
}
