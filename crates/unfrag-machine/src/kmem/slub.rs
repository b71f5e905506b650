//! SLUB: each CPU owns a slab and that slab's free objects; other slabs wait on a list while some of
//! their objects are free. `spec: 6.2`

use super::list::{NONE, SlabList};
use super::records::{Arena, Common, SlabPlace};
use unfrag_slab::Rules;
use unfrag_slab::formulas::{slub_cpu_partial_slabs, slub_min_partial};

#[derive(Clone, Debug, Default)]
struct PerCpu {
    slab: u32,
    /// Free objects of the CPU's slab on the CPU's own chain.
    free: u16,
    partial: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct SlubCache {
    cpus: Vec<PerCpu>,
    partial: SlabList,
    min_partial: u32,
    /// Partial slabs that a CPU may keep; 0 in old kernels.
    cpu_partial: usize,
    keep_empty: bool,
}

impl SlubCache {
    pub fn new(size: u32, objects: u32, cpus: u32, rules: &Rules) -> SlubCache {
        let r = &rules.slub;
        SlubCache {
            cpus: vec![PerCpu::default(); cpus as usize],
            partial: SlabList::default(),
            min_partial: slub_min_partial(size, r.min_partial_of_half),
            cpu_partial: if r.cpu_partial {
                slub_cpu_partial_slabs(size, objects) as usize
            } else {
                0
            },
            keep_empty: r.keep_empty,
        }
    }

    /// Objects that CPUs hold.
    pub fn held(&self) -> u64 {
        self.cpus.iter().map(|c| u64::from(c.free)).sum()
    }

    /// Whether the next slab that joins the CPU's partial ones sends all of them to the node.
    #[cfg(test)]
    pub fn has_no_room_for_partial(&self, cpu: usize) -> bool {
        self.cpu_partial > 0 && self.cpus[cpu].partial.len() >= self.cpu_partial
    }

    #[inline]
    pub fn take(&mut self, cpu: usize, common: &mut Common, arena: &mut Arena) -> Option<u32> {
        let c = &mut self.cpus[cpu];
        if c.free > 0 {
            c.free -= 1;
            common.stat.alloc_fast += 1;
            return Some(c.slab);
        }
        self.take_slow(cpu, common, arena)
    }

    fn take_slow(&mut self, cpu: usize, common: &mut Common, arena: &mut Arena) -> Option<u32> {
        let c = &mut self.cpus[cpu];
        if c.slab != NONE {
            let r = &mut arena.slabs[c.slab as usize];
            if r.free == 0 {
                r.place = SlabPlace::Full;
                c.slab = NONE;
            }
        }
        if c.slab == NONE {
            let s = match c.partial.pop() {
                Some(s) => s,
                None => self.take_partial(cpu, arena)?,
            };
            self.cpus[cpu].slab = s;
        }
        let c = &mut self.cpus[cpu];
        let r = &mut arena.slabs[c.slab as usize];
        r.place = SlabPlace::Cpu;
        c.free = std::mem::take(&mut r.free) - 1;
        common.stat.alloc_slow += 1;
        Some(c.slab)
    }

    /// A partial slab of the node, and more for the CPU's own list.
    fn take_partial(&mut self, cpu: usize, arena: &mut Arena) -> Option<u32> {
        let s = self.partial.pop_front(&mut arena.slabs)?;
        let c = &mut self.cpus[cpu];
        while c.partial.len() < self.cpu_partial / 2
            && let Some(more) = self.partial.pop_front(&mut arena.slabs)
        {
            arena.slabs[more as usize].place = SlabPlace::CpuPartial;
            c.partial.push(more);
        }
        Some(s)
    }

    /// Makes a new slab the CPU's own.
    pub fn add(&mut self, cpu: usize, s: u32, common: &mut Common, arena: &mut Arena) {
        self.deactivate(cpu, common, arena);
        let c = &mut self.cpus[cpu];
        let r = &mut arena.slabs[s as usize];
        r.place = SlabPlace::Cpu;
        c.slab = s;
        c.free = std::mem::take(&mut r.free);
    }

    fn deactivate(&mut self, cpu: usize, common: &mut Common, arena: &mut Arena) {
        let c = &mut self.cpus[cpu];
        let s = std::mem::replace(&mut c.slab, NONE);
        if s == NONE {
            return;
        }
        let hot = c.free > 0;
        arena.slabs[s as usize].free += std::mem::take(&mut c.free);
        self.unfreeze(s, hot, common, arena);
    }

    fn unfreeze(&mut self, s: u32, hot: bool, common: &mut Common, arena: &mut Arena) {
        let r = &mut arena.slabs[s as usize];
        let empty = r.free == r.objects;
        if r.free == 0 {
            r.place = SlabPlace::Full;
        } else if empty && self.partial.len >= self.min_partial {
            arena.discard(common, s);
        } else {
            r.place = SlabPlace::Partial;
            if hot && !empty {
                self.partial.push_front(&mut arena.slabs, s);
            } else {
                self.partial.push_back(&mut arena.slabs, s);
            }
        }
    }

    #[inline]
    pub fn give(&mut self, cpu: usize, s: u32, common: &mut Common, arena: &mut Arena) {
        let c = &mut self.cpus[cpu];
        if c.slab == s {
            c.free += 1;
            common.stat.free_fast += 1;
            return;
        }
        self.give_slow(cpu, s, common, arena);
    }

    fn give_slow(&mut self, cpu: usize, s: u32, common: &mut Common, arena: &mut Arena) {
        common.stat.free_slow += 1;
        let r = &mut arena.slabs[s as usize];
        r.free += 1;
        let empty = r.free == r.objects;
        let keeps = self.keep_empty && self.partial.len < self.min_partial;
        match r.place {
            SlabPlace::Partial if empty && !keeps => {
                self.partial.unlink(&mut arena.slabs, s);
                arena.discard(common, s);
            }
            SlabPlace::Full if empty && !keeps => arena.discard(common, s),
            SlabPlace::Full if self.cpu_partial > 0 => {
                r.place = SlabPlace::CpuPartial;
                self.keep_partial(cpu, s, common, arena);
            }
            SlabPlace::Full => {
                r.place = SlabPlace::Partial;
                self.partial.push_back(&mut arena.slabs, s);
            }
            _ => {}
        }
    }

    /// A slab joins the CPU's partial ones; too many of them go to the node together.
    fn keep_partial(&mut self, cpu: usize, s: u32, common: &mut Common, arena: &mut Arena) {
        if self.cpus[cpu].partial.len() >= self.cpu_partial {
            for old in std::mem::take(&mut self.cpus[cpu].partial) {
                self.unfreeze(old, false, common, arena);
            }
        }
        self.cpus[cpu].partial.push(s);
    }
}
