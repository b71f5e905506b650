//! The rules by which a setting is advised.
//!
//! Invariant: advice follows from a number in the [`Diagnosis`] that its reason names; without such a
//! number there is none. Nothing is advised that the host's kernel does not have.

use super::advice::Advice;
use super::atomic::FEW;
use super::diagnosis::Diagnosis;
use super::evidence::Evidence;
use super::frames::FrameUse;
use super::proactive::proactive_marks;
use crate::era::Era;
use crate::report::number::{mib, percent, thousands};

/// Share of spoiled blocks above which advice is given.
const SPOILED_SHARE: f64 = 0.10;

/// Everything that is advised, the most useful first.
pub fn advice(d: &Diagnosis, e: &Evidence, era: Era) -> Vec<Advice> {
    let mut all = vec![];
    all.extend(atomic_reserve(d, e));
    all.extend(watermark_boost(e));
    all.extend(unevictable(d, e));
    all.extend(proactive(d, e, era));
    all.extend(early_kswapd(d, e));
    all.extend(defrag_mode(d, e, era));
    all.extend(huge_page_faults(d, e));
    all.extend(reclaimable_slab(d, e));
    all
}

fn sysctl(e: &Evidence, name: &str, value: u64, reason: String, cost: String) -> Advice {
    Advice {
        command: format!("sysctl -w vm.{name}={value}"),
        setting: Some(format!("vm.{name}")),
        current: e.settings.get(name).cloned(),
        value: Some(value.to_string()),
        reason,
        cost,
        prediction: None,
        predicted: None,
    }
}

/// Whether the kernel may have a sysctl: it was read, or none was.
fn has(e: &Evidence, name: &str) -> bool {
    e.settings.contains_key(name) || e.settings.is_empty()
}

/// A higher `min_free_kbytes` where requests that may not wait are about to fail.
fn atomic_reserve(d: &Diagnosis, e: &Evidence) -> Option<Advice> {
    let worst = d
        .atomic
        .iter()
        .filter(|r| matches!(r.verdict, "fails" | "at risk"));
    let worst = worst.min_by_key(|r| r.in_a_row)?;
    let current = e.setting("min_free_kbytes").or_else(|| {
        let min: Option<u64> = d.zones.iter().map(|z| Some(z.watermarks?[0])).sum();
        Some(min? * 4)
    })?;
    let managed: u64 = d.zones.iter().filter_map(|z| z.managed_pages).sum();
    // Twice as much, but never more than a twentieth of memory.
    let value = (current * 2).min(managed * 4 / 20);
    (value > current).then(|| {
        let now = match worst.in_a_row {
            0 => "not one succeeds now".to_owned(),
            n => format!("{n} in a row succeed now, fewer than {}", FEW),
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
    let gain = node
        .huge_pages
        .by_asking_again?
        .saturating_sub(node.huge_pages.now);
    let all = node.huge_pages.by_asking_again?.max(1);
    if now > 0 && node.score > proactive_marks(now, era)[1] || gain * 10 < all {
        return None;
    }
    let value = (1..=8)
        .map(|tens| tens * 10)
        .find(|&p| p > now && proactive_marks(p, era)[1] < node.score)?;
    let [low, high] = proactive_marks(value, era);
    Some(sysctl(
        e,
        "compaction_proactiveness",
        value,
        format!(
            "node {} scores {} (percent of free memory outside huge pages): with {now} proactive compaction \
             does not begin; {} more huge pages can be made",
            node.node,
            node.score,
            thousands(gain)
        ),
        format!("kcompactd runs while the score is above {high}, until it is {low}"),
    ))
}

/// A `watermark_scale_factor` that wakes kswapd earlier, where requests stall.
fn early_kswapd(d: &Diagnosis, e: &Evidence) -> Option<Advice> {
    let stalls = d.work.iter().find(|w| w.counter == "allocstall")?;
    let rate = stalls.per_second.or(stalls.per_second_since_boot)?;
    let now = e.setting("watermark_scale_factor")?;
    let value = (now * 5).min(300);
    let managed: u64 = d.zones.iter().filter_map(|z| z.managed_pages).sum();
    (rate >= 1.0 && value > now).then(|| {
        sysctl(
            e,
            "watermark_scale_factor",
            value,
            format!("{rate:.1} requests a second had to reclaim first: kswapd begins too late"),
            format!(
                "up to {} MiB more are kept free",
                mib(2 * managed * (value - now) / 10_000)
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
                mib(pages)
            ),
            "more reclaim and compaction before a request takes a block of another type; requests that may \
             not wait fail sooner"
                .into(),
        )
    })
}

/// A THP `defrag` mode that waits, where faults do not get huge pages.
fn huge_page_faults(d: &Diagnosis, e: &Evidence) -> Option<Advice> {
    let of = |name: &str| d.work.iter().find(|w| w.counter == name).map(|w| w.total);
    let (given, refused) = (of("thp_fault_alloc")?, of("thp_fault_fallback")?);
    let defrag = e.settings.get("thp_defrag")?;
    let share = refused as f64 / (given + refused).max(1) as f64;
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

/// Dropping caches, where reclaimable slab spoils blocks.
fn reclaimable_slab(d: &Diagnosis, e: &Evidence) -> Option<Advice> {
    let blocks: u64 = d.zones.iter().filter_map(|z| z.blocks).sum();
    let slab = d
        .obstacles
        .as_ref()?
        .iter()
        .find(|o| o.kind == FrameUse::Slab)?;
    let reclaimable = e.meminfo_pages("SReclaimable")?;
    let unreclaimable = e.meminfo_pages("SUnreclaim")?;
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
            mib(reclaimable)
        ),
        cost: "names and inodes of files are read from disk again; some slabs stay for one object in use".into(),
        prediction: None,
        predicted: None,
    })
}
