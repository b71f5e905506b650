//! The scan of the generations of one zone or node at one priority of a reclaim: which pages go, and how many. What happens
//! to a page that is taken is as with active and inactive lists. `spec: 4.10`
//!
//! Invariant: a scan ends. It grows older at most once, and each batch of it takes a page off the oldest generation.

use super::batch::{PageBatch, PassOutcome};
use super::fate::Pass;
use super::lru_scan::Work;
use super::scan_control::ScanControl;
use super::waits::turn;
use crate::evict::Verdicts;
use crate::frame::{CpuId, FrameIx, LruId, PageFlags};
use crate::host::Host;
use crate::kernel::{Aging, GenerationRules, ScanBudget};
use crate::lru::{DEF_PRIORITY, GENERATION_BATCH, MOST, SWAP_CLUSTER_MAX, tier};
use crate::manager::Manager;
use crate::need::{Answer, Need};
use crate::placement::{End, List};

/// The scan of the generations of one zone (or node) at one priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct GenerationScan {
    lru: LruId,
    rules: GenerationRules,
    /// Pages that the pass looks at, where that does not change.
    budget: Option<u64>,
    scanned: u64,
    /// Number of freed pages at which the scan ends.
    enough: u64,
    /// A batch is under way.
    under_way: bool,
    aged: bool,
    /// Dirty pages of files that it met, and left to the flushers.
    dirty: u64,
}

impl GenerationScan {
    /// Begins the scan of a zone or node.
    pub fn new<H: Host>(
        m: &Manager<'_, H>,
        lru: LruId,
        rules: GenerationRules,
        sc: &ScanControl,
        batch: &mut PageBatch,
    ) -> GenerationScan {
        batch.of(lru);
        let once = rules.budget == ScanBudget::Once;
        GenerationScan {
            lru,
            rules,
            budget: once.then(|| m.evictable_pages(lru, sc) >> sc.priority),
            scanned: 0,
            // A request wants no more; kswapd decides by itself.
            enough: match sc.kswapd {
                true => u64::MAX,
                false => sc.reclaimed + SWAP_CLUSTER_MAX,
            },
            under_way: false,
            aged: false,
            dirty: 0,
        }
    }

    /// Whether it may end here: no page is isolated.
    pub fn is_between_batches(&self) -> bool {
        !self.under_way
    }

    /// Continues until something is needed; `None` when the scan is done.
    pub fn step<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        work: Work,
        answer: Answer,
    ) -> Option<Need> {
        let Work { sc, batch } = work;
        if self.under_way {
            let verdicts = match answer {
                Answer::Evicted(verdicts) => verdicts,
                _ => Verdicts::NONE,
            };
            let pages = batch.answered(m, cpu, sc, verdicts);
            if let Some(need) = self.after(m, cpu, Work { sc, batch }, pages) {
                return Some(need);
            }
        }
        loop {
            if sc.unreported.0 >= SWAP_CLUSTER_MAX as u32 {
                return Some(turn(sc));
            }
            let nr = self.next_batch(m, sc);
            let file = match nr {
                0 => None,
                _ => self.choose(m, sc),
            };
            let Some(file) = file else {
                break;
            };
            let looked = m.isolate_generation((self.lru, file), nr, sc, &mut batch.held);
            self.scanned += looked.pages;
            self.dirty += looked.dirty;
            batch.begin(sc, Pass::First);
            let pages = batch.run(m, cpu, sc);
            if let Some(need) = self.after(m, cpu, Work { sc, batch }, pages) {
                return Some(need);
            }
        }
        let dirty = core::mem::take(&mut self.dirty);
        (dirty > 0).then_some(Need::WakeFlushers(dirty))
    }

    /// Continues after a part of a batch.
    fn after<H: Host>(
        &mut self,
        m: &mut Manager<'_, H>,
        cpu: CpuId,
        work: Work,
        pages: PassOutcome,
    ) -> Option<Need> {
        self.under_way = !matches!(pages, PassOutcome::Done);
        match pages {
            PassOutcome::Ask => Some(Need::Evict),
            PassOutcome::Writeback(ix) => Some(Need::PageWriteback(m.map.pfn(ix))),
            PassOutcome::Done => {
                work.batch.putback_lru(m, cpu);
                None
            }
        }
    }

    /// Pages of the next batch; 0 if the scan has done enough.
    fn next_batch<H: Host>(&self, m: &Manager<'_, H>, sc: &ScanControl) -> u64 {
        if sc.reclaimed >= self.enough {
            return 0;
        }
        match self.budget {
            Some(all) => all.saturating_sub(self.scanned).min(GENERATION_BATCH),
            None => {
                let left = m.evictable_pages(self.lru, sc) >> sc.priority;
                let goes_on = self.scanned == 0 || self.scanned < left;
                if goes_on { GENERATION_BATCH } else { 0 }
            }
        }
    }

    /// The kind whose oldest generation is evicted next; `None` if that of neither may be. Generations grow older first if
    /// that is due.
    fn choose<H: Host>(&mut self, m: &mut Manager<'_, H>, sc: &ScanControl) -> Option<bool> {
        m.drop_empty_generations(self.lru, &self.rules, sc);
        let kind = m.kind_to_evict(self.lru, sc);
        let put_off = sc.priority == DEF_PRIORITY
            && match self.rules.budget {
                ScanBudget::EachBatch => true,
                ScanBudget::Once => kind.is_some(),
            };
        // What is too young to be evicted does not get older by a new generation.
        let waits = kind.is_none() && m.oldest_are_too_young(self.lru, sc);
        let due = kind.is_none() || m.aging_is_due(self.lru, &self.rules, sc);
        if self.aged || put_off || waits || !due {
            return kind;
        }
        self.aged = true;
        m.age_generations(self.lru);
        m.drop_empty_generations(self.lru, &self.rules, sc);
        m.kind_to_evict(self.lru, sc)
    }
}

/// What was looked at for a batch.
struct Looked {
    /// Pages, isolated or spared.
    pages: u64,
    /// Dirty pages of files among them.
    dirty: u64,
}

impl<H: Host> Manager<'_, H> {
    /// Whether pages of a kind may be evicted at all.
    fn may_evict(&self, file: bool, sc: &ScanControl) -> bool {
        let swaps = self.nr_swap_pages > 0 && !sc.clean_only;
        file || swaps && self.policy.sysctl.swappiness > 0
    }

    /// Pages of the kinds that may be evicted, in all generations.
    pub(super) fn evictable_pages(&self, lru: LruId, sc: &ScanControl) -> u64 {
        let kinds = [false, true].into_iter();
        let kinds = kinds.filter(|&file| self.may_evict(file, sc));
        kinds.map(|file| self.lrus[lru.index()].of_kind(file)).sum()
    }

    fn drop_empty_generations(&mut self, lru: LruId, rules: &GenerationRules, sc: &ScanControl) {
        let evicts_anon = self.may_evict(false, sc);
        let g = &mut self.lrus[lru.index()].generations;
        g.drop_empty(true);
        if evicts_anon {
            let file = g.oldest[1];
            let before = g.oldest[0];
            g.drop_empty(false);
            if rules.aging == Aging::TwoLeft {
                g.oldest[0] = g.oldest[0].min(file.max(before));
            }
        }
    }

    fn aging_is_due(&self, lru: LruId, rules: &GenerationRules, sc: &ScanControl) -> bool {
        let g = &self.lrus[lru.index()].generations;
        let anon = self.may_evict(false, sc);
        match rules.aging {
            Aging::TwoLeft => {
                let kinds: &[bool] = if anon { &[false, true] } else { &[true] };
                !g.can_be_evicted(!anon) || g.count(!anon) == 3 && g.most_are_young(kinds)
            }
            Aging::FewerThanFour => {
                let most = g.count(true).max(if anon { g.count(false) } else { 0 });
                most < 4
            }
        }
    }

    /// The kind whose oldest generation is older, among those that may be evicted and whose oldest generation is not in use
    /// or too young; if both are as old, that of which fewer pages come back, weighed with swappiness.
    fn kind_to_evict(&self, lru: LruId, sc: &ScanControl) -> Option<bool> {
        let g = &self.lrus[lru.index()].generations;
        let ttl = self.policy.sysctl.lru_gen_min_ttl_ms;
        let may = |file: bool| {
            let old = self.now_ms.saturating_sub(g.born(file)) >= ttl;
            let any = g.oldest_page(file).is_some();
            self.may_evict(file, sc) && g.can_be_evicted(file) && old && any
        };
        match (may(false), may(true)) {
            (false, false) => None,
            (true, false) => Some(false),
            (false, true) => Some(true),
            (true, true) if g.oldest[0] != g.oldest[1] => Some(g.oldest[1] < g.oldest[0]),
            (true, true) => {
                let swappiness = u128::from(self.policy.sysctl.swappiness.min(200));
                let [anon, file] = [0, 1].map(|kind| {
                    let r = &g.refaults[kind];
                    (u128::from(r.came_back[0]), u128::from(r.tried[0]) + 1)
                });
                // Rates as fractions, each against the other's weight.
                let costs_less =
                    anon.0 * file.1 * (200 - swappiness) < file.0 * anon.1 * swappiness;
                Some(!costs_less)
            }
        }
    }

    /// Whether `min_ttl_ms` alone keeps the pages of an oldest generation that may be evicted.
    fn oldest_are_too_young(&self, lru: LruId, sc: &ScanControl) -> bool {
        let g = &self.lrus[lru.index()].generations;
        let ttl = self.policy.sysctl.lru_gen_min_ttl_ms;
        [false, true].into_iter().any(|file| {
            let any = g.oldest_page(file).is_some();
            let young = self.now_ms.saturating_sub(g.born(file)) < ttl;
            self.may_evict(file, sc) && g.can_be_evicted(file) && any && young
        })
    }

    /// A new generation begins. Pages that were used by a mapping join it; all others grow older.
    fn age_generations(&mut self, lru: LruId) {
        let now = self.now_ms;
        self.lrus[lru.index()].generations.age(&self.frames, now);
        for file in [false, true] {
            // From the oldest page on, as long as any page at all was used; the youngest generation is new, and empty.
            for behind in (1..MOST).rev() {
                let mut next = self.lrus[lru.index()].generations.last_behind(file, behind);
                while let Some(ix) = next
                    && self.flag_counts.nr_used > 0
                {
                    let before = self.frames.table.prev(ix);
                    next = (before != FrameIx::NIL).then_some(before);
                    self.rejuvenate(lru, ix, file);
                }
            }
        }
    }

    /// A page that was used by a mapping since the last look joins the youngest generation.
    fn rejuvenate(&mut self, lru: LruId, ix: FrameIx, file: bool) {
        let s = self.frames.state(ix);
        if !s.flags().contains(PageFlags::USED) {
            return;
        }
        let mut pages = self.pages();
        pages.put_flags(ix, s.flags() - PageFlags::YOUNG);
        let frames = &self.frames;
        let g = &mut self.lrus[lru.index()].generations;
        g.unlink(frames, ix);
        g.join(frames, ix, frames.state(ix), file, (0, End::Head));
    }

    /// Isolates up to `nr` pages of the oldest generation of a kind, from its old end; folios count whole. Pages that are
    /// spared go to the next generation, at most as many as a batch has.
    fn isolate_generation(
        &mut self,
        (of, file): (LruId, bool),
        nr: u64,
        sc: &mut ScanControl,
        held: &mut List,
    ) -> Looked {
        let (mut isolated, mut spared, mut dirty) = (0, 0, 0);
        while isolated < nr && spared < GENERATION_BATCH {
            let Some(ix) = self.lrus[of.index()].generations.oldest_page(file) else {
                break;
            };
            let s = self.frames.state(ix);
            let pages = u64::from(s.order().frames());
            let reads = s.reads();
            let g = &mut self.lrus[of.index()].generations;
            let waits = file
                && s.flags()
                    .intersects(PageFlags::DIRTY | PageFlags::WRITEBACK);
            let spares = g.spares(file, reads);
            let again = usize::from(tier(reads) > 0);
            g.refaults[usize::from(file)].tried[again] += pages;
            if !waits && !spares {
                self.isolate(of, ix, held);
                isolated += pages;
                continue;
            }
            g.unlink(&self.frames, ix);
            g.spare(&self.frames, ix, s, file);
            spared += pages;
            if waits {
                self.note_waiting(ix, sc);
                dirty += u64::from(s.flags().contains(PageFlags::DIRTY)) * pages;
            } else {
                self.reclaim.pgrefill += pages;
            }
        }
        self.count_scanned(of, isolated, sc);
        sc.unreported.0 += (isolated + spared) as u32;
        Looked {
            pages: isolated + spared,
            dirty,
        }
    }

    /// A page that waits for its device goes on when it is written.
    fn note_waiting(&mut self, ix: FrameIx, sc: &mut ScanControl) {
        let flags = self.frames.state(ix).flags();
        sc.backlog.dirty += 1;
        if flags.contains(PageFlags::WRITEBACK) {
            sc.backlog.writeback += 1;
            sc.backlog.again += u32::from(flags.contains(PageFlags::RECLAIM));
            self.pages().put_flags(ix, flags | PageFlags::RECLAIM);
        }
    }
}
