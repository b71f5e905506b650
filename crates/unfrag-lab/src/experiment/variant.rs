//! The kernels of the experiments: each a preset, and what is changed about it.

use super::choice::Choice;
use super::name::Name;
use crate::error::Asked;
use unfrag_eras::Rules;
use unfrag_eras::compact::score::DEFAULT_PROACTIVENESS;
use unfrag_eras::kernel::{CongestionWait, KswapdNap, KswapdSleep, LruShape, Reserve, preset};
use unfrag_machine::bare::Holes;
use unfrag_slab::{Design, FirstAttempt, Rules as SlabRules};

/// A kernel as an experiment runs it.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Name of its preset.
    pub name: &'static str,
    /// What is changed about it; empty if nothing.
    pub variant: &'static str,
    /// Its rules for pages.
    pub rules: Rules,
    /// Its rules for slabs.
    pub slab: SlabRules,
    /// Whether it may kill processes when memory runs out.
    pub oom_killer: bool,
    /// `vm.compaction_proactiveness`.
    pub proactiveness: u8,
    /// `vm.defrag_mode`.
    pub defrag_mode: bool,
    /// Which frames of each block are free in memory that is fragmented on purpose.
    pub holes: Holes,
    /// Whether it runs only if it is named: the source mentions it, and has no numbers for it.
    pub added: bool,
}

impl Choice for Kernel {
    const OPTION: Asked = Asked::Kernel;

    fn own_name(&self) -> &str {
        match self.variant {
            "" => self.name,
            variant => variant,
        }
    }

    fn family(&self) -> &str {
        self.name
    }

    fn added(&self) -> bool {
        self.added
    }
}

impl Name {
    /// Its kernels, those that run only if they are named among them.
    pub fn kernels(self) -> Vec<Kernel> {
        match self {
            Name::HighOrder => highorder(),
            Name::Aim9 => aim9(),
            Name::SlabOrder => slab_order(),
            Name::Atomic => atomic(),
            Name::HugepageLatency => hugepage_latency(),
            Name::JavaHeap => java_heap(),
            Name::Backoff => backoff(),
            Name::OneTime => one_time(),
            Name::ThpBurst => thp_burst(),
        }
    }
}

/// The rules with another reserve.
fn reserving(mut rules: Rules, reserve: Reserve) -> Rules {
    if let Some(p) = rules.pageblocks_mut() {
        p.reserve = reserve;
    }
    rules
}

/// Kernels that compact, in their main forms.
const COMPACTING: [&str; 3] = ["2.6.36", "6.1", "6.18"];

fn base(name: &'static str) -> Option<Rules> {
    preset(name).map(|p| p.rules)
}

/// Kernels that compact, for experiments whose sources are older.
fn compacting(names: &[&'static str]) -> Vec<Kernel> {
    let kernel = |name: &&'static str| {
        let rules = base(name)?;
        let modern = rules.reclaim.lru.shape() == LruShape::PerNode;
        Some(Kernel {
            name,
            variant: "",
            rules,
            slab: if modern {
                SlabRules::MODERN
            } else {
                SlabRules::S2
            },
            oom_killer: true,
            proactiveness: DEFAULT_PROACTIVENESS,
            defrag_mode: false,
            holes: Holes::First,
            added: true,
        })
    };
    names.iter().filter_map(kernel).collect()
}

/// The kernel of S1's patch, as 5.9 has it.
const S1: &str = "5.9";

/// A kernel of today.
fn bare(
    name: &'static str,
    variant: &'static str,
    proactiveness: u8,
    added: bool,
) -> Option<Kernel> {
    Some(Kernel {
        name,
        variant,
        rules: base(name)?,
        slab: SlabRules::MODERN,
        oom_killer: true,
        proactiveness,
        defrag_mode: false,
        holes: Holes::First,
        added,
    })
}

/// The kernels that S1 did not know, with their default proactiveness.
fn others() -> impl Iterator<Item = Kernel> {
    let of = |name| bare(name, "", DEFAULT_PROACTIVENESS, true);
    ["6.1", "6.18", "unfrag"].into_iter().filter_map(of)
}

/// S1's two settings. Added are random holes, and the kernels after it.
pub fn hugepage_latency() -> Vec<Kernel> {
    let source = [("proactiveness-0", 0), ("proactiveness-20", 20)];
    let random = [("random-holes-0", 0), ("random-holes-20", 20)];
    let of = |(variant, p): (&'static str, u8)| bare(S1, variant, p, false);
    let random = random.into_iter().filter_map(of).map(|k| Kernel {
        holes: Holes::Random,
        added: true,
        ..k
    });
    let source = source.into_iter().filter_map(of);
    source.chain(random).chain(others()).collect()
}

/// S1's two settings, and a higher one that it mentions. Added are the kernels after it.
pub fn java_heap() -> Vec<Kernel> {
    let source = [
        ("proactiveness-0", 0),
        ("proactiveness-20", 20),
        ("proactiveness-60", 60),
    ];
    let of = |(variant, p)| bare(S1, variant, p, false);
    source.into_iter().filter_map(of).chain(others()).collect()
}

/// S1's setting. Added are the kernels after it.
pub fn backoff() -> Vec<Kernel> {
    let source = bare(S1, "proactiveness-40", 40, false);
    source.into_iter().chain(others()).collect()
}

/// S1's kernel, with nothing ahead of demand. Added are the kernels after it.
pub fn one_time() -> Vec<Kernel> {
    let source = bare(S1, "", 0, false);
    let never = |k| Kernel {
        proactiveness: 0,
        ..k
    };
    source.into_iter().chain(others().map(never)).collect()
}

/// 6.18 without `defrag_mode` and with it.
pub fn thp_burst() -> Vec<Kernel> {
    let of = |(variant, defrag_mode)| {
        let kernel = bare("6.18", variant, DEFAULT_PROACTIVENESS, false)?;
        Some(Kernel {
            defrag_mode,
            ..kernel
        })
    };
    let both = [("defrag-mode-0", false), ("defrag-mode-1", true)];
    both.into_iter().filter_map(of).collect()
}

/// S0's kernels, and two modern ones. Added are the first one that compacts, and unfrag's own. S0 ran its clean kernel with
/// the OOM killer disabled: else the killer frees memory by ending one process after the other.
pub fn highorder() -> Vec<Kernel> {
    let kernels = [
        ("2.6.14", "", SlabRules::SLAB, false),
        ("2.6.14", "oom-killer", SlabRules::SLAB, true),
        ("v19", "", SlabRules::SLAB, true),
        ("6.1", "", SlabRules::MODERN, true),
        ("6.18", "", SlabRules::MODERN, true),
    ]
    .into_iter()
    .filter_map(|(name, variant, slab, oom_killer)| {
        Some(Kernel {
            name,
            variant,
            rules: base(name)?,
            slab,
            oom_killer,
            proactiveness: DEFAULT_PROACTIVENESS,
            defrag_mode: false,
            holes: Holes::First,
            added: false,
        })
    });
    kernels.chain(compacting(&["2.6.36", "unfrag"])).collect()
}

/// S0's two kernels.
pub fn aim9() -> Vec<Kernel> {
    let published = |k: &Kernel| k.variant.is_empty() && matches!(k.name, "2.6.14" | "v19");
    highorder().into_iter().filter(published).collect()
}

/// S2's allocators, and the four patches that were tried. Added are the allocators of S2's table on a kernel without
/// `MIGRATE_RESERVE`, which isolate the effect of the reserve, and kernels that compact. `spec: 4.7, 6.5`
pub fn slab_order() -> Vec<Kernel> {
    let slub = |max_order, first_attempt| {
        let mut r = SlabRules::S2;
        (r.slub.max_order, r.slub.first_attempt) = (max_order, first_attempt);
        r
    };
    let slqb = SlabRules::S2.design(Design::Slqb);
    use FirstAttempt as F;
    let kernels = [
        ("slab", SlabRules::SLAB),
        ("slqb", slqb),
        ("slub", slub(3, F::Historic)),
        ("slub-order-1", slub(1, F::Historic)),
        ("slub-order-0", slub(0, F::Historic)),
        ("slub-if-plenty-free", slub(3, F::IfPlentyFree)),
        ("slub-no-wait", slub(3, F::NoWait)),
        ("slub-no-wake", slub(3, F::NoWake)),
        ("slub-first-pass-only", slub(3, F::FirstPassOnly)),
    ];
    let no_reserve = [
        ("slqb", "slqb-no-reserve"),
        ("slub", "slub-no-reserve"),
        ("slub-order-1", "slub-order-1-no-reserve"),
        ("slub-order-0", "slub-order-0-no-reserve"),
    ]
    .into_iter()
    .filter_map(|(with, name)| Some((name, kernels.iter().find(|k| k.0 == with)?.1)));
    let Some(plain) = base("2.6.28") else {
        return vec![];
    };
    let without = reserving(plain, Reserve::None);
    let of = |rules, added| {
        move |(variant, slab)| Kernel {
            name: "2.6.28",
            variant,
            rules,
            slab,
            oom_killer: true,
            proactiveness: DEFAULT_PROACTIVENESS,
            defrag_mode: false,
            holes: Holes::First,
            added,
        }
    };
    let published = kernels.into_iter().map(of(plain, false));
    let with_others = published.chain(no_reserve.map(of(without, true)));
    with_others.chain(compacting(&COMPACTING)).collect()
}

/// S4's thirteen kernels: each base, 8aa7e847 reverted, and the five patches, each on top of those before it. Added are
/// two more that S4 mentions: waiting on both queues in every call of `congestion_wait`, in place of patch 3, and the
/// patch that was dropped after V2, on top of patches 1 and 2; and kernels that compact.
/// `spec: 4.6, 8.3`
pub fn atomic() -> Vec<Kernel> {
    let mut all = vec![];
    for name in ["2.6.30", "2.6.31", "2.6.32-rc6"] {
        let Some(plain) = base(name) else { continue };
        let kernel = |variant, rules| Kernel {
            name,
            variant,
            rules,
            slab: SlabRules::S2,
            oom_killer: true,
            proactiveness: DEFAULT_PROACTIVENESS,
            defrag_mode: false,
            holes: Holes::First,
            added: false,
        };
        all.push(kernel("force-highorder", plain));
        if name == "2.6.30" {
            continue;
        }
        let mut rules = plain;
        rules.reclaim.congestion = CongestionWait::Sync;
        all.push(kernel("revert-8aa7e847", rules));
        let mut rules = plain;
        (
            rules.retry.wake_on_restart,
            rules.rights.realtime_in_interrupt,
        ) = (true, false);
        all.push(kernel("pgalloc-2.6.30", rules));
        let (mut everywhere, mut notice) = (rules, rules);
        rules.reclaim.congestion = CongestionWait::Both;
        all.push(kernel("congestion-both", rules));
        rules.kswapd.sleep = KswapdSleep::Staged;
        all.push(kernel("kswapd-quick-recheck", rules));
        rules.kswapd.nap = KswapdNap::TroubleLater;
        all.push(kernel("adjust-priority", rules));
        everywhere.reclaim.congestion = CongestionWait::BothEverywhere;
        notice.kswapd.notices_order_at_once = true;
        let added = [
            ("congestion-both-everywhere", everywhere),
            ("kswapd-quickly-notice-high-order", notice),
        ];
        all.extend(added.map(|(variant, rules)| Kernel {
            proactiveness: DEFAULT_PROACTIVENESS,
            defrag_mode: false,
            holes: Holes::First,
            added: true,
            ..kernel(variant, rules)
        }));
    }
    all.extend(compacting(&COMPACTING));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: 4.6`
    #[test]
    fn each_kernel_of_s4_differs_from_the_one_before() {
        let mut all = atomic();
        all.retain(|k| !k.added);
        assert_eq!(all.len(), 13);
        for (a, b) in all.iter().zip(&all[1..]) {
            assert!(a.name != b.name || a.rules != b.rules, "{}", b.variant);
        }
    }

    /// `spec: 4.6`
    #[test]
    fn added_kernels_of_s4_differ_in_one_switch() {
        let all = atomic();
        let rules = |name: &str, variant: &str| {
            let found = all.iter().find(|k| k.name == name && k.variant == variant);
            found.expect("a kernel of S4").rules
        };
        for base in ["2.6.31", "2.6.32-rc6"] {
            let mut everywhere = rules(base, "congestion-both");
            everywhere.reclaim.congestion = CongestionWait::BothEverywhere;
            assert_eq!(rules(base, "congestion-both-everywhere"), everywhere);
            let mut notice = rules(base, "pgalloc-2.6.30");
            notice.kswapd.notices_order_at_once = true;
            assert_eq!(rules(base, "kswapd-quickly-notice-high-order"), notice);
        }
        let added = all.iter().filter(|k| k.added && !k.variant.is_empty());
        assert_eq!(added.count(), 4);
    }

    /// `spec: 4.7`
    #[test]
    fn no_reserve_variants_differ_in_the_reserve_alone() {
        let all = slab_order();
        let reserveless = |k: &&Kernel| k.added && !k.variant.is_empty();
        let added: Vec<&Kernel> = all.iter().filter(reserveless).collect();
        assert_eq!(added.len(), 4);
        for k in added {
            let with = k.variant.strip_suffix("-no-reserve").expect("its name");
            let with = all.iter().find(|p| p.variant == with).expect("S2 has it");
            assert_eq!(k.slab, with.slab);
            let rules = reserving(k.rules, with.rules.reserve());
            assert_eq!(rules, with.rules);
            assert_ne!(k.rules, with.rules);
        }
    }

    #[test]
    fn every_kernel_has_a_preset() {
        let all = [highorder(), slab_order(), atomic()].map(|k| k.len());
        assert_eq!(all, [7, 16, 20]);
    }
}
