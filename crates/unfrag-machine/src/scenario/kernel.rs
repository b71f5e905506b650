//! The kernel that a scenario runs on.

use crate::engine::{Fair, MS, Nanos, Policy, US};
use crate::mm::MemConfig;
use crate::mm::thp::Thp;
use unfrag_eras::kernel::kernels;
use unfrag_eras::{Rules, Sysctl, preset};
use unfrag_slab::Rules as SlabRules;

/// A kernel: an era's rules, and its properties outside of the allocator.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Rules of the allocator.
    pub rules: Rules,
    /// Its administrator's settings.
    pub sysctl: Sysctl,
    /// Its encrypting layer has a thread of its own that submits writes to the disk (4.0 and later, by its
    /// change log); else the encrypting thread submits them. `spec: 4.4`
    pub crypt_io_thread: bool,
    /// CFQ's `low_latency` is there, and on.
    pub cfq_low_latency: bool,
    /// Reclaim rotates a page of tmpfs once more before it is written to swap (to 2.6.29).
    /// Source: the change log of 2.6.30. `spec: 4.9`
    pub shmem_second_round: bool,
    /// Its scheduling policy, with the settings for a single CPU.
    pub policy: Policy,
    /// Nice of its threads: -5 in 2.6.24 to 2.6.31, as lists of processes of that time show (of 2.6.27
    /// and 2.6.31 for kswapd, kjournald and kcryptd; not for pdflush), else 0 (2.6.32 and later).
    pub kthread_nice: i8,
    /// Rules of its slab caches. `spec: 6`
    pub slab: SlabRules,
    /// `vm.dirty_ratio` and `vm.dirty_background_ratio`, in percent: 40 and 10 to 2.6.21, 10 and 5 to
    /// 2.6.29, 20 and 10 since. `spec: 4.5` for the last; the others are what the manuals of
    /// the time give as defaults.
    pub dirty_ratios: (u64, u64),
    /// Transparent huge pages.
    pub thp: Thp,
    /// Whether it has an OOM killer. Source S0 disables it for 2.6.14.
    pub oom_killer: bool,
    /// Changes by the scenario or its user, each as `KEY = VALUE`.
    pub changes: Vec<String>,
}

/// First kernel with a preset whose encrypting layer has that thread.
const CRYPT_IO_SINCE: &str = "5.6";

/// First kernel whose CFQ has `low_latency`.
const LOW_LATENCY_SINCE: &str = "2.6.32-rc6";

/// First kernel whose reclaim writes a page of tmpfs as soon as it has a slot of swap.
const SHMEM_DIRECT_SINCE: &str = "2.6.30";

/// Dirty ratios, by the first kernel that has them.
const DIRTY_RATIOS: [(&str, (u64, u64)); 3] = [
    ("2.6.14", (40, 10)),
    ("2.6.24", (10, 5)),
    ("2.6.30", (20, 10)),
];

/// Settings of the fair policy: latency, minimum granularity, wakeup granularity, sleeper's credit.
const fn fair(latency: Nanos, shortest: Nanos, wakeup: Nanos, credit: Nanos) -> Policy {
    Policy::Fair(Fair {
        latency,
        min_granularity: shortest,
        wakeup_granularity: wakeup,
        sleeper_credit: credit,
    })
}

/// Scheduling policies, by the first kernel that has them. Sources (`spec: 4.9`): manuals of
/// the time (SLES 11 for 8 CPUs: 80, 16 and 20 ms, four times those of one CPU); change logs for 2.6.32 and
/// 2.6.35, and for the sleeper's credit, halved from 2.6.32 on. 6.6 and later use virtual deadlines with a
/// slice of 0.7 ms; they are modelled as the fair policy without credit.
const POLICIES: [(&str, Policy); 5] = [
    ("2.6.14", Policy::Arrays),
    ("2.6.24", fair(20 * MS, 4 * MS, 5 * MS, 20 * MS)),
    ("2.6.32-rc6", fair(5 * MS, MS, MS, 2_500 * US)),
    ("2.6.36", fair(6 * MS, 750 * US, MS, 3 * MS)),
    ("6.12", fair(0, 700 * US, 0, 0)),
];

/// The value of the newest entry that is not newer than this kernel, else of the first.
fn newest<T: Copy>(table: &[(&str, T)], is_since: impl Fn(&str) -> bool) -> T {
    let last = table.iter().rev().find(|(since, _)| is_since(since));
    last.unwrap_or(&table[0]).1
}

impl Kernel {
    /// The kernel of a preset; the error lists the presets.
    pub fn preset(name: &str) -> Result<Kernel, String> {
        let names = || kernels().map(|p| p.name);
        let Some(p) = preset(name) else {
            let known: Vec<_> = names().collect();
            return Err(format!(
                "there is no kernel `{name}`; there are: {}",
                known.join(", ")
            ));
        };
        let at = |name: &str| names().position(|n| n == name);
        let is_since = |since: &str| at(p.name) >= at(since);
        Ok(Kernel {
            name: p.name.to_owned(),
            rules: p.rules,
            sysctl: Sysctl::default(),
            crypt_io_thread: is_since(CRYPT_IO_SINCE),
            cfq_low_latency: is_since(LOW_LATENCY_SINCE),
            shmem_second_round: !is_since(SHMEM_DIRECT_SINCE),
            dirty_ratios: newest(&DIRTY_RATIOS, is_since),
            policy: newest(&POLICIES, is_since),
            kthread_nice: match is_since("2.6.24") && !is_since("2.6.32-rc6") {
                true => -5,
                false => 0,
            },
            slab: MemConfig::of(&p.rules).slab,
            thp: MemConfig::of(&p.rules).thp,
            oom_killer: true,
            changes: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_slab::Design;

    #[test]
    fn presets_by_name() {
        let io = |name| Kernel::preset(name).map(|k| k.crypt_io_thread);
        assert_eq!(io("2.6.30"), Ok(false));
        assert_eq!(io("2.6.33"), Ok(false));
        assert_eq!(io("6.18"), Ok(true));
        let latency = |name| Kernel::preset(name).map(|k| k.cfq_low_latency);
        assert_eq!(
            (latency("2.6.31"), latency("2.6.32-rc6")),
            (Ok(false), Ok(true))
        );
        let second = |name| Kernel::preset(name).map(|k| k.shmem_second_round);
        assert_eq!((second("2.6.28"), second("2.6.30")), (Ok(true), Ok(false)));
        let skips = |name| Kernel::preset(name).map(|k| MemConfig::of(&k.rules).swap_skips_holes);
        assert_eq!((skips("2.6.36"), skips("6.1")), (Ok(false), Ok(true)));
        let slab = |name| Kernel::preset(name).map(|k| k.slab.design);
        let designs = ["v19", "2.6.24", "6.18"].map(slab);
        assert_eq!(
            designs,
            [Ok(Design::Slab), Ok(Design::Slub), Ok(Design::Slub)]
        );
        let nice = |name| Kernel::preset(name).map(|k| k.kthread_nice);
        assert_eq!((nice("v19"), nice("2.6.31")), (Ok(0), Ok(-5)));
        assert_eq!((nice("2.6.32-rc6"), nice("6.1")), (Ok(0), Ok(0)));
        let policy = |name| match Kernel::preset(name).map(|k| k.policy) {
            Ok(Policy::Fair(f)) => Some(f.latency / MS),
            _ => None,
        };
        let latencies = [
            "v19",
            "2.6.24",
            "2.6.31",
            "2.6.32-rc6",
            "2.6.33",
            "6.1",
            "6.18",
        ];
        assert_eq!(
            latencies.map(policy),
            [None, Some(20), Some(20), Some(5), Some(5), Some(6), Some(0)]
        );
        let dirty = |name| Kernel::preset(name).map(|k| k.dirty_ratios);
        assert_eq!(
            (dirty("2.6.14"), dirty("v19")),
            (Ok((40, 10)), Ok((40, 10)))
        );
        assert_eq!(
            (dirty("2.6.28"), dirty("6.18")),
            (Ok((10, 5)), Ok((20, 10)))
        );
        assert!(
            io("2.4").is_err_and(|e| e.starts_with("there is no kernel `2.4`; there are: 2.6.14"))
        );
    }
}
