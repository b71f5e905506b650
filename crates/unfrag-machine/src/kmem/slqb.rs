//! SLQB: each CPU has a list of free objects and its own partial slabs; objects freed elsewhere come
//! back to the CPU that made their slab, in batches. `spec: 6.3`

use super::list::SlabList;
use super::records::{Arena, Common, SlabPlace};
use unfrag_slab::formulas::{SlqbLimits, slqb_limits};

#[derive(Clone, Debug, Default)]
struct PerCpu {
    /// Free objects, by slab; the last is the hottest.
    free: Vec<u32>,
    partial: SlabList,
    /// Objects of another CPU's slabs, to be sent there.
    away: Vec<u32>,
    target: usize,
    /// What other CPUs sent.
    remote: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct SlqbCache {
    limits: SlqbLimits,
    cpus: Vec<PerCpu>,
}

impl SlqbCache {
    pub fn new(size: u32, cpus: u32) -> SlqbCache {
        SlqbCache {
            limits: slqb_limits(size),
            cpus: vec![PerCpu::default(); cpus as usize],
        }
    }

    /// Objects on lists.
    pub fn held(&self) -> u64 {
        let of = |c: &PerCpu| c.free.len() + c.away.len() + c.remote.len();
        self.cpus.iter().map(of).sum::<usize>() as u64
    }

    #[inline]
    pub fn take(&mut self, cpu: usize, common: &mut Common, arena: &mut Arena) -> Option<u32> {
        let c = &mut self.cpus[cpu];
        if let Some(s) = c.free.pop() {
            common.stat.alloc_fast += 1;
            return Some(s);
        }
        c.free.append(&mut c.remote);
        let got = match c.free.pop() {
            Some(s) => s,
            None => {
                let s = c.partial.first()?;
                let r = &mut arena.slabs[s as usize];
                r.free -= 1;
                if r.free == 0 {
                    r.place = SlabPlace::Full;
                    c.partial.unlink(&mut arena.slabs, s);
                }
                s
            }
        };
        common.stat.alloc_slow += 1;
        Some(got)
    }

    pub fn add(&mut self, cpu: usize, s: u32, arena: &mut Arena) {
        arena.slabs[s as usize].place = SlabPlace::Partial;
        self.cpus[cpu].partial.push_front(&mut arena.slabs, s);
    }

    #[inline]
    pub fn give(&mut self, cpu: usize, s: u32, common: &mut Common, arena: &mut Arena) {
        let owner = usize::from(arena.slabs[s as usize].cpu);
        let c = &mut self.cpus[cpu];
        if owner == cpu {
            common.stat.free_fast += 1;
            c.free.push(s);
            if c.free.len() > self.limits.hiwater as usize {
                self.give_back(cpu, self.limits.freebatch as usize, common, arena);
            }
            return;
        }
        common.stat.free_slow += 1;
        if c.target != owner {
            self.send(cpu, common, arena);
            self.cpus[cpu].target = owner;
        }
        let c = &mut self.cpus[cpu];
        c.away.push(s);
        if c.away.len() >= self.limits.freebatch as usize {
            self.send(cpu, common, arena);
        }
    }

    /// Sends objects to the CPU of their slab, or puts them back on their slabs if its queue is long.
    fn send(&mut self, cpu: usize, common: &mut Common, arena: &mut Arena) {
        let mut away = std::mem::take(&mut self.cpus[cpu].away);
        let target = self.cpus[cpu].target;
        if self.cpus[target].remote.len() <= self.limits.hiwater as usize / 2 {
            self.cpus[target].remote.append(&mut away);
        } else {
            for s in away.drain(..) {
                self.free_one(s, common, arena);
            }
        }
        self.cpus[cpu].away = away;
    }

    /// The oldest `n` free objects of a CPU go to their slabs.
    fn give_back(&mut self, cpu: usize, n: usize, common: &mut Common, arena: &mut Arena) {
        let mut free = std::mem::take(&mut self.cpus[cpu].free);
        for s in free.drain(..n.min(free.len())) {
            self.free_one(s, common, arena);
        }
        self.cpus[cpu].free = free;
    }

    fn free_one(&mut self, s: u32, common: &mut Common, arena: &mut Arena) {
        let r = &mut arena.slabs[s as usize];
        let list = &mut self.cpus[usize::from(r.cpu)].partial;
        r.free += 1;
        if r.free == r.objects {
            if r.place == SlabPlace::Partial {
                list.unlink(&mut arena.slabs, s);
            }
            arena.discard(common, s);
        } else if r.place == SlabPlace::Full {
            r.place = SlabPlace::Partial;
            list.push_back(&mut arena.slabs, s);
        }
    }

    /// The periodic trim of a CPU.
    pub fn trim(&mut self, cpu: usize, common: &mut Common, arena: &mut Arena) {
        self.send(cpu, common, arena);
        let c = &mut self.cpus[cpu];
        c.free.append(&mut c.remote);
        self.give_back(cpu, self.limits.freebatch as usize, common, arena);
    }
}
