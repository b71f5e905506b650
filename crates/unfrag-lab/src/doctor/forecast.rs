//! How many huge pages can be had, and after which action.
//!
//! Four numbers, each checked against a real host (`checks/huge-truth`):
//! - *now*: free blocks as far as the watermark allows, with no work for the kernel;
//! - *after `sync` and `vm.compact_memory`*: one run of the two scanners ([`super::compactor`]);
//! - *after dropping caches too*: clean page cache counts as free, then a run;
//! - *by asking again*: writing `vm.nr_hugepages` until 100 writes in a row bring nothing. After a failed
//!   compaction the kernel defers up to 64 requests (`spec: 5.3`); else it compacts and reclaims for each.
//!
//! For all but the first, self-tuning per-CPU lists (6.7 and later) are emptied first and kept short meanwhile:
//! freed pages would stay on them, up to an eighth of memory, and `compact_memory` does not drain them
//! (`docs/huge-pages-at-this-uptime.md`).
//!
//! Invariant: no number exceeds what the watermarks allow. Without page flags only *now* and an upper bound
//! are known, and the others are `None`. Without zoneinfo there is no upper bound either, and nothing is promised of a
//! zone that may keep its memory from such requests.

use super::compactor::{self, CompactionRules, StuckFolio};
use super::frames::{BLOCK_FRAMES, FrameUse};
use super::zone_blocks::{Emptied, ZoneBlocks};
use crate::host::Zone;
use serde::Serialize;

/// Huge pages of a zone, a node or a host. All counts are of huge pages of the size that the diagnosis names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// Available at once; `null` where no file tells free blocks, or not all is known that keeps them back: watermarks and
    /// protection (zoneinfo), and the high-order atomic reserve (pagetypeinfo).
    pub now: Option<u64>,
    /// What `now` is at most, by what is known of free blocks, free pages and of what is kept back; `null` where `now` is
    /// known, or no file tells them.
    pub now_at_most: Option<u64>,
    /// Of these, free blocks in zones that may keep them from such requests: only zoneinfo tells.
    pub perhaps_now: u64,
    /// After emptying per-CPU lists (6.7 and later), `sync` and one write to `vm.compact_memory`; `null` without page flags, as the next two.
    pub after_compaction: Option<u64>,
    /// After emptying per-CPU lists (6.7 and later), `sync`, dropping caches, then `vm.compact_memory`.
    pub after_reclaim: Option<u64>,
    /// By writing `vm.nr_hugepages` until it grows no more (100 writes in a row).
    pub by_asking_again: Option<u64>,
    /// Whether no large folio waits to be written that would end a run of `vm.compact_memory` early: only
    /// then are `after_compaction` and `after_reclaim` sure. `null` without page flags.
    pub compaction_unhindered: Option<bool>,
    /// No action gives more; `null` if the files that were read set no bound.
    pub at_most: Option<u64>,
}

impl Forecast {
    /// The sum of two forecasts.
    pub fn plus(self, other: Forecast) -> Forecast {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        Forecast {
            now: sum(self.now, other.now),
            now_at_most: match (self.now, other.now) {
                (Some(_), Some(_)) => None,
                _ => sum(
                    self.now_at_most.or(self.now),
                    other.now_at_most.or(other.now),
                ),
            },
            perhaps_now: self.perhaps_now + other.perhaps_now,
            after_compaction: sum(self.after_compaction, other.after_compaction),
            after_reclaim: sum(self.after_reclaim, other.after_reclaim),
            by_asking_again: sum(self.by_asking_again, other.by_asking_again),
            compaction_unhindered: match (self.compaction_unhindered, other.compaction_unhindered) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (a, b) => a.and(b),
            },
            at_most: sum(self.at_most, other.at_most),
        }
    }

    /// The forecast of no memory, from which a sum begins.
    pub const NONE: Forecast = Forecast {
        now: Some(0),
        now_at_most: None,
        perhaps_now: 0,
        after_compaction: Some(0),
        after_reclaim: Some(0),
        by_asking_again: Some(0),
        compaction_unhindered: Some(true),
        at_most: Some(0),
    };
}

/// What the host's kernel does about compaction.
#[derive(Clone, Copy, Debug)]
pub struct KernelFeatures {
    /// Whether it compacts at all (2.6.35 and later).
    pub compacts: bool,
    /// Whether targets have the order of what moves (6.10 and later).
    pub by_order: bool,
    /// Whether it moves unevictable pages.
    pub unevictable: bool,
    /// Whether its per-CPU lists tune themselves, and are emptied before it compacts (6.7 and later).
    pub tunes_lists: bool,
}

/// A zone's forecast without page flags, from free blocks and zoneinfo.
pub fn bounds(zone: &Zone) -> Forecast {
    let most_now = most_now(zone);
    let now = most_now.filter(|&n| n == 0 || is_told(zone));
    let perhaps_now = match zone.may_be_protected() {
        true => zone.free_huge().unwrap_or(0),
        false => 0,
    };
    let at_most = at_most(zone).map(|most| most.max(now.unwrap_or(0)));
    Forecast {
        now,
        now_at_most: most_now.filter(|_| now.is_none()),
        perhaps_now,
        at_most,
        ..Forecast::default()
    }
}

/// Huge pages that no action gives more of; `None` without zoneinfo, or if it counts no page cache.
fn at_most(zone: &Zone) -> Option<u64> {
    let memory = [zone.free_pages?, zone.pcp?, zone.reclaimable?];
    let memory = memory.into_iter().fold(0, u64::saturating_add);
    let blocks = zone.managed? / zone.huge_pages_size();
    // Without pagetypeinfo all of them may be movable.
    let movable = blocks.saturating_sub(zone.unmovable_blocks().unwrap_or(0));
    // Free blocks of unmovable types are huge pages as well.
    let most = movable.max(zone.free_huge().unwrap_or(blocks));
    Some(zone.huge_pages_above_min(memory).min(most))
}

/// Huge pages at once at most, by the free blocks and by the free pages above the watermark.
fn most_now(zone: &Zone) -> Option<u64> {
    let above = zone.free_pages.map(|n| zone.huge_pages_above_min(n));
    match (zone.free_huge(), above) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// Whether the files tell what is free in whole blocks, and all that keeps it back.
fn is_told(zone: &Zone) -> bool {
    zone.blocks.is_some() && !zone.is_capped && zone.tells_what_is_kept()
}

/// A zone's forecast with page flags, and the folio at which `vm.compact_memory` would end early.
pub fn exact(
    zone: &Zone,
    blocks: &ZoneBlocks,
    kernel: KernelFeatures,
) -> (Forecast, Option<StuckFolio>) {
    // Page flags show whole free blocks, too.
    let whole = |emptied: Emptied| {
        let is_whole = |&b: &usize| usize::from(blocks.free(b, emptied)) == BLOCK_FRAMES;
        (0..blocks.blocks.len()).filter(is_whole).count() as u64
    };
    let most_now = match (zone.free_huge(), zone.free_pages) {
        (None, Some(free)) => Some(whole(Emptied::default()).min(zone.huge_pages_above_min(free))),
        _ => most_now(zone),
    };
    let now = most_now.filter(|&n| n == 0 || zone.tells_what_is_kept());
    let targets = targets(zone, blocks);
    let run = |emptied: Emptied, synced: bool| {
        let rules = CompactionRules {
            unevictable: kernel.unevictable,
            by_order: kernel.by_order,
            synced,
            emptied,
            targets: &targets,
        };
        let pages = |is, kind| if is { blocks.pages(kind) } else { 0 };
        // Page flags count what is free as well.
        let free = zone
            .free_pages
            .unwrap_or_else(|| blocks.pages(FrameUse::Free))
            + pages(emptied.lists, FrameUse::PerCpu)
            + pages(emptied.caches, FrameUse::CleanCache);
        let let_out = zone.huge_pages_above_min(free);
        if !kernel.compacts {
            return (let_out.min(whole(emptied)), None);
        }
        let done = compactor::compact(blocks, &rules);
        (done.free_blocks.min(let_out), done.stopped)
    };
    let first = Emptied {
        lists: kernel.tunes_lists,
        caches: false,
    };
    // A run that ends early may leave blocks half emptied; what a cheaper action gives can still be had.
    let (after_compaction, _) = run(first, true);
    let (_, stopped) = run(first, false);
    let after_compaction = after_compaction.max(now.unwrap_or(0));
    let dropped = Emptied {
        caches: true,
        ..first
    };
    let (after_reclaim, _) = run(dropped, true);
    let after_reclaim = after_reclaim.max(after_compaction);
    // A request for a huge page drains the lists and reclaims by itself; beyond that it gets as far as the two
    // scanners do.
    let again = if kernel.tunes_lists {
        after_reclaim
    } else {
        let both = Emptied {
            lists: true,
            caches: true,
        };
        let (again, _) = run(both, true);
        again.max(after_reclaim)
    };
    let forecast = Forecast {
        now,
        now_at_most: most_now.filter(|_| now.is_none()),
        after_compaction: Some(after_compaction),
        after_reclaim: Some(after_reclaim),
        by_asking_again: Some(again),
        compaction_unhindered: Some(stopped.is_none()),
        at_most: Some(again),
        perhaps_now: 0,
    };
    (forecast, stopped)
}

/// Which blocks compaction moves memory into. Page flags do not show a block's type: as many blocks as pagetypeinfo
/// counts of other types are left out, those with most of the kernel's memory first.
pub(super) fn targets(zone: &Zone, blocks: &ZoneBlocks) -> Vec<bool> {
    const USUAL: u16 = 64;
    let kernel = |b: usize| blocks.blocks[b].kernel();
    let mut by_kernel: Vec<usize> = (0..blocks.blocks.len())
        .filter(|&b| !blocks.blocks[b].is_absent() && kernel(b) > 0)
        .collect();
    by_kernel.sort_by_key(|&b| std::cmp::Reverse(kernel(b)));
    let others = match zone.unmovable_blocks() {
        Some(n) => usize::try_from(n)
            .unwrap_or(usize::MAX)
            .min(by_kernel.len()),
        None => by_kernel.partition_point(|&b| kernel(b) >= USUAL),
    };
    let mut targets: Vec<bool> = blocks.blocks.iter().map(|b| !b.is_absent()).collect();
    for &b in &by_kernel[..others] {
        targets[b] = false;
    }
    targets
}

/// The action after which a number of huge pages can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Attainability {
    /// At once.
    Now,
    /// After `sync` and `echo 1 > /proc/sys/vm/compact_memory`.
    AfterCompaction,
    /// After dropping caches and compaction.
    AfterReclaim,
    /// By writing `vm.nr_hugepages` again while it grows.
    ByAskingAgain,
    /// Not known without page flags, or without zoneinfo.
    Unknown,
    /// After none, short of ending programs or a reboot.
    Not,
}

impl Forecast {
    /// The cheapest action that gives `wanted`, and how many it gives; `None` if that is not known.
    pub fn attainability(&self, wanted: u64) -> (Attainability, Option<u64>) {
        // A run of compact_memory that may end early is not counted on; asking again does not need it.
        let sure = |n: Option<u64>| n.filter(|_| self.compaction_unhindered == Some(true));
        let known = [
            (Attainability::Now, self.now),
            (Attainability::AfterCompaction, sure(self.after_compaction)),
            (Attainability::AfterReclaim, sure(self.after_reclaim)),
            (Attainability::ByAskingAgain, self.by_asking_again),
        ];
        let first = known.iter().find(|(_, n)| n.is_some_and(|n| n >= wanted));
        match first {
            Some(&(action, n)) => (action, n),
            None => match self.at_most {
                Some(most) if self.by_asking_again.is_some() || wanted > most => {
                    (Attainability::Not, Some(most))
                }
                _ => (Attainability::Unknown, self.now),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_zone::zone;
    use super::*;
    use unfrag_linux::kpageflags::{ANON, BUDDY, LRU, SLAB};

    const KERNEL: KernelFeatures = KernelFeatures {
        compacts: true,
        by_order: true,
        unevictable: true,
        tunes_lists: true,
    };

    #[test]
    fn each_action_gives_at_least_what_a_cheaper_one_gives() {
        // 10 free blocks, 10 with a quarter of movable memory, 10 full of clean cache, 2 with a slab.
        let mut words = vec![BUDDY; 10 * 512];
        words.extend((0..10 * 512).map(|i| if i % 4 == 0 { LRU | ANON } else { BUDDY }));
        words.extend(vec![LRU; 10 * 512]);
        words.extend((0..2 * 512).map(|i| if i % 512 == 0 { SLAB } else { BUDDY }));
        let (facts, blocks) = zone(words);
        let (f, stopped) = exact(&facts, &blocks, KERNEL);
        assert_eq!(stopped, None);
        assert_eq!(f.now, Some(10));
        assert!(f.after_compaction.unwrap() > 10, "{f:?}");
        assert!(f.after_reclaim > f.after_compaction, "{f:?}");
        // 1280 pages stay, and the two blocks with a slab page take 1022 of them.
        assert_eq!(f.by_asking_again, Some(29));
        assert_eq!(f.attainability(10), (Attainability::Now, Some(10)));
        assert_eq!(f.attainability(30), (Attainability::Not, Some(29)));
    }

    /// `spec: 3.2`
    #[test]
    fn per_cpu_lists_are_emptied_first() {
        // Ten blocks, each with a page on a per-CPU list.
        let words: Vec<u64> = (0..10 * 512)
            .map(|i| if i % 512 == 0 { 0 } else { BUDDY })
            .collect();
        let (mut facts, _) = zone(words.clone());
        facts.pcp = Some(10);
        let blocks = super::super::test_zone::blocks(&words, 10);
        let (f, _) = exact(&facts, &blocks, KERNEL);
        assert_eq!((f.after_compaction, f.after_reclaim), (Some(10), Some(10)));
        let fixed = KernelFeatures {
            tunes_lists: false,
            ..KERNEL
        };
        let (f, _) = exact(&facts, &blocks, fixed);
        assert_eq!((f.after_compaction, f.after_reclaim), (Some(0), Some(0)));
    }

    #[test]
    fn no_gain_without_compaction() {
        let words: Vec<u64> = (0..20 * 512)
            .map(|i| if i % 4 == 0 { LRU | ANON } else { BUDDY })
            .collect();
        let (facts, blocks) = zone(words);
        let old = KernelFeatures {
            compacts: false,
            ..KERNEL
        };
        assert_eq!(exact(&facts, &blocks, old).0.after_compaction, Some(0));
    }

    #[test]
    fn an_early_end_is_not_counted_on() {
        let f = Forecast {
            now: Some(10),
            now_at_most: None,
            after_compaction: Some(20),
            after_reclaim: Some(20),
            by_asking_again: Some(30),
            compaction_unhindered: Some(false),
            at_most: Some(30),
            perhaps_now: 0,
        };
        assert_eq!(
            f.attainability(15),
            (Attainability::ByAskingAgain, Some(30))
        );
        let sure = Forecast {
            compaction_unhindered: Some(true),
            ..f
        };
        assert_eq!(
            sure.attainability(15),
            (Attainability::AfterCompaction, Some(20))
        );
    }

    #[test]
    fn only_a_bound_without_page_flags() {
        let (mut facts, _) = zone(vec![BUDDY; 10 * 512]);
        (facts.managed, facts.reclaimable) = (Some(30 * 512), Some(5 * 512));
        let f = bounds(&facts);
        assert_eq!(
            (f.now, f.at_most, f.after_compaction),
            (Some(10), Some(15), None)
        );
        assert_eq!(f.attainability(12), (Attainability::Unknown, Some(10)));
        assert_eq!(f.attainability(16), (Attainability::Not, Some(15)));
    }

    #[test]
    fn nothing_is_promised_of_a_zone_that_may_be_protected() {
        let (mut facts, _) = zone(vec![BUDDY; 10 * 512]);
        (facts.is_below_another, facts.protection) = (true, None);
        let f = bounds(&facts);
        assert_eq!((f.now, f.perhaps_now, f.at_most), (None, 10, None));
        assert_eq!(f.now_at_most, Some(10));
        assert_eq!(f.attainability(5), (Attainability::Unknown, None));
        facts.protection = Some(0);
        assert_eq!(bounds(&facts).now, Some(10));
    }

    #[test]
    fn what_keeps_blocks_back_is_known_or_they_are_at_most() {
        type Lacking = fn(&mut Zone);
        let lacking: [(&str, Lacking); 4] = [
            ("marks", |z| z.marks = None),
            ("protection", |z| z.protection = None),
            ("reserve", |z| z.has_all_types = false),
            ("blocks", |z| z.blocks = None),
        ];
        for (what, lacks) in lacking {
            let (mut facts, blocks) = zone(vec![BUDDY; 10 * 512]);
            assert_eq!(bounds(&facts).now, Some(10));
            lacks(&mut facts);
            let f = bounds(&facts);
            assert_eq!((f.now, f.now_at_most), (None, Some(10)), "{what}");
            assert_eq!(f.compaction_unhindered, None, "{what}");
            // Page flags show the blocks, and nothing of what keeps them back.
            let now = exact(&facts, &blocks, KERNEL).0.now;
            assert_eq!(now.is_some(), what == "blocks", "{what}");
            // Nothing free is nothing at once, whatever is kept back.
            let (mut none, _) = zone(vec![LRU; 10 * 512]);
            lacks(&mut none);
            assert_eq!(bounds(&none).now, Some(0), "{what}");
        }
    }

    #[test]
    fn the_watermark_is_kept() {
        let (mut facts, blocks) = zone(vec![BUDDY; 10 * 512]);
        facts.marks = Some([1024, 1280, 1536]);
        assert_eq!(exact(&facts, &blocks, KERNEL).0.now, Some(8));
    }
}
