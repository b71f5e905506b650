//! What a zone remembers of compactions: how long it is put off, and where the scanners go on. `spec: 5.3`

use crate::frame::{FrameIx, Geometry, Order, Span};
use zerocopy::{IntoBytes, KnownLayout, TryFromBytes};

/// A zone is put off for at most `2^` this many requests (`COMPACT_MAX_DEFER_SHIFT`).
pub(crate) const MAX_DEFER_SHIFT: u8 = 6;

/// What a zone remembers. It lives in the caller's memory, so its layout has no gaps.
#[derive(Clone, Copy, Debug, TryFromBytes, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct CompactState {
    /// Where the migrate scanner goes on: asynchronous runs, others.
    pub migrate: [FrameIx; 2],
    /// Where the free scanner goes on.
    pub free: FrameIx,
    /// Where the migrate scanner begins anew.
    pub first_migrate: FrameIx,
    /// Where the free scanner begins anew.
    pub first_free: FrameIx,
    /// Requests put off since the last failure.
    considered: u32,
    /// The zone is put off for `2^defer_shift` requests.
    defer_shift: u8,
    /// The smallest order that failed.
    order_failed: u8,
    /// Skip marks are to be cleared: a request's run has scanned the zone to its end.
    pub flush_skips: bool,
    pad: [u8; 5],
}

impl CompactState {
    pub fn new(span: Span, geometry: Geometry) -> CompactState {
        let mut state = CompactState {
            migrate: [FrameIx(0); 2],
            free: FrameIx(0),
            first_migrate: FrameIx(0),
            first_free: FrameIx(0),
            considered: 0,
            defer_shift: 0,
            order_failed: 0,
            flush_skips: false,
            pad: [0; 5],
        };
        state.reset_positions(span, geometry);
        state
    }

    /// The scanners begin anew: at the first frame, and at the last pageblock.
    pub fn reset_positions(&mut self, span: Span, geometry: Geometry) {
        self.migrate = [span.start; 2];
        self.free = last_block(span, geometry);
        (self.first_migrate, self.first_free) = (span.start, self.free);
    }

    /// A block was scanned in vain, or emptied: asynchronous runs go on behind it, and others too if this run is one
    /// of them.
    pub fn migrate_from(&mut self, ix: FrameIx, is_async: bool) {
        for position in &mut self.migrate[..=usize::from(!is_async)] {
            *position = (*position).max(ix);
        }
    }

    /// Puts the zone off, after a run for `order` that was in vain (`defer_compaction`).
    pub fn defer(&mut self, order: Order) {
        self.considered = 0;
        self.defer_shift = (self.defer_shift + 1).min(MAX_DEFER_SHIFT);
        self.order_failed = self.order_failed.min(order.0);
    }

    /// Whether a request is put off (`compaction_deferred`). Asking counts.
    pub fn is_deferred(&mut self, order: Order, by_order: bool) -> bool {
        if by_order && order.0 < self.order_failed {
            return false;
        }
        let limit = 1 << self.defer_shift;
        self.considered += 1;
        if self.considered >= limit {
            self.considered = limit;
            return false;
        }
        true
    }

    /// A run for `order` brought a block; `served`: the request has it (`compaction_defer_reset`).
    pub fn succeeded(&mut self, order: Order, served: bool) {
        if served {
            (self.considered, self.defer_shift) = (0, 0);
        }
        if order.0 >= self.order_failed {
            self.order_failed = order.0 + 1;
        }
    }

    /// Whether a run begins anew after the longest time for which the zone is put off (`compaction_restarting`).
    pub fn is_restarting(&self, order: Order) -> bool {
        order.0 >= self.order_failed
            && self.defer_shift == MAX_DEFER_SHIFT
            && self.considered >= 1 << self.defer_shift
    }

    /// Requests put off since the last failure, the shift of how many are, and the smallest order that failed.
    pub fn deferral(&self) -> (u32, u8, u8) {
        (self.considered, self.defer_shift, self.order_failed)
    }

    /// Puts the state back that a recorded kernel had.
    pub fn set_deferral(&mut self, considered: u32, defer_shift: u8, order_failed: u8) {
        self.considered = considered;
        self.defer_shift = defer_shift.min(MAX_DEFER_SHIFT);
        self.order_failed = order_failed;
    }
}

/// First frame of the last pageblock of a zone.
pub(crate) fn last_block(span: Span, geometry: Geometry) -> FrameIx {
    FrameIx(span.end.0.max(span.start.0 + 1) - 1).head(geometry.block_order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> CompactState {
        let span = Span {
            start: FrameIx(0),
            end: FrameIx(4096),
        };
        CompactState::new(span, Geometry::PAGES_4K)
    }

    /// `spec: 5.3`
    #[test]
    fn a_zone_is_put_off_for_twice_as_many_requests_each_time_and_for_64_at_most() {
        let mut s = state();
        for shift in [1, 2, 3, 4, 5, 6, 6] {
            s.defer(Order(9));
            let put_off = (0..).take_while(|_| s.is_deferred(Order(9), true)).count();
            assert_eq!(put_off, (1 << shift) - 1);
            assert!(!s.is_deferred(Order(9), true), "it stays so");
        }
        assert!(s.is_restarting(Order(9)));
        s.succeeded(Order(9), true);
        assert!(!s.is_restarting(Order(9)));
        assert!(!s.is_deferred(Order(9), true));
    }

    /// The table of the specification a second time, in plain numbers. `spec: 5.3`
    #[test]
    fn deferral_goes_as_a_naive_model_says() {
        let seed = 0x5eed_u64;
        std::println!("seed {seed}");
        let mut n = seed;
        let mut below = |most: u64| {
            n = n
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (n >> 33) % most
        };
        let mut s = state();
        let (mut considered, mut shift, mut failed) = (0_u32, 0_u32, 0_u8);
        for step in 0..100_000 {
            let order = below(11) as u8;
            match below(16) {
                0 | 1 => {
                    s.defer(Order(order));
                    (considered, shift, failed) = (0, 6.min(shift + 1), failed.min(order));
                }
                2 => {
                    let served = below(2) == 0;
                    s.succeeded(Order(order), served);
                    if served {
                        (considered, shift) = (0, 0);
                    }
                    failed = failed.max(order + 1);
                }
                k => {
                    let by_order = k % 2 == 0;
                    let is_put_off = if by_order && order < failed {
                        false
                    } else {
                        considered = (considered + 1).min(2_u32.pow(shift));
                        considered < 2_u32.pow(shift)
                    };
                    let got = s.is_deferred(Order(order), by_order);
                    assert_eq!(got, is_put_off, "step {step}");
                }
            }
            assert_eq!(
                s.deferral(),
                (considered, shift as u8, failed),
                "step {step}"
            );
            let restarts = order >= failed && shift == 6 && considered >= 64;
            assert_eq!(s.is_restarting(Order(order)), restarts, "step {step}");
        }
    }

    /// `spec: 5.3`
    #[test]
    fn smaller_orders_than_the_one_that_failed_are_not_put_off() {
        let mut s = state();
        s.succeeded(Order(9), false);
        s.defer(Order(9));
        s.defer(Order(9));
        assert!(!s.is_deferred(Order(8), true));
        assert!(
            s.is_deferred(Order(8), false),
            "2.6.36 does not tell orders apart"
        );
        assert!(s.is_deferred(Order(9), true));
    }
}
