//! What each zone has for needs after each means: for certain, by the model, and at most.
//!
//! - *For certain*: free lists as they are; of what a means frees beside them a part is not counted ([`NOT_PROMISED`]), nor as
//!   many blocks as pages are pinned, since page flags do not show which, and none where that is not told; nor those that are
//!   used again at once ([`READ_BACK`]).
//! - *By the model*: the same without these.
//! - *At most*: every block without a frame that stays, as far as the zone's pages go.
//!
//! Invariant: nothing is certain of a zone of which a file lacks that tells what is kept back. Without page flags nothing is
//! certain but what is free now.

use super::layout::{self, Leaves};
use super::means::Means;
use super::supply::{Lists, ORDERS, Supply, empty_view, pages, perfect, spoil, take};
use crate::doctor::compactor::{self, CompactionRules};
use crate::doctor::forecast::{KernelFeatures, targets};
use crate::doctor::frames::FrameUse;
use crate::doctor::zone_blocks::{Emptied, ZoneBlocks};
use crate::host::Zone;
use crate::usable::ZoneView;
use unfrag_eras::ZoneKind;
use unfrag_eras::kernel::MarkCheck;

/// Of what a means frees beside free lists, one part in so many is not promised: hosts gave up to 2 % less than the model
/// (`docs/huge-pages-at-this-uptime.md`).
const NOT_PROMISED: u64 = 20;
/// The same of runs beyond the largest block, each of which one page spoils: up to 7 % less (`docs/gate-a-start.md`).
const NOT_PROMISED_OF_RUNS: u64 = 8;
/// Whole blocks that may be used again at once after caches were dropped, as the programs that run read their files back,
/// and no more than one part of [`READ_BACK_PART`]: they are not promised. A host of 23 GiB used 4 to 19, most
/// of them from smaller blocks, so the model takes none off.
const READ_BACK: u64 = 24;
const READ_BACK_PART: u64 = 64;
/// Order of the blocks that page flags are counted in.
const BLOCK_ORDER: u8 = 9;
/// Pages that a CPU takes onto its lists at once at most: 63, doubled up to five times. `spec: 3.2`
const MOST_TAKEN: u64 = 63 << 5;
/// More pages than any host has.
const MOST_PAGES: u64 = 1 << 48;
/// Pages that a zone keeps where that is not known: nothing of it is promised.
const CLOSED: u64 = 1 << 50;

/// What is known of a host beside its zones.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// What its kernel does about compaction.
    pub kernel: KernelFeatures,
    /// The watermark tests that all have to pass.
    pub checks: Vec<MarkCheck>,
    /// Pages that are pinned; `None` where no file tells, so that any number may be.
    pub pinned: Option<u64>,
    /// Order of a pageblock.
    pub pageblock_order: u32,
    /// Whether a run of compaction is followed as its kernel makes it: older ones move memory into wholly free blocks too.
    pub is_modelled: bool,
    /// Whether runs beyond the largest block are asked for.
    pub asks_for_runs: bool,
}

/// A zone after a means.
#[derive(Clone, Debug)]
pub(super) struct Outlook {
    /// For certain.
    pub sure: Supply,
    /// By the model; `None` where there is none, as without page flags.
    pub expected: Option<Supply>,
    /// At most.
    pub most: Supply,
}

impl Outlook {
    /// Adds memory that the zone does not manage yet and that comes when it is asked for, in whole blocks of an order.
    /// Whether these are neighbours is not known.
    pub fn add(&mut self, blocks: u64, order: u8) {
        let order = order.min(ORDERS as u8 - 1);
        let blocks = blocks.min(MOST_PAGES >> order);
        let mut apart = [0; ORDERS];
        apart[usize::from(order)] = blocks;
        let joined = perfect(blocks << order);
        let of_model = self.expected.as_mut().map(|e| (e, apart));
        for (supply, more) in [(&mut self.sure, apart), (&mut self.most, joined)]
            .into_iter()
            .chain(of_model)
        {
            let pairs = supply.blocks.iter_mut().zip(more);
            pairs.for_each(|(n, more)| *n = n.saturating_add(more));
            let free = &mut supply.view.free_pages;
            *free = free.saturating_add(blocks << order);
        }
    }
}

/// A zone after each means, in the order of [`Means::ALL`]; `None` if its kind is none that requests use.
pub(super) fn outlooks(
    zone: &Zone,
    blocks: Option<&ZoneBlocks>,
    known: &Known,
) -> Option<[Outlook; 4]> {
    let blocks = blocks.filter(|b| !b.blocks.is_empty());
    let of = Of {
        zone,
        known,
        kind: ZoneKind::from_name(&zone.name)?,
        view: zone.view(),
        runs: blocks.map(|b| layout::unmoved(b, Emptied::default())),
    };
    Some(Means::ALL.map(|means| {
        let mut outlook = match (means, blocks.zip(of.runs.as_ref())) {
            (Means::Now, _) => of.now(),
            (_, Some((blocks, before))) => of.after(blocks, before, means),
            (_, None) => of.after_unseen(means),
        };
        outlook.sure.on_lists = MOST_TAKEN;
        outlook
    }))
}

struct Of<'a> {
    zone: &'a Zone,
    known: &'a Known,
    kind: ZoneKind,
    view: Option<ZoneView>,
    /// Free blocks and runs, as page flags show them now.
    runs: Option<Lists>,
}

impl Of<'_> {
    fn orders(&self) -> usize {
        self.zone.orders().unwrap_or(11).clamp(1, ORDERS)
    }

    fn largest(&self) -> u8 {
        self.orders() as u8 - 1
    }

    /// Whether all is known that keeps free memory back.
    fn is_told(&self) -> bool {
        self.zone.tells_what_is_kept() && self.zone.cma_pages.is_some()
    }

    /// Pages that the watermark test may take off for the high-atomic reserve: many kernels take off its pageblocks whole.
    fn reserve(&self, view: &ZoneView) -> u64 {
        let blocks = self
            .zone
            .pageblocks_of("HighAtomic")
            .unwrap_or(0)
            .min(MOST_PAGES);
        let pages = blocks.saturating_mul(1 << self.known.pageblock_order.min(16));
        pages.max(view.highatomic_pages)
    }

    fn free_pages(&self) -> u64 {
        let counted = self.zone.info.as_ref().map(|i| i.free);
        let listed = self.zone.free_pages;
        // A list that the kernel stopped counting tells too little.
        let most = match self.zone.is_capped {
            true => counted.max(listed),
            false => listed.or(counted),
        };
        most.unwrap_or(0).min(MOST_PAGES)
    }

    fn supply(&self, blocks: Lists, view: ZoneView, unknown: u64) -> Supply {
        Supply {
            node: self.zone.node,
            blocks,
            view,
            kept: [
                self.zone.protection.unwrap_or(unknown),
                self.zone.protection_from_kernel.unwrap_or(unknown),
            ],
            on_lists: 0,
            checks: self.known.checks.clone(),
        }
    }

    /// Nothing.
    fn none(&self) -> Supply {
        let view = empty_view(self.kind, self.orders());
        self.supply([0; ORDERS], view, CLOSED)
    }

    fn now(&self) -> Outlook {
        let Some(view) = &self.view else {
            // Free pages may be told all the same.
            let most = self.at_most(perfect(self.free_pages()), self.free_pages());
            return Outlook {
                sure: self.none(),
                expected: None,
                most,
            };
        };
        let sure = match self.is_told() {
            true => {
                let mut view = view.clone();
                // Kernels to 4.3 keep blocks of this type for requests that may not wait.
                let old = self.zone.free_of("Reserve").unwrap_or_default();
                view.isolated_by_order.resize(self.orders(), 0);
                let pairs = view.isolated_by_order.iter_mut().zip(old);
                pairs.for_each(|(n, old)| *n = n.saturating_add(*old));
                view.highatomic_pages = self.reserve(&view);
                self.with_runs(view, true)
            }
            false => self.none(),
        };
        let most = match self.zone.is_capped {
            true => self.at_most(perfect(self.free_pages()), self.free_pages()),
            false => {
                let mut view = view.clone();
                if view.cma_by_order.is_none() {
                    view.cma_by_order = Some(view.guess_cma(false));
                }
                // The reserve is given up before a request fails for good.
                view.highatomic_by_order.clear();
                view.highatomic_pages = 0;
                self.with_runs(view, false)
            }
        };
        Outlook {
            expected: self.is_told().then(|| sure.clone()),
            sure,
            most,
        }
    }

    /// The free lists with the runs that page flags show. Without them there are none at least, and as many at most as the
    /// largest blocks would make.
    fn with_runs(&self, view: ZoneView, at_least: bool) -> Supply {
        let largest = self.largest();
        let at = usize::from(largest);
        let mut blocks = [0; ORDERS];
        let ordinary = view.ordinary();
        blocks[..ordinary.len()].copy_from_slice(&ordinary);
        let n = blocks[at];
        let mut larger = match self.runs {
            Some(runs) => runs,
            None if at_least => [0; ORDERS],
            None => perfect(n << at),
        };
        larger[..at].fill(0);
        if at_least {
            // Which of them are set aside is not known: a whole pageblock that is, free beside others, may be in any run.
            let from = at.min(BLOCK_ORDER.into());
            let all = view.free_by_order.iter().zip(&ordinary).skip(from);
            let aside = all.map(|(all, ordinary)| all.saturating_sub(*ordinary));
            spoil(&mut larger, largest, aside.fold(0, u64::saturating_add));
        }
        larger[at] = 0;
        let in_runs = pages(&larger, largest) >> largest;
        take(&mut larger, largest, in_runs.saturating_sub(n));
        larger[at] = 0;
        blocks[at] = n - (pages(&larger, largest) >> largest).min(n);
        for (to, from) in blocks.iter_mut().zip(larger).skip(at + 1) {
            *to = from;
        }
        let unknown = if at_least { CLOSED } else { 0 };
        self.supply(blocks, view, unknown)
    }

    /// What no means gives more of: these blocks, as far as so many pages go.
    fn at_most(&self, blocks: Lists, free: u64) -> Supply {
        let mut view = empty_view(self.kind, self.orders());
        view.free_pages = free;
        view.min = self.zone.marks.map_or(0, |m| m[0]);
        let mut supply = self.supply(blocks, view, 0);
        // How many of the pages are in small blocks then is not known, so the sum alone is tested.
        supply.checks = vec![MarkCheck::BlockExists];
        supply
    }

    /// After a means of which page flags show nothing.
    fn after_unseen(&self, means: Means) -> Outlook {
        let z = self.zone;
        let more = [z.pcp, z.reclaimable.filter(|_| means.drops())];
        let free = more
            .into_iter()
            .flatten()
            .fold(self.free_pages(), u64::saturating_add);
        let free = free.min(MOST_PAGES);
        let huge = z.huge_order.min(ORDERS as u8 - 1);
        let movable = z.managed.map(|managed| {
            let blocks = managed >> huge;
            let movable = blocks.saturating_sub(z.unmovable_blocks().unwrap_or(0));
            movable.max(z.whole_blocks(huge).unwrap_or(blocks))
        });
        let whole = (free >> huge).min(movable.unwrap_or(u64::MAX));
        let mut blocks = perfect(whole << huge);
        // What goes into no huge page can be in smaller blocks.
        let below = usize::from(huge).saturating_sub(1);
        blocks[below] += (free - (whole << huge)).div_ceil(1 << below);
        Outlook {
            sure: self.now().sure,
            expected: None,
            most: self.at_most(blocks, free),
        }
    }

    fn after(&self, blocks: &ZoneBlocks, before: &Lists, means: Means) -> Outlook {
        let kernel = self.known.kernel;
        let emptied = Emptied {
            lists: kernel.tunes_lists,
            caches: means.drops(),
        };
        let unmoved = layout::unmoved(blocks, emptied);
        let (mut by_model, mut emptied_blocks) = (unmoved, unmoved);
        if means.compacts() && kernel.compacts {
            let targets = targets(self.zone, blocks);
            let mut rules = CompactionRules {
                unevictable: kernel.unevictable,
                by_order: kernel.by_order,
                synced: true,
                emptied,
                targets: &targets,
            };
            let done = compactor::compacted(blocks, &rules);
            by_model = layout::compacted(blocks, &rules, &done, true);
            rules.synced = false;
            // A run that a folio ends early empties nothing for certain, and has moved memory into blocks that were partly free.
            match compactor::compact(blocks, &rules).stopped {
                None => emptied_blocks = layout::compacted(blocks, &rules, &done, false),
                Some(_) => emptied_blocks[..usize::from(BLOCK_ORDER)].fill(0),
            }
        }
        let of = |kind, is| if is { blocks.pages(kind) } else { 0 };
        let free = match self.free_pages() {
            0 => blocks.pages(FrameUse::Free),
            free => free,
        };
        let freed =
            free + of(FrameUse::PerCpu, emptied.lists) + of(FrameUse::CleanCache, emptied.caches);
        // Of smaller blocks that dropped caches leave it is not known whether they are in blocks that are set aside.
        if means.drops() && self.has_blocks_aside() {
            emptied_blocks[..usize::from(BLOCK_ORDER)].fill(0);
        }
        let is_sure = self.is_told() && (self.known.is_modelled || !means.compacts());
        let sure = match is_sure {
            true => {
                let sure = self.set_aside(self.promised(before, emptied_blocks, means), freed);
                self.at_least_now(sure, means)
            }
            false => self.none(),
        };
        let leaves = Leaves {
            unevictable: kernel.unevictable,
            slabs: means.drops(),
            huge_pages: self.known.asks_for_runs,
        };
        // Pages on lists that are taken for others: each may be all that keeps a block.
        let found = of(FrameUse::PerCpu, true);
        let missed = self
            .zone
            .pcp
            .unwrap_or(0)
            .min(MOST_PAGES)
            .saturating_sub(found);
        let free = free
            + found
            + missed
            + of(FrameUse::CleanCache, emptied.caches)
            + of(FrameUse::Slab, means.drops());
        let mut most = match means.compacts() && kernel.compacts {
            // Slab may be freed anywhere, so that of small blocks only their sum has a bound; and what can be emptied bounds
            // the whole blocks also where nothing moves.
            _ if means.drops() => {
                let mut most = layout::emptiable(blocks, leaves);
                let rest = free.saturating_sub(pages(&most, BLOCK_ORDER));
                let below = usize::from(BLOCK_ORDER) - 1;
                most[..below].fill(0);
                most[below] = rest.div_ceil(1 << below);
                most
            }
            true => layout::emptiable(blocks, leaves),
            false => unmoved,
        };
        most[usize::from(BLOCK_ORDER)] += missed;
        Outlook {
            sure,
            expected: self.is_told().then(|| self.set_aside(by_model, freed)),
            most: self.at_most(most, free),
        }
    }

    /// What is free now is free afterwards too: whole blocks, as nothing is moved into them, and all if nothing moves. It is
    /// the better answer where it is not known which blocks are set aside.
    fn at_least_now(&self, after: Supply, means: Means) -> Supply {
        let mut now = self.now().sure;
        if means.compacts() {
            now.blocks[..usize::from(BLOCK_ORDER)].fill(0);
        }
        // Whole blocks count first, then all; compaction moves memory into the others.
        let size = |s: &Supply| (pages(&s.blocks, BLOCK_ORDER), pages(&s.blocks, 0));
        let (before, after_it) = (size(&now), size(&after));
        let mut best = match before > after_it && (!means.compacts() || before.0 > after_it.0) {
            true => now,
            false => after,
        };
        if means.drops() {
            let part = (pages(&best.blocks, BLOCK_ORDER) >> BLOCK_ORDER) / READ_BACK_PART;
            spoil(&mut best.blocks, BLOCK_ORDER, READ_BACK.min(part));
        }
        best
    }

    /// What of the blocks after a means is promised.
    fn promised(&self, before: &Lists, mut after: Lists, means: Means) -> Lists {
        let whole = |l: &Lists| pages(l, BLOCK_ORDER) >> BLOCK_ORDER;
        let gained = whole(&after).saturating_sub(whole(before));
        let largest = usize::from(self.largest());
        for (order, (n, before)) in after.iter_mut().zip(before).enumerate() {
            let part = match order > largest {
                true => NOT_PROMISED_OF_RUNS,
                false => NOT_PROMISED,
            };
            *n -= n.saturating_sub(*before).div_ceil(part);
        }
        let pinned = self.known.pinned.unwrap_or(u64::MAX);
        spoil(&mut after, BLOCK_ORDER, pinned.min(gained));
        if means.drops() {
            // Page cache that is pinned stays, and may be in the smaller blocks that the rest of it leaves.
            let left = pinned - pinned.min(gained);
            spoil(&mut after[..usize::from(BLOCK_ORDER)], 0, left);
        }
        after
    }

    /// Whether some pageblocks are set aside; page flags do not show which.
    fn has_blocks_aside(&self) -> bool {
        let aside = self
            .zone
            .pageblocks_where(|t| matches!(t, "HighAtomic" | "Isolate" | "Reserve" | "CMA"));
        aside != Some(0)
    }

    /// A zone of whose blocks some are set aside; page flags do not show which.
    fn set_aside(&self, mut blocks: Lists, free: u64) -> Supply {
        let view = self.view.clone();
        let mut view = view.unwrap_or_else(|| empty_view(self.kind, self.orders()));
        let shift = self
            .known
            .pageblock_order
            .saturating_sub(BLOCK_ORDER.into());
        let typed = |is: fn(&str) -> bool| {
            let n = self.zone.pageblocks_where(is).unwrap_or(0);
            n.min(MOST_PAGES >> BLOCK_ORDER) << shift.min(8)
        };
        let withheld = typed(|t| matches!(t, "HighAtomic" | "Isolate" | "Reserve"));
        let areas = typed(|t| t == "CMA");
        spoil(&mut blocks, BLOCK_ORDER, withheld.saturating_add(areas));
        for lists in ["HighAtomic", "Isolate", "Reserve", "CMA"] {
            let small = self.zone.free_of(lists).unwrap_or_default();
            let pairs = blocks.iter_mut().zip(small).take(BLOCK_ORDER.into());
            pairs.for_each(|(n, aside)| *n = n.saturating_sub(*aside));
        }
        // Whole blocks of contiguous areas that are free stay so, and processes may have them.
        let free_areas = self.zone.free_of("CMA").unwrap_or_default();
        let mut cma = vec![0; self.orders()];
        if let Some(n) = cma.get_mut(usize::from(BLOCK_ORDER)) {
            *n = (pages(free_areas, BLOCK_ORDER) >> BLOCK_ORDER).min(areas);
        }
        view.cma_by_order = Some(cma);
        view.cma_pages = (areas << BLOCK_ORDER).max(view.cma_pages).min(free);
        view.highatomic_pages = self.reserve(&view);
        view.highatomic_by_order = vec![];
        view.isolated_by_order = vec![];
        let isolated = self
            .zone
            .withheld()
            .unwrap_or(0)
            .saturating_sub(view.highatomic_pages);
        view.free_pages = free.saturating_sub(isolated);
        // What is free and not counted may be in blocks of any order: the smallest count least.
        let counted = pages(&blocks, 0)
            .saturating_add(pages(view.cma_by_order.as_deref().unwrap_or_default(), 0));
        view.isolated_by_order = vec![view.free_pages.saturating_sub(counted)];
        self.supply(blocks, view, CLOSED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::test_zone::zone;
    use crate::host::zone::TypeBlocks;
    use unfrag_linux::kpageflags::BUDDY;

    #[test]
    fn a_free_block_that_is_set_aside_is_in_no_run() {
        // By page flags 8 free pageblocks in a row; the last one is of a contiguous area, so that it merges with none.
        let (facts, blocks) = zone(vec![BUDDY; 8 * 512]);
        let lists = |of: [u64; 2]| [vec![0; 9], of.to_vec()].concat();
        let facts = Zone {
            name: "Normal".into(),
            blocks: Some(lists([2, 3])),
            by_type: vec![TypeBlocks {
                name: "CMA".into(),
                blocks: lists([1, 0]),
                is_capped: false,
            }],
            cma_pages: Some(512),
            protection_from_kernel: Some(0),
            ..facts
        };
        let known = Known {
            kernel: KernelFeatures {
                compacts: true,
                by_order: true,
                unevictable: true,
                tunes_lists: true,
            },
            checks: vec![MarkCheck::BlockExists],
            pinned: Some(0),
            pageblock_order: 9,
            is_modelled: true,
            asks_for_runs: true,
        };
        let [now, ..] = outlooks(&facts, Some(&blocks), &known).expect("a zone");
        assert_eq!(now.sure.blocks[9..13], [1, 1, 1, 0]);
    }
}
