//! The rules by which a setting is advised.
//!
//! Invariant: advice follows from a number in the [`Diagnosis`] that its reason names; without such a
//! number there is none. Nothing is advised that the host's kernel does not have.

use super::advice::Advice;
use super::atomic::FEW;
use super::diagnosis::{Diagnosis, ZoneDiagnosis};
use super::evidence::Evidence;
use super::frames::FrameUse;
use super::proactive::proactive_marks;
use super::room_advice::{counted, make_room, mostly_in_vain, share_of};
use crate::era::Era;
use crate::host::{Zone, settings};
use crate::report::number::{bytes, mib, percent, thousands};

/// Share of spoiled blocks above which advice is given.
const SPOILED_SHARE: f64 = 0.10;

/// Everything that is advised, the most useful first.
pub fn advice(d: &Diagnosis, e: &Evidence, era: Era) -> Vec<Advice> {
    let mut all = vec![];
    all.extend(slab_in_low_memory(d));
    all.extend(atomic_reserve(d, e));
    all.extend(watermark_boost(e));
    all.extend(unevictable(d, e));
    all.extend(proactive(d, e, era));
    all.extend(early_kswapd(d, e, era));
    all.extend(defrag_mode(d, e, era));
    all.extend(huge_page_faults(d, e));
    all.extend(stalling_faults(d, e));
    all.extend(reclaimable_slab(d, e));
    all.extend(make_room(d, e));
    all
}

fn sysctl(e: &Evidence, name: &str, value: u64, reason: String, cost: String) -> Advice {
    Advice {
        command: format!("sysctl -w vm.{name}={value}"),
        setting: Some(format!("vm.{name}")),
        current: e.host.settings.get(name).cloned(),
        value: Some(value.to_string()),
        reason,
        cost,
        prediction: None,
        predicted: None,
    }
}

/// Whether the kernel may have a sysctl.
fn has(e: &Evidence, name: &str) -> bool {
    settings::may_have(&e.host.settings, name)
}

/// Pages as MiB, without the unit.
fn pages_in_mib(d: &Diagnosis, pages: u64) -> String {
    mib(pages.saturating_mul(d.page_size / 4096))
}

/// What to do where slab that cannot be reclaimed fills a zone. Larger watermarks would not help there.
fn slab_in_low_memory(d: &Diagnosis) -> Option<Advice> {
    let zone = d.zones.iter().find(|z| z.filled_by_slab_pages.is_some())?;
    let size = |pages: u64| bytes(pages.saturating_mul(d.page_size));
    Some(Advice {
        command: "slabtop -o -s c".into(),
        setting: None,
        current: None,
        value: None,
        reason: format!(
            "{} of unreclaimable slab are the cause: zone {} of node {} has {} and is below its {} watermark, and a larger min_free_kbytes cannot free them; find the cache that grows, and what fills it",
            size(zone.filled_by_slab_pages?),
            zone.zone,
            zone.node,
            size(zone.managed_pages?),
            zone.below?
        ),
        cost: "none to look; the cache shrinks only when the driver or the program that fills it lets go, or at a reboot".into(),
        prediction: None,
        predicted: None,
    })
}

/// A higher `min_free_kbytes` where requests that may not wait are about to fail.
fn atomic_reserve(d: &Diagnosis, e: &Evidence) -> Option<Advice> {
    if d.zones.iter().any(|z| z.filled_by_slab_pages.is_some()) {
        return None;
    }
    let worst = d
        .atomic
        .iter()
        .filter(|r| matches!(r.verdict, "fails" | "at risk"));
    let worst = worst.min_by_key(|r| r.in_a_row_at_least)?;
    let kib = |pages: u64| pages.saturating_mul(d.page_size / 1024);
    if e.host.zoneinfo.is_none() || !e.host.gaps().is_empty() {
        return None;
    }
    let current = e
        .setting("min_free_kbytes")
        .or_else(|| Some(kib(set_marks(&e.host.zones)?)))?;
    // Never from a part of memory.
    let sum = |of: fn(&ZoneDiagnosis) -> Option<u64>| d.zones.iter().map(of).sum::<Option<u64>>();
    let (managed, free) = (sum(|z| z.managed_pages)?, sum(|z| z.free_pages)?);
    let can_be_free = kib(free).saturating_add(d.reclaimable_bytes.unwrap_or(0) / 1024);
    // Twice as much, but never more than a twentieth of memory, nor than can be free.
    let value = current
        .saturating_mul(2)
        .min(kib(managed) / 20)
        .min(can_be_free);
    (value > current).then(|| {
        let now = match worst.in_a_row {
            Some(0) => "not one succeeds now".to_owned(),
            Some(n) => format!("{n} in a row succeed now, fewer than {}", FEW),
            None => format!("fewer than {FEW} in a row succeed now"),
        };
        sysctl(
            e,
            "min_free_kbytes",
            value,
            format!(
                "atomic requests of order {} on node {}: {now}",
                worst.order, worst.node
            ),
            format!("{} MiB more are kept free", mib((value - current) / 4)),
        )
    })
}

/// The pages that `min_free_kbytes` set, by the marks: without the boost, and without those of zones that have marks of
/// their own. `None` where a zone's are not told.
fn set_marks(zones: &[Zone]) -> Option<u64> {
    // Kernels before 5.0 have no boost.
    let of = |z: &Zone| Some(z.told("min")?.saturating_sub(z.told("boost").unwrap_or(0)));
    zones
        .iter()
        .filter(|z| !matches!(z.name.as_str(), "HighMem" | "Movable" | "Device"))
        .map(of)
        .try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))
}

/// The watermark boost, where it is off.
fn watermark_boost(e: &Evidence) -> Option<Advice> {
    (e.setting("watermark_boost_factor")? == 0).then(|| {
        sysctl(
            e,
            "watermark_boost_factor",
            15000,
            "the boost is off: nothing makes room after types were mixed in a pageblock".into(),
            "kswapd reclaims up to 1.5 times the high watermark more, for a short time".into(),
        )
    })
}

/// Compaction of unevictable memory, where it is off and such memory alone spoils blocks.
fn unevictable(d: &Diagnosis, e: &Evidence) -> Option<Advice> {
    if e.setting("compact_unevictable_allowed")? != 0 {
        return None;
    }
    let o = d
        .obstacles
        .as_ref()?
        .iter()
        .find(|o| o.kind == FrameUse::Unevictable)?;
    (o.blocks_alone > 0).then(|| {
        sysctl(
            e,
            "compact_unevictable_allowed",
            1,
            format!(
                "unevictable memory alone spoils {} blocks",
                thousands(o.blocks_alone)
            ),
            "a process with mlocked memory may wait for a page that is being moved".into(),
        )
    })
}

/// A `compaction_proactiveness` at which compaction begins at the current score.
fn proactive(d: &Diagnosis, e: &Evidence, era: Era) -> Option<Advice> {
    let now = e.setting("compaction_proactiveness")?;
    let node = d.nodes.iter().max_by_key(|n| n.score)?;
    let score = node.score?;
    let gain = node
        .huge_pages
        .by_asking_again?
        .saturating_sub(node.huge_pages.now?);
    let all = node.huge_pages.by_asking_again?.max(1);
    if now > 0 && score > proactive_marks(now, era)[1] || gain * 10 < all {
        return None;
    }
    let value = (1..=8)
        .map(|tens| tens * 10)
        .find(|&p| p > now && proactive_marks(p, era)[1] < score)?;
    let [low, high] = proactive_marks(value, era);
    Some(sysctl(
        e,
        "compaction_proactiveness",
        value,
        format!(
            "node {} scores {} (percent of free memory outside huge pages): with {now} proactive compaction \
             does not begin; {} more huge pages can be made",
            node.node,
            score,
            thousands(gain)
        ),
        format!("kcompactd runs while the score is above {high}, until it is {low}"),
    ))
}

/// A `watermark_scale_factor` that wakes kswapd earlier, where requests stall.
fn early_kswapd(d: &Diagnosis, e: &Evidence, era: Era) -> Option<Advice> {
    /// The kernel's default, for a host whose settings were not read.
    const DEFAULT: u64 = 10;
    if !era.is_at_least(4, 6) || !has(e, "watermark_scale_factor") {
        return None;
    }
    let stalls = d.work.iter().find(|w| w.counter == "allocstall")?;
    let rate = stalls.per_second.or(stalls.per_second_since_boot)?;
    let now = e.setting("watermark_scale_factor").unwrap_or(DEFAULT);
    let value = now.saturating_mul(5).min(300);
    let managed: Option<u64> = d.zones.iter().map(|z| z.managed_pages).sum();
    let managed = managed.filter(|&n| n > 0);
    (rate >= 1.0 && value > now).then(|| {
        sysctl(
            e,
            "watermark_scale_factor",
            value,
            format!("{rate:.1} requests a second had to reclaim first: kswapd begins too late"),
            managed.map_or_else(
                || {
                    format!(
                        "up to {} ten-thousandths of memory more are kept free",
                        2 * (value - now)
                    )
                },
                |managed| {
                    let more = managed.saturating_mul(2 * (value - now)) / 10_000;
                    format!("up to {} MiB more are kept free", pages_in_mib(d, more))
                },
            ),
        )
    })
}

/// `defrag_mode`, where the kernel's memory is scattered over many blocks.
fn defrag_mode(d: &Diagnosis, e: &Evidence, era: Era) -> Option<Advice> {
    if !era.is_at_least(6, 15) || !has(e, "defrag_mode") || e.setting("defrag_mode") == Some(1) {
        return None;
    }
    let blocks: u64 = d.zones.iter().filter_map(|z| z.blocks).sum();
    let kernel = d
        .obstacles
        .as_ref()?
        .iter()
        .filter(|o| o.kind != FrameUse::Reserved);
    let (pages, spoiled) = kernel.fold((0, 0), |(p, b), o| (p + o.pages, b + o.blocks));
    let scattered = spoiled as f64 > SPOILED_SHARE * blocks as f64 && pages < spoiled * 512 / 4;
    scattered.then(|| {
        sysctl(
            e,
            "defrag_mode",
            1,
            format!(
                "{} blocks are spoiled by {} MiB of the kernel's memory: types are mixed",
                thousands(spoiled),
                pages_in_mib(d, pages)
            ),
            "more reclaim and compaction before a request takes a block of another type; requests that may \
             not wait fail sooner"
                .into(),
        )
    })
}

/// A THP `defrag` mode that waits, where faults do not get huge pages.
fn huge_page_faults(d: &Diagnosis, e: &Evidence) -> Option<Advice> {
    let share = share_of(
        counted(d, "thp_fault_fallback")?,
        counted(d, "thp_fault_alloc")?,
    );
    let defrag = e.host.settings.get("thp_defrag")?;
    let waits = matches!(defrag.as_str(), "always" | "madvise" | "defer+madvise");
    (share > 0.10 && !waits).then(|| Advice {
        command: "echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag".into(),
        setting: None,
        current: Some(defrag.clone()),
        value: Some("defer+madvise".into()),
        reason: format!(
            "{} of the faults that wanted a huge page did not get one",
            percent(share)
        ),
        cost: "programs that ask with madvise wait for compaction; for the others kcompactd works"
            .into(),
        prediction: None,
        predicted: None,
    })
}

/// A THP `defrag` mode that waits less, where each fault that may have a huge page compacts for it, in vain mostly.
fn stalling_faults(d: &Diagnosis, e: &Evidence) -> Option<Advice> {
    let defrag = e.host.settings.get("thp_defrag")?;
    if defrag != "always" {
        return None;
    }
    let (stalls, share) = mostly_in_vain(d)?;
    // With `enabled` at madvise all faults that may have a huge page are of memory for which a program asked: `madvise`
    // and `defer+madvise` would let them wait as before.
    let (value, cost) = match e.host.settings.get("thp_enabled").map(String::as_str) {
        Some("madvise") => (
            "defer",
            "programs that ask with madvise get small pages first, and huge ones from kcompactd and khugepaged later",
        ),
        _ => (
            "madvise",
            "programs that do not ask with madvise get a huge page only where one is free; khugepaged makes others later",
        ),
    };
    Some(Advice {
        command: format!("echo {value} > /sys/kernel/mm/transparent_hugepage/defrag"),
        setting: None,
        current: Some(defrag.clone()),
        value: Some(value.into()),
        reason: format!(
            "with defrag at always every fault that may have a huge page waits for compaction: {} compactions that a request waited for since boot, {} of them in vain",
            thousands(stalls),
            percent(share)
        ),
        cost: cost.into(),
        prediction: None,
        predicted: None,
    })
}

/// Dropping caches, where reclaimable slab spoils blocks.
fn reclaimable_slab(d: &Diagnosis, e: &Evidence) -> Option<Advice> {
    let blocks: u64 = d.zones.iter().filter_map(|z| z.blocks).sum();
    let slab = d
        .obstacles
        .as_ref()?
        .iter()
        .find(|o| o.kind == FrameUse::Slab)?;
    let reclaimable = e.host.meminfo_bytes("SReclaimable")?;
    let unreclaimable = e.host.meminfo_bytes("SUnreclaim")?;
    let much =
        slab.blocks_alone as f64 > SPOILED_SHARE * blocks as f64 && reclaimable > unreclaimable;
    much.then(|| Advice {
        command: "echo 2 > /proc/sys/vm/drop_caches".into(),
        setting: None,
        current: None,
        value: None,
        reason: format!(
            "slab alone spoils {} of {} blocks, and {} MiB of it can be reclaimed",
            thousands(slab.blocks_alone),
            thousands(blocks),
            mib(reclaimable / 4096)
        ),
        cost: "names and inodes of files are read from disk again; some slabs stay for one object in use".into(),
        prediction: None,
        predicted: None,
    })
}
