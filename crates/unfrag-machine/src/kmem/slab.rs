//! SLAB: each CPU has an array of free objects, the node a shared one, and three lists of slabs.
//! `spec: 6.1`

use super::list::SlabList;
use super::records::{Arena, Common, SlabPlace};
use unfrag_slab::Due;
use unfrag_slab::formulas::{ArrayLimits, array_limits};

/// Objects of a refill of an array that was idle for long.
const COLD_REFILL: usize = 16;

#[derive(Clone, Debug, Default)]
struct Array {
    /// Free objects, by slab; the last is the hottest.
    objects: Vec<u32>,
    touched: bool,
}

#[derive(Clone, Debug)]
pub(super) struct SlabCache {
    limits: ArrayLimits,
    cpus: Vec<Array>,
    shared: Vec<u32>,
    shared_touched: bool,
    partial: SlabList,
    free: SlabList,
    /// Objects free on slabs.
    free_objects: u64,
    free_limit: u64,
    free_touched: bool,
}

impl SlabCache {
    pub fn new(size: u32, cpus: u32, objects: u32) -> SlabCache {
        let limits = array_limits(size, cpus);
        SlabCache {
            limits,
            cpus: vec![Array::default(); cpus as usize],
            shared: vec![],
            shared_touched: false,
            partial: SlabList::default(),
            free: SlabList::default(),
            free_objects: 0,
            free_limit: u64::from((1 + cpus) * limits.batch + objects),
            free_touched: false,
        }
    }

    /// Objects that CPUs and the shared array hold.
    pub fn held(&self) -> u64 {
        let arrays = self.cpus.iter().map(|a| a.objects.len());
        (arrays.sum::<usize>() + self.shared.len()) as u64
    }

    #[inline]
    pub fn take(&mut self, cpu: usize, common: &mut Common, arena: &mut Arena) -> Option<u32> {
        let a = &mut self.cpus[cpu];
        if let Some(s) = a.objects.pop() {
            a.touched = true;
            common.stat.alloc_fast += 1;
            return Some(s);
        }
        self.refill(cpu, arena);
        let a = &mut self.cpus[cpu];
        a.touched = true;
        common.stat.alloc_slow += u64::from(!a.objects.is_empty());
        a.objects.pop()
    }

    fn refill(&mut self, cpu: usize, arena: &mut Arena) {
        let a = &mut self.cpus[cpu];
        let mut batch = self.limits.batch as usize;
        if !a.touched {
            batch = batch.min(COLD_REFILL);
        }
        if !self.shared.is_empty() {
            let n = batch.min(self.shared.len());
            a.objects.extend(self.shared.drain(self.shared.len() - n..));
            self.shared_touched = true;
            return;
        }
        while a.objects.len() < batch {
            let s = match self.partial.first() {
                Some(s) => {
                    self.partial.unlink(&mut arena.slabs, s);
                    s
                }
                None => {
                    self.free_touched = true;
                    let Some(s) = self.free.pop_front(&mut arena.slabs) else {
                        return;
                    };
                    s
                }
            };
            let r = &mut arena.slabs[s as usize];
            let n = usize::from(r.free).min(batch - a.objects.len());
            r.free -= n as u16;
            self.free_objects -= n as u64;
            a.objects.resize(a.objects.len() + n, s);
            if r.free == 0 {
                r.place = SlabPlace::Full;
            } else {
                r.place = SlabPlace::Partial;
                self.partial.push_front(&mut arena.slabs, s);
            }
        }
    }

    pub fn add(&mut self, s: u32, arena: &mut Arena) {
        let r = &mut arena.slabs[s as usize];
        r.place = SlabPlace::Free;
        self.free_objects += u64::from(r.objects);
        self.free.push_back(&mut arena.slabs, s);
    }

    #[inline]
    pub fn give(&mut self, cpu: usize, s: u32, common: &mut Common, arena: &mut Arena) {
        if self.cpus[cpu].objects.len() >= self.limits.limit as usize {
            common.stat.free_slow += 1;
            self.flush(cpu, common, arena);
        } else {
            common.stat.free_fast += 1;
        }
        let a = &mut self.cpus[cpu];
        a.objects.push(s);
        a.touched = true;
    }

    /// The oldest batch of a full array goes to the shared one, or to its slabs if that is full.
    fn flush(&mut self, cpu: usize, common: &mut Common, arena: &mut Arena) {
        let batch = self.limits.batch as usize;
        let room = (self.limits.shared * self.limits.batch) as usize - self.shared.len();
        let n = if room > 0 { batch.min(room) } else { batch };
        let mut out = std::mem::take(&mut self.cpus[cpu].objects);
        if room > 0 {
            self.shared.extend(out.drain(..n));
        } else {
            for s in out.drain(..n) {
                self.free_one(s, common, arena);
            }
        }
        self.cpus[cpu].objects = out;
    }

    fn free_one(&mut self, s: u32, common: &mut Common, arena: &mut Arena) {
        let r = &mut arena.slabs[s as usize];
        r.free += 1;
        self.free_objects += 1;
        if r.free == r.objects {
            if r.place == SlabPlace::Partial {
                self.partial.unlink(&mut arena.slabs, s);
            }
            if self.free_objects > self.free_limit {
                self.destroy(s, common, arena);
            } else {
                arena.slabs[s as usize].place = SlabPlace::Free;
                self.free.push_front(&mut arena.slabs, s);
            }
        } else if r.place == SlabPlace::Full {
            r.place = SlabPlace::Partial;
            self.partial.push_back(&mut arena.slabs, s);
        }
    }

    fn destroy(&mut self, s: u32, common: &mut Common, arena: &mut Arena) {
        self.free_objects -= u64::from(arena.slabs[s as usize].objects);
        arena.discard(common, s);
    }

    /// The reaper: arrays that were not used shrink by a fifth, then free slabs are freed.
    pub fn reap(&mut self, cpu: usize, due: Due, common: &mut Common, arena: &mut Arena) {
        let fifth = self.limits.limit.div_ceil(5) as usize;
        if due.reap_cpu {
            let a = &mut self.cpus[cpu];
            if !std::mem::take(&mut a.touched) {
                let n = fifth.min(a.objects.len());
                let out: Vec<u32> = a.objects.drain(..n).collect();
                for s in out {
                    self.free_one(s, common, arena);
                }
            }
        }
        if !due.reap_node {
            return;
        }
        if !std::mem::take(&mut self.shared_touched) {
            let n = fifth.min(self.shared.len());
            let out: Vec<u32> = self.shared.drain(..n).collect();
            for s in out {
                self.free_one(s, common, arena);
            }
        }
        if !std::mem::take(&mut self.free_touched)
            && let Some(first) = self.free.first()
        {
            let per_slab = u64::from(arena.slabs[first as usize].objects);
            for _ in 0..self.free_limit.div_ceil(5 * per_slab) {
                let Some(s) = self.free.pop_front(&mut arena.slabs) else {
                    break;
                };
                self.destroy(s, common, arena);
            }
        }
    }
}
