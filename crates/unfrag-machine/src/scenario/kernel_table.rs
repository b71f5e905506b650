//! `[kernel]`: the kernel of a scenario, and single rules of it that the scenario changes.
//!
//! Every rule that the published experiments vary is a key of its own, so that a scenario can have one patch
//! without those before it. Keys that are not given leave the kernel as it is.

use super::kernel::Kernel;
use crate::mm::thp::{Thp, ThpDefrag, ThpEnabled};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use unfrag_eras::kernel::{CongestionWait, KswapdNap, KswapdSleep, Reserve};
use unfrag_slab::{Design, FirstAttempt};

/// The default kernel.
pub const DEFAULT: &str = "6.18";

/// A kernel: a name alone, or a table.
#[derive(Clone, Debug, Default)]
pub struct KernelTable(Keys);

#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Keys {
    /// The preset.
    name: Option<String>,
    /// Whether it has an OOM killer.
    oom_killer: Option<bool>,
    /// Design of its slab caches.
    slab: Option<Named<Design>>,
    /// `slub_max_order`.
    slub_max_order: Option<u8>,
    /// SLUB's first attempt at a slab of its preferred order.
    slub_first_attempt: Option<Named<FirstAttempt>>,
    /// `MIGRATE_RESERVE` of kernels that have it.
    migrate_reserve: Option<bool>,
    /// Only requests above order 3 set high-atomic pageblocks aside.
    highatomic_costly_only: Option<bool>,
    /// `vm.defrag_mode` of kernels that have it.
    defrag_mode: Option<bool>,
    /// `/sys/kernel/mm/lru_gen/enabled` of kernels that have it.
    lru_gen: Option<bool>,
    /// `/sys/kernel/mm/lru_gen/min_ttl_ms`.
    lru_gen_min_ttl_ms: Option<u64>,
    /// The congestion that reclaim waits for: 8aa7e847, and patch 3 of S4.
    congestion_wait: Option<Named<CongestionWait>>,
    /// Patch 4 of S4.
    kswapd_sleep: Option<Named<KswapdSleep>>,
    /// Patch 5 of S4.
    kswapd_nap: Option<Named<KswapdNap>>,
    /// Patch 1 of S4.
    wake_on_restart: Option<bool>,
    /// Patch 2 of S4 sets it to false.
    realtime_in_interrupt: Option<bool>,
    /// The patch that was dropped after V2.
    notices_order_at_once: Option<bool>,
    /// `/sys/kernel/mm/transparent_hugepage/enabled`.
    transparent_hugepage: Option<Named<ThpEnabled>>,
    /// `/sys/kernel/mm/transparent_hugepage/defrag`.
    transparent_hugepage_defrag: Option<Named<ThpDefrag>>,
}

/// A rule chosen by name, with the name.
#[derive(Clone, Copy, Debug)]
struct Named<T>(T, &'static str);

/// A rule that a scenario can choose by name.
pub trait Names: Copy + PartialEq + 'static {
    /// All values with their names.
    const ALL: &'static [(&'static str, Self)];

    /// The name; empty, if no scenario can choose it.
    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|n| n.1 == self);
        found.map_or("", |n| n.0)
    }
}

impl Names for Design {
    const ALL: &'static [(&'static str, Design)] = &[
        ("slab", Design::Slab),
        ("slub", Design::Slub),
        ("slqb", Design::Slqb),
    ];
}

impl Names for FirstAttempt {
    const ALL: &'static [(&'static str, FirstAttempt)] = &[
        ("historic", FirstAttempt::Historic),
        ("if-plenty-free", FirstAttempt::IfPlentyFree),
        ("no-wait", FirstAttempt::NoWait),
        ("no-wake", FirstAttempt::NoWake),
        ("first-pass-only", FirstAttempt::FirstPassOnly),
    ];
}

impl Names for CongestionWait {
    const ALL: &'static [(&'static str, CongestionWait)] = &[
        ("sync", CongestionWait::Sync),
        ("async", CongestionWait::Async),
        ("both", CongestionWait::Both),
        ("both-everywhere", CongestionWait::BothEverywhere),
        ("throttle", CongestionWait::Throttle),
    ];
}

impl Names for KswapdSleep {
    const ALL: &'static [(&'static str, KswapdSleep)] = &[
        ("direct", KswapdSleep::Direct),
        ("staged", KswapdSleep::Staged),
    ];
}

impl Names for KswapdNap {
    const ALL: &'static [(&'static str, KswapdNap)] = &[
        ("trouble", KswapdNap::Trouble),
        ("trouble-later", KswapdNap::TroubleLater),
        ("not-below-min", KswapdNap::NotBelowMin),
        ("no", KswapdNap::No),
    ];
}

impl Names for ThpEnabled {
    const ALL: &'static [(&'static str, ThpEnabled)] = &[
        ("always", ThpEnabled::Always),
        ("madvise", ThpEnabled::Madvise),
        ("never", ThpEnabled::Never),
    ];
}

impl Names for ThpDefrag {
    const ALL: &'static [(&'static str, ThpDefrag)] = &[
        ("always", ThpDefrag::Always),
        ("defer", ThpDefrag::Defer),
        ("defer+madvise", ThpDefrag::DeferMadvise),
        ("madvise", ThpDefrag::Madvise),
        ("never", ThpDefrag::Never),
    ];
}

impl<'de, T: Names> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Named<T>, D::Error> {
        let name = String::deserialize(d)?;
        let found = T::ALL.iter().find(|n| n.0 == name);
        found.map(|n| Named(n.1, n.0)).ok_or_else(|| {
            let names: Vec<_> = T::ALL.iter().map(|n| n.0).collect();
            D::Error::custom(format!(
                "there is no `{name}`; there are: {}",
                names.join(", ")
            ))
        })
    }
}

impl<'de> Deserialize<'de> for KernelTable {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<KernelTable, D::Error> {
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = KernelTable;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("the name of a kernel, or a table with its `name`")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<KernelTable, E> {
                Ok(KernelTable(Keys {
                    name: Some(name.to_owned()),
                    ..Keys::default()
                }))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<KernelTable, A::Error> {
                Keys::deserialize(MapAccessDeserializer::new(map)).map(KernelTable)
            }
        }
        d.deserialize_any(NameOrTable)
    }
}

/// The changes of a table, as texts.
struct Changes(Vec<String>);

impl Changes {
    fn note(&mut self, key: &str, value: &dyn fmt::Display) {
        self.0.push(format!("{key} = {value}"));
    }

    fn set<T: Copy>(&mut self, key: &str, to: &mut T, from: Option<Named<T>>) {
        if let Some(Named(value, name)) = from {
            *to = value;
            self.note(key, &name);
        }
    }

    fn switch(&mut self, key: &str, to: &mut bool, from: Option<bool>) {
        if let Some(value) = from {
            *to = value;
            self.note(key, &value);
        }
    }
}

impl KernelTable {
    /// The kernel, on the base `asked` if given. The error has the message and the help.
    pub(super) fn kernel(&self, asked: Option<&str>) -> Result<Kernel, (String, String)> {
        let k = &self.0;
        let name = asked.or(k.name.as_deref()).unwrap_or(DEFAULT);
        let mut kernel = Kernel::preset(name).map_err(|e| (e, String::new()))?;
        let mut changes = Changes(Vec::new());
        let sw = &mut kernel.rules;
        changes.switch("oom-killer", &mut kernel.oom_killer, k.oom_killer);
        changes.set("slab", &mut kernel.slab.design, k.slab);
        let of_slub = [
            ("slub-max-order", k.slub_max_order.is_some()),
            ("slub-first-attempt", k.slub_first_attempt.is_some()),
        ];
        let design = kernel.slab.design;
        if let Some((key, _)) = of_slub.iter().find(|key| key.1)
            && design != Design::Slub
        {
            let message = format!("`{key}` says nothing to {}", design.name());
            return Err((message, "leave it out, or give `slab = \"slub\"`".into()));
        }
        let slub = &mut kernel.slab.slub;
        if let Some(order) = k.slub_max_order {
            if order > unfrag_eras::MAX_ORDER {
                let message = format!("there is no order {order} for `slub-max-order`");
                return Err((
                    message,
                    format!("the largest is {}", unfrag_eras::MAX_ORDER),
                ));
            }
            slub.max_order = order;
            changes.note("slub-max-order", &order);
        }
        let first = &mut slub.first_attempt;
        changes.set("slub-first-attempt", first, k.slub_first_attempt);
        if let Some(keeps) = k.migrate_reserve {
            if !matches!(sw.reserve(), Reserve::Blocks { .. }) {
                let message = format!("{name} has no MIGRATE_RESERVE");
                return Err((message, "leave `migrate-reserve` out".to_owned()));
            }
            if !keeps && let Some(p) = sw.pageblocks_mut() {
                p.reserve = Reserve::None;
            }
            changes.note("migrate-reserve", &keeps);
        }
        if let Some(only) = k.highatomic_costly_only {
            if !matches!(sw.reserve(), Reserve::HighAtomic(_)) {
                let message = format!("{name} has no high-atomic reserve");
                return Err((message, "leave `highatomic-costly-only` out".to_owned()));
            }
            if let Some(p) = sw.pageblocks_mut() {
                p.reserve_costly_only = only;
            }
            changes.note("highatomic-costly-only", &only);
        }
        if let Some(on) = k.defrag_mode {
            if !sw.pageblocks().is_some_and(|p| p.defrag_mode) {
                let message = format!("{name} has no vm.defrag_mode");
                return Err((message, "leave `defrag-mode` out".to_owned()));
            }
            kernel.sysctl.defrag_mode = on;
            changes.note("defrag-mode", &on);
        }
        let given = k.lru_gen.is_some() || k.lru_gen_min_ttl_ms.is_some();
        if given && sw.generations().is_none() {
            let message = format!("{name} does not reclaim by generations");
            return Err((
                message,
                "leave `lru-gen` and `lru-gen-min-ttl-ms` out".to_owned(),
            ));
        }
        changes.switch("lru-gen", &mut kernel.sysctl.lru_gen, k.lru_gen);
        if let Some(ms) = k.lru_gen_min_ttl_ms {
            kernel.sysctl.lru_gen_min_ttl_ms = ms;
            changes.note("lru-gen-min-ttl-ms", &ms);
        }
        changes.set(
            "congestion-wait",
            &mut sw.reclaim.congestion,
            k.congestion_wait,
        );
        changes.set("kswapd-sleep", &mut sw.kswapd.sleep, k.kswapd_sleep);
        changes.set("kswapd-nap", &mut sw.kswapd.nap, k.kswapd_nap);
        for (key, to, from) in [
            (
                "wake-on-restart",
                &mut sw.retry.wake_on_restart,
                k.wake_on_restart,
            ),
            (
                "realtime-in-interrupt",
                &mut sw.rights.realtime_in_interrupt,
                k.realtime_in_interrupt,
            ),
            (
                "notices-order-at-once",
                &mut sw.kswapd.notices_order_at_once,
                k.notices_order_at_once,
            ),
        ] {
            changes.switch(key, to, from);
        }
        let given = k.transparent_hugepage.is_some() || k.transparent_hugepage_defrag.is_some();
        if given && kernel.thp == Thp::OFF {
            let message = format!("{name} has no transparent huge pages");
            return Err((message, "leave their settings out".to_owned()));
        }
        let thp = &mut kernel.thp;
        let (enabled, defrag) = (k.transparent_hugepage, k.transparent_hugepage_defrag);
        changes.set("transparent-hugepage", &mut thp.enabled, enabled);
        changes.set("transparent-hugepage-defrag", &mut thp.defrag, defrag);
        kernel.sysctl.transparent_hugepage &= enabled.is_none_or(|e| e.0 != ThpEnabled::Never);
        kernel.changes = changes.0;
        Ok(kernel)
    }
}
