//! Requests: zones in order, watermarks, the slow path. `spec: 1.3-1.6, 2.6, 4, 4.7, 4.8`

use super::fallback::Ask;
use super::{Family, Frame, Model, Shape, ordinary};
use unfrag_eras::MigrateType::{self, HighAtomic, Unmovable};
use unfrag_eras::{AllocError, Gfp, NodeId, ZoneKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Min,
    Low,
    High,
}

/// How far a request may go.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    pub mark: Mark,
    pub ignore_marks: bool,
    pub nofragment: bool,
    pub min_reserve: bool,
    pub non_block: bool,
    pub highatomic: bool,
    pub recheck: bool,
}

impl Rights {
    /// None beyond a mark.
    fn none(mark: Mark) -> Rights {
        Rights {
            mark,
            ignore_marks: false,
            nofragment: false,
            min_reserve: false,
            non_block: false,
            highatomic: false,
            recheck: false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Request {
    order: u8,
    mt: MigrateType,
    highest: ZoneKind,
    wake: bool,
}

impl Model {
    pub fn alloc(&mut self, node: u8, order: u8, gfp: Gfp) -> Result<u64, AllocError> {
        let movable = gfp.contains(Gfp::MOVABLE);
        if movable && gfp.contains(Gfp::RECLAIMABLE) {
            return Err(AllocError::BothMobilities);
        }
        let r = Request {
            order,
            mt: self.type_for(gfp),
            highest: highest(gfp),
            wake: gfp.contains(Gfp::KSWAPD_RECLAIM),
        };
        let zones = self.zones_for(node, r.highest, gfp.contains(Gfp::THISNODE));
        if zones.is_empty() {
            return Err(AllocError::Forbidden);
        }
        let pfn = match self.pass(&zones, r, self.first_rights(&zones)) {
            Some(pfn) => pfn,
            None => match self.slow(&zones, r, gfp) {
                Some(pfn) => pfn,
                None => return Err(self.why(&zones, r, gfp)),
            },
        };
        let used = Frame::Used {
            order,
            head: pfn,
            movable,
        };
        self.mark(pfn, order, used);
        Ok(pfn)
    }

    pub fn type_for(&self, gfp: Gfp) -> MigrateType {
        if self.family == Family::Plain || self.ungrouped {
            Unmovable
        } else {
            gfp.mobility().expect("at most one flag")
        }
    }

    pub fn zones_for(&self, node: u8, highest: ZoneKind, this_node: bool) -> Vec<usize> {
        let fits = |z: &usize| self.zones[*z].config.kind <= highest;
        let all = || (0..self.zones.len()).rev().filter(fits);
        let near = all().filter(|&z| self.zones[z].config.node == NodeId(node));
        let far = all().filter(|&z| self.zones[z].config.node != NodeId(node) && !this_node);
        near.chain(far).collect()
    }

    fn first_rights(&self, zones: &[usize]) -> Rights {
        let first = &self.zones[zones[0]].config;
        let one_node = self.zones.iter().all(|z| z.config.node == first.node);
        let dma32 = self
            .zones
            .iter()
            .any(|z| z.config.kind == ZoneKind::Dma32 && (one_node || z.config.node == first.node));
        Rights {
            mark: Mark::Low,
            ignore_marks: false,
            nofragment: self.is_modern() && first.kind == ZoneKind::Normal && dma32
                || self.sysctl.defrag_mode,
            min_reserve: false,
            non_block: false,
            highatomic: false,
            recheck: false,
        }
    }

    fn slow_rights(&self, order: u8, gfp: Gfp) -> Rights {
        let high = gfp.contains(Gfp::HIGH);
        let waits = gfp.contains(Gfp::DIRECT_RECLAIM);
        let modest = self.is_modern() && gfp.contains(Gfp::NOMEMALLOC);
        let stuck = !waits && !modest;
        Rights {
            mark: Mark::Min,
            ignore_marks: false,
            nofragment: self.sysctl.defrag_mode,
            min_reserve: high,
            non_block: stuck,
            highatomic: self.is_modern() && stuck && order > 0 && high,
            recheck: match self.family {
                Family::Modern => gfp.contains(Gfp::ATOMIC),
                Family::Hygiene => high,
                _ => false,
            },
        }
    }

    fn slow(&mut self, zones: &[usize], r: Request, gfp: Gfp) -> Option<u64> {
        if r.wake {
            let order = if self.sysctl.defrag_mode {
                r.order.max(9)
            } else {
                r.order
            };
            let mut nodes: Vec<u8> = zones.iter().map(|&z| self.zones[z].config.node.0).collect();
            nodes.dedup();
            nodes.retain(|&n| !self.content(n, order));
            self.wakes.extend(nodes.into_iter().map(|n| (n, order)));
        }
        let rights = self.slow_rights(r.order, gfp);
        if let Some(pfn) = self.pass(zones, r, rights) {
            return Some(pfn);
        }
        if gfp.contains(Gfp::MEMALLOC) && !gfp.contains(Gfp::NOMEMALLOC) {
            let all = Rights {
                ignore_marks: true,
                ..rights
            };
            if let Some(pfn) = self.pass(zones, r, all) {
                return Some(pfn);
            }
        }
        let costly = r.order > 3 && !gfp.contains(Gfp::RETRY_MAYFAIL);
        if !gfp.contains(Gfp::DIRECT_RECLAIM) || gfp.contains(Gfp::NORETRY) || costly {
            return None;
        }
        while self.is_modern() && zones.iter().any(|&z| self.unreserve(z, r.mt)) {
            if let Some(pfn) = self.pass(zones, r, rights) {
                return Some(pfn);
            }
        }
        if rights.nofragment {
            let mixed = Rights {
                nofragment: false,
                ..rights
            };
            if let Some(pfn) = self.pass(zones, r, mixed) {
                return Some(pfn);
            }
        }
        // The OOM routine looks once more.
        let last = Rights {
            mark: Mark::High,
            nofragment: false,
            ..self.slow_rights(r.order, Gfp::DIRECT_RECLAIM)
        };
        self.pass(zones, r, last)
    }

    /// Why nothing served a request: some zone could give as many single pages; or a block is there, but
    /// kept for others; or else memory is short.
    fn why(&self, zones: &[usize], r: Request, gfp: Gfp) -> AllocError {
        let rights = self.slow_rights(r.order, gfp);
        let more = (1 << r.order) - 1;
        let enough = |z: &usize| {
            let mark = self.mark_of(*z, Mark::Min) + more;
            let unboosted = self.zones[*z].min + more;
            let plain = Rights {
                recheck: false,
                ..rights
            };
            self.passes(*z, 0, mark, r.highest, plain)
                || rights.recheck && self.passes(*z, 0, unboosted, r.highest, plain)
        };
        let block = |z: &usize| (r.order..=10).any(|o| self.zones[*z].nr_free(o) > 0);
        if zones.iter().any(enough) {
            AllocError::Fragmented
        } else if zones.iter().any(block) {
            AllocError::Reserved
        } else {
            AllocError::Short
        }
    }

    /// One pass over the zones.
    fn pass(&mut self, zones: &[usize], r: Request, rights: Rights) -> Option<u64> {
        let near = self.zones[zones[0]].config.node;
        let give_in = rights.nofragment && !self.sysctl.defrag_mode;
        for &z in zones {
            if give_in && self.zones[z].config.node != near {
                break;
            }
            if let Some(pfn) = self.try_zone(z, r, rights) {
                return Some(pfn);
            }
        }
        let mixed = Rights {
            nofragment: false,
            ..rights
        };
        give_in.then(|| self.pass(zones, r, mixed))?
    }

    fn try_zone(&mut self, z: usize, r: Request, rights: Rights) -> Option<u64> {
        let above = self.shape == Shape::Tuned && !self.zones[z].below_high && {
            let high = self.zones[z].high + self.zones[z].boost;
            self.passes(z, r.order, high, r.highest, rights)
        };
        if self.shape == Shape::Tuned && !above {
            self.zones[z].below_high = true;
        }
        let mark = self.mark_of(z, rights.mark);
        if !above && !rights.ignore_marks && !self.passes(z, r.order, mark, r.highest, rights) {
            return None;
        }
        let ask = Ask {
            order: r.order,
            mt: r.mt,
            nofragment: rights.nofragment,
            wake: r.wake,
        };
        let pfn = self.rmqueue(z, ask, rights);
        let zone = &mut self.zones[z];
        if zone.boosted && (self.family == Family::Modern || r.wake) {
            zone.boosted = false;
            let node = zone.config.node.0;
            if !self.content(node, 0) {
                self.wakes.push((node, 0));
            }
        }
        let pfn = pfn?;
        if r.order > 0 && rights.highatomic {
            // Its frames are neither free nor waiting.
            self.mark(pfn, r.order, Frame::Reserved);
            self.reserve(z, pfn);
        }
        Some(pfn)
    }

    /// Whether kswapd of a node need not run for an order: each zone has its low mark (old), or one
    /// has its high mark and none is boosted (modern).
    fn content(&self, node: u8, order: u8) -> bool {
        let zones: Vec<usize> = (0..self.zones.len())
            .filter(|&z| {
                self.zones[z].config.node == NodeId(node) && self.zones[z].config.managed > 0
            })
            .collect();
        let top = zones
            .iter()
            .map(|&z| self.zones[z].config.kind)
            .max()
            .unwrap();
        let has = |z: usize, mark: Mark| {
            let rights = Rights::none(mark);
            self.passes(z, order, self.mark_of(z, mark), top, rights)
        };
        if self.is_modern() {
            let high = |z: usize| {
                if self.sysctl.defrag_mode {
                    self.has_blocks(z, order, top)
                } else {
                    has(z, Mark::High)
                }
            };
            zones.iter().all(|&z| self.zones[z].boost == 0) && zones.iter().any(|&z| high(z))
        } else {
            zones.iter().all(|&z| has(z, Mark::Low))
        }
    }

    /// In defrag mode: whether free pageblocks alone pass the high mark, or for single pages a compaction has room.
    /// `spec: 2.6, 4.9`
    fn has_blocks(&self, z: usize, order: u8, top: ZoneKind) -> bool {
        let zone = &self.zones[z];
        let (rights, high) = (Rights::none(Mark::High), self.mark_of(z, Mark::High));
        let blocks: u64 = (9..=10).map(|o| zone.nr_free(o) << o).sum();
        let room = high + zone.low - zone.min + 1024;
        self.passes_modern(z, (order, blocks as i64), high, top, rights)
            || order == 0 && self.passes_modern(z, (0, zone.counter), room, top, rights)
    }

    fn mark_of(&self, z: usize, mark: Mark) -> u64 {
        let zone = &self.zones[z];
        zone.boost
            + match mark {
                Mark::Min => zone.min,
                Mark::Low => zone.low,
                Mark::High => zone.high,
            }
    }

    fn rmqueue(&mut self, z: usize, ask: Ask, rights: Rights) -> Option<u64> {
        if self.served(ask.order)
            && let Some(pfn) = self.pcp_alloc(z, ask, false)
        {
            return Some(pfn);
        }
        let mut got = None;
        if rights.highatomic {
            got = self.smallest(z, ask.order, HighAtomic);
        }
        if got.is_none() {
            got = self.take(z, ask, &mut false).map(|(pfn, _)| pfn);
        }
        if got.is_none() && rights.non_block {
            got = self.smallest(z, ask.order, HighAtomic);
        }
        if got.is_some() {
            self.count(self.cpu, z, -(1 << ask.order));
        }
        got
    }

    /// The watermark check, with the recheck of order 0.
    fn passes(&self, z: usize, order: u8, mark: u64, highest: ZoneKind, r: Rights) -> bool {
        if !self.is_modern() {
            return self.passes_old(z, order, mark, highest, r);
        }
        let free = self.zones[z].counter;
        self.passes_modern(z, (order, free), mark, highest, r)
            || order == 0
                && r.recheck
                && r.mark == Mark::Min
                && self.zones[z].boost > 0
                && self.passes_modern(z, (0, free), self.zones[z].min, highest, r)
    }

    fn passes_old(&self, z: usize, order: u8, mark: u64, highest: ZoneKind, r: Rights) -> bool {
        let zone = &self.zones[z];
        let mut f = zone.counter - (1 << order) + 1;
        let mut m = mark as i64;
        if r.min_reserve {
            m -= m / 2;
        }
        if r.non_block {
            m -= m / 4;
        }
        if f <= m + zone.protection[highest as usize] as i64 {
            return false;
        }
        for o in 0..order {
            f -= (zone.nr_free(o) << o) as i64;
            m /= 2;
            if f <= m {
                return false;
            }
        }
        true
    }

    fn passes_modern(
        &self,
        z: usize,
        (order, free): (u8, i64),
        mark: u64,
        highest: ZoneKind,
        r: Rights,
    ) -> bool {
        let zone = &self.zones[z];
        let of = |mt| -> u64 { (0..=10).map(|o| (zone.list(o, mt).len() as u64) << o).sum() };
        let hidden = match self.family {
            _ if r.min_reserve || r.non_block || r.highatomic => 0,
            Family::Hygiene => of(HighAtomic),
            _ => zone.highatomic,
        };
        let f = free - ((1 << order) - 1) - hidden as i64;
        let mut m = mark as i64;
        if r.min_reserve {
            m -= m / 2;
            if r.non_block {
                m -= m / 4;
            }
        }
        if f <= m + zone.protection[highest as usize] as i64 {
            return false;
        }
        let usable = |mt: MigrateType| ordinary(mt) || mt == HighAtomic && r.highatomic;
        order == 0
            || (order..=10).any(|o| {
                let has = |mt: &MigrateType| usable(*mt) && !zone.list(o, *mt).is_empty();
                MigrateType::ALL.iter().any(has)
            })
    }

    pub fn above_high(&self, z: usize) -> bool {
        let r = Rights::none(Mark::High);
        self.passes(z, 0, self.mark_of(z, Mark::High), ZoneKind::Movable, r)
    }

    fn reserve(&mut self, z: usize, pfn: u64) {
        let zone = &self.zones[z];
        let (block, end) = self.block_around(pfn);
        let one_percent = zone.config.managed / 100;
        let full = match self.family {
            Family::Hygiene => {
                one_percent < 512 || zone.highatomic >= one_percent.next_multiple_of(512)
            }
            _ => zone.highatomic >= one_percent + 512,
        };
        let crosses = block < zone.start() || end > zone.end();
        if full || !ordinary(self.block_type(pfn)) || self.family == Family::Hygiene && crosses {
            return;
        }
        self.zones[z].highatomic += 512;
        self.set_block_type(pfn, HighAtomic);
        self.move_pageblock(z, pfn, HighAtomic);
    }

    /// Gives one high-atomic pageblock back.
    fn unreserve(&mut self, z: usize, mt: MigrateType) -> bool {
        for order in 0..=10 {
            let Some(&pfn) = self.zones[z].list(order, HighAtomic).front() else {
                continue;
            };
            if self.block_type(pfn) != HighAtomic {
                continue;
            }
            let pages = if self.family == Family::Hygiene && order == 10 {
                1024
            } else {
                512
            };
            self.zones[z].highatomic = self.zones[z].highatomic.saturating_sub(pages);
            if pages == 1024 {
                self.set_block_types(pfn, 10, mt);
            } else {
                self.set_block_type(pfn, mt);
            }
            self.move_pageblock(z, pfn, mt);
            return true;
        }
        false
    }

    pub fn alloc_bulk(&mut self, gfp: Gfp, n: usize) -> Result<Vec<u64>, AllocError> {
        let (mt, highest) = (self.type_for(gfp), highest(gfp));
        let zones = self.zones_for(0, highest, gfp.contains(Gfp::THISNODE));
        let mut rights = match zones.first() {
            Some(_) => self.first_rights(&zones),
            None => return Err(AllocError::Forbidden),
        };
        rights.nofragment = false;
        let passes = |z: &usize| {
            let mark = self.mark_of(*z, Mark::Low) + n as u64;
            self.passes(*z, 0, mark, highest, rights)
        };
        let mut got = Vec::new();
        if let Some(z) = zones.into_iter().find(passes) {
            let ask = Ask {
                order: 0,
                mt,
                nofragment: false,
                wake: gfp.contains(Gfp::KSWAPD_RECLAIM),
            };
            while got.len() < n
                && let Some(pfn) = self.pcp_alloc(z, ask, true)
            {
                let used = Frame::Used {
                    order: 0,
                    head: pfn,
                    movable: gfp.contains(Gfp::MOVABLE),
                };
                self.mark(pfn, 0, used);
                got.push(pfn);
            }
        }
        if got.is_empty() && n > 0 {
            got.push(self.alloc(0, 0, gfp)?);
        }
        Ok(got)
    }

    pub fn free(&mut self, pfn: u64, order: u8) {
        let z = self.zone_of(pfn);
        self.mark(pfn, order, Frame::Reserved);
        if self.served(order) {
            self.pcp_free(z, pfn, order);
        } else {
            self.give(z, pfn, order);
            self.count(self.cpu, z, 1 << order);
        }
    }

    pub fn split_used(&mut self, pfn: u64, order: u8, to: u8) {
        let Frame::Used { movable, .. } = self.frame(pfn) else {
            panic!("not in use")
        };
        for head in (pfn..pfn + (1 << order)).step_by(1 << to) {
            let piece = Frame::Used {
                order: to,
                head,
                movable,
            };
            self.mark(head, to, piece);
        }
    }
}

pub fn highest(gfp: Gfp) -> ZoneKind {
    if gfp.contains(Gfp::DMA) {
        ZoneKind::Dma
    } else if gfp.contains(Gfp::DMA32) {
        ZoneKind::Dma32
    } else if gfp.contains(Gfp::HIGHMEM | Gfp::MOVABLE) {
        ZoneKind::Movable
    } else if gfp.contains(Gfp::HIGHMEM) {
        ZoneKind::HighMem
    } else {
        ZoneKind::Normal
    }
}
