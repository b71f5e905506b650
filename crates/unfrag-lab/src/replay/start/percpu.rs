//! The per-CPU lists at the start.
//!
//! The trace shows the blocks that a CPU allocated before it first refilled a list: they had been on that
//! list. Small free blocks that the anchor's buddy lists do not show were on a per-CPU list too, that of
//! the CPU that allocated them first.

use super::arrange::{BlockTypes, FrameState, ZoneFrames, coalesce, is_cached};
use super::evidence::{BeforeAnchor, Evidence, Taker};
use super::pcp_trace::{Lists, PcpBlock, PcpTrace};
use super::state::{FreeBlock, SetStart};
use super::touched::TouchedFrames;
use super::used_up::UsedUp;
use super::zones::PcpFacts;
use crate::replay::causes::{Causes, FIRST_ALLOC, HostBlock};
use unfrag_eras::pcp::{NR_LISTS, list_index};
use unfrag_eras::{MigrateType, Order};
use unfrag_linux::kpageflags::{BUDDY, PageFlags};

/// Blocks on per-CPU lists, by CPU and list, and the pages that are still to be found for each CPU.
pub(super) struct PcpBlocks {
    /// From the head on.
    heads: Vec<Lists>,
    /// From the tail on.
    tails: Vec<Lists>,
    left: Vec<u64>,
    pub(super) frames: Vec<bool>,
}

/// What the evidence for waiting blocks is read from.
pub(super) struct Sources<'a> {
    pub(super) causes: &'a Causes,
    pub(super) evidence: &'a Evidence,
    pub(super) pcp_trace: Option<&'a PcpTrace>,
    pub(super) flags: Option<&'a PageFlags>,
    pub(super) before: &'a BeforeAnchor,
    /// Whether pages of kernel requests are the first to have waited, where the trace does not say.
    pub(super) kernel_first: bool,
    pub(super) used_up: &'a UsedUp,
    /// The first allocation of each frame of the zone.
    pub(super) takers: &'a [Option<Taker>],
}

/// What the trace itself says was waiting in a zone of `len` frames from `lo` on. `held` is how many
/// pages each CPU holds back of it.
pub(super) fn waiting(lo: u32, len: usize, held: &[u64], from: &Sources) -> PcpBlocks {
    let none = vec![vec![vec![]; NR_LISTS]; held.len()];
    let mut w = PcpBlocks {
        heads: none.clone(),
        tails: none,
        left: held.to_vec(),
        frames: vec![false; len],
    };
    for (cpu, left) in w.left.iter_mut().enumerate() {
        for (list, tail, blocks) in from.found(cpu, lo, lo + len as u32) {
            for (pfn, order) in blocks {
                let Some(k) = pfn.checked_sub(lo).map(|k| k as usize) else {
                    continue;
                };
                let block = k..k + (1 << order);
                let Some(frames) = w.frames.get_mut(block) else {
                    continue;
                };
                if *left >= 1 << order && frames.iter().all(|f| !*f) && from.may_wait(pfn) {
                    *left -= 1 << order;
                    frames.fill(true);
                    let ends = if tail { &mut w.tails } else { &mut w.heads };
                    ends[cpu][list].push((pfn, order));
                }
            }
        }
    }
    w
}

impl Sources<'_> {
    /// Blocks that waited on the lists of a CPU, by list: from its head on, or from its tail.
    fn found(&self, cpu: usize, lo: u32, hi: u32) -> Vec<(usize, bool, Vec<PcpBlock>)> {
        if let Some(pcp_trace) = self.pcp_trace {
            let of = |ends: &[Lists], tail| {
                let lists = ends.get(cpu).cloned().unwrap_or_default();
                let lists = lists.into_iter().enumerate();
                lists.map(move |(list, blocks)| (list, tail, blocks))
            };
            return of(&pcp_trace.taken, false)
                .chain(of(&pcp_trace.drained, true))
                .collect();
        }
        // Movable lists first: the trace shows their refills clearly.
        let mut found = self.free_before_refill(cpu, lo, hi);
        found.sort_by_key(|(list, _)| {
            let movable = list % 3 == MigrateType::Movable as usize;
            (movable == self.kernel_first, *list)
        });
        let blocks = |(list, pfns): (usize, Vec<u32>)| {
            let order = (list / 3) as u8;
            let blocks = pfns.into_iter().map(|p| (p, order));
            (list, false, blocks.collect())
        };
        found.into_iter().map(blocks).collect()
    }

    /// What a CPU allocated from each of its lists before it refilled it for the first time: that had been
    /// waiting there, if it was free at the start and no other CPU took it first.
    fn free_before_refill(&self, cpu: usize, lo: u32, hi: u32) -> Vec<(usize, Vec<u32>)> {
        let Some(lists) = self.evidence.before_refill.get(cpu) else {
            return vec![];
        };
        let mut all = vec![];
        for (list, pfns) in lists.iter().enumerate() {
            let mut seen = std::collections::HashSet::new();
            let waited = |p: &u32| {
                (lo..hi).contains(p)
                    && self.causes.first[*p as usize] == FIRST_ALLOC
                    && self.takers[(p - lo) as usize].is_some_and(|t| t.cpu == cpu)
                    && seen.insert(*p)
            };
            // From a block that was whole, a list was refilled.
            let own = pfns.iter().take_while(|p| !self.used_up.was_whole(**p));
            all.push((list, own.copied().filter(waited).collect()));
        }
        all
    }

    /// Whether page flags allow a block to have waited. On a per-CPU list it has none; one that was
    /// freed after they were read still shows what it had been.
    fn may_wait(&self, pfn: u32) -> bool {
        let freed = self.pcp_trace.is_some() || self.before.freed(pfn).is_some();
        let off = |f: u64| f == 0 || freed && f & BUDDY == 0;
        self.flags.is_none_or(|f| off(f.frame(pfn.into())))
    }
}

/// Turn of the first block without an allocation: after all those with one.
const UNTAKEN: usize = usize::MAX / 2;

/// The per-CPU lists of a zone, to be filled.
pub(super) struct ZonePcp<'a> {
    pub(super) zone: usize,
    /// The zone at the start.
    pub(super) zone_frames: &'a ZoneFrames,
    /// Frames that the anchor's buddy lists do not show.
    pub(super) beyond: &'a [Option<u8>],
    pub(super) touched: &'a TouchedFrames,
    pub(super) before: &'a BeforeAnchor,
    pub(super) pcp_trace: Option<&'a PcpTrace>,
    pub(super) types: &'a BlockTypes,
    /// The first allocation of each frame.
    pub(super) takers: &'a [Option<Taker>],
    pub(super) used_up: &'a UsedUp,
}

/// A free block, a page or a huge page, that may have been held back.
struct Candidate {
    /// How likely: on no buddy list by its flags, or huge and beyond what the anchor shows; beyond it,
    /// and in how large a block; touched before the anchor; shown there, but small.
    class: (u8, u8),
    /// Its turn among first allocations; none at all is the last.
    turn: usize,
    cpu: Option<usize>,
    mt: MigrateType,
    pfn: u32,
    order: u8,
}

impl ZonePcp<'_> {
    /// Fills them: with what waited there, then with what is free in small pieces, held back by the
    /// CPU that allocated it first. `shown` is what the anchor shows of each CPU's lists.
    pub(super) fn fill(&self, waiting: PcpBlocks, shown: &[PcpFacts]) -> Vec<SetStart> {
        let PcpBlocks {
            heads: mut lists,
            tails,
            mut left,
            ..
        } = waiting;
        let mut chosen = vec![];
        for mut c in self.candidates() {
            let Some((cpu, mt)) = self.list_for(&c, &left) else {
                continue;
            };
            left[cpu] -= 1 << c.order;
            (c.cpu, c.mt) = (Some(cpu), mt);
            chosen.push(c);
        }
        chosen.sort_by_key(|c| c.turn);
        for c in chosen {
            if let Some(cpu) = c.cpu {
                lists[cpu][list_index(Order(c.order), c.mt)].push((c.pfn, c.order));
            }
        }
        let ends = lists.iter_mut().zip(tails);
        for (list, tail) in ends.flat_map(|(l, t)| l.iter_mut().zip(t)) {
            list.extend(tail.into_iter().rev());
        }
        let block = |(pfn, order)| FreeBlock {
            pfn,
            order,
            mt: self.types.at(pfn),
        };
        let set = |(cpu, lists): (usize, Vec<Vec<(u32, u8)>>)| SetStart {
            zone: self.zone,
            cpu,
            tuning: shown.get(cpu).map(|s| (s.high as i32, s.batch as i32, 0)),
            lists: lists
                .into_iter()
                .map(|l| l.into_iter().map(block).collect::<Vec<_>>())
                .enumerate()
                .filter(|(_, l)| !l.is_empty())
                .collect(),
        };
        lists.into_iter().enumerate().map(set).collect()
    }

    /// CPU and type of the list that a candidate is put on, among the CPUs that have pages `left` to be
    /// found: its own, unless that is known to have held nothing else.
    fn list_for(&self, c: &Candidate, left: &[u64]) -> Option<(usize, MigrateType)> {
        use MigrateType::{Movable, Reclaimable, Unmovable};
        let has_room = |cpu: &usize| left.get(*cpu).is_some_and(|&n| n >= 1 << c.order);
        let cpus = || c.cpu.into_iter().chain(0..left.len()).filter(has_room);
        let own = cpus().next()?;
        let types = [c.mt, Movable, Reclaimable, Unmovable];
        let Some(pcp_trace) = self.pcp_trace else {
            return Some((own, c.mt));
        };
        let lists = types
            .iter()
            .flat_map(|mt| cpus().map(move |cpu| (cpu, *mt)));
        let mut deep = lists.filter(|(cpu, mt)| pcp_trace.has_depth(*cpu, c.order, *mt));
        Some(deep.next().unwrap_or((own, c.mt)))
    }

    /// All candidates, the likeliest first.
    fn candidates(&self) -> Vec<Candidate> {
        let lo = self.zone_frames.lo;
        let free = |k: &FrameState| matches!(k, FrameState::Free | FrameState::AnyPcp);
        let mut free: Vec<bool> = self.zone_frames.states.iter().map(free).collect();
        let mut all = self.freed_before();
        // Blocks from this order on are not cut up for the lists; those that the anchor does not show waited there whole.
        let huge_order = self.zone_frames.geometry.huge_order.0;
        for c in &all {
            let k = (c.pfn - lo) as usize;
            free[k..k + (1 << c.order)].fill(false);
        }
        for b in coalesce(lo, &free, self.types) {
            let huge =
                b.order >= huge_order && self.beyond[(b.pfn - lo) as usize] >= Some(huge_order);
            let order = if huge { huge_order } else { 0 };
            for pfn in (b.pfn..b.pfn + (1 << b.order)).step_by(1 << order) {
                let k = (pfn - lo) as usize;
                if self.used_up.was_whole(pfn) {
                    continue;
                }
                let own = Some(self.types.at(pfn)).filter(|t| t.is_ordinary());
                let (turn, cpu, mt) = match self.takers[k] {
                    Some(t) => (t.turn, Some(t.cpu), t.mt),
                    None => (usize::MAX, None, own.unwrap_or(MigrateType::Movable)),
                };
                let class = match self.beyond[k] {
                    _ if huge || self.zone_frames.states[k] == FrameState::AnyPcp => (0, 0),
                    Some(order) if !self.touched.is(pfn) => (0, order),
                    _ if self.touched.is(pfn) && b.order < huge_order => (1, 0),
                    _ if b.order < huge_order => (2, b.order),
                    _ => continue,
                };
                all.push(Candidate {
                    class,
                    turn,
                    cpu,
                    mt,
                    pfn,
                    order,
                });
            }
        }
        all.sort_by_key(|c| (c.class, c.turn, c.pfn));
        all
    }

    /// Blocks that a CPU freed before the anchor and that are on no buddy list: what was freed last is
    /// taken first.
    fn freed_before(&self) -> Vec<Candidate> {
        let (lo, geometry) = (self.zone_frames.lo, self.zone_frames.geometry);
        let loose = |p: u32| {
            let k = p.checked_sub(lo).map(|k| k as usize);
            k.and_then(|k| self.zone_frames.states.get(k)) == Some(&FrameState::AnyPcp)
        };
        let waits =
            |(_, b): &(usize, HostBlock)| is_cached(b.order, geometry) && b.frames().all(loose);
        let blocks = self.before.freed_blocks().filter(waits);
        let of = |(n, (cpu, block)): (usize, (usize, HostBlock))| {
            let own = Some(self.types.at(block.pfn)).filter(|t| t.is_ordinary());
            let taker = self.takers[(block.pfn - lo) as usize];
            Candidate {
                class: (0, 0),
                turn: taker.map_or(UNTAKEN + n, |t| t.turn),
                cpu: Some(cpu),
                mt: taker.map(|t| t.mt).or(own).unwrap_or(MigrateType::Movable),
                pfn: block.pfn,
                order: block.order,
            }
        };
        blocks.enumerate().map(of).collect()
    }
}
