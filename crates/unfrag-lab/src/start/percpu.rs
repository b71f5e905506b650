//! What waited on the per-CPU lists at the start.
//!
//! The trace shows the blocks that a CPU took before it first refilled a list; those had been waiting
//! there. Small pieces that are free beyond what the anchor's buddy lists show were held back too, by
//! the CPU that allocated them first.

use super::arrange::{Ground, Known, coalesce, type_at};
use super::evidence::{Evidence, Touched};
use super::{FreeBlock, SetStart};
use crate::cause::{Causes, FIRST_ALLOC};
use unfrag::MigrateType;
use unfrag::pcp::{NR_LISTS, list_index};
use unfrag_linux::kpageflags::PageFlags;

/// Blocks that wait on per-CPU lists, by CPU and list, and pages that are still to be found for each.
pub(super) struct Waiting {
    lists: Vec<Vec<Vec<(u32, u8)>>>,
    left: Vec<u64>,
    pub(super) frames: Vec<bool>,
}

/// What the trace itself says was waiting. Movable lists come first: their refills are plain to see.
pub(super) fn waiting(
    lo: u32,
    len: usize,
    causes: &Causes,
    evidence: &Evidence,
    held: &[u64],
    kernel_first: bool,
    flags: Option<&PageFlags>,
) -> Waiting {
    let mut w = Waiting {
        lists: vec![vec![vec![]; NR_LISTS]; held.len()],
        left: held.to_vec(),
        frames: vec![false; len],
    };
    for (cpu, left) in w.left.iter_mut().enumerate() {
        let mut found = free_before_refill(cpu, lo, lo + len as u32, causes, evidence);
        found.sort_by_key(|(list, _)| {
            (
                (list % 3 == MigrateType::Movable as usize) == kernel_first,
                *list,
            )
        });
        for (list, pfns) in found {
            let order = (list / 3) as u8;
            for pfn in pfns {
                let k = (pfn - lo) as usize;
                let block = k..(k + (1 << order)).min(len);
                let whole =
                    block.len() == 1 << order && w.frames[block.clone()].iter().all(|f| !*f);
                // A page on a per-CPU list has no flag.
                let bare = flags.is_none_or(|f| f.of(pfn.into()) == 0);
                if *left >= 1 << order && whole && bare {
                    *left -= 1 << order;
                    w.frames[block].fill(true);
                    w.lists[cpu][list].push((pfn, order));
                }
            }
        }
    }
    w
}

/// What a CPU allocated from each of its lists before it refilled it for the first time: that had been
/// waiting there, if it was free at the start.
fn free_before_refill(
    cpu: usize,
    lo: u32,
    hi: u32,
    causes: &Causes,
    evidence: &Evidence,
) -> Vec<(usize, Vec<u32>)> {
    let Some(lists) = evidence.before_refill.get(cpu) else {
        return vec![];
    };
    let mut all = vec![];
    for (list, pfns) in lists.iter().enumerate() {
        let mut seen = std::collections::HashSet::new();
        let waited = |p: &u32| {
            (lo..hi).contains(p) && causes.first[*p as usize] == FIRST_ALLOC && seen.insert(*p)
        };
        all.push((list, pfns.iter().copied().filter(waited).collect()));
    }
    all
}

/// Order of huge pages. Blocks from it on are not cut up for the per-CPU lists; those that the anchor
/// does not show waited there as huge pages.
const HUGE: u8 = 9;

/// The per-CPU lists of a zone, to be filled.
pub(super) struct Sets<'a> {
    pub(super) zone: usize,
    /// The zone at the start.
    pub(super) ground: &'a Ground,
    /// Frames that the anchor's buddy lists do not show.
    pub(super) beyond: &'a [Option<u8>],
    pub(super) touched: &'a Touched,
    pub(super) types: &'a [(u32, MigrateType)],
    /// Who took each frame first.
    pub(super) takers: &'a [Option<(usize, usize, MigrateType)>],
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

impl Sets<'_> {
    /// Fills them: with what waited there, then with what is free in small pieces, held back by the
    /// CPU that allocated it first. `shown` is (count, high, batch) of each CPU at the anchor.
    pub(super) fn fill(&self, waiting: Waiting, shown: &[(u64, u64, u64)]) -> Vec<SetStart> {
        let Waiting {
            mut lists,
            mut left,
            ..
        } = waiting;
        let mut chosen = vec![];
        for mut c in self.candidates() {
            let has_room = |cpu: &usize| left.get(*cpu).is_some_and(|&n| n >= 1 << c.order);
            let any = (0..left.len()).find(has_room);
            let Some(cpu) = c.cpu.filter(has_room).or(any) else {
                continue;
            };
            left[cpu] -= 1 << c.order;
            c.cpu = Some(cpu);
            chosen.push(c);
        }
        chosen.sort_by_key(|c| c.turn);
        for c in chosen {
            if let Some(cpu) = c.cpu {
                lists[cpu][list_index(c.order, c.mt)].push((c.pfn, c.order));
            }
        }
        let block = |(pfn, order)| FreeBlock {
            pfn,
            order,
            mt: type_at(pfn, self.types),
        };
        let set = |(cpu, lists): (usize, Vec<Vec<(u32, u8)>>)| SetStart {
            zone: self.zone,
            cpu,
            tuning: shown.get(cpu).map(|s| (s.1 as i32, s.2 as i32, 0)),
            lists: lists
                .into_iter()
                .map(|l| l.into_iter().map(block).collect::<Vec<_>>())
                .enumerate()
                .filter(|(_, l)| !l.is_empty())
                .collect(),
        };
        lists.into_iter().enumerate().map(set).collect()
    }

    /// All candidates, the likeliest first.
    fn candidates(&self) -> Vec<Candidate> {
        let lo = self.ground.lo;
        let free = |k: &Known| matches!(k, Known::Free | Known::Loose);
        let free: Vec<bool> = self.ground.known.iter().map(free).collect();
        let mut all = vec![];
        for b in coalesce(lo, &free, self.types) {
            let huge = b.order >= HUGE && self.beyond[(b.pfn - lo) as usize] >= Some(HUGE);
            let order = if huge { HUGE } else { 0 };
            for pfn in (b.pfn..b.pfn + (1 << b.order)).step_by(1 << order) {
                let k = (pfn - lo) as usize;
                let own = Some(type_at(pfn, self.types)).filter(|t| t.is_ordinary());
                let (turn, cpu, mt) = match self.takers[k] {
                    Some((turn, cpu, mt)) => (turn, Some(cpu), mt),
                    None => (usize::MAX, None, own.unwrap_or(MigrateType::Movable)),
                };
                let class = match self.beyond[k] {
                    _ if huge || self.ground.known[k] == Known::Loose => (0, 0),
                    Some(order) if !self.touched.is(pfn) => (0, order),
                    _ if self.touched.is(pfn) => (1, 0),
                    _ if b.order < HUGE => (2, b.order),
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
}
