//! Per-CPU lists. `spec: 2.2, 2.5, 3`

use super::fallback::Ask;
use super::{Family, Frame, Model, Shape, ordinary};
use unfrag_eras::MigrateType::{self, *};

impl Model {
    pub fn served(&self, order: u8) -> bool {
        match self.shape {
            Shape::Fixed | Shape::Tuned => order <= 3 || order == 9,
            _ => order == 0,
        }
    }

    /// The list for pages of a type.
    pub fn list_of(&self, order: u8, mt: MigrateType) -> usize {
        // Where V19's reserve waits is not known; here, among the kernel's.
        if self.shape == Shape::Kinds {
            return usize::from(mt == Movable);
        }
        let mt = if ordinary(mt) { mt } else { Movable };
        match self.shape {
            Shape::Hot | Shape::Searched | Shape::Kinds => 0,
            Shape::PerType(types) => types.iter().position(|&t| t == mt).expect("ordinary"),
            Shape::Fixed | Shape::Tuned => {
                let number = [Unmovable, Movable, Reclaimable]
                    .iter()
                    .position(|&t| t == mt);
                match order {
                    9 => 12 + usize::from(mt == Movable),
                    _ => 3 * usize::from(order) + number.expect("ordinary"),
                }
            }
        }
    }

    /// Base pages on a set's lists.
    pub fn held(&self, cpu: usize, z: usize) -> i64 {
        let lists = &self.sets[cpu][z].lists;
        lists
            .iter()
            .flatten()
            .map(|&p| 1i64 << self.pcp_at(p).0)
            .sum()
    }

    fn pcp_at(&self, pfn: u64) -> (u8, MigrateType) {
        match self.frame(pfn) {
            Frame::Pcp { order, mt, head } if head == pfn => (order, mt),
            other => panic!("{pfn:#x} on a per-CPU list is {other:?}"),
        }
    }

    fn wait(&mut self, pfn: u64, order: u8, mt: MigrateType) {
        let what = Frame::Pcp {
            order,
            head: pfn,
            mt,
        };
        self.mark(pfn, order, what);
    }

    pub fn pcp_alloc(&mut self, z: usize, ask: Ask, bulk: bool) -> Option<u64> {
        let i = self.list_of(ask.order, ask.mt);
        match self.shape {
            Shape::Fixed if !bulk => self.set(z).factor /= 2,
            Shape::Tuned if !bulk => self.set(z).free_count /= 2,
            _ => {}
        }
        if self.shape == Shape::Searched {
            let fits = |m: &Model| {
                let list = &m.sets[m.cpu][z].lists[0];
                list.iter().position(|&p| m.pcp_at(p).1 == ask.mt)
            };
            let at = fits(self).or_else(|| {
                self.refill(z, ask, i);
                fits(self).or(Some(0))
            })?;
            return self.set(z).lists[0].remove(at);
        }
        let low = if self.shape == Shape::Kinds {
            2 * self.set(z).batch
        } else {
            0
        };
        if self.set(z).lists[i].len() as i64 <= low {
            self.refill(z, ask, i);
        }
        self.set(z).lists[i].pop_front()
    }

    fn refill(&mut self, z: usize, ask: Ask, i: usize) {
        let batch = self.set(z).batch;
        let n = match self.shape {
            Shape::Fixed if batch == 1 => 1,
            Shape::Fixed => (batch >> ask.order).max(2),
            Shape::Tuned => self.tuned_refill(z, ask.order),
            _ => batch,
        };
        let (mut stole, mut taken) = (false, 0);
        for _ in 0..n {
            let Some((pfn, list)) = self.take(z, ask, &mut stole) else {
                break;
            };
            taken += 1i64 << ask.order;
            let mt = match self.shape {
                Shape::Fixed | Shape::Tuned => list,
                Shape::Searched => ask.mt,
                _ if ordinary(list) => ask.mt,
                _ => list,
            };
            self.wait(pfn, ask.order, mt);
            self.set(z).lists[i].push_back(pfn);
        }
        self.count(self.cpu, z, -taken);
    }

    fn tuned_refill(&mut self, z: usize, order: u8) -> i64 {
        let below = self.zones[z].below_high;
        let count = self.held(self.cpu, z);
        let s = self.set(z);
        s.high = s.high.clamp(s.high_min, s.high_max);
        if s.high < s.batch {
            return 1;
        }
        let mut n = if order == 0 {
            s.batch << s.factor
        } else {
            s.batch
        };
        if s.high_min != s.high_max && !below {
            s.high = (s.high + n).min(s.high_max);
        }
        if order == 0 {
            let room = (s.high - count - s.batch).max(s.batch);
            if n <= room && s.factor < 5 {
                s.factor += 1;
            }
            n = n.min(room);
        }
        if n > 1 { (n >> order).max(2) } else { n }
    }

    pub fn pcp_free(&mut self, z: usize, pfn: u64, order: u8) {
        let mt = self.block_type(pfn);
        let i = self.list_of(order, mt);
        self.wait(pfn, order, mt);
        self.set(z).lists[i].push_front(pfn);
        let count = self.held(self.cpu, z);
        let small = (1..=3).contains(&order);
        let reclaim = self.zones[z].reclaim;
        if self.shape == Shape::Tuned {
            let n = self.tuned_free(z, order, count);
            self.give_surplus(z, n, i);
            return;
        }
        let shape = self.shape;
        let s = self.set(z);
        let n = match shape {
            Shape::Kinds if s.lists[i].len() as i64 >= 3 * s.batch => s.batch,
            Shape::Kinds => 0,
            Shape::Fixed => {
                let burst = small && s.factor > 0;
                let t = if burst {
                    0
                } else if reclaim {
                    (4 * s.batch).min(s.high)
                } else {
                    s.high
                };
                if count < t {
                    0
                } else if burst {
                    count
                } else if t < s.batch {
                    1
                } else {
                    let n = (s.batch << s.factor).min(t - s.batch).max(s.batch);
                    if s.batch << s.factor < t - s.batch && s.factor < 5 {
                        s.factor += 1;
                    }
                    n
                }
            }
            _ if count >= s.high => s.batch,
            _ => 0,
        };
        self.give_surplus(z, n, i);
    }

    fn give_surplus(&mut self, z: usize, n: i64, i: usize) {
        if n > 0 {
            self.release(self.cpu, z, n, i);
            if self.shape == Shape::Tuned && self.zones[z].below_high && self.above_high(z) {
                self.zones[z].below_high = false;
            }
        }
    }

    fn tuned_free(&mut self, z: usize, order: u8, count: i64) -> i64 {
        let (reclaim, below) = (self.zones[z].reclaim, self.zones[z].below_high);
        let early = self.early;
        let s = self.set(z);
        s.factor /= 2;
        let small = (1..=3).contains(&order);
        let long = if early {
            s.batch
        } else {
            s.batch + s.high_min / 2
        };
        let burst = small && s.row_of_small && s.free_count >= long;
        s.row_of_small = small;
        if s.free_count < s.batch << 5 {
            s.free_count += 1 << order;
        }
        s.high = s.high.clamp(s.high_min, s.high_max);
        let lately = s.free_count.max(s.batch);
        let t = if burst {
            s.high = (s.high - (s.batch << 5)).max(s.high_min);
            0
        } else if reclaim {
            s.high = (s.high - lately).max(s.high_min);
            (4 * s.batch).min(s.high)
        } else if s.high_min == s.high_max {
            s.high
        } else if below {
            s.high = (s.high - lately).max(s.high_min);
            count.max(s.high_min)
        } else {
            let t = s.high;
            if count >= s.high {
                s.high = s.high.max(s.free_count + s.batch).min(s.high_max);
            }
            t
        };
        if count < t {
            0
        } else if burst {
            count.min(s.batch << 5)
        } else if t < s.batch {
            1
        } else {
            s.free_count.min(t - s.batch).max(s.batch)
        }
    }

    /// Gives `n` base pages back, beginning with list `i`.
    pub fn release(&mut self, cpu: usize, z: usize, n: i64, mut i: usize) {
        let mut n = n.min(self.held(cpu, z));
        if let Shape::PerType(types) = self.shape {
            // batch_free: the more lists were found empty, the more pages of the next one go.
            let (mut i, mut credit) = (0, 0);
            while n > 0 {
                i = (i + 1) % 3;
                credit += 1;
                while n > 0 && credit > 0 && !self.sets[cpu][z].lists[i].is_empty() {
                    self.give_tail(cpu, z, i, types[i]);
                    n -= 1;
                    credit -= 1;
                    if credit == 0 {
                        break;
                    }
                }
            }
            return;
        }
        let lists = if matches!(self.shape, Shape::Fixed | Shape::Tuned) {
            14
        } else {
            2
        };
        while n > 0 {
            if self.sets[cpu][z].lists[i].is_empty() {
                i = (i + 1) % lists;
            } else {
                n -= 1 << self.give_tail(cpu, z, i, Movable);
            }
        }
    }

    fn give_tail(&mut self, cpu: usize, z: usize, i: usize, lists_type: MigrateType) -> u8 {
        let pfn = self.sets[cpu][z].lists[i].pop_back().expect("not empty");
        let (order, stored) = self.pcp_at(pfn);
        let to = match (self.era, self.shape, self.family) {
            // 2.6.32 passes on the type of the list.
            ("2.6.32" | "2.6.32-rc6", ..) => lists_type,
            (_, Shape::PerType(_) | Shape::Fixed, _) => stored,
            _ => self.block_type(pfn),
        };
        self.mark(pfn, order, Frame::Reserved);
        self.merge_in(z, pfn, order, to);
        self.count(cpu, z, 1 << order);
        order
    }

    /// A run of the vmstat worker.
    pub fn vmstat(&mut self, cpu: usize) {
        for z in 0..self.zones.len() {
            if self.shape == Shape::Tuned {
                self.shrink_high(cpu, z);
            }
            self.zones[z].counter += std::mem::take(&mut self.sets[cpu][z].untold);
        }
        debug_assert!(self.family != Family::Plain || self.shape == Shape::Hot);
    }

    fn shrink_high(&mut self, cpu: usize, z: usize) {
        let count = self.held(cpu, z);
        let s = &mut self.sets[cpu][z];
        if s.high_min == s.high_max {
            return;
        }
        if s.high > s.high_min {
            let slow = s.high - s.high / 8;
            s.high = slow.max(count - (s.batch << 5)).max(s.high_min);
        }
        let n = count - s.high;
        if n > 0 {
            self.release(cpu, z, n, 0);
        }
    }
}
