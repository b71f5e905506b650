//! Per-CPU lists for orders 0 to 3 and huge pages: the fixed form of 5.13 to 6.6 and the self-tuning one.
//!
//! `spec: 3, 3.2`

use super::cpu_lists::{CpuLists, Freed, NR_LISTS, ZonePressure, list_index};
use crate::frame::{FrameIx, Frames, MigrateType, Order};
use crate::host::Host;
use crate::kernel::Tuned;
use crate::placement::{BlockRequest, End, FreeBlock, RmqueueMode};
use crate::zone::ZoneOps;

/// `CONFIG_PCP_BATCH_SCALE_MAX`.
const SCALE_MAX: i32 = 5;

impl CpuLists {
    /// Takes the head of a list, if it has one, and counts it as demand.
    #[inline(always)]
    pub(crate) fn orders_pop(
        &mut self,
        frames: &Frames,
        order: Order,
        mt: MigrateType,
        tuned: bool,
    ) -> Option<FrameIx> {
        let ix = self.orders_head(frames, order, mt)?;
        self.note_demand(tuned);
        Some(ix)
    }

    /// Takes the head of a list, if it has one.
    #[inline(always)]
    fn orders_head(&mut self, frames: &Frames, order: Order, mt: MigrateType) -> Option<FrameIx> {
        let ix = self.lists[list_index(order, mt)].pop_head(frames.table)?;
        self.count -= order.frames() as i32;
        Some(ix)
    }

    /// Notes an allocation: halves `free_count` (6.18) or `free_factor` (6.1).
    #[inline(always)]
    pub(super) fn note_demand(&mut self, tuned: bool) {
        if tuned {
            self.free_count >>= 1;
        } else {
            self.factor >>= 1;
        }
    }

    #[inline]
    pub(super) fn orders_take<H: Host>(
        &mut self,
        z: &mut ZoneOps<H>,
        request: BlockRequest,
    ) -> Option<FrameIx> {
        let i = list_index(request.order, request.mt);
        if self.lists[i].is_empty() {
            self.refill(z, request, i);
        }
        self.orders_head(z.frames, request.order, request.mt)
    }

    #[inline(never)]
    fn refill<H: Host>(&mut self, z: &mut ZoneOps<H>, request: BlockRequest, i: usize) {
        let n = if z.policy.rules.pcp.is_tuned() {
            self.tuned_refill(z.zone.below_high, request.order)
        } else if self.batch > 1 {
            (self.batch >> request.order.0).max(2)
        } else {
            1
        };
        let (mut taken, mut mode) = (0, RmqueueMode::default());
        for _ in 0..n {
            let Some((ix, mt)) = z.take(request, &mut mode) else {
                break;
            };
            z.tracer.prefetch(ix);
            let order = request.order;
            self.link(z.frames, i, FreeBlock { ix, order, mt }, End::Tail);
            taken += i64::from(order.frames());
        }
        z.count(-taken);
    }

    /// Blocks to take from the zone, by demand (6.7 and later).
    fn tuned_refill(&mut self, below_high: bool, order: Order) -> i32 {
        let high_max = self.high_max;
        self.high = self.high.clamp(self.high_min, high_max);
        if self.high < self.batch {
            return 1;
        }
        let single = order == Order::ZERO;
        let mut n = if single {
            self.batch << self.factor
        } else {
            self.batch
        };
        if self.high_min != high_max && !below_high {
            self.high = (self.high + n).min(high_max);
        }
        if single {
            let room = (self.high - self.count - self.batch).max(self.batch);
            if n <= room && self.factor < SCALE_MAX {
                self.factor += 1;
            }
            n = n.min(room);
        }
        if n > 1 { (n >> order.0).max(2) } else { n }
    }

    #[inline(always)]
    pub(super) fn orders_put(
        &mut self,
        frames: &Frames,
        tuned: Option<Tuned>,
        block: FreeBlock,
        pressure: ZonePressure,
    ) -> Freed {
        let FreeBlock { order, mt, .. } = block;
        // Pages of reserves and contiguous areas go to the movable list, and keep their own type.
        let list = if mt.is_ordinary() {
            mt
        } else {
            MigrateType::Movable
        };
        let i = list_index(order, list);
        let mut burst = false;
        if let Some(tuned) = tuned {
            self.factor >>= 1;
            if (1..=3).contains(&order.0) {
                let more = if tuned.late_burst {
                    self.high_min / 2
                } else {
                    0
                };
                burst = self.free_count >= self.batch + more && self.prev_free_high != 0;
                self.prev_free_high = 1;
            } else {
                self.prev_free_high = 0;
            }
        }
        self.link(frames, i, block, End::Head);
        let surplus = if tuned.is_some() {
            if self.free_count < self.batch << SCALE_MAX {
                self.free_count += order.frames() as i32;
            }
            let high = self.high.max(self.high_min).min(self.high_max);
            let few = self.count < high && !burst;
            if few && !pressure.reclaim_active && !pressure.below_high {
                self.high = high;
                0
            } else {
                self.tuned_surplus(pressure, burst)
            }
        } else if self.count < self.high && self.factor == 0 && !pressure.reclaim_active {
            0
        } else {
            self.fixed_surplus(pressure, order)
        };
        Freed { list: i, surplus }
    }

    /// Pages to give back after a free; 0 if none.
    #[inline(never)]
    fn fixed_surplus(&mut self, pressure: ZonePressure, order: Order) -> i32 {
        let burst = self.factor > 0 && (1..=3).contains(&order.0);
        let threshold = if burst || self.high == 0 {
            0
        } else if pressure.reclaim_active {
            (self.batch << 2).min(self.high)
        } else {
            self.high
        };
        if self.count < threshold {
            return 0;
        }
        if burst {
            return self.count;
        }
        if threshold < self.batch {
            return 1;
        }
        let most = threshold - self.batch;
        let scaled = self.batch << self.factor;
        if scaled < most && self.factor < SCALE_MAX {
            self.factor += 1;
        }
        scaled.min(most).max(self.batch)
    }

    /// Pages to give back after a free of the self-tuning form; 0 if none.
    #[inline(never)]
    fn tuned_surplus(&mut self, pressure: ZonePressure, burst: bool) -> i32 {
        self.high = self.high.clamp(self.high_min, self.high_max);
        let auto = self.high_min != self.high_max;
        let shrink = |high: i32, by: i32, min: i32| (high - by).max(min);
        let threshold = if burst {
            self.high = shrink(self.high, self.batch << SCALE_MAX, self.high_min);
            0
        } else if pressure.reclaim_active {
            self.high = shrink(self.high, self.free_count.max(self.batch), self.high_min);
            (self.batch << 2).min(self.high)
        } else if !auto {
            self.high
        } else if pressure.below_high {
            self.high = shrink(self.high, self.free_count.max(self.batch), self.high_min);
            self.count.max(self.high_min)
        } else {
            let high = self.high;
            if self.count >= high {
                self.high =
                    (self.free_count + self.batch).clamp(high.max(self.high_min), self.high_max);
            }
            high
        };
        if self.count < threshold {
            return 0;
        }
        if burst {
            return self.count.min(self.batch << SCALE_MAX);
        }
        if threshold < self.batch {
            return 1;
        }
        self.free_count.min(threshold - self.batch).max(self.batch)
    }

    /// Gives `n` base pages back: the list just freed to from its tail until it is empty, then the
    /// next ones in turn.
    pub(super) fn orders_release<H: Host>(&mut self, z: &mut ZoneOps<H>, n: i32, first: usize) {
        let mut n = n.min(self.count);
        let mut i = first;
        while n > 0 {
            let Some(ix) = self.lists[i].pop_tail(z.frames.table) else {
                i = if i + 1 == NR_LISTS { 0 } else { i + 1 };
                continue;
            };
            let s = z.frames.state(ix);
            n -= s.order().frames() as i32;
            self.count -= s.order().frames() as i32;
            // Where free blocks follow their pageblocks, the type is looked up now.
            let mt = if z.policy.rules.lists_follow_blocks() {
                z.frames.block_type(ix)
            } else {
                s.mt()
            };
            self.give_back(z, ix, s.order(), mt);
        }
    }

    /// What the vmstat worker does to a self-tuning set: `high` decays, and what is above it goes
    /// back. `spec: 3.2`
    pub fn decay<H: Host>(&mut self, z: &mut ZoneOps<H>) {
        if !z.policy.rules.pcp.is_tuned() || self.high_min == self.high_max {
            return;
        }
        if self.high > self.high_min {
            self.high = (self.count - (self.batch << SCALE_MAX))
                .max(self.high - (self.high >> 3))
                .max(self.high_min);
        }
        let n = self.count - self.high;
        if n > 0 {
            self.orders_release(z, n, 0);
        }
    }
}
