//! Every change of one rule.

use std::fmt::Debug;
use std::mem::discriminant;
use unfrag_eras::kernel::*;
use unfrag_eras::{Rules, preset};

pub(crate) struct Flip {
    pub(crate) path: &'static str,
    pub(crate) to: String,
    pub(crate) rules: Rules,
}

pub(crate) struct Flips<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) all: Vec<Flip>,
}

impl Flips<'_> {
    /// A rule, if these have it, with each of the values that it has not.
    pub(crate) fn rule<T: Copy + PartialEq + Debug>(
        &mut self,
        path: &'static str,
        values: &[T],
        at: impl Fn(&mut Rules) -> Option<&mut T>,
    ) {
        for value in values {
            let mut rules = *self.rules;
            let Some(slot) = at(&mut rules) else { return };
            if slot == value || discriminant(slot) == discriminant(value) && braced(value) {
                continue;
            }
            *slot = *value;
            let to = kind(value);
            self.all.push(Flip { path, to, rules });
        }
    }
}

/// Whether a value holds rules of their own names.
pub(crate) fn braced<T: Debug>(value: &T) -> bool {
    format!("{value:?}").contains('{')
}

/// The first line of a value's text: its variant, without what that holds.
pub(crate) fn kind<T: Debug>(value: &T) -> String {
    let text = format!("{value:?}");
    let deep = text.matches(['{', '(']).count() > 1;
    match text.find(['{', '(']) {
        Some(i) if deep => format!("{} {{..}}", text[..i].trim()),
        _ => text,
    }
}

pub(crate) fn pages(r: &mut Rules) -> Option<&mut PageblockRules> {
    r.pageblocks_mut()
}

pub(crate) fn scan(r: &mut Rules) -> Option<&mut ScanDown> {
    match &mut pages(r)?.fallback {
        Fallback::ScanDown(s) => Some(s),
        Fallback::ClaimThenSteal { .. } => None,
    }
}

pub(crate) fn boosts(r: &mut Rules) -> Option<&mut Option<Boost>> {
    match &mut pages(r)?.fallback {
        Fallback::ScanDown(s) => Some(&mut s.boost),
        Fallback::ClaimThenSteal { boost, .. } => Some(boost),
    }
}

pub(crate) fn boost(r: &mut Rules) -> Option<&mut Boost> {
    boosts(r)?.as_mut()
}

pub(crate) fn tuned(r: &mut Rules) -> Option<&mut Option<Tuned>> {
    match &mut r.pcp {
        Pcp::Orders { tuned } => Some(tuned),
        _ => None,
    }
}

pub(crate) fn tuning(r: &mut Rules) -> Option<&mut Tuned> {
    tuned(r)?.as_mut()
}

pub(crate) fn of(era: &str) -> Rules {
    preset(era).expect("an era").rules
}

pub(crate) fn flips(rules: &Rules) -> Vec<Flip> {
    let eras = ["2.6.14", "v19", "2.6.31", "6.1", "6.18"].map(of);
    let fallbacks = ["2.6.31", "6.1", "6.18"].map(|e| of(e).pageblocks().unwrap().fallback);
    let some = of("6.1").boost();
    let bools = [false, true];
    let mut f = Flips {
        rules,
        all: Vec::new(),
    };
    f.rule("placement", &eras.map(|e| e.placement), |r| {
        Some(&mut r.placement)
    });
    f.rule("placement.fallback", &fallbacks, |r| {
        Some(&mut pages(r)?.fallback)
    });
    f.rule(
        "placement.fallback.merge",
        &[Merge::All, Merge::Ordinary],
        |r| Some(&mut scan(r)?.merge),
    );
    f.rule("placement.fallback.movable_ascends", &bools, |r| {
        Some(&mut scan(r)?.movable_ascends)
    });
    f.rule(
        "placement.fallback.remainder",
        &[Remainder::Victims, Remainder::Requests],
        |r| Some(&mut scan(r)?.remainder),
    );
    f.rule("placement.fallback.boost", &[None, some], boosts);
    f.rule(
        "placement.fallback.boost.recheck",
        &[BoostRecheck::AtomicBit, BoostRecheck::High],
        |r| Some(&mut boost(r)?.recheck),
    );
    f.rule(
        "placement.fallback.boost.wakes",
        &[BoostWakes::AnyRequest, BoostWakes::IfItMay],
        |r| Some(&mut boost(r)?.wakes),
    );
    f.rule(
        "placement.fallback.steal",
        &[Steal::Largest, Steal::Smallest],
        |r| match &mut pages(r)?.fallback {
            Fallback::ClaimThenSteal { steal, .. } => Some(steal),
            Fallback::ScanDown(_) => None,
        },
    );
    f.rule("placement.unmovable_may_claim", &bools, |r| {
        Some(&mut pages(r)?.unmovable_may_claim)
    });
    f.rule(
        "placement.claim_test",
        &[
            ClaimTest::HalfFree,
            ClaimTest::HalfFreeOrAlike,
            ClaimTest::AlwaysIfFixed,
        ],
        |r| Some(&mut pages(r)?.claim_test),
    );
    f.rule("placement.move_to_tail", &bools, |r| {
        Some(&mut pages(r)?.move_to_tail)
    });
    f.rule(
        "placement.reserve",
        &[
            Reserve::None,
            Reserve::Blocks { capped: true },
            Reserve::HighAtomic(HighAtomicLimit::PercentPlusBlock),
            Reserve::HighAtomic(HighAtomicLimit::PercentRoundedUp),
        ],
        |r| Some(&mut pages(r)?.reserve),
    );
    f.rule("placement.reserve.capped", &bools, |r| {
        match &mut pages(r)?.reserve {
            Reserve::Blocks { capped } => Some(capped),
            _ => None,
        }
    });
    f.rule("placement.reserve_costly_only", &bools, |r| {
        Some(&mut pages(r)?.reserve_costly_only)
    });
    f.rule("placement.nofragment", &bools, |r| {
        Some(&mut pages(r)?.nofragment)
    });
    f.rule("placement.defrag_mode", &bools, |r| {
        Some(&mut pages(r)?.defrag_mode)
    });
    f.rule("placement.reclaimable_is_type_1", &bools, |r| {
        Some(&mut pages(r)?.reclaimable_is_type_1)
    });
    f.rule("block_order", &[8, 9, 10], |r| Some(&mut r.block_order));
    f.rule("tail_if_merge_likely", &bools, |r| {
        Some(&mut r.tail_if_merge_likely)
    });
    f.rule(
        "marks.check",
        &[MarkCheck::PerOrder, MarkCheck::BlockExists],
        |r| Some(&mut r.marks.check),
    );
    f.rule("marks.gap", &[MarkGap::Quarter, MarkGap::Scaled], |r| {
        Some(&mut r.marks.gap)
    });
    f.rule(
        "marks.pages",
        &[ZonePages::Present, ZonePages::Managed],
        |r| Some(&mut r.marks.pages),
    );
    f.rule("marks.min_free_kbytes_cap", &[65_536, 262_144], |r| {
        Some(&mut r.marks.min_free_kbytes_cap)
    });
    f.rule("marks.zero_ratio_is_none", &bools, |r| {
        Some(&mut r.marks.zero_ratio_is_none)
    });
    f.rule("marks.movable_is_lowmem", &bools, |r| {
        Some(&mut r.marks.movable_is_lowmem)
    });
    f.rule("marks.khugepaged", &bools, |r| {
        Some(&mut r.marks.khugepaged)
    });
    f.rule("marks.late_free_count", &bools, |r| {
        Some(&mut r.marks.late_free_count)
    });
    let turns = |drain, keep_type| Pcp::PerType { drain, keep_type };
    f.rule(
        "pcp",
        &[
            Pcp::HotCold { searched: false },
            Pcp::Kinds,
            Pcp::Searched,
            turns(Drain::BatchFree, true),
            Pcp::Orders { tuned: None },
        ],
        |r| Some(&mut r.pcp),
    );
    f.rule("pcp.searched", &bools, |r| match &mut r.pcp {
        Pcp::HotCold { searched } => Some(searched),
        _ => None,
    });
    f.rule(
        "pcp.drain",
        &[Drain::RoundRobin, Drain::BatchFree],
        |r| match &mut r.pcp {
            Pcp::PerType { drain, .. } => Some(drain),
            _ => None,
        },
    );
    f.rule("pcp.keep_type", &bools, |r| match &mut r.pcp {
        Pcp::PerType { keep_type, .. } => Some(keep_type),
        _ => None,
    });
    f.rule(
        "pcp.tuned",
        &[None, tuning(&mut of("6.18")).copied()],
        tuned,
    );
    f.rule("pcp.tuned.late_burst", &bools, |r| {
        Some(&mut tuning(r)?.late_burst)
    });
    f.rule("pcp_batch_cap_kbytes", &[512, 1024], |r| {
        Some(&mut r.pcp_batch_cap_kbytes)
    });
    f.rule("rights.nomemalloc_forbids", &bools, |r| {
        Some(&mut r.rights.nomemalloc_forbids)
    });
    f.rule(
        "rights.leaves_cpuset",
        &[
            LeavesCpuset::AllThatCannotWait,
            LeavesCpuset::HighThatCannotWait,
        ],
        |r| Some(&mut r.rights.leaves_cpuset),
    );
    f.rule(
        "rights.realtime",
        &[RealtimeRight::NonBlock, RealtimeRight::MinReserve],
        |r| Some(&mut r.rights.realtime),
    );
    f.rule("rights.realtime_in_interrupt", &bools, |r| {
        Some(&mut r.rights.realtime_in_interrupt)
    });
    let pauses = |repeats_from, oom| RetryForm::Pauses { repeats_from, oom };
    f.rule(
        "retry.form",
        &[pauses(None, OomOrders::Cheap), RetryForm::Bounded],
        |r| Some(&mut r.retry.form),
    );
    f.rule(
        "retry.form.repeats_from",
        &[None, Some(5)],
        |r| match &mut r.retry.form {
            RetryForm::Pauses { repeats_from, .. } => Some(repeats_from),
            RetryForm::Bounded => None,
        },
    );
    f.rule(
        "retry.form.oom",
        &[OomOrders::Any, OomOrders::BelowHalf, OomOrders::Cheap],
        |r| match &mut r.retry.form {
            RetryForm::Pauses { oom, .. } => Some(oom),
            RetryForm::Bounded => None,
        },
    );
    f.rule(
        "retry.drain",
        &[RetryDrain::EachBlock, RetryDrain::OnceInVain],
        |r| Some(&mut r.retry.drain),
    );
    f.rule("retry.wake_on_restart", &bools, |r| {
        Some(&mut r.retry.wake_on_restart)
    });
    f.rule(
        "kswapd.form",
        &[
            KswapdForm::PerZone { drops_order: true },
            KswapdForm::PerNode,
        ],
        |r| Some(&mut r.kswapd.form),
    );
    f.rule("kswapd.form.drops_order", &bools, |r| {
        match &mut r.kswapd.form {
            KswapdForm::PerZone { drops_order } => Some(drops_order),
            KswapdForm::PerNode => None,
        }
    });
    f.rule(
        "kswapd.sleep",
        &[KswapdSleep::Direct, KswapdSleep::Staged],
        |r| Some(&mut r.kswapd.sleep),
    );
    f.rule(
        "kswapd.nap",
        &[
            KswapdNap::Trouble,
            KswapdNap::TroubleLater,
            KswapdNap::NotBelowMin,
            KswapdNap::No,
        ],
        |r| Some(&mut r.kswapd.nap),
    );
    f.rule("kswapd.notices_order_at_once", &bools, |r| {
        Some(&mut r.kswapd.notices_order_at_once)
    });
    let lru = of("2.6.28").reclaim.lru;
    let split = *lru.split().unwrap();
    f.rule(
        "reclaim.lru",
        &[LruRules::Joined, lru, LruRules::PerNode(split)],
        |r| Some(&mut r.reclaim.lru),
    );
    f.rule(
        "reclaim.lru.balance",
        &[ScanBalance::Rotated, ScanBalance::Cost],
        |r| Some(&mut r.reclaim.lru.split_mut()?.balance),
    );
    f.rule("reclaim.lru.keeps_exec", &bools, |r| {
        Some(&mut r.reclaim.lru.split_mut()?.keeps_exec)
    });
    f.rule(
        "reclaim.lru.active_files",
        &[
            ActiveFiles::EachScan,
            ActiveFiles::WhenLonger,
            ActiveFiles::ByRatio,
        ],
        |r| Some(&mut r.reclaim.lru.split_mut()?.active_files),
    );
    f.generations();
    f.rule("reclaim.new_anon_active", &bools, |r| {
        Some(&mut r.reclaim.new_anon_active)
    });
    f.rule("reclaim.used_once_stays", &bools, |r| {
        Some(&mut r.reclaim.used_once_stays)
    });
    f.rule(
        "reclaim.congestion",
        &[
            CongestionWait::Sync,
            CongestionWait::Async,
            CongestionWait::Both,
            CongestionWait::BothEverywhere,
            CongestionWait::Throttle,
        ],
        |r| Some(&mut r.reclaim.congestion),
    );
    let lumpy = |cheap_orders_wait| HighOrder::Lumpy { cheap_orders_wait };
    f.rule(
        "reclaim.high_order",
        &[HighOrder::Nothing, lumpy(false), HighOrder::Compaction],
        |r| Some(&mut r.reclaim.high_order),
    );
    f.rule(
        "reclaim.high_order.cheap_orders_wait",
        &bools,
        |r| match &mut r.reclaim.high_order {
            HighOrder::Lumpy { cheap_orders_wait } => Some(cheap_orders_wait),
            _ => None,
        },
    );
    f.rule("reclaim.hope_is_progress", &bools, |r| {
        Some(&mut r.reclaim.hope_is_progress)
    });
    f.rule("reclaim.isolated_throttle", &bools, |r| {
        Some(&mut r.reclaim.isolated_throttle)
    });
    f.rule("reclaim.reserves_throttle", &bools, |r| {
        Some(&mut r.reclaim.reserves_throttle)
    });
    f.rule("reclaim.direct_writes_files", &bools, |r| {
        Some(&mut r.reclaim.direct_writes_files)
    });
    f.rule("reclaim.direct_makes_room", &bools, |r| {
        Some(&mut r.reclaim.direct_makes_room)
    });
    f.compaction();
    f.all
}
