//! Per-CPU lists for orders 0 to 3 and 9: the fixed form of 5.13 to 6.6 and the self-tuning one.
//!
//! `spec: linux-6.1 3; linux-mm 3.2`

use super::{CpuLists, Env, NR_LISTS, PcpBlock};
use crate::frame::{Frames, HUGE_ORDER, Ix, Kind, MigrateType, State};
use crate::host::Host;
use crate::place::{End, Memory, Want};
use crate::trace::Tracer;
use crate::zone::Zone;

/// `CONFIG_PCP_BATCH_SCALE_MAX`.
const SCALE_MAX: i32 = 5;

/// List of an order and a type. Types have their Linux numbers: 0 unmovable, 1 movable,
/// 2 reclaimable; of order 9 there is one list for movable and one for all others.
#[inline]
pub const fn list_index(order: u8, mt: MigrateType) -> usize {
    if order == HUGE_ORDER {
        return 12 + (mt as usize == MigrateType::Movable as usize) as usize;
    }
    order as usize * 3 + mt as usize
}

const fn type_at_drain(env: &Env) -> bool {
    env.sw.lists_follow_blocks()
}

impl CpuLists {
    /// A block from its list, if that has one: [`alloc`](Self::alloc) without a refill.
    #[inline]
    pub(crate) fn hit(
        &mut self,
        frames: &mut Frames,
        order: u8,
        mt: MigrateType,
        tuned: bool,
    ) -> Option<Ix> {
        let ix = self.lists[list_index(order, mt)].pop_head(frames.meta)?;
        if tuned {
            self.free_count >>= 1;
        } else {
            self.factor >>= 1;
        }
        self.count -= 1 << order;
        Some(ix)
    }

    /// Takes a freed block that is part of no burst, if that leaves the set below its threshold: what
    /// [`free`](Self::free) does in a zone that nobody reclaims.
    #[inline]
    pub(crate) fn keep(
        &mut self,
        frames: &mut Frames,
        ix: Ix,
        order: u8,
        mt: MigrateType,
        tuned: bool,
    ) -> bool {
        let count = self.count + (1 << order);
        if tuned {
            let high = self.high.max(self.high_min).min(self.high_max);
            if count >= high {
                return false;
            }
            self.high = high;
            self.factor >>= 1;
            self.prev_free_high = 0;
            if self.free_count < self.batch << SCALE_MAX {
                self.free_count += 1 << order;
            }
        } else if count >= self.high {
            return false;
        }
        let e = &mut frames.meta[ix as usize];
        e.set_state(e.state().turned(Kind::Pcp, order, mt));
        self.lists[list_index(order, mt)].push_head(frames.meta, ix);
        self.count = count;
        true
    }

    #[inline]
    pub(super) fn orders_alloc<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        want: Want,
        t: &mut Tracer<H>,
    ) -> Option<Ix> {
        let i = list_index(want.order, want.mt);
        if self.lists[i].is_empty() {
            self.refill(zone, frames, env, want, i, t);
        }
        let ix = self.lists[i].pop_head(frames.meta)?;
        self.count -= 1 << want.order;
        Some(ix)
    }

    #[inline(never)]
    fn refill<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        want: Want,
        i: usize,
        t: &mut Tracer<H>,
    ) {
        let n = if env.sw.pcp.is_tuned() {
            self.tuned_refill(zone.below_high, want.order)
        } else if self.batch > 1 {
            (self.batch >> want.order).max(2)
        } else {
            1
        };
        let (mut taken, mut memory) = (0, Memory::default());
        for _ in 0..n {
            let Some((ix, list)) = zone.take(frames, env, want, &mut memory, t) else {
                break;
            };
            t.prefetch(ix);
            let block = PcpBlock {
                order: want.order,
                mt: list,
            };
            self.put(frames, zone.id, i, ix, block, End::Tail);
            taken += 1;
        }
        zone.count(&mut self.delta, -(taken << want.order));
    }

    /// Blocks to take from the zone, by demand (6.7 and later).
    fn tuned_refill(&mut self, below_high: bool, order: u8) -> i32 {
        let high_max = self.high_max;
        self.high = self.high.clamp(self.high_min, high_max);
        if self.high < self.batch {
            return 1;
        }
        let mut n = if order == 0 {
            self.batch << self.factor
        } else {
            self.batch
        };
        if self.high_min != high_max && !below_high {
            self.high = (self.high + n).min(high_max);
        }
        if order == 0 {
            let room = (self.high - self.count - self.batch).max(self.batch);
            if n <= room && self.factor < SCALE_MAX {
                self.factor += 1;
            }
            n = n.min(room);
        }
        if n > 1 { (n >> order).max(2) } else { n }
    }

    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn orders_free<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        ix: Ix,
        order: u8,
        mt: MigrateType,
        t: &mut Tracer<H>,
    ) {
        // Reserved and contiguous areas' pages wait on the movable list, with their own type.
        let list = if mt.is_ordinary() {
            mt
        } else {
            MigrateType::Movable
        };
        let i = list_index(order, list);
        let tuned = env.sw.pcp.is_tuned();
        let mut burst = false;
        if tuned {
            self.factor >>= 1;
            if (1..=3).contains(&order) {
                burst =
                    self.free_count >= self.batch + self.high_min / 2 && self.prev_free_high != 0;
                self.prev_free_high = 1;
            } else {
                self.prev_free_high = 0;
            }
        }
        self.put(frames, zone.id, i, ix, PcpBlock { order, mt }, End::Head);
        let n = if tuned {
            if self.free_count < self.batch << SCALE_MAX {
                self.free_count += 1 << order;
            }
            self.tuned_surplus(zone, burst)
        } else {
            self.fixed_surplus(zone, order)
        };
        if n > 0 {
            self.orders_release(zone, frames, env, n, i, t);
            if tuned && zone.below_high && zone.above_high(env) {
                zone.below_high = false;
            }
        }
    }

    /// Pages to give back after a free; 0 if none.
    #[inline]
    fn fixed_surplus(&mut self, zone: &Zone, order: u8) -> i32 {
        let burst = self.factor > 0 && (1..=3).contains(&order);
        let threshold = if burst || self.high == 0 {
            0
        } else if zone.reclaim_active {
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

    /// The same for the self-tuning form.
    fn tuned_surplus(&mut self, zone: &Zone, burst: bool) -> i32 {
        self.high = self.high.clamp(self.high_min, self.high_max);
        let auto = self.high_min != self.high_max;
        let shrink = |high: i32, by: i32, min: i32| (high - by).max(min);
        let threshold = if burst {
            self.high = shrink(self.high, self.batch << SCALE_MAX, self.high_min);
            0
        } else if zone.reclaim_active {
            self.high = shrink(self.high, self.free_count.max(self.batch), self.high_min);
            (self.batch << 2).min(self.high)
        } else if !auto {
            self.high
        } else if zone.below_high {
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
    pub(super) fn orders_release<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        n: i32,
        first: usize,
        t: &mut Tracer<H>,
    ) {
        let mut n = n.min(self.count);
        let mut i = first;
        while n > 0 {
            let Some(ix) = self.lists[i].pop_tail(frames.meta) else {
                i = if i + 1 == NR_LISTS { 0 } else { i + 1 };
                continue;
            };
            let s = frames.state(ix);
            n -= 1 << s.order();
            self.count -= 1 << s.order();
            let mt = if type_at_drain(env) {
                frames.block_type(ix)
            } else {
                s.mt()
            };
            frames.set_state(ix, State::new(Kind::Tail, s.order(), mt, zone.id));
            self.give_back(zone, frames, env, ix, mt, t);
        }
    }

    /// What the vmstat worker does to a self-tuning set: `high` decays, and what is above it goes
    /// back. Returns whether there was anything to do. `spec: linux-mm 3.2`
    pub(crate) fn decay<H: Host>(
        &mut self,
        zone: &mut Zone,
        frames: &mut Frames,
        env: &Env,
        t: &mut Tracer<H>,
    ) -> bool {
        if !env.sw.pcp.is_tuned() || self.high_min == self.high_max {
            return false;
        }
        let mut done = false;
        if self.high > self.high_min {
            self.high = (self.count - (self.batch << SCALE_MAX))
                .max(self.high - (self.high >> 3))
                .max(self.high_min);
            done = self.high > self.high_min;
        }
        let n = self.count - self.high;
        if n > 0 {
            self.orders_release(zone, frames, env, n, 0, t);
            done = true;
        }
        done
    }
}
